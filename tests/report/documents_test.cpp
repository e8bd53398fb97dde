#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "graphs/files/file.hpp"
#include "src/report/comparison_report.hpp"
#include "src/report/device_report.hpp"
#include "src/report/generation_report.hpp"
#include "src/report/headroom_report.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/model_report.hpp"
#include "src/report/quantities.hpp"
#include "src/report/serving_report.hpp"
#include "src/report/validation_report.hpp"
#include "tests/program.hpp"
#include "tests/temporary_folder.hpp"

// Writes the JSON schemas and the tables of docs/outputs.md (`make golden`), otherwise checks them. Fields, types and
// which fields may be absent are those of the documents of the commands in documents.txt; meanings are those of the
// columns, and of document_fields.json for fields that are no columns.

using namespace ftax;
using namespace ftax::report;

namespace {

const std::string folder = std::string(FTAX_SOURCE_DIR) + "/tests/report/";
const std::string schemas = std::string(FTAX_SOURCE_DIR) + "/src/report/assets/schemas.json";
const std::string page = std::string(FTAX_SOURCE_DIR) + "/docs/outputs.md";

/// Fields whose keys are names that the user gave.
const std::set<std::string> maps{"dims", "bindings", "powers", "group"};

using Path = std::vector<std::string>;  ///< "predict", "predictions", "batch"

std::string joined_path(const Path& path, char by) {
    return fmt::format("{}", fmt::join(path, std::string(1, by)));
}

struct Field;

/// What documents have at one place.
struct Shape {
    std::set<std::string> types;
    std::vector<Field> fields;          ///< in the order of their first occurrence
    std::map<std::string, int> counts;  ///< objects with the field
    int objects = 0;
    std::vector<Shape> items;  ///< one for the items of a list

    void add(const Json& value);
};

struct Field {
    std::string key;
    Shape shape;
};

void Shape::add(const Json& value) {
    types.insert(value.is_number_integer() ? "integer" : value.type_name());
    if (value.is_array()) {
        if (items.empty()) items.emplace_back();
        for (const Json& item : value) items[0].add(item);
    }
    if (!value.is_object()) return;
    ++objects;
    std::size_t at = 0;
    for (const auto& [key, field] : value.items()) {
        auto known = std::ranges::find(fields, key, &Field::key);
        if (known == fields.end()) known = fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(at), {key, {}});
        known->shape.add(field);
        ++counts[key];
        at = static_cast<std::size_t>(known - fields.begin()) + 1;
    }
}

/// The columns whose selections are the lists and objects of documents.
std::map<std::string, std::vector<Grid::Head>> columns_by_path() {
    PredictionReport prediction;
    prediction.rows.emplace_back();
    const auto heads = [](const auto& columns) {
        std::vector<Grid::Head> list;
        for (const auto& column : columns.all())
            list.push_back({column.key, column.title, column.unit, column.meaning});
        return list;
    };
    const GenerationReport generation;
    const ServingReport serving;
    const HeadroomReport headroom;
    const ComparisonReport comparison;
    const Graph graph;
    std::map<std::string, std::vector<Grid::Head>> all{
        {"predict.predictions", heads(prediction_row_columns(prediction))},
        {"predict.predictions.parts", heads(share_columns("", {}))},
        {"predict.crossover", heads(crossover_columns())},
        {"predict.crossover.further", heads(crossover_columns())},
        {"predict.diagnosis", diagnosis_grid(prediction, "").heads},
        {"predict.advice", advice_grid(prediction, "").heads},
        {"compare.rows", heads(comparison_columns(comparison))},
        {"generate.predictions", heads(generation_columns(generation))},
        {"generate.predictions.prefill", heads(prediction_columns())},
        {"generate.predictions.decode", heads(prediction_columns())},
        {"headroom.headroom", heads(growth_columns())},
        {"headroom.frameworks", heads(switch_columns(headroom))},
        {"serve.rows", heads(serving_columns(serving))},
        {"validate.overall", heads(error_columns())},
        {"validate.groups", heads(error_columns())},
        {"validate.profiles", heads(profile_columns())},
        {"inspect.total", heads(work_columns(""))},
        {"inspect.by_kind", heads(work_columns(""))},
        {"inspect.by_module", heads(work_columns(""))},
        {"inspect.open", heads(dimension_columns())},
        {"inspect.stream", heads(stream_columns())},
        {"inspect.launches", heads(launch_columns(graph))},
        {"inspect.launches.kernel_details", heads(kernel_columns())}};
    for (const char* list : {"predict.predictions", "compare.rows", "generate.predictions", "serve.rows"})
        all[std::string(list) + ".memory"] = heads(memory_columns());
    return all;
}

/// The meaning of a field: of the column of that name in the nearest list or object with columns; the field b of an
/// object a there is the column a_b.
std::string meaning_of(const Path& path) {
    static const auto columns = columns_by_path();
    static const Json others = Json::parse(read_file(folder + "document_fields.json"));
    for (std::size_t length = path.size() - 1; length > 0; --length) {
        const auto found = columns.find(joined_path(Path(path.begin(), path.begin() + length), '.'));
        if (found == columns.end()) continue;
        const std::string key = joined_path(Path(path.begin() + length, path.end()), '_');
        for (auto head = found->second.rbegin(); head != found->second.rend(); ++head)  // the last of a key holds
            if (head->key == key && !head->meaning.empty()) return std::string(head->meaning);
        break;
    }
    for (const std::string& name : {joined_path(path, '.'), path.back()})
        if (others.contains(name)) return others[name];
    return "";
}

Json schema_of(const Shape& shape, const Path& path) {
    std::set<std::string> types = shape.types;
    if (types.contains("number")) types.erase("integer");
    const bool is_null = types.erase("null") > 0;
    REQUIRE_MESSAGE(types.size() == 1, joined_path(path, '.'), " has several types, or is null in every document");
    Json schema{{"type", *types.begin()}};
    if (is_null) schema["type"] = {*types.begin(), "null"};
    if (const std::string meaning = path.size() > 1 ? meaning_of(path) : ""; !meaning.empty())
        schema["description"] = meaning;
    if (*types.begin() == "array") {
        const bool is_empty = shape.items[0].types.empty();  // in every document
        REQUIRE_MESSAGE((!is_empty || path.back() == "warnings" || path.back() == "unknown"), joined_path(path, '.'));
        schema["items"] = is_empty ? Json{{"type", "string"}} : schema_of(shape.items[0], path);
    }
    if (schema.contains("items")) schema["items"].erase("description");
    if (shape.objects == 0 || (path.size() > 1 && maps.contains(path.back()))) return schema;
    schema["properties"] = Json::object();
    schema["required"] = Json::array();
    schema["additionalProperties"] = false;
    for (const auto& [key, field] : shape.fields) {
        Path inner = path;
        inner.push_back(key);
        schema["properties"][key] = schema_of(field, inner);
        if (shape.counts.at(key) == shape.objects) schema["required"].push_back(key);
    }
    return schema;
}

/// JSON whose short lists and objects are on one line each.
std::string compact(const Json& json, int level = 1) {
    constexpr std::size_t short_enough = 140;
    if (const std::string line = json.dump(); line.size() <= short_enough || !json.is_structured()) return line;
    std::vector<std::string> items;
    for (const auto& [key, value] : json.items())
        items.push_back(std::string(static_cast<std::size_t>(level), ' ') +
                        (json.is_object() ? Json(key).dump() + ": " : "") + compact(value, level + 1));
    return fmt::format("{}\n{}\n{}{}", json.is_object() ? "{" : "[", fmt::join(items, ",\n"),
                       std::string(static_cast<std::size_t>(level - 1), ' '), json.is_object() ? "}" : "]");
}

/// Reports with the parts that no command above has.
std::vector<std::pair<std::string, std::string>> made_documents() {
    PredictionReport prediction;
    PredictionRow& row = prediction.rows.emplace_back();
    row.batch = 1;
    row.measured = {.latency_s = 0.5, .device_s = 0.5};
    row.branches = LatencyRange{0.5, 0.5};
    row.memory = MemoryUse{};
    row.parts = {{.name = "unet"}};
    prediction.crossover = CrossoverReport{.crossovers = {{.causes = {{}}}, {.causes = {{}}}}};
    ValidationReport validation;
    validation.groups = {{.cause = Hypothesis{}}};
    validation.skipped = {{"", {1}}};
    validation.overall = ErrorStatistics{};
    validation.profiles = {{}};
    validation.anchors["T4"] = {.runs = {{}}};
    ServingReport serving;
    serving.rows.emplace_back().serving.timeline.emplace_back().time_s = 1;
    serving.rows.front().energy_per_item_j = 1;
    serving.ranking.has_level = true;
    serving.level.ttft_s = serving.level.tpot_s = serving.level.latency_s = 1;
    serving.measured = {{"tokens_per_s", 1}};
    DeviceSpec device = device_spec("t4");  // quantities of other devices are no whole numbers
    device.base_clock_hz = device.boost_clock_hz = device.memory_bytes = device.memory_bandwidth_bytes_per_s = 0.5;
    device.l2_bytes = device.shared_memory_per_sm_bytes = device.registers_per_sm = device.power_limit_w = 0.5;
    std::ranges::fill(device.peak_flops_per_s, 0.5);
    return {{"predict", to_json(prediction)},          {"validate", to_json(validation)},
            {"validate", to_json(ValidationReport{})}, {"serve", to_json(serving)},
            {"devices", device_list_json({device})},   {"inspect", to_json(OpenModelReport{})}};
}

/// The documents of each command, of `inspect` in its four kinds.
std::vector<std::pair<std::string, std::vector<Shape>>> documents() {
    const test::TemporaryFolder files;
    files.write("ROWS",
                "gpu,framework,precision,model,batch,latency_ms\nT4,,fp32,resnet18,1,4.7\nT4,,fp32,resnet18,8,9.9\n"
                "T4,,fp32,unheard,1,3\n");
    files.write("OPERATORS", "gpu,op,precision,shape,latency_ms\nT4,linear,fp32,b=1 m=512 n=512 k=512,0.09\n");
    std::ifstream seeing(std::string(FTAX_SOURCE_DIR) + "/tests/cli/seeing.json");
    files.write("SEEING.json", std::string(std::istreambuf_iterator<char>(seeing), std::istreambuf_iterator<char>()));
    files.write("ONE.txt",
                "graph one\ninput %x f32[4,64]\nweight %w f32[64,64]\n%y f32[4,64] = linear(%x, %w)\noutput %y\n");
    std::vector<std::pair<std::string, std::vector<Shape>>> found;
    const auto add = [&](std::string command, const std::string& text) {
        const Json document = Json::parse(text);
        const char* const kinds[] = {"by_kind", "open", "stream", "launches"};
        std::size_t kind = 0;
        while (command == "inspect" && !document.contains(kinds[kind])) ++kind;
        auto known = std::ranges::find(found, command, [](const auto& c) { return c.first; });
        if (known == found.end()) known = found.insert(known, {command, {}});
        known->second.resize(std::max(known->second.size(), kind + 1));
        known->second[kind].add(document);
    };
    std::ifstream lines(folder + "documents.txt");
    for (std::string line; std::getline(lines, line);) {
        const ProgramRun run = run_program(line + " --json", "cd " + files.path.string());
        REQUIRE_MESSAGE(run.exit_code == 0, line, run.errors);
        const std::string command = line.substr(0, line.find(' '));
        add(command == "crossover" ? "predict" : command, run.output);  // the same report
    }
    for (const auto& [command, text] : made_documents()) add(command, text);
    return found;
}

Json all_schemas() {
    Json all;
    for (const auto& [command, kinds] : documents()) {
        if (kinds.size() == 1) {
            all[command] = schema_of(kinds[0], {command});
        } else {
            for (const Shape& kind : kinds) all[command]["anyOf"].push_back(schema_of(kind, {command}));
        }
        if (command == "predict") all["crossover"] = all[command];
    }
    return all;
}

/// Rows of a table of the fields at a path; "a.b" for the field b of an object a. Fields whose names say it all are
/// listed below.
std::string table_of(const Json& schema) {
    std::string rows;
    std::vector<std::string> others;
    const std::function<void(const Json&, const std::string&)> add = [&](const Json& object,
                                                                         const std::string& prefix) {
        for (const auto& [name, field] : object["properties"].items()) {
            if (name == "schema_version") continue;
            if (field.contains("description")) {
                rows += fmt::format("| `{}{}` | {} |\n", prefix, name, field["description"].get<std::string>());
            } else if (!field.contains("properties")) {
                others.push_back(fmt::format("`{}{}`", prefix, name));
            }
            if (field.contains("properties")) add(field, prefix + name + ".");
        }
    };
    add(schema, "");
    return fmt::format("| field | meaning |\n|---|---|\n{}{}", rows,
                       others.empty() ? "" : fmt::format("\nFurther fields: {}.\n", fmt::join(others, ", ")));
}

/// The page with each table between "<!-- fields of PATH -->" and "<!-- end -->" as the schemas have it.
std::string written_page(const std::string& text, const Json& all) {
    std::istringstream lines(text);
    std::string result;
    bool is_table = false;
    for (std::string line; std::getline(lines, line);) {
        if (line == "<!-- end -->") is_table = false;
        if (!is_table) result += line + "\n";
        constexpr std::string_view start = "<!-- fields of ";
        if (!line.starts_with(start)) continue;
        is_table = true;
        Json at{{"properties", all}};
        std::istringstream path(line.substr(start.size(), line.find(" -->") - start.size()));
        for (std::string name; std::getline(path, name, '.');) {
            at = Json(at.at("properties").at(name.substr(0, name.find(':'))));
            if (at.contains("items")) at = Json(at["items"]);
            const std::string mark = name.substr(name.find(':') + 1);  // "inspect:open": the kind that has this field
            for (const Json& kind : Json(at.value("anyOf", Json::array())))
                if (kind["properties"].contains(mark)) at = Json(kind);
        }
        result += table_of(at);
    }
    return result;
}

}  // namespace

TEST_CASE("schemas and the tables of docs/outputs.md are those of the columns") {
    const Json all = all_schemas();
    const std::string text = compact(all) + "\n", tables = written_page(read_file(page), all);
    if (std::getenv("FTAX_UPDATE_GOLDEN")) {
        write_file(schemas, text);
        write_file(page, tables);
    } else {
        const bool is_same_schema = read_file(schemas) == text, is_same_page = read_file(page) == tables;
        CHECK_MESSAGE(is_same_schema, schemas, " is not that of the columns; `make golden` writes it");
        CHECK_MESSAGE(is_same_page, page, " is not that of the columns; `make golden` writes it");
    }
}
