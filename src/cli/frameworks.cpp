#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "ftax/framework.hpp"
#include "src/cli/output.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/json_document.hpp"
#include "src/report/table.hpp"

namespace ftax::cli {
namespace {

/// Version of the framework that the host costs were measured on; empty where there are none yet.
std::string version_of(const std::string& framework) {
    return host_names(framework).empty() ? "" : framework_profile(framework).version;
}

std::string frameworks_table() {
    report::Table table({{"framework", report::Align::left}, {"version"}, {"hosts", report::Align::left}});
    for (const std::string& name : framework_names()) {
        const std::vector<std::string> hosts = host_names(name);
        table.add({{name},
                   {version_of(name)},
                   {hosts.empty() ? "not calibrated" : fmt::format("{}", fmt::join(hosts, ", "))}});
    }
    return table.print(report::standard_output_style());
}

std::string frameworks_json() {
    nlohmann::ordered_json json = {{"schema_version", 1}, {"frameworks", nlohmann::ordered_json::array()}};
    for (const std::string& name : framework_names()) {
        json["frameworks"].push_back({{"name", name}, {"version", version_of(name)}, {"hosts", host_names(name)}});
    }
    return to_text(json);
}

int run_frameworks(const OutputArguments& output) {
    write_result(output, {.table = frameworks_table, .json = frameworks_json, .csv = {}});
    return 0;
}

}  // namespace

void setup_frameworks(CLI::App& app, Action& action) {
    CLI::App* verb = app.add_subcommand("frameworks", "frameworks, and the hosts they are calibrated on");
    const auto output = std::make_shared<OutputArguments>();
    add_json_option(*verb, *output);
    verb->callback([output, &action] { action = [output] { return run_frameworks(*output); }; });
}

}  // namespace ftax::cli
