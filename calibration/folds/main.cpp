#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "calibration/folds/compare.hpp"
#include "calibration/folds/folds.hpp"
#include "calibration/folds/ledger.hpp"
#include "calibration/folds/operator_ledger.hpp"
#include "src/io/csv.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"

namespace {

using namespace ftax;

constexpr int skipped = 77;  // ctest: SKIP_RETURN_CODE

folds::Folds read_folds(const std::string& rows_path) {
    MeasurementFile<Measurement> file = read_model_measurements(read_csv(rows_path));
    std::vector<Measurement> usable;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        if (file.problems[i].empty()) usable.push_back(file.rows[i]);
    }
    folds::Folds all(std::move(usable));
    for (const std::string& problem : all.problems()) fmt::print(stderr, "left out: {}\n", problem);
    return all;
}

/// What is scored points to rows of `all`.
std::vector<folds::LedgerSection> score(const folds::Folds& all) {
    return {
        {"leave one model out, anchored by the other models of the run", all.score(folds::LeaveOut::model)},
        {"leave one family out, anchored by the other families of the run", all.score(folds::LeaveOut::family)},
        {"leave one GPU out, anchored by resnet18 at batch 1", all.score(folds::LeaveOut::gpu)},
    };
}

/// Fits the framework profiles on all rows and writes them, then scores the folds and writes the ledger.
void write(const std::string& rows_path, const std::filesystem::path& data, const std::string& predictions_path) {
    const folds::Folds all = read_folds(rows_path);
    const std::vector<folds::LedgerSection> sections = score(all);
    for (const fit::FrameworkFit& fitted : all.fit_all(sections.front().rows)) {
        fmt::print("{}: {} telling rows, in-fit {:.1f} / {:.1f} / {:.1f} %{}\n", fitted.reference.framework,
                   fitted.rows, 100 * fitted.mean_error, 100 * fitted.median_error, 100 * fitted.p90_error,
                   fitted.converged ? "" : ", not converged");
        write_file(data / "profiles/frameworks" / (fitted.reference.framework + ".json"), to_text(fitted.reference));
    }
    write_file(data / "ledger/framework_tax.csv", folds::ledger_csv(sections));
    const std::string markdown = folds::ledger_markdown(sections);
    write_file(data / "ledger/framework_tax.md", markdown);
    fmt::print("{}", markdown);
    if (!predictions_path.empty()) write_file(predictions_path, folds::predictions_csv(sections));
}

/// Scores the folds anew and compares with the committed ledger.
int check(const std::string& rows_path, const std::filesystem::path& data) {
    if (!std::filesystem::exists(rows_path)) {
        fmt::print("SKIPPED: there is no {}; set FTAX_MEASUREMENTS to the folder of the measurements\n", rows_path);
        return skipped;
    }
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
    compare(data / "ledger/framework_tax.md", folds::ledger_markdown(sections));
    if (!same) fmt::print("the ledger is stale; write it anew: ftax_folds {} {}\n", rows_path, data.string());
    return same ? 0 : 1;
}

constexpr std::string_view operator_ledger = "ledger/operators.csv";

/// Fits the operators with all folds and writes their ledger; the profile fitted on the way is not kept.
void write_operators(const std::string& rows_path, const std::filesystem::path& data) {
    const fit::OperatorRows rows = fit::operator_rows(read_csv(rows_path));
    std::vector<folds::OperatorFigures> figures = folds::validate(rows);
    for (folds::OperatorFigures& f : folds::folds_of(fit::fit_operators(rows, "folds", true).reports)) {
        figures.push_back(std::move(f));
    }
    write_file(data / operator_ledger, folds::operator_ledger_csv(figures));
    const std::string markdown = folds::operator_ledger_markdown(figures);
    write_file(data / "ledger/operators.md", markdown);
    fmt::print("{}", markdown);
}

/// Predicts the operators anew and compares with the part of the committed ledger that needs no fit.
int check_operators(const std::string& rows_path, const std::filesystem::path& data) {
    if (!std::filesystem::exists(rows_path)) {
        fmt::print("SKIPPED: there is no {}; set FTAX_MEASUREMENTS to the folder of the measurements\n", rows_path);
        return skipped;
    }
    const std::string now = folds::operator_ledger_csv(folds::validate(fit::operator_rows(read_csv(rows_path))));
    std::string committed = read_file(data / operator_ledger);
    committed.erase(std::min(committed.find("in the fit,"), committed.size()));  // folds of fits follow
    committed.erase(committed.rfind('\n') + 1);
    const auto found = folds::differences(committed, now);
    for (const std::string& line : found) fmt::print("{}\n", line);
    if (!found.empty()) fmt::print("the ledger is stale; write it anew: ftax_folds operators {} {}\n", rows_path, data.string());
    return found.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view first = argc > 1 ? argv[1] : "";
    const bool checking = argc == 4 && first == "--check";
    if (argc != 3 && argc != 4) {
        fmt::print(stderr,
                   "usage: ftax_folds framework_tax.csv DATA_FOLDER [PREDICTIONS.csv]\n"
                   "       ftax_folds --check framework_tax.csv DATA_FOLDER\n"
                   "       ftax_folds operators|check-operators neusight_ops.csv DATA_FOLDER\n");
        return 2;
    }
    try {
        if (checking) return check(argv[2], argv[3]);
        if (argc == 4 && first == "check-operators") return check_operators(argv[2], argv[3]);
        if (argc == 4 && first == "operators") {
            write_operators(argv[2], argv[3]);
            return 0;
        }
        write(argv[1], argv[2], argc > 3 ? argv[3] : "");
    } catch (const std::exception& error) {
        fmt::print(stderr, "ftax_folds: {}\n", error.what());
        return 1;
    }
}
