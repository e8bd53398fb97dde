#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/config/read_config.hpp"
#include "graphs/config/transformer.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"

namespace ftax {
namespace {

using namespace config;
using nlohmann::json;

/// A field that is null or "auto" says as much as one that is missing.
void erase_nulls(json& value) {
    const auto is_empty = [](const auto& field) { return field.second.is_null() || field.second == "auto"; };
    if (value.is_object()) std::erase_if(value.get_ref<json::object_t&>(), is_empty);
    if (value.is_structured())
        for (json& inner : value) erase_nulls(inner);
}

/// Fills in a missing weight type: an inner language model takes that of the whole model, a quantised checkpoint has 16
/// bits for tensors that are not quantised.
void complete_type(json& document) {
    const auto type_of = [](const json& config) {
        return config.contains("dtype") ? config["dtype"] : config.value("torch_dtype", json());
    };
    if (!document.is_object()) return;
    for (const char* name :
         {"llm_config", "language_config"})  // InternVL; DeepSeek-VL2 and OCR, without latent vectors
        if (const auto found = document.find(name); found != document.end() && found->is_object()) {
            if (found->contains("use_mla") && (*found)["use_mla"] == false) (*found)["model_type"] = "deepseek";
            document.emplace("text_config", *found);
        }
    if (document.contains("quantization_config") && type_of(document).is_null()) document["dtype"] = "bfloat16";
    if (document.contains("expert_dtype") && document.value("quantization_config", json()).is_object())
        document["quantization_config"].emplace("expert_dtype", document["expert_dtype"]);
    const auto inner = document.find("text_config");
    if (inner == document.end() || !inner->is_object() || !type_of(*inner).is_null()) return;
    if (json type = type_of(document); !type.is_null()) (*inner)["dtype"] = std::move(type);
}

json parse_document(std::string_view text, const std::string& origin) {
    json document = parse_json(quote_non_finite(std::string(text)), origin, ErrorCode::model);
    erase_nulls(document);
    complete_type(document);
    return document;
}

/// Writes down what the file's family means where a field is missing.
void complete_fields(json& config, const Family& family) {
    for_each_data_row(embedded_text("graphs/config/grouped_fields.txt"), [&](DataRow row) {
        const std::string group(row.text()), field(row.text()), name(row.text());
        if (config.contains(group) && config[group].is_object() && config[group].contains(field))
            config.emplace(name, config[group][field]);
    });
    // Lists of numbers, which transformers turns into names.
    constexpr std::array<std::array<const char*, 4>, 2> lists{
        {{"moe_layer_freq", "mlp_layer_types", "dense", "sparse"},
         {"hybrid_layer_pattern", "layer_types", "full_attention", "sliding_attention"}}};
    for (const auto& [numbers, names, zero, one] : lists)
        if (config.contains(numbers) && config[numbers].is_array() && !config.contains(names))
            for (const json& number : config[numbers]) config[names].push_back(number == 0 ? zero : one);
    for (const auto& [field, value] : family.defaults)
        if (!config.contains(field)) config[field] = json::parse(value);
}

/// What CLIP consists of, and the type of a part that does not state one.
constexpr std::pair<const char*, const char*> clip_parts[]{{"text_config", "clip_text_model"},
                                                           {"vision_config", "clip_vision_model"}};

/// Throws Error{model} where the file is another one of a model's folder, without `model_type`.
void fail_on_other_file(const JsonField& document) {
    for_each_data_row(embedded_text("graphs/config/other_files.txt"), [&](DataRow row) {
        if (document.find(row.text()))
            document.fail(fmt::format("{}, not a model: config.json is the file that has `model_type`", row.text()));
    });
}

/// `known`: the row of a family with parts that ftax does not build; nullptr: there is none.
[[noreturn]] void fail_unknown(const JsonField& document, const JsonField& type, const Family* known) {
    std::vector<std::string> names;
    for (const Family& family : families())
        if (family.missing.empty()) names.emplace_back(family.model_type);
    std::vector<std::string> near =
        known != nullptr ? std::vector{std::string(known->base)} : near_names(type.text(), names);
    if (near.empty())
        near = {document.find("kv_lora_rank")          ? "deepseek_v3"
                : document.find("num_experts_per_tok") ? "mixtral"
                                                       : "llama"};
    const std::string why = known != nullptr ? fmt::format(" ({})", known->missing) : "";
    type.fail(fmt::format("unsupported type '{}'{}; nearest supported {}: {}", excerpt(type.text()), why,
                          near.size() == 1 ? "type" : "types", fmt::join(near, ", ")));
}

/// Leaves one card's part of each layer: its heads, its columns of the MLP, its rows of the vocabulary, its experts.
void cut_for_cards(TransformerConfig& config, const ImportOptions& options) {
    const std::int64_t cards = options.tensor_parallel, all = cards * options.data_parallel;
    const auto cut_into = [&](std::int64_t parts, std::int64_t& size, std::string_view field, std::string_view what) {
        if (size % parts != 0)
            throw_error(ErrorCode::usage, "{} {} ({}) are not divisible by {} cards", size, what, field, parts);
        size /= parts;
    };
    const auto cut = [&](std::int64_t& size, std::string_view field, std::string_view what) {
        cut_into(cards, size, field, what);
    };
    const auto cut_heads = [&](HeadSizes& sizes) {
        cut(sizes.heads, "num_attention_heads", "heads");
        // Fewer heads of keys than cards: each has a copy of one.
        if (sizes.key_value_heads < cards && cards % sizes.key_value_heads == 0) {
            sizes.key_value_heads = 1;
        } else {
            cut(sizes.key_value_heads, "num_key_value_heads", "heads of keys");
        }
    };
    cut_heads(config);
    for (Layer& layer : config.layers) {
        cut_heads(layer.sizes);
        cut(layer.mlp_width, "intermediate_size", "columns of the MLP");
    }
    if (all % options.expert_parallel != 0)
        throw_error(ErrorCode::usage, "--ep {} does not divide {} cards (--tp times --dp)", options.expert_parallel,
                    all);
    if (options.expert_parallel > 1 && config.experts.count == 0)
        throw_error(ErrorCode::usage, "--ep {}: the model has no experts", options.expert_parallel);
    if (config.experts.count > 0) {
        cut_into(all / options.expert_parallel, config.experts.width, "moe_intermediate_size", "columns of an expert");
        std::int64_t own = config.experts.count;
        cut_into(options.expert_parallel, own, "num_experts", "experts");
        config.experts.cards = options.expert_parallel;
        config.experts.token_groups = options.data_parallel;
    }
    if (config.latent.output_groups > 0) cut(config.latent.output_groups, "o_groups", "groups of heads");
    cut(config.experts.shared_width, "shared_expert_intermediate_size", "columns of the shared expert");
    cut(config.space.inner, "intermediate_size", "channels of the layers that keep a state");
    cut(config.space.heads, "num_attention_heads", "heads of the layers that keep a state");
    if (config.space.key_heads % cards == 0) config.space.key_heads /= cards;
    config.vocabulary = (config.vocabulary + cards - 1) / cards;
    config.cards = cards;
}

Graph build(const JsonField& document, const Family& family, const std::string& name, const ImportOptions& options) {
    if (family.form == Form::text_and_vision) return build_text_and_vision(name, document);
    TransformerConfig transformer = read_transformer(document, family);
    transformer.cache = options.cache;
    if (options.tensor_parallel * options.data_parallel * options.expert_parallel > 1)
        cut_for_cards(transformer, options);
    if (options.last_layers > 0 && static_cast<std::size_t>(options.last_layers) < transformer.layers.size())
        transformer.layers.erase(transformer.layers.begin(), transformer.layers.end() - options.last_layers);
    if (family.form == Form::encoder) return build_encoder(name, transformer);
    if (family.form == Form::vision) return build_vision(name, document, transformer);
    if (family.form == Form::speech) return build_speech(name, document, transformer);
    return build_decoder(name, transformer);
}

}  // namespace

Graph import_config(std::string_view text, const std::string& origin, const std::string& name,
                    const ImportOptions& options) {
    json parsed = parse_document(text, origin);
    if (parsed.is_object() && parsed.contains("thinker_config")) parsed = json(parsed["thinker_config"]);  // Qwen-Omni
    const JsonField document(parsed, origin, ErrorCode::model);
    if (!document.find("model_type")) fail_on_other_file(document);
    const JsonField type = document["model_type"];
    const Family* family = find_family(type.text());
    const auto inner = document.find("text_config");
    // The language model of a model for text and images has a config of its own inside.
    const bool inside = inner && (family == nullptr || family->is_part);
    if (inside) {
        const auto own_type = inner->find("model_type");
        family = own_type ? find_family(own_type->text()) : family;
        if (family != nullptr && family->form != Form::decoder) family = nullptr;
    }
    if (family == nullptr || !family->missing.empty()) fail_unknown(inside ? *inner : document, type, family);
    complete_fields(inside ? parsed["text_config"] : parsed, *family);
    if (family->form == Form::text_and_vision) {
        for (const auto& [part, standard] : clip_parts) {
            const auto config = document.find(part);
            if (!config) continue;
            const auto own_type = config->find("model_type");
            const Family* own = find_family(own_type ? own_type->text() : standard);
            if (own == nullptr) own_type->fail(fmt::format("'{}' is not a part of CLIP", excerpt(own_type->text())));
            parsed[part]["model_type"] = own->model_type;
            complete_fields(parsed[part], *own);
        }
    }
    Graph graph = build(inside ? document["text_config"] : document, *family, name, options);
    auto quantization = document.find("quantization_config");
    if (!quantization && inside) quantization = inner->find("quantization_config");
    const std::filesystem::path file(origin), formats = file.parent_path() / "hf_quant_config.json";  // ModelOpt's
    if (quantization) {
        note_quantization(graph, *quantization);
    } else if (file.filename() == "config.json" && std::filesystem::exists(formats)) {
        const json beside = parse_json(read_file(formats.string()), formats.string(), ErrorCode::model);
        note_quantization(graph, JsonField(beside, formats.string(), ErrorCode::model)["quantization"]);
    }
    if (document.find("sparse_attention_config") || (inside && inner->find("sparse_attention_config")))
        graph.warnings.push_back("sparse_attention_config: every layer is predicted to attend to all tokens");
    if (parsed.contains("vision_config") && family->form == Form::decoder && options.last_layers == 0) try {
            graph.image_encoder = image_encoder(parsed, read_dtype(inside ? *inner : document), options);
        } catch (const std::exception& error) {
            graph.no_images = fmt::format("{}: vision_config: {}", origin, error.what());
        }
    if (inside || family->is_part)
        graph.warnings.push_back(type.text() + ": the graph is the language model alone; " +
                                 (graph.image_encoder ? "" : "image, ") + "audio and video encoders are not included");
    return graph;
}

std::string hub_name(std::string_view text, const std::string& origin) {
    const json parsed = parse_document(text, origin);
    const auto name = JsonField(parsed, origin, ErrorCode::model).find("_name_or_path");
    return name ? name->text() : std::string();
}

}  // namespace ftax
