#include "calibration/bench/machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/core/throw_error.hpp"
#include "src/io/file.hpp"
#include "src/io/json_document.hpp"
#include "src/io/machine.hpp"
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

}  // namespace

DeviceSpec query_cpu(int threads) {
    DeviceSpec cpu;
    cpu.slug = "cpu";
    cpu.name = cpu_name();
    cpu.architecture = Architecture::cpu;
    cpu.sms = threads;
    cpu.memory_bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
    cpu.l2_bytes = cache_bytes(2, usual_l2_bytes) * threads;
    return cpu;
}

std::string datasheet_text(const DeviceSpec& cpu) {
    const auto quantity = [](double value) { return nlohmann::ordered_json{{"value", value}, {"source", "query"}}; };
    nlohmann::ordered_json json{
        {"schema_version", 1},
        {"slug", cpu.slug},
        {"name", cpu.name},
        {"aliases", nlohmann::ordered_json::array()},
        {"architecture", "cpu"},
        {"sources", {{"query", "/proc/cpuinfo, /sys/devices/system/cpu, sysconf; threads as asked for"}}},
        {"sms", {{"value", cpu.sms}, {"source", "query"}}}};
    json["memory_bytes"] = quantity(cpu.memory_bytes);
    json["l2_bytes"] = quantity(cpu.l2_bytes);
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
    return {
        {"date", now.data()},
        {"cpu", cpu_name()},
        {"logical_cores", fmt::format("{}", std::thread::hardware_concurrency())},
        {"governor", value_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "").value_or("not readable")},
        {"kernel", fmt::format("{} {}", system.sysname, system.release)},
        {"load_at_start", fmt::format("{:.2f}", load_average())},
        {"command_line", command_line}};
}

std::string find_beside_program(const char* file) {
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* place : {".", "../lib/ftax"}) {
        if (const auto path = folder / place / file; std::filesystem::exists(path, ignored)) return path.string();
    }
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
