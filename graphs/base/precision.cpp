#include "ftax/precision.hpp"

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"

namespace ftax {
namespace {

/// In the order of Precision; columns in that of the members. Energy: fits to tensor_ops.csv, docs/kernel-models.
const std::vector<PrecisionSpec>& all_specs() {
    static const std::vector<PrecisionSpec> specs = [] {
        std::vector<PrecisionSpec> rows;
        for_each_data_row(embedded_text("data/precisions.tsv"), [&](DataRow row) {
            const auto type = [&] { return dtype_from_name(row.text()).value(); };
            const auto units = [&] { return math_path_from_name(row.text()).value(); };
            const auto count = [&] { return static_cast<int>(row.number()); };
            const auto holds = [&] { return row.text() == "yes"; };
            rows.push_back({static_cast<Precision>(rows.size()), row.text(), type(), type(), type(), type(), count(),
                            count(), type(), units(), units(), holds(), holds(), holds(), row.number(),
                            row.choice<QuantizedKernels>("fp8 fp8_block nvfp4 none")});
        });
        return rows;
    }();
    return specs;
}

double bytes_with_scale(DType type, DType scale, double block) {
    return (bits_of(type) + (block > 0 ? bits_of(scale) / block : 0)) / 8;
}

}  // namespace

double PrecisionSpec::activation_bytes() const noexcept {
    return bytes_with_scale(activation, scale, activation_block);
}
double PrecisionSpec::weight_bytes() const noexcept {
    return bytes_with_scale(weight, scale, weight_block);
}

std::span<const PrecisionSpec> precision_specs() noexcept {
    return all_specs();
}
const PrecisionSpec& precision_spec(Precision precision) noexcept {
    return all_specs()[static_cast<std::size_t>(precision)];
}

std::vector<std::string> precision_names() {
    return mapped(precision_specs(), [](const PrecisionSpec& spec) { return std::string(spec.name); });
}

std::string_view name_of(Precision precision) noexcept {
    return precision_spec(precision).name;
}
std::optional<Precision> precision_from_name(std::string_view name) {
    // Names in measurement files and on command lines are compared without case and punctuation.
    const std::string given = normalized_name(name);
    constexpr std::pair<std::string_view, std::string_view> others[] = {
        // those of PyTorch, then of checkpoints
        {"half", "fp16"},  {"float16", "fp16"}, {"bfloat16", "bf16"}, {"float32", "fp32"},   {"awq", "w4a16"},
        {"gptq", "w4a16"}, {"int4", "w4a16"},   {"w8a8", "int8"},     {"fp8dynamic", "fp8"}, {"w4a16awq", "w4a16"}};
    const auto* other = std::ranges::find(others, given, [](const auto& pair) { return pair.first; });
    const std::string_view wanted = other == std::end(others) ? given : other->second;
    for (const PrecisionSpec& spec : precision_specs())
        if (normalized_name(spec.name) == wanted) return spec.precision;
    return std::nullopt;
}

bool runs(const DeviceSpec& device, const PrecisionSpec& precision) noexcept {
    return precision.falls_back || (device.peak(precision.path) && device.peak(precision.rest));
}

}  // namespace ftax
