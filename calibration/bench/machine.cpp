#include "src/io/machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "calibration/bench/bench_device.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/file.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"

namespace ftax::bench {
namespace {

/// What a machine without readable caches is taken to have. Source: the smallest L2 of x86 servers since 2017.
constexpr double usual_l2_bytes = 1 << 20;

/// Size of the data cache of one level of core 0. Sizes are written "2048K".
double cache_bytes(int level, double fallback) {
    for (int i = 0; i < 8; ++i) {
        const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
        if (value_in(folder + "level", "") != fmt::format("{}", level) ||
            value_in(folder + "type", "") == "Instruction")
            continue;
        std::string size = value_in(folder + "size", "").value_or("");
        const double unit = size.ends_with('M') ? 1 << 20 : 1 << 10;
        if (!size.empty()) size.pop_back();
        if (const auto value = parse_number(size)) return *value * unit;
    }
    return fallback;
}

/// What a CPU's name does not say of the host: its stepping and clock, the hypervisor above it, and how much of it this
/// process may use. Source: proc(5); the kernel's documentation of cgroup-v2 and PSI.
Environment host_environment() {
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
    const bool virtual_machine = flags.find(" hypervisor ") != std::string::npos;
    add("hypervisor", !virtual_machine ? "none" : value_in("/sys/hypervisor/type", "").value_or("unnamed"));
    add("cgroup_quota", value_in("/sys/fs/cgroup/cpu.max", ""));
    add("cpu_pressure", value_in("/proc/pressure/cpu", "some"));
    add("cpu_ticks", value_in("/proc/stat", "cpu"));  // user nice system idle iowait irq softirq steal …
    return environment;
}

}  // namespace

DeviceSpec query_cpu(int threads) {
    const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
    return {.slug = "cpu",
            .name = cpu_name(),
            .architecture = Architecture::cpu,
            .sms = threads,
            .memory_bytes = pages * static_cast<double>(::sysconf(_SC_PAGESIZE)),
            .l2_bytes = cache_bytes(2, usual_l2_bytes) * threads};
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

Environment machine_environment(const std::string& command_line) {
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
        {"command_line", command_line}};
    for (auto& entry : host_environment()) environment.push_back(std::move(entry));
    return environment;
}

std::string find_beside_program(const char* file) {
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* place : {".", "../lib/ftax"})
        if (const auto path = folder / place / file; std::filesystem::exists(path, ignored)) return path.string();
    return {};
}

void write_environment(const std::string& path, const Environment& environment) {
    nlohmann::ordered_json json{{"schema_version", 1}, {"environment", nlohmann::ordered_json::object()}};
    for (const auto& [key, value] : environment) json["environment"][key] = value;
    write_file(path, to_text(json));
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
