#include <algorithm>
#include <cmath>
#include <limits>

#include "ftax/error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/nas/network.hpp"
#include "predictors/nas/small_matrix.hpp"

namespace ftax::nas {
namespace {

/// Scalars of a campaign, as logarithms: host, device, then the groups of kernels.
constexpr std::size_t scalar_count = 2 + kernel_group_count;
using Scalars = Vector<scalar_count>;

/// Spread of hosts and of device predictions around the profiles. Source: the hosts of framework_tax.csv and other CPUs
/// (predictors/analysis/anchor.cpp); kernel models on GPUs that their fit has not seen, 10 to 15 %, and the same again
/// between kinds of kernels.
constexpr double host_log_stddev = 0.5;
constexpr double device_log_stddev = 0.12;
constexpr double group_log_stddev = 0.15;
/// Residual of one sample: what is usual at first, then what the samples show within bounds.
/// Source: repeated columns of nas_*.csv differ by 0.4 to 4 %.
constexpr double usual_noise = 0.03;
constexpr double least_noise = 0.003;
constexpr double most_noise = 0.06;

constexpr double square(double x) {
    return x * x;
}

Scalars prior_stddev() {
    Scalars stddev;
    stddev.fill(group_log_stddev);
    stddev[0] = host_log_stddev;
    stddev[1] = device_log_stddev;
    return stddev;
}

Campaign with(Campaign campaign, const Scalars& at) {
    campaign.host_scale = std::exp(at[0]);
    campaign.device_scale = std::exp(at[1]);
    for (std::size_t g = 0; g < kernel_group_count; ++g) campaign.group_scale[g] = std::exp(at[2 + g]);
    return campaign;
}

/// The samples with the operations of their networks, ready to be timed with any scalars.
class Posterior {
  public:
    Posterior(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
              const PredictOptions& options, std::span<const Sample> samples, const Campaign& campaign)
        : space_(space),
          costs_(host_costs(framework, options.precision)),
          campaign_(campaign),
          synchronized_(synchronizes_runs(model_of(framework), options)) {
        std::vector<LaunchCosts> launches;
        for (const Sample& sample : samples) {
            std::vector<Block> chain;
            space.blocks(sample.choices, chain);
            const BuiltNetwork built = build_network(space, sample.choices, chain);
            Predictor predictor(built.graph, device, framework, options);
            static_cast<void>(predictor.predict({{"batch", sample.batch}}, launches));
            networks_.push_back({timed_network(built, predictor.graph(), launches), std::log(sample.latency_s)});
        }
    }

    [[nodiscard]] std::size_t samples() const { return networks_.size(); }

    /// log(predicted / measured) of every sample.
    [[nodiscard]] std::vector<double> residuals(const Scalars& at) const {
        const SegmentMaker maker(costs_, with(campaign_, at), space_, synchronized_);
        std::vector<double> result;
        for (const auto& [network, log_measured] : networks_) {
            PassPower power;
            for (const auto& block : network.blocks) power.add(maker.power(block));
            const double slowdown = power.slowdown();
            Segment total = maker.run(network.beginning, 0);
            for (const auto& block : network.blocks) total = total.then(maker.block(block, slowdown));
            result.push_back(std::log(maker.latency_s(total)) - log_measured);
        }
        return result;
    }

    /// Negative log posterior, up to a constant; samples far off weigh linearly.
    [[nodiscard]] double cost(const Scalars& at, double noise) const {
        static const Scalars stddev = prior_stddev();
        double sum = 0;
        for (std::size_t i = 0; i < scalar_count; ++i) sum += square(at[i] / stddev[i]) / 2;
        for (const double residual : residuals(at)) sum += std::sqrt(1 + square(residual / noise)) - 1;
        return sum;
    }

  private:
    struct Timed {
        TimedNetwork network;
        double log_measured;
    };
    const Space& space_;
    HostCosts costs_;
    Campaign campaign_;
    bool synchronized_;
    std::vector<Timed> networks_;
};

/// Finds host and device roughly: a grid that shrinks around its best point, for the maximum of two clocks has more
/// than one valley.
Scalars find_valley(const Posterior& posterior) {
    constexpr int points = 5;
    Scalars centre{};
    double host_range = std::log(8.0);
    double device_range = 3 * device_log_stddev;
    double best_cost = std::numeric_limits<double>::infinity();
    for (int level = 0; level < 6; ++level) {
        Scalars best = centre;
        for (int i = -points; i <= points; ++i) {
            for (int j = -points; j <= points; ++j) {
                Scalars at = centre;
                at[0] += host_range * i / points;
                at[1] += device_range * j / points;
                const double value = posterior.cost(at, usual_noise);
                if (value < best_cost) best_cost = value, best = at;
            }
        }
        centre = best;
        host_range /= 2;
        device_range /= 2;
    }
    return centre;
}

/// Gauss-Newton's view of the posterior at one point.
struct Curvature {
    Scalars gradient{};
    Matrix<scalar_count> data{};       ///< what the samples say
    Matrix<scalar_count> posterior{};  ///< and the prior with them
    double weighted_squares = 0;       ///< Σ weight · residual²
};

Curvature curvature(const Posterior& posterior, const Scalars& at, double noise) {
    constexpr double step = 1e-4;
    const std::vector<double> here = posterior.residuals(at);
    std::array<std::vector<double>, scalar_count> moved;
    for (std::size_t i = 0; i < scalar_count; ++i) {
        Scalars there = at;
        there[i] += step;
        moved[i] = posterior.residuals(there);
    }
    Curvature result;
    for (std::size_t row = 0; row < here.size(); ++row) {
        const double weight = 1 / std::sqrt(1 + square(here[row] / noise));
        Scalars slope;
        for (std::size_t i = 0; i < scalar_count; ++i) slope[i] = (moved[i][row] - here[row]) / step;
        for (std::size_t i = 0; i < scalar_count; ++i) {
            result.gradient[i] += weight * slope[i] * here[row] / square(noise);
            for (std::size_t j = 0; j < scalar_count; ++j)
                result.data[i][j] += weight * slope[i] * slope[j] / square(noise);
        }
        result.weighted_squares += weight * square(here[row]);
    }
    result.posterior = result.data;
    const Scalars stddev = prior_stddev();
    for (std::size_t i = 0; i < scalar_count; ++i) {
        result.gradient[i] += at[i] / square(stddev[i]);
        result.posterior[i][i] += 1 / square(stddev[i]);
    }
    return result;
}

/// Descends from `at` to the bottom of its valley; steps that lead up are halved.
Scalars descend(const Posterior& posterior, Scalars at, double noise) {
    double cost = posterior.cost(at, noise);
    for (int iteration = 0; iteration < 30; ++iteration) {
        const Curvature c = curvature(posterior, at, noise);
        const Scalars step = product(inverse(c.posterior), c.gradient);
        bool lower = false;
        for (double length = 1; length > 1e-3 && !lower; length /= 2) {
            Scalars next = at;
            for (std::size_t i = 0; i < scalar_count; ++i) next[i] -= length * step[i];
            const double value = posterior.cost(next, noise);
            if (value >= cost - 1e-9) continue;
            cost = value;
            at = next;
            lower = true;
        }
        if (!lower) break;
    }
    return at;
}

/// Noise that the residuals show once the scalars which the samples determine are discounted.
/// Source: MacKay, "Bayesian interpolation", Neural Computation 4 (1992), equation 4.10.
double shown_noise(const Posterior& posterior, const Scalars& at, double noise) {
    const Curvature c = curvature(posterior, at, noise);
    const Matrix<scalar_count> covariance = inverse(c.posterior);
    double determined = 0;
    for (std::size_t i = 0; i < scalar_count; ++i) {
        for (std::size_t j = 0; j < scalar_count; ++j) determined += covariance[i][j] * c.data[j][i];
    }
    const double free = std::max(static_cast<double>(posterior.samples()) - determined, 1.0);
    // One more residual of the usual size: few samples may agree by chance.
    return std::clamp(std::sqrt((c.weighted_squares + square(usual_noise)) / (free + 1)), least_noise, most_noise);
}

}  // namespace

Calibration calibrate(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
                      const PredictOptions& options, std::span<const Sample> samples, Campaign campaign) {
    if (samples.empty()) throw Error(ErrorCode::usage, "there are no samples to calibrate on");
    for (const Sample& sample : samples) {
        if (!(sample.latency_s > 0)) throw Error(ErrorCode::usage, "the latency of a sample must be positive");
    }
    const Posterior posterior(space, device, framework, options, samples, campaign);
    Scalars best = find_valley(posterior);
    double noise = usual_noise;
    for (int round = 0; round < 4; ++round) {
        best = descend(posterior, best, noise);
        noise = shown_noise(posterior, best, noise);
    }
    const Matrix<scalar_count> covariance = inverse(curvature(posterior, best, noise).posterior);
    return {with(campaign, best), std::sqrt(covariance[0][0]), std::sqrt(covariance[1][1])};
}

}  // namespace ftax::nas
