#pragma once

#include <string>

#include "ftax/error.hpp"

namespace ftax::test {

/// The error that an action ended in; false where it succeeded.
struct Failure {
    ErrorCode code{};
    std::string message;

    explicit operator bool() const { return code != ErrorCode{}; }
    [[nodiscard]] bool says(const std::string& text) const { return message.find(text) != std::string::npos; }
};

template <class Action>
Failure failure_of(Action action) {
    try {
        static_cast<void>(action());
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    return {};
}

}  // namespace ftax::test
