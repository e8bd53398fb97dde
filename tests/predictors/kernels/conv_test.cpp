#include "predictors/kernels/conv.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>

#include "tests/approx.hpp"
#include "tests/start_values.hpp"
using namespace ftax;
using namespace ftax::kernels;

namespace {

ConvParameters declared_parameters() {
    return test::start_values<ConvParameters>();
}

/// Kernels without overhead: arithmetic at full rate, nothing to wait for.
ConvParameters ideal_parameters() {
    ConvParameters p;
    visit_parameters(p, [](std::string_view, double& value, const ParameterSpec&) { value = 1; });
    p.wave_sharpness = p.fill_steps = p.latency_256 = p.latency_128 = p.latency_64 = 0;
    return p;
}

DeviceRates rates_of(Architecture architecture, MathPath path = MathPath::fp32) {
    DeviceRates rates;
    rates.chip = &architecture_spec(architecture, 0, 0);
    rates.path = path;
    rates.sms = 80;
    rates.flops_per_s = path == MathPath::fp32 ? 14e12 : 112e12;
    rates.fp32_flops_per_s = 14e12;
    rates.bandwidth_bytes_per_s = 900e9;
    rates.floor_s = 2e-6;
    rates.boost_clock_hz = 1.5e9;
    return rates;
}

/// A device that never waits for memory.
DeviceRates compute_only(Architecture architecture, MathPath path = MathPath::fp32) {
    auto rates = rates_of(architecture, path);
    rates.bandwidth_bytes_per_s = rates.boost_clock_hz = 1e30;
    rates.floor_s = 0;
    return rates;
}

ConvShape square(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t side, std::int64_t kernel,
                 std::int64_t stride = 1, std::int64_t groups = 1) {
    ConvShape s;
    s.batch = batch, s.in_channels = in, s.out_channels = out, s.groups = groups;
    s.in_height = s.in_width = side, s.out_height = s.out_width = side / stride;
    s.kernel_h = s.kernel_w = kernel, s.stride_h = s.stride_w = stride;
    return s;
}

}  // namespace

TEST_CASE("a 1x1 convolution on an ideal device takes its multiply-adds") {
    // 64 images of 32×32 pixels, 256 → 512 channels: 2 · 65,536 · 256 · 512 operations in 2,048 full 128×128 blocks.
    const auto planned = plan(square(64, 256, 512, 32, 1), compute_only(Architecture::volta), ideal_parameters());
    CHECK(planned.algorithm == name_of(ConvAlgorithm::implicit_gemm));
    CHECK(planned.seconds == approx(2.0 * 65536 * 256 * 512 / 14e12));
    CHECK(planned.bound() == Bound::compute);
}

TEST_CASE("Winograd needs 4/9 and 1/4 of the multiply-adds") {
    const auto shape = square(64, 256, 256, 32, 3);
    const auto counts = conv_counts(shape);
    const double direct_s = 2.0 * (64 * 32 * 32) * 256 * (256 * 9) / 14e12;
    const auto rates = compute_only(Architecture::ampere);
    const auto p = ideal_parameters();
    CHECK(convolution::plan_implicit_gemm(counts, shape, rates, p).seconds == approx(direct_s));
    CHECK(convolution::plan_winograd_fused(counts, shape, rates, p).seconds == approx(direct_s * 4 / 9));
    auto half = shape;
    half.element_bytes = 2;
    CHECK(convolution::plan_winograd_fused(conv_counts(half), half, rates, p).seconds ==
          approx(1.4 * direct_s * 4 / 9));
    CHECK(plan(half, rates, p).algorithm == name_of(ConvAlgorithm::winograd_nonfused));
    CHECK(convolution::plan_with_transforms(counts, shape, rates, p).seconds == approx(direct_s / 4));
    CHECK(plan(shape, rates, p).algorithm == name_of(ConvAlgorithm::winograd_nonfused));
}

TEST_CASE("cuDNN 7 names one algorithm for few channels: implicit GEMM, on Turing the non-fused Winograd algorithm") {
    const auto rates = compute_only(Architecture::pascal);
    const auto p = ideal_parameters();
    ConvShape few = square(64, 64, 64, 32, 3), many = square(64, 256, 256, 32, 3);
    few.library = many.library = ConvLibrary::cudnn7_heuristic;
    CHECK(plan(few, rates, p).algorithm == name_of(ConvAlgorithm::implicit_gemm));
    CHECK(plan(many, rates, p).algorithm == name_of(ConvAlgorithm::winograd_nonfused));
    // Its planes of transformed data make it the slowest of the three where channels are few.
    const auto turing = rates_of(Architecture::turing);
    ConvShape least = square(256, 16, 16, 32, 3);
    least.library = ConvLibrary::cudnn7_heuristic;
    CHECK(plan(least, turing, p).algorithm == name_of(ConvAlgorithm::winograd_nonfused));
    const double named_s = plan(least, turing, p).seconds;
    few.library = least.library = ConvLibrary::cudnn_heuristic;
    CHECK(plan(few, rates, p).algorithm != name_of(ConvAlgorithm::implicit_gemm));
    CHECK(plan(least, turing, p).seconds < named_s);
}

TEST_CASE("if tensor cores are no faster, a TF32 convolution uses Winograd on CUDA cores") {
    auto rates = compute_only(Architecture::ampere, MathPath::tf32);
    const auto p = ideal_parameters();
    const ConvShape winograd = square(64, 256, 256, 32, 3), pointwise = square(64, 256, 256, 32, 1);
    rates.flops_per_s = rates.fp32_flops_per_s;
    CHECK(plan(winograd, rates, p).algorithm == name_of(ConvAlgorithm::winograd_nonfused));
    CHECK(plan(pointwise, rates, p).algorithm == name_of(ConvAlgorithm::tensor_gemm));
    rates.flops_per_s = 8 * rates.fp32_flops_per_s;  // an A100's
    CHECK(plan(winograd, rates, p).algorithm == name_of(ConvAlgorithm::tensor_gemm));
}

TEST_CASE("without room for copies to NHWC a convolution runs on CUDA cores, in f32 by any of their algorithms") {
    const auto p = ideal_parameters();
    ConvShape s = square(64, 256, 256, 32, 3);
    s.workspace_bytes = 1;
    CHECK(plan(s, compute_only(Architecture::ampere, MathPath::tf32), p).algorithm ==
          name_of(ConvAlgorithm::winograd_fused));
    s.element_bytes = 2;
    CHECK(plan(s, compute_only(Architecture::ampere, MathPath::fp16_tensor), p).algorithm ==
          name_of(ConvAlgorithm::implicit_gemm));
}

TEST_CASE("traffic of an algorithm is counted as its kernels move it") {
    auto rates = rates_of(Architecture::ampere);
    rates.flops_per_s = rates.fp32_flops_per_s = 1e30;
    rates.floor_s = 0;
    const auto p = ideal_parameters();
    const auto shape = square(16, 8, 24, 8, 3);
    const auto c = conv_counts(shape);
    const double in = 4 * 16 * 8 * 64, out = 4 * 16 * 24 * 64, weights = 4 * 8 * 24 * 9;
    CHECK(c.in_bytes == in);
    CHECK(c.out_bytes == out);
    CHECK(c.weight_bytes == weights);
    CHECK(convolution::plan_implicit_gemm(c, shape, rates, p).seconds == approx((in + out + weights) / 900e9));
    // The filter is read in 9 and written in 16 planes.
    CHECK(convolution::plan_winograd_fused(c, shape, rates, p).seconds ==
          approx((in + out + weights * 25 / 9) / 900e9));
    // 64 patches of 4×4 become 36 planes of 64 · 8 inputs and 64 · 24 products, each written once and read once.
    const double planes = 4 * 36 * 64 * (8 + 24);
    CHECK(convolution::plan_with_transforms(c, shape, rates, p).seconds ==
          approx((in + out + 2 * planes + (4 + 5) * weights) / 900e9));
}

TEST_CASE("an engine reads filters transformed for Winograd, others transform them in each call") {
    auto rates = compute_only(Architecture::volta);
    rates.bandwidth_bytes_per_s = 900e9;
    rates.floor_s = 2e-6;
    const auto p = ideal_parameters();
    ConvShape shape = square(1, 512, 512, 7, 3);
    const auto c = conv_counts(shape);
    const auto fused = convolution::plan_winograd_fused(c, shape, rates, p);
    shape.library = ConvLibrary::tensorrt;
    const auto own_fused = convolution::plan_winograd_fused(c, shape, rates, p);
    CHECK(own_fused.memory_s - fused.memory_s == approx(c.weight_bytes * (16.0 / 9) / 900e9));
    CHECK(fused.seconds - own_fused.seconds > 2e-6);
}

TEST_CASE("TensorRT has Fourier transforms where cuDNN has F(4x4), and transforms filters in each call") {
    auto rates = compute_only(Architecture::volta);
    const auto p = ideal_parameters();
    ConvShape shape = square(128, 256, 256, 30, 3);
    const double direct_s = 2.0 * (128 * 30 * 30) * 256 * (256 * 9) / 14e12;
    CHECK(plan(shape, rates, p).algorithm == "winograd-nonfused");
    shape.library = ConvLibrary::tensorrt;
    // One tile per map: 32 · 17 frequencies of three multiplications for 30 · 30 outputs of nine.
    CHECK(plan(shape, rates, p).algorithm == "fft");
    CHECK(plan(shape, rates, p).seconds == approx(direct_s * (32 * 17 * 3) / (30 * 30 * 9)));
    // Maps of up to 14 pixels fit into tiles of 16.
    const ConvShape at_14 = [&] {
        ConvShape s = square(128, 256, 256, 14, 3);
        s.library = ConvLibrary::tensorrt;
        return s;
    }();
    const double fft_14_s = convolution::plan_with_transforms(conv_counts(at_14), at_14, rates, p).seconds;
    CHECK(fft_14_s == approx(2.0 * 128 * 256 * 256 * (16 * 9 * 3) / 14e12));
    // Each of the filter's values of 32 · 17 complex planes is written and read, however small the batch.
    rates.bandwidth_bytes_per_s = 900e9;
    shape.batch = 1;
    const double planes = 8.0 * 32 * 17 * 256 * 256;
    CHECK(convolution::plan_with_transforms(conv_counts(shape), shape, rates, p).seconds > 2 * planes / 900e9);
    CHECK(plan(shape, rates, p).algorithm == "winograd-fused");
}

TEST_CASE("int8 kernels take 64 values of the reduction a step") {
    const auto rates = compute_only(Architecture::ampere, MathPath::int8_tensor);
    ConvShape s = square(64, 64, 256, 32, 1);
    s.library = ConvLibrary::tensorrt, s.channels_last = true;
    const auto compute_s = [&](int bytes, std::int64_t channels) {
        s.element_bytes = bytes, s.in_channels = channels;
        return plan(s, rates, ideal_parameters()).compute_s;
    };
    CHECK(compute_s(1, 32) == approx(compute_s(1, 64)));
    CHECK(compute_s(2, 32) == approx(compute_s(2, 64) / 2));
}

TEST_CASE("an engine's tensor-core kernels move operands as fast as others where they copy asynchronously") {
    auto p = ideal_parameters();
    p.engine_bandwidth = 0.5;
    ConvShape s = square(64, 64, 64, 32, 1);
    s.element_bytes = 2, s.channels_last = true;
    const auto slowdown = [&](Architecture architecture) {
        const auto rates = rates_of(architecture, MathPath::fp16_tensor);
        s.library = ConvLibrary::cudnn_heuristic;
        const double other_s = plan(s, rates, p).memory_s;
        s.library = ConvLibrary::tensorrt;
        return plan(s, rates, p).memory_s / other_s;
    };
    CHECK(slowdown(Architecture::turing) == approx(2));
    CHECK(slowdown(Architecture::ampere) == approx(1));
}

TEST_CASE("blocks of the fused Winograd kernel follow the grids that were observed") {
    ConvShape s = square(28, 57, 633, 15, 3);
    CHECK(winograd_fused_blocks(s, architecture_spec(Architecture::pascal, 0, 0).winograd_mosaics) ==
          560 * 2);  // grid 560x2x1 on a P100
    s = square(4, 69, 58, 68, 3);
    CHECK(winograd_fused_blocks(s, architecture_spec(Architecture::volta, 0, 0).winograd_mosaics) == 8 * 9 * 5);
    s = square(52, 1180, 12, 49, 3);
    CHECK(winograd_fused_blocks(s, architecture_spec(Architecture::ampere, 0, 0).winograd_mosaics) ==
          13 * 7 * 13);  // a mosaic of four images
    CHECK(winograd_fused_blocks(s, architecture_spec(Architecture::turing, 0, 0).winograd_mosaics) == 52 * 7 * 4);
}

TEST_CASE("strided, dilated, grouped and transposed convolutions do not run as Winograd") {
    CHECK(is_winograd(square(1, 64, 64, 56, 3)));
    CHECK_FALSE(is_winograd(square(1, 64, 64, 56, 3, 2)));
    CHECK_FALSE(is_winograd(square(1, 64, 64, 56, 5)));
    CHECK_FALSE(is_winograd(square(1, 64, 64, 56, 3, 1, 32)));
    auto s = square(1, 64, 64, 56, 3);
    s.dilation_h = s.dilation_w = 2;
    CHECK_FALSE(is_winograd(s));
    s = square(1, 64, 64, 56, 3);
    s.transposed = true;
    CHECK_FALSE(is_winograd(s));
}

TEST_CASE("depthwise convolutions have their own kernels, groups are independent GEMMs") {
    const auto p = declared_parameters();
    const auto rates = rates_of(Architecture::turing);
    CHECK(plan(square(8, 128, 128, 56, 3, 1, 32), rates, p).algorithm == name_of(ConvAlgorithm::implicit_gemm));
    const auto depthwise = plan(square(64, 96, 96, 112, 3, 1, 96), rates, p);
    CHECK(depthwise.algorithm == name_of(ConvAlgorithm::depthwise));
    // A channel multiplier is still one filter per channel.
    CHECK(plan(square(8, 32, 64, 56, 3, 1, 32), rates, p).algorithm == name_of(ConvAlgorithm::depthwise));
}

TEST_CASE("depthwise convolutions run where PyTorch sends them") {
    using convolution::is_cudnn_depthwise;
    auto half = square(64, 96, 96, 56, 3, 1, 96);
    half.element_bytes = 2;
    CHECK(is_cudnn_depthwise(half, MathPath::fp16_tensor));
    CHECK_FALSE(convolution::is_cudnn_depthwise(half, MathPath::fp32));  // halves stored on Pascal
    auto wide = half;
    wide.kernel_h = wide.kernel_w = 7;
    CHECK_FALSE(convolution::is_cudnn_depthwise(wide, MathPath::fp16_tensor));
    wide.channels_last = true;
    CHECK(is_cudnn_depthwise(wide, MathPath::fp16_tensor));
    auto few = half;
    few.in_channels = few.groups = 16;
    CHECK_FALSE(convolution::is_cudnn_depthwise(few, MathPath::fp16_tensor));
    CHECK_FALSE(convolution::is_cudnn_depthwise(square(64, 96, 96, 56, 3, 1, 96), MathPath::tf32));

    const auto rates = compute_only(Architecture::turing, MathPath::fp16_tensor);
    const auto p = declared_parameters();
    // 64 · 96 · 56² outputs of 9 taps at the rate of PyTorch's own kernel; 49 taps and 7 steps more cost 56 / 16 of
    // them.
    auto own = square(64, 96, 96, 56, 3, 1, 96);
    const double narrow_s = 2.0 * 64 * 96 * 56 * 56 * 9 / (14e12 * p.depthwise_rate);
    CHECK(plan(own, rates, p).seconds == approx(narrow_s));
    own.kernel_h = own.kernel_w = 7;
    CHECK(plan(own, rates, p).seconds == approx(narrow_s * 56 / 16));
}

TEST_CASE("an engine's depthwise kernels take seven taps per SM and clock, four times as many in int8") {
    auto rates = compute_only(Architecture::turing, MathPath::fp16_tensor);
    rates.boost_clock_hz = 1.5e9;
    auto engine = square(64, 96, 96, 56, 5, 1, 96);
    engine.library = ConvLibrary::tensorrt;
    engine.channels_last = true;
    const double outputs = 64.0 * 96 * 56 * 56;
    for (const auto& [bytes, taps] : {std::pair(4, 7), {2, 7}, {1, 28}}) {
        engine.element_bytes = bytes;
        CHECK(plan(engine, rates, declared_parameters()).seconds == approx(outputs * 25 / (taps * 80 * 1.5e9)));
    }
    // Where memory is slow for the SMs, the taps hide behind it.
    rates.bandwidth_bytes_per_s = 10e9;
    const auto slow = plan(engine, rates, declared_parameters());
    CHECK(slow.seconds == approx(slow.memory_s).epsilon(0.01));
}

TEST_CASE("cuDNN's NCHW depthwise kernels leave lanes idle on narrow maps") {
    const auto rates = compute_only(Architecture::turing, MathPath::fp16_tensor);
    const auto p = declared_parameters();
    const auto seconds_per_output = [&](std::int64_t side, bool channels_last) {
        auto half = square(64, 96, 96, side, 3, 1, 96);
        half.element_bytes = 2;
        half.channels_last = channels_last;
        return plan(half, rates, p).seconds / static_cast<double>(side * side);
    };
    CHECK(seconds_per_output(7, false) == approx(seconds_per_output(16, false) * 16 / 7));
    CHECK(seconds_per_output(32, false) == approx(seconds_per_output(16, false)));
    CHECK(seconds_per_output(7, true) == approx(seconds_per_output(16, true)));
}

TEST_CASE("a transposed convolution gathers all taps of each output under cuDNN, its mirror image's under TensorRT") {
    auto up = square(16, 256, 128, 32, 2);
    up.transposed = true;
    up.stride_h = up.stride_w = 2;
    up.out_height = up.out_width = 64;
    const auto rates = compute_only(Architecture::volta);
    const double mirrored_s = 2.0 * (16 * 32 * 32) * 256 * 128 * 4 / 14e12;
    CHECK(plan(up, rates, ideal_parameters()).seconds == approx(4 * mirrored_s));
    up.library = ConvLibrary::tensorrt;
    CHECK(plan(up, rates, ideal_parameters()).seconds == approx(mirrored_s));
}

TEST_CASE("kernels that go tap by tap take 128 bytes of channels at a time in tiles of 64 columns") {
    const auto rates = compute_only(Architecture::ampere, MathPath::tf32);
    const auto p = ideal_parameters();
    auto video = square(50, 32, 64, 32, 3);
    video.in_depth = video.out_depth = 8, video.kernel_d = 3;
    const double full_s = plan(video, rates, p).seconds;
    CHECK(full_s == approx(2.0 * (50 * 8 * 32 * 32) * 64 * 32 * 27 / 112e12));
    video.in_channels = 4, video.out_channels = 16;
    CHECK(plan(video, rates, p).seconds == approx(full_s));
}

TEST_CASE("a strided data gradient skips taps between inputs, before Hopper from 16 channels on") {
    const auto p = ideal_parameters();
    auto up = square(128, 32, 64, 32, 3);
    up.transposed = true;
    up.out_height = up.out_width = 64;
    up.stride_h = up.stride_w = 2;
    const auto seconds_at = [&](Architecture chip, std::int64_t channels, std::int64_t dilation) {
        auto s = up;
        s.in_channels = channels;
        s.dilation_h = s.dilation_w = dilation;
        return plan(s, compute_only(chip, MathPath::tf32), p).seconds;
    };
    const double tap_s = 2.0 * (128 * 64 * 64) * 64 * 32 / 112e12;
    CHECK(seconds_at(Architecture::ampere, 32, 1) == approx(4 * tap_s));  // two of three taps along each side
    CHECK(seconds_at(Architecture::ampere, 8, 1) == approx(9 * tap_s));
    CHECK(seconds_at(Architecture::hopper, 8, 1) == approx(4 * tap_s));
    CHECK(seconds_at(Architecture::ampere, 32, 2) == approx(9 * tap_s));
}

TEST_CASE("channels that do not fill a vector are convolved on CUDA cores") {
    const auto p = declared_parameters();
    auto image = square(32, 3, 64, 224, 7, 2);
    for (const MathPath path : {MathPath::tf32, MathPath::fp16_tensor}) {
        const auto rates = rates_of(Architecture::ampere, path);
        image.element_bytes = path == MathPath::tf32 ? 4 : 2;
        CHECK(plan(image, rates, p).algorithm == name_of(ConvAlgorithm::implicit_gemm));
        auto padded = image;
        padded.in_channels = 4;
        CHECK(plan(padded, rates, p).algorithm == name_of(ConvAlgorithm::tensor_gemm));
        padded = image;
        padded.channels_last = true;
        CHECK(plan(padded, rates, p).algorithm == name_of(ConvAlgorithm::tensor_gemm));
    }
    image.library = ConvLibrary::tensorrt;
    CHECK(plan(image, rates_of(Architecture::ampere, MathPath::fp16_tensor), p).algorithm ==
          name_of(ConvAlgorithm::tensor_gemm));
}

TEST_CASE("tensor cores pay for NCHW activations and for odd channel counts") {
    const auto p = declared_parameters();
    const auto rates = rates_of(Architecture::ampere, MathPath::fp16_tensor);
    auto nchw = square(64, 256, 256, 28, 3);
    nchw.element_bytes = 2;
    auto nhwc = nchw;
    nhwc.channels_last = true;
    const double saved_s = plan(nchw, rates, p).seconds - plan(nhwc, rates, p).seconds;
    // Input, output and filter are each read and written once more, in three more kernels whose tiles are 32 pixels or
    // taps wide: 784 pixels count as 800, 9 taps as 32.
    const double copied_bytes = 4.0 * 2 * 64 * 800 * 256 + 2.0 * 2 * 256 * 256 * 32;
    CHECK(saved_s == approx(copied_bytes / (900e9 * p.layout_bandwidth) + 3 * 2e-6));
    auto tf32 = square(64, 256, 256, 28, 1);
    const auto ampere = rates_of(Architecture::ampere, MathPath::tf32);
    const double direct_s = plan(tf32, ampere, p).seconds;  // cuDNN 9: a matrix product
    tf32.older_library = true;
    const double copied_s = plan(tf32, ampere, p).seconds;
    tf32.channels_last = true;
    CHECK(direct_s == plan(tf32, ampere, p).seconds);
    // TF32 kernels read NHWC but write NCHW: only the input is copied.
    CHECK(copied_s - direct_s == approx(2.0 * 4 * 64 * 28 * 28 * 256 / (900e9 * p.layout_bandwidth) + 2e-6));
    auto odd = nhwc;
    odd.in_channels = 257;
    auto padded = nhwc;
    padded.in_channels = 264;
    const auto fast = compute_only(Architecture::ampere, MathPath::fp16_tensor);
    CHECK(plan(odd, fast, p).seconds == plan(padded, fast, p).seconds);
}

TEST_CASE("cuDNN 9 splits the reduction of a convolution of few tiles, in at most four parts") {
    const auto p = declared_parameters();
    const auto rates = compute_only(Architecture::ampere, MathPath::tf32);
    const auto gain = [&](std::int64_t batch, std::int64_t channels, std::int64_t size) {
        auto shape = square(batch, channels, channels, size, 3);
        shape.channels_last = true;
        const double split_s = plan(shape, rates, p).seconds;
        shape.older_library = true;
        return plan(shape, rates, p).seconds / split_s;
    };
    CHECK(gain(1, 512, 7) > 2);
    CHECK(gain(1, 512, 7) <= 4);
    CHECK(gain(64, 256, 56) == 1);
}

TEST_CASE("cuDNN 9 converts filters of several taps for NCHW tensors, in each call") {
    const auto p = declared_parameters();
    const auto rates = rates_of(Architecture::ampere, MathPath::fp16_tensor);
    const auto added_s = [&](std::int64_t kernel) {
        auto shape = square(64, 64, 2048, 8, kernel);
        shape.element_bytes = 2;
        shape.stride_h = shape.stride_w = 2;  // copied whatever its filter
        const double s = plan(shape, rates, p).seconds;
        shape.older_library = true;
        return s - plan(shape, rates, p).seconds;
    };
    CHECK(added_s(1) == 0);
    CHECK(added_s(3) == approx(2.0 * 2 * 64 * 2048 * 32 / (900e9 * p.layout_bandwidth) + 2e-6).epsilon(0.01));
}

TEST_CASE("Hopper's convolutions reach the full rate in NHWC from 128 channels on") {
    const auto p = declared_parameters();
    const auto hopper = compute_only(Architecture::hopper, MathPath::tf32);
    const auto rate = [&](std::int64_t channels, bool channels_last) {
        auto shape = square(64, 256, channels, 56, 3);
        shape.channels_last = channels_last;
        return static_cast<double>(channels) / plan(shape, hopper, p).compute_s;
    };
    CHECK(rate(128, true) == approx(rate(128, false) / hopper.chip->conv_share));
    CHECK(rate(96, true) == approx(rate(96, false)));
}

TEST_CASE("gathering few channels costs lanes where these compute addresses") {
    const auto p = declared_parameters();
    auto shared = compute_only(Architecture::hopper, MathPath::tf32), apart = shared;
    ArchitectureSpec separate = *shared.chip;
    separate.integer_shares_lanes = false;
    apart.chip = &separate;
    const auto ratio = [&](std::int64_t channels, int bytes) {
        auto shape = square(64, channels, 32, 64, 3);
        shape.element_bytes = bytes;
        return plan(shape, apart, p).compute_s / plan(shape, shared, p).compute_s;
    };
    CHECK(ratio(3, 4) == approx(convolution::gather_share));
    CHECK(ratio(3, 2) == approx(1));
    CHECK(ratio(64, 4) == approx(1));
}

TEST_CASE("halves under a 1x1 filter stay in NCHW where its rows of pixels are aligned") {
    const auto p = declared_parameters();
    const auto rates = rates_of(Architecture::volta, MathPath::fp16_tensor);
    const auto is_copied = [&](ConvShape s) {
        s.element_bytes = 2;
        auto nhwc = s;
        nhwc.channels_last = true;
        return plan(s, rates, p).seconds > plan(nhwc, rates, p).seconds;
    };
    CHECK_FALSE(is_copied(square(64, 256, 256, 28, 1)));  // 784 pixels are 98 times 8
    CHECK_FALSE(is_copied(square(64, 256, 256, 14, 1)));  // 196 are a multiple of 2
    CHECK(is_copied(square(64, 256, 256, 7, 1)));         // 49 are not
    auto older = square(64, 256, 256, 14, 1);
    older.older_library = true;
    CHECK(is_copied(older));                             // 16 bytes before cuDNN 9
    CHECK_FALSE(is_copied(square(64, 256, 256, 1, 1)));  // one pixel: NCHW is NHWC
    CHECK(is_copied(square(64, 256, 256, 56, 1, 2)));    // every second pixel is no matrix
    CHECK(is_copied(square(64, 256, 256, 28, 3)));
}

TEST_CASE("CUDA cores do 1x1 filters in groups, of f32 with tiles of 128 columns") {
    const auto p = ideal_parameters();
    const auto rates = compute_only(Architecture::volta, MathPath::fp16_tensor);
    auto s = square(64, 768, 768, 16, 1, 1, 4);
    s.element_bytes = 2;
    // 64 · 256 pixels × 192 channels from 192, four times: three tiles of 64 columns, or two of 128.
    const double full = 2.0 * 64 * 256 * 192 * 192 * 4 / 14e12;
    CHECK(plan(s, rates, p).seconds == approx(full));
    CHECK(plan(s, rates, p).algorithm == name_of(ConvAlgorithm::implicit_gemm));
    CHECK(plan(s, compute_only(Architecture::pascal), p).seconds == approx(full * 256 / 192));
    s.element_bytes = 4;
    CHECK(plan(s, compute_only(Architecture::volta), p).seconds == approx(full * 256 / 192));
    s.library = ConvLibrary::cudnn_timed;
    CHECK(plan(s, compute_only(Architecture::volta), p).seconds == approx(full));
}

TEST_CASE("TensorRT 8.0 launches each group whose products take long, one by one") {
    const auto p = ideal_parameters();
    auto rates = rates_of(Architecture::volta);
    rates.peak_flops_per_s = 15.7e12;
    const auto planned = [&](std::int64_t batch, bool launches_groups) {
        ConvShape s = square(batch, 512, 512, 14, 3, 1, 32);  // 0.9 MFLOP a group and image
        s.library = ConvLibrary::tensorrt;
        s.launches_groups = launches_groups;
        return plan(s, rates, p);
    };
    CHECK(planned(1, true).seconds == planned(1, false).seconds);
    CHECK(planned(1, true).host_launches == 0);
    CHECK(planned(4, false).host_launches == 0);
    CHECK(planned(4, true).host_launches == approx(32 * 4.7));
    ConvShape one = square(4, 16, 16, 14, 3);
    one.library = ConvLibrary::tensorrt;
    CHECK(planned(4, true).seconds == approx(32 * plan(one, rates, p).seconds));
}

TEST_CASE("tensor cores merge narrow groups whose widths are powers of two") {
    const auto p = ideal_parameters();
    const auto rates = compute_only(Architecture::ampere, MathPath::fp16_tensor);
    const auto seconds = [&](std::int64_t groups, std::int64_t width) {
        auto s = square(64, groups * width, groups * width, 32, 3, 1, groups);
        s.element_bytes = 2;
        s.channels_last = true;
        return plan(s, rates, p).seconds;
    };
    // 8 groups of 4 channels are one product of 32 from 32, in tiles of 32 columns.
    const double block_diagonal = 2.0 * 64 * 1024 * 32 * 32 * 9 / 112e12;
    CHECK(seconds(8, 4) == approx(block_diagonal));
    CHECK(seconds(2, 16) == approx(block_diagonal));
    CHECK(seconds(64, 4) == approx(8 * block_diagonal));
    CHECK(seconds(8, 32) == approx(8 * block_diagonal));
    // Other groups are products of their own; 24 · 9 and 16 · 9 values are summed in steps of 32.
    CHECK(seconds(8, 24) == approx(8 * block_diagonal * 224 / 288));
    CHECK(seconds(9, 16) == approx(9 * block_diagonal * 160 / 288));
}

TEST_CASE("activations that the L2 holds do not come from memory, on tensor cores and in depthwise kernels") {
    auto p = ideal_parameters();
    p.residency = {.resident_footprint = 0.7, .l2_bytes_per_cycle = 20};
    auto rates = rates_of(Architecture::ampere, MathPath::fp16_tensor);
    rates.flops_per_s = rates.fp32_flops_per_s = 1e30;
    rates.floor_s = 0;
    rates.boost_clock_hz = 1.5e9;
    auto pointwise = square(16, 256, 256, 28, 1), depthwise = square(16, 256, 256, 28, 3, 1, 256);
    pointwise.element_bytes = depthwise.element_bytes = 2;
    pointwise.channels_last = depthwise.channels_last = true;
    const double activations = 2.0 * 2 * 16 * 28 * 28 * 256, weights = 2.0 * 256 * 256;
    const double l2_bytes_per_s = 20 * 80 * 1.5e9;
    rates.l2_bytes = 1e9;
    CHECK(plan(pointwise, rates, p).seconds == approx(activations / l2_bytes_per_s + weights / 900e9).epsilon(1e-3));
    CHECK(plan(depthwise, rates, p).seconds == approx(activations / l2_bytes_per_s).epsilon(1e-3));
    rates.l2_bytes = 1e5;
    CHECK(plan(pointwise, rates, p).seconds == approx((activations + weights) / 900e9).epsilon(1e-3));
    CHECK(plan(depthwise, rates, p).seconds == approx(activations / 900e9).epsilon(1e-3));
}

TEST_CASE("more work never takes less time") {
    const auto p = declared_parameters();
    for (const auto architecture : {Architecture::pascal, Architecture::volta, Architecture::turing,
                                    Architecture::ampere, Architecture::ada, Architecture::hopper}) {
        for (const auto path : {MathPath::fp32, MathPath::fp16_tensor}) {
            const auto rates = rates_of(architecture, path);
            for (const std::int64_t kernel : {1, 3, 7}) {
                double last = 0;
                for (std::int64_t batch = 16; batch <= 1024; batch *= 2) {
                    const double time = plan(square(batch, 64, 192, 28, kernel), rates, p).seconds;
                    CHECK(time > last);
                    last = time;
                }
            }
        }
    }
}

TEST_CASE("a faster device is never slower") {
    const auto p = declared_parameters();
    for (const std::int64_t kernel : {1, 3, 5}) {
        for (const std::int64_t channels : {3, 20, 64, 100, 512}) {
            const auto shape = square(8, channels, 2 * channels, 14, kernel);
            const auto rates = rates_of(Architecture::turing);
            auto faster = rates;
            faster.flops_per_s *= 1.1;
            faster.fp32_flops_per_s *= 1.1;
            auto wider = rates;
            wider.bandwidth_bytes_per_s *= 1.1;
            CHECK(plan(shape, faster, p).seconds <= plan(shape, rates, p).seconds);
            CHECK(plan(shape, wider, p).seconds <= plan(shape, rates, p).seconds);
        }
    }
}

TEST_CASE("parameters are declared once, within bounds and with a source") {
    ConvParameters p;
    std::set<std::string> names;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        CHECK(names.emplace(name).second);
        CHECK(spec.lower < spec.initial);
        CHECK(spec.initial < spec.upper);
        CHECK(spec.lower > 0);
        CHECK_FALSE(spec.source.empty());
    });
    CHECK((names.size() + 2) * sizeof(double) == sizeof p - sizeof p.residency);  // two are of tensor_gemm
}

TEST_CASE("tiles of few rows cost as much as tiles of few columns") {
    const auto rates = rates_of(Architecture::volta);
    const auto p = declared_parameters();
    for (const double narrow : {0.5, 0.8, 1.0}) {
        const auto seconds = [&](Tile tile, double rows, double columns) {
            return convolution::cheapest_tile(std::span(&tile, 1), 1, rows, columns, 512, 8, rates, 1, p, narrow)
                .compute_s;
        };
        for (const auto& [few, many] : {std::pair(64, 128), {32, 128}, {64, 256}}) {
            const Tile tall(many, few, 256), wide(few, many, 256);
            CHECK(seconds(tall, 8192, 4096) == approx(seconds(wide, 4096, 8192)));
        }
    }
}

TEST_CASE("cuDNN runs depthwise convolutions in halves, in NCHW only square ones of 32 channels and more") {
    ConvShape s = square(1, 32, 32, 28, 3, 1, 32);
    s.element_bytes = 2;
    const auto runs = [&](auto change) {
        ConvShape changed = s;
        change(changed);
        return convolution::is_cudnn_depthwise(changed, MathPath::fp16_tensor);
    };
    CHECK(runs([](ConvShape&) {}));
    CHECK_FALSE(convolution::is_cudnn_depthwise(s, MathPath::fp32));
    for (const std::int64_t side : {1, 2, 3, 4, 5, 6, 7})
        CHECK(runs([&](ConvShape& c) { c.kernel_h = c.kernel_w = side; }) == (side == 1 || side == 3 || side == 5));
    const std::vector<void (*)(ConvShape&)> others{
        [](ConvShape& c) { c.in_channels = 31; }, [](ConvShape& c) { c.kernel_w = 5; },
        [](ConvShape& c) { c.dilation_h = 2; }, [](ConvShape& c) { c.dilation_w = 2; },
        [](ConvShape& c) { c.element_bytes = 4; }};
    for (std::size_t i = 0; i < others.size(); ++i) {
        CHECK_FALSE(runs(others[i]));
        const bool halves = i + 1 < others.size();
        CHECK(runs([&](ConvShape& c) { others[i](c), c.channels_last = true; }) == halves);
    }
}
