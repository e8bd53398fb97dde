#include "ftax/anchor.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <optional>

#include "ftax/equations.hpp"
#include "ftax/error.hpp"
#include "predictors/analysis/log_posterior.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"

namespace ftax {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using FactorVector = Eigen::Matrix<double, factor_count, 1>;
using FactorMatrix = Eigen::Matrix<double, factor_count, factor_count, Eigen::RowMajor>;

/// A row is host-bound if the predicted device time is below this share of it: device predictions may be 40 % low. If
/// no row qualifies, a larger share is used.
constexpr double clearly_host_bound = 0.6;
constexpr double probably_host_bound = 0.85;
constexpr double contradiction = 3;
/// Noise of a measured row.
constexpr double row_log_stddev = 0.04;
constexpr double least_s = 1e-12;  ///< of host and device, whose logarithms are weighed

/// Share of a framework's noise variance that remains for other batches after a row of the model.
constexpr double left_for_other_batches = 0.5;

/// Upper limit of the spread between models for anchors: profiles include outliers, which the robust loss handles.
constexpr double widest_noise = 0.15;

/// Share of the scale that is specific to one framework on one machine; the rest belongs to the CPU.
constexpr double framework_log_stddev = 0.18;
/// The same within a group of machines. Source: kernelbench.csv, eager and compiled code on seven machines.
constexpr double framework_in_group_log_stddev = 0.1;
/// What a call of cuBLAS takes; engine calls: host_costs.cpp.
struct CallMode {
    double weight, median_s, log_stddev;
};
struct ScalePrior {
    HostGroup group;
    double framework_log_stddev = 0;
    CallMode call{};
};
std::vector<CallMode> modes_of(const AnchorRow& row) {
    std::vector<CallMode> modes{{1, row.call_s, 0.7}};
    constexpr double least_query_s = 1e-6;  // profiles below it charge no heuristic query
    if (row.call == "host.blas_call" && row.call_s > least_query_s) {
        modes.front().weight = 0.8;
        modes.push_back({0.2, 80e-6, 0.35});
    }
    return modes;
}

/// Returns host.scale on the reference machine: that of the fast group, though a stack's default may be the slow one.
double reference_scale(const std::vector<HostGroup>& groups, double scale) {
    return groups.empty() ? scale : std::ranges::min(groups, {}, &HostGroup::scale).scale;
}

/// Returns the profile's belief. A CPU is as uncertain as the scale of its frameworks beyond what they differ by.
ScalePrior belief_in(const AnchorRow& row, const CallMode& call, double least_log_stddev = 0) {
    const double stddev = std::max(least_log_stddev, row.scale_log_stddev);
    const double of_framework = std::min(framework_log_stddev, stddev);
    return {{1, row.scale, std::sqrt(square(stddev) - square(of_framework))}, of_framework, call};
}

std::vector<ScalePrior> priors_of(const AnchorRow& row) {
    std::vector<ScalePrior> priors;
    for (const CallMode& call : modes_of(row)) {
        if (row.groups.empty()) priors.push_back(belief_in(row, call, any_machine_log_stddev));
        for (const HostGroup& group : row.groups) priors.push_back({group, framework_in_group_log_stddev, call});
    }
    return priors;
}

/// Deviations of the errors of served runs, in logarithms: of an engine on a card; of a model in a precision, and of
/// runs that are alike (0.6 of it an e-fold apart in sequences, cards or prompt); of what prompts and what other
/// sequences take; of a row.
constexpr double engine_log_stddev = 0.03, served_model_log_stddev = 0.08, likeness_log_stddev = 0.08;
constexpr double part_log_stddev = 0.2, served_log_stddev = 0.05;

double served_covariance(const ServedRun& a, const ServedRun& b) {
    double result = square(engine_log_stddev);
    if (a.model != b.model) return result;
    if (a.precision == b.precision) result += square(served_model_log_stddev);
    const double apart = square(std::log(a.sequences / b.sequences)) + square(std::log(a.cards / b.cards)) +
                         square(std::log(a.prompt / b.prompt));
    result += square(likeness_log_stddev) * std::exp(-apart / 2);
    return result + square(part_log_stddev) * (a.prompt_share * b.prompt_share + a.sequence_share * b.sequence_share);
}

/// Rows of one card as functions of the unknowns: scale and call of each host, the CPU of each machine, the uncertain
/// device factors, and, if there are rows of the predicted model, the errors of its host and device times.
class AnchorRows {
  public:
    std::optional<bool> host_decides{};  ///< rows are those of host or device alone, though the other may be slower

    AnchorRows(std::span<const AnchorRow> rows, const DeviceFactors& device, std::string_view model)
        : rows_(rows), device_(device) {
        std::map<std::string_view, int> per_model;
        std::map<std::pair<std::string_view, std::string_view>, int> per_host;
        for (const AnchorRow& row : rows) {
            ++per_model[row.model];
            ++per_host[{row.model, row.host}];
            hosts_.try_emplace(row.host, HostUnknowns{static_cast<Index>(2 * hosts_.size()), 0});
        }
        factors_ = 2 * static_cast<Index>(hosts_.size());
        for (const AnchorRow& row : rows) {
            const auto [cpu, added] = cpus_.try_emplace(row.machine, factors_);
            if (added) ++factors_;
            hosts_.at(row.host).cpu = cpu->second;
        }
        for (std::size_t f = 0; f < factor_count; ++f)
            if (device.covariance[f][f] > 0) uncertain_.push_back(f);
        offsets_ = factors_ + static_cast<Index>(uncertain_.size());
        of_model_ = !model.empty() && per_model.contains(model);
        for (const AnchorRow& row : rows) {
            own_.push_back(of_model_ && row.model == model);
            // Rows of another model share its error (host side: within one host), so together they weigh as one row.
            const bool own = own_.back();
            copies_.push_back({own ? 0 : per_host[{row.model, row.host}], own ? 0 : per_model[row.model]});
        }
    }

    [[nodiscard]] std::span<const AnchorRow> rows() const { return rows_; }
    [[nodiscard]] Index unknowns() const { return offsets_ + (of_model_ ? 2 : 0); }
    struct HostUnknowns {
        Index scale;  ///< scale of the framework; the call is next
        Index cpu;    ///< CPU speed of the machine
    };
    [[nodiscard]] const std::map<std::string_view, HostUnknowns>& hosts() const { return hosts_; }
    [[nodiscard]] const std::map<std::string_view, Index>& cpus() const { return cpus_; }
    [[nodiscard]] const std::vector<std::size_t>& uncertain() const { return uncertain_; }
    [[nodiscard]] Index factors() const { return factors_; }
    [[nodiscard]] Index offsets() const { return offsets_; }
    [[nodiscard]] bool of_model() const { return of_model_; }

    [[nodiscard]] NormalBelief prior(const std::map<std::string_view, ScalePrior>& priors) const {
        NormalBelief belief{VectorXd::Zero(unknowns()), MatrixXd::Zero(unknowns(), unknowns())};
        for (const auto& [host, at] : hosts_) {
            const ScalePrior& own = priors.at(host);
            double& cpu = belief.covariance(at.cpu, at.cpu);
            cpu = std::max(cpu, square(own.group.log_stddev));
            belief.mean[at.scale] = std::log(own.group.scale);
            belief.covariance(at.scale, at.scale) = square(own.framework_log_stddev);
            belief.mean[at.scale + 1] = std::log(own.call.median_s);
            belief.covariance(at.scale + 1, at.scale + 1) = square(own.call.log_stddev);
        }
        const Index n = offsets_ - factors_;
        belief.mean.segment(factors_, n) = FactorVector::Map(device_.log_mean.data())(uncertain_);
        belief.covariance.block(factors_, factors_, n, n) =
            FactorMatrix::Map(device_.covariance[0].data())(uncertain_, uncertain_);
        if (of_model_) {
            belief.covariance(offsets_, offsets_) = between_models(rows_[0].host_log_stddev);
            belief.covariance(offsets_ + 1, offsets_ + 1) = between_models(rows_[0].device_log_stddev);
        }
        return belief;
    }

    /// Returns the standard deviations of the rows given the unknowns, weighting host and device as at `at`.
    [[nodiscard]] std::vector<double> log_stddev(const VectorXd& at) const {
        std::vector<double> result;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const AnchorRow& row = rows_[i];
            const double host = split(i, at).host_share;
            result.push_back(std::sqrt(
                square(row_log_stddev) + square(host) * copies_[i].of_host * between_models(row.host_log_stddev) +
                square(1 - host) * copies_[i].of_device * between_models(row.device_log_stddev)));
        }
        return result;
    }

    /// Returns the standard deviation of row `i` given the unknowns; of a row of the predicted model, what a
    /// measurement of another of its batches leaves.
    [[nodiscard]] double left_log_stddev(std::size_t i, const VectorXd& at) const {
        const double host = split(i, at).host_share;
        const double noise = std::hypot(host * rows_[i].host_log_stddev, (1 - host) * rows_[i].device_log_stddev);
        return own_[i] ? std::sqrt(left_for_other_batches) * noise : noise;
    }

    /// See LogRows.
    [[nodiscard]] VectorXd operator()(const VectorXd& at, MatrixXd* slopes) const {
        VectorXd residuals(static_cast<Index>(rows_.size()));
        if (slopes) slopes->setZero(residuals.size(), unknowns());
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const AnchorRow& row = rows_[i];
            const Split s = split(i, at);
            const auto r = static_cast<Index>(i);
            residuals[r] = std::log(row.waiting * s.deciding_s / row.measured_s);
            if (!slopes) continue;
            const HostUnknowns host = hosts_.at(row.host);
            const double device_share = (1 - s.host_share) * s.device_s / (s.forward_s + s.device_s);
            (*slopes)(r, host.scale) = s.host_share * (1 - s.call_s / s.host_s) + (1 - s.host_share - device_share);
            (*slopes)(r, host.cpu) = (*slopes)(r, host.scale);
            (*slopes)(r, host.scale + 1) = s.host_share * s.call_s / s.host_s;
            for (std::size_t f = 0; f < uncertain_.size(); ++f) {
                const double part = uncertain_[f] == 0 ? 1 : scaled(row.class_s, uncertain_[f], at) / s.device_s;
                (*slopes)(r, factors_ + static_cast<Index>(f)) = s.device_s > 0 ? device_share * part : 0;
            }
            if (!own_[i]) continue;
            (*slopes)(r, offsets_) = s.host_share;
            (*slopes)(r, offsets_ + 1) = device_share;
        }
        return residuals;
    }

  private:
    struct Split {
        double host_s, call_s, forward_s, device_s, deciding_s;
        double host_share;  ///< sensitivity of the row to the host
    };

    static double between_models(double noise) {
        return std::max(square(std::min(noise, widest_noise)) - square(row_log_stddev), 1e-4);
    }

    /// Device time of one class: class_s was predicted with the factors' means.
    [[nodiscard]] double scaled(const std::array<double, factor_count>& class_s, std::size_t factor,
                                const VectorXd& at) const {
        if (class_s[factor] == 0) return 0;
        const auto change = [&](std::size_t f) {
            const auto found = std::ranges::find(uncertain_, f);
            return found == uncertain_.end() ? 0 : at[factors_ + (found - uncertain_.begin())] - device_.log_mean[f];
        };
        return class_s[factor] * std::exp(change(0) + (factor == 0 ? 0 : change(factor)));
    }

    [[nodiscard]] Split split(std::size_t i, const VectorXd& at) const {
        const AnchorRow& row = rows_[i];
        const HostUnknowns host = hosts_.at(row.host);
        const double own_host = own_[i] ? std::exp(at[offsets_]) : 1;
        const double own_device = own_[i] ? std::exp(at[offsets_ + 1]) : 1;
        const double scale = std::exp(at[host.scale] + at[host.cpu]);
        Split s{};
        s.call_s = own_host * std::exp(at[host.scale + 1]) * row.calls;
        s.host_s = own_host * scale * row.host_s + s.call_s + least_s;
        s.forward_s = scale * row.forward_s + least_s;
        std::array<double, factor_count> class_s = row.class_s;
        class_s[0] = row.device_s - std::accumulate(class_s.begin() + 1, class_s.end(), 0.0);
        for (std::size_t f = 0; f < factor_count; ++f) s.device_s += own_device * scaled(class_s, f, at);
        const double busy_s = s.forward_s + s.device_s;
        const bool slower = host_decides.value_or(s.host_s > busy_s);
        s.deciding_s = slower ? s.host_s : busy_s;
        s.host_share = host_decides ? slower : equations::decisive_share(square(s.host_s), square(busy_s));
        return s;
    }

    std::span<const AnchorRow> rows_;
    const DeviceFactors& device_;
    std::map<std::string_view, HostUnknowns> hosts_;
    std::map<std::string_view, Index> cpus_;
    std::vector<std::size_t> uncertain_;
    Index factors_ = 0, offsets_ = 0;
    bool of_model_ = false;
    std::vector<bool> own_;
    struct Copies {
        int of_host, of_device;
    };
    std::vector<Copies> copies_;  ///< rows that share the error of this one
};

/// Returns what the rows leave of the belief; `by_sides`: explains them one after another, each by the host, the device
/// being no slower, or by the device, the host being no slower, and weighs both; `cost` is then that of the evidence.
/// (At the maximum of the posterior of a single row both are as slow as the row, however much faster one of them may
/// be.) Source: Laplace's approximation; moments of a normal distribution below a limit.
PosteriorMaximum explained(const NormalBelief& prior, const AnchorRows& rows, const VectorXd& start, bool by_sides) {
    if (!by_sides) return maximise_posterior(prior, rows, rows.log_stddev(start), start);
    constexpr double left_out = 1e9, no_tail = -30;  // noise of other rows; limit below which the density underflows
    std::array by{rows, rows};                       // host, device
    by[0].host_decides = true, by[1].host_decides = false;
    PosteriorMaximum all{.belief = prior};
    auto& [mean, covariance] = all.belief;
    for (Index i = 0; i < std::ssize(rows.rows()); ++i) {
        std::array<PosteriorMaximum, 2> ways;
        for (const std::size_t side : {0, 1}) {
            std::vector<double> noise(rows.rows().size(), left_out);
            noise[i] = by[side].log_stddev(mean)[i];
            PosteriorMaximum& way = ways[side] = maximise_posterior(all.belief, by[side], noise, mean);
            NormalBelief& own = way.belief;
            MatrixXd slopes;
            const double excess = by[1 - side](own.mean, &slopes)[i];
            const VectorXd shared = own.covariance * slopes.row(i).transpose();
            const double stddev = std::sqrt(slopes.row(i).dot(shared) + square(by[1 - side].log_stddev(own.mean)[i]));
            const double limit = std::max(no_tail, -excess / stddev);
            const double below = std::erfc(-limit / std::numbers::sqrt2) / 2;
            const double shift = std::exp(-limit * limit / 2) / std::sqrt(2 * std::numbers::pi) / below;
            const double narrowed = covariance.llt().solve(own.covariance).determinant();
            way.cost += std::log(noise[i] / below / std::sqrt(narrowed));
            own.mean -= shift / stddev * shared;
            own.covariance -= shift * (shift + limit) / square(stddev) * shared * shared.transpose();
        }
        const auto& [by_host, by_device] = ways;
        const double share = 1 / (1 + std::exp(by_device.cost - by_host.cost));
        const VectorXd apart = by_device.belief.mean - by_host.belief.mean;
        mean = by_host.belief.mean + share * apart;
        covariance = (1 - share) * by_host.belief.covariance + share * by_device.belief.covariance +
                     share * (1 - share) * apart * apart.transpose();
        all.cost += std::min(by_host.cost, by_device.cost) + std::log(std::max(share, 1 - share));
    }
    return all;
}

/// Finds the group of machines and the mode of the second scalar that explain the rows of one host best, and the
/// corresponding unknowns of the host.
struct HostStart {
    ScalePrior prior{};
    double log_scale = 0, log_call_s = 0, log_evidence = 0;
    double group_variance = 0;  ///< of log(scale): what other groups, weighted by their evidence, add
};
HostStart start_of(std::span<const AnchorRow> rows, const DeviceFactors& device, bool by_sides) {
    const AnchorRows only(rows, device, {});
    const AnchorRows::HostUnknowns host = only.hosts().begin()->second;
    std::vector<HostStart> starts;
    for (const ScalePrior& own : priors_of(rows.front())) {
        const NormalBelief prior = only.prior({{rows.front().host, own}});
        const PosteriorMaximum found = explained(prior, only, prior.mean, by_sides);
        const VectorXd& mean = found.belief.mean;
        // Laplace's approximation, but the density at the maximum for modes of calls, which several rows tell apart.
        const double narrowed = prior.covariance.llt().solve(found.belief.covariance).determinant();
        const double volume = rows.front().groups.empty() ? 1 / own.call.log_stddev : std::sqrt(narrowed);
        starts.push_back({own, mean[host.scale] + mean[host.cpu], mean[host.scale + 1],
                          std::log(own.group.weight * own.call.weight * (by_sides ? 1 : volume)) - found.cost});
    }
    HostStart best = *std::ranges::max_element(starts, {}, &HostStart::log_evidence);
    double evidence = 0;
    for (const HostStart& start : starts) {
        if (start.prior.call.median_s != best.prior.call.median_s) continue;
        const double own = std::exp(start.log_evidence - best.log_evidence);
        evidence += own;
        best.group_variance += own * square(start.log_scale - best.log_scale);
    }
    best.group_variance /= evidence;
    return best;
}

/// Keeps the largest set of host-bound rows of one host that agree on the scale within a factor 3 (ties: the faster
/// set, since disturbances slow runs down) and all rows explained by the device; reports the others.
std::vector<AnchorRow> agreeing_rows(std::span<const AnchorRow> rows, HostScalars& host) {
    const auto below = [&](double share) {
        return [share](const AnchorRow& row) { return row.device_s < share * row.measured_s && row.host_s > 0; };
    };
    const bool clear = std::any_of(rows.begin(), rows.end(), below(clearly_host_bound));
    const auto is_host_bound = below(clear ? clearly_host_bound : probably_host_bound);
    std::multimap<double, const AnchorRow*> scaled_rows;
    std::vector<AnchorRow> kept;
    std::ranges::copy_if(rows, std::back_inserter(kept), std::not_fn(is_host_bound));
    for (const AnchorRow& row : rows)
        if (is_host_bound(row)) scaled_rows.emplace(row.measured_s / (row.host_s + row.calls * row.call_s), &row);
    double least = 0, agreed = 0;
    for (auto first = scaled_rows.begin(); first != scaled_rows.end(); ++first) {
        const auto above = scaled_rows.upper_bound(contradiction * first->first);
        const auto count = static_cast<std::size_t>(std::distance(first, above));
        if (count <= host.host_bound_rows) continue;
        host.host_bound_rows = count;
        least = first->first, agreed = std::next(first, static_cast<std::ptrdiff_t>(count / 2))->first;
    }
    for (const auto& [scale, row] : scaled_rows) {
        if (scale >= least && scale <= contradiction * least) {
            kept.push_back(*row);
            continue;
        }
        host.warnings.push_back(
            fmt::format("anchor rows contradict each other by more than a factor {}: {} implies {:.2g} × the "
                        "host time that {} other rows agree on; it is left out",
                        contradiction, row->label, scale / agreed, host.host_bound_rows));
    }
    if (host.host_bound_rows == 0)
        host.warnings.push_back("the device explains all anchor rows: they only bound the host's speed from below");
    return kept;
}

void set(FrameworkProfile& profile, std::string_view name, double value, double relative_stddev) {
    set_parameter(profile.parameters, {std::string(name), value, relative_stddev, "anchor rows"});
}

/// Reports rows that no host or card can explain: wrong unit, card or model.
void warn_of_outlandish(std::span<const AnchorRow> rows, HostScalars& host) {
    constexpr double outlandish = 10;  // the measured hosts are within a factor of 3 of each other
    for (const AnchorRow& row : rows) {
        if (row.predicted_s <= 0) continue;
        const double ratio = row.measured_s / row.predicted_s;
        if (ratio <= outlandish && ratio >= 1 / outlandish) continue;
        host.warnings.push_back(
            fmt::format("anchor {}: {:.4g} ms where {:.4g} ms is predicted without it; check the row; latency_ms is in "
                        "milliseconds",
                        row.label, 1e3 * row.measured_s, 1e3 * row.predicted_s));
    }
}

}  // namespace

Conditioned condition(std::span<const AnchorRow> rows, const DeviceFactors& device, std::string_view model) {
    if (rows.empty()) throw Error(ErrorCode::usage, "no anchor rows");
    Conditioned result{.hosts = {}, .device = device};
    // How far a card is from the measured ones is an error of all its kernels, which a row on it reduces.
    DeviceFactors believed = device;
    if (device.covariance[0][0] > 0)
        believed.covariance[0][0] +=
            square(std::ranges::min(rows, {}, &AnchorRow::distance_log_stddev).distance_log_stddev);
    std::map<std::string_view, std::vector<AnchorRow>> by_host;
    for (const AnchorRow& row : rows) by_host[row.host].push_back(row);
    std::vector<AnchorRow> kept;
    std::map<std::string_view, ScalePrior> priors;
    std::map<std::string_view, HostStart> starts;
    bool by_sides = true;  // no two rows tell the time of a host
    for (const auto& [name, own] : by_host) {
        HostScalars& host = result.hosts[std::string(name)];
        host.call = own.front().call;
        warn_of_outlandish(own, host);
        const std::vector<AnchorRow> agreeing = agreeing_rows(own, host);
        starts[name] = start_of(agreeing, believed, host.host_bound_rows < 2);
        by_sides = by_sides && host.host_bound_rows < 2;
        priors[name] = starts[name].prior;
        kept.insert(kept.end(), agreeing.begin(), agreeing.end());
    }

    const AnchorRows anchors(kept, believed, model);
    const NormalBelief prior = anchors.prior(priors);
    VectorXd start = prior.mean;
    for (const auto& [name, at] : anchors.hosts())
        start[at.cpu] = starts.at(name).log_scale - std::log(priors.at(name).group.scale);
    for (const auto& [name, at] : anchors.hosts()) {
        start[at.scale] = starts.at(name).log_scale - start[at.cpu];
        start[at.scale + 1] = starts.at(name).log_call_s;
    }
    const PosteriorMaximum found = explained(prior, anchors, start, by_sides);
    const VectorXd& mean = found.belief.mean;
    const MatrixXd& covariance = found.belief.covariance;

    const Index offsets = anchors.offsets();
    std::map<Index, std::array<double, 3>> machines;  // by CPU: hosts, sums of their log(scale) and its variance
    for (const auto& [name, at] : anchors.hosts()) {
        HostScalars& host = result.hosts[std::string(name)];
        // The error of the predicted model multiplies both scalars.
        MatrixXd sums = MatrixXd::Zero(2, anchors.unknowns());
        sums(0, at.scale) = sums(0, at.cpu) = sums(1, at.scale + 1) = 1;
        if (anchors.of_model()) {
            sums(0, offsets) = sums(1, offsets) = 1;
            const AnchorRow& any = by_host.at(name).front();
            host.host_noise = std::sqrt(left_for_other_batches) * any.host_log_stddev;
            host.device_noise = std::sqrt(left_for_other_batches) * any.device_log_stddev;
        }
        const VectorXd log_scalars = sums * mean;
        const MatrixXd spread = sums * covariance * sums.transpose();
        host.scale = std::exp(log_scalars[0]);
        host.call_s = std::exp(log_scalars[1]);
        const AnchorRow& own = by_host.at(name).front();
        host.scale_relative_stddev =
            std::min(std::sqrt(spread(0, 0) + starts.at(name).group_variance), own.scale_log_stddev);
        if (host.host_bound_rows > 0) {
            auto& [hosts, log_scale, variance] = machines[at.cpu];
            ++hosts;
            log_scale += mean[at.cpu] + std::log(priors.at(name).group.scale / reference_scale(own.groups, own.scale));
            variance += covariance(at.cpu, at.cpu) + starts.at(name).group_variance;
        }
        host.call_relative_stddev = std::sqrt(spread(1, 1));
        host.correlation = spread(0, 1) / std::sqrt(spread(0, 0) * spread(1, 1));
    }
    for (const auto& [name, at] : anchors.cpus()) {
        const auto [hosts, log_scale, variance] = machines[at];
        if (hosts == 0) continue;
        result.cpus[std::string(name)] = {std::exp(log_scale / hosts),
                                          std::sqrt(variance / hosts + square(framework_log_stddev))};
    }
    const auto& uncertain = anchors.uncertain();
    const Index factors = anchors.factors(), n = offsets - factors;
    auto variances = FactorMatrix::Map(result.device.covariance[0].data());
    FactorVector::Map(result.device.log_mean.data())(uncertain) = mean.segment(factors, n);
    variances(uncertain, uncertain) = covariance.block(factors, factors, n, n);
    if (!anchors.of_model()) return result;
    // The error of the model's device time is a factor on all its kernels, like the card's.
    const Index own = offsets + 1;
    result.device.log_mean[0] += mean[own];
    variances.row(0)(uncertain) += covariance.row(own).segment(factors, n);
    variances.col(0)(uncertain) += covariance.col(own).segment(factors, n);
    variances(0, 0) += covariance(own, own);
    return result;
}

FrameworkProfile anchored(FrameworkProfile profile, const HostScalars& host) {
    set(profile, "host.scale", host.scale, host.scale_relative_stddev);
    set(profile, host.call, host.call_s, host.call_relative_stddev);
    if (host.host_noise > 0) set(profile, "noise.host", host.host_noise, 0);
    if (host.device_noise > 0) set(profile, "noise.device", host.device_noise, 0);
    profile.scale_call_correlation = host.correlation;
    profile.assumed.clear();
    profile.host = profile.host == "reference" ? "anchored" : profile.host + ", anchored";
    profile.warnings.insert(profile.warnings.end(), host.warnings.begin(), host.warnings.end());
    return profile;
}

FrameworkProfile anchored(FrameworkProfile profile, const CpuSpeed& cpu) {
    const double reference = reference_scale(profile.groups, host_parameter(profile, "host.scale"));
    // The driver and the bus have their part in a graph's launch, as in a step's (host_costs.cpp).
    const bool captured = model_of(profile).traits.host_kind == HostKind::graph_node;
    set(profile, "host.scale", (captured ? std::sqrt(cpu.scale) : cpu.scale) * reference, cpu.relative_stddev);
    profile.assumed.clear();
    profile.host = profile.host == "reference" ? "anchored" : profile.host + ", anchored";
    return profile;
}

ServedError served_error(std::span<const ServedRun> anchors, const ServedRun& run) {
    const auto n = static_cast<Index>(anchors.size());
    MatrixXd between(n, n);
    VectorXd with_run(n), errors(n);
    for (Index i = 0; i < n; ++i) {
        const ServedRun& anchor = anchors[static_cast<std::size_t>(i)];
        with_run[i] = served_covariance(anchor, run);
        errors[i] = anchor.log_error;
        for (Index j = 0; j < n; ++j) between(i, j) = served_covariance(anchor, anchors[static_cast<std::size_t>(j)]);
    }
    VectorXd noise = VectorXd::Constant(n, square(served_log_stddev)), solved = VectorXd::Zero(n);
    constexpr int rounds = 20;  // the weights of soft L1 converge geometrically
    for (int round = 0; round < rounds; ++round) {
        solved = (between + MatrixXd(noise.asDiagonal())).llt().solve(errors);
        const VectorXd residuals = (errors - between * solved) / served_log_stddev;
        noise = square(served_log_stddev) * (1 + residuals.array().square()).sqrt();
    }
    const VectorXd share = (between + MatrixXd(noise.asDiagonal())).llt().solve(with_run);
    const double variance = served_covariance(run, run) - with_run.dot(share) + square(served_log_stddev);
    return {std::exp(with_run.dot(solved)), std::sqrt(variance)};
}

AnchorRow anchor_row(const Measurement& row, Predictor& predictor, const ShapeBindings& bindings) {
    std::vector<LaunchCosts> launches;
    const Prediction prediction = predictor.predict(bindings, launches);
    // Subtracts the time of copies, down to a tenth of the measured time.
    AnchorRow result{.measured_s = std::max(row.latency_s - prediction.copies_s, 0.1 * row.latency_s),
                     .device_s = prediction.device_s,
                     .model = row.model,
                     .predicted_s = prediction.latency_s - prediction.copies_s};
    result.call = second_scalar(model_of(predictor.framework()));
    for (const LaunchCosts& op : launches) {
        result.calls += pays_second_scalar(op) ? 1 : 0;
        result.class_s[static_cast<std::size_t>(op.factor)] += op.device_s;
    }
    result.call_s = host_parameter(predictor.framework(), result.call);
    result.scale = host_parameter(predictor.framework(), "host.scale");
    result.groups = predictor.framework().groups;
    const Parameter* known = find_parameter(predictor.framework().parameters, "host.scale");
    if (known && known->relative_stddev > 0) result.scale_log_stddev = known->relative_stddev;
    const LaunchCosts& first = launches.front();
    result.host_s = (prediction.host_s - result.calls * result.call_s) / result.scale;
    const double forward_s = predictor.synchronized() && !pays_second_scalar(first) ? first.host_s : 0;
    result.forward_s = forward_s / result.scale;
    if (predictor.synchronized())  // the timeline includes mutual waits of the clocks
        result.waiting = result.predicted_s / std::max(prediction.host_s, forward_s + prediction.device_s);
    result.batch = row.batch;
    result.label = fmt::format("line {}: {}, batch {}", row.line, row.model, row.batch);
    result.host_log_stddev = host_parameter(predictor.framework(), "noise.host");
    result.device_log_stddev = host_parameter(predictor.framework(), "noise.device");
    result.distance_log_stddev = prediction.evidence_relative_stddev;
    return result;
}

AnchorRow anchor_row(const LanguageMeasurement& row, Generator& generator) {
    const GenerationRequest request{.batch = row.batch, .prompt = row.prompt, .new_tokens = row.new_tokens};
    const Generation generation = generator.generate(request);
    const std::int64_t together = generation.prompts_per_pass, part = generation.prompt_tokens_per_pass;
    const Measurement measured{
        .gpu = row.gpu, .framework = row.framework, .model = row.model, .latency_s = row.latency_s, .line = row.line};
    AnchorRow sum;
    const auto add = [&](double count, Predictor& predictor, const ShapeBindings& pass) {
        AnchorRow one = anchor_row(measured, predictor, pass);
        one.host_s = sum.host_s + count * one.host_s;
        one.calls = sum.calls + count * one.calls;
        one.device_s = sum.device_s + count * one.device_s;
        one.forward_s = sum.forward_s + count * one.forward_s;
        for (std::size_t f = 0; f < factor_count; ++f) one.class_s[f] = sum.class_s[f] + count * one.class_s[f];
        sum = std::move(one);
    };
    add(generation.waves * static_cast<double>(row.new_tokens - 1), generator.decoder(),
        generator.pass(request, std::min(row.batch, std::max<std::int64_t>(1, generation.at_once)), 1,
                       row.prompt + row.new_tokens / 2));
    add(static_cast<double>(row.batch * row.prompt) / static_cast<double>(together * part), generator.predictor(),
        generator.pass(request, together, part, (row.prompt - part) / 2));
    const double host_s = sum.scale * sum.host_s + sum.calls * sum.call_s;
    sum.predicted_s = generation.total_s;
    sum.waiting = generation.total_s / std::max(host_s, sum.scale * sum.forward_s + sum.device_s);
    sum.label = fmt::format("line {}: {}, batch {}, {} + {} tokens", row.line, row.model, row.batch, row.prompt,
                            row.new_tokens);
    return sum;
}

namespace {

/// Returns at most 64 places of a list, evenly spread, or in logarithms: neighbours have nearly the same costs.
std::vector<std::size_t> some_of(std::size_t size, bool evenly) {
    constexpr std::size_t most = 64;
    std::vector<std::size_t> some(std::min(size, most));
    std::iota(some.begin(), some.end(), 0);
    if (size <= most) return some;
    const auto last = static_cast<double>(size - 1);
    for (std::size_t& place : some) {
        const double share = static_cast<double>(place) / (most - 1);
        place = static_cast<std::size_t>(evenly ? share * last : std::pow(last + 1, share) - 1);
    }
    some.erase(std::unique(some.begin(), some.end()), some.end());
    return some;
}

NormalBelief belief_of(std::span<const AnchorRow> rows, const AnchorRows& anchors) {
    std::map<std::string_view, ScalePrior> priors;
    for (const AnchorRow& row : rows) priors[row.host] = belief_in(row, modes_of(row).front());
    return anchors.prior(priors);
}

/// Picks rows of `candidates`, one at a time, to narrow the intervals of `predicted` as much as possible.
/// Source: greedy A-optimal design on the covariance that condition() updates, with secants for slopes.
AnchorPlan narrowing(const AnchorRows& anchors, NormalBelief belief, std::span<const std::size_t> predicted,
                     std::span<const std::size_t> candidates, std::size_t count) {
    // Secants over the width of the interval: if host and device times are close, a slope reflects only one of them.
    const Eigen::SelfAdjointEigenSolver<MatrixXd> axes(belief.covariance);
    MatrixXd slopes = MatrixXd::Zero(anchors(belief.mean, nullptr).size(), belief.mean.size());
    for (Index k = 0; k < belief.mean.size(); ++k) {
        const VectorXd reach =
            equations::normal_90 * std::sqrt(std::max(0.0, axes.eigenvalues()[k])) * axes.eigenvectors().col(k);
        if (reach.squaredNorm() == 0) continue;
        slopes += (anchors(belief.mean + reach, nullptr) - anchors(belief.mean - reach, nullptr)) * reach.transpose() /
                  (2 * reach.squaredNorm());
    }
    const auto half_width = [&](const MatrixXd& covariance) {
        double sum = 0;
        for (const std::size_t i : predicted) {
            const auto slope = slopes.row(static_cast<Index>(i));
            const double stddev =
                std::sqrt(slope * covariance * slope.transpose() + square(anchors.left_log_stddev(i, belief.mean)));
            sum += std::expm1(equations::normal_90 * stddev);
        }
        return sum / static_cast<double>(predicted.size());
    };
    constexpr double least_gain = 0.1;
    AnchorPlan plan{.half_width = half_width(belief.covariance), .runs = {}};
    double width = plan.half_width;
    while (plan.runs.size() < count) {
        double best_width = width * (1 - least_gain);
        std::optional<std::size_t> best;
        MatrixXd best_covariance;
        for (const std::size_t c : candidates) {
            const VectorXd slope = slopes.row(static_cast<Index>(c)).transpose();
            const VectorXd shared = belief.covariance * slope;
            const MatrixXd after =
                belief.covariance - shared * shared.transpose() / (slope.dot(shared) + square(row_log_stddev));
            const double narrowed = half_width(after);
            if (narrowed >= best_width) continue;
            best_width = narrowed;
            best = c;
            best_covariance = after;
        }
        if (!best) break;
        width = best_width;
        belief.covariance = best_covariance;
        plan.runs.push_back({anchors.rows()[*best].batch, width, anchors.rows()[*best].label});
    }
    return plan;
}

}  // namespace

AnchorPlan suggest_anchors(Predictor& predictor, const ShapeBindings& dims,
                           std::span<const std::int64_t> predicted_batches,
                           std::span<const std::int64_t> candidate_batches, std::size_t count) {
    constexpr std::string_view model = "predicted";
    std::vector<AnchorRow> rows;
    std::vector<std::size_t> predicted, candidates;
    const auto add = [&](std::int64_t batch, std::vector<std::size_t>& places) {
        ShapeBindings bindings = dims;
        bindings["batch"] = batch;
        places.push_back(rows.size());
        rows.push_back(anchor_row({.model = std::string(model), .batch = batch, .latency_s = 1}, predictor, bindings));
        rows.back().label = fmt::format("batch {}", batch);
    };
    for (const std::size_t i : some_of(predicted_batches.size(), true)) add(predicted_batches[i], predicted);
    for (const std::size_t i : some_of(candidate_batches.size(), false)) add(candidate_batches[i], candidates);
    const AnchorRows anchors(rows, predictor.device().factors, model);
    NormalBelief belief = belief_of(rows, anchors);
    const Index call = anchors.hosts().begin()->second.scale + 1;
    const Parameter* known = find_parameter(predictor.framework().parameters, rows.front().call);
    belief.mean[call] = std::log(rows.front().call_s);
    if (known && known->relative_stddev > 0) belief.covariance(call, call) = square(known->relative_stddev);
    return narrowing(anchors, std::move(belief), predicted, candidates, count);
}

AnchorPlan suggest_anchors(std::span<const AnchorRow> rows, const DeviceFactors& device, std::size_t count) {
    const AnchorRows anchors(rows, device, {});
    const std::vector<std::size_t> some = some_of(rows.size(), true);
    return narrowing(anchors, belief_of(rows, anchors), some, some, count);
}

HostKey host_key(const Measurement& row) {
    return {row.framework, row.run, row.gpu};
}

}  // namespace ftax
