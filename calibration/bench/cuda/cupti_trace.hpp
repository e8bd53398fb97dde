#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ftax::bench {

/// One kernel as CUPTI saw it.
struct KernelRecord {
    std::string name;
    std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    std::uint32_t registers = 0;      ///< per thread
    std::int64_t shared_bytes = 0;    ///< static and dynamic, per block
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint32_t correlation = 0;
};

/// Kernels among the activity records of one buffer as CUPTI hands it back; records of other kinds are passed over, those
/// without a time (start 0: the kernel was still running when the buffer was flushed) are dropped and counted.
struct ParsedBuffer {
    std::vector<KernelRecord> kernels;
    std::size_t without_time = 0;
    bool torn = false;  ///< the buffer ended inside a record
};
[[nodiscard]] ParsedBuffer parse_activities(std::uint8_t* buffer, std::size_t bytes);

/// Idle time of the device between consecutive kernels, in order of start. Overlapping kernels have none.
[[nodiscard]] std::vector<double> gaps_s(std::vector<KernelRecord> kernels);

/// Collects kernel records while it lives. Only one in a process.
class CuptiTrace {
  public:
    CuptiTrace();
    ~CuptiTrace();
    CuptiTrace(const CuptiTrace&) = delete;
    CuptiTrace& operator=(const CuptiTrace&) = delete;

    /// Why nothing is collected, with what to do about it; empty when CUPTI works.
    [[nodiscard]] const std::string& problem() const { return problem_; }
    /// Waits for the device's records and returns what was collected since the last call.
    [[nodiscard]] std::vector<KernelRecord> take();
    /// Records that CUPTI or the parser lost so far.
    [[nodiscard]] static std::size_t dropped();

  private:
    std::string problem_;
};

/// What a user can do about a CUPTI error code. Source: CUPTI documentation, "CUPTI result codes";
/// https://developer.nvidia.com/ERR_NVGPUCTRPERM.
[[nodiscard]] std::string cupti_advice(int code);

}  // namespace ftax::bench
