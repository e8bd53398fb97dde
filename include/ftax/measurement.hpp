#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ftax/types.hpp"

namespace ftax {

/// One measured whole-model latency (a row of a model measurement file; columns: docs/formats.md).
struct Measurement {
    std::string gpu;  ///< as the file spells it
    std::string framework = "pytorch-eager";
    Precision precision = Precision::fp32;
    std::string model;
    std::int64_t batch = 1;
    std::optional<std::int64_t> input;  ///< image side or sequence length
    std::optional<std::int64_t> seq;
    std::string run;      ///< campaign; empty when the file does not say
    std::string mode;     ///< "inf" or "train"
    std::string option;   ///< "fusion" = torch.compile
    std::string layout;   ///< "nchw" or "nhwc"
    std::string version;  ///< of the framework, "8.6.1"; empty when unsaid
    std::string torch;    ///< version of PyTorch, "2.4" or "240"; empty when unsaid
    bool copies = false;  ///< column kind says with_copies: see PredictOptions
    std::string era;      ///< of the networks that share the model's name; empty where there is one
    double latency_s = 0;
    std::size_t line = 0;  ///< in the file, for messages
    friend bool operator==(const Measurement&, const Measurement&) = default;
};

/// One measured operator (a row of an operator measurement file).
struct OperatorMeasurement {
    std::string gpu;
    std::string op;  ///< "linear", "bmm", "conv", "softmax", "ln", "add", "addu", …
    Precision precision = Precision::fp32;
    std::map<std::string, std::int64_t> shape;  ///< {"b": 6, "m": 27, "n": 390, "k": 21}
    std::optional<std::int64_t> order{};        ///< shapes run before it in its campaign, where the file says
    std::string kernel{};                       ///< that ran, where the file names it
    std::string mode{};     ///< "device_hot": the kernel alone as a node of a CUDA graph; else one call, host included
    std::string library{};  ///< "vllm 0.24.0", where the file says whose kernel it is
    std::optional<std::int64_t> weights{};  ///< copies of the weights that the measuring loop went through
    double latency_s = 0;
    std::size_t line = 0;
    friend bool operator==(const OperatorMeasurement&, const OperatorMeasurement&) = default;
};

/// One measured run of a language model (a row of its measurement file): a batch of prompts from the first of their
/// tokens to the last new one.
struct LanguageMeasurement {
    std::string gpu;
    std::string framework;
    Precision precision = Precision::fp16;
    std::string model;
    std::int64_t prompt = 1;      ///< column isl
    std::int64_t new_tokens = 1;  ///< column osl
    std::int64_t batch = 1;
    std::int64_t cards = 1;  ///< column tp, where there is one
    double latency_s = 0;
    std::size_t line = 0;
    friend bool operator==(const LanguageMeasurement&, const LanguageMeasurement&) = default;
};

}  // namespace ftax
