#include "calibration/bench/libtorch/libtorch_device.hpp"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "calibration/bench/libtorch/network.hpp"
#include "calibration/bench/libtorch_plugin.hpp"
#include "ftax/error.hpp"
#include "ftax/precision.hpp"

namespace ftax::bench {
namespace {

/// Kernels the launch queue takes before the host blocks, with several per operator. Source: CUDA's 1,024 entries.
constexpr int queue_calls = 64;

double wall_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// CPU time of the process: what other processes do meanwhile does not lengthen it.
double process_s() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string first_line(const char* text) {
    const std::string_view all(text);
    return std::string(all.substr(0, all.find('\n')));
}

c10::Device open(const std::string& name) {
    if (name == "cpu") return c10::Device(c10::kCPU);
    // The CUDA library registers itself with LibTorch when it is loaded; a program for the CPU does not need it.
    const bool loaded = ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr;
    const std::string why_not = loaded ? "it registers none" : ::dlerror();
    const bool registered = c10::impl::hasDeviceGuardImpl(c10::kCUDA);
    if (!registered || c10::impl::VirtualGuardImpl(c10::kCUDA).deviceCount() == 0) {
        throw Error(ErrorCode::refused, registered ? "LibTorch sees no GPU: no device, or a driver too old for it"
                                                   : "this LibTorch has no CUDA: " + why_not);
    }
    return c10::Device(c10::kCUDA, 0);
}

/// Keeps the stream busy for about as long. A GPU clocked higher than this sleeps a little less.
void sleep_on_stream(double seconds) {
    constexpr double cycles_per_s = 2e9;
    // at::cuda::sleep(long), which torch.cuda._sleep calls; its header needs CUDA's, which LibTorch does not bring.
    static const auto sleep = reinterpret_cast<void (*)(std::int64_t)>(::dlsym(RTLD_DEFAULT, "_ZN2at4cuda5sleepEl"));
    if (sleep) sleep(static_cast<std::int64_t>(seconds * cycles_per_s));
}

}  // namespace

struct LibtorchDevice::State {
    c10::Device device;
    Precision precision;
    int threads;
    std::shared_ptr<const Graph> graph;  ///< of the prepared network, which refers to it
    std::unique_ptr<Network> network;
    Mode mode = Mode::end_to_end;
    int calls = 1;
    at::Tensor flush;
    double queueing_s = 2e-4;  ///< host time of the last device sample of this network

    bool cuda() const { return device.is_cuda(); }
    double now_s() const { return !cuda() && threads == 1 ? process_s() : wall_s(); }

    void synchronize() const {
        if (cuda()) c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeDevice(device.index());
    }

    double host_time(int count, bool synchronized) {
        synchronize();
        const double begin = now_s();
        for (int i = 0; i < count; ++i) network->run();
        if (synchronized) synchronize();
        const double end = now_s();
        synchronize();
        return (end - begin) / count;
    }

    /// Device time of calls that are queued behind a kernel which sleeps for as long as queueing took last time.
    double device_time(int count) {
        synchronize();
        sleep_on_stream(std::min(1.2 * queueing_s + 5e-5, 0.2));
        const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device);
        c10::Event begin(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT), end(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
        begin.record(stream);
        const double queueing = wall_s();
        for (int i = 0; i < count; ++i) network->run();
        queueing_s = wall_s() - queueing;
        end.record(stream);
        end.synchronize();
        return begin.elapsedTime(end) * 1e-3 / count;
    }

    double measure() {
        switch (mode) {
            case Mode::end_to_end:
                return host_time(1, true);
            case Mode::host_dispatch:
                return host_time(std::min(calls, queue_calls), false);
            case Mode::device_cold:
                flush.add_(1);
                return cuda() ? device_time(1) : host_time(1, true);
            case Mode::device_hot:
                break;
        }
        return cuda() ? device_time(calls) : host_time(calls, true);
    }
};

LibtorchDevice::LibtorchDevice(const std::string& device, Precision precision, int threads)
    : state_(new State{.device = open(device), .precision = precision, .threads = threads}) {
    at::set_num_threads(threads);
    constexpr std::int64_t flush_bytes = 128 << 20;  // twice the largest L2 of a GPU (H100, A100: 50 MB)
    state_->flush = at::zeros({flush_bytes}, at::TensorOptions().dtype(at::kChar).device(state_->device));
}

LibtorchDevice::~LibtorchDevice() = default;

Environment LibtorchDevice::environment() const {
    return {{"framework_version", TORCH_VERSION}, {"threads", std::to_string(at::get_num_threads())}};
}

std::optional<Failure> LibtorchDevice::prepare(const BenchCase& bench_case) {
    const c10::InferenceMode inference;
    state_->network.reset();
    state_->graph = bench_case.graph;
    state_->mode = bench_case.mode;
    state_->calls = bench_case.calls;
    state_->queueing_s = 2e-4;
    if (precision_spec(state_->precision).autocast)
        return Failure{FailureKind::unsupported, "amp is measured through Python (--framework pytorch-eager)"};
    // Networks run with PyTorch's defaults (convolutions in TF32), operators in exactly the precision they name.
    const bool tf32 = state_->precision == Precision::tf32;
    at::globalContext().setAllowTF32CuBLAS(tf32);
    at::globalContext().setAllowTF32CuDNN(tf32 || (!bench_case.model.empty() && state_->precision == Precision::fp32));
    try {
        state_->network = std::make_unique<Network>(*state_->graph, bench_case.bindings, state_->precision,
                                                    state_->device, bench_case.weight_sets);
        if (!bench_case.model.empty()) state_->network->settle();
        for (int i = 0; i < bench_case.warm_ups; ++i) state_->network->run();
        state_->synchronize();
    } catch (const Error& error) {
        return Failure{FailureKind::unsupported, error.what()};
    } catch (const c10::OutOfMemoryError& error) {
        return Failure{FailureKind::out_of_memory, first_line(error.what_without_backtrace())};
    } catch (const c10::Error& error) {
        const std::string message = first_line(error.what_without_backtrace());
        const bool memory = message.find("allocate memory") != std::string::npos;
        return Failure{memory ? FailureKind::out_of_memory : FailureKind::failed, message};
    } catch (const std::bad_alloc&) {
        return Failure{FailureKind::out_of_memory, "not enough memory"};
    }
    return std::nullopt;
}

std::variant<Sample, Failure> LibtorchDevice::sample() {
    const c10::InferenceMode inference;
    try {
        return Sample{state_->measure()};
    } catch (const c10::OutOfMemoryError& error) {
        return Failure{FailureKind::out_of_memory, first_line(error.what_without_backtrace())};
    } catch (const c10::Error& error) {
        return Failure{FailureKind::failed, first_line(error.what_without_backtrace())};
    }
}

}  // namespace ftax::bench

ftax::bench::BenchDevice* ftax_open_libtorch(const char* device, ftax::Precision precision, int threads) {
    return new ftax::bench::LibtorchDevice(device, precision, threads);
}
