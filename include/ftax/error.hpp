#pragma once

#include <stdexcept>
#include <string>

namespace ftax {

/// Error category; the value is the exit code of the command-line program.
enum class ErrorCode : int {
    usage = 2,    ///< the request names something that does not exist, or is incomplete
    model = 3,    ///< the model file is invalid
    limit = 4,    ///< the input exceeds a limit that guards time and memory
    refused = 5,  ///< the input asks for something unsafe
    profile = 6,  ///< a device or framework profile, or a measurement file, is invalid
};

/// The only exception type that ftax throws. The message names file, node and field, and can be printed as it is.
class Error : public std::runtime_error {
  public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] ErrorCode code() const noexcept { return code_; }

  private:
    ErrorCode code_;
};

}  // namespace ftax
