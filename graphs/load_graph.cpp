#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/file_format.hpp"
#include "graphs/input_shapes.hpp"
#include "graphs/mapped_file.hpp"
#include "graphs/onnx/import_onnx.hpp"
#include "graphs/pt2/import_pt2.hpp"
#include "graphs/torchscript/import_torchscript.hpp"
#include "graphs/vary_batch.hpp"
#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"

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

[[noreturn]] void fail_unknown(std::string_view name) {
    using std::filesystem::file_type;
    std::error_code ignored;
    const auto found = std::filesystem::status(name, ignored).type();
    if (found == file_type::directory || found == file_type::fifo || found == file_type::character) {
        throw Error(ErrorCode::usage, fmt::format("{}: a model is a file, this is a {}", name,
                                                  found == file_type::directory ? "folder"
                                                  : found == file_type::fifo    ? "pipe"
                                                                                : "device"));
    }
    const std::vector<std::string> near = near_names(name, zoo_names());
    throw Error(ErrorCode::usage, fmt::format("no file and no zoo model '{}'{}{} ('zoo:' lists all)", name,
                                              near.empty() ? "" : "; did you mean ", fmt::join(near, " or ")));
}

Graph load_zoo(std::string_view name) {
    if (name.empty()) {
        throw Error(ErrorCode::usage, fmt::format("the zoo holds {}", fmt::join(zoo_names(), ", ")));
    }
    const std::string_view text = embedded_text(fmt::format("{}{}.txt", zoo_folder, name));
    if (text.empty()) fail_unknown(name);
    return parse_text_graph(text, fmt::format("zoo:{}", name));
}

bool holds_torchscript(const std::string& path, const ImportOptions& options) {
    try {
        return is_torchscript(Archive(path, options.max_bytes));
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
    }
}

Graph load_file(const std::string& path, const ImportOptions& options) {
    const MappedFile file(path);
    if (file.bytes().size() > options.max_bytes) {
        throw Error(ErrorCode::limit, fmt::format("{}: {} bytes, more than {} (--max-bytes)", path, file.bytes().size(),
                                                  options.max_bytes));
    }
    const FileFormat format = format_of(file.bytes());
    switch (format) {
        case FileFormat::zip:
            return holds_torchscript(path, options) ? import_torchscript(path, options) : import_pt2(path, options);
        case FileFormat::onnx:
            return import_onnx(file.bytes(), path, options, [&] { file.release(); });
        case FileFormat::text:
            return parse_text_graph(file.bytes(), path);
        case FileFormat::pickle:
            throw Error(ErrorCode::model,
                        fmt::format("{}: a pickle, not a graph; export the model with torch.export.save", path));
        default:
            break;
    }
    throw Error(ErrorCode::model,
                fmt::format("{}: byte 0: the file is {}; ftax reads ONNX, .pt2, TorchScript and text graphs", path,
                            description_of(format)));
}

void vary_fixed_batch(Graph& graph) {
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    if (std::find(symbols.begin(), symbols.end(), "batch") != symbols.end()) return;
    try {
        vary_batch(graph, graph.expressions.symbol("batch"));
        graph.warnings.push_back("the file is for one batch size; its leading dimension was made to vary");
    } catch (const Error& error) {
        graph.warnings.push_back(error.what());
    }
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
    Graph graph = model.starts_with(zoo_prefix) ? load_zoo(std::string_view(model).substr(zoo_prefix.size()))
                  : std::filesystem::is_regular_file(model, ignored) ? load_file(model, options)
                                                                     : load_zoo(model);
    apply_input_shapes(graph, options.input_shapes);
    if (options.vary_batch) vary_fixed_batch(graph);
    return graph;
}

}  // namespace ftax
