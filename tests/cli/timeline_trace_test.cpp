#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

using Json = nlohmann::json;

Json trace_of(const std::vector<std::string>& run) {
    const TemporaryFolder folder;
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), {"--trace", folder.file("trace.json")});
    REQUIRE(run_ftax(arguments).exit_code == 0);
    return Json::parse(read_text(folder.file("trace.json")));
}

}  // namespace

TEST_CASE("predict --trace keeps the rules of Chrome's trace format and ends when the prediction does") {
    for (const char* framework : {"pytorch-eager", "onnxruntime-cuda"}) {
        const Json trace = trace_of({"predict", "resnet18", "--device", "t4", "--framework", framework, "--batch", "8"});
        std::map<int, double> row_end_us;
        std::map<std::size_t, Json> sent;
        std::set<double> kernel_starts_us;
        std::size_t arrows = 0;
        for (const Json& event : trace["traceEvents"]) {
            const std::string phase = event["ph"];
            if (phase == "M") continue;
            const double at_us = event["ts"];
            if (phase == "s") sent[event["id"]] = event;
            if (phase == "f") {
                REQUIRE(sent.count(event["id"]) == 1);
                CHECK(sent[event["id"]]["ts"].get<double>() <= at_us);
                CHECK(event["bp"] == "e");
                ++arrows;
            }
            if (phase != "X") continue;
            const double duration_us = event["dur"];
            CHECK(duration_us >= 0);
            CHECK_FALSE(event["name"].get<std::string>().empty());
            double& end_us = row_end_us[event["tid"]];
            CHECK(at_us >= end_us - 1e-6);
            end_us = at_us + duration_us;
        }
        CHECK(arrows == sent.size());
        CHECK(arrows > 20);
        const double latency_us = trace["otherData"]["latency_s"].get<double>() * 1e6;
        CHECK(std::max(row_end_us[1], row_end_us[2]) <= latency_us * (1 + 1e-9));
        CHECK(std::max(row_end_us[1], row_end_us[2]) >= 0.9 * latency_us);
    }
}

TEST_CASE("inspect --kernels names the operators of the graph that the framework runs") {
    for (const char* framework : {"onnxruntime-cuda", "torch-tensorrt", "torchscript", "torch-compile"}) {
        const ProgramRun run = run_ftax({"inspect", "resnet18", "--kernels", "--framework", framework, "--device", "t4",
                                         "--batch", "8", "--json"});
        REQUIRE(run.exit_code == 0);
        const Json launches = Json::parse(run.output)["launches"];
        std::size_t convolutions = 0;
        for (const Json& launch : launches) {
            // A convolution's kernel stands beside a convolution: names taken from another graph drift off.
            for (const Json& kernel : launch["kernel_details"]) {
                if (kernel["name"].get<std::string>().find("implicit-gemm") == std::string::npos) continue;
                CHECK(launch["source"].get<std::string>().find("conv") != std::string::npos);
                ++convolutions;
            }
        }
        CHECK(convolutions > 5);
    }
}
