#include "calibration/bench/operator_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>

#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"

namespace ftax::bench {
namespace {

using Shape = std::map<std::string, std::int64_t>;

class Dimensions {
  public:
    explicit Dimensions(const OperatorCase& operator_case) : case_(operator_case) {}

    std::int64_t operator[](const std::string& name) const {
        const auto at = case_.shape.find(name);
        if (at == case_.shape.end()) throw Error(ErrorCode::usage, fmt::format("{} without {}", case_.op, name));
        return at->second;
    }
    std::int64_t or_else(const std::string& name, std::int64_t fallback) const {
        const auto at = case_.shape.find(name);
        return at == case_.shape.end() ? fallback : at->second;
    }

  private:
    const OperatorCase& case_;
};

std::int64_t window_output(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    return (size + 2 * pad - kernel) / stride + 1;
}

std::string conv_text(const Dimensions& d) {
    const std::int64_t groups = d.or_else("groups", 1);
    const std::int64_t kernel = d["kernel"];
    const std::int64_t stride = d.or_else("stride", 1);
    const std::int64_t pad = d.or_else("pad", 0);
    const std::int64_t out = window_output(d["hw"], kernel, stride, pad);
    return fmt::format(
        "input %x f32[{0},{1},{2},{2}]\nweight %w f32[{3},{4},{5},{5}]\n"
        "%y f32[{0},{3},{6},{6}] = conv(%x, %w) {{stride=[{7},{7}] pad_begin=[{8},{8}] pad_end=[{8},{8}] "
        "dilation=[1,1] groups={9}}} \"aten::conv2d\"\n",
        d["b"], d["cin"], d["hw"], d["cout"], d["cin"] / groups, kernel, out, stride, pad, groups);
}

std::string pool_text(const Dimensions& d) {
    const std::int64_t kernel = d["kernel"];
    const std::int64_t stride = d.or_else("stride", 1);
    const std::int64_t pad = d.or_else("pad", 0);
    return fmt::format(
        "input %x f32[{0},{1},{2},{2}]\n%y f32[{0},{1},{3},{3}] = pool(%x) {{function=\"max\" kernel=[{4},{4}] "
        "stride=[{5},{5}] pad_begin=[{6},{6}] pad_end=[{6},{6}]}} \"aten::max_pool2d\"\n",
        d["b"], d["c"], d["hw"], window_output(d["hw"], kernel, stride, pad), kernel, stride, pad);
}

/// A transposed activation made contiguous, as between the heads of attention.
std::string copy_text(const Dimensions& d) {
    return fmt::format(
        "input %x f32[{0},{1},{2},{3}]\n%t f32[{0},{2},{1},{3}]{{{4},{3},{5},1}} = transpose(%x) {{perm=[0,2,1,3]}} "
        "\"aten::permute\"\n%y f32[{0},{2},{1},{3}] = copy(%t) \"aten::contiguous\"\n",
        d["b"], d["s"], d["heads"], d["d"], d["s"] * d["heads"] * d["d"], d["heads"] * d["d"]);
}

/// Queries of `s` tokens over keys of `kv` (default: the same tokens); several heads may share one of `kv_heads`.
std::string attention_text(const Dimensions& d) {
    return fmt::format(
        "input %q f32[{0},{1},{2},{3}]\ninput %k f32[{0},{4},{5},{3}]\ninput %v f32[{0},{4},{5},{3}]\n"
        "%y f32[{0},{1},{2},{3}] = attention(%q, %k, %v){6} \"aten::scaled_dot_product_attention\"\n",
        d["b"], d["heads"], d["s"], d["d"], d.or_else("kv_heads", d["heads"]), d.or_else("kv", d["s"]),
        d.or_else("causal", 0) != 0 ? " {causal=1}" : "");
}

/// Rotary embedding as language models write it in PyTorch: x·cos + rotate_half(x)·sin.
std::string rope_text(const Dimensions& d) {
    const std::int64_t width = d["d"], head = d["s"] * width, all = d["heads"] * head;
    const std::string type = fmt::format("f32[{},{},{},{}]", d["b"], d["heads"], d["s"], width);
    const std::string half = fmt::format("f32[{},{},{},{}]", d["b"], d["heads"], d["s"], width / 2);
    const std::string view = fmt::format("{}{{{},{},{},1}}", half, all, head, width);
    return fmt::format(
        "input %x {0}\ninput %c f32[{1},{2}]\ninput %n f32[{1},{2}]\n"
        "%1 {0} = pointwise(%x, %c) {{function=\"mul\"}} \"aten::mul\"\n"
        "%2 {3} = slice(%x) {{axis=3}} \"aten::slice\"\n%3 {3} = slice(%x) {{axis=3}} \"aten::slice\"\n"
        "%4 {4} = pointwise(%3) {{function=\"neg\"}} \"aten::neg\"\n"
        "%5 {0} = concat(%4, %2) {{axis=3}} \"aten::cat\"\n"
        "%6 {0} = pointwise(%5, %n) {{function=\"mul\"}} \"aten::mul\"\n"
        "%y {0} = pointwise(%1, %6) {{function=\"add\"}} \"aten::add\"\n",
        type, d["s"], width, view, half);
}

/// One operator, or a chain of them ("times"): what a chain takes more than its links is the forward call.
std::string pointwise_text(const std::string& op, const Dimensions& d) {
    const bool two = op == "add" || op == "mul" || op == "div";
    const bool scalar = op == "addu" || op == "mulu" || op == "divu";
    const std::string function = scalar ? op.substr(0, 3) : op;
    const std::string type = fmt::format("f32[{},{}]", d["b"], d["h"]);
    std::string text = fmt::format("input %x {}\n", type);
    if (two) text += fmt::format("input %z {}\n", type);
    const std::int64_t times = d.or_else("times", 1);
    for (std::int64_t i = 1; i <= times; ++i) {
        const auto result = [&](std::int64_t at) {
            return at == 0 ? std::string("%x") : at == times ? std::string("%y") : fmt::format("%y{}", at);
        };
        text += fmt::format("{} {} = pointwise({}{}) {{function=\"{}\"}} \"aten::{}{}\"\n", result(i), type,
                            result(i - 1), two ? ", %z" : "", function, function, op == "relu" ? "_" : "");
    }
    return text;
}

std::string body(const OperatorCase& operator_case) {
    const Dimensions d(operator_case);
    const std::string& op = operator_case.op;
    if (op == "conv") return conv_text(d);
    if (op == "maxpool") return pool_text(d);
    if (op == "copy") return copy_text(d);
    if (op == "linear") {
        return fmt::format(
            "input %x f32[{0},{1}]\nweight %w f32[{2},{1}]\nweight %b f32[{2}]\n"
            "%y f32[{0},{2}] = linear(%x, %w, %b) \"aten::linear\"\n",
            d["m"], d["k"], d["n"]);
    }
    if (op == "bmm") {
        return fmt::format(
            "input %x f32[{0},{1},{2}]\ninput %z f32[{0},{2},{3}]\n"
            "%y f32[{0},{1},{3}] = matmul(%x, %z) \"aten::matmul\"\n",
            d["b"], d["m"], d["k"], d["n"]);
    }
    if (op == "attention") return attention_text(d);
    if (op == "rope") return rope_text(d);
    if (op == "rmsnorm") {
        return fmt::format(
            "input %x f32[{0},{1}]\nweight %w f32[{1}]\n%y f32[{0},{1}] = rms_norm(%x, %w) {{axis=1}} "
            "\"aten::rms_norm\"\n",
            d["b"], d["h"]);
    }
    if (op == "silu_mul") {
        return fmt::format(
            "input %x f32[{0},{1}]\ninput %z f32[{0},{1}]\n"
            "%s f32[{0},{1}] = pointwise(%x) {{function=\"silu\"}} \"aten::silu\"\n"
            "%y f32[{0},{1}] = pointwise(%s, %z) {{function=\"mul\"}} \"aten::mul\"\n",
            d["b"], d["h"]);
    }
    if (op == "softmax") {
        return fmt::format("input %x f32[{0},{1}]\n%y f32[{0},{1}] = softmax(%x) {{axis=1}} \"aten::softmax\"\n",
                           d["b"], d["h"]);
    }
    if (op == "ln") {
        return fmt::format(
            "input %x f32[{0},{1}]\nweight %w f32[{1}]\nweight %b f32[{1}]\n"
            "%y f32[{0},{1}] = layer_norm(%x, %w, %b) {{axis=1}} \"aten::layer_norm\"\n",
            d["b"], d["h"]);
    }
    if (op == "bn") {
        return fmt::format(
            "input %x f32[{0},{1},{2},{2}]\nweight %w f32[{1}]\nweight %b f32[{1}]\nweight %m f32[{1}]\n"
            "weight %v f32[{1}]\n"
            "%y f32[{0},{1},{2},{2}] = batch_norm(%x, %w, %b, %m, %v) \"aten::batch_norm\"\n",
            d["b"], d["c"], d["hw"]);
    }
    if (op == "avgpool") {
        return fmt::format(
            "input %x f32[{0},{1},{2},{2}]\n%y f32[{0},{1},1,1] = global_pool(%x) "
            "{{function=\"average\"}} \"aten::adaptive_avg_pool2d\"\n",
            d["b"], d["c"], d["hw"]);
    }
    if (op == "embedding") {
        return fmt::format(
            "input %i i64[{0}]\nweight %w f32[{1},{2}]\n"
            "%y f32[{0},{2}] = embedding(%w, %i) \"aten::embedding\"\n",
            d["b"], d["rows"], d["h"]);
    }
    if (op == "cat") {
        return fmt::format(
            "input %x f32[{0},{1}]\ninput %z f32[{0},{1}]\n"
            "%y f32[{0},{2}] = concat(%x, %z) {{axis=1}} \"aten::cat\"\n",
            d["b"], d["h"], 2 * d["h"]);
    }
    static constexpr std::string_view pointwise[] = {"add",  "mul",  "div",  "addu", "mulu",   "divu",
                                                     "relu", "tanh", "gelu", "exp",  "sigmoid"};
    if (std::find(std::begin(pointwise), std::end(pointwise), op) != std::end(pointwise)) return pointwise_text(op, d);
    throw Error(ErrorCode::usage, fmt::format("no operator is called {}", op));
}

void add(std::vector<OperatorCase>& cases, const char* op, std::initializer_list<const char*> names,
         std::initializer_list<std::initializer_list<std::int64_t>> rows) {
    for (const auto& row : rows) {
        OperatorCase one{op, {}};
        std::transform(names.begin(), names.end(), row.begin(), std::inserter(one.shape, one.shape.end()),
                       [](const char* name, std::int64_t value) {
                           return std::pair<const std::string, std::int64_t>(name, value);
                       });
        cases.push_back(std::move(one));
    }
}

/// Rows × row lengths for operators over rows.
void add_rows(std::vector<OperatorCase>& cases, std::initializer_list<const char*> ops,
              std::initializer_list<std::initializer_list<std::int64_t>> rows) {
    for (const char* op : ops) add(cases, op, {"b", "h"}, rows);
}

/// Products that fill one or two waves of 128×128 tiles but for one tile, exactly, and with one tile too many.
/// calibration/bench/python/campaign.py designs the same.
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
    add(cases, "linear", {"m", "n", "k"},
        {{8192, 8192, 8192}, {16384, 8192, 8192}, {8192, 28672, 8192}, {16384, 14336, 4096}, {32768, 4096, 4096}});
    for (const std::int64_t s : {1024, 2048, 4096, 8192}) {
        cases.push_back({"attention", {{"b", 1}, {"heads", 32}, {"kv_heads", 8}, {"s", s}, {"d", 128}, {"causal", 1}}});
        cases.push_back({"attention", {{"b", 1}, {"heads", 32}, {"s", s}, {"d", 128}, {"causal", 1}}});
        cases.push_back({"rope", {{"b", 1}, {"heads", 32}, {"s", s}, {"d", 128}}});
    }
    for (const std::int64_t b : {1, 8, 64}) {
        for (const std::int64_t kv : {512, 2048, 8192, 32768}) {
            if (b * kv > 1LL << 18) continue;
            cases.push_back(
                {"attention", {{"b", b}, {"heads", 32}, {"kv_heads", 8}, {"s", 1}, {"kv", kv}, {"d", 128}}});
            cases.push_back({"attention", {{"b", b}, {"heads", 32}, {"s", 1}, {"kv", kv}, {"d", 128}}});
        }
        cases.push_back({"rope", {{"b", b}, {"heads", 32}, {"s", 1}, {"d", 128}}});
    }
    add_rows(cases, {"rmsnorm"}, {{1, 4096}, {64, 4096}, {2048, 4096}, {8192, 4096}, {8192, 8192}});
    add_rows(cases, {"silu_mul"}, {{1, 14336}, {64, 14336}, {2048, 14336}, {8192, 14336}});
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
    constexpr double most = 1 << 12;  // of a small weight
    const auto f32_bytes = static_cast<double>(weight_bytes(graph));
    if (f32_bytes == 0) return 1;
    const bool half = precision == Precision::fp16 || precision == Precision::bf16;
    return static_cast<int>(std::clamp(std::ceil(2 * device.l2_bytes / (half ? f32_bytes / 2 : f32_bytes)), 2.0, most));
}

std::vector<OperatorCase> cpu_operators(bool quick) {
    std::vector<OperatorCase> cases;
    add(cases, "linear", {"m", "n", "k"},
        {{1, 16, 16},
         {1, 1000, 512},
         {4, 1000, 2048},
         {16, 512, 512},
         {64, 768, 768},
         {128, 640, 640},
         {128, 1024, 256},
         {128, 2560, 640},
         {128, 640, 2560},
         {256, 1024, 1024},
         {384, 512, 2048},
         {512, 768, 768},
         {768, 1536, 512},
         {1024, 640, 640},
         {8, 768, 768},
         {1, 1024, 1024},
         {32, 2048, 512}});
    add(cases, "bmm", {"b", "m", "n", "k"},
        {{1, 8, 8, 8},
         {12, 64, 64, 64},
         {12, 128, 128, 64},
         {12, 128, 64, 128},
         {48, 128, 128, 64},
         {96, 128, 64, 128},
         {64, 96, 96, 64},
         {16, 256, 256, 64},
         {16, 256, 64, 256}});
    add(cases, "conv", {"b", "cin", "cout", "kernel", "hw", "stride", "pad"},
        {{1, 16, 16, 1, 7, 1, 0},     {1, 3, 64, 7, 224, 2, 3},    {1, 3, 32, 3, 224, 2, 1},
         {4, 3, 48, 5, 128, 2, 2},    {1, 32, 32, 3, 112, 1, 1},   {1, 48, 48, 3, 56, 1, 1},
         {2, 64, 64, 3, 56, 1, 1},    {1, 96, 96, 3, 28, 1, 1},    {4, 128, 128, 3, 28, 1, 1},
         {1, 192, 192, 3, 14, 1, 1},  {2, 256, 256, 3, 14, 1, 1},  {1, 384, 384, 3, 7, 1, 1},
         {4, 512, 512, 3, 7, 1, 1},   {1, 64, 128, 3, 56, 2, 1},   {2, 192, 384, 3, 14, 2, 1},
         {1, 16, 64, 3, 54, 1, 1},    {1, 64, 256, 3, 13, 1, 1},   {4, 32, 128, 3, 27, 1, 1},
         {1, 24, 96, 1, 56, 1, 0},    {1, 96, 24, 1, 56, 1, 0},    {1, 64, 192, 1, 56, 1, 0},
         {2, 192, 64, 1, 56, 1, 0},   {1, 128, 512, 1, 28, 1, 0},  {4, 512, 128, 1, 28, 1, 0},
         {1, 256, 1024, 1, 14, 1, 0}, {2, 1024, 256, 1, 14, 1, 0}, {1, 512, 1536, 1, 7, 1, 0},
         {4, 1536, 512, 1, 7, 1, 0},  {1, 96, 16, 1, 54, 1, 0},    {1, 32, 192, 1, 28, 1, 0},
         {1, 192, 32, 1, 28, 1, 0},   {4, 96, 576, 1, 14, 1, 0},   {4, 576, 96, 1, 14, 1, 0},
         {1, 320, 1280, 1, 7, 1, 0},  {1, 256, 512, 1, 56, 2, 0},  {1, 512, 1000, 1, 13, 1, 0},
         {8, 64, 64, 1, 28, 1, 0},    {8, 32, 96, 1, 56, 1, 0}});
    add(cases, "conv", {"b", "cin", "cout", "groups", "kernel", "hw", "stride", "pad"},
        {{1, 32, 32, 32, 3, 112, 1, 1},
         {1, 96, 96, 96, 3, 112, 2, 1},
         {1, 128, 128, 128, 3, 56, 1, 1},
         {4, 192, 192, 192, 3, 28, 1, 1},
         {1, 384, 384, 384, 3, 14, 1, 1},
         {4, 512, 512, 512, 3, 14, 2, 1},
         {1, 960, 960, 960, 3, 7, 1, 1},
         {8, 144, 144, 144, 3, 28, 1, 1},
         {1, 128, 128, 32, 3, 28, 1, 1}});
    add_rows(cases, {"add", "relu"}, {{1, 16}, {64, 1024}, {256, 1024}, {1024, 1024}, {4096, 1024}, {12288, 512}});
    add_rows(cases, {"div", "gelu", "tanh"}, {{1, 16}, {64, 1024}, {512, 1024}, {1024, 3072}});
    add_rows(cases, {"mulu", "mul"}, {{64, 512}, {1024, 768}});
    add_rows(cases, {"softmax"}, {{1, 16}, {512, 128}, {1536, 128}, {6144, 128}, {1024, 512}});
    add_rows(cases, {"ln"}, {{1, 16}, {128, 768}, {512, 768}, {1024, 1024}, {4096, 256}});
    add(cases, "bn", {"b", "c", "hw"},
        {{1, 16, 7},
         {1, 64, 112},
         {1, 256, 56},
         {4, 64, 56},
         {4, 256, 28},
         {1, 1024, 14},
         {4, 512, 7},
         {8, 96, 56},
         {8, 64, 112}});
    add(cases, "maxpool", {"b", "c", "hw", "kernel", "stride", "pad"},
        {{1, 8, 8, 3, 2, 1},
         {1, 64, 112, 3, 2, 1},
         {1, 96, 109, 3, 2, 0},
         {4, 256, 54, 3, 2, 0},
         {4, 128, 28, 2, 2, 0}});
    add(cases, "avgpool", {"b", "c", "hw"}, {{1, 16, 7}, {1, 512, 7}, {4, 2048, 7}, {4, 1000, 13}});
    add(cases, "embedding", {"b", "rows", "h"}, {{1, 16, 16}, {128, 30000, 768}, {1024, 30000, 768}});
    add_rows(cases, {"cat"}, {{1, 16}, {1, 200000}, {4, 400000}, {8, 800000}});
    add(cases, "copy", {"b", "s", "heads", "d"}, {{1, 4, 4, 4}, {1, 128, 12, 64}, {4, 128, 12, 64}, {8, 256, 8, 64}});
    if (!quick) {
        add(cases, "linear", {"m", "n", "k"},
            {{2048, 2048, 2048}, {1024, 3072, 768}, {1024, 768, 3072}, {1, 4096, 4096}});
        add(cases, "conv", {"b", "cin", "cout", "kernel", "hw", "stride", "pad"},
            {{8, 64, 64, 3, 56, 1, 1},
             {8, 256, 256, 3, 14, 1, 1},
             {8, 512, 2048, 1, 7, 1, 0},
             {8, 64, 256, 1, 56, 1, 0}});
        add_rows(cases, {"add", "relu", "gelu"}, {{16384, 1024}});
    }
    return cases;
}

std::vector<OperatorCase> dispatch_operators() {
    std::vector<OperatorCase> cases;
    add(cases, "linear", {"m", "n", "k"}, {{1, 64, 64}, {8, 64, 64}});
    add(cases, "bmm", {"b", "m", "n", "k"}, {{12, 32, 32, 64}});
    add(cases, "conv", {"b", "cin", "cout", "kernel", "hw", "stride", "pad"},
        {{1, 64, 64, 3, 7, 1, 1}, {2, 64, 64, 1, 7, 1, 0}});
    add(cases, "conv", {"b", "cin", "cout", "groups", "kernel", "hw", "stride", "pad"},
        {{1, 64, 64, 64, 3, 7, 1, 1}, {1, 64, 64, 32, 3, 7, 1, 1}});
    add(cases, "bn", {"b", "c", "hw"}, {{1, 64, 7}});
    add_rows(cases, {"ln", "rmsnorm", "softmax", "add", "relu", "gelu", "div", "mulu", "cat"}, {{1, 128}});
    add(cases, "add", {"b", "h", "times"}, {{1, 128, 16}});
    add(cases, "maxpool", {"b", "c", "hw", "kernel", "stride", "pad"}, {{1, 64, 7, 3, 2, 1}});
    add(cases, "avgpool", {"b", "c", "hw"}, {{1, 64, 7}});
    add(cases, "copy", {"b", "s", "heads", "d"}, {{1, 32, 12, 64}});
    add(cases, "embedding", {"b", "rows", "h"}, {{32, 1000, 64}});
    add(cases, "attention", {"b", "heads", "s", "d"}, {{1, 4, 32, 64}});
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
                    cases.push_back({"conv",
                                     {{"b", b},
                                      {"cin", channels},
                                      {"cout", channels * widen},
                                      {"kernel", f.kernel},
                                      {"hw", hw},
                                      {"stride", f.stride},
                                      {"pad", f.pad}}});
                }
            }
            for (const std::int64_t groups : {static_cast<std::int64_t>(channels), std::int64_t{32}}) {
                for (const std::int64_t stride : {1, 2}) {
                    cases.push_back({"conv",
                                     {{"b", b},
                                      {"cin", channels},
                                      {"cout", channels},
                                      {"groups", groups},
                                      {"kernel", 3},
                                      {"hw", hw},
                                      {"stride", stride},
                                      {"pad", 1}}});
                }
            }
            cases.push_back({"bn", {{"b", b}, {"c", channels}, {"hw", hw}}});
            cases.push_back(
                {"maxpool", {{"b", b}, {"c", channels}, {"hw", hw}, {"kernel", 3}, {"stride", 2}, {"pad", 1}}});
            cases.push_back({"avgpool", {{"b", b}, {"c", channels}, {"hw", hw}}});
        }
        cases.push_back(
            {"conv", {{"b", b}, {"cin", 3}, {"cout", 64}, {"kernel", 7}, {"hw", 224}, {"stride", 2}, {"pad", 3}}});
        cases.push_back(
            {"conv", {{"b", b}, {"cin", 3}, {"cout", 768}, {"kernel", 16}, {"hw", 224}, {"stride", 16}, {"pad", 0}}});
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
