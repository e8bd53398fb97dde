#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>

#include "calibration/crossvalidation/folds.hpp"
#include "calibration/nas/nas_study.hpp"
#include "ftax/error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/number.hpp"
#include "predictors/profiles/profile_file.hpp"

namespace ftax::folds {
namespace {

/// Fits the host costs of the campaigns on networks of search spaces and writes them.
std::string nas(Arguments a) {
    constexpr std::size_t architectures_per_space = 2000;
    const std::vector<nas_study::Column> columns = nas_study::read_columns(a[0], architectures_per_space);
    const fit::FrameworkFit fitted = nas_study::fit_host_costs(columns, "");
    print_fit(fitted);
    write_profile(a[1], fmt::format("pytorch-eager@{}", nas::measured_host), fitted.reference);
    return nas_study::ledger_csv(columns, fitted.reference);
}

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
    {"evidence", "MODELS DATA_FOLDER ROWS.csv...", 3, 32, evidence},
    {"nas", "MEASUREMENTS_FOLDER DATA_FOLDER", 2, 2, nas},
};

}  // namespace

void append_scored(std::string& text, std::vector<std::string> cells, std::initializer_list<double> numbers,
                   std::size_t empty) {
    for (const double value : numbers) cells.push_back(format_number(value));
    cells.resize(cells.size() + empty);
    append_csv_row(text, cells);
}

void write_profile(const std::string& data_folder, const std::string& name, const FrameworkProfile& profile) {
    write_file(std::filesystem::path(data_folder) / "profiles/frameworks" / (name + ".json"), to_text(profile));
}

void print_fit(const fit::FrameworkFit& fitted) {
    fmt::print(stderr, "{}: {} host-bound rows, in-fit {:.1f} / {:.1f} / {:.1f} %{}\n", fitted.reference.framework,
               fitted.rows, 100 * fitted.errors.mean, 100 * fitted.errors.median, 100 * fitted.errors.p90,
               fitted.converged ? "" : ", not converged");
}

}  // namespace ftax::folds

int main(int argc, char** argv) {
    using namespace ftax::folds;
    const std::vector<std::string> given(argv + 1, argv + argc);
    const auto command = std::find_if(std::begin(commands), std::end(commands), [&](const Command& c) {
        return !given.empty() && given[0] == c.name && given.size() >= c.least + 2 && given.size() <= c.most + 2;
    });
    if (command == std::end(commands)) {
        for (const Command& c : commands) fmt::print(stderr, "usage: ftax_folds {} {} OUT\n", c.name, c.arguments);
        return 2;
    }
    try {
        // OUT was forgotten, and a file of rows stands in its place.
        constexpr auto writable = std::filesystem::perms::owner_write;
        if (std::filesystem::exists(given.back()) &&
            (std::filesystem::status(given.back()).permissions() & writable) != writable)
            throw ftax::Error(ftax::ErrorCode::usage, given.back() + " is read-only");
        ftax::write_file(given.back(), command->run(std::span(given).subspan(1, given.size() - 2)));
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ftax_folds: {}\n", error.what());
        return 1;
    }
}
