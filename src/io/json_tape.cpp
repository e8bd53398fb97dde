#include "src/io/json_tape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>

#include "src/core/excerpt.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/escape.hpp"
#include "src/io/number.hpp"

namespace ftax {
namespace {

using nlohmann::json;

constexpr std::size_t large_object = 16;  ///< members above which they are searched by halves

enum Class : std::uint8_t { space = 1, plain = 2, word = 4 };

constexpr std::array<std::uint8_t, 256> classes = [] {
    std::array<std::uint8_t, 256> result{};
    for (std::size_t c = 0x20; c < 256; ++c) result[c] = c == '"' || c == '\\' ? 0 : plain;
    for (const unsigned char c : {' ', '\t', '\r', '\n'}) result[c] |= space;
    for (const unsigned char c : std::string_view("+-.0123456789abcdefghijklmnopqrstuvwxyzEIN")) result[c] |= word;
    return result;
}();

std::uint32_t hash_of(std::string_view text) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>()(text));
}

bool is(Class wanted, char c) {
    return (classes[static_cast<unsigned char>(c)] & wanted) != 0;
}

[[noreturn]] void fail_type() {
    throw Error(ErrorCode::model, "a field is of another type");
}

}  // namespace

class JsonParser {
  public:
    JsonParser(JsonTape& tape, const TextSource& next, const std::string& origin, const JsonRules& rules)
        : tape_(tape), next_(next), origin_(origin), rules_(rules) {
        for (const std::string_view key : words_of(rules.open_objects)) last_open_ = last_known_ = tape_.intern(key);
        for (const std::string_view key : words_of(rules.known_keys)) last_known_ = tape_.intern(key);
    }

    void document() {
        if (peek() == 0xef) {  // a byte order mark
            for (const char c : {'\xef', '\xbb', '\xbf'}) require(character() == c);
        }
        value(0, true);
        require(peek() < 0);
    }

  private:
    using Kind = JsonTape::Kind;
    struct Level {
        bool is_array;
        std::uint64_t members = 0;
        std::string key;  ///< of the member that is read
    };

    bool refill() {
        passed_ += static_cast<std::uint64_t>(end_ - begin_);
        const std::string_view part = next_();
        begin_ = at_ = part.data();
        end_ = begin_ + part.size();
        return !part.empty();
    }
    /// The next character after spaces, which stays; -1 at the end.
    int peek() {
        for (;; ++at_) {
            if (at_ == end_ && !refill()) return -1;
            if (!is(space, *at_)) return static_cast<unsigned char>(*at_);
            if (*at_ != '\n') continue;
            ++line_;
            line_start_ = place() + 1;
        }
    }
    bool take(char wanted) { return peek() == wanted && ++at_; }
    char character() {
        require(at_ != end_ || refill());
        return *at_++;
    }

    /// The characters of a class up to the next of another, valid until the next call.
    std::string_view run(Class wanted) {
        scratch_.clear();
        while (true) {
            const char* const first = at_;
            while (at_ != end_ && is(wanted, *at_)) ++at_;
            const std::string_view part(first, static_cast<std::size_t>(at_ - first));
            if (at_ != end_ && scratch_.empty()) return part;
            scratch_ += part;
            if (at_ != end_ || !refill()) return scratch_;
        }
    }

    std::string_view text() {
        require(take('"'));
        const std::string_view part = run(plain);
        require(at_ != end_);
        if (*at_ == '"') return ++at_, part;
        text_ = part;
        for (char c = character(); c != '"'; c = character()) {
            require(c == '\\');
            text_ += {c, character()};
            text_ += run(plain);
        }
        const json decoded = json::parse('"' + text_ + '"', nullptr, false);
        require(decoded.is_string());
        return text_ = decoded.get<std::string>();
    }

    void value(std::uint32_t key, bool kept) {
        const int c = peek();
        if (c == '{' || c == '[') return container(c == '[', key, kept);
        if (c != '"') return scalar(key, kept);
        const std::string_view held = text();
        if (kept) add(Kind::text, key, tape_.intern(held));
    }

    void container(bool is_array, std::uint32_t key, bool kept) {
        if (levels_.size() == rules_.deepest_level)
            fail(ErrorCode::limit, fmt::format("nested deeper than {} levels", rules_.deepest_level));
        const bool nodes = kept && is_array && rules_.keeps_node && !levels_.empty() && levels_.back().key == "nodes";
        const auto first = word_count();
        if (kept) add(is_array ? Kind::array : Kind::object, key, 0);
        levels_.push_back({is_array, 0, {}});
        const std::size_t depth = levels_.size() - 1;
        const char closing = is_array ? ']' : '}';
        ++at_;
        if (!take(closing)) {
            do {
                const auto at = word_count();
                if (is_array) {
                    value(0, kept);
                    if (nodes && !rules_.keeps_node({&tape_, at})) tape_.words_.resize(at);
                } else {
                    member(key, kept);
                }
                ++levels_[depth].members;
            } while (take(','));
            require(take(closing));
        }
        levels_.pop_back();
        if (!kept) return;
        tape_.words_[first].payload = word_count();
        if (!is_array) index(first);
    }

    void member(std::uint32_t object, bool kept) {
        const std::string_view name = text();
        levels_.back().key = name;
        const bool all = last_known_ == 0 || (object > 0 && object <= last_open_);
        const std::uint32_t key = !kept ? 0 : all ? tape_.intern(name) : tape_.number_of(name);
        require(take(':'));
        value(key, kept && (all || (key > 0 && key <= last_known_)));
    }

    /// Prepares a large object for find(); fails where a key occurs twice.
    void index(std::uint32_t first) {
        members_.clear();
        for (const JsonValue member : JsonValue(&tape_, first)) members_.emplace_back(member.key_number(), member.at_);
        std::ranges::sort(members_);
        const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
        const auto twice = std::ranges::adjacent_find(members_, same_key);
        if (twice != members_.end()) {
            levels_.push_back({false, 0, std::string(tape_.text(twice->first))});
            fail(rules_.malformed, "occurs twice");
        }
        if (members_.size() > large_object) tape_.indices_[first].members = members_;
    }

    void scalar(std::uint32_t key, bool kept) {
        const std::uint64_t start = place();
        const std::string_view held = run(word);
        const auto number = [&](Kind kind, std::uint64_t bits) {
            add(kind, key, static_cast<std::uint32_t>(tape_.numbers_.size()));
            tape_.numbers_.push_back(bits);
        };
        std::int64_t integer = 0;
        const auto [end, error] = std::from_chars(held.data(), held.data() + held.size(), integer);
        const bool is_integer =
            end == held.data() + held.size() && error == std::errc() && (held[0] != '0' || held.size() == 1);
        const bool is_text = rules_.non_finite && (held == "NaN" || held == "Infinity" || held == "-Infinity");
        const json other = is_integer || is_text ? json() : json::parse(held, nullptr, false);
        if (other.is_discarded() && held.find_first_not_of("-.eE+0123456789") == std::string_view::npos &&
            held.size() > 3)
            fail(rules_.malformed, "a number too large for a double");
        if (other.is_discarded()) fail(start);
        if (!kept) return;
        if (is_text) return add(Kind::text, key, tape_.intern(held));
        if (is_integer && integer != static_cast<std::int32_t>(integer))
            return number(Kind::integer, static_cast<std::uint64_t>(integer));
        if (is_integer) return add(Kind::small, key, static_cast<std::uint32_t>(integer));
        if (other.is_number()) return number(Kind::real, std::bit_cast<std::uint64_t>(other.get<double>()));
        add(other.is_null() ? Kind::null : other.get<bool>() ? Kind::yes : Kind::no, key, 0);
    }

    [[nodiscard]] std::uint32_t word_count() const { return static_cast<std::uint32_t>(tape_.words_.size()); }
    void add(Kind kind, std::uint32_t key, std::uint32_t payload) {
        if (tape_.words_.size() >= rules_.most_values || key >> JsonTape::key_bits != 0)
            fail(ErrorCode::limit, fmt::format("more than {} values (--max-nodes)", rules_.most_values));
        tape_.words_.push_back({static_cast<std::uint32_t>(kind) << JsonTape::key_bits | key, payload});
    }

    /// "graph.nodes[3].inputs"; of deep nesting both ends.
    [[nodiscard]] std::string path() const {
        constexpr std::size_t first = 12, last = 4;
        std::string result;
        for (std::size_t i = 0; i < levels_.size(); ++i) {
            const auto& [is_array, members, key] = levels_[i];
            if (i == first && i + last < levels_.size()) result += "…";
            if (i >= first && i + last < levels_.size()) continue;
            if (is_array) result += fmt::format("[{}]", members);
            if (!key.empty()) result += (result.empty() ? "" : ".") + escape_terminal(excerpt(key));
        }
        return result.empty() ? "the document" : result;
    }
    [[nodiscard]] std::uint64_t place() const { return passed_ + static_cast<std::uint64_t>(at_ - begin_); }
    [[noreturn]] void fail(ErrorCode code, std::string_view what) const {
        throw_error(code, "{}: {}: {}", origin_, path(), what);
    }
    [[noreturn]] void fail(std::uint64_t place) const {
        throw_error(rules_.malformed, "{}:{}:{}: {}: not valid JSON", origin_, line_, place - line_start_ + 1, path());
    }
    void require(bool valid) const {
        if (!valid) fail(place());
    }

    JsonTape& tape_;
    const TextSource& next_;
    const std::string& origin_;
    const JsonRules& rules_;
    std::uint32_t last_open_ = 0, last_known_ = 0;                  ///< numbers of the keys that the rules name
    const char *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;  ///< the part that is read
    std::uint64_t passed_ = 0, line_ = 1, line_start_ = 0;
    std::string scratch_, text_;
    std::vector<Level> levels_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members_;
};

JsonTape::JsonTape(const TextSource& next, const std::string& origin, const JsonRules& rules) {
    JsonParser(*this, next, origin, rules).document();
}

JsonValue JsonTape::root() const {
    return {this, 0};
}

std::size_t JsonTape::slot(std::string_view wanted, std::uint32_t hash) const {
    std::size_t at = hash & (table_.size() - 1);
    while (table_[at].number != 0 && (table_[at].hash != hash || text(table_[at].number) != wanted))
        at = (at + 1) & (table_.size() - 1);
    return at;
}

std::uint32_t JsonTape::number_of(std::string_view wanted) const {
    return table_[slot(wanted, hash_of(wanted))].number;
}

std::uint32_t JsonTape::intern(std::string_view wanted) {
    if (2 * ends_.size() > table_.size()) {
        const std::vector<Entry> old = std::exchange(table_, std::vector<Entry>(4 * table_.size()));
        for (const Entry& entry : old) {
            std::size_t at = entry.hash & (table_.size() - 1);
            while (entry.number != 0 && table_[at].number != 0) at = (at + 1) & (table_.size() - 1);
            if (entry.number != 0) table_[at] = entry;
        }
    }
    const std::uint32_t hash = hash_of(wanted);
    Entry& entry = table_[slot(wanted, hash)];
    if (entry.number == 0) {
        entry = {hash, static_cast<std::uint32_t>(ends_.size())};
        characters_ += wanted;
        ends_.push_back(characters_.size());
    }
    return entry.number;
}

std::string_view JsonValue::text() const {
    if (!is_text()) fail_type();
    return tape_->text(word().payload);
}

std::int64_t JsonValue::integer() const {
    if (kind() == Kind::small) return static_cast<std::int32_t>(word().payload);
    if (is_truth()) return kind() == Kind::yes ? 1 : 0;
    if (kind() == Kind::real) throw_error(ErrorCode::model, "'{}' is not a 64-bit integer", format_number(real()));
    if (!is_integer()) fail_type();
    return static_cast<std::int64_t>(tape_->numbers_[word().payload]);
}

double JsonValue::real() const {
    return kind() == Kind::real ? std::bit_cast<double>(tape_->numbers_[word().payload])
                                : static_cast<double>(integer());
}

std::uint32_t JsonValue::text_number() const {
    if (!is_text()) fail_type();
    return word().payload;
}

JsonValue JsonValue::find_number(std::uint32_t key) const {
    if (!is_object() || key == 0) return {};
    const auto index = tape_->indices_.find(at_);
    if (index == tape_->indices_.end()) {
        for (const JsonValue member : *this) {
            if (member.key_number() == key) return member ? member : JsonValue();
        }
        return {};
    }
    // Texts are numbered as they come, and members are mostly asked for in their order.
    const auto& [members, last] = index->second;
    if (++last >= members.size() || members[last].first != key)
        last = static_cast<std::size_t>(std::ranges::lower_bound(members, std::pair(key, 0u)) - members.begin());
    if (last == members.size() || members[last].first != key) return {};
    const JsonValue found(tape_, members[last].second);
    return found ? found : JsonValue();
}

JsonValue JsonValue::find(std::string_view wanted) const {
    return is_object() ? find_number(tape_->number_of(wanted)) : JsonValue();
}

JsonValue JsonValue::present() const {
    if (!*this) throw Error(ErrorCode::model, "a field is missing");
    return *this;
}

JsonValue JsonValue::at(std::string_view wanted) const {
    if (!is_object()) fail_type();
    return find(wanted).present();
}

JsonValue JsonValue::at(const JsonValue& wanted) const {
    if (!is_object()) fail_type();
    return find_number(wanted.text_number()).present();
}

JsonValue JsonValue::begin() const {
    if (kind() < Kind::array) fail_type();
    return {tape_, at_ + 1};
}

std::size_t JsonValue::size() const {
    std::size_t count = 0;
    for (JsonValue member = begin(); !(member == end()); ++member) ++count;
    return count;
}

}  // namespace ftax
