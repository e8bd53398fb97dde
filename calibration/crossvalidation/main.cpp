#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "calibration/crossvalidation/folds.hpp"
#include "calibration/nas/nas_study.hpp"
#include "src/io/csv.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"
#include "src/scenario/model_rows.hpp"

namespace {

using namespace ftax;
using namespace ftax::folds;

/// What follows the command.
using Arguments = std::span<const std::string>;

template <class Row>
std::vector<Row> usable(MeasurementFile<Row> file) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        if (file.problems[i].empty()) rows.push_back(file.rows[i]);
    }
    return rows;
}

void write_profile(const std::string& data_folder, const std::string& name, const FrameworkProfile& profile) {
    write_file(std::filesystem::path(data_folder) / "profiles/frameworks" / (name + ".json"), to_text(profile));
}

void print_fit(const fit::FrameworkFit& fitted) {
    fmt::print(stderr, "{}: {} host-bound rows, in-fit {:.1f} / {:.1f} / {:.1f} %{}\n", fitted.reference.framework,
               fitted.rows, 100 * fitted.errors.mean, 100 * fitted.errors.median, 100 * fitted.errors.p90,
               fitted.converged ? "" : ", not converged");
}

std::string frameworks(Arguments a) {
    const Folds folds(usable(read_model_measurements(read_csv(a[0]))));
    for (const auto& [reason, lines] : folds.left_out())
        fmt::print(stderr, "left out, {} rows: {}\n", lines.size(), reason);
    const std::vector<Section> sections = score(folds);
    if (a.size() < 2) return scored_csv(sections, folds);
    for (const fit::FrameworkFit& fitted : folds.fit_all(sections.front().rows)) {
        print_fit(fitted);
        write_profile(a[1], fitted.reference.framework, fitted.reference);
        for (const FrameworkProfile& profile : host_profiles(fitted))
            write_profile(a[1], fmt::format("{}@{}", profile.framework, profile.host), profile);
    }
    return scored_csv(sections, folds);
}

fit::OperatorRows operator_rows(Arguments paths) {
    fit::OperatorRows rows;
    for (const std::string& path : paths) rows.add(read_csv(path));
    return rows;
}

std::string score_operators(Arguments a) {
    return figures_csv(validate(operator_rows(a).rows));
}

/// Fits the operators with all folds; the profile fitted on the way is not kept.
std::string operators(Arguments a) {
    const fit::OperatorRows measured = operator_rows(a);
    return figures_csv(validate(measured.rows)) +
           figures_csv(folds_of(fit::fit_operators(measured.rows, {.folds = true}).reports), false);
}

std::string layers(Arguments a) {
    return figures_csv(folds_of(fit_layers(operator_rows(a).rows, embedded_device_profile())));
}

std::string quantized(Arguments a) {
    return figures_csv(folds_of(fit::fit_on_tensor_gemm(operator_rows(a).rows, embedded_device_profile())));
}

std::vector<fit::ModelRow> device_rows(const std::string& rows_path, scenario::Devices& devices) {
    return scenario::model_rows(read_model_measurements(read_csv(rows_path)),
                                {.left_out_runs = {fmt::format("{}:{}", unsound_gpu, unsound_run)}}, devices);
}

/// Scores the committed profile, then refits that of operators without each model and each device.
std::string devices(Arguments a) {
    scenario::Devices known;
    const std::vector<fit::ModelRow> rows = device_rows(a[0], known);
    const std::string text = figures_csv(validate_devices(rows));
    if (a.size() < 2) return text;
    return text + figures_csv(device_folds(rows, parse_device_profile(read_file(a[1]), a[1])), false);
}

/// Estimates the spread of the device factors.
std::string uncertainty(Arguments a) {
    scenario::Devices known;
    return to_text(variance_components(device_rows(a[0], known), parse_device_profile(read_file(a[1]), a[1])));
}

/// Fits the hosts of frameworks that serve language models, each model left out in turn.
std::string serving(Arguments a) {
    const ServingScore score = score_serving(usable(read_language_measurements(read_csv(a[0]))),
                                             std::filesystem::path(a[0]).filename().string());
    for (const FrameworkProfile& profile : score.profiles) {
        if (a.size() > 1) write_profile(a[1], profile.framework, profile);
    }
    return serving_csv(score);
}

/// Fits the host costs of the campaigns on networks of search spaces and writes them.
std::string nas(Arguments a) {
    constexpr std::size_t architectures_per_space = 2000;
    const std::vector<nas_study::Column> columns = nas_study::read_columns(a[0], architectures_per_space);
    const fit::FrameworkFit fitted = nas_study::fit_host_costs(columns, "");
    print_fit(fitted);
    write_profile(a[1], fmt::format("pytorch-eager@{}", nas::measured_host), fitted.reference);
    return nas_study::ledger_csv(columns, fitted.reference);
}

/// Each command computes one kind of rows or figures and writes them to the file that its last argument names; where a
/// DATA_FOLDER is given, the profiles that it fits are written there. ledger.py formats the ledgers.
struct Command {
    std::string_view name, arguments;
    std::size_t least, most;
    std::string (*run)(Arguments);
};
constexpr Command commands[] = {
    {"frameworks", "framework_tax.csv [DATA_FOLDER]", 1, 2, frameworks},
    {"operators", "neusight_ops.csv", 1, 1, operators},
    {"score-operators", "neusight_ops.csv", 1, 1, score_operators},
    {"devices", "framework_tax.csv [OPERATORS.json]", 1, 2, devices},
    {"uncertainty", "framework_tax.csv OPERATORS.json", 2, 2, uncertainty},
    {"serving", "llm_static.csv [DATA_FOLDER]", 1, 2, serving},
    {"layers", "tensor_ops.csv layer_ops.csv", 2, 2, layers},
    {"quantized", "tensor_ops.csv", 1, 1, quantized},
    {"nas", "MEASUREMENTS_FOLDER DATA_FOLDER", 2, 2, nas},
};

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> given(argv + 1, argv + argc);
    const auto command = std::find_if(std::begin(commands), std::end(commands), [&](const Command& c) {
        return !given.empty() && given[0] == c.name && given.size() >= c.least + 2 && given.size() <= c.most + 2;
    });
    if (command == std::end(commands)) {
        for (const Command& c : commands) fmt::print(stderr, "usage: ftax_folds {} {} OUT\n", c.name, c.arguments);
        return 2;
    }
    try {
        write_file(given.back(), command->run(std::span(given).subspan(1, given.size() - 2)));
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ftax_folds: {}\n", error.what());
        return 1;
    }
}
