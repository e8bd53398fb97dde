#include "graphs/ir/symbol_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ftax {
namespace {

bool is_symbol_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

bool is_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The symbol when the expression is nothing else: "s77" or "Symbol('s77', …)"; empty otherwise.
std::string bare_symbol(std::string_view text) {
    constexpr std::string_view wrapper = "Symbol('";
    if (text.starts_with(wrapper)) {
        text.remove_prefix(wrapper.size());
        return std::string(text.substr(0, text.find('\'')));
    }
    const bool plain = !text.empty() && !is_number(text) && std::ranges::all_of(text, is_symbol_character);
    return std::string(plain ? text : std::string_view{});
}

}  // namespace

std::string bare_symbol(const ExpressionPool& pool, Expression e) {
    const auto symbols = pool.symbols_of(e);
    return symbols.size() == 1 && pool.to_string(e) == symbols[0] ? symbols[0] : std::string{};
}

void SymbolNames::name(const std::string& symbol, const std::string& replacement) {
    if (taken_.contains(replacement) || !names_.try_emplace(symbol, replacement).second) return;
    taken_.insert(replacement);
    called_ += (called_.empty() ? "" : ", ") + replacement;
}

void SymbolNames::add_input(const std::string& input, const std::vector<std::string>& dims, bool integers) {
    // Of several rows of integers, node numbers for each edge say, a file may fix their number; of texts one.
    const auto is_called = [&](std::string_view part) { return input.find(part) != std::string::npos; };
    const bool is_of_tokens =
        integers && dims.size() == 2 && !is_called("mask") && (!is_number(dims[0]) || dims[0] == "1");
    // Keys or values of earlier tokens, [batch, heads, tokens, width], as transformers and its users call them.
    const bool is_cache = dims.size() == 4 && (is_called("past") || is_called("cache"));
    for (std::size_t i = 0; i < dims.size(); ++i) {
        const std::string symbol = bare_symbol(dims[i]);
        if (!symbol.starts_with('s') || !is_number(symbol.substr(1))) continue;  // torch's own are s0, s77
        if (i == 0) {
            name(symbol, "batch");
        } else if (is_of_tokens && i == 1) {
            name(symbol, "seq");
        } else if (i == 2 && is_cache) {
            name(symbol, "past");
        }
        name(symbol, fmt::format("{}.{}", input, i));
    }
}

std::vector<std::string> SymbolNames::warnings() const {
    if (called_.empty()) return {};
    return {fmt::format("dimensions that the exporter numbered are called {}", called_)};
}

std::string SymbolNames::rename(std::string_view expression) const {
    std::string result;
    for (std::size_t i = 0; i < expression.size();) {
        std::size_t end = i;
        while (end < expression.size() && is_symbol_character(expression[end])) ++end;
        if (end == i) {
            result += expression[i++];
            continue;
        }
        const std::string_view word = expression.substr(i, end - i);
        const auto found = names_.find(word);
        result += found == names_.end() ? word : std::string_view(found->second);
        i = end;
    }
    return result;
}

}  // namespace ftax
