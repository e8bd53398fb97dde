#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ftax/error.hpp"
#include "predictors/analysis/log_posterior.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/nas/network.hpp"

namespace ftax::nas {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Factors of a campaign: the host, then those of the device in the order of Factor, starting with the card.
constexpr Eigen::Index scalar_count = 1 + static_cast<Eigen::Index>(factor_count);

/// Spread of hosts and of device predictions around the profiles: other CPUs, other library versions, cards not used in
/// any fit. Wide, since ten consistent samples are worth more than any prior.
constexpr double host_log_stddev = 0.5;
constexpr double card_log_stddev = 0.3;
constexpr double class_log_stddev = 0.5;
/// Noise of one sample: a typical value at first, then estimated from the samples within bounds.
constexpr double usual_noise = 0.03;
constexpr double least_noise = 0.003;
constexpr double most_noise = 0.06;

NormalBelief prior() {
    VectorXd stddev = VectorXd::Constant(scalar_count, class_log_stddev);
    stddev[0] = host_log_stddev;
    stddev[1] = card_log_stddev;
    return {VectorXd::Zero(scalar_count), stddev.cwiseAbs2().asDiagonal()};
}

Campaign with(Campaign campaign, const VectorXd& at) {
    campaign.host_scale = std::exp(at[0]);
    campaign.device_scale = std::exp(at[1]);
    for (std::size_t f = 1; f < factor_count; ++f)
        campaign.class_scale[f] = std::exp(at[1 + static_cast<Eigen::Index>(f)]);
    return campaign;
}

/// The samples with the operations of their networks, to be timed with any factors.
class Samples {
  public:
    Samples(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
            const PredictOptions& options, std::span<const Sample> samples, const Campaign& campaign,
            const ShapeBindings& dims)
        : space_(space),
          costs_(host_costs(framework, options, device.device)),
          campaign_(campaign),
          synchronized_(synchronizes_runs(model_of(framework), options)) {
        for (const Sample& sample : samples) {
            std::vector<Block> chain;
            space.blocks(sample.choices, chain);
            const BuiltNetwork built = build_network(space, sample.choices, chain);
            Predictor predictor(built.graph, device, framework, options);
            networks_.push_back({timed_network(built, predictor, dims, sample.batch), std::log(sample.latency_s)});
        }
    }

    [[nodiscard]] std::size_t count() const { return networks_.size(); }

    /// See LogRows; the slopes are finite differences, since the timeline has kinks.
    [[nodiscard]] VectorXd operator()(const VectorXd& at, MatrixXd* slopes) const {
        VectorXd here = residuals(at);
        if (!slopes) return here;
        constexpr double step = 1e-4;
        slopes->resize(here.size(), scalar_count);
        for (Eigen::Index i = 0; i < scalar_count; ++i) {
            VectorXd there = at;
            there[i] += step;
            slopes->col(i) = (residuals(there) - here) / step;
        }
        return here;
    }

  private:
    struct Timed {
        TimedNetwork network;
        double log_measured;
    };

    VectorXd residuals(const VectorXd& at) const {
        const SegmentMaker maker(costs_, with(campaign_, at), space_, synchronized_);
        VectorXd result(static_cast<Eigen::Index>(networks_.size()));
        Eigen::Index row = 0;
        for (const auto& [network, log_measured] : networks_)
            result[row++] = std::log(maker.latency_s(maker.pass(network))) - log_measured;
        return result;
    }

    const Space& space_;
    HostCosts costs_;
    Campaign campaign_;
    bool synchronized_;
    std::vector<Timed> networks_;
};

/// The maximum of two clocks has several minima: all samples host-bound or all device-bound. Descends from both sides,
/// first with large noise, and takes the better minimum.
PosteriorMaximum find_valley(const NormalBelief& belief, const Samples& samples) {
    constexpr std::array starts{0.0, -1.0, -2.0, 1.0};  // logarithms of the host scale
    constexpr std::array coarse{0.3, 0.1, usual_noise};
    std::optional<PosteriorMaximum> best;
    for (const double host : starts) {
        VectorXd at = belief.mean;
        at[0] = host;
        PosteriorMaximum found;
        for (const double noise : coarse) {
            const std::vector<double> stddev(samples.count(), noise);
            found = maximise_posterior(belief, samples, stddev, at);
            at = found.belief.mean;
        }
        if (!best || found.cost < best->cost) best = std::move(found);
    }
    return *best;
}

/// Estimates the noise from the residuals, less the factors that the samples determine.
/// Source: MacKay, "Bayesian interpolation", Neural Computation 4 (1992), equation 4.10.
double shown_noise(const PosteriorMaximum& maximum, double noise) {
    double weighted_squares = 0;
    for (const double residual : maximum.residuals)
        weighted_squares += square(residual) / std::sqrt(1 + square(residual / noise));
    const double free = std::max(static_cast<double>(maximum.residuals.size()) - maximum.determined, 1.0);
    // One more residual of typical size: few samples may agree by chance.
    return std::clamp(std::sqrt((weighted_squares + square(usual_noise)) / (free + 1)), least_noise, most_noise);
}

}  // namespace

Calibration calibrate(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
                      const PredictOptions& options, std::span<const Sample> samples, Campaign campaign,
                      const ShapeBindings& dims) {
    if (samples.empty()) throw Error(ErrorCode::usage, "no samples to calibrate with");
    for (const Sample& sample : samples)
        if (!(sample.latency_s > 0)) throw Error(ErrorCode::usage, "the latency of a sample must be positive");
    const Samples rows(space, device, framework, libraries_of(framework, options), samples, campaign,
                       dims_of(space, dims));
    const NormalBelief belief = prior();
    PosteriorMaximum best = find_valley(belief, rows);
    double noise = usual_noise;
    for (int round = 0; round < 4; ++round) {
        noise = shown_noise(best, noise);
        best = maximise_posterior(belief, rows, std::vector<double>(samples.size(), noise), best.belief.mean);
    }
    const auto stddev = [&](Eigen::Index i) { return std::sqrt(best.belief.covariance(i, i)); };
    return {with(campaign, best.belief.mean), stddev(0), stddev(1)};
}

}  // namespace ftax::nas
