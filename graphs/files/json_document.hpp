#pragma once

#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/base/excerpt.hpp"

namespace ftax {

/// Parses strict JSON: one value, no duplicate keys, no NaN, no numbers beyond double, limited nesting.
/// Throws Error{malformed} with line, column and the path to the field, Error{limit} for excessive nesting.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& origin,
                                        ErrorCode malformed = ErrorCode::profile, std::size_t deepest_level = 64);

/// Quotes the infinities and NaN of torch 2.4 to 2.6, which like Python's json write `-Infinity`, invalid JSON; later
/// versions write "-Infinity". Leaves strings unchanged.
[[nodiscard]] std::string quote_non_finite(std::string text);

/// Prints JSON in the format of all ftax files and reports: two-space indent, invalid UTF-8 replaced, final newline.
[[nodiscard]] std::string to_text(const nlohmann::ordered_json& value);

/// A value in a JSON document with its path, so that errors name the file and the field. All functions throw
/// Error{invalid} if the value does not have the requested type. A document that it does not own must outlive it.
class JsonField {
  public:
    JsonField(const nlohmann::json& value, std::string origin, ErrorCode invalid = ErrorCode::profile);
    /// Parses a profile or datasheet of this kind (empty: its format states none) in schema version 1, with no other
    /// fields than `fields`. The result and what is read from it own the document.
    [[nodiscard]] static JsonField parse(std::string_view text, const std::string& origin, std::string_view kind,
                                         std::string_view fields);

    [[nodiscard]] JsonField operator[](std::string_view key) const;
    [[nodiscard]] std::optional<JsonField> find(std::string_view key) const;
    /// Elements of an array, or values of an object with key().
    [[nodiscard]] std::vector<JsonField> elements() const;
    [[nodiscard]] const std::string& key() const { return *key_; }

    /// Rejects unlisted keys, which catches misspellings.
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
    struct Document {
        nlohmann::json own;
        const nlohmann::json* root;
        std::string origin;
        ErrorCode invalid;
    };

    JsonField(std::shared_ptr<const Document> document, const nlohmann::json& value, const std::string& key);
    [[nodiscard]] std::string path() const;
    [[noreturn]] void fail_at(const std::string& path, std::string_view what, ErrorCode code) const;

    std::shared_ptr<const Document> document_;
    const nlohmann::json* value_;
    const std::string* key_;
};

}  // namespace ftax
