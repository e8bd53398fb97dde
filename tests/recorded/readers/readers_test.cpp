#include "tests/recorded/readers/readers.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zip.h>

#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>

#include "calibration/bench/operator_cases.hpp"
#include "ftax/error.hpp"
#include "ftax/expression.hpp"
#include "ftax/import.hpp"
#include "ftax/nas.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "tests/fuzz/generated_onnx.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/recorded/recorded.hpp"

// Every field of every kind of file, left out and given another value: what the readers make of it, or how they refuse
// it.

using namespace ftax;
using namespace ftax::test;
using nlohmann::ordered_json;

namespace {

/// The readers that a target of fuzzing drives, on its bytes: each one's text, or how it refuses them.
std::vector<std::string> read_by(const std::string& target, const std::string& bytes) {
    static const std::map<std::string, std::vector<std::string>> by_target{
        {"config_json", {"config", "config-tp2-paged"}},
        {"expression", {"expression"}},
        {"kineto_trace", {"trace"}},
        {"measurement_csv", {"measurements"}},
        {"onnx_graph", {"onnx"}},
        {"onnx_wire", {"onnx"}},
        {"profile_json", {"device_profile", "framework_profile", "host_profile", "device"}},
        {"pt2_json", {"pt2"}},
        {"text_graph", {"text"}},
    };
    std::vector<std::string> results;
    const auto add = [&](const std::function<std::string()>& read_it) { results.push_back(digest(read_it)); };
    if (target == "onnx_operator") {
        fuzz::Choices choices(bytes);
        const std::string model = fuzz::generate_onnx(choices);
        add([&] { return readers().at("onnx")(model); });
        add([&] {
            Graph graph = import_onnx(model, "/nonexistent/f.onnx", small_limits());
            vary_batch(graph, graph.expressions.symbol("batch"));
            find_size_checks(graph);
            return described(graph);
        });
    } else if (target == "architecture") {
        static const std::vector<std::string> names = nas::space_names();
        const nas::Space& space = nas::space(names[static_cast<unsigned char>(bytes.at(0)) % names.size()]);
        add([&] {
            std::vector<int> choices;
            space.parse(std::string_view(bytes).substr(1), choices);
            return described(nas::build_graph(space, choices));
        });
    } else if (target == "generated_graph") {
        fuzz::Choices choices(bytes);
        add([&] {
            const fuzz::PredictedGraph drawn = fuzz::generate_prediction(choices);
            Predictor predictor(drawn.graph, *drawn.device, *drawn.framework, drawn.options);
            const Explanation e = predictor.explain(drawn.sizes);
            std::string text =
                fmt::format("{:.5g} {:.5g} {:.5g} {:.5g} {:.5g}", e.prediction.latency_s, e.prediction.low_s,
                            e.prediction.high_s, e.prediction.power_w, predictor.memory(drawn.sizes).capacity_bytes);
            for (const OpPrediction& launch : e.launches) {
                text += fmt::format(" {}/{:.5g}/{:.5g}/{}", launch.kernels, launch.host_s, launch.device_s,
                                    static_cast<int>(launch.bound));
            }
            for (const auto& kernels : e.kernels) {
                for (const KernelDetail& kernel : kernels) text += kernel.name + kernel.path;
            }
            return text + fmt::format("{}", fmt::join(e.prediction.warnings, ";"));
        });
    } else {
        for (const std::string& reader : by_target.at(target)) add([&] { return readers().at(reader)(bytes); });
    }
    return results;
}

std::string random_expression(std::mt19937& random, int depth) {
    const auto below = [&](unsigned limit) { return random() % limit; };
    if (depth == 0 || below(5) == 0) {
        const unsigned kind = below(4);
        return kind == 0 ? "b" : kind == 1 ? "s" : kind == 2 ? std::to_string(below(5)) : std::to_string(below(200));
    }
    const std::string a = random_expression(random, depth - 1), b = random_expression(random, depth - 1);
    constexpr std::array formats{"({} + {})",   "({} - {})",   "({} * {})", "({} // {})",
                                 "max({}, {})", "min({}, {})", "({} % {})", "-({} - 2*{})"};
    return fmt::format(fmt::runtime(formats[below(formats.size())]), a, b);
}

}  // namespace

TEST_CASE("each field of a JSON file, left out and changed, is read as recorded") {
    check_recorded("json_files.tsv", 2, [](std::span<const std::string> row) {
        const auto& reader = readers().at(row[0]);
        const ordered_json document = ordered_json::parse(read_source_file(row[1]));
        std::vector<ordered_json::json_pointer> places;
        places_of(document, ordered_json::json_pointer(), places);
        std::string left_out, changed;
        // One digest for each key, in order of the file: the key that changed can be found by its position.
        std::map<std::string, Digest> digests;
        std::vector<std::string> order;
        for (const auto& place : places) {
            std::string key = place.back();
            if (key.find_first_not_of("0123456789") == std::string::npos)
                key = place.parent_pointer().empty() ? key : place.parent_pointer().back();
            if (!digests.contains(key)) order.push_back(key);
            Digest& result = digests[key];
            const ordered_json original = document.at(place);
            ordered_json copy = document;
            ordered_json& parent = copy.at(place.parent_pointer());
            parent.is_array() ? parent.erase(std::stoul(place.back())) : void(parent.erase(place.back()));
            result.add(digest([&] { return reader(copy.dump()); }));
            copy = document;
            for (const ordered_json& other : other_values(original)) {
                copy.at(place) = other;
                result.add(digest([&] { return reader(copy.dump()); }));
            }
        }
        std::string cell;
        for (const std::string& key : order)
            cell += (cell.empty() ? "" : " ") + key.substr(0, 24) + ":" + digests[key].text(3);
        return std::vector<std::string>{digest([&] { return reader(document.dump()); }), cell};
    });
}

TEST_CASE("each cell of a table of measurements, left out and changed, is read as recorded") {
    check_recorded("csv_files.tsv", 2, [](std::span<const std::string> row) {
        const std::vector<std::string>& lines = lines_of(row[0]);
        const std::vector<std::string> names = split(lines[0]);
        std::string cell;
        for (std::size_t c = 0; c < names.size(); ++c) {
            Digest result;
            for (const std::size_t line : {std::size_t{1}, lines.size() / 2, lines.size() - 1}) {
                for (const char* value :
                     {"", " ", "0", "-1", "1", "2.5", "1e9", "1e-12", "nan", "word", "fp16", "b=1 m=2", "4096"}) {
                    std::vector<std::string> cells = split(lines[line]);
                    cells.resize(names.size());
                    cells[c] = value;
                    result.add(
                        digest([&] { return measured(fmt::format("{}\n{}\n", lines[0], fmt::join(cells, ","))); }));
                }
            }
            std::vector<std::string> fewer = names;
            fewer[c] = "unknown";
            result.add(digest([&] { return measured(fmt::format("{}\n{}\n", fmt::join(fewer, ","), lines[1])); }));
            cell += (cell.empty() ? "" : " ") + names[c].substr(0, 24) + ":" + result.text(3);
        }
        return std::vector<std::string>{digest([&] { return measured(fmt::format("{}\n", fmt::join(lines, "\n"))); }),
                                        cell};
    });
}

TEST_CASE("random expressions, simplified, are those that are recorded, and so are their values") {
    check_recorded("expressions.tsv", 1, [](std::span<const std::string> row) {
        std::mt19937 random(static_cast<unsigned>(std::stoul(row[0])));
        Digest result;
        for (int i = 0; i < 200; ++i) {
            const std::string text = random_expression(random, 4);
            result.add(digest([&] {
                ExpressionPool pool;
                const Expression e = pool.parse(text);
                return pool.to_string(e);
            }));
        }
        return std::vector<std::string>{result.text(6)};
    });
}

TEST_CASE("texts of graphs with a word left out, doubled or changed are read as recorded") {
    check_recorded("text_graphs.tsv", 1, [](std::span<const std::string> row) {
        const std::string text = read_source_file(row[0]);
        std::vector<std::string> cells{digest([&] { return described(parse_text_graph(text)); })};
        std::vector<std::size_t> starts;  // of words and signs
        for (std::size_t i = 0; i < text.size(); ++i) {
            const bool word = std::isalnum(static_cast<unsigned char>(text[i])) != 0;
            if (i == 0 || !word || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0) starts.push_back(i);
        }
        starts.push_back(text.size());
        const std::size_t step = std::max<std::size_t>(1, starts.size() / 400);
        Digest left_out, doubled, changed;
        for (std::size_t i = 0; i + 1 < starts.size(); i += step) {
            const std::size_t at = starts[i], size = starts[i + 1] - at;
            const std::string before = text.substr(0, at), word = text.substr(at, size), after = text.substr(at + size);
            left_out.add(digest([&] { return described(parse_text_graph(before + after)); }));
            doubled.add(digest([&] { return described(parse_text_graph(before + word + word + after)); }));
            for (const char* other : {"7", "-1", "x", "\"", ",", "batch"}) {
                changed.add(digest([&] { return described(parse_text_graph(before + other + after)); }));
            }
        }
        for (const Digest& d : {left_out, doubled, changed}) cells.push_back(d.text(6));
        return cells;
    });
}

TEST_CASE("operators that are measured, with the weights that calls rotate through, are those that are recorded") {
    check_recorded("measured_operators.tsv", 2, [](std::span<const std::string> row) {
        const int sms = std::stoi(row[1]);
        Digest shapes, graphs, sets;
        const std::vector<bench::OperatorCase> cases = row[0] == "dispatch"    ? bench::dispatch_operators()
                                                       : row[0] == "cpu_quick" ? bench::cpu_operators(true)
                                                       : row[0] == "cpu"       ? bench::cpu_operators(false)
                                                                               : bench::gpu_operators(sms);
        for (const bench::OperatorCase& c : cases) {
            shapes.add(c.op).add(bench::shape_text(c));
            const Graph graph = bench::operator_graph(c);
            graphs.add(described(graph)).add(static_cast<double>(bench::weight_bytes(graph)));
            for (const char* device : {"t4", "h100-sxm5-80gb"}) {
                for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::int8})
                    sets.add(bench::weight_sets(graph, precision, device_profile(device).device));
            }
        }
        return std::vector<std::string>{fmt::format("n{}", cases.size()), shapes.text(6), graphs.text(6), sets.text(6)};
    });
}

TEST_CASE("random architectures of each search space are the graphs that are recorded, and so are changed texts") {
    check_recorded("architectures.tsv", 1, [](std::span<const std::string> row) {
        const nas::Space& space = nas::space(row[0]);
        const std::vector<int> options = space.options();
        std::mt19937 random(3);
        Digest graphs, texts;
        double flops = 0;
        for (int i = 0; i < 60; ++i) {
            std::vector<int> choices;
            for (const int count : options)
                choices.push_back(static_cast<int>(random() % static_cast<unsigned>(count)));
            try {
                const Graph graph = nas::build_graph(space, choices);
                ShapeBindings bindings = space.usual_dims();
                bindings["batch"] = 2;
                flops += static_cast<double>(total_work(graph, ftax::bind(graph, bindings)).flops);
                if (i < 20) graphs.add(to_text(graph));
            } catch (const Error& error) {
                graphs.add(error.what());
            }
        }
        std::istringstream file(read_source_file("tests/recorded/files/" + row[0] + ".csv"));
        std::string line;
        std::getline(file, line);
        for (int count = 0; std::getline(file, line) && count < 3; ++count) {
            const std::size_t last = line.rfind(',');
            std::string text = line.substr(0, last);
            if (text.front() == '"') text = text.substr(1, text.size() - 2);
            for (std::size_t at; (at = text.find("\"\"")) != std::string::npos;) text.erase(at, 1);
            for (std::size_t i = 0; i <= text.size(); ++i) {
                for (const char* other : {"", "9", "-", "x", "]", "|"}) {
                    std::string changed = text;
                    if (i < text.size()) changed.replace(i, 1, other);
                    texts.add(digest([&] {
                        std::vector<int> choices;
                        space.parse(changed, choices);
                        return fmt::format("{}", fmt::join(choices, ","));
                    }));
                }
            }
        }
        return std::vector<std::string>{figure(flops), graphs.text(6), texts.text(6)};
    });
}

TEST_CASE("a configuration of each family gives the graph that is recorded, whole and with each field left out") {
    check_recorded("families.tsv", 1, [](std::span<const std::string> row) {
        const ordered_json config = family_document(row[0]);
        std::vector<std::string> cells;
        for (const char* options : {"", "tp2 paged", "static"}) {
            const auto import = [&](const ordered_json& document) {
                return digest(
                    [&] { return described(import_config(document.dump(), "f.json", "f", import_options(options))); });
            };
            cells.push_back(import(config));
            if (*options != 0) continue;
            Digest without;
            for (const auto& field : config.items()) {
                ordered_json copy = config;
                copy.erase(field.key());
                without.add(import(copy));
            }
            for (const char* part : {"text_config", "vision_config"}) {
                if (!config.contains(part)) continue;
                for (const auto& field : config[part].items()) {
                    ordered_json copy = config;
                    copy[part].erase(field.key());
                    without.add(import(copy));
                }
            }
            cells.push_back(without.text(4));
        }
        return cells;
    });
}

TEST_CASE("inputs that fuzzing found to reach other code are read as recorded") {
    std::map<std::string, std::string> members;
    int error = 0;
    zip_t* archive = zip_open(FTAX_SOURCE_DIR "/tests/recorded/files/fuzzed.zip", ZIP_RDONLY, &error);
    REQUIRE(archive != nullptr);
    for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
        zip_stat_t entry;
        REQUIRE(zip_stat_index(archive, static_cast<zip_uint64_t>(i), 0, &entry) == 0);
        std::string& bytes = members[entry.name];
        bytes.resize(entry.size);
        zip_file_t* member = zip_fopen_index(archive, static_cast<zip_uint64_t>(i), 0);
        REQUIRE(zip_fread(member, bytes.data(), entry.size) == static_cast<zip_int64_t>(entry.size));
        zip_fclose(member);
    }
    zip_close(archive);
    check_recorded("fuzzed.tsv", 3, [&](std::span<const std::string> row) {
        const std::string bytes = members.at(row[0]).substr(std::stoul(row[1]), std::stoul(row[2]));
        return std::vector<std::string>{fmt::format("{}", fmt::join(read_by(row[0], bytes), " "))};
    });
}
