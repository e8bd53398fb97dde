#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/config/read_config.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax::config {
namespace {

std::string text_of(const JsonField& parent, std::string_view field) {
    const auto found = parent.find(field);
    return found ? found->text() : std::string();
}

/// Weights of so many bits as integers, activations as they are.
std::optional<Precision> weights_alone(int bits) {
    if (bits == 4) return Precision::w4a16;
    if (bits == 8) return Precision::w8a16;
    return std::nullopt;
}

/// AWQ writes the number of bits under either name.
std::optional<Precision> packed_integers(const JsonField& quantization) {
    for (const std::string_view name : {"bits", "w_bit"})
        if (const auto bits = quantization.find(name)) return weights_alone(bits->positive_count());
    return std::nullopt;
}

/// Uses the first group of layers for all: checkpoints with several are rare.
std::optional<Precision> compressed_tensors(const JsonField& quantization) {
    const auto groups = quantization.find("config_groups");
    if (!groups || groups->elements().empty()) return std::nullopt;
    const JsonField group = groups->elements().front();
    const auto weights = group.find("weights");
    if (!weights || !weights->find("num_bits")) return std::nullopt;
    const int bits = (*weights)["num_bits"].positive_count();
    const bool activations = group.find("input_activations").has_value();
    const std::string type = text_of(*weights, "type");
    if (type == "int") {
        if (!activations) return weights_alone(bits);
        return bits == 8 ? std::optional(Precision::int8) : std::nullopt;
    }
    if (type != "float" || !activations) return std::nullopt;
    if (bits == 4) return Precision::nvfp4;
    if (bits != 8) return std::nullopt;
    return text_of(*weights, "strategy") == "block" ? Precision::fp8_block : Precision::fp8;
}

/// Whether a module's path holds the parts of a pattern between its asterisks, one after the other.
bool is_named(std::string_view module, std::string_view pattern) {
    for (std::size_t from = 0; !pattern.empty();) {
        const auto [part, rest] = split_at(pattern, '*');
        const std::size_t at = module.find(part, from);
        if (at == std::string_view::npos) return false;
        from = at + part.size();
        pattern = rest;
    }
    return true;
}

/// A pattern without what its file writes around it: `re:`, with `.*` for any text, names around the language model's,
/// and asterisks and dots at the ends.
std::string plain_pattern(std::string text) {
    static const std::regex any_text(R"(\.\*)");
    if (text.starts_with("re:")) text = std::regex_replace(text.substr(3), any_text, "*");
    for (const std::string_view whole : {"model.language_model.", "language_model.model.", "backbone."})
        if (text.starts_with(whole)) text.replace(0, whole.size(), "model.");
    text.erase(0, text.find_first_not_of("*."));
    return text.substr(0, text.find_last_not_of("*.") + 1);
}

/// The modules that stay as they are. A pattern names whole parts of a path, `*` any of them; only patterns with an
/// asterisk inside a part are compared one by one, so that thousands of them and of modules take no time.
class KeptModules {
  public:
    explicit KeptModules(const JsonField& quantization) {
        // As transformers, compressed-tensors and ModelOpt call them.
        for (const std::string_view field : {"modules_to_not_convert", "ignore", "exclude_modules"}) {
            const auto listed = quantization.find(field);
            for (const std::string& text : listed ? listed->texts() : std::vector<std::string>{}) {
                const std::string pattern = plain_pattern(text);
                static const std::regex inside_a_part(R"([^.]\*|\*[^.])");
                if (std::regex_search(pattern, inside_a_part)) {
                    others_.push_back(pattern);
                } else if (!pattern.empty()) {
                    names_.insert(pattern);
                }
            }
        }
    }

    bool contains(const std::string& module) {
        return kept_in(known_, module, [&] { return matches(module); });
    }

  private:
    [[nodiscard]] bool matches(const std::string& module) const {
        static const std::regex number(R"((^|\.)\d+)");
        for (const std::string& path : {module, std::regex_replace(module, number, "$1*")}) {
            for (std::size_t begin = 0; begin < path.size(); begin = path.find('.', begin) + 1) {
                for (std::size_t end = begin; end < path.size();) {
                    end = std::min(path.find('.', end + 1), path.size());
                    if (names_.contains(path.substr(begin, end - begin))) return true;
                }
                if (path.find('.', begin) == std::string::npos) break;
            }
        }
        return std::ranges::any_of(others_, [&](const std::string& pattern) { return is_named(module, pattern); });
    }

    /// Kept besides in checkpoints of DeepSeek-V4. Source: DeepseekV4PreTrainedModel, _keep_in_fp32_modules.
    std::unordered_set<std::string> names_{"compressor", "attn_hc", "ffn_hc", "hc_head"};
    std::vector<std::string> others_;
    std::unordered_map<std::string, bool> known_;
};

}  // namespace

std::optional<Precision> read_quantization(const JsonField& quantization) {
    const std::string method = text_of(quantization, "quant_method");
    if (method == "awq" || method == "gptq") return packed_integers(quantization);
    if (method == "fp8" || method == "fbgemm_fp8")
        return quantization.find("weight_block_size") ? Precision::fp8_block : Precision::fp8;
    if (method == "gguf") return precision_from_name(text_of(quantization, "type"));
    if (method == "compressed-tensors") return compressed_tensors(quantization);
    // Blocks of 32 values with a scale of 8 bits: 4.25 bits a value, where groups of 128 with one of 16 have 4.125.
    if (method == "mxfp4") return Precision::nvfp4;  // a card without units for it runs w4a16
    if (method.starts_with("modelopt") || quantization.find("quant_algo"))
        return precision_from_name(text_of(quantization, "quant_algo"));
    return std::nullopt;
}

void note_quantization(Graph& graph, const JsonField& quantization) {
    const bool narrow_experts = text_of(quantization, "expert_dtype") == "fp4";  // DeepSeek-V4: mxfp4, else ModelOpt's
    const auto rest = read_quantization(quantization);
    const auto precision = narrow_experts ? Precision::nvfp4 : rest;
    if (!precision) {
        const std::string method = text_of(quantization, "quant_method");
        graph.warnings.push_back(
            fmt::format("quantization_config: ftax has no precision for the formats of '{}'; weights count in the "
                        "precision of the run",
                        method.empty() ? "a method without a name" : method));
        return;
    }
    const std::string name(name_of(*precision));
    const bool mxfp4 = text_of(quantization, "quant_method") == "mxfp4" ||
                       (narrow_experts && text_of(quantization, "moe_quant_algo") != "NVFP4");
    KeptModules kept(quantization);
    for (Op& op : graph.ops) {
        if (kept.contains(op.module)) continue;
        const bool layer = (op.kind == OpKind::linear || op.kind == OpKind::matmul) && op.inputs.size() > 1 &&
                           op.inputs[1] != no_tensor && graph.tensors[op.inputs[1]].role == TensorRole::weight;
        if (layer || op.integer(experts_attribute, 0) > 0)
            op.attributes.push_back({std::string(weights_attribute), name});
        if (layer && narrow_experts && rest)
            op.attributes.push_back({std::string(rest_attribute), std::string(name_of(*rest))});
        if (op.integer(experts_attribute, 0) > 0 && mxfp4) op.attributes.push_back({"mxfp4", std::int64_t{1}});
    }
}

}  // namespace ftax::config
