#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/predict.hpp"
#include "graphs/files/csv.hpp"
#include "src/report/chart.hpp"
#include "src/report/choice.hpp"
#include "src/report/prediction_report.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::report {

/// Draws latency against batch (or 1): prediction, interval, host and device sums, measurements, crossovers.
[[nodiscard]] Chart latency_chart(const PredictionReport& report);

/// Adds a mark at each crossover, labelled with `label` and its batch.
void mark_crossovers(Chart& chart, const std::vector<Crossover>& crossovers, std::string_view label);

/// Returns a description of a measured row: the columns that distinguish it from others.
[[nodiscard]] std::string identity_of(const CsvTable& table, std::size_t row);

/// Draws predicted against measured milliseconds, coloured by the first of framework, GPU, precision and operator with
/// several values: separately for the most frequent ones, together for the others. Requires a prediction.
[[nodiscard]] Chart validation_chart(const CsvTable& table, std::span<const ValidatedRow> rows);

/// Group of equivalent kernels of one prediction; times, FLOPs and bytes are those of one kernel.
struct RooflineKernel : KernelDetail {
    std::string op;  ///< kind of the operator that launches it
    int launches = 0;
    double roof_flops_per_s = 0;  ///< datasheet roof at its intensity on its units; 0 if there is no peak

    [[nodiscard]] double intensity() const { return flops / bytes; }
    [[nodiscard]] double flops_per_s() const { return flops / seconds; }
    [[nodiscard]] double of_roof() const { return flops_per_s() / roof_flops_per_s; }
};

/// Collects the kernels of a prediction of `graph` (Predictor::graph) with traffic and arithmetic, longest time first.
[[nodiscard]] std::vector<RooflineKernel> roofline_kernels(const DeviceSpec& device, const Graph& graph,
                                                           const Explanation& explanation);

/// Draws achieved FLOP/s over arithmetic intensity under the datasheet roof of each kind of units in use; dots scale
/// with their share of the device time. Requires a kernel. Source: Williams et al., "Roofline", CACM 52(4), 2009.
[[nodiscard]] Chart roofline_chart(const std::vector<RooflineKernel>& kernels, const DeviceSpec& device,
                                   std::string_view title);

/// Draws a line per combination and, where cards differ and something else does too, a chart per card with the same
/// axes. The first line of each stands out with its interval. `frame` has the title and the labels of a chart.
[[nodiscard]] std::string choice_figures(const std::vector<const Choice*>& choices, const Chart& frame,
                                         const std::function<std::vector<ChartPoint>(const Choice&)>& points_of);

/// Draws the latency of choices over the batch.
[[nodiscard]] std::string choice_figures(const std::vector<const Choice*>& choices, std::string_view latency);

}  // namespace ftax::report
