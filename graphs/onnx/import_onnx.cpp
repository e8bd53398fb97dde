#include <filesystem>

#include "graphs/base/throw_error.hpp"
#include "graphs/ir/canonical/canonical.hpp"
#include "graphs/ir/strides.hpp"
#include "graphs/onnx/importer.hpp"

namespace ftax {

Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options,
                  const std::function<void()>& release, bool keep_batch) {
    try {
        onnx_import::ModelRecord model = onnx_import::read_model({bytes, 0}, options.max_nodes, release);
        const std::string directory = std::filesystem::path(path).parent_path().string();
        Graph graph = onnx_import::Importer(model, options, directory, keep_batch).run();
        const onnx_import::ModuleTypes types = onnx_import::module_types(model.graph.nodes);
        model.graph.nodes = {};
        canonicalize(graph, SpelledOut::keep,
                     [&](const Op& last, OpKind kind) { return onnx_import::taken_apart(last, kind, types); });
        onnx_import::restore_folded_layers(graph, types);
        onnx_import::share_embedding(graph, model.graph, directory);
        onnx_import::record_module_calls(graph, types);
        propagate_strides(graph);
        if (graph.name.empty()) graph.name = std::filesystem::path(path).stem().string();
        return graph;
    } catch (const Error& error) {
        throw_error(error.code(), "{}: {}", path, error.what());
    }
}

}  // namespace ftax
