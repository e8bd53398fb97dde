#pragma once

#include <vector>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "ftax/precision.hpp"
#include "predictors/lowering/autocast.hpp"
#include "predictors/lowering/lowering.hpp"

namespace ftax {

/// Determines the quantised layers of a run and the storage type of each tensor. Keeps references to its arguments.
class TypeAssignment {
  public:
    TypeAssignment(const Graph& graph, const DeviceSpec& device, const PredictOptions& options,
                   const LoweringTraits& traits);

    [[nodiscard]] const std::vector<DType>& storage() const { return storage_; }
    /// Autocast policy of each operator; empty without autocast.
    [[nodiscard]] const std::vector<autocast::Policy>& autocast_policies() const { return autocast_policies_; }
    /// True if layers of an engine exchange int8 or fp8.
    [[nodiscard]] bool has_narrow_activations() const { return has_narrow_activations_; }

    /// Returns the operand format of a product: the file's if the device has it, else the run's; fp32 if not quantised.
    [[nodiscard]] Precision operands_of(const Op& op) const;

    /// Returns the first fused kernel of the engine for these heads, this type (f16: bf16, too) and chip, or nullptr.
    [[nodiscard]] const FusedAttention* fused_attention(const Op& op, DType type) const;

  private:
    void assign_storage();
    /// Returns true for engine layers with kernels that read and write int8 (fp8: only transformers): products with
    /// weights, fused int8 attention, residual and norm, scales, pooling, concatenation, resizing, and remaining
    /// pointwise operators. Source: TensorRT, demo/BERT (builder.py, options -imh and -iln); developer guide, "Working
    /// with Quantized Types" and "Layer Support and Restrictions".
    [[nodiscard]] bool has_narrow_kernel(const Op& op) const;
    /// Tensors passed only between such layers, also through data movement, are int8; the rest keeps its storage type.
    void store_narrow_activations();
    /// Returns true for layers that a precision quantises: linear layers and experts, except heads and routers; under
    /// an engine also int8 convolutions. Source: the lists `ignore` of quantised checkpoints (llm-compressor, ModelOpt:
    /// "lm_head", "re:.*mlp.gate$"); TensorRT, developer guide, "Layer Support and Restrictions".
    [[nodiscard]] bool is_quantized(const Op& op) const;
    [[nodiscard]] bool is_head(const Op& op) const;

    const Graph& graph_;
    const DeviceSpec& device_;
    const PredictOptions& options_;
    const PrecisionSpec& precision_;
    const LoweringTraits& traits_;
    std::vector<DType> storage_;
    std::vector<autocast::Policy> autocast_policies_;
    /// Returns true if the file specifies the quantised products; then no others are quantised. Source: TensorRT,
    /// developer guide, "Explicit Quantization".
    bool is_quantized_by_file_;
    bool names_quantized_layers_;  ///< true: the checkpoint's other layers are not quantised
    bool has_narrow_activations_;
};

}  // namespace ftax
