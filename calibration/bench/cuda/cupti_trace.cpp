#include "calibration/bench/cuda/cupti_trace.hpp"

#include <cupti.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace ftax::bench {
namespace {

constexpr std::size_t buffer_bytes = 4 << 20;

std::mutex collected_lock;
std::vector<KernelRecord> collected;
std::vector<CallRecord> collected_calls;
std::size_t lost = 0;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, buffer_bytes));
    *size = *buffer ? buffer_bytes : 0;
    *records = 0;
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
    ParsedBuffer parsed = parse_activities(buffer, valid);
    std::free(buffer);
    std::size_t dropped_by_cupti = 0;
    cuptiActivityGetNumDroppedRecords(context, stream, &dropped_by_cupti);
    const std::lock_guard guard(collected_lock);
    lost += dropped_by_cupti + parsed.without_time + (parsed.torn ? 1 : 0);
    std::move(parsed.kernels.begin(), parsed.kernels.end(), std::back_inserter(collected));
    std::move(parsed.calls.begin(), parsed.calls.end(), std::back_inserter(collected_calls));
}

std::string describe(CUptiResult code) {
    const char* text = nullptr;
    cuptiGetResultString(code, &text);
    return std::string(text ? text : "unknown CUPTI error") + "; " + cupti_advice(code);
}

}  // namespace

ParsedBuffer parse_activities(std::uint8_t* buffer, std::size_t bytes) {
    ParsedBuffer parsed;
    CUpti_Activity* record = nullptr;
    for (;;) {
        const CUptiResult code = cuptiActivityGetNextRecord(buffer, bytes, &record);
        if (code == CUPTI_ERROR_MAX_LIMIT_REACHED) return parsed;
        if (code != CUPTI_SUCCESS) {
            parsed.torn = true;
            return parsed;
        }
        if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
            const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
            parsed.calls.push_back({call.start, call.end, call.correlationId});
            continue;
        }
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL)
            continue;
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        if (kernel.start == 0 || kernel.end < kernel.start) {
            ++parsed.without_time;
            continue;
        }
        parsed.kernels.push_back({kernel.start, kernel.end, kernel.correlationId});
    }
}

std::vector<double> launch_latencies_s(const std::vector<KernelRecord>& kernels, const std::vector<CallRecord>& calls) {
    std::map<std::uint32_t, CallRecord> known;
    for (const CallRecord& call : calls) known.emplace(call.correlation, call);
    std::vector<double> latencies;
    for (const KernelRecord& kernel : kernels) {
        const auto call = known.find(kernel.correlation);
        if (call == known.end() || kernel.start_ns < call->second.start_ns) continue;
        // A kernel may begin before its call returns.
        const std::uint64_t end_ns = call->second.end_ns;
        const std::uint64_t waited_ns = kernel.start_ns > end_ns ? kernel.start_ns - end_ns : 0;
        latencies.push_back(static_cast<double>(waited_ns) * 1e-9);
    }
    return latencies;
}

CuptiTrace::CuptiTrace(bool with_calls) : with_calls_(with_calls) {
    CUptiResult code = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (code == CUPTI_SUCCESS) code = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (code == CUPTI_SUCCESS && with_calls) code = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
    if (code != CUPTI_SUCCESS) problem_ = describe(code);
}

CuptiTrace::~CuptiTrace() {
    if (!problem_.empty()) return;
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (with_calls_) cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME);
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

std::vector<KernelRecord> CuptiTrace::take() {
    if (!problem_.empty()) return {};
    cuptiActivityFlushAll(0);
    const std::lock_guard guard(collected_lock);
    return std::exchange(collected, {});
}

std::vector<CallRecord> CuptiTrace::take_calls() {
    const std::lock_guard guard(collected_lock);
    return std::exchange(collected_calls, {});
}

std::size_t CuptiTrace::dropped() {
    const std::lock_guard guard(collected_lock);
    return lost;
}

std::string cupti_advice(int code) {
    switch (code) {
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
            return "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0; until then kernels are "
                   "timed "
                   "with CUDA events";
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
            return "another profiler holds CUPTI: end it first";
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_NOT_SUPPORTED:
            return "this device (virtual, or a MIG slice) has no kernel records; kernels are timed with CUDA events";
        case CUPTI_ERROR_NOT_INITIALIZED:
            return "no driver, or one older than this CUDA";
        default:
            return "kernels are timed with CUDA events";
    }
}

}  // namespace ftax::bench
