#include "predictors/kernels/kernel_factor.hpp"

#include <algorithm>

namespace ftax {
namespace {

using namespace kernels;

Factor class_of(const GemmShape&, bool on_tensor_cores) {
    return on_tensor_cores ? Factor::gemm_tensor : Factor::gemm;
}

Factor class_of(const ConvShape& shape, bool on_tensor_cores) {
    const std::int64_t widest = std::max({shape.kernel_d, shape.kernel_h, shape.kernel_w});
    if (shape.groups > 1) {
        if (shape.in_channels > shape.groups) return Factor::conv_grouped;
        return widest > 3 ? Factor::conv_depthwise_wide : Factor::conv_depthwise;
    }
    if (widest == 1) return on_tensor_cores ? Factor::conv_pointwise_tensor : Factor::conv_pointwise;
    return on_tensor_cores ? Factor::conv_spatial_tensor : Factor::conv_spatial;
}

Factor class_of(const AttentionShape&, bool) {
    return Factor::attention;
}

Factor class_of(const MemoryShape& shape, bool) {
    switch (shape.cls) {
        case MemoryClass::pool:
            return Factor::pool;
        case MemoryClass::softmax:
        case MemoryClass::layer_norm:
        case MemoryClass::batch_norm:
        case MemoryClass::group_norm:
            return Factor::normalization;
        default:
            return Factor::elementwise;
    }
}

Factor class_of(const QuantizeShape&, bool) {
    return Factor::elementwise;
}

Factor class_of(const GroupedGemmShape&, bool on_tensor_cores) {
    return on_tensor_cores ? Factor::gemm_tensor : Factor::gemm;
}

Factor class_of(const MixtureShape&, bool) {
    return Factor::gemm_tensor;
}

Factor class_of(const RecurrentShape&, bool) {
    return Factor::gemm;
}

}  // namespace

Factor factor_of(const KernelShape& shape, MathPath path) {
    return std::visit([&](const auto& s) { return class_of(s, is_tensor(path)); }, shape);
}

}  // namespace ftax
