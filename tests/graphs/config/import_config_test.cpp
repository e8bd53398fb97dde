#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/loading.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

constexpr const char* llama =
    R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
        "intermediate_size":96,"vocab_size":100,"max_position_embeddings":128,"torch_dtype":"bfloat16"})";

/// The config with one field written otherwise; without a value, left out.
std::string with(const std::string& field, const std::string& value) {
    std::string text = llama;
    const std::size_t begin = text.find('"' + field + '"');
    if (begin == std::string::npos) return text.replace(text.rfind('}'), 1, ",\"" + field + "\":" + value + "}");
    std::size_t end = text.find_first_of(",}", begin);
    if (value.empty()) return text.erase(begin, end - begin + 1);
    return text.replace(begin, end - begin, '"' + field + "\":" + value);
}

Graph import(const std::string& text) {
    return import_config(text, "folder/config.json", "model");
}

Failure failure(const std::string& text) {
    return failure_of([&] { return import(text); });
}

std::int64_t parameters(const Graph& graph) {
    const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", 1}, {"past", 0}});
    std::int64_t sum = 0;
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::weight) sum += element_count(tensor, bound);
    }
    return sum;
}

}  // namespace

TEST_CASE("a layer of Llama has the work that its sizes say") {
    const Graph graph = import(llama);
    const std::int64_t attention = 64 * 64 * 2 + 64 * 32 * 2;
    const std::int64_t layer = attention + 3 * 64 * 96 + 2 * 64;
    CHECK(parameters(graph) == 2 * layer + 64 + 2 * 100 * 64);
    const BoundShapes bound = bind(graph, {{"batch", 3}, {"seq", 5}, {"past", 7}});
    std::int64_t linear_flops = 0;
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::linear) linear_flops += work_of(graph, op, bound).flops;
    }
    CHECK(linear_flops == 2 * 3 * (5 * 2 * (attention + 3 * 64 * 96) + 100 * 64));
    const auto scores =
        std::find_if(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.kind == OpKind::attention; });
    REQUIRE(scores != graph.ops.end());
    CHECK(bound_type(graph.tensors[scores->inputs[0]], bound).shape == std::vector<std::int64_t>{3, 4, 5, 16});
    CHECK(bound_type(graph.tensors[scores->inputs[1]], bound).shape == std::vector<std::int64_t>{3, 2, 12, 16});
    CHECK(graph.tensors[scores->inputs[1]].dtype == DType::bf16);
    CHECK(bound_type(graph.tensors[graph.outputs[0]], bound).shape == std::vector<std::int64_t>{3, 1, 100});
}

TEST_CASE("tied embeddings are one table") {
    CHECK(parameters(import(llama)) - parameters(import(with("tie_word_embeddings", "true"))) == 100 * 64);
}

TEST_CASE("a layer with a window keeps as many tokens as it sees") {
    const Graph graph =
        import(R"({"model_type":"mistral","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,
        "intermediate_size":96,"vocab_size":100,"sliding_window":10})");
    const TensorId cache = graph.inputs.at(1);
    CHECK(bound_type(graph.tensors[cache], bind(graph, {{"batch", 1}, {"seq", 1}, {"past", 4}})).shape[2] == 4);
    CHECK(bound_type(graph.tensors[cache], bind(graph, {{"batch", 1}, {"seq", 1}, {"past", 50}})).shape[2] == 9);
}

TEST_CASE("experts that no token is sent to are not read") {
    const Graph graph =
        import(R"({"model_type":"mixtral","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,
        "intermediate_size":96,"vocab_size":100,"num_local_experts":8,"num_experts_per_tok":2})");
    const auto read = [&](std::int64_t tokens) {
        const BoundShapes bound = bind(graph, {{"batch", tokens}, {"seq", 1}, {"past", 0}});
        std::int64_t bytes = 0;
        for (const Op& op : graph.ops) {
            if (op.source == "aten::_grouped_mm") bytes += byte_count(graph.tensors[op.inputs[1]], bound);
        }
        return bytes;
    };
    const std::int64_t expert = 3 * 64 * 96 * 4;
    CHECK(read(1) == 2 * expert);
    CHECK(read(3) == 6 * expert);
    CHECK(read(100) == 8 * expert);
}

TEST_CASE("a config.json that cannot be built names file and field") {
    for (const std::string field :
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}) {
        CAPTURE(field);
        const Failure missing = failure(with(field, ""));
        CHECK(missing.code == ErrorCode::model);
        CHECK(missing.says("folder/config.json: " + field + ": is missing"));
        CHECK(failure(with(field, "null")).says(field + ": is missing"));
        CHECK(failure(with(field, "0")).says(field + ": must be a positive number"));
        CHECK(failure(with(field, "-4")).code == ErrorCode::model);
        CHECK(failure(with(field, "1.5")).says(field + ": must be a whole number"));
        CHECK(failure(with(field, "\"4\"")).code == ErrorCode::model);
        CHECK(failure(with(field, "1e300")).code == ErrorCode::model);
        const int most = field == "num_hidden_layers" ? 10'000 : 1 << 26;
        CHECK(failure(with(field, std::to_string(most + 1))).says(fmt::format("{} is more than {}", most + 1, most)));
        if (most > 10'000) CHECK_FALSE(failure(with(field, std::to_string(most))).says("is more than"));
    }
    CHECK(failure(with("hidden_size", "66")).says("hidden_size: 66 is not a multiple of the 4 heads"));
    CHECK(failure(with("num_key_value_heads", "3"))
              .says("num_attention_heads: 4 is not a multiple of the 3 heads of keys"));
    CHECK(failure(with("head_dim", "7")).says("even part of each head"));
    CHECK(failure(with("hidden_act", "\"glue\"")).says("hidden_act: unknown activation 'glue'"));
    CHECK(failure(with("attention_bias", "1")).says("attention_bias: must be true or false"));
    CHECK(failure(with("num_hidden_layers", "20000")).code == ErrorCode::limit);
    CHECK(failure(with("vocab_size", "2000000000")).says("vocab_size: 2000000000 is more than"));
    CHECK(failure("{").code == ErrorCode::model);
    CHECK(failure("{\"model_type\":[]}").code == ErrorCode::model);
}

TEST_CASE("a model type without a row lists the nearest types that have one") {
    const auto says = [](const std::string& fields, const char* text) {
        const Failure unknown = failure("{" + fields + "}");
        CHECK(unknown.code == ErrorCode::model);
        CHECK_MESSAGE(unknown.says(text), fields);
    };
    says(R"("model_type":"lama")", "model_type: unsupported type 'lama'; nearest supported types: llama");
    says(R"("model_type":"zzzz")", "nearest supported type: llama");
    says(R"("model_type":"zzzz","num_experts_per_tok":2)", "nearest supported type: mixtral");
    says(R"("model_type":"zzzz","kv_lora_rank":512)", "nearest supported type: deepseek_v3");
}

TEST_CASE("a family that ftax does not build says what is missing and which one is nearest") {
    const auto says = [](const std::string& text, const char* expected) {
        const Failure refused = failure(text);
        CHECK(refused.code == ErrorCode::model);
        CHECK_MESSAGE(refused.says(expected), text);
    };
    says(R"({"model_type":"longcat_flash"})",
         "model_type: unsupported type 'longcat_flash' (two_attentions_in_a_layer,experts_without_weights); nearest "
         "supported type: deepseek_v3");
    // Its language model says that it is a Kimi-Linear, and is none.
    says(R"({"model_type":"kimi_k3","text_config":{"model_type":"kimi_linear","hidden_size":64}})",
         "nearest supported type: kimi_linear");
    says(R"({"model_type":"glm5_next","text_config":{"model_type":"glm5_next_text"}})", "(hyper-connections,");
    says(R"({"model_type":"deepseek_v5"})", "nearest supported types: deepseek_v2, deepseek_v3,");
}

/// A config of nvidia/Llama-3_3-Nemotron-Super-49B-v1: runs of layers with as many heads in a group of queries (0: no
/// attention) and an MLP so many times as wide.
std::string nemotron_super() {
    struct Run {
        int layers, group;
        double mlp;
    };
    constexpr Run runs[] = {{1, 8, 2.625},  {5, 8, 5.25},   {2, 0, 2.625},  {3, 8, 5.25},   {1, 0, 3.28125},
                            {30, 8, 5.25},  {1, 0, 1.3125}, {2, 0, 2.625},  {1, 0, 1.3125}, {1, 0, 5.25},
                            {1, 0, 1.3125}, {1, 0, 2.625},  {3, 0, 1.3125}, {1, 8, 5.25},   {1, 0, 1.3125},
                            {2, 0, 1.0},    {1, 0, 1.3125}, {3, 0, 1.0},    {2, 0, 1.3125}, {2, 0, 0.5},
                            {2, 0, 1.0},    {2, 0, 0.5},    {1, 0, 1.0},    {2, 0, 0.5},    {9, 8, 5.25}};
    std::string blocks;
    for (const Run& run : runs) {
        for (int i = 0; i < run.layers; ++i)
            blocks += fmt::format(
                R"({}{{"attention":{{"n_heads_in_group":{},"no_op":{},"window_length":null}},"ffn":{{"ffn_mult":{}}}}})",
                blocks.empty() ? "" : ",", run.group == 0 ? "null" : std::to_string(run.group), run.group == 0,
                run.mlp);
    }
    return R"({"model_type":"nemotron-nas","hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,
               "num_key_value_heads":null,"intermediate_size":null,"vocab_size":128256,"torch_dtype":"bfloat16",
               "block_configs":[)" +
           blocks + "]}";
}

TEST_CASE("layers that a search left without attention or with a narrower MLP are built as they are") {
    const Graph graph = import(nemotron_super());
    CHECK(parameters(graph) == 49'867'145'216);  // as the checkpoint's index says
    const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", 1}, {"past", 100}});
    int attentions = 0;
    std::int64_t multiplied = 0;
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::attention) {
            ++attentions;
            CHECK(bound[graph.tensors[op.inputs[1]].shape[1]] == 64 / 8);
        }
        if (op.kind == OpKind::linear) multiplied += work_of(graph, op, bound).flops / 2;
    }
    CHECK(attentions == 49);
    // All weights but the embedding and the norms: one for each attention and MLP, and the last.
    CHECK(multiplied == 49'867'145'216 - 128'256LL * 8192 - (49 + 80 + 1) * 8192);

    const auto one_layer = [](const std::string& attention, const std::string& mlp) {
        return with(
            "block_configs",
            fmt::format(
                R"([{{"attention":{{{}}},"ffn":{{{}}}}},{{"attention":{{"no_op":true}},"ffn":{{"no_op":true}}}}])",
                attention, mlp));
    };
    const std::int64_t ends = 2 * 100 * 64 + 64;
    CHECK(parameters(import(one_layer(R"("no_op":true)", R"("no_op":true)"))) == ends);
    CHECK(parameters(import(one_layer(R"("replace_with_linear":true)", R"("no_op":true)"))) == ends + 64 + 64 * 64);
    CHECK(parameters(import(one_layer(R"("no_op":true)", R"("ffn_mult":3)"))) == ends + 64 + 3 * 64 * 256);
    CHECK(failure(one_layer(R"("n_heads_in_group":3)", R"("ffn_mult":3)"))
              .says("4 is not a multiple of the 3 heads of a group"));
    CHECK(failure(one_layer(R"("mamba":{})", R"("ffn_mult":3)")).says("block_configs[0]: mamba is not supported"));
    CHECK(failure(one_layer(R"("no_op":true)", R"("replace_with_linear":true)")).says("is not supported"));
    CHECK(failure(with("block_configs", "[]")).says("block_configs: has 0 entries for 2 layers"));
}

TEST_CASE("Kimi-Linear counts its layers with attention from 1") {
    const Graph graph = import(
        R"({"model_type":"kimi_linear","hidden_size":2304,"intermediate_size":9216,"moe_intermediate_size":1024,
            "num_hidden_layers":27,"num_attention_heads":32,"num_experts":256,"num_experts_per_token":8,
            "num_shared_experts":1,"first_k_dense_replace":1,"kv_lora_rank":512,"q_lora_rank":null,"qk_nope_head_dim":128,
            "qk_rope_head_dim":64,"v_head_dim":128,"head_dim":72,"vocab_size":163840,"hidden_act":"silu",
            "linear_attn_config":{"full_attn_layers":[4,8,12,16,20,24,27],"head_dim":128,"num_heads":32,
                                  "short_conv_kernel_size":4}})");
    CHECK(parameters(graph) == 49'122'675'072 + 26 * 256);  // with the corrections of its experts' scores
    std::set<std::string> cached;
    for (const TensorId input : graph.inputs) {
        const std::string& name = graph.tensors[input].name;
        if (name.ends_with(".latent")) cached.insert(name);
    }
    CHECK(cached.size() == 7);
    CHECK(cached.contains("past_key_values.3.latent"));
    CHECK(cached.contains("past_key_values.26.latent"));
}

TEST_CASE("without multi_query, GPTBigCode has as many heads of keys as of queries") {
    const auto count = [](const char* fields) {
        return parameters(import(R"({"model_type":"gpt_bigcode","n_embd":64,"n_layer":2,"n_head":4,"n_inner":96,
                                     "n_positions":128,"vocab_size":100,)" +
                                 std::string(fields) + "}"));
    };
    const std::int64_t keys_and_values = 2 * (64 - 16) * (64 + 1);
    CHECK(count(R"("multi_query":false,"num_key_value_heads":2)") - count(R"("multi_query":true)") ==
          2 * keys_and_values);
}

TEST_CASE("the language model of Qwen-Omni lies in its thinker") {
    const std::string inner = with("model_type", "\"qwen2_5_omni_text\"");
    const Graph graph = import(R"({"model_type":"qwen2_5_omni","thinker_config":{"model_type":"qwen2_5_omni_thinker",
                                   "text_config":)" +
                               inner + "}}");
    CHECK(parameters(graph) == parameters(import(with("model_type", "\"qwen2\""))));
    REQUIRE(graph.warnings.size() == 1);
    CHECK(graph.warnings[0].find("language model alone") != std::string::npos);
}

TEST_CASE("experts are counted under every name that transformers writes") {
    const auto graph = [](const std::string& count) {
        return import(R"({"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,
            "intermediate_size":96,"moe_intermediate_size":32,"vocab_size":100,"num_experts_per_tok":2,)" +
                      count + "}");
    };
    const std::int64_t expected = parameters(graph(R"("num_experts":8)"));
    for (const char* name : {"num_local_experts", "n_routed_experts", "moe_num_experts"}) {
        CHECK(parameters(graph(fmt::format("\"{}\":8", name))) == expected);
    }
    CHECK(failure_of([&] { return graph(R"("experts":8)"); }).says("num_experts: is missing"));
}

TEST_CASE("infinities and NaN that Python's json writes are read") {
    const std::int64_t expected = parameters(import(llama));
    for (const char* number : {"Infinity", "-Infinity", "NaN", "[0.0, Infinity]", R"({"__float__":"Infinity"})"}) {
        CHECK(parameters(import(with("time_step_limit", number))) == expected);
    }
    CHECK(failure(with("hidden_size", "Infinity")).says("hidden_size: must be"));
    CHECK(failure(with("hidden_size", "Infinit")).says("not valid JSON"));
}

TEST_CASE("layers other than attention keep a state of fixed size") {
    const Graph graph = import(
        R"({"model_type":"bamba","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,
            "intermediate_size":96,"attn_layer_indices":[1],"mamba_n_heads":4,"mamba_d_head":32,"mamba_n_groups":1,
            "mamba_d_state":16,"mamba_d_conv":4,"mamba_chunk_size":32,"torch_dtype":"bfloat16"})");
    const auto remembered = [&](std::int64_t past) {
        const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", 1}, {"past", past}});
        std::int64_t sum = 0;
        for (const TensorId input : graph.inputs) {
            if (graph.tensors[input].name.starts_with("past_key")) sum += element_count(graph.tensors[input], bound);
        }
        return sum;
    };
    CHECK(remembered(0) == 4 * 32 * 16 + (128 + 2 * 16) * 4);
    CHECK(remembered(1000) - remembered(0) == 1000 * 2 * 64);  // keys and values of the one layer with attention
    // A step costs no product over a chunk.
    const auto flops = [&](std::int64_t seq) {
        const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", seq}, {"past", 0}});
        std::int64_t sum = 0;
        for (const Op& op : graph.ops) {
            if (op.source == "aten::bmm") sum += work_of(graph, op, bound).flops;
        }
        return sum;
    };
    CHECK(flops(1) == 2 * 4 * 32 * 16);
    CHECK(flops(33) == 2 * 4 * (2 * (32 * 32 * (16 + 32) + 2 * 32 * 32 * 16) + 3 * 3 * 32 * 16));
}

TEST_CASE("thousands of modules that are not quantised cost no time") {
    std::string kept;
    for (int i = 0; i < 10'000; ++i) kept += fmt::format("{}\"model.layers.{}.mlp.up_proj\"", i > 0 ? "," : "", 2 * i);
    std::string text = with("quantization_config", R"({"quant_method":"fp8","modules_to_not_convert":[)" + kept + "]}");
    text.replace(text.find("\"num_hidden_layers\":2"), 21, "\"num_hidden_layers\":1000");
    const Graph graph = import(text);
    std::size_t plain = 0;
    for (const Op& op : graph.ops) plain += op.kind == OpKind::linear && op.text("weights").empty() ? 1 : 0;
    CHECK(plain == 500);
}

TEST_CASE("another JSON file in its place is called what it is") {
    CHECK(failure(R"({"tokenizer_class":"LlamaTokenizer"})").says("a tokenizer's settings, not a model"));
    CHECK(failure(R"({"version":"1.0","added_tokens":[],"model":{}})").says("a tokenizer, not a model"));
    CHECK(failure(R"({"metadata":{},"weight_map":{}})").says("the index of a model's weights"));
    CHECK(failure("{}").says("model_type: is missing"));
}

TEST_CASE("of a multimodal model only the language model is built, with a warning") {
    const Graph graph = import(std::string(R"({"model_type":"llava","text_config":)") + llama + "}");
    CHECK(parameters(graph) == parameters(import(llama)));
    REQUIRE(graph.warnings.size() == 1);
    CHECK(graph.warnings[0].find("llava") != std::string::npos);
}

TEST_CASE("the language model of Qwen-VL is Qwen's, in text_config or beside the vision_config") {
    const std::string old = with("model_type", R"("qwen2_5_vl","vision_config":{"depth":2})");
    const std::string inner = with("model_type", R"("qwen2_5_vl_text")");
    for (const std::string& text : {old, R"({"model_type":"qwen2_5_vl","text_config":)" + inner + "}"}) {
        const Graph graph = import(text);
        CHECK(parameters(graph) == parameters(import(with("model_type", R"("qwen2")"))));
        REQUIRE(graph.warnings.size() == 1);
        CHECK(graph.warnings[0].find("qwen2_5_vl: the graph is the language model") == 0);
    }
}

TEST_CASE("the type of the weights comes from the whole model where its language model does not say") {
    const std::string field = R"(,"torch_dtype":"bfloat16")";
    std::string inner = llama;
    inner.erase(inner.find(field), field.size());
    const auto type = [](const std::string& text) {
        const Graph graph = import(text);
        return std::find_if(graph.tensors.begin(), graph.tensors.end(),
                            [](const Tensor& tensor) { return tensor.role == TensorRole::weight; })
            ->dtype;
    };
    CHECK(type(R"({"model_type":"llava","torch_dtype":"float16","text_config":)" + inner + "}") == DType::f16);
    CHECK(type(R"({"model_type":"llava","torch_dtype":"float16","text_config":)" + std::string(llama) + "}") ==
          DType::bf16);
    CHECK(type(inner) == DType::f32);
    std::string quantized = inner;
    quantized.replace(quantized.rfind('}'), 1, R"(,"quantization_config":{"quant_method":"mxfp4"}})");
    CHECK(type(quantized) == DType::bf16);
}

TEST_CASE("weights are quantised where the whole model or its language model says so") {
    const std::string fp8 = R"("quantization_config":{"quant_method":"fp8"})";
    std::string inner = llama;
    inner.replace(inner.rfind('}'), 1, "," + fp8 + "}");
    const auto quantised = [](const std::string& text) {
        const Graph graph = import(text);
        return std::ranges::count_if(graph.ops, [](const Op& op) { return !op.text("weights").empty(); });
    };
    const auto layers = quantised(inner);
    CHECK(layers > 0);
    CHECK(quantised(R"({"model_type":"llava","text_config":)" + inner + "}") == layers);
    CHECK(quantised(R"({"model_type":"llava",)" + fp8 + R"(,"text_config":)" + llama + "}") == layers);
    CHECK(quantised(R"({"model_type":"llava","text_config":)" + std::string(llama) + "}") == 0);
}

TEST_CASE("a model is loaded from a folder, a file, a zoo name and a name of the hub") {
    const TemporaryFolder folder;
    const std::string file = folder.write("config.json", llama);
    const std::string path = file.substr(0, file.rfind('/'));
    CHECK(load_graph(file).ops.size() == load_graph(path).ops.size());
    CHECK(failure_of([&] { return load_graph("/usr"); }).says("this is a folder without config.json"));
    const std::size_t operators = load_graph("llama-3-8b").ops.size();
    for (const char* name : {"zoo:llama-3-8b", "meta-llama/Meta-Llama-3-8B", "meta-llama-3-8b"}) {
        CHECK(load_graph(name).ops.size() == operators);
    }
}

TEST_CASE("the zoo's language models have the parameters that their makers state") {
    const struct {
        const char* name;
        double billions;
    } models[]{{"llama-2-7b", 6.74},   {"llama-3-8b", 8.03},    {"llama-3-70b", 70.6},   {"mixtral-8x7b", 46.7},
               {"qwen2.5-7b", 7.62},   {"qwen3-30b-a3b", 30.5}, {"gemma-2-9b", 9.24},    {"phi-3-mini", 3.82},
               {"gpt2-small", 0.1244}, {"deepseek-v3", 671},    {"gpt-oss-20b", 20.9},   {"bloom-176b", 176.2},
               {"falcon-7b", 6.92},    {"mistral-7b", 7.24},    {"pythia-410m", 0.4053}, {"opt-350m", 0.3312},
               {"qwen3-32b", 32.8},    {"gpt-oss-120b", 117},   {"llama-3.1-70b", 70.6}, {"qwen3-235b-a22b", 235}};
    for (const auto& model : models) {
        CAPTURE(model.name);
        CHECK(static_cast<double>(parameters(load_graph(model.name))) / 1e9 == approx(model.billions).epsilon(2e-3));
    }
}

TEST_CASE("quantization_config says which precision the weights have") {
    const auto weights = [](const std::string& quantization) {
        const Graph graph = import(with("quantization_config", quantization));
        const auto layer = std::ranges::find(graph.ops, OpKind::linear, &Op::kind);
        REQUIRE(layer != graph.ops.end());
        const std::string precision(layer->text("weights"));
        CHECK(graph.warnings.size() == (precision.empty() ? 1 : 0));  // of formats that ftax does not know
        return precision;
    };
    CHECK(weights(R"({"quant_method":"awq","bits":4,"group_size":128})") == "w4a16");
    CHECK(weights(R"({"quant_method":"gptq","bits":8,"group_size":-1})") == "w8a16");
    CHECK(weights(R"({"quant_method":"fp8","activation_scheme":"dynamic"})") == "fp8");
    CHECK(weights(R"({"quant_method":"fp8","weight_block_size":[128,128]})") == "fp8_block");
    const auto group = [](const std::string& fields, const std::string& activations) {
        return R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{)" + fields +
               R"(},"input_activations":)" + activations + "}}}";
    };
    const std::string eight = R"({"num_bits":8})";
    CHECK(weights(group(R"("num_bits":8,"type":"float","strategy":"channel")", eight)) == "fp8");
    CHECK(weights(group(R"("num_bits":8,"type":"float","strategy":"block")", eight)) == "fp8_block");
    CHECK(weights(group(R"("num_bits":8,"type":"int")", eight)) == "int8");
    CHECK(weights(group(R"("num_bits":4,"type":"int")", "null")) == "w4a16");
    CHECK(weights(group(R"("num_bits":4,"type":"float")", R"({"num_bits":4})")) == "nvfp4");
    CHECK(weights(R"({"quant_method":"modelopt","quant_algo":"NVFP4"})") == "nvfp4");
    for (const char* unknown : {R"({"quant_method":"bitsandbytes","load_in_4bit":true})", R"({"bits":4})",
                                R"({"quant_method":"gptq","bits":3})", R"({"quant_method":"hqq"})"}) {
        CHECK_MESSAGE(weights(unknown).empty(), unknown);
    }
    CHECK(weights(R"({"quant_method":"mxfp4"})") == "nvfp4");
    CHECK(import(with("quantization_config", R"({"quant_method":"hqq"})")).warnings[0] ==
          "quantization_config: ftax has no precision for the formats of 'hqq'; weights count in the precision of the "
          "run");
    CHECK(failure(with("quantization_config", R"({"quant_method":4})")).code == ErrorCode::model);
}

TEST_CASE("layers that a quantised checkpoint leaves alone stay as they are") {
    const Graph graph =
        import(with("quantization_config",
                    R"({"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn","lm_head"]})"));
    for (const Op& op : graph.ops) {
        if (op.kind != OpKind::linear) continue;
        CHECK_MESSAGE(op.text("weights").empty() == (op.module.find(".mlp.") == std::string::npos), op.module);
    }
    const auto weights_bytes = [](const Graph& model) {
        Predictor predictor(model, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                            {.precision = Precision::w4a16});
        return predictor.memory({{"batch", 1}, {"seq", 1}, {"past", 1}}).weights_bytes;
    };
    const double attention = 2 * (64 * 64 * 2 + 64 * 32 * 2);
    CHECK(weights_bytes(graph) - weights_bytes(import(llama)) == approx(attention * (2 - 4.125 / 8)));
}

TEST_CASE("what ModelOpt and compressed-tensors leave alone is found under their fields and names") {
    const auto quantized = [](const std::string& field, const std::string& pattern) {
        std::set<std::string> modules;
        for (const Op& op : import(with("quantization_config", R"({"quant_method":"modelopt","quant_algo":"NVFP4",")" +
                                                                   field + "\":[" + pattern + "]}"))
                                .ops)
            if (!op.text("weights").empty()) modules.insert(op.module);
        return modules;
    };
    const std::set<std::string> all = quantized("ignore", R"("lm_head")");
    CHECK(all.size() == 14);
    CHECK(quantized("ignore", R"("lm_head","re:.*self_attn.*")").size() == 6);
    CHECK(quantized("exclude_modules", R"("lm_head","model.language_model.layers.0.self_attn*")").size() == 10);
    CHECK(quantized("ignore", R"("lm_head","language_model.model.layers.1*","backbone.layers.0.mlp.up_proj")").size() ==
          6);
    CHECK(quantized("ignore", R"("lm_head","vision_tower.layers.0*")") == all);
}

TEST_CASE("ModelOpt's file beside a config.json without a quantization_config has the formats of the weights") {
    const TemporaryFolder folder;
    const auto weights = [&](const std::string& config) {
        folder.write("config.json", config);
        std::set<std::string> found;
        for (const Op& op : load_graph(folder.path.string()).ops)
            if (op.kind == OpKind::linear) found.emplace(op.text("weights"));
        return found;
    };
    CHECK(weights(llama) == std::set<std::string>{""});
    folder.write("hf_quant_config.json",
                 R"({"quantization":{"quant_algo":"W4A16_AWQ","exclude_modules":["model.layers.*.mlp*"]}})");
    CHECK(weights(llama) == std::set<std::string>{"", "w4a16"});
    CHECK(weights(with("quantization_config", R"({"quant_method":"fp8"})")) == std::set<std::string>{"fp8"});
    folder.write("hf_quant_config.json", "{}");
    CHECK(failure_of([&] { weights(llama); }).says("hf_quant_config.json: quantization: is missing"));
}

TEST_CASE("lists of numbers say which layers have experts and which a window") {
    const std::string sizes = R"("num_hidden_layers":2,"num_local_experts":4,"num_experts_per_tok":2,)"
                              R"("dense_intermediate_size":256)";
    const auto experts = [&](const std::string& list) {
        std::string text = with("model_type", "\"minimax_m3\"");
        text.replace(text.find("\"num_hidden_layers\":2"), 21, sizes + list);
        const Graph graph = import(text);
        return std::ranges::count_if(graph.ops, [](const Op& op) { return op.integer("experts", 0) > 0; });
    };
    CHECK(experts("") == 4);
    CHECK(experts(R"(,"moe_layer_freq":[0,1])") == 2);
    CHECK(experts(R"(,"moe_layer_freq":[0,1],"mlp_layer_types":["dense","dense"])") == 0);
    const Graph windows = import(with("model_type", R"("mistral","sliding_window":8,"hybrid_layer_pattern":[1,0])"));
    std::vector<std::int64_t> seen;
    for (const Op& op : windows.ops)
        if (op.kind == OpKind::attention) seen.push_back(op.integer("window", 0));
    CHECK(seen == std::vector<std::int64_t>{8, 0});
    const std::string sparse =
        R"("minimax_m3","num_local_experts":4,"num_experts_per_tok":2,"sparse_attention_config":{})";
    CHECK(import(with("model_type", sparse)).warnings.at(0).starts_with("sparse_attention_config: every layer"));
}

TEST_CASE("heads of a layer are those of its kind, as the hub's files and transformers' write them") {
    const std::string sizes =
        R"(,"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,)"
        R"("intermediate_size":96,"moe_intermediate_size":32,"num_experts":8,"num_experts_per_tok":2,"vocab_size":100,)"
        R"("sliding_window":8,"layer_types":["full_attention","sliding_attention"],"mlp_layer_types":["dense","sparse"])";
    // Heads and widths of the queries and keys of each layer.
    const auto heads_of = [&](const std::string& type, int cards = 1) {
        ImportOptions options;
        options.tensor_parallel = cards;
        const Graph graph = import_config(R"({"model_type":)" + type + sizes + "}", "config.json", "model", options);
        const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", 4}, {"past", 0}});
        std::vector<std::vector<std::int64_t>> heads;
        for (const Op& op : graph.ops) {
            const bool scores = op.kind == OpKind::attention || op.source == "aten::matmul";
            if (!scores || op.module.find("self_attn") == std::string::npos) continue;
            const std::vector<Expression> query = graph.tensors[op.inputs[0]].shape,
                                          key = graph.tensors[op.inputs[1]].shape;
            heads.push_back({bound[query[1]], bound[query[3]], bound[key[1]]});
        }
        return heads;
    };
    using Heads = std::vector<std::vector<std::int64_t>>;
    const std::string step = R"("step3p5","share_expert_dim":32)", gemma = R"("gemma4_text")";
    CHECK(heads_of(step) == Heads{{4, 16, 2}, {4, 16, 2}});
    CHECK(heads_of(step + R"(,"num_sliding_attention_heads":6)") == Heads{{4, 16, 2}, {6, 16, 2}});
    CHECK(heads_of(step + R"(,"attention_other_setting":{"num_attention_heads":6})") == Heads{{4, 16, 2}, {6, 16, 2}});
    CHECK(heads_of(step + R"(,"per_layer_config":{"1":{"num_attention_heads":8}})") == Heads{{4, 16, 2}, {8, 16, 2}});
    CHECK(heads_of(step + R"(,"per_layer_config":{"1":{"num_attention_heads":8}})", 2) ==
          Heads{{2, 16, 1}, {4, 16, 1}});
    CHECK(heads_of(gemma + R"(,"global_head_dim":32,"num_global_key_value_heads":1)") == Heads{{4, 32, 1}, {4, 16, 2}});
    CHECK(heads_of(gemma + R"(,"per_layer_config":{"0":{"head_dim":32}})") == Heads{{4, 32, 2}, {4, 16, 2}});
    CHECK_THROWS_WITH_AS(heads_of(step + R"(,"per_layer_config":{"1":{"num_attention_heads":5}})"),
                         "config.json: num_attention_heads: 5 is not a multiple of the 2 heads of keys", Error);
    CHECK_THROWS_AS(heads_of(step + R"(,"per_layer_config":{"1":{"head_dim":3}})"), Error);  // no even part to rotate
    CHECK_THROWS_AS(heads_of(step + R"(,"per_layer_config":[])"), Error);
}

TEST_CASE("layers that draft tokens may follow in a file's lists of layers") {
    const auto types = [](const std::string& listed) {
        return import(with("model_type", R"("mistral","sliding_window":8,"layer_types":[)" + listed + "]")).ops.size();
    };
    const std::string two = R"("full_attention","sliding_attention")", three = two + R"(,"full_attention")";
    CHECK(types(three + R"(],"num_nextn_predict_layers":1,"x":[)") == types(two));
    CHECK_THROWS_AS(types(three), Error);
}

TEST_CASE("layers that share keys and values keep none of their own, nor their projections") {
    const auto cached = [](int shared) {
        const Graph graph = import(fmt::format(
            R"({{"model_type":"gemma4_text","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"head_dim":16,
                "num_key_value_heads":2,"intermediate_size":96,"vocab_size":100,"global_head_dim":32,"sliding_window":8,
                "layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"],
                "num_kv_shared_layers":{}}})",
            shared));
        std::vector<std::string> names;
        for (const Tensor& tensor : graph.tensors)
            if (tensor.role == TensorRole::input && tensor.name.ends_with(".key")) names.push_back(tensor.name);
        const auto keys = std::ranges::count_if(
            graph.tensors, [](const Tensor& tensor) { return tensor.name.ends_with("k_proj.weight"); });
        CHECK(keys == std::ssize(names));
        return names;
    };
    CHECK(cached(0).size() == 4);
    CHECK(cached(1).size() == 3);
    CHECK(cached(2) == std::vector<std::string>{"past_key_values.0.key", "past_key_values.1.key"});
}

TEST_CASE("experts stand in the layers where transformers puts them, as many as each token takes") {
    // Source: transformers, Qwen2MoeDecoderLayer: (layer + 1) % decoder_sparse_step == 0.
    for (const int step : {1, 2, 3}) {
        for (const int top : {1, 2, 4}) {
            const Graph graph = import(fmt::format(
                R"({{"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":7,"num_attention_heads":4,
                    "num_key_value_heads":2,"intermediate_size":96,"moe_intermediate_size":32,"num_experts":8,
                    "num_experts_per_tok":{},"decoder_sparse_step":{},"vocab_size":100,"head_dim":16}})",
                top, step));
            const BoundShapes bound = bind(graph, {{"batch", 4}, {"seq", 4}, {"past", 0}});
            for (int layer = 0; layer < 7; ++layer) {
                CAPTURE(step);
                CAPTURE(layer);
                std::int64_t flops = 0;
                bool sparse = false;
                for (const Op& op : graph.ops) {
                    if (!op.module.starts_with(fmt::format("model.layers.{}.mlp", layer))) continue;
                    const bool router = op.module.ends_with(".gate");
                    sparse = sparse || op.module.find("experts") != std::string::npos;
                    const bool product = op.kind == OpKind::linear || op.kind == OpKind::matmul;
                    if (product && !router) flops += work_of(graph, op, bound).flops;
                }
                CHECK(sparse == ((layer + 1) % step == 0));
                CHECK(flops == 2 * 16 * 3 * 64 * (sparse ? 32 * top : 96));
            }
        }
    }
}

TEST_CASE(
    "routers choose before or after the softmax as transformers does; masks are computed where attention reads one") {
    const auto first = [](const Graph& graph, std::string_view source) {
        const auto found = std::find_if(graph.ops.begin(), graph.ops.end(), [&](const Op& op) {
            const bool routes =
                op.module.find("gate") != std::string::npos || op.module.find("router") != std::string::npos;
            return routes && op.source.find(source) != std::string::npos;
        });
        REQUIRE(found != graph.ops.end());
        return found - graph.ops.begin();
    };
    const Graph qwen = load_graph("qwen3-30b-a3b"), gpt_oss = load_graph("gpt-oss-20b");
    CHECK(first(qwen, "softmax") < first(qwen, "topk"));
    CHECK(first(gpt_oss, "topk") < first(gpt_oss, "softmax"));

    const auto ranges = [](CacheKind kind) {
        ImportOptions options;
        options.cache.kind = kind;
        const Graph graph = import_config(llama, "config.json", "model", options);
        return std::count_if(graph.ops.begin(), graph.ops.end(),
                             [](const Op& op) { return op.source == "aten::arange"; });
    };
    CHECK(ranges(CacheKind::fixed) == ranges(CacheKind::dynamic) + 2);  // queries and keys of the mask
}

TEST_CASE("a complete model of a family that extends another has no warning about omitted parts") {
    CHECK(import(llama).warnings.empty());
    for (const char* family : {R"("mistral")", R"("qwen2")", R"("qwen3")"})
        CHECK(import(with("model_type", family)).warnings.empty());
}

TEST_CASE("names of layers that are left alone hold numbers of any length, and parts of them other names") {
    const std::string deep = with("num_hidden_layers", "12");
    const auto kept = [&](const std::string& pattern) {
        std::string text = deep;
        text.replace(
            text.rfind('}'), 1,
            R"(,"quantization_config":{"quant_method":"mxfp4","modules_to_not_convert":[")" + pattern + "\"]}}");
        const Graph graph = import(text);
        return std::count_if(graph.ops.begin(), graph.ops.end(), [](const Op& op) {
            return op.kind == OpKind::linear && op.module.find(".mlp.") != std::string::npos &&
                   op.text("weights").empty();
        });
    };
    CHECK(kept("lm_head") == 0);
    CHECK(kept("model.layers.*.mlp") == 12 * 3);
    CHECK(kept("layers.*.mlp.up_proj") == 12);
    CHECK(kept("model.layers.11.mlp") == 3);
    CHECK(kept("model.layers.1.mlp") == 3);
    CHECK(kept("mlp.down_proj") == 12);
    CHECK(kept("model.layers.1*.mlp.up_proj") == 3);  // 1, 10 and 11
    CHECK(kept("layers.*.ml") == 0);
}

TEST_CASE("a vocabulary that cards cannot share evenly is cut into parts of one size, the last one padded") {
    for (const auto& [size, part] : std::vector<std::pair<int, int>>{{100, 50}, {101, 51}}) {
        ImportOptions options;
        options.tensor_parallel = 2;
        const Graph graph = import_config(with("vocab_size", std::to_string(size)), "config.json", "model", options);
        const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", 1}, {"past", 0}});
        std::int64_t rows = 0;
        for (const Tensor& tensor : graph.tensors) {
            if (tensor.role == TensorRole::weight && tensor.name.find("lm_head") != std::string::npos)
                rows = bound[tensor.shape[0]];
        }
        CHECK(rows == part);
    }
}

TEST_CASE(
    "cards that share experts have the rows of the busiest one, and experts know that their checkpoint is mxfp4") {
    const std::string experts = R"({"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":1,
        "num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"intermediate_size":96,"vocab_size":100,
        "num_experts":64,"num_experts_per_tok":4,"moe_intermediate_size":32,"decoder_sparse_step":1,"mlp_only_layers":[])";
    for (const auto& [cards, rows] : {std::pair{1, 4096}, std::pair{4, 1383}}) {  // 1,024 · 1.35
        ImportOptions options;
        options.tensor_parallel = options.expert_parallel = cards;
        const Graph graph = import_config(experts + "}", "config.json", "model", options);
        const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", 1024}, {"past", 0}});
        const auto gather = std::ranges::find_if(
            graph.ops, [&](const Op& op) { return op.source == "aten::index" && op.module.ends_with(".experts"); });
        REQUIRE(gather != graph.ops.end());
        CHECK(bound[graph.tensors[gather->outputs[0]].shape[0]] == rows);
    }
    for (const std::string method : {"mxfp4", "fp8"}) {
        const Graph graph = import(experts + R"(,"quantization_config":{"quant_method":")" + method + "\"}}");
        std::int64_t marked = 0;
        for (const Op& op : graph.ops) marked += op.integer("mxfp4", 0);
        CHECK(marked == (method == "mxfp4" ? 2 : 0));
    }
}

TEST_CASE("layers see all tokens where transformers' layer_types says full_attention") {
    // What layer_types of Qwen2Config, Gemma3TextConfig and Cohere2Config are for these fields in transformers 4.57.
    const auto all_seen = [](const std::string& type, const std::string& fields, std::int64_t layers) {
        const Graph graph =
            import(fmt::format(R"({{"model_type":"{}","hidden_size":64,"num_hidden_layers":{},"num_attention_heads":4,
        "num_key_value_heads":2,"head_dim":16,"intermediate_size":96,"vocab_size":100,"sliding_window":10,{}}})",
                               type, layers, fields));
        const BoundShapes bound = bind(graph, {{"batch", 1}, {"seq", 1}, {"past", 50}});
        std::vector<std::int64_t> full;
        for (std::int64_t layer = 0; layer < layers; ++layer) {
            const TensorId keys = graph.inputs.at(static_cast<std::size_t>(1 + 2 * layer));
            const std::int64_t held = bound_type(graph.tensors[keys], bound).shape[2];
            if (held == 50) full.push_back(layer);
            CHECK((held == 50 || held == 9));
        }
        return full;
    };
    using Layers = std::vector<std::int64_t>;
    CHECK(all_seen("qwen2", R"("use_sliding_window":true,"max_window_layers":2)", 5) == Layers{0, 1});
    CHECK(all_seen("qwen2", R"("use_sliding_window":false,"max_window_layers":2)", 3) == Layers{0, 1, 2});
    CHECK(all_seen("gemma3_text", R"("sliding_window_pattern":3)", 7) == Layers{2, 5});
    CHECK(all_seen("cohere2", R"("sliding_window_pattern":3)", 7) == Layers{2, 5});
    CHECK(all_seen("cohere2", R"("logit_scale":0.25)", 5) == Layers{3});
}

TEST_CASE("positions turn the leading part of a head that the file names, the rest passes") {
    for (const std::int64_t turned : {8, 16, 24}) {
        const Graph graph = import(fmt::format(
            R"({{"model_type":"stablelm","hidden_size":128,"num_hidden_layers":1,"num_attention_heads":4,
        "intermediate_size":96,"vocab_size":100,"partial_rotary_factor":{}}})",
            static_cast<double>(turned) / 32));
        std::set<std::int64_t> parts;  // widths that heads of 32 are cut into
        for (const Op& op : graph.ops) {
            if (op.kind != OpKind::slice || graph.tensors[op.inputs[0]].shape.size() != 4) continue;
            const auto from = graph.expressions.constant_value(graph.tensors[op.inputs[0]].shape[3]);
            if (from == 32)
                parts.insert(graph.expressions.constant_value(graph.tensors[op.outputs[0]].shape[3]).value());
        }
        CHECK(parts == std::set<std::int64_t>{turned, 32 - turned});
    }
}

TEST_CASE("the router takes as many experts as the file says, and each of their rows is multiplied once") {
    for (const std::int64_t taken : {1, 3}) {
        const Graph graph = import(fmt::format(
            R"({{"model_type":"mixtral","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,
        "intermediate_size":96,"vocab_size":100,"num_local_experts":8,"num_experts_per_tok":{}}})",
            taken));
        const BoundShapes bound = bind(graph, {{"batch", 5}, {"seq", 7}, {"past", 0}});
        int routers = 0;
        std::int64_t flops = 0;
        for (const Op& op : graph.ops) {
            const bool router = op.kind == OpKind::sort && op.text("function") == "topk";
            if (router) CHECK(bound_type(graph.tensors[op.outputs[0]], bound).shape.back() == taken);
            routers += router;
            if (op.source == "aten::_grouped_mm") flops += work_of(graph, op, bound).flops;
        }
        CHECK(routers == 1);
        const double rows = static_cast<double>(flops) / (2 * 3 * 64 * 96);
        CHECK(rows >= 5 * 7 * taken);  // each expert has as many rows as the one with most
        CHECK(rows < 5 * 7 * taken + 8);
    }
}

TEST_CASE("a router of groups judges each by its best two experts") {
    const Graph graph = load_graph("deepseek-v3");
    std::set<std::int64_t> kept;  // of each group
    for (const Op& op : graph.ops) {
        if (op.kind != OpKind::sort || op.outputs.empty()) continue;
        const auto& shape = graph.tensors[op.outputs[0]].shape;
        if (shape.size() == 3) kept.insert(graph.expressions.constant_value(shape.back()).value_or(0));
    }
    CHECK(kept == std::set<std::int64_t>{2});
}

/// A small DeepSeek-V4: a layer with a window alone, one with an indexer, one that compresses 128 tokens to an entry.
std::string deepseek_v4(const std::string& fields = "") {
    return R"({"model_type":"deepseek_v4","dtype":"bfloat16","hidden_size":128,"num_hidden_layers":3,"vocab_size":1000,
        "num_attention_heads":8,"num_key_value_heads":1,"head_dim":64,"qk_rope_head_dim":16,"q_lora_rank":96,
        "o_groups":2,"o_lora_rank":32,"index_n_heads":4,"index_head_dim":32,"index_topk":512,"sliding_window":128,
        "compress_ratios":[0,4,128,0],"num_nextn_predict_layers":1,"num_hash_layers":1,"hc_mult":4,
        "hc_sinkhorn_iters":20,"n_routed_experts":8,"n_shared_experts":1,"num_experts_per_tok":2,
        "moe_intermediate_size":96,"hidden_act":"silu","max_position_embeddings":1048576)" +
           fields + "}";
}

TEST_CASE("DeepSeek-V4 keeps a window, an entry for every 4 or 128 tokens, and tokens that wait to be one") {
    const Graph graph = import(deepseek_v4());
    const BoundShapes bound = bind(graph, {{"batch", 2}, {"seq", 1}, {"past", 1024}});
    std::map<std::string, std::vector<std::int64_t>> kept;
    for (const TensorId id : graph.inputs) kept[graph.tensors[id].name] = bound_type(graph.tensors[id], bound).shape;
    kept.erase("input_ids");
    const std::map<std::string, std::vector<std::int64_t>> expected{
        {"past_key_values.0.key", {2, 1, 127, 64}},
        {"past_key_values.1.key", {2, 1, 127 + 256, 64}},
        {"past_key_values.1.index_key", {2, 1, 256, 32}},
        {"past_key_values.1.compressor.waiting", {2, 4, 4 * 64}},
        {"past_key_values.1.indexer.waiting", {2, 4, 4 * 32}},
        {"past_key_values.2.key", {2, 1, 127 + 8, 64}},
        {"past_key_values.2.compressor.waiting", {2, 128, 2 * 64}}};
    CHECK(kept == expected);
    int biases = 0;  // of routers: the first layer's experts are those of a table
    for (const Tensor& tensor : graph.tensors) biases += tensor.name.ends_with("e_score_correction_bias");
    CHECK(biases == 2);
    // transformers writes the kinds of layers instead.
    std::string named = deepseek_v4(
        R"(,"layer_types":["sliding_attention","compressed_sparse_attention","heavily_compressed_attention"])");
    named.replace(named.find("compress_ratios"), std::string("compress_ratios").size(), "unused");
    CHECK(to_text(import(named)) == to_text(graph));
    CHECK(failure(deepseek_v4().replace(deepseek_v4().find("[0,4,128,0]"), 11, "[0,4,-128,0]"))
              .says("compress_ratios[2]: must be a non-negative number"));
    const std::string width = R"("index_head_dim":32)";
    CHECK(failure(deepseek_v4().replace(deepseek_v4().find(width), width.size(), R"("index_head_dim":8)"))
              .says("index_head_dim: is less than qk_rope_head_dim"));
}

TEST_CASE("layers without an indexer of their own attend to what the last one selected") {
    const auto file = [](const std::string& types) {
        return R"({"model_type":"glm_moe_dsa","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":2,
            "q_lora_rank":32,"kv_lora_rank":16,"qk_nope_head_dim":16,"qk_rope_head_dim":16,"v_head_dim":16,
            "intermediate_size":64,"n_routed_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":32,"n_group":1,
            "topk_group":1,"vocab_size":100,"max_position_embeddings":4096,"index_n_heads":2,"index_head_dim":32,
            "index_topk":64,"torch_dtype":"bfloat16","indexer_types":)" +
               types + "}";
    };
    const auto keys = [&](const std::string& types) {
        const Graph graph = import(file(types));
        return std::ranges::count_if(graph.inputs,
                                     [&](TensorId id) { return graph.tensors[id].name.ends_with(".index_key"); });
    };
    CHECK(keys(R"(["full","full","full"])") == 3);
    CHECK(keys(R"(["full","shared","shared"])") == 1);
    CHECK(failure(file(R"(["full","shared"])")).says("indexer_types: has 2 entries for 3 layers"));
}

TEST_CASE("experts of DeepSeek-V4 are mxfp4 where the file says fp4, other layers fp8, compressors 16 bits wide") {
    const auto precisions = [](const std::string& fields) {
        const std::string quantization =
            R"("quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]})";
        const Graph graph = import(deepseek_v4("," + quantization + fields));
        std::map<std::string, std::string> result;
        for (const Op& op : graph.ops) {
            const std::string module = op.module.substr(op.module.rfind('.') + 1);
            const bool reads_weight = op.inputs.size() > 1 && graph.tensors[op.inputs[1]].role == TensorRole::weight;
            if (op.source != "aten::_grouped_mm" && !(op.kind == OpKind::linear && reads_weight)) continue;
            result[module] = std::string(op.text("weights")) + "/" + std::string(op.text("rest")) +
                             (op.integer("mxfp4", 0) != 0 ? "/mxfp4" : "");
        }
        return result;
    };
    std::map<std::string, std::string> mixed = precisions(R"(,"expert_dtype":"fp4")");
    CHECK(mixed["experts"] == "nvfp4//mxfp4");
    CHECK(mixed["q_a_proj"] == "nvfp4/fp8_block");
    CHECK(mixed["compressor"] == "/");
    CHECK(mixed["attn_hc"] == "/");
    std::map<std::string, std::string> whole = precisions("");
    CHECK(whole["experts"] == "fp8_block/");
    CHECK(whole["q_a_proj"] == "fp8_block/");
}

TEST_CASE(
    "a language model may be inside as llm_config or language_config, without latent vectors if the file says so") {
    const std::string qwen = R"({"model_type":"qwen3","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,
        "num_key_value_heads":2,"head_dim":16,"intermediate_size":96,"vocab_size":100,"torch_dtype":"bfloat16"})";
    const Graph inside = import(R"({"model_type":"internvl_chat","vision_config":{},"llm_config":)" + qwen + "}");
    CHECK(inside.tensors.size() == import(qwen).tensors.size());
    CHECK(inside.warnings.at(0).find("the language model alone") != std::string::npos);
    const auto heads = [](const char* latent) {
        const Graph graph = import(fmt::format(
            R"({{"model_type":"deepseek_vl_v2","language_config":{{"model_type":"deepseek_v2","use_mla":{},
        "kv_lora_rank":32,"qk_nope_head_dim":16,"qk_rope_head_dim":8,"v_head_dim":16,"hidden_size":64,"vocab_size":100,
        "num_hidden_layers":1,"num_attention_heads":4,"intermediate_size":96,"moe_intermediate_size":32,
        "n_routed_experts":4,"n_shared_experts":1,"num_experts_per_tok":2,"first_k_dense_replace":1}}}})",
            latent));
        return std::ranges::count_if(graph.tensors, [](const Tensor& t) { return t.name.ends_with("k_proj.weight"); });
    };
    CHECK(heads("true") == 0);
    CHECK(heads("false") == 1);
}
