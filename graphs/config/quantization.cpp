#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graphs/base/excerpt.hpp"
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

std::optional<Precision> model_optimizer(const JsonField& quantization) {
    const std::string algorithm = text_of(quantization, "quant_algo");
    if (algorithm == "FP8") return Precision::fp8;
    if (algorithm == "NVFP4") return Precision::nvfp4;
    if (algorithm == "W4A16_AWQ" || algorithm == "W4A16") return Precision::w4a16;
    if (algorithm == "W8A16") return Precision::w8a16;
    return std::nullopt;
}

/// Whether a module's path holds the parts of a pattern between its asterisks, one after the other.
bool is_named(std::string_view module, std::string_view pattern) {
    std::size_t from = 0;
    for (const std::string_view part : words_of(pattern, '*')) {
        const std::size_t at = module.find(part, from);
        if (at == std::string_view::npos) return false;
        from = at + part.size();
    }
    return true;
}

/// The path with an asterisk for each number between its dots.
std::string without_numbers(std::string_view path) {
    std::string result;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const bool digit = path[i] >= '0' && path[i] <= '9';
        if (!digit || (i > 0 && path[i - 1] != '.' && result.back() != '*')) {
            result += path[i];
        } else if (result.empty() || result.back() != '*') {
            result += '*';
        }
    }
    return result;
}

/// The modules of `modules_to_not_convert`. A pattern names whole parts of a path, `*` any of them; only patterns with
/// an asterisk inside a part are compared one by one, so that thousands of them and of modules take no time.
class KeptModules {
  public:
    explicit KeptModules(const std::vector<std::string>& patterns) {
        for (std::string_view pattern : patterns) {
            while (pattern.starts_with('*') || pattern.starts_with('.')) pattern.remove_prefix(1);
            while (pattern.ends_with('*') || pattern.ends_with('.')) pattern.remove_suffix(1);
            if (pattern.empty()) continue;
            const auto is_dot = [&](std::size_t at) { return at >= pattern.size() || pattern[at] == '.'; };
            bool inside = false;
            for (std::size_t at = pattern.find('*'); at < pattern.size(); at = pattern.find('*', at + 1))
                inside = inside || !is_dot(at - 1) || !is_dot(at + 1);
            if (inside) {
                others_.emplace_back(pattern);
            } else {
                names_.emplace(pattern);
            }
        }
    }

    bool contains(const std::string& module) {
        const auto [entry, is_new] = known_.try_emplace(module, false);
        if (is_new) entry->second = matches(module);
        return entry->second;
    }

  private:
    [[nodiscard]] bool matches(const std::string& module) const {
        for (const std::string& path : {module, without_numbers(module)}) {
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

    std::unordered_set<std::string> names_;
    std::vector<std::string> others_;
    std::unordered_map<std::string, bool> known_;
};

}  // namespace

std::optional<Precision> read_quantization(const JsonField& quantization) {
    const std::string method = text_of(quantization, "quant_method");
    if (method == "awq" || method == "gptq") return packed_integers(quantization);
    if (method == "fp8") return quantization.find("weight_block_size") ? Precision::fp8_block : Precision::fp8;
    if (method == "fbgemm_fp8") return Precision::fp8;
    if (method == "gguf") return precision_from_name(text_of(quantization, "type"));
    if (method == "compressed-tensors") return compressed_tensors(quantization);
    // Blocks of 32 values with a scale of 8 bits: 4.25 bits a value, where groups of 128 with one of 16 have 4.125.
    if (method == "mxfp4") return Precision::nvfp4;  // a card without units for it runs w4a16
    if (method.starts_with("modelopt") || quantization.find("quant_algo")) return model_optimizer(quantization);
    return std::nullopt;
}

void note_quantization(Graph& graph, const JsonField& quantization) {
    const auto precision = read_quantization(quantization);
    if (!precision) {
        const std::string method = text_of(quantization, "quant_method");
        graph.warnings.push_back(
            fmt::format("quantization_config: ftax has no precision for the formats of '{}'; weights count in the "
                        "precision of the run",
                        method.empty() ? "a method without a name" : method));
        return;
    }
    const std::string name(name_of(*precision));
    const auto listed = quantization.find("modules_to_not_convert");
    KeptModules kept(listed ? listed->texts() : std::vector<std::string>{});
    for (Op& op : graph.ops) {
        if (kept.contains(op.module)) continue;
        const bool layer = (op.kind == OpKind::linear || op.kind == OpKind::matmul) && op.inputs.size() > 1 &&
                           op.inputs[1] != no_tensor && graph.tensors[op.inputs[1]].role == TensorRole::weight;
        if (layer || op.integer(experts_attribute, 0) > 0)
            op.attributes.push_back({std::string(weights_attribute), name});
    }
}

}  // namespace ftax::config
