#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/predict.hpp"
#include "src/io/csv.hpp"
#include "src/report/chart.hpp"
#include "src/report/prediction_report.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::report {

/// Draws latency against batch: prediction with its interval, host and device sums, measurements, the crossovers.
/// Rows without a batch stand at 1.
[[nodiscard]] Chart latency_chart(const PredictionReport& report);

/// Adds a mark at each crossover, called `label` and its batch.
void mark_crossovers(Chart& chart, const std::vector<Crossover>& crossovers, std::string_view label);

/// Says what a row measured, in words: the columns that tell it from others.
[[nodiscard]] std::string identity_of(const CsvTable& table, std::size_t row);

/// Draws predicted against measured milliseconds, coloured by the first of framework, GPU, precision and operator that
/// has several values: the most frequent ones each, the others together. There must be a prediction.
[[nodiscard]] Chart validation_chart(const CsvTable& table, std::span<const ValidatedRow> rows);

/// Kernels of one prediction that are the same in all that counts; times, FLOPs and bytes are of one of them.
struct RooflineKernel : KernelDetail {
    std::string op;  ///< kind of the operator that launches it
    int launches = 0;
    double roof_flops_per_s = 0;  ///< what the datasheet allows at its intensity on its units; 0 where it names no peak

    [[nodiscard]] double intensity() const { return flops / bytes; }
    [[nodiscard]] double flops_per_s() const { return flops / seconds; }
    [[nodiscard]] double of_roof() const { return flops_per_s() / roof_flops_per_s; }
};

/// Collects the kernels of a prediction, whose launches count in `graph` (Predictor::graph), that move bytes and
/// calculate; those that take most time together first.
[[nodiscard]] std::vector<RooflineKernel> roofline_kernels(const DeviceSpec& device, const Graph& graph,
                                                           const Explanation& explanation);

/// Draws achieved FLOP/s against arithmetic intensity under the datasheet's roof of each kind of units that is used;
/// dots as large as their share of the device time. There must be a kernel. Source: Williams, Waterman and Patterson,
/// "Roofline", CACM 52(4), 2009.
[[nodiscard]] Chart roofline_chart(const std::vector<RooflineKernel>& kernels, const DeviceSpec& device,
                                   std::string_view title);

}  // namespace ftax::report
