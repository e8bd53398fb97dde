#include "graphs/aten/aten_call.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/core/excerpt.hpp"
#include "src/core/throw_error.hpp"

namespace ftax {

const AtenArgument* AtenCall::find(std::string_view argument) const {
    const auto found = std::ranges::find_if(arguments, [&](const auto& a) { return a.name == argument; });
    return found == arguments.end() ? nullptr : &*found;
}

TensorId AtenCall::tensor(std::string_view argument) const {
    const AtenArgument* found = find(argument);
    return found && found->tensors.size() == 1 ? found->tensors[0] : no_tensor;
}

std::int64_t AtenCall::integer(std::string_view argument, std::int64_t fallback) const {
    const AtenArgument* found = find(argument);
    return found && found->integers.size() == 1 ? found->integers[0] : fallback;
}

std::span<const std::int64_t> AtenCall::integers(std::string_view argument) const {
    const AtenArgument* found = find(argument);
    return found ? std::span<const std::int64_t>(found->integers) : std::span<const std::int64_t>{};
}

std::int64_t AtenCall::axis(std::int64_t axis, std::size_t rank) const {
    const auto dimensions = std::max<std::int64_t>(1, static_cast<std::int64_t>(rank));
    if (axis < -dimensions || axis >= dimensions) fail(fmt::format("dimension {} of {}", axis, rank));
    return axis < 0 ? axis + dimensions : axis;
}

void AtenCall::fail(std::string_view what) const {
    throw_error(ErrorCode::model, "{} ({}): {}", excerpt(name), excerpt(target), what);
}

}  // namespace ftax
