#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "calibration/folds/folds.hpp"
#include "calibration/folds/ledger.hpp"
#include "src/io/csv.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"

namespace {

using namespace ftax;

/// Fits the framework profiles on all rows and writes them, then scores the folds and writes the ledger.
void run(const std::string& rows_path, const std::filesystem::path& data, const std::string& predictions_path) {
    MeasurementFile<Measurement> file = read_model_measurements(read_csv(rows_path));
    std::vector<Measurement> usable;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        if (file.problems[i].empty()) usable.push_back(file.rows[i]);
    }
    const folds::Folds all(std::move(usable));
    for (const std::string& problem : all.problems()) fmt::print(stderr, "left out: {}\n", problem);

    const std::vector<folds::LedgerSection> sections{
        {"leave one model out, anchored by the other models of the run", all.score(folds::LeaveOut::model)},
        {"leave one family out, anchored by the other families of the run", all.score(folds::LeaveOut::family)},
        {"leave one GPU out, anchored by resnet18 at batch 1", all.score(folds::LeaveOut::gpu)},
    };
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

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        fmt::print(stderr, "usage: ftax_folds framework_tax.csv DATA_FOLDER [PREDICTIONS.csv]\n");
        return 2;
    }
    try {
        run(argv[1], argv[2], argc > 3 ? argv[3] : "");
    } catch (const std::exception& error) {
        fmt::print(stderr, "ftax_folds: {}\n", error.what());
        return 1;
    }
}
