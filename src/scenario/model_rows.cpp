#include "src/scenario/model_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "ftax/error.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/files/escape.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/scenario/row_predictor.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {
namespace {

/// Returns which points of one latency curve are compute-bound: latency grows 1.75- to 2.6-fold per doubling of the
/// batch there, beyond which something else slowed the run, and exceeds 1.5 times the flat start. `batches` ascending.
/// Source: a rule of thumb: where the host does not decide, twice the work takes about twice the time.
std::vector<bool> compute_bound_points(const std::vector<double>& batches, const std::vector<double>& latency_s) {
    std::vector<bool> bound(batches.size(), false);
    const double flat_s = std::ranges::min(latency_s);
    for (std::size_t i = 1; i < batches.size(); ++i) {
        const double growth = std::pow(latency_s[i] / latency_s[i - 1], 1 / std::log2(batches[i] / batches[i - 1]));
        bound[i] = growth >= 1.75 && growth <= 2.6 && latency_s[i] > 1.5 * flat_s;
    }
    return bound;
}

}  // namespace

std::vector<fit::ModelRow> model_rows(const MeasurementFile<Measurement>& file, const ModelRowSelection& selection) {
    using Curve = std::tuple<std::string, std::string, std::string, std::string, Precision, std::string, std::int64_t>;
    std::map<Curve, std::map<double, std::vector<const Measurement*>>> curves;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        const Measurement& row = file.rows[i];
        if (!file.problems[i].empty() || std::ranges::count(selection.frameworks, row.framework) == 0 ||
            row.mode == "train" || !row.option.empty())
            continue;
        if (std::ranges::count(selection.left_out_models, row.model) > 0 ||
            std::ranges::count(selection.left_out_runs, row.gpu + ":" + row.run) > 0 ||
            std::ranges::count(selection.left_out_devices, device_spec(row.gpu).slug) > 0)
            continue;
        const std::int64_t size = row.input.value_or(row.seq.value_or(0));
        curves[{row.gpu, row.framework, row.model, row.run, row.precision, row.layout, size}]
              [static_cast<double>(row.batch)]
                  .push_back(&row);
    }
    std::vector<fit::ModelRow> rows;
    RowPredictor graphs({.models = selection.models_folder});
    std::set<std::string> missing;
    for (const auto& [key, curve] : curves) {
        std::vector<double> batches;
        std::vector<double> latency_s;
        for (const auto& [batch, measured] : curve) {
            batches.push_back(batch);
            latency_s.push_back(upper_median(mapped(measured, &Measurement::latency_s)));
        }
        std::vector<bool> device_bound = compute_bound_points(batches, latency_s);
        const bool alone = batches.size() == 1;
        if (alone) device_bound[0] = true;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            if (!device_bound[i]) continue;
            const Measurement& row = *curve.at(batches[i]).front();
            try {
                const DeviceSpec& device = device_spec(row.gpu);
                std::vector<CountedKernel> kernels = graphs.kernels(row);
                double count = 0;
                for (const CountedKernel& kernel : kernels) count += kernel.count;
                // The slowest hosts of framework_tax.csv take 50 µs per kernel; a single batch may be waiting for one.
                if (alone && latency_s[i] < 50e-6 * count) continue;
                const double gap_s = host_parameter(framework_profile(row.framework), "kernel_gap_s");
                rows.push_back({&device, std::move(kernels), gap_s * count, latency_s[i], row.model, row.precision,
                                fmt::format("{} {} {}", device.slug, row.framework, name_of(row.precision))});
            } catch (const Error& error) {
                if (missing.insert(row.model).second)
                    fmt::print(notices(), "warning: {}: {}\n", escape_terminal(row.model), error.what());
                break;
            }
        }
    }
    return rows;
}

}  // namespace ftax::scenario
