#include <bit>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "ftax/nas.hpp"
#include "graphs/base/in_parallel.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/nas/network.hpp"

namespace ftax::nas {
namespace {

struct BlockHash {
    std::size_t operator()(const Block& block) const noexcept {
        const auto [low, high] = std::bit_cast<std::array<std::uint64_t, 2>>(block.fields);
        return std::hash<std::uint64_t>{}((low ^ high * 0x9e3779b97f4a7c15) * 0x9e3779b97f4a7c15 >> 24);
    }
};

/// A block as any pass may run it, however much the power limit slows that pass.
struct TimedBlock {
    Segment at_boost, slowest;
    PassPower power;
};

}  // namespace

struct CostFunction::State {
    const Space* space;
    DeviceProfile device;
    FrameworkProfile framework;
    PredictOptions options;
    std::vector<std::int64_t> batches;
    ShapeBindings dims;
    SegmentMaker segment_of;
    /// Whether a block costs the same in every network: not where rewrites join operators of several blocks, or one
    /// launch is that of the whole network.
    bool composes;
    std::vector<int> site_options = space->options();
    std::size_t sites = site_options.size();

    std::shared_mutex mutex;  // guards what follows
    std::unordered_map<Block, std::uint32_t, BlockHash> known;
    std::vector<TimedBlock> timed_blocks;  // known block × batch
    std::vector<Segment> beginnings;       // once per forward pass, per batch
    bool may_be_slowed = false;            // whether a known block exceeds the power limit by itself

    /// Times one whole network and remembers each of its blocks. The caller holds the mutex for writing.
    void learn(std::span<const int> choices, std::span<const Block> chain) {
        const BuiltNetwork built = build_network(*space, choices, chain);
        Predictor predictor(built.graph, device, framework, options);
        std::vector<TimedBlock> timed(chain.size() * batches.size());
        beginnings.assign(batches.size(), {});
        for (std::size_t b = 0; b < batches.size(); ++b) {
            const TimedNetwork network = timed_network(built, predictor, dims, batches[b]);
            beginnings[b] = segment_of.run(network.beginning, 0);
            for (std::size_t block = 0; block < chain.size(); ++block) {
                const std::span<const TimedOperation> operations = network.blocks[block];
                timed[block * batches.size() + b] = {segment_of.block(operations, 0), segment_of.block(operations, 1),
                                                     segment_of.power(operations)};
            }
        }
        for (std::size_t block = 0; block < chain.size(); ++block) {
            const auto [position, added] = known.try_emplace(chain[block], static_cast<std::uint32_t>(known.size()));
            if (!added) continue;
            for (std::size_t b = 0; b < batches.size(); ++b)
                may_be_slowed = may_be_slowed || timed[block * batches.size() + b].power.throttling_s > 0;
            const auto first = timed.begin() + static_cast<std::ptrdiff_t>(block * batches.size());
            timed_blocks.insert(timed_blocks.end(), first, first + static_cast<std::ptrdiff_t>(batches.size()));
        }
    }

    struct Scratch {
        std::vector<Block> chain;
        std::vector<const TimedBlock*> timed;  // timings of each block of the chain, all batches
        std::vector<Segment> total;
    };

    /// Composes the chain from blocks already known; false when one is missing. The caller holds the mutex.
    [[nodiscard]] bool compose(Scratch& scratch) const {
        if (beginnings.empty()) return false;
        scratch.timed.clear();
        for (const Block& block : scratch.chain) {
            const auto found = known.find(block);
            if (found == known.end()) return false;
            scratch.timed.push_back(&timed_blocks[found->second * batches.size()]);
        }
        scratch.total.assign(beginnings.begin(), beginnings.end());
        for (std::size_t b = 0; b < batches.size(); ++b) {
            const double slowdown = may_be_slowed ? slowdown_of(scratch.timed, b) : 0;
            Segment& total = scratch.total[b];
            for (const TimedBlock* block : scratch.timed)
                total = total.then(slowdown == 0 ? block[b].at_boost
                                                 : Segment::between(block[b].at_boost, block[b].slowest, slowdown));
        }
        return true;
    }

    void predict_whole(std::span<const int> choices, Scratch& scratch) const {
        const BuiltNetwork built = build_network(*space, choices, scratch.chain);
        Predictor predictor(built.graph, device, framework, options);
        scratch.total.clear();
        for (const std::int64_t batch : batches)
            scratch.total.push_back(segment_of.pass(timed_network(built, predictor, dims, batch)));
    }

    [[nodiscard]] static double slowdown_of(std::span<const TimedBlock* const> chain, std::size_t b) {
        PassPower pass;
        for (const TimedBlock* block : chain) pass.add(block[b].power);
        return pass.slowdown();
    }

    void check(std::span<const int> choices, std::size_t row) const {
        for (std::size_t site = 0; site < sites; ++site) {
            if (choices[site] >= 0 && choices[site] < site_options[site]) continue;
            throw_error(ErrorCode::usage, "{}: architecture {}: choice {} must be from 0 to {}, not {}", space->name(),
                        row, site, site_options[site] - 1, choices[site]);
        }
    }

    /// Costs a run of architectures with one lock for as long as every block is known.
    void cost_rows(std::span<const int> choices, std::span<double> latency_s, Scratch& scratch) {
        std::shared_lock reading(mutex);
        for (std::size_t row = 0; row * sites < choices.size(); ++row) {
            const auto architecture = choices.subspan(row * sites, sites);
            check(architecture, row);
            scratch.chain.clear();
            space->blocks(architecture, scratch.chain);
            if (!composes) predict_whole(architecture, scratch);
            while (composes && !compose(scratch)) {
                reading.unlock();
                {
                    const std::unique_lock writing(mutex);
                    learn(architecture, scratch.chain);
                }
                reading.lock();
            }
            for (std::size_t b = 0; b < batches.size(); ++b)
                latency_s[row * batches.size() + b] = segment_of.latency_s(scratch.total[b]);
        }
    }
};

CostFunction::CostFunction(const Space& space, DeviceProfile device, FrameworkProfile framework, PredictOptions options,
                           std::vector<std::int64_t> batches, Campaign campaign, const ShapeBindings& dims) {
    for (const std::int64_t batch : batches)
        if (batch < 1) throw_error(ErrorCode::usage, "batch must be at least 1, not {}", batch);
    if (space.options().empty()) throw_error(ErrorCode::usage, "the space {} has no choices", space.name());
    const FrameworkModel& model = model_of(framework);
    options = libraries_of(framework, options);
    const SegmentMaker segment_of(host_costs(framework, options, device.device), campaign, space,
                                  synchronizes_runs(model, options));
    state_.reset(new State{&space, std::move(device), std::move(framework), options, std::move(batches),
                           dims_of(space, dims), segment_of,
                           model.rewrites.empty() && !options.channels_last && !model.traits.host_kind});
}
CostFunction::~CostFunction() = default;
CostFunction::CostFunction(CostFunction&&) noexcept = default;
CostFunction& CostFunction::operator=(CostFunction&&) noexcept = default;

void CostFunction::cost(std::span<const int> choices, std::span<double> latency_s) const {
    thread_local State::Scratch scratch;
    state_->cost_rows(choices, latency_s, scratch);
}

void CostFunction::cost(std::span<const int> choices, std::span<double> latency_s, unsigned threads) const {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t rows = choices.size() / state_->sites;
    const std::size_t share = std::max<std::size_t>(1, (rows + threads - 1) / threads);
    in_parallel((rows + share - 1) / share, threads, [&](std::size_t part) {
        const std::size_t first = part * share, count = std::min(share, rows - first);
        State::Scratch scratch;
        state_->cost_rows(choices.subspan(first * state_->sites, count * state_->sites),
                          latency_s.subspan(first * batches().size(), count * batches().size()), scratch);
    });
}

void CostFunction::marginal_cost(std::span<const int> choices, std::size_t site, std::span<double> latency_s) const {
    std::vector<int> changed(choices.begin(), choices.end());
    const int options = state_->space->options().at(site);
    for (int option = 0; option < options; ++option) {
        changed[site] = option;
        cost(changed, latency_s.subspan(static_cast<std::size_t>(option) * batches().size(), batches().size()));
    }
}

const Space& CostFunction::space() const {
    return *state_->space;
}
const ShapeBindings& CostFunction::dims() const {
    return state_->dims;
}
const std::vector<std::int64_t>& CostFunction::batches() const {
    return state_->batches;
}

}  // namespace ftax::nas
