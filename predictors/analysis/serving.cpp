#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

#include "ftax/error.hpp"
#include "ftax/serve.hpp"
#include "graphs/base/interruption.hpp"

namespace ftax {
namespace {

/// Weighted values and their percentiles. Of more than a million values in turn the later ones are rounded.
class Distribution {
  public:
    void add(double value, std::int64_t weight = 1) {
        constexpr std::size_t most_values = 1 << 20;
        if (!values_.empty() && values_.back().first == value) {
            values_.back().second += weight;
        } else if (weight > 0 && values_.size() < most_values) {
            values_.emplace_back(value, weight);
        } else if (weight > 0) {
            rounded_[(std::bit_cast<std::uint64_t>(value) + half) >> cut_bits] += weight;
        }
    }
    /// The least value that a share of the weight is not above.
    [[nodiscard]] Percentiles percentiles() {
        if (values_.empty()) return {};
        for (const auto& [bits, count] : rounded_) values_.emplace_back(std::bit_cast<double>(bits << cut_bits), count);
        double sum = 0, weight = 0;
        for (const auto& [value, count] : values_) {
            sum += value * static_cast<double>(count);
            weight += static_cast<double>(count);
        }
        std::ranges::sort(values_);
        auto value = values_.begin();
        auto reached = static_cast<double>(value->second);
        const auto at = [&](double share) {
            while (reached < share * weight) reached += static_cast<double>((++value)->second);
            return value->first;
        };
        return {sum / weight, at(0.5), at(0.9), at(0.99)};
    }

  private:
    static constexpr int cut_bits = 34;  ///< of a double's 52: values are kept to 2e-6
    static constexpr std::uint64_t half = std::uint64_t{1} << (cut_bits - 1);
    std::vector<std::pair<double, std::int64_t>> values_;
    std::unordered_map<std::uint64_t, std::int64_t> rounded_;
};

/// Requests as they come: at their arrivals, or, where clients keep so many outstanding, when another has ended.
class Arrivals {
  public:
    Arrivals(std::span<const ServingRequest> requests, std::int64_t concurrency, double frontend_s = 0)
        : frontend_s_(frontend_s), is_closed_(concurrency > 0) {
        if (requests.empty()) throw Error(ErrorCode::usage, "there are no requests");
        double last_s = 0;
        times_.reserve(requests.size());
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const ServingRequest& request = requests[i];
            const auto fail = [&](const std::string& what) {
                throw Error(ErrorCode::usage, fmt::format("request {}: {}", i + 1, what));
            };
            if (!(request.arrival_s >= 0 && request.arrival_s <= latest_arrival_s))
                fail(fmt::format("arrival_s is not a time from 0 to {:g} s", latest_arrival_s));
            if (request.arrival_s < last_s) fail("arrives before the one above it; sort the requests by arrival_s");
            if (std::min(request.prompt, request.output) < 1 || std::max(request.prompt, request.output) > most_tokens)
                fail(fmt::format("prompt and output are numbers of tokens from 1 to {}", most_tokens));
            if (request.prefix < 0 || request.prefix > request.prompt) fail("prefix is not a part of the prompt");
            last_s = request.arrival_s;
            times_.push_back(
                {is_closed_ ? 0 : request.arrival_s, 0, 0, 0, request.prompt, request.output, request.prefix});
        }
        open_ = is_closed_ ? std::min<std::size_t>(requests.size(), static_cast<std::size_t>(concurrency))
                           : requests.size();
    }

    /// The next request, where it has arrived by then.
    [[nodiscard]] std::optional<std::size_t> take(double now_s) {
        if (next_s() > now_s) return std::nullopt;
        return next_++;
    }
    [[nodiscard]] double next_s() const {
        return next_ < open_ ? times_[next_].arrival_s + frontend_s_ : std::numeric_limits<double>::infinity();
    }
    [[nodiscard]] bool done() const { return ended_ == times_.size(); }
    /// Whether a client sends the last request now.
    bool end(std::size_t request, double now_s) {
        times_[request].last_token_s = now_s;
        ++ended_;
        if (!is_closed_ || open_ == times_.size()) return false;
        times_[open_++].arrival_s = now_s;
        return open_ == times_.size();
    }
    [[nodiscard]] RequestTimes& operator[](std::size_t request) { return times_[request]; }
    [[nodiscard]] std::vector<RequestTimes> take_times() { return std::move(times_); }

  private:
    double frontend_s_ = 0;
    std::vector<RequestTimes> times_;
    std::size_t next_ = 0, open_ = 0, ended_ = 0;
    bool is_closed_ = false;
};

/// Sums up a run step by step.
class Record {
  public:
    /// Of `clients` that send requests one after the other; 0: requests come by themselves.
    explicit Record(std::int64_t clients, std::int64_t cards = 1)
        : cards_(static_cast<double>(cards)), clients_(clients) {}

    /// A step that keeps each of `cards` busy for `taken_s`.
    void add(double now_s, const StepCost& cost, double taken_s, const ServingMoment& moment, std::int64_t cards = 1) {
        ++serving_.steps;
        busy_s_ += taken_s;
        totals_.card_s += taken_s * static_cast<double>(cards);
        totals_.energy_j += cost.energy_j * static_cast<double>(cards);
        sequence_s_ += taken_s * moment.running;
        const bool host = cost.host_s > cost.device_s;
        bound_s_[static_cast<std::size_t>(host                           ? ServingBound::host
                                          : cost.bound == Bound::compute ? ServingBound::compute
                                                                         : ServingBound::memory)] += taken_s;
        serving_.peak_cache_share = std::max(serving_.peak_cache_share, moment.cache_share);
        spread(now_s, std::max(taken_s, 0.0), moment);  // a step table may extrapolate below 0
    }
    void wait(ServingBound bound, double taken_s) { bound_s_[static_cast<std::size_t>(bound)] += taken_s; }
    void gap(double seconds, std::int64_t tokens) {
        gaps_.add(seconds, tokens);
        totals_.tokens += static_cast<double>(tokens);
    }
    void first_token(double now_s) {
        ++totals_.tokens;
        if (++begun_ == clients_) begin_ = at(now_s);
    }
    /// The last request is on its way: what is left runs beside fewer and fewer others.
    void last_sent(double now_s) { end_ = at(now_s); }
    void evict() { ++serving_.evictions; }

    [[nodiscard]] Serving finish(std::vector<RequestTimes> requests) {
        double tokens = 0, outstanding_s = 0, end_s = 0;
        for (const RequestTimes& request : requests) {
            tokens += static_cast<double>(request.output);
            outstanding_s += request.latency_s();
            end_s = std::max(end_s, request.last_token_s);
        }
        // One distribution after the other: each is as large as the requests.
        const auto percentiles_of = [&](double (RequestTimes::*seconds)() const, std::int64_t least_output) {
            Distribution values;
            for (const RequestTimes& request : requests)
                if (request.output >= least_output) values.add((request.*seconds)());
            return values.percentiles();
        };
        serving_.itl_s = std::exchange(gaps_, {}).percentiles();
        serving_.ttft_s = percentiles_of(&RequestTimes::ttft_s, 1);
        serving_.tpot_s = percentiles_of(&RequestTimes::tpot_s, 2);
        serving_.latency_s = percentiles_of(&RequestTimes::latency_s, 1);
        const double first_s = requests.front().arrival_s;
        constexpr double least_share = 0.125;  // of a run that is enough to count over
        if (end_.time_s - begin_.time_s < least_share * (end_s - first_s)) {
            begin_ = {.time_s = first_s};
            end_ = at(end_s);
        }
        serving_.duration_s = end_.time_s - begin_.time_s;
        serving_.tokens_per_s = (end_.tokens - begin_.tokens) / serving_.duration_s;
        serving_.requests_per_s = serving_.tokens_per_s * static_cast<double>(requests.size()) / tokens;
        serving_.utilisation = (end_.card_s - begin_.card_s) / (cards_ * serving_.duration_s);
        serving_.energy_j = end_.energy_j - begin_.energy_j;
        serving_.mean_sequences = sequence_s_ / busy_s_;
        serving_.mean_outstanding = outstanding_s / (end_s - first_s);
        const auto seconds_of = [&](ServingBound bound) { return bound_s_[static_cast<std::size_t>(bound)]; };
        serving_.bound = ServingBound::host;
        for (const ServingBound bound : {ServingBound::compute, ServingBound::memory})
            if (seconds_of(bound) > seconds_of(serving_.bound)) serving_.bound = bound;
        for (const ServingBound bound : {ServingBound::queue, ServingBound::cache})
            if (seconds_of(bound) > busy_s_ / 2) serving_.bound = bound;
        if (serving_.utilisation < 0.5) serving_.bound = ServingBound::load;
        serving_.requests = std::move(requests);
        serving_.timeline.resize(static_cast<std::size_t>(std::ceil((reached_s_ - start_s_) / moment_s_ - 1e-6)));
        for (double until_s = start_s_; ServingMoment & moment : serving_.timeline)
            moment.time_s = until_s += moment_s_;
        return std::move(serving_);
    }

  private:
    /// Adds a step to the moments that it lasts through. Where there are too many, pairs of them become one.
    void spread(double now_s, double taken_s, const ServingMoment& step) {
        constexpr std::size_t most_moments = 512;
        std::vector<ServingMoment>& moments = serving_.timeline;
        const auto add = [](ServingMoment& moment, double share, const ServingMoment& part) {
            moment.running += share * part.running;
            moment.waiting += share * part.waiting;
            moment.cache_share = std::max(moment.cache_share, part.cache_share);
        };
        if (moments.empty()) {
            moments.resize(most_moments);
            start_s_ = now_s - taken_s;
            moment_s_ = std::max(taken_s, 1e-9) / most_moments;
        }
        for (; now_s > start_s_ + moment_s_ * most_moments; moment_s_ *= 2) {
            const std::vector<ServingMoment> shorter = std::exchange(moments, std::vector<ServingMoment>(most_moments));
            for (std::size_t i = 0; i < most_moments; ++i) add(moments[i / 2], 0.5, shorter[i]);
        }
        const double first = std::max(0.0, (now_s - taken_s - start_s_) / moment_s_);
        const double last = (now_s - start_s_) / moment_s_;
        for (auto at = static_cast<std::size_t>(first); at < most_moments && static_cast<double>(at) < last; ++at) {
            const auto begin = static_cast<double>(at);
            add(moments[at], std::min(last, begin + 1) - std::max(first, begin), step);
        }
        reached_s_ = std::max(reached_s_, now_s);
    }
    double start_s_ = 0, reached_s_ = 0, moment_s_ = 0;  ///< of the timeline

    struct Totals {
        double time_s = 0, tokens = 0, card_s = 0, energy_j = 0;
    };
    [[nodiscard]] Totals at(double now_s) {
        totals_.time_s = now_s;
        return totals_;
    }

    Serving serving_;
    Distribution gaps_;
    Totals totals_;
    Totals begin_, end_;  ///< of the steady state: all clients have a first token; the last request is sent
    double cards_, busy_s_ = 0, sequence_s_ = 0;
    std::int64_t clients_, begun_ = 0;
    std::array<double, 6> bound_s_{};
};

/// A request that has been scheduled.
struct Sequence {
    std::size_t request = 0;
    std::int64_t computed = 0;  ///< tokens in the cache
    std::int64_t known = 0;     ///< tokens of the prompt and those generated: all but the last are to be computed
    std::int64_t generated = 0;
    std::int64_t output = 0;  ///< tokens to generate
    std::int64_t pages = 0;
    std::int64_t room = 0;   ///< for tokens: in its pages and the prefix that it shares
    std::int64_t taken = 0;  ///< tokens of it that the step under way computes
    std::int64_t step = 0;   ///< the number of that step; 0: none
    double last_token_s = 0;
    std::int64_t joined = -1;  ///< steps of the others that decode when they took it in; -1: it goes by itself
    std::int64_t ends = 0;     ///< such steps when its last token comes
};

/// The pages that no sequence holds, in the order in which they are taken. Those that a sequence gave up hold its
/// tokens until then, and go from its last on. Source: vLLM, vllm/v1/core/block_pool.py.
class FreePages {
  public:
    static constexpr std::size_t no_request = std::numeric_limits<std::size_t>::max();

    explicit FreePages(std::int64_t pages) : count_(pages), stretches_{{no_request, pages}} {}

    [[nodiscard]] std::int64_t count() const { return count_; }
    void give(std::int64_t pages, std::size_t request = no_request) {
        count_ += pages;
        if (!stretches_.empty() && request == no_request && stretches_.back().request == no_request) {
            stretches_.back().pages += pages;
        } else if (pages > 0) {
            stretches_.push_back({request, pages});
        }
    }
    void take(std::int64_t pages) {
        count_ -= pages;
        while (pages > 0) {
            const std::int64_t taken = std::min(pages, stretches_.front().pages);
            pages -= taken;
            stretches_.front().pages -= taken;
            if (stretches_.front().pages == 0) stretches_.pop_front();
        }
    }
    /// Pages that still hold tokens of a sequence.
    [[nodiscard]] std::int64_t held_for(std::size_t request) const {
        const auto found = std::ranges::find(stretches_, request, &Stretch::request);
        return found == stretches_.end() ? 0 : found->pages;
    }
    void take_back(std::size_t request, std::int64_t pages) {
        count_ -= pages;
        std::erase_if(stretches_, [request](const Stretch& stretch) { return stretch.request == request; });
    }

  private:
    struct Stretch {
        std::size_t request;
        std::int64_t pages;
    };
    std::int64_t count_;
    std::deque<Stretch> stretches_;
};

/// The scheduler of one group of cards. Sequences that decode go together, at the front of those that run: a step is
/// one count for all of them. Source: vLLM, vllm/v1/core/sched/scheduler.py (schedule).
class Scheduler {
  public:
    /// `reads_only`: other servers generate what follows a prompt's first token.
    Scheduler(std::span<const ServingRequest> requests, const SchedulerOptions& options, bool reads_only,
              Arrivals& arrivals, Record& record)
        : options_(options), reads_only_(reads_only), arrivals_(arrivals), record_(record) {
        std::int64_t prefix = 0;
        for (const ServingRequest& request : requests) prefix = std::max(prefix, shared(request));
        total_pages_ = (options.cache_tokens - prefix) / options.block_tokens;
        free_ = FreePages(total_pages_);
        full_.resize(static_cast<std::size_t>(options.block_tokens));
        for (const ServingRequest& request : requests) {
            const std::int64_t tokens = longest(request.prompt, request.output);
            if (pages_of(tokens - shared(request)) <= total_pages_) continue;
            throw Error(ErrorCode::usage,
                        fmt::format("a request of {} tokens does not fit: keys and values have room for {} tokens",
                                    tokens, total_pages_ * options.block_tokens));
        }
    }

    /// A request whose prompt another server may have read already.
    void enqueue(std::size_t request, bool is_read) {
        const RequestTimes& times = arrivals_[request];
        Sequence sequence{.request = request,
                          .computed = shared(times),
                          .known = times.prompt,
                          .output = reads_only_ ? 1 : times.output};
        if (is_read) {
            sequence.computed = sequence.known++;
            sequence.generated = 1;
        }
        waiting_.push_back(sequence);
    }

    [[nodiscard]] std::size_t running() const { return running_.size(); }
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
    [[nodiscard]] bool has_work() const { return !waiting_.empty() || running_.size() > under_way_; }
    [[nodiscard]] double cache_share() const {
        return 1 - static_cast<double>(free_.count()) / static_cast<double>(std::max<std::int64_t>(total_pages_, 1));
    }
    /// Why requests waited that the last step had no place for.
    [[nodiscard]] std::optional<ServingBound> blocked() const { return blocked_; }

    /// Tokens of a step with the requests that wait.
    [[nodiscard]] double next_tokens() const {
        double tokens = static_cast<double>(running_.size()) * static_cast<double>(1 + options_.draft_tokens);
        for (const Sequence& sequence : waiting_) tokens += static_cast<double>(wanted(sequence));
        return tokens;
    }

    /// What a step computes, of its share of the sequences where several run. `holds`: none of those that wait.
    StepLoad schedule(std::int64_t step, double now_s, bool holds) {
        stop_if_interrupted();
        blocked_.reset();
        const auto all = std::min(options_.max_sequences, static_cast<std::int64_t>(running_.size() + waiting_.size()));
        Step next{
            .number = step, .budget = options_.max_tokens, .places = (all + options_.stages - 1) / options_.stages};
        // What another server has read goes on at once: there is nothing to do before decoding.
        const bool mixes = options_.mixes_phases || (!waiting_.empty() && decodes(waiting_.front()));
        take_running(next, true, mixes);
        if (!holds) take_waiting(next, now_s);
        StepLoad& load = next.load;
        if (!mixes && load.prompt_tokens == 0) take_running(next, false, true);
        if (load.prompt_tokens == 0)  // over 600 steps to a seventh
            answer_share_ = std::max(answer_share_ - 0.86 / 600 * options_.answer_share, 0.14 * options_.answer_share);
        if (load.prompt_tokens > 0) load.prompt_keys /= static_cast<double>(load.prompt_tokens);
        if (load.sequences > 0) load.context /= static_cast<double>(load.sequences);
        return load;
    }

    /// Ends a step: whoever has all its tokens computed gets another, and as many more as its drafts were right.
    /// `leave` takes requests that this server has done its part of.
    void advance(std::int64_t step, double now_s, const std::function<void(std::size_t)>& leave) {
        auto kept = static_cast<std::size_t>(together_);
        if (together_step_ == step && together_ > 0) {
            ++steps_;
            under_way_ -= kept;
            cached_ += together_;
            if (steps_ < next_end_) {
                record_.gap(now_s - last_token_s_, together_);
            } else {
                kept = 0;
                next_end_ = never;
            }
        }
        for (std::size_t i = kept; i < running_.size(); ++i) {
            Sequence& sequence = running_[i];
            bool ended = false;
            if (sequence.joined >= 0) {
                record_.gap(now_s - last_token_s_, 1);
                ended = sequence.ends == steps_;
            } else if (sequence.step == step) {
                const bool decoded = decodes(sequence);
                sequence.computed += decoded ? 1 : sequence.taken;
                sequence.step = 0;
                --under_way_;
                if (sequence.computed == sequence.known) {
                    std::int64_t tokens = 1;
                    if (decoded)
                        tokens = std::min(sequence.output - sequence.generated, 1 + accepted(sequence.taken - 1));
                    if (sequence.generated == 0) {
                        send_first(sequence, now_s);
                    } else {
                        record_.gap((now_s - sequence.last_token_s) / static_cast<double>(tokens), tokens);
                    }
                    sequence.last_token_s = now_s;
                    sequence.computed += tokens - 1;
                    sequence.known += tokens;
                    sequence.generated += tokens;
                    ended = sequence.generated == sequence.output;
                }
            }
            if (ended) {
                if (sequence.joined >= 0) part(sequence);
                free_.give(sequence.pages);
                leave(sequence.request);
                continue;
            }
            if (sequence.joined >= 0) next_end_ = std::min(next_end_, sequence.ends);
            if (kept != i) running_[kept] = sequence;
            ++kept;
        }
        running_.resize(kept);
        if (together_step_ == step) last_token_s_ = now_s;
        for (auto i = static_cast<std::size_t>(together_); i < kept && join(running_[i]);) ++i;
    }

  private:
    /// A step that takes sequences, and what it has room for.
    struct Step {
        std::int64_t number, budget, places;  ///< budget: in tokens
        StepLoad load{};
        bool evicted = false;
        [[nodiscard]] bool has_room() const { return budget > 0 && places > 0; }
    };

    void take(Step& step, Sequence& sequence, std::int64_t tokens) {
        sequence.taken = tokens;
        sequence.step = step.number;
        ++under_way_;
        step.budget -= tokens;
        --step.places;
        if (decodes(sequence)) {
            ++step.load.sequences;
            step.load.context += static_cast<double>(sequence.computed);
        } else {
            step.load.images += images_until(sequence.computed + tokens) - images_until(sequence.computed);
            step.load.prompt_tokens += tokens;
            step.load.prompt_keys += static_cast<double>(tokens) *
                                     (static_cast<double>(sequence.computed) + static_cast<double>(tokens + 1) / 2);
        }
    }

    /// Images that begin in so many tokens of a prompt. Source: vLLM, v1/core/sched/scheduler.py (encoder inputs).
    [[nodiscard]] std::int64_t images_until(std::int64_t tokens) const {
        return std::min(options_.images, (tokens + options_.image_tokens - 1) / options_.image_tokens);
    }

    void send_first(Sequence& sequence, double now_s) {
        arrivals_[sequence.request].first_token_s = sequence.last_token_s = now_s;
        if (!reads_only_ || arrivals_[sequence.request].output == 1) record_.first_token(now_s);
    }

    void take_running(Step& step, bool prompts, bool decoding) {
        if (decoding && together_ > 0) {
            step.evicted = make_room();
            together_step_ = step.number;
            step.load.sequences += together_;
            step.load.context += static_cast<double>(cached_);
            under_way_ += static_cast<std::size_t>(together_);
            step.budget -= together_;
            step.places -= together_;
        }
        for (auto i = static_cast<std::size_t>(together_); i < running_.size() && step.has_room(); ++i) {
            if (running_[i].step != 0 || (decodes(running_[i]) ? !decoding : !prompts)) continue;
            const std::int64_t tokens = std::min(wanted(running_[i]), step.budget);
            bool fits = allocate(running_[i], tokens);
            // Never one that a step has taken.
            while (!fits && i < running_.size() && running_.back().step == 0) {
                evict_youngest();
                step.evicted = true;
                fits = i < running_.size() && allocate(running_[i], tokens);
            }
            if (fits) take(step, running_[i], tokens);
        }
    }

    void take_waiting(Step& step, double now_s) {
        // Source: SGLang, schedule_policy.py (PrefillAdder, CLIP_MAX_NEW_TOKENS), new_token_ratio_tracker.py.
        const auto answer_of = [this](const Sequence& sequence) {
            const std::int64_t left =
                sequence.joined < 0 ? sequence.output - sequence.generated : sequence.ends - steps_;
            return static_cast<double>(std::min<std::int64_t>(left, 4096));
        };
        double reserved = 0;
        if (options_.answer_share > 0 && !waiting_.empty())
            for (const Sequence& sequence : running_)
                reserved += answer_of(sequence) * (sequence.step == step.number ? 1 : answer_share_);
        while (!waiting_.empty() && step.has_room() && !step.evicted) {
            if (static_cast<std::int64_t>(running_.size()) >= options_.max_sequences) {
                blocked_ = ServingBound::queue;
                break;
            }
            Sequence sequence = waiting_.front();
            const std::int64_t held = free_.held_for(sequence.request);
            sequence.computed = std::min(sequence.computed + held * options_.block_tokens, sequence.known - 1);
            const std::int64_t left = wanted(sequence);
            const std::int64_t tokens = options_.chunks_prompts ? std::min(left, step.budget) : left;
            if (tokens > step.budget && step.load.prompt_tokens > 0) break;
            RequestTimes& times = arrivals_[sequence.request];
            // An engine that evicts takes pages as they fill.
            const std::int64_t all = longest(times.prompt, times.output) - sequence.computed;
            const double answer = answer_of(sequence);
            const auto room = static_cast<double>((free_.count() - held) * options_.block_tokens);
            if ((options_.answer_share > 0 && !running_.empty() &&
                 static_cast<double>(left) + answer + reserved > room) ||
                !allocate(sequence, options_.evicts ? tokens : all, held)) {
                blocked_ = ServingBound::cache;
                break;
            }
            if (sequence.generated == 0 && times.scheduled_s == 0) times.scheduled_s = now_s;
            // Clients hear from the server that goes on. Source: Dynamo's handlers of decode workers.
            if (sequence.generated == 1 && sequence.last_token_s == 0) send_first(sequence, now_s);
            running_.push_back(sequence);
            waiting_.pop_front();
            take(step, running_.back(), tokens);
            reserved += answer;
        }
    }

    /// Tokens of a request that the cache holds before it comes.
    template <class Request>
    [[nodiscard]] std::int64_t shared(const Request& request) const {
        const auto share = static_cast<std::int64_t>(options_.shared_prefix * static_cast<double>(request.prompt));
        return std::min(request.prompt - 1, std::max(share, request.prefix));
    }
    [[nodiscard]] std::int64_t pages_of(std::int64_t tokens) const {
        return (tokens + options_.block_tokens - 1) / options_.block_tokens;
    }
    /// Tokens of a request that this server has in its cache at most.
    [[nodiscard]] std::int64_t longest(std::int64_t prompt, std::int64_t output) const {
        return prompt + (reads_only_ ? 1 : output + options_.draft_tokens);
    }
    [[nodiscard]] bool decodes(const Sequence& sequence) const {
        return sequence.known - sequence.computed == 1 && sequence.generated > 0;
    }
    /// Tokens that a sequence would have computed next.
    [[nodiscard]] std::int64_t wanted(const Sequence& sequence) const {
        return sequence.known - sequence.computed + (decodes(sequence) ? options_.draft_tokens : 0);
    }
    /// Draft tokens that are right before the first that is wrong.
    [[nodiscard]] std::int64_t accepted(std::int64_t drafted) {
        std::int64_t right = 0;
        while (right < drafted && static_cast<double>(random_() >> 11) * 0x1p-53 < options_.acceptance) ++right;
        return right;
    }

    /// Gives a sequence pages for so many more tokens, those that still hold its own first.
    bool allocate(Sequence& sequence, std::int64_t tokens, std::int64_t held = 0) {
        if (sequence.computed + tokens <= sequence.room) return true;
        const std::int64_t prefix = shared(arrivals_[sequence.request]);
        const std::int64_t missing = pages_of(sequence.computed + tokens - prefix) - sequence.pages - held;
        if (missing > free_.count() - held) return false;
        if (held > 0) free_.take_back(sequence.request, held);
        if (missing > 0) free_.take(missing);
        sequence.pages += held + std::max<std::int64_t>(missing, 0);
        sequence.room = prefix + sequence.pages * options_.block_tokens;
        return true;
    }

    /// Lets a sequence decode with the others if it had its last token with them; true where it does.
    bool join(Sequence& sequence) {
        if (options_.stages > 1 || options_.draft_tokens > 0 || !decodes(sequence)) return false;
        if (together_ == 0) last_token_s_ = sequence.last_token_s;
        if (sequence.last_token_s != last_token_s_) return false;
        sequence.joined = steps_;
        sequence.ends = steps_ + sequence.output - sequence.generated;
        next_end_ = std::min(next_end_, sequence.ends);
        ++together_;
        cached_ += sequence.computed;
        ++full_at(sequence);
        return true;
    }
    /// Takes it out again, with what it has got since.
    void part(Sequence& sequence) {
        --together_;
        --full_at(sequence);
        const std::int64_t steps = steps_ - std::exchange(sequence.joined, -1);
        sequence.computed += steps;
        sequence.known += steps;
        sequence.generated += steps;
        sequence.last_token_s = last_token_s_;
        cached_ -= sequence.computed;
        if (options_.evicts) sequence.pages = pages_of(sequence.computed - shared(arrivals_[sequence.request]));
    }
    /// How many sequences fill their pages at the same steps as this one.
    std::int64_t& full_at(const Sequence& sequence) {
        const std::int64_t step = sequence.joined + sequence.room - sequence.computed;
        return full_[static_cast<std::size_t>(step % options_.block_tokens)];
    }
    /// Gives those that decode together the pages of a step; true if that took evictions.
    bool make_room() {
        if (!options_.evicts) return false;
        const std::int64_t& pages = full_[static_cast<std::size_t>(steps_ % options_.block_tokens)];
        bool evicted = false;
        for (; pages > free_.count(); evicted = true) evict_youngest();
        free_.take(pages);
        return evicted;
    }

    void evict_youngest() {
        if (running_.back().joined >= 0) part(running_.back());
        Sequence sequence = running_.back();
        running_.pop_back();
        free_.give(sequence.pages, options_.caches_prefixes ? sequence.request : FreePages::no_request);
        sequence.pages = sequence.room = sequence.taken = 0;
        sequence.computed = shared(arrivals_[sequence.request]);
        waiting_.push_front(sequence);
        record_.evict();
        answer_share_ = options_.answer_share;
    }

    const SchedulerOptions& options_;
    bool reads_only_;
    Arrivals& arrivals_;
    Record& record_;
    std::int64_t total_pages_ = 0;
    FreePages free_{0};
    std::optional<ServingBound> blocked_;
    std::vector<Sequence> running_;
    std::deque<Sequence> waiting_;
    std::size_t under_way_ = 0;  ///< sequences that a step computes
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    std::int64_t together_ = 0;       ///< sequences that decode together, the first of those that run
    std::int64_t cached_ = 0;         ///< their tokens in the cache
    std::int64_t steps_ = 0;          ///< how many were theirs
    std::int64_t together_step_ = 0;  ///< the last of these
    std::int64_t next_end_ = never;
    double last_token_s_ = 0;         ///< when they had their last token
    std::vector<std::int64_t> full_;  ///< how many need a page, by their steps modulo the tokens of one
    std::mt19937_64 random_{1};
    double answer_share_ = options_.answer_share;  ///< now: it falls step by step, and begins again with an eviction
};

/// Groups of cards that step together, and the steps that are under way.
class Server {
  public:
    /// `leave` takes requests that it has done its part of, at their times.
    using Leave = std::function<void(std::size_t request, double now_s)>;

    Server(std::span<const ServingRequest> requests, const ServerPool& pool, bool reads_only, Arrivals& arrivals,
           Record& record, const Leave& leave)
        : pool_(pool), record_(record), leave_(leave), free_s_(static_cast<std::size_t>(pool.options.stages), 0.0) {
        for (std::int64_t i = 0; i < pool.options.groups; ++i)
            groups_.emplace_back(requests, pool.options, reads_only, arrivals, record);
    }

    [[nodiscard]] std::int64_t outstanding() const { return outstanding_; }
    void deal(std::size_t request, double now_s, bool is_read) {
        coming_.insert(std::ranges::upper_bound(coming_, now_s, {}, &Coming::at_s), {request, now_s, is_read});
        ++outstanding_;
        next_s_ = due_s();
    }

    /// When its next step begins or ends; infinity: when a request comes.
    [[nodiscard]] double next_s() const { return next_s_; }

    /// Ends or begins the step that is due.
    void act(double now_s) {
        now_s_ = now_s;
        const bool ends = !under_way_.empty() && under_way_.front().end_s <= now_s_;
        ends ? end() : begin();
        next_s_ = due_s();
    }

  private:
    struct Coming {
        std::size_t request;
        double at_s;
        bool is_read;
    };
    struct UnderWay {
        std::int64_t number;
        double start_s, end_s;
    };

    [[nodiscard]] bool has_work() const { return std::ranges::any_of(groups_, &Scheduler::has_work); }

    /// Whether requests wait beside sequences that decode. Source: TensorRT-LLM, py_executor.py.
    [[nodiscard]] bool holds_requests() {
        const SchedulerOptions& options = pool_.options;
        const bool balances = groups_.size() > 1;
        const auto idles = [](const Scheduler& group) { return group.running() == 0; };
        const auto is_ready = [&](const Scheduler& group) {
            if (!balances) return group.next_tokens() >= options.gather_share * static_cast<double>(options.max_tokens);
            return group.waiting() > 0 && static_cast<std::int64_t>(group.running()) < options.max_sequences;
        };
        const std::int64_t longest = balances ? options.balance_steps : options.gather_steps;
        if (longest == 0 || (!balances && groups_.front().waiting() == 0)) return false;
        const bool goes_on = std::ranges::any_of(groups_, idles) || std::ranges::all_of(groups_, is_ready) ||
                             held_ + (balances ? 1 : 0) >= longest;
        held_ = goes_on ? 0 : held_ + 1;
        return !goes_on;
    }

    [[nodiscard]] double due_s() const {
        double next_s = under_way_.empty() ? std::numeric_limits<double>::infinity() : under_way_.front().end_s;
        if (waits_for_end_ || under_way_.size() == free_s_.size()) return next_s;
        if (has_work()) return std::min(next_s, std::max(now_s_, free_s_[0]));
        return coming_.empty() ? next_s : std::min(next_s, std::max({now_s_, free_s_[0], coming_.front().at_s}));
    }

    void end() {
        for (Scheduler& group : groups_) {
            group.advance(under_way_.front().number, now_s_, [&](std::size_t request) {
                --outstanding_;
                leave_(request, now_s_);
            });
        }
        seen_s_ = has_work() && pool_.options.schedules_ahead ? under_way_.front().start_s : now_s_;
        under_way_.pop_front();
        waits_for_end_ = false;
    }

    void begin() {
        if (!has_work() && coming_.front().at_s > seen_s_) {
            seen_s_ = now_s_;
            follows_ = !under_way_.empty();
        }
        const bool polls = !has_work() || read_prompts_ || ++unpolled_ >= pool_.options.poll_steps;
        if (polls) unpolled_ = 0;
        for (; polls && !coming_.empty() && coming_.front().at_s <= seen_s_; coming_.pop_front()) {
            const auto size = [](const Scheduler& group) { return group.running() + group.waiting(); };
            const auto group = pool_.options.draws_groups
                                   ? groups_.begin() + static_cast<std::ptrdiff_t>(random_() % groups_.size())
                                   : std::ranges::min_element(groups_, {}, size);
            group->enqueue(coming_.front().request, coming_.front().is_read);
        }
        const bool holds = holds_requests();
        std::optional<StepCost> fullest;
        read_prompts_ = false;
        ServingMoment moment;
        ++number_;
        for (Scheduler& group : groups_) {
            const StepLoad load = group.schedule(number_, now_s_, holds);
            moment.running += static_cast<double>(group.running());
            moment.waiting += static_cast<double>(group.waiting());
            moment.cache_share = std::max(moment.cache_share, group.cache_share());
            if (load.prompt_tokens + load.sequences == 0) continue;
            read_prompts_ = read_prompts_ || load.prompt_tokens > 0;
            const StepCost own = pool_.step(load);
            if (!fullest || own.latency_s > fullest->latency_s) fullest = own;
        }
        waits_for_end_ = !fullest;
        if (!fullest) return;
        StepCost& cost = *fullest;
        const auto stages = static_cast<double>(free_s_.size());
        // While steps follow each other, the host of this one ran beside the device of the one before.
        const double ahead_s = pool_.options.schedules_ahead && !follows_ ? cost.ahead_s : 0;
        const double of_stage_s = (cost.latency_s + ahead_s) / stages;
        double end_s = now_s_;
        for (double& free_s : free_s_) free_s = end_s = std::max(end_s, free_s) + of_stage_s;
        cost.energy_j /= stages;
        record_.add(end_s, cost, of_stage_s, moment, pool_.cards);
        for (const Scheduler& group : groups_)
            if (group.blocked()) record_.wait(*group.blocked(), of_stage_s / static_cast<double>(groups_.size()));
        under_way_.push_back({number_, now_s_, end_s});
        follows_ = true;
    }

    const ServerPool& pool_;
    Record& record_;
    const Leave& leave_;
    std::deque<Scheduler> groups_;
    std::deque<Coming> coming_;
    std::deque<UnderWay> under_way_;
    std::vector<double> free_s_;  ///< when each stage of the pipeline has ended its last step
    double now_s_ = 0, next_s_ = std::numeric_limits<double>::infinity();
    double seen_s_ = 0;  ///< requests that come later miss the next step
    std::int64_t number_ = 0, outstanding_ = 0, unpolled_ = 0;
    std::int64_t held_ = 0;  ///< steps that requests were held back from
    bool read_prompts_ = false, follows_ = false, waits_for_end_ = false;
    std::mt19937_64 random_{1};
};

Serving serve_pools(std::span<const ServingRequest> requests, const ServerPool* prefill, const ServerPool& decode,
                    const std::function<double(std::int64_t)>& transfer_s) {
    const ServerPool& entrance = prefill != nullptr ? *prefill : decode;
    Arrivals arrivals(requests, entrance.options.concurrency, entrance.options.frontend_s);
    Record record(entrance.options.concurrency,
                  decode.servers * decode.cards + (prefill != nullptr ? prefill->servers * prefill->cards : 0));
    std::deque<Server> readers, servers;
    const auto emptiest = [](std::deque<Server>& pool) -> Server& {
        return *std::ranges::min_element(pool, {}, &Server::outstanding);
    };
    const Server::Leave end = [&](std::size_t request, double now_s) {
        if (arrivals.end(request, now_s)) record.last_sent(now_s);
    };
    const Server::Leave hand_over = [&](std::size_t request, double now_s) {
        RequestTimes& times = arrivals[request];
        times.first_token_s = now_s + transfer_s(times.prompt);
        if (times.output == 1) return end(request, times.first_token_s);
        emptiest(servers).deal(request, times.first_token_s, true);
    };
    for (std::int64_t i = 0; prefill != nullptr && i < prefill->servers; ++i)
        readers.emplace_back(requests, *prefill, true, arrivals, record, hand_over);
    for (std::int64_t i = 0; i < decode.servers; ++i)
        servers.emplace_back(requests, decode, false, arrivals, record, end);
    std::vector<Server*> all;
    for (std::deque<Server>* pool : {&readers, &servers})
        for (Server& server : *pool) all.push_back(&server);
    while (!arrivals.done()) {
        Server* const next = *std::ranges::min_element(all, {}, [](const Server* server) { return server->next_s(); });
        const double next_s = next->next_s();
        if (const double at_s = arrivals.next_s(); std::isfinite(at_s) && at_s <= next_s) {
            emptiest(prefill != nullptr ? readers : servers).deal(*arrivals.take(at_s), at_s, false);
        } else {
            next->act(next_s);
        }
    }
    return record.finish(arrivals.take_times());
}

}  // namespace

std::vector<ServingRequest> draw_requests(std::int64_t count, double rate, std::int64_t prompt, std::int64_t output,
                                          double spread, std::uint64_t seed) {
    // Distributions of our own: those of the standard library differ between implementations.
    std::mt19937_64 generator(seed);
    const auto uniform = [&] { return (static_cast<double>(generator() >> 11) + 0.5) * 0x1p-53; };
    const double sigma = std::sqrt(std::log1p(spread * spread));
    const auto length = [&](std::int64_t mean) {
        if (spread == 0) return mean;
        constexpr double pi = 3.14159265358979323846;
        const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(2 * pi * uniform());
        const double drawn = static_cast<double>(mean) * std::exp(sigma * normal - sigma * sigma / 2);
        return static_cast<std::int64_t>(std::llround(std::clamp(drawn, 1.0, static_cast<double>(most_tokens))));
    };
    std::vector<ServingRequest> requests;
    double arrival_s = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        if (rate > 0) arrival_s -= std::log(uniform()) / rate;
        requests.push_back({arrival_s, length(prompt), length(output)});
    }
    return requests;
}

Serving serve(std::span<const ServingRequest> requests, const ServerPool& pool) {
    return serve_pools(requests, nullptr, pool, {});
}

Serving serve(std::span<const ServingRequest> requests, const ServerPool& prefill, const ServerPool& decode,
              const std::function<double(std::int64_t)>& transfer_s) {
    return serve_pools(requests, &prefill, decode, transfer_s);
}

Serving serve_batches(std::span<const ServingRequest> requests, const BatchingOptions& options,
                      const std::function<StepCost(std::int64_t)>& run) {
    Arrivals arrivals(requests, options.concurrency);
    Record record(options.concurrency);
    std::deque<std::size_t> waiting;
    double now_s = 0;
    while (!arrivals.done()) {
        if (waiting.empty()) now_s = std::max(now_s, arrivals.next_s());
        while (const auto request = arrivals.take(now_s)) waiting.push_back(*request);
        // A batch that is not full waits for the next arrival as long as the delay of its oldest request allows.
        const double until_s = arrivals[waiting.front()].arrival_s + options.max_delay_s;
        if (static_cast<std::int64_t>(waiting.size()) < options.max_batch) {
            now_s = std::max(now_s, std::min(arrivals.next_s(), until_s));
            if (arrivals.next_s() <= until_s) continue;
        }
        const auto batch = std::min<std::int64_t>(options.max_batch, static_cast<std::int64_t>(waiting.size()));
        const StepCost cost = run(batch);
        for (std::int64_t i = 0; i < batch; ++i) arrivals[waiting[static_cast<std::size_t>(i)]].scheduled_s = now_s;
        now_s += cost.latency_s;
        record.add(
            now_s, cost, cost.latency_s,
            {0, static_cast<double>(batch), static_cast<double>(waiting.size()) - static_cast<double>(batch), 0});
        for (std::int64_t i = 0; i < batch; ++i) {
            arrivals[waiting.front()].first_token_s = now_s;
            record.first_token(now_s);
            if (arrivals.end(waiting.front(), now_s)) record.last_sent(now_s);
            waiting.pop_front();
        }
    }
    return record.finish(arrivals.take_times());
}

double kept_share(const Serving& serving, const ServiceLevel& level) {
    const auto kept =
        std::ranges::count_if(serving.requests, [&](const auto& request) { return level.keeps(request); });
    return static_cast<double>(kept) / static_cast<double>(serving.requests.size());
}

double find_rate(const std::function<Serving(double)>& at_rate, const ServiceLevel& level, double start) {
    const auto keeps = [&](double rate) { return kept_share(at_rate(rate), level) >= level.share; };
    double good = 0, bad = start;
    constexpr int most_doublings = 20;
    for (int i = 0; i < most_doublings && keeps(bad); ++i) {
        good = bad;
        bad *= 2;
    }
    for (int i = 0; good > 0 ? bad > 1.01 * good : i < most_doublings; ++i) {
        const double rate = good > 0 ? std::sqrt(good * bad) : bad / 2;
        (keeps(rate) ? good : bad) = rate;
    }
    return good;
}

}  // namespace ftax
