#include <fmt/format.h>

#include "src/report/page.hpp"
#include "src/report/prediction_report.hpp"
#include "src/report/quantities.hpp"

namespace ftax::report {

Grid diagnosis_grid(const PredictionReport& report, std::string_view keys, double least_share) {
    using Row = Hypothesis;
    std::vector<Row> likely = report.diagnosis;
    std::erase_if(likely, [&](const Row& row) { return row.share < least_share; });
    const auto predicted = [](const Row& row) {
        std::string text;
        for (const double latency_s : row.latency_s) text += (text.empty() ? "" : ", ") + duration(latency_s);
        return Value(row.latency_s, text);
    };
    return Columns<Row>{{"name", "", Unit::text, &Row::name},
                        {"sentence", "what may explain it", Unit::text, &Row::sentence},
                        {"latency_s", "predicted then", Unit::text, predicted},
                        {"share", "probability", Unit::share, &Row::share}}
        .select(likely, keys);
}

Grid advice_grid(const PredictionReport& report, std::string_view keys) {
    using Row = Advice;
    const auto interval = [](const Row& row) { return range_value(row.low_s, row.high_s, milliseconds); };
    const auto batch = report.rows.front().batch;
    const auto speed = [](const Row& row) { return Value(row.speed, significant(row.speed) + "x", Tone::strong); };
    return Columns<Row>{
        {"name", batch ? fmt::format("what next at batch {}", *batch) : "what next", Unit::text, &Row::name},
        {"code", "how", Unit::text, &Row::code},
        {"latency_s", "latency", Unit::milliseconds, &Row::latency_s},
        {"low_s", "from", Unit::milliseconds, &Row::low_s},
        {"high_s", "to", Unit::milliseconds, &Row::high_s},
        {"interval", "90 % interval", Unit::plain, interval},
        {"speed", "speed", Unit::plain, speed},
        {"bound", "bound", Unit::text, &Row::bound}}
        .select(report.advice, keys);
}

std::string what_next_sections(const PredictionReport& report) {
    std::string html;
    if (!report.advice.empty())
        html +=
            section("What next", advice_grid(report, "=name =latency_s =interval =speed =code").page_table("advice"));
    if (!report.diagnosis.empty())
        html += section("What may explain the measurement",
                        diagnosis_grid(report, "=sentence =latency_s =share").page_table("diagnosis"));
    return html;
}

}  // namespace ftax::report
