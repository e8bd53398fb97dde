#include <memory>
#include <string>
#include <vector>

#include "ftax/device.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/files/file.hpp"
#include "predictors/profiles/device_file.hpp"
#include "src/cli/verbs.hpp"
#include "src/report/device_report.hpp"

namespace ftax::cli {
namespace {

struct DevicesOptions {
    std::vector<std::string> devices;  ///< names or datasheet files
    OutputArguments output;
};

int list_devices(const DevicesOptions& options) {
    return write_result(options.output,
                        {.table = [](report::Style style) { return report::device_list_table(device_specs(), style); },
                         .json = [] { return report::device_list_json(device_specs()); }});
}

int diff_devices(const DevicesOptions& options) {
    std::vector<DeviceSpec> devices;
    for (const std::string& device : options.devices) devices.push_back(given_device(device));
    return write_result(options.output,
                        {.table = [&](report::Style style) { return report::device_diff_table(devices, style); },
                         .json = [&] { return report::device_diff_json(devices); }});
}

/// Shows the datasheet, or what a setting changes of it; the JSON form is the file itself, with sources and notes.
int show_device(const DevicesOptions& options) {
    const std::string& device = options.devices.front();
    const DeviceSpec checked = given_device(device);
    const std::string board(split_at(checked.slug, '@').first);
    if (board != checked.slug) return diff_devices({{board, device}, options.output});
    std::string text = device.ends_with(".json") ? read_file(device) : std::string(device_text(board));
    return write_result(options.output,
                        {.table = [&](report::Style style) { return report::device_table(text, style); },
                         .json = [&] { return text; }});
}

}  // namespace

void setup_devices(CLI::App& verb, Action& action) {
    const auto options = std::make_shared<DevicesOptions>();
    CLI::App& list = add_part(verb, action, options, "list", "all devices (default)", list_devices);
    CLI::App& show = add_part(verb, action, options, "show", "one datasheet, each number with its source", show_device);
    show.add_option("DEVICE", options->devices, "name or datasheet file")->required()->expected(1);
    CLI::App& diff = add_part(verb, action, options, "diff", "compare devices with the first one", diff_devices);
    diff.add_option("DEVICE", options->devices, "names or datasheet files")->required()->expected(2, 16);
    for (CLI::App* part : {&list, &show, &diff, &add_part(verb, action, options, "", "", list_devices)})
        add_json_option(*part, options->output);
}

}  // namespace ftax::cli
