#pragma once

#include <fmt/format.h>

#include <utility>

#include "ftax/error.hpp"

namespace ftax {

template <class... Arguments>
[[noreturn]] void throw_error(ErrorCode code, fmt::format_string<Arguments...> message, Arguments&&... arguments) {
    throw Error(code, fmt::format(message, std::forward<Arguments>(arguments)...));
}

}  // namespace ftax
