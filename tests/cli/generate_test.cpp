#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax::test;

namespace {

constexpr const char* config =
    R"({"model_type":"llama","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":4,
        "intermediate_size":512,"vocab_size":1000,"max_position_embeddings":4096,"torch_dtype":"float16"})";

std::vector<std::string> command(const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> words{"generate", model, "--device", "t4", "--framework", "vllm"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

}  // namespace

TEST_CASE("ftax generate reports the time of both phases, the memory and whether it fits") {
    const TemporaryFolder folder;
    folder.write("config.json", config);
    const std::string page = folder.file("page.html");
    const auto run =
        run_ftax(command(folder.path.string(), {"--batch", "1:16:x4", "--prompt", "128", "--new-tokens", "32",
                                                "--price", "1.5", "--largest-batch", "--json", "-", "--html", page}));
    REQUIRE(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.output);
    REQUIRE(json["predictions"].size() == 3);
    CHECK(json["precision"] == "fp16");
    for (const auto& row : json["predictions"]) {
        CHECK(row["total_s"].get<double>() == approx(row["ttft_s"].get<double>() + 31 * row["tpot_s"].get<double>()));
        CHECK(row["memory"]["total_bytes"].get<double>() <= row["memory"]["capacity_bytes"].get<double>());
        CHECK(row["fits"] == true);
        CHECK(row["largest_batch"].get<int>() > 16);
        CHECK(row["tokens_per_dollar"].get<double>() == approx(row["tokens_per_s"].get<double>() * 3600 / 1.5));
    }
    const std::string html = read_text(page);
    for (const char* part : {"id=\"prefill\"", "id=\"decode\"", "id=\"memory\"", "data-key=\"ttft_s\""}) {
        CHECK(html.find(part) != std::string::npos);
    }
}

TEST_CASE("a checkpoint in mxfp4 is that of GGUF under llama.cpp, and its own elsewhere") {
    const auto precision = [](const std::string& device, const std::string& framework,
                              const std::vector<std::string>& more = {}) {
        std::vector<std::string> words{"generate", "gpt-oss-20b", "--device",     device, "--framework", framework,
                                       "--prompt", "16",          "--new-tokens", "4",    "--json",      "-"};
        words.insert(words.end(), more.begin(), more.end());
        const auto run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        CHECK(run.errors.find("replaces them") == std::string::npos);
        return nlohmann::json::parse(run.output)["precision"].get<std::string>();
    };
    CHECK(precision("rtx-5090", "llama.cpp") == "mxfp4");
    CHECK(precision("rtx-3090", "ollama") == "mxfp4");
    CHECK(precision("rtx-5090", "vllm", {"--precision", "mxfp4"}) == "nvfp4");
    CHECK(precision("rtx-3090", "vllm", {"--precision", "mxfp4"}) == "w4a16");
}

TEST_CASE("ftax generate accepts a framework version for any type of weights") {
    const TemporaryFolder folder;
    folder.write("config.json", config);
    const auto total_s = [&](const std::string& framework) {
        const auto run = run_ftax({"generate", folder.path.string(), "--device", "t4", "--framework", framework,
                                   "--batch", "1", "--prompt", "16", "--new-tokens", "4", "--json", "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["predictions"][0]["total_s"].get<double>();
    };
    CHECK(total_s("pytorch-eager@2.4") != total_s("pytorch-eager@1.13"));
    folder.write("config.json", std::string(config).replace(std::string(config).find("float16"), 7, "float32"));
    CHECK(total_s("pytorch-eager@2.4") != total_s("pytorch-eager@1.13"));
}

TEST_CASE("a run that does not fit is predicted, marked and warned of") {
    const auto run =
        run_ftax({"generate", "llama-3-70b", "--device", "t4", "--prompt", "64", "--new-tokens", "4", "--json", "-"});
    CHECK(run.exit_code == 0);
    CHECK(run.errors.find("does not fit") != std::string::npos);
    CHECK(nlohmann::json::parse(run.output)["predictions"][0]["fits"] == false);
    const auto prediction = run_ftax({"predict", "llama-3-70b", "--device", "t4", "--precision", "fp16", "--batch", "1",
                                      "--dim", "seq=1", "--dim", "past=8", "--json", "-"});
    CHECK(prediction.exit_code == 0);
    CHECK(prediction.errors.find("DOES NOT FIT") != std::string::npos);
    CHECK(nlohmann::json::parse(prediction.output)["predictions"][0]["fits"] == false);
}

TEST_CASE("a context beyond the positions that the model was made for is predicted with a warning") {
    const TemporaryFolder folder;
    const std::string model = folder.write("config.json", config);
    const auto run = run_ftax(command(model, {"--prompt", "4000", "--new-tokens", "200"}));
    CHECK(run.exit_code == 0);
    CHECK(run.errors.find("past+seq = 4199 lies outside the 1 to 4096 that the model allows") != std::string::npos);
    CHECK(run_ftax(command(model, {"--prompt", "3896", "--new-tokens", "200"})).errors.find("lies outside") ==
          std::string::npos);
}

TEST_CASE("ftax generate takes the version of the framework") {
    const TemporaryFolder folder;
    const std::string model = folder.write("config.json", config);
    const auto decoding_host_s = [&](const std::string& framework) {
        const auto run = run_ftax({"generate", model, "--device", "t4", "--framework", framework, "--prompt", "64",
                                   "--new-tokens", "8", "--json", "-"});
        REQUIRE(run.exit_code == 0);
        return nlohmann::json::parse(run.output)["predictions"][0]["decode"]["host_s"].get<double>();
    };
    CHECK(decoding_host_s("vllm@0.2") > decoding_host_s("vllm@0.3") + 1e-4);
    CHECK(decoding_host_s("vllm@0.14") == decoding_host_s("vllm"));
}

TEST_CASE("TensorRT-LLM has kernels of its own for decoding with fp8 keys on Hopper") {
    const auto per_token_s = [](const std::string& device, const std::string& framework, const std::string& keys) {
        const auto run = run_ftax({"generate",       "llama-3.1-70b",
                                   "--device",       device,
                                   "--framework",    framework,
                                   "--precision",    "fp8",
                                   "--kv-precision", keys,
                                   "--batch",        "64",
                                   "--prompt",       "10000",
                                   "--new-tokens",   "100",
                                   "--tp",           "4",
                                   "--json",         "-"});
        REQUIRE(run.exit_code == 0);
        return nlohmann::json::parse(run.output)["predictions"][0]["tpot_s"].get<double>();
    };
    const auto share_of_vllm = [&](const std::string& device, const std::string& keys) {
        return per_token_s(device, "tensorrt-llm", keys) / per_token_s(device, "vllm", keys);
    };
    CHECK(share_of_vllm("h100-sxm5-80gb", "fp8") < 0.95);  // the kernel alone: 0.92 (AIConfigurator 0.12)
    CHECK(share_of_vllm("h100-sxm5-80gb", "bf16") > 0.95);
    CHECK(share_of_vllm("b200", "fp8") > 0.9);
}

TEST_CASE("ftax generate rejects invalid requests and models that do not generate text") {
    const TemporaryFolder folder;
    const std::string model = folder.write("config.json", config);
    const auto exit_code = [](const std::vector<std::string>& words) { return run_ftax(words).exit_code; };
    CHECK(exit_code(command(model, {"--prompt", "8", "--new-tokens", "0"})) == 2);
    CHECK(exit_code(command(model, {"--prompt", "0", "--new-tokens", "8"})) == 2);
    CHECK(exit_code(command(model, {"--prompt", "8"})) == 2);
    CHECK(exit_code(command(model, {"--prompt", "8", "--new-tokens", "8", "--tp", "0"})) == 2);
    CHECK(exit_code(command(model, {"--prompt", "8", "--new-tokens", "8", "--tp", "3"})) == 2);
    CHECK(exit_code(command(model, {"--prompt", "8", "--new-tokens", "8", "--kv-cache", "lazy"})) == 2);
    CHECK(exit_code(command(model, {"--prompt", "8", "--new-tokens", "8", "--kv-precision", "int3"})) == 2);
    const auto encoder = run_ftax(command("bert", {"--prompt", "8", "--new-tokens", "8"}));
    CHECK(encoder.exit_code == 2);
    CHECK(encoder.errors.find("bert has no KV cache") != std::string::npos);
    const auto without_cache = run_ftax(command("gpt2", {"--prompt", "8", "--new-tokens", "8"}));
    CHECK(without_cache.exit_code == 3);
    CHECK(without_cache.errors.find("it has no KV cache; did you mean gpt2-small?") != std::string::npos);
    const std::string empty = folder.file("empty");
    std::filesystem::create_directory(empty);
    CHECK(exit_code(command(empty, {"--prompt", "8", "--new-tokens", "8"})) == 2);
    const std::string tokenizer = folder.write("tokenizer_config.json", R"({"tokenizer_class":"LlamaTokenizer"})");
    CHECK(exit_code(command(tokenizer, {"--prompt", "8", "--new-tokens", "8"})) == 3);
    const auto uneven = run_ftax(command(model, {"--prompt", "8", "--new-tokens", "8", "--tp", "3"}));
    CHECK(uneven.errors.find("8 heads (num_attention_heads) are not divisible by 3 cards") != std::string::npos);
    const auto by_layers = run_ftax({"generate", model, "--device", "a100-sxm4-40gb", "--framework", "llama.cpp",
                                     "--prompt", "8", "--new-tokens", "8", "--tp", "2"});
    CHECK(by_layers.exit_code == 2);
    CHECK(by_layers.errors.find("not supported for llama.cpp, which assigns whole layers") != std::string::npos);
    const auto racks = run_ftax({"generate", "llama-3-70b", "--device", "h100-sxm5-80gb", "--framework", "vllm",
                                 "--prompt", "8", "--new-tokens", "8", "--tp", "16", "--json", "-"});
    CHECK(racks.exit_code == 0);
    CHECK(racks.output.find("16 cards: 8 share a link (--link-cards), all a network of 50 GB/s a card") !=
          std::string::npos);
    const auto rack = run_ftax({"generate", "llama-3-70b", "--device", "h100-sxm5-80gb", "--framework", "vllm",
                                "--prompt", "8", "--new-tokens", "8", "--tp", "16", "--link-cards", "16"});
    CHECK(rack.exit_code == 0);
    CHECK(rack.errors.find("share a link") == std::string::npos);
    const auto beyond = run_ftax(command(model, {"--prompt", "4096", "--new-tokens", "8"}));
    CHECK(beyond.exit_code == 0);
    CHECK(beyond.errors.find("4096") != std::string::npos);
}

TEST_CASE("ftax inspect lists the dimensions that have no value, with the axes they are of") {
    const auto run = run_ftax({"inspect", "llama-3-8b", "--json", "-"});
    REQUIRE(run.exit_code == 0);
    const auto open = nlohmann::json::parse(run.output)["open"];
    REQUIRE(open.size() == 3);
    CHECK(open[0]["symbol"] == "batch");
    CHECK(open[0]["axes"][0] == "input_ids.0");
    CHECK(open[0]["flag"] == "--batch N");
    CHECK(open[2]["symbol"] == "past");
    CHECK(open[2]["axes"][0] == "past_key_values.0.key.2");
    const auto flops = nlohmann::json::parse(run.output)["work"]["flops"];
    CHECK(flops[0]["powers"] == nlohmann::json{{"batch", 1}, {"seq", 2}});
    CHECK(run_ftax({"inspect", "resnet50"}).output.find("FLOPs  8.22e9·batch\n") != std::string::npos);
    CHECK(run_ftax({"inspect", "llama-3-8b", "--dim", "pest=3"}).exit_code == 2);
}

TEST_CASE("rows of language models are predicted from prompt to last token") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,framework,precision,model,isl,osl,batch,latency_s\n"
                                          "A100,vLLM,fp16,meta-llama/Meta-Llama-3-8B,128,128,1,1.8\n"
                                          "A100,Deepspeed-MII,fp16,meta-llama/Meta-Llama-3-8B,128,128,1,1.8\n");
    const auto run = run_ftax({"validate", rows, "--json", "-"});
    REQUIRE(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.output);
    CHECK(json["overall"]["rows"] == 1);
    CHECK(json["overall"]["mape"].get<double>() < 0.5);
    CHECK(json["skipped"].size() == 1);
}

TEST_CASE("ftax generate takes the precision that the checkpoint's weights have, and their memory") {
    const TemporaryFolder folder;
    const std::string text = config;
    folder.write("config.json", text);
    const auto run = [&](const char* device) {
        const auto outcome = run_ftax({"generate", folder.path.string(), "--device", device, "--framework", "vllm",
                                       "--prompt", "128", "--new-tokens", "8", "--json", "-"});
        REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.errors);
        return nlohmann::json::parse(outcome.output);
    };
    const auto weights = [](const nlohmann::json& report) {
        return report["predictions"][0]["memory"]["weights_bytes"].get<double>();
    };
    const double whole = weights(run("l4"));
    const double embeddings = 2.0 * 1000 * 256;  // the table; the head is as long
    const auto quantized = [&](const char* method) {
        folder.write("config.json", text.substr(0, text.rfind('}')) + ",\"quantization_config\":" + method + "}");
    };
    quantized(R"({"quant_method":"awq","bits":4})");
    const auto awq = run("l4");
    CHECK(awq["precision"] == "w4a16");
    CHECK(weights(awq) == approx(2 * embeddings + (whole - 2 * embeddings) * 4.125 / 16).epsilon(0.01));
    quantized(R"({"quant_method":"fp8"})");
    CHECK(run("l4")["precision"] == "fp8");
    CHECK(run("a100-sxm4-40gb")["precision"] == "w8a16");  // no units for fp8
}

TEST_CASE("rows of language models anchor ftax generate and validate") {
    const TemporaryFolder folder;
    const auto total = [&](const std::string& batch, const std::string& anchor) {
        std::vector<std::string> words{"generate",     "llama-2-7b", "--device",    "a100-sxm4-40gb",
                                       "--framework",  "vllm",       "--precision", "fp16",
                                       "--batch",      batch,        "--prompt",    "256",
                                       "--new-tokens", "64",         "--json",      "-"};
        if (!anchor.empty()) words.insert(words.end(), {"--anchor", anchor});
        const auto run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["predictions"][0]["total_s"].get<double>();
    };
    const double before = total("1", "");
    const auto rows = [&](const std::string& gpu, double factor, const std::string& framework = "vllm") {
        return folder.write("rows.csv", "gpu,framework,precision,model,isl,osl,batch,latency_s\n" + gpu + "," +
                                            framework + ",fp16,llama-2-7b,256,64,1," + std::to_string(factor * before) +
                                            "\n");
    };
    const std::string slower = rows("a100-sxm4-40gb", 1.3);
    CHECK(total("1", slower) > 1.15 * before);
    CHECK(total("1", slower) < 1.35 * before);
    CHECK(total("8", slower) > 1.05 * total("8", ""));
    const std::string versioned = rows("a100-sxm4-40gb", 1.3, "vllm@0.14");
    const auto validated = run_ftax({"validate", versioned, "--anchor", versioned, "--json", "-"});
    REQUIRE_MESSAGE(validated.exit_code == 0, validated.errors);
    // The only row is left out of its own anchors.
    CHECK(nlohmann::json::parse(validated.output)["overall"]["mape"].get<double>() == approx(1 - 1 / 1.3));
    CHECK(total("1", rows("h100-sxm5-80gb", 1.3)) == approx(before));  // rows of another card are ignored
}

TEST_CASE("the link between cards is that of the options, else of the card, which a warning names") {
    const auto run = [](std::vector<std::string> words) {
        words.insert(words.begin(), {"generate", "llama-2-7b", "--device", "a10g", "--framework", "vllm", "--tp", "4",
                                     "--batch", "1", "--prompt", "2000", "--new-tokens", "1", "--json", "-", "-q"});
        return run_ftax(words);
    };
    const auto seconds = [&](const std::vector<std::string>& words) {
        const ProgramRun one = run(words);
        REQUIRE_MESSAGE(one.exit_code == 0, one.errors);
        return nlohmann::json::parse(one.output)["predictions"][0]["total_s"].get<double>();
    };
    CHECK(run({}).errors.find("a10g: cards are assumed to be linked by PCIe, --link host") != std::string::npos);
    CHECK(run({"--link", "peer"}).errors.find("--link") == std::string::npos);
    // Source: vLLM's issue 1805, 459 ms.
    CHECK(seconds({}) == approx(0.459).epsilon(0.15));
    CHECK(seconds({"--link", "peer"}) < 0.6 * seconds({}));
    CHECK(seconds({"--link-bandwidth", "2.5e9"}) > 1.5 * seconds({}));
    CHECK(run({"--link", "wire"}).exit_code == 2);
    CHECK(run({"--link-bandwidth", "0"}).exit_code == 2);
    CHECK(run({"--link-cards", "0"}).exit_code == 2);
    // Two machines of two cards: 8 MB of each all-reduce over networks of 2 GB/s.
    CHECK(seconds({"--link-cards", "2", "--transfer-bandwidth", "1e9"}) > 1.5 * seconds({"--link-cards", "2"}));
    const auto decode = [](const std::vector<std::string>& words) {
        std::vector<std::string> all{
            "generate", "llama-2-7b", "--device", "h100-sxm5-80gb", "--framework", "vllm",   "--tp", "4", "--batch",
            "1",        "--prompt",   "64",       "--new-tokens",   "8",           "--json", "-",    "-q"};
        all.insert(all.end(), words.begin(), words.end());
        return nlohmann::json::parse(run_ftax(all).output)["predictions"][0]["tpot_s"].get<double>();
    };
    CHECK(decode({"--no-custom-all-reduce"}) > 1.02 * decode({}));
    CHECK(decode({"--link-cards", "2"}) > 1.1 * decode({}));
}
