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

/// One request to a server. For models that generate no tokens, a request is one item: prompt and output are 1.
struct ServingRequest {
    double arrival_s = 0;
    std::int64_t prompt = 1, output = 1;  ///< tokens
    std::int64_t prefix = 0;              ///< cached tokens of the prompt, stored once for all requests
};

constexpr std::int64_t most_tokens = 1'000'000'000;  ///< largest length of a prompt or an output
constexpr double latest_arrival_s = 1e12;            ///< beyond it, a double cannot represent the time of a step

/// Draws `count` requests that arrive as a Poisson process of `rate` per second, or all at 0 if the rate is 0.
/// `prompt` and `output` are mean lengths in tokens, `spread` the coefficient of variation of both; with a spread,
/// lengths are log-normal, from 1 to `most_tokens`.
[[nodiscard]] std::vector<ServingRequest> draw_requests(std::int64_t count, double rate, std::int64_t prompt,
                                                        std::int64_t output, double spread, std::uint64_t seed);

/// Work of one step of an engine: parts of prompts, and one token for each decoding sequence.
struct StepLoad {
    std::int64_t prompt_tokens = 0;  ///< new tokens of prompts
    double prompt_keys = 0;          ///< mean number of keys that such a token attends to
    std::int64_t sequences = 0;      ///< decoding sequences
    double context = 0;              ///< mean number of cached tokens of a decoding sequence
    std::int64_t images = 0;         ///< whose tokens begin in these parts
};

/// Cost of a step. `latency_s` is the time from one step to the next in a sequence without pauses.
struct StepCost {
    double host_s = 0, device_s = 0, latency_s = 0;
    Bound bound = Bound::memory;
    double energy_j = 0;  ///< energy of one board over `latency_s`
    double ahead_s = 0;   ///< host time before the device starts, where no step ran before
};
using StepFunction = std::function<StepCost(const StepLoad&)>;

/// How an engine schedules. The defaults are those of vLLM's V1 engine.
struct SchedulerOptions {
    std::int64_t max_sequences = 256;  ///< largest number of running sequences
    std::int64_t max_tokens = 8192;    ///< largest number of tokens of a step
    std::int64_t cache_tokens =
        std::numeric_limits<std::int64_t>::max() / 2;  ///< capacity of the cache, for the keys and values of all
    std::int64_t block_tokens = 16;                    ///< tokens of a page of the cache
    double shared_prefix = 0;        ///< share of each prompt that is cached, stored once for all requests
    std::int64_t concurrency = 0;    ///< outstanding requests of all clients; 0: requests arrive at arrival_s
    double frontend_s = 0;           ///< from a request's arrival to the scheduler: HTTP, tokenisation
    std::int64_t poll_steps = 1;     ///< decoding steps between checks for new requests; a check follows every prompt
    bool mixes_phases = true;        ///< prompts and decoding sequences share a step; else prompts run first
    bool chunks_prompts = true;      ///< a prompt may be processed in several steps
    double answer_share = 0;         ///< a prompt starts only if this share of all answers to come has room as well
    bool evicts = true;              ///< when pages run out, the youngest sequence is evicted and recomputed later;
                                     ///< else a request is admitted only when all of its pages are free
    bool caches_prefixes = true;     ///< an evicted sequence recomputes only tokens whose pages were reused by then
    bool schedules_ahead = true;     ///< the host prepares the next step while the device computes
    bool draws_groups = false;       ///< a request goes to a group at random, else to the one with the fewest
    std::int64_t draft_tokens = 0;   ///< tokens per decoding sequence that a step verifies, besides the next token
    double acceptance = 0;           ///< probability that a draft token is accepted if the preceding ones are
    std::int64_t groups = 1;         ///< data-parallel attention: groups of cards with separate sequences, budgets and
                                     ///< caches and synchronised steps, which take as long as in the fullest group
    std::int64_t balance_steps = 0;  ///< longest wait of new prompts for a prompt in every group, in steps; 0: no wait
    std::int64_t gather_steps = 0;   ///< longest wait of new prompts while others decode, in steps; a step with this
    double gather_share = 1;         ///< share of max_tokens ends the wait
    std::int64_t images = 0;         ///< at the start of each prompt, of so many of its tokens each
    std::int64_t image_tokens = 1;
    std::int64_t stages = 1;  ///< pipeline stages, with one step in progress each, all of equal time
};

/// Identical servers; each request goes to the one with the fewest outstanding requests.
struct ServerPool {
    SchedulerOptions options;  ///< of each server; frontend_s and concurrency count in the pool that gets the requests
    StepFunction step;
    std::int64_t servers = 1;
    std::int64_t cards = 1;  ///< per server
};

/// Times of one served request, in seconds since the start.
struct RequestTimes {
    double arrival_s = 0, scheduled_s = 0, first_token_s = 0, last_token_s = 0;
    std::int64_t prompt = 1, output = 1, prefix = 0;

    [[nodiscard]] double ttft_s() const { return first_token_s - arrival_s; }
    [[nodiscard]] double latency_s() const { return last_token_s - arrival_s; }
    /// Returns the mean time per token after the first; 0 for a single token.
    [[nodiscard]] double tpot_s() const {
        return output > 1 ? (last_token_s - first_token_s) / static_cast<double>(output - 1) : 0;
    }
};

struct Percentiles {
    double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

/// State of all servers, averaged since the previous moment.
struct ServingMoment {
    double time_s = 0;                ///< end of the moment
    double running = 0, waiting = 0;  ///< mean number of requests; 0 while no step runs
    double cache_share = 0;           ///< largest share of the pages in use
};

/// Limit of a server.
enum class ServingBound : std::uint8_t {
    load,     ///< too few requests: the device idles for more than half of the time
    host,     ///< the CPU limits most steps
    compute,  ///< arithmetic limits most steps
    memory,   ///< memory bandwidth limits most steps
    cache,    ///< requests wait for pages
    queue,    ///< requests wait because max_sequences are running
};
[[nodiscard]] constexpr std::string_view name_of(ServingBound bound) noexcept {
    constexpr std::array<std::string_view, 6> names{"load", "host", "compute", "memory", "KV space", "queue"};
    return names[static_cast<std::size_t>(bound)];
}

struct Serving {
    Percentiles ttft_s;     ///< time to first token
    Percentiles tpot_s;     ///< mean time per token of a request, after the first
    Percentiles itl_s;      ///< time between two tokens of a sequence, over all tokens
    Percentiles latency_s;  ///< end to end
    /// Period of all rates: from the first arrival to the last token. With a fixed concurrency, from the moment when
    /// every client has had a first token until the last request is sent.
    double duration_s = 0;
    double requests_per_s = 0;
    double tokens_per_s = 0;    ///< generated tokens
    double utilisation = 0;     ///< share of the duration in which a step runs, averaged over all cards
    double energy_j = 0;        ///< energy of all steps on all boards
    double mean_sequences = 0;  ///< running sequences, averaged over the time of steps
    double mean_outstanding = 0;
    double peak_cache_share = 0;
    std::int64_t steps = 0, evictions = 0;
    ServingBound bound = ServingBound::load;
    std::vector<RequestTimes> requests;   ///< in the order of arrival
    std::vector<ServingMoment> timeline;  ///< up to 512 moments of equal length
};

/// Simulates a pool that serves requests, sorted by arrival, with continuous batching. Throws Error{usage} for unsorted
/// or invalid requests, and for a request that does not fit into the empty cache.
[[nodiscard]] Serving serve(std::span<const ServingRequest> requests, const ServerPool& pool);

/// Like serve(), with separate servers: `prefill` processes the prompts, `decode` generates all tokens but the first.
/// The prompt's keys and values arrive `transfer_s` seconds after prefill; the first token is sent once the second
/// server has a place for the request.
[[nodiscard]] Serving serve(std::span<const ServingRequest> requests, const ServerPool& prefill,
                            const ServerPool& decode, const std::function<double(std::int64_t prompt)>& transfer_s);

/// Dynamic batching of a server that runs whole models. Source: Triton Inference Server, dynamic_batching.
struct BatchingOptions {
    std::int64_t max_batch = 8;
    double max_delay_s = 0;        ///< longest wait of the oldest request before a partial batch runs
    std::int64_t concurrency = 0;  ///< see SchedulerOptions
};

/// Simulates a server that runs one batch at a time, at the cost `run(size)`. Throws what serve() throws.
[[nodiscard]] Serving serve_batches(std::span<const ServingRequest> requests, const BatchingOptions& options,
                                    const std::function<StepCost(std::int64_t)>& run);

/// Service level objective: limits of a request, in seconds.
struct ServiceLevel {
    double ttft_s = std::numeric_limits<double>::infinity();
    double tpot_s = std::numeric_limits<double>::infinity();
    double latency_s = std::numeric_limits<double>::infinity();
    double share = 0.99;  ///< share of the requests that must keep all limits

    [[nodiscard]] bool keeps(const RequestTimes& request) const {
        return request.ttft_s() <= ttft_s && request.tpot_s() <= tpot_s && request.latency_s() <= latency_s;
    }
};

/// Returns the share of the requests that keep all limits.
[[nodiscard]] double kept_share(const Serving& serving, const ServiceLevel& level);

/// Returns the largest rate, to 1 %, at which `at_rate` keeps the level; 0 if no rate does. `start` is a first guess.
[[nodiscard]] double find_rate(const std::function<Serving(double rate)>& at_rate, const ServiceLevel& level,
                               double start);

}  // namespace ftax
