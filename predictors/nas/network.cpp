#include "predictors/nas/network.hpp"

#include <fmt/format.h>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax::nas {

PredictOptions libraries_of(const FrameworkProfile& framework, PredictOptions options) {
    const bool is_default = options.libraries.cudnn == LibraryVersions{}.cudnn;
    if (framework.host == measured_host && is_default) options.libraries.cudnn = 7;
    return options;
}

BuiltNetwork build_network(const Space& space, std::span<const int> choices, std::span<const Block> chain) {
    constexpr std::size_t max_nodes = 1'000'000;
    GraphBuilder net{std::string(space.name())};
    BuiltNetwork built;
    std::vector<TensorId> live = space.inputs(net, choices);
    for (const Block& block : chain) {
        space.build(net, block, live);
        built.ends.push_back(net.graph().ops.size());
        if (built.ends.back() > max_nodes)
            throw_error(ErrorCode::limit, "{}: more than {} operators", space.name(), max_nodes);
    }
    if (net.graph().ops.empty()) throw_error(ErrorCode::model, "{}: the network is empty", space.name());
    built.graph = net.finish({live[0]});
    return built;
}

ShapeBindings dims_of(const Space& space, const ShapeBindings& given) {
    ShapeBindings dims = space.usual_dims();
    for (const auto& [name, value] : given) {
        const auto usual = dims.find(name);
        if (usual == dims.end()) {
            std::vector<std::string> open;
            for (const auto& [known, _] : dims) open.push_back(known);
            throw_error(ErrorCode::usage, "the space {} leaves no dimension '{}' open (those are: {})", space.name(),
                        excerpt(name), open.empty() ? "none" : fmt::format("{}", fmt::join(open, ", ")));
        }
        if (value < 1) throw_error(ErrorCode::usage, "dimension '{}' must be at least 1, not {}", name, value);
        usual->second = value;
    }
    return dims;
}

Graph build_graph(const Space& space, std::span<const int> choices) {
    std::vector<Block> chain;
    space.blocks(choices, chain);
    return build_network(space, choices, chain).graph;
}

TimedNetwork timed_network(const BuiltNetwork& built, Predictor& predictor, ShapeBindings dims, std::int64_t batch) {
    dims["batch"] = batch;
    std::vector<LaunchCosts> launches;
    static_cast<void>(predictor.predict(dims, launches));
    TimedNetwork timed;
    timed.blocks.resize(built.ends.size());
    std::size_t block = 0;
    for (const LaunchCosts& op : launches) {
        TimedOperation operation{op.host_s, {op.boost_s, op.power_limited_s, op.throttling_s}, op.kernels};
        if (op.op == no_op) {
            timed.beginning.push_back(operation);
            continue;
        }
        // Rewriting keeps the tensors; the writer of a tensor in the built graph identifies its block.
        const Op& launched = predictor.graph().ops[op.op];
        const TensorId result = launched.outputs.empty() ? no_tensor : launched.outputs[0];
        const OpId as_built = result < built.graph.tensors.size() ? built.graph.tensors[result].producer : no_op;
        operation.factor = op.factor;
        while (as_built != no_op && block + 1 < built.ends.size() && as_built >= built.ends[block]) ++block;
        timed.blocks[block].push_back(operation);
    }
    return timed;
}

}  // namespace ftax::nas
