#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ftax/error.hpp"

namespace ftax {

class JsonValue;

struct JsonRules {
    ErrorCode malformed = ErrorCode::profile;  ///< error for text that is not JSON
    std::size_t deepest_level = 64;
    bool non_finite = false;  ///< NaN, Infinity and -Infinity, as Python writes them, are read as texts
    /// Words: only these members are kept, and those of objects that are the member of a name; empty: all are.
    std::string_view known_keys = {}, open_objects = {};
    std::function<bool(const JsonValue&)> keeps_node = {};  ///< whether an element of an array `nodes` is kept
    std::uint64_t most_values = UINT32_MAX;                 ///< that are kept
};

/// The next part of a text; empty at its end.
using TextSource = std::function<std::string_view()>;

/// A JSON document in one word of 64 bits per value and each text once, a tenth of a tree of maps; read as a stream.
class JsonTape {
  public:
    /// Parses one value without duplicate keys or numbers beyond double. Throws Error{rules.malformed} with line,
    /// column and the path to the field, Error{limit} for excessive nesting or size.
    JsonTape(const TextSource& next, const std::string& origin, const JsonRules& rules);
    [[nodiscard]] JsonValue root() const;

  private:
    friend class JsonValue;
    friend class JsonParser;
    enum class Kind : std::uint32_t { null, no, yes, small, integer, real, text, array, object };
    static constexpr std::uint32_t key_bits = 28;
    struct Word {
        std::uint32_t kind_and_key;
        std::uint32_t payload;  ///< small number, number of a text or of another number, word after the last member
    };

    [[nodiscard]] std::string_view text(std::uint32_t number) const {
        return std::string_view(characters_).substr(ends_[number - 1], ends_[number] - ends_[number - 1]);
    }
    struct Entry {
        std::uint32_t hash = 0, number = 0;
    };
    /// Where a text stands in the table, or belongs.
    [[nodiscard]] std::size_t slot(std::string_view text, std::uint32_t hash) const;
    std::uint32_t intern(std::string_view text);
    [[nodiscard]] std::uint32_t number_of(std::string_view text) const;  ///< 0 where no value has it

    std::deque<Word> words_;
    std::vector<std::uint64_t> numbers_;  ///< bits of those that no word holds
    std::string characters_;              ///< of the texts, which are numbered from 1
    std::vector<std::uint64_t> ends_{0};
    std::vector<Entry> table_ = std::vector<Entry>(64);
    struct Index {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  ///< number of the key, word; sorted
        mutable std::size_t last = 0;                                  ///< the one found last
    };
    std::unordered_map<std::uint32_t, Index> indices_;  ///< of large objects
};

/// A value of a JsonTape, or none. Where it is not as a function asks, Error{model} is thrown.
class JsonValue {
  public:
    JsonValue() = default;
    explicit operator bool() const { return kind() != Kind::null; }  ///< neither absent nor null
    [[nodiscard]] bool is_object() const { return kind() == Kind::object; }
    [[nodiscard]] bool is_array() const { return kind() == Kind::array; }
    [[nodiscard]] bool is_text() const { return kind() == Kind::text; }
    [[nodiscard]] bool is_truth() const { return kind() == Kind::no || kind() == Kind::yes; }
    [[nodiscard]] bool is_integer() const { return kind() == Kind::small || kind() == Kind::integer; }  ///< of 64 bits
    [[nodiscard]] bool is_number() const { return is_integer() || kind() == Kind::real; }

    [[nodiscard]] std::string_view text() const;
    [[nodiscard]] std::uint32_t text_number() const;  ///< the same for equal texts of a document
    [[nodiscard]] std::int64_t integer() const;       ///< or a truth value
    [[nodiscard]] double real() const;
    [[nodiscard]] JsonValue find(std::string_view key) const;  ///< none where absent or null, and of others
    [[nodiscard]] JsonValue at(std::string_view key) const;
    [[nodiscard]] JsonValue at(const JsonValue& key) const;  ///< `key` is a text
    [[nodiscard]] std::string_view key() const { return key_number() ? tape_->text(key_number()) : std::string_view(); }
    [[nodiscard]] std::size_t size() const;
    // Members of an object, elements of an array: a value is its own iterator.
    [[nodiscard]] JsonValue begin() const;
    [[nodiscard]] JsonValue end() const { return {tape_, word().payload}; }
    JsonValue operator*() const { return *this; }
    JsonValue& operator++() { return at_ = kind() >= Kind::array ? word().payload : at_ + 1, *this; }
    friend bool operator==(const JsonValue& a, const JsonValue& b) { return a.at_ == b.at_; }

  private:
    friend class JsonTape;
    friend class JsonParser;
    using Kind = JsonTape::Kind;
    JsonValue(const JsonTape* tape, std::uint32_t at) : tape_(tape), at_(at) {}
    [[nodiscard]] JsonValue find_number(std::uint32_t key) const;
    [[nodiscard]] JsonValue present() const;
    [[nodiscard]] const JsonTape::Word& word() const { return tape_->words_[at_]; }
    [[nodiscard]] Kind kind() const { return tape_ ? Kind(word().kind_and_key >> JsonTape::key_bits) : Kind::null; }
    [[nodiscard]] std::uint32_t key_number() const { return word().kind_and_key & ((1u << JsonTape::key_bits) - 1); }

    const JsonTape* tape_ = nullptr;
    std::uint32_t at_ = 0;
};

}  // namespace ftax
