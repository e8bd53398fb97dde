#pragma once

#include "ftax/equations.hpp"
#include "ftax/parameter.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax::kernels {

template <class T>
struct GemmParameters {
    T efficiency{};
};

template <class T, class Visit>
void visit_parameters(GemmParameters<T>& p, Visit&& visit) {
    visit("gemm.efficiency", p.efficiency, ParameterSpec{0.85, 0.2, 1, 0.3, ParameterScope::shared, "share of the sustained rate"});
}

template <class T>
T gemm_seconds(const GemmShape& s, const DeviceRates<T>& rates, const GemmParameters<T>& p) {
    const double flops = 2.0 * static_cast<double>(s.batch * s.m) * static_cast<double>(s.n * s.k);
    const double bytes = s.element_bytes * static_cast<double>(s.batch * (s.m * s.k + s.m * s.n) + (s.linear ? 1 : s.batch) * s.k * s.n);
    return rates.floor_s + equations::smooth_maximum(T(flops / (rates.flops_per_s * p.efficiency)), T(bytes / rates.bandwidth_bytes_per_s));
}

}  // namespace ftax::kernels
