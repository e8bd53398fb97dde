// Steps of decoding as transformers 5 exports them: torch.export with its DynamicCache or StaticCache, and
// torch.onnx.export with a cache of named tensors; two layers, weights left out. Sizes:
// tests/oracle/language_models.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "src/report/model_report.hpp"

using namespace ftax;

namespace {

const std::string sizes =
    R"("dtype":"float16","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":8,"vocab_size":1000,)"
    R"("intermediate_size":640,"num_key_value_heads":2)";

Graph family(const std::string& model_type) {
    const std::string own =
        model_type == "gpt2"
            ? R"("dtype":"float16","n_embd":256,"n_layer":2,"n_head":8,"n_positions":1024,"vocab_size":1000)"
            : (model_type == "qwen3" ? R"("head_dim":64,)" : "") + sizes;
    return import_config("{\"model_type\":\"" + model_type + "\"," + own + "}", "config.json", model_type);
}

Graph exported(const std::string& name) {
    return load_graph((std::filesystem::path(FTAX_SOURCE_DIR) / "tests/graphs/exported" / name).string());
}

/// Floating-point operations of contractions for two sequences with so many keys each.
std::int64_t contraction_flops(const Graph& graph, std::int64_t keys) {
    ShapeBindings bindings;
    for (const std::string& symbol : graph.expressions.symbols()) {
        bindings[symbol] = symbol == "batch" || symbol == "attention_mask.0" ? 2
                           : symbol == "seq"                                 ? 1
                           : symbol == "attention_mask.1"                    ? keys
                                                                             : keys - 1;
    }
    const BoundShapes bound = ftax::bind(graph, bindings);
    std::int64_t flops = 0;
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::linear || op.kind == OpKind::matmul || op.kind == OpKind::attention)
            flops += work_of(graph, op, bound).flops;
    }
    return flops;
}

std::int64_t count(const Graph& graph, OpKind kind) {
    return std::count_if(graph.ops.begin(), graph.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

/// Values of the weights that operators read.
std::int64_t weights_read(const Graph& graph) {
    std::set<TensorId> read;
    for (const Op& op : graph.ops) {
        for (const TensorId input : op.inputs) {
            if (input != no_tensor && graph.tensors[input].role == TensorRole::weight) read.insert(input);
        }
    }
    std::int64_t values = 0;
    for (const TensorId id : read) {
        std::int64_t elements = 1;
        for (const Expression dim : graph.tensors[id].shape) elements *= graph.expressions.constant_value(dim).value();
        values += elements;
    }
    return values;
}

}  // namespace

TEST_CASE("an embedding that the head shares is one weight of an exported step") {
    CHECK(weights_read(exported("gpt2-dynamic.pt2")) == weights_read(family("gpt2")));
}

TEST_CASE("exported steps of decoding have the work of the built-in families") {
    for (const std::string model : {"llama", "qwen3", "gpt2"}) {
        CAPTURE(model);
        const Graph graph = exported(model + "-dynamic.pt2");
        CHECK(count(graph, OpKind::custom) == 0);
        CHECK(count(graph, OpKind::attention) == 2);
        for (const std::int64_t keys : {49, 1000}) {
            CHECK(contraction_flops(graph, keys) == contraction_flops(family(model), keys));
        }
    }
    for (const std::string model : {"llama", "gpt2"}) {
        CAPTURE(model);
        const Graph graph = exported(model + "-static.pt2");
        CHECK(count(graph, OpKind::custom) == 0);
        CHECK(count(graph, OpKind::scatter) == 4);
        CHECK(contraction_flops(graph, 128) == contraction_flops(family(model), 128));
    }
}

TEST_CASE("caches of fixed length are not counted as parameters of an exported step") {
    constexpr std::int64_t layers = 2, tensors = 2, sequences = 2, tokens = 128, head = 32;
    for (const auto& [name, heads] : {std::pair("llama", std::int64_t{2}), std::pair("gpt2", std::int64_t{8})}) {
        const std::string model = name;
        CAPTURE(model);
        const Graph graph = exported(model + "-static.pt2");
        const std::vector<bool> written = written_weights(graph);
        const BoundShapes bound = ftax::bind(graph, {});
        std::int64_t values = 0;
        for (TensorId id = 0; id < graph.tensors.size(); ++id) {
            if (written[id]) values += element_count(graph.tensors[id], bound);
        }
        CHECK(values == layers * tensors * sequences * heads * tokens * head);
        const report::ModelReport report = report::model_report(graph, {}, 1);
        CHECK(report.written_bytes == 2 * values);
        Predictor predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"),
                            {.precision = Precision::fp16});
        CHECK(predictor.memory({}).cache_bytes == 2 * values);
    }
}

TEST_CASE("dimensions of exported steps have names of their own") {
    for (const char* name : {"llama-dynamic.pt2", "qwen3-dynamic.pt2", "llama-dynamo.onnx"}) {
        CAPTURE(name);
        const Graph graph = exported(name);
        const std::vector<std::string>& symbols = graph.expressions.symbols();
        for (const char* wanted : {"batch", "past", "attention_mask.0", "attention_mask.1"}) {
            CHECK_MESSAGE(std::find(symbols.begin(), symbols.end(), wanted) != symbols.end(), wanted);
        }
        for (const std::string& symbol : symbols) CHECK_MESSAGE(symbol.find_first_of("0123456789") != 1, symbol);
    }
    // The exporter could not tell that these are the same length.
    const Graph graph = exported("llama-dynamo.onnx");
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    CHECK(std::find(symbols.begin(), symbols.end(), "past_key_values.0.value.2") != symbols.end());
}
