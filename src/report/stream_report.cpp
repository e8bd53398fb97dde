#include "src/report/stream_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "ftax/work.hpp"
#include "src/core/checked_math.hpp"
#include "src/io/csv.hpp"
#include "src/io/json_document.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::string typed_shape(const Tensor& tensor, const BoundShapes& bound) {
    if (!tensor.known_shape) return fmt::format("{}?", name_of(tensor.dtype));
    return fmt::format("{}[{}]", name_of(tensor.dtype), fmt::join(bound_type(tensor, bound).shape, ","));
}

Dispatch dispatch_of_reshape(const Graph& graph, const Op& op) {
    if (op.source == "aten::view" || op.inputs.empty() || op.outputs.empty()) return Dispatch::view;
    const bool copied = !graph.tensors[op.inputs[0]].strides.empty() && graph.tensors[op.outputs[0]].strides.empty();
    const bool may_copy = op.source.starts_with("aten::reshape") || op.source == "aten::flatten";
    return copied && may_copy ? Dispatch::kernel : Dispatch::view;
}

std::string_view name_of(Dispatch dispatch) noexcept {
    switch (dispatch) {
        case Dispatch::kernel:
            return "kernel";
        case Dispatch::view:
            return "view";
        case Dispatch::host:
            return "host";
        case Dispatch::sync:
            break;
    }
    return "sync";
}

/// Tells kernels from views. A reshape that strides do not allow copies; `contiguous` of what is so does nothing.
/// Source: aten/src/ATen/native/TensorShape.cpp and TensorProperties.cpp.
Dispatch dispatch_of(const Graph& graph, const Op& op) {
    switch (op.kind) {
        case OpKind::reshape:
            return dispatch_of_reshape(graph, op);
        case OpKind::transpose:
        case OpKind::slice:
        case OpKind::split:
        case OpKind::expand:
            return Dispatch::view;
        case OpKind::shape:
        case OpKind::identity:
            return Dispatch::host;
        case OpKind::copy: {
            const bool contiguous = !op.inputs.empty() && graph.tensors[op.inputs[0]].strides.empty();
            return op.source == "aten::contiguous" && contiguous ? Dispatch::host : Dispatch::kernel;
        }
        case OpKind::to_host:
        case OpKind::nonzero:
            return Dispatch::sync;
        default:
            return Dispatch::kernel;
    }
}

}  // namespace

std::vector<StreamRow> op_stream(const Graph& graph, const ShapeBindings& bindings) {
    const BoundShapes bound = bind(graph, bindings);
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

std::string stream_table(const std::vector<StreamRow>& stream, Style style) {
    Table table({{"operator", Align::left},
                 {"dispatch", Align::left},
                 {"module", Align::left},
                 {"output", Align::left},
                 {"FLOPs"},
                 {"bytes"}});
    for (const StreamRow& row : stream) {
        const Tone tone = row.dispatch == Dispatch::kernel ? Tone::plain : Tone::quiet;
        const bool works = row.dispatch == Dispatch::kernel;
        table.add({{row.source, tone},
                   {std::string(name_of(row.dispatch)), tone},
                   {row.module, tone},
                   {row.output, tone},
                   {works ? count(static_cast<double>(row.flops)) : "", tone},
                   {works ? byte_size(static_cast<double>(row.bytes)) : "", tone}});
    }
    return table.print(style);
}

std::string stream_json(const std::vector<StreamRow>& stream) {
    auto rows = nlohmann::ordered_json::array();
    for (const StreamRow& row : stream) {
        rows.push_back({{"operator", row.source},
                        {"dispatch", name_of(row.dispatch)},
                        {"module", row.module},
                        {"output", row.output},
                        {"flops", row.flops},
                        {"bytes", row.bytes}});
    }
    return to_text(nlohmann::ordered_json{{"schema_version", 1}, {"stream", std::move(rows)}});
}

std::string stream_csv(const std::vector<StreamRow>& stream) {
    std::string text;
    append_csv_row(text, std::vector<std::string>{"operator", "dispatch", "module", "output", "flops", "bytes"});
    for (const StreamRow& row : stream) {
        append_csv_row(text,
                       std::vector<std::string>{row.source, std::string(name_of(row.dispatch)), row.module, row.output,
                                                std::to_string(row.flops), std::to_string(row.bytes)});
    }
    return text;
}

}  // namespace ftax::report
