#include "src/report/explorer_page.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "src/core/embedded.hpp"
#include "src/report/markup.hpp"
#include "src/report/page.hpp"

namespace ftax::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view explorer_script = "src/report/assets/explorer.js";

/// Microseconds in whole numbers: a page over ten cards has ten thousand of them.
Json microseconds(const std::vector<PredictionRow>& rows, double Prediction::*seconds) {
    auto json = Json::array();
    for (const PredictionRow& row : rows)
        json.push_back(static_cast<std::int64_t>(row.prediction.*seconds * 1e6 + 0.5));
    return json;
}

Json curve_json(const ExplorerCurve& curve) {
    auto bounds = Json::array();
    auto memory = Json::array();
    auto crossovers = Json::array();
    for (const Crossover& crossover : curve.crossovers)
        crossovers.push_back({{"batch", crossover.batch}, {"above", crossover.gpu_waits_above}});
    for (const PredictionRow& row : curve.rows) {
        bounds.push_back(name_of(row.prediction.bound));
        memory.push_back({static_cast<std::int64_t>(row.memory->total_bytes() / 1e6), row.memory->fits()});
    }
    return {{"latency", microseconds(curve.rows, &Prediction::latency_s)},
            {"low", microseconds(curve.rows, &Prediction::low_s)},
            {"high", microseconds(curve.rows, &Prediction::high_s)},
            {"host", microseconds(curve.rows, &Prediction::host_s)},
            {"device", microseconds(curve.rows, &Prediction::device_s)},
            {"bound", std::move(bounds)},
            {"memory", std::move(memory)},
            {"crossovers", std::move(crossovers)}};
}

/// As a script may hold it: nothing in it ends the script.
std::string script_text(const Json& json) {
    std::string text;
    for (const char c : json.dump()) {
        if (c == '<') {
            text += "\\u003c";
        } else {
            text += c;
        }
    }
    return text;
}

std::string slider(std::string_view id, std::string_view label, std::size_t count) {
    return fmt::format(
        "<label for=\"{0}\">{1}</label><input type=\"range\" id=\"{0}\" min=\"0\" max=\"{2}\" value=\"0\"{3}>"
        "<output id=\"{0}-value\" for=\"{0}\"></output>\n",
        id, escape_markup(label), count - 1, count < 2 ? " disabled" : "");
}

}  // namespace

std::string explorer_page(const ExplorerReport& report) {
    auto cards = Json::array();
    for (const ExplorerCard& card : report.cards) {
        auto curves = Json::array();
        for (const ExplorerCurve& curve : card.curves) curves.push_back(curve_json(curve));
        cards.push_back({{"name", card.name}, {"curves", std::move(curves)}});
    }
    const Json data{{"batches", report.batches},
                    {"dimension", report.dimension},
                    {"values", report.values},
                    {"cards", std::move(cards)}};
    std::string title = fmt::format("{}, {}, {}", report.model, report.framework, name_of(report.precision));
    for (const auto& [symbol, value] : report.dims) title += fmt::format(", {} {}", symbol, value);
    std::string sliders = slider("batch", "batch", report.batches.size());
    if (!report.dimension.empty()) sliders += slider("dimension", report.dimension, report.values.size());
    sliders += slider("card", "card", report.cards.size());
    const std::string markup = fmt::format(
        "<p class=\"facts\">Host costs: {}. Drag: every answer was predicted beforehand.</p>\n"
        "<figure id=\"explorer\" class=\"spans\"><div class=\"sliders\">\n{}</div>\n"
        "<p id=\"answer\" aria-live=\"polite\"></p>\n"
        "<ul class=\"legend\"><li>latency, with its 90 % interval</li><li>host (dashed)</li><li>device "
        "(dotted)</li></ul>\n"
        "<svg class=\"ftax-chart plot\" viewBox=\"0 0 640 400\" role=\"img\" aria-label=\"latency over batch\"></svg>\n"
        "<figcaption>Where the host stands above the device, the GPU waits for the "
        "framework.</figcaption></figure>\n{}",
        escape_markup(report.host), sliders, warning_list(report.warnings));
    return page(title, markup, fmt::format("const data = {};\n{}", script_text(data), embedded_text(explorer_script)));
}

}  // namespace ftax::report
