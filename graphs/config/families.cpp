#include <algorithm>
#include <charconv>
#include <type_traits>
#include <variant>

#include "graphs/base/data_rows.hpp"
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
    template <class Enum>
    void into(Enum& choice) const {
        const auto found = enumerator_named<Enum>(names_in(text_of(choice)), text);
        if (!found) fail(row, text);
        choice = *found;
    }
};

void set_feature(Family& f, std::string_view name, const Value& value) {
    Structure& s = f.structure;
    using Member = std::variant<bool Family::*, std::string_view Family::*, std::int64_t Family::*, Form Family::*,
                                Mixer Family::*, bool Structure::*, NormKind Structure::*, NormPlace Structure::*,
                                Projection Structure::*, Positions Structure::*, QueryNorm Structure::*,
                                OutputGate Structure::*, Scoring Structure::*, Routing Structure::*>;
    static const auto members = by_name<Member>(FTAX_NAMED(
        &Family::form, &Family::state_mixer, &Structure::norm, &Structure::place, &Structure::projection,
        &Structure::positions, &Structure::query_norm, &Structure::output_gate, &Structure::scoring,
        &Structure::routing, &Family::is_part, &Family::wide_mlp, &Structure::gated, &Structure::packed_gate,
        &Structure::inner_norms, &Structure::scaled_residual, &Structure::scaled_logits, &Structure::embedding_norm,
        &Structure::attention_sinks, &Structure::window_sinks, &Structure::gemma4, &Structure::expert_bias,
        &Structure::clamped_experts, &Structure::clamped, &Structure::samples_all, &Structure::addmm_layers,
        &Structure::first_norm, &Structure::causal, &Family::shared_gate, &Family::state_norm, &Family::lone_sublayers,
        &Family::layers, &Family::heads, &Family::mlp_width, &Family::one_key_head, &Family::query_norm_switch,
        &Family::query_bias, &Family::output_bias, &Family::mlp_bias, &Family::head_bias, &Family::scaled_embedding,
        &Family::rotary_share, &Family::window, &Family::window_switch, &Family::window_first, &Family::full_every,
        &Family::full_at, &Family::expert_at, &Family::expert_width, &Family::shared_width, &Family::shared_count,
        &Family::expert_step, &Family::first_dense, &Family::dense_width, &Family::normalized, &Family::position_offset,
        &Family::missing));
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

std::span<const Activation> activations() {
    static const std::vector<Activation> table = [] {
        std::vector<Activation> rows;
        for_each_data_row(embedded_text("graphs/config/activations.txt"), [&](DataRow row) {
            const std::string_view name = row.text(), spelling = row.text();
            rows.push_back({name, *enumerator_named<Spelling>(names_in(text_of(Spelling{})), spelling), row.text()});
        });
        return rows;
    }();
    return table;
}

std::span<const Family> families() {
    static const std::vector<Family> table = read_table();
    return table;
}

}  // namespace ftax::config
