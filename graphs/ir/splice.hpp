#pragma once

#include <map>
#include <string>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Appends the tensors, modules and operators of `part` to a graph, as the module `path`. `ids` has the tensor that
/// stands for each of the part's, no_tensor for those to append, and then those as well; symbols of the part become
/// `sizes`, tensors of the type `own` have the type `type`.
void splice(Graph& whole, const Graph& part, std::vector<TensorId>& ids, const std::string& path,
            const std::map<std::string, Expression, std::less<>>& sizes, DType own, DType type);

/// Notes the sizes of a tensor of `whole` under what input `i` of the part calls them.
void name_sizes(const Graph& part, std::size_t i, TensorId given, const Graph& whole,
                std::map<std::string, Expression, std::less<>>& sizes);

/// A path below a module, which may be the whole network.
[[nodiscard]] inline std::string path_below(const std::string& module, const std::string& name) {
    return module.empty() || name.empty() ? module + name : module + "." + name;
}

}  // namespace ftax
