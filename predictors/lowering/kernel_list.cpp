#include "predictors/lowering/kernel_list.hpp"

#include <algorithm>

namespace ftax {

std::vector<CountedKernel> list_kernels(const Graph& graph, const Schedule& schedule, const BoundShapes& bound,
                                        bool engine_is_channels_last) {
    std::vector<CountedKernel> listed;
    for (const Kernel& kernel : schedule.kernels) {
        if (!is_launched(graph, kernel, bound)) continue;
        const auto count = static_cast<double>(repetitions(graph, kernel, bound));
        const KernelShape shape = kernel_shape(graph, schedule, kernel, bound, engine_is_channels_last);
        const auto same = std::find_if(listed.begin(), listed.end(), [&](const CountedKernel& other) {
            return other.path == kernel.path && other.shape == shape;
        });
        if (same == listed.end()) {
            listed.push_back({shape, kernel.path, count});
        } else {
            same->count += count;
        }
    }
    return listed;
}

}  // namespace ftax
