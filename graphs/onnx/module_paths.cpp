#include "graphs/onnx/module_paths.hpp"

#include <algorithm>

namespace ftax::onnx_import {
namespace {

/// Entries of a Python list of strings: "['', 'layer1', 'layer1.0']".
std::vector<std::string_view> python_strings(std::string_view text) {
    std::vector<std::string_view> entries;
    while (true) {
        const std::size_t open = text.find('\'');
        if (open == std::string_view::npos) return entries;
        const std::size_t close = text.find('\'', open + 1);
        if (close == std::string_view::npos) return entries;
        entries.push_back(text.substr(open + 1, close - open - 1));
        text.remove_prefix(close + 1);
    }
}

/// Modules entered on the way to a node, outermost first: "/layer1/layer1.0/conv1/Conv" → layer1, layer1.0,
/// layer1.0.conv1. A component that begins with the one before it replaces it.
std::vector<std::string> paths_of_name(std::string_view name) {
    std::vector<std::string> paths;
    const std::size_t end = name.rfind('/');
    if (!name.starts_with('/') || end == 0) return paths;
    std::string path;
    std::string_view last;
    std::string_view rest = name.substr(1, end - 1);
    while (!rest.empty()) {
        const std::size_t slash = rest.find('/');
        const std::string_view component = rest.substr(0, slash);
        rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
        const bool extends =
            !last.empty() && component.starts_with(last) && component.substr(last.size()).starts_with('.');
        if (extends) path.resize(path.size() - last.size());
        if (!path.empty() && path.back() != '.') path += '.';
        path += component;
        last = component;
        paths.push_back(path);
    }
    return paths;
}

}  // namespace

std::string module_of(const NodeRecord& node, const std::string& fallback) {
    const auto scopes = python_strings(metadata_of(node, "pkg.torch.onnx.name_scopes"));
    if (scopes.size() >= 2) return std::string(scopes[scopes.size() - 2]);  // the last entry is the operator itself
    const auto paths = paths_of_name(node.name);
    return paths.empty() ? fallback : paths.back();
}

ModuleTypes module_types(const std::vector<NodeRecord>& nodes) {
    ModuleTypes types;
    for (const NodeRecord& node : nodes) {
        const auto scopes = python_strings(metadata_of(node, "pkg.torch.onnx.name_scopes"));
        const auto classes = python_strings(metadata_of(node, "pkg.torch.onnx.class_hierarchy"));
        for (std::size_t i = 0; i + 1 < scopes.size() && i + 1 < classes.size(); ++i)
            types.emplace(scopes[i], classes[i]);
        if (!scopes.empty()) continue;
        for (std::string& path : paths_of_name(node.name)) types.emplace(std::move(path), std::string{});
    }
    return types;
}

void record_module_calls(Graph& graph, const ModuleTypes& types) {
    std::string previous;
    bool any = false;
    for (const Op& op : graph.ops) {
        if (op.module == previous) continue;
        // Every prefix of the path that the operator before was not inside is a new call.
        std::size_t end = 0;
        while (end < op.module.size()) {
            end = std::min(op.module.find('.', end + 1), op.module.size());
            const std::string_view path = std::string_view(op.module).substr(0, end);
            const bool inside = std::string_view(previous).starts_with(path) &&
                                (previous.size() == path.size() || previous[path.size()] == '.');
            if (inside) continue;
            // A list of modules ("layers" of "layers.0") is a part of paths, but never called.
            const auto type = types.find(path);
            if (end < op.module.size() && type == types.end()) continue;
            graph.module_calls.push_back({std::string(path), type == types.end() ? std::string{} : type->second});
            any = true;
        }
        previous = op.module;
    }
    if (any)
        graph.module_calls.insert(graph.module_calls.begin(),
                                  {"", types.contains("") ? types.find("")->second : std::string{}});
}

}  // namespace ftax::onnx_import
