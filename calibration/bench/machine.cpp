#include "graphs/files/machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "calibration/bench/bench_device.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "graphs/files/number.hpp"

namespace ftax::bench {
namespace {

/// What a machine without readable caches is taken to have. Source: the smallest L2 of x86 servers since 2017.
constexpr double usual_l2_kb = 1 << 10;

/// Size of core 0's L2 cache, which follows its two L1 caches, in kB: "2048K".
double l2_bytes() {
    const std::string size = value_in("/sys/devices/system/cpu/cpu0/cache/index2/size", "").value_or("");
    return parse_number(size.substr(0, size.find('K'))).value_or(usual_l2_kb) * (1 << 10);
}

/// Returns the command line of this process from the kernel.
std::string command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::replace(text.begin(), text.end(), '\0', ' ');
    return text;
}

/// Source: leaf 0x40000000 of CPUID, where hypervisors write their names (KVMKVMKVM, Microsoft Hv, XenVMMXenVMM).
std::string hypervisor() {
    std::array<unsigned, 5> leaf{};  // and the end of its text
#if defined(__x86_64__)
    __cpuid(0x40000000, leaf[0], leaf[1], leaf[2], leaf[3]);
#endif
    return reinterpret_cast<const char*>(&leaf[1]);
}

}  // namespace

DeviceSpec query_cpu(int threads) {
    const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
    return {.slug = "cpu",
            .name = cpu_name(),
            .architecture = Architecture::cpu,
            .sms = threads,
            .memory_bytes = pages * static_cast<double>(::sysconf(_SC_PAGESIZE)),
            .l2_bytes = l2_bytes() * threads};
}

std::string datasheet_text(const DeviceSpec& cpu) {
    const auto quantity = [](auto value) { return nlohmann::ordered_json{{"value", value}, {"source", "query"}}; };
    const nlohmann::ordered_json json{
        {"schema_version", 1},
        {"slug", cpu.slug},
        {"name", cpu.name},
        {"aliases", nlohmann::ordered_json::array()},
        {"architecture", "cpu"},
        {"sources", {{"query", "/proc/cpuinfo, /sys/devices/system/cpu, sysconf; threads as asked for"}}},
        {"sms", quantity(cpu.sms)},
        {"memory_bytes", quantity(cpu.memory_bytes)},
        {"l2_bytes", quantity(cpu.l2_bytes)}};
    return to_text(json);
}

std::string cpu_name() {
    return value_in("/proc/cpuinfo", "model name").value_or("unknown CPU");
}

double load_average() {
    double load = 0;
    return ::getloadavg(&load, 1) == 1 ? load : 0;
}

Environment host_environment(double probe_seconds) {
    Environment environment;
    const auto add = [&](const char* key, std::optional<std::string> value) {
        environment.emplace_back(key, value && !value->empty() ? *value : "not readable");
    };
    for (const auto& [key, of_kernel] : {std::pair("cpu_family", "cpu family"),
                                         {"cpu_model", "model\t"},
                                         {"cpu_stepping", "stepping"},
                                         {"cpu_microcode", "microcode"},
                                         {"cpu_mhz", "cpu MHz"}})
        add(key, value_in("/proc/cpuinfo", of_kernel));
    add("cpu_max_khz", value_in("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", ""));
    const std::string flags = " " + value_in("/proc/cpuinfo", "flags").value_or("") + " ";
    add("hypervisor", flags.find(" hypervisor ") == std::string::npos ? "none" : hypervisor());
    const auto quota = value_in("/sys/fs/cgroup/cpu.max", "");
    add("cgroup_quota", quota ? quota : value_in("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", ""));
    add("cpu_pressure", value_in("/proc/pressure/cpu", "some"));
    const auto ticks = value_in("/proc/stat", "cpu");  // user nice system idle iowait irq softirq steal …
    add("cpu_ticks", ticks);
    std::istringstream fields(ticks.value_or(""));
    double sum = 0, stolen = 0;
    for (int field = 0; field < 8 && fields >> stolen; ++field) sum += stolen;
    add("cpu_steal", sum > 0 ? std::optional(fmt::format("{:.1f} %", 100 * stolen / sum)) : std::nullopt);
    for (auto& entry : probe_host(probe_seconds)) environment.push_back(std::move(entry));
    return environment;
}

Environment machine_environment(double probe_seconds) {
    utsname system{};
    ::uname(&system);
    std::array<char, 32> now{};
    const std::time_t seconds = std::time(nullptr);
    std::strftime(now.data(), now.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&seconds));
    Environment environment{
        {"date", now.data()},
        {"cpu", cpu_name()},
        {"logical_cores", fmt::format("{}", std::thread::hardware_concurrency())},
        {"governor", value_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "").value_or("not readable")},
        {"kernel", fmt::format("{} {}", system.sysname, system.release)},
        {"load_at_start", fmt::format("{:.2f}", load_average())},
        {"command_line", command_line()}};
    for (auto& entry : host_environment(probe_seconds)) environment.push_back(std::move(entry));
    return environment;
}

std::string find_beside_program(const char* file) {
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* place : {".", "../lib/ftax"})
        if (const auto path = folder / place / file; std::filesystem::exists(path, ignored)) return path.string();
    return {};
}

std::string environment_text(const Environment& environment) {
    nlohmann::ordered_json json{{"schema_version", 1}, {"environment", nlohmann::ordered_json::object()}};
    for (const auto& [key, value] : environment) json["environment"][key] = value;
    return to_text(json);
}

std::string run_cuda_probe(const std::string& program) {
    const auto [text, status] = run_command(shell_quoted(program));
    if (status == -1) throw_error(ErrorCode::refused, "cannot run {}", program);
    if (status == 0) return text;
    throw Error(ErrorCode::refused, WIFEXITED(status)
                                        ? fmt::format("{} ended with status {}", program, WEXITSTATUS(status))
                                        : fmt::format("{} was ended by signal {}", program, WTERMSIG(status)));
}

}  // namespace ftax::bench
