#pragma once

#include <vector>

#include "graphs/aten/aten_call.hpp"

namespace ftax {

/// Appends one canonical operator for an ATen call; the second and later ones of a call get names of their own.
void append_op(Graph& graph, const AtenCall& call, OpKind kind, std::vector<TensorId> inputs,
               std::vector<TensorId> outputs, std::vector<Attribute> attributes = {});

// ATen operators that are several canonical ones. Each returns false, and appends nothing, where the call does not have
// the form that it knows.

/// torch.einsum of one operand or two. Not: three operands, no arrow, a letter twice in one operand.
/// Source: aten/src/ATen/native/Linear.cpp, einsum and sumproduct_pair.
[[nodiscard]] bool append_einsum(Graph& graph, const AtenCall& call);

/// torch.tensordot: the dimensions that it names are summed, those of the first operand come first in the result.
[[nodiscard]] bool append_tensordot(Graph& graph, const AtenCall& call);

/// The fast path of nn.MultiheadAttention without gradients: one product for queries, keys and values, fused attention
/// on views of it, one product for the result. Source: aten/src/ATen/native/transformers/cuda/attention.cu,
/// native_multi_head_attention_cuda.
[[nodiscard]] bool append_native_attention(Graph& graph, const AtenCall& call);

/// The fast path of nn.TransformerEncoderLayer without gradients: attention as above, two norms, two linear layers.
/// Source: aten/src/ATen/native/transformers/transformer.cpp, transformer_encoder_layer_forward.
[[nodiscard]] bool append_encoder_layer(Graph& graph, const AtenCall& call);

/// Indexing with a mask first asks the device how many elements are set, and the host waits for the answer.
void append_mask_lookup(Graph& graph, const AtenCall& call);

}  // namespace ftax
