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

namespace ftax {

using OperatorShape = KernelShape;

/// Reads the dimensions of an operator row (docs/formats.md). Returns nullopt without a model or a dimension.
[[nodiscard]] std::optional<OperatorShape> operator_shape(const OperatorMeasurement& row);

/// Returns the models of kernels as CUDA graph nodes, which have their own floor.
[[nodiscard]] KernelModels graph_kernels(KernelModels models);

/// Returns the math path of a row. Operator files state the exact precision: fp32 excludes TF32, also for convolutions.
[[nodiscard]] MathPath path_of(const OperatorMeasurement& row, const DeviceSpec& device);

/// Returns the latency of a device_hot row: its kernels and its other parts, with the models of graph_kernels().
/// Source: microsoft/vidur, phi-2, for the layers with two additions in layer_ops.csv.
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
    /// `host`: costs of calls on that machine (call_host_profile). Throws Error{profile} for a parameter out of bounds.
    OperatorModel(const DeviceProfile& profile, const FrameworkProfile& host);

    /// Returns nullopt if there is no model for the row (operator_shape). Throws Error{usage} without its precision.
    [[nodiscard]] std::optional<OperatorRowPrediction> predict(const OperatorMeasurement& row) const;

    /// Sets the scale of this machine's host to the median over the measured host-bound rows of the device, if any.
    void anchor(std::span<const OperatorMeasurement> rows);

  private:
    DeviceSpec device_;
    KernelModels kernels_;        ///< with the floor of single calls
    KernelModels graph_kernels_;  ///< with the floor of CUDA graph nodes
    OperatorHostParameters host_;
};

}  // namespace ftax
