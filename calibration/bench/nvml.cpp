#include "calibration/bench/nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace ftax::bench {
namespace {

// NVML's header is not part of every CUDA toolkit; its binary interface is stable.
// Source: NVML API reference, https://docs.nvidia.com/deploy/nvml-api.
// NOLINTBEGIN(readability-identifier-naming): NVML's own names
using nvmlReturn_t = int;
using nvmlDevice_t = void*;
using nvmlClockType_t = int;
constexpr nvmlReturn_t NVML_SUCCESS = 0;
constexpr nvmlClockType_t NVML_CLOCK_SM = 1;
constexpr unsigned NVML_DEVICE_MIG_ENABLE = 1;
struct nvmlProcessInfo_t {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
// NOLINTEND(readability-identifier-naming)

template <class Function>
Function* find(void* library, const char* name) {
    return library ? reinterpret_cast<Function*>(::dlsym(library, name)) : nullptr;
}

}  // namespace

bool is_fault(std::string_view slowdown) {
    return slowdown.find("thermal") != slowdown.npos || slowdown.find("hardware") != slowdown.npos;
}

template <class... Arguments>
bool Nvml::ask(const char* function, Arguments... arguments) const {
    const auto call = find<nvmlReturn_t(nvmlDevice_t, Arguments...)>(library_, function);
    return device_ && call && call(device_, arguments...) == NVML_SUCCESS;
}

Nvml::Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = find<nvmlReturn_t()>(library_, "nvmlInit_v2");
    const auto get = find<nvmlReturn_t(unsigned, nvmlDevice_t*)>(library_, "nvmlDeviceGetHandleByIndex_v2");
    nvmlDevice_t device{};
    if (init && get && init() == NVML_SUCCESS && get(0, &device) == NVML_SUCCESS) device_ = device;
}

Nvml::~Nvml() {
    if (const auto shutdown = find<nvmlReturn_t()>(library_, "nvmlShutdown"); shutdown && device_) shutdown();
    if (library_) ::dlclose(library_);
}

std::optional<double> Nvml::clock_hz(const char* which) const {
    unsigned mhz = 0;
    return ask(which, NVML_CLOCK_SM, &mhz) ? std::optional(mhz * 1e6) : std::nullopt;
}

std::optional<double> Nvml::clock_hz() const {
    return clock_hz("nvmlDeviceGetClockInfo");
}

std::optional<double> Nvml::largest_clock_hz() const {
    return clock_hz("nvmlDeviceGetMaxClockInfo");
}

std::string Nvml::slowdown() const {
    // Bits of nvmlClocksEventReasons; the first name is that of drivers before 535, which newer ones keep.
    constexpr std::pair<unsigned long long, std::string_view> reasons[] = {
        {0x4, "power cap"}, {0x20 | 0x40, "thermal"}, {0x8 | 0x80, "hardware"}};
    unsigned long long now = 0;
    if (!ask("nvmlDeviceGetCurrentClocksThrottleReasons", &now)) return "";
    std::string text;
    for (const auto& [bits, name] : reasons) {
        if ((now & bits) != 0) text.append(text.empty() ? "" : " and ").append(name);
    }
    return text;
}

std::optional<bool> Nvml::mig() const {
    unsigned current = 0, pending = 0;
    const bool known = ask("nvmlDeviceGetMigMode", &current, &pending);
    return known ? std::optional(current == NVML_DEVICE_MIG_ENABLE) : std::nullopt;
}

std::optional<int> Nvml::other_processes() const {
    std::array<nvmlProcessInfo_t, 64> processes{};
    unsigned count = processes.size();
    if (!ask("nvmlDeviceGetComputeRunningProcesses_v3", &count, processes.data())) return std::nullopt;
    const auto mine = static_cast<unsigned>(::getpid());
    return static_cast<int>(std::count_if(processes.begin(), processes.begin() + count,
                                          [&](const nvmlProcessInfo_t& p) { return p.pid != mine; }));
}

}  // namespace ftax::bench
