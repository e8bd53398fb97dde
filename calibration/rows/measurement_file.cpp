#include "calibration/rows/measurement_file.hpp"

#include <fmt/format.h>

#include <map>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/number.hpp"

namespace ftax {
namespace {

/// The cells of one row by column name, empty for absent columns. The first unusable value is the row's problem.
class RowReader {
  public:
    RowReader(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

    [[nodiscard]] std::string_view text(std::string_view name) const { return table_.cell(row_, name); }

    [[nodiscard]] std::string required_text(std::string_view name) {
        if (text(name).empty()) report(fmt::format("no {}", name));
        return std::string(text(name));
    }

    [[nodiscard]] std::optional<std::int64_t> count(std::string_view name, std::int64_t least = 1,
                                                    std::optional<std::string_view> part = {}) {
        const std::string_view cell = part.value_or(text(name));
        if (cell.empty() && !part) return std::nullopt;
        const auto value = parse_integer(cell);
        if (!value || *value < least) {
            const std::string_view kind = least == 1 ? "positive whole number" : "whole number";
            report(fmt::format("{} is not a {}: {}", name, kind, escape_terminal(excerpt(cell))));
            return std::nullopt;
        }
        return value;
    }

    [[nodiscard]] std::int64_t required_count(std::string_view name) {
        if (text(name).empty()) report(fmt::format("no {}", name));
        return count(name).value_or(1);
    }

    [[nodiscard]] double latency_s(std::string_view name = "latency_ms", double unit_s = 1e-3) {
        const std::string_view cell = text(name);
        const auto value = parse_number(cell);
        if (!value || *value * unit_s < 1e-9) {
            report(cell.empty() ? fmt::format("no {}", name)
                                : fmt::format("{} is not {}{}: {}", name,
                                              value && *value > 0 ? "a nanosecond or more" : "a positive number",
                                              cell.find(',') == cell.npos ? "" : " (write decimals with a point)",
                                              escape_terminal(excerpt(cell))));
            return 0;
        }
        return *value * unit_s;
    }

    [[nodiscard]] Precision precision() {
        const std::string_view cell = text("precision");
        if (cell.empty()) return Precision::fp32;
        const auto precision = precision_from_name(cell);
        if (!precision) report(fmt::format("unknown precision: {}", escape_terminal(excerpt(cell))));
        return precision.value_or(Precision::fp32);
    }

    /// Reads a framework and its version: from a cell "vllm@0.11" or the columns version and framework_version; for
    /// PyTorch also from the column torch, and "240" is 2.4.
    void framework(std::string& name, std::string& version) {
        if (const std::string_view cell = text("framework"); !cell.empty()) name = lower_case(cell);
        const auto [bare_name, of_name] = split_at(name, '@');
        if (!of_name.empty()) version = of_name;
        name.resize(bare_name.size());
        const bool of_torch = name.find("torch") != std::string::npos;
        for (const char* column : {"torch", "version", "framework_version"})
            if (version.empty() && (of_torch || column != std::string_view("torch"))) version = text(column);
        const auto digits = of_torch ? parse_integer(version) : std::nullopt;
        if (digits && *digits >= 100) version = fmt::format("{}.{}", *digits / 100, *digits / 10 % 10);
    }

    void report(std::string problem) {
        if (problem_.empty()) problem_ = std::move(problem);
    }
    [[nodiscard]] std::string take_problem() { return std::move(problem_); }

  private:
    const CsvTable& table_;
    std::size_t row_;
    std::string problem_;
};

/// Parses "b=6 m=27 n=390 k=21".
std::map<std::string, std::int64_t> parse_shape(RowReader& reader) {
    std::map<std::string, std::int64_t> shape;
    if (reader.text("shape").empty()) reader.report("no shape");
    for (const std::string_view part : words_of(reader.text("shape"))) {
        if (part.empty()) continue;
        const auto [name, number] = split_at(part, '=');
        const auto value = parse_integer(number);
        if (!value || *value < 0 || !shape.emplace(name, *value).second) {
            reader.report(
                fmt::format("shape is not a list of name=number: {}", escape_terminal(excerpt(reader.text("shape")))));
            break;
        }
    }
    return shape;
}

Measurement read_model(RowReader& reader) {
    Measurement row;
    row.gpu = reader.required_text("gpu");
    reader.framework(row.framework, row.version);
    row.precision = reader.precision();
    row.model = reader.required_text("model");
    row.batch = reader.required_count("batch");
    const std::string_view side = reader.text("input").empty() ? "img" : "input";
    const auto [height, width] = split_at(reader.text(side), 'x');
    if (!width.empty()) row.height = reader.count(side, 1, height);
    row.input = width.empty() ? reader.count(side) : reader.count(side, 1, width);
    row.seq = reader.count("seq");
    row.run = reader.text("run");
    row.mode = reader.text("mode");
    row.option = reader.text("option");
    row.layout = reader.text("layout");
    const std::string_view kind = reader.text("kind");
    row.copies = kind == "with_copies";
    if (kind == "gpu" || kind == "enqueue") row.mode = kind;
    row.cpu = reader.text("cpu");
    row.era = reader.text("era");
    return row;
}

OperatorMeasurement read_operator(RowReader& reader) {
    OperatorMeasurement row;
    row.gpu = reader.required_text("gpu");
    row.op = reader.required_text("op");
    row.precision = reader.precision();
    row.shape = parse_shape(reader);
    row.order = reader.count("order", 0);
    row.kernel = reader.text("kernel");
    row.mode = reader.text("mode");
    row.library = reader.text("library");
    row.weights = reader.count("weights");
    return row;
}

LanguageMeasurement read_language(RowReader& reader) {
    LanguageMeasurement row;
    row.gpu = reader.required_text("gpu");
    static_cast<void>(reader.required_text("framework"));
    reader.framework(row.framework, row.version);
    row.precision = reader.precision();
    row.model = reader.required_text("model");
    row.prompt = reader.required_count("isl");
    row.new_tokens = reader.required_count("osl");
    row.cards = reader.count("tp").value_or(1);
    row.clients = reader.count("concurrency").value_or(0);
    row.data_parallel = reader.count("dp").value_or(1);
    row.expert_parallel = reader.count("ep").value_or(1);
    row.most_sequences = reader.count("max_num_seqs").value_or(0);
    constexpr std::int64_t most_clients = 100'000;  // each is simulated
    if (row.clients > most_clients) reader.report(fmt::format("concurrency is more than {}", most_clients));
    if (row.clients == 0) row.batch = reader.required_count("batch");
    if (row.clients > 0 && reader.text("precision").empty()) reader.report("no precision");
    if (row.clients > 0 && row.new_tokens == 1) reader.report("osl is 1: there is no time per further token");
    return row;
}

/// Returns for each row the first one whose cells are the same, but for those of its time.
std::vector<std::size_t> first_of_cells(const CsvTable& table) {
    std::vector<std::size_t> first, times;
    for (const char* name : {"latency_ms", "latency_s", "tpot_ms"})
        if (const auto column = table.column(name)) times.push_back(*column);
    std::map<std::vector<std::string_view>, std::size_t> known;
    for (std::size_t i = 0; i < table.rows(); ++i) {
        std::vector<std::string_view> cells(table.row(i).begin(), table.row(i).end());
        for (const std::size_t time : times) cells[time] = {};
        first.push_back(known.try_emplace(std::move(cells), i).first->second);
    }
    return first;
}

template <class Row>
MeasurementFile<Row> read_rows(CsvTable table, Row (*read)(RowReader&)) {
    std::vector<Row> rows;
    std::vector<std::string> problems;
    std::vector<std::size_t> alike = first_of_cells(table);
    std::map<Row, std::size_t> known;
    rows.reserve(table.rows());
    problems.reserve(table.rows());
    for (std::size_t i = 0; i < table.rows(); ++i) {
        RowReader reader(table, i);
        const std::size_t first = alike[i];
        const bool is_read = first < i && problems[first].empty();
        rows.push_back(is_read ? rows[first] : read(reader));
        alike[i] = is_read ? alike[first] : known.try_emplace(rows.back(), i).first->second;
        Row& row = rows.back();
        row.line = table.line(i);
        if constexpr (requires { row.clients; })
            row.latency_s = row.clients > 0 ? reader.latency_s("tpot_ms") : reader.latency_s("latency_s", 1);
        else
            row.latency_s = reader.latency_s();
        problems.push_back(reader.take_problem());
    }
    return {std::move(table), std::move(rows), std::move(problems), std::move(alike)};
}

}  // namespace

bool holds_operators(const CsvTable& table) {
    return table.column("op").has_value();
}

bool holds_language_models(const CsvTable& table) {
    return table.column("isl") && table.column("osl");
}

MeasurementFile<Measurement> read_model_measurements(CsvTable table) {
    table.require({"gpu", "model", "batch", "latency_ms"});
    return read_rows<Measurement>(std::move(table), read_model);
}

MeasurementFile<OperatorMeasurement> read_operator_measurements(CsvTable table) {
    table.require({"gpu", "op", "shape", "latency_ms"});
    return read_rows<OperatorMeasurement>(std::move(table), read_operator);
}

MeasurementFile<LanguageMeasurement> read_language_measurements(CsvTable table) {
    if (table.column("concurrency")) {
        table.require({"gpu", "framework", "model", "isl", "osl", "concurrency"});
    } else {
        table.require({"gpu", "framework", "model", "isl", "osl", "batch", "latency_s"});
    }
    return read_rows<LanguageMeasurement>(std::move(table), read_language);
}

}  // namespace ftax
