#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "ftax/error.hpp"
#include "ftax/work.hpp"
#include "graphs/loading.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

Graph model_of(const std::string& config, std::int64_t height, std::int64_t width, int cards = 1) {
    ImportOptions options;
    options.image_size = {height, width};
    options.tensor_parallel = cards;
    return import_config(config, "config.json", "model", options);
}

double weights_of(const Graph& graph) {
    const BoundShapes bound = bind(graph, {{"batch", 1}});
    double count = 0;
    for (const Tensor& tensor : graph.tensors)
        if (tensor.role == TensorRole::weight) count += static_cast<double>(element_count(tensor, bound));
    return count;
}

/// Operations of products; an attention counts as two, without its softmax.
double flops(const Graph& graph, std::int64_t images) {
    const BoundShapes bound = bind(graph, {{"batch", images}});
    double count = 0;
    for (const Op& op : graph.ops) {
        if (!op.is(OpKind::linear, OpKind::matmul, OpKind::attention)) continue;
        count += static_cast<double>(work_of(graph, op, bound).flops);
        if (op.kind != OpKind::attention) continue;
        // A product's bias is a part of it, as in the reference; an attention's softmax is not.
        const Tensor& query = graph.tensors[op.inputs[0]];
        const auto keys = static_cast<double>(bound[graph.tensors[op.inputs[1]].shape[2]]);
        count -= 4 * keys * static_cast<double>(element_count(query, bound) / bound[query.shape[3]]);
    }
    return count;
}

const std::string qwen25 =
    R"({"model_type":"qwen2_5_vl","hidden_size":3584,"num_hidden_layers":1,"num_attention_heads":28,"num_key_value_heads":4,
        "intermediate_size":18944,"vocab_size":1000,"torch_dtype":"bfloat16","vision_config":{"depth":32,"hidden_size":1280,
        "intermediate_size":3420,"num_heads":16,"out_hidden_size":3584,"patch_size":14,"spatial_merge_size":2,"window_size":112,
        "fullatt_block_indexes":[7,15,23,31]}})";

std::string refusal(const std::string& config) {
    const Graph graph = model_of(config, 224, 224);
    CHECK(graph.image_encoder == nullptr);
    return graph.no_images;
}

}  // namespace

TEST_CASE("image encoders have the parameters, tokens and operations of transformers' (tests/oracle/vision.tsv)") {
    std::ifstream file(std::string(FTAX_SOURCE_DIR) + "/tests/oracle/vision.tsv");
    int rows = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("config\t")) continue;
        std::istringstream fields(line);
        std::string config;
        double expected = 0, operations = 0, tokens = 0;
        fields >> config >> expected >> operations >> tokens;
        CAPTURE(config);
        const Graph graph = model_of(config, 224, 448);
        INFO(graph.no_images);
        REQUIRE(graph.image_encoder != nullptr);
        const Graph& encoder = graph.image_encoder->graph;
        CHECK(weights_of(encoder) == expected);
        ++rows;
        if (operations == 0) continue;
        CHECK(flops(encoder, 1) == approx(operations));
        CHECK(flops(encoder, 3) == approx(3 * operations));
        const Tensor& result = encoder.tensors[encoder.outputs.back()];
        CHECK(bind(encoder, {{"batch", 1}})[result.shape[1]] == tokens);
    }
    CHECK(rows == 15);
}

TEST_CASE("an image of Qwen2.5-VL takes a token for each 28 by 28 pixels, and two around them") {
    const auto tokens = [](std::int64_t height, std::int64_t width) {
        return model_of(qwen25, height, width).image_encoder->tokens;
    };
    CHECK(tokens(560, 560) == 20 * 20 + 2);  // as SGLang's benchmark counts them
    CHECK(tokens(1080, 1920) == 39 * 69 + 2);
    CHECK(tokens(720, 1280) == 26 * 46 + 2);
    CHECK(tokens(1, 1) == 4 + 2);                                                       // scaled up to 3136 pixels
    CHECK(tokens(20'000, 20'000) == 128 * 128 + 2);                                     // down to 12,845,056
    CHECK(weights_of(model_of(qwen25, 224, 224).image_encoder->graph) == 676'550'144);  // published: 0.67 B
}

TEST_CASE("cards share an encoder's heads and columns where both can be divided, and sum their parts") {
    const auto sums = [](const Graph& graph) {
        std::int64_t count = 0;
        for (const Op& op : graph.image_encoder->graph.ops) count += op.kind == OpKind::all_reduce ? 1 : 0;
        return count;
    };
    const Graph whole = model_of(qwen25, 224, 224), half = model_of(qwen25, 224, 224, 4);
    CHECK(sums(whole) == 0);
    CHECK(sums(half) == 2 * 32 + 1);
    CHECK(flops(half.image_encoder->graph, 1) == approx(flops(whole.image_encoder->graph, 1) / 4).epsilon(0.02));
    CHECK(weights_of(half.image_encoder->graph) == approx(676'550'144 / 4.0).epsilon(0.02));
}

TEST_CASE("a model without an encoder that ftax knows says which field and why") {
    const std::string text =
        R"("hidden_size":64,"num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":2,"intermediate_size":96,"vocab_size":64)";
    CHECK(refusal("{\"model_type\":\"qwen2\"," + text + "}").find("vision_config") != std::string::npos);
    const std::string unknown = refusal(R"({"model_type":"idefics3","text_config":{"model_type":"llama",)" + text +
                                        R"(},"vision_config":{"model_type":"idefics3_vision"}})");
    CHECK(unknown.find("config.json: vision_config: images of 'idefics3/idefics3_vision' are not supported; supported: "
                       "qwen2_vl") != std::string::npos);
    CHECK(unknown.find('*') == std::string::npos);
    const std::string incomplete =
        refusal("{\"model_type\":\"qwen2_5_vl\"," + text + R"(,"vision_config":{"depth":2}})");
    CHECK(incomplete == "config.json: vision_config: it has no field hidden_size");
    for (const char* hostile : {R"({"depth":20000,"embed_dim":32,"hidden_size":64})",
                                R"({"patch_size":0,"hidden_size":64})", "7", R"({"depth":"x","hidden_size":-5})"}) {
        CAPTURE(hostile);
        CHECK(refusal("{\"model_type\":\"qwen2_vl\"," + text + ",\"vision_config\":" + hostile + "}")
                  .find("config.json: ") == 0);
    }
}
