#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <type_traits>
#include <variant>

#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/named.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/config/read_config.hpp"

namespace ftax::config {
namespace {

constexpr std::string_view table_path = "graphs/config/families.txt";

[[noreturn]] void fail(std::string_view row, std::string_view what) {
    throw_error(ErrorCode::profile, "{}: {}: {}", table_path, row, what);
}

/// Reads a feature's value into the family.
struct Value {
    std::string_view row, text;

    void into(std::string_view& field) const { field = text; }
    void into(bool& flag) const { flag = text == "true"; }
    void into(std::int64_t& number) const { std::from_chars(text.data(), text.data() + text.size(), number); }
    /// One of the names of an enumeration, in its order.
    template <class Enum>
    void into(Enum& choice, std::initializer_list<std::string_view> names) const {
        const auto found = std::ranges::find(names, text);
        if (found == names.end()) fail(row, text);
        choice = static_cast<Enum>(found - names.begin());
    }
};

void set_feature(Family& f, std::string_view name, const Value& value) {
    Structure& s = f.structure;
    const auto is = [&](std::string_view feature) { return name == feature; };
    if (is("form")) return value.into(f.form, {"decoder", "encoder", "vision", "text_and_vision", "speech"});
    if (is("norm"))
        return value.into(s.norm, {"layer", "layer_weight", "layer_plain", "rms", "rms_offset", "rms_plain"});
    if (is("place")) return value.into(s.place, {"before", "after", "around", "outputs", "shared", "apart"});
    if (is("projection")) return value.into(s.projection, {"apart", "packed", "latent"});
    if (is("positions"))
        return value.into(s.positions,
                          {"none", "rotary", "rotary_halves", "learned", "learned_from_mask", "linear_bias"});
    if (is("query_norm")) return value.into(s.query_norm, {"none", "head", "each_head", "all_heads"});
    if (is("output_gate")) return value.into(s.output_gate, {"none", "apart", "packed", "per_head"});
    if (is("scoring")) return value.into(s.scoring, {"fused", "written_out"});
    if (is("routing")) return value.into(s.routing, {"softmax_first", "best_first", "sigmoid", "grouped"});
    if (is("state_mixer"))
        return value.into(f.state_mixer,
                          {"none", "attention", "mamba", "mamba2", "delta", "conv", "lightning", "both"});
    if (is("biases")) {
        f.query_bias = f.output_bias = f.mlp_bias = value.text;
        return;
    }
    using Member = std::variant<bool Family::*, std::string_view Family::*, std::int64_t Family::*, bool Structure::*>;
    static const auto members = by_name<Member>(FTAX_NAMED(
        &Family::is_part, &Family::wide_mlp, &Structure::gated, &Structure::packed_gate, &Structure::inner_norms,
        &Structure::scaled_residual, &Structure::scaled_logits, &Structure::embedding_norm, &Structure::attention_sinks,
        &Structure::expert_bias, &Structure::clamped_experts, &Structure::samples_all, &Structure::addmm_layers,
        &Structure::first_norm, &Structure::causal, &Family::shared_gate, &Family::state_norm, &Family::lone_sublayers,
        &Family::layers, &Family::heads, &Family::mlp_width, &Family::one_key_head, &Family::query_norm_switch,
        &Family::query_bias, &Family::output_bias, &Family::mlp_bias, &Family::head_bias, &Family::scaled_embedding,
        &Family::rotary_share, &Family::window, &Family::window_switch, &Family::window_first, &Family::full_every,
        &Family::full_at, &Family::expert_at, &Family::expert_width, &Family::shared_width, &Family::shared_count,
        &Family::expert_step, &Family::first_dense, &Family::dense_width, &Family::normalized,
        &Family::position_offset));
    const auto found = members.find(name);
    if (found == members.end()) fail(f.model_type, name);
    const auto set = [&](auto member) {
        if constexpr (std::is_invocable_v<decltype(member), Structure&>) {
            value.into(s.*member);
        } else {
            value.into(f.*member);
        }
    };
    std::visit(set, found->second);
}

/// "qwen2_moe" as transformers call its classes: "Qwen2Moe".
std::string title_of(std::string_view model_type) {
    std::string title;
    bool upper = true;
    for (const char c : model_type) {
        const bool separates = c == '_' || c == '-';
        if (!separates) title += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        upper = separates;
    }
    return title;
}

std::vector<Family> read_table() {
    std::vector<Family> table;
    for (const std::string_view row : words_of(embedded_text(table_path), '\n')) {
        if (row.empty() || row.front() == '#') continue;
        std::vector<std::string_view> words = words_of(row);
        std::erase(words, std::string_view{});
        const std::string_view model_type = words.at(0), base = words.at(1);
        Family family;
        if (base != "-") {
            const auto found = std::ranges::find(table, base, &Family::model_type);
            if (found == table.end()) fail(model_type, base);
            family = *found;
            family.is_part = false;
        }
        family.model_type = model_type;
        family.base = base;
        family.title = title_of(model_type);
        for (const std::string_view word : std::span(words).subspan(2)) {
            const std::size_t equals = word.find('=');
            const std::string_view value = word.substr(equals + 1);
            if (word[equals - 1] != ':') {
                set_feature(family, word.substr(0, equals), {model_type, value});
                continue;
            }
            const std::string_view field = word.substr(0, equals - 1);
            std::erase_if(family.defaults, [&](const auto& entry) { return entry.first == field; });
            family.defaults.emplace_back(field, value);
        }
        table.push_back(std::move(family));
    }
    return table;
}

}  // namespace

std::span<const Family> families() {
    static const std::vector<Family> table = read_table();
    return table;
}

}  // namespace ftax::config
