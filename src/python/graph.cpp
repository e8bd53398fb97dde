#include "ftax/graph.hpp"

#include <fmt/format.h>

#include "ftax/error.hpp"
#include "ftax/graph_builder.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "src/python/bindings.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::python {
namespace {

Graph load(const std::string& model, const std::vector<std::string>& shapes,
           const std::map<std::string, std::int64_t>& trips, bool strict, bool vary_batch, bool unsupported_is_error,
           std::uint64_t max_bytes, std::uint64_t max_nodes) {
    ImportOptions options{.trip_counts = trips,
                          .max_bytes = max_bytes,
                          .max_nodes = max_nodes,
                          .strict = strict,
                          .vary_batch = vary_batch,
                          .unsupported_is_error = unsupported_is_error};
    for (const std::string& shape : shapes) options.input_shapes.push_back(scenario::parse_input_shape(shape));
    return load_graph(model, options);
}

std::vector<std::string> texts(const Graph& graph, const std::vector<Expression>& shape) {
    std::vector<std::string> dimensions;
    for (const Expression e : shape) dimensions.push_back(graph.expressions.to_string(e));
    return dimensions;
}

nb::list tensors(const Graph& graph, const std::vector<TensorId>& ids) {
    nb::list list;
    for (const TensorId id : ids) {
        const Tensor& tensor = graph.tensors[id];
        list.append(nb::make_tuple(tensor.name, std::string(name_of(tensor.dtype)), texts(graph, tensor.shape)));
    }
    return list;
}

std::vector<std::map<std::string, std::string>> operators(const Graph& graph) {
    std::vector<std::map<std::string, std::string>> list;
    for (const Op& op : graph.ops)
        list.push_back(
            {{"name", op.name}, {"kind", std::string(name_of(op.kind))}, {"source", op.source}, {"module", op.module}});
    return list;
}

DType dtype_of(const std::string& name) {
    const auto dtype = dtype_from_name(name);
    if (!dtype) throw nb::value_error(fmt::format("unknown element type '{}'", name).c_str());
    return *dtype;
}

template <auto method>
TensorId pool(GraphBuilder& net, TensorId x, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    return (net.*method)(x, {kernel, stride, pad, 1, 1});
}

}  // namespace

void bind_graph(nb::module_& module) {
    nb::class_<Graph>(module, "Graph", "A network: operators in execution order, shapes symbolic. Immutable.")
        .def_ro("name", &Graph::name)
        .def_ro("format", &Graph::format)
        .def_ro("warnings", &Graph::warnings, "What the importer had to assume.")
        .def_prop_ro(
            "symbols", [](const Graph& g) { return g.expressions.symbols(); }, "Dimensions left open.")
        .def_ro("other_names", &Graph::other_names, "Symbols by the names that the file gives them.")
        .def_prop_ro(
            "inputs", [](const Graph& g) { return tensors(g, g.inputs); }, "(name, element type, shape) each")
        .def_prop_ro("outputs", [](const Graph& g) { return tensors(g, g.outputs); })
        .def_prop_ro("operators", operators, "A dict per operator: name, kind, source, module.")
        .def("__len__", [](const Graph& g) { return g.ops.size(); })
        .def("to_text", &to_text, Release(), "The graph as text; Graph.from_text reads it back.")
        .def_static(
            "from_text", [](const std::string& text) { return parse_text_graph(text); }, "text"_a, Release())
        .def("__repr__",
             [](const Graph& g) { return fmt::format("<ftax.Graph {}: {} operators>", g.name, g.ops.size()); });

    const ImportOptions defaults;
    module.def("load_graph", load, "model"_a, nb::kw_only(), "shapes"_a = std::vector<std::string>{},
               "trips"_a = std::map<std::string, std::int64_t>{}, "strict"_a = false, "vary_batch"_a = false,
               "unsupported_is_error"_a = false, "max_bytes"_a = defaults.max_bytes, "max_nodes"_a = defaults.max_nodes,
               Release(),
               "Loads a model: a file (.onnx, .pt2, .pt, .txt; detected by content) or a zoo name.\n\n"
               "shapes: 'INPUT:4x3x224x224' or 'INPUT:batchx3x224x224'; trips: trip counts of loops by name.\n\n"
               ">>> ftax.load_graph('resnet50').symbols\n['batch']");
    module.def("zoo", &zoo_names, "The same as models().\n\n>>> ftax.zoo() == ftax.models()\nTrue");
    module.def("models", &zoo_names, "Names of the built-in models.\n\n>>> 'resnet50' in ftax.models()\nTrue");

    nb::class_<GraphBuilder>(module, "GraphBuilder",
                             "Builds a Graph operator by operator, as a model's forward function would. Tensors are "
                             "integers; dimensions are integers or expressions in text ('batch').")
        .def(nb::init<std::string>(), "name"_a)
        .def(
            "input",
            [](GraphBuilder& net, const std::string& name, const std::vector<std::string>& shape,
               const std::string& dtype) { return net.input(name, shape, dtype_of(dtype)); },
            "name"_a, "shape"_a, "dtype"_a = "f32")
        .def(
            "conv",
            [](GraphBuilder& net, TensorId x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
               std::int64_t pad, std::int64_t dilation, std::int64_t groups, bool bias) {
                return net.conv(x, channels, {kernel, stride, pad, dilation, groups}, bias);
            },
            "x"_a, "channels"_a, "kernel"_a = 1, "stride"_a = 1, "pad"_a = 0, "dilation"_a = 1, "groups"_a = 1,
            "bias"_a = false)
        .def("linear", &GraphBuilder::linear, "x"_a, "features"_a, "bias"_a = true)
        .def("matmul", &GraphBuilder::matmul, "a"_a, "b"_a)
        .def("batch_norm", &GraphBuilder::batch_norm, "x"_a)
        .def("layer_norm", &GraphBuilder::layer_norm, "x"_a)
        .def("softmax", &GraphBuilder::softmax, "x"_a, "axis"_a = -1)
        .def("embedding", &GraphBuilder::embedding, "indices"_a, "rows"_a, "width"_a)
        .def("max_pool", pool<&GraphBuilder::max_pool>, "x"_a, "kernel"_a, "stride"_a = 1, "pad"_a = 0)
        .def("average_pool", pool<&GraphBuilder::average_pool>, "x"_a, "kernel"_a, "stride"_a = 1, "pad"_a = 0)
        .def("global_average_pool", &GraphBuilder::global_average_pool, "x"_a)
        .def("pointwise", &GraphBuilder::pointwise, "function"_a, "inputs"_a)
        .def("relu", &GraphBuilder::relu, "x"_a)
        .def("add", &GraphBuilder::add, "a"_a, "b"_a)
        .def("concat", &GraphBuilder::concat, "inputs"_a, "axis"_a)
        .def("reshape", &GraphBuilder::reshape, "x"_a, "shape"_a)
        .def("flatten", &GraphBuilder::flatten, "x"_a, "first_axis"_a = 1)
        .def("transpose", &GraphBuilder::transpose, "x"_a, "perm"_a)
        .def(
            "shape",
            [](GraphBuilder& net, TensorId x) {
                if (x >= net.graph().tensors.size()) throw Error(ErrorCode::model, "no tensor of this graph");
                return texts(net.graph(), net.shape(x));
            },
            "x"_a)
        .def("finish", &GraphBuilder::finish, "outputs"_a,
             "Ends the graph and returns it; the builder is empty afterwards.");
}

}  // namespace ftax::python
