#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibration/fit/operator_fit.hpp"
#include "graphs/base/statistics.hpp"
#include "predictors/host/operator_host.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

constexpr double host_counts = 0.5;        // kernels up to this share of the latency
constexpr double longest_kernel_s = 1e-4;  // an error in a longer one would count as host time
constexpr std::size_t fewest_rows = 20;

struct RowTime {
    double latency_s = 0;
    double kernel_s = 0;
    double order = 0;  ///< in its campaign
    double host_s = 0;
};

/// Median of the medians of ten spans of the campaign: neither slow rows nor a slow stretch of the host count.
double campaign_median(const std::vector<RowTime>& times) {
    const double last = std::ranges::max(times, {}, &RowTime::order).order;
    constexpr std::size_t spans = 10;
    std::array<std::vector<double>, spans> hosts;
    for (const RowTime& time : times) {
        const auto span = static_cast<std::size_t>(time.order / (last + 1) * spans);
        hosts[std::min(span, spans - 1)].push_back(time.host_s);
    }
    std::vector<double> medians;
    for (auto& of_span : hosts)
        if (!of_span.empty()) medians.push_back(quantile(std::move(of_span), 0.5));
    return quantile(std::move(medians), 0.5);
}

}  // namespace

FitReport fit_dispatch(std::span<const OperatorRow> rows, const DeviceProfileFile& kernels,
                       const HostProfileFile& hosts) {
    struct Known {
        OperatorModel model;
        OperatorHostParameters host;
    };
    std::map<std::string, Known> devices;
    std::map<std::pair<std::string, std::string>, std::vector<RowTime>> all, host_bound;  // by operator and device
    for (const OperatorRow& row : rows) {
        const bool at_idle_clock = row.conditions == Conditions::campaign_start;
        if (row.of > RowClass::conv || (row.conditions != Conditions::usual && !at_idle_clock)) continue;
        const std::string& slug = row.device->slug;
        if (!devices.contains(slug)) {
            const FrameworkProfile host = compose(hosts, slug);
            devices.emplace(slug, Known{OperatorModel(compose(kernels, *row.device), host),
                                        profile_parameters<OperatorHostParameters>(host)});
        }
        const Known& known = devices.at(slug);
        const auto predicted = known.model.predict(*row.measured);
        if (!predicted) continue;
        const double share = launch_share(row.op, known.host);
        const double host_s = host_of_latency_s(row.latency_s, share, predicted->kernel_s);
        const RowTime& time =
            all[{row.op, slug}].emplace_back(RowTime{row.latency_s, predicted->kernel_s, row.order, host_s});
        const double longest_s =
            at_idle_clock ? 0.5 * (1 - share) * row.latency_s : std::min(longest_kernel_s, host_counts * row.latency_s);
        if (predicted->kernel_s <= longest_s) host_bound[{row.op, slug}].push_back(time);
    }

    FitReport report{.kernel_class = "dispatch", .converged = true};
    std::map<std::string, std::vector<double>> by_name;
    std::map<std::pair<std::string, std::string>, std::vector<double>> errors;  // by name of the spread and device
    for (const auto& [key, of_device] : host_bound) {
        const auto& [op, slug] = key;
        if (of_device.size() < fewest_rows) continue;
        const OperatorHostParameters& host = devices.at(slug).host;
        const std::string source = "fitted: " + std::to_string(of_device.size()) + " " + op + " rows";
        const std::string name = "operator.dispatch_s." + op;
        const double host_s = campaign_median(of_device);
        by_name[name].push_back(host_s / host.host_scale);
        report.nuisance.push_back({{name, host_s / host.host_scale, 0, source}, ParameterScope::device, slug});
        if (op != "conv" && !is_product(op)) continue;  // the fit of the memory-bound operators has its own spread
        auto& of_spread = errors[{op == "conv" ? "operator.conv_spread" : "operator.product_spread", slug}];
        for (const RowTime& row : all.at(key)) {
            const double predicted_s = operator_latency_s(host_s, launch_share(op, host), row.kernel_s);
            of_spread.push_back(std::abs(std::log(predicted_s / row.latency_s)));
        }
    }
    for (auto& [key, of_spread] : errors) {
        const std::string source = "90 % of " + std::to_string(of_spread.size()) + " rows";
        report.nuisance.push_back(
            {{key.first, quantile(std::move(of_spread), 0.9), 0, source}, ParameterScope::device, key.second});
    }
    for (auto& [name, values] : by_name) {
        const std::string source = "shorth of " + std::to_string(values.size()) + " devices";
        report.nuisance.push_back({{name, shorth(std::move(values)), 0, source}, ParameterScope::shared, ""});
    }
    return report;
}

}  // namespace ftax::fit
