#include <fmt/format.h>

#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "ftax/error.hpp"
#include "ftax/nas.hpp"
#include "predictors/host_costs.hpp"
#include "predictors/segment.hpp"

namespace ftax::nas {
namespace {

constexpr std::size_t max_nodes = 1'000'000;

struct BlockHash {
    std::size_t operator()(const Block& block) const noexcept {
        return std::hash<std::string_view>{}({reinterpret_cast<const char*>(block.fields.data()), sizeof block.fields});
    }
};

/// A network with the number of operators after each of its blocks.
struct BuiltNetwork {
    Graph graph;
    std::vector<std::size_t> ends;
};

BuiltNetwork build_network(const Space& space, std::span<const int> choices, std::span<const Block> chain) {
    GraphBuilder net{std::string(space.name())};
    BuiltNetwork built;
    std::vector<TensorId> live = space.inputs(net, choices);
    for (const Block& block : chain) {
        space.build(net, block, live);
        built.ends.push_back(net.graph().ops.size());
        if (built.ends.back() > max_nodes) {
            throw Error(ErrorCode::limit, fmt::format("{}: more than {} operators", space.name(), max_nodes));
        }
    }
    if (net.graph().ops.empty()) throw Error(ErrorCode::model, fmt::format("{}: the network is empty", space.name()));
    built.graph = net.finish({live[0]});
    return built;
}

}  // namespace

Graph build_graph(const Space& space, std::span<const int> choices) {
    std::vector<Block> chain;
    space.blocks(choices, chain);
    return build_network(space, choices, chain).graph;
}

struct CostFunction::State {
    const Space* space;
    DeviceProfile device;
    FrameworkProfile framework;
    PredictOptions options;
    std::vector<std::int64_t> batches;
    std::size_t sites;
    HostCosts costs;

    std::shared_mutex mutex;  // guards what follows
    std::unordered_map<Block, std::uint32_t, BlockHash> known;
    std::vector<Segment> segments;     // known block × batch
    std::vector<Segment> beginnings;   // once per forward pass, per batch

    [[nodiscard]] Segment segment_of(const OpPrediction& op) const {
        return Segment::launch(op.host_s, op.device_s, op.kernels, costs.launch_latency_s, costs.kernel_gap_s);
    }

    /// Times one whole network and remembers each of its blocks. The caller holds the mutex for writing.
    void learn(std::span<const int> choices, std::span<const Block> chain) {
        const BuiltNetwork built = build_network(*space, choices, chain);
        Predictor predictor(built.graph, device, framework, options);
        std::vector<Segment> timed(chain.size() * batches.size());
        beginnings.assign(batches.size(), {});
        for (std::size_t b = 0; b < batches.size(); ++b) {
            static_cast<void>(predictor.predict({{"batch", batches[b]}}));
            std::size_t block = 0;
            for (const OpPrediction& op : predictor.operators()) {
                if (op.op == no_op) {
                    beginnings[b] = beginnings[b].then(segment_of(op));
                    continue;
                }
                while (block + 1 < chain.size() && op.op >= built.ends[block]) ++block;
                Segment& segment = timed[block * batches.size() + b];
                segment = segment.then(segment_of(op));
            }
        }
        for (std::size_t block = 0; block < chain.size(); ++block) {
            const auto [position, added] = known.try_emplace(chain[block], static_cast<std::uint32_t>(known.size()));
            if (!added) continue;
            const auto first = timed.begin() + static_cast<std::ptrdiff_t>(block * batches.size());
            segments.insert(segments.end(), first, first + static_cast<std::ptrdiff_t>(batches.size()));
        }
    }

    /// Composes the chain from blocks already known; false when one is missing. The caller holds the mutex.
    [[nodiscard]] bool compose(std::span<const Block> chain, std::vector<Segment>& total) const {
        if (beginnings.empty()) return false;
        total.assign(beginnings.begin(), beginnings.end());
        for (const Block& block : chain) {
            const auto found = known.find(block);
            if (found == known.end()) return false;
            const Segment* next = &segments[found->second * batches.size()];
            for (std::size_t b = 0; b < batches.size(); ++b) total[b] = total[b].then(next[b]);
        }
        return true;
    }

    struct Scratch {
        std::vector<Block> chain;
        std::vector<Segment> total;
    };

    /// Costs a run of architectures with one lock for as long as every block is known.
    void cost_rows(std::span<const int> choices, std::span<double> latency_s, Scratch& scratch) {
        std::shared_lock reading(mutex);
        for (std::size_t row = 0; row * sites < choices.size(); ++row) {
            const auto architecture = choices.subspan(row * sites, sites);
            scratch.chain.clear();
            space->blocks(architecture, scratch.chain);
            while (!compose(scratch.chain, scratch.total)) {
                reading.unlock();
                {
                    const std::unique_lock writing(mutex);
                    learn(architecture, scratch.chain);
                }
                reading.lock();
            }
            for (std::size_t b = 0; b < batches.size(); ++b) {
                latency_s[row * batches.size() + b] = scratch.total[b].latency_s();
            }
        }
    }
};

CostFunction::CostFunction(const Space& space, DeviceProfile device, FrameworkProfile framework, PredictOptions options,
                           std::vector<std::int64_t> batches)
    : state_(std::make_unique<State>()) {
    for (const std::int64_t batch : batches) {
        if (batch < 1) throw Error(ErrorCode::usage, fmt::format("batch must be at least 1, not {}", batch));
    }
    state_->space = &space;
    state_->costs = host_costs(framework, options.precision);
    state_->device = std::move(device);
    state_->framework = std::move(framework);
    state_->options = options;
    state_->batches = std::move(batches);
    state_->sites = space.options().size();
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
    const std::size_t share = (rows + threads - 1) / threads;
    std::exception_ptr failure;
    std::mutex failure_mutex;
    {
        std::vector<std::jthread> workers;
        for (std::size_t first = 0; first < rows; first += share) {
            workers.emplace_back([&, first] {
                const std::size_t count = std::min(share, rows - first);
                State::Scratch scratch;
                try {
                    state_->cost_rows(choices.subspan(first * state_->sites, count * state_->sites),
                                      latency_s.subspan(first * batches().size(), count * batches().size()), scratch);
                } catch (...) {
                    const std::lock_guard guard(failure_mutex);
                    failure = std::current_exception();
                }
            });
        }
    }
    if (failure) std::rethrow_exception(failure);
}

void CostFunction::marginal_cost(std::span<const int> choices, std::size_t site, std::span<double> latency_s) const {
    std::vector<int> changed(choices.begin(), choices.end());
    const int options = state_->space->options().at(site);
    for (int option = 0; option < options; ++option) {
        changed[site] = option;
        cost(changed, latency_s.subspan(static_cast<std::size_t>(option) * batches().size(), batches().size()));
    }
}

const Space& CostFunction::space() const { return *state_->space; }
const std::vector<std::int64_t>& CostFunction::batches() const { return state_->batches; }

}  // namespace ftax::nas
