// ftax_cuda_probe: what the CUDA runtime itself costs on this machine, without any framework, as CSV on standard output:
//     quantity,value,unit,samples,source
// Launch cost on the host, launch latency, gap between kernels of a stream and of a CUDA graph, what a graph and a node of it
// cost the host, the bandwidth of copies from L2 to memory, and the SM clock. Builds with nvcc alone.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calibration/bench/cuda/spin_gap.hpp"

namespace {

constexpr int refused = 5;
constexpr int repetitions = 21;
constexpr int launches = 256;  // below the launch queue's 1,024 entries
constexpr int spins = 64;      // of one duration, one after another
/// 2 to 16 µs at 2 GHz: longer than the front end takes for a launch, short beside the gap to be found.
constexpr long long spin_cycles[] = {4'000, 8'000, 16'000, 32'000};

/// Two to four milliseconds, in which a slow host queues that many launches.
constexpr long long sleep_while_queueing = 4'000'000;

__global__ void empty() {}

/// Keeps the stream busy while the host queues what is timed.
__global__ void sleep_cycles(long long cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
}

/// Tells the host that it runs.
__global__ void raise_flag(volatile int* flag) { *flag = 1; }

__global__ void copy_words(const float4* from, float4* to, std::size_t count) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

void check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "ftax_cuda_probe: %s: %s\n", what, cudaGetErrorString(code));
    std::exit(refused);
}

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Timer {
  public:
    Timer() {
        check(cudaEventCreate(&begin_), "event");
        check(cudaEventCreate(&end_), "event");
    }
    /// Device time of what `queue` puts into the stream, behind a kernel that sleeps meanwhile.
    double device_s(const std::function<void()>& queue) {
        sleep_cycles<<<1, 1>>>(sleep_while_queueing);
        check(cudaEventRecord(begin_), "event");
        queue();
        check(cudaEventRecord(end_), "event");
        check(cudaEventSynchronize(end_), "run");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin_, end_), "event");
        return milliseconds * 1e-3;
    }

  private:
    cudaEvent_t begin_{}, end_{};
};

/// Prints the median of samples; those taken under 60 % of the largest SM clock do not count.
class Samples {
  public:
    explicit Samples(Timer& timer) : timer_(timer) {
        int largest_khz = 0;
        check(cudaDeviceGetAttribute(&largest_khz, cudaDevAttrClockRate, 0), "clock");
        least_clock_hz_ = 0.6e3 * largest_khz;
    }

    [[nodiscard]] double clock_hz() const {
        return sleep_while_queueing / timer_.device_s([] { sleep_cycles<<<1, 1>>>(sleep_while_queueing); });
    }

    void print(const char* quantity, const char* unit, const char* source, const std::function<double()>& sample) const {
        std::vector<double> values;
        for (int i = 0; i < 4 * repetitions && values.size() < repetitions; ++i) {
            const double value = sample();
            if (clock_hz() >= least_clock_hz_ || i >= 3 * repetitions) values.push_back(value);
        }
        std::sort(values.begin(), values.end());
        std::printf("%s,%.6g,%s,%zu,%s\n", quantity, values[values.size() / 2], unit, values.size(), source);
    }

  private:
    Timer& timer_;
    double least_clock_hz_ = 0;
};

/// Host time of asynchronous calls; the device is idle before and waited for outside.
double host_s(const std::function<void()>& call, int count) {
    check(cudaDeviceSynchronize(), "run");
    const double begin = now_s();
    for (int i = 0; i < count; ++i) call();
    const double seconds = (now_s() - begin) / count;
    check(cudaDeviceSynchronize(), "run");
    return seconds;
}

/// A graph of `nodes` kernels that spin one after another.
cudaGraphExec_t graph_of(int nodes, long long cycles) {
    cudaStream_t stream{};
    check(cudaStreamCreate(&stream), "stream");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < nodes; ++i) sleep_cycles<<<1, 1, 0, stream>>>(cycles);
    cudaGraph_t graph{};
    check(cudaStreamEndCapture(stream, &graph), "capture");
    cudaGraphExec_t executable{};
    check(cudaGraphInstantiate(&executable, graph, 0), "graph");
    return executable;
}

/// From the return of a launch to the kernel's first write into host memory, on an idle device.
double launch_latency_s(volatile int* flag) {
    *flag = 0;
    check(cudaDeviceSynchronize(), "run");
    raise_flag<<<1, 1>>>(flag);
    check(cudaGetLastError(), "launch");
    const double begin = now_s();
    while (*flag == 0) {
    }
    return now_s() - begin;
}

}  // namespace

int main() {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaErrorInsufficientDriver) {
        std::fprintf(stderr, "ftax_cuda_probe: no driver, or one older than CUDA %d.%d\n", CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
        return refused;
    }
    if (code != cudaSuccess || count == 0) {
        std::fprintf(stderr, "ftax_cuda_probe: no GPU: %s\n", code == cudaSuccess ? "none found" : cudaGetErrorString(code));
        return refused;
    }
    std::printf("quantity,value,unit,samples,source\n");
    Timer timer;
    const Samples samples(timer);
    empty<<<1, 32>>>();
    check(cudaDeviceSynchronize(), "first kernel");
    // An idle card needs a while to raise its clocks.
    for (const double begin = now_s(); now_s() - begin < 0.5; check(cudaDeviceSynchronize(), "warm-up")) {
        sleep_cycles<<<1024, 64>>>(sleep_while_queueing);
    }
    samples.print("launch_host", "s", "host clock", [] { return host_s([] { empty<<<1, 32>>>(); }, launches); });
    samples.print("launch_and_wait", "s", "host clock", [] {
        return host_s([] { empty<<<1, 32>>>(); cudaDeviceSynchronize(); }, 16);
    });
    int* flag = nullptr;
    check(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped), "flag");
    samples.print("launch_latency", "s", "host memory", [&] { return launch_latency_s(flag); });
    /// `queue(i)` queues `spins` kernels of the i-th duration.
    const auto gap_s = [&](const std::function<void(std::size_t)>& queue) {
        std::vector<std::pair<double, double>> periods;
        for (std::size_t i = 0; i < std::size(spin_cycles); ++i)
            periods.emplace_back(static_cast<double>(spin_cycles[i]), timer.device_s([&] { queue(i); }) / spins);
        return ftax::bench::spin_gap_s(periods);
    };
    samples.print("kernel_gap", "s", "events", [&] {
        return gap_s([](std::size_t i) { for (int k = 0; k < spins; ++k) sleep_cycles<<<1, 1>>>(spin_cycles[i]); });
    });
    std::vector<cudaGraphExec_t> spinning;
    for (const long long cycles : spin_cycles) {
        spinning.push_back(graph_of(spins, cycles));
        check(cudaGraphLaunch(spinning.back(), nullptr), "graph");
    }
    samples.print("graph_gap", "s", "events", [&] { return gap_s([&](std::size_t i) { cudaGraphLaunch(spinning[i], nullptr); }); });
    constexpr int nodes = 512;
    const cudaGraphExec_t small = graph_of(1, 0), large = graph_of(nodes, 0);
    check(cudaGraphLaunch(large, nullptr), "graph");
    samples.print("graph_launch_host", "s", "host clock", [&] { return host_s([&] { cudaGraphLaunch(small, nullptr); }, 16); });
    samples.print("graph_node_host", "s", "host clock", [&] { return host_s([&] { cudaGraphLaunch(large, nullptr); }, 4) / nodes; });

    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "properties");
    for (std::size_t bytes = 1 << 20; bytes <= std::size_t{1} << 30; bytes *= 4) {
        float4 *from = nullptr, *to = nullptr;
        if (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess) {
            cudaGetLastError();
            std::fprintf(stderr, "warning: no memory for copies of %zu MiB\n", bytes >> 20);
            cudaFree(from);
            break;
        }
        const std::size_t words = bytes / sizeof(float4);
        const int blocks = static_cast<int>(std::min<std::size_t>((words + 255) / 256, static_cast<std::size_t>(properties.multiProcessorCount) * 8));
        const std::string name = "copy_" + std::to_string(bytes >> 20) + "_mib";
        samples.print(name.c_str(), "bytes/s", "events", [&] {
            return 20.0 * 2 * static_cast<double>(bytes) /
                   timer.device_s([&] { for (int i = 0; i < 20; ++i) copy_words<<<blocks, 256>>>(from, to, words); });
        });
        cudaFree(from);
        cudaFree(to);
    }
    samples.print("clock", "Hz", "events", [&] { return samples.clock_hz(); });
    return 0;
}
