#include "src/report/stream_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ftax/work.hpp"
#include "src/core/checked_math.hpp"

namespace ftax::report {

std::string typed_shape(const Tensor& tensor, const BoundShapes& bound) {
    if (!tensor.known_shape) return fmt::format("{}?", name_of(tensor.dtype));
    return fmt::format("{}[{}]", name_of(tensor.dtype), fmt::join(bound_type(tensor, bound).shape, ","));
}

namespace {

Dispatch dispatch_of_reshape(const Graph& graph, const Op& op) {
    if (op.source == "aten::view" || op.inputs.empty() || op.outputs.empty()) return Dispatch::view;
    const bool copied = !graph.tensors[op.inputs[0]].strides.empty() && graph.tensors[op.outputs[0]].strides.empty();
    const bool may_copy = op.source.starts_with("aten::reshape") || op.source == "aten::flatten";
    return copied && may_copy ? Dispatch::kernel : Dispatch::view;
}

/// Distinguishes kernels from views. A reshape that strides do not allow copies; `contiguous` of a contiguous tensor
/// does nothing.
/// Source: aten/src/ATen/native/TensorShape.cpp and TensorProperties.cpp.
Dispatch dispatch_of(const Graph& graph, const Op& op) {
    using enum OpKind;
    if (op.is(reshape)) return dispatch_of_reshape(graph, op);
    if (op.is(transpose, slice, split, expand)) return Dispatch::view;
    if (op.is(shape, identity)) return Dispatch::host;
    if (op.is(to_host, nonzero)) return Dispatch::sync;
    const bool contiguous = op.is(copy) && !op.inputs.empty() && graph.tensors[op.inputs[0]].strides.empty();
    return op.source == "aten::contiguous" && contiguous ? Dispatch::host : Dispatch::kernel;
}

}  // namespace

const Columns<StreamRow>& stream_columns() {
    using Row = StreamRow;
    const auto toned = [](auto member) {
        return [member](const Row& row) {
            return Value(row.*member, row.dispatch == Dispatch::kernel ? Tone::plain : Tone::quiet);
        };
    };
    // A view or a host operator moves nothing: its work is not shown.
    const auto of_kernel = [](std::int64_t Row::*member) {
        return [member](const Row& row) {
            return row.dispatch == Dispatch::kernel ? Value(row.*member) : Value(row.*member, "");
        };
    };
    static const Columns<Row> all{{"operator", "operator", Unit::text, toned(&Row::source)},
                                  {"dispatch", "dispatch", Unit::text, toned(&Row::dispatch)},
                                  {"module", "module", Unit::text, toned(&Row::module)},
                                  {"output", "output", Unit::text, toned(&Row::output)},
                                  {"flops", "FLOPs", Unit::amount, of_kernel(&Row::flops)},
                                  {"bytes", "bytes", Unit::bytes, of_kernel(&Row::bytes)}};
    return all;
}

std::string_view name_of(Dispatch dispatch) noexcept {
    static constexpr std::string_view names[] = {"kernel", "view", "host", "sync"};
    return names[static_cast<std::size_t>(dispatch)];
}

std::vector<StreamRow> op_stream(const Graph& graph, const ShapeBindings& bindings) {
    const BoundShapes bound = ftax::bind(graph, bindings);
    std::vector<StreamRow> stream;
    stream.reserve(graph.ops.size());
    for (const Op& op : graph.ops) {
        const Work work = work_of(graph, op, bound);
        stream.push_back({.source = op.source,
                          .module = op.module,
                          .output = op.outputs.empty() ? "" : typed_shape(graph.tensors[op.outputs[0]], bound),
                          .dispatch = dispatch_of(graph, op),
                          .flops = work.flops,
                          .bytes = checked_add(work.read_bytes, work.write_bytes)});
    }
    return stream;
}

}  // namespace ftax::report
