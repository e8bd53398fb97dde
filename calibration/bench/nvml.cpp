#include "calibration/bench/nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace ftax::bench {
namespace {

// NVML's header is not part of every CUDA toolkit; its binary interface is stable.
// Source: NVML API reference, https://docs.nvidia.com/deploy/nvml-api.
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

}  // namespace

bool is_fault(std::string_view slowdown) {
    return slowdown.find("thermal") != slowdown.npos || slowdown.find("hardware") != slowdown.npos;
}

template <class Function>
Function* Nvml::function(const char* name) const {
    return library_ ? reinterpret_cast<Function*>(::dlsym(library_, name)) : nullptr;
}

Nvml::Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = function<nvmlReturn_t()>("nvmlInit_v2");
    const auto find = function<nvmlReturn_t(unsigned, nvmlDevice_t*)>("nvmlDeviceGetHandleByIndex_v2");
    nvmlDevice_t device{};
    if (init && find && init() == NVML_SUCCESS && find(0, &device) == NVML_SUCCESS) device_ = device;
}

Nvml::~Nvml() {
    if (const auto shutdown = function<nvmlReturn_t()>("nvmlShutdown"); shutdown && device_) shutdown();
    if (library_) ::dlclose(library_);
}

std::string Nvml::driver() const {
    std::array<char, 96> text{};
    const auto get = function<nvmlReturn_t(char*, unsigned)>("nvmlSystemGetDriverVersion");
    return open() && get && get(text.data(), text.size()) == NVML_SUCCESS ? text.data() : "";
}

std::string Nvml::name() const {
    std::array<char, 96> text{};
    const auto get = function<nvmlReturn_t(nvmlDevice_t, char*, unsigned)>("nvmlDeviceGetName");
    return open() && get && get(device_, text.data(), text.size()) == NVML_SUCCESS ? text.data() : "";
}

std::optional<double> Nvml::clock_hz(const char* which) const {
    unsigned mhz = 0;
    const auto get = function<nvmlReturn_t(nvmlDevice_t, nvmlClockType_t, unsigned*)>(which);
    if (!open() || !get || get(device_, NVML_CLOCK_SM, &mhz) != NVML_SUCCESS) return std::nullopt;
    return mhz * 1e6;
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
    const auto get =
        function<nvmlReturn_t(nvmlDevice_t, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    if (!open() || !get || get(device_, &now) != NVML_SUCCESS) return "";
    std::string text;
    for (const auto& [bits, name] : reasons) {
        if ((now & bits) != 0) text.append(text.empty() ? "" : " and ").append(name);
    }
    return text;
}

std::optional<bool> Nvml::mig() const {
    unsigned current = 0, pending = 0;
    const auto get = function<nvmlReturn_t(nvmlDevice_t, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
    if (!open() || !get || get(device_, &current, &pending) != NVML_SUCCESS) return std::nullopt;
    return current == NVML_DEVICE_MIG_ENABLE;
}

std::optional<int> Nvml::other_processes() const {
    std::array<nvmlProcessInfo_t, 64> processes{};
    unsigned count = processes.size();
    const auto get =
        function<nvmlReturn_t(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*)>("nvmlDeviceGetComputeRunningProcesses_v3");
    if (!open() || !get || get(device_, &count, processes.data()) != NVML_SUCCESS) return std::nullopt;
    const auto mine = static_cast<unsigned>(::getpid());
    return static_cast<int>(std::count_if(processes.begin(), processes.begin() + count,
                                          [&](const nvmlProcessInfo_t& p) { return p.pid != mine; }));
}

}  // namespace ftax::bench
