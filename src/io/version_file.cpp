#include "src/io/version_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ftax/version.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"

namespace ftax {
namespace {

std::vector<Parameter> parse_ratios(const JsonField& list) {
    std::vector<Parameter> ratios;
    for (const JsonField& field : list.elements()) {
        field.allow({"name", "value", "source"});
        Parameter ratio{field["name"].text(), field["value"].positive(), 0, field["source"].text()};
        if (!ratios.empty() && ratios.back().name >= ratio.name)
            field["name"].fail("is out of order; parameters are sorted by name");
        ratios.push_back(std::move(ratio));
    }
    return ratios;
}

Parameter* find(FrameworkProfile& profile, std::string_view name) {
    const auto found = std::find_if(profile.parameters.begin(), profile.parameters.end(),
                                    [&](const Parameter& p) { return p.name == name; });
    return found == profile.parameters.end() ? nullptr : &*found;
}

}  // namespace

std::optional<int> version_number(std::string_view text) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    const auto major = parse_integer(text.substr(0, dot));
    const std::string_view rest = text.substr(std::min(dot + 1, text.size()));
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto minor = dot == text.size() ? std::optional<std::int64_t>(0) : parse_integer(digits);
    if (!major || !minor || *major < 0 || *major > 99 || *minor < 0 || *minor > 99) return std::nullopt;
    return static_cast<int>(100 * *major + *minor);
}

std::vector<VersionRatios> parse_versions(std::string_view text, const std::string& origin) {
    nlohmann::json document = parse_json(text, origin);
    migrate_schema(document, origin);
    const JsonField root(document, origin);
    root.allow({"schema_version", "kind", "versions"});
    check_kind(root, "versions");
    std::vector<VersionRatios> versions;
    for (const JsonField& field : root["versions"].elements()) {
        field.allow({"framework", "version", "shared_log_stddev", "model_log_stddev", "ratios"});
        const auto number = version_number(field["version"].text());
        if (!number) field["version"].fail("is no version as in \"2.4\"");
        VersionRatios version{field["framework"].text(), *number, field["shared_log_stddev"].not_negative(),
                              field["model_log_stddev"].not_negative(), parse_ratios(field["ratios"])};
        if (!versions.empty() && std::tie(versions.back().framework, versions.back().version) >=
                                     std::tie(version.framework, version.version))
            field["version"].fail("is out of order; sorted by framework, then version");
        versions.push_back(std::move(version));
    }
    return versions;
}

FrameworkProfile carried(FrameworkProfile profile, const VersionRatios& version) {
    for (const Parameter& ratio : version.ratios) {
        Parameter* cost = find(profile, ratio.name);
        if (!cost) continue;
        cost->source =
            fmt::format("{}, {}; times {:.3g}: {}", cost->source, profile.version, ratio.value, ratio.source);
        cost->value *= ratio.value;
    }
    if (Parameter* scale = find(profile, "host.scale"))
        scale->relative_stddev = std::hypot(scale->relative_stddev, version.shared_log_stddev);
    if (Parameter* noise = find(profile, "noise.host"))
        noise->value = std::hypot(noise->value, version.model_log_stddev);
    profile.version = fmt::format("{}.{}", version.version / 100, version.version % 100);
    return profile;
}

}  // namespace ftax
