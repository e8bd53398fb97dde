#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Gives views (transpose, slice, split, expand, and reshape where strides allow it) the strides that eager PyTorch
/// would; tensors that own their memory stay contiguous. Strides that a file brought are kept.
void propagate_strides(Graph& graph);

/// Gives tensors the strides that eager PyTorch gives them on a CUDA device, where an exporter traced another one:
/// convolutions pass channels-last on, fused attention writes heads last. With `channels_last` images and filters come
/// as NHWC (`.to(memory_format=torch.channels_last)`). What none of this touches keeps its strides.
void lay_out_for_cuda(Graph& graph, bool channels_last);

}  // namespace ftax
