#include "calibration/bench/bench_device.hpp"

#include <array>

namespace ftax::bench {

std::string_view name_of(Mode mode) noexcept {
    constexpr std::array<std::string_view, 3> names{"device_hot", "host_dispatch", "end_to_end"};
    return names[static_cast<std::size_t>(mode)];
}

}  // namespace ftax::bench
