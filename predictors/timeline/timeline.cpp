#include "predictors/timeline/timeline.hpp"

#include <algorithm>

#include "ftax/equations.hpp"
#include "predictors/timeline/segment.hpp"

namespace ftax {

double simulate(std::span<const TimedLaunch> launches, const TimelineOptions& options, std::vector<Span>& spans) {
    spans.resize(launches.size());
    double host_s = 0;
    double device_free_s = 0;
    std::size_t oldest = 0;  // first launch whose kernels may still be queued
    std::int64_t queued = 0;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        const TimedLaunch& launch = launches[i];
        Span& span = spans[i];
        // A full queue blocks the host until the device has drained enough of it.
        while (queued + launch.kernels > options.queue_depth && oldest < i) {
            host_s = std::max(host_s, spans[oldest].device_start_s);
            queued -= launches[oldest++].kernels;
        }
        span.host_start_s = host_s;
        host_s += launch.host_s;
        span.host_end_s = host_s;
        span.device_start_s = span.device_end_s = host_s;
        if (launch.kernels > 0) {
            queued += launch.kernels;
            const double gap_s = device_free_s > 0 ? options.kernel_gap_s : 0;
            const double launched_s = host_s - launch.overlapped_host_s;
            span.device_start_s = equations::kernel_start_s(launched_s, options.launch_latency_s, device_free_s, gap_s);
            span.device_end_s = span.device_start_s + launch.device_s + (launch.kernels - 1) * options.kernel_gap_s;
            if (launch.overlapped_host_s > 0)
                span.device_end_s = std::max(span.device_end_s, host_s + options.launch_latency_s);
            device_free_s = span.device_end_s;
        }
        if (launch.synchronizes || options.blocking) span.host_end_s = host_s = std::max(host_s, device_free_s);
    }
    return std::max(host_s, device_free_s);
}

double period(std::span<const TimedLaunch> launches, const TimelineOptions& options) {
    double host_s = 0;
    double device_s = 0;
    bool waits = options.blocking;
    for (const TimedLaunch& launch : launches) {
        host_s += launch.host_s;
        device_s += launch.device_s + launch.kernels * options.kernel_gap_s;
        waits = waits || launch.synchronizes;
    }
    if (!waits) return equations::closed_form_s(host_s, device_s);
    Segment pass;
    for (const TimedLaunch& launch : launches) {
        pass = pass.then(Segment::launch(launch.host_s, launch.device_s, launch.kernels, options.launch_latency_s,
                                         options.kernel_gap_s, launch.overlapped_host_s));
        if (launch.synchronizes || options.blocking) pass = pass.then(Segment::wait(0));
    }
    return pass.period_s();
}

}  // namespace ftax
