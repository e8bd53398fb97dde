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

/// The models of kernels as nodes of a CUDA graph, which have a floor of their own.
[[nodiscard]] KernelModels graph_kernels(KernelModels models);

/// The path that a row's kernels take. Operator files state their precision exactly: fp32 is without TF32 also for
/// convolutions.
[[nodiscard]] MathPath path_of(const OperatorMeasurement& row, const DeviceSpec& device);

/// Latency of a row of mode device_hot: its kernels and what it contains beside them, with the models of
/// graph_kernels().
/// Source: microsoft/vidur, phi-2, for the layers whose additions layer_ops.csv holds as two; encoder rows of s = 1 in
/// tensor_ops.csv, 4.3 µs on four cards, for the launch of the graph.
[[nodiscard]] double alone_s(const OperatorMeasurement& row, const OperatorShape& shape, const KernelModels& models,
                             MathPath path);

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
