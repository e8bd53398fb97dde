#include "calibration/bench/bench_device.hpp"

#include <array>

namespace ftax::bench {

std::string_view name_of(Mode mode) noexcept {
    constexpr std::array<std::string_view, 4> names{"device_cold", "device_hot", "host_dispatch", "end_to_end"};
    return names[static_cast<std::size_t>(mode)];
}

std::string_view name_of(FailureKind kind) noexcept {
    constexpr std::array<std::string_view, 4> names{"out of memory", "unsupported", "failed", "device lost"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace ftax::bench
