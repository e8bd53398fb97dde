#include "predictors/kernels/device_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ftax/error.hpp"
#include "predictors/kernels/profile_parameters.hpp"

namespace ftax {
namespace {

using kernels::CpuModel;

CpuModel<double> cpu_model(const DeviceProfile& profile) {
    CpuModel<double> model{profile.device, {}};
    std::size_t known = 0;
    visit_parameters(model.parameters, profile.device,
                     [&](std::string_view name, double& value, const ParameterSpec& spec) {
                         value = profile_value(profile, name, spec);
                         known += std::any_of(profile.parameters.begin(), profile.parameters.end(),
                                              [&](const Parameter& p) { return p.name == name; });
                     });
    if (known == 0) {
        throw Error(ErrorCode::profile,
                    fmt::format("{}: no profile of this CPU; `ftax calibrate --device cpu` makes one "
                                "and --profile names it",
                                profile.device.slug));
    }
    return model;
}

/// A contraction is limited by arithmetic where that takes more than half of its time.
template <class Shape>
Bound bound_of(const CpuModel<double>& model, const Shape& shape, double seconds) {
    double flops = 0;
    double rate = model.parameters.gemm_flops_per_s;
    if constexpr (std::is_same_v<Shape, kernels::GemmShape>) {
        flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                static_cast<double>(shape.k);
    } else if constexpr (std::is_same_v<Shape, kernels::ConvShape>) {
        const bool depthwise = shape.groups == shape.in_channels && shape.groups > 1;
        rate = depthwise ? model.parameters.depthwise_flops_per_s : model.parameters.conv_flops_per_s;
        flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.out_channels) *
                static_cast<double>(shape.out_depth) * static_cast<double>(shape.out_height) *
                static_cast<double>(shape.out_width) * static_cast<double>(shape.in_channels / shape.groups) *
                static_cast<double>(shape.kernel_d) * static_cast<double>(shape.kernel_h) *
                static_cast<double>(shape.kernel_w);
    } else if constexpr (std::is_same_v<Shape, kernels::AttentionShape>) {
        return Bound::compute;
    }
    return 2 * flops / rate > seconds ? Bound::compute : Bound::memory;
}

}  // namespace

DeviceModel device_model(const DeviceProfile& profile) {
    if (is_cpu(profile.device)) return cpu_model(profile);
    return KernelModels<double>(profile.device, kernel_parameters(profile));
}

KernelCost kernel_cost(const DeviceModel& model, const KernelShape& shape, MathPath path) {
    if (const auto* gpu = std::get_if<KernelModels<double>>(&model)) {
        return std::visit([&](const auto& s) { return kernel_cost(*gpu, s, path); }, shape);
    }
    const auto& cpu = std::get<CpuModel<double>>(model);
    return std::visit(
        [&](const auto& s) {
            const double seconds = cpu.seconds(s);
            return KernelCost{{seconds, 0}, bound_of(cpu, s, seconds)};
        },
        shape);
}

KernelDetail kernel_detail(const DeviceModel& model, const KernelShape& shape, MathPath path) {
    if (const auto* gpu = std::get_if<KernelModels<double>>(&model)) return kernel_detail(*gpu, shape, path);
    const KernelCost cost = kernel_cost(model, shape, path);
    return {
        .name = "cpu", .path = std::string(name_of(path)), .reason = {}, .seconds = cost.seconds, .bound = cost.bound};
}

LoweringTraits traits_on(const DeviceSpec& device, LoweringTraits traits) {
    if (is_cpu(device)) traits.separate_conv_bias = false;
    return traits;
}

}  // namespace ftax
