#include <fmt/format.h>

#include <algorithm>

#include "ftax/framework.hpp"
#include "ftax/version.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {
namespace {

/// Returns the newest version with measured host costs; empty if there is none yet.
std::string version_of(const std::string& framework) {
    const FrameworkProfile profile = framework_profile(framework);
    const auto newest = newest_version(framework);
    if (newest && newest != version_number(profile.version)) return fmt::format("{}.{}", *newest / 100, *newest % 100);
    return profile.warnings.empty() ? profile.version : "";  // warnings mean that nothing was measured
}

const report::Columns<const FrameworkModel*>& framework_columns() {
    using Model = const FrameworkModel*;
    using report::Unit;
    static const report::Columns<Model> columns{
        {"name", "framework", Unit::text, [](const Model& model) { return model->name; }},
        {"description", "description", Unit::text, [](const Model& model) { return model->description; }},
        {"version", "newest measured", Unit::text,
         [](const Model& model) {
             const std::string version = version_of(std::string(model->name));
             return version.empty() ? report::Value(version, "initial values") : report::Value(version);
         }},
        {"hosts", "hosts", Unit::text, [](const Model& model) { return host_names(std::string(model->name)); }}};
    return columns;
}

using HostAndFrameworks = std::pair<std::string, std::string>;

std::vector<HostAndFrameworks> calibrated_hosts() {
    std::vector<HostAndFrameworks> hosts;
    for (const FrameworkModel* model : framework_models()) {
        for (const std::string& host : host_names(std::string(model->name))) {
            auto known = std::ranges::find(hosts, host, &HostAndFrameworks::first);
            if (known == hosts.end()) known = hosts.insert(known, {host, ""});
            known->second += (known->second.empty() ? "" : ", ") + std::string(model->name);
        }
    }
    return hosts;
}

int run_frameworks(const OutputArguments& output) {
    const report::Columns<HostAndFrameworks> calibrated{
        {"", "host", report::Unit::text, &HostAndFrameworks::first},
        {"", "frameworks", report::Unit::text, &HostAndFrameworks::second}};
    const report::Grid all = framework_columns().select(framework_models());
    Forms forms = forms_of(all, "frameworks", "");
    forms.table = [&](report::Style style) {
        return framework_columns().print(framework_models(), "name version description", style) + "\n" +
               calibrated.print(calibrated_hosts(), "", style);
    };
    return write_result(output, forms);
}

}  // namespace

void setup_frameworks(CLI::App& verb, Action& action) {
    add_json_option(verb, run_with(verb, action, run_frameworks));
}

}  // namespace ftax::cli
