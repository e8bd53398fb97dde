#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ftax::test {

/// One operator of a made-up run: what its dispatch takes, and its kernels.
struct RunOperator {
    std::string name;
    double host_us = 0;
    std::vector<double> kernels_us;
};

/// Writes traces as torch.profiler does: operators with a nested one, launches within them, kernels joined by
/// correlation.
class KinetoWriter {
  public:
    double launch_latency_us = 5, kernel_gap_us = 1;
    bool with_runtime = true, with_kernels = true;

    /// Runs one forward pass after the other.
    void pass(const std::vector<RunOperator>& operators) {
        for (const RunOperator& op : operators) run(op);
        device_us_ = host_us_ = std::max(host_us_, device_us_) + 100;  // synchronised outside of the operators
    }

    void operation(const std::string& name, double start_us, double duration_us) {
        event("cpu_op", name, 41, 42, start_us, duration_us, fmt::format(R"("External id": {})", ++external_));
    }

    void event(const char* category, const std::string& name, int process, int thread, double start_us,
               double duration_us, const std::string& arguments) {
        events.push_back(fmt::format(R"(  {{
    "ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {},
    "ts": {:.3f}, "dur": {:.3f},
    "args": {{
      {}
    }}
  }})",
                                     category, name, process, thread, start_us, duration_us, arguments));
    }

    [[nodiscard]] std::string text() const {
        return "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\"id\": 0, \"name\": \"Tesla T4\"}\n  ],\n"
               "  \"traceEvents\": [\n" +
               fmt::format("{}", fmt::join(events, ",\n")) + "\n  ],\n  \"traceName\": \"made\"\n}\n";
    }

    std::vector<std::string> events;

  private:
    void run(const RunOperator& op) {
        operation(op.name, host_us_, 0.9 * op.host_us);
        if (op.kernels_us.empty()) {
            host_us_ += op.host_us;
            return;
        }
        operation(op.name + "_inner", host_us_ + 0.1 * op.host_us, 0.7 * op.host_us);
        for (std::size_t i = 0; i < op.kernels_us.size(); ++i) {
            const double launch_us = host_us_ + 0.2 * op.host_us + static_cast<double>(i);
            ++correlation_;
            const std::string joined = fmt::format(R"("External id": {}, "correlation": {})", external_, correlation_);
            if (with_runtime) event("cuda_runtime", "cudaLaunchKernel", 41, 42, launch_us, 0.5, joined);
            const double start_us = std::max(launch_us + 0.5 + launch_latency_us, device_us_ + kernel_gap_us);
            device_us_ = start_us + op.kernels_us[i];
            if (with_kernels) event("kernel", "void made<float>(int)", 0, 7, start_us, op.kernels_us[i], joined);
        }
        host_us_ += op.host_us;
    }

    double host_us_ = 4392938615222, device_us_ = 0;
    int external_ = 0, correlation_ = 0;
};

}  // namespace ftax::test
