#include "tests/recorded/readers/readers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "calibration/rows/kineto_trace.hpp"
#include "calibration/rows/measurement_file.hpp"
#include "ftax/error.hpp"
#include "ftax/graph_builder.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/loading.hpp"
#include "predictors/profiles/device_file.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "tests/graphs/pt2/archives.hpp"
#include "tests/recorded/recorded.hpp"

namespace ftax::test {
using nlohmann::ordered_json;
namespace {

std::string described(const std::vector<Parameter>& parameters) {
    std::string text;
    for (const Parameter& p : parameters)
        text += fmt::format("{} {} {} {};", p.name, p.value, p.relative_stddev, p.source);
    return text;
}

/// Two passes of a small network on a card.
std::string described(const DeviceSpec& spec) {
    static const Graph graph = [] {
        GraphBuilder net("net");
        const TensorId x = net.input("x", {"batch", "64", "28", "28"});
        const TensorId y = net.relu(net.batch_norm(net.conv(x, 128, {.kernel = 3, .pad = 1})));
        return net.finish({net.softmax(net.linear(net.flatten(net.global_average_pool(y), 1), 1000))});
    }();
    DeviceProfile profile;
    profile.device = spec;
    std::string text = fmt::format("{} {} {} {} {}.{} {} {} {} {}", spec.slug, spec.name, spec.host_cpu,
                                   spec.aliases.size(), spec.compute_capability_major, spec.compute_capability_minor,
                                   spec.peer_bandwidth_bytes_per_s.value_or(0), spec.least_power_w.value_or(0),
                                   spec.host_slowdown.value_or(0), spec.kernel_gap_s.value_or(0));
    for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::int8}) {
        for (const std::int64_t batch : {1, 64}) {
            try {
                Predictor predictor(graph, profile, framework_profile("pytorch-eager"), {.precision = precision});
                const Prediction p = predictor.predict({{"batch", batch}});
                text += fmt::format(" {:.6g} {:.6g} {:.6g} {:.6g}", p.latency_s, p.device_s, p.high_s, p.power_w);
                text += fmt::format(" {:.6g}", predictor.memory({{"batch", batch}}).capacity_bytes);
            } catch (const Error& error) {
                text += error.what();
            }
        }
    }
    return text;
}

template <class Number>
std::string number(const std::optional<Number>& value) {
    return value ? fmt::format("{}", *value) : "none";
}

}  // namespace

std::string described(const Graph& graph) {
    std::string text = to_text(graph);
    ShapeBindings bindings;
    for (const std::string& symbol : graph.expressions.symbols()) bindings[symbol] = 2;
    const Work work = total_work(graph, ftax::bind(graph, bindings));
    for (const ModuleCall& call : graph.module_calls) text += call.path + call.type;
    for (const std::string& warning : graph.warnings) text += warning;
    return text + fmt::format("{} {} {}", work.flops, work.read_bytes, work.write_bytes);
}

ImportOptions import_options(const std::string& text) {
    ImportOptions options;
    options.last_layers = 2;
    if (text.find("tp2") != std::string::npos) options.tensor_parallel = 2;
    if (text.find("paged") != std::string::npos) options.cache.kind = CacheKind::paged;
    if (text.find("static") != std::string::npos) options.cache.kind = CacheKind::fixed;
    return options;
}

std::string measured(const std::string& text) {
    const CsvTable table(text, "f.csv");
    std::string result;
    if (holds_operators(table)) {
        const auto file = read_operator_measurements(table);
        for (std::size_t i = 0; i < file.rows.size(); ++i) {
            const OperatorMeasurement& r = file.rows[i];
            result += fmt::format("{}|{}|{}|{}|{}|{}|{}|{};", r.gpu, r.op, r.shape, r.latency_s,
                                  static_cast<int>(r.precision), r.mode,
                                  r.library + r.kernel + number(r.order) + number(r.weights), file.problems[i]);
            for (const auto& [name, value] : r.shape) result += fmt::format("{}={} ", name, value);
        }
    } else if (holds_language_models(table)) {
        const auto file = read_language_measurements(table);
        for (std::size_t i = 0; i < file.rows.size(); ++i) {
            const LanguageMeasurement& r = file.rows[i];
            result += fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{};", r.gpu, r.model, r.framework, r.version,
                                  static_cast<int>(r.precision), r.batch, r.prompt, r.new_tokens, r.cards, r.latency_s,
                                  file.problems[i]);
        }
    } else {
        const auto file = read_model_measurements(table);
        for (std::size_t i = 0; i < file.rows.size(); ++i) {
            const Measurement& r = file.rows[i];
            result += fmt::format("{}|{}|{}|{}|{}|{}|{}|{};", r.gpu, r.model, r.framework,
                                  static_cast<int>(r.precision), r.batch, r.latency_s, r.run, file.problems[i]);
            result += fmt::format("{}|{}|{}|{}|{}|{}|{}|{};", number(r.input), number(r.seq), r.mode, r.option,
                                  r.layout, r.version, r.copies, r.era);
        }
    }
    return result;
}

ImportOptions small_limits() {
    ImportOptions options;
    options.max_nodes = 2000;
    options.max_bytes = 1 << 20;
    return options;
}

const std::map<std::string, std::function<std::string(const std::string&)>>& readers() {
    static const std::map<std::string, std::function<std::string(const std::string&)>> all{
        {"config",
         [](const std::string& text) { return described(import_config(text, "f.json", "f", import_options(""))); }},
        {"config-tp2-paged",
         [](const std::string& text) {
             return described(import_config(text, "f.json", "f", import_options("tp2 paged")));
         }},
        {"config-static",
         [](const std::string& text) {
             return described(import_config(text, "f.json", "f", import_options("static")));
         }},
        {"device", [](const std::string& text) { return described(parse_device(text, "f.json")); }},
        {"device_profile", [](const std::string& text) { return to_text(parse_device_profile(text, "f.json")); }},
        {"framework_profile", [](const std::string& text) { return to_text(parse_framework_profile(text, "f.json")); }},
        {"host_profile", [](const std::string& text) { return to_text(parse_host_profile(text, "f.json")); }},
        {"uncertainty",
         [](const std::string& text) {
             const VarianceComponents components = parse_variance_components(text, "f.json");
             const DeviceFactors prior = prior_factors(components);
             return to_text(components) + fmt::format("{} {}", prior.covariance[0][0], prior.covariance[1][1]);
         }},
        {"stack",
         [](const std::string& text) {
             const Stack s = parse_stack(text, "f.json");
             std::string result =
                 fmt::format("{} {} {} {} {} {} {} ", s.version, s.libraries.cudnn, s.libraries.engine,
                             s.libraries.tensorrt, s.libraries.torch, s.scale_log_stddev, s.model_log_stddev);
             for (const std::string& framework : s.frameworks) result += framework;
             result += described(s.costs) + described(s.ratios);
             return result + described(on_stack(framework_profile("pytorch-eager"), s, 1.5).parameters);
         }},
        {"pt2",
         [](const std::string& text) {
             const TemporaryFile file("recorded.pt2", zip_bytes({{"m/models/model.json", text}}));
             try {
                 Graph graph = load_graph(file.path());
                 graph.name = "f";
                 return described(graph);
             } catch (const Error& error) {
                 std::string message = error.what();
                 if (message.starts_with(file.path())) message.erase(0, file.path().size());
                 throw Error(error.code(), message);
             }
         }},
        {"trace",
         [](const std::string& text) {
             std::istringstream in(text);
             const KinetoTrace trace = read_kineto_trace(in, "f.json");
             std::string result = fmt::format("{} {} {} {} {}", trace.gpu, trace.damage.unreadable,
                                              trace.damage.untimed, trace.damage.lost_kernels, trace.damage.truncated);
             for (const TraceEvent& e : trace.events) {
                 result += fmt::format(";{} {} {:.9g} {:.9g} {} {} {}", static_cast<int>(e.kind), e.name, e.start_s,
                                       e.end_s, e.thread, e.correlation, e.external_id);
             }
             return result;
         }},
        {"measurements", measured},
        {"text", [](const std::string& text) { return described(parse_text_graph(text)); }},
        {"onnx",
         [](const std::string& text) { return described(import_onnx(text, "/nonexistent/f.onnx", small_limits())); }},
        {"expression",
         [](const std::string& text) {
             ExpressionPool pool;
             return pool.to_string(pool.parse(text));
         }},
    };
    return all;
}

std::string digest(const std::function<std::string()>& read_it) {
    try {
        return Digest().add_printed(read_it()).text(3);
    } catch (const Error& error) {
        return "!" + Digest().add(static_cast<double>(error.code())).add(error.what()).text(2);
    }
}

std::vector<ordered_json> other_values(const ordered_json& value) {
    std::vector<ordered_json> others{nullptr, "word", 0, -1, ordered_json::array(), ordered_json::object()};
    if (value.is_number_integer()) {
        others.push_back(value.get<std::int64_t>() + 1);
        others.push_back(value.get<std::int64_t>() - 1);
        others.push_back(value.get<std::int64_t>() * 2);
        others.push_back(1);
        others.push_back(1.5);
        others.push_back(1e30);
    } else if (value.is_number()) {
        others.push_back(value.get<double>() * 1.25);
        others.push_back(1e-300);
        others.push_back(1e300);
    } else if (value.is_boolean()) {
        others.push_back(!value.get<bool>());
    } else if (value.is_string()) {
        others.push_back(value.get<std::string>() + "x");
        others.push_back("");
    } else if (value.is_array() && !value.empty()) {
        ordered_json longer = value, shorter = value;
        longer.push_back(value[0]);
        shorter.erase(shorter.size() - 1);
        others.push_back(longer);
        others.push_back(shorter);
    }
    return others;
}

void places_of(const ordered_json& value, const ordered_json::json_pointer& at,
               std::vector<ordered_json::json_pointer>& places) {
    if (!at.empty()) places.push_back(at);
    if (value.is_object()) {
        for (const auto& item : value.items()) places_of(item.value(), at / item.key(), places);
    } else if (value.is_array()) {
        for (std::size_t i = 0; i < std::min<std::size_t>(value.size(), 2); ++i) places_of(value[i], at / i, places);
    }
}

const std::vector<std::string>& lines_of(const std::string& path) {
    static std::map<std::string, std::vector<std::string>> files;
    std::vector<std::string>& lines = files[path];
    if (lines.empty()) {
        std::istringstream in(read_source_file(path));
        for (std::string line; std::getline(in, line);) lines.push_back(line);
    }
    return lines;
}

nlohmann::ordered_json family_document(const std::string& model_type) {
    auto document = nlohmann::ordered_json::parse(read_source_file("tests/recorded/files/family.json"));
    document["model_type"] = model_type;
    const auto fields = nlohmann::ordered_json::parse(read_source_file("tests/recorded/files/family_fields.json"));
    if (fields.contains(model_type)) document.update(fields[model_type]);
    return document;
}

std::vector<std::string> split(const std::string& line, char separator) {
    std::vector<std::string> cells{""};
    for (const char c : line) c == separator ? void(cells.emplace_back()) : void(cells.back() += c);
    return cells;
}

}  // namespace ftax::test
