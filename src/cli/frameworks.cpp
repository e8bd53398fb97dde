#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "ftax/framework.hpp"
#include "predictors/frameworks/framework_model.hpp"
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
    report::Table frameworks({{"framework", report::Align::left},
                              {"calibrated", report::Align::left},
                              {"description", report::Align::left}});
    std::vector<std::string> hosts;  // in the order of their first framework
    std::map<std::string, std::vector<std::string>> frameworks_of;
    for (const FrameworkModel* model : framework_models()) {
        const std::string name(model->name);
        const std::string version = version_of(name);
        frameworks.add({{name}, {version.empty() ? "start values" : version}, {std::string(model->description)}});
        for (const std::string& host : host_names(name)) {
            if (frameworks_of[host].empty()) hosts.push_back(host);
            frameworks_of[host].push_back(name);
        }
    }
    report::Table calibrated({{"host", report::Align::left}, {"frameworks", report::Align::left}});
    for (const std::string& host : hosts) {
        calibrated.add({{host}, {fmt::format("{}", fmt::join(frameworks_of.at(host), ", "))}});
    }
    const report::Style style = report::standard_output_style();
    return frameworks.print(style) + "\n" + calibrated.print(style);
}

std::string frameworks_json() {
    nlohmann::ordered_json json = {{"schema_version", 1}, {"frameworks", nlohmann::ordered_json::array()}};
    for (const FrameworkModel* model : framework_models()) {
        const std::string name(model->name);
        json["frameworks"].push_back({{"name", name},
                                      {"description", model->description},
                                      {"version", version_of(name)},
                                      {"hosts", host_names(name)}});
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
