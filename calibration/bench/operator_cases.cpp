#include "calibration/bench/operator_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"

namespace ftax::bench {
namespace {

using Shape = std::map<std::string, std::int64_t>;

/// The network of each operator; <name> stands for a dimension.
constexpr std::pair<std::string_view, std::string_view> networks[] = {
    {"conv", R"(input %x f32[<b>,<cin>,<hw>,<hw>]
weight %w f32[<cout>,<cin of a group>,<kernel>,<kernel>]
%y f32[<b>,<cout>,<out>,<out>] = conv(%x, %w) {stride=[<stride>,<stride>] pad_begin=[<pad>,<pad>] pad_end=[<pad>,<pad>] dilation=[1,1] groups=<groups>} "aten::conv2d"
)"},
    {"maxpool", R"(input %x f32[<b>,<c>,<hw>,<hw>]
%y f32[<b>,<c>,<out>,<out>] = pool(%x) {function="max" kernel=[<kernel>,<kernel>] stride=[<stride>,<stride>] pad_begin=[<pad>,<pad>] pad_end=[<pad>,<pad>]} "aten::max_pool2d"
)"},
    // A transposed activation made contiguous, as between the heads of attention.
    {"copy", R"(input %x f32[<b>,<s>,<heads>,<d>]
%t f32[<b>,<heads>,<s>,<d>]{<s*heads*d>,<d>,<heads*d>,1} = transpose(%x) {perm=[0,2,1,3]} "aten::permute"
%y f32[<b>,<heads>,<s>,<d>] = copy(%t) "aten::contiguous"
)"},
    {"linear", R"(input %x f32[<m>,<k>]
weight %w f32[<n>,<k>]
weight %b f32[<n>]
%y f32[<m>,<n>] = linear(%x, %w, %b) "aten::linear"
)"},
    {"bmm", R"(input %x f32[<b>,<m>,<k>]
input %z f32[<b>,<k>,<n>]
%y f32[<b>,<m>,<n>] = matmul(%x, %z) "aten::matmul"
)"},
    // Queries of `s` tokens over keys of `kv` (default: the same tokens); several heads may share one of `kv_heads`.
    {"attention", R"(input %q f32[<b>,<heads>,<s>,<d>]
input %k f32[<b>,<kv_heads>,<kv>,<d>]
input %v f32[<b>,<kv_heads>,<kv>,<d>]
%y f32[<b>,<heads>,<s>,<d>] = attention(%q, %k, %v) {causal=<causal>} "aten::scaled_dot_product_attention"
)"},
    // Rotary embedding as language models write it in PyTorch: x·cos + rotate_half(x)·sin.
    {"rope", R"(input %x f32[<b>,<heads>,<s>,<d>]
input %c f32[<s>,<d>]
input %n f32[<s>,<d>]
%1 f32[<b>,<heads>,<s>,<d>] = pointwise(%x, %c) {function="mul"} "aten::mul"
%2 f32[<b>,<heads>,<s>,<d/2>]{<s*heads*d>,<s*d>,<d>,1} = slice(%x) {axis=3} "aten::slice"
%3 f32[<b>,<heads>,<s>,<d/2>]{<s*heads*d>,<s*d>,<d>,1} = slice(%x) {axis=3} "aten::slice"
%4 f32[<b>,<heads>,<s>,<d/2>] = pointwise(%3) {function="neg"} "aten::neg"
%5 f32[<b>,<heads>,<s>,<d>] = concat(%4, %2) {axis=3} "aten::cat"
%6 f32[<b>,<heads>,<s>,<d>] = pointwise(%5, %n) {function="mul"} "aten::mul"
%y f32[<b>,<heads>,<s>,<d>] = pointwise(%1, %6) {function="add"} "aten::add"
)"},
    {"rmsnorm", R"(input %x f32[<b>,<h>]
weight %w f32[<h>]
%y f32[<b>,<h>] = rms_norm(%x, %w) {axis=1} "aten::rms_norm"
)"},
    {"silu_mul", R"(input %x f32[<b>,<h>]
input %z f32[<b>,<h>]
%s f32[<b>,<h>] = pointwise(%x) {function="silu"} "aten::silu"
%y f32[<b>,<h>] = pointwise(%s, %z) {function="mul"} "aten::mul"
)"},
    {"softmax", "input %x f32[<b>,<h>]\n%y f32[<b>,<h>] = softmax(%x) {axis=1} \"aten::softmax\"\n"},
    {"ln", R"(input %x f32[<b>,<h>]
weight %w f32[<h>]
weight %b f32[<h>]
%y f32[<b>,<h>] = layer_norm(%x, %w, %b) {axis=1} "aten::layer_norm"
)"},
    {"bn", R"(input %x f32[<b>,<c>,<hw>,<hw>]
weight %w f32[<c>]
weight %b f32[<c>]
weight %m f32[<c>]
weight %v f32[<c>]
%y f32[<b>,<c>,<hw>,<hw>] = batch_norm(%x, %w, %b, %m, %v) "aten::batch_norm"
)"},
    {"avgpool", R"(input %x f32[<b>,<c>,<hw>,<hw>]
%y f32[<b>,<c>,1,1] = global_pool(%x) {function="average"} "aten::adaptive_avg_pool2d"
)"},
    {"embedding", R"(input %i i64[<b>]
weight %w f32[<rows>,<h>]
%y f32[<b>,<h>] = embedding(%w, %i) "aten::embedding"
)"},
    {"cat", R"(input %x f32[<b>,<h>]
input %z f32[<b>,<h>]
%y f32[<b>,<2*h>] = concat(%x, %z) {axis=1} "aten::cat"
)"}};

/// The dimensions of a case with those that follow from them.
Shape completed(Shape d) {
    for (const auto& [name, usual] : {std::pair{"groups", 1}, {"stride", 1}, {"pad", 0}, {"causal", 0}})
        d.emplace(name, usual);
    if (d.contains("kernel") && d.contains("hw")) d["out"] = (d["hw"] + 2 * d["pad"] - d["kernel"]) / d["stride"] + 1;
    if (d.contains("cin")) d["cin of a group"] = d["cin"] / d["groups"];
    if (d.contains("heads")) d.emplace("kv_heads", d["heads"]);
    if (d.contains("s")) d.emplace("kv", d["s"]);
    if (d.contains("h")) d["2*h"] = 2 * d["h"];
    if (!d.contains("s") || !d.contains("heads") || !d.contains("d")) return d;
    d["d/2"] = d["d"] / 2, d["s*d"] = d["s"] * d["d"], d["heads*d"] = d["heads"] * d["d"];
    d["s*heads*d"] = d["s"] * d["heads*d"];
    return d;
}

/// Writes the dimensions into a text.
std::string filled(std::string_view text, const OperatorCase& operator_case) {
    const Shape dimensions = completed(operator_case.shape);
    std::string result;
    for (std::size_t at = 0, end = 0; end != text.npos; at = end + 1) {
        const std::size_t open = text.find('<', at);
        result += text.substr(at, open - at);
        end = open == text.npos ? open : text.find('>', open);
        if (end == text.npos) break;
        const std::string name(text.substr(open + 1, end - open - 1));
        const auto found = dimensions.find(name);
        if (found == dimensions.end())
            throw Error(ErrorCode::usage, fmt::format("{} without {}", operator_case.op, name));
        result += fmt::format("{}", found->second);
    }
    return result;
}

/// One operator, or a chain of them ("times"): what a chain takes more than its links is the forward call.
std::string pointwise_text(const OperatorCase& operator_case) {
    const std::string& op = operator_case.op;
    const bool two = op == "add" || op == "mul" || op == "div";
    const bool scalar = op == "addu" || op == "mulu" || op == "divu";
    const std::string function = scalar ? op.substr(0, 3) : op;
    std::string text = two ? "input %x f32[<b>,<h>]\ninput %z f32[<b>,<h>]\n" : "input %x f32[<b>,<h>]\n";
    const auto repeated = operator_case.shape.find("times");
    const std::int64_t times = repeated == operator_case.shape.end() ? 1 : repeated->second;
    std::string last = "%x";
    for (std::int64_t i = 1; i <= times; ++i) {
        const std::string result = i == times ? "%y" : fmt::format("%y{}", i);
        text += fmt::format("{} f32[<b>,<h>] = pointwise({}{}) {{function=\"{}\"}} \"aten::{}{}\"\n", result, last,
                            two ? ", %z" : "", function, function, op == "relu" ? "_" : "");
        last = result;
    }
    return text;
}

std::string body(const OperatorCase& operator_case) {
    const std::string& op = operator_case.op;
    for (const auto& [name, text] : networks) {
        if (name != op) continue;
        std::string network = filled(text, operator_case);
        constexpr std::string_view without_mask = "{causal=0} ";
        if (const std::size_t at = network.find(without_mask); at != network.npos)
            network.erase(at, without_mask.size());
        return network;
    }
    static constexpr std::string_view pointwise[] = {"add",  "mul",  "div",  "addu", "mulu",   "divu",
                                                     "relu", "tanh", "gelu", "exp",  "sigmoid"};
    if (std::find(std::begin(pointwise), std::end(pointwise), op) != std::end(pointwise))
        return filled(pointwise_text(operator_case), operator_case);
    throw Error(ErrorCode::usage, fmt::format("no operator is called {}", op));
}

void add(std::vector<OperatorCase>& cases, std::string_view op, std::string_view names,
         const std::vector<std::int64_t>& sizes) {
    OperatorCase one{std::string(op), {}};
    std::istringstream words{std::string(names)};
    std::size_t at = 0;
    for (std::string name; words >> name;) one.shape[name] = sizes.at(at++);
    cases.push_back(std::move(one));
}

/// Cases of one operator: the names of its dimensions, and their sizes, cases apart by commas.
void add(std::vector<OperatorCase>& cases, std::string_view op, std::string_view names, std::string_view rows) {
    std::istringstream lines{std::string(rows)};
    for (std::string line; std::getline(lines, line, ',');) {
        std::istringstream numbers(line);
        std::vector<std::int64_t> sizes;
        for (std::int64_t size = 0; numbers >> size;) sizes.push_back(size);
        add(cases, op, names, sizes);
    }
}

constexpr std::string_view conv_names = "b cin cout kernel hw stride pad";
constexpr std::string_view grouped_names = "b cin cout groups kernel hw stride pad";

/// Rows × row lengths for operators over rows.
void add_rows(std::vector<OperatorCase>& cases, std::initializer_list<const char*> ops, std::string_view rows) {
    for (const char* op : ops) add(cases, op, "b h", rows);
}

/// Products that fill one or two waves of 128×128 tiles but for one tile, exactly, and with one tile too many.
void add_wave_edges(std::vector<OperatorCase>& cases, std::int64_t sms) {
    constexpr std::int64_t tile = 128;
    for (const std::int64_t waves : {1, 2}) {
        for (const std::int64_t beside : {-1, 0, 1}) {
            const std::int64_t tiles = waves * sms + beside;
            cases.push_back({"linear", {{"m", tiles * tile}, {"n", tile}, {"k", 1024}}});
            cases.push_back({"bmm", {{"b", tiles}, {"m", tile}, {"n", tile}, {"k", 64}}});
        }
    }
}

/// What language models run beside the shapes above: products beyond 2^37 multiply-adds, prefill up to 8,192 tokens,
/// decoding over a cache, with eight heads for the keys (Llama 3 8B's shape), and what stands between the products.
void add_language_models(std::vector<OperatorCase>& cases) {
    add(cases, "linear", "m n k",
        "8192 8192 8192, 16384 8192 8192, 8192 28672 8192, 16384 14336 4096, 32768 4096 4096");
    for (const std::int64_t s : {1024, 2048, 4096, 8192}) {
        cases.push_back({"attention", {{"b", 1}, {"heads", 32}, {"kv_heads", 8}, {"s", s}, {"d", 128}, {"causal", 1}}});
        cases.push_back({"attention", {{"b", 1}, {"heads", 32}, {"s", s}, {"d", 128}, {"causal", 1}}});
        cases.push_back({"rope", {{"b", 1}, {"heads", 32}, {"s", s}, {"d", 128}}});
    }
    for (const std::int64_t b : {1, 8, 64}) {
        for (const std::int64_t kv : {512, 2048, 8192, 32768}) {
            if (b * kv > 1LL << 18) continue;
            add(cases, "attention", "b heads kv_heads s kv d", {b, 32, 8, 1, kv, 128});
            cases.push_back({"attention", {{"b", b}, {"heads", 32}, {"s", 1}, {"kv", kv}, {"d", 128}}});
        }
        cases.push_back({"rope", {{"b", b}, {"heads", 32}, {"s", 1}, {"d", 128}}});
    }
    add_rows(cases, {"rmsnorm"}, "1 4096, 64 4096, 2048 4096, 8192 4096, 8192 8192");
    add_rows(cases, {"silu_mul"}, "1 14336, 64 14336, 2048 14336, 8192 14336");
}

}  // namespace

Graph operator_graph(const OperatorCase& operator_case) {
    return parse_text_graph("graph " + operator_case.op + "\n" + body(operator_case) + "output %y\n", operator_case.op);
}

std::string shape_text(const OperatorCase& operator_case) {
    std::string text;
    for (const auto& [name, value] : operator_case.shape) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    }
    return text;
}

std::int64_t weight_bytes(const Graph& graph) {
    const BoundShapes bound = bind(graph, {});
    std::int64_t bytes = 0;
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::weight) bytes += byte_count(tensor, bound);
    }
    return bytes;
}

int weight_sets(const Graph& graph, Precision precision, const DeviceSpec& device) {
    constexpr double small_bytes = 25 << 10, most_of_small = 64, most = 1 << 16;  // millions of tensors take minutes
    const bool half = precision == Precision::fp16 || precision == Precision::bf16;
    const double bytes = static_cast<double>(weight_bytes(graph)) / (half ? 2 : 1);
    if (bytes == 0) return 1;
    return static_cast<int>(
        std::clamp(std::ceil(2 * device.l2_bytes / bytes), 2.0, bytes < small_bytes ? most_of_small : most));
}

std::vector<OperatorCase> cpu_operators(bool quick) {
    std::vector<OperatorCase> cases;
    add(cases, "linear", "m n k",
        "1 16 16, 1 1000 512, 4 1000 2048, 16 512 512, 64 768 768, 128 640 640, 128 1024 256, 128 2560 640, "
        "128 640 2560, 256 1024 1024, 384 512 2048, 512 768 768, 768 1536 512, 1024 640 640, 8 768 768, 1 1024 1024, "
        "32 2048 512");
    add(cases, "bmm", "b m n k",
        "1 8 8 8, 12 64 64 64, 12 128 128 64, 12 128 64 128, 48 128 128 64, 96 128 64 128, 64 96 96 64, "
        "16 256 256 64, 16 256 64 256");
    add(cases, "conv", conv_names,
        "1 16 16 1 7 1 0, 1 3 64 7 224 2 3, 1 3 32 3 224 2 1, 4 3 48 5 128 2 2, 1 32 32 3 112 1 1, 1 48 48 3 56 1 1, "
        "2 64 64 3 56 1 1, 1 96 96 3 28 1 1, 4 128 128 3 28 1 1, 1 192 192 3 14 1 1, 2 256 256 3 14 1 1, "
        "1 384 384 3 7 1 1, 4 512 512 3 7 1 1, 1 64 128 3 56 2 1, 2 192 384 3 14 2 1, 1 16 64 3 54 1 1, "
        "1 64 256 3 13 1 1, 4 32 128 3 27 1 1, 1 24 96 1 56 1 0, 1 96 24 1 56 1 0, 1 64 192 1 56 1 0, "
        "2 192 64 1 56 1 0, 1 128 512 1 28 1 0, 4 512 128 1 28 1 0, 1 256 1024 1 14 1 0, 2 1024 256 1 14 1 0, "
        "1 512 1536 1 7 1 0, 4 1536 512 1 7 1 0, 1 96 16 1 54 1 0, 1 32 192 1 28 1 0, 1 192 32 1 28 1 0, "
        "4 96 576 1 14 1 0, 4 576 96 1 14 1 0, 1 320 1280 1 7 1 0, 1 256 512 1 56 2 0, 1 512 1000 1 13 1 0, "
        "8 64 64 1 28 1 0, 8 32 96 1 56 1 0");
    add(cases, "conv", grouped_names,
        "1 32 32 32 3 112 1 1, 1 96 96 96 3 112 2 1, 1 128 128 128 3 56 1 1, 4 192 192 192 3 28 1 1, "
        "1 384 384 384 3 14 1 1, 4 512 512 512 3 14 2 1, 1 960 960 960 3 7 1 1, 8 144 144 144 3 28 1 1, "
        "1 128 128 32 3 28 1 1");
    add_rows(cases, {"add", "relu"}, "1 16, 64 1024, 256 1024, 1024 1024, 4096 1024, 12288 512");
    add_rows(cases, {"div", "gelu", "tanh"}, "1 16, 64 1024, 512 1024, 1024 3072");
    add_rows(cases, {"mulu", "mul"}, "64 512, 1024 768");
    add_rows(cases, {"softmax"}, "1 16, 512 128, 1536 128, 6144 128, 1024 512");
    add_rows(cases, {"ln"}, "1 16, 128 768, 512 768, 1024 1024, 4096 256");
    add(cases, "bn", "b c hw", "1 16 7, 1 64 112, 1 256 56, 4 64 56, 4 256 28, 1 1024 14, 4 512 7, 8 96 56, 8 64 112");
    add(cases, "maxpool", "b c hw kernel stride pad",
        "1 8 8 3 2 1, 1 64 112 3 2 1, 1 96 109 3 2 0, 4 256 54 3 2 0, 4 128 28 2 2 0");
    add(cases, "avgpool", "b c hw", "1 16 7, 1 512 7, 4 2048 7, 4 1000 13");
    add(cases, "embedding", "b rows h", "1 16 16, 128 30000 768, 1024 30000 768");
    add_rows(cases, {"cat"}, "1 16, 1 200000, 4 400000, 8 800000");
    add(cases, "copy", "b s heads d", "1 4 4 4, 1 128 12 64, 4 128 12 64, 8 256 8 64");
    if (!quick) {
        add(cases, "linear", "m n k", "2048 2048 2048, 1024 3072 768, 1024 768 3072, 1 4096 4096");
        add(cases, "conv", conv_names, "8 64 64 3 56 1 1, 8 256 256 3 14 1 1, 8 512 2048 1 7 1 0, 8 64 256 1 56 1 0");
        add_rows(cases, {"add", "relu", "gelu"}, "16384 1024");
    }
    return cases;
}

std::vector<OperatorCase> dispatch_operators() {
    std::vector<OperatorCase> cases;
    add(cases, "linear", "m n k", "1 64 64, 8 64 64");
    add(cases, "bmm", "b m n k", "12 32 32 64");
    add(cases, "conv", conv_names, "1 64 64 3 7 1 1, 2 64 64 1 7 1 0");
    add(cases, "conv", grouped_names, "1 64 64 64 3 7 1 1, 1 64 64 32 3 7 1 1, 1 64 64 32 1 7 1 0");
    add(cases, "bn", "b c hw", "1 64 7");
    add_rows(cases, {"ln", "rmsnorm", "softmax", "add", "relu", "gelu", "div", "mulu", "cat"}, "1 128");
    add(cases, "add", "b h times", "1 128 16");
    add(cases, "maxpool", "b c hw kernel stride pad", "1 64 7 3 2 1");
    add(cases, "avgpool", "b c hw", "1 64 7");
    add(cases, "copy", "b s heads d", "1 32 12 64");
    add(cases, "embedding", "b rows h", "32 1000 64");
    add(cases, "attention", "b heads s d", "1 4 32 64");
    return cases;
}

std::vector<OperatorCase> gpu_operators(int sms) {
    std::vector<OperatorCase> cases;
    if (sms > 0) add_wave_edges(cases, sms);
    for (const std::int64_t m : {1, 8, 64, 127, 128, 129, 512, 1024, 4096, 16384}) {
        for (const std::int64_t n : {64, 768, 1000, 3072, 8192}) {
            for (const std::int64_t k : {64, 768, 3072, 8192}) {
                if (m * n * k <= 1LL << 37) cases.push_back({"linear", {{"m", m}, {"n", n}, {"k", k}}});
            }
        }
    }
    for (const std::int64_t b : {12, 96, 192, 768}) {
        for (const std::int64_t s : {32, 128, 197, 384, 512}) {
            cases.push_back({"bmm", {{"b", b}, {"m", s}, {"n", s}, {"k", 64}}});
            cases.push_back({"bmm", {{"b", b}, {"m", s}, {"n", 64}, {"k", s}}});
        }
    }
    struct Filter {
        std::int64_t kernel, stride, pad;
    };
    for (const std::int64_t b : {1, 8, 64}) {
        for (const auto& [channels, hw] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}, {96, 56}, {384, 14}}) {
            for (const Filter f : {Filter{1, 1, 0}, {3, 1, 1}, {3, 2, 1}, {5, 1, 2}}) {
                for (const std::int64_t widen : {1, 4}) {
                    if (widen == 4 && f.kernel != 1) continue;
                    add(cases, "conv", conv_names, {b, channels, channels * widen, f.kernel, hw, f.stride, f.pad});
                }
            }
            for (const std::int64_t groups : {static_cast<std::int64_t>(channels), std::int64_t{32}}) {
                for (const std::int64_t stride : {1, 2}) {
                    add(cases, "conv", grouped_names, {b, channels, channels, groups, 3, hw, stride, 1});
                }
            }
            cases.push_back({"bn", {{"b", b}, {"c", channels}, {"hw", hw}}});
            add(cases, "maxpool", "b c hw kernel stride pad", {b, channels, hw, 3, 2, 1});
            cases.push_back({"avgpool", {{"b", b}, {"c", channels}, {"hw", hw}}});
        }
        add(cases, "conv", conv_names, {b, 3, 64, 7, 224, 2, 3});
        add(cases, "conv", conv_names, {b, 3, 768, 16, 224, 16, 0});
        for (const std::int64_t s : {128, 512}) {
            cases.push_back({"copy", {{"b", b}, {"s", s}, {"heads", 12}, {"d", 64}}});
            cases.push_back({"attention", {{"b", b}, {"heads", 12}, {"s", s}, {"d", 64}}});
            cases.push_back({"embedding", {{"b", b * s}, {"rows", 30522}, {"h", 768}}});
        }
    }
    for (const char* op : {"add", "relu", "gelu", "tanh", "div", "mulu", "softmax", "ln", "cat"}) {
        for (const std::int64_t rows : {1, 64, 512, 4096, 32768}) {
            for (const std::int64_t h : {128, 768, 3072}) cases.push_back({op, {{"b", rows}, {"h", h}}});
        }
    }
    cases.push_back({"add", {{"b", 1}, {"h", 128}, {"times", 16}}});
    add_language_models(cases);
    return cases;
}

}  // namespace ftax::bench
