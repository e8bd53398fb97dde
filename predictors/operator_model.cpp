#include "predictors/operator_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "ftax/precision.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/statistics.hpp"
#include "predictors/lowering/math_path.hpp"

namespace ftax {
namespace {

/// Half-width of the 90 % interval of log(latency) for a known host.
constexpr double anchored_spread = 0.2;

std::int64_t dimension(const OperatorMeasurement& row, const std::string& name, std::int64_t fallback = 1) {
    return value_or(row.shape, name, fallback);
}

bool has_dimensions(const OperatorMeasurement& row, std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* name) { return row.shape.contains(name); });
}

int element_bytes(Precision precision) {
    return bits_of(storage_type(precision)) / 8;
}

kernels::MemoryClass memory_class(std::string_view op) {
    using enum kernels::MemoryClass;
    if (op == "softmax") return softmax;
    if (op == "ln") return layer_norm;
    if (op == "pow" || op == "powu") return power;
    if (op == "div" || op == "divu" || op == "tanh" || op == "gelu") return transcendental;
    return pointwise;
}

kernels::MemoryShape traffic(const OperatorMeasurement& row, kernels::MemoryClass cls, std::int64_t rows,
                             std::int64_t row_length, int tensors) {
    kernels::MemoryShape shape;
    shape.cls = cls;
    shape.rows = rows;
    shape.row_length = row_length;
    shape.elements = rows * row_length;
    shape.element_bytes = element_bytes(row.precision);
    shape.write_bytes = shape.elements * shape.element_bytes;
    shape.read_bytes = tensors * shape.write_bytes;
    return shape;
}

kernels::GemmShape gemm_shape(const OperatorMeasurement& row) {
    kernels::GemmShape shape;
    shape.batch = dimension(row, "b");
    shape.m = dimension(row, "m");
    shape.n = dimension(row, "n");
    shape.k = dimension(row, "k");
    shape.element_bytes = element_bytes(row.precision);
    shape.linear = row.op == "linear" || row.op == "gemm";
    if (precision_spec(row.precision).quantizes_weights()) shape.operands = row.precision;
    if (row.weights)  // bytes touched between two uses of a copy
        shape.weight_reuse_bytes = real(*row.weights) * weight_bytes(shape) * real(shape.n) * real(shape.k);
    shape.older_library = row.library == "sarathi";  // cuBLAS of 2023
    // A kernel of cuBLAS before Volta, not of cublasLt, is the only sign in neusight_ops.csv that a layer has no bias.
    const bool of_blas = row.kernel.starts_with("sgemm_128x128x8_NT") || row.kernel == "maxwell_sgemm_128x64_tn" ||
                         row.kernel == "maxwell_sgemm_128x128_tn";
    if (shape.linear && (of_blas || dimension(row, "bias") == 0)) shape.library = kernels::BlasLibrary::cublas;
    return shape;
}

/// Memory-bound kernels of language models, for m tokens.
std::optional<kernels::MemoryShape> token_shape(const OperatorMeasurement& row) {
    struct Operator {
        std::string_view name;
        kernels::TokenKernel kernel;
        kernels::MemoryClass cls;
        int reads;       ///< tensors of the result's size
        bool by_vector;  ///< also in libraries of 2023
    };
    using enum kernels::MemoryClass;
    using Token = kernels::TokenKernel;
    static constexpr std::array<Operator, 7> operators{{{"rms_norm", Token::norm, layer_norm, 1, false},
                                                        {"layer_norm", Token::norm, layer_norm, 1, false},
                                                        {"silu_mul", Token::gated, transcendental, 2, false},
                                                        {"gelu", Token::gelu, transcendental, 1, true},
                                                        {"add", Token::add, pointwise, 2, true},
                                                        // The same row of the table every time.
                                                        {"embedding", Token::embedding, gather, 0, false},
                                                        {"rope", Token::rope, pointwise, 1, false}}};
    const auto found = std::ranges::find(operators, row.op, &Operator::name);
    if (found == operators.end()) return std::nullopt;
    const std::int64_t row_length = row.op == "rope"
                                        ? (dimension(row, "heads") + dimension(row, "kv_heads")) * dimension(row, "d")
                                        : dimension(row, "h");
    kernels::MemoryShape shape = traffic(row, found->cls, dimension(row, "m"), row_length, found->reads);
    shape.token = found->kernel;
    // PyTorch's index_select copies an element per thread (indexSelectLargeIndex in Indexing.cu).
    shape.vectorized = found->kernel != Token::embedding && (found->by_vector || row.library != "sarathi");
    // A vLLM row is the mean of the two norms of a profiled layer; the second one adds the residual and writes it back.
    // Source: casys-kaist/LLMServingSim, profiler/core/hooks/timings.py and models/llama.yaml.
    if (found->kernel == Token::norm && row.library.starts_with("vllm")) {
        shape.read_bytes += shape.write_bytes / 2;
        shape.write_bytes += shape.write_bytes / 2;
    }
    return shape;
}

std::optional<kernels::AttentionShape> attention_shape(const OperatorMeasurement& row) {
    const bool mixed = row.op == "attention", decode = row.op == "generation_attention";
    const bool context = row.op == "context_attention";
    if (!mixed && !decode && !context && row.op != "encoder_attention") return std::nullopt;
    if (!has_dimensions(row, {"heads", "kv_heads", "d"})) return std::nullopt;
    kernels::AttentionShape shape;
    shape.heads = dimension(row, "heads");
    shape.kv_heads = dimension(row, "kv_heads");
    shape.head_dim = dimension(row, "d");
    shape.element_bytes = element_bytes(row.precision);
    shape.paged = row.op != "encoder_attention";
    if (!mixed) {
        if (!has_dimensions(row, {"b", decode ? "past" : "s"})) return std::nullopt;
        shape.batch = dimension(row, "b");
        shape.q_length = decode ? 1 : dimension(row, "s");
        shape.kv_length = decode ? dimension(row, "past") + 1 : shape.q_length;
        shape.causal = context;
        return shape;
    }
    // `chunk` new tokens after `past` of one sequence, together with `decodes` sequences of `ctx` tokens.
    const std::int64_t chunk = dimension(row, "chunk", 0), decodes = dimension(row, "decodes", 0),
                       length = dimension(row, "ctx", 0) + 1;
    if (chunk <= 0) {
        if (decodes <= 0) return std::nullopt;
        shape.batch = decodes;
        shape.kv_length = length;
        return shape;
    }
    shape.q_length = chunk;
    shape.kv_length = dimension(row, "past", 0) + chunk;
    shape.causal = true;
    shape.decodes = decodes;
    shape.decode_length = decodes > 0 ? length : 0;
    return shape;
}

/// Experts without a gated layer are Nemotron's: 6 of 128 and 22 of 512. Source: config.json of
/// nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B and of Nemotron 3 Super (mlp_hidden_act "relu2").
std::optional<kernels::MixtureShape> mixture_shape(const OperatorMeasurement& row) {
    if (row.op != "moe" || !has_dimensions(row, {"tokens", "hidden", "inter", "topk", "experts"})) return std::nullopt;
    kernels::MixtureShape shape;
    shape.tokens = dimension(row, "tokens");
    shape.hidden = dimension(row, "hidden");
    shape.width = dimension(row, "inter");
    shape.per_token = dimension(row, "topk");
    shape.experts = dimension(row, "experts");
    const std::int64_t least = std::min({shape.tokens, shape.hidden, shape.width, shape.per_token, shape.experts});
    constexpr std::int64_t most = std::int64_t{1} << 30;  // counts of tokens and experts multiply
    if (least < 1 || std::max(shape.tokens, shape.per_token) > most || shape.per_token > shape.experts)
        return std::nullopt;
    shape.gated = !(shape.per_token == 6 && shape.experts == 128) && !(shape.per_token == 22 && shape.experts == 512);
    shape.element_bytes = element_bytes(row.precision);
    if (precision_spec(row.precision).quantizes_weights()) shape.operands = row.precision;
    shape.untuned_cutlass = row.kernel.find("flashinfer_cutlass") != std::string::npos;
    return shape;
}

std::optional<kernels::ConvShape> conv_shape(const OperatorMeasurement& row) {
    if (!has_dimensions(row, {"b", "cin", "cout", "kernel", "hw"})) return std::nullopt;
    kernels::ConvShape shape;
    shape.batch = dimension(row, "b");
    shape.in_channels = dimension(row, "cin");
    shape.out_channels = dimension(row, "cout");
    shape.groups = dimension(row, "groups");
    shape.in_height = shape.in_width = dimension(row, "hw");
    shape.kernel_h = shape.kernel_w = dimension(row, "kernel");
    shape.stride_h = shape.stride_w = std::max<std::int64_t>(dimension(row, "stride"), 1);
    shape.dilation_h = shape.dilation_w = dimension(row, "dilation");
    const std::int64_t reach = shape.dilation_h * (shape.kernel_h - 1) + 1;
    const std::int64_t padded = shape.in_height + 2 * dimension(row, "pad", 0);
    shape.out_height = shape.out_width = padded < reach ? 0 : (padded - reach) / shape.stride_h + 1;
    shape.element_bytes = element_bytes(row.precision);
    return shape;
}

}  // namespace

std::optional<OperatorShape> operator_shape(const OperatorMeasurement& row) {
    if (const auto shape = attention_shape(row)) return *shape;
    const bool product = is_product(row.op) || row.op == "gemm";
    if (row.mode == "device_hot" && !row.shape.contains("b") && !product) {
        if (const auto shape = mixture_shape(row)) return *shape;
        return token_shape(row);
    }
    if (product) return has_dimensions(row, {"m", "n", "k"}) ? std::optional(gemm_shape(row)) : std::nullopt;
    if (row.op == "conv") return conv_shape(row);
    if (!operator_index(row.op) || !has_dimensions(row, {"b", "h"})) return std::nullopt;
    const bool two_tensors = row.op == "add" || row.op == "mul" || row.op == "div" || row.op == "pow";
    return traffic(row, memory_class(row.op), dimension(row, "b"), dimension(row, "h"), two_tensors ? 2 : 1);
}

KernelModels graph_kernels(KernelModels models) {
    const auto& products = models.parameters.tensor_gemm;
    for (auto& rates : models.rates)
        rates.floor_s = products.floor_s * kernels::tensor_gemm::cycle_scale(rates, products);
    return models;
}

MathPath path_of(const OperatorMeasurement& row, const DeviceSpec& device) {
    const bool has_weights = row.op == "gemm" || row.op == "linear" || row.op == "moe";
    return has_weights ? layer_path(device, row.precision) : math_path(device, row.precision, false);
}

double alone_s(const OperatorMeasurement& row, const OperatorShape& shape, const KernelModels& models, MathPath path) {
    const auto kernel_s = [&](const auto& s) { return kernels::within_power(models.plan(s, path)); };
    const double own_s = std::visit(kernel_s, shape);
    if (const auto* attention = std::get_if<kernels::AttentionShape>(&shape)) {
        constexpr double graph_launch_s = 2.5e-6;  // graph of an encoder row: a single node
        return own_s +
               (attention->paged ? 0 : graph_gap_s + graph_launch_s);  // included in the floor of paged attention
    }
    if (const auto* memory = std::get_if<kernels::MemoryShape>(&shape);
        memory != nullptr && memory->token != kernels::TokenKernel::none) {  // the floor includes gaps
        // Layers of this width add attention and feed-forward results in two kernels.
        const bool twice = row.library == "sarathi" && row.op == "add" && memory->row_length == 2560;
        return twice ? 2 * own_s : own_s;
    }
    const auto* product = std::get_if<kernels::GemmShape>(&shape);
    if (row.op != "gemm" || product == nullptr || !precision_spec(row.precision).quantizes_activations())
        return own_s + graph_gap_s;
    // The kernel that quantises the activations precedes the product.
    return own_s + models.plan(kernels::QuantizeShape{product->m, product->k, row.precision}, path).seconds +
           2 * graph_gap_s;
}

OperatorModel::OperatorModel(const DeviceProfile& profile, const FrameworkProfile& host)
    : device_(profile.device),
      kernels_(profile.device, kernel_parameters(profile)),
      graph_kernels_(ftax::graph_kernels(kernels_)),
      host_(profile_parameters<OperatorHostParameters>(host)) {
    for (auto& rates : kernels_.rates) rates.floor_s = host_.kernel_floor_s;
}

std::optional<OperatorRowPrediction> OperatorModel::predict(const OperatorMeasurement& row) const {
    const auto shape = operator_shape(row);
    if (!shape) return std::nullopt;
    const MathPath path = path_of(row, device_);
    const bool alone = row.mode == "device_hot";
    const auto plan =
        std::visit([&](const auto& s) { return (alone ? graph_kernels_ : kernels_).plan(s, path); }, *shape);
    OperatorRowPrediction result;
    result.bound = plan.bound();
    double width = spread(row.op, host_);
    if (alone) {
        result.latency_s = result.kernel_s = alone_s(row, *shape, graph_kernels_, path);
    } else {
        if (!operator_index(row.op)) return std::nullopt;  // no measured host time
        result.kernel_s = kernels::within_power(plan, host_.power_control_time_s);
        const bool counted = row.op == "conv" && row.order;
        result.host_s = host_.host_scale * (counted ? conv_host_s(real(*row.order), host_.conv_start_s,
                                                                  host_.conv_slope_s, host_.conv_curvature_s)
                                                    : host_.dispatch_s[*operator_index(row.op)]);
        result.latency_s = operator_latency_s(result.host_s, launch_share(row.op, host_), result.kernel_s);
        if (counted) width = host_.product_spread;  // given the host time, its spread is that of a matrix product
        if (result.host_s >= result.kernel_s) result.bound = Bound::host;
    }
    result.low_s = result.latency_s / std::exp(width);
    result.high_s = result.latency_s * std::exp(width);
    return result;
}

void OperatorModel::anchor(std::span<const OperatorMeasurement> rows) {
    std::vector<double> scales;
    for (const OperatorMeasurement& row : rows) {
        const auto predicted = predict(row);
        if (!predicted || predicted->kernel_s * 2 > row.latency_s) continue;
        const double unit_s = predicted->host_s / host_.host_scale;
        scales.push_back(host_of_latency_s(row.latency_s, launch_share(row.op, host_), predicted->kernel_s) / unit_s);
    }
    if (scales.empty()) return;
    host_.host_scale = upper_median(std::move(scales));
    host_.spread = std::min(host_.spread, anchored_spread);
}

}  // namespace ftax
