#pragma once

#include <cstdint>

#include "ftax/error.hpp"

namespace ftax {

/// Integer arithmetic that throws Error{limit} instead of wrapping around.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) throw Error(ErrorCode::limit, "integer overflow in a sum of dimensions");
    return result;
}

inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result))
        throw Error(ErrorCode::limit, "integer overflow in a product of dimensions");
    return result;
}

/// Quotient rounded towards minus infinity; `b` must not be 0.
inline std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
    if (b == -1) return checked_multiply(a, -1);
    return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

inline std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) {
    if (b == -1) return checked_multiply(a, -1);
    return a / b + ((a % b != 0 && (a < 0) == (b < 0)) ? 1 : 0);
}

}  // namespace ftax
