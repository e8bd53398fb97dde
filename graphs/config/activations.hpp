#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace ftax::config {

/// Form of an activation in eager PyTorch: one operator, x · sigmoid(1.702 x), the tanh form of GELU written out, the
/// square of one operator, or xIELU with its two parameters.
enum class Spelling { single, sigmoid, tanh, squared, xielu };

struct Activation {
    std::string_view name;  ///< name in config.json
    Spelling spelling = Spelling::single;
    std::string_view function;  ///< function of pointwise operators
};

/// Source: transformers, activations.py (ACT2FN).
inline constexpr std::array activations{
    Activation{"silu", Spelling::single, "silu"},
    Activation{"swish", Spelling::single, "silu"},
    Activation{"gelu", Spelling::single, "gelu"},
    Activation{"gelu_python", Spelling::single, "gelu"},
    Activation{"gelu_pytorch_tanh", Spelling::single, "gelu"},
    Activation{"gelu_new", Spelling::tanh, "gelu"},
    Activation{"gelu_fast", Spelling::tanh, "gelu"},
    Activation{"quick_gelu", Spelling::sigmoid, "gelu"},
    Activation{"relu", Spelling::single, "relu"},
    Activation{"relu2", Spelling::squared, "relu"},
    Activation{"xielu", Spelling::xielu, "expm1"},
    Activation{"tanh", Spelling::single, "tanh"},
};

[[nodiscard]] inline const Activation* find_activation(std::string_view name) {
    const auto found = std::ranges::find(activations, name, &Activation::name);
    return found == activations.end() ? nullptr : &*found;
}

}  // namespace ftax::config
