#include "graphs/files/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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
    Builder(const std::string& origin, const JsonRules& rules, std::string_view text)
        : origin_(origin), rules_(rules), text_(text) {}

    [[nodiscard]] json take() { return std::move(root_); }

    // What nlohmann::json::sax_parse calls.
    bool null() { return add(nullptr), true; }
    bool boolean(bool value) { return add(value), true; }
    bool number_integer(json::number_integer_t value) { return add(value), true; }
    bool number_unsigned(json::number_unsigned_t value) { return add(value), true; }
    bool number_float(json::number_float_t value, const std::string&) { return add(value), true; }
    bool string(std::string& value) { return add(std::move(value)), true; }
    bool binary(json::binary_t&) { return false; }
    bool start_object(std::size_t) { return open(json::object()); }
    bool start_array(std::size_t) { return open(json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(std::string& name) {
        if (skipped_levels_ > 0) return true;
        const std::string* const around = open_.size() > 1 ? open_[open_.size() - 2].key : nullptr;
        const bool holds_names = around && !rules_.named.empty() && around->ends_with(rules_.named);
        skips_next_ = !holds_names && std::ranges::count(rules_.skipped, name) > 0;
        if (skips_next_) return true;
        Level& level = open_.back();
        const auto [slot, added] = level.container->get_ref<json::object_t&>().emplace(name, nullptr);
        level.key = &slot->first, level.slot = &slot->second;
        if (!added) throw_error(rules_.malformed, "{}: {}: occurs twice", origin_, path());
        return true;
    }

    bool parse_error(std::size_t byte, const std::string&, const json::exception& error) {
        constexpr int number_out_of_range = 406;  // Source: the library's documentation, "Exceptions"
        if (error.id == number_out_of_range)
            throw_error(rules_.malformed, "{}: {}: a number too large for a double", origin_, path());
        throw_error(rules_.malformed, "{}:{}: {}: not valid JSON", origin_, line_and_column(byte), path());
    }

  private:
    struct Level {
        json* container = nullptr;
        json* slot = nullptr;              ///< in an object: destination of the next value
        const std::string* key = nullptr;  ///< in an object: the last key
    };

    json* add(json value) {
        if (skipped_levels_ > 0 || std::exchange(skips_next_, false)) return nullptr;
        if (open_.empty()) return &(root_ = std::move(value));
        const Level& level = open_.back();
        if (level.slot) return &(*level.slot = std::move(value));
        auto& items = level.container->get_ref<json::array_t&>();
        if (items.size() == rules_.longest_list)
            throw_error(ErrorCode::limit, "{}: {}: a list of more than {} values (--max-nodes)", origin_, path(),
                        items.size());
        items.push_back(std::move(value));
        return &items.back();
    }

    bool open(json container) {
        if (skipped_levels_ > 0 || std::exchange(skips_next_, false)) return ++skipped_levels_, true;
        if (open_.size() == rules_.deepest_level)
            throw_error(ErrorCode::limit, "{}: {}: nested deeper than {} levels", origin_, path(),
                        rules_.deepest_level);
        open_.push_back({add(std::move(container))});
        return true;
    }

    bool close() {
        if (skipped_levels_ > 0) return --skipped_levels_, true;
        open_.pop_back();
        return true;
    }

    /// "graph.nodes[3].inputs"; of deep nesting both ends.
    [[nodiscard]] std::string path() const {
        constexpr std::size_t first = 12, last = 4;
        std::string result;
        for (std::size_t i = 0; i < open_.size(); ++i) {
            const Level& level = open_[i];
            if (i >= first && i + last < open_.size()) {
                if (i == first) result += "…";
            } else if (level.container->is_array()) {
                const bool opened = i + 1 < open_.size();  // its last item is the one that is open
                result += fmt::format("[{}]", level.container->size() - (opened ? 1 : 0));
            } else if (level.key) {
                append_key(result, *level.key);
            }
        }
        return result.empty() ? "the document" : result;
    }

    [[nodiscard]] std::string line_and_column(std::size_t byte) const {
        const std::string_view before = text_.substr(0, std::min(byte > 0 ? byte - 1 : 0, text_.size()));
        const auto line = std::ranges::count(before, '\n') + 1;
        const std::size_t line_start = before.rfind('\n') + 1;
        return fmt::format("{}:{}", line, before.size() - line_start + 1);
    }

    const std::string& origin_;
    const JsonRules& rules_;
    std::string_view text_;
    json root_;
    std::vector<Level> open_;
    std::size_t skipped_levels_ = 0;  ///< open inside a value that is not kept
    bool skips_next_ = false;
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

json parse_json(std::string_view text, const std::string& origin, const JsonRules& rules) {
    Builder builder(origin, rules, text);
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
