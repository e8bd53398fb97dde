#include <doctest/doctest.h>

#include "graphs/files/file.hpp"
#include "tests/cli/command.hpp"
#include "tests/recorded/transcripts.hpp"

using namespace ftax;
using namespace ftax::test;

TEST_CASE("the picture of the README is what predict --svg draws now") {
    const TemporaryFolder folder;
    const std::string chart = folder.file("chart.svg");
    REQUIRE(run_ftax({"predict", "bert", "--device", "quadro-rtx-8000", "--framework", "pytorch-eager@1.12",
                      "--precision", "fp16", "--batch", "1,2,4:128:x2", "--dim", "seq=128", "--svg", chart})
                .exit_code == 0);
    check_transcript(std::string(FTAX_SOURCE_DIR) + "/docs/images/bert-quadro-rtx-8000.svg", read_file(chart, 1 << 20),
                     Numbers::exact);
}
