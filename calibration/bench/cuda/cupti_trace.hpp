#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ftax::bench {

/// One kernel by the device's own clock.
struct KernelRecord {
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint32_t correlation = 0;
};

/// One call of the CUDA runtime by the host's clock, which CUPTI sets beside the device's.
struct CallRecord {
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint32_t correlation = 0;  ///< correlation id of the launched kernel
};

/// Kernels and runtime calls among the activity records of one buffer as CUPTI hands it back; records of other kinds
/// are passed over, those without a time (start 0: the kernel was still running when the buffer was flushed) are
/// dropped and counted.
struct ParsedBuffer {
    std::vector<KernelRecord> kernels;
    std::vector<CallRecord> calls;
    std::size_t without_time = 0;
    bool torn = false;  ///< the buffer ended inside a record
};
[[nodiscard]] ParsedBuffer parse_activities(std::uint8_t* buffer, std::size_t bytes);

/// From the end of the call that launches a kernel to the begin of the kernel, for each kernel whose call is known:
/// what launch_latency_s means to the timeline.
[[nodiscard]] std::vector<double> launch_latencies_s(const std::vector<KernelRecord>& kernels,
                                                     const std::vector<CallRecord>& calls);

/// Collects kernel records, and on request runtime calls, while it lives. Only one in a process.
class CuptiTrace {
  public:
    explicit CuptiTrace(bool with_calls = false);
    ~CuptiTrace();
    CuptiTrace(const CuptiTrace&) = delete;
    CuptiTrace& operator=(const CuptiTrace&) = delete;

    /// Why nothing is collected, with what to do about it; empty when CUPTI works.
    [[nodiscard]] const std::string& problem() const { return problem_; }
    /// Waits for the device's records and returns what was collected since the last time.
    [[nodiscard]] std::vector<KernelRecord> take();
    /// Returns the runtime calls that came with the kernels taken last.
    [[nodiscard]] std::vector<CallRecord> take_calls();
    /// Records that CUPTI or the parser lost so far.
    [[nodiscard]] static std::size_t dropped();

  private:
    std::string problem_;
    bool with_calls_;
};

/// What a user can do about a CUPTI error code. Source: CUPTI documentation, "CUPTI result codes";
/// https://developer.nvidia.com/ERR_NVGPUCTRPERM.
[[nodiscard]] std::string cupti_advice(int code);

}  // namespace ftax::bench
