#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ftax/version.hpp"
#include "graphs/files/json_document.hpp"
#include "graphs/files/number.hpp"
#include "predictors/profiles/parameters.hpp"
#include "predictors/profiles/profile_file.hpp"

namespace ftax {
namespace {

/// The values of an object by name; keys of JSON objects are sorted once parsed.
std::vector<Parameter> parse_values(const JsonField& root, std::string_view key) {
    std::vector<Parameter> values;
    if (const auto list = root.find(key))
        for (const JsonField& field : list->elements())
            values.push_back({field.key(), field.positive(), 0, root["source"].text()});
    return values;
}

}  // namespace

std::optional<int> version_number(std::string_view text) {
    const std::size_t dot = std::min(text.find_first_of(".-"), text.size());
    const auto major = parse_integer(text.substr(0, dot));
    const std::string_view rest = text.substr(std::min(dot + 1, text.size()));
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto minor = dot == text.size() ? std::optional<std::int64_t>(0) : parse_integer(digits);
    if (!major || !minor || *major < 0 || *major > 9999 || *minor < 0 || *minor > 99) return std::nullopt;
    return static_cast<int>(100 * *major + *minor);
}

Stack parse_stack(std::string_view text, const std::string& origin) {
    const JsonField root = JsonField::parse(text, origin, "stack",
                                            "schema_version kind framework also version libraries scale_log_stddev "
                                            "model_log_stddev reference_cpu groups source costs ratios");
    const auto number = version_number(root["version"].text());
    if (!number) root["version"].fail("is not a version such as \"2.4\"");
    Stack stack{.frameworks = {root["framework"].text()}, .version = *number};
    if (const auto also = root.find("also"))
        for (const JsonField& framework : also->elements()) stack.frameworks.push_back(framework.text());
    if (const auto libraries = root.find("libraries")) {
        libraries->allow({"cudnn"});
        if (const auto cudnn = libraries->find("cudnn")) stack.libraries.cudnn = cudnn->positive_count();
    }
    if (const auto spread = root.find("scale_log_stddev")) stack.scale_log_stddev = spread->not_negative();
    if (const auto spread = root.find("model_log_stddev")) stack.model_log_stddev = spread->not_negative();
    if (const auto cpu = root.find("reference_cpu")) stack.reference_cpu = cpu->text();
    if (const auto groups = root.find("groups")) {
        for (const JsonField& group : groups->elements()) {
            group.allow({"weight", "scale", "log_stddev"});
            stack.groups.push_back(
                {group["weight"].positive(), group["scale"].positive(), group["log_stddev"].positive()});
        }
    }
    stack.costs = parse_values(root, "costs");
    stack.ratios = parse_values(root, "ratios");
    return stack;
}

FrameworkProfile on_stack(FrameworkProfile profile, const Stack& stack, double relative_scale) {
    for (Parameter cost : stack.costs) {
        if (cost.name == "host.scale") {
            cost.value *= relative_scale;
            cost.relative_stddev = stack.scale_log_stddev;
            profile.groups = stack.groups;
            profile.reference_cpu = stack.reference_cpu;
            for (HostGroup& group : profile.groups) group.scale *= relative_scale;
        }
        set_parameter(profile.parameters, std::move(cost));
    }
    for (const Parameter& ratio : stack.ratios) {
        Parameter* cost = find_parameter(profile.parameters, ratio.name);
        if (!cost) continue;
        cost->source =
            fmt::format("{}, {}; times {:.3g}: {}", cost->source, profile.version, ratio.value, ratio.source);
        cost->value *= ratio.value;
    }
    if (Parameter* scale = find_parameter(profile.parameters, "host.scale"); scale && stack.costs.empty())
        scale->relative_stddev = std::hypot(scale->relative_stddev, stack.scale_log_stddev);
    if (Parameter* noise = find_parameter(profile.parameters, "noise.host"))
        noise->value = std::hypot(noise->value, stack.model_log_stddev);
    profile.version = fmt::format("{}.{}", stack.version / 100, stack.version % 100);
    return profile;
}

}  // namespace ftax
