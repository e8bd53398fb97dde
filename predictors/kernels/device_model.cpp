#include "predictors/kernels/device_model.hpp"

#include "graphs/base/throw_error.hpp"
#include "predictors/profiles/parameters.hpp"

namespace ftax {
namespace {

using kernels::CpuModel;

CpuModel cpu_model(const DeviceProfile& profile) {
    CpuModel model{profile.device, {}};
    std::size_t known = 0;
    visit_parameters(model.parameters, profile.device,
                     [&](std::string_view name, double& value, const ParameterSpec& spec) {
                         value = profile_value(profile.parameters, profile.device.slug, name, spec);
                         known += find_parameter(profile.parameters, name) != nullptr;
                     });
    if (known == 0) {
        throw_error(
            ErrorCode::profile,
            "{}: no profile of this CPU; create one with `ftax calibrate --device cpu` and give it with --profile",
            profile.device.slug);
    }
    return model;
}

/// Time of a contraction's arithmetic at the CPU's full rate; attention is taken to be arithmetic altogether.
template <class Shape>
double arithmetic_s(const CpuModel& model, const Shape& shape, double seconds) {
    if constexpr (std::is_same_v<Shape, kernels::GemmShape> || std::is_same_v<Shape, kernels::GroupedGemmShape>) {
        return kernels::flops(shape) / model.parameters.gemm_flops_per_s;
    } else if constexpr (std::is_same_v<Shape, kernels::ConvShape>) {
        return kernels::flops(shape) / (kernels::is_depthwise(shape) ? model.parameters.depthwise_flops_per_s
                                                                     : model.parameters.conv_flops_per_s);
    } else {
        return std::is_same_v<Shape, kernels::AttentionShape> ? seconds : 0;
    }
}

}  // namespace

DeviceModel device_model(const DeviceProfile& profile) {
    if (is_cpu(profile.device)) return cpu_model(profile);
    return KernelModels(profile.device, kernel_parameters(profile));
}

kernels::KernelPlan plan(const DeviceModel& model, const KernelShape& shape, MathPath path) {
    if (const auto* gpu = std::get_if<KernelModels>(&model))
        return std::visit([&](const auto& s) { return gpu->plan(s, path); }, shape);
    const auto& cpu = std::get<CpuModel>(model);
    return std::visit(
        [&](const auto& s) {
            kernels::KernelPlan plan;
            plan.algorithm = "cpu";
            plan.seconds = cpu.seconds(s);
            plan.compute_s = arithmetic_s(cpu, s, plan.seconds);
            plan.memory_s = plan.seconds - plan.compute_s;
            return plan;
        },
        shape);
}

KernelDetail kernel_detail(const DeviceModel& model, const KernelShape& shape, MathPath path) {
    if (const auto* gpu = std::get_if<KernelModels>(&model)) return kernel_detail(*gpu, shape, path);
    const auto planned = plan(model, shape, path);
    return {.name = std::string(planned.algorithm),
            .path = std::string(name_of(path)),
            .reason = {},
            .seconds = planned.seconds,
            .bound = planned.bound()};
}

}  // namespace ftax
