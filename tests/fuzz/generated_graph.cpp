#include "tests/fuzz/generated_graph.hpp"

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ftax/error.hpp"
#include "ftax/graph_builder.hpp"

namespace ftax::fuzz {
namespace {

constexpr std::size_t max_ops = 48;

constexpr std::array<std::string_view, 8> dimensions{"1", "0", "3", "64", "batch", "seq", "batch*seq", "(seq+1)//2"};
constexpr std::array<std::string_view, 22> functions{
    "relu", "add",     "gelu", "div",  "pow", "max",   "mean",    "lstm",     "topk",  "sum",         "tanh",
    "erf",  "nearest", "mul",  "sqrt", "sub", "relu6", "sigmoid", "softplus", "rsqrt", "hardsigmoid", "silu"};
constexpr std::array<std::string_view, 20> attribute_names{
    "stride",      "pad_begin", "pad_end",  "dilation", "kernel",      "groups",           "axes",
    "axis",        "perm",      "function", "cell",     "hidden",      "causal",           "layers",
    "transpose_a", "shifts",    "step",     "scalar",   "transpose_b", "transposed_weight"};
/// Operators that rewrites know by name.
constexpr std::array<std::string_view, 4> sources{"", "aten::chunk", "aten::clone", "aten::view"};
constexpr std::array<std::int64_t, 8> integers{0, 1, 2, 3, -1, 7, 64, 1 << 30};
constexpr std::array dtypes{DType::f32, DType::f16, DType::i64, DType::boolean, DType::f64, DType::i4, DType::string};

class Generator {
  public:
    explicit Generator(Choices& choices) : choices_(choices), net_("generated") {
        live_.push_back(net_.input("image", {"batch", "3", "32", "32"}));
        live_.push_back(net_.input("sequence", {"batch", "seq", "64"}));
        live_.push_back(net_.input("tokens", {"batch", "seq"}, DType::i64));
    }

    Graph run() {
        while (!choices_.empty() && net_.graph().ops.size() < max_ops) {
            try {
                add();
            } catch (const Error&) {
            }
        }
        return net_.finish({live_.back()});
    }

  private:
    /// The newest tensor as often as all others together, so that chains grow long.
    TensorId tensor() {
        const std::size_t back = choices_.below(2 * live_.size());
        return back < live_.size() ? live_[live_.size() - 1 - back] : live_.back();
    }
    std::int64_t width() { return 8 * static_cast<std::int64_t>(choices_.below(64)); }
    Window window() {
        Window result;
        result.kernel = static_cast<std::int64_t>(choices_.below(8));
        result.stride = 1 + static_cast<std::int64_t>(choices_.below(3));
        result.pad = static_cast<std::int64_t>(choices_.below(4));
        result.dilation = 1 + static_cast<std::int64_t>(choices_.below(2));
        result.groups = choices_.of(std::array<std::int64_t, 4>{1, 1, 8, 3});
        return result;
    }
    std::vector<std::string> shape() {
        std::vector<std::string> result(choices_.below(6));
        for (std::string& dim : result) dim = choices_.of(dimensions);
        return result;
    }

    void add() {
        switch (choices_.below(18)) {
            case 0:
                return build(&GraphBuilder::conv, {tensor(), width(), window(), choices_.below(2) == 0});
            case 1:
                return build(&GraphBuilder::linear, {tensor(), width(), choices_.below(2) == 0});
            case 2:
                return build(&GraphBuilder::matmul, {tensor(), tensor()});
            case 3:
                return keep(net_.batch_norm(tensor()));
            case 4:
                return keep(net_.layer_norm(tensor()));
            case 5:
                return build(&GraphBuilder::softmax, {tensor(), choices_.of(integers)});
            case 6:
                return build(&GraphBuilder::embedding, {tensor(), width(), width()});
            case 7:
                return build(&GraphBuilder::max_pool, {tensor(), window()});
            case 8:
                return keep(net_.global_average_pool(tensor()));
            case 9:
                return build(&GraphBuilder::pointwise, {choices_.of(functions), {tensor(), tensor()}});
            case 10:
                return build(&GraphBuilder::pointwise, {choices_.of(functions), {tensor()}});
            case 11:
                return build(&GraphBuilder::concat, {{tensor(), tensor()}, choices_.of(integers)});
            case 12:
                return build(&GraphBuilder::reshape, {tensor(), shape()});
            case 13:
                return build(&GraphBuilder::flatten, {tensor(), choices_.of(integers)});
            case 14:
                return transpose(tensor());
            case 15:
                return build(&GraphBuilder::weight, {"", shape(), choices_.of(dtypes)});
            default:
                return any_operator();
        }
    }

    /// Arguments in braces are drawn from left to right; in a call each compiler has its own order.
    template <class... Types>
    void build(TensorId (GraphBuilder::*method)(Types...), std::tuple<std::decay_t<Types>...> arguments) {
        keep(std::apply([&](const auto&... each) { return (net_.*method)(each...); }, arguments));
    }

    /// Swaps two axes.
    void transpose(TensorId x) {
        const std::size_t rank = net_.shape(x).size();
        std::vector<std::int64_t> perm(rank);
        for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
        if (rank > 0) {
            const std::size_t first = choices_.below(rank);
            std::swap(perm[first], perm[choices_.below(rank)]);
        }
        keep(net_.transpose(x, perm));
    }

    void any_operator() {
        const auto kind = static_cast<OpKind>(choices_.below(op_kind_count));
        std::vector<TensorId> inputs(choices_.below(5));
        for (TensorId& input : inputs) input = choices_.below(8) == 0 ? no_tensor : tensor();
        std::vector<Attribute> attributes(choices_.below(4));
        for (Attribute& attribute : attributes) attribute = any_attribute();
        std::vector<Tensor> outputs(choices_.below(3));
        for (Tensor& output : outputs) output = any_tensor();
        const std::string_view source = choices_.of(sources);
        for (const TensorId output : net_.op(kind, source, inputs, std::move(attributes), outputs)) keep(output);
    }

    Attribute any_attribute() {
        Attribute result{std::string(choices_.of(attribute_names)), choices_.of(integers)};
        switch (choices_.below(4)) {
            case 0:
                result.value = std::string(choices_.of(functions));
                break;
            case 2:
                result.value = static_cast<double>(choices_.of(integers)) / 2;
                break;
            case 1: {
                std::vector<std::int64_t> values(choices_.below(5));
                for (std::int64_t& value : values) value = choices_.of(integers);
                result.value = std::move(values);
                break;
            }
            default:
                break;
        }
        return result;
    }

    Tensor any_tensor() {
        Tensor result;
        result.dtype = choices_.of(dtypes);
        result.known_shape = choices_.below(8) != 0;
        if (!result.known_shape) return result;
        ExpressionPool& pool = net_.graph().expressions;
        for (const std::string& dim : shape()) result.shape.push_back(pool.parse(dim));
        if (choices_.below(4) != 0) return result;
        for (std::size_t i = 0; i < result.shape.size(); ++i) {
            result.strides.push_back(pool.parse(choices_.of(dimensions)));
        }
        return result;
    }

    void keep(TensorId tensor) { live_.push_back(tensor); }

    Choices& choices_;
    GraphBuilder net_;
    std::vector<TensorId> live_;
};

}  // namespace

std::size_t Choices::below(std::size_t limit) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte % limit;
}

Graph generate_graph(Choices& choices) {
    return Generator(choices).run();
}

}  // namespace ftax::fuzz
