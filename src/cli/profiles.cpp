#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "ftax/version.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "predictors/profiles/device_file.hpp"
#include "src/cli/verbs.hpp"
#include "src/report/quantities.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using report::Columns;
using report::Unit;
namespace {

struct ProfilesArguments {
    std::string name;
    OutputArguments output;
};

struct ProfileView {
    std::string title, version;
    std::vector<Parameter> parameters;
};

[[noreturn]] void fail_unknown(const std::string& name) {
    std::vector<std::string> names = framework_names();
    for (std::string& host : call_host_names()) names.push_back(std::move(host));
    for (std::string& slug : device_slugs()) names.push_back(std::move(slug));
    const std::vector<std::string> near = near_names(name, names);
    throw_error(ErrorCode::usage, "no device or framework named '{}'{}; `ftax profiles list` shows all",
                escape_terminal(name), near.empty() ? "" : fmt::format(" (near: {})", fmt::join(near, ", ")));
}

ProfileView view_of(const FrameworkProfile& profile, std::string_view name) {
    return {fmt::format("{}@{}", name, profile.host), profile.version, profile.parameters};
}

ProfileView view_of(const std::string& name) {
    const auto [host, after_at] = split_at(name, '@');
    if (std::ranges::count(call_host_names(), host) > 0)
        return view_of(call_host_profile(after_at.empty() ? "" : device_spec(after_at).slug, std::string(host)), host);
    const std::string framework = framework_name(host);
    if (std::ranges::count(framework_names(), framework) == 0) {
        try {
            DeviceProfile profile = device_profile(name);
            return {profile.device.slug, profile.version, std::move(profile.parameters)};
        } catch (const Error& error) {
            if (error.code() != ErrorCode::usage || name.ends_with(".json")) throw;
            fail_unknown(name);
        }
    }
    LibraryVersions libraries;
    const bool is_version = version_number(after_at).has_value();
    const scenario::RunArguments run{.framework = is_version ? name : framework,
                                     .host = is_version ? "" : std::string(after_at)};
    return view_of(scenario::resolve_framework(run, libraries), framework);
}

int run_list(const ProfilesArguments& arguments) {
    std::vector<ProfileView> views;
    for (const std::string& framework : framework_names())
        for (const std::string& host : host_names(framework))
            views.push_back(view_of(fmt::format("{}@{}", framework, host)));
    for (const std::string& host : call_host_names()) views.push_back(view_of(host));
    for (const std::string& slug : device_slugs()) views.push_back(view_of(slug));
    const report::Grid list = Columns<ProfileView>{
        {"name", "profile", Unit::text, &ProfileView::title},
        {"version", "version", Unit::text, &ProfileView::version},
        {"parameters", "parameters", Unit::plain, [](const ProfileView& view) {
             return view.parameters.size();
         }}}.select(views);
    return write_result(arguments.output, forms_of(list, "profiles", ""));
}

int run_show(const ProfilesArguments& arguments) {
    const ProfileView view = view_of(arguments.name);
    constexpr int digits = 5;  // parameters span from 1e-6 s to 1e6 bytes
    const report::Grid list = report::parameter_columns(digits).select(view.parameters);
    const report::Json json{{"name", view.title}, {"version", view.version}, {"parameters", list.json()}};
    const std::string version = view.version.empty() ? "none" : view.version;
    const auto table = [&](report::Style style) {
        return fmt::format("{}, version {}\n\n{}", view.title, version, list.print(style));
    };
    return write_result(arguments.output, {.table = table, .json = [&] { return report::document(json); }});
}

}  // namespace

void setup_profiles(CLI::App& verb, Action& action) {
    const auto arguments = std::make_shared<ProfilesArguments>();
    CLI::App& list = add_part(verb, action, arguments, "list", "all profiles and their versions (default)", run_list);
    CLI::App& show =
        add_part(verb, action, arguments, "show", "parameters of one profile, each with its source", run_show);
    show.add_option("PROFILE", arguments->name,
                    "a device, FRAMEWORK[@VERSION|@HOST], or a host profile of single calls[@DEVICE]")
        ->required();
    for (CLI::App* part : {&list, &show, &add_part(verb, action, arguments, "", "", run_list)})
        add_json_option(*part, arguments->output);
}

}  // namespace ftax::cli
