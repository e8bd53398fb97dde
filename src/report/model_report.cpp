#include "src/report/model_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "graphs/base/checked_math.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/ir/operands.hpp"
#include "src/report/table.hpp"

namespace ftax::report {
namespace {

/// "f32[2,64,56,56]"
std::string typed_shape(const Tensor& tensor, const BoundShapes& bound) {
    if (!tensor.known_shape) return fmt::format("{}?", name_of(tensor.dtype));
    return fmt::format("{}[{}]", name_of(tensor.dtype), fmt::join(bound_type(tensor, bound).shape, ","));
}

std::string_view module_prefix(std::string_view path, int depth) {
    std::size_t end = 0;
    for (int i = 0; i < depth && end != std::string_view::npos; ++i) end = path.find('.', end == 0 ? 0 : end + 1);
    return path.substr(0, end);
}

/// Multiply-adds of a contraction. For each score of an attention, work_of counts two for the softmax, too.
std::int64_t macs_of(const Graph& graph, const Op& op, const Work& work, const BoundShapes& bound) {
    using enum OpKind;
    if (!op.is(conv, conv_transpose, linear, matmul, attention, recurrent)) return 0;
    const std::int64_t macs = work.flops / 2;
    if (op.kind != OpKind::attention || macs == 0 || op.inputs.size() < 3) return macs;
    const auto width = [&](TensorId id) {
        const bool known = id != no_tensor && !graph.tensors[id].shape.empty();
        return known ? bound[graph.tensors[id].shape.back()] : 0;
    };
    const std::int64_t products = checked_add(width(op.inputs[0]), width(op.inputs[2]));
    return macs / checked_add(products, 2) * products;
}

void add(WorkGroup& group, const Work& work, std::int64_t macs) {
    ++group.operators;
    group.flops = checked_add(group.flops, work.flops);
    group.macs = checked_add(group.macs, macs);
    group.bytes = checked_add(group.bytes, checked_add(work.read_bytes, work.write_bytes));
}

WorkGroup& group_named(std::vector<WorkGroup>& groups, std::map<std::string, std::size_t, std::less<>>& index,
                       std::string_view name) {
    const auto [position, added] = index.emplace(name, groups.size());
    if (added) groups.push_back({.name = std::string(name)});
    return groups[position->second];
}

std::string typed_name(const Tensor& tensor, const BoundShapes& bound) {
    return fmt::format("{} {}", tensor.name, typed_shape(tensor, bound));
}

/// Marks duplicate names of tied weights: torch.export lists a tied parameter under each of its names, but operators
/// read only one. An unread weight with the type and shape of a read one is assumed to be tied to it.
std::vector<bool> tied_weights(const Graph& graph, const BoundShapes& bound) {
    std::vector<bool> read(graph.tensors.size()), tied(graph.tensors.size());
    for (const Op& op : graph.ops)
        for (const TensorId input : op.inputs)
            if (input != no_tensor) read[input] = true;
    const auto type_of = [&](const Tensor& tensor) {
        return std::pair(tensor.dtype, mapped(tensor.shape, [&](Expression dim) { return bound[dim]; }));
    };
    std::set<std::pair<DType, std::vector<std::int64_t>>> types;
    const auto is_weight = [](const Tensor& tensor) { return tensor.role == TensorRole::weight && tensor.known_shape; };
    for (TensorId id = 0; id < graph.tensors.size(); ++id)
        if (is_weight(graph.tensors[id]) && read[id]) types.insert(type_of(graph.tensors[id]));
    for (TensorId id = 0; id < graph.tensors.size(); ++id)
        tied[id] = is_weight(graph.tensors[id]) && !read[id] && types.contains(type_of(graph.tensors[id]));
    return tied;
}

Dispatch dispatch_of_reshape(const Graph& graph, const Op& op) {
    if (op.source == "aten::view" || op.inputs.empty() || op.outputs.empty()) return Dispatch::view;
    const bool copied = !graph.tensors[op.inputs[0]].strides.empty() && graph.tensors[op.outputs[0]].strides.empty();
    const bool may_copy = op.source.starts_with("aten::reshape") || op.source == "aten::flatten";
    return copied && may_copy ? Dispatch::kernel : Dispatch::view;
}

/// Distinguishes kernels from views. A reshape that strides do not allow copies; `contiguous` of a contiguous tensor
/// does nothing.
/// Source: aten/src/ATen/native/TensorShape.cpp and TensorProperties.cpp.
Dispatch dispatch_of(const Graph& graph, const Op& op) {
    using enum OpKind;
    if (op.is(reshape)) return dispatch_of_reshape(graph, op);
    if (op.is(transpose, slice, split, expand)) return Dispatch::view;
    if (op.is(shape, identity)) return Dispatch::host;
    if (op.is(to_host, nonzero)) return Dispatch::sync;
    const bool contiguous = op.is(copy) && !op.inputs.empty() && graph.tensors[op.inputs[0]].strides.empty();
    return op.source == "aten::contiguous" && contiguous ? Dispatch::host : Dispatch::kernel;
}

}  // namespace

Columns<WorkGroup> work_columns(std::string_view title) {
    using Group = WorkGroup;
    return {{"name", std::string(title), Unit::text,
             [](const Group& group) { return group.name.empty() ? Value("", "(none)") : Value(group.name); }},
            {"operators", "operators", Unit::plain, "number of operators", &Group::operators},
            {"flops", "FLOPs", Unit::amount, &Group::flops},
            {"macs", "MACs", Unit::amount, "multiply-adds of contractions", &Group::macs},
            {"bytes", "bytes", Unit::bytes, "read and written", &Group::bytes}};
}

ModelReport model_report(const Graph& graph, const ShapeBindings& bindings, int depth) {
    const BoundShapes bound = ftax::bind(graph, bindings);
    ModelReport report{.model = graph.name, .format = graph.format, .bindings = bindings, .total = {.name = "total"}};
    report.warnings = graph.warnings;
    for (const TensorId id : graph.inputs) report.inputs.push_back(typed_name(graph.tensors[id], bound));
    for (const TensorId id : graph.outputs) report.outputs.push_back(typed_name(graph.tensors[id], bound));
    const std::vector<bool> tied = tied_weights(graph, bound), written = written_weights(graph);
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
        const Tensor& tensor = graph.tensors[id];
        if (tensor.role != TensorRole::weight || !tensor.known_shape || tied[id]) continue;
        if (written[id]) {
            report.written_bytes = checked_add(report.written_bytes, byte_count(tensor, bound));
            continue;
        }
        report.parameters = checked_add(report.parameters, element_count(tensor, bound));
        report.parameter_bytes = checked_add(report.parameter_bytes, byte_count(tensor, bound));
    }
    std::map<std::string, std::size_t, std::less<>> kinds;
    std::map<std::string, std::size_t, std::less<>> modules;
    for (const Op& op : graph.ops) {
        const Work work = work_of(graph, op, bound);
        const std::int64_t macs = macs_of(graph, op, work, bound);
        add(report.total, work, macs);
        add(group_named(report.by_kind, kinds, name_of(op.kind)), work, macs);
        add(group_named(report.by_module, modules, module_prefix(op.module, depth)), work, macs);
        if (op.kind != OpKind::custom) continue;
        ++report.unknown_operators;
        if (std::ranges::count(report.unknown, op.source) == 0) report.unknown.push_back(op.source);
    }
    const std::vector<bool> guessed = guessed_operators(graph);
    if (const auto guesses = std::count(guessed.begin(), guessed.end(), true); guesses > 0) {
        report.modelled_operators = 1 - static_cast<double>(guesses) / static_cast<double>(graph.ops.size());
        report.modelled_flops = modelled_flops(graph, bound, guessed);
        for (std::string& warning : warnings_of_guesses(graph, guessed)) report.warnings.push_back(std::move(warning));
    }
    std::ranges::stable_sort(report.by_kind, std::greater<>(), &WorkGroup::flops);
    if (modules.size() == 1 && modules.contains("")) report.by_module.clear();
    return report;
}

std::string verdict_of(const ModelReport& report) {
    return fmt::format("{}: {} FLOPs, {} moved, {} parameters of {}; {} of FLOPs modelled", report.model,
                       count(static_cast<double>(report.total.flops)),
                       byte_size(static_cast<double>(report.total.bytes)),
                       count(static_cast<double>(report.parameters)),
                       byte_size(static_cast<double>(report.parameter_bytes)), percent(report.modelled_flops));
}

std::string to_table(const ModelReport& report, Style style) {
    std::string title = fmt::format("{} ({})", report.model, report.format);
    for (const auto& [symbol, value] : report.bindings) title += fmt::format(", {} {}", symbol, value);
    std::string text = print_verdict(verdict_of(report), style) + escape_terminal(title) + "\n";
    // The cache of a language model is a pair of inputs for each layer: of a row of one type the first is shown.
    const auto type_of = [](const std::string& tensor) {
        return std::string_view(tensor).substr(tensor.rfind(' ') + 1);
    };
    const auto lines = [&](std::string_view label, const std::vector<std::string>& tensors) {
        for (std::size_t i = 0, end = 0; i < tensors.size(); i = end) {
            end = i + 1;
            while (end < tensors.size() && type_of(tensors[end]) == type_of(tensors[i])) ++end;
            constexpr std::size_t shown_apart = 4;
            if (end - i <= shown_apart) end = i + 1;
            const std::string others = end - i > 1 ? fmt::format(" and {} more of this type", end - i - 1) : "";
            text += fmt::format("{} {}{}\n", label, escape_terminal(tensors[i]), others);
        }
    };
    lines("input ", report.inputs);
    lines("output", report.outputs);
    text +=
        fmt::format("{} operators, {} FLOPs, {} MACs (a multiply-add of a contraction counts once), {} moved\n",
                    report.total.operators, count(static_cast<double>(report.total.flops)),
                    count(static_cast<double>(report.total.macs)), byte_size(static_cast<double>(report.total.bytes)));
    text += fmt::format("{} parameters, {}", count(static_cast<double>(report.parameters)),
                        byte_size(static_cast<double>(report.parameter_bytes)));
    if (report.written_bytes > 0)
        text += fmt::format("; {} of buffers that a run writes (caches)",
                            byte_size(static_cast<double>(report.written_bytes)));
    text += "\n";
    text +=
        fmt::format("coverage: {} of operators, {}", percent(report.modelled_operators),
                    report.total.flops == 0 ? "no FLOPs are counted" : percent(report.modelled_flops) + " of FLOPs");
    if (!report.unknown.empty())
        text +=
            fmt::format("; without a rule: {}", escape_terminal(fmt::format("{}", fmt::join(report.unknown, ", "))));
    text += "\n\n" + work_columns("operator").print(report.by_kind, "", style);
    if (!report.by_module.empty()) text += "\n" + work_columns("module").print(report.by_module, "", style);
    return text;
}

std::string to_json(const ModelReport& report) {
    return document({{"model", report.model},
                     {"format", report.format},
                     {"bindings", report.bindings},
                     {"verdict", verdict_of(report)},
                     {"inputs", report.inputs},
                     {"outputs", report.outputs},
                     {"parameters", report.parameters},
                     {"parameter_bytes", report.parameter_bytes},
                     {"written_bytes", report.written_bytes},
                     {"total", work_columns("").json(report.total)},
                     {"unknown_operators", report.unknown_operators},
                     {"unknown", report.unknown},
                     {"coverage", {{"nodes", report.modelled_operators}, {"flops", report.modelled_flops}}},
                     {"by_kind", work_columns("").json_rows(report.by_kind)},
                     {"by_module", work_columns("").json_rows(report.by_module)}},
                    report.warnings);
}

std::string to_csv(const ModelReport& report) {
    using Row = std::pair<std::string_view, const WorkGroup*>;
    std::vector<Row> rows{{"model", &report.total}};
    for (const WorkGroup& group : report.by_kind) rows.emplace_back("operator", &group);
    for (const WorkGroup& group : report.by_module) rows.emplace_back("module", &group);
    return Columns<Row>{{"grouped_by", "", Unit::text, &Row::first}}
        .including(work_columns(""), &Row::second)
        .csv(rows);
}

const Columns<StreamRow>& stream_columns() {
    using Row = StreamRow;
    const auto toned = [](auto member) {
        return [member](const Row& row) {
            return Value(row.*member, row.dispatch == Dispatch::kernel ? Tone::plain : Tone::quiet);
        };
    };
    // A view or a host operator moves nothing: its work is not shown.
    const auto of_kernel = [](std::int64_t Row::*member) {
        return [member](const Row& row) {
            return row.dispatch == Dispatch::kernel ? Value(row.*member) : Value(row.*member, "");
        };
    };
    static const Columns<Row> all{
        {"operator", "operator", Unit::text, toned(&Row::source)},
        {"dispatch", "dispatch", Unit::text, "`kernel`, `view`, `host` or `sync`", toned(&Row::dispatch)},
        {"module", "module", Unit::text, toned(&Row::module)},
        {"output", "output", Unit::text, toned(&Row::output)},
        {"flops", "FLOPs", Unit::amount, of_kernel(&Row::flops)},
        {"bytes", "bytes", Unit::bytes, of_kernel(&Row::bytes)}};
    return all;
}

std::string_view name_of(Dispatch dispatch) noexcept {
    static constexpr std::string_view names[] = {"kernel", "view", "host", "sync"};
    return names[static_cast<std::size_t>(dispatch)];
}

std::vector<StreamRow> op_stream(const Graph& graph, const ShapeBindings& bindings) {
    const BoundShapes bound = ftax::bind(graph, bindings);
    std::vector<StreamRow> stream;
    stream.reserve(graph.ops.size());
    for (const Op& op : graph.ops) {
        const Work work = work_of(graph, op, bound);
        stream.push_back({.source = op.source,
                          .module = op.module,
                          .output = op.outputs.empty() ? "" : typed_shape(graph.tensors[op.outputs[0]], bound),
                          .dispatch = dispatch_of(graph, op),
                          .flops = work.flops,
                          .bytes = checked_add(work.read_bytes, work.write_bytes)});
    }
    return stream;
}

namespace {

std::string typed_name(const Graph& graph, const Tensor& tensor) {
    const auto dims = mapped(tensor.shape, [&](Expression dim) { return graph.expressions.to_string(dim); });
    return fmt::format("{} {}[{}]", tensor.name, name_of(tensor.dtype), fmt::join(dims, ","));
}

/// "4.2e6·batch·seq² + 9·batch".
std::string polynomial_text(const std::vector<std::string>& symbols, const std::vector<PolynomialTerm>& terms) {
    constexpr std::array<std::string_view, 4> exponents{"", "", "²", "³"};
    std::vector<std::string> texts;
    for (const PolynomialTerm& term : terms) {
        std::string text = fmt::format("{:.3g}", std::abs(term.coefficient));
        if (const std::size_t e = text.find("e+"); e != std::string::npos)
            text.erase(e + 1, text[e + 2] == '0' ? 2 : 1);
        for (std::size_t i = 0; i < symbols.size(); ++i) {
            const auto power = static_cast<std::size_t>(term.powers[i]);
            if (power > 0) text += fmt::format("·{}{}", escape_terminal(symbols[i]), exponents[power]);
        }
        const bool first = texts.empty(), negative = term.coefficient < 0;
        texts.push_back((first ? (negative ? "-" : "") : (negative ? " - " : " + ")) + text);
    }
    return texts.empty() ? "0" : fmt::format("{}", fmt::join(texts, ""));
}

Json polynomial_json(const std::vector<std::string>& symbols, const std::vector<PolynomialTerm>& terms) {
    Json list = Json::array();
    for (const PolynomialTerm& term : terms) {
        Json powers = Json::object();
        for (std::size_t i = 0; i < symbols.size(); ++i)
            if (term.powers[i] > 0) powers[symbols[i]] = term.powers[i];
        list.push_back({{"coefficient", term.coefficient}, {"powers", std::move(powers)}});
    }
    return list;
}

constexpr std::size_t most_listed = 4;  ///< in a list

}  // namespace

Columns<OpenDimension> dimension_columns() {
    const auto axes = [](const OpenDimension& dimension) {
        const std::vector<std::string>& all = dimension.axes;
        std::string text = all.empty() ? "of none: it lies inside" : "";
        text += fmt::format("{}", fmt::join(std::span(all).first(std::min(most_listed, all.size())), ", "));
        if (all.size() > most_listed) text += fmt::format(" and {} more", all.size() - most_listed);
        return Value(all, text);
    };
    return {{"symbol", "dimension", Unit::text, &OpenDimension::symbol},
            {"axes", "dimensions of inputs", Unit::text, "as INPUT.DIMENSION", axes},
            {"flag", "given by", Unit::text, "option that gives it a value", &OpenDimension::flag}};
}

bool is_bound(const Graph& graph, const ShapeBindings& bindings) {
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    for (const auto& [name, value] : bindings) {
        if (std::ranges::count(symbols, name) > 0) continue;
        throw_error(ErrorCode::usage, "{}: unknown dynamic dimension {} (known: {})", graph.name, name,
                    fmt::join(symbols, ", "));
    }
    return bindings.size() == symbols.size();
}

OpenModelReport open_model_report(const Graph& graph, const ShapeBindings& bindings) {
    OpenModelReport report{.model = graph.name,
                           .format = graph.format,
                           .operators = static_cast<std::int64_t>(graph.ops.size()),
                           .work = work_polynomial(graph, bindings),
                           .warnings = graph.warnings};
    for (const std::string& symbol : graph.expressions.symbols()) {
        if (bindings.contains(symbol)) continue;
        report.dimensions.push_back(
            {symbol, {}, symbol == "batch" ? std::string("--batch N") : fmt::format("--dim {}=N", symbol)});
    }
    for (const TensorId id : graph.inputs) {
        const Tensor& input = graph.tensors[id];
        report.inputs.push_back(typed_name(graph, input));
        for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
            const std::vector<std::string> inside = graph.expressions.symbols_of(input.shape[axis]);
            for (OpenDimension& dimension : report.dimensions)
                if (std::ranges::count(inside, dimension.symbol) > 0)
                    dimension.axes.push_back(fmt::format("{}.{}", input.name, axis));
        }
    }
    for (const TensorId id : graph.outputs) report.outputs.push_back(typed_name(graph, graph.tensors[id]));
    return report;
}

std::string verdict_of(const OpenModelReport& report) {
    std::string text = fmt::format("{}: work and memory depend on open dimensions; for numbers give", report.model);
    for (const OpenDimension& dimension : report.dimensions) text += " " + dimension.flag;
    return text;
}

std::string to_table(const OpenModelReport& report, Style style) {
    std::string text =
        print_verdict(verdict_of(report), style) +
        escape_terminal(fmt::format("{} ({}): {} operators", report.model, report.format, report.operators)) + "\n\n";
    if (report.work) {
        const WorkPolynomial& work = *report.work;
        text += fmt::format("FLOPs  {}\nbytes  {}\n", polynomial_text(work.symbols, work.flops),
                            polynomial_text(work.symbols, work.bytes));
        if (!work.everywhere) text += fmt::format("(sizes that are multiples of {}; others round)\n", work.step);
        text += "\n";
    }
    text += dimension_columns().print(report.dimensions, "symbol flag axes", style) + "\n";
    const auto lines = [&](std::string_view label, const std::vector<std::string>& tensors) {
        for (std::size_t i = 0; i < std::min(most_listed, tensors.size()); ++i)
            text += fmt::format("{} {}\n", label, escape_terminal(tensors[i]));
        if (tensors.size() > most_listed) text += fmt::format("{} … {} more\n", label, tensors.size() - most_listed);
    };
    lines("input ", report.inputs);
    lines("output", report.outputs);
    return text;
}

std::string to_json(const OpenModelReport& report) {
    Json work;
    if (report.work)
        work = {{"flops", polynomial_json(report.work->symbols, report.work->flops)},
                {"bytes", polynomial_json(report.work->symbols, report.work->bytes)},
                {"multiples_of", report.work->everywhere ? 1 : report.work->step}};
    return document({{"model", report.model},
                     {"format", report.format},
                     {"verdict", verdict_of(report)},
                     {"open", dimension_columns().json_rows(report.dimensions)},
                     {"inputs", report.inputs},
                     {"outputs", report.outputs},
                     {"operators", report.operators},
                     {"work", std::move(work)}},
                    report.warnings);
}

std::string to_csv(const OpenModelReport& report) {
    std::vector<OpenDimension> rows;
    for (const OpenDimension& dimension : report.dimensions)
        for (const std::string& axis : dimension.axes) rows.push_back({dimension.symbol, {axis}, dimension.flag});
    return dimension_columns().csv(rows, "symbol axis=axes flag");
}

}  // namespace ftax::report
