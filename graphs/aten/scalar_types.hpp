#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ftax/types.hpp"

namespace ftax {

/// Element types by torch's numbers. Source: c10/core/ScalarType.h.
inline constexpr std::array scalar_types = [] {
    using enum DType;
    return std::array{u8,      i8,  i16,  i32,     i64,     f16,     f32,     f64,
                      unknown, c64, c128, boolean, unknown, unknown, unknown, bf16};
}();

constexpr DType dtype_of_scalar_type(std::int64_t number) noexcept {
    return number >= 0 && number < std::ssize(scalar_types) ? scalar_types[static_cast<std::size_t>(number)]
                                                            : DType::unknown;
}

/// The number of an element type; past the last for one that torch has under no number of these.
constexpr std::int64_t scalar_type_of(DType type) noexcept {
    return std::ranges::find(scalar_types, type) - scalar_types.begin();
}

}  // namespace ftax
