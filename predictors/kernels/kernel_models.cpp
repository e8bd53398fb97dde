#include "predictors/kernels/kernel_models.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "graphs/base/throw_error.hpp"

namespace ftax {
namespace {

Factor factor_of(const kernels::ConvShape& shape, bool on_tensor_cores) {
    const std::int64_t widest = std::max({shape.kernel_d, shape.kernel_h, shape.kernel_w});
    if (shape.groups > 1) {
        if (shape.in_channels > shape.groups) return Factor::conv_grouped;
        return widest > 3 ? Factor::conv_depthwise_wide : Factor::conv_depthwise;
    }
    if (widest == 1) return on_tensor_cores ? Factor::conv_pointwise_tensor : Factor::conv_pointwise;
    return on_tensor_cores ? Factor::conv_spatial_tensor : Factor::conv_spatial;
}

Factor factor_of(kernels::MemoryClass cls) {
    using enum kernels::MemoryClass;
    constexpr std::array normalizations{softmax, layer_norm, batch_norm, group_norm};
    if (std::ranges::count(normalizations, cls) > 0) return Factor::normalization;
    return cls == pool ? Factor::pool : Factor::elementwise;
}

}  // namespace

Factor factor_of(const KernelShape& shape, MathPath path) {
    const bool on_tensor_cores = kernels::is_tensor(path);
    if (const auto* conv = std::get_if<kernels::ConvShape>(&shape)) return factor_of(*conv, on_tensor_cores);
    if (const auto* memory = std::get_if<kernels::MemoryShape>(&shape)) return factor_of(memory->cls);
    if (std::holds_alternative<kernels::AttentionShape>(shape)) return Factor::attention;
    if (std::holds_alternative<kernels::QuantizeShape>(shape)) return Factor::elementwise;
    if (std::holds_alternative<kernels::RecurrentShape>(shape)) return Factor::gemm;
    const bool mixture = std::holds_alternative<kernels::MixtureShape>(shape);
    return on_tensor_cores || mixture ? Factor::gemm_tensor : Factor::gemm;
}

double profile_value(std::span<const Parameter> parameters, std::string_view owner, std::string_view name,
                     const ParameterSpec& spec) {
    const auto at = std::ranges::lower_bound(parameters, name, {}, &Parameter::name);
    if (at == parameters.end() || at->name != name) return spec.initial;
    if (!(at->value >= spec.lower && at->value <= spec.upper))
        throw_error(ErrorCode::profile, "parameter {} of {} is {}, outside [{}, {}]", name, owner, at->value,
                    spec.lower, spec.upper);
    return at->value;
}

KernelParameters kernel_parameters(const DeviceProfile& profile) {
    KernelParameters parameters;
    std::vector<std::string_view> names;
    visit_parameters(parameters, profile.device, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = profile_value(profile.parameters, profile.device.slug, name, spec);
        names.push_back(name);
    });
    std::ranges::sort(names);
    for (const Parameter& p : profile.parameters) {
        if (!std::ranges::binary_search(names, p.name))
            throw_error(ErrorCode::profile, "{}: no kernel model has a parameter {}", profile.device.slug, p.name);
    }
    return parameters;
}

}  // namespace ftax
