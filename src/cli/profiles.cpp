#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "src/cli/verbs.hpp"
#include "src/core/near_names.hpp"
#include "src/io/escape.hpp"
#include "src/io/json_document.hpp"
#include "src/report/quantities.hpp"

namespace ftax::cli {
using report::Columns;
using report::Unit;
using report::Value;
namespace {

struct ProfilesArguments {
    std::string name;
    OutputArguments output;
};

/// Returns the fitted parameters of the device, framework or single calls of that name.
struct ProfileView {
    std::string title, version;
    std::vector<Parameter> parameters;
};

[[noreturn]] void fail_unknown(const std::string& name) {
    std::vector<std::string> names = framework_names();
    for (std::string& host : call_host_names()) names.push_back(std::move(host));
    for (const DeviceSpec& device : device_specs()) names.push_back(device.slug);
    const std::vector<std::string> near = near_names(name, names);
    throw Error(ErrorCode::usage, fmt::format("no device or framework named '{}'{}; `ftax profiles list` shows all",
                                              escape_terminal(name),
                                              near.empty() ? "" : fmt::format(" (near: {})", fmt::join(near, ", "))));
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

int write_list(const OutputArguments& output, const std::string& table, const report::Json& json) {
    write_result(output, {.table = [&] { return table; }, .json = [&] { return to_text(json); }});
    return 0;
}

int run_list(const ProfilesArguments& arguments) {
    std::vector<ProfileView> views;
    for (const std::string& framework : framework_names()) {
        for (const std::string& host : host_names(framework)) views.push_back(view_of(framework + "@" + host));
    }
    for (const std::string& host : call_host_names()) views.push_back(view_of(host));
    for (const DeviceSpec& device : device_specs()) views.push_back(view_of(device.slug));
    const report::Grid list = Columns<ProfileView>{
        {"name", "profile", Unit::text, &ProfileView::title},
        {"version", "version", Unit::text, &ProfileView::version},
        {"parameters", "parameters", Unit::plain, [](const ProfileView& view) {
             return view.parameters.size();
         }}}.select(views);
    return write_list(arguments.output, list.print(report::standard_output_style()),
                      {{"schema_version", 1}, {"profiles", list.json()}});
}

int run_show(const ProfilesArguments& arguments) {
    const ProfileView view = view_of(arguments.name);
    constexpr int digits = 5;  // parameters span from 1e-6 s to 1e6 bytes
    const report::Grid list = report::parameter_columns(digits).select(view.parameters);
    return write_list(
        arguments.output,
        fmt::format("{}, version {}\n\n{}", view.title, view.version.empty() ? "none" : view.version,
                    list.print(report::standard_output_style())),
        {{"schema_version", 1}, {"name", view.title}, {"version", view.version}, {"parameters", list.json()}});
}

}  // namespace

void setup_profiles(Verb app, Action& action) {
    const Verb verb = app.add_subcommand("profiles", "fitted parameters of devices, frameworks and hosts");
    const auto arguments = std::make_shared<ProfilesArguments>();
    const auto setup = [&](const char* name, const char* description, int (*run)(const ProfilesArguments&)) {
        const Verb part = verb.add_subcommand(name, description);
        add_json_option(part, arguments->output);
        part.callback([arguments, &action, run] { action = [arguments, run] { return run(*arguments); }; });
        return part;
    };
    setup("list", "all profiles and their versions (default)", run_list);
    setup("show", "parameters of one profile, each with its source", run_show)
        .add_option("PROFILE", arguments->name,
                    "a device, FRAMEWORK[@HOST], or a host profile of single calls[@DEVICE]")
        .required();
    add_json_option(verb, arguments->output);
    verb.callback([arguments, &action] {
        if (!action) action = [arguments] { return run_list(*arguments); };
    });
}

}  // namespace ftax::cli
