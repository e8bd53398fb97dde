#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "ftax/device.hpp"
#include "ftax/equations.hpp"
#include "ftax/framework.hpp"
#include "ftax/version.hpp"
#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/number.hpp"
#include "predictors/profiles/device_file.hpp"
#include "predictors/profiles/parameters.hpp"
#include "predictors/profiles/profile_file.hpp"

namespace ftax {
namespace {

constexpr std::string_view call_host_folder = "profiles/hosts";
constexpr std::string_view default_call_host = "neusight-pytorch-2.1";
constexpr std::string_view reference_host = "reference";

/// In the order of their files.
constexpr BuiltInParameter built_in_parameters[] = {
#include "predictors/profiles/embedded/profiles.inc"
};

/// The folder whose profiles hold instead of the built-in ones; null without. Fits set it: what one wrote, the next
/// reads, and nothing is built in between.
const char* data_folder() {
    const char* folder = std::getenv("FTAX_DATA");
    if (!folder || !*folder) return nullptr;
    std::error_code problem;
    if (!std::filesystem::is_directory(folder, problem))
        throw_error(ErrorCode::profile, "FTAX_DATA: {} is not a folder", escape_terminal(folder));
    return folder;
}

/// A file below data/ that is parsed when it is asked for.
struct DataFile {
    std::string name;  ///< without folder and ending
    std::string path;  ///< for messages
    std::string_view text;
    std::span<const BuiltInParameter> parameters{};
    std::shared_ptr<const std::string> own{};  ///< the text, unless it is built in
};

DataFile read_data_file(const std::filesystem::path& path) {
    try {
        const auto text = std::make_shared<const std::string>(read_file(path.string()));
        return {path.stem().string(), escape_terminal(path.string()), *text, {}, text};
    } catch (const Error& error) {
        throw_error(ErrorCode::profile, "FTAX_DATA: {}", error.what());
    }
}

DataFile built_in_file(const EmbeddedFile& file) {
    const std::string_view stem = file.path.substr(0, file.path.rfind('.'));
    const auto* const first = std::ranges::lower_bound(built_in_parameters, file.path, {}, &BuiltInParameter::file);
    const auto* const last = std::ranges::upper_bound(built_in_parameters, file.path, {}, &BuiltInParameter::file);
    return {std::string(stem.substr(stem.rfind('/') + 1)), std::string(file.path), file.content, {first, last}};
}

DataFile data_file(const std::string& below_data) {
    if (const char* own = data_folder()) return read_data_file(fmt::format("{}/{}", own, below_data));
    const std::string path = "data/" + below_data;
    return built_in_file({path, embedded_text(path)});
}

/// The files of a folder below data/, in the order of their names, beside built-in ones where it has profiles alone.
std::vector<DataFile> data_files(std::string_view folder) {
    std::vector<DataFile> files;
    const std::string own = data_folder() ? fmt::format("{}/{}", data_folder(), folder) : "";
    std::error_code problem;
    if (!own.empty() && std::filesystem::exists(own, problem)) {  // WASI takes no name for the root folder
        for (const auto& entry : std::filesystem::directory_iterator(own, problem))
            if (entry.path().extension() == ".json") files.push_back(read_data_file(entry.path()));
        if (problem) throw_error(ErrorCode::profile, "FTAX_DATA: {}: {}", escape_terminal(own), problem.message());
        std::ranges::sort(files, {}, &DataFile::path);
        return files;
    }
    const std::string built_in = fmt::format("data/{}/", folder);
    for (const EmbeddedFile& file : embedded_files())
        if (file.path.starts_with(built_in) && file.path.ends_with(".json")) files.push_back(built_in_file(file));
    return files;
}

/// A profile in a file FRAMEWORK.json or FRAMEWORK@HOST.json, which is parsed when it is first asked for.
class NamedProfile {
  public:
    explicit NamedProfile(DataFile file)
        : framework(split_at(file.name, '@').first),
          host(framework == file.name ? reference_host : split_at(file.name, '@').second),
          file_(std::move(file)) {}
    /// Not by std::call_once: its C frames end a program that has a libgcc of its own where an exception passes.
    const FrameworkProfile& parsed() {
        const std::lock_guard lock(mutex_);
        if (!profile_) profile_ = parse_framework_profile(file_.text, file_.path, file_.parameters);
        if (profile_->framework == framework && profile_->host == host) return *profile_;
        throw_error(ErrorCode::profile, "{}: a file of this name holds the framework {} on the host {}", file_.path,
                    framework, host);
    }
    const std::string framework, host;

  private:
    DataFile file_;
    std::mutex mutex_;
    std::optional<FrameworkProfile> profile_;
};

std::list<NamedProfile>& framework_profiles() {
    static std::list<NamedProfile> profiles = [] {
        const std::vector<DataFile> files = data_files("profiles/frameworks");
        return std::list<NamedProfile>(files.begin(), files.end());
    }();
    return profiles;
}

std::vector<std::string> calibrated_frameworks() {
    std::vector<std::string> names;
    for (const NamedProfile& known : framework_profiles())
        if (names.empty() || names.back() != known.framework) names.push_back(known.framework);
    return names;
}

[[noreturn]] void fail_unknown(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
    throw_error(ErrorCode::usage, "unknown {} {}; available: {}", what, escape_terminal(name), fmt::join(known, ", "));
}

const VarianceComponents& variance_components() {
    static const DataFile file = data_file("profiles/uncertainty.json");
    static const VarianceComponents components = parse_variance_components(file.text, file.path);
    return components;
}

/// A stack in a file FRAMEWORK@VERSION.json, which is parsed when it is the nearest.
struct NamedStack {
    int version;
    DataFile file;
    std::optional<Stack> parsed{};
};

std::vector<NamedStack>& stacks_of(std::string_view framework) {
    static std::map<std::string, std::vector<NamedStack>, std::less<>> read;
    if (const auto known = read.find(framework); known != read.end()) return known->second;
    std::vector<NamedStack> stacks;
    for (DataFile& file : data_files("stacks")) {
        if (file.text.find(fmt::format("\"{}\"", framework)) == std::string::npos) continue;
        stacks.push_back({version_number(split_at(file.name, '@').second).value_or(0), std::move(file)});
    }
    return read.emplace(framework, std::move(stacks)).first->second;
}

/// The rows of a framework in data/profiles/evidence.csv, which `ftax_folds evidence` writes.
std::vector<MeasuredSet> read_evidence(const DataFile& file, std::string_view framework) {
    std::vector<MeasuredSet> sets;
    std::size_t line = 1;
    for_each_data_row(file.text, [&](DataRow row) {
        ++line;
        if (row.text(',') != framework) return;
        const std::string_view rows = row.text(',');
        const auto version = parse_integer(row.text(','));
        const auto precision = precision_from_name(row.text(','));
        const std::string_view card = row.text(',');
        const auto architecture = architecture_from_name(row.text(','));
        FactorSet kernels{};
        bool known = version && precision && architecture;
        for (const std::string_view name : words_of(row.text(','))) {
            const auto factor = factor_from_name(name);
            known &= factor.has_value();
            if (factor) kernels[static_cast<std::size_t>(*factor)] = true;
        }
        if (!known) throw_error(ErrorCode::profile, "{}:{}: unknown version, precision or kernels", file.path, line);
        sets.push_back(
            {std::string(rows), static_cast<int>(*version), *precision, std::string(card), *architecture, kernels});
    });
    return sets;
}

const std::vector<MeasuredSet>& evidence_of(std::string_view framework) {
    static const DataFile file = data_file("profiles/evidence.csv");
    static std::mutex mutex;
    static std::map<std::string, std::vector<MeasuredSet>, std::less<>> read;
    const std::lock_guard lock(mutex);
    const std::string_view kernels = kernels_of(framework);
    return kept_in(read, kernels, [&] { return read_evidence(file, kernels); });
}

/// The stack nearest to a version, the newer of two; null where a profile's own version is nearer or none was measured.
const Stack* nearest_stack(std::string_view framework, int version, std::optional<int> own) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    NamedStack* nearest = nullptr;
    const auto rank = [&](int other) { return std::pair(std::abs(other - version), -other); };
    for (NamedStack& stack : stacks_of(framework)) {
        if (own && rank(*own) <= rank(stack.version)) continue;
        if (nearest == nullptr || rank(stack.version) < rank(nearest->version)) nearest = &stack;
    }
    if (nearest == nullptr) return nullptr;
    if (!nearest->parsed) nearest->parsed = parse_stack(nearest->file.text, nearest->file.path);
    if (nearest->parsed->version != nearest->version || std::ranges::count(nearest->parsed->frameworks, framework) == 0)
        throw_error(ErrorCode::profile, "{}: its name or text is of another framework or version", nearest->file.path);
    return &*nearest->parsed;
}

const FrameworkProfile* reference_of(std::string_view framework) {
    for (NamedProfile& known : framework_profiles())
        if (known.framework == framework && known.host == reference_host) return &known.parsed();
    return nullptr;
}

std::optional<int> fitted_version(std::string_view framework) {
    const FrameworkProfile* reference = reference_of(framework);
    return reference == nullptr ? std::nullopt : version_number(reference->version);
}

double scale_of(const FrameworkProfile& profile) {
    const Parameter* found = find_parameter(profile.parameters, "host.scale");
    return found == nullptr ? 1 : found->value;
}

/// What an unmeasured version adds to the spread of the host's scale. Source: the ratios of the versions of PyTorch
/// that were measured lie within it.
constexpr double unmeasured_version_log_stddev = 0.12;

}  // namespace

const DeviceProfileFile& embedded_device_profile() {
    static const DataFile file = data_file("profiles/devices.json");
    static const DeviceProfileFile profile = parse_device_profile(file.text, file.path, file.parameters);
    return profile;
}

namespace {

/// The card that a profile was fitted on instead of this one: of the same datasheet but for the amount of memory (and
/// the base clock, which no model reads). What its rows say of clock and bandwidth holds for both.
const DeviceSpec* fitted_twin(const DeviceProfileFile& file, const DeviceSpec& spec) {
    if (is_cpu(spec) || std::ranges::count(file.fitted_on, spec.slug) > 0) return nullptr;
    const auto rates = [](const DeviceSpec& card) {
        return std::tie(card.architecture, card.compute_capability_major, card.compute_capability_minor, card.sms,
                        card.boost_clock_hz, card.memory_bandwidth_bytes_per_s, card.inline_ecc_share, card.l2_bytes,
                        card.l2_bytes_per_clock, card.power_limit_w, card.peak_flops_per_s);
    };
    for (const std::string& slug : file.fitted_on) {
        const std::string_view datasheet = embedded_text(fmt::format("data/devices/{}.json", slug));
        if (datasheet.find(name_of(spec.architecture)) == std::string_view::npos) continue;  // not worth parsing
        if (const DeviceSpec& card = device_spec(slug); rates(card) == rates(spec)) return &card;
    }
    return nullptr;
}

}  // namespace

DeviceProfile device_profile(std::string_view device, const std::string& profile_path) {
    const DeviceSpec spec = given_device(device);
    DeviceProfileFile own;
    if (!profile_path.empty()) own = parse_device_profile(read_file(profile_path), escape_terminal(profile_path));
    const DeviceProfileFile& file = profile_path.empty() ? embedded_device_profile() : own;
    const std::string_view board = split_at(spec.slug, '@').first;  // without a power mode or clock
    const DeviceSpec* twin = board == spec.slug ? fitted_twin(file, spec) : nullptr;
    DeviceProfile profile = compose(file, twin != nullptr ? *twin : board == spec.slug ? spec : device_spec(board));
    profile.device = spec;
    const std::vector<std::string> of_name = warnings_of_name(device);
    profile.warnings.insert(profile.warnings.begin(), of_name.begin(), of_name.end());
    if (twin != nullptr)
        profile.warnings.push_back(
            fmt::format("{}: measured as {}, the same board with another amount of memory", spec.slug, twin->slug));
    if (is_cpu(spec)) return profile;
    profile.factors = prior_factors(variance_components());
    if (spec.least_power_w) {
        // A module runs in any of its power modes: the shipped one, or the middle of their limits, 90 % inside.
        const double half_range = std::log(spec.power_limit_w / *spec.least_power_w) / 2;
        profile.factors.covariance[0][0] += half_range * half_range / (equations::normal_90 * equations::normal_90);
        if (spec.modes.empty()) {
            profile.factors.log_mean[0] = half_range;
        } else {
            profile.device = in_mode(spec, spec.modes.front());
            profile.device.least_power_w = spec.least_power_w;
        }
        const std::string mode =
            spec.modes.empty()
                ? fmt::format("the middle of its power modes, {:g} to {:g} W", *spec.least_power_w, spec.power_limit_w)
                : fmt::format("its power mode {0}, the default: name yours ({1}@{0})", spec.modes.front().name,
                              spec.slug);
        profile.warnings.push_back(fmt::format("{}: predicted for {}, or measure a run for --anchor", spec.slug, mode));
    }
    return profile;
}

std::vector<std::string> host_names(std::string_view framework) {
    std::vector<std::string> hosts;
    for (const NamedProfile& known : framework_profiles())
        if (known.framework == framework) hosts.push_back(known.host);
    return hosts;
}

namespace {

FrameworkProfile host_costs_of(std::string_view framework, std::string_view host, const std::string& profile_path) {
    if (!profile_path.empty()) {
        FrameworkProfile profile = parse_framework_profile(read_file(profile_path), escape_terminal(profile_path));
        if (profile.framework != framework) {
            profile.warnings.push_back(fmt::format("{}: host costs of {}, used for {}", escape_terminal(profile_path),
                                                   escape_terminal(profile.framework), framework));
            profile.framework = framework;
        }
        if (!host.empty() && normalized_name(host) != normalized_name(profile.host))
            profile.warnings.push_back(fmt::format("{}: host costs of {}, used for {}", escape_terminal(profile_path),
                                                   escape_terminal(profile.host), escape_terminal(host)));
        return profile;
    }
    const std::string wanted = normalized_name(framework);
    const std::string wanted_host = normalized_name(host.empty() ? reference_host : host);
    std::vector<std::string> hosts;
    for (NamedProfile& known : framework_profiles()) {
        if (normalized_name(known.framework) != wanted) continue;
        if (normalized_name(known.host) == wanted_host) return known.parsed();
        hosts.push_back(known.host);
    }
    if (!hosts.empty()) fail_unknown("host", host, hosts);
    if (!host.empty()) fail_unknown("framework with host costs", framework, calibrated_frameworks());
    FrameworkProfile fresh{.framework = std::string(framework),
                           .version = "uncalibrated",
                           .host = std::string(reference_host),
                           .warnings = {fmt::format("host costs of {} are initial values (not measured)", framework)}};
    const std::optional<int> newest = newest_version(framework);
    return newest ? at_version(std::move(fresh), *newest) : fresh;
}

}  // namespace

std::string_view kernels_of(std::string_view framework) noexcept {
    const std::string_view uncaptured = framework.substr(0, framework.find("-cuda-graph"));
    return uncaptured == "libtorch" || uncaptured == "torch" ? "pytorch-eager" : uncaptured;
}

FrameworkProfile framework_profile(std::string_view framework, std::string_view host, const std::string& profile_path) {
    FrameworkProfile profile = host_costs_of(framework, host, profile_path);
    profile.evidence = &evidence_of(profile.framework);
    return profile;
}

FrameworkProfile at_version(FrameworkProfile profile, int version) {
    const auto own = version_number(profile.version);
    const Stack* nearest = nearest_stack(profile.framework, version, own);
    if (nearest == nullptr && !own) return profile;
    if (nearest != nullptr) {
        const FrameworkProfile* reference = reference_of(profile.framework);
        const double relative_scale = reference == nullptr ? 1 : scale_of(profile) / scale_of(*reference);
        if (!own && !nearest->costs.empty()) profile.warnings.clear();  // initial values, which the stack replaces
        profile = on_stack(std::move(profile), *nearest, relative_scale);
    }
    if ((nearest == nullptr ? *own : nearest->version) == version) return profile;
    profile.warnings.push_back(fmt::format("host costs of {} {}, the nearest version measured, used for {}.{}",
                                           profile.framework, profile.version, version / 100, version % 100));
    if (Parameter* scale = find_parameter(profile.parameters, "host.scale"))
        scale->relative_stddev = std::hypot(scale->relative_stddev, unmeasured_version_log_stddev);
    return profile;
}

void set_libraries(LibraryVersions& libraries, std::string_view framework, int version) {
    const LibraryVersions defaults;
    const bool of_torch = framework.find("torch") != std::string_view::npos || framework == "cuda-graph";
    if (of_torch) libraries.torch = version;
    const std::string_view distribution = of_torch ? "pytorch-eager" : framework;
    const Stack* nearest = nearest_stack(distribution, version, fitted_version(distribution));
    if (nearest != nullptr && libraries.cudnn == defaults.cudnn) libraries.cudnn = nearest->libraries.cudnn;
}

std::optional<int> newest_version(std::string_view framework) {
    const std::optional<int> fitted = fitted_version(framework);
    const Stack* newest = nearest_stack(framework, std::numeric_limits<int>::max(), fitted);
    return newest == nullptr ? fitted : newest->version;
}

std::vector<std::string> call_host_names() {
    return mapped(data_files(call_host_folder), &DataFile::name);
}

FrameworkProfile call_host_profile(std::string_view device_slug, const std::string& profile) {
    if (profile.ends_with(".json"))
        return compose(parse_host_profile(read_file(profile), escape_terminal(profile)), device_slug);
    const std::string_view name = profile.empty() ? default_call_host : profile;
    for (const DataFile& file : data_files(call_host_folder))
        if (file.name == name) return compose(parse_host_profile(file.text, file.path), device_slug);
    fail_unknown("host profile", name, call_host_names());
}

}  // namespace ftax
