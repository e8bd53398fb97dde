#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "calibration/bench/operator_cases.hpp"
#include "ftax/error.hpp"
#include "src/cli/bench_session.hpp"
#include "src/io/csv.hpp"
#include "tests/calibration/bench/fake_device.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using bench::Mode;
using bench::test::FakeDevice;
using test::TemporaryFolder;

namespace {

const std::vector<Mode> modes{Mode::end_to_end, Mode::host_dispatch, Mode::device_hot};

/// A GPU that takes a second end to end, a third of it for its kernels.
std::unique_ptr<FakeDevice> gpu() {
    auto device = std::make_unique<FakeDevice>();
    device->about = {{"device", "Tesla T4"}};
    auto mode = std::make_shared<Mode>();
    device->on_prepare = [mode](const bench::BenchCase& c) -> std::optional<bench::Failure> {
        *mode = c.mode;
        return std::nullopt;
    };
    device->on_sample = [mode] { return bench::Sample{*mode == Mode::end_to_end ? 1.0 : 0.25, 0.99, "power cap"}; };
    return device;
}

cli::BenchArguments arguments(const TemporaryFolder& folder) {
    cli::BenchArguments arguments;
    arguments.device = "cuda";
    arguments.framework = "pytorch-eager";
    arguments.quick = true;
    arguments.output = folder.file("measured");
    return arguments;
}

std::map<std::string, std::string> row_of(const CsvTable& table, std::size_t row) {
    std::map<std::string, std::string> cells;
    for (std::size_t i = 0; i < table.header().size(); ++i) cells[std::string(table.header()[i])] = table.row(row)[i];
    return cells;
}

/// Python that answers like a worker; its third network interrupts the program as Ctrl-C does.
std::string fake_python(const TemporaryFolder& folder, const std::string& at_third) {
    const std::string path =
        folder.write("python",
                     "#!/bin/sh\nnetworks=0\nwhile read -r line; do\n  case $line in\n"
                     "    *'\"do\":\"start\"'*) echo '{\"environment\": {\"framework_version\": \"1\"}}' ;;\n"
                     "    *'\"do\":\"prepare\"'*) networks=$((networks + 1))\n"
                     "      [ $networks -eq 3 ] && " +
                         at_third +
                         "\n"
                         "      echo '{\"note\": \"\"}' ;;\n"
                         "    *) echo '{\"seconds\": 0.5}' ;;\n  esac\ndone\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
}

std::string measure_command(const TemporaryFolder& folder, const std::string& python) {
    return "measure model resnet18 --batch 1,2,3,4 --device cpu --framework pytorch-eager --quick --python '" + python +
           "' -o '" + folder.file("measured") + "'";
}

}  // namespace

TEST_CASE("BAD_INPUTS 46: a GPU without a name is refused before anything is measured") {
    const TemporaryFolder folder;
    auto device = gpu();
    device->about = {};
    CHECK_THROWS_WITH_AS(cli::BenchSession(arguments(folder), std::move(device)), doctest::Contains("names this GPU"),
                         Error);
}

TEST_CASE("rows of one card are not continued on another, nor under another framework") {
    const TemporaryFolder folder;
    auto here = arguments(folder);
    const std::vector<std::string> models{"alexnet"};
    {
        cli::BenchSession session(here, gpu());
        CHECK(session.measure_models(models, {1}, {}, {{Mode::end_to_end}}));
    }
    here.resume = true;
    CHECK_NOTHROW(cli::BenchSession(here, gpu()));
    auto other = gpu();
    other->about = {{"device", "NVIDIA L4"}};
    CHECK_THROWS_WITH_AS(cli::BenchSession(here, std::move(other)),
                         doctest::Contains("device is Tesla T4, now NVIDIA L4"), Error);
    here.framework = "torchscript";
    CHECK_THROWS_WITH_AS(cli::BenchSession(here, gpu()), doctest::Contains("framework is pytorch-eager"), Error);
}

TEST_CASE("a network on a GPU is timed end to end, on the host and on the device") {
    const TemporaryFolder folder;
    {
        cli::BenchSession session(arguments(folder), gpu());
        REQUIRE(session.measure_models({"resnet18"}, {1, 8}, {}, modes));
    }
    const CsvTable rows = read_csv(folder.file("measured/models.csv"));
    REQUIRE(rows.rows() == 6);
    std::map<std::string, int> count;
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        auto row = row_of(rows, i);
        ++count[row["mode"]];
        CHECK(row["gpu"] == "t4");
        CHECK(row["latency_ms"] == (row["mode"] == "end_to_end" ? "1000" : "250"));
        CHECK(row["slowdown"] == "power cap");
    }
    CHECK(count == std::map<std::string, int>{{"end_to_end", 2}, {"host_dispatch", 2}, {"device_hot", 2}});
    const auto json = nlohmann::json::parse(test::read_text(folder.file("measured/environment.json")));
    CHECK(json["schema_version"] == 1);
    CHECK(json["environment"]["device"] == "Tesla T4");
}

TEST_CASE("ten warm-ups come before the runs of a network, which end when its latency is known") {
    const TemporaryFolder folder;
    cli::BenchArguments thorough = arguments(folder);
    thorough.quick = false;
    auto device = gpu();
    int warm_ups = 0;
    device->on_prepare = [&](const bench::BenchCase& c) -> std::optional<bench::Failure> {
        warm_ups = c.warm_ups;
        return std::nullopt;
    };
    int runs = 0;
    device->on_sample = [&] {
        ++runs;
        return bench::Sample{0.02};
    };
    cli::BenchSession session(thorough, std::move(device));
    REQUIRE(session.measure_models({"resnet18"}, {1}, {}, std::vector{Mode::end_to_end}));
    CHECK(warm_ups == 10);
    auto row = row_of(read_csv(session.path("models.csv")), 0);
    CHECK(row["samples"] == "10");
    CHECK(std::count(row["samples_ms"].begin(), row["samples_ms"].end(), ' ') == 9);
    CHECK(runs == 11);  // and one that says how many there shall be
}

TEST_CASE("--resume measures and appends missing rows; without it nothing is overwritten") {
    const TemporaryFolder folder;
    cli::BenchArguments again = arguments(folder);
    {
        cli::BenchSession session(again, gpu());
        REQUIRE(session.measure_models({"resnet18"}, {1}, {}, modes));
        CHECK_THROWS_WITH_AS(static_cast<void>(session.measure_models({"resnet18"}, {1, 8}, {}, modes)),
                             doctest::Contains("--resume continues it"), Error);
    }
    const std::string before = test::read_text(folder.file("measured/models.csv"));
    again.resume = true;
    auto device = gpu();
    FakeDevice& fake = *device;
    cli::BenchSession session(again, std::move(device));
    REQUIRE(session.measure_models({"resnet18"}, {1, 8}, {}, modes));
    CHECK(fake.prepared.size() == 3);
    for (const std::string& id : fake.prepared) CHECK(id.find("batch=8") != std::string::npos);
    const std::string after = test::read_text(folder.file("measured/models.csv"));
    CHECK(after.starts_with(before));
    CHECK(read_csv(folder.file("measured/models.csv")).rows() == 6);
}

TEST_CASE("the expected minimum and maximum time and the end of a measurement are announced first") {
    const TemporaryFolder folder;
    const auto run = run_program(measure_command(folder, fake_python(folder, "kill -KILL $PPID")) + " --budget 500");
    CHECK_MESSAGE(run.errors.find("models.csv: 4 cases, 1 to 1 min; --budget ends after 9 min") != std::string::npos,
                  run.errors);
}

TEST_CASE("a budget stops measuring between two samples and keeps complete rows") {
    const TemporaryFolder folder;
    cli::BenchArguments bounded = arguments(folder);
    bounded.budget_s = 0.2;
    auto device = gpu();
    device->on_sample = [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return bench::Sample{0.15};
    };
    cli::BenchSession session(bounded, std::move(device));
    CHECK_FALSE(session.measure_models({"resnet18"}, {1, 2, 4, 8, 16, 32, 64, 128}, {}, modes));
    const std::size_t rows = read_csv(session.path("models.csv")).rows();
    CHECK(rows > 0);
    CHECK(rows < 8);
}

TEST_CASE("the copies of a weight exceed the last cache twice in the type that is measured") {
    const DeviceSpec h200 = device_spec("h200-sxm-141gb");
    for (const std::int64_t n : {16, 768, 4096, 12288}) {
        const Graph graph = bench::operator_graph({"linear", {{"m", 8}, {"n", n}, {"k", 4096}}});
        const auto bytes = static_cast<double>(bench::weight_bytes(graph));
        CHECK(bench::weight_sets(graph, Precision::fp32, h200) * bytes >= 2 * h200.l2_bytes);
        CHECK(bench::weight_sets(graph, Precision::fp16, h200) * bytes / 2 >= 2 * h200.l2_bytes);
        CHECK(bench::weight_sets(graph, Precision::fp16, h200) >= 2);
    }
    CHECK(bench::weight_sets(bench::operator_graph({"relu", {{"b", 1}, {"h", 8}}}), Precision::fp32, h200) == 1);
    const Graph norm = bench::operator_graph({"rmsnorm", {{"b", 1}, {"h", 128}}});
    CHECK(bench::weight_sets(norm, Precision::fp32, h200) == 64);
}

TEST_CASE("each repetition of LibTorch's dispatch is a command of its own, and all write one file") {
    cli::BenchArguments arguments;
    arguments.precision = "fp16";
    arguments.quick = true;
    const auto has = [](const std::vector<std::string>& words, const std::string& word) {
        return std::find(words.begin(), words.end(), word) != words.end();
    };
    const auto first = cli::dispatch_command(arguments, 0), second = cli::dispatch_command(arguments, 1);
    CHECK(has(first, "fp16"));
    CHECK(has(first, "--quick"));
    CHECK_FALSE(has(first, "--resume"));
    CHECK(has(second, "--resume"));
    CHECK(second[static_cast<std::size_t>(std::find(second.begin(), second.end(), "--repetition") - second.begin()) +
                 1] == "1");
    arguments.resume = true;
    CHECK(has(cli::dispatch_command(arguments, 0), "--resume"));
}

TEST_CASE("Ctrl-C keeps complete rows, and --resume measures the rest") {
    const TemporaryFolder folder;
    const auto stopped = run_program(measure_command(folder, fake_python(folder, "kill -INT $PPID")));
    CHECK(stopped.exit_code == 1);
    CHECK(stopped.errors.find("--resume continues") != std::string::npos);
    const std::string before = test::read_text(folder.file("measured/models.csv"));
    CHECK(read_csv(folder.file("measured/models.csv")).rows() == 2);
    const auto resumed = run_program(measure_command(folder, fake_python(folder, ":")) + " --resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.errors);
    CHECK(test::read_text(folder.file("measured/models.csv")).starts_with(before));
    CHECK(read_csv(folder.file("measured/models.csv")).rows() == 4);
}

TEST_CASE("BAD_INPUTS 46: a program killed in the middle is continued where it was") {
    const TemporaryFolder folder;
    const auto killed = run_program(measure_command(folder, fake_python(folder, "kill -KILL $PPID")));
    CHECK(killed.exit_code == 128 + 9);
    const auto resumed = run_program(measure_command(folder, fake_python(folder, ":")) + " --resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.errors);
    CHECK(read_csv(folder.file("measured/models.csv")).rows() == 4);
}

TEST_CASE("on a terminal the progress says how many are done and how much time is left") {
    const TemporaryFolder folder;
    const std::string command = FTAX_PROGRAM " " + measure_command(folder, fake_python(folder, ":"));
    const std::string script = folder.write("script.sh", command + "\n");
    REQUIRE(std::system(("script --quiet --command 'sh " + script + "' '" + folder.file("terminal") + "' >/dev/null")
                            .c_str()) == 0);
    const std::string shown = test::read_text(folder.file("terminal"));
    CHECK(shown.find("models.csv 2/4, 0 min") != std::string::npos);
    CHECK(shown.find("s left") != std::string::npos);
}

#ifdef FTAX_WITH_TORCH
TEST_CASE("BAD_INPUTS 46: LibTorch without a GPU is refused, and what it cannot run is named in the row") {
    const TemporaryFolder folder;
    const auto cuda =
        run_program("measure dispatch --device cuda --framework libtorch -o '" + folder.file("none") + "'",
                    "export CUDA_VISIBLE_DEVICES=");
    CHECK(cuda.exit_code == 5);
    CHECK(cuda.errors.find("LibTorch") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder.file("none")));
    const auto amp = run_program("measure model squeezenet --precision amp --quick -o '" + folder.file("amp") + "'");
    CHECK(amp.exit_code == 0);
    auto row = row_of(read_csv(folder.file("amp/models.csv")), 0);
    CHECK(row["latency_ms"].empty());
    CHECK(row["problem"].starts_with("unsupported: amp"));
}
#endif
