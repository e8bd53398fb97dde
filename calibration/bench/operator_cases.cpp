#include "calibration/bench/operator_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "ftax/text_graph.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax::bench {
namespace {

using Shape = std::map<std::string, std::int64_t>;

/// Returns the text below a heading of operators.txt: a network or the shapes of a design; empty if missing.
std::string_view section(std::string_view heading) {
    std::string_view text = embedded_text("calibration/bench/operators.txt");
    const std::string line = fmt::format("\n[{}]\n", heading);
    const std::size_t at = text.find(line);
    if (at == text.npos) return {};
    text.remove_prefix(at + line.size());
    return text.substr(0, text.find("\n\n") + 1);
}

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
        if (found == dimensions.end()) throw_error(ErrorCode::usage, "{} without {}", operator_case.op, name);
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
    const std::int64_t times = value_or(operator_case.shape, "times", 1);
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
    if (const std::string_view text = section("operator " + op); !text.empty()) {
        std::string network = filled(text, operator_case);
        constexpr std::string_view without_mask = "{causal=0} ";
        if (const std::size_t at = network.find(without_mask); at != network.npos)
            network.erase(at, without_mask.size());
        return network;
    }
    if (has_word("add mul div addu mulu divu relu tanh gelu exp sigmoid", op))
        return filled(pointwise_text(operator_case), operator_case);
    throw_error(ErrorCode::usage, "unknown operator {}", op);
}

/// The cases of a design: for each operator the names of its dimensions, then their sizes.
std::vector<OperatorCase> design(std::string_view name) {
    std::vector<OperatorCase> cases;
    std::istringstream lines{std::string(section(fmt::format("design {}", name)))};
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        std::istringstream words(line.substr(0, colon)), rows(line.substr(colon + 1));
        OperatorCase one;
        words >> one.op;
        const std::vector<std::string> names{std::istream_iterator<std::string>(words), {}};
        for (std::string row; std::getline(rows, row, ',');) {
            std::istringstream sizes(row);
            std::vector<OperatorCase> grid{one};
            for (const std::string& dimension : names) {
                std::string size;
                sizes >> size;
                std::vector<OperatorCase> finer;
                for (OperatorCase& coarse : grid) {
                    std::istringstream alternatives(size);
                    for (std::int64_t value = 0; alternatives >> value; alternatives.ignore()) {
                        coarse.shape[dimension] = value;
                        finer.push_back(coarse);
                    }
                }
                grid = std::move(finer);
            }
            cases.insert(cases.end(), grid.begin(), grid.end());
        }
    }
    return cases;
}

/// Products that fill one or two waves of 128×128 tiles but for one tile, exactly, and with one tile too many.
std::vector<OperatorCase> wave_edges(std::int64_t sms) {
    constexpr std::int64_t tile = 128;
    std::vector<OperatorCase> cases;
    for (const std::int64_t waves : {1, 2}) {
        for (const std::int64_t beside : {-1, 0, 1}) {
            const std::int64_t tiles = waves * sms + beside;
            cases.push_back({"linear", {{"m", tiles * tile}, {"n", tile}, {"k", 1024}}});
            cases.push_back({"bmm", {{"b", tiles}, {"m", tile}, {"n", tile}, {"k", 64}}});
        }
    }
    return cases;
}

std::vector<OperatorCase> joined(std::vector<OperatorCase> cases, const std::vector<OperatorCase>& more) {
    cases.insert(cases.end(), more.begin(), more.end());
    return cases;
}

}  // namespace

Graph operator_graph(const OperatorCase& operator_case) {
    return parse_text_graph("graph " + operator_case.op + "\n" + body(operator_case) + "output %y\n", operator_case.op);
}

std::string shape_text(const OperatorCase& operator_case) {
    std::string text;
    for (const auto& [name, value] : operator_case.shape)
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    return text;
}

std::int64_t weight_bytes(const Graph& graph) {
    const BoundShapes bound = bind(graph, {});
    std::int64_t bytes = 0;
    for (const Tensor& tensor : graph.tensors)
        if (tensor.role == TensorRole::weight) bytes += byte_count(tensor, bound);
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
    return quick ? design("cpu") : joined(design("cpu"), design("cpu, more"));
}

std::vector<OperatorCase> dispatch_operators() {
    return design("dispatch");
}

std::vector<OperatorCase> gpu_operators(int sms) {
    return sms > 0 ? joined(wave_edges(sms), design("gpu")) : design("gpu");
}

}  // namespace ftax::bench
