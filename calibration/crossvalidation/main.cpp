#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "calibration/crossvalidation/compare.hpp"
#include "calibration/crossvalidation/device_ledger.hpp"
#include "calibration/crossvalidation/folds.hpp"
#include "calibration/crossvalidation/host_profiles.hpp"
#include "calibration/crossvalidation/layer_ledger.hpp"
#include "calibration/crossvalidation/ledger.hpp"
#include "calibration/crossvalidation/operator_ledger.hpp"
#include "calibration/crossvalidation/quantized_ledger.hpp"
#include "calibration/crossvalidation/serving_ledger.hpp"
#include "src/io/csv.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"
#include "src/scenario/model_rows.hpp"

namespace {

using namespace ftax;

constexpr int skipped = 77;  // ctest: SKIP_RETURN_CODE

/// What follows the command: files of measured rows, the folder that is laid out as data/.
using Arguments = std::span<const std::string>;

folds::Folds read_folds(const std::string& rows_path) {
    MeasurementFile<Measurement> file = read_model_measurements(read_csv(rows_path));
    std::vector<Measurement> usable;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        if (file.problems[i].empty()) usable.push_back(file.rows[i]);
    }
    folds::Folds all(std::move(usable));
    for (const auto& [reason, lines] : all.left_out())
        fmt::print(stderr, "left out, {} rows: {}\n", lines.size(), reason);
    return all;
}

/// What is scored points to rows of `all`.
std::vector<folds::LedgerSection> score(const folds::Folds& all) {
    return {
        {"leave one model out, anchored by the other models of the run", all.score(folds::LeaveOut::model)},
        {"leave one family out, anchored by the other families of the run", all.score(folds::LeaveOut::family)},
        {"leave one GPU out, anchored by resnet18 at batch 1", all.score(folds::LeaveOut::gpu)},
        {"leave one GPU out, anchored by batch 1 of each model", all.score(folds::LeaveOut::gpu_but_batch_1)},
    };
}

/// Fits the framework profiles on all rows and writes them, then scores the folds and writes the ledger.
int write_frameworks(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    const folds::Folds all = read_folds(rows_path);
    const std::vector<folds::LedgerSection> sections = score(all);
    for (const fit::FrameworkFit& fitted : all.fit_all(sections.front().rows)) {
        fmt::print("{}: {} host-bound rows, in-fit {:.1f} / {:.1f} / {:.1f} %{}\n", fitted.reference.framework,
                   fitted.rows, 100 * fitted.mean_error, 100 * fitted.median_error, 100 * fitted.p90_error,
                   fitted.converged ? "" : ", not converged");
        const std::filesystem::path folder = data / "profiles/frameworks";
        write_file(folder / (fitted.reference.framework + ".json"), to_text(fitted.reference));
        for (const FrameworkProfile& profile : folds::host_profiles(fitted)) {
            write_file(folder / fmt::format("{}@{}.json", profile.framework, profile.host), to_text(profile));
        }
    }
    write_file(data / "ledger/framework_tax.csv", folds::ledger_csv(sections));
    const std::string markdown = folds::ledger_markdown(sections, all);
    write_file(data / "ledger/framework_tax.md", markdown);
    fmt::print("{}", markdown);
    if (a.size() > 2) write_file(a[2], folds::predictions_csv(sections));
    return 0;
}

bool is_missing(const std::string& rows_path) {
    if (std::filesystem::exists(rows_path)) return false;
    fmt::print("SKIPPED: there is no {}; set FTAX_MEASUREMENTS to the folder of the measurements\n", rows_path);
    return true;
}

/// Scores the folds again and compares with the committed ledger.
int check_frameworks(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    if (is_missing(rows_path)) return skipped;
    const folds::Folds all = read_folds(rows_path);
    const std::vector<folds::LedgerSection> sections = score(all);
    bool same = true;
    const auto compare = [&](const std::filesystem::path& path, const std::string& now) {
        for (const std::string& line : folds::differences(read_file(path, 1 << 24), now)) {
            same = false;
            fmt::print("{}:\n{}\n", path.string(), line);
        }
    };
    compare(data / "ledger/framework_tax.csv", folds::ledger_csv(sections));
    compare(data / "ledger/framework_tax.md", folds::ledger_markdown(sections, all));
    if (!same)
        fmt::print("the ledger is stale; write it again: ftax_folds frameworks {} {}\n", rows_path, data.string());
    return same ? 0 : 1;
}

constexpr std::string_view operator_ledger = "ledger/operators.csv";

/// Fits the operators with all folds and writes their ledger; the profile fitted on the way is not kept.
int write_operators(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    const fit::OperatorRows rows = fit::operator_rows(read_csv(rows_path));
    std::vector<folds::OperatorFigures> figures = folds::validate(rows);
    for (folds::OperatorFigures& f : folds::folds_of(fit::fit_operators(rows, {.folds = true}).reports)) {
        figures.push_back(std::move(f));
    }
    write_file(data / operator_ledger, folds::operator_ledger_csv(figures));
    const std::string markdown = folds::operator_ledger_markdown(figures);
    write_file(data / "ledger/operators.md", markdown);
    fmt::print("{}", markdown);
    return 0;
}

/// Compares with the part of a committed ledger that needs no fit; the folds of fits follow from `first_fold` on.
int check_beginning(std::string committed, std::string_view first_fold, std::string_view now,
                    std::string_view command) {
    committed.erase(std::min(committed.find(first_fold), committed.size()));
    committed.erase(committed.rfind('\n') + 1);
    const auto found = folds::differences(committed, now);
    for (const std::string& line : found) fmt::print("{}\n", line);
    if (!found.empty()) fmt::print("the ledger is stale; write it again: ftax_folds {}\n", command);
    return found.empty() ? 0 : 1;
}

int check_operators(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    if (is_missing(rows_path)) return skipped;
    return check_beginning(read_file(data / operator_ledger), "in the fit,",
                           folds::operator_ledger_csv(folds::validate(fit::operator_rows(read_csv(rows_path)))),
                           "operators neusight_ops.csv DATA_FOLDER");
}

constexpr std::string_view device_ledger = "ledger/device_bound.csv";

std::vector<fit::ModelRow> device_rows(const std::string& rows_path, scenario::Devices& devices) {
    return scenario::model_rows(read_model_measurements(read_csv(rows_path)),
                                {.left_out_runs = {fmt::format("{}:{}", folds::unsound_gpu, folds::unsound_run)}},
                                devices);
}

/// Scores the committed profile, refits without each model and each device and writes the ledger.
int write_devices(const Arguments& a) {
    const std::string& operators_path = a[0];
    const std::string& rows_path = a[1];
    const std::filesystem::path data = a[2];
    scenario::Devices devices;
    const std::vector<fit::ModelRow> rows = device_rows(rows_path, devices);
    std::vector<folds::DeviceFigures> figures = folds::validate_devices(rows);
    const DeviceProfileFile start = parse_device_profile(read_file(operators_path), operators_path);
    for (folds::DeviceFigures& f : folds::device_folds(rows, start)) figures.push_back(std::move(f));
    write_file(data / device_ledger, folds::device_ledger_csv(figures));
    const std::string markdown = folds::device_ledger_markdown(figures);
    write_file(data / "ledger/device_bound.md", markdown);
    fmt::print("{}", markdown);
    return 0;
}

/// Estimates the spread of the device factors and writes it beside the profiles.
int write_uncertainty(const Arguments& a) {
    const std::string& operators_path = a[0];
    const std::string& rows_path = a[1];
    const std::filesystem::path data = a[2];
    scenario::Devices devices;
    const std::vector<fit::ModelRow> rows = device_rows(rows_path, devices);
    const DeviceProfileFile start = parse_device_profile(read_file(operators_path), operators_path);
    const std::string text = to_text(folds::variance_components(rows, start));
    write_file(data / "profiles/uncertainty.json", text);
    fmt::print("{}", text);
    return 0;
}

int check_devices(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    if (is_missing(rows_path)) return skipped;
    scenario::Devices devices;
    return check_beginning(read_file(data / device_ledger), "leave one model out,",
                           folds::device_ledger_csv(folds::validate_devices(device_rows(rows_path, devices))),
                           "devices OPERATORS.json framework_tax.csv DATA_FOLDER");
}

constexpr std::string_view serving_ledger = "ledger/serving.md";

/// Fits the hosts of frameworks that serve language models, each model left out in turn.
folds::ServingScore score_serving(const std::string& rows_path) {
    MeasurementFile<LanguageMeasurement> file = read_language_measurements(read_csv(rows_path));
    std::vector<LanguageMeasurement> usable;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        if (file.problems[i].empty()) usable.push_back(file.rows[i]);
    }
    return folds::score_serving(usable, std::filesystem::path(rows_path).filename().string());
}

int write_serving(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    const folds::ServingScore score = score_serving(rows_path);
    for (const FrameworkProfile& profile : score.profiles) {
        write_file(data / "profiles/frameworks" / (profile.framework + ".json"), to_text(profile));
    }
    const std::string markdown = folds::serving_markdown(score);
    write_file(data / serving_ledger, markdown);
    fmt::print("{}", markdown);
    return 0;
}

int check_serving(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    if (is_missing(rows_path)) return skipped;
    const auto found =
        folds::differences(read_file(data / serving_ledger), folds::serving_markdown(score_serving(rows_path)));
    for (const std::string& line : found) fmt::print("{}\n", line);
    if (!found.empty()) {
        fmt::print("the ledger is stale; write it again: ftax_folds serving llm_static.csv DATA_FOLDER\n");
    }
    return found.empty() ? 0 : 1;
}

constexpr std::string_view layer_ledger = "ledger/layer_kernels.csv";

/// Refits kernels timed alone without shapes and without GPUs.
std::vector<folds::OperatorFigures> score_layers(const std::string& tensor_path, const std::string& layer_path) {
    const folds::LayerRows rows = folds::layer_rows({read_csv(tensor_path), read_csv(layer_path)});
    return folds::layer_folds(rows, embedded_device_profile());
}

int write_layers(const Arguments& a) {
    const std::string& tensor_path = a[0];
    const std::string& layer_path = a[1];
    const std::filesystem::path data = a[2];
    const auto figures = score_layers(tensor_path, layer_path);
    write_file(data / layer_ledger, folds::operator_ledger_csv(figures));
    const std::string markdown = folds::layer_ledger_markdown(figures);
    write_file(data / "ledger/layer_kernels.md", markdown);
    fmt::print("{}", markdown);
    return 0;
}

int check_layers(const Arguments& a) {
    const std::string& tensor_path = a[0];
    const std::string& layer_path = a[1];
    const std::filesystem::path data = a[2];
    if (is_missing(tensor_path) || is_missing(layer_path)) return skipped;
    const auto found = folds::differences(read_file(data / layer_ledger),
                                          folds::operator_ledger_csv(score_layers(tensor_path, layer_path)));
    for (const std::string& line : found) fmt::print("{}\n", line);
    if (!found.empty()) {
        fmt::print("the ledger is stale; write it again: ftax_folds layers tensor_ops.csv layer_ops.csv DATA_FOLDER\n");
    }
    return found.empty() ? 0 : 1;
}

/// Fits quantised products and mixtures of experts with all folds and writes their ledger.
int write_quantized(const Arguments& a) {
    const std::string& rows_path = a[0];
    const std::filesystem::path data = a[1];
    const std::vector<fit::FitReport> reports = folds::quantized_folds(read_operator_measurements(read_csv(rows_path)));
    write_file(data / "ledger/quantized.csv", folds::quantized_ledger_csv(reports));
    const std::string markdown = folds::quantized_ledger_markdown(reports);
    write_file(data / "ledger/quantized.md", markdown);
    fmt::print("{}", markdown);
    return 0;
}

/// What the program does: each command fits and scores one kind of rows and writes its ledger, or compares with it.
struct Command {
    std::string_view name, arguments;
    std::size_t fewest, most;
    int (*run)(const Arguments&);
};
constexpr Command commands[] = {
    {"frameworks", "framework_tax.csv DATA_FOLDER [PREDICTIONS.csv]", 2, 3, write_frameworks},
    {"check-frameworks", "framework_tax.csv DATA_FOLDER", 2, 2, check_frameworks},
    {"operators", "neusight_ops.csv DATA_FOLDER", 2, 2, write_operators},
    {"check-operators", "neusight_ops.csv DATA_FOLDER", 2, 2, check_operators},
    {"devices", "OPERATORS.json framework_tax.csv DATA_FOLDER", 3, 3, write_devices},
    {"check-devices", "framework_tax.csv DATA_FOLDER", 2, 2, check_devices},
    {"uncertainty", "OPERATORS.json framework_tax.csv DATA_FOLDER", 3, 3, write_uncertainty},
    {"serving", "llm_static.csv DATA_FOLDER", 2, 2, write_serving},
    {"check-serving", "llm_static.csv DATA_FOLDER", 2, 2, check_serving},
    {"layers", "tensor_ops.csv layer_ops.csv DATA_FOLDER", 3, 3, write_layers},
    {"check-layers", "tensor_ops.csv layer_ops.csv DATA_FOLDER", 3, 3, check_layers},
    {"quantized", "tensor_ops.csv DATA_FOLDER", 2, 2, write_quantized},
};

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> given(argv + 1, argv + argc);
    const auto command = std::find_if(std::begin(commands), std::end(commands), [&](const Command& c) {
        return !given.empty() && given[0] == c.name && given.size() > c.fewest && given.size() <= c.most + 1;
    });
    if (command == std::end(commands)) {
        for (const Command& c : commands) fmt::print(stderr, "usage: ftax_folds {} {}\n", c.name, c.arguments);
        return 2;
    }
    try {
        return command->run(std::span(given).subspan(1));
    } catch (const std::exception& error) {
        fmt::print(stderr, "ftax_folds: {}\n", error.what());
        return 1;
    }
}
