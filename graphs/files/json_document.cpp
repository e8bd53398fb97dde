#include "graphs/files/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"

namespace ftax {
namespace {

using nlohmann::json;

const std::string no_key;

void append_key(std::string& path, std::string_view key) {
    path += (path.empty() ? "" : ".") + escape_terminal(excerpt(key));
}

/// Builds the document while it is parsed, and knows where it is. A parser's callback would do, but each of its events
/// searches the whole of the object around it.
class Builder {
  public:
    Builder(const std::string& origin, ErrorCode malformed, std::size_t deepest_level, std::string_view text)
        : origin_(origin), malformed_(malformed), deepest_level_(deepest_level), text_(text) {}

    [[nodiscard]] json take() { return std::move(root_); }

    // What nlohmann::json::sax_parse calls.
    bool null() { return add(nullptr), true; }
    bool boolean(bool value) { return add(value), true; }
    bool number_integer(json::number_integer_t value) { return add(value), true; }
    bool number_unsigned(json::number_unsigned_t value) { return add(value), true; }
    bool number_float(json::number_float_t value, const std::string&) { return add(value), true; }
    bool string(std::string& value) { return add(std::move(value)), true; }
    bool binary(json::binary_t&) { return false; }
    bool start_object(std::size_t) { return open(json::value_t::object); }
    bool start_array(std::size_t) { return open(json::value_t::array); }
    bool end_object() { return open_.pop_back(), true; }
    bool end_array() { return open_.pop_back(), true; }

    bool key(std::string& name) {
        Level& level = open_.back();
        const auto [slot, added] = level.container->get_ref<json::object_t&>().emplace(name, nullptr);
        level.key = &slot->first, level.slot = &slot->second;
        if (!added) throw_error(malformed_, "{}: {}: occurs twice", origin_, path());
        return true;
    }

    bool parse_error(std::size_t byte, const std::string&, const json::exception& error) {
        constexpr int number_out_of_range = 406;  // Source: the library's documentation, "Exceptions"
        if (error.id == number_out_of_range)
            throw_error(malformed_, "{}: {}: a number too large for a double", origin_, path());
        throw_error(malformed_, "{}:{}: {}: not valid JSON", origin_, line_and_column(byte), path());
    }

  private:
    struct Level {
        json* container = nullptr;
        json* slot = nullptr;              ///< in an object: destination of the next value
        const std::string* key = nullptr;  ///< in an object: the last key
    };

    json* add(json value) {
        if (open_.empty()) return &(root_ = std::move(value));
        const Level& level = open_.back();
        if (level.slot) return &(*level.slot = std::move(value));
        return &level.container->get_ref<json::array_t&>().emplace_back(std::move(value));
    }

    bool open(json::value_t container) {
        if (open_.size() == deepest_level_)
            throw_error(ErrorCode::limit, "{}: {}: nested deeper than {} levels", origin_, path(), deepest_level_);
        open_.push_back({add(container)});
        return true;
    }

    /// "graph.nodes[3].inputs"
    [[nodiscard]] std::string path() const {
        std::string result;
        for (const Level& level : open_) {
            const bool opened = &level != &open_.back();  // its last item is the one that is open
            if (level.container->is_array()) result += fmt::format("[{}]", level.container->size() - (opened ? 1 : 0));
            if (level.key) append_key(result, *level.key);
        }
        return result.empty() ? "the document" : result;
    }

    [[nodiscard]] std::string line_and_column(std::size_t byte) const {
        const std::string_view before = text_.substr(0, std::min(byte > 0 ? byte - 1 : 0, text_.size()));
        return fmt::format("{}:{}", std::ranges::count(before, '\n') + 1, before.size() - before.rfind('\n'));
    }

    const std::string& origin_;
    ErrorCode malformed_;
    std::size_t deepest_level_;
    std::string_view text_;
    json root_;
    std::vector<Level> open_;
};

/// Appends the path from `at` to `wanted`, which is found by its address; false if it is not in there.
bool append_path(const json& at, const json* wanted, std::string& path) {
    if (&at == wanted) return true;
    const std::size_t length = path.size();
    std::size_t index = 0;
    for (auto child = at.begin(); at.is_structured() && child != at.end(); ++child) {
        if (at.is_object()) append_key(path, child.key());
        if (at.is_array()) path += fmt::format("[{}]", index++);
        if (append_path(*child, wanted, path)) return true;
        path.resize(length);
    }
    return false;
}

constexpr std::array<std::string_view, 3> non_finite_words{"-Infinity", "Infinity", "NaN"};

}  // namespace

json parse_json(std::string_view text, const std::string& origin, ErrorCode malformed, std::size_t deepest_level) {
    Builder builder(origin, malformed, deepest_level, text);
    static_cast<void>(json::sax_parse(text, &builder));
    return builder.take();
}

std::string quote_non_finite(std::string text) {
    const auto occurs = [&](std::string_view word) { return text.find(word) != std::string::npos; };
    if (!occurs("Infinity") && !occurs("NaN")) return text;
    std::string result;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view rest = std::string_view(text).substr(i);
        const auto word = std::ranges::find_if(non_finite_words, [&](auto w) { return rest.starts_with(w); });
        if (!in_string && word != non_finite_words.end()) {
            result += fmt::format("\"{}\"", *word);
            i += word->size() - 1;
        } else {
            if (text[i] == '"') in_string = !in_string;
            if (in_string && text[i] == '\\') result += text[i++];  // what it escapes is no quote
            result.append(text, i, 1);
        }
    }
    return result;
}

std::string to_text(const nlohmann::ordered_json& value) {
    return value.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

JsonField::JsonField(const json& value, std::string origin, ErrorCode invalid)
    : JsonField(std::make_shared<Document>(Document{{}, &value, std::move(origin), invalid}), value, no_key) {}

JsonField::JsonField(std::shared_ptr<const Document> document, const json& value, const std::string& key)
    : document_(std::move(document)), value_(&value), key_(&key) {}

JsonField JsonField::parse(std::string_view text, const std::string& origin, std::string_view kind,
                           std::string_view fields) {
    const auto document =
        std::make_shared<Document>(Document{parse_json(text, origin), {}, origin, ErrorCode::profile});
    document->root = &document->own;
    JsonField root(document, document->own, no_key);
    if (const int version = root["schema_version"].positive_count(); version > 1)
        root["schema_version"].fail(fmt::format("is {}, newer than the 1 this program knows: update ftax", version));
    const auto found = kind.empty() ? std::nullopt : std::optional(root["kind"]);
    if (found && found->text() != kind) found->fail(fmt::format("is not \"{}\"", kind));
    root.allow(fields);
    return root;
}

std::string JsonField::path() const {
    std::string path;
    append_path(*document_->root, value_, path);
    return path;
}

void JsonField::fail(std::string_view what, std::optional<ErrorCode> code) const {
    fail_at(path(), what, code.value_or(document_->invalid));
}

void JsonField::fail_at(const std::string& path, std::string_view what, ErrorCode code) const {
    throw_error(code, "{}: {}: {}", document_->origin, path.empty() ? "the document" : path, what);
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
    if (!value_->is_object()) fail("must be an object");
    const auto found = value_->find(key);
    if (found == value_->end()) return std::nullopt;
    return JsonField(document_, *found, found.key());
}

JsonField JsonField::operator[](std::string_view key) const {
    if (const auto field = find(key)) return *field;
    std::string missing = path();
    append_key(missing, key);
    fail_at(missing, "is missing", document_->invalid);
}

std::vector<JsonField> JsonField::elements() const {
    if (!value_->is_structured()) fail("must be an array or an object");
    std::vector<JsonField> result;
    for (auto element = value_->begin(); element != value_->end(); ++element)
        result.push_back(JsonField(document_, *element, value_->is_object() ? element.key() : no_key));
    return result;
}

void JsonField::allow(std::span<const std::string_view> keys) const {
    if (!value_->is_object()) fail("must be an object");
    for (auto field = value_->begin(); field != value_->end(); ++field)
        if (std::ranges::find(keys, field.key()) == keys.end())
            (*this)[field.key()].fail(fmt::format("is not a known field; known are {}", fmt::join(keys, ", ")));
}

std::string JsonField::text() const {
    if (!value_->is_string() || value_->get_ref<const std::string&>().empty()) fail("must be a non-empty string");
    return value_->get<std::string>();
}

std::vector<std::string> JsonField::texts() const {
    if (!value_->is_array()) fail("must be an array");
    return mapped(elements(), &JsonField::text);
}

double JsonField::positive() const {
    if (!value_->is_number() || !(value_->get<double>() > 0)) fail("must be a positive number");
    return not_negative();
}

double JsonField::not_negative() const {
    if (!value_->is_number() || !(value_->get<double>() >= 0)) fail("must be a non-negative number");
    // No quantity in SI units is beyond, and products of a few of these stay within a double.
    constexpr double least = 1e-30, greatest = 1e30;
    const auto value = value_->get<double>();
    if (value != 0 && (value < least || value > greatest)) fail("must be a number from 1e-30 to 1e30");
    return value;
}

int JsonField::positive_count() const {
    static_cast<void>(positive());
    return integer();
}

int JsonField::integer() const {
    const double value = not_negative();
    if (value != std::trunc(value) || value > std::numeric_limits<int>::max()) fail("must be a whole number");
    return static_cast<int>(value);
}

bool JsonField::flag() const {
    if (!value_->is_boolean()) fail("must be true or false");
    return value_->get<bool>();
}

}  // namespace ftax
