#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/approx.hpp"
#include "tests/cli/command.hpp"
#include "tests/kineto_writer.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

using nlohmann::json;

const std::vector<std::string> resnet18{"resnet18", "--device", "t4", "--batch", "2"};

json run_json(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--json", "-"});
    const ProgramRun outcome = run_ftax(arguments);
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.errors);
    return json::parse(outcome.output);
}

/// A run of ResNet-18 that takes the host and the device so many times what ftax predicts.
std::vector<RunOperator> run_of_resnet18(double host_factor, double device_factor) {
    std::vector<RunOperator> operators;
    const json launches = run_json({"inspect", "--kernels"}, resnet18)["launches"];
    for (const json& launch : launches) {
        if (launch["host_kind"] == "forward") continue;
        RunOperator op{launch["source"], 1e6 * host_factor * launch["host_s"].get<double>(), {}};
        for (const json& kernel : launch["kernel_details"]) {
            op.kernels_us.push_back(1e6 * device_factor * kernel["seconds"].get<double>());
        }
        operators.push_back(op);
    }
    return operators;
}

json compare(const std::string& trace, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"validate", "--kineto", trace};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_json(arguments, resnet18);
}

}  // namespace

TEST_CASE("passes of a trace are found, and each operator is compared with its prediction") {
    const TemporaryFolder folder;
    const auto run = run_of_resnet18(1.5, 0.8);
    KinetoWriter writer;
    for (int i = 0; i < 3; ++i) writer.pass(run);
    const json result = compare(folder.write("trace.json", writer.text()));
    CHECK(result["passes"] == 3);
    CHECK(result["aligned"] == 1.0);
    const std::string verdict = result["verdict"];
    CHECK(verdict.find("device +25.0 %") != std::string::npos);
    CHECK(verdict.find(", traced ") != std::string::npos);
    CHECK(result["gpu"] == "Tesla T4");
    CHECK(result["only_in_trace"].empty());
    REQUIRE(result["operators"].size() == run.size());
    for (std::size_t i = 0; i < run.size(); ++i) {
        const json& op = result["operators"][i];
        CHECK(op["source"] == run[i].name);
        // The last operator of a pass ends where its own event does, at nine tenths.
        const double host_factor = i + 1 == run.size() ? 0.9 * 1.5 : 1.5;
        CHECK(op["measured"]["host_s"].get<double>() ==
              approx(host_factor * op["predicted"]["host_s"].get<double>()).epsilon(1e-3));
        // A trace's times are whole nanoseconds.
        CHECK(std::abs(op["measured"]["device_s"].get<double>() - 0.8 * op["predicted"]["device_s"].get<double>()) <
              2e-9);
        CHECK(op["measured"]["kernels"] == op["predicted"]["kernels"]);
    }
}

TEST_CASE("the host costs of a trace calibrate a profile, which then predicts them") {
    const TemporaryFolder folder;
    KinetoWriter writer;
    writer.launch_latency_us = 7;
    for (int i = 0; i < 3; ++i) writer.pass(run_of_resnet18(1.5, 0.1));
    const std::string trace = folder.write("trace.json", writer.text());
    const json before = compare(trace, {"--calibrated", folder.file("profile.json")});
    const json after = compare(trace, {"--framework-profile", folder.file("profile.json")});
    for (const char* kind : {"conv", "batch_norm", "elementwise"}) {
        const auto row = [&](const json& result) {
            for (const json& host : result["host_kinds"]) {
                if (host["host_kind"] == kind)
                    return host["predicted_s"].get<double>() / host["measured_s"].get<double>();
            }
            return 0.0;
        };
        CHECK(row(before) == approx(1 / 1.5).epsilon(1e-3));
        CHECK(row(after) == approx(1).epsilon(1e-3));
    }
    for (const json& parameter : before["parameters"]) {
        if (parameter["name"] == "launch_latency_s")
            CHECK(parameter["trace"].get<double>() == approx(7e-6).epsilon(1e-3));
    }
    CHECK(after["latency_s"]["predicted"].get<double>() > before["latency_s"]["predicted"].get<double>());
}

TEST_CASE("where a run has other operators than the model, both sides say so") {
    const TemporaryFolder folder;
    auto run = run_of_resnet18(1, 1);
    run.erase(run.begin() + 4);
    run.insert(run.begin() + 10, {"aten::copy_", 33, {12}});
    KinetoWriter writer;
    for (int i = 0; i < 2; ++i) writer.pass(run);
    const json result = compare(folder.write("trace.json", writer.text()));
    CHECK(result["passes"] == 2);
    CHECK(result["operators"][4]["measured"].is_null());
    REQUIRE(result["only_in_trace"].size() == 1);
    CHECK(result["only_in_trace"][0]["source"] == "aten::copy_");
    CHECK(result["only_in_trace"][0]["calls_per_pass"] == 1.0);
    CHECK(result["only_in_trace"][0]["device_s"].get<double>() == approx(12e-6).epsilon(1e-3));
}

TEST_CASE("a trace that torch wrote on a CPU is aligned, and only the host side compared") {
    const TemporaryFolder folder;
    const std::string model = folder.write("tiny.txt", R"(graph tiny
input %x f32[batch,3,8,8]
weight %w f32[8,3,3,3]
weight %b f32[8]
weight %v f32[10,288]
weight %c f32[10]
%1 f32[batch,8,6,6] = conv(%x, %w, %b) "aten::conv2d" @0
%2 f32[batch,8,6,6] = batch_norm(%1, %b, %b, %b, %b) "aten::batch_norm" @1
%3 f32[batch,8,6,6] = pointwise(%2) {function="relu"} "aten::relu" @2
%4 f32[batch,288] = reshape(%3) "aten::flatten" @3
%5 f32[batch,10] = linear(%4, %v, %c) "aten::linear" @4
output %5
)");
    const std::string trace = std::string(FTAX_SOURCE_DIR) + "/tests/fuzz/seeds/kineto_trace/torch-2.11-cpu.json";
    const ProgramRun outcome =
        run_ftax({"validate", "--kineto", trace, model, "--device", "t4", "--batch", "2", "--json", "-"});
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.errors);
    CHECK(outcome.errors.find("no kernels") != std::string::npos);
    const json result = json::parse(outcome.output);
    CHECK(result["passes"] == 2);
    CHECK(result["aligned"] == 1.0);
    CHECK(result["parameters"].empty());
    for (const json& op : result["operators"]) CHECK(op["measured"]["host_s"].get<double>() > 0);
}

TEST_CASE("BAD_INPUTS 45: damage is counted in the report, and a trace without enough left is exit 6") {
    const TemporaryFolder folder;
    KinetoWriter writer;
    for (int i = 0; i < 3; ++i) writer.pass(run_of_resnet18(1, 1));
    writer.operation("two\nlines", 4392938615300, 1);
    const std::string whole = writer.text();
    const std::string cut = folder.write("cut.json", whole.substr(0, whole.size() - 100));
    const ProgramRun table = run_ftax({"validate", "--kineto", cut, "resnet18", "--device", "t4", "--batch", "2"});
    CHECK(table.exit_code == 0);
    CHECK(table.output.find("damage: 1 events unreadable") != std::string::npos);
    CHECK(table.output.find("the file is cut off") != std::string::npos);
    CHECK(
        run_ftax({"validate", "--kineto", folder.write("no.json", "{}"), "resnet18", "--device", "t4", "--batch", "2"})
            .exit_code == 6);
}

TEST_CASE("validate --kineto asks for what it needs") {
    const TemporaryFolder folder;
    KinetoWriter writer;
    writer.pass(run_of_resnet18(1, 1));
    const std::string trace = folder.write("trace.json", writer.text());
    CHECK(run_ftax({"validate", "--kineto", trace, "resnet18"}).exit_code == 2);
    CHECK(run_ftax({"validate", "--kineto", trace, "resnet18", "--device", "t4"}).exit_code == 2);
    CHECK(run_ftax({"validate", "--kineto", trace, "resnet18", "--device", "t4", "--batch", "1,2"}).exit_code == 2);
    CHECK(run_ftax({"validate", "--kineto", "/nonexistent", "resnet18", "--device", "t4", "--batch", "1"}).exit_code ==
          2);
    CHECK(run_ftax({"validate", trace, "--device", "t4"}).exit_code == 2);
    const ProgramRun engine = run_ftax(
        {"validate", "--kineto", trace, "resnet18", "--device", "t4", "--framework", "tensorrt", "--batch", "1"});
    CHECK(engine.exit_code == 2);
    CHECK(engine.errors.find("one by one") != std::string::npos);
    const ProgramRun other =
        run_ftax({"validate", "--kineto", trace, "resnet18", "--device", "h100-sxm", "--batch", "2"});
    CHECK(other.errors.find("the trace is of t4") != std::string::npos);
}
