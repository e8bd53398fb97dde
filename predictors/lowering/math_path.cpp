#include "predictors/lowering/math_path.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "graphs/base/throw_error.hpp"

namespace ftax {

DType storage_type(Precision precision) noexcept {
    return precision_spec(precision).storage;
}

void require_arithmetic(const DeviceSpec& device, const PrecisionSpec& spec) {
    if (runs(device, spec)) return;
    std::vector<std::string_view> others;
    for (const PrecisionSpec& other : precision_specs())
        if (runs(device, other)) others.push_back(other.name);
    throw_error(ErrorCode::usage, "{} has no {} arithmetic; it runs {}", device.name, spec.name,
                fmt::join(others, ", "));
}

MathPath math_path(const DeviceSpec& device, Precision precision, bool convolution) {
    const PrecisionSpec& spec = precision_spec(precision);
    require_arithmetic(device, spec);
    const MathPath path = precision == Precision::fp32 && convolution ? MathPath::tf32 : spec.rest;
    // Without tensor cores, frameworks store fp16 and compute at the fp32 rate (Pascal in framework_tax.csv).
    return device.peak(path) ? path : MathPath::fp32;
}

MathPath layer_path(const DeviceSpec& device, Precision precision) {
    const PrecisionSpec& spec = precision_spec(precision);
    const MathPath others = math_path(device, precision, false);
    return spec.quantizes_weights() && device.peak(spec.path) ? spec.path : others;
}

}  // namespace ftax
