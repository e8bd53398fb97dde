#pragma once

#include <vector>

#include "graphs/aten/aten_call.hpp"

namespace ftax {

/// Appends one canonical operator for an ATen call; the second and later ones of a call get names of their own.
void append_op(Graph& graph, const AtenCall& call, OpKind kind, std::vector<TensorId> inputs,
               std::vector<TensorId> outputs, std::vector<Attribute> attributes = {});

// ATen operators that map to several canonical ones. Each function returns false, and appends nothing, for unsupported
// forms of the call.

/// torch.einsum. Not supported: a missing arrow, a repeated letter in one operand.
/// Source: aten/src/ATen/native/Linear.cpp, einsum and sumproduct_pair.
[[nodiscard]] bool append_einsum(Graph& graph, const AtenCall& call);

/// torch.tensordot: the dimensions that it names are summed, those of the first operand come first in the result.
[[nodiscard]] bool append_tensordot(Graph& graph, const AtenCall& call);

/// torch.logsumexp: the maximum, where it is finite, is subtracted before exp and added after log.
/// Source: aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl (2.5): nine kernels.
[[nodiscard]] bool append_logsumexp(Graph& graph, const AtenCall& call);

/// Source: aten/src/ATen/native/Distance.cpp, cosine_similarity (2.5): ten kernels.
[[nodiscard]] bool append_cosine_similarity(Graph& graph, const AtenCall& call);

/// Losses of an elementwise kernel (Kullback-Leibler: three) and a sum or mean.
/// Source: aten/src/ATen/native/Loss.cpp (2.5).
[[nodiscard]] bool append_loss(Graph& graph, const AtenCall& call);

/// Cross-entropy of rows with the number of a class each: log softmax, then the kernel of nll_loss.
/// Source: aten/src/ATen/native/LossNLL.cpp (2.5).
[[nodiscard]] bool append_cross_entropy(Graph& graph, const AtenCall& call);

/// Source: aten/src/ATen/native/Loss.cpp, triplet_margin_loss (2.5): two distances of three kernels and four more.
[[nodiscard]] bool append_triplet_loss(Graph& graph, const AtenCall& call);

/// What torch.export writes for a part of a tensor of a subclass: the part is the weight, the whole is not stored.
[[nodiscard]] bool append_inner_tensor(Graph& graph, const AtenCall& call);

/// A product with weights of four bits in tiles. Source: aten/src/ATen/native/cuda/int4mm.cu.
[[nodiscard]] bool append_packed_linear(Graph& graph, const AtenCall& call);

/// The fast path of nn.MultiheadAttention without gradients: one product for queries, keys and values, fused attention
/// on views of it, one product for the result. Source: aten/src/ATen/native/transformers/cuda/attention.cu,
/// native_multi_head_attention_cuda.
[[nodiscard]] bool append_native_attention(Graph& graph, const AtenCall& call);

/// The fast path of nn.TransformerEncoderLayer without gradients: attention as above, two norms, two linear layers.
/// Source: aten/src/ATen/native/transformers/transformer.cpp, transformer_encoder_layer_forward.
[[nodiscard]] bool append_encoder_layer(Graph& graph, const AtenCall& call);

/// Indexing with a mask first counts the set elements on the device, and the host waits for the result.
void append_mask_lookup(Graph& graph, const AtenCall& call);

}  // namespace ftax
