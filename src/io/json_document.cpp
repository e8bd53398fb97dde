#include "src/io/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/core/embedded.hpp"
#include "src/core/excerpt.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/escape.hpp"

namespace ftax {
namespace {

using nlohmann::json;

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
        if (open_.empty()) return &(root_ = std::move(value));
        const Level& level = open_.back();
        if (level.slot) return &(*level.slot = std::move(value));
        auto& items = level.container->get_ref<json::array_t&>();
        items.push_back(std::move(value));
        return &items.back();
    }

    bool open(json container) {
        if (open_.size() == rules_.deepest_level)
            throw_error(ErrorCode::limit, "{}: {}: nested deeper than {} levels", origin_, path(),
                        rules_.deepest_level);
        open_.push_back({add(std::move(container))});
        return true;
    }

    bool close() {
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
};

/// Reading what pack() wrote. Kinds are letters: object, array, string, double, true, false, null.
std::uint32_t length_at(const char* at) {
    std::uint32_t length = 0;
    std::memcpy(&length, at, sizeof length);
    return length;
}

std::string_view content_of(const char* value) {
    return {value + 1 + sizeof(std::uint32_t), length_at(value + 1)};
}

bool is_structured(const char* value) {
    return *value == 'o' || *value == 'a';
}

std::optional<double> number_of(const char* value) {
    if (*value != 'd') return std::nullopt;
    double number = 0;
    std::memcpy(&number, value + 1, sizeof number);
    return number;
}

/// Calls `visit(key, element)` until it returns true; elements of an array have no key.
template <class Visit>
void visit_elements(const char* value, const Visit& visit) {
    const std::string_view all = content_of(value);
    const char* const end = all.data() + all.size();
    for (const char* at = all.data(); at != end;) {
        std::string_view key;
        if (*value == 'o') {
            key = {at + sizeof(std::uint32_t), length_at(at)};
            at = key.data() + key.size();
        }
        if (visit(key, at)) return;
        const bool is_text = *at == 's' || is_structured(at);
        at = is_text ? content_of(at).data() + content_of(at).size() : at + 1 + (*at == 'd' ? sizeof(double) : 0);
    }
}

/// Appends the path from `at` to `wanted`, which is found by its address; false if it is not in there.
bool append_path(const char* at, const char* wanted, std::string& path) {
    if (at == wanted) return true;
    bool found = false;
    if (!is_structured(at)) return found;
    const std::size_t length = path.size();
    std::size_t index = 0;
    visit_elements(at, [&](std::string_view key, const char* element) {
        if (*at == 'o') append_key(path, key);
        if (*at == 'a') path += fmt::format("[{}]", index++);
        found = append_path(element, wanted, path);
        if (!found) path.resize(length);
        return found;
    });
    return found;
}

void append_text(std::string& packed, std::string_view text) {
    const auto length = static_cast<std::uint32_t>(text.size());
    packed.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
}

}  // namespace

json parse_json(std::string_view text, const std::string& origin, const JsonRules& rules) {
    Builder builder(origin, rules, text);
    static_cast<void>(json::sax_parse(text, &builder));
    return builder.take();
}

std::string to_text(const nlohmann::ordered_json& value) {
    return value.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string pack(const json& document) {
    if (document.is_number()) {
        const double number = document.get<double>();
        return "d" + std::string(reinterpret_cast<const char*>(&number), sizeof number);
    }
    if (document.is_boolean()) return document.get<bool>() ? "t" : "f";
    if (document.is_null()) return "n";
    std::string packed, elements;
    for (auto element = document.begin(); document.is_structured() && element != document.end(); ++element) {
        if (document.is_object()) append_text(elements, element.key());
        elements += pack(*element);
    }
    packed = document.is_object() ? "o" : document.is_array() ? "a" : "s";
    append_text(packed, document.is_string() ? document.get_ref<const std::string&>() : elements);
    return packed;
}

JsonField::JsonField(const json& document, std::string origin, ErrorCode invalid)
    : document_(std::make_shared<Document>(Document{pack(document), nullptr, std::move(origin), invalid})),
      value_(root()) {}

JsonField JsonField::parse(std::string_view text, const std::string& origin, std::string_view kind,
                           std::string_view fields) {
    const bool is_packed = std::ranges::any_of(
        packed_files(), [&](const EmbeddedFile& file) { return file.content.data() == text.data(); });
    JsonField root(std::make_shared<Document>(Document{is_packed ? "" : pack(parse_json(text, origin)),
                                                       is_packed ? text.data() : nullptr, origin, ErrorCode::profile}),
                   nullptr, {});
    root.value_ = root.root();
    if (const int version = root["schema_version"].positive_count(); version > 1)
        root["schema_version"].fail(fmt::format("is {}, newer than the 1 this program knows: update ftax", version));
    const auto found = kind.empty() ? std::nullopt : std::optional(root["kind"]);
    if (found && found->text() != kind) found->fail(fmt::format("is not \"{}\"", kind));
    root.allow(fields);
    return root;
}

std::string JsonField::path() const {
    std::string path;
    append_path(root(), value_, path);
    return path;
}

void JsonField::fail(std::string_view what, std::optional<ErrorCode> code) const {
    fail_at(path(), what, code.value_or(document_->invalid));
}

void JsonField::fail_at(const std::string& path, std::string_view what, ErrorCode code) const {
    throw_error(code, "{}: {}: {}", document_->origin, path.empty() ? "the document" : path, what);
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
    if (*value_ != 'o') fail("must be an object");
    std::optional<JsonField> found;
    visit_elements(value_, [&](std::string_view name, const char* element) {
        if (name == key) found = JsonField(document_, element, name);
        return found.has_value();
    });
    return found;
}

JsonField JsonField::operator[](std::string_view key) const {
    if (const auto field = find(key)) return *field;
    std::string missing = path();
    append_key(missing, key);
    fail_at(missing, "is missing", document_->invalid);
}

std::vector<JsonField> JsonField::elements() const {
    if (!is_structured(value_)) fail("must be an array or an object");
    std::vector<JsonField> result;
    visit_elements(value_, [&](std::string_view key, const char* element) {
        result.push_back(JsonField(document_, element, key));
        return false;
    });
    return result;
}

void JsonField::allow(std::span<const std::string_view> keys) const {
    if (*value_ != 'o') fail("must be an object");
    visit_elements(value_, [&](std::string_view key, const char* element) {
        if (std::ranges::find(keys, key) != keys.end()) return false;
        JsonField(document_, element, key)
            .fail(fmt::format("is not a known field; known are {}", fmt::join(keys, ", ")));
    });
}

std::string JsonField::text() const {
    if (*value_ != 's' || content_of(value_).empty()) fail("must be a text that is not empty");
    return std::string(content_of(value_));
}

std::vector<std::string> JsonField::texts() const {
    if (*value_ != 'a') fail("must be an array");
    std::vector<std::string> result;
    for (const JsonField& element : elements()) result.push_back(element.text());
    return result;
}

double JsonField::positive() const {
    if (!(number_of(value_).value_or(0) > 0)) fail("must be a positive number");
    return not_negative();
}

double JsonField::not_negative() const {
    const double value = number_of(value_).value_or(-1);
    if (!(value >= 0)) fail("must be a number that is not negative");
    // No quantity in SI units is beyond, and products of a few of these stay within a double.
    constexpr double least = 1e-30, greatest = 1e30;
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
    if (*value_ != 't' && *value_ != 'f') fail("must be true or false");
    return *value_ == 't';
}

}  // namespace ftax
