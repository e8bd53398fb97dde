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
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "calibration/bench/libtorch/network.hpp"
#include "ftax/error.hpp"
#include "ftax/precision.hpp"
#include "ftax/text_graph.hpp"

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
    if (!registered || c10::impl::VirtualGuardImpl(c10::kCUDA).deviceCount() == 0)
        throw Error(ErrorCode::refused, registered ? "LibTorch sees no GPU: no device, or a driver too old for it"
                                                   : "this LibTorch has no CUDA: " + why_not);
    return c10::Device(c10::kCUDA, 0);
}

/// Keeps the stream busy for about as long. A GPU clocked higher than this sleeps a little less.
void sleep_on_stream(double seconds) {
    constexpr double cycles_per_s = 2e9;
    // at::cuda::sleep(long), which torch.cuda._sleep calls; its header needs CUDA's, which LibTorch does not bring.
    static const auto sleep = reinterpret_cast<void (*)(std::int64_t)>(::dlsym(RTLD_DEFAULT, "_ZN2at4cuda5sleepEl"));
    if (sleep) sleep(static_cast<std::int64_t>(seconds * cycles_per_s));
}

/// Measures LibTorch's operators in this process, on the CPU or on this machine's GPU.
class LibtorchDevice {
  public:
    /// Throws Error{refused} when LibTorch sees no GPU.
    LibtorchDevice(const std::string& name, int threads) : device_(open(name)), threads_(threads) {
        at::set_num_threads(threads);
        at::zeros({1}, at::TensorOptions().device(device_));  // from here on this process is on the GPU
    }

    /// Readies a graph, frees the one before first. `mode`: of bench::Mode. Throws Error{usage} if it cannot run.
    void prepare(Graph graph, const ShapeBindings& bindings, Precision precision, std::string mode, int weight_sets,
                 bool is_network) {
        const c10::InferenceMode inference;
        network_.reset();
        graph_ = std::move(graph);
        mode_ = std::move(mode);
        queueing_s_ = 2e-4;
        if (precision_spec(precision).autocast)
            throw Error(ErrorCode::usage, "amp is measured through Python (--framework pytorch-eager)");
        // Networks run with PyTorch's defaults (convolutions in TF32), operators in exactly the precision they name.
        const bool tf32 = precision == Precision::tf32;
        at::globalContext().setAllowTF32CuBLAS(tf32);
        at::globalContext().setAllowTF32CuDNN(tf32 || (is_network && precision == Precision::fp32));
        network_ = std::make_unique<Network>(graph_, bindings, precision, device_, weight_sets);
        if (is_network) network_->settle();
    }

    /// Seconds of one of so many calls.
    double sample(int calls) {
        const c10::InferenceMode inference;
        if (mode_ == "end_to_end") return host_time(1, true);
        if (mode_ == "host_dispatch") return host_time(std::min(calls, queue_calls), false);
        return cuda() ? device_time(calls) : host_time(calls, true);
    }

  private:
    bool cuda() const { return device_.is_cuda(); }
    double now_s() const { return !cuda() && threads_ == 1 ? process_s() : wall_s(); }

    void synchronize() const {
        if (cuda()) c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeDevice(device_.index());
    }

    double host_time(int count, bool synchronized) {
        synchronize();
        const double begin = now_s();
        for (int i = 0; i < count; ++i) network_->run();
        if (synchronized) synchronize();
        const double end = now_s();
        synchronize();
        return (end - begin) / count;
    }

    /// Device time of calls queued after a kernel that sleeps for the duration of the last queueing.
    double device_time(int count) {
        synchronize();
        sleep_on_stream(std::min(1.2 * queueing_s_ + 5e-5, 0.2));
        const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device_);
        c10::Event begin(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT), end(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
        begin.record(stream);
        const double queueing = wall_s();
        for (int i = 0; i < count; ++i) network_->run();
        queueing_s_ = wall_s() - queueing;
        end.record(stream);
        end.synchronize();
        return begin.elapsedTime(end) * 1e-3 / count;
    }

    c10::Device device_;
    int threads_;
    Graph graph_;  ///< graph of the prepared network, which refers to it
    std::unique_ptr<Network> network_;
    std::string mode_;
    double queueing_s_ = 2e-4;  ///< host time of the last device sample of this network
};

std::unique_ptr<LibtorchDevice> opened;
std::string problem;

template <class Action>
const char* reason_why_not(Action action) {
    problem.clear();
    try {
        action();
    } catch (const Error& error) {
        problem = (error.code() == ErrorCode::usage ? "unsupported: " : "") + std::string(error.what());
    } catch (const c10::Error& error) {
        problem = first_line(error.what_without_backtrace());
    } catch (const std::exception& error) {
        problem = error.what();
    }
    return problem.empty() ? nullptr : problem.c_str();
}

}  // namespace
}  // namespace ftax::bench

// What calibration/bench/python/libtorch.py calls, one network at a time; returns why it failed, or nullptr.

using namespace ftax;
using namespace ftax::bench;

#define FTAX_EXPORT extern "C" __attribute__((visibility("default")))

FTAX_EXPORT const char* ftax_version() {
    return TORCH_VERSION;
}

/// Opens "cpu" or "cuda".
FTAX_EXPORT const char* ftax_open(const char* name, int threads) {
    return reason_why_not([&] { opened = std::make_unique<LibtorchDevice>(name, threads); });
}

/// Readies a text graph with `count` symbols for samples in one mode.
FTAX_EXPORT const char* ftax_prepare(const char* graph, const char* precision, const char* mode, int count,
                                     const char* const* symbols, const std::int64_t* values, int weight_sets,
                                     int is_network) {
    return reason_why_not([&] {
        const auto known = precision_from_name(precision);
        if (!known) throw Error(ErrorCode::usage, "unknown precision " + std::string(precision));
        ShapeBindings bindings;
        for (int i = 0; i < count; ++i) bindings.emplace(symbols[i], values[i]);
        opened->prepare(parse_text_graph(graph, "graph"), bindings, *known, mode, weight_sets, is_network != 0);
    });
}

/// Takes one sample of `calls` calls: seconds of each.
FTAX_EXPORT const char* ftax_sample(int calls, double* seconds) {
    return reason_why_not([&] { *seconds = opened->sample(calls); });
}
