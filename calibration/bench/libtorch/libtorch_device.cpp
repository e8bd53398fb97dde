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
#include <memory>
#include <string>

#include "calibration/bench/libtorch/network.hpp"
#include "calibration/bench/libtorch_plugin.hpp"
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

/// Measures LibTorch's operators in this process, on the CPU or on this machine's GPU.
class LibtorchDevice : public BenchDevice {
  public:
    /// Throws Error{refused} when LibTorch sees no GPU.
    LibtorchDevice(const std::string& name, Precision precision, int threads)
        : device_(open(name)), precision_(precision), threads_(threads) {
        at::set_num_threads(threads);
        constexpr std::int64_t flush_bytes = 128 << 20;  // twice the largest L2 of a GPU (H100, A100: 50 MB)
        flush_ = at::zeros({flush_bytes}, at::TensorOptions().dtype(at::kChar).device(device_));
    }

    [[nodiscard]] Environment environment() const override {
        return {{"framework_version", TORCH_VERSION}, {"threads", std::to_string(at::get_num_threads())}};
    }

    [[nodiscard]] std::string source() const override { return std::string(graph_source); }

    [[nodiscard]] std::optional<Failure> prepare(const BenchCase& bench_case) override {
        const c10::InferenceMode inference;
        network_.reset();
        graph_ = bench_case.graph;
        mode_ = bench_case.mode;
        calls_ = bench_case.calls;
        queueing_s_ = 2e-4;
        if (precision_spec(precision_).autocast)
            return Failure{FailureKind::unsupported, "amp is measured through Python (--framework pytorch-eager)"};
        // Networks run with PyTorch's defaults (convolutions in TF32), operators in exactly the precision they name.
        const bool tf32 = precision_ == Precision::tf32;
        at::globalContext().setAllowTF32CuBLAS(tf32);
        at::globalContext().setAllowTF32CuDNN(tf32 || (!bench_case.model.empty() && precision_ == Precision::fp32));
        try {
            network_ =
                std::make_unique<Network>(*graph_, bench_case.bindings, precision_, device_, bench_case.weight_sets);
            if (!bench_case.model.empty()) network_->settle();
            for (int i = 0; i < bench_case.warm_ups; ++i) network_->run();
            synchronize();
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

    [[nodiscard]] std::variant<Sample, Failure> sample() override {
        const c10::InferenceMode inference;
        try {
            return Sample{measure()};
        } catch (const c10::OutOfMemoryError& error) {
            return Failure{FailureKind::out_of_memory, first_line(error.what_without_backtrace())};
        } catch (const c10::Error& error) {
            return Failure{FailureKind::failed, first_line(error.what_without_backtrace())};
        }
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

    double measure() {
        switch (mode_) {
            case Mode::end_to_end:
                return host_time(1, true);
            case Mode::host_dispatch:
                return host_time(std::min(calls_, queue_calls), false);
            case Mode::device_cold:
                flush_.add_(1);
                return cuda() ? device_time(1) : host_time(1, true);
            case Mode::device_hot:
                break;
        }
        return cuda() ? device_time(calls_) : host_time(calls_, true);
    }

    c10::Device device_;
    Precision precision_;
    int threads_;
    std::shared_ptr<const Graph> graph_;  ///< graph of the prepared network, which refers to it
    std::unique_ptr<Network> network_;
    Mode mode_ = Mode::end_to_end;
    int calls_ = 1;
    at::Tensor flush_;
    double queueing_s_ = 2e-4;  ///< host time of the last device sample of this network
};

// The rest is for a machine that has neither ftax nor Debian's packages, only a Python with torch: campaign.sh builds
// this library with LibTorch's headers (fmt among them), libtorch.py calls it. One network at a time; a function that
// can fail returns why, or nullptr.

std::unique_ptr<LibtorchDevice> opened;
std::string problem;

template <class Action>
const char* reason_why_not(Action action) {
    try {
        problem = action();
    } catch (const std::exception& error) {
        problem = error.what();
    }
    return problem.empty() ? nullptr : problem.c_str();
}

}  // namespace
}  // namespace ftax::bench

using namespace ftax;
using namespace ftax::bench;

BenchDevice* ftax_open_libtorch(const char* device, Precision precision, int threads) {
    return new LibtorchDevice(device, precision, threads);
}

#define FTAX_EXPORT extern "C" __attribute__((visibility("default")))

/// Opens "cpu" or "cuda"; an operator's tensors get this precision.
FTAX_EXPORT const char* ftax_open(const char* name, const char* precision) {
    return reason_why_not([&] {
        const auto known = precision_from_name(precision);
        if (!known) return "unknown precision " + std::string(precision);
        opened = std::make_unique<LibtorchDevice>(name, *known, 1);
        return std::string();
    });
}

/// Readies a text graph without symbols for host_dispatch samples of `calls` calls each.
FTAX_EXPORT const char* ftax_prepare(const char* graph, int calls) {
    return reason_why_not([&] {
        const auto failure =
            opened->prepare({.id = "operator",
                             .graph = std::make_shared<const Graph>(parse_text_graph(graph, "operator")),
                             .mode = Mode::host_dispatch,
                             .warm_ups = 5,
                             .calls = calls});
        return failure ? std::string(name_of(failure->kind)) + ": " + failure->message : std::string();
    });
}

/// Takes one sample: host seconds of a call.
FTAX_EXPORT const char* ftax_sample(double* seconds) {
    return reason_why_not([&] {
        const auto outcome = opened->sample();
        if (const auto* failure = std::get_if<Failure>(&outcome)) return failure->message;
        *seconds = std::get<Sample>(outcome).seconds;
        return std::string();
    });
}
