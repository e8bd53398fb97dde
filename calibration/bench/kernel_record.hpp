#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ftax::bench {

/// One kernel (or copy, or fill) by the device's own clock, as CUPTI or a profiler on top of it recorded it.
struct KernelRecord {
    std::string name;
    std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    std::uint32_t registers = 0;    ///< per thread
    std::int64_t shared_bytes = 0;  ///< static and dynamic, per block
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint32_t correlation = 0;
};

/// What one call did on the device.
struct DeviceTrace {
    std::vector<KernelRecord> kernels;
    std::string problem;  ///< why there are no records, with what to do about it; empty where there are
};

}  // namespace ftax::bench
