#pragma once

#include <algorithm>
#include <array>

#include "ftax/device.hpp"
#include "ftax/factors.hpp"
#include "ftax/framework.hpp"
#include "ftax/predict.hpp"
#include "predictors/kernels/attention.hpp"
#include "predictors/kernels/conv.hpp"
#include "predictors/kernels/engine.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/memory_bound.hpp"
#include "predictors/kernels/mixture.hpp"
#include "predictors/kernels/quantized.hpp"
#include "predictors/kernels/recurrent.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/sustained.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/kernels/token_kernels.hpp"
#include "predictors/profiles/parameters.hpp"

namespace ftax {

struct KernelParameters {
    kernels::SustainedParameters sustained;
    kernels::GemmParameters gemm;
    kernels::TensorGemmParameters tensor_gemm;
    kernels::QuantizedParameters quantized;
    kernels::MixtureParameters mixture;
    kernels::ConvParameters conv;
    kernels::MemoryParameters memory;
    kernels::AttentionParameters attention;
    kernels::TokenParameters token;
    kernels::EngineParameters engine;
};

/// Some initial values depend on the device.
inline void visit_parameters(KernelParameters& p, const DeviceSpec& device, const ParameterVisitor& visit) {
    visit_parameters(p.sustained, device, visit);
    const auto visit_each = [&](auto&... models) { (visit_parameters(models, visit), ...); };
    visit_each(p.gemm, p.tensor_gemm, p.quantized, p.mixture, p.conv, p.memory, p.attention, p.token, p.engine);
}

/// The kernel models of one device with their parameters; plan() dispatches on the shape.
struct KernelModels {
    KernelParameters parameters;
    std::array<kernels::DeviceRates, math_path_count> rates;

    KernelModels(const DeviceSpec& device, const KernelParameters& values) : parameters(values) {
        parameters.conv.residency = parameters.memory.residency;
        parameters.conv.product_energy_scale = parameters.tensor_gemm.energy_scale;
        parameters.conv.product_efficiency = parameters.tensor_gemm.efficiency;
        for (int i = 0; i < math_path_count; ++i)
            rates[i] = kernels::device_rates(device, static_cast<MathPath>(i), parameters.sustained);
    }

    [[nodiscard]] const kernels::DeviceRates& at(MathPath path) const { return rates[static_cast<int>(path)]; }

    [[nodiscard]] kernels::engine::Products engine_products(const kernels::DeviceRates& device) const {
        return kernels::engine::products(device, parameters.engine, parameters.tensor_gemm);
    }

    /// Returns the math path of a product. Older cuBLAS uses tensor cores only if rows are aligned: to 16 bytes before
    /// Ampere; cuBLAS 11 from Ampere on for two tensors, in TF32 to 16 bytes, in fp16 to 4. Source: NVIDIA, "Matrix
    /// Multiplication Background User's Guide", for versions before 11.
    [[nodiscard]] MathPath path_of(const kernels::GemmShape& shape, MathPath path) const {
        const bool ampere = at(path).chip->asynchronous_copies;
        const bool vectors = std::min({shape.m, shape.n, shape.k}) == 1;  // kernels of their own, without tiles
        const bool emulated = at(path).peak_flops_per_s < at(MathPath::fp32).peak_flops_per_s;  // GTX 16
        const bool concerned = ampere ? shape.oldest_library && !shape.linear && !vectors : shape.older_library;
        const bool on_cores = kernels::is_tensor(path) && concerned &&
                              !kernels::tensor_gemm::rows_are_aligned(shape, ampere && path != MathPath::tf32 ? 4 : 16);
        return on_cores || (emulated && vectors) ? MathPath::fp32 : path;
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::GemmShape& shape, MathPath path) const {
        const auto tiled = plan_tiled(shape, path);
        constexpr std::int64_t few = 8;  // rows of llama.cpp's dp4a kernels. Source: mmvq.cuh, MMVQ_MAX_BATCH_SIZE
        if (shape.row_bytes_per_cycle <= 0 || !shape.linear || (shape.dot_products && shape.m > few)) return tiled;
        const auto streamed = kernels::tensor_gemm::plan_streamed(shape, at(path), parameters.tensor_gemm);
        return shape.dot_products || tiled.seconds < streamed.seconds ? streamed : tiled;
    }
    /// Plans a product with a kernel of cuBLAS or an engine.
    [[nodiscard]] kernels::KernelPlan plan_tiled(const kernels::GemmShape& shape, MathPath path) const {
        const auto& device = at(path_of(shape, path));
        if (shape.scaled_outside)
            return kernels::tensor_gemm::plan_scaled_outside(shape, device, quantized(shape, parameters.tensor_gemm));
        if (shape.engine && kernels::tensor_gemm::runs_on_tensor_cores(device)) {
            const auto own = engine_products(device);
            return kernels::plan(shape, own.device,
                                 kernels::tensor_gemm::of_engine(shape) ? own.gemm : quantized(shape, own.gemm));
        }
        return kernels::tensor_gemm::runs_on_tensor_cores(device)
                   ? kernels::plan(shape, device, quantized(shape, parameters.tensor_gemm))
                   : kernels::plan(shape, on_cuda_cores(shape, device, path), parameters.gemm);
    }
    /// Returns the CUDA-core rates for a product, whose operands in half precision load one by one where rows of an odd
    /// number of values follow each other. Source of the rate of dp4a (four products per instruction) in
    /// llama.cpp's kernels: pp512 of Llama-2-7B in Q4_0 on a P40, 912 tokens per second (llama.cpp pull request 4766).
    [[nodiscard]] kernels::DeviceRates on_cuda_cores(const kernels::GemmShape& shape, kernels::DeviceRates device,
                                                     MathPath path) const {
        constexpr double dot_product_rate = 1.87;
        if (kernels::is_tensor(path) && !kernels::tensor_gemm::rows_are_aligned(shape, 4))
            device.flops_per_s *= parameters.gemm.odd_rows;
        if (!shape.dot_products) return device;
        device.flops_per_s *= dot_product_rate;
        device.boost_clock_hz *= dot_product_rate;  // latencies are cycles
        return device;
    }
    /// Adapts the parameters of 16-bit products to the format of the operands.
    [[nodiscard]] kernels::TensorGemmParameters quantized(const auto& shape,
                                                          const kernels::TensorGemmParameters& half) const {
        return kernels::quantized::parameters(precision_spec(shape.operands), half, parameters.quantized);
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::ConvShape& shape, MathPath path) const {
        if (const auto product = kernels::as_product(shape)) return plan(*product, path);
        return kernels::plan(shape, at(path), parameters.conv);
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::MemoryShape& shape, MathPath) const {
        if (shape.engine && shape.cls == kernels::MemoryClass::layer_norm)
            return kernels::engine::plan(shape, engine_products(at(MathPath::fp32)));
        if (shape.token != kernels::TokenKernel::none)
            return kernels::plan_token(shape, at(MathPath::fp32), parameters.token, parameters.tensor_gemm);
        return kernels::plan(shape, at(MathPath::fp32), parameters.memory);
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::AttentionShape& shape, MathPath path) const {
        if (shape.path == kernels::AttentionPath::engine)
            return kernels::engine::plan(shape, engine_products(at(path)), parameters.engine);
        return kernels::plan(shape, at(path), parameters.attention, parameters.tensor_gemm);
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::QuantizeShape& shape, MathPath path) const {
        return kernels::plan(shape, at(path), parameters.tensor_gemm, parameters.quantized);
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::GroupedGemmShape& shape, MathPath path) const {
        const auto& device = at(path);
        return kernels::tensor_gemm::runs_on_tensor_cores(device)
                   ? kernels::plan(shape, device, quantized(shape, parameters.tensor_gemm), parameters.mixture)
                   : kernels::plan(kernels::as_batch(shape), device, parameters.gemm);
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::MixtureShape& shape, MathPath path) const {
        return kernels::plan(shape, at(path), parameters.tensor_gemm, parameters.mixture);
    }
    [[nodiscard]] kernels::KernelPlan plan(const kernels::RecurrentShape& shape, MathPath path) const {
        return kernels::plan(shape, at(path));
    }
};

/// Returns the value of a parameter in a profile's parameters (sorted by name), or its initial value if not set. Throws
/// Error{profile} naming the owner for a value outside the declared bounds.
[[nodiscard]] double profile_value(std::span<const Parameter> parameters, std::string_view owner, std::string_view name,
                                   const ParameterSpec& spec);

/// Fills the parameters of a model (any type with visit_parameters) from a profile. Throws what profile_value throws.
template <class Parameters>
[[nodiscard]] Parameters profile_parameters(const FrameworkProfile& profile) {
    Parameters parameters;
    visit_parameters(parameters, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = profile_value(profile.parameters, profile.host, name, spec);
    });
    return parameters;
}

/// Resolves the parameters of a device profile; parameters that it does not set keep their initial values. Throws
/// Error{profile} for an unknown name or a value outside the declared bounds.
[[nodiscard]] KernelParameters kernel_parameters(const DeviceProfile& profile);

/// Returns the class of a kernel, whose factor an anchor fits.
[[nodiscard]] Factor factor_of(const KernelShape& shape, MathPath path);

/// Returns the energy of an operator's work beyond that of busy SMs, in joules. Source of a byte's: 3.9 pJ a bit of
/// HBM2 (O'Connor et al., Fine-Grained DRAM, MICRO 2017).
[[nodiscard]] double energy_j(const KernelModels& models, const KernelShape& shape, MathPath path);

/// Returns details of a kernel's time: the choice, its alternatives and its position in the roofline. Slower than
/// KernelModels::plan, on which it is based.
[[nodiscard]] KernelDetail kernel_detail(const KernelModels& models, const KernelShape& shape, MathPath path);

}  // namespace ftax
