#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/io/csv.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

TEST_CASE("frameworks are listed with what they are, and the hosts they are calibrated on") {
    const std::string table = run_program("frameworks").output;
    CHECK(table.find("\ntensorrt                                  7.1-10.8         TensorRT engine; tensorrt@8.6") !=
          std::string::npos);
    CHECK(table.find("\nhelp-pytorch-1.8               pytorch-eager\n") != std::string::npos);
    const auto json = nlohmann::json::parse(run_program("frameworks --json").output);
    CHECK(json["frameworks"].size() >= 10);
    CHECK(json["frameworks"][0]["hosts"].size() >= 8);
    CHECK(json["frameworks"][0]["description"] ==
          "PyTorch eager: every operator dispatched from Python; pytorch-eager@2.4 for its version, from 1.12 on");
}

TEST_CASE("a framework without a version is the newest measured, but on a host or from a file of one version") {
    const TemporaryFolder folder;
    const auto predicted = [](std::vector<std::string> more) {
        std::vector<std::string> words{"predict", "resnet18", "--device", "t4", "--batch", "1", "--json", "-"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramRun run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        const auto json = nlohmann::json::parse(run.output);
        return std::pair(json["framework"]["version"].get<std::string>(),
                         json["predictions"][0]["latency_s"].get<double>());
    };
    for (const auto& [name, newest] : {std::pair<std::string, std::string>{"pytorch-eager", "2.5"},
                                       {"onnxruntime-cuda", "1.23"},
                                       {"torch-compile-cuda-graph", "2.5"}}) {
        CHECK_MESSAGE(predicted({"--framework", name}) == predicted({"--framework", name + "@" + newest}), name);
    }
    CHECK(predicted({"--framework", "pytorch-eager", "--host", "reference"}) ==
          predicted({"--framework", "pytorch-eager@1.12"}));
    const std::string file = std::string(FTAX_SOURCE_DIR) + "/data/profiles/frameworks/pytorch-eager.json";
    CHECK(predicted({"--framework-profile", file}).first == "1.12");
}

TEST_CASE("compare: frameworks times devices times batches, each against the best of its batch") {
    const ProgramRun run = run_ftax({"compare", "resnet18", "--device", "t4,a100-sxm4-40gb", "--framework",
                                     "pytorch-eager,onnxruntime-cuda", "--batch", "1,8", "--json"});
    REQUIRE(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.output);
    REQUIRE(json["rows"].size() == 8);
    for (const int batch : {1, 8}) {
        double best_s = 1e9, lowest_ratio = 1e9;
        for (const auto& row : json["rows"]) {
            if (row["batch"] != batch) continue;
            best_s = std::min(best_s, row["latency_s"].get<double>());
            lowest_ratio = std::min(lowest_ratio, row["ratio_to_best"].get<double>());
        }
        CHECK(lowest_ratio == 1);
        for (const auto& row : json["rows"]) {
            if (row["batch"] == batch)
                CHECK(row["ratio_to_best"].get<double>() == approx(row["latency_s"].get<double>() / best_s));
        }
    }
}

TEST_CASE("compare: a device without the precision is listed with the reason, only such devices are an error") {
    const ProgramRun mixed = run_ftax(
        {"compare", "resnet18", "--device", "t4,a100-sxm4-40gb", "--precision", "bf16", "--batch", "1", "--csv"});
    CHECK(mixed.exit_code == 0);
    const CsvTable table(mixed.output, "csv");
    REQUIRE(table.rows() == 2);
    CHECK(table.row(0)[*table.column("skipped")].find("bf16") != std::string_view::npos);
    CHECK(table.row(0)[*table.column("latency_s")].empty());
    CHECK(table.row(1)[*table.column("skipped")].empty());
    const ProgramRun alone = run_ftax({"compare", "resnet18", "--device", "t4", "--precision", "bf16", "--batch", "1"});
    CHECK(alone.exit_code == 2);
    CHECK(alone.errors.find("bf16") != std::string::npos);
}

TEST_CASE("compare: a misspelt device or framework is a usage error") {
    CHECK(run_ftax({"compare", "resnet18", "--device", "t4,t44", "--batch", "1"}).exit_code == 2);
    CHECK(run_ftax({"compare", "resnet18", "--device", "t4", "--framework", "pytorch-eager,caffe", "--batch", "1"})
              .exit_code == 2);
}

TEST_CASE("headroom: properties and frameworks, and what is no budget") {
    const ProgramRun run = run_ftax({"headroom", "bert", "--device", "t4", "--dim", "seq=128", "--json"});
    REQUIRE(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.output);
    std::vector<std::string> properties;
    for (const auto& row : json["headroom"]) properties.push_back(row["property"]);
    CHECK(properties == std::vector<std::string>{"batch", "seq", "width", "depth"});
    for (std::size_t i = 1; i < json["frameworks"].size(); ++i) {
        CHECK(json["frameworks"][i - 1]["latency_s"].get<double>() <= json["frameworks"][i]["latency_s"].get<double>());
    }
    for (const char* budget : {"0", "-5%", "much", "2000%"}) {
        CHECK(run_ftax({"headroom", "resnet18", "--device", "t4", "--budget", budget}).exit_code == 2);
    }
    CHECK(run_ftax({"headroom", "resnet18", "--device", "t4", "--batch", "1,2"}).exit_code == 2);
}

TEST_CASE("compare says of which frameworks no measured row of the model's family is known") {
    const std::string pair = "compare resnet18 --device t4 --framework tensorrt@8.6,pytorch-eager --batch 1";
    const std::string table = run_program(pair).output;
    CHECK(table.find("tensorrt@8.6: not validated on convolutional networks") != std::string::npos);
    CHECK(table.find("pytorch-eager: no measured row") == std::string::npos);
    const auto rows = nlohmann::json::parse(run_program(pair + " --json").output)["rows"];
    CHECK(rows[0]["rules_without_rows_of"] == "convolutional network");
    CHECK_FALSE(rows[1].contains("rules_without_rows_of"));
}
