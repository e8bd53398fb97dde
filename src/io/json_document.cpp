#include "src/io/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/excerpt.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/escape.hpp"

namespace ftax {
namespace {

using nlohmann::json;

const std::string no_key;

void append_key(std::string& path, std::string_view key) {
    path += (path.empty() ? "" : ".") + escape_terminal(excerpt(key));
}

json to_json(const JsonValue& value) {
    if (value.is_object()) {
        json object = json::object();
        for (const JsonValue member : value) object.emplace(member.key(), to_json(member));
        return object;
    }
    if (value.is_array()) {
        json array = json::array();
        for (const JsonValue element : value) array.push_back(to_json(element));
        return array;
    }
    if (value.is_text()) return value.text();
    if (value.is_truth()) return value.integer() != 0;
    if (!value.is_number()) return nullptr;
    if (!value.is_integer()) return value.real();
    return value.integer() < 0 ? json(value.integer()) : json(static_cast<std::uint64_t>(value.integer()));
}

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

}  // namespace

json parse_json(std::string_view text, const std::string& origin, const JsonRules& rules) {
    const JsonTape tape([&] { return std::exchange(text, {}); }, origin, rules);
    return to_json(tape.root());
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
    for (const JsonField& field : elements()) {
        if (std::ranges::find(keys, field.key()) == keys.end()) {
            field.fail(fmt::format("is not a known field; known are {}", fmt::join(keys, ", ")));
        }
    }
}

std::string JsonField::text() const {
    if (!value_->is_string() || value_->get_ref<const std::string&>().empty()) fail("must be a text that is not empty");
    return value_->get<std::string>();
}

std::vector<std::string> JsonField::texts() const {
    if (!value_->is_array()) fail("must be an array");
    std::vector<std::string> result;
    for (const JsonField& element : elements()) result.push_back(element.text());
    return result;
}

double JsonField::positive() const {
    if (!value_->is_number() || !(value_->get<double>() > 0)) fail("must be a positive number");
    return value_->get<double>();
}

double JsonField::not_negative() const {
    if (!value_->is_number() || !(value_->get<double>() >= 0)) fail("must be a number that is not negative");
    return value_->get<double>();
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
