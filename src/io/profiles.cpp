#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"
#include "src/io/escape.hpp"
#include "src/io/file.hpp"
#include "src/io/profile_file.hpp"

namespace ftax {
namespace {

constexpr std::string_view device_profile_path = "data/profiles/devices.json";
constexpr std::string_view framework_folder = "data/profiles/frameworks/";
constexpr std::string_view call_host_folder = "data/profiles/hosts/";
constexpr std::string_view default_call_host = "neusight-pytorch-2.1";
constexpr std::string_view profile_ending = ".json";
constexpr std::string_view reference_host = "reference";
constexpr std::uint64_t max_file_bytes = 64 << 20;

/// A file FRAMEWORK.json or FRAMEWORK@HOST.json of host costs, read when it is asked for: they are many, and a
/// prediction needs one.
class EmbeddedHost {
  public:
    explicit EmbeddedHost(const EmbeddedFile& file) : file_(file) {
        const std::string_view name = file.path.substr(framework_folder.size());
        const std::string_view stem = name.substr(0, name.rfind('.'));
        const std::size_t at = stem.find('@');
        framework = stem.substr(0, at);
        host = at == std::string_view::npos ? reference_host : stem.substr(at + 1);
    }

    std::string framework, host;

    [[nodiscard]] const FrameworkProfile& profile() const {
        std::call_once(read_, [&] { profile_ = parse_framework_profile(file_.content, std::string(file_.path)); });
        return profile_;
    }

  private:
    const EmbeddedFile& file_;
    mutable std::once_flag read_;
    mutable FrameworkProfile profile_;
};

const std::deque<EmbeddedHost>& embedded_hosts() {
    static const std::deque<EmbeddedHost> hosts = [] {
        std::deque<EmbeddedHost> result;
        for (const EmbeddedFile& file : embedded_files()) {
            if (file.path.starts_with(framework_folder)) result.emplace_back(file);
        }
        return result;
    }();
    return hosts;
}

std::vector<std::string> calibrated_frameworks() {
    std::vector<std::string> names;
    for (const EmbeddedHost& host : embedded_hosts()) {
        if (names.empty() || names.back() != host.framework) names.push_back(host.framework);
    }
    return names;
}

[[noreturn]] void fail_unknown(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
    throw Error(ErrorCode::usage,
                fmt::format("no {} is called {}; there is {}", what, escape_terminal(name), fmt::join(known, ", ")));
}

}  // namespace

const DeviceProfileFile& embedded_device_profile() {
    static const DeviceProfileFile profile = [] {
        for (const EmbeddedFile& file : embedded_files()) {
            if (file.path == device_profile_path) return parse_device_profile(file.content, std::string(file.path));
        }
        return DeviceProfileFile{"unfitted", {}, {}};
    }();
    return profile;
}

DeviceProfile device_profile(std::string_view device, const std::string& profile_path) {
    const DeviceSpec spec = device.ends_with(".json") ? read_device_spec(std::string(device)) : device_spec(device);
    if (profile_path.empty()) return compose(embedded_device_profile(), spec);
    return compose(parse_device_profile(read_file(profile_path, max_file_bytes), escape_terminal(profile_path)), spec);
}

std::vector<std::string> host_names(std::string_view framework) {
    std::vector<std::string> hosts;
    for (const EmbeddedHost& host : embedded_hosts()) {
        if (host.framework == framework) hosts.push_back(host.host);
    }
    return hosts;
}

FrameworkProfile framework_profile(std::string_view framework, std::string_view host, const std::string& profile_path) {
    if (!profile_path.empty()) {
        FrameworkProfile profile =
            parse_framework_profile(read_file(profile_path, max_file_bytes), escape_terminal(profile_path));
        if (profile.framework != framework) {
            profile.warnings.push_back(fmt::format("{}: host costs of {}, used for {}", escape_terminal(profile_path),
                                                   escape_terminal(profile.framework), framework));
            profile.framework = framework;
        }
        if (!host.empty() && normalized_name(host) != normalized_name(profile.host)) {
            profile.warnings.push_back(fmt::format("{}: host costs of {}, used for {}", escape_terminal(profile_path),
                                                   escape_terminal(profile.host), escape_terminal(host)));
        }
        return profile;
    }
    const std::string wanted = normalized_name(framework);
    const std::string wanted_host = normalized_name(host.empty() ? reference_host : host);
    std::vector<std::string> hosts;
    for (const EmbeddedHost& known : embedded_hosts()) {
        if (normalized_name(known.framework) != wanted) continue;
        if (normalized_name(known.host) == wanted_host) return known.profile();
        hosts.push_back(known.host);
    }
    if (!hosts.empty()) fail_unknown("host", host, hosts);
    if (!host.empty()) fail_unknown("framework with host costs", framework, calibrated_frameworks());
    return {.framework = std::string(framework),
            .version = "uncalibrated",
            .host = std::string(reference_host),
            .warnings = {fmt::format("host costs of {} are start values: no measurements went in", framework)}};
}

std::vector<std::string> call_host_names() {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with(call_host_folder)) continue;
        const std::string_view name = file.path.substr(call_host_folder.size());
        names.emplace_back(name.substr(0, name.size() - profile_ending.size()));
    }
    return names;
}

FrameworkProfile call_host_profile(std::string_view device_slug, const std::string& profile) {
    if (profile.ends_with(profile_ending)) {
        return compose(parse_host_profile(read_file(profile, max_file_bytes), escape_terminal(profile)), device_slug);
    }
    const std::string_view name = profile.empty() ? default_call_host : profile;
    const std::string path = fmt::format("{}{}{}", call_host_folder, name, profile_ending);
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path == path) return compose(parse_host_profile(file.content, path), device_slug);
    }
    fail_unknown("host profile", name, call_host_names());
}

}  // namespace ftax
