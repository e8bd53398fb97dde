#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/symbol_range.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {
namespace {

constexpr std::size_t max_values = 10'000;

std::int64_t at_least(std::int64_t least, std::string_view text, std::string_view what) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range && end == text.data() + text.size())
        throw_error(ErrorCode::limit, "{} {} does not fit into 64 bits", what, text);
    if (error != std::errc{} || end != text.data() + text.size())
        throw_error(ErrorCode::usage, "{} '{}' is not an integer", what, text);
    if (value < least) throw_error(ErrorCode::usage, "{} {} must be at least {}", what, text, least);
    return value;
}

std::int64_t positive(std::string_view text, std::string_view what) {
    return at_least(1, text, what);
}

void append(std::vector<std::int64_t>& values, std::int64_t value, std::string_view option) {
    if (values.size() == max_values) throw_error(ErrorCode::limit, "{} lists more than {} values", option, max_values);
    values.push_back(value);
}

void append_range(std::vector<std::int64_t>& values, std::string_view range, std::string_view option) {
    const auto fail = [&] {
        throw_error(ErrorCode::usage, "{} '{}' is neither a number nor FIRST:LAST:xFACTOR nor FIRST:LAST:+STEP", option,
                    range);
    };
    const std::size_t first_colon = range.find(':');
    const std::size_t second_colon = range.find(':', first_colon + 1);
    if (second_colon == std::string_view::npos || second_colon + 1 == range.size()) fail();
    const char kind = range[second_colon + 1];
    if (kind != 'x' && kind != '+') fail();
    const std::int64_t first = positive(range.substr(0, first_colon), option);
    const std::int64_t last = positive(range.substr(first_colon + 1, second_colon - first_colon - 1), option);
    const std::int64_t step =
        positive(range.substr(second_colon + 2), fmt::format("{} {}", option, kind == 'x' ? "factor" : "step"));
    if (kind == 'x' && step == 1) fail();
    if (last < first) throw_error(ErrorCode::usage, "{} {} ends before it begins", option, range);
    for (std::int64_t value = first; value <= last;) {
        append(values, value, option);
        const bool overflow =
            kind == 'x' ? __builtin_mul_overflow(value, step, &value) : __builtin_add_overflow(value, step, &value);
        if (overflow) return;
    }
}

std::pair<std::string_view, std::string_view> split_at_colon(std::string_view text, std::string_view option,
                                                             std::string_view form) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
        throw_error(ErrorCode::usage, "{} '{}' is not of the form {}", option, text, form);
    return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

/// "4x3x224x224" → {"4", "3", "224", "224"}
std::vector<std::string> parse_dims(std::string_view dims, std::string_view text) {
    std::vector<std::string> result = split(dims, 'x');
    if (std::ranges::count(result, "") > 0) throw_error(ErrorCode::usage, "shape '{}' leaves a dimension empty", text);
    return result;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
    return split(text, ',');
}

std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view option) {
    return mapped(split_list(text), [&](const std::string& part) { return positive(part, option); });
}

std::vector<std::int64_t> parse_batches(std::string_view text, std::string_view option) {
    std::vector<std::int64_t> values;
    for (const std::string& part : split_list(text)) {
        const std::size_t sign = part.starts_with('-') ? 1 : 0;
        if (part.find_first_not_of("0123456789", sign) == std::string::npos) {
            append(values, positive(part, option), option);
        } else {
            append_range(values, part, option);
        }
    }
    return values;
}

ShapeBindings parse_dimensions(const std::vector<std::string>& texts, std::string_view option) {
    ShapeBindings bindings;
    for (const std::string& text : texts) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0)
            throw_error(ErrorCode::usage, "{} '{}' is not of the form NAME=NUMBER", option, text);
        const std::string name = text.substr(0, equals);
        const std::int64_t least = name == cached_tokens ? 0 : 1;
        const std::int64_t value = at_least(least, text.substr(equals + 1), fmt::format("{} {}", option, name));
        const auto [position, added] = bindings.emplace(name, value);
        if (!added && position->second != value)
            throw_error(ErrorCode::usage, "{} {} is given twice, as {} and {}", option, name, position->second, value);
    }
    return bindings;
}

std::pair<std::string, bool> parse_branch(std::string_view text) {
    const std::size_t equals = text.rfind('=');
    const std::string_view branch = equals == std::string_view::npos ? "" : text.substr(equals + 1);
    if (equals == 0 || (branch != "then" && branch != "else"))
        throw_error(ErrorCode::usage, "--branch '{}' is neither IF=then nor IF=else", text);
    return {std::string(text.substr(0, equals)), branch == "then"};
}

InputShape parse_input_shape(std::string_view text) {
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos && equals > 0)
        return {.input = std::string(text.substr(0, equals)),
                .dims = {},
                .dtype = {},
                .value = std::string(text.substr(equals + 1))};
    const auto [input, dims] = split_at_colon(text, "--shapes", "INPUT:4x3x224x224");
    return {.input = std::string(input), .dims = parse_dims(dims, text), .dtype = {}};
}

InputShape parse_input_type(std::string_view text) {
    static const std::map<std::string_view, DType> torch_names = {
        {"float", DType::f32}, {"double", DType::f64},  {"half", DType::f16},  {"bfloat16", DType::bf16},
        {"long", DType::i64},  {"int", DType::i32},     {"short", DType::i16}, {"char", DType::i8},
        {"byte", DType::u8},   {"bool", DType::boolean}};
    const std::size_t equals = text.find('=');
    const bool number = equals != std::string_view::npos && equals + 1 < text.size();
    const auto [type, dims] = number ? std::pair(text.substr(0, equals), text.substr(equals + 1))
                                     : split_at_colon(text, "--input", "float:4x3x224x224 or long=5");
    const auto found = torch_names.find(type);
    const auto dtype = found != torch_names.end() ? std::optional(found->second) : dtype_from_name(type);
    if (!dtype) throw_error(ErrorCode::usage, "--input '{}': unknown type '{}'", text, type);
    if (number) return {.input = {}, .dims = {}, .dtype = dtype, .value = std::string(dims)};
    return {.input = {}, .dims = parse_dims(dims, text), .dtype = dtype};
}

}  // namespace ftax::scenario
