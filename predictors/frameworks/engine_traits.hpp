#pragma once

#include "predictors/lowering/lowering.hpp"

namespace ftax {

/// How engines of TensorRT run a graph, whoever calls them.
inline constexpr LoweringTraits engine_traits{.views_cost_host = false,
                                              .views_move_data = true,
                                              .module_calls = false,
                                              .separate_conv_bias = false,
                                              .conv_library = kernels::ConvLibrary::tensorrt,
                                              .half_accumulation = true,
                                              .channels_last = true,
                                              .windows_stream = true,
                                              .cublas_lt_limit = no_cublas_lt_limit,
                                              .batched_matmul_copies = false,
                                              .engine = true,
                                              .host_kind = HostKind::engine};

}  // namespace ftax
