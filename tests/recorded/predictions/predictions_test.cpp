#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "tests/recorded/recorded.hpp"

// Predictions of networks and of single operators under every framework, on every generation of cards: whatever
// changes one of them shows. tests/recorded/draw.py has drawn the rows.

using namespace ftax;
using namespace ftax::test;

namespace {

/// "key=value" words, separated by spaces; a word without a value is "1".
using Words = std::map<std::string, std::string>;

Words words_of(const std::string& text) {
    Words words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
        const std::size_t at = word.find('=');
        words[word.substr(0, at)] = at == std::string::npos ? "1" : word.substr(at + 1);
    }
    return words;
}

int integer(const Words& words, const std::string& key, int fallback) {
    const auto found = words.find(key);
    return found == words.end() ? fallback : std::stoi(found->second);
}

PredictOptions predict_options(const Words& words) {
    PredictOptions options;
    if (words.contains("precision")) options.precision = *precision_from_name(words.at("precision"));
    options.channels_last = words.contains("channels_last");
    options.synchronized = words.contains("synchronized");
    options.copies = words.contains("copies");
    if (words.contains("padding")) options.padding = std::stod(words.at("padding"));
    options.libraries.cudnn = integer(words, "cudnn", options.libraries.cudnn);
    options.libraries.tensorrt = integer(words, "tensorrt", options.libraries.tensorrt);
    options.libraries.engine = integer(words, "engine", options.libraries.engine);
    options.libraries.torch = integer(words, "torch", options.libraries.torch);
    return options;
}

ImportOptions import_options(const Words& words) {
    ImportOptions options;
    options.tensor_parallel = integer(words, "tp", 1);
    options.data_parallel = integer(words, "dp", 1);
    options.expert_parallel = integer(words, "ep", 1);
    options.last_layers = integer(words, "last", 0);
    if (words.contains("kv")) options.cache.kind = *cache_kind_from_name(words.at("kv"));
    if (words.contains("kvtype")) options.cache.type = *dtype_from_name(words.at("kvtype"));
    return options;
}

/// Single operators and short chains by name: lines of operators.txt, "name: statement; statement".
const std::map<std::string, std::string>& operators() {
    static const std::map<std::string, std::string> graphs = [] {
        std::map<std::string, std::string> result;
        std::ifstream file(std::string(FTAX_SOURCE_DIR) + "/tests/recorded/operators.txt");
        for (std::string line; std::getline(file, line);) {
            const std::size_t at = line.find(": ");
            if (at == std::string::npos) continue;
            std::string text = "graph " + line.substr(0, at) + "\n" + line.substr(at + 2) + "\n";
            for (std::size_t i; (i = text.find("; ")) != std::string::npos;) text.replace(i, 2, "\n");
            result[line.substr(0, at)] = text;
        }
        return result;
    }();
    return graphs;
}

const Graph& graph_of(const std::string& model, const Words& words) {
    static std::map<std::string, Graph> graphs;
    const ImportOptions options = import_options(words);
    const std::string key = fmt::format("{} {} {} {} {} {} {}", model, options.tensor_parallel, options.data_parallel,
                                        options.expert_parallel, options.last_layers,
                                        static_cast<int>(options.cache.kind), static_cast<int>(options.cache.type));
    const auto found = graphs.find(key);
    if (found != graphs.end()) return found->second;
    const auto text = operators().find(model);
    Graph graph = text == operators().end() ? load_graph(model, options) : parse_text_graph(text->second, model);
    return graphs.emplace(key, std::move(graph)).first->second;
}

void add(Digest& digest, const LaunchCosts& launch, const Graph& graph) {
    if (launch.op != no_op) digest.add(name_of(graph.ops[launch.op].kind)).add(graph.ops[launch.op].source);
    for (const double value :
         {launch.host_s, launch.device_s, launch.boost_s, launch.power_limited_s, launch.throttling_s,
          launch.sm_active_s, launch.warps_active_s, static_cast<double>(launch.module_calls),
          static_cast<double>(launch.list_parts), static_cast<double>(launch.step_launches),
          static_cast<double>(launch.kernels), static_cast<double>(launch.factor), launch.blas_call ? 1.0 : 0.0,
          static_cast<double>(launch.host_kind), static_cast<double>(launch.bound)}) {
        digest.add(value);
    }
}

void add(Digest& digest, const Prediction& p) {
    for (const double value :
         {p.copies_s, p.host_relative_stddev, p.device_relative_stddev, p.widest_component_stddev, p.closed_form_s,
          p.sm_active, p.warp_occupancy, p.coverage.nodes, p.coverage.flops, p.coverage.time}) {
        digest.add(value);
    }
    digest.add(p.widest_component).add(name_of(p.bound));
    for (const std::string& warning : p.warnings) digest.add_printed(warning);
}

void add(Digest& digest, const Explanation& explanation) {
    for (const Span& span : explanation.timeline) {
        digest.add(span.host_start_s).add(span.host_end_s).add(span.device_start_s).add(span.device_end_s);
    }
    for (const auto& kernels : explanation.kernels) {
        for (const KernelDetail& k : kernels) {
            digest.add_printed(k.name).add(k.path).add_printed(k.reason);
            for (const double value : {k.seconds, k.compute_s, k.memory_s, k.waves, k.flops, k.bytes, k.ridge}) {
                digest.add(value);
            }
        }
    }
}

/// A run of one row: the options of the predictor, and the sizes.
struct Scenario {
    const std::string &model, &sizes, &device, &framework, &options;
};

/// The last predictor, for rows that follow each other with other sizes.
struct Last {
    std::string key;
    std::unique_ptr<Predictor> predictor;
};

struct Run {
    Prediction prediction;
    MemoryUse memory;
    std::size_t launches = 0;
    Digest digest;
};

Run run(const Scenario& s, Last& last) {
    const Words words = words_of(s.options);
    const std::string key = fmt::format("{} {} {} {}", s.model, s.device, s.framework, s.options);
    if (last.key != key) {
        last.predictor = std::make_unique<Predictor>(
            graph_of(s.model, words), device_profile(s.device),
            framework_profile(s.framework, words.contains("host") ? words.at("host") : ""), predict_options(words));
        last.key = key;
    }
    Predictor& predictor = *last.predictor;
    ShapeBindings bindings;
    for (const auto& [symbol, value] : words_of(s.sizes)) bindings[symbol] = std::stoll(value);
    std::vector<LaunchCosts> launches;
    Run run{.prediction = predictor.predict(bindings, launches), .memory = predictor.memory(bindings)};
    const auto& [p, m] = std::tie(run.prediction, run.memory);
    run.launches = launches.size();
    add(run.digest, p);
    for (const double value : {p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s, p.power_w, m.weights_bytes,
                               m.cache_bytes, m.activations_bytes, m.workspace_bytes, m.context_bytes}) {
        run.digest.add(value);
    }
    for (const LaunchCosts& launch : launches) add(run.digest, launch, predictor.graph());
    if (launches.size() < 40) add(run.digest, predictor.explain(bindings));
    return run;
}

std::vector<std::string> all_figures(std::span<const std::string> row, Last& last) {
    const Run r = run({row[0], row[1], row[2], row[3], row[4]}, last);
    const Prediction& p = r.prediction;
    return {figure(p.latency_s),
            figure(p.low_s),
            figure(p.high_s),
            figure(p.host_s),
            figure(p.device_s),
            figure(static_cast<double>(p.kernels)),
            figure(static_cast<double>(r.launches)),
            figure(p.power_w * p.latency_s),
            figure(r.memory.total_bytes()),
            figure(static_cast<double>(p.warnings.size())),
            r.digest.text()};
}

/// Runs of one graph on ever other devices, frameworks and precisions.
class Rotation {
  public:
    /// Adds a prediction, or its refusal, to the digest.
    void add_run(Digest& digest, const Graph& graph) {
        static const std::vector<std::string> frameworks = framework_names();
        constexpr std::array devices{"t4",   "h100-sxm5-80gb", "gtx-1080-ti", "a100-sxm4-40gb", "v100-sxm2-32gb",
                                     "l40s", "rtx-5090",       "a10",         "gtx-1660",       "h200-sxm-141gb"};
        constexpr std::array precisions{Precision::fp16, Precision::fp32, Precision::amp,   Precision::bf16,
                                        Precision::fp16, Precision::int8, Precision::w4a16, Precision::tf32,
                                        Precision::fp8,  Precision::fp16, Precision::w8a16};
        const std::size_t n = count_++;
        PredictOptions options{.precision = precisions[n % precisions.size()], .channels_last = n % 5 == 3};
        options.libraries.cudnn = 7 + static_cast<int>(n % 3);
        ShapeBindings bindings;
        for (const std::string& symbol : graph.expressions.symbols()) bindings[symbol] = n % 4 < 3 ? 2 : 33;
        try {
            Predictor predictor(graph, device_profile(devices[n % devices.size()]),
                                framework_profile(frameworks[n % frameworks.size()]), options);
            std::vector<LaunchCosts> launches;
            add(digest, predictor.predict(bindings, launches));
            for (const LaunchCosts& launch : launches) add(digest, launch, predictor.graph());
            if (launches.size() < 40) add(digest, predictor.explain(bindings));
            const MemoryUse memory = predictor.memory(bindings);
            digest.add(memory.weights_bytes).add(memory.activations_bytes).add(memory.workspace_bytes);
        } catch (const Error& error) {
            digest.add(error.what());
        }
    }

  private:
    std::size_t count_ = 0;
};

/// Other values of an operator's attribute.
std::vector<AttributeValue> other_values(const AttributeValue& value) {
    std::vector<AttributeValue> others;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) others = {*integer + 1, *integer - 1};
    if (const auto* number = std::get_if<double>(&value)) others = {*number * 2};
    if (std::holds_alternative<std::string>(value)) others = {std::string("max"), std::string("mean")};
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value); integers && !integers->empty()) {
        for (const std::int64_t by : {1, -1}) {
            std::vector<std::int64_t> changed = *integers;
            changed.back() += by;
            others.emplace_back(changed);
        }
    }
    return others;
}

}  // namespace

TEST_CASE("operators with an attribute, an operand, a type or a source changed cost what is recorded") {
    check_recorded("variants.tsv", 1, [](std::span<const std::string> row) {
        const Graph graph = parse_text_graph(operators().at(row[0]), row[0]);
        Rotation runs;
        Digest attributes, operands, types, sources;
        for (std::size_t op = 0; op < graph.ops.size(); ++op) {
            for (std::size_t a = 0; a < graph.ops[op].attributes.size(); ++a) {
                Graph changed = graph;
                changed.ops[op].attributes.erase(changed.ops[op].attributes.begin() + static_cast<std::ptrdiff_t>(a));
                for (int i = 0; i < 8; ++i) runs.add_run(attributes, changed);
                for (const AttributeValue& other : other_values(graph.ops[op].attributes[a].value)) {
                    changed = graph;
                    changed.ops[op].attributes[a].value = other;
                    for (int i = 0; i < 8; ++i) runs.add_run(attributes, changed);
                }
            }
            Graph changed = graph;
            if (!changed.ops[op].inputs.empty()) changed.ops[op].inputs.pop_back();
            for (int i = 0; i < 12; ++i) runs.add_run(operands, changed);
            for (const char* source : {"", "aten::view", "Cast", "aten::to"}) {
                changed = graph;
                changed.ops[op].source = source;
                for (int i = 0; i < 6; ++i) runs.add_run(sources, changed);
            }
        }
        for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
            for (const DType type : {DType::f16, DType::i8, DType::i64, DType::f64}) {
                Graph changed = graph;
                changed.tensors[t].dtype = type;
                for (int i = 0; i < 5; ++i) runs.add_run(types, changed);
            }
            Graph changed = graph;
            changed.tensors[t].strides.clear();
            changed.tensors[t].known_shape = false;
            changed.outputs.push_back(static_cast<TensorId>(t));
            for (int i = 0; i < 5; ++i) runs.add_run(types, changed);
        }
        return std::vector<std::string>{attributes.text(6), operands.text(6), types.text(6), sources.text(6)};
    });
}

TEST_CASE("single operators and short chains cost what is recorded") {
    Last last;
    check_recorded("operators.tsv", 5, [&](std::span<const std::string> row) { return all_figures(row, last); });
}

TEST_CASE("networks cost what is recorded") {
    Last last;
    check_recorded("networks.tsv", 5, [&](std::span<const std::string> row) { return all_figures(row, last); });
}

TEST_CASE("operators and networks cost what is recorded under every framework") {
    check_recorded("matrix.tsv", 4, [&](std::span<const std::string> row) {
        std::vector<std::string> cells;
        for (const std::string& framework : framework_names()) {
            Last last;
            try {
                const Run r = run({row[0], row[1], row[2], framework, row[3]}, last);
                cells.push_back(fmt::format("{:.5g}/{}", r.prediction.latency_s, r.digest.text(4)));
            } catch (const Error& error) {
                cells.push_back(Digest().add(error.what()).text(4));
            }
        }
        return cells;
    });
}

TEST_CASE("sweeps over a size cost what is recorded, also where kernels and limits change") {
    check_recorded("sweeps.tsv", 6, [](std::span<const std::string> row) {
        std::vector<std::string> cells;
        for (const auto& [from, to, step] : {std::tuple{1, 40, 1},
                                             {41, 136, 5},
                                             {255, 257, 1},
                                             {511, 513, 1},
                                             {1020, 1030, 2},
                                             {2047, 2049, 1},
                                             {4095, 4098, 1},
                                             {65534, 65537, 1}}) {
            Last last;
            Digest digest;
            for (int size = from; size <= to; size += step) {
                if (row[0] == "batch" ? size > 65537 : size > 2049) break;
                const std::string sizes = fmt::format("{}={} {}", row[0], size, row[2]);
                try {
                    digest.add(run({row[1], sizes, row[3], row[4], row[5]}, last).digest.text());
                } catch (const Error& error) {
                    digest.add(error.what());
                }
            }
            cells.push_back(digest.text(4));
        }
        return cells;
    });
}
