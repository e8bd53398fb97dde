// A device of PyTorch whose kernels do nothing: what remains of a call is Python, the dispatcher, autograd, the checks
// of shapes and the making of the result, which is what the host pays before a kernel of a GPU would be launched.
// Shapes come from PyTorch's own meta functions, as for CUDA; memory is one buffer that nobody reads. One source for
// PyTorch 1.12 to 2.11. Built by dispatch.py.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/_adaptive_avg_pool2d_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_softmax_meta.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/avg_pool2d_meta.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>
#include <torch/version.h>

namespace {

#define FTAX_SINCE(major, minor) \
    (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
#if FTAX_SINCE(2, 6)
template <class T>
using Optional = std::optional<T>;
using StringView = std::string_view;
#else
template <class T>
using Optional = c10::optional<T>;
using StringView = c10::string_view;
#endif

constexpr auto device_type = c10::DeviceType::PrivateUse1;
constexpr auto key = c10::DispatchKey::PrivateUse1;
alignas(64) char buffer[64];

c10::DataPtr buffer_ptr() {
    return {buffer, nullptr, [](void*) {}, c10::Device(device_type, 0)};
}

struct BufferAllocator final : c10::Allocator {
#if FTAX_SINCE(2, 3)
    c10::DataPtr allocate(size_t) override {
        return buffer_ptr();
    }
    void copy_data(void*, const void*, std::size_t) const override {}
#else
    c10::DataPtr allocate(size_t) const override {
        return buffer_ptr();
    }
#endif
    c10::DeleterFnPtr raw_deleter() const override {
        return [](void*) {};
    }
};
BufferAllocator allocator;

at::Tensor make(at::IntArrayRef sizes, c10::ScalarType dtype) {
    return at::detail::empty_generic(sizes, &allocator, c10::DispatchKeySet(key), dtype, {});
}
at::Tensor make_strided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType dtype) {
    return at::detail::empty_strided_generic(sizes, strides, &allocator, c10::DispatchKeySet(key), dtype);
}
at::Tensor make(at::IntArrayRef sizes, at::IntArrayRef strides, const c10::TensorOptions& options) {
    const auto dtype = c10::typeMetaToScalarType(options.dtype());
    if (!strides.empty()) return make_strided(sizes, strides, dtype);
    at::Tensor result = make(sizes, dtype);
    if (const auto format = options.memory_format_opt()) {
        if (*format != c10::MemoryFormat::Contiguous) result.unsafeGetTensorImpl()->empty_tensor_restride(*format);
    }
    return result;
}

// A structured operator as PyTorch generates it for CUDA, but for the kernel. `iterates`: through a TensorIterator.
template <class Meta, bool iterates, int outputs = 1>
struct Functional final : Meta {
    void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, c10::TensorOptions options,
                            at::DimnameList names) override {
        set_output_raw_strided(i, sizes, strides, options, names);
    }
    void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, c10::TensorOptions options,
                                at::DimnameList names) override {
        results[i] = make(sizes, strides, options);
        if constexpr (iterates) Meta::set_output_raw_strided(i, sizes, strides, options, names);
    }
    const at::Tensor& maybe_get_output(int64_t i) override { return results[i]; }
    std::array<at::Tensor, outputs> results;
};

template <class Meta, bool iterates>
struct InPlace final : Meta {
    explicit InPlace(const at::Tensor& self) : result(self) {}
    void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, c10::TensorOptions options,
                            at::DimnameList names) override {
        if constexpr (iterates) Meta::set_output_raw_strided(i, sizes, strides, options, names);
    }
    void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, c10::TensorOptions options,
                                at::DimnameList names) override {
        if constexpr (iterates) Meta::set_output_raw_strided(i, sizes, strides, options, names);
    }
    const at::Tensor& maybe_get_output(int64_t) override { return result; }
    const at::Tensor& result;
};

template <class Meta, bool iterates, class... Arguments>
at::Tensor run(const Arguments&... arguments) {
    Functional<Meta, iterates> op;
    op.meta(arguments...);
    return std::move(op.results[0]);
}

using at::Scalar;
using at::Tensor;
namespace meta = at::meta;

// Named as the operators are.
namespace ops {

Tensor add(const Tensor& a, const Tensor& b, const Scalar& x) {
    return run<meta::structured_add_Tensor, true>(a, b, x);
}
Tensor sub(const Tensor& a, const Tensor& b, const Scalar& x) {
    return run<meta::structured_sub_Tensor, true>(a, b, x);
}
Tensor mul(const Tensor& a, const Tensor& b) {
    return run<meta::structured_mul_Tensor, true>(a, b);
}
Tensor div(const Tensor& a, const Tensor& b) {
    return run<meta::structured_div_Tensor, true>(a, b);
}
Tensor power(const Tensor& a, const Scalar& x) {
    return run<meta::structured_pow_Tensor_Scalar, true>(a, x);
}
Tensor tanh(const Tensor& a) {
    return run<meta::structured_tanh, true>(a);
}
Tensor rsqrt(const Tensor& a) {
    return run<meta::structured_rsqrt, true>(a);
}
Tensor silu(const Tensor& a) {
    return run<meta::structured_silu, true>(a);
}
Tensor gelu(const Tensor& a, StringView kind) {
    return run<meta::structured_gelu, true>(a, kind);
}
Tensor clamp_min(const Tensor& a, const Scalar& x) {
    return run<meta::structured_clamp_min, true>(a, x);
}
Tensor relu(const Tensor& a) {
    return at::clamp_min(a, 0);
}  // as at::native::relu does on CUDA
Tensor& relu_(Tensor& a) {
    return at::clamp_min_(a, 0);
}

Tensor& add_(Tensor& a, const Tensor& b, const Scalar& x) {
    InPlace<meta::structured_add_Tensor, true>(a).meta(a, b, x);
    return a;
}
Tensor& clamp_min_(Tensor& a, const Scalar& x) {
    InPlace<meta::structured_clamp_min, true>(a).meta(a, x);
    return a;
}

Tensor softmax(const Tensor& a, int64_t dim, bool to_float) {
    return run<meta::structured__softmax, false>(a, dim, to_float);
}
#if FTAX_SINCE(1, 13)
Tensor mean(const Tensor& a, at::OptionalIntArrayRef dim, bool keep, Optional<c10::ScalarType> type) {
#else
Tensor mean(const Tensor& a, at::IntArrayRef dim, bool keep, Optional<c10::ScalarType> type) {
#endif
    return run<meta::structured_mean_dim, false>(a, dim, keep, type);
}
Tensor bmm(const Tensor& a, const Tensor& b) {
    return run<meta::structured_bmm, false>(a, b);
}
Tensor mm(const Tensor& a, const Tensor& b) {
    return run<meta::structured_mm, false>(a, b);
}
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& x, const Scalar& y) {
    return run<meta::structured_addmm, false>(c, a, b, x, y);
}
Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& x, const Scalar& y) {
    return run<meta::structured_baddbmm, false>(c, a, b, x, y);
}
#if FTAX_SINCE(1, 13)
using Tensors = const at::ITensorListRef&;
#else
using Tensors = at::TensorList;
#endif
Tensor cat(Tensors parts, int64_t dim) {
    return run<meta::structured_cat, false>(at::ITensorListRef(parts), dim);
}
Tensor avg_pool2d(const Tensor& a, at::IntArrayRef window, at::IntArrayRef stride, at::IntArrayRef padding, bool ceil,
                  bool count_padding, Optional<int64_t> divisor) {
    return run<meta::structured_avg_pool2d, false>(a, window, stride, padding, ceil, count_padding, divisor);
}
std::tuple<Tensor, Tensor> max_pool2d(const Tensor& a, at::IntArrayRef window, at::IntArrayRef stride,
                                      at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil) {
    Functional<meta::structured_max_pool2d_with_indices, false, 2> op;
    op.meta(a, window, stride, padding, dilation, ceil);
    return {std::move(op.results[0]), std::move(op.results[1])};
}

Tensor empty(at::IntArrayRef sizes, Optional<c10::ScalarType> type, Optional<c10::Layout>, Optional<c10::Device>,
             Optional<bool>, Optional<c10::MemoryFormat> format) {
    return at::detail::empty_generic(sizes, &allocator, c10::DispatchKeySet(key), type.value_or(c10::ScalarType::Float),
                                     format);
}
Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, Optional<c10::ScalarType> type,
                     Optional<c10::Layout>, Optional<c10::Device>, Optional<bool>) {
    return make_strided(sizes, strides, type.value_or(c10::ScalarType::Float));
}
Tensor& copy_(Tensor& self, const Tensor& source, bool) {
    at::TensorIteratorConfig()
        .add_output(self)
        .add_input(source)
        .resize_outputs(false)
        .check_all_same_dtype(false)
        .check_all_same_device(false)
        .build();
    return self;
}

// Operators that CUDA implements without a meta function: the result as they make it.
Tensor index_select(const Tensor& table, int64_t, const Tensor& rows) {
    return make({rows.numel(), table.size(1)}, table.scalar_type());
}
Tensor adaptive_avg_pool2d(const Tensor& a, at::IntArrayRef size) {
    return make({a.size(0), a.size(1), size[0], size[1]}, a.scalar_type());
}
std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& a, at::IntArrayRef normalized, const Optional<Tensor>&,
                                              const Optional<Tensor>&, double) {
    const auto rows = a.dim() - static_cast<int64_t>(normalized.size());
    Tensor result = at::empty_like(a, c10::TensorOptions().memory_format(c10::MemoryFormat::Contiguous));
    const auto shape = a.sizes().slice(0, rows);
    return {std::move(result), make(shape, c10::ScalarType::Float), make(shape, c10::ScalarType::Float)};
}
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& a, const Optional<Tensor>&, const Optional<Tensor>&,
                                              const Optional<Tensor>&, const Optional<Tensor>&, bool, double, double) {
    return {at::empty_like(a), make({0}, c10::ScalarType::Float), make({0}, c10::ScalarType::Float)};
}
// With the operators that the call of cuDNN is made of: the convolution itself is one, the bias another.
Tensor convolution(const Tensor& x, const Tensor& w, const Optional<Tensor>& bias, at::IntArrayRef stride,
                   at::IntArrayRef padding, at::IntArrayRef dilation, bool, at::IntArrayRef, int64_t) {
    std::vector<int64_t> size{x.size(0), w.size(0)};
    for (int64_t i = 2; i < x.dim(); ++i) {
        size.push_back((x.size(i) + 2 * padding[i - 2] - dilation[i - 2] * (w.size(i) - 1) - 1) / stride[i - 2] + 1);
    }
    Tensor result = make(size, x.scalar_type());
    if (bias && bias->defined()) result.add_(bias->reshape({1, -1, 1, 1}));
    return result;
}

}  // namespace ops
}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, c10::impl::NoOpDeviceGuardImpl<device_type>);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", ops::empty);
    m.impl("empty_strided", ops::empty_strided);
    m.impl("copy_", ops::copy_);
    m.impl("view", at::native::view);
    m.impl("as_strided", at::native::as_strided_tensorimpl);
    m.impl("_reshape_alias", at::native::_reshape_alias);
    m.impl("add.Tensor", ops::add);
    m.impl("add_.Tensor", ops::add_);
    m.impl("sub.Tensor", ops::sub);
    m.impl("mul.Tensor", ops::mul);
    m.impl("div.Tensor", ops::div);
    m.impl("pow.Tensor_Scalar", ops::power);
    m.impl("tanh", ops::tanh);
    m.impl("rsqrt", ops::rsqrt);
    m.impl("silu", ops::silu);
    m.impl("gelu", ops::gelu);
    m.impl("clamp_min", ops::clamp_min);
    m.impl("clamp_min_", ops::clamp_min_);
    m.impl("relu", ops::relu);
    m.impl("relu_", ops::relu_);
    m.impl("_softmax", ops::softmax);
    m.impl("mean.dim", ops::mean);
    m.impl("bmm", ops::bmm);
    m.impl("mm", ops::mm);
    m.impl("addmm", ops::addmm);
    m.impl("baddbmm", ops::baddbmm);
    m.impl("cat", ops::cat);
    m.impl("avg_pool2d", ops::avg_pool2d);
    m.impl("max_pool2d_with_indices", ops::max_pool2d);
    m.impl("index_select", ops::index_select);
    m.impl("_adaptive_avg_pool2d", ops::adaptive_avg_pool2d);
    m.impl("native_layer_norm", ops::layer_norm);
    m.impl("native_batch_norm", ops::batch_norm);
    m.impl("convolution_overrideable", ops::convolution);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    c10::SetAllocator(device_type, &allocator);
    m.def("empty", [](const std::vector<int64_t>& sizes, bool half, bool indices) {
        return make(sizes, indices ? c10::ScalarType::Long : half ? c10::ScalarType::Half : c10::ScalarType::Float);
    });
}
