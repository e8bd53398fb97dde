#include "calibration/rows/kineto_trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "ftax/error.hpp"
#include "tests/approx.hpp"
#include "tests/kineto_writer.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

KinetoTrace read(const std::string& text, const TraceLimits& limits = {}) {
    std::istringstream in(text);
    return read_kineto_trace(in, "trace.json", limits);
}

std::string failure(const std::string& text, ErrorCode code = ErrorCode::profile, const TraceLimits& limits = {}) {
    try {
        static_cast<void>(read(text, limits));
    } catch (const Error& error) {
        CHECK(error.code() == code);
        return error.what();
    }
    return "no error";
}

KinetoWriter ten_operators() {
    KinetoWriter writer;
    writer.pass(std::vector<RunOperator>(10, {"aten::relu", 20, {8}}));
    return writer;
}

std::size_t count(const KinetoTrace& trace, TraceEventKind kind) {
    return static_cast<std::size_t>(
        std::count_if(trace.events.begin(), trace.events.end(), [&](const TraceEvent& e) { return e.kind == kind; }));
}

}  // namespace

TEST_CASE("a trace is read with its times, threads and correlations") {
    const KinetoTrace trace = read(ten_operators().text());
    CHECK(trace.gpu == "Tesla T4");
    REQUIRE(trace.events.size() == 40);
    CHECK(count(trace, TraceEventKind::operation) == 20);
    CHECK(count(trace, TraceEventKind::runtime) == 10);
    CHECK(count(trace, TraceEventKind::kernel) == 10);
    CHECK(trace.damage.events() == 0);
    CHECK_FALSE(trace.damage.truncated);
    const TraceEvent& operation = trace.events[0];
    const TraceEvent& kernel = trace.events[3];
    CHECK(operation.name == "aten::relu");
    CHECK(operation.start_s == approx(4392938.615222));
    CHECK(operation.end_s - operation.start_s == approx(18e-6).epsilon(1e-4));
    CHECK(operation.external_id == 1);
    CHECK(kernel.correlation == 1);
    CHECK(kernel.external_id == 2);
    CHECK(operation.thread == trace.events[2].thread);
    CHECK(operation.thread != kernel.thread);
}

TEST_CASE("a call that launches nothing has lost no kernel, a launch without one and a kernel without a launch have") {
    const auto lost = [](const std::string& category, const std::string& name) {
        std::string text = ten_operators().text();
        const std::string event =
            R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
            R"(", "pid": 1, "tid": 1, "ts": 4392938615230.0, "dur": 2, "args": {"correlation": 999}},)";
        text.insert(text.find('[', text.find("\"traceEvents\"")) + 1, event);
        return read(text).damage.lost_kernels;
    };
    for (const char* call : {"cudaStreamSynchronize", "cudaMemcpyAsync", "cudaEventRecord"})
        CHECK_MESSAGE(lost("cuda_runtime", call) == 0, call);
    for (const char* call : {"cudaLaunchKernel", "cudaLaunchKernelExC"})
        CHECK_MESSAGE(lost("cuda_runtime", call) == 1, call);
    CHECK(lost("kernel", "relu") == 1);
}

TEST_CASE("a trace is of the first GPU that it lists, and events that take no time count") {
    std::string text = ten_operators().text();
    const std::size_t gpu = text.find('}', text.find("Tesla T4"));
    REQUIRE(gpu != std::string::npos);
    text.insert(gpu + 1, R"(,{"id":1,"name":"Tesla P4"})");
    CHECK(read(text).gpu == "Tesla T4");
    const std::size_t events = text.find('[', text.find("traceEvents")) + 1;
    text.insert(events, R"({"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":7,"ts":5,"dur":0},)");
    const KinetoTrace trace = read(text);
    CHECK(trace.damage.untimed == 0);
    CHECK(count(trace, TraceEventKind::kernel) == 11);
}

TEST_CASE("what torch 2.11 writes on a CPU is read, and so are the categories of torch 1.8 and a bare list") {
    const KinetoTrace real =
        read_kineto_trace(std::string(FTAX_SOURCE_DIR) + "/tests/fuzz/seeds/kineto_trace/torch-2.11-cpu.json");
    CHECK(real.damage.events() == 0);
    CHECK_FALSE(real.damage.truncated);
    CHECK(count(real, TraceEventKind::operation) == real.events.size());
    CHECK(std::count_if(real.events.begin(), real.events.end(),
                        [](const auto& e) { return e.name == "aten::conv2d"; }) == 2);

    const KinetoTrace old = read(R"([{"ph":"X","cat":"Operator","name":"aten::add","pid":"p","tid":"t","ts":5,"dur":2},
        {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":"p","tid":"t","ts":6,"dur":1,"args":{"correlation":3}},
        {"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":7,"ts":9,"dur":1,"args":{"external id":4,"correlation":3}}])");
    REQUIRE(old.events.size() == 3);
    CHECK(old.events[2].kind == TraceEventKind::kernel);
    CHECK(old.events[2].external_id == 4);
    CHECK_FALSE(old.damage.truncated);
}

TEST_CASE("BAD_INPUTS 45: events that are broken are counted and the others read") {
    SUBCASE("the file is cut off anywhere in its last tenth") {
        const std::string whole = ten_operators().text();
        for (std::size_t size = 9 * whole.size() / 10; size < whole.rfind(']'); ++size) {
            const KinetoTrace trace = read(whole.substr(0, size));
            CHECK(trace.damage.truncated);
            CHECK(trace.damage.unreadable <= 1);
            CHECK(trace.events.size() >= 35);
        }
    }
    SUBCASE("names are not escaped: a newline, a quote, a backslash, bytes that are not UTF-8") {
        for (const char* name :
             {"two\nlines", "{\"device\": \"cpu\"}(12): run", "torch\\cuda\\x.py", "\xff\xfe", "tab\t"}) {
            KinetoWriter writer = ten_operators();
            writer.operation(name, 4392938615300, 1);
            writer.pass({{"aten::relu", 20, {8}}});
            const KinetoTrace trace = read(writer.text());
            CHECK_MESSAGE(trace.damage.unreadable == 1, name);
            CHECK(trace.events.size() == 44);
            CHECK_FALSE(trace.damage.truncated);
        }
    }
    SUBCASE("no time, time 0, a negative duration, a time that is no number or beyond a double") {
        for (const char* times : {R"("ts": 0, "dur": 0)", R"("ts": 0.000, "dur": 0.000)", R"("dur": 3)",
                                  R"("ts": 5, "dur": -1)", R"("ts": "5", "dur": 1)"}) {
            KinetoWriter writer = ten_operators();
            writer.events.push_back(fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "aten::add", {}}})", times));
            const KinetoTrace trace = read(writer.text());
            CHECK_MESSAGE(trace.damage.untimed == 1, times);
            CHECK(trace.events.size() == 40);
        }
        for (const char* time : {"NaN", "1e999", "-"}) {
            KinetoWriter writer = ten_operators();
            writer.events.push_back(fmt::format(R"({{"ph": "X", "cat": "cpu_op", "ts": {}, "dur": 1}})", time));
            CHECK(read(writer.text()).damage.unreadable == 1);
        }
    }
    SUBCASE("kernels that CUPTI dropped") {
        KinetoWriter writer = ten_operators();
        writer.with_kernels = false;
        writer.pass({{"aten::relu", 20, {8, 8}}});
        writer.with_kernels = true;
        writer.with_runtime = false;
        writer.pass({{"aten::relu", 20, {8}}});
        CHECK(read(writer.text()).damage.lost_kernels == 3);
    }
}

TEST_CASE("BAD_INPUTS 45: below four fifths of usable events a trace is refused with the counts") {
    KinetoWriter broken = ten_operators();
    for (int i = 0; i < 11; ++i) broken.operation("a\nb", 4392938615300, 1);
    CHECK(failure(broken.text()) ==
          "trace.json: only 40 of 51 events are usable: 11 are not JSON, 0 have no time, 0 lack "
          "their kernel or launch");
    KinetoWriter dropped;
    dropped.with_kernels = false;
    dropped.pass(std::vector<RunOperator>(10, {"aten::relu", 20, {8}}));
    CHECK(failure(dropped.text()).find("10 lack their kernel") != std::string::npos);
    CHECK(failure(KinetoWriter().text()).find("no operators") != std::string::npos);
}

TEST_CASE("BAD_INPUTS 45: a file that is not a trace is rejected") {
    CHECK(failure("").find("no \"traceEvents\"") != std::string::npos);
    CHECK(failure("graph tiny").find("no \"traceEvents\"") != std::string::npos);
    CHECK(failure("{\"traceEvents\": 7}").find("is not a list") != std::string::npos);
    CHECK(failure("{\"traceEvents\"").find("is not a list") != std::string::npos);
    CHECK(failure("\x1f\x8b\x08 compressed").find("gunzip") != std::string::npos);
    CHECK(failure(std::string(3 << 20, 'x')).find("no \"traceEvents\"") != std::string::npos);
    std::string deep = R"({"traceEvents": [)";
    for (int i = 0; i < 100'000; ++i) deep += R"({"a":[)";
    CHECK(failure(deep).find("are usable") != std::string::npos);
    CHECK(failure(ten_operators().text(), ErrorCode::limit, {.max_events = 39}).find("more than 39 events") !=
          std::string::npos);
    CHECK_THROWS_AS(static_cast<void>(read_kineto_trace(std::string("/nonexistent/trace.json"))), Error);
}
