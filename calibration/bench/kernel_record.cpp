#include "calibration/bench/kernel_record.hpp"

#include <algorithm>
#include <numeric>

namespace ftax::bench {

std::vector<double> gaps_s(std::vector<KernelRecord> kernels) {
    std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    std::vector<double> gaps;
    std::uint64_t free_ns = 0;
    for (const KernelRecord& kernel : kernels) {
        if (free_ns != 0)
            gaps.push_back(kernel.start_ns > free_ns ? static_cast<double>(kernel.start_ns - free_ns) * 1e-9 : 0);
        free_ns = std::max(free_ns, kernel.end_ns);
    }
    return gaps;
}

double busy_s(const std::vector<KernelRecord>& kernels) {
    if (kernels.empty()) return 0;
    const auto first = std::min_element(kernels.begin(), kernels.end(),
                                        [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    const auto last = std::max_element(kernels.begin(), kernels.end(),
                                       [](const auto& a, const auto& b) { return a.end_ns < b.end_ns; });
    const std::vector<double> gaps = gaps_s(kernels);
    return static_cast<double>(last->end_ns - first->start_ns) * 1e-9 - std::accumulate(gaps.begin(), gaps.end(), 0.0);
}

}  // namespace ftax::bench
