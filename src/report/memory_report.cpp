#include "src/report/memory_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/report/units.hpp"

namespace ftax::report {

nlohmann::ordered_json memory_json(const MemoryUse& memory) {
    return {{"weights_bytes", memory.weights_bytes},         {"cache_bytes", memory.cache_bytes},
            {"activations_bytes", memory.activations_bytes}, {"workspace_bytes", memory.workspace_bytes},
            {"context_bytes", memory.context_bytes},         {"total_bytes", memory.total_bytes()},
            {"capacity_bytes", memory.capacity_bytes},       {"fits", memory.fits()}};
}

std::string describe(const MemoryUse& memory) {
    std::string text =
        fmt::format("memory: {} of {}{}: weights {}", byte_size(memory.total_bytes()), byte_size(memory.capacity_bytes),
                    memory.fits() ? "" : ", DOES NOT FIT", byte_size(memory.weights_bytes));
    if (memory.cache_bytes > 0) text += fmt::format(", cache {}", byte_size(memory.cache_bytes));
    return text + fmt::format(", activations {}, workspace {}, context {}", byte_size(memory.activations_bytes),
                              byte_size(memory.workspace_bytes), byte_size(memory.context_bytes));
}

}  // namespace ftax::report
