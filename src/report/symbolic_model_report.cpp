#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "src/report/model_report.hpp"

namespace ftax::report {
namespace {

std::string typed_name(const Graph& graph, const Tensor& tensor) {
    std::vector<std::string> dims;
    for (const Expression dim : tensor.shape) dims.push_back(graph.expressions.to_string(dim));
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

Columns<OpenDimension> dimension_columns() {
    const auto axes = [](const OpenDimension& dimension) {
        const std::vector<std::string>& all = dimension.axes;
        std::string text = all.empty() ? "of none: it lies inside" : "";
        text += fmt::format("{}", fmt::join(std::span(all).first(std::min(most_listed, all.size())), ", "));
        if (all.size() > most_listed) text += fmt::format(" and {} more", all.size() - most_listed);
        return Value(all, text);
    };
    return {{"symbol", "dimension", Unit::text, &OpenDimension::symbol},
            {"axes", "dimensions of inputs", Unit::text, axes},
            {"flag", "given by", Unit::text, &OpenDimension::flag}};
}

}  // namespace

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
