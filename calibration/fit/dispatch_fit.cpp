#include "calibration/fit/dispatch_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibration/fit/memory_fit.hpp"
#include "predictors/operator.hpp"
#include "predictors/profile_parameters.hpp"

namespace ftax::fit {
namespace {

constexpr double host_counts = 0.5;  // kernels up to this share of the latency
constexpr std::size_t fewest_rows = 20;
constexpr std::string_view dispatch_prefix = "operator.dispatch_s.";
constexpr std::string_view growth_name = "operator.conv_growth_s";

/// Host time of a row that was the `order`-th of its campaign.
struct HostTime {
    double order = 0;
    double host_s = 0;
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct Line {
    double start = 0, slope = 0;
};

/// Fits a line through the medians of ten spans of the campaign, which leaves out single slow rows.
Line line_through(std::vector<HostTime> times) {
    std::sort(times.begin(), times.end(), [](const HostTime& a, const HostTime& b) { return a.order < b.order; });
    constexpr std::size_t spans = 10;
    Eigen::Matrix<double, spans, 2> x;
    Eigen::Matrix<double, spans, 1> y;
    for (std::size_t i = 0; i < spans; ++i) {
        std::vector<double> orders, hosts;
        for (std::size_t j = i * times.size() / spans; j < (i + 1) * times.size() / spans; ++j) {
            orders.push_back(times[j].order);
            hosts.push_back(times[j].host_s);
        }
        x(static_cast<Eigen::Index>(i), 0) = 1;
        x(static_cast<Eigen::Index>(i), 1) = median(orders);
        y(static_cast<Eigen::Index>(i)) = median(hosts);
    }
    const Eigen::Vector2d fitted = x.colPivHouseholderQr().solve(y);
    return {fitted[0], fitted[1]};
}

}  // namespace

FitReport fit_dispatch(std::span<const DispatchRow> rows, const DeviceProfileFile& kernels) {
    struct Known {
        OperatorModel model;
        double scale;
    };
    std::map<std::string, Known> devices;
    std::map<std::pair<std::string, std::string>, std::vector<HostTime>> times;  // by operator and device
    for (const DispatchRow& row : rows) {
        const std::string& slug = row.device->slug;
        auto known = devices.find(slug);
        if (known == devices.end()) {
            const DeviceProfile profile = compose(kernels, *row.device);
            const auto host = profile_parameters<OperatorHostParameters<double>>(profile);
            known = devices.emplace(slug, Known{OperatorModel(profile), host.scale}).first;
        }
        const auto predicted = known->second.model.predict(*row.measured);
        if (!predicted || predicted->kernel_s > host_counts * row.measured->latency_s) continue;
        times[{row.measured->op, slug}].push_back({row.order, row.measured->latency_s - predicted->kernel_s});
    }

    FitReport report;
    report.kernel_class = "dispatch";
    report.converged = true;
    std::map<std::string, std::vector<double>> by_name;
    for (const auto& [key, of_device] : times) {
        const auto& [op, slug] = key;
        if (of_device.size() < fewest_rows) continue;
        const double scale = devices.at(slug).scale;
        const std::string source = "fitted: " + std::to_string(of_device.size()) + " " + op + " rows";
        const auto add = [&](const std::string& name, double value) {
            report.nuisance.push_back({{name, value, 0, source}, ParameterScope::device, slug});
            by_name[name].push_back(value);
        };
        const std::string name = std::string(dispatch_prefix) + op;
        if (op == "conv") {
            const Line line = line_through(of_device);
            add(name, line.start / scale);
            add(std::string(growth_name), line.slope);
        } else {
            std::vector<double> hosts;
            for (const HostTime& time : of_device) hosts.push_back(time.host_s);
            add(name, median(std::move(hosts)) / scale);
        }
    }
    for (auto& [name, values] : by_name) {
        const std::string source = "shorth of " + std::to_string(values.size()) + " devices";
        report.nuisance.push_back({{name, shorth(std::move(values)), 0, source}, ParameterScope::shared, ""});
    }
    return report;
}

}  // namespace ftax::fit
