#pragma once

#include "predictors/kernels/cpu.hpp"

namespace ftax::test {

/// A CPU whose parameters are not the ones a fit starts from.
inline kernels::CpuModel reference_cpu() {
    kernels::CpuModel cpu;
    cpu.device.slug = "cpu";
    cpu.device.name = "a CPU";
    cpu.device.architecture = Architecture::cpu;
    cpu.device.sms = 1;
    cpu.device.l2_bytes = 2 << 20;
    visit_parameters(cpu.parameters, cpu.device,
                     [](std::string_view, double& value, const ParameterSpec& spec) { value = spec.initial * 1.4; });
    return cpu;
}

}  // namespace ftax::test
