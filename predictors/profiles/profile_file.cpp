#include "predictors/profiles/profile_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "graphs/base/mapped.hpp"
#include "graphs/files/json_document.hpp"

namespace ftax {
namespace {

using nlohmann::ordered_json;

/// What a kind of profile calls the scopes of a parameter; empty where it has none.
struct ScopeNames {
    std::string_view architecture, device, fields;
};
constexpr ScopeNames of_kernels{"architecture", "device", "name architecture device value relative_stddev source"};
constexpr ScopeNames of_calls{"", "machine", "name machine value relative_stddev source"};
constexpr ScopeNames of_frameworks{"", "", "name value relative_stddev source"};

constexpr int stranger = 1 << 16;

/// How far a parameter of the architecture named `key` is from `architecture`: 0 its own, `stranger` no kin.
int kinship_distance(Architecture architecture, std::span<const Architecture> kin, std::string_view key) {
    if (key == name_of(architecture)) return 0;
    const auto found = std::ranges::find_if(kin, [&](Architecture other) { return name_of(other) == key; });
    return found == kin.end() ? stranger : static_cast<int>(found - kin.begin()) + 1;
}

constexpr auto in_order = [](const ScopedParameter& a, const ScopedParameter& b) {
    return std::tie(a.parameter.name, a.scope, a.key) < std::tie(b.parameter.name, b.scope, b.key);
};

ScopedParameter parse_parameter(const JsonField& field, const ScopeNames& names) {
    field.allow(names.fields);
    ScopedParameter scoped{{field["name"].text(), field["value"].positive(), 0, {}}, ParameterScope::shared, {}};
    if (const auto spread = field.find("relative_stddev")) scoped.parameter.relative_stddev = spread->not_negative();
    scoped.parameter.source = field["source"].text();
    const auto architecture = names.architecture.empty() ? std::nullopt : field.find(names.architecture);
    const auto device = names.device.empty() ? std::nullopt : field.find(names.device);
    if (architecture && device) device->fail("cannot be combined with architecture");
    if (architecture) {
        scoped.scope = ParameterScope::architecture;
        scoped.key = architecture->text();
        if (!architecture_from_name(scoped.key)) architecture->fail("unknown architecture");
    } else if (device) {
        scoped.scope = ParameterScope::device;
        scoped.key = device->text();
    }
    return scoped;
}

std::vector<ScopedParameter> parse_parameters(const JsonField& root, const ScopeNames& names,
                                              std::span<const BuiltInParameter> built_in) {
    std::vector<ScopedParameter> parameters = mapped(built_in, [](const BuiltInParameter& p) {
        return ScopedParameter{
            {std::string(p.name), p.value, p.relative_stddev, std::string(p.source)}, p.scope, std::string(p.key)};
    });
    if (!built_in.empty()) return parameters;
    for (const JsonField& field : root["parameters"].elements()) {
        ScopedParameter parameter = parse_parameter(field, names);
        if (!parameters.empty() && !in_order(parameters.back(), parameter)) {
            const bool twice = !in_order(parameter, parameters.back());
            field["name"].fail(twice ? "occurs twice" : "is out of order; parameters are sorted by name");
        }
        parameters.push_back(std::move(parameter));
    }
    if (parameters.empty()) root["parameters"].fail("is empty");
    return parameters;
}

ordered_json to_json(std::vector<ScopedParameter> parameters, const ScopeNames& names) {
    std::ranges::sort(parameters, in_order);
    ordered_json list = ordered_json::array();
    for (const auto& [parameter, scope, key] : parameters) {
        ordered_json json = ordered_json::object();
        json["name"] = parameter.name;
        json["value"] = parameter.value;
        if (parameter.relative_stddev > 0) json["relative_stddev"] = parameter.relative_stddev;
        json["source"] = parameter.source;
        if (scope != ParameterScope::shared)
            json[std::string(scope == ParameterScope::device ? names.device : names.architecture)] = key;
        list.push_back(std::move(json));
    }
    return list;
}

/// Says in the source of a fitted value which rows it comes from: of the device's own kind, or of others.
void name_origin(Parameter& parameter, const std::string& origin) {
    constexpr std::string_view fitted = "fitted";
    if (parameter.source.starts_with(fitted)) parameter.source.replace(0, fitted.size(), origin);
}

/// Appends a parameter, or replaces the one of its name with it, whose scope is narrower: it comes later in the file.
Parameter& narrow(std::vector<Parameter>& parameters, const Parameter& parameter) {
    if (parameters.empty() || parameters.back().name != parameter.name) parameters.emplace_back();
    return parameters.back() = parameter;
}

/// Creates the common header of profiles. Out of memory, nlohmann's initializer-list constructor leaks and converting
/// null to an object crashes; therefore starts with an object and adds members individually.
ordered_json profile_of_kind(std::string_view kind) {
    ordered_json json = ordered_json::object();
    json["schema_version"] = 1;
    json["kind"] = kind;
    return json;
}

Factor factor_named(const JsonField& field) {
    if (const auto factor = factor_from_name(field.text())) return *factor;
    field.fail("is not a class of kernels");
}

}  // namespace

DeviceProfileFile parse_device_profile(std::string_view text, const std::string& origin,
                                       std::span<const BuiltInParameter> built_in) {
    const JsonField root =
        JsonField::parse(text, origin, "device", "schema_version kind version fitted_on partly_fitted_on parameters");
    DeviceProfileFile profile;
    profile.version = root["version"].text();
    if (const auto devices = root.find("fitted_on")) profile.fitted_on = devices->texts();
    if (const auto devices = root.find("partly_fitted_on")) {
        for (const JsonField& field : devices->elements()) {
            field.allow({"device", "kernels"});
            PartlyFittedDevice& device = profile.partly_fitted_on.emplace_back();
            device.slug = field["device"].text();
            for (const JsonField& kernels : field["kernels"].elements())
                device.kernels[static_cast<std::size_t>(factor_named(kernels))] = true;
        }
    }
    profile.parameters = parse_parameters(root, of_kernels, built_in);
    return profile;
}

HostProfileFile parse_host_profile(std::string_view text, const std::string& origin) {
    const JsonField root = JsonField::parse(text, origin, "host", "schema_version kind framework version parameters");
    return {root["framework"].text(), root["version"].text(), parse_parameters(root, of_calls, {})};
}

FrameworkProfile parse_framework_profile(std::string_view text, const std::string& origin,
                                         std::span<const BuiltInParameter> built_in) {
    const JsonField root = JsonField::parse(text, origin, "framework",
                                            "schema_version kind framework version host reference_cpu parameters");
    FrameworkProfile profile;
    profile.framework = root["framework"].text();
    profile.version = root["version"].text();
    profile.host = root["host"].text();
    if (const auto cpu = root.find("reference_cpu")) profile.reference_cpu = cpu->text();
    for (ScopedParameter& scoped : parse_parameters(root, of_frameworks, built_in))
        profile.parameters.push_back(std::move(scoped.parameter));
    return profile;
}

std::string to_text(DeviceProfileFile profile) {
    ordered_json json = profile_of_kind("device");
    json["version"] = profile.version;
    json["fitted_on"] = profile.fitted_on;
    if (!profile.partly_fitted_on.empty()) {
        ordered_json list = ordered_json::array();
        for (const PartlyFittedDevice& device : profile.partly_fitted_on) {
            ordered_json one = ordered_json::object();
            one["device"] = device.slug;
            ordered_json kernels = ordered_json::array();
            for (std::size_t f = 0; f < factor_count; ++f)
                if (device.kernels[f]) kernels.push_back(name_of(static_cast<Factor>(f)));
            one["kernels"] = std::move(kernels);
            list.push_back(std::move(one));
        }
        json["partly_fitted_on"] = std::move(list);
    }
    json["parameters"] = to_json(std::move(profile.parameters), of_kernels);
    return to_text(json);
}

std::string to_text(FrameworkProfile profile) {
    ordered_json json = profile_of_kind("framework");
    json["framework"] = profile.framework;
    json["version"] = profile.version;
    json["host"] = profile.host;
    if (!profile.reference_cpu.empty()) json["reference_cpu"] = profile.reference_cpu;
    const auto scoped = [](Parameter& parameter) { return ScopedParameter{std::move(parameter), {}, {}}; };
    json["parameters"] = to_json(mapped(profile.parameters, scoped), of_frameworks);
    return to_text(json);
}

std::string to_text(HostProfileFile profile) {
    ordered_json json = profile_of_kind("host");
    json["framework"] = profile.framework;
    json["version"] = profile.version;
    json["parameters"] = to_json(std::move(profile.parameters), of_calls);
    return to_text(json);
}

const ScopedParameter* find_architecture_parameter(const DeviceProfileFile& file, std::string_view name,
                                                   Architecture architecture) {
    const ScopedParameter* nearest = nullptr;
    int least = stranger;
    for (const ScopedParameter& scoped : file.parameters) {
        if (scoped.scope != ParameterScope::architecture || scoped.parameter.name != name) continue;
        const int distance = kinship_distance(architecture, kin_of(architecture), scoped.key);
        if (distance >= least) continue;
        least = distance;
        nearest = &scoped;
    }
    return nearest;
}

/// Returns the kernel classes of `device` whose measurements were used in the profile.
static FactorSet fitted_kernels(const DeviceProfileFile& file, const DeviceSpec& device) {
    FactorSet all;
    all.fill(true);
    if (std::ranges::find(file.fitted_on, device.slug) != file.fitted_on.end()) return all;
    const auto partly = std::ranges::find(file.partly_fitted_on, device.slug, &PartlyFittedDevice::slug);
    return partly == file.partly_fitted_on.end() ? FactorSet{} : partly->kernels;
}

DeviceProfile compose(const DeviceProfileFile& file, const DeviceSpec& device) {
    DeviceProfile profile{.device = device, .parameters = {}, .version = file.version, .warnings = {}, .factors = {}};
    profile.measured = fitted_kernels(file, device);
    const bool fitted_on = profile.measured[static_cast<std::size_t>(Factor::card)];
    bool own = fitted_on;
    int last_distance = 0;
    for (const ScopedParameter& scoped : file.parameters) {
        const bool of_architecture = scoped.scope == ParameterScope::architecture;
        if (scoped.scope == ParameterScope::device && scoped.key != device.slug) continue;
        const int distance = of_architecture ? kinship_distance(device.architecture, device.chip().kin, scoped.key) : 0;
        if (distance == stranger) continue;
        own = own || scoped.scope == ParameterScope::device;
        const bool again = !profile.parameters.empty() && profile.parameters.back().name == scoped.parameter.name;
        if (again && of_architecture && distance > last_distance) continue;  // of nearer kin
        last_distance = of_architecture ? distance : stranger;
        Parameter& narrowest = narrow(profile.parameters, scoped.parameter);
        if (scoped.scope == ParameterScope::shared) name_origin(narrowest, "shared");
        if (of_architecture && (distance > 0 || !fitted_on)) name_origin(narrowest, "inherited from " + scoped.key);
    }
    if (!own && profile.measured != FactorSet{}) {
        std::vector<std::string_view> names;
        for (std::size_t f = 0; f < factor_count; ++f)
            if (profile.measured[f]) names.push_back(description_of(static_cast<Factor>(f)));
        profile.warnings.push_back(
            fmt::format("{}: only {} were measured; other kernels are predicted from the datasheet", device.slug,
                        fmt::join(names, " and ")));
    } else if (!own) {
        constexpr std::size_t few = 3;
        const std::size_t others = file.fitted_on.size();
        profile.warnings.push_back(
            fmt::format("{}: not measured; predicted from the datasheet{}", device.slug,
                        others == 0    ? ""
                        : others > few ? fmt::format(" and measurements of {} other cards", others)
                                       : fmt::format(" and measurements of {}", fmt::join(file.fitted_on, ", "))));
    }
    return profile;
}

FrameworkProfile compose(const HostProfileFile& file, std::string_view device_slug) {
    FrameworkProfile profile{.framework = file.framework, .version = file.version, .host = "reference"};
    for (const ScopedParameter& scoped : file.parameters) {
        const bool of_machine = scoped.scope == ParameterScope::device;
        if (of_machine && scoped.key != device_slug) continue;
        if (of_machine) profile.host = scoped.key + " machine";
        Parameter& narrowest = narrow(profile.parameters, scoped.parameter);
        if (!of_machine) name_origin(narrowest, "shared");
    }
    return profile;
}

VarianceComponents parse_variance_components(std::string_view text, const std::string& origin) {
    const JsonField root = JsonField::parse(text, origin, "uncertainty", "schema_version kind source factors");
    VarianceComponents components{.of = {}, .source = root["source"].text()};
    std::array<bool, factor_count> seen{};
    for (const JsonField& field : root["factors"].elements()) {
        field.allow({"factor", "stddev"});
        const auto factor = static_cast<std::size_t>(factor_named(field["factor"]));
        if (std::exchange(seen[factor], true)) field["factor"].fail("occurs twice");
        components.of[factor] = field["stddev"].not_negative();
    }
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end())
        root["factors"].fail("lacks " + std::string(name_of(static_cast<Factor>(missing - seen.begin()))));
    return components;
}

std::string to_text(const VarianceComponents& components) {
    ordered_json json = profile_of_kind("uncertainty");
    json["source"] = components.source;
    ordered_json list = ordered_json::array();
    for (std::size_t f = 0; f < factor_count; ++f) {
        ordered_json one = ordered_json::object();
        one["factor"] = name_of(static_cast<Factor>(f));
        one["stddev"] = components.of[f];
        list.push_back(std::move(one));
    }
    json["factors"] = std::move(list);
    return to_text(json);
}

DeviceFactors prior_factors(const VarianceComponents& components) {
    DeviceFactors factors;
    for (std::size_t f = 0; f < factor_count; ++f) factors.covariance[f][f] = components.of[f] * components.of[f];
    return factors;
}

}  // namespace ftax
