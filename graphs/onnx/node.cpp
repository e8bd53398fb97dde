#include "graphs/onnx/node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax::onnx_import {
namespace {

constexpr std::int64_t largest_constant = 1024;

bool is_integral(DType type) {
    return !is_float(type) && type != DType::string && type != DType::unknown;
}

}  // namespace

std::string source_of(const NodeRecord& node) {
    return node.domain.empty() ? std::string(node.op_type) : fmt::format("{}::{}", node.domain, node.op_type);
}

TensorId Construction::add_tensor(std::string name, DType dtype, TensorRole role, std::optional<Dims> dims) {
    if (dims && dims->size() > max_rank)
        throw_error(ErrorCode::limit, "tensor '{}' has rank {}; at most {} is read", excerpt(name), dims->size(),
                    max_rank);
    graph.tensors.push_back({.name = std::move(name),
                             .dtype = dtype,
                             .role = role,
                             .known_shape = dims.has_value(),
                             .shape = std::move(dims).value_or(Dims{})});
    return static_cast<TensorId>(graph.tensors.size() - 1);
}

TensorId Construction::add_constant(std::string name, DType dtype, Dims dims, Scalars value) {
    const TensorId id = add_tensor(std::move(name), dtype, TensorRole::constant, std::move(dims));
    notes[id].value = std::make_unique<Scalars>(std::move(value));
    return id;
}

TensorId Construction::add_op(Op op, DType dtype, std::optional<Dims> dims) {
    op.outputs = {add_tensor(op.name, dtype, TensorRole::activation, std::move(dims))};
    append(std::move(op));
    return graph.ops.back().outputs.front();
}

void Construction::append(Op op) {
    for (const TensorId output : op.outputs) graph.tensors[output].producer = static_cast<OpId>(graph.ops.size());
    graph.ops.push_back(std::move(op));
}

TensorId Construction::add_record(std::string name, const TensorRecord& record) {
    const DType dtype = dtype_from_onnx(record.data_type);
    if (dtype == DType::unknown)
        warn(fmt::format("tensor '{}' has the unknown element type {}: its bytes count as 0", name, record.data_type));
    Dims dims;
    for (const std::int64_t dim : record.dims) {
        if (dim < 0)
            throw_error(ErrorCode::model, "initializer '{}' has the negative dimension {}", excerpt(name), dim);
        dims.push_back(math.constant(dim));
    }
    const auto count = math.static_count(dims);
    const bool small = *count <= 1 || (is_integral(dtype) && *count <= largest_constant);
    const TensorId id =
        add_tensor(std::move(name), dtype, small ? TensorRole::constant : TensorRole::weight, std::move(dims));
    notes[id].record = &record;
    return id;
}

const Scalars* Construction::value_of(TensorId tensor) {
    const auto noted = notes.find(tensor);
    if (noted == notes.end()) return nullptr;
    TensorNotes& note = noted->second;
    if (note.value || !note.record) return note.value.get();
    const TensorRecord& record = *note.record;
    const std::int64_t count = *math.static_count(graph.tensors[tensor].shape);
    if (count > max_followed_elements) return nullptr;
    note.record = nullptr;  // try only once
    std::string external;
    if (record.external) {
        auto bytes = read_external_data(*record.external, directory, count * bits_of(graph.tensors[tensor].dtype) / 8);
        if (!bytes) {
            std::string missing =
                fmt::format("the file of external data '{}' is missing: values that shapes need are unknown",
                            excerpt(record.external->location));
            if (std::ranges::count(graph.warnings, missing) == 0) warn(std::move(missing));
            return nullptr;
        }
        external = std::move(*bytes);
    }
    const auto numbers = read_numbers(record, count, external);
    if (!numbers) return nullptr;
    auto scalars = std::make_unique<Scalars>();
    scalars->reserve(numbers->size());
    for (const Number& number : *numbers) scalars->push_back(math.from(number));
    note.value = std::move(scalars);
    return note.value.get();
}

void Construction::spend(std::uint64_t units, std::string_view node) {
    spent += std::min(units, options->max_nodes + 1);
    if (spent <= options->max_nodes) return;
    throw_error(ErrorCode::limit, "node '{}': more than {} nodes once bodies are inlined (--max-nodes)", excerpt(node),
                options->max_nodes);
}

bool Construction::is_folded(TensorId tensor) const {
    if (tensor == no_tensor) return false;
    const TensorRole role = graph.tensors[tensor].role;
    return role == TensorRole::constant || role == TensorRole::weight;
}

Node::Node(Construction& construction_, const NodeRecord& record_, std::vector<AttributeRecord> attributes_,
           std::vector<TensorId> inputs_, std::int64_t opset_, std::string name_)
    : construction(construction_),
      record(record_),
      attributes(std::move(attributes_)),
      inputs(std::move(inputs_)),
      opset(opset_),
      name(std::move(name_)),
      op_inputs(inputs),
      outputs(record_.outputs.size()) {}

bool Node::has(std::size_t input) const noexcept {
    return input < inputs.size() && inputs[input] != no_tensor;
}

const Tensor& Node::tensor(std::size_t input) const {
    if (!has(input)) fail("required input {} is missing", input);
    return construction.graph.tensors[inputs[input]];
}

void Node::apply(const OpRow& row) {
    if (has(0) && !(row.flags & any_rank)) outputs[0] = {.dtype = dtype(0), .dims = dims(0)};
    row.rule(*this);
    if (row.type) outputs[0].dtype = *row.type;
    if (outputs[0].dims) output(0, outputs[0].dtype, std::move(*outputs[0].dims));
}

const Scalars* Node::value(std::size_t input) const {
    return has(input) ? construction.value_of(inputs[input]) : nullptr;
}

std::optional<Dims> Node::expressions(std::size_t input) const {
    const Scalars* scalars = value(input);
    return scalars ? std::optional(mapped(*scalars, ShapeMath::expression)) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> Node::integers_of(std::size_t input) const {
    const auto dims = expressions(input);
    if (!dims) return std::nullopt;
    std::vector<std::int64_t> result;
    for (const Expression e : *dims) {
        const auto constant = math().constant_value(e);
        if (!constant) return std::nullopt;
        result.push_back(*constant);
    }
    return result;
}

Expression Node::only(std::size_t input) const {
    const auto dims = expressions(input);
    return dims && dims->size() == 1 ? dims->front() : unknown_dim;
}

std::optional<Dims> Node::target_shape(std::size_t input) const {
    if (auto known = expressions(input)) return known;
    const auto rank = ranked(input) && this->rank(input) == 1 ? math().constant_value(dims(input)[0]) : std::nullopt;
    if (!rank || *rank < 0 || *rank > static_cast<std::int64_t>(max_rank)) return std::nullopt;
    return Dims(static_cast<std::size_t>(*rank), unknown_dim);
}

std::optional<double> Node::scalar(std::size_t input) const {
    const Scalars* scalars = value(input);
    if (!scalars || scalars->size() != 1) return std::nullopt;
    return math().number(scalars->front());
}

/// Files older than IR version 3 leave the type (AttributeProto.AttributeType) out.
const AttributeRecord* Node::typed(std::string_view key, std::int64_t type, std::string_view what) const {
    const AttributeRecord* found = attribute(key);
    if (found && found->type != type && found->type != 0) fail("attribute '{}' is not {}", key, what);
    return found;
}

std::int64_t Node::integer(std::string_view key, std::int64_t fallback) const {
    const AttributeRecord* found = typed(key, 2, "an integer");
    return found ? found->integer : fallback;
}

std::int64_t Node::required_integer(std::string_view key) const {
    if (!attribute(key)) fail("required attribute '{}' is missing", key);
    return integer(key, 0);
}

double Node::real(std::string_view key, double fallback) const {
    const AttributeRecord* found = typed(key, 1, "a float");
    return found ? static_cast<double>(found->real) : fallback;
}

std::string_view Node::text(std::string_view key, std::string_view fallback) const {
    const AttributeRecord* found = typed(key, 3, "a string");
    return found ? found->text : fallback;
}

std::optional<std::vector<std::int64_t>> Node::integers(std::string_view key) const {
    const AttributeRecord* found = typed(key, 7, "a list of integers");
    return found ? std::optional(found->integers) : std::nullopt;
}

std::optional<Dims> Node::constants(std::string_view key) const {
    const auto values = integers(key);
    if (!values) return std::nullopt;
    return mapped(*values, [&](std::int64_t value) { return math().constant(value); });
}

Node::List Node::list(std::string_view key, std::size_t input) const {
    if (has(input)) return {true, integers_of(input)};
    auto values = integers(key);
    const bool given = values.has_value();
    return {given, std::move(values)};
}

void Node::output(std::size_t index, DType dtype, Dims dims) {
    if (index >= outputs.size()) return;
    for (const Expression dim : dims) {
        const auto constant = math().constant_value(dim);
        if (constant && *constant < 0)
            fail("output '{}' gets the negative dimension {}", excerpt(record.outputs[index]), *constant);
    }
    outputs[index].dtype = dtype;
    outputs[index].dims = std::move(dims);
}

void Node::unknown_output(std::size_t index, DType dtype) {
    if (index < outputs.size()) outputs[index] = {.dtype = dtype};
}

void Node::value_output(std::size_t index, DType dtype, Dims dims, Scalars value) {
    output(index, dtype, std::move(dims));
    if (index < outputs.size()) outputs[index].value = std::move(value);
}

void Node::read_first(std::size_t count) {
    if (op_inputs.size() > count) op_inputs.resize(count);
}

TensorId Node::emit(OpKind op, std::string_view step, const std::vector<TensorId>& step_inputs,
                    std::vector<Attribute> step_attributes, DType dtype, Dims dims) {
    construction.spend(1, name);
    return construction.add_op({.kind = op,
                                .name = fmt::format("{}/{}_{}", name, step, emitted_++),
                                .source = source_of(record),
                                .inputs = step_inputs,
                                .attributes = std::move(step_attributes)},
                               dtype, std::move(dims));
}

void Node::fail(std::string_view what) const {
    throw_error(ErrorCode::model, "node '{}' ({}): {}", excerpt(name), excerpt(record.op_type), what);
}

}  // namespace ftax::onnx_import
