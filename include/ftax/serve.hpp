#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "ftax/predict.hpp"

namespace ftax {

/// One request to a server. Other models than those that generate take every request as one item: prompt and output 1.
struct ServingRequest {
    double arrival_s = 0;
    std::int64_t prompt = 1, output = 1;  ///< tokens
    std::int64_t prefix = 0;              ///< tokens of the prompt that the cache holds already, once for all requests
};

constexpr std::int64_t most_tokens = 1'000'000'000;  ///< of a prompt or an output
constexpr double latest_arrival_s = 1e12;            ///< beyond it a double does not tell steps apart

/// Draws `count` requests of `prompt` and `output` tokens that arrive as a Poisson process of `rate` per second; rate
/// 0: all at 0. `spread` is the coefficient of variation of both lengths, which are then log-normal, 1 to
/// `most_tokens`.
[[nodiscard]] std::vector<ServingRequest> draw_requests(std::int64_t count, double rate, std::int64_t prompt,
                                                        std::int64_t output, double spread, std::uint64_t seed);

/// What one step of an engine computes: parts of prompts, and one token for each sequence that decodes.
struct StepLoad {
    std::int64_t prompt_tokens = 0;  ///< new tokens of prompts
    double prompt_keys = 0;          ///< mean number of keys that one of them attends to
    std::int64_t sequences = 0;      ///< that decode
    double context = 0;              ///< mean number of tokens that these have in the cache
};

/// What a step takes. `latency_s` is the time from one step to the next while steps follow each other.
struct StepCost {
    double host_s = 0, device_s = 0, latency_s = 0;
    Bound bound = Bound::memory;
    double energy_j = 0;  ///< that one board takes over `latency_s`
};
using StepFunction = std::function<StepCost(const StepLoad&)>;

/// How an engine schedules. The defaults are those of vLLM's V1 engine.
struct SchedulerOptions {
    std::int64_t max_sequences = 256;  ///< that run at a time
    std::int64_t max_tokens = 8192;    ///< of a step
    std::int64_t cache_tokens =
        std::numeric_limits<std::int64_t>::max() / 2;  ///< that the keys and values of all have room for
    std::int64_t block_tokens = 16;                    ///< of a page of the cache
    double shared_prefix = 0;       ///< share of each prompt that the cache holds already, once for all requests
    std::int64_t concurrency = 0;   ///< requests that clients keep outstanding; 0: requests come at their arrivals
    double frontend_s = 0;          ///< from a request's arrival until the scheduler has it: HTTP, tokens of the prompt
    std::int64_t poll_steps = 1;    ///< decoding steps after which it looks for new requests; after prompts always
    bool mixes_phases = true;       ///< prompts and decoding sequences share a step; else prompts go first
    bool chunks_prompts = true;     ///< a prompt may be read over several steps
    bool evicts = true;             ///< the youngest sequence gives its pages up when they run out, and is computed
                                    ///< again later; else a request waits until all of its pages are free
    bool caches_prefixes = true;    ///< pages given up hold their tokens until another sequence takes them: a sequence
                                    ///< that comes back computes the rest alone
    bool schedules_ahead = true;    ///< the host prepares a step while the device computes the one before
    std::int64_t draft_tokens = 0;  ///< that a step verifies for each decoding sequence beside its next token
    double acceptance = 0;          ///< chance that a draft token is right if those before it are
    std::int64_t groups = 1;        ///< of cards with sequences, budget and cache of their own, which step together:
                                    ///< data-parallel attention. A step takes as long as in the fullest group
    std::int64_t balance_steps = 0;  ///< for which new prompts wait until every group has one; 0: none waits
    std::int64_t gather_steps = 0;   ///< for which new prompts wait beside decoding sequences, for a step with
    double gather_share = 1;         ///< this share of its most tokens
    std::int64_t stages = 1;         ///< of a pipeline, each with a step of its own under way, of equal times
};

/// Alike servers between which requests are dealt, each to the one with the fewest.
struct ServerPool {
    SchedulerOptions options;  ///< of each; frontend and concurrency are those of the pool that requests come to
    StepFunction step;
    std::int64_t servers = 1;
    std::int64_t cards = 1;  ///< of each
};

/// When a request was served, in seconds since the start.
struct RequestTimes {
    double arrival_s = 0, scheduled_s = 0, first_token_s = 0, last_token_s = 0;
    std::int64_t prompt = 1, output = 1, prefix = 0;

    [[nodiscard]] double ttft_s() const { return first_token_s - arrival_s; }
    [[nodiscard]] double latency_s() const { return last_token_s - arrival_s; }
    /// Mean time of a further token; 0 for a single one.
    [[nodiscard]] double tpot_s() const {
        return output > 1 ? (last_token_s - first_token_s) / static_cast<double>(output - 1) : 0;
    }
};

struct Percentiles {
    double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

/// State of all servers over the time since the moment before.
struct ServingMoment {
    double time_s = 0;                ///< at its end
    double running = 0, waiting = 0;  ///< requests, on average; none runs or waits while no step does
    double cache_share = 0;           ///< of the pages, at most
};

/// What limits a server.
enum class ServingBound : std::uint8_t {
    load,     ///< requests: the device idles for more than half of the time
    host,     ///< steps: the CPU
    compute,  ///< steps: arithmetic
    memory,   ///< steps: bandwidth
    cache,    ///< requests wait for pages
    queue,    ///< requests wait for one of the most sequences that run at a time
};
[[nodiscard]] constexpr std::string_view name_of(ServingBound bound) noexcept {
    constexpr std::array<std::string_view, 6> names{"load", "host", "compute", "memory", "KV space", "queue"};
    return names[static_cast<std::size_t>(bound)];
}

struct Serving {
    Percentiles ttft_s;     ///< time to first token
    Percentiles tpot_s;     ///< mean time of a further token of a request
    Percentiles itl_s;      ///< time between two tokens of a sequence, over all tokens
    Percentiles latency_s;  ///< end to end
    /// What rates are counted over: from the first arrival to the last token; where clients keep requests outstanding,
    /// from when each has had a first token until the last request is sent.
    double duration_s = 0;
    double requests_per_s = 0;
    double tokens_per_s = 0;    ///< that were generated
    double utilisation = 0;     ///< share of the duration in which a step runs, on average over all cards
    double energy_j = 0;        ///< of its steps, on all boards
    double mean_sequences = 0;  ///< that run, over the time steps take
    double mean_outstanding = 0;
    double peak_cache_share = 0;
    std::int64_t steps = 0, evictions = 0;
    ServingBound bound = ServingBound::load;
    std::vector<RequestTimes> requests;   ///< in the order of arrival
    std::vector<ServingMoment> timeline;  ///< at most 512 moments of equal length
};

/// Serves requests, sorted by arrival, step by step with continuous batching. Throws Error{usage} for unsorted or
/// invalid requests, and for one that the cache has no room for even alone.
[[nodiscard]] Serving serve(std::span<const ServingRequest> requests, const ServerPool& pool);

/// The same where servers of `prefill` read the prompts and those of `decode` generate all but the first token, which
/// is out once a prompt's keys and values have been sent: `transfer_s` after it was computed.
[[nodiscard]] Serving serve(std::span<const ServingRequest> requests, const ServerPool& prefill,
                            const ServerPool& decode, const std::function<double(std::int64_t prompt)>& transfer_s);

/// How a server of whole runs gathers requests. Source: Triton Inference Server, dynamic_batching.
struct BatchingOptions {
    std::int64_t max_batch = 8;
    double max_delay_s = 0;        ///< that the oldest request waits for others before a batch that is not full runs
    std::int64_t concurrency = 0;  ///< as SchedulerOptions has it
};

/// Serves requests as batches, one after the other; `run` costs one of so many requests. Throws as serve().
[[nodiscard]] Serving serve_batches(std::span<const ServingRequest> requests, const BatchingOptions& options,
                                    const std::function<StepCost(std::int64_t)>& run);

/// Limits that a request must keep, in seconds.
struct ServiceLevel {
    double ttft_s = std::numeric_limits<double>::infinity();
    double tpot_s = std::numeric_limits<double>::infinity();
    double latency_s = std::numeric_limits<double>::infinity();
    double share = 0.99;  ///< of the requests that must keep all of them

    [[nodiscard]] bool keeps(const RequestTimes& request) const {
        return request.ttft_s() <= ttft_s && request.tpot_s() <= tpot_s && request.latency_s() <= latency_s;
    }
};

/// Share of the requests that keep the limits.
[[nodiscard]] double kept_share(const Serving& serving, const ServiceLevel& level);

/// Finds the largest rate, to 1 %, at which `at_rate` keeps the level; 0 where no rate does. `start` is a rate near it.
[[nodiscard]] double find_rate(const std::function<Serving(double rate)>& at_rate, const ServiceLevel& level,
                               double start);

}  // namespace ftax
