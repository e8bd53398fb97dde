#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "calibration/bench/operator_cases.hpp"
#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/work.hpp"
#include "graphs/files/csv.hpp"
#include "src/cli/bench_session.hpp"
#include "tests/approx.hpp"
#include "tests/calibration/bench/fake_device.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using bench::Mode;
using test::TemporaryFolder;

namespace {

const std::vector<Mode> modes{Mode::end_to_end, Mode::host_dispatch, Mode::device_hot};

/// A GPU that takes a second end to end, a quarter of it for its kernels.
class Gpu : public bench::test::SampledDevice {
  public:
    bench::Environment about{{"device", "Tesla T4"}, {"framework_version", "2.11.0+cu130"}};
    [[nodiscard]] bench::Environment environment() const override { return about; }
    [[nodiscard]] std::string prepare(const bench::BenchCase& c) override { return mode_ = c.mode, ""; }
    [[nodiscard]] bench::test::Sample sample() override {
        return {mode_ == Mode::end_to_end ? 1.0 : 0.25, 990, "power cap"};
    }

  private:
    Mode mode_{};
};

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

/// A shell script in place of Python and job.py: says what the machine is, then does what a test says.
std::string fake_python(const TemporaryFolder& folder, const std::string& measures) {
    const std::string path = folder.write(
        "python",
        "#!/bin/sh\nif [ \"$1\" = -I ] && grep -q '\"cases\"' \"$3\"; then\n" + measures +
            "\nelse echo '{\"environment\": {\"framework_version\": \"1\"}, \"warnings\": [\"half a card\"]}'\nfi\n");
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
    auto device = std::make_unique<Gpu>();
    device->about = {};
    CHECK_THROWS_WITH_AS(cli::BenchSession(arguments(folder), std::move(device)), doctest::Contains("names this GPU"),
                         Error);
}

TEST_CASE("rows of one card are not continued on another") {
    const TemporaryFolder folder;
    auto here = arguments(folder);
    const std::vector<std::string> models{"alexnet"};
    {
        cli::BenchSession session(here, std::make_unique<Gpu>());
        CHECK(session.measure_models(models, {1}, {}, {{Mode::end_to_end}}));
        CHECK_THROWS_WITH_AS(static_cast<void>(session.measure_models(models, {1}, {}, modes)),
                             doctest::Contains("--resume continues it"), Error);
    }
    here.resume = true;
    CHECK_NOTHROW(cli::BenchSession(here, std::make_unique<Gpu>()));
    auto other = std::make_unique<Gpu>();
    other->about = {{"device", "NVIDIA L4"}};
    CHECK_THROWS_WITH_AS(cli::BenchSession(here, std::move(other)),
                         doctest::Contains("device is Tesla T4, now NVIDIA L4"), Error);
}

TEST_CASE("rows of several frameworks and layouts share a file, each a case of its own") {
    const TemporaryFolder folder;
    auto here = arguments(folder);
    here.resume = true;
    std::set<std::string> ids;
    for (const char* framework : {"pytorch-eager", "torchscript"}) {
        for (const bool channels_last : {false, true}) {
            here.framework = framework, here.channels_last = channels_last;
            auto device = std::make_unique<Gpu>();
            Gpu& measured = *device;
            cli::BenchSession session(here, std::move(device));
            CHECK(session.measure_models({"alexnet"}, {1}, {}, {{Mode::end_to_end}}));
            ids.insert(measured.jobs.at(0).cases.at(0).id);
        }
    }
    CHECK(ids.size() == 4);
    const CsvTable rows = read_csv(folder.file("measured/models.csv"));
    REQUIRE(rows.rows() == 4 * 3);
    CHECK(row_of(rows, 0)["layout"].empty());
    CHECK(row_of(rows, 3)["layout"] == "nhwc");
    CHECK(row_of(rows, 11)["framework"] == "torchscript");
}

TEST_CASE("BAD_INPUTS 46: a file with other columns is not continued") {
    const TemporaryFolder folder;
    cli::BenchArguments again = arguments(folder);
    again.resume = true;
    cli::BenchSession session(again, std::make_unique<Gpu>());
    folder.write("measured/models.csv", "gpu,op\nt4,relu\n");
    CHECK_THROWS_WITH_AS(static_cast<void>(session.measure_models({"resnet18"}, {1}, {}, modes)),
                         doctest::Contains("models.csv: unexpected columns"), Error);
    folder.write("measured/models.csv", "gpu,fra");  // torn: job.py cuts it off
    CHECK(session.measure_models({"resnet18"}, {1}, {}, modes));
}

TEST_CASE("BAD_INPUTS 47: a folder that cannot be written") {
    const TemporaryFolder folder;
    cli::BenchArguments blocked = arguments(folder);
    blocked.output = folder.write("file", "") + "/measured";
    CHECK_THROWS_WITH_AS(cli::BenchSession(blocked, std::make_unique<Gpu>()), doctest::Contains("cannot create"),
                         Error);
}

TEST_CASE("a network on a GPU is timed end to end, on the host and on the device") {
    const TemporaryFolder folder;
    {
        cli::BenchSession session(arguments(folder), std::make_unique<Gpu>());
        REQUIRE(session.measure_models({"resnet18"}, {1, 8}, {}, modes));
    }
    const CsvTable rows = read_csv(folder.file("measured/models.csv"));
    REQUIRE(rows.rows() == 3 * 6);
    std::map<std::string, int> count;
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        auto row = row_of(rows, i);
        ++count[row["mode"]];
        CHECK(row["gpu"] == "t4");
        CHECK(row["version"] == "2.11.0+cu130");
        CHECK(row["latency_ms"] == (row["mode"] == "end_to_end" ? "1000" : "250"));
        CHECK(row["slowdown"] == "power cap");
    }
    CHECK(count == std::map<std::string, int>{{"end_to_end", 6}, {"host_dispatch", 6}, {"device_hot", 6}});
    const auto json = nlohmann::json::parse(test::read_text(folder.file("measured/environment.json")));
    CHECK(json["schema_version"] == 1);
    for (const char* key : {"cpu_family", "hypervisor", "cgroup_quota", "cpu_steal", "cpu_pressure", "wall_over_cpu"})
        CHECK_FALSE(json["environment"][key].get<std::string>().empty());
    CHECK(std::stod(json["environment"]["probe_cpu_median_us"].get<std::string>()) > 0.01);
    CHECK(json["environment"]["device"] == "Tesla T4");
}

TEST_CASE("ten warm-ups come before the runs of a network, which end when its latency is known") {
    const TemporaryFolder folder;
    cli::BenchArguments thorough = arguments(folder);
    thorough.quick = false;
    thorough.budget_s = 1000;
    auto device = std::make_unique<Gpu>();
    const Gpu& gpu = *device;
    cli::BenchSession session(thorough, std::move(device));
    REQUIRE(session.measure_models({"resnet18"}, {1}, {}, std::vector{Mode::end_to_end}));
    const bench::BenchJob& job = gpu.jobs.at(0);
    CHECK(job.cases.at(0).warm_ups == 10);
    CHECK(job.limits.relative_interval == 0.01);
    CHECK(job.budget_s > 900);
    CHECK(job.budget_s < 1000);
}

TEST_CASE("the expected minimum and maximum time and the end of a measurement are announced first") {
    const TemporaryFolder folder;
    const auto run = run_program(measure_command(folder, fake_python(folder, ":")) + " --budget 500");
    CHECK_MESSAGE(run.errors.find("models.csv: 4 cases, 1 to 1 min; --budget ends after 9 min") != std::string::npos,
                  run.errors);
    CHECK(run.errors.find("warning: half a card") != std::string::npos);
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

TEST_CASE("BAD_INPUTS 46: an answer that is not JSON is an error, not a crash") {
    const TemporaryFolder folder;
    const auto said = run_program(measure_command(
        folder,
        fake_python(folder, "echo '{\"warning\": \"resnet18: out of memory\"}'; echo '{\"done\": 4, \"total\": 4}'")));
    CHECK(said.exit_code == 0);
    CHECK(said.errors.find("warning: resnet18: out of memory") != std::string::npos);
    const auto stopped = run_program(measure_command(folder, fake_python(folder, "exit 1")));
    CHECK(stopped.exit_code == 1);
    CHECK(stopped.errors.find("--resume continues") != std::string::npos);
    const auto refused = run_program(measure_command(
        folder, fake_python(folder, "echo '{\"error\": \"refused\", \"message\": \"no GPU\"}'; exit 1")));
    CHECK(refused.exit_code == 5);
    CHECK(refused.errors.find("no GPU") != std::string::npos);
    const auto killed = run_program(measure_command(folder, fake_python(folder, "kill -SEGV $$")));
    CHECK(killed.exit_code == 5);
    CHECK(killed.errors.find("ended by signal 11") != std::string::npos);
    const auto babbled = run_program(measure_command(folder, fake_python(folder, "echo Segmentation fault")));
    CHECK(babbled.exit_code == 5);
}

TEST_CASE("a calibration's table has the measured rows, and what its profiles predict for them") {
    const TemporaryFolder folder;
    const std::string python = fake_python(folder, ":");  // all rows are there: --resume measures nothing
    // A machine of 50 GFLOP/s and 10 GB/s; in f32 that FLOPs and bytes decide.
    const auto latency_ms = [](const Work& work) {
        const auto bytes = static_cast<double>(work.read_bytes + work.write_bytes);
        return 0.004 + std::max(static_cast<double>(work.flops) / 5e7, bytes / 1e7);
    };
    std::string operators = "gpu,framework,precision,op,shape,mode,latency_ms\n";
    std::map<std::string, int> count;
    for (const bench::OperatorCase& c : bench::cpu_operators(true)) {
        const Graph graph = bench::operator_graph(c);
        operators += fmt::format("cpu,pytorch-eager,fp32,{},{},device_hot,{}\n", c.op, bench::shape_text(c),
                                 latency_ms(total_work(graph, ftax::bind(graph, {}))));
        ++count[c.op], ++count["all"];
    }
    std::string models = "gpu,framework,version,precision,model,layout,batch,seq,mode,latency_ms\n";
    std::map<std::pair<std::string, int>, double> measured_ms;
    for (const char* model : {"bert", "distilbert", "mobilenet_v2", "resnet18", "resnet50", "squeezenet"}) {
        const Graph graph = ftax::load_graph(model);
        const bool text = std::string_view(model).ends_with("bert");
        for (const int batch : {1, 4}) {
            ShapeBindings bindings{{"batch", batch}};
            if (text) bindings["seq"] = 128;
            const double ms = measured_ms[{model, batch}] = latency_ms(total_work(graph, ftax::bind(graph, bindings)));
            for (const double factor : {1.0, 0.99, 1.01, 3.0}) {
                models += fmt::format("cpu,pytorch-eager,1,fp32,{},,{},{},end_to_end,{}\n", model, batch,
                                      text ? "128" : "", factor * ms);
            }
        }
    }
    std::filesystem::create_directory(folder.file("measured"));  // a row of each four is disturbed
    folder.write("measured/operators.csv", operators);
    folder.write("measured/models.csv", models);
    const std::string calibrate = "calibrate --device cpu --framework pytorch-eager --quick --resume --python '" +
                                  python + "' -o '" + folder.file("measured") + "'";
    const auto run = run_program(calibrate);
    REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
    // Each case twice, 0.02 to 0.25 s and 0.05 s before: 20 to 84 s.
    CHECK_MESSAGE(run.errors.find("operators.csv: 140 cases, 1 to 2 min") != std::string::npos, run.errors);
    std::istringstream lines(run.output);
    std::map<std::pair<std::string, int>, std::array<double, 4>> shown;  // measured, predicted, error, host
    std::map<std::string, int> fitted;
    double mape = 0, mean_error = 0;
    std::string command;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name, unit;
        int number = 0;
        words >> name >> number;
        std::array<double, 4> row{};
        if (measured_ms.contains({name, number})) {
            words >> row[0] >> unit >> row[1] >> unit >> row[2] >> unit >> row[3] >> unit;
            shown[{name, number}] = row;
            mean_error += std::abs(row[2]) / 12;
        } else if (count.contains(name)) {
            fitted[name] = number;
        } else if (const auto at = line.find("fit: "); at != std::string::npos) {
            mape = std::stod(line.substr(at + 5));
        } else if (line.starts_with("ftax predict MODEL")) {
            command = line.substr(std::string_view("ftax predict MODEL").size());
        }
    }
    CHECK(fitted == count);
    CHECK(mape == approx(mean_error).epsilon(0.01));
    CHECK(mape < 20);  // a machine that the fit can describe
    REQUIRE(shown.size() == 12);
    for (const auto& [key, row] : shown) {
        const std::string& model = key.first;
        const int batch = key.second;
        CAPTURE(model);
        CAPTURE(batch);
        CHECK(row[0] == approx(measured_ms[key]).epsilon(1e-3));
        CHECK(row[1] == approx(row[0] * (1 + row[2] / 100)).epsilon(1e-3));
        const auto predicted = run_program(
            fmt::format("predict {}{},4 --json{}", model, command, model.ends_with("bert") ? " --dim seq=128" : ""));
        REQUIRE_MESSAGE(predicted.exit_code == 0, predicted.errors);
        const auto json = nlohmann::json::parse(predicted.output);
        const auto& point = json.at("predictions").at(batch == 1 ? 0 : 1);
        CHECK(row[1] == approx(1e3 * point.at("latency_s").get<double>()).epsilon(1e-3));
        CHECK(row[3] == approx(1e3 * point.at("host_s").get<double>()).epsilon(0.02));
    }
    CHECK(run_program(calibrate + fmt::format(" --max-mape {}", mape + 0.1)).exit_code == 0);
    CHECK(run_program(calibrate + fmt::format(" --max-mape {}", mape - 0.1)).exit_code == 1);
}

TEST_CASE("Ctrl-C reaches the process that measures, which keeps what is complete") {
    const TemporaryFolder folder;
    const auto stopped = run_program(
        measure_command(folder, fake_python(folder, "trap 'echo kept >" + folder.file("kept") +
                                                        "; exit 1' INT; kill -INT $PPID\n"
                                                        "for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done; exit 0")));
    CHECK(stopped.exit_code == 1);
    CHECK(stopped.errors.find("--resume continues") != std::string::npos);
    CHECK(test::read_text(folder.file("kept")) == "kept\n");
}

TEST_CASE("on a terminal the progress says how many are done and how much time is left") {
    const TemporaryFolder folder;
    const std::string says = "echo '{\"done\": 2, \"total\": 4}'; sleep 0.3; echo '{\"done\": 4, \"total\": 4}'";
    const std::string command = FTAX_PROGRAM " " + measure_command(folder, fake_python(folder, says));
    const std::string script = folder.write("script.sh", command + "\n");
    REQUIRE(std::system(("script --quiet --command 'sh " + script + "' '" + folder.file("terminal") + "' >/dev/null")
                            .c_str()) == 0);
    const std::string shown = test::read_text(folder.file("terminal"));
    CHECK(shown.find("models.csv 2/4, 0 min") != std::string::npos);
    CHECK(shown.find("s left") != std::string::npos);
}

TEST_CASE("BAD_INPUTS 46: a Python that cannot be used, and no GPU, are errors before anything is measured") {
    const TemporaryFolder folder;
    const auto absent = run_program(measure_command(folder, "/nowhere/python"));
    CHECK(absent.exit_code == 2);
    CHECK(absent.errors.find("--python names another") != std::string::npos);
    const std::string unusable = folder.write(
        "unusable", "#!/bin/sh\necho '{\"error\": \"unusable\", \"message\": \"No module named torch\"}'; exit 1\n");
    std::filesystem::permissions(unusable, std::filesystem::perms::owner_all);
    const auto without = run_program(measure_command(folder, unusable));
    CHECK(without.exit_code == 2);
    CHECK(without.errors.find("No module named torch") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder.file("measured")));
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
    CHECK(row["problem"].starts_with("Unsupported: amp"));
}
#endif

TEST_CASE("ftax measure host writes the file that --host-file reads, and doctor finds the same facts") {
    const TemporaryFolder folder;
    const std::string file = folder.file("host.json");
    const ProgramRun run = test::run_ftax({"measure", "host", "-o", file});
    REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
    const auto facts = nlohmann::json::parse(test::read_text(file))["environment"];
    const auto number = [&](const char* key) { return std::stod(facts[key].get<std::string>()); };
    CHECK(number("probe_cpu_p10_us") <= number("probe_cpu_median_us"));
    CHECK(number("probe_wall_p10_us") <= number("probe_wall_median_us"));
    CHECK(number("wall_over_cpu") > 0.9);
    CHECK(number("probe_cpu_median_us") > 0.05);  // 2560 checks and 640 allocations are not optimised away
    CHECK(number("probe_cpu_median_us") < 20);
    CHECK(run.output.find("cpu_score") != std::string::npos);
    CHECK(facts.contains("torch") != facts.contains("torch_cpu_median_us"));  // why it was not timed, or its time
    if (facts.contains("torch_cpu_median_us")) {
        CHECK(number("torch_cpu_p10_us") > 0.1);
        CHECK(number("torch_cpu_p10_us") <= number("torch_cpu_median_us"));
        CHECK(number("torch_wall_p10_us") <= number("torch_wall_median_us"));
    }
    const ProgramRun without = test::run_ftax({"measure", "host", "--python", folder.file("none")});
    CHECK_MESSAGE(without.exit_code == 0, without.errors);
    CHECK(without.output.find("not measured: cannot start ") != std::string::npos);
    const ProgramRun doctor = test::run_ftax({"doctor"});
    for (const auto& fact : facts.items()) {
        const std::string& key = fact.key();
        CAPTURE(key);
        if (key.starts_with("cpu_") && key != "cpu_score") CHECK(doctor.output.find(key) != std::string::npos);
    }
    const ProgramRun predicted =
        test::run_ftax({"predict", "resnet18", "--device", "h100", "--batch", "1", "--host-file", file});
    CHECK_MESSAGE(predicted.exit_code == 0, predicted.errors);
    CHECK(predicted.output.find("probed ") != std::string::npos);
}
