#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ftax/error.hpp"
#include "src/io/csv.hpp"
#include "src/io/escape.hpp"
#include "src/io/json_document.hpp"
#include "src/report/model_report.hpp"

namespace ftax::report {
namespace {

std::string typed_name(const Graph& graph, const Tensor& tensor) {
    std::vector<std::string> dims;
    for (const Expression dim : tensor.shape) dims.push_back(graph.expressions.to_string(dim));
    return fmt::format("{} {}[{}]", tensor.name, name_of(tensor.dtype), fmt::join(dims, ","));
}

}  // namespace

bool is_bound(const Graph& graph, const ShapeBindings& bindings) {
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    for (const auto& [name, value] : bindings) {
        if (std::find(symbols.begin(), symbols.end(), name) != symbols.end()) continue;
        throw Error(ErrorCode::usage, fmt::format("{}: no dynamic dimension is called {} (known: {})", graph.name, name,
                                                  fmt::join(symbols, ", ")));
    }
    return bindings.size() == symbols.size();
}

OpenModelReport open_model_report(const Graph& graph) {
    OpenModelReport report{.model = graph.name,
                           .format = graph.format,
                           .operators = static_cast<std::int64_t>(graph.ops.size()),
                           .warnings = graph.warnings};
    for (const std::string& symbol : graph.expressions.symbols()) {
        report.dimensions.push_back(
            {symbol, {}, symbol == "batch" ? std::string("--batch N") : fmt::format("--dim {}=N", symbol)});
    }
    for (const TensorId id : graph.inputs) {
        const Tensor& input = graph.tensors[id];
        report.inputs.push_back(typed_name(graph, input));
        for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
            const std::vector<std::string> inside = graph.expressions.symbols_of(input.shape[axis]);
            for (OpenDimension& dimension : report.dimensions) {
                if (std::find(inside.begin(), inside.end(), dimension.symbol) == inside.end()) continue;
                dimension.axes.push_back(fmt::format("{}.{}", input.name, axis));
            }
        }
    }
    for (const TensorId id : graph.outputs) report.outputs.push_back(typed_name(graph, graph.tensors[id]));
    return report;
}

std::string to_table(const OpenModelReport& report, Style style) {
    constexpr std::size_t shown = 4;
    std::string text = toned(escape_terminal(fmt::format("{} ({})", report.model, report.format)), Tone::strong, style);
    text +=
        fmt::format("\n{} operators; work and bytes follow from the dimensions that are open:\n\n", report.operators);
    Table table({{"dimension", Align::left}, {"given by", Align::left}, {"dimensions of inputs", Align::left}});
    for (const OpenDimension& dimension : report.dimensions) {
        const auto& axes = dimension.axes;
        std::string listed = axes.empty() ? "of none: it lies inside" : axes.front();
        for (std::size_t i = 1; i < std::min(shown, axes.size()); ++i) listed += ", " + axes[i];
        if (axes.size() > shown) listed += fmt::format(" and {} more", axes.size() - shown);
        table.add({{dimension.symbol}, {dimension.flag}, {listed}});
    }
    text += table.print(style) + "\n";
    const auto lines = [&](std::string_view label, const std::vector<std::string>& tensors) {
        for (std::size_t i = 0; i < std::min(shown, tensors.size()); ++i) {
            text += fmt::format("{} {}\n", label, escape_terminal(tensors[i]));
        }
        if (tensors.size() > shown) text += fmt::format("{} … {} more\n", label, tensors.size() - shown);
    };
    lines("input ", report.inputs);
    lines("output", report.outputs);
    return text;
}

std::string to_json(const OpenModelReport& report) {
    auto dimensions = nlohmann::ordered_json::array();
    for (const OpenDimension& d : report.dimensions) {
        dimensions.push_back({{"symbol", d.symbol}, {"axes", d.axes}, {"flag", d.flag}});
    }
    return to_text(nlohmann::ordered_json{{"schema_version", 1},
                                          {"model", report.model},
                                          {"format", report.format},
                                          {"open", std::move(dimensions)},
                                          {"inputs", report.inputs},
                                          {"outputs", report.outputs},
                                          {"operators", report.operators},
                                          {"warnings", report.warnings}});
}

std::string to_csv(const OpenModelReport& report) {
    std::string text;
    append_csv_row(text, std::vector<std::string>{"symbol", "axis", "flag"});
    for (const OpenDimension& d : report.dimensions) {
        for (const std::string& axis : d.axes) append_csv_row(text, std::vector<std::string>{d.symbol, axis, d.flag});
    }
    return text;
}

}  // namespace ftax::report
