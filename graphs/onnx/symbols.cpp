#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/symbol_names.hpp"
#include "graphs/onnx/importer.hpp"

namespace ftax::onnx_import {
namespace {

constexpr std::string_view batch_names = "batch batch_size batchsize n b bs batch_axis num_batch batch_dim";
constexpr std::string_view sequence_names =
    "seq sequence sequence_length seq_len seq_length seqlen sequence_len max_seq_len text_length num_tokens";
constexpr std::string_view past_names = "past_sequence_length past_seq_length past_seq_len past_length";

/// Exporters' placeholders for unnamed dimensions: '?', '-1', 'None'. Each denotes a size of its own.
bool is_open(std::string_view text) {
    if (text.starts_with('-') || has_word("none null nan unknown any", lower_case(text))) return true;
    return text.size() <= 3 && std::ranges::none_of(text, [](unsigned char c) { return std::isalnum(c); });
}

/// An identifier that keeps the dots, which names in shape expressions may have.
std::string dotted_identifier(std::string_view text) {
    std::string name = identifier(text);
    const std::size_t shift = name.size() - std::min(text.size(), std::size_t{100});
    for (std::size_t i = 0; i + shift < name.size(); ++i)
        if (text[i] == '.') name[i + shift] = '.';
    return name;
}

bool is_integral(const TypeRecord& type) {
    return !is_float(dtype_from_onnx(type.element_type));
}

}  // namespace

std::string identifier(std::string_view text) {
    std::string name(text.substr(0, 100));
    const auto is_other = [](unsigned char c) { return !std::isalnum(c); };
    std::ranges::replace_if(name, is_other, '_');
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front()))) name.insert(name.begin(), '_');
    return name;
}

DimensionNames::DimensionNames(const Inputs& inputs, const std::vector<InputShape>& given, bool keep_batch,
                               std::vector<std::string>& warnings)
    : warnings_(warnings) {
    read_shapes(inputs);
    name_common(inputs);
    name_numbered(inputs);
    input_symbols_ = file_.symbols().size();
    // User-provided shapes replace the file's; values that they imply for a symbol apply everywhere.
    for (const InputShape& shape : given) apply(shape, inputs, keep_batch);
}

Expression DimensionNames::open_dim(std::string_view input, std::size_t axis) {
    const std::string name = fmt::format("{}_{}", identifier(input), axis);
    unnamed_.insert(name);
    return file_.symbol(name);
}

Expression DimensionNames::named_dim(std::string_view text, std::string_view input, std::size_t axis) {
    try {
        const Expression e = file_.parse(text);
        const auto constant = file_.constant_value(e);
        return constant && *constant < 0 ? open_dim(input, axis) : e;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::limit) throw;
        spelled_.emplace(text, identifier(text));
        return file_.symbol(spelled_.find(text)->second);
    }
}

void DimensionNames::read_shapes(const Inputs& inputs) {
    for (const auto& [name, type] : inputs) {
        std::optional<Dims>& shape = shapes_.emplace_back();
        if (type.kind != TypeRecord::Kind::tensor || !type.shape) continue;
        shape.emplace();
        for (std::size_t axis = 0; axis < type.shape->size(); ++axis) {
            const auto& dim = (*type.shape)[axis].value;
            if (const auto* value = std::get_if<std::int64_t>(&dim)) {
                if (*value < -1)
                    throw_error(ErrorCode::model, "input '{}' has the negative dimension {}", excerpt(name), *value);
                shape->push_back(*value < 0 ? open_dim(name, axis) : file_.constant(*value));
            } else {
                const auto* text = std::get_if<std::string_view>(&dim);
                shape->push_back(text && !is_open(*text) ? named_dim(*text, name, axis) : open_dim(name, axis));
            }
        }
    }
}

void DimensionNames::choose(const std::string& to, const std::set<std::string>& called,
                            const std::set<std::string>& guesses) {
    if (called.size() == 1 && *called.begin() != to) renamed_[*called.begin()] = to;
    const bool unnamed = std::ranges::all_of(guesses, [&](const auto& symbol) { return unnamed_.contains(symbol); });
    if (!called.empty() || (guesses.size() > 1 && !unnamed)) return;
    for (const std::string& symbol : guesses) {
        if (symbol == to || renamed_.contains(symbol)) continue;
        renamed_[symbol] = to;
        warnings_.push_back(fmt::format("dynamic dimension '{}' is taken to be {}", symbol, to));
    }
}

/// The batch is the symbol that is called so, else the leading dynamic dimension that all inputs share. The sequence
/// is called so, or it is the second dimension of matrices of integers.
void DimensionNames::name_common(const Inputs& inputs) {
    std::set<std::string> leading, called_batch, called_sequence, called_past, integer_second;
    bool second_differs = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!shapes_[i] || shapes_[i]->empty()) continue;
        for (const Expression dim : *shapes_[i]) {
            const std::string symbol = bare_symbol(file_, dim), name = lower_case(symbol);
            if (has_word(batch_names, name)) called_batch.insert(symbol);
            if (has_word(sequence_names, name)) called_sequence.insert(symbol);
            if (has_word(past_names, name)) called_past.insert(symbol);
        }
        const std::string first = bare_symbol(file_, shapes_[i]->front());
        if (!first.empty()) leading.insert(first);
        // A pair of node numbers per edge is no sequence; a batch fixed at 1 may have one.
        const auto rows = file_.constant_value(shapes_[i]->front());
        if (shapes_[i]->size() != 2 || rows.value_or(1) != 1 || !is_integral(inputs[i].second)) continue;
        const std::string second = bare_symbol(file_, (*shapes_[i])[1]);
        second_differs = second_differs || second.empty();
        integer_second.insert(second);
    }
    choose("batch", called_batch, leading);
    choose("seq", called_sequence, second_differs ? std::set<std::string>() : integer_second);
    choose("past", called_past, {});
}

void DimensionNames::apply(const InputShape& shape, const Inputs& inputs, bool keep_batch) {
    const auto found = std::ranges::find_if(inputs, [&](const auto& input) { return input.first == shape.input; });
    if (found == inputs.end()) {
        std::string names;
        for (const auto& [name, type] : inputs) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
        throw_error(ErrorCode::usage, "unknown input '{}'; available: {}", shape.input, names);
    }
    std::optional<Dims>& dims = shapes_[static_cast<std::size_t>(found - inputs.begin())];
    if (dims && dims->size() != shape.dims.size())
        throw_error(ErrorCode::usage, "input '{}' has rank {}, the shape given has {}", shape.input, dims->size(),
                    shape.dims.size());
    Dims replaced;
    for (std::size_t axis = 0; axis < shape.dims.size(); ++axis)
        replaced.push_back(applied(shape, axis, dims ? &*dims : nullptr, keep_batch));
    dims = std::move(replaced);
}

Expression DimensionNames::applied(const InputShape& shape, std::size_t axis, const Dims* dims, bool keep_batch) {
    const Expression wanted = file_.parse(shape.dims[axis]);
    if (!dims) return wanted;
    const Expression declared = (*dims)[axis];
    const std::string text = file_.to_string(wanted), symbol = bare_symbol(file_, declared);
    if (!symbol.empty()) {
        const auto [known, added] = bound_.emplace(symbol, text);
        if (!added && known->second != text)
            throw_error(ErrorCode::model, "input '{}' makes dimension '{}' {} where another input makes it {}",
                        shape.input, symbol, text, known->second);
        renamed_[symbol] = text;
        return declared;
    }
    if (keep_batch && axis == 0 && file_.constant_value(declared).value_or(0) > 0) return declared;
    if (declared != wanted)
        warnings_.push_back(fmt::format("input '{}' is declared {} along axis {}; {} is used", shape.input,
                                        file_.to_string(declared), axis, text));
    return wanted;
}

void DimensionNames::name_numbered(const Inputs& inputs) {
    SymbolNames numbered;
    for (const std::string& symbol : file_.symbols()) numbered.reserve(symbol);
    for (const auto& [from, to] : renamed_) numbered.reserve(to);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        std::vector<std::string> dims;
        for (const Expression dim : shapes_[i].value_or(Dims{})) {
            const std::string text = file_.to_string(dim);
            dims.push_back(renamed_.contains(text) ? std::string() : text);
        }
        numbered.add_input(dotted_identifier(inputs[i].first), dims, is_integral(inputs[i].second));
    }
    renamed_.insert(numbered.names().begin(), numbered.names().end());
    for (std::string& warning : numbered.warnings()) warnings_.push_back(std::move(warning));
}

Expression DimensionNames::convert(Expression e, const ExpressionPool& from, ExpressionPool& pool) const {
    std::map<std::string, Expression, std::less<>> replace;
    for (const std::string& symbol : from.symbols_of(e))
        replace.emplace(symbol, pool.parse(value_or(renamed_, symbol, symbol)));
    return pool.import(from, e, replace);
}

std::map<std::string, std::string, std::less<>> DimensionNames::other_names(ExpressionPool& pool) const {
    std::map<std::string, std::string, std::less<>> names = renamed_;
    for (const auto& [text, symbol] : spelled_)
        names.emplace(text, renamed_.contains(symbol) ? renamed_.find(symbol)->second : symbol);
    const std::vector<std::string>& symbols = pool.symbols();
    const auto is_symbol = [&](const std::string& name) { return std::ranges::find(symbols, name) != symbols.end(); };
    std::erase_if(names, [&](const auto& one) { return is_symbol(one.first) || !is_symbol(one.second); });
    return names;
}

std::optional<Dims> DimensionNames::shape(std::size_t index, ExpressionPool& pool) const {
    if (!shapes_[index]) return std::nullopt;
    return mapped(*shapes_[index], [&](Expression e) { return convert(e, file_, pool); });
}

Expression DimensionNames::declared(const DimRecord& dim, ExpressionPool& pool) const {
    if (const auto* value = std::get_if<std::int64_t>(&dim.value))
        return *value < 0 ? unknown_dim : pool.constant(*value);
    const auto* text = std::get_if<std::string_view>(&dim.value);
    if (!text || is_open(*text)) return unknown_dim;
    ExpressionPool scratch;
    try {
        const Expression e = scratch.parse(value_or(spelled_, *text, std::string(*text)));
        const auto of_inputs = std::span(file_.symbols()).first(input_symbols_);
        for (const std::string& symbol : scratch.symbols_of(e))
            if (std::ranges::find(of_inputs, symbol) == of_inputs.end()) return unknown_dim;
        return convert(e, scratch, pool);
    } catch (const Error&) {
        return unknown_dim;  // a declaration is only a hint
    }
}

}  // namespace ftax::onnx_import
