#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "ftax/error.hpp"
#include "predictors/operator.hpp"
#include "src/cli/arguments.hpp"
#include "src/cli/output.hpp"
#include "src/cli/row_predictor.hpp"
#include "src/cli/scenario.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::cli {
namespace {

struct ValidateArguments {
    std::string rows, anchor, models, by, predictions;
    double max_mape_percent = 0;
    OutputArguments output;
    std::string device_profile{};  ///< file; empty for the built-in one
};

constexpr int over_max_mape = 1;

/// Predicts each row with `predict`; what a row asks for in vain becomes the reason why it is skipped.
template <class Row, class Predict>
std::vector<report::ValidatedRow> predict_rows(const MeasurementFile<Row>& file, Predict predict) {
    std::vector<report::ValidatedRow> rows;
    rows.reserve(file.rows.size());
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        report::ValidatedRow row{.measured_s = file.rows[i].latency_s, .skipped = file.problems[i]};
        if (row.skipped.empty()) {
            try {
                row.prediction = predict(file.rows[i]);
                if (!row.prediction) row.skipped = "no model for this operator";
            } catch (const Error& error) {
                row.skipped = error.what();
            }
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<report::ValidatedRow> validate_models(const MeasurementFile<Measurement>& file,
                                                  const ValidateArguments& arguments) {
    RowPredictor predictor(arguments.models, arguments.device_profile);
    if (!arguments.anchor.empty()) {
        print_warnings(predictor.anchor(usable_rows(read_model_measurements(read_csv(arguments.anchor)))));
    }
    return predict_rows(file, [&](const Measurement& row) {
        const Prediction p = predictor.predict(row);
        return std::optional(report::RowPrediction{p.latency_s, p.low_s, p.high_s, p.bound, p.coverage.time});
    });
}

std::vector<report::ValidatedRow> validate_operators(const MeasurementFile<OperatorMeasurement>& file,
                                                     const ValidateArguments& arguments) {
    std::map<std::string, std::vector<OperatorMeasurement>> anchors;
    if (!arguments.anchor.empty()) {
        for (OperatorMeasurement& row : usable_rows(read_operator_measurements(read_csv(arguments.anchor)))) {
            anchors[device_spec(row.gpu).slug].push_back(std::move(row));
        }
    }
    std::map<std::string, OperatorModel> models;  // by GPU as the file spells it
    return predict_rows(file, [&](const OperatorMeasurement& row) -> std::optional<report::RowPrediction> {
        auto model = models.find(row.gpu);
        if (model == models.end()) {
            const DeviceProfile profile = device_profile(row.gpu, arguments.device_profile);
            model = models.emplace(row.gpu, OperatorModel(profile)).first;
            model->second.anchor(anchors[profile.device.slug]);
        }
        const auto p = model->second.predict(row);
        if (!p) return std::nullopt;
        return report::RowPrediction{p->latency_s, p->low_s, p->high_s, p->bound, 1};
    });
}

/// Puts the values of the grouping columns into the rows; a column that is absent or empty reads as its default.
void group_rows(const CsvTable& table, const std::vector<std::string>& by, std::vector<report::ValidatedRow>& rows) {
    const std::map<std::string, std::string> defaults{{"framework", "pytorch-eager"}, {"precision", "fp32"}};
    for (const std::string& name : by) {
        const auto column = table.column(name);
        const auto fallback = defaults.find(name);
        if (!column && fallback == defaults.end()) {
            throw Error(ErrorCode::usage, fmt::format("--by {}: {} has no such column", name, table.origin()));
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::string value(column ? table.row(i)[*column] : "");
            if (value.empty() && fallback != defaults.end()) value = fallback->second;
            rows[i].group.push_back(std::move(value));
        }
    }
}

int run_validate(const ValidateArguments& arguments) {
    CsvTable table = read_csv(arguments.rows);
    std::vector<report::ValidatedRow> rows;
    const bool operators = holds_operators(table);
    if (operators) {
        auto file = read_operator_measurements(std::move(table));
        rows = validate_operators(file, arguments);
        table = std::move(file.table);
    } else {
        auto file = read_model_measurements(std::move(table));
        rows = validate_models(file, arguments);
        table = std::move(file.table);
    }
    const std::string by = !arguments.by.empty() ? arguments.by : operators ? "gpu,op,precision" : "gpu,framework,precision";
    group_rows(table, split_list(by), rows);
    const report::ValidationReport report = summarise(table, split_list(by), rows);

    if (!arguments.predictions.empty()) write_file(arguments.predictions, predictions_csv(table, rows));
    write_result(arguments.output, {.table = [&] { return to_table(report, report::standard_output_style()); },
                                    .json = [&] { return to_json(report); },
                                    .csv = {}});
    if (arguments.max_mape_percent <= 0) return 0;
    return report.overall && 100 * report.overall->mean <= arguments.max_mape_percent ? 0 : over_max_mape;
}

}  // namespace

void setup_validate(CLI::App& app, Action& action) {
    CLI::App* verb = app.add_subcommand("validate", "predictions against measured rows (CSV), with error statistics");
    const auto arguments = std::make_shared<ValidateArguments>();
    verb->add_option("ROWS", arguments->rows, "measured models or operators (CSV)")->required();
    verb->add_option("--anchor", arguments->anchor, "measured rows that calibrate the hosts (CSV)")->type_name("ROWS.csv");
    verb->add_option("--profile", arguments->device_profile, "fitted device parameters instead of the built-in ones")
        ->type_name("FILE");
    verb->add_option("--models", arguments->models, "folder with models as files")->type_name("DIR");
    verb->add_option("--by", arguments->by, "columns to group by; default gpu,framework,precision or gpu,op,precision")
        ->type_name("COLUMNS");
    verb->add_option("--max-mape", arguments->max_mape_percent, "exit with 1 when the MAPE is larger")
        ->type_name("PERCENT")
        ->check(CLI::PositiveNumber);
    verb->add_option("--predictions", arguments->predictions, "write every row with its prediction")->type_name("OUT.csv");
    add_json_option(*verb, arguments->output);
    verb->callback([arguments, &action] { action = [arguments] { return run_validate(*arguments); }; });
}

}  // namespace ftax::cli
