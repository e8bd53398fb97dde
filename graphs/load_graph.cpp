#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/input_shapes.hpp"
#include "graphs/pt2/import_pt2.hpp"
#include "src/core/embedded.hpp"

namespace ftax {
namespace {

constexpr std::string_view zoo_folder = "graphs/zoo/";
constexpr std::string_view zoo_suffix = ".txt";

/// Name of a zoo model's file without folder and suffix; empty for other embedded files.
std::string_view zoo_name(std::string_view path) {
    if (!path.starts_with(zoo_folder) || !path.ends_with(zoo_suffix)) return {};
    path.remove_prefix(zoo_folder.size());
    return path.substr(0, path.size() - zoo_suffix.size());
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
        }
    }
    return row.back();
}

[[noreturn]] void fail_unknown(std::string_view name) {
    std::vector<std::string> near = zoo_names();
    std::stable_sort(near.begin(), near.end(), [&](const auto& a, const auto& b) { return edit_distance(a, name) < edit_distance(b, name); });
    near.resize(std::min<std::size_t>(near.size(), 3));
    throw Error(ErrorCode::usage, fmt::format("no file and no zoo model '{}'; near names: {} ('zoo:' lists all)", name, fmt::join(near, ", ")));
}

Graph load_zoo(std::string_view name) {
    for (const EmbeddedFile& file : embedded_files()) {
        if (zoo_name(file.path) == name) return parse_text_graph(file.content, fmt::format("zoo:{}", name));
    }
    fail_unknown(name);
}

enum class Format { zip, pickle, text, unknown };

/// Tells formats apart by their first bytes.
Format format_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::array<char, 256> head{};
    file.read(head.data(), head.size());
    const std::string_view bytes(head.data(), static_cast<std::size_t>(file.gcount()));
    if (!file && bytes.empty()) throw Error(ErrorCode::model, fmt::format("{}: empty or unreadable file", path));
    if (bytes.starts_with("PK")) return Format::zip;
    if (bytes[0] == '\x80' && bytes.size() > 1 && bytes[1] <= 5) return Format::pickle;
    const bool printable = std::all_of(bytes.begin(), bytes.end(), [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
    return printable ? Format::text : Format::unknown;
}

Graph load_text(const std::string& path, const ImportOptions& options) {
    if (std::filesystem::file_size(path) > options.max_bytes) {
        throw Error(ErrorCode::limit, fmt::format("{}: larger than {} bytes (--max-bytes)", path, options.max_bytes));
    }
    std::ifstream file(path, std::ios::binary);
    return parse_text_graph(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

Graph load_file(const std::string& path, const ImportOptions& options) {
    switch (format_of(path)) {
        case Format::zip: return import_pt2(path, options);
        case Format::text: return load_text(path, options);
        case Format::pickle:
            throw Error(ErrorCode::model, fmt::format("{}: a pickle, not a graph; export the model with torch.export.save", path));
        case Format::unknown: break;
    }
    throw Error(ErrorCode::model, fmt::format("{}: neither a .pt2 archive nor a text graph", path));
}

}  // namespace

std::vector<std::string> zoo_names() {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_files()) {
        if (const std::string_view name = zoo_name(file.path); !name.empty()) names.emplace_back(name);
    }
    return names;
}

Graph load_graph(const std::string& model, const ImportOptions& options) {
    constexpr std::string_view zoo_prefix = "zoo:";
    std::error_code ignored;
    Graph graph = model.starts_with(zoo_prefix)                      ? load_zoo(std::string_view(model).substr(zoo_prefix.size()))
                  : std::filesystem::is_regular_file(model, ignored) ? load_file(model, options)
                                                                     : load_zoo(model);
    apply_input_shapes(graph, options.input_shapes);
    return graph;
}

}  // namespace ftax
