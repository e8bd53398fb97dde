#pragma once

#include <optional>
#include <span>

#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "ftax/measurement.hpp"
#include "ftax/predict.hpp"
#include "predictors/host/operator_host.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/shapes.hpp"

/// Predicts single operators as measurement files time them.
namespace ftax {

using OperatorShape = KernelShape;

/// Reads the dimensions of an operator row: b × h for pointwise, softmax and ln; b, m, n, k (bias optional: 0 for a
/// layer without one, which the kernel's name may also tell); b, cin, cout, kernel, hw, stride, pad (groups and
/// dilation optional). Kernels of language models, timed alone: gemm m, n, k; rms_norm, layer_norm, silu_mul, gelu,
/// add, embedding m, h; rope m, heads, kv_heads, d; context_attention, encoder_attention b, s, heads, kv_heads, d;
/// generation_attention b, past, heads, kv_heads, d; attention chunk, past, decodes, ctx, heads, kv_heads, d;
/// moe tokens, hidden, inter, topk, experts.
/// Returns nullopt for an operator without a model or a missing dimension.
[[nodiscard]] std::optional<OperatorShape> operator_shape(const OperatorMeasurement& row);

/// Kernels of a row of mode device_hot, one after the other: the layers of width 2,560 whose additions layer_ops.csv
/// holds (library sarathi) add attention and feed-forward to their input in two. Source: microsoft/vidur, phi-2.
[[nodiscard]] double kernels_of(const OperatorMeasurement& row);

/// What a row of mode device_hot contains beside its kernel: the gap between nodes of a CUDA graph; an encoder's
/// attention, of which the graph has one node, the launch of the graph; caches in pages and rows of tokens have theirs
/// in their floors. Source: encoder rows of s = 1 in tensor_ops.csv, 4.3 µs on four cards.
[[nodiscard]] double beside_kernel_s(const OperatorShape& shape);

/// The kernel that quantises the activations of a row's product in front of it, part of its latency; nullopt without.
[[nodiscard]] std::optional<kernels::QuantizeShape> operand_quantization(const OperatorMeasurement& row);

struct OperatorRowPrediction {
    double latency_s = 0;
    double low_s = 0, high_s = 0;  ///< 90 % interval
    double host_s = 0;
    double kernel_s = 0;
    Bound bound = Bound::host;
};

/// Predicts rows of operator files on one device in one machine.
class OperatorModel {
  public:
    /// `host` is what calls cost that machine (call_host_profile). Throws Error{profile} for a parameter outside its
    /// bounds.
    OperatorModel(const DeviceProfile& profile, const FrameworkProfile& host);

    /// Returns nullopt when there is no model for the row (see operator_shape).
    /// Throws Error{usage} when the device lacks the row's precision.
    [[nodiscard]] std::optional<OperatorRowPrediction> predict(const OperatorMeasurement& row) const;

    /// Sets the scale of this machine's host from measured rows of the device: the median over those rows in which the
    /// host takes the larger part. Leaves the profile's scale when there is none.
    void anchor(std::span<const OperatorMeasurement> rows);

  private:
    DeviceSpec device_;
    KernelModels kernels_;        ///< with the floor of calls
    KernelModels graph_kernels_;  ///< with that of a CUDA graph's nodes
    OperatorHostParameters host_;
};

}  // namespace ftax
