#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace ftax {

enum class TraceEventKind : std::uint8_t {
    operation,  ///< a dispatched operator, on the host
    runtime,    ///< a call of the CUDA runtime or driver, on the host
    kernel,     ///< a kernel, copy or fill, on the device
};

struct TraceEvent {
    TraceEventKind kind = TraceEventKind::operation;
    std::string name;
    double start_s = 0, end_s = 0;
    int thread = 0;                 ///< host thread or device stream; numbered in order of appearance
    std::uint64_t correlation = 0;  ///< links a runtime call and its kernels; 0: none
    std::uint64_t external_id = 0;  ///< operator within which it was recorded; 0: none
};

struct TraceDamage {
    std::size_t unreadable = 0;    ///< events that are not JSON
    std::size_t untimed = 0;       ///< events without a valid time (torch writes ts 0 for lost events)
    std::size_t lost_kernels = 0;  ///< launches without a kernel record, kernels without a launch record
    bool truncated = false;        ///< the list of events is truncated

    [[nodiscard]] std::size_t events() const { return unreadable + untimed + lost_kernels; }
};

struct KinetoTrace {
    std::string gpu;                 ///< name from the driver; empty if not recorded
    std::vector<TraceEvent> events;  ///< events of the three kinds, in file order
    TraceDamage damage;
};

struct TraceLimits {
    std::size_t max_events = 10'000'000;
};

/// Reads what torch.profiler's export_chrome_trace wrote (torch 1.8 and later), event by event. Broken events are
/// counted and skipped: old versions do not escape names, and a killed run leaves a partial file. Throws Error{profile}
/// if it is not a trace, or if fewer than four fifths of the events are usable, Error{limit} beyond the limits.
/// Source: pytorch/kineto, libkineto/src/output_json.cpp; the Trace Event Format document of Chromium.
[[nodiscard]] KinetoTrace read_kineto_trace(std::istream& in, const std::string& origin,
                                            const TraceLimits& limits = {});
/// Throws Error{usage} if the file cannot be opened.
[[nodiscard]] KinetoTrace read_kineto_trace(const std::string& path, const TraceLimits& limits = {});

}  // namespace ftax
