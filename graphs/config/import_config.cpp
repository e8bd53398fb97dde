#include "graphs/config/import_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "graphs/config/networks.hpp"
#include "graphs/config/quantization.hpp"
#include "graphs/config/read_config.hpp"
#include "src/core/excerpt.hpp"
#include "src/core/near_names.hpp"
#include "src/io/json_document.hpp"

namespace ftax {
namespace {

using namespace config;
using nlohmann::json;

constexpr JsonRules json_rules{.malformed = ErrorCode::model};

/// A field that is null says as much as one that is missing.
void erase_nulls(json& value) {
    if (!value.is_object()) return;
    for (auto field = value.begin(); field != value.end();) {
        if (field->is_null()) {
            field = value.erase(field);
        } else {
            erase_nulls(*field);
            ++field;
        }
    }
}

/// Writes down which type the weights have where the file leaves it to others: a language model inside to the whole
/// model, a quantised checkpoint to its tensors, of which those that are not quantised have 16 bits.
void complete_type(json& document) {
    constexpr std::array names{"dtype", "torch_dtype"};
    const auto type_of = [&](const json& config) {
        const auto named = std::find_if(names.begin(), names.end(), [&](const char* n) { return config.contains(n); });
        return named == names.end() ? json() : config[*named];
    };
    if (!document.is_object()) return;
    if (document.contains("quantization_config") && type_of(document).is_null()) document[names[0]] = "bfloat16";
    const auto inner = document.find("text_config");
    if (inner == document.end() || !inner->is_object() || !type_of(*inner).is_null()) return;
    if (json type = type_of(document); !type.is_null()) (*inner)[names[0]] = std::move(type);
}

json parse_document(std::string_view text, const std::string& origin) {
    json document = parse_json(text, origin, json_rules);
    erase_nulls(document);
    complete_type(document);
    return document;
}

/// A type of model whose language model is another family's.
struct Alias {
    std::string_view model_type, family;
    bool is_part = true;  ///< there is more to the model, which is not built
};
/// Source: modeling_*.py of transformers 5.23 (the text models of Qwen-VL have positions of three axes, else Qwen's
/// layers); config.json of moonshotai/Kimi-K2-Instruct (DeepseekV3ForCausalLM).
constexpr Alias aliases[]{
    {"qwen2_vl", "qwen2"},
    {"qwen2_vl_text", "qwen2"},
    {"qwen2_5_vl", "qwen2"},
    {"qwen2_5_vl_text", "qwen2"},
    {"qwen3_vl_text", "qwen3"},
    {"qwen3_vl_moe_text", "qwen3_moe"},
    {"kimi_k2", "deepseek_v3", false},
};

const Alias* find_alias(const std::string& model_type) {
    const auto found = std::find_if(std::begin(aliases), std::end(aliases),
                                    [&](const Alias& alias) { return alias.model_type == model_type; });
    return found == std::end(aliases) ? nullptr : found;
}

/// The family of a type or of what stands for it.
const Family* family_of(const std::string& model_type) {
    const Alias* alias = find_alias(model_type);
    return find_family(alias ? alias->family : std::string_view(model_type));
}

/// Other JSON files that lie beside a config.json.
struct OtherFile {
    std::string_view field, description;
};
constexpr OtherFile other_files[]{
    {"tokenizer_class", "a tokenizer's settings"},    {"added_tokens", "a tokenizer"},
    {"weight_map", "the index of a model's weights"}, {"eos_token_id", "settings for generating text"},
    {"schema_version", "a file of ftax itself"},      {"image_processor_type", "an image processor's settings"},
};

[[noreturn]] void fail_without_type(const JsonField& document) {
    for (const OtherFile& other : other_files) {
        if (document.find(other.field)) {
            document.fail(
                fmt::format("{}, not a model: config.json is the file that has `model_type`", other.description));
        }
    }
    static_cast<void>(document["model_type"]);
    document.fail("model_type is missing");
}

[[noreturn]] void fail_unknown(const JsonField& type) {
    std::vector<std::string> names;
    for (const Family& family : families()) names.emplace_back(family.model_type);
    const std::vector<std::string> near = near_names(type.text(), names);
    type.fail(fmt::format("'{}' is no family that ftax knows{}{}; known are {}", excerpt(type.text()),
                          near.empty() ? "" : "; did you mean ", fmt::join(near, " or "), fmt::join(names, ", ")));
}

/// Leaves one card's part of each layer: its heads, its columns of the MLP, its rows of the vocabulary.
void cut_for_cards(const JsonField& document, const Family& family, TransformerConfig& config, std::int64_t cards) {
    const auto cut = [&](std::int64_t& size, std::string_view field, std::string_view what) {
        if (size % cards != 0) {
            document.find(field).value_or(document).fail(
                fmt::format("{} {} cannot be cut into equal parts for {} cards", size, what, cards));
        }
        size /= cards;
    };
    cut(config.heads, family.names.heads, "heads");
    // Fewer heads of keys than cards: each has a copy of one.
    if (config.key_value_heads < cards && cards % config.key_value_heads == 0) {
        config.key_value_heads = 1;
    } else {
        cut(config.key_value_heads, family.names.key_value_heads, "heads of keys");
    }
    cut(config.mlp_width, family.names.mlp_width, "columns of the MLP");
    cut(config.experts.width, family.experts.width, "columns of an expert");
    cut(config.experts.shared_width, family.experts.shared_width, "columns of the shared expert");
    config.vocabulary = (config.vocabulary + cards - 1) / cards;
    config.cards = cards;
}

Graph build(const JsonField& document, const Family& family, const std::string& name, const ImportOptions& options) {
    if (family.form == Form::text_and_vision) return build_text_and_vision(name, document);
    TransformerConfig transformer = read_transformer(document, family);
    transformer.cache = options.cache;
    if (options.tensor_parallel > 1) cut_for_cards(document, family, transformer, options.tensor_parallel);
    switch (family.form) {
        case Form::encoder:
            return build_encoder(name, transformer);
        case Form::vision:
            return build_vision(name, document, transformer);
        case Form::speech:
            return build_speech(name, document, transformer);
        case Form::decoder:
        case Form::text_and_vision:
            break;
    }
    return build_decoder(name, transformer);
}

}  // namespace

Graph import_config(std::string_view text, const std::string& origin, const std::string& name,
                    const ImportOptions& options) {
    const json parsed = parse_document(text, origin);
    const JsonField document(parsed, origin, ErrorCode::model);
    const auto type = document.find("model_type");
    if (!type) fail_without_type(document);
    const Alias* alias = find_alias(type->text());
    // The language model of a model for text and images has a config of its own inside.
    std::vector<JsonField> configs{document};
    const auto inner = document.find("text_config");
    if (inner && (alias != nullptr || find_family(type->text()) == nullptr)) configs.push_back(*inner);
    const bool inside = configs.size() > 1;
    const auto own_type = configs.back().find("model_type");
    const Family* family = own_type ? family_of(own_type->text()) : nullptr;
    if (family == nullptr || (inside && family->form != Form::decoder)) fail_unknown(*type);
    Graph graph = build(configs.back(), *family, name, options);
    for (const JsonField& config : configs) {
        if (const auto quantization = config.find("quantization_config")) note_quantization(graph, *quantization);
    }
    if (inside || (alias != nullptr && alias->is_part)) {
        graph.warnings.push_back(fmt::format("{}: the graph is that of the language model{} alone", type->text(),
                                             inside ? " in text_config" : ""));
    }
    return graph;
}

std::string hub_name(std::string_view text, const std::string& origin) {
    const json parsed = parse_document(text, origin);
    const auto name = JsonField(parsed, origin, ErrorCode::model).find("_name_or_path");
    return name ? name->text() : std::string();
}

}  // namespace ftax
