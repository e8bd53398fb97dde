#include <doctest/doctest.h>
#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>

#include "ftax/error.hpp"
#include "ftax/headroom.hpp"
#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "tests/fuzz/generated_graph.hpp"
#include "tests/fuzz/generated_onnx.hpp"
#include "tests/recorded/importers/imports.hpp"
#include "tests/recorded/recorded.hpp"

// What importers make of many small inputs: operators with their attributes, shapes, FLOPs and bytes. Shapes alone are
// compared with ONNX, ONNX Runtime and PyTorch by tests/graphs.

using namespace ftax;
using namespace ftax::test;

namespace {

/// Changes of a model that importers must notice: none, its answers hidden, each attribute left out, each number of an
/// attribute changed, the last operand of each node left out, each fixed dimension of an input one larger.
constexpr int changes = 6;

template <class Visit>
void changed_models(const std::string& bytes, int change, const Visit& visit) {
    ::onnx::ModelProto model;
    REQUIRE(model.ParseFromString(bytes));
    if (change == 0) return visit(model);
    for (int n = 0; n < std::min(model.graph().node_size(), 4); ++n) {
        const ::onnx::NodeProto node = model.graph().node(n);
        if (change == 4) {
            for (int drop = 1; drop <= std::min(2, node.input_size()); ++drop) {
                ::onnx::ModelProto copy = model;
                for (int i = 0; i < drop; ++i) copy.mutable_graph()->mutable_node(n)->mutable_input()->RemoveLast();
                visit(copy);
            }
        }
        for (int a = 0; a < node.attribute_size() && (change == 2 || change == 3); ++a) {
            ::onnx::ModelProto copy = model;
            auto& attributes = *copy.mutable_graph()->mutable_node(n)->mutable_attribute();
            if (change == 2) {
                attributes.DeleteSubrange(a, 1);
                visit(copy);
                continue;
            }
            for (const int by : {1, -1}) {
                ::onnx::AttributeProto attribute = node.attribute(a);
                if (attribute.type() == ::onnx::AttributeProto::INT) attribute.set_i(attribute.i() + by);
                if (attribute.type() == ::onnx::AttributeProto::FLOAT) attribute.set_f(attribute.f() * (1 + 0.5f * by));
                if (attribute.type() == ::onnx::AttributeProto::STRING) attribute.set_s(attribute.s() + "x");
                for (auto& i : *attribute.mutable_ints()) i += by;
                *attributes.Mutable(a) = attribute;
                visit(copy);
            }
        }
    }
    for (int i = 0; change == 5 && i < model.graph().input_size(); ++i) {
        if (!model.graph().input(i).type().has_tensor_type()) continue;
        for (int d = 0; d < model.graph().input(i).type().tensor_type().shape().dim_size(); ++d) {
            ::onnx::ModelProto copy = model;
            auto& dim = *copy.mutable_graph()
                             ->mutable_input(i)
                             ->mutable_type()
                             ->mutable_tensor_type()
                             ->mutable_shape()
                             ->mutable_dim(d);
            if (!dim.has_dim_value()) continue;
            dim.set_dim_value(dim.dim_value() + 1);
            visit(copy);
        }
    }
}

}  // namespace

TEST_CASE("calls of ATen operators, whole and with each argument left out, give the operators that are recorded") {
    check_recorded("aten.tsv", 1, [](std::span<const std::string> row) {
        Group group;
        Digest whole, without;
        for (const AtenRow& call : aten_rows().at(row[0])) {
            std::vector<std::string> arguments = words(call.arguments, ' ');
            add_import(whole, group, [&] { return graph_of(call.target, arguments, call.outputs); });
            Group others;
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                std::vector<std::string> fewer = arguments;
                fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
                add_import(without, others, [&] { return graph_of(call.target, fewer, {}); });
            }
            add_import(without, others, [&] { return graph_of(call.target, arguments, {}); });
        }
        std::vector<std::string> cells = group.cells();
        cells.push_back(whole.text(6));
        cells.push_back(without.text(6));
        return cells;
    });
}

TEST_CASE("models of libonnx-testdata and changes of them give the operators that are recorded") {
    static const auto models = models_by_operator();
    check_recorded("onnx.tsv", 1, [](std::span<const std::string> row) {
        Group group;
        std::vector<std::string> digests;
        for (int change = 0; change < changes; ++change) {
            Digest digest;
            Group others;
            for (const auto& path : models.at(row[0])) {
                const std::string bytes = change == 1 ? without_answers(path) : read_bytes(path);
                changed_models(bytes, change == 1 ? 0 : change, [&](const ::onnx::ModelProto& model) {
                    add_import(digest, change == 0 ? group : others, [&] {
                        Graph graph = import_onnx(model.SerializeAsString(), "model.onnx", {});
                        if (change != 1) return graph;
                        find_size_checks(graph);
                        for (const SizeCheck& check : graph.size_checks) {
                            digest.add(check.op).add(graph.expressions.to_string(check.is));
                            digest.add(graph.expressions.to_string(check.must_be)).add(check.or_one ? 1.0 : 0.0);
                        }
                        return graph;
                    });
                });
            }
            digests.push_back(digest.text(6));
        }
        std::vector<std::string> cells = group.cells();
        cells.insert(cells.end(), digests.begin(), digests.end());
        return cells;
    });
}

TEST_CASE("random ONNX operators give the graphs that are recorded, with a batch that varies too") {
    check_recorded("random_onnx.tsv", 1, [](std::span<const std::string> row) {
        std::mt19937 random(static_cast<unsigned>(std::stoul(row[0])));
        Group group, varied;
        Digest as_given, with_batch;
        ImportOptions options;
        options.max_nodes = 2000;
        for (int i = 0; i < 40; ++i) {
            const std::string bytes = random_bytes(random, 60 + random() % 60);
            fuzz::Choices choices(bytes);
            const std::string model = fuzz::generate_onnx(choices);
            add_import(as_given, group, [&] { return import_onnx(model, "model.onnx", options); });
            add_import(with_batch, varied, [&] {
                Graph graph = import_onnx(model, "model.onnx", options);
                vary_batch(graph, graph.expressions.symbol("batch"));
                find_size_checks(graph);
                return graph;
            });
        }
        std::vector<std::string> cells = group.cells();
        cells.push_back(as_given.text(6));
        cells.push_back(with_batch.text(6));
        return cells;
    });
}

TEST_CASE("random graphs cost what is recorded under every framework, and so do they wider") {
    check_recorded("random_graphs.tsv", 4, [](std::span<const std::string> row) {
        std::vector<std::string> cells;
        for (const std::string& framework : framework_names()) {
            std::mt19937 random(static_cast<unsigned>(std::stoul(row[0])));
            Digest digest;
            double sum_s = 0;
            for (int i = 0; i < 6; ++i) {
                const std::string bytes = random_bytes(random, 120 + random() % 200);
                fuzz::Choices choices(bytes);
                const Graph graph = fuzz::generate_graph(choices);
                const ShapeBindings bindings{{"batch", std::stoll(row[3])}, {"seq", 5}};
                PredictOptions options{.precision = *precision_from_name(row[2]), .channels_last = i % 2 == 1};
                options.libraries.cudnn = 7 + i % 3;
                try {
                    Predictor predictor(graph, device_profile(row[1]), framework_profile(framework), options);
                    const Explanation e = predictor.explain(bindings);
                    const MemoryUse memory = predictor.memory(bindings);
                    sum_s += e.prediction.latency_s;
                    digest.add(e.prediction.high_s).add(memory.total_bytes()).add(e.prediction.host_s);
                    for (const OpPrediction& launch : e.launches) {
                        if (launch.op != no_op) digest.add(name_of(predictor.graph().ops[launch.op].kind));
                        digest.add(launch.host_s).add(launch.device_s).add(static_cast<double>(launch.kernels));
                    }
                    const Graph wide = widened(graph, bindings, 3, 2);
                    Predictor wider(wide, device_profile(row[1]), framework_profile(framework), options);
                    digest.add(wider.predict(bindings).latency_s);
                } catch (const Error& error) {
                    digest.add(error.what());
                }
            }
            cells.push_back(fmt::format("{:.4g}/{}", sum_s, digest.text(4)));
        }
        return cells;
    });
}
