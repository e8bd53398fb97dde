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

Folds framework_folds(const std::string& rows_path) {
    Folds folds(usable(read_model_measurements(read_csv(rows_path))));
    for (const auto& [reason, lines] : folds.left_out())
        fmt::print(stderr, "left out, {} rows: {}\n", lines.size(), reason);
    return folds;
}

std::string score_frameworks(Arguments a) {
    const Folds folds = framework_folds(a[0]);
    return scored_csv(score(folds), folds);
}

void print_fit(const fit::FrameworkFit& fitted) {
    fmt::print(stderr, "{}: {} host-bound rows, in-fit {:.1f} / {:.1f} / {:.1f} %{}\n", fitted.reference.framework,
               fitted.rows, 100 * fitted.errors.mean, 100 * fitted.errors.median, 100 * fitted.errors.p90,
               fitted.converged ? "" : ", not converged");
}

void write_profile(const std::string& data_folder, const std::string& name, const FrameworkProfile& profile) {
    write_file(std::filesystem::path(data_folder) / "profiles/frameworks" / (name + ".json"), to_text(profile));
}

/// Fits the framework profiles on all rows and writes them beside the scores of the folds.
std::string fit_frameworks(Arguments a) {
    const Folds folds = framework_folds(a[0]);
    const std::vector<Section> sections = score(folds);
    for (const fit::FrameworkFit& fitted : folds.fit_all(sections.front().rows)) {
        print_fit(fitted);
        write_profile(a[1], fitted.reference.framework, fitted.reference);
        for (const FrameworkProfile& profile : host_profiles(fitted)) {
            write_profile(a[1], fmt::format("{}@{}", profile.framework, profile.host), profile);
        }
    }
    return scored_csv(sections, folds);
}

fit::OperatorRows operator_rows(Arguments paths) {
    fit::OperatorRows rows;
    for (const std::string& path : paths) rows.add(read_csv(path));
    return rows;
}

std::string score_operators(Arguments a) {
    return figures_csv(validate(operator_rows(a.first(1)).rows));
}

/// Fits the operators with all folds; the profile fitted on the way is not kept.
std::string fit_operators(Arguments a) {
    const fit::OperatorRows operators = operator_rows(a.first(1));
    std::vector<Figures> figures = validate(operators.rows);
    for (Figures& f : folds_of(fit::fit_operators(operators.rows, {.folds = true}).reports))
        figures.push_back(std::move(f));
    return figures_csv(figures);
}

std::vector<fit::ModelRow> device_rows(const std::string& rows_path, scenario::Devices& devices) {
    return scenario::model_rows(read_model_measurements(read_csv(rows_path)),
                                {.left_out_runs = {fmt::format("{}:{}", unsound_gpu, unsound_run)}}, devices);
}

std::string score_devices(Arguments a) {
    scenario::Devices devices;
    return figures_csv(validate_devices(device_rows(a[0], devices)));
}

/// Scores the committed profile, then refits without each model and each device.
std::string fit_devices(Arguments a) {
    scenario::Devices devices;
    const std::vector<fit::ModelRow> rows = device_rows(a[1], devices);
    std::vector<Figures> figures = validate_devices(rows);
    for (Figures& f : device_folds(rows, parse_device_profile(read_file(a[0]), a[0]))) figures.push_back(std::move(f));
    return figures_csv(figures);
}

/// Estimates the spread of the device factors.
std::string fit_uncertainty(Arguments a) {
    scenario::Devices devices;
    const std::vector<fit::ModelRow> rows = device_rows(a[1], devices);
    return to_text(variance_components(rows, parse_device_profile(read_file(a[0]), a[0])));
}

/// Fits the hosts of frameworks that serve language models, each model left out in turn.
ServingScore serving_folds(const std::string& rows_path) {
    return score_serving(usable(read_language_measurements(read_csv(rows_path))),
                         std::filesystem::path(rows_path).filename().string());
}

std::string score_serving_rows(Arguments a) {
    return serving_csv(serving_folds(a[0]));
}

std::string fit_serving_rows(Arguments a) {
    const ServingScore score = serving_folds(a[0]);
    for (const FrameworkProfile& profile : score.profiles) write_profile(a[1], profile.framework, profile);
    return serving_csv(score);
}

std::string score_layers(Arguments a) {
    return figures_csv(folds_of(fit_layers(operator_rows(a.first(2)).rows, embedded_device_profile())));
}

std::string fit_quantized(Arguments a) {
    return figures_csv(folds_of(fit::fit_on_tensor_gemm(operator_rows(a.first(1)).rows, embedded_device_profile())));
}

/// Fits the host costs of the campaigns on networks of search spaces and writes them.
std::string fit_nas(Arguments a) {
    constexpr std::size_t architectures_per_space = 2000;
    const std::vector<nas_study::Column> columns = nas_study::read_columns(a[0], architectures_per_space);
    const fit::FrameworkFit fitted = nas_study::fit_host_costs(columns, "");
    print_fit(fitted);
    write_profile(a[1], fmt::format("pytorch-eager@{}", nas::measured_host), fitted.reference);
    return nas_study::ledger_csv(columns, fitted.reference);
}

/// Each command computes one kind of rows or figures and writes them to the file that its last argument names; those
/// with a DATA_FOLDER write the profiles that they fit, too. ledger.py formats the ledgers.
struct Command {
    std::string_view name, arguments;
    std::size_t count;
    std::string (*run)(Arguments);
};
constexpr Command commands[] = {
    {"frameworks", "framework_tax.csv DATA_FOLDER", 2, fit_frameworks},
    {"score-frameworks", "framework_tax.csv", 1, score_frameworks},
    {"operators", "neusight_ops.csv", 1, fit_operators},
    {"score-operators", "neusight_ops.csv", 1, score_operators},
    {"devices", "OPERATORS.json framework_tax.csv", 2, fit_devices},
    {"score-devices", "framework_tax.csv", 1, score_devices},
    {"uncertainty", "OPERATORS.json framework_tax.csv", 2, fit_uncertainty},
    {"serving", "llm_static.csv DATA_FOLDER", 2, fit_serving_rows},
    {"score-serving", "llm_static.csv", 1, score_serving_rows},
    {"layers", "tensor_ops.csv layer_ops.csv", 2, score_layers},
    {"quantized", "tensor_ops.csv", 1, fit_quantized},
    {"nas", "MEASUREMENTS_FOLDER DATA_FOLDER", 2, fit_nas},
};

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> given(argv + 1, argv + argc);
    const auto command = std::find_if(std::begin(commands), std::end(commands), [&](const Command& c) {
        return !given.empty() && given[0] == c.name && given.size() == c.count + 2;
    });
    if (command == std::end(commands)) {
        for (const Command& c : commands) fmt::print(stderr, "usage: ftax_folds {} {} OUT\n", c.name, c.arguments);
        return 2;
    }
    try {
        write_file(given.back(), command->run(std::span(given).subspan(1)));
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ftax_folds: {}\n", error.what());
        return 1;
    }
}
