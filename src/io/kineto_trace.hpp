#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace ftax {

/// What one event of a PyTorch trace is to the timeline.
enum class TraceEventKind : std::uint8_t {
    operation,  ///< an operator of the dispatcher, on the host
    runtime,    ///< a call of the CUDA runtime or driver, on the host
    kernel,     ///< a kernel, copy or fill, on the device
};

struct TraceEvent {
    TraceEventKind kind = TraceEventKind::operation;
    std::string name;
    double start_s = 0, end_s = 0;
    int thread = 0;                 ///< of the host, or stream of the device; numbered in order of appearance
    std::uint64_t correlation = 0;  ///< joins a runtime call and its kernels; 0 where there is none
    std::uint64_t external_id = 0;  ///< of the operator within which it was recorded; 0 where there is none
};

/// What of a trace could not be used.
struct TraceDamage {
    std::size_t unreadable = 0;    ///< events that are no JSON
    std::size_t untimed = 0;       ///< events without a time that can be one (torch writes ts 0 for what it lost)
    std::size_t lost_kernels = 0;  ///< launches without a record of their kernel, kernels without one of their launch
    bool truncated = false;        ///< the list of events has no end

    [[nodiscard]] std::size_t events() const { return unreadable + untimed + lost_kernels; }
};

struct KinetoTrace {
    std::string gpu;                 ///< as the driver calls it; empty when the trace does not say
    std::vector<TraceEvent> events;  ///< of the three kinds, in the order of the file
    TraceDamage damage;
};

struct TraceLimits {
    std::size_t max_events = 10'000'000;
};

/// Reads what torch.profiler's export_chrome_trace wrote (torch 1.8 and later), event by event. An event that is broken
/// is counted and the next one read: old versions do not escape names, and a run that was killed leaves half a file.
/// Throws Error{profile} for what is no trace, or when less than four fifths of the events can be used, Error{limit}
/// beyond the limits.
/// Source: pytorch/kineto, libkineto/src/output_json.cpp; the Trace Event Format document of Chromium.
[[nodiscard]] KinetoTrace read_kineto_trace(std::istream& in, const std::string& origin,
                                            const TraceLimits& limits = {});
/// Throws Error{usage} when the file cannot be opened.
[[nodiscard]] KinetoTrace read_kineto_trace(const std::string& path, const TraceLimits& limits = {});

}  // namespace ftax
