#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>

#include "ftax/predict.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/recorded/importers/imports.hpp"
#include "tests/recorded/readers/readers.hpp"

// Several changes at once, drawn by chance: what only a combination reaches (an operand left out under an old opset, an
// odd size beside a stride) and no table of single changes does.

using namespace ftax;
using namespace ftax::test;
using nlohmann::ordered_json;

namespace {

class Draw {
  public:
    explicit Draw(std::string_view seed) {
        std::uint32_t state = 2166136261u;
        for (const char c : seed) state = (state ^ static_cast<unsigned char>(c)) * 16777619u;
        random_.seed(state);
    }
    std::size_t below(std::size_t limit) { return random_() % limit; }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <class List>
    auto of(const List& list) {
        return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
    }
    std::mt19937& engine() { return random_; }

  private:
    std::mt19937 random_;
};

constexpr std::array dims{"0", "1", "2", "3", "4", "5", "7", "16", "s", "n", "s - 1", "2*s"};

std::string changed_dims(Draw& draw, const std::string& tensor) {
    const std::size_t open = tensor.find('[');
    if (open == std::string::npos) return tensor;
    std::vector<std::string> sizes = words(tensor.substr(open + 1, tensor.size() - open - 2), ',');
    const std::size_t kind = draw.below(8);
    if (kind == 0) return draw.of(std::array{"f32", "f16", "bf16", "i64", "i32", "bool"}) + tensor.substr(open);
    const std::size_t at = draw.below(sizes.size() + 1);
    if (kind == 1 && at < sizes.size()) {
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (kind == 2 || at == sizes.size()) {
        sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(at), draw.of(dims));
    } else {
        sizes[at] = draw.of(dims);
    }
    return fmt::format("{}[{}]", tensor.substr(0, open), fmt::join(sizes, ","));
}

/// Another value of the same form as an argument of tests/oracle/aten_calls.tsv.
std::string changed_value(Draw& draw, const std::string& value) {
    if (value.front() == '\'')
        return draw.of(std::array{"'none'", "'mean'", "'sum'", "'floor'", "'trunc'", "'tanh'", "'x'"});
    const bool tensors = value.find('[') != std::string::npos;
    if (!tensors && value.find_first_of(".e") != std::string::npos)
        return draw.of(std::array{"0.0", "1.0", "0.5", "2.5", "-1.0"});
    std::vector<std::string> parts = words(value, tensors ? '+' : ',');
    const std::size_t at = draw.below(parts.size());
    if (const std::size_t kind = draw.below(6); kind == 0 && parts.size() > 1) {
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (kind == 1) {
        parts.push_back(parts[at]);
    } else {
        parts[at] =
            tensors ? changed_dims(draw, parts[at]) : draw.of(std::array{"-2", "-1", "0", "1", "2", "3", "4", "7"});
    }
    return fmt::format("{}", fmt::join(parts, tensors ? "+" : ","));
}

/// Predictions, or how they are refused.
class Costs {
  public:
    void add(const std::function<void()>& predict) {
        try {
            predict();
        } catch (const Error& error) {
            digest_.add(error.what());
        }
    }
    void add(Predictor& predictor, const ShapeBindings& sizes) {
        const Explanation e = predictor.explain(sizes);
        sum_s_ += e.prediction.latency_s;
        digest_.add(e.prediction.low_s).add(e.prediction.high_s).add(e.prediction.power_w);
        digest_.add(predictor.memory(sizes).capacity_bytes);
        for (const OpPrediction& launch : e.launches)
            digest_.add(launch.host_s).add(launch.device_s).add(static_cast<double>(launch.kernels));
        for (const auto& kernels : e.kernels) {
            for (const KernelDetail& kernel : kernels) digest_.add(kernel.name).add(kernel.path);
        }
        for (const std::string& warning : e.prediction.warnings) digest_.add(warning);
    }
    [[nodiscard]] std::string text() const { return fmt::format("{:.4g}/{}", sum_s_, digest_.text(4)); }

  private:
    Digest digest_;
    double sum_s_ = 0;
};

/// What a configuration may say of the formats of its weights.
const std::vector<std::string> quantizations{
    "",
    "",
    R"({"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"})",
    R"({"quant_method": "fp8", "activation_scheme": "static"})",
    R"({"quant_method": "awq", "bits": 4, "group_size": 64})",
    R"({"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": true})",
    R"({"quant_method": "mxfp4"})",
    R"({"quant_method": "fbgemm_fp8"})"};

void change_number(Draw& draw, auto get, auto set) {
    const std::int64_t value = get();
    set(draw.of(std::array<std::int64_t, 9>{value + 1, value - 1, value * 2, value / 2, -value, 0, 1, 2, 3}));
}

void change_attribute(Draw& draw, ::onnx::AttributeProto& a) {
    if (a.type() == ::onnx::AttributeProto::INT)
        change_number(
            draw, [&] { return a.i(); }, [&](std::int64_t v) { a.set_i(v); });
    if (a.type() == ::onnx::AttributeProto::FLOAT) a.set_f(draw.of(std::array{0.0f, 1.0f, 0.5f, 2.0f, -1.0f}));
    if (a.type() == ::onnx::AttributeProto::STRING) {
        a.set_s(draw.of(std::array{
            "SAME_UPPER", "SAME_LOWER", "VALID",         "NOTSET",     "nearest",    "linear",     "cubic",
            "floor",      "ceil",       "align_corners", "asymmetric", "half_pixel", "sum",        "mean",
            "none",       "constant",   "reflect",       "edge",       "max",        "min",        "bidirectional",
            "reverse",    "forward",    "DCR",           "CRD",        "stretch",    "not_larger", "x"}));
    }
    if (a.ints_size() == 0) return;
    if (draw.one_in(5)) return a.add_ints(a.ints(0)), void();
    if (draw.one_in(5)) return a.mutable_ints()->RemoveLast(), void();
    const int at = static_cast<int>(draw.below(static_cast<std::size_t>(a.ints_size())));
    change_number(
        draw, [&] { return a.ints(at); }, [&](std::int64_t v) { a.set_ints(at, v); });
}

/// One change of an operand's values, of a node, of an input's shape or of the opset, also within bodies of control
/// flow.
void change_model(Draw& draw, ::onnx::ModelProto& model, ::onnx::GraphProto& graph) {
    if (graph.node_size() == 0) return;
    ::onnx::NodeProto& node =
        *graph.mutable_node(static_cast<int>(draw.below(static_cast<std::size_t>(graph.node_size()))));
    for (::onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g() && draw.one_in(2)) return change_model(draw, model, *attribute.mutable_g());
    }
    switch (draw.below(8)) {
        case 0:
            return model.mutable_opset_import(0)->set_version(
                draw.of(std::array{1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 21}));
        case 1:
            if (node.input_size() > 0)
                draw.one_in(2)
                    ? node.mutable_input()->RemoveLast()
                    : node.set_input(static_cast<int>(draw.below(static_cast<std::size_t>(node.input_size()))), "");
            return;
        case 2:
            if (node.attribute_size() > 0)
                node.mutable_attribute()->DeleteSubrange(
                    static_cast<int>(draw.below(static_cast<std::size_t>(node.attribute_size()))), 1);
            return;
        case 3:
            if (draw.one_in(3)) return node.add_output("another"), void();
            if (node.output_size() > 1) node.mutable_output()->RemoveLast();
            return;
        case 4:
        case 5:
            if (node.attribute_size() > 0)
                change_attribute(draw, *node.mutable_attribute(static_cast<int>(
                                           draw.below(static_cast<std::size_t>(node.attribute_size())))));
            return;
        case 6: {
            if (graph.initializer_size() == 0) return;
            ::onnx::TensorProto& values = *graph.mutable_initializer(
                static_cast<int>(draw.below(static_cast<std::size_t>(graph.initializer_size()))));
            if (values.int64_data_size() > 0) {
                const int at = static_cast<int>(draw.below(static_cast<std::size_t>(values.int64_data_size())));
                return change_number(
                    draw, [&] { return values.int64_data(at); }, [&](std::int64_t v) { values.set_int64_data(at, v); });
            }
            std::string& raw = *values.mutable_raw_data();
            if (values.data_type() == ::onnx::TensorProto::INT64 && raw.size() >= 8) {
                const std::size_t at = 8 * draw.below(raw.size() / 8);
                std::int64_t number = 0;
                std::memcpy(&number, raw.data() + at, 8);
                change_number(
                    draw, [&] { return number; }, [&](std::int64_t v) { std::memcpy(raw.data() + at, &v, 8); });
            } else if (values.data_type() == ::onnx::TensorProto::FLOAT && raw.size() >= 4) {
                const float number = draw.of(std::array{0.0f, 0.5f, 1.0f, 1.7f, 3.0f, -1.0f});
                std::memcpy(raw.data() + 4 * draw.below(raw.size() / 4), &number, 4);
            }
            return;
        }
        default:
            break;
    }
    if (graph.input_size() == 0) return;
    auto& type = *graph.mutable_input(static_cast<int>(draw.below(static_cast<std::size_t>(graph.input_size()))))
                      ->mutable_type();
    if (!type.has_tensor_type()) return;
    auto& shape = *type.mutable_tensor_type()->mutable_shape();
    if (draw.one_in(6)) return shape.add_dim()->set_dim_value(2);
    if (shape.dim_size() == 0) return;
    if (draw.one_in(6)) return shape.mutable_dim()->RemoveLast();
    auto& dim = *shape.mutable_dim(static_cast<int>(draw.below(static_cast<std::size_t>(shape.dim_size()))));
    draw.one_in(3) ? dim.set_dim_param(draw.of(std::array{"N", "s"}))
                   : dim.set_dim_value(draw.of(std::array{0, 1, 2, 3, 5, 7, 8}));
}

void change_document(Draw& draw, ordered_json& document) {
    std::vector<ordered_json::json_pointer> places;
    places_of(document, ordered_json::json_pointer(), places);
    if (places.empty()) return;
    const auto place = draw.of(places);
    ordered_json& parent = document.at(place.parent_pointer());
    if (draw.one_in(3))
        return parent.is_array() ? parent.erase(std::stoul(place.back())) : void(parent.erase(place.back()));
    const ordered_json value = document.at(place);
    // Most refusals are those of single changes: values that a reader takes are likelier.
    std::vector<ordered_json> others = other_values(value);
    others.erase(others.begin(), others.begin() + (draw.one_in(8) ? 0 : 6));
    if (value.is_number_integer())
        others = {value.get<std::int64_t>() + 1,
                  value.get<std::int64_t>() - 1,
                  value.get<std::int64_t>() * 2,
                  1,
                  2,
                  3,
                  5,
                  100};
    if (!others.empty()) document.at(place) = draw.of(others);
}

}  // namespace

TEST_CASE("calls of ATen operators with several arguments changed give the operators that are recorded") {
    check_recorded(
        "mixed_aten.tsv", 1,
        [](std::span<const std::string> row) {
            Draw draw(row[0]);
            Digest digest;
            Group group;
            for (const AtenRow& call : aten_rows().at(row[0])) {
                for (int i = 0; i < 24; ++i) {
                    std::vector<std::string> arguments = words(call.arguments, ' ');
                    for (std::size_t changes = 1 + draw.below(3); changes > 0 && !arguments.empty(); --changes) {
                        const std::size_t at = draw.below(arguments.size()), equals = arguments[at].find('=') + 1;
                        if (draw.one_in(5)) {
                            arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
                        } else if (equals < arguments[at].size()) {
                            arguments[at] =
                                arguments[at].substr(0, equals) + changed_value(draw, arguments[at].substr(equals));
                        }
                    }
                    add_import(digest, group, [&] { return graph_of(call.target, arguments, {}); });
                }
            }
            std::vector<std::string> cells = group.cells();
            cells.push_back(digest.text(6));
            return cells;
        },
        1e-6, 9);
}

TEST_CASE("models of libonnx-testdata with several changes give the operators that are recorded") {
    static const auto models = models_by_operator();
    check_recorded(
        "mixed_onnx.tsv", 1,
        [](std::span<const std::string> row) {
            Draw draw(row[0]);
            Digest digest;
            Group group;
            ImportOptions options;
            options.max_nodes = 2000;
            for (const auto& path : models.at(row[0])) {
                ::onnx::ModelProto original;
                REQUIRE(original.ParseFromString(without_answers(path)));
                for (int i = 0; i < 100; ++i) {
                    ::onnx::ModelProto model = original;
                    for (std::size_t changes = 1 + draw.below(4); changes > 0; --changes)
                        change_model(draw, model, *model.mutable_graph());
                    add_import(digest, group, [&] {
                        Graph graph = import_onnx(model.SerializeAsString(), "model.onnx", options);
                        if (i % 3 == 0) vary_batch(graph, graph.expressions.symbol("batch"));
                        find_size_checks(graph);
                        return graph;
                    });
                }
            }
            std::vector<std::string> cells = group.cells();
            cells.push_back(digest.text(6));
            return cells;
        },
        1e-6, 9);
}

TEST_CASE("JSON files with several fields changed are read as recorded") {
    check_recorded(
        "mixed_json.tsv", 2,
        [](std::span<const std::string> row) {
            Draw draw(row[0] + row[1]);
            ordered_json document;
            std::string reader = row[0];
            if (reader == "family") {
                document = family_document(row[1]);
                reader = "config";
            } else {
                document = ordered_json::parse(read_source_file(row[1]));
            }
            Digest result;
            std::size_t refused = 0;
            for (int i = 0; i < 100; ++i) {
                ordered_json copy = document;
                for (std::size_t changes = 1 + draw.below(5); changes > 0; --changes) change_document(draw, copy);
                const std::string read = digest([&] { return readers().at(reader)(copy.dump()); });
                refused += read.starts_with('!') ? 1 : 0;
                result.add(read);
            }
            return std::vector<std::string>{fmt::format("n{}", refused), result.text(6)};
        },
        1e-6, 9);
}

TEST_CASE("tables of measurements with several cells changed are read as recorded") {
    check_recorded(
        "mixed_csv.tsv", 1,
        [](std::span<const std::string> row) {
            Draw draw(row[0]);
            const std::vector<std::string>& lines = lines_of(row[0]);
            const std::size_t columns = split(lines[0]).size();
            Digest result;
            for (int i = 0; i < 500; ++i) {
                std::vector<std::string> cells = split(draw.of(std::span(lines).subspan(1)));
                cells.resize(columns);
                for (std::size_t changes = 1 + draw.below(4); changes > 0; --changes) {
                    std::string& cell = cells[draw.below(columns)];
                    std::vector<std::string> other = split(draw.of(std::span(lines).subspan(1)));
                    other.resize(columns);
                    cell = draw.one_in(2) ? other[static_cast<std::size_t>(&cell - cells.data())]
                                          : draw.of(std::array{"", "0", "1", "2", "-1", "0.5", "1e-3", "fp16", "tf32",
                                                               "end_to_end", "device", "host", "2.4", "nhwc"});
                }
                result.add(digest([&] { return measured(fmt::format("{}\n{}\n", lines[0], fmt::join(cells, ","))); }));
            }
            return std::vector<std::string>{result.text(6)};
        },
        1e-6, 9);
}

TEST_CASE("random graphs on random cards with random options cost what is recorded") {
    check_recorded(
        "mixed_predictions.tsv", 1,
        [](std::span<const std::string> row) {
            Draw draw(row[0]);
            Costs costs;
            for (int i = 0; i < 100; ++i) {
                const std::string bytes = random_bytes(draw.engine(), 150 + draw.below(300));
                fuzz::Choices choices(bytes);
                costs.add([&] {
                    const fuzz::PredictedGraph drawn = fuzz::generate_prediction(choices);
                    Predictor predictor(drawn.graph, *drawn.device, *drawn.framework, drawn.options);
                    costs.add(predictor, drawn.sizes);
                });
            }
            return std::vector<std::string>{costs.text()};
        },
        1e-6, 9);
}

TEST_CASE("language models of any family, quantized and split at random, cost what is recorded under random engines") {
    check_recorded(
        "mixed_engines.tsv", 1,
        [](std::span<const std::string> row) {
            Draw draw(row[0]);
            Costs costs;
            for (int i = 0; i < 100; ++i) {
                costs.add([&] {
                    ordered_json config = family_document(
                        split(draw.of(std::span(lines_of("tests/recorded/families.tsv")).subspan(1)), '\t')[0]);
                    for (const char* field : {"num_experts", "hidden_size", "head_dim", "sliding_window"}) {
                        if (config.contains(field) && draw.one_in(3)) config[field] = 8 << draw.below(6);
                    }
                    if (const std::string format = draw.of(quantizations); !format.empty())
                        config["quantization_config"] = ordered_json::parse(format);
                    ImportOptions import{.last_layers = static_cast<int>(draw.below(3))};
                    import.tensor_parallel = 1 << draw.below(3);
                    import.data_parallel = 1 << draw.below(2);
                    import.expert_parallel = draw.one_in(2) ? import.tensor_parallel * import.data_parallel : 1;
                    import.cache.kind =
                        draw.of(std::array{CacheKind::paged, CacheKind::paged, CacheKind::fixed, CacheKind::dynamic});
                    if (draw.one_in(3)) import.cache.type = draw.of(std::array{DType::f8e4m3, DType::i8});
                    const Graph graph = import_config(config.dump(), "f.json", "f", import);
                    PredictOptions options;
                    options.precision = draw.of(std::array{Precision::bf16, Precision::fp16, Precision::fp8,
                                                           Precision::w4a16, Precision::int8});
                    options.libraries.engine = draw.of(std::array{1, 2, 3, 5, 8, 11, 11, 12, 14});
                    ShapeBindings sizes;
                    for (const std::string& symbol : graph.expressions.symbols())
                        sizes[symbol] = draw.of(std::array{1, 1, 3, 64, 300, 9000});
                    const char* framework =
                        draw.of(std::array{"vllm", "vllm", "sglang", "tensorrt-llm", "pytorch-eager", "torch-compile"});
                    Predictor predictor(graph,
                                        device_profile(draw.of(std::array{"h100-sxm5-80gb", "h200-sxm-141gb", "b200",
                                                                          "a100-sxm4-80gb", "l40s", "t4"})),
                                        framework_profile(framework), options);
                    costs.add(predictor, sizes);
                });
            }
            return std::vector<std::string>{costs.text()};
        },
        1e-6, 9);
}
