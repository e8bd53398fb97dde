#include <algorithm>
#include <cmath>
#include <limits>

#include "ftax/error.hpp"
#include "predictors/nas/network.hpp"

namespace ftax::nas {
namespace {

/// Spread of hosts and of device predictions around the profiles. Source: the hosts of framework_tax.csv and other CPUs
/// (predictors/anchor.cpp); kernel models on GPUs that their fit has not seen, 10 to 15 %.
constexpr double host_log_stddev = 0.5;
constexpr double device_log_stddev = 0.12;
/// Residual of one sample that counts as usual. Source: median error of anchored columns of nas_*.csv, 2 to 4 %.
constexpr double sample_log_stddev = 0.03;

constexpr double square(double x) {
    return x * x;
}

struct Scalars {
    double log_host = 0, log_device = 0;
};

/// The samples with the operations of their networks, ready to be timed with any scalars.
class Posterior {
  public:
    Posterior(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
              const PredictOptions& options, std::span<const Sample> samples, const Campaign& campaign)
        : maker_(host_costs(framework, options.precision), campaign, space) {
        for (const Sample& sample : samples) {
            std::vector<Block> chain;
            space.blocks(sample.choices, chain);
            const BuiltNetwork built = build_network(space, sample.choices, chain);
            Predictor predictor(built.graph, device, framework, options);
            static_cast<void>(predictor.predict({{"batch", sample.batch}}));
            networks_.push_back({timed_network(built, predictor), std::log(sample.latency_s)});
        }
    }

    /// Negative log posterior, up to a constant; samples far off weigh linearly.
    [[nodiscard]] double cost(const Scalars& at) const {
        SegmentMaker maker = maker_;
        maker.host_scale = std::exp(at.log_host);
        maker.device_scale = std::exp(at.log_device);
        double sum = square(at.log_host / host_log_stddev) / 2 + square(at.log_device / device_log_stddev) / 2;
        for (const auto& [network, log_measured] : networks_) {
            Segment total = maker.run(network.beginning);
            for (const auto& block : network.blocks) total = total.then(maker.block(block));
            const double residual = (std::log(total.latency_s()) - log_measured) / sample_log_stddev;
            sum += std::sqrt(1 + square(residual)) - 1;
        }
        return sum;
    }

  private:
    struct Timed {
        TimedNetwork network;
        double log_measured;
    };
    SegmentMaker maker_;
    std::vector<Timed> networks_;
};

/// Minimises over a grid that shrinks around its best point: the maximum of two clocks is not smooth.
Scalars minimise(const Posterior& posterior) {
    constexpr int points = 5;
    Scalars centre;
    double host_range = std::log(8.0);
    double device_range = 3 * device_log_stddev;
    double best_cost = std::numeric_limits<double>::infinity();
    for (int level = 0; level < 9; ++level) {
        Scalars best = centre;
        for (int i = -points; i <= points; ++i) {
            for (int j = -points; j <= points; ++j) {
                const Scalars at{centre.log_host + host_range * i / points,
                                 centre.log_device + device_range * j / points};
                const double value = posterior.cost(at);
                if (value < best_cost) best_cost = value, best = at;
            }
        }
        centre = best;
        host_range /= 2;
        device_range /= 2;
    }
    return centre;
}

/// Standard deviation along one axis from the curvature of the cost over ± `step`.
double stddev(double below, double at, double above, double step, double prior) {
    const double curvature = (above - 2 * at + below) / square(step);
    return curvature > 0 ? std::min(prior, 1 / std::sqrt(curvature)) : prior;
}

}  // namespace

Calibration calibrate(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
                      const PredictOptions& options, std::span<const Sample> samples, Campaign campaign) {
    if (samples.empty()) throw Error(ErrorCode::usage, "there are no samples to calibrate on");
    for (const Sample& sample : samples) {
        if (!(sample.latency_s > 0)) throw Error(ErrorCode::usage, "the latency of a sample must be positive");
    }
    const Posterior posterior(space, device, framework, options, samples, campaign);
    const Scalars best = minimise(posterior);
    Calibration result{campaign};
    result.campaign.host_scale = std::exp(best.log_host);
    result.campaign.device_scale = std::exp(best.log_device);
    constexpr double step = 0.02;
    const double at = posterior.cost(best);
    result.host_relative_stddev = stddev(posterior.cost({best.log_host - step, best.log_device}), at,
                                         posterior.cost({best.log_host + step, best.log_device}), step, host_log_stddev);
    result.device_relative_stddev =
        stddev(posterior.cost({best.log_host, best.log_device - step}), at,
               posterior.cost({best.log_host, best.log_device + step}), step, device_log_stddev);
    return result;
}

}  // namespace ftax::nas
