#include "ftax/anchor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ftax/error.hpp"
#include "predictors/host/host_costs.hpp"

namespace ftax {
namespace {

/// A host-bound row's residual that counts as usual. Source: leave one model out on framework_tax.csv, eager, median 6
/// %.
constexpr double row_log_stddev = 0.08;
/// A row is host-bound when the predicted device time stays below a share of it: device predictions may be 40 % low.
/// Where no row passes, those at a larger share are taken at less weight.
struct HostBound {
    double device_share, row_log_stddev;
    bool operator()(const AnchorRow& row) const { return row.device_s < device_share * row.measured_s; }
};
constexpr HostBound clearly{0.6, row_log_stddev};
constexpr HostBound probably{0.85, 0.2};
constexpr double contradiction = 3;

/// Priors of the scalars. Source: the 43 hosts of framework_tax.csv: scales 0.57 to 1.19 (other CPUs spread further);
/// BLAS calls 2–10 µs on four hosts of five, 58–108 µs on the others. Engine calls: host_costs.cpp.
constexpr double scale_log_stddev = 0.5;
struct CallMode {
    double weight, median_s, log_stddev;
};
constexpr CallMode blas_modes[] = {{0.8, 5e-6, 0.7}, {0.2, 80e-6, 0.35}};
constexpr CallMode engine_modes[] = {{1, 400e-6, 0.7}};
std::span<const CallMode> modes_of(std::string_view call) {
    if (call == "host.engine_call") return engine_modes;
    return blas_modes;
}

/// Halfway between the modes: a search from there reaches each of them.
double log_middle(std::span<const CallMode> modes) {
    double sum = 0;
    for (const CallMode& mode : modes) sum += std::log(mode.median_s);
    return sum / static_cast<double>(modes.size());
}

constexpr double square(double x) {
    return x * x;
}
double soft_l1(double squared) {
    return 2 * (std::sqrt(1 + squared) - 1);
}

struct Scalars {
    double log_scale = 0, log_call_s = 0;
};

double prior_cost(const Scalars& s, std::span<const CallMode> modes) {
    double density = 0;
    for (const CallMode& mode : modes) {
        density += mode.weight / mode.log_stddev *
                   std::exp(-square((s.log_call_s - std::log(mode.median_s)) / mode.log_stddev) / 2);
    }
    return square(s.log_scale / scale_log_stddev) / 2 - std::log(density);
}

/// Negative log posterior.
double cost(const Scalars& scalars, std::span<const AnchorRow> rows, std::span<const double> weights,
            const HostBound& is_host_bound) {
    double sum = prior_cost(scalars, modes_of(rows.front().call));
    const double scale = std::exp(scalars.log_scale);
    const double call_s = std::exp(scalars.log_call_s);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double host_s = scale * rows[i].host_s + call_s * rows[i].calls;
        const double latency_s = std::max(host_s, scale * rows[i].forward_s + rows[i].device_s);
        double residual = std::log(latency_s / rows[i].measured_s) / is_host_bound.row_log_stddev;
        if (!is_host_bound(rows[i])) residual = std::max(residual, 0.0);
        sum += weights[i] * soft_l1(square(residual)) / 2;
    }
    return sum;
}

/// Minimises over a grid that shrinks around its best point; the posterior may have two modes along the axis of the
/// calls.
Scalars minimise(std::span<const AnchorRow> rows, std::span<const double> weights, const HostBound& is_host_bound) {
    constexpr int points = 12;
    Scalars centre{0, log_middle(modes_of(rows.front().call))};
    double scale_range = std::log(12.0);
    double call_range = std::log(20.0);
    double best_cost = std::numeric_limits<double>::infinity();
    for (int level = 0; level < 8; ++level) {
        Scalars best = centre;
        for (int i = -points; i <= points; ++i) {
            for (int j = -points; j <= points; ++j) {
                const Scalars at{centre.log_scale + scale_range * i / points,
                                 centre.log_call_s + call_range * j / points};
                const double value = cost(at, rows, weights, is_host_bound);
                if (value < best_cost) best_cost = value, best = at;
            }
        }
        centre = best;
        scale_range /= 4;
        call_range /= 4;
    }
    return centre;
}

/// Rows of one model share its errors: together they weigh as the square root of their number.
std::vector<double> correlation_weights(std::span<const AnchorRow> rows) {
    std::map<std::string, int> per_model;
    for (const AnchorRow& row : rows) ++per_model[row.model];
    std::vector<double> weights;
    for (const AnchorRow& row : rows) weights.push_back(1 / std::sqrt(per_model[row.model]));
    return weights;
}

/// Keeps the largest set of host-bound rows that agree on the scale within a factor 3 (of equal ones the faster:
/// measurements err towards slow) and all rows that the device explains; names the others.
std::vector<AnchorRow> agreeing_rows(std::span<const AnchorRow> rows, const HostBound& is_host_bound,
                                     std::vector<std::string>& warnings) {
    struct ScaledRow {
        double scale;
        const AnchorRow* row;
    };
    std::vector<ScaledRow> scaled_rows;
    std::vector<AnchorRow> kept;
    for (const AnchorRow& row : rows) {
        if (is_host_bound(row) && row.host_s > 0) {
            const double calls_s = row.calls * modes_of(row.call).front().median_s;
            scaled_rows.push_back({row.measured_s / (row.host_s + calls_s), &row});
        } else {
            kept.push_back(row);
        }
    }
    std::sort(scaled_rows.begin(), scaled_rows.end(), [](const auto& a, const auto& b) { return a.scale < b.scale; });
    std::size_t best_first = 0;
    std::size_t best_count = 0;
    for (std::size_t first = 0, end = 0; first < scaled_rows.size(); ++first) {
        while (end < scaled_rows.size() && scaled_rows[end].scale <= contradiction * scaled_rows[first].scale) ++end;
        if (end - first > best_count) best_first = first, best_count = end - first;
    }
    for (std::size_t i = 0; i < scaled_rows.size(); ++i) {
        if (i >= best_first && i < best_first + best_count) {
            kept.push_back(*scaled_rows[i].row);
            continue;
        }
        const double agreed = scaled_rows[best_first + best_count / 2].scale;
        warnings.push_back(
            fmt::format("anchor rows contradict each other by more than a factor {}: {} implies {:.2g} × the "
                        "host time that {} other rows agree on; it is left out",
                        contradiction, scaled_rows[i].row->label, scaled_rows[i].scale / agreed, best_count));
    }
    return kept;
}

void set(FrameworkProfile& profile, std::string_view name, double value, double relative_stddev) {
    const auto at = std::lower_bound(profile.parameters.begin(), profile.parameters.end(), name,
                                     [](const Parameter& p, std::string_view n) { return p.name < n; });
    const Parameter parameter{std::string(name), value, relative_stddev, "anchor rows"};
    if (at != profile.parameters.end() && at->name == name) {
        *at = parameter;
    } else {
        profile.parameters.insert(at, parameter);
    }
}

}  // namespace

HostScalars fit_host(std::span<const AnchorRow> rows) {
    if (rows.empty()) throw Error(ErrorCode::usage, "there are no anchor rows");
    HostScalars host{.call = rows.front().call};
    const HostBound& is_host_bound = std::any_of(rows.begin(), rows.end(), clearly) ? clearly : probably;
    const std::vector<AnchorRow> kept = agreeing_rows(rows, is_host_bound, host.warnings);
    host.host_bound_rows = static_cast<std::size_t>(std::count_if(kept.begin(), kept.end(), is_host_bound));
    if (host.host_bound_rows == 0) {
        host.warnings.push_back("the device explains all anchor rows: they only bound the host's speed from below");
    }
    const std::vector<double> weights = correlation_weights(kept);
    const Scalars best = minimise(kept, weights, is_host_bound);
    host.scale = std::exp(best.log_scale);
    host.call_s = std::exp(best.log_call_s);

    // Standard deviations from the curvature of the cost at its minimum.
    constexpr double step = 0.02;
    const auto at = [&](double i, double j) {
        return cost({best.log_scale + i * step, best.log_call_s + j * step}, kept, weights, is_host_bound);
    };
    const double scale_curvature = (at(1, 0) - 2 * at(0, 0) + at(-1, 0)) / square(step);
    const double call_curvature = (at(0, 1) - 2 * at(0, 0) + at(0, -1)) / square(step);
    const double mixed = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / square(2 * step);
    const double determinant = scale_curvature * call_curvature - square(mixed);
    if (determinant > 0 && call_curvature > 0) {
        host.scale_relative_stddev = std::min(scale_log_stddev, std::sqrt(call_curvature / determinant));
        host.call_relative_stddev = std::sqrt(scale_curvature / determinant);
    }
    return host;
}

FrameworkProfile anchored(FrameworkProfile profile, const HostScalars& host) {
    set(profile, "host.scale", host.scale, host.scale_relative_stddev);
    set(profile, host.call, host.call_s, host.call_relative_stddev);
    profile.host = "anchored";
    profile.warnings.insert(profile.warnings.end(), host.warnings.begin(), host.warnings.end());
    return profile;
}

AnchorRow anchor_row(const Measurement& row, Predictor& predictor, const ShapeBindings& bindings) {
    std::vector<LaunchCosts> launches;
    const Prediction prediction = predictor.predict(bindings, launches);
    AnchorRow result{.measured_s = row.latency_s, .device_s = prediction.device_s, .model = row.model};
    result.call = second_scalar(model_of(predictor.framework()));
    for (const LaunchCosts& op : launches) result.calls += pays_second_scalar(op) ? 1 : 0;
    const double call_s = host_parameter(predictor.framework(), result.call);
    const double scale = host_parameter(predictor.framework(), "host.scale");
    const LaunchCosts& first = launches.front();
    if (predictor.synchronized() && !pays_second_scalar(first)) result.forward_s = first.host_s / scale;
    result.host_s = (prediction.host_s - result.calls * call_s) / scale;
    result.label = fmt::format("line {}: {}, batch {}", row.line, row.model, row.batch);
    return result;
}

HostKey host_key(const Measurement& row) {
    return {row.framework, row.run, row.gpu};
}

std::map<HostKey, HostScalars> fit_hosts(std::span<const Measurement> rows,
                                         const std::function<AnchorRow(const Measurement&)>& predict) {
    if (rows.empty()) throw Error(ErrorCode::usage, "there are no anchor rows");
    std::map<HostKey, std::vector<AnchorRow>> anchors;
    std::map<HostKey, std::vector<std::string>> problems;
    for (const Measurement& row : rows) {
        const HostKey key = host_key(row);
        try {
            anchors[key].push_back(predict(row));
        } catch (const Error& error) {
            problems[key].push_back(fmt::format("anchor line {}: {}", row.line, error.what()));
        }
    }
    std::map<HostKey, HostScalars> hosts;
    for (const auto& [key, own] : anchors) {
        if (own.empty()) continue;
        HostScalars& host = hosts[key] = fit_host(own);
        host.warnings.insert(host.warnings.end(), problems[key].begin(), problems[key].end());
    }
    return hosts;
}

}  // namespace ftax
