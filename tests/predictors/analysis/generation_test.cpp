#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "ftax/generate.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/version.hpp"
#include "ftax/work.hpp"
#include "graphs/loading.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"
#include "tests/measured.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

constexpr std::int64_t layers = 2, hidden = 256, heads = 8, kv_heads = 4, head = 32, mlp = 512, vocabulary = 1000;
constexpr const char* config =
    R"({"model_type":"llama","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":4,
        "intermediate_size":512,"vocab_size":1000,"max_position_embeddings":4096,"torch_dtype":"float16"})";

Graph model(const ImportOptions& options = {}) {
    return import_config(config, "config.json", "tiny", options);
}

ImportOptions with_cache(CacheKind kind, DType type = DType::unknown) {
    ImportOptions options;
    options.cache = {kind, type};
    return options;
}

Generator generator(const Graph& graph, const char* framework, const char* device = "a100-sxm4-40gb") {
    return {graph, device_profile(device), framework_profile(framework), {.precision = Precision::fp16}};
}

constexpr std::int64_t cache_bytes(std::int64_t batch, std::int64_t tokens) {
    return 2 * layers * kv_heads * head * batch * tokens * 2;
}

std::int64_t scatter_bytes(const Graph& graph, const ShapeBindings& bindings) {
    const BoundShapes bound = bind(graph, bindings);
    std::int64_t bytes = 0;
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::scatter) bytes += work_of(graph, op, bound).write_bytes;
    }
    return bytes;
}

}  // namespace

TEST_CASE("the time of all tokens is that of the prompt and of every step") {
    const Graph graph = model();
    for (const char* framework : {"pytorch-eager", "vllm", "tensorrt-llm"}) {
        CAPTURE(framework);
        Generator generate = generator(graph, framework);
        const GenerationRequest request{.batch = 4, .prompt = 100, .new_tokens = 60};
        const Generation g = generate.generate(request);
        double steps_s = 0;
        for (std::int64_t past = 100; past < 159; ++past) {
            steps_s += generate.predictor().predict(generate.pass(request, 4, 1, past)).latency_s;
        }
        CHECK(g.total_s == approx(g.ttft_s + 59 * g.tpot_s));
        CHECK(59 * g.tpot_s == approx(steps_s).epsilon(0.002));
        CHECK(generate.middle_step(request) == generate.pass(request, 4, 1, 129));
        CHECK(g.decode.latency_s == generate.predictor().predict(generate.middle_step(request)).latency_s);
        CHECK(g.first_tpot_s == generate.predictor().predict(generate.pass(request, 4, 1, 100)).latency_s);
        CHECK(g.tokens_per_s == approx(240 / g.total_s));
        CHECK(g.low_s < g.total_s);
        CHECK(g.total_s < g.high_s);
        CHECK(generate.generate({.batch = 4, .prompt = 100, .new_tokens = 1}).total_s == g.ttft_s);
        CHECK(generate.middle_step({.batch = 4, .prompt = 100}) == generate.pass(request, 4, 1, 100));
    }
}

TEST_CASE("weights, keys and values take the memory that the config says") {
    constexpr std::int64_t layer = hidden * hidden * 2 + 2 * hidden * kv_heads * head + 3 * hidden * mlp + 2 * hidden;
    const Graph graph = model();
    for (const char* framework : {"pytorch-eager", "vllm"}) {
        Generator generate = generator(graph, framework);
        const MemoryUse use = generate.memory({.batch = 3, .prompt = 100, .new_tokens = 28});
        CHECK(use.weights_bytes == 2 * (layers * layer + hidden + 2 * vocabulary * hidden));
        CHECK(use.cache_bytes == cache_bytes(3, 128));
        CHECK(use.activations_bytes > 0);
        CHECK(use.capacity_bytes == 42949672960);
        CHECK(use.fits());
    }
}

TEST_CASE("tied weights count once") {
    std::string tied = config;
    tied.replace(tied.rfind('}'), 1, R"(,"tie_word_embeddings":true})");
    const Graph graph = import_config(tied, "config.json", "tied");
    const Graph apart = model();
    const GenerationRequest request{.batch = 1, .prompt = 8, .new_tokens = 2};
    const double with = generator(graph, "vllm").memory(request).weights_bytes;
    CHECK(generator(apart, "vllm").memory(request).weights_bytes - with == 2 * vocabulary * hidden);
}

TEST_CASE("experts that a precision quantises take as little memory as the layers") {
    constexpr const char* sparse =
        R"({"model_type":"mixtral","hidden_size":256,"num_hidden_layers":1,"num_attention_heads":8,
            "num_key_value_heads":4,"intermediate_size":512,"num_local_experts":4,"num_experts_per_tok":2,
            "vocab_size":16,"max_position_embeddings":4096,"torch_dtype":"float16"})";
    const Graph graph = import_config(sparse, "config.json", "sparse");
    const auto weights_bytes = [&](Precision precision) {
        return Generator(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"), {.precision = precision})
            .memory({.batch = 1, .prompt = 8, .new_tokens = 2})
            .weights_bytes;
    };
    constexpr double experts = 4 * 3 * hidden * mlp;
    CHECK(weights_bytes(Precision::fp16) > 2 * experts);
    CHECK(weights_bytes(Precision::fp8) < 0.53 * weights_bytes(Precision::fp16));
}

TEST_CASE("weights take as much memory as published files of GGUF") {
    // Sizes in GiB as llama-bench prints them (ggml-org; llama.cpp pull requests 3776 and 22522), of Q8_0 as
    // downloaded.
    for (const auto& [model, precision, gib] :
         {std::tuple("llama-2-7b", Precision::q4_0, 3.56), std::tuple("llama-3-8b", Precision::q4_k_m, 4.58),
          std::tuple("qwen3-30b-a3b", Precision::q4_k_m, 17.28), std::tuple("gpt-oss-20b", Precision::mxfp4, 11.27),
          std::tuple("gpt-oss-120b", Precision::mxfp4, 59.02),
          std::tuple("tests/regression/configs/qwen3-0.6b.json", Precision::q8_0, 0.594)}) {
        const std::string file(model);
        CAPTURE(file);
        const Graph graph = load_graph(file.ends_with(".json") ? FTAX_SOURCE_DIR "/" + file : file);
        const double bytes =
            Generator(graph, device_profile("b200"), framework_profile("llama.cpp"), {.precision = precision})
                .memory({.batch = 1, .prompt = 8, .new_tokens = 2})
                .weights_bytes;
        CHECK(bytes / (1 << 30) == approx(gib).epsilon(0.01));
    }
}

TEST_CASE("a cache of fixed length is written at the new token's position, and fp8 halves it") {
    const Graph fixed = model(with_cache(CacheKind::fixed));
    const std::int64_t written = scatter_bytes(fixed, {{"batch", 2}, {"seq", 1}, {"past", 9}, {"cache", 64}});
    CHECK(written == cache_bytes(2, 1));
    CHECK(scatter_bytes(fixed, {{"batch", 2}, {"seq", 1}, {"past", 9}, {"cache", 4096}}) == written);
    const GenerationRequest request{.batch = 2, .prompt = 100, .new_tokens = 28};
    CHECK(generator(fixed, "pytorch-eager").memory(request).cache_bytes == cache_bytes(2, 128));
    const Graph pages = model(with_cache(CacheKind::paged, DType::f8e4m3));
    CHECK(generator(pages, "vllm").memory(request).cache_bytes == cache_bytes(2, 128) / 2);

    // A longer cache costs attention, which reads it, and the mask, but not the write.
    Generator generate = generator(fixed, "pytorch-eager");
    const auto writes_s = [&](std::int64_t length) {
        double seconds = 0;
        const Explanation e = generate.predictor().explain({{"batch", 2}, {"seq", 1}, {"past", 9}, {"cache", length}});
        for (const OpPrediction& launch : e.launches) {
            if (launch.op != no_op && generate.predictor().graph().ops[launch.op].kind == OpKind::scatter)
                seconds += launch.device_s;
        }
        return seconds;
    };
    CHECK(writes_s(64) > 0);
    CHECK(writes_s(4096) == writes_s(64));
}

TEST_CASE("an engine launches a dozen kernels a layer, eager PyTorch several") {
    const Graph graph = model();
    const GenerationRequest request{.batch = 1, .prompt = 64, .new_tokens = 2};
    const Generation eager = generator(graph, "pytorch-eager").generate(request);
    const Generation served = generator(graph, "vllm").generate(request);
    CHECK(served.decode.kernels >= 9 * layers);
    CHECK(served.decode.kernels <= 11 * layers + 6);
    CHECK(eager.decode.kernels > 2 * served.decode.kernels);
    // A step is one CUDA graph, the prompt is launched kernel by kernel.
    CHECK(served.prefill.host_s > served.decode.host_s);
}

TEST_CASE("an engine has one attention a layer, also where the model writes it out, and it writes the new keys") {
    // With the tokens of its windows; every other layer has one.
    for (const auto& model : {std::pair("gpt-oss-20b", 128), std::pair("gemma-2-9b", 4096), std::pair("bloom-176b", 0),
                              std::pair("llama-3-8b", 0)}) {
        const std::string name = model.first;
        CAPTURE(name);
        const Graph graph = load_graph(name);
        const Predictor engine(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                               {.precision = Precision::bf16});
        const Graph& served = engine.graph();
        const auto count = [&](const auto& matches) {
            return std::count_if(served.ops.begin(), served.ops.end(), matches);
        };
        const auto attentions = count([](const Op& op) { return op.kind == OpKind::attention; });
        CHECK(attentions == count([](const Op& op) { return op.integer("paged", 0) == 1; }));
        CHECK(attentions >= 24);
        std::int64_t windows = 0;
        for (const Op& op : served.ops) {
            if (op.kind == OpKind::attention) windows += op.integer("window", 0);
        }
        CHECK(windows == attentions / 2 * model.second);
        CHECK(count([](const Op& op) { return op.kind == OpKind::softmax && op.source != "fused"; }) <= attentions);
        const BoundShapes bound = bind(served, {{"batch", 2}, {"seq", 1}, {"past", 99}});
        for (const Op& op : served.ops) {
            if (op.kind != OpKind::attention) continue;
            // Layers with a window see no more than it.
            CHECK(bound[served.tensors[op.inputs[1]].shape[2]] == 100);
            CHECK(op.inputs.size() == 6);
        }
    }
}

TEST_CASE("an engine that decodes over a latent cache reads 512 + 64 values a token and layer, for all heads") {
    constexpr const char* latent_config =
        R"({"model_type":"deepseek_v3","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":16,
            "q_lora_rank":128,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,
            "intermediate_size":512,"first_k_dense_replace":2,"n_routed_experts":4,"num_experts_per_tok":2,
            "moe_intermediate_size":64,"n_group":1,"topk_group":1,"vocab_size":1000,"max_position_embeddings":65536,
            "torch_dtype":"float16"})";
    constexpr std::int64_t latent_heads = 16, rank = 512, turned = 64, plain = 128, value = 128;
    for (const CacheKind kind : {CacheKind::dynamic, CacheKind::paged}) {
        const Graph graph = import_config(latent_config, "config.json", "tiny", with_cache(kind));
        const Predictor engine(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                               {.precision = Precision::fp16});
        const Graph& served = engine.graph();
        const auto work = [&](OpKind kind_of_op, std::int64_t batch, std::int64_t seq, std::int64_t past) {
            const BoundShapes bound = bind(served, {{"batch", batch}, {"seq", seq}, {"past", past}});
            Work sum;
            for (const Op& op : served.ops) {
                if (op.kind != kind_of_op) continue;
                const Work one = work_of(served, op, bound);
                sum.flops += one.flops;
                sum.read_bytes += one.read_bytes;
            }
            return sum;
        };
        using enum OpKind;
        const auto read_bytes = [&](std::int64_t past) { return work(attention, 4, 1, past).read_bytes; };
        CHECK(read_bytes(4000) - read_bytes(3000) == layers * 4 * 1000 * (rank + turned) * 2);
        // Each score: a product over key and its turned part, one over the key again, and the softmax.
        CHECK(work(attention, 4, 1, 999).flops == 2 * layers * 4 * latent_heads * 1000 * (rank + turned + rank + 2));
        CHECK(work(linear, 4, 1, 999).flops == work(linear, 4, 1, 9).flops);
        // A prompt has its keys and values expanded.
        const std::int64_t scores = layers * latent_heads * 100 * 100;
        CHECK(work(attention, 1, 100, 0).flops == 2 * scores * (plain + turned + value + 2));
        const std::int64_t head_flops = 2 * hidden * vocabulary;  // only the last token
        CHECK(work(linear, 1, 100, 0).flops == 100 * work(linear, 1, 1, 0).flops - 99 * head_flops);
    }
}

TEST_CASE("SGLang's limits follow from a card's memory") {
    const Graph graph = load_graph("zoo:llama-3-8b");
    const auto of = [&](const char* device, double share = 0) {
        return Generator(graph, device_profile(device), framework_profile("sglang"), {.libraries = {.engine = 5}},
                         share);
    };
    for (const auto& [device, tokens] : {std::pair("b200", 16384), {"a100-sxm4-80gb", 8192}, {"l40s", 4096}}) {
        CHECK(of(device).engine_limits().tokens == tokens);
        CHECK(of(device).engine_limits().sequences == 2048);
    }
    // Of an 80 GiB card 13.5 GiB are left besides weights and cache, whatever the activations take of them.
    const auto room = [](Generator generator) {
        const MemoryUse use = generator.serving_memory(generator.engine_limits(), 100);
        return generator.limit_bytes(use) - use.activations_bytes - use.context_bytes;
    };
    const double capacity = device_spec("a100-sxm4-80gb").memory_bytes;
    CHECK(room(of("a100-sxm4-80gb")) == approx(capacity - 13.5 * (1 << 30)));
    CHECK(room(of("a100-sxm4-80gb", 0.6)) == approx(0.6 * capacity));
}

TEST_CASE("where Python runs the modules, prompts over a latent cache take operators of their own, decoding a graph") {
    constexpr std::int64_t latent_layers = 2;
    const Graph graph = import_config(
        R"({"model_type":"deepseek_v3","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":16,
            "q_lora_rank":128,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,
            "intermediate_size":512,"first_k_dense_replace":2,"n_routed_experts":4,"num_experts_per_tok":2,
            "moe_intermediate_size":64,"n_group":1,"topk_group":1,"vocab_size":1000,"max_position_embeddings":65536,
            "torch_dtype":"bfloat16"})",
        "config.json", "tiny", with_cache(CacheKind::paged));
    const auto operators = [&](const char* framework, int version, bool decodes) {
        Generator generator(graph, device_profile("b200"), framework_profile(framework),
                            {.precision = Precision::bf16, .libraries = {.engine = version}});
        Predictor& predictor = decodes ? generator.decoder() : generator.predictor();
        std::int64_t fused = 0;
        for (const OpPrediction& one : predictor.explain(generator.pass({}, 1, decodes ? 1 : 1000, 0)).launches)
            if (one.op != no_op && predictor.graph().ops[one.op].kind == OpKind::attention && one.host_s > 20e-6)
                ++fused;
        return fused;
    };
    CHECK(operators("sglang", 5, false) == 45 * latent_layers);
    CHECK(operators("tensorrt-llm", 102, false) == 45 * latent_layers);
    CHECK(operators("tensorrt-llm", 12, false) == 0);  // a compiled engine
    CHECK(operators("sglang", 5, true) == 0);          // a CUDA graph
    CHECK(operators("vllm", 14, false) == latent_layers);
}

TEST_CASE(
    "an engine whose indexer selects tokens reads no more than these, by latent vectors, and scores all in one "
    "operator that later layers share") {
    const Graph graph = import_config(
        R"({"model_type":"glm_moe_dsa","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":16,
            "q_lora_rank":128,"kv_lora_rank":512,"qk_nope_head_dim":192,"qk_rope_head_dim":64,"v_head_dim":256,
            "intermediate_size":512,"first_k_dense_replace":2,"n_routed_experts":4,"num_experts_per_tok":2,
            "moe_intermediate_size":64,"n_group":1,"topk_group":1,"vocab_size":1000,"max_position_embeddings":65536,
            "index_n_heads":8,"index_head_dim":128,"index_topk":2048,"indexer_types":["full","shared"],
            "torch_dtype":"bfloat16"})",
        "config.json", "tiny", with_cache(CacheKind::paged));
    Predictor engine(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                     {.precision = Precision::bf16});
    const auto is_indexer = [&](OpId op) { return engine.graph().ops[op].source == "indexer"; };
    const auto attention_s = [&](std::int64_t batch, std::int64_t seq, std::int64_t past, bool indexer = false) {
        double seconds = 0;
        for (const OpPrediction& one : engine.explain({{"batch", batch}, {"seq", seq}, {"past", past}}).launches)
            if (one.op != no_op && engine.graph().ops[one.op].kind == OpKind::attention)
                seconds += is_indexer(one.op) == indexer ? one.device_s : 0;
        return seconds;
    };
    CHECK(attention_s(64, 1, 2000) > 1.5 * attention_s(64, 1, 1000));
    CHECK(attention_s(64, 1, 8000) == approx(attention_s(64, 1, 2047)));
    CHECK(attention_s(64, 1, 64000, true) > 3 * attention_s(64, 1, 8000, true));
    // A prompt that fits into the selection attends to expanded keys, a longer one to 2,048 latent vectors a query,
    // whose tile has 64 rows for the 16 heads. Its tokens behind a longer context take no more, except the indexer's
    // scores.
    CHECK(attention_s(1, 4096, 0) > 8 * attention_s(1, 2048, 0));
    CHECK(attention_s(1, 8192, 0) == approx(2 * attention_s(1, 4096, 0)).epsilon(0.1));
    CHECK(attention_s(1, 4096, 32768) < 1.2 * attention_s(1, 4096, 0));
    CHECK(attention_s(1, 4096, 32768, true) > 4 * attention_s(1, 4096, 0, true));
    std::int64_t indexers = 0;
    for (const Op& op : engine.graph().ops) {
        if (op.kind == OpKind::attention) CHECK((op.integer("latent", 0) == 2) == (op.source != "indexer"));
        if (op.source == "indexer") ++indexers;
        CHECK(op.source != "aten::topk");
    }
    CHECK(indexers == 1);
}

TEST_CASE("an engine reads and writes the states of linear attention once, in the type that config.json gives") {
    const auto seconds = [](const std::string& more) {
        const Graph graph = import_config(
            R"({"model_type":"qwen3_next","hidden_size":2048,"num_hidden_layers":4,"num_attention_heads":16,"head_dim":128,
                "num_key_value_heads":2,"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_key_head_dim":128,
                "linear_value_head_dim":128,"linear_conv_kernel_dim":4,"intermediate_size":512,"num_experts":4,
                "num_experts_per_tok":2,"moe_intermediate_size":64,"shared_expert_intermediate_size":64,"vocab_size":1000,
                "max_position_embeddings":65536,"torch_dtype":"bfloat16")" +
                more + "}",
            "config.json", "tiny", with_cache(CacheKind::paged));
        Predictor engine(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                         {.precision = Precision::bf16});
        const ShapeBindings step{{"batch", 64}, {"seq", 1}, {"past", 1000}};
        const auto explained = engine.explain(step);
        const bool copies = std::ranges::any_of(explained.launches, [&](const OpPrediction& one) {
            return one.op != no_op && engine.graph().ops[one.op].source == "aten::copy_" && one.device_s > 0;
        });
        CHECK_FALSE(copies);
        return std::pair(engine.predict(step).device_s, engine.memory(step).state_bytes);
    };
    const auto narrow = seconds(""), wide = seconds(R"(,"mamba_ssm_dtype":"float32")");
    // 32 matrices of 128 x 128 values for each sequence and layer, in bf16 or f32.
    const double values = 3.0 * 64 * 32 * 128 * 128;
    CHECK(wide.second - narrow.second == approx(2 * values));
    CHECK(wide.first - narrow.first > 2 * 2 * values / 3.35e12);
    CHECK(wide.first - narrow.first < 4 * 2 * values / 3.35e12);
}

TEST_CASE("an engine's kernel that updates a state of Mamba-2 multiplies it as well") {
    const Graph graph = import_config(
        R"({"model_type":"mamba2","hidden_size":256,"num_hidden_layers":2,"num_heads":8,"head_dim":64,"state_size":128,
            "n_groups":1,"conv_kernel":4,"expand":2,"vocab_size":1000,"torch_dtype":"bfloat16"})",
        "config.json", "tiny", with_cache(CacheKind::paged));
    const auto seconds = [&](std::string_view framework) {
        Predictor predictor(graph, device_profile("h100-sxm5-80gb"), framework_profile(framework),
                            {.precision = Precision::bf16});
        double sum = 0;
        for (const OpPrediction& one : predictor.explain({{"batch", 64}, {"seq", 1}, {"past", 1000}}).launches)
            if (one.op != no_op && predictor.graph().ops[one.op].integer("updates_state", 0) != 0) sum += one.device_s;
        return sum;
    };
    CHECK(seconds("vllm") == 0);
    CHECK(seconds("pytorch-eager") > 0);
}

TEST_CASE("cards that reach each other faster sum faster") {
    ImportOptions options;
    options.tensor_parallel = 8;
    const Graph part = model(options);
    const auto sums_s = [&](const char* device, std::int64_t batch = 8, std::int64_t tokens = 2500) {
        Generator generate = generator(part, "tensorrt-llm", device);
        double seconds = 0;
        const Explanation e = generate.predictor().explain({{"batch", batch}, {"seq", tokens}, {"past", 0}});
        for (const OpPrediction& launch : e.launches) {
            if (launch.op != no_op && generate.predictor().graph().ops[launch.op].kind == OpKind::all_reduce)
                seconds += launch.device_s;
        }
        return seconds / (2 * layers + 1);
    };
    // 14 steps of an eighth of 8 x 2500 x 256 halves each, half of which is copied once more, over a link that carries
    // 96 %.
    const double wire_s = (14.0 / 8 + 0.5) * 8 * 2500 * 256 * 2 / (0.96 * 300e9);
    CHECK(sums_s("a100-sxm4-40gb") == approx(8.4e-6 + 14 * 3.4e-6 + wire_s));
    CHECK(sums_s("a100-pcie-40gb") > 2 * sums_s("a100-sxm4-40gb"));
    // A token: the library's own kernel reads the seven others' 512 bytes at once. Over PCIe it is NCCL's.
    CHECK(sums_s("a100-sxm4-40gb", 1, 1) == approx(4.8e-6 + 7 * 512 / (0.6 * 300e9)));
    CHECK(sums_s("a100-pcie-40gb", 1, 1) > 14e-6);
}

TEST_CASE("merged layers read every weight once") {
    const Graph graph = model();
    const Predictor engine(graph, device_profile("a100-sxm4-40gb"), framework_profile("vllm"),
                           {.precision = Precision::fp16});
    const ShapeBindings step{{"batch", 1}, {"seq", 1}, {"past", 64}};
    const auto linear_flops = [&](const Graph& of) {
        const BoundShapes bound = bind(of, step);
        std::int64_t flops = 0;
        for (const Op& op : of.ops) {
            if (op.kind == OpKind::linear) flops += work_of(of, op, bound).flops;
        }
        return flops;
    };
    CHECK(linear_flops(engine.graph()) == linear_flops(graph));
    const auto linears = std::count_if(engine.graph().ops.begin(), engine.graph().ops.end(),
                                       [](const Op& op) { return op.kind == OpKind::linear; });
    CHECK(linears == 4 * layers + 1);
}

TEST_CASE("vLLM before CUDA graphs launches a step kernel by kernel and sums over cards by NCCL") {
    ImportOptions cards;
    cards.tensor_parallel = 2;
    const Graph graph = model(cards);
    const auto step = [&](int version) {
        PredictOptions options{.precision = Precision::fp16};
        options.libraries.engine = version;
        Predictor vllm(graph, device_profile("a100-sxm4-40gb"), framework_profile("vllm"), options);
        return vllm.predict({{"batch", 1}, {"seq", 1}, {"past", 64}});
    };
    const Prediction launched = step(2), captured = step(3);
    CHECK(launched.kernels == captured.kernels);
    CHECK(launched.host_s > captured.host_s + 10 * layers * 5e-6);
    CHECK(launched.device_s > captured.device_s + 2 * layers * 3e-6);
    CHECK(step(6).latency_s == captured.latency_s);
}

TEST_CASE("vLLM without graphs launches each step from Python") {
    const Graph graph = model();
    const auto step = [&](const char* framework, std::int64_t past) {
        Generator generate = generator(graph, framework);
        return generate.predictor().predict(generate.pass({}, 1, 1, past));
    };
    const Prediction eager = step("vllm-eager", 64), captured = step("vllm", 64);
    CHECK(eager.kernels == captured.kernels);
    CHECK(eager.device_s == captured.device_s);
    CHECK(eager.host_s > captured.host_s + layers * 300e-6);
    CHECK(eager.bound == Bound::host);
}

TEST_CASE("vLLM with --enforce-eager takes what Qwen3-14B-AWQ took on an A100") {
    // Source: vllm-project/vllm, issue 20469: 16,000 tokens in, 200 out, one request at a time.
    const Graph graph = import_config(R"({"model_type":"qwen3","hidden_size":5120,"intermediate_size":17408,
        "head_dim":128,"max_position_embeddings":40960,"num_attention_heads":40,"num_hidden_layers":40,
        "num_key_value_heads":8,"torch_dtype":"float16","vocab_size":151936})",
                                      "config.json", "qwen3-14b");
    Generator generate(graph, device_profile("a100-sxm4-80gb"), framework_profile("vllm-eager"),
                       {.precision = Precision::w4a16});
    const Generation run = generate.generate({.batch = 1, .prompt = 16000, .new_tokens = 200});
    CHECK(run.tpot_s == Measured("time per token, vllm-eager, a100-sxm4-80gb"));
    CHECK(run.ttft_s == Measured("time to first token, vllm-eager, a100-sxm4-80gb"));
    CHECK(run.low_s < 7.45);
    CHECK(run.high_s > 7.45);
}

TEST_CASE("llama.cpp runs 4-bit weights on a P40 as its tables say") {
    // Source: ggml-org/llama.cpp, pull request 4766: Q4_0, tg128 56.8 and pp512 912 tokens a second.
    const Graph graph = load_graph("llama-2-7b");
    Generator generate(graph, device_profile("p40"), framework_profile("llama.cpp"), {.precision = Precision::w4a16});
    CHECK(generate.generate({.batch = 1, .prompt = 1, .new_tokens = 129}).tpot_s ==
          Measured("time per token, llama.cpp, p40"));
    CHECK(generate.generate({.batch = 1, .prompt = 512, .new_tokens = 1}).ttft_s ==
          Measured("time to first token, llama.cpp, p40"));
    for (const char* device : {"gtx-1080-ti", "m40"}) {
        const auto step_s = [&](Precision precision) {
            Generator one(graph, device_profile(device), framework_profile("llama.cpp"), {.precision = precision});
            return one.predictor().predict(one.pass({}, 1, 1, 64)).device_s;
        };
        CAPTURE(device);
        CHECK(step_s(Precision::w4a16) < 0.45 * step_s(Precision::fp16));
        CHECK(step_s(Precision::w8a16) < 0.7 * step_s(Precision::fp16));
    }
}

TEST_CASE("llama.cpp multiplies quantised weights as int8 and keeps scores on chip, as measured") {
    // Source: ggml-org/llama.cpp, pull requests 7676, 15131, 15802, 21159 (Llama-3-8B in Q4_0), 17505 and 17891 (at a
    // depth of 32768), 24127 (a P40, in Q4_K_S).
    const auto pass_s = [](std::string_view model, std::string_view device, std::int64_t tokens, std::int64_t past,
                           int version) {
        const Graph graph = load_graph(std::string(model));
        PredictOptions options{.precision = device == "p40" ? Precision::q4_k_m : Precision::q4_0};
        options.libraries.engine = version;
        Predictor predictor(graph, device_profile(device), framework_profile("llama.cpp"), options);
        return predictor.predict({{"batch", 1}, {"seq", tokens}, {"past", past}}).latency_s;
    };
    struct Row {
        const char *model, *device;
        std::int64_t tokens, past;
        double measured_s;
    };
    for (const Row& row : {Row{"llama-3-8b", "rtx-4090", 10, 0, 8.45e-3},
                           {"llama-3-8b", "rtx-4090", 16, 0, 8.26e-3},
                           {"llama-3-8b", "rtx-4090", 64, 0, 11.8e-3},
                           {"llama-3-8b", "rtx-4090", 512, 0, 49.4e-3},
                           {"llama-3-8b", "rtx-3090", 8, 252, 13.7e-3},
                           {"llama-3-8b", "rtx-3090", 64, 224, 19.3e-3},
                           {"llama-3-8b", "rtx-3090", 8, 32768, 18.2e-3},
                           {"llama-3-8b", "rtx-3090", 64, 32768, 42.9e-3},
                           {"llama-3-8b", "rtx-3090", 512, 32768, 351e-3},
                           {"llama-2-7b", "rtx-3090", 4, 32768, 27.6e-3},
                           {"llama-2-7b", "rtx-3090", 64, 32768, 43.4e-3},
                           {"llama-3-8b", "p40", 16, 0, 36.8e-3},
                           {"llama-3-8b", "p40", 32, 0, 58.8e-3},
                           {"llama-3-8b", "p40", 64, 0, 89.1e-3},
                           {"llama-3-8b", "p40", 128, 0, 154e-3},
                           {"llama-3-8b", "p40", 512, 0, 546e-3}}) {
        CAPTURE(row.tokens);
        CAPTURE(row.past);
        CHECK(pass_s(row.model, row.device, row.tokens, row.past, 202500) == approx(row.measured_s).epsilon(0.2));
    }
    CHECK(pass_s("llama-3-8b", "rtx-4090", 10, 0, 202500) < 1.25 * pass_s("llama-3-8b", "rtx-4090", 8, 0, 202500));
    CHECK(pass_s("llama-3-8b", "rtx-4090", 10, 0, 202405) > 2 * pass_s("llama-3-8b", "rtx-4090", 8, 0, 202405));
    CHECK(pass_s("llama-3-8b", "v100-sxm2-32gb", 64, 0, 202500) >
          1.5 * pass_s("llama-3-8b", "v100-sxm2-32gb", 63, 0, 202500));
}

TEST_CASE("cached keys come from memory: the weights of other layers pass between two steps") {
    // Llama-3-8B on an RTX 5080, whose L2 holds a layer's keys and values of 16,000 tokens. Source:
    // docs/serving-frameworks.md.
    const Graph graph = load_graph("llama-3-8b");
    for (const char* framework : {"llama.cpp", "vllm"}) {
        Predictor predictor(graph, device_profile("rtx-5080"), framework_profile(framework),
                            {.precision = framework[0] == 'v' ? Precision::w4a16 : Precision::q4_0});
        const auto step_s = [&](std::int64_t past) {
            return predictor.predict({{"batch", 1}, {"seq", 1}, {"past", past}}).device_s;
        };
        const double bytes = 32 * 8 * 128 * 2 * 2.0 * 6144;  // layers, heads, width, keys and values, f16, tokens
        CHECK(step_s(8192) - step_s(2048) > bytes / predictor.device().device.memory_bandwidth_bytes_per_s);
    }
}

TEST_CASE("llama.cpp launches early from Hopper on, and reuses the graph of the step before") {
    const Graph graph = load_graph("llama-3-8b");
    const auto step = [&](const char* device, int version) {
        PredictOptions options{.precision = Precision::q4_0};
        options.libraries.engine = version;
        Predictor predictor(graph, device_profile(device), at_version(framework_profile("llama.cpp"), version),
                            options);
        const Prediction one = predictor.predict({{"batch", 1}, {"seq", 1}, {"past", 64}});
        return one.latency_s - one.device_s - one.host_s;  // gaps between kernels
    };
    CHECK(step("rtx-5080", 202606) == doctest::Approx(step("rtx-5080", 202512) / 2).epsilon(0.01));
    CHECK(step("rtx-4090", 202606) == doctest::Approx(step("rtx-4090", 202512)));
}

TEST_CASE("engines that serve refuse models without a cache of tokens") {
    for (const char* framework : {"vllm", "vllm-eager", "tensorrt-llm", "llama.cpp"}) {
        for (const char* name : {"resnet50", "bert"}) {
            const Graph graph = load_graph(name);
            const Failure failure = failure_of(
                [&] { return Predictor(graph, device_profile("a100-sxm4-40gb"), framework_profile(framework), {}); });
            CHECK(failure.code == ErrorCode::usage);
            CHECK(failure.says("serves generating language models only"));
        }
    }
}

TEST_CASE("llama.cpp reads prompts 512 tokens at a time and captures steps of one sequence") {
    const Graph graph = model();
    Generator generate = generator(graph, "llama.cpp");
    const auto pass_s = [&](std::int64_t batch, std::int64_t seq, std::int64_t past) {
        return generate.predictor().predict(generate.pass({}, batch, seq, past)).latency_s;
    };
    const Generation two = generate.generate({.batch = 2, .prompt = 1100, .new_tokens = 2});
    CHECK(two.prefill_passes == 6);
    CHECK(two.ttft_s == approx(2 * (pass_s(1, 512, 0) + pass_s(1, 512, 512) + pass_s(1, 76, 1024))));
    CHECK(generate.generate({.batch = 7, .prompt = 200, .new_tokens = 2}).prefill_passes == 4);

    const auto host_s = [&](const char* device, std::int64_t batch) {
        Predictor predictor(graph, device_profile(device), framework_profile("llama.cpp"),
                            {.precision = Precision::fp16});
        return predictor.predict({{"batch", batch}, {"seq", 1}, {"past", 64}}).host_s;
    };
    CHECK(host_s("a100-sxm4-40gb", 2) > host_s("a100-sxm4-40gb", 1) + 10 * layers * 4e-6);
    CHECK(host_s("t4", 1) > host_s("a100-sxm4-40gb", 1) + 10 * layers * 4e-6);
}

TEST_CASE("the largest batch fits and one sequence more does not") {
    const Graph graph = model();
    Generator eager = generator(graph, "pytorch-eager", "t4");
    GenerationRequest request{.batch = 1, .prompt = 1000, .new_tokens = 1000};
    const std::int64_t most = eager.largest_batch(request);
    REQUIRE(most > 1);
    request.batch = most;
    CHECK(eager.memory(request).fits());
    request.batch = most + 1;
    CHECK_FALSE(eager.memory(request).fits());
    const Generation too_many = eager.generate(request);
    CHECK(too_many.waves == 1);
    CHECK(std::any_of(too_many.warnings.begin(), too_many.warnings.end(),
                      [](const std::string& w) { return w.find("does not fit") != std::string::npos; }));
}

TEST_CASE("an engine serves what does not fit in turns") {
    const Graph graph = model();
    Generator engine = generator(graph, "vllm", "t4");
    GenerationRequest request{.batch = 1, .prompt = 1000, .new_tokens = 200};
    request.batch = engine.largest_batch(request);
    const double once_s = engine.generate(request).total_s;
    request.batch *= 3;
    const Generation thrice = engine.generate(request);
    CHECK(thrice.waves == approx(3));
    CHECK(thrice.total_s == approx(3 * once_s));
}

TEST_CASE("an engine leaves a tenth of the memory, eager PyTorch nothing") {
    const Graph graph = model();
    for (const char* framework : {"vllm", "tensorrt-llm", "pytorch-eager"}) {
        CAPTURE(framework);
        Generator generate = generator(graph, framework, "t4");
        GenerationRequest request{.batch = 1, .prompt = 1000, .new_tokens = 1000};
        request.batch = generate.largest_batch(request);
        // CUDA graphs come after; TensorRT-LLM takes its share of what the model leaves.
        const auto room_bytes = [&](const MemoryUse& use) {
            const double capacity = generate.device().memory_bytes;
            const double graphs = std::max(0.0, use.context_bytes - FrameworkModel{}.context_bytes);
            const double used = use.total_bytes() - use.cache_bytes;
            if (std::string(framework) == "pytorch-eager") return capacity - used;
            return std::string(framework) == "vllm" ? 0.9 * capacity + graphs - used : 0.9 * (capacity - used + graphs);
        };
        for (const bool fits : {true, false}) {
            const MemoryUse use = generate.memory(request);
            CHECK(generate.fits(use) == fits);
            CHECK((use.cache_bytes <= room_bytes(use)) == fits);
            CHECK(generate.generate(request).fits == fits);
            ++request.batch;
        }
    }
}

TEST_CASE(
    "an engine with less of the memory has room for fewer sequences, and for none of a model that it cannot hold") {
    const Graph graph = model();
    const auto most = [&](double share) {
        Generator engine(graph, device_profile("t4"), framework_profile("vllm"), {.precision = Precision::fp16}, share);
        return engine.largest_batch({.batch = 1, .prompt = 1000, .new_tokens = 200});
    };
    CHECK(most(0) == most(0.9));
    CHECK(most(0.8) < most(0.9));
    CHECK(most(0.01) == 0);
}

TEST_CASE("an engine that does not evict serves the rest in a turn of its own") {
    const Graph graph = model();
    Generator engine = generator(graph, "tensorrt-llm", "t4");
    GenerationRequest request{.batch = 1, .prompt = 1000, .new_tokens = 200};
    const std::int64_t most = engine.largest_batch(request), rest = most / 3;
    const auto total_s = [&](std::int64_t batch) {
        request.batch = batch;
        return engine.generate(request).total_s;
    };
    CHECK(total_s(2 * most + rest) == approx(2 * total_s(most) + total_s(rest)));
}

TEST_CASE("with tensor parallelism each card holds a part of every layer, with two all-reduces per layer") {
    ImportOptions options;
    options.tensor_parallel = 4;
    const Graph whole = model();
    const Graph part = model(options);
    const auto sums =
        std::count_if(part.ops.begin(), part.ops.end(), [](const Op& op) { return op.kind == OpKind::all_reduce; });
    CHECK(sums == 2 * layers + 1);
    const GenerationRequest request{.batch = 1, .prompt = 100, .new_tokens = 28};
    const double one = generator(whole, "vllm").memory(request).weights_bytes;
    const double each = generator(part, "vllm").memory(request).weights_bytes;
    CHECK(each > one / 4);
    CHECK(each < one / 4 * 1.01);
    CHECK(generator(part, "vllm").memory(request).cache_bytes == cache_bytes(1, 128) / 4);
    options.tensor_parallel = 3;
    CHECK(failure_of([&] { return model(options); }).says("3 cards"));
}

TEST_CASE("decoding leaves the framework's bound at the batch and the context that the crossover says") {
    const Graph graph = model();
    Generator generate = generator(graph, "pytorch-eager");
    const GenerationRequest request{.batch = 64, .prompt = 1000, .new_tokens = 2};
    const DecodeCrossover crossover = generate.crossover(request);
    REQUIRE(crossover.batches.size() == 1);
    CHECK_FALSE(crossover.batches[0].gpu_waits_above);
    const auto step = [&](std::int64_t batch, std::int64_t past) {
        return generate.predictor().predict(generate.pass(request, batch, 1, past));
    };
    const auto below = static_cast<std::int64_t>(crossover.batches[0].batch);
    CHECK(step(below, 1000).bound == Bound::host);
    CHECK(step(below + 1, 1000).bound != Bound::host);
    if (!crossover.contexts.empty()) {
        CHECK(step(64, 0).bound == Bound::host);
        CHECK(step(64, crossover.contexts[0].tokens).bound != Bound::host);
    } else {
        CHECK(crossover.context_bound == step(64, 0).bound);
    }
    CHECK(crossover.longest_context == 4095);
}

TEST_CASE("prompts of unlike length count with the longest where they are padded, with the mean where not") {
    const Graph graph = model();
    const GenerationRequest mixed{.batch = 4, .prompt = 100, .longest_prompt = 800, .new_tokens = 8};
    const GenerationRequest mean{.batch = 4, .prompt = 100, .new_tokens = 8};
    const GenerationRequest longest{.batch = 4, .prompt = 800, .new_tokens = 8};
    CHECK(generator(graph, "pytorch-eager").generate(mixed).total_s ==
          generator(graph, "pytorch-eager").generate(longest).total_s);
    CHECK(generator(graph, "vllm").generate(mixed).total_s == generator(graph, "vllm").generate(mean).total_s);
}

TEST_CASE("a context beyond the model's positions warns, and requests without tokens are refused") {
    const Graph graph = model();
    Generator generate = generator(graph, "vllm");
    const Generation beyond = generate.generate({.batch = 1, .prompt = 4090, .new_tokens = 20});
    CHECK(std::any_of(beyond.warnings.begin(), beyond.warnings.end(),
                      [](const std::string& w) { return w.find("4096") != std::string::npos; }));
    for (const GenerationRequest& request :
         {GenerationRequest{.prompt = 8, .new_tokens = 0}, GenerationRequest{.prompt = 0, .new_tokens = 8},
          GenerationRequest{.batch = 0, .prompt = 8, .new_tokens = 8},
          GenerationRequest{.prompt = 8, .longest_prompt = 4, .new_tokens = 8}}) {
        CHECK(failure_of([&] { return generate.generate(request); }).code == ErrorCode::usage);
    }
}

TEST_CASE("a model without a cache generates nothing") {
    const Graph encoder = load_graph("bert");
    CHECK(failure_of([&] { return generator(encoder, "pytorch-eager"); }).code == ErrorCode::model);
}

TEST_CASE("the encoder of speech runs once, and its keys and values are part of the cache") {
    constexpr std::int64_t width = 64, blocks = 2, frames = 100, types = 2;
    const Graph graph = import_config(
        R"({"model_type":"whisper","d_model":64,"encoder_layers":2,"decoder_layers":2,"encoder_attention_heads":4,
            "decoder_attention_heads":4,"encoder_ffn_dim":128,"decoder_ffn_dim":128,"max_source_positions":100,
            "max_target_positions":448,"num_mel_bins":80,"vocab_size":500,"torch_dtype":"float16"})",
        "config.json", "speech");
    Generator generate = generator(graph, "vllm");
    const GenerationRequest request{.batch = 3, .prompt = 4, .new_tokens = 8};
    const auto convolutions = [](const Graph& of) {
        return std::count_if(of.ops.begin(), of.ops.end(), [](const Op& op) { return op.kind == OpKind::conv; });
    };
    CHECK(std::ranges::count_if(graph.ops, [](const Op& op) { return op.integer("causal", 0) != 0; }) == blocks);
    CHECK(convolutions(generate.predictor().graph()) == 2);
    CHECK(convolutions(generate.decoder().graph()) == 0);
    const Generation g = generate.generate(request);
    CHECK(g.tpot_s < 0.8 * g.ttft_s);
    const MemoryUse whole = generate.predictor().memory(generate.pass(request, 3, 4, 0));
    CHECK(g.memory.weights_bytes == whole.weights_bytes);
    CHECK(g.memory.cache_bytes == types * blocks * 3 * (frames + 4 + 8) * width * 2);

    const Graph text = model();
    Generator decoder = generator(text, "vllm");
    CHECK(&decoder.decoder() == &decoder.predictor());
}

TEST_CASE("while a cache grows, both copies are in memory in addition to live tensors") {
    const Graph graph = parse_text_graph(R"(graph grows
input %x f16[batch,8,seq,64]
input %past_key_values.0.key f16[batch,8,past,64]
%key f16[batch,8,seq,64] = pointwise(%x) {function="relu"}
%1 f16[batch,8,past+seq,64] = concat(%past_key_values.0.key, %key) {axis=2}
output %1
)",
                                         "grows");
    for (const char* device : {"a100-sxm4-40gb", "h100-sxm5-80gb"}) {
        Predictor predictor(graph, device_profile(device), framework_profile("pytorch-eager"),
                            {.precision = Precision::fp16});
        const double token = 3 * 8 * 64 * 2;  // three sequences
        const MemoryUse use = predictor.memory({{"batch", 3}, {"seq", 5}, {"past", 100}});
        CHECK(use.cache_bytes == 105 * token);
        CHECK(use.activations_bytes == 100 * token + 2 * 5 * token);  // the old copy, the input and the new key
        // Source: PyTorch, CublasHandlePool.cpp (parseChosenWorkspaceSize): 8.125 MiB, from Hopper on 32; cublasLt 1.
        CHECK(use.workspace_bytes == (std::string_view(device).starts_with("h100") ? 33 : 9.125) * (1 << 20));
    }
}

TEST_CASE("an engine that serves sequences schedules each of them in every step") {
    const Graph graph = model();
    for (const char* framework : {"vllm", "sglang", "tensorrt-llm", "pytorch-eager"}) {
        CAPTURE(framework);
        Generator generate = generator(graph, framework);
        const auto host_s = [&](std::int64_t batch) {
            const GenerationRequest request{.batch = batch, .prompt = 100, .new_tokens = 60};
            return generate.predictor().predict(generate.pass(request, batch, 1, 100)).host_s;
        };
        const double sequence_s = (host_s(32) - host_s(16)) / 16;
        CHECK((host_s(64) - host_s(32)) / 32 == doctest::Approx(sequence_s).epsilon(0.001).scale(1e-9));
        CHECK((sequence_s > 1e-6) == (std::string_view(framework) != "pytorch-eager"));
    }
}

TEST_CASE("what a mask hides from a query an engine does not compute") {
    for (const CacheKind kind : {CacheKind::dynamic, CacheKind::fixed, CacheKind::paged}) {
        Graph graph = model(with_cache(kind));
        rewrites::append_to_pages(graph);
        std::size_t attentions = 0;
        for (const Op& op : graph.ops) {
            if (op.kind != OpKind::attention) continue;
            ++attentions;
            CHECK(op.integer("causal", 0) == 1);
        }
        CHECK(attentions == layers);
    }
}

TEST_CASE("groups of cards hold different experts and exchange all tokens") {
    const auto part = [](int tensor, int data, int experts) {
        ImportOptions options;
        options.tensor_parallel = tensor;
        options.data_parallel = data;
        options.expert_parallel = experts;
        return load_graph("zoo:mixtral-8x7b", options);
    };
    const auto weights = [](const Graph& graph) {
        double elements = 0;
        for (const Tensor& tensor : graph.tensors) {
            if (tensor.role != TensorRole::weight || tensor.shape.size() != 3) continue;
            double size = 1;
            for (const Expression length : tensor.shape)
                size *= static_cast<double>(graph.expressions.constant_value(length).value_or(0));
            elements += size;
        }
        return elements;
    };
    const auto exchanges = [](const Graph& graph) {
        return std::ranges::count_if(graph.ops, [](const Op& op) { return op.kind == OpKind::all_reduce; });
    };
    const Graph one = part(1, 1, 1), cut = part(4, 1, 1), apart = part(4, 1, 4), groups = part(1, 4, 4);
    for (const Graph* graph : {&cut, &apart, &groups}) CHECK(weights(*graph) * 4 == approx(weights(one)));
    CHECK(exchanges(one) == 0);
    CHECK(exchanges(apart) == exchanges(cut));
    CHECK(exchanges(groups) == 32);  // one a layer: attention is each group's own
    const auto device_s = [](const Graph& graph, std::int64_t batch) {
        Generator generator(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                            {.precision = Precision::bf16, .libraries = {.engine = 19}});
        return generator.decoder().predict(generator.pass({}, batch, 1, 1000)).device_s;
    };
    // A group's 16 sequences are as many tokens for its experts as 64 of cards that share all layers.
    CHECK(device_s(groups, 16) > device_s(cut, 16));
    CHECK(device_s(groups, 16) == approx(device_s(cut, 64)).epsilon(0.5));
    // Two calls of NCCL in place of the engine's own kernel: 6 steps and 1.5 times the message, at less of the rate.
    Graph summed = groups;
    for (Op& op : summed.ops)
        std::erase_if(op.attributes, [](const auto& attribute) { return attribute.name == "calls"; });
    constexpr double bytes = 4 * 4096 * 2, link = 450e9;
    const double own_s = 4.8e-6 + 3 * bytes / link / 0.6;
    const double calls_s = 2 * 8.5e-6 + 6 * 0.85e-6 + 2 * 1.5 * bytes / (0.8 * 0.91 * (1 - 0.62 / 4) * link);
    CHECK(device_s(groups, 1) - device_s(summed, 1) == approx(32 * (calls_s - own_s)).epsilon(0.01));
    CHECK(failure_of([&] { return part(2, 1, 4); }).message.find("--ep 4") != std::string::npos);
    CHECK(failure_of([&] { return part(1, 16, 16); }).message.find("experts") != std::string::npos);
    ImportOptions last;
    last.last_layers = 1;
    CHECK(weights(load_graph("zoo:mixtral-8x7b", last)) * 32 == approx(weights(one)));
}

TEST_CASE("images come before the prompt: their encoder's pass and their tokens add to the first token") {
    std::string text = config;
    text.insert(text.size() - 1,
                R"(,"vision_config":{"depth":4,"embed_dim":256,"hidden_size":256,"num_heads":4,"patch_size":14})");
    text.replace(text.find("llama"), 5, "qwen2_vl");
    ImportOptions options;
    options.image_size = {280, 560};
    const Graph seeing = import_config(text, "config.json", "seeing", options);
    REQUIRE(seeing.image_encoder != nullptr);
    Graph blind = seeing;
    blind.image_encoder = nullptr;
    blind.no_images = "it is blind";
    constexpr std::int64_t tokens = 10 * 20 + 2;
    CHECK(seeing.image_encoder->tokens == tokens);
    for (const char* framework : {"vllm", "pytorch-eager", "llama.cpp"}) {
        CAPTURE(framework);
        Generator generate = generator(seeing, framework), reads = generator(blind, framework);
        const Generation seen = generate.generate({.batch = 3, .prompt = 50, .new_tokens = 8, .images = 2});
        const Generation read = reads.generate({.batch = 3, .prompt = 50 + 2 * tokens, .new_tokens = 8});
        REQUIRE(seen.images);
        CHECK(seen.image_tokens == tokens);
        const double passes = static_cast<double>(seen.prefill_passes);
        CHECK(seen.images->latency_s == approx(generate.encode(2 * seen.prompts_per_pass).latency_s));
        CHECK(seen.ttft_s > read.ttft_s);
        if (passes == 1) CHECK(seen.ttft_s == approx(read.ttft_s + seen.images->latency_s));
        CHECK(seen.tpot_s == approx(read.tpot_s));
        CHECK(seen.total_s - seen.ttft_s == approx(read.total_s - read.ttft_s));
        CHECK(seen.images->host_s > 4 * 7 * 1e-6);  // each kernel is launched
        CHECK(seen.memory.cache_bytes == read.memory.cache_bytes);
        // An engine loads the encoder for prompts without images as well.
        const GenerationRequest words{.prompt = 50, .new_tokens = 8};
        const double more = generate.memory(words).weights_bytes - reads.memory(words).weights_bytes;
        CHECK(more == approx(seen.memory.weights_bytes - read.memory.weights_bytes));
        CHECK(more > 2 * 4 * 12 * 256 * 256.0);
        CHECK(more < 2.6 * 4 * 12 * 256 * 256.0 + 2e6);
        CHECK(generate.generate(words).ttft_s == approx(reads.generate(words).ttft_s));
        CHECK(failure_of([&] { return reads.generate({.prompt = 50, .images = 1}); }).says("no images: it is blind"));
    }
}
