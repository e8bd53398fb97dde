#include "predictors/operator_model.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "tests/approx.hpp"
#include "tests/measured.hpp"

namespace {

using namespace ftax;

DeviceProfile unfitted(std::string_view device) {
    DeviceProfile profile;
    profile.device = device_spec(device);
    return profile;
}

/// A machine whose calls cost what the model declares.
FrameworkProfile machine(std::vector<Parameter> parameters = {}) {
    return {.framework = "pytorch-eager", .version = "2.1", .host = "test", .parameters = std::move(parameters)};
}

OperatorMeasurement row(std::string op, std::map<std::string, std::int64_t> shape,
                        Precision precision = Precision::fp32) {
    OperatorMeasurement measured;
    measured.op = std::move(op);
    measured.precision = precision;
    measured.shape = std::move(shape);
    return measured;
}

}  // namespace

TEST_CASE("operand bytes of pointwise rows are counted once each") {
    const auto add = std::get<kernels::MemoryShape>(*operator_shape(row("add", {{"b", 100}, {"h", 7}})));
    CHECK(add.read_bytes == 2 * 100 * 7 * 4);
    CHECK(add.write_bytes == 100 * 7 * 4);
    const auto addu =
        std::get<kernels::MemoryShape>(*operator_shape(row("addu", {{"b", 100}, {"h", 7}}, Precision::fp16)));
    CHECK(addu.read_bytes == 100 * 7 * 2);
    CHECK(addu.cls == kernels::MemoryClass::pointwise);
}

TEST_CASE("convolution rows get their output size from padding and stride") {
    const auto conv = std::get<kernels::ConvShape>(*operator_shape(
        row("conv", {{"b", 2}, {"cin", 3}, {"cout", 8}, {"kernel", 7}, {"hw", 224}, {"stride", 2}, {"pad", 3}})));
    CHECK(conv.out_height == 112);
    CHECK(conv.out_width == 112);
}

TEST_CASE("rows without a model or with a dimension missing have no prediction") {
    const OperatorModel model(unfitted("t4"), machine());
    CHECK_FALSE(model.predict(row("cholesky", {{"b", 1}, {"h", 1}})));
    CHECK_FALSE(model.predict(row("softmax", {{"b", 1}})));
    CHECK_FALSE(model.predict(row("bmm", {{"b", 1}, {"m", 4}, {"n", 4}})));
}

TEST_CASE("a short kernel hides in the host's time, a long product adds to what passes before its launch") {
    const OperatorModel model(unfitted("v100-pcie-32gb"), machine());
    const auto add = *model.predict(row("add", {{"b", 10}, {"h", 10}}));
    CHECK(add.latency_s == add.host_s);
    CHECK(add.bound == Bound::host);
    CHECK(add.low_s < add.latency_s);
    CHECK(add.high_s > add.latency_s);
    const auto bmm = [&](std::int64_t size) {
        return *model.predict(row("bmm", {{"b", 10}, {"m", size}, {"n", size}, {"k", size}}));
    };
    CHECK(bmm(32).latency_s == bmm(32).host_s);
    const double before_s = bmm(512).latency_s - bmm(512).kernel_s;
    CHECK(before_s > 0);
    CHECK(before_s < bmm(512).host_s);
    CHECK(bmm(1024).latency_s == approx(before_s + bmm(1024).kernel_s));
}

TEST_CASE("products timed alone are named linear and bmm as well as gemm") {
    const OperatorModel model(device_profile("t4"), machine());
    const auto alone_s = [&](const char* op) {
        auto measured = row(op, {{"m", 1024}, {"n", 1024}, {"k", 1024}});
        measured.mode = "device_hot";
        return model.predict(measured)->latency_s;
    };
    CHECK(alone_s("linear") == alone_s("gemm"));
    CHECK(alone_s("bmm") == approx(alone_s("gemm")).epsilon(0.3));
}

TEST_CASE("a layer's shape or kernel determines that it has no bias") {
    const auto layer = [&](const char* kernel, std::int64_t bias = 1) {
        auto measured = row("linear", {{"b", 1}, {"m", 4096}, {"n", 4096}, {"k", 1024}, {"bias", bias}});
        measured.kernel = kernel;
        return std::get<kernels::GemmShape>(*operator_shape(measured));
    };
    CHECK(layer("").library == kernels::BlasLibrary::cublas_lt);
    CHECK(layer("maxwell_sgemm_64x64_tn").library == kernels::BlasLibrary::cublas_lt);
    CHECK(layer("volta_sgemm_128x64_tn").library == kernels::BlasLibrary::cublas_lt);
    CHECK(layer("maxwell_sgemm_128x64_tn").library == kernels::BlasLibrary::cublas);
    CHECK(layer("sgemm_128x128x8_NT_vec").library == kernels::BlasLibrary::cublas);
    CHECK(layer("", 0).library == kernels::BlasLibrary::cublas);
}

TEST_CASE("a GTX 1080 Ti runs a large layer without a bias as published, one with a bias in more than twice the time") {
    // 128 GFLOP at 10.5 TFLOPS. Source: gist.github.com/ypwhs/a156353cb19e780e323be054821af015 (PyTorch 1.0).
    const OperatorModel model(device_profile("gtx-1080-ti"), machine());
    const auto layer_s = [&](std::int64_t bias) {
        return model.predict(row("linear", {{"m", 4096}, {"n", 4096}, {"k", 4096}, {"bias", bias}}))->kernel_s;
    };
    CHECK(layer_s(0) == test::Measured("layer of 4096 without bias, gtx-1080-ti"));
    CHECK(layer_s(1) > 2 * layer_s(0));
}

TEST_CASE("large rows take half the time in half precision, also without tensor cores") {
    const OperatorModel model(unfitted("p100-pcie-16gb"), machine());
    const double fp32_s = model.predict(row("add", {{"b", 100'000}, {"h", 4096}}))->latency_s;
    const double fp16_s = model.predict(row("add", {{"b", 100'000}, {"h", 4096}}, Precision::fp16))->latency_s;
    CHECK(fp16_s == approx(fp32_s / 2).epsilon(0.02));
}

TEST_CASE("a precision the device lacks is refused") {
    const OperatorModel model(unfitted("p100-pcie-16gb"), machine());
    CHECK_THROWS_AS((void)model.predict(row("bmm", {{"b", 1}, {"m", 64}, {"n", 64}, {"k", 64}}, Precision::bf16)),
                    Error);
}

TEST_CASE("a device in another machine has the kernels of the device and the calls of the machine") {
    const OperatorMeasurement product = row("bmm", {{"b", 10}, {"m", 512}, {"n", 512}, {"k", 512}});
    const auto in_own = *OperatorModel(device_profile("t4"), call_host_profile("t4")).predict(product);
    const auto in_v100s = *OperatorModel(device_profile("t4"), call_host_profile("v100-pcie-32gb")).predict(product);
    CHECK(in_v100s.kernel_s == in_own.kernel_s);
    CHECK(in_v100s.host_s > in_own.host_s);
}

TEST_CASE("anchors give the scale of the machine's host") {
    const OperatorModel truth(unfitted("t4"), machine({{"operator.host_scale", 2.5, 0, "test"}}));
    std::vector<OperatorMeasurement> rows;
    for (const char* op : {"add", "softmax", "bmm", "tanh", "ln"}) {
        rows.push_back(row(op, {{"b", 64}, {"h", 64}, {"m", 8}, {"n", 8}, {"k", 8}}));
        rows.back().latency_s = truth.predict(rows.back())->latency_s;
    }
    rows.push_back(row("add", {{"b", 100'000}, {"h", 4096}}));  // says nothing about the host
    rows.back().latency_s = 1;
    OperatorModel model(unfitted("t4"), machine());
    CHECK(model.predict(rows[0])->latency_s < 0.5 * rows[0].latency_s);
    model.anchor(rows);
    for (std::size_t i = 0; i < 5; ++i) CHECK(model.predict(rows[i])->latency_s == approx(rows[i].latency_s));
}

TEST_CASE("kernels of language models that were timed alone have no host, and the floor of a graph's node") {
    const OperatorModel model(device_profile("h100-sxm5-80gb"), call_host_profile("h100-sxm5-80gb"));
    const auto predict = [&](const char* op, std::map<std::string, std::int64_t> shape) {
        const auto row =
            model.predict({.op = op, .precision = Precision::bf16, .shape = std::move(shape), .mode = "device_hot"});
        REQUIRE(row);
        CHECK(row->host_s == 0);
        CHECK(row->low_s < row->latency_s);
        return row->latency_s;
    };
    for (const char* op : {"rms_norm", "layer_norm", "silu_mul", "gelu", "add", "embedding"}) {
        CAPTURE(op);
        CHECK(predict(op, {{"m", 1}, {"h", 4096}}) < 5e-6);
        CHECK(predict(op, {{"m", 16384}, {"h", 8192}}) > 16384 * 8192 * 2 / 3.4e12);
    }
    CHECK(predict("rope", {{"m", 8192}, {"heads", 32}, {"kv_heads", 8}, {"d", 128}}) > 10e-6);
    CHECK(predict("gemm", {{"m", 4096}, {"n", 4096}, {"k", 4096}}) > 2.0 * 4096 * 4096 * 4096 / 990e12);
    const double prefill =
        predict("context_attention", {{"b", 1}, {"s", 4096}, {"heads", 32}, {"kv_heads", 8}, {"d", 128}});
    const double encoder =
        predict("encoder_attention", {{"b", 1}, {"s", 4096}, {"heads", 32}, {"kv_heads", 8}, {"d", 128}});
    CHECK(prefill < encoder);
    CHECK(predict("generation_attention", {{"b", 1}, {"past", 4095}, {"heads", 32}, {"kv_heads", 8}, {"d", 128}}) <
          prefill);
    // sarathi's layers of 2,560 add attention and feed-forward in two kernels, others in one.
    for (const std::int64_t width : {2048, 2560, 4096}) {
        const auto of = [&](const char* op, const char* library) {
            OperatorMeasurement row{
                .op = op, .precision = Precision::fp16, .shape = {{"m", 64}, {"h", width}}, .mode = "device_hot"};
            row.library = library;
            return model.predict(row)->latency_s;
        };
        CHECK((of("add", "sarathi") > 1.9 * of("add", "")) == (width == 2560));
        CHECK(of("silu_mul", "sarathi") < 1.9 * of("silu_mul", ""));
    }
    CHECK_FALSE(
        model.predict({.op = "moe", .precision = Precision::bf16, .shape = {{"tokens", 1}}, .mode = "device_hot"}));
}

TEST_CASE("attention over a prompt and decoding sequences in one call is made of the calls over either") {
    using Shape = std::map<std::string, std::int64_t>;
    const auto shape_of = [](const char* op, Shape shape) {
        shape.insert({{"heads", 32}, {"kv_heads", 8}, {"d", 128}});
        return operator_shape(row(op, std::move(shape), Precision::bf16));
    };
    const auto attention = [&](const char* op, Shape shape) {
        return std::get<kernels::AttentionShape>(*shape_of(op, std::move(shape)));
    };
    const OperatorModel model(unfitted("h100-sxm5-80gb"), {});
    const auto seconds = [&](const char* op, Shape shape) {
        shape.insert({{"heads", 32}, {"kv_heads", 8}, {"d", 128}});
        OperatorMeasurement measured = row(op, std::move(shape), Precision::bf16);
        measured.mode = "device_hot";
        return model.predict(measured).value().latency_s;
    };
    for (const std::int64_t tokens : {1, 100, 4096}) {
        double before_s = seconds("attention", {{"chunk", tokens}, {"past", 512}});
        for (const std::int64_t sequences : {1, 7, 64}) {
            CAPTURE(tokens);
            CAPTURE(sequences);
            // Decoding sequences alone, each with its own token after those of its context.
            const auto decode = attention("attention", {{"decodes", sequences}, {"ctx", tokens}});
            const auto same = attention("generation_attention", {{"b", sequences}, {"past", tokens}});
            CHECK(decode.batch == same.batch);
            CHECK(decode.q_length == 1);
            CHECK(decode.kv_length == same.kv_length);
            CHECK(decode.causal == same.causal);
            CHECK(seconds("attention", {{"decodes", sequences}, {"ctx", tokens}, {"chunk", 0}}) ==
                  seconds("generation_attention", {{"b", sequences}, {"past", tokens}}));
            // A prompt alone, then after tokens that are cached, then with the others.
            CHECK(seconds("attention", {{"chunk", tokens}}) == seconds("context_attention", {{"b", 1}, {"s", tokens}}));
            const auto later = attention("attention", {{"chunk", tokens}, {"past", 512}});
            CHECK(later.q_length == tokens);
            CHECK(later.kv_length == 512 + tokens);
            CHECK(later.causal);
            CHECK(later.decodes == 0);
            CHECK(later.decode_length == 0);
            const auto mixed =
                attention("attention", {{"chunk", tokens}, {"past", 512}, {"decodes", sequences}, {"ctx", 300}});
            CHECK(mixed.batch == 1);
            CHECK(mixed.kv_length == later.kv_length);
            CHECK(mixed.decodes == sequences);
            CHECK(mixed.decode_length == 301);
            const double both_s =
                seconds("attention", {{"chunk", tokens}, {"past", 512}, {"decodes", sequences}, {"ctx", 300}});
            CHECK(both_s >= before_s);  // more sequences take no less
            before_s = both_s;
        }
    }
    CHECK_FALSE(shape_of("attention", {}));
    CHECK_FALSE(shape_of("attention", {{"ctx", 100}}));
    CHECK_FALSE(shape_of("attention", {{"chunk", 0}, {"decodes", 0}}));
    CHECK_FALSE(shape_of("generation_attention", {{"b", 1}, {"s", 8}}));
    CHECK_FALSE(shape_of("context_attention", {{"b", 1}, {"past", 8}}));
    CHECK_FALSE(operator_shape(row("attention", {{"chunk", 8}, {"heads", 8}, {"d", 64}})));
}
