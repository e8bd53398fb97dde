#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ftax/types.hpp"

namespace ftax {

/// One measured whole-model latency (a row of a model measurement file; columns: docs/formats.md).
struct Measurement {
    std::string gpu;  ///< as spelled in the file
    std::string framework = "pytorch-eager";
    std::string version;  ///< framework version, "8.6.1"; empty if not recorded
    Precision precision = Precision::fp32;
    std::string model;
    std::int64_t batch = 1;
    std::optional<std::int64_t> input;  ///< image side (the width, if `height` is given) or sequence length
    std::optional<std::int64_t> height;
    std::optional<std::int64_t> seq;
    std::string run;      ///< campaign; empty if not recorded
    std::string mode;     ///< "inf" or "train"
    std::string option;   ///< "fusion" = torch.compile
    std::string layout;   ///< "nchw" or "nhwc"
    bool copies = false;  ///< column `kind` is with_copies, see PredictOptions
    std::string cpu;      ///< name of the host's CPU; empty if not recorded
    std::string era;      ///< distinguishes networks that share a model name; usually empty
    double latency_s = 0;
    std::size_t line = 0;  ///< in the file, for messages
    friend auto operator<=>(const Measurement&, const Measurement&) = default;
};

/// One measured operator (a row of an operator measurement file).
struct OperatorMeasurement {
    std::string gpu;
    std::string op;  ///< "linear", "bmm", "conv", "softmax", "ln", "add", "addu", …
    Precision precision = Precision::fp32;
    std::map<std::string, std::int64_t> shape;  ///< {"b": 6, "m": 27, "n": 390, "k": 21}
    std::optional<std::int64_t> order{};        ///< number of shapes run before it in its campaign, if recorded
    std::string kernel{};                       ///< executed kernel, if recorded
    std::string mode{};     ///< "device_hot": kernel time as a CUDA graph node; else one call including host time
    std::string library{};  ///< origin of the kernel ("vllm 0.24.0"), if recorded
    std::optional<std::int64_t> weights{};  ///< number of weight copies the benchmark loop cycled through
    double latency_s = 0;
    std::size_t line = 0;
    friend auto operator<=>(const OperatorMeasurement&, const OperatorMeasurement&) = default;
};

/// One measured run of a language model (a row of its measurement file). Either a batch of prompts, from the start of
/// prefill to the last new token; or a server whose clients send the next prompt when the previous one has ended.
struct LanguageMeasurement {
    std::string gpu;
    std::string framework;
    std::string version;  ///< framework version, "0.11"; empty if not recorded
    Precision precision = Precision::fp16;
    std::string model;
    std::int64_t prompt = 1;      ///< column isl
    std::int64_t new_tokens = 1;  ///< column osl
    std::int64_t batch = 1;
    std::int64_t cards = 1;                               ///< column tp, if present
    std::int64_t clients = 0;                             ///< column concurrency; 0: a static batch
    std::int64_t data_parallel = 1, expert_parallel = 1;  ///< columns dp and ep, of a server
    std::int64_t most_sequences = 0;                      ///< column max_num_seqs; 0: not recorded
    double latency_s = 0;                                 ///< of the batch; for a server, mean time per further token
    std::size_t line = 0;
    friend auto operator<=>(const LanguageMeasurement&, const LanguageMeasurement&) = default;
};

}  // namespace ftax
