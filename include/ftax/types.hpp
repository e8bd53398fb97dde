#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ftax {

/// Element type of a tensor, as in the model file.
enum class DType : std::uint8_t {
    unknown,
    f64,
    f32,
    f16,
    bf16,
    f8e4m3,
    f8e5m2,
    f4,
    i64,
    i32,
    i16,
    i8,
    i4,
    i2,
    u64,
    u32,
    u16,
    u8,
    u4,
    u2,
    boolean,
    c64,
    c128,
    string,
};

/// Returns the size of one element in bits (sub-byte types are packed); `string` and `unknown` count as 0.
[[nodiscard]] int bits_of(DType type) noexcept;
/// Returns the short name used in text graphs and JSON ("f32", "i64", "bool").
[[nodiscard]] std::string_view name_of(DType type) noexcept;
/// Parses the output of name_of.
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// Returns true for real floating-point types, i.e. those that a run's precision replaces.
[[nodiscard]] bool is_float(DType type) noexcept;

/// Numeric precision of a run: the type to which the user casts weights and activations.
enum class Precision : std::uint8_t {
    fp32,        ///< f32 storage; matrix products on CUDA cores; convolutions in TF32 if that is the framework's
                 ///< default
    tf32,        ///< f32 storage; matrix products and convolutions on TF32 tensor cores
    fp16,        ///< weights and activations stored as f16 (`.half()`)
    bf16,        ///< weights and activations stored as bf16
    amp,         ///< autocast: f32 weights, matrix products and convolutions in f16, reductions and norms in f32
    amp_cached,  ///< amp with one context open over all runs; only the first casts the weights
    // Quantisation of linear layers and experts; everything else stays f16 or bf16 (precision.hpp).
    fp8,        ///< weights and activations, a scale per row and column
    fp8_block,  ///< fp8 with a scale per 1 x 128 activations and 128 x 128 weights
    int8,       ///< weights and activations
    nvfp4,      ///< 4-bit weights and activations, a scale per 16
    w8a16,      ///< int8 weights
    w4a16,      ///< int4 weights, a scale per 128
    // Files of GGUF (llama.cpp), which quantise the head as well.
    q4_0,
    q4_k_m,
    q5_k_m,
    q6_k,
    q8_0,
    q3_k_m,
    iq4_xs,
    mxfp4,
};

[[nodiscard]] std::string_view name_of(Precision precision) noexcept;
/// Parses the output of name_of, in upper or lower case.
[[nodiscard]] std::optional<Precision> precision_from_name(std::string_view name);

/// Families of library kernels for quantised operands; kernels of a family share fitted ratios.
enum class QuantizedKernels : std::uint8_t { fp8, fp8_block, nvfp4, none };
inline constexpr int quantized_kernels_count = 3;  ///< without `none`

/// Arithmetic path of one kernel: the GPU units that execute its multiply-adds.
enum class MathPath : std::uint8_t {
    fp64,         ///< CUDA cores, double precision
    fp32,         ///< CUDA cores, single precision; also f16 storage if the framework computes in f32 (Pascal)
    tf32,         ///< tensor cores, f32 storage
    fp16_tensor,  ///< tensor cores, f16 inputs, f32 accumulation
    bf16_tensor,  ///< tensor cores, bf16 inputs, f32 accumulation
    int8_tensor,  ///< tensor cores, int8 inputs, int32 accumulation
    fp16_tensor_fp16_accumulate,  ///< tensor cores, f16 inputs and accumulation: twice the rate on GeForce cards
    fp8_tensor,                   ///< tensor cores, e4m3 inputs, f32 accumulation
    fp4_tensor,                   ///< tensor cores, e2m1 inputs with block scales, f32 accumulation
};
inline constexpr int math_path_count = 9;

[[nodiscard]] std::string_view name_of(MathPath path) noexcept;

}  // namespace ftax
