#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "src/cli/output.hpp"
#include "src/cli/verbs.hpp"
#include "src/core/near_names.hpp"
#include "src/io/escape.hpp"
#include "src/io/json_document.hpp"
#include "src/report/table.hpp"
#include "src/report/units.hpp"

namespace ftax::cli {
namespace {

struct ProfilesArguments {
    std::string name, other;
    OutputArguments output;
};

/// The fitted parameters of a device, of a framework or of single calls, whichever bears the name.
struct ProfileView {
    std::string title, version;
    std::vector<Parameter> parameters;
};

[[noreturn]] void fail_unknown(const std::string& name) {
    std::vector<std::string> names = framework_names();
    for (std::string& host : call_host_names()) names.push_back(std::move(host));
    for (const DeviceSpec& device : device_specs()) names.push_back(device.slug);
    const std::vector<std::string> near = near_names(name, names);
    throw Error(
        ErrorCode::usage,
        fmt::format("no device and no framework is called '{}'{}; `ftax profiles list` shows all",
                    escape_terminal(name), near.empty() ? "" : fmt::format(" (near: {})", fmt::join(near, ", "))));
}

ProfileView view_of(const FrameworkProfile& profile, std::string_view name) {
    return {fmt::format("{}@{}", name, profile.host), profile.version, profile.parameters};
}

ProfileView view_of(const std::string& name) {
    const std::size_t at = name.find('@');
    const std::string after_at = at == std::string::npos ? "" : name.substr(at + 1);
    const std::vector<std::string> hosts = call_host_names();
    if (const std::string host = name.substr(0, at); std::find(hosts.begin(), hosts.end(), host) != hosts.end()) {
        return view_of(call_host_profile(after_at.empty() ? after_at : device_spec(after_at).slug, host), host);
    }
    const std::string framework = framework_name(name.substr(0, at));
    const std::vector<std::string> frameworks = framework_names();
    if (std::find(frameworks.begin(), frameworks.end(), framework) == frameworks.end()) {
        try {
            DeviceProfile profile = device_profile(name);
            return {profile.device.slug, profile.version, std::move(profile.parameters)};
        } catch (const Error& error) {
            if (error.code() != ErrorCode::usage || name.ends_with(".json")) throw;
            fail_unknown(name);
        }
    }
    return view_of(framework_profile(framework, after_at), framework);
}

/// Five significant digits: parameters span from 1e-6 s to 1e6 bytes.
std::string value_text(double value) {
    return fmt::format("{:.5g}", value);
}

int run_list(const ProfilesArguments& arguments) {
    std::vector<ProfileView> views;
    for (const std::string& framework : framework_names()) {
        for (const std::string& host : host_names(framework)) views.push_back(view_of(framework + "@" + host));
    }
    for (const std::string& host : call_host_names()) views.push_back(view_of(host));
    for (const DeviceSpec& device : device_specs()) views.push_back(view_of(device.slug));
    const auto table = [&] {
        report::Table rows({{"profile", report::Align::left}, {"version", report::Align::left}, {"parameters"}});
        for (const ProfileView& view : views) {
            rows.add({{view.title}, {view.version}, {std::to_string(view.parameters.size())}});
        }
        return rows.print(report::standard_output_style());
    };
    const auto json = [&] {
        auto list = nlohmann::ordered_json::array();
        for (const ProfileView& view : views) {
            list.push_back({{"name", view.title}, {"version", view.version}, {"parameters", view.parameters.size()}});
        }
        return to_text(nlohmann::ordered_json{{"schema_version", 1}, {"profiles", std::move(list)}});
    };
    write_result(arguments.output, {.table = table, .json = json, .csv = {}});
    return 0;
}

int run_show(const ProfilesArguments& arguments) {
    const ProfileView view = view_of(arguments.name);
    const auto table = [&] {
        report::Table rows(
            {{"parameter", report::Align::left}, {"value"}, {"uncertainty"}, {"source", report::Align::left}});
        for (const Parameter& p : view.parameters) {
            rows.add({{p.name},
                      {value_text(p.value)},
                      {p.relative_stddev > 0 ? "± " + report::percent(p.relative_stddev) : "unknown"},
                      {p.source}});
        }
        return fmt::format("{}, version {}\n\n{}", view.title, view.version.empty() ? "none" : view.version,
                           rows.print(report::standard_output_style()));
    };
    const auto json = [&] {
        auto list = nlohmann::ordered_json::array();
        for (const Parameter& p : view.parameters) {
            list.push_back(
                {{"name", p.name}, {"value", p.value}, {"relative_stddev", p.relative_stddev}, {"source", p.source}});
        }
        return to_text(nlohmann::ordered_json{
            {"schema_version", 1}, {"name", view.title}, {"version", view.version}, {"parameters", std::move(list)}});
    };
    write_result(arguments.output, {.table = table, .json = json, .csv = {}});
    return 0;
}

/// Parameters that differ, or that only one of the two profiles has.
int run_diff(const ProfilesArguments& arguments) {
    const ProfileView first = view_of(arguments.name);
    const ProfileView second = view_of(arguments.other);
    std::map<std::string, std::pair<const Parameter*, const Parameter*>> pairs;
    for (const Parameter& p : first.parameters) pairs[p.name].first = &p;
    for (const Parameter& p : second.parameters) pairs[p.name].second = &p;
    std::erase_if(pairs, [](const auto& entry) {
        const auto [a, b] = entry.second;
        return a && b && a->value == b->value;
    });
    const auto table = [&] {
        report::Table rows({{"parameter", report::Align::left}, {first.title}, {second.title}, {"ratio"}});
        for (const auto& [name, pair] : pairs) {
            const auto [a, b] = pair;
            rows.add({{name},
                      {a ? value_text(a->value) : "unset"},
                      {b ? value_text(b->value) : "unset"},
                      {a && b ? value_text(b->value / a->value) : ""}});
        }
        return rows.empty() ? std::string("no parameter differs\n") : rows.print(report::standard_output_style());
    };
    const auto json = [&] {
        auto list = nlohmann::ordered_json::array();
        const auto value = [](const Parameter* p) { return p ? nlohmann::ordered_json(p->value) : nullptr; };
        for (const auto& [name, pair] : pairs) {
            list.push_back({{"name", name}, {"first", value(pair.first)}, {"second", value(pair.second)}});
        }
        return to_text(nlohmann::ordered_json{
            {"schema_version", 1}, {"first", first.title}, {"second", second.title}, {"differences", std::move(list)}});
    };
    write_result(arguments.output, {.table = table, .json = json, .csv = {}});
    return 0;
}

}  // namespace

void setup_profiles(CLI::App& app, Action& action) {
    CLI::App* verb = app.add_subcommand("profiles", "fitted parameters of devices, frameworks and hosts");
    verb->require_subcommand(1);
    const auto arguments = std::make_shared<ProfilesArguments>();
    const auto setup = [&](const char* name, const char* description, int (*run)(const ProfilesArguments&)) {
        CLI::App* part = verb->add_subcommand(name, description);
        add_json_option(*part, arguments->output);
        part->callback([arguments, &action, run] { action = [arguments, run] { return run(*arguments); }; });
        return part;
    };
    setup("list", "all profiles and their versions", run_list);
    const char* name_help = "a device, FRAMEWORK[@HOST], or a host profile of single calls[@DEVICE]";
    setup("show", "parameters of one profile, each with its source", run_show)
        ->add_option("PROFILE", arguments->name, name_help)
        ->required();
    CLI::App* diff = setup("diff", "parameters in which two profiles differ", run_diff);
    diff->add_option("FIRST", arguments->name, name_help)->required();
    diff->add_option("SECOND", arguments->other, name_help)->required();
}

}  // namespace ftax::cli
