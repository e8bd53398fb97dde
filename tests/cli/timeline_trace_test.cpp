#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

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

/// Time as Perfetto keeps it: whole nanoseconds, whether a version of it cuts off the rest or rounds.
std::int64_t nanoseconds(const Json& us) {
    const auto cut_off = static_cast<std::int64_t>(us.get<double>() * 1000);
    CHECK(cut_off == std::llround(us.get<double>() * 1000));
    return cut_off;
}

/// What is open on a row while a trace is read in the order of its times; of equal times the first in the file comes
/// first. Source: google/perfetto, src/trace_processor/importers/common/slice_tracker.cc (MaybeCloseStack).
struct OpenSlices {
    struct Slice {
        std::int64_t start_ns = 0, end_ns = 0;
        const Json* event = nullptr;
    };
    std::vector<Slice> stack;

    /// False when the slice lies across the end of an open one: Perfetto drops it.
    [[nodiscard]] bool begin(const Json& event) {
        const std::int64_t start_ns = nanoseconds(event["ts"]), end_ns = start_ns + nanoseconds(event["dur"]);
        while (!stack.empty() && stack.back().end_ns <= start_ns) stack.pop_back();
        if (!stack.empty() && end_ns > stack.back().end_ns) return false;
        stack.push_back({start_ns, end_ns, &event});
        return true;
    }
};

/// The rules of the format that hold for every event, whatever its phase.
void check_event(const Json& event) {
    static const std::map<std::string, std::set<std::string>> fields{
        {"M", {"ph", "pid", "tid", "name", "args"}},
        {"X", {"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"}},
        {"s", {"ph", "pid", "tid", "name", "cat", "id", "ts"}},
        {"f", {"ph", "pid", "tid", "name", "cat", "id", "ts", "bp"}},
    };
    REQUIRE(fields.contains(event["ph"].get<std::string>()));
    std::set<std::string> present;
    for (const auto& [key, value] : event.items()) present.insert(key);
    CHECK(present == fields.at(event["ph"].get<std::string>()));
    CHECK(event["pid"].is_number_unsigned());
    CHECK(event["tid"].is_number_unsigned());
    CHECK_FALSE(event["name"].get<std::string>().empty());
    for (const char* time : {"ts", "dur"}) {
        if (event.contains(time)) CHECK(event[time].get<double>() >= 0);
    }
}

/// Reads a trace as Perfetto's importer does: every slice nests, every arrow leads from its launch to a kernel of it.
void check_trace(const Json& trace) {
    CHECK(trace["displayTimeUnit"] == "ms");
    CHECK(trace["otherData"].is_object());
    std::vector<const Json*> events;
    std::set<int> named;
    for (const Json& event : trace["traceEvents"]) {
        check_event(event);
        if (event["ph"] != "M") {
            events.push_back(&event);
        } else if (event["name"] == "thread_name") {
            CHECK_FALSE(event["args"]["name"].get<std::string>().empty());
            named.insert(event["tid"].get<int>());
        }
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const Json* a, const Json* b) { return nanoseconds((*a)["ts"]) < nanoseconds((*b)["ts"]); });
    std::map<int, OpenSlices> rows;
    std::map<std::size_t, const Json*> sent;
    std::set<std::size_t> arrived;
    double end_us = 0;
    for (const Json* event : events) {
        OpenSlices& row = rows[(*event)["tid"].get<int>()];
        CHECK(named.contains((*event)["tid"].get<int>()));
        if ((*event)["ph"] == "X") {
            CHECK(row.begin(*event));
            end_us = std::max(end_us, (*event)["ts"].get<double>() + (*event)["dur"].get<double>());
            continue;
        }
        REQUIRE_FALSE(row.stack.empty());
        const Json& slice = *row.stack.back().event;
        const std::size_t id = (*event)["id"];
        CHECK(slice["ts"] == (*event)["ts"]);
        if ((*event)["ph"] == "s") {
            CHECK(slice["cat"] == "host");
            CHECK(sent.emplace(id, &slice).second);
            continue;
        }
        CHECK((*event)["bp"] == "e");
        CHECK(slice["cat"] == "kernel");
        REQUIRE(sent.contains(id));
        CHECK(arrived.insert(id).second);
        for (const char* of : {"operator", "source", "module", "host_kind"}) {
            CHECK(slice["args"].value(of, "") == (*sent[id])["args"].value(of, ""));
        }
    }
    CHECK(arrived.size() == sent.size());
    CHECK(arrived.size() > 20);
    const double latency_us = trace["otherData"]["latency_s"].get<double>() * 1e6;
    CHECK(end_us <= latency_us + 0.0006);  // whole nanoseconds
    CHECK(end_us >= 0.9 * latency_us);
}

}  // namespace

TEST_CASE(
    "predict --trace keeps the rules of Chrome's trace format as Perfetto reads it and ends when a run by itself "
    "does") {
    for (const char* framework :
         {"pytorch-eager", "torchscript", "onnxruntime-cuda", "torch-tensorrt", "torch-compile", "cuda-graph"}) {
        CAPTURE(framework);
        check_trace(trace_of(
            {"predict", "resnet18", "--device", "t4", "--framework", framework, "--batch", "8", "--synchronized"}));
    }
    // Framework-bound, with many launches; and long kernels.
    check_trace(trace_of({"predict", "bert", "--device", "h100-sxm", "--precision", "fp16", "--batch", "1", "--dim",
                          "seq=128", "--synchronized"}));
    check_trace(
        trace_of({"predict", "bert", "--device", "t4", "--batch", "256", "--dim", "seq=128", "--synchronized"}));
}

TEST_CASE("inspect --kernels names the operators of the graph that the framework runs") {
    for (const char* framework : {"onnxruntime-cuda", "torch-tensorrt", "torchscript", "torch-compile"}) {
        const ProgramRun run = run_ftax(
            {"inspect", "resnet18", "--kernels", "--framework", framework, "--device", "t4", "--batch", "8", "--json"});
        REQUIRE(run.exit_code == 0);
        const Json launches = Json::parse(run.output)["launches"];
        std::size_t convolutions = 0;
        for (const Json& launch : launches) {
            // A convolution's kernel stands beside a convolution: names taken from another graph would not match.
            for (const Json& kernel : launch["kernel_details"]) {
                if (kernel["name"].get<std::string>().find("implicit-gemm") == std::string::npos) continue;
                CHECK(launch["source"].get<std::string>().find("onv") != std::string::npos);
                ++convolutions;
            }
        }
        CHECK(convolutions > 5);
    }
}
