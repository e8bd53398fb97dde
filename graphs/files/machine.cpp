#include "graphs/files/machine.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <thread>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/files/file.hpp"

namespace ftax {
namespace {

namespace fs = std::filesystem;

Finding cpu() {
    const std::string model = value_in("/proc/cpuinfo", "model name").value_or("unknown model");
    Finding finding{"cpu",
                    FindingState::present,
                    fmt::format("{}, {} logical cores", model, std::thread::hardware_concurrency()),
                    {}};
    const auto governor = value_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "");
    if (governor) finding.detail += ", governor " + *governor;
    if (governor && *governor != "performance") {
        finding.state = FindingState::limited;
        finding.advice = "before measuring: cpupower frequency-set -g performance";
    }
    return finding;
}

Finding gpu(const std::string& model) {
    try {
        return {"gpu", FindingState::present, fmt::format("{} ({})", model, device_spec(model).slug), {}};
    } catch (const Error&) {
        return {"gpu", FindingState::limited, model, "ftax has no datasheet of it: see data/devices/README.md"};
    }
}

std::vector<Finding> gpus() {
    std::vector<Finding> findings;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", ignored))
        if (const auto model = value_in(entry.path() / "information", "Model")) findings.push_back(gpu(*model));
    if (findings.empty())
        findings.push_back({"gpu", FindingState::absent, "no NVIDIA GPU", "predicting needs none; measuring does"});
    return findings;
}

Finding driver() {
    const auto version = value_in("/proc/driver/nvidia/version", "NVRM version");
    if (!version) return {"driver", FindingState::absent, "no NVIDIA kernel driver", {}};
    return {"driver", FindingState::present, *version, {}};
}

/// What was loaded stays loaded: drivers do not like to be unloaded, and the program ends soon.
Finding shared_library(std::string what, std::initializer_list<const char*> names, std::string advice) {
    for (const char* name : names)
        if (::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return {std::move(what), FindingState::present, name, {}};
    return {std::move(what), FindingState::absent, fmt::format("{} cannot be loaded", *names.begin()),
            std::move(advice)};
}

/// CUPTI counters require root unless the driver is configured otherwise.
/// Source: https://developer.nvidia.com/ERR_NVGPUCTRPERM
Finding cupti() {
    Finding finding = shared_library("cupti", {"libcupti.so", "libcupti.so.13", "libcupti.so.12"},
                                     "install the CUDA toolkit: profilers record kernels with it");
    const auto admin_only = value_in("/proc/driver/nvidia/params", "RmProfilingAdminOnly");
    if (finding.state == FindingState::present && admin_only == "1" && ::geteuid() != 0) {
        finding.state = FindingState::limited;
        finding.detail += ", for root only";
        finding.advice = "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0";
    }
    return finding;
}

/// Prints the interpreter and, one a line, the packages found; imports none. -I keeps the working folder out.
constexpr const char* python_arguments =
    " -I -c \"\n"
    "import sys, importlib.metadata as m\n"
    "print(sys.version.split()[0], sys.executable)\n"
    "for name in ('torch', 'torchvision', 'timm', 'transformers', 'onnx', 'onnxruntime'):\n"
    "    try: print(name, m.version(name))\n"
    "    except m.PackageNotFoundError: pass\n"
    "\" 2>/dev/null";

std::vector<Finding> python() {
    const auto [output, status] = run_command(shell_quoted(find_program("python3")) + python_arguments);
    if (status != 0)
        return {{"python", FindingState::absent, "no python3 on the path", "only exporting models needs it"}};
    const auto [interpreter, rest] = split_at(output, '\n');
    std::vector<Finding> findings{{"python", FindingState::present, std::string(interpreter), {}}};
    std::string packages(rest);
    while (!packages.empty() && packages.back() == '\n') packages.pop_back();
    std::ranges::replace(packages, '\n', ',');
    findings.push_back({"torch", FindingState::present, packages, {}});
    if (packages.find("torch ") == std::string::npos)
        findings.back() = {"torch", FindingState::absent, packages.empty() ? "not in this python" : packages,
                           "only exporting models and measuring frameworks need it"};
    return findings;
}

Finding folder(std::string what, const std::string& path) {
    if (is_writable_folder(path)) return {std::move(what), FindingState::present, path, {}};
    return {std::move(what), FindingState::limited, path, "not writable: give outputs another folder"};
}

}  // namespace

std::string_view name_of(FindingState state) noexcept {
    constexpr std::array<std::string_view, 3> names{"present", "limited", "absent"};
    return names[static_cast<std::size_t>(state)];
}

std::optional<std::string> value_in(const std::filesystem::path& path, std::string_view key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key)) continue;
        const std::size_t start = key.empty() ? 0 : line.find_first_not_of(" \t:", key.size());
        return start == std::string::npos ? std::string() : line.substr(start);
    }
    return std::nullopt;
}

std::string find_program(const std::string& name) {
    if (name.find('/') != name.npos) return fs::absolute(name).string();
    const char* folders = std::getenv("PATH");
    std::istringstream path(folders ? folders : "");
    for (std::string folder; std::getline(path, folder, ':');) {
        const std::string file = folder + "/" + name;
        if (folder.starts_with('/') && ::access(file.c_str(), X_OK) == 0) return file;
    }
    return {};
}

std::string shell_quoted(std::string_view text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

Printed run_command(const std::string& command) {
    Printed printed;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    if (!pipe) return printed;
    std::array<char, 4096> buffer;
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
        printed.output.append(buffer.data(), got);
    printed.status = ::pclose(pipe);
    return printed;
}

std::vector<Finding> examine_machine() {
    std::vector<Finding> findings{cpu()};
    for (Finding& finding : gpus()) findings.push_back(std::move(finding));
    findings.push_back(driver());
    findings.push_back(shared_library("cuda", {"libcuda.so.1"}, {}));
    findings.push_back(cupti());
    for (Finding& finding : python()) findings.push_back(std::move(finding));
    std::error_code ignored;
    findings.push_back(folder("working folder", fs::current_path(ignored).string()));
    findings.push_back(folder("temporary folder", fs::temp_directory_path(ignored).string()));
    return findings;
}

}  // namespace ftax
