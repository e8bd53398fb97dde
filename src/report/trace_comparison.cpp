#include "src/report/trace_comparison.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/statistics.hpp"

namespace ftax::report {
namespace {

constexpr std::size_t most_cells = 64'000'000;

/// "aten::max_pool2d_" → "max_pool", "Conv" → "conv"
std::string bare_name(std::string_view name) {
    const std::size_t colons = name.rfind("::");
    if (colons != std::string_view::npos) name.remove_prefix(colons + 2);
    if (name.ends_with('_')) name.remove_suffix(1);
    if (name.ends_with('d') && name.size() > 2 && std::isdigit(static_cast<unsigned char>(name[name.size() - 2])))
        name.remove_suffix(2);
    return lower_case(name);
}

/// Which way a cell of the table was reached.
enum Step : std::uint8_t { begin, match, skip_traced, skip_model };

constexpr int match_score = 4;  // per unit of resemblance, so that a match outweighs skipping around it
constexpr int skip_score = -1;

/// An operator of the trace that no other one called, with what happened on its behalf.
struct Call {
    const TraceEvent* operation = nullptr;
    double waited_s = 0;  ///< the host for the device
    OperatorTimes times;
    double device_end_s = 0;
};

/// Annotations (ProfilerStep#3, "forward") enclose operators and are none.
bool is_operator(std::string_view name) {
    return name.find("::") != std::string_view::npos;
}

bool waits(std::string_view runtime_call) {
    return runtime_call.find("Synchronize") != std::string_view::npos || runtime_call == "cudaMemcpy";
}

/// Outermost operators of the thread that has most of them, in order, with their kernels.
class Calls {
  public:
    explicit Calls(const KinetoTrace& trace) : trace_(trace) {
        find_outermost();
        add_runtime_calls();
        add_kernels();
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const TraceEvent& own = *calls[i].operation;
            const double next_s = i + 1 < calls.size() ? calls[i + 1].operation->start_s : own.end_s;
            calls[i].times.host_s = next_s - own.start_s - calls[i].waited_s;
        }
    }

    std::vector<Call> calls;

  private:
    void find_outermost() {
        std::map<int, std::vector<const TraceEvent*>> threads;
        for (const TraceEvent& event : trace_.events)
            if (event.kind == TraceEventKind::operation && is_operator(event.name))
                threads[event.thread].push_back(&event);
        const auto most = std::ranges::max_element(threads, {}, [](const auto& t) { return t.second.size(); });
        if (most == threads.end()) return;
        thread_ = most->first;
        auto& events = most->second;
        std::ranges::stable_sort(events, {}, [](const TraceEvent* e) { return std::pair(e->start_s, -e->end_s); });
        for (const TraceEvent* event : events) {
            if (calls.empty() || event->start_s >= calls.back().operation->end_s) calls.push_back({.operation = event});
            if (event->external_id != 0) by_external_id_.emplace(event->external_id, calls.size() - 1);
        }
    }

    /// The call within or after which something happened on its thread, before the next one.
    Call* call_at(double time_s) {
        const auto start_s = [](const Call& call) { return call.operation->start_s; };
        const auto after = std::ranges::upper_bound(calls, time_s, {}, start_s);
        return after == calls.begin() ? nullptr : &*(after - 1);
    }

    void add_runtime_calls() {
        for (const TraceEvent& event : trace_.events) {
            if (event.kind != TraceEventKind::runtime || event.thread != thread_) continue;
            Call* const call = call_at(event.start_s);
            if (call == nullptr) continue;
            if (waits(event.name)) call->waited_s += event.end_s - event.start_s;
            if (event.correlation != 0)
                by_correlation_.emplace(event.correlation, static_cast<std::size_t>(call - calls.data()));
        }
    }

    void add_kernels() {
        for (const TraceEvent& event : trace_.events) {
            if (event.kind != TraceEventKind::kernel) continue;
            auto found = by_correlation_.find(event.correlation);
            if (found == by_correlation_.end()) {
                found = by_external_id_.find(event.external_id);
                if (found == by_external_id_.end()) continue;
            }
            Call& call = calls[found->second];
            call.times.device_s += event.end_s - event.start_s;
            call.times.kernels += 1;
            call.device_end_s = std::max(call.device_end_s, event.end_s);
        }
    }

    const KinetoTrace& trace_;
    int thread_ = 0;
    std::unordered_map<std::uint64_t, std::size_t> by_correlation_, by_external_id_;
};

void add(OperatorTimes& sum, const OperatorTimes& times) {
    sum.host_s += times.host_s;
    sum.device_s += times.device_s;
    sum.kernels += times.kernels;
}

/// The predicted launches, those of one operator together; the forward call itself is none.
std::vector<ComparedOperator> predicted_operators(const Graph& graph, const std::vector<OpPrediction>& launches,
                                                  std::vector<const Op*>& model) {
    std::vector<ComparedOperator> operators;
    OpId last = no_op;
    double dearest_s = 0;
    for (const OpPrediction& launch : launches) {
        if (launch.op == no_op || launch.host_s + launch.device_s == 0) continue;
        if (launch.op != last) {
            const Op& op = graph.ops[launch.op];
            operators.push_back({.name = op.name, .source = op.source, .module = op.module});
            model.push_back(&op);
            dearest_s = 0;
            last = launch.op;
        }
        ComparedOperator& whole = operators.back();
        add(whole.predicted, {launch.host_s, launch.device_s, static_cast<double>(launch.kernels)});
        if (launch.host_s > dearest_s) {
            dearest_s = launch.host_s;
            whole.host_kind = launch.host_kind;
        }
    }
    return operators;
}

OperatorTimes medians(const std::vector<OperatorTimes>& samples) {
    const auto of = [&](double OperatorTimes::*part) { return median(mapped(samples, part)); };
    return {of(&OperatorTimes::host_s), of(&OperatorTimes::device_s), of(&OperatorTimes::kernels)};
}

/// One forward pass in the trace.
struct Pass {
    std::size_t matched = 0;
    double start_s = 0, end_s = 0;
};

/// What an idle device takes from the end of a launch call to the kernel, and a busy one from kernel to kernel.
void measure_device_latencies(const KinetoTrace& trace, TraceComparison& comparison) {
    std::unordered_map<std::uint64_t, double> launched_s;
    std::vector<const TraceEvent*> kernels;
    for (const TraceEvent& event : trace.events) {
        if (event.correlation == 0) continue;
        if (event.kind == TraceEventKind::runtime) launched_s.emplace(event.correlation, event.end_s);
        if (event.kind == TraceEventKind::kernel) kernels.push_back(&event);
    }
    std::ranges::stable_sort(kernels, {}, &TraceEvent::start_s);
    std::vector<double> latencies, gaps;
    double free_s = -std::numeric_limits<double>::infinity();
    for (const TraceEvent* kernel : kernels) {
        const auto launch = launched_s.find(kernel->correlation);
        if (launch != launched_s.end() && kernel->start_s >= free_s) {
            const bool queued = launch->second < free_s;
            if (queued) gaps.push_back(kernel->start_s - free_s);
            if (!queued && kernel->start_s > launch->second) latencies.push_back(kernel->start_s - launch->second);
        }
        free_s = std::max(free_s, kernel->end_s);
    }
    if (!latencies.empty()) comparison.launch_latency_s = median(latencies);
    if (!gaps.empty()) comparison.kernel_gap_s = median(gaps);
}

std::vector<HostKindTimes> by_host_kind(const std::vector<ComparedOperator>& operators) {
    std::map<HostKind, HostKindTimes> kinds;
    for (const ComparedOperator& op : operators) {
        if (!op.measured) continue;
        HostKindTimes& kind = kinds[op.host_kind];
        kind.kind = op.host_kind;
        ++kind.operators;
        kind.predicted_s += op.predicted.host_s;
        kind.measured_s += op.measured->host_s;
    }
    std::vector<HostKindTimes> result;
    for (auto& [key, kind] : kinds) {
        kind.predicted_s /= static_cast<double>(kind.operators);
        kind.measured_s /= static_cast<double>(kind.operators);
        result.push_back(kind);
    }
    return result;
}

}  // namespace

int resemblance(const Op& op, std::string_view traced) {
    if (op.source == traced) return 2;
    const std::string bare = bare_name(traced);
    return bare == bare_name(op.source) || bare == name_of(op.kind) || bare == op.text("function") ? 1 : 0;
}

std::vector<std::optional<std::size_t>> align_cyclically(const std::vector<const Op*>& model,
                                                         const std::vector<std::string_view>& traced) {
    std::vector<std::optional<std::size_t>> result(traced.size());
    const std::size_t period = model.size();
    if (period == 0) return result;
    const std::size_t length = std::min(traced.size(), most_cells / period);

    // score[j]: best alignment of what was read so far whose next expected operator is j; no operator is worse than
    // none read, so that the alignment may start anywhere.
    std::vector<int> score(period, 0), previous(period);
    std::vector<std::uint8_t> steps((length + 1) * period, begin);
    std::unordered_map<std::string_view, std::vector<std::int8_t>> resemblances;
    for (std::size_t i = 1; i <= length; ++i) {
        const auto [known, is_new] = resemblances.try_emplace(traced[i - 1]);
        if (is_new)
            for (const Op* op : model)
                known->second.push_back(static_cast<std::int8_t>(resemblance(*op, traced[i - 1])));
        const std::vector<std::int8_t>& fits = known->second;
        std::uint8_t* const step = &steps[i * period];
        std::swap(score, previous);
        for (std::size_t j = 0; j < period; ++j) {
            score[j] = previous[j] + skip_score;
            step[j] = skip_traced;
        }
        for (std::size_t j = 0; j < period; ++j) {
            const std::size_t next = j + 1 == period ? 0 : j + 1;
            const int matched = previous[j] + match_score * fits[j];
            if (fits[j] > 0 && matched > score[next]) {
                score[next] = matched;
                step[next] = match;
            }
        }
        // Skipping operators of the model may go round once.
        for (std::size_t round = 0; round < 2 * period; ++round) {
            const std::size_t j = round % period, next = j + 1 == period ? 0 : j + 1;
            if (score[j] + skip_score > score[next]) {
                score[next] = score[j] + skip_score;
                step[next] = skip_model;
            }
        }
    }
    std::size_t j = static_cast<std::size_t>(std::max_element(score.begin(), score.end()) - score.begin());
    for (std::size_t i = length; i > 0;) {
        const auto step = steps[i * period + j];
        if (step != skip_traced) j = j == 0 ? period - 1 : j - 1;
        if (step == match) result[i - 1] = j;
        if (step != skip_model) --i;
    }
    return result;
}

TraceComparison compare_with_trace(const KinetoTrace& trace, const DeviceSpec& device, const Graph& graph,
                                   const Explanation& explanation) {
    TraceComparison comparison{.predicted_latency_s = explanation.prediction.latency_s};
    std::vector<const Op*> model;
    comparison.operators = predicted_operators(graph, explanation.launches, model);
    if (is_cpu(device))
        for (ComparedOperator& op : comparison.operators)
            op.predicted = {op.predicted.host_s + op.predicted.device_s, 0, 0};
    std::vector<Call> calls = std::move(Calls(trace).calls);
    std::vector<std::string_view> names;
    for (const Call& call : calls) {
        names.push_back(call.operation->name);
        comparison.has_kernels = comparison.has_kernels || call.times.kernels > 0;
    }
    const auto aligned = align_cyclically(model, names);

    std::vector<std::vector<OperatorTimes>> samples(model.size());
    std::map<std::string_view, UnpredictedOperators> unpredicted;
    std::vector<Pass> passes;
    std::optional<std::size_t> last;
    std::size_t matched = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        Call& call = calls[i];
        if (!aligned[i]) {
            // What comes between two passes (the next input's copy) belongs to none, but is counted.
            UnpredictedOperators& extra = unpredicted[call.operation->name];
            extra.name = call.operation->name;
            extra.calls += 1;
            call.times.host_s = call.operation->end_s - call.operation->start_s - call.waited_s;
            add(extra.measured, call.times);
            continue;
        }
        ++matched;
        if (!last || *aligned[i] <= *last) passes.push_back({.start_s = call.operation->start_s});
        last = aligned[i];
        const bool ends_pass = i + 1 == calls.size() || (aligned[i + 1] && *aligned[i + 1] <= *last) ||
                               (!aligned[i + 1] && *last + 1 == model.size());
        if (ends_pass) call.times.host_s = call.operation->end_s - call.operation->start_s - call.waited_s;
        call.times.host_s = std::max(call.times.host_s, 0.0);
        samples[*last].push_back(call.times);
        Pass& pass = passes.back();
        ++pass.matched;
        pass.end_s = std::max({pass.end_s, call.operation->end_s, call.device_end_s});
    }
    comparison.aligned = calls.empty() ? 0 : static_cast<double>(matched) / static_cast<double>(calls.size());

    for (std::size_t i = 0; i < model.size(); ++i) {
        if (samples[i].empty()) continue;
        ComparedOperator& op = comparison.operators[i];
        op.measured = medians(samples[i]);
        add(comparison.predicted, op.predicted);
        add(comparison.measured, *op.measured);
    }
    std::vector<double> latencies;
    for (const Pass& pass : passes)
        if (10 * pass.matched >= 9 * model.size()) latencies.push_back(pass.end_s - pass.start_s);
    comparison.passes = latencies.size();
    if (!latencies.empty()) comparison.measured_latency_s = median(latencies);
    for (auto& [name, extra] : unpredicted) {
        const auto count = static_cast<double>(std::max<std::size_t>(passes.size(), 1));
        extra.calls /= count;
        extra.measured.host_s /= count;
        extra.measured.device_s /= count;
        extra.measured.kernels /= count;
        comparison.unpredicted.push_back(std::move(extra));
    }
    comparison.host_kinds = by_host_kind(comparison.operators);
    measure_device_latencies(trace, comparison);
    return comparison;
}

}  // namespace ftax::report
