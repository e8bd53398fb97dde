#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as it lies in memory");

/// Types of values, in the file's numbering.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
constexpr std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr std::size_t width_of(GgufType type) {
    return widths[static_cast<std::size_t>(type)];
}

/// The integers and texts of a header by key, and the lengths of its lists of texts.
class GgufHeader {
  public:
    GgufHeader(std::string_view bytes, const std::string& origin) : all_(bytes), left_(bytes), origin_(origin) {
        constexpr std::size_t magic_bytes = 4;
        static_cast<void>(take(magic_bytes));
        const auto version = number<std::uint32_t>();
        if (version != 2 && version != 3) fail(fmt::format("has GGUF version {}; ftax reads 2 and 3", version));
        const auto tensors = number<std::uint64_t>(), keys = number<std::uint64_t>();
        for (std::uint64_t i = 0; i < keys; ++i) {
            const std::string key(text());
            read_value(key);
        }
        for (std::uint64_t i = 0; i < tensors && !has_head; ++i) {
            has_head = text() == "output.weight";
            static_cast<void>(take(number<std::uint32_t>() * sizeof(std::uint64_t)));  // its shape
            static_cast<void>(take(sizeof(std::uint32_t) + sizeof(std::uint64_t)));    // its type and place
        }
    }

    std::map<std::string, std::int64_t, std::less<>> integers;
    std::map<std::string, std::string, std::less<>> texts;
    std::set<std::string, std::less<>> differing;  ///< lists of several sizes
    bool has_head = false;                         ///< a head of its own; else that of the embedding

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw_error(ErrorCode::model, "{}: byte {}: the file {}", origin_, all_.size() - left_.size(), what);
    }

    std::string_view take(std::uint64_t count) {
        if (count > left_.size()) fail("ends inside its header");
        const std::string_view taken = left_.substr(0, count);
        left_.remove_prefix(count);
        return taken;
    }

    template <class T>
    T number() {
        T value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }

    std::string_view text() { return take(number<std::uint64_t>()); }

    /// Sizes are all positive; other numbers are passed over.
    void read_number(const std::string& key, GgufType type) {
        const std::string_view raw = take(width_of(type));
        std::int64_t value = 0;
        std::memcpy(&value, raw.data(), raw.size());
        if (type == GgufType::f32 || type == GgufType::f64) return;
        if (!integers.emplace(key, value).second && integers[key] != value) differing.insert(key);
    }

    GgufType type() {
        const auto named = number<std::uint32_t>();
        if (named >= std::size(widths)) fail(fmt::format("has a value of unknown type {}", named));
        return static_cast<GgufType>(named);
    }

    void read_value(const std::string& key) {
        const GgufType own = type();
        if (own == GgufType::text) {
            texts[key] = text();
        } else if (own == GgufType::array) {
            read_array(key);
        } else {
            read_number(key, own);
        }
    }

    /// Of a list of texts its length counts, of one with a number for each layer the numbers.
    void read_array(const std::string& key) {
        constexpr std::uint64_t most_layers = 1024;
        const GgufType of = type();
        const auto length = number<std::uint64_t>();
        if (of == GgufType::array) fail("has a list of lists");
        if (length > left_.size()) static_cast<void>(take(length));  // each takes a byte or more
        if (of == GgufType::text) integers[key] = static_cast<std::int64_t>(length);
        for (std::uint64_t i = 0; i < length; ++i) {
            if (of != GgufType::text && length <= most_layers) {
                read_number(key, of);
            } else {
                static_cast<void>(of == GgufType::text ? text() : take(width_of(of)));
            }
        }
    }

    std::string_view all_, left_;
    const std::string& origin_;
};

}  // namespace

std::string config_of_gguf(std::string_view bytes, const std::string& origin) {
    const GgufHeader header(bytes, origin);
    const auto architecture = header.texts.find("general.architecture");
    if (architecture == header.texts.end())
        throw_error(ErrorCode::model, "{}: general.architecture is missing: give the first part of the model", origin);
    nlohmann::json config{{"tie_word_embeddings", !header.has_head}, {"torch_dtype", "float16"}};
    const auto format = header.integers.find("general.file_type");
    const std::string type = format == header.integers.end() ? "" : std::to_string(format->second);
    if (!type.empty()) config["quantization_config"] = {{"quant_method", "gguf"}, {"type", type}};
    std::vector<std::string> known;
    for_each_data_row(embedded_text("graphs/config/gguf.txt"), [&](DataRow row) {
        const std::string_view what = row.text(), name = row.text(), value = row.text();
        if (what == "architecture") {
            known.emplace_back(name);
            if (name == architecture->second) config["model_type"] = value;
        } else if (what == "field") {
            const std::string key = fmt::format("{}.{}", architecture->second, name);
            if (header.differing.contains(key))
                throw_error(ErrorCode::model, "{}: {}: layers of several sizes; give the model's config.json", origin,
                            excerpt(key));
            if (const auto found = header.integers.find(key); found != header.integers.end())
                config[value] = found->second;
        } else if (type == name) {
            if (what == "format") config["quantization_config"]["type"] = value;
            if (what == "type") config["torch_dtype"] = value, config.erase("quantization_config");
        }
    });
    if (!config.contains("model_type"))
        throw_error(ErrorCode::model, "{}: general.architecture: '{}' is not among {}; give the model's config.json",
                    origin, excerpt(architecture->second), fmt::join(known, ", "));
    if (config.contains("num_experts") && config["model_type"] == "llama") config["model_type"] = "mixtral";
    if (const auto tokens = header.integers.find("tokenizer.ggml.tokens"); tokens != header.integers.end())
        config.emplace("vocab_size", tokens->second);
    return config.dump();
}

}  // namespace ftax
