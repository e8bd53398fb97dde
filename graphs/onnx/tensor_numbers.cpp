#include <bit>
#include <cmath>
#include <cstring>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {
namespace {

/// Widens a float of `exponent_bits` and `mantissa_bits` with an IEEE-like bias; infinities and NaN of the 8-bit types
/// are not distinguished, since they never occur in shape arithmetic.
double small_float(std::uint64_t bits, int exponent_bits, int mantissa_bits) {
    const std::uint64_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
    const bool negative = (bits >> (exponent_bits + mantissa_bits)) & 1;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
    const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return negative ? -value : value;
}

/// Interprets the low bits of `bits` as one element.
std::optional<Number> number_from_bits(DType type, std::uint64_t bits) {
    using enum DType;
    const auto sign_extended = [&](int width) {
        const int shift = 64 - width;
        return static_cast<std::int64_t>(bits << shift) >> shift;
    };
    if (type == f64) return std::bit_cast<double>(bits);
    if (type == f32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    if (type == f16) return small_float(bits, 5, 10);
    if (type == bf16) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16)));
    if (type == f8e4m3) return small_float(bits, 4, 3);
    if (type == f8e5m2) return small_float(bits, 5, 2);
    if (type == i64 || type == u64) return static_cast<std::int64_t>(bits);
    if (type == i32 || type == i16 || type == i8) return sign_extended(bits_of(type));
    if (type == u32 || type == u16 || type == u8)
        return static_cast<std::int64_t>(bits & ((1ULL << bits_of(type)) - 1));
    if (type == boolean) return static_cast<std::int64_t>((bits & 0xffu) != 0);
    return std::nullopt;  // packed, complex and string elements: no shape depends on them
}

std::vector<std::uint64_t> elements_of(std::string_view raw, std::size_t width) {
    std::vector<std::uint64_t> words(raw.size() / width, 0);
    for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], raw.data() + i * width, width);
    return words;
}

/// Payload of the typed fields (float_data, int32_data, …) as bit patterns.
std::vector<std::uint64_t> typed_payload(const TensorRecord& tensor, std::string_view& raw) {
    std::vector<std::uint64_t> words;
    for (const Bytes& part : tensor.message) {
        for_each_field(part, [&](const Field& field) {
            const std::uint32_t number = field.number;
            if (number == 4) {
                std::vector<float> floats;
                append_floats(field, floats);
                for (const float f : floats) words.push_back(std::bit_cast<std::uint32_t>(f));
            }
            if (number == 5 || number == 7 || number == 11) {
                std::vector<std::int64_t> integers;
                append_integers(field, integers);
                for (const std::int64_t i : integers) words.push_back(static_cast<std::uint64_t>(i));
            }
            if (number == 9) raw = field.text();
            if (number == 10 && field.type == WireType::fixed64) words.push_back(field.value);
            if (number == 10 && field.type != WireType::fixed64)
                for (const std::uint64_t word : elements_of(field.text(), 8)) words.push_back(word);
        });
    }
    return words;
}

}  // namespace

std::optional<std::vector<Number>> read_numbers(const TensorRecord& tensor, std::int64_t count,
                                                std::string_view external_bytes) {
    const DType type = dtype_from_onnx(tensor.data_type);
    const int bits = bits_of(type);
    if (bits % 8 != 0 || !number_from_bits(type, 0)) return std::nullopt;
    std::string_view raw = external_bytes;
    std::vector<std::uint64_t> words;
    if (!tensor.external) words = typed_payload(tensor, raw);
    if (!raw.empty()) words = elements_of(raw, static_cast<std::size_t>(bits / 8));
    if (words.empty() && count > 0) return std::nullopt;
    if (words.size() != static_cast<std::size_t>(count))
        throw_error(ErrorCode::model, "tensor '{}' holds {} elements, its dims say {}", excerpt(tensor.name),
                    words.size(), count);
    return mapped(words, [&](std::uint64_t word) { return *number_from_bits(type, word); });
}

}  // namespace ftax::onnx_import
