#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/rows/kineto_trace.hpp"
#include "ftax/graph.hpp"
#include "ftax/predict.hpp"
#include "src/report/table.hpp"

namespace ftax::report {

/// Returns how well a trace's operator ("aten::relu_") matches an operator of the model: 2 by name, 1 by kind, else 0.
[[nodiscard]] int resemblance(const Op& op, std::string_view traced);

/// Returns, for each traced operator, the index of the matching operator of the model, or nullopt. The trace repeats
/// the model's sequence any number of times, starting anywhere; both sides may have missing or extra operators. Finds
/// the alignment with the most matches (dynamic programming that wraps around, over 64 million cells at most).
[[nodiscard]] std::vector<std::optional<std::size_t>> align_cyclically(const std::vector<const Op*>& model,
                                                                       const std::vector<std::string_view>& traced);

/// Times of one operator, or of a whole pass.
struct OperatorTimes {
    double host_s = 0, device_s = 0;
    double kernels = 0;
};

/// One operator of the model with its traced times.
struct ComparedOperator {
    std::string name, source, module;
    HostKind host_kind = HostKind::elementwise;  ///< kind of its most expensive launch
    OperatorTimes predicted;
    std::optional<OperatorTimes> measured;  ///< medians over the passes; nullopt if no pass contains it
};

/// Operators that occur only in the trace.
struct UnpredictedOperators {
    std::string name;
    double calls = 0;  ///< per pass
    OperatorTimes measured;
};

/// Predicted and traced host cost of one kind of operation.
struct HostKindTimes {
    HostKind kind = HostKind::elementwise;
    std::size_t operators = 0;
    double predicted_s = 0, measured_s = 0;  ///< per operator, with its module calls
};

struct TraceComparison {
    std::size_t passes = 0;             ///< complete forward passes in the trace
    double aligned = 0;                 ///< share of the trace's operators matched with the model, in order
    bool has_kernels = false;           ///< false: only the host side can be compared
    OperatorTimes predicted, measured;  ///< sums over matched operators
    double predicted_latency_s = 0;
    std::optional<double> measured_latency_s;  ///< median over complete passes
    std::vector<ComparedOperator> operators;
    std::vector<UnpredictedOperators> unpredicted;
    std::vector<HostKindTimes> host_kinds;
    std::optional<double> launch_latency_s;  ///< end of a launch call to the start of its kernel on an idle device
    std::optional<double> kernel_gap_s;      ///< gap between queued kernels
};

/// Aligns the operators of a trace with any number of forward passes with those of a prediction of `graph`
/// (Predictor::graph), in order and by name, and takes medians over the passes. An operator's host time lasts until the
/// next one starts, less the waiting time for the device; on a CPU it includes the operator's work.
[[nodiscard]] TraceComparison compare_with_trace(const KinetoTrace& trace, const DeviceSpec& device, const Graph& graph,
                                                 const Explanation& explanation);

/// A parameter of a framework profile that the trace can set.
struct TracedParameter {
    std::string name;
    double value = 0;   ///< value in the profile
    double traced = 0;  ///< value from the trace
};

/// Returns e.g. "predicted 3.2 ms, traced 3.4 ms: -5.9 %; of the operators in both, host -8.0 %, device +1.2 %".
[[nodiscard]] std::string verdict_of(const TraceComparison& comparison);

/// Lists the largest differences, then all operators, then the host costs.
[[nodiscard]] std::string to_table(const TraceComparison& comparison, const KinetoTrace& trace,
                                   const std::vector<TracedParameter>& parameters, Style style);
[[nodiscard]] std::string to_json(const TraceComparison& comparison, const KinetoTrace& trace,
                                  const std::vector<TracedParameter>& parameters);

}  // namespace ftax::report
