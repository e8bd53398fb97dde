#include "src/scenario/machine_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <optional>
#include <tuple>
#include <utility>

#include "calibration/bench/bench_device.hpp"
#include "calibration/bench/operator_cases.hpp"
#include "calibration/rows/measurement_file.hpp"
#include "ftax/import.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/number.hpp"
#include "predictors/frameworks/framework_model.hpp"
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

double launches_of(const std::vector<CountedKernel>& kernels) {
    double count = 0;
    for (const CountedKernel& kernel : kernels) count += kernel.count;
    return count;
}

const std::string default_framework = "pytorch-eager";

struct Case {
    std::string mode, framework, name;
    Precision precision = Precision::fp32;
    bool is_operator = false;
    bool calls_modules = true;  ///< false for networks run from ftax's own graphs
    bool channels_last = false;
    std::map<std::string, std::int64_t> sizes;  ///< an operator's shape, or the bindings of a network

    friend auto operator<=>(const Case&, const Case&) = default;
};

class Collector {
  public:
    Collector(const std::set<std::string>& left_out_models, const Warn& warn)
        : left_out_(left_out_models), warn_(warn) {}

    void add(CsvTable table) {
        if (holds_runtime(table)) {
            add_runtime(table);
        } else if (holds_operators(table)) {
            const auto file = read_operator_measurements(std::move(table));
            for_usable(file, [&](const OperatorMeasurement& row, Case& found) {
                found.name = row.op;
                found.is_operator = true;
                found.sizes = row.shape;
            });
        } else {
            const auto file = read_model_measurements(std::move(table));
            for_usable(file, [&](const Measurement& row, Case& found) {
                found.name = row.model;
                found.framework = row.framework;
                found.sizes = {{"batch", row.batch}};
                if (row.seq) found.sizes["seq"] = *row.seq;
            });
        }
    }

    MachineRows rows() {
        if (!device_) throw Error(ErrorCode::usage, "no row of these files was timed as device_hot or host_dispatch");
        const DeviceProfile profile = compose(embedded_device_profile(), *device_);
        MachineRows result{*device_, {}, {}, runtime_};
        for (const auto& [found, seconds] : median_rows()) {
            try {
                place(found, seconds, profile, result);
            } catch (const Error& error) {
                if (unusable_.insert(found.name).second) warn_({fmt::format("{}: {}", found.name, error.what())});
            }
        }
        return result;
    }

  private:
    void add_runtime(const CsvTable& table) {
        for (std::size_t i = 0; i < table.rows(); ++i) {
            const std::string quantity(table.cell(i, "quantity"));
            const auto number = parse_number(table.cell(i, "value"));
            if (number && *number > 0) {
                runtime_[quantity] = *number;
            } else {
                warn_({fmt::format("{}: {} is not a positive number", table.origin(), quantity)});
            }
        }
    }

    /// Skips products in element types without a Precision, with a warning.
    bool is_unmodelled(const std::string& precision) {
        if (precision.empty() || precision_from_name(precision)) return false;
        if (unmodelled_.insert(precision).second) warn_({fmt::format("rows in {} are not fitted", precision)});
        return true;
    }

    template <class Row, class Fill>
    void for_usable(const MeasurementFile<Row>& file, Fill fill) {
        const auto text = [&](std::size_t row, std::string_view column) {
            return std::string(file.table.cell(row, column));
        };
        for (std::size_t i = 0; i < file.rows.size(); ++i) {
            Case found{.mode = text(i, "mode"), .framework = lower_case(text(i, "framework"))};
            if (found.mode != name_of(bench::Mode::device_hot) && found.mode != name_of(bench::Mode::host_dispatch))
                continue;
            const std::string waits = text(i, "waits");
            if (found.mode == name_of(bench::Mode::host_dispatch) && !waits.empty() && waits != "0") continue;
            if (is_unmodelled(text(i, "precision"))) continue;
            if (!file.problems[i].empty()) {
                warn_({fmt::format("{}:{}: {}", file.table.origin(), file.rows[i].line, file.problems[i])});
                continue;
            }
            if (found.framework.empty()) found.framework = default_framework;
            found.precision = file.rows[i].precision;
            found.calls_modules = text(i, "source") != bench::graph_source;
            found.channels_last = text(i, "layout") == "nhwc";
            fill(file.rows[i], found);
            if (!found.is_operator && left_out_.contains(found.name)) continue;
            same_device(file.rows[i].gpu);
            const auto mhz = parse_number(text(i, "clock_mhz"));
            // Host times are independent of the device's clock, and a card at its power limit runs at its usual speed.
            const bool counts = found.mode == name_of(bench::Mode::device_hot) &&
                                text(i, "slowdown").find("power cap") == std::string::npos;
            timed_.push_back({std::move(found), file.rows[i].latency_s, counts ? mhz : std::nullopt});
        }
    }

    /// Returns the median time of each case, without rows at unusually low clocks (throttling, external limits).
    std::map<Case, double> median_rows() {
        constexpr double lowest = 0.85, usual_share = 0.9, most_dropped = 0.5;
        std::vector<double> clocks;
        for (const Timed& row : timed_)
            if (row.clock) clocks.push_back(*row.clock);
        std::map<Case, std::vector<double>> seconds;
        std::size_t slow = 0;
        for (const Timed& row : timed_) {
            if (row.clock && *row.clock < lowest * quantile(clocks, usual_share)) {
                ++slow;
            } else {
                seconds[row.found].push_back(row.seconds);
            }
        }
        if (static_cast<double>(slow) > most_dropped * static_cast<double>(clocks.size()))
            throw_error(ErrorCode::refused,
                        "{} of {} rows ran below {:.0f} % of the clock of the others: measure again", slow,
                        clocks.size(), 100 * lowest);
        if (slow > 0) warn_({fmt::format("{} rows at a clock far below that of the others are not fitted", slow)});
        std::map<Case, double> result;
        std::size_t disturbed = 0;
        for (auto& [found, times] : seconds) {
            const std::size_t all = times.size();
            if (found.mode == name_of(bench::Mode::host_dispatch)) times = undisturbed(std::move(times));
            disturbed += all - times.size();
            result.emplace(found, median(times));
        }
        if (disturbed > 0)
            warn_(
                {fmt::format("{} host times of {} exceed their fastest repetition by over a quarter and are not "
                             "fitted: other load on this machine",
                             disturbed, timed_.size())});
        return result;
    }

    void same_device(const std::string& gpu) {
        if (gpu == gpu_) return;
        DeviceSpec device = device_spec(gpu);
        if (device_ && device_->slug != device.slug)
            throw_error(ErrorCode::profile, "rows of {} and of {}: fit each machine separately", device_->slug,
                        device.slug);
        gpu_ = gpu;
        device_ = std::move(device);
    }

    const Graph& graph(const Case& found) {
        std::string key = found.name;
        if (found.is_operator) key += " " + bench::shape_text({found.name, found.sizes});
        return kept_in(graphs_, key, [&] {
            return found.is_operator ? bench::operator_graph({found.name, found.sizes})
                                     : ftax::load_graph("zoo:" + found.name);
        });
    }

    void place(const Case& found, double seconds, const DeviceProfile& profile, MachineRows& result) {
        const Graph& graph = this->graph(found);
        const ShapeBindings bindings =
            found.is_operator ? ShapeBindings{} : ShapeBindings(found.sizes.begin(), found.sizes.end());
        const PredictOptions options{.precision = found.precision,
                                     .channels_last = found.channels_last,
                                     .libraries = {.cudnn = 9},
                                     .synchronized = true};
        if (found.mode == name_of(bench::Mode::host_dispatch)) {
            const auto batch = bindings.find("batch");
            if (!found.is_operator && batch != bindings.end() && batch->second > largest_host_batch) return;
            Predictor predictor(graph, profile, framework_profile(found.framework), options);
            const Measurement row{.gpu = device_->slug,
                                  .framework = found.framework,
                                  .precision = found.precision,
                                  .model = found.name,
                                  .batch = bindings.contains("batch") ? bindings.at("batch") : 1,
                                  .latency_s = seconds};
            fit::HostRow host = fit::host_row(row, predictor, bindings);
            if (!found.calls_modules) host.operations[static_cast<std::size_t>(HostKind::module_call)] = 0;
            result.host_rows[found.framework].push_back(std::move(host));
            return;
        }
        const FrameworkModel& framework = framework_model(found.framework);
        const std::optional<Graph> optimised = optimised_graph(graph, framework, *device_, options);
        const Graph& source = optimised ? *optimised : graph;
        Schedule schedule = lower(source, *device_, options, framework.traits);
        // Calls of an operator cycle through copies of its weights.
        if (found.is_operator) schedule.weight_bytes *= bench::weight_sets(graph, found.precision, *device_);
        std::vector<CountedKernel> kernels = list_kernels(source, schedule, bind(source, bindings));
        // Operators are measured in their stated precision, networks with PyTorch's defaults (TF32 convolutions).
        for (CountedKernel& kernel : kernels)
            if (found.is_operator && found.precision == Precision::fp32 && kernel.path == MathPath::tf32)
                kernel.path = MathPath::fp32;
        if (kernels.empty()) return;
        const double gap_s = fit::kernel_gap_s(runtime_, framework)
                                 .value_or(host_parameter(framework_profile(found.framework), "kernel_gap_s"));
        const double gaps_s = gap_s * launches_of(kernels);
        result.device_rows.push_back(
            {.kernels = std::move(kernels), .gaps_s = gaps_s, .latency_s = seconds, .group = found.name});
    }

    const std::set<std::string>& left_out_;
    const Warn& warn_;
    std::string gpu_;
    std::optional<DeviceSpec> device_;
    struct Timed {
        Case found;
        double seconds;
        std::optional<double> clock;  ///< in MHz; set if it decides whether the row is used
    };
    std::vector<Timed> timed_;
    std::map<std::string, Graph> graphs_;
    std::set<std::string> unusable_, unmodelled_;
    fit::RuntimeQuantities runtime_;
};

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
                const double count = launches_of(kernels);
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

bool holds_modes(const CsvTable& table) {
    if (table.rows() == 0) return false;
    constexpr int modes = static_cast<int>(bench::Mode::end_to_end) + 1;
    for (int i = 0; i < modes; ++i)
        if (table.cell(0, "mode") == name_of(static_cast<bench::Mode>(i))) return true;
    return false;
}

bool holds_runtime(const CsvTable& table) {
    return table.column("quantity") && table.column("value");
}

MachineRows machine_rows(std::vector<CsvTable> tables, const std::set<std::string>& left_out_models, const Warn& warn) {
    Collector collector(left_out_models, warn);
    for (CsvTable& table : tables) collector.add(std::move(table));
    return collector.rows();
}

}  // namespace ftax::scenario
