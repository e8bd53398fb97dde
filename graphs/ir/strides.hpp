#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Sets the strides of views (transpose, slice, split, expand, and reshape if strides allow it) as in eager PyTorch;
/// tensors that own their memory stay contiguous. Strides from the file are kept.
void propagate_strides(Graph& graph);

/// Sets the strides of eager PyTorch on a CUDA device for graphs traced on another device: convolutions propagate
/// channels-last, fused attention writes heads last. With `channels_last`, images and filters are NHWC
/// (`.to(memory_format=torch.channels_last)`). Other tensors keep their strides.
void lay_out_for_cuda(Graph& graph, bool channels_last);

}  // namespace ftax
