#include <fmt/format.h>

#include <filesystem>

#include "ftax/error.hpp"
#include "graphs/importers.hpp"
#include "graphs/onnx/importer.hpp"

namespace ftax {

bool looks_like_onnx(std::string_view bytes) noexcept {
    // A ModelProto begins with one of its fields: ir_version (1, varint) as every known exporter writes it, or another
    // of its fields with a matching wire type.
    if (bytes.empty()) return false;
    const auto key = static_cast<unsigned char>(bytes.front());
    const unsigned number = key >> 3;
    const unsigned wire = key & 7u;
    return (wire == 0 && (number == 1 || number == 5)) || (wire == 2 && number >= 2 && number <= 15 && number != 5);
}

Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options) {
    try {
        const onnx_import::ModelRecord model = onnx_import::read_model({bytes, 0}, options.max_nodes);
        Graph graph = onnx_import::Importer(model, options, std::filesystem::path(path).parent_path().string()).run();
        if (graph.name.empty()) graph.name = std::filesystem::path(path).stem().string();
        return graph;
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
    }
}

}  // namespace ftax
