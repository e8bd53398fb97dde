#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ftax/memory.hpp"

namespace ftax::report {

/// Each part and the sum, in bytes, what the device has, and whether it fits.
[[nodiscard]] nlohmann::ordered_json memory_json(const MemoryUse& memory);

/// "16.1 of 80 GB: weights 15 GB, …"
[[nodiscard]] std::string describe(const MemoryUse& memory);

}  // namespace ftax::report
