#include "calibration/nas/host_fit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ftax::nas_study {
namespace {

constexpr std::string_view version = "1.8";
constexpr std::size_t rows_per_column = 300;

}  // namespace

fit::FrameworkFit fit_host_costs(std::span<const Column> columns, std::string_view left_out) {
    const FrameworkProfile start{.framework = std::string(nas::measured_framework), .version = std::string(version)};
    std::vector<fit::HostRow> rows;
    std::size_t used = 0;
    for (const Column& column : columns) {
        if (column.device.device.slug == left_out) continue;
        ++used;
        const std::size_t count = std::min(rows_per_column, column.samples.size());
        for (std::size_t i = 0; i < count; ++i) {
            const nas::Sample& sample = column.samples[i * column.samples.size() / count];
            std::vector<nas::Block> chain;
            column.space->blocks(sample.choices, chain);
            const Graph graph = nas::build_graph(*column.space, sample.choices);
            Predictor predictor(graph, column.device, start);
            const Measurement measurement{.gpu = column.device.device.slug,
                                          .framework = std::string(nas::measured_framework),
                                          .model = fmt::format("{} {}", column.space->name(), i),
                                          .batch = sample.batch,
                                          .run = fmt::format("{} {}", column.space->name(), column.name),
                                          .latency_s = sample.latency_s};
            rows.push_back(fit::host_row(measurement, predictor, {{"batch", sample.batch}}));
            if (column.space->waits_after_blocks()) {
                rows.back().operations[static_cast<std::size_t>(HostKind::synchronize)] +=
                    static_cast<double>(chain.size());
            }
        }
    }
    fit::FrameworkFit fitted = fit::fit_framework(std::string(nas::measured_framework), std::string(version), rows);
    fitted.reference.host = nas::measured_host;
    for (Parameter& p : fitted.reference.parameters) {
        p.source = fmt::format("fitted: nas_*.csv, {} rows of {} columns", fitted.rows, used);
    }
    return fitted;
}

}  // namespace ftax::nas_study
