#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/error.hpp"
#include "src/core/excerpt.hpp"

namespace ftax {

/// What a reader demands of its JSON.
struct JsonRules {
    ErrorCode malformed = ErrorCode::profile;  ///< of text that is not strict JSON
    std::size_t deepest_level = 64;
};

/// Parses JSON strictly: one value, no key twice in an object, no NaN, nothing beyond a double, no deep nesting.
/// Throws Error{rules.malformed} with line, column and the path to the field, Error{limit} when nested too deep.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& origin, const JsonRules& rules = {});

/// Prints JSON the way all ftax files and reports are written: indented by two, invalid UTF-8 replaced, final newline.
[[nodiscard]] std::string to_text(const nlohmann::ordered_json& value);

/// A value inside a JSON document that knows where it stands, so that each complaint names the file and the field.
/// Every function throws Error{invalid} when the value is not what was asked for. The document must outlive it.
class JsonField {
  public:
    JsonField(const nlohmann::json& value, std::string origin, ErrorCode invalid = ErrorCode::profile);

    [[nodiscard]] JsonField operator[](std::string_view key) const;
    [[nodiscard]] std::optional<JsonField> find(std::string_view key) const;
    /// Elements of an array, or values of an object with key().
    [[nodiscard]] std::vector<JsonField> elements() const;
    [[nodiscard]] const std::string& key() const { return key_; }

    /// Refuses keys that are not listed: a misspelt one would silently do nothing.
    void allow(std::initializer_list<std::string_view> keys) const { allow(std::span(keys.begin(), keys.size())); }
    void allow(std::string_view words) const { allow(words_of(words)); }
    void allow(std::span<const std::string_view> keys) const;

    [[nodiscard]] std::string text() const;  ///< not empty
    [[nodiscard]] std::vector<std::string> texts() const;
    [[nodiscard]] double positive() const;
    [[nodiscard]] double not_negative() const;
    [[nodiscard]] int positive_count() const;
    [[nodiscard]] int integer() const;  ///< not negative
    [[nodiscard]] bool flag() const;

    [[noreturn]] void fail(std::string_view what, std::optional<ErrorCode> code = std::nullopt) const;

  private:
    JsonField(const nlohmann::json& value, std::string origin, ErrorCode invalid, std::string path, std::string key);

    const nlohmann::json* value_;
    std::string origin_;
    ErrorCode invalid_;
    std::string path_;
    std::string key_;
};

/// Refuses a document whose field `kind` says something else.
void check_kind(const JsonField& root, std::string_view kind);

/// Turns a document of one schema version into the next one, in memory.
using SchemaStep = void (*)(nlohmann::json& document);

/// Brings a document to the newest schema version by the steps between: steps[0] turns version 1 into 2, steps[1] 2
/// into 3, …; the newest version is steps.size() + 1. A format that never changed has no steps. Throws Error{profile}
/// naming both versions when the file is newer.
void migrate_schema(nlohmann::json& document, const std::string& origin, std::span<const SchemaStep> steps = {});

}  // namespace ftax
