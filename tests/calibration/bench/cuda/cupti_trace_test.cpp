#include "calibration/bench/cuda/cupti_trace.hpp"

#include <cupti.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "calibration/bench/nvml.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax::bench;

namespace {

/// A buffer as CUPTI fills it: records of several kinds one after another.
class Buffer {
  public:
    void add_kernel(std::uint64_t start, std::uint64_t end) {
        CUpti_ActivityKernel10 kernel{};
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        kernel.name = "volta_sgemm_128x64_nn";
        kernel.gridX = 12, kernel.gridY = 3, kernel.gridZ = 2;
        kernel.blockX = 256, kernel.blockY = kernel.blockZ = 1;
        kernel.registersPerThread = 122;
        kernel.staticSharedMemory = 16384, kernel.dynamicSharedMemory = 1024;
        kernel.start = start, kernel.end = end;
        kernel.correlationId = 7;
        add(kernel);
    }
    void add_copy() {
        CUpti_ActivityMemcpy6 copy{};
        copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        copy.start = 5, copy.end = 6;
        add(copy);
    }
    void add_call(std::uint64_t start, std::uint64_t end) {
        CUpti_ActivityAPI call{};
        call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
        call.start = start, call.end = end;
        call.correlationId = 7;
        add(call);
    }
    ParsedBuffer parse() { return parse_activities(storage_, used_); }

  private:
    template <class Record>
    void add(const Record& record) {
        std::memcpy(storage_ + used_, &record, sizeof record);
        used_ += sizeof record;
    }
    alignas(ACTIVITY_RECORD_ALIGNMENT) std::uint8_t storage_[1 << 14] = {};
    std::size_t used_ = 0;
};

}  // namespace

TEST_CASE("kernels are read from a buffer of activity records, others are passed over") {
    Buffer buffer;
    buffer.add_kernel(1000, 3500);
    buffer.add_copy();
    buffer.add_kernel(4000, 4200);
    const ParsedBuffer parsed = buffer.parse();
    REQUIRE(parsed.kernels.size() == 2);
    const KernelRecord& first = parsed.kernels[0];
    CHECK(first.end_ns - first.start_ns == 2500);
    CHECK(parsed.without_time == 0);
}

TEST_CASE("a launch takes from the end of its call to the begin of its kernel") {
    Buffer buffer;
    buffer.add_call(1000, 3000);
    buffer.add_kernel(6500, 7000);
    const ParsedBuffer parsed = buffer.parse();
    REQUIRE(parsed.calls.size() == 1);
    CHECK(parsed.calls[0].end_ns - parsed.calls[0].start_ns == 2000);
    REQUIRE(launch_latencies_s(parsed.kernels, parsed.calls).size() == 1);
    CHECK(launch_latencies_s(parsed.kernels, parsed.calls)[0] == approx(3.5e-6));
    const std::vector<CallRecord> late{{.start_ns = 6000, .end_ns = 6800, .correlation = 7}};
    CHECK(launch_latencies_s(parsed.kernels, late) == std::vector<double>{0});  // it began before its call returned
    CHECK(launch_latencies_s(parsed.kernels, {}).empty());                      // the call was dropped
    CHECK(launch_latencies_s(parsed.kernels, {{.start_ns = 9000, .correlation = 7}}).empty());  // clocks that disagree
}

TEST_CASE("BAD_INPUTS 45: records without a time are dropped and counted, an empty buffer holds none") {
    Buffer buffer;
    buffer.add_kernel(0, 0);
    buffer.add_kernel(100, 50);
    buffer.add_kernel(100, 200);
    const ParsedBuffer parsed = buffer.parse();
    CHECK(parsed.kernels.size() == 1);
    CHECK(parsed.without_time == 2);
    CHECK(Buffer().parse().kernels.empty());
}

TEST_CASE("BAD_INPUTS 46: CUPTI that is denied says what to do") {
    CHECK(cupti_advice(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).find("NVreg_RestrictProfilingToAdminUsers=0") !=
          std::string::npos);
    CHECK(cupti_advice(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED).find("profiler") != std::string::npos);
    CHECK(cupti_advice(CUPTI_ERROR_NOT_SUPPORTED).find("MIG") != std::string::npos);
}

TEST_CASE("BAD_INPUTS 46: without a driver NVML says nothing instead of failing") {
    const Nvml nvml;
    if (nvml.clock_hz()) return;  // a machine with a GPU
    CHECK_FALSE(nvml.mig());
    CHECK_FALSE(nvml.other_processes());
    CHECK(nvml.slowdown().empty());
}

TEST_CASE("BAD_INPUTS 46: the probe says that there is no GPU, or that its driver is too old") {
    const auto folder = std::filesystem::path(FTAX_PROGRAM).parent_path();
    const ftax::test::TemporaryFolder output;
    const std::string command =
        "CUDA_VISIBLE_DEVICES= '" + (folder / "ftax_cuda_probe").string() + "' 2>'" + output.file("errors") + "'";
    CHECK(WEXITSTATUS(std::system(command.c_str())) == 5);
    CHECK(ftax::test::read_text(output.file("errors")).starts_with("ftax_cuda_probe: no "));
}
