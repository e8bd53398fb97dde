#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ftax/import.hpp"
#include "graphs/loading.hpp"
#include "tests/failure.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

/// Types of values in a GGUF file.
constexpr std::uint32_t u32 = 4, f32 = 6, text = 8, list = 9;

template <class T>
std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

std::string raw_text(const std::string& value) {
    return raw<std::uint64_t>(value.size()) + value;
}

/// Writes a header: the keys of llama.cpp's converter and one tensor.
struct GgufFile {
    std::string keys{};
    std::uint64_t count = 0;
    std::uint32_t version = 3;
    std::string tensor = "output.weight";

    GgufFile& add(const std::string& key, std::uint32_t type, const std::string& value) {
        keys += raw_text(key) + raw(type) + value;
        ++count;
        return *this;
    }
    GgufFile& size(const std::string& key, std::uint32_t value) { return add(key, u32, raw(value)); }
    [[nodiscard]] std::string bytes() const {
        return "GGUF" + raw(version) + raw<std::uint64_t>(1) + raw(count) + keys + raw_text(tensor) +
               raw<std::uint32_t>(2) + raw<std::uint64_t>(64) + raw<std::uint64_t>(100) + raw<std::uint32_t>(0) +
               raw<std::uint64_t>(0);
    }
};

GgufFile gguf_llama(std::uint32_t file_type = 15, const std::string& architecture = "llama") {
    GgufFile header;
    header.add("general.architecture", text, raw_text(architecture));
    header.size("general.file_type", file_type)
        .size(architecture + ".block_count", 2)
        .size(architecture + ".embedding_length", 64)
        .size(architecture + ".feed_forward_length", 96)
        .size(architecture + ".attention.head_count", 4)
        .size(architecture + ".context_length", 128)
        .add(architecture + ".attention.layer_norm_rms_epsilon", f32, raw(1e-5f))
        .add(architecture + ".attention.head_count_kv", list,
             raw(u32) + raw<std::uint64_t>(2) + raw<std::uint32_t>(2) + raw<std::uint32_t>(2))
        .add("tokenizer.ggml.tokens", list,
             raw(text) + raw<std::uint64_t>(3) + raw_text("a") + raw_text("b") + raw_text(""))
        .add("tokenizer.ggml.scores", list, raw(f32) + raw<std::uint64_t>(2000) + std::string(8000, '\0'));
    return header;
}

nlohmann::json gguf_config(const GgufFile& header) {
    return nlohmann::json::parse(config_of_gguf(header.bytes(), "model.gguf"));
}

Failure gguf_failure(const std::string& bytes) {
    return failure_of([&] { return config_of_gguf(bytes, "model.gguf"); });
}

}  // namespace

TEST_CASE("the header of a GGUF file says what its config.json does") {
    const nlohmann::json expected{{"model_type", "llama"},
                                  {"num_hidden_layers", 2},
                                  {"hidden_size", 64},
                                  {"intermediate_size", 96},
                                  {"num_attention_heads", 4},
                                  {"num_key_value_heads", 2},
                                  {"max_position_embeddings", 128},
                                  {"vocab_size", 3},
                                  {"torch_dtype", "float16"},
                                  {"tie_word_embeddings", false},
                                  {"quantization_config", {{"quant_method", "gguf"}, {"type", "q4_k_m"}}}};
    CHECK(gguf_config(gguf_llama()) == expected);
    GgufFile tied = gguf_llama();
    tied.tensor = "token_embd.weight";
    CHECK(gguf_config(tied)["tie_word_embeddings"] == true);
}

TEST_CASE("a GGUF file of whole numbers is not quantised, one of experts is a mixture") {
    CHECK(gguf_config(gguf_llama(32))["torch_dtype"] == "bfloat16");
    CHECK_FALSE(gguf_config(gguf_llama(32)).contains("quantization_config"));
    CHECK(gguf_config(gguf_llama().size("llama.expert_count", 8))["model_type"] == "mixtral");
}

TEST_CASE("a GGUF file is predicted in the format of its weights, beside one of an unknown format") {
    const TemporaryFolder folder;
    const auto graph = [&](std::uint32_t file_type) {
        return load_graph(folder.write("tiny.gguf", gguf_llama(file_type).bytes()));
    };
    const Graph known = graph(15), unknown = graph(23);
    CHECK(known.name == "tiny");
    CHECK(known.warnings.empty());
    CHECK(std::ranges::count_if(known.ops, [](const Op& op) { return op.text("weights") == "q4_k_m"; }) > 10);
    REQUIRE(unknown.warnings.size() == 1);
    CHECK(unknown.warnings[0].find("'gguf'") != std::string::npos);
}

TEST_CASE("a GGUF file that is none, or of no known model, is refused with its byte or key") {
    GgufFile old = gguf_llama(), differing = gguf_llama(), lists = gguf_llama();
    old.version = 1;
    CHECK(gguf_failure(old.bytes()).message == "model.gguf: byte 8: the file has GGUF version 1; ftax reads 2 and 3");
    CHECK(gguf_failure(gguf_llama(15, "whisper").bytes())
              .message.starts_with("model.gguf: general.architecture: 'whisper' is not"));
    CHECK(gguf_failure(GgufFile{}.bytes()).message ==
          "model.gguf: general.architecture is missing: give the first part of the model");
    differing.add("llama.feed_forward_length", list,
                  raw(u32) + raw<std::uint64_t>(2) + raw<std::uint32_t>(96) + raw<std::uint32_t>(64));
    CHECK(gguf_failure(differing.bytes()).message ==
          "model.gguf: llama.feed_forward_length: layers of several sizes; give the model's config.json");
    lists.add("nested", list, raw(list) + raw<std::uint64_t>(1));
    CHECK(gguf_failure(lists.bytes()).message.find("has a list of lists") != std::string::npos);
    const std::string whole = gguf_llama().bytes();
    for (std::size_t length = 4; length < whole.size(); length += 1 + length / 100)
        CHECK(gguf_failure(whole.substr(0, length)).message.find("ends inside its header") != std::string::npos);
}

TEST_CASE("a safetensors file takes the config.json beside it, which is no safetensors file itself") {
    const TemporaryFolder folder;
    const std::string weights = raw<std::uint64_t>(16) + R"({"a":{"b":"F32"}})";
    const std::string file = folder.write("model.safetensors", weights);
    folder.write("config.json", gguf_config(gguf_llama()).dump());
    CHECK(load_graph(file).format == "config");
    const std::string config = folder.write("config.json", weights);
    for (const std::string& model : {file, config, folder.path.string()}) {
        CAPTURE(model);
        CHECK(failure_of([&] { return load_graph(model); }).says("config.json"));
    }
}
