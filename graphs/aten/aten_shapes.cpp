#include "graphs/aten/aten_call.hpp"
#include "graphs/aten/aten_table.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax {
namespace aten_shapes {

std::string_view Call::name() const {
    const std::string_view target = call_.target;
    return target.substr(target.rfind(':') + 1);
}

std::vector<const Tensor*> Call::tensors(std::string_view argument) const {
    std::vector<const Tensor*> result;
    for (const AtenArgument& read : call_.arguments) {
        if (!argument.empty() && &read != call_.find(argument)) continue;
        for (const TensorId id : present(read.tensors)) result.push_back(&graph_.tensors[id]);
    }
    return result;
}

const Tensor& Call::first() const {
    const auto all = tensors();
    if (all.empty()) fail("it reads no tensor");
    return *all.front();
}

const Tensor& Call::tensor(std::string_view argument) const {
    const TensorId id = call_.tensor(argument);
    if (id == no_tensor) fail("argument '{}' is not a tensor", argument);
    return graph_.tensors[id];
}

const Tensor& Call::output() const {
    if (call_.outputs.empty()) fail("it has no output");
    return graph_.tensors[call_.outputs[0]];
}

Shape Call::per_dimension(std::string_view argument, std::size_t dimensions, const Shape& fallback) const {
    Shape values = sizes(argument);
    if (values.empty()) values = fallback;
    if (values.size() == 1) values.resize(dimensions, values[0]);
    if (values.size() != dimensions) fail("'{}' has {} values for {} dimensions", argument, values.size(), dimensions);
    return values;
}

std::vector<WindowAxis> Call::windows(const Shape& kernel, const Shape& stride) const {
    const Shape strides = per_dimension("stride", kernel.size(), stride);
    const Shape pads = per_dimension("padding", kernel.size(), {constant(0)});  // "same" and "valid" are no numbers
    const Shape dilations = per_dimension("dilation", kernel.size(), {constant(1)});
    const AtenArgument* padding = call_.find("padding");
    std::vector<WindowAxis> result;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
        WindowAxis& window = result.emplace_back(WindowAxis{kernel[i], strides[i], dilations[i], pads[i], pads[i]});
        if (!padding || padding->text != "same") continue;
        const Expression total = math().multiply(math().add(kernel[i], -1), dilations[i]);
        window.pad_begin = math().floor_divide(total, 2);
        window.pad_end = math().subtract(total, window.pad_begin);
    }
    return result;
}

std::vector<WindowAxis> Call::conv_windows() const {
    const Shape& filter = tensor("weight").shape;
    if (filter.size() < 3) fail("the weight needs at least three dimensions");
    return windows(Shape(filter.begin() + 2, filter.end()), {constant(1)});
}

std::vector<WindowAxis> Call::pool_windows() const {
    const Shape kernel = per_dimension("kernel_size", spatial_dimensions(), {});
    return windows(kernel, kernel);
}

std::size_t Call::spatial_dimensions() const {
    const std::size_t at = name().find_first_of("123");
    return at == std::string_view::npos ? 2 : static_cast<std::size_t>(name()[at] - '0');
}

Shape Call::sizes(std::string_view argument) const {
    const AtenArgument* found = call_.find(argument);
    if (!found) return {};
    if (!found->sizes.empty()) return found->sizes;
    return mapped(found->integers, [&](std::int64_t value) { return constant(value); });
}

std::vector<std::int64_t> Call::swapped(std::size_t rank) const {
    std::vector<std::int64_t> perm = all_axes(rank);
    const auto at = [&](std::string_view dim, std::string_view alias, std::int64_t fallback) -> std::int64_t& {
        return perm[axis(dim, integer(alias, fallback), rank)];
    };
    if (rank > 1) std::swap(at("dim0", "axis0", -2), at("dim1", "axis1", -1));
    return perm;
}

std::vector<std::int64_t> Call::reduced_axes() const {
    const std::size_t rank = first().shape.size();
    const std::vector<std::int64_t> given = call_.axes("dim", rank);
    return given.empty() ? all_axes(rank) : given;
}

Call::Along Call::along(std::string_view argument, std::int64_t fallback) const {
    const Shape& shape = first().shape;
    if (shape.empty()) fail("needs a dimension");
    return {shape, axis(argument, fallback, shape.size())};
}

DType Call::dtype(DType fallback) const {
    const AtenArgument* found = call_.find("dtype");
    return found && found->integers.size() == 1 ? dtype_of_scalar_type(found->integers[0]) : fallback;
}

}  // namespace aten_shapes

std::optional<std::vector<AtenOutput>> infer_aten(Graph& graph, const AtenCall& call) {
    const AtenRow* row = find_aten_row(call.target);
    if (!row || (!row->shape && !row->edit)) return std::nullopt;
    const aten_shapes::Call context(graph, call);
    for (const Tensor* tensor : context.tensors())
        if (!tensor->known_shape) return std::nullopt;
    if (row->edit) {
        aten_shapes::Shape shape = context.first().shape;
        row->edit(context, shape);
        return context.with_shape(std::move(shape));
    }
    aten_shapes::Outputs outputs = row->shape(context);
    if (row->type) outputs.at(0).dtype = *row->type;
    return outputs;
}

}  // namespace ftax
