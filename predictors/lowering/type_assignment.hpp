#pragma once

#include <vector>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "ftax/precision.hpp"
#include "predictors/lowering/autocast.hpp"
#include "predictors/lowering/lowering.hpp"

namespace ftax {

/// Which layers of a run are quantised, and as what each tensor is stored. Keeps references to what it is made of.
class TypeAssignment {
  public:
    TypeAssignment(const Graph& graph, const DeviceSpec& device, const PredictOptions& options,
                   const LoweringTraits& traits);

    /// Type of each tensor.
    [[nodiscard]] const std::vector<DType>& storage() const { return storage_; }
    /// Of each operator; empty without autocast.
    [[nodiscard]] const std::vector<autocast::Policy>& autocast_policies() const { return autocast_policies_; }
    /// Whether layers of an engine hand int8 or fp8 to each other.
    [[nodiscard]] bool has_narrow_activations() const { return has_narrow_activations_; }

    /// The format of a product's operands: what the file says, where the device has its arithmetic, or the run's
    /// precision; fp32 where they are not quantised.
    [[nodiscard]] Precision operands_of(const Op& op) const;

    /// The first fused kernel that the engine has for these heads of this type (f16: also bf16) on this chip; nullptr:
    /// none.
    [[nodiscard]] const FusedAttention* fused_attention(const Op& op, DType type) const;

  private:
    void assign_storage();
    /// What generated kernels hand to each other in f32.
    void store_full_outputs();
    /// Layers of an engine with kernels that read and write int8 (fp8: those of transformers alone): products with
    /// weights, attention where it is one kernel of int8, residual and norm, scales, pooling, joining and resizing, and
    /// what is left of pointwise operators. Source: TensorRT, demo/BERT (builder.py, options -imh and -iln); developer
    /// guide, "Working with Quantized Types" and "Layer Support and Restrictions".
    [[nodiscard]] bool has_narrow_kernel(const Op& op) const;
    /// What goes from such layers to such layers alone is int8, moved about too; the rest stays as stored.
    void store_narrow_activations();
    /// Layers that a precision quantises: linear ones and experts, but neither heads nor routers, and under an engine
    /// convolutions to int8. Source: the lists `ignore` of quantised checkpoints (llm-compressor, ModelOpt: "lm_head",
    /// "re:.*mlp.gate$"); TensorRT, developer guide, "Layer Support and Restrictions".
    [[nodiscard]] bool is_quantized(const Op& op) const;

    const Graph& graph_;
    const DeviceSpec& device_;
    const PredictOptions& options_;
    const PrecisionSpec& precision_;
    const LoweringTraits& traits_;
    std::vector<DType> storage_;
    std::vector<autocast::Policy> autocast_policies_;
    /// Does the file say which products are quantised? Then no others are. Source: TensorRT, developer guide, "Explicit
    /// Quantization".
    bool is_quantized_by_file_;
    bool names_quantized_layers_;  ///< the checkpoint's other layers are not quantised
    bool has_narrow_activations_;
};

}  // namespace ftax
