#include "graphs/ir/control_flow.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/onnx/importer.hpp"

namespace ftax::onnx_import {
namespace {

/// Passes that a loop without a trip count is followed for while its condition holds.
constexpr std::int64_t max_passes = 1 << 16;
constexpr std::int64_t most_counted = 1'000'000;  ///< iterations; larger counts mean unlimited

}  // namespace

/// A Loop or Scan whose iterations are inlined in sequence.
struct Importer::Iteration {
    Scope& scope;  ///< scope of the node
    const Call& call;
    std::shared_ptr<const GraphRecord> body;
    std::int64_t passes = 0;  ///< number of iterations to inline
    Expression count{};       ///< iterations at run time; unknown_dim if data-dependent
    std::vector<TensorId> carried;
    std::vector<std::int64_t> output_axes;  ///< axes of the scan outputs, default 0
    // Loop
    bool is_loop = false;
    bool by_condition = false;  ///< no trip count: iterates while the condition is known to hold
    // Scan
    std::vector<TensorId> sources;
    std::vector<std::size_t> source_axes;
};

std::shared_ptr<const GraphRecord> Importer::body_of(const Call& call, std::string_view attribute) const {
    for (const AttributeRecord& a : call.attributes) {
        if (a.name != attribute || a.graph.empty()) continue;
        auto& body = bodies_[a.graph.front().data.data()];
        if (!body) body = std::make_shared<const GraphRecord>(read_graph(a.graph, options_.max_nodes));
        return body;
    }
    throw_error(ErrorCode::model, "node '{}' ({}): required attribute '{}' is missing", excerpt(call.name),
                excerpt(call.record.op_type), attribute);
}

std::unique_ptr<Scope> Importer::body_scope(Scope& outer, std::shared_ptr<const GraphRecord> body, std::string prefix) {
    if (outer.body_depth == max_body_depth)
        throw_error(ErrorCode::limit, "{}: bodies nested deeper than {} levels", excerpt(prefix), max_body_depth);
    construction_.spend(8 + body->initializers.size() + body->value_info.size() / 4 + outer.call_attributes.size(),
                        prefix);
    auto scope = std::make_unique<Scope>();
    scope->nodes = &body->nodes;
    scope->opsets = outer.opsets;
    scope->outer = &outer;
    scope->call_attributes = outer.call_attributes;
    scope->prefix = std::move(prefix);
    scope->module = outer.module;
    scope->body_depth = outer.body_depth + 1;
    scope->repeated = outer.repeated;
    for (const TensorRecord& record : body->initializers)
        scope->names.emplace(record.name, construction_.add_record(tensor_name(*scope, record.name), record));
    for (const ValueRecord& value : body->value_info) scope->declared.emplace(value.name, &value);
    for (const ValueRecord& value : body->outputs) scope->declared.emplace(value.name, &value);
    scope->body = std::move(body);
    return scope;
}

std::vector<TensorId> Importer::run_body(std::unique_ptr<Scope> scope, std::string_view what) {
    const std::vector<ValueRecord>& outputs = scope->body->outputs;
    Order& order = orders_[scope->body.get()];
    if (!order) order = order_of(*scope, names_of(outputs), what);
    scope->order = order;
    std::vector<TensorId> results;
    scope->finish = [&](Scope& done) {
        for (const ValueRecord& output : outputs) results.push_back(resolve(done, output.name));
    };
    const std::size_t below = scopes_.size();
    scopes_.push_back(std::move(scope));
    run_scopes(below);
    return results;
}

std::optional<double> Importer::number_of(TensorId tensor) {
    const Scalars* value = tensor == no_tensor ? nullptr : construction_.value_of(tensor);
    return value && value->size() == 1 ? construction_.math.number(value->front()) : std::nullopt;
}

bool Importer::import_control(Scope& scope, Call& call) {
    if (call.record.op_type == "If") return import_if(scope, call);
    if (call.record.op_type == "Loop") return import_loop(scope, call);
    if (call.record.op_type == "Scan") return import_scan(scope, call);
    construction_.warn(fmt::format("node '{}': {} is not inlined", call.name, call.record.op_type));
    return false;
}

bool Importer::import_if(Scope& scope, Call& call) {
    if (call.inputs.empty() || call.inputs[0] == no_tensor)
        throw_error(ErrorCode::model, "node '{}' (If): the condition is missing", excerpt(call.name));
    auto then_body = body_of(call, "then_branch");
    auto else_body = body_of(call, "else_branch");
    const auto number = number_of(call.inputs[0]);
    const std::optional<bool> condition = number ? std::optional(*number != 0) : std::nullopt;
    const bool taken = take_branch(construction_.graph, options_, call.name, condition, then_body->nodes.size(),
                                   else_body->nodes.size(), scope.repeated);
    auto inner = body_scope(scope, taken ? std::move(then_body) : std::move(else_body), call.name);
    const std::shared_ptr<const GraphRecord> body = inner->body;
    if (body->outputs.size() < call.record.outputs.size())
        throw_error(ErrorCode::model, "node '{}' (If): a branch has {} outputs, the node {}", excerpt(call.name),
                    body->outputs.size(), call.record.outputs.size());
    const std::vector<TensorId> results = run_body(std::move(inner), call.name);
    for (std::size_t i = 0; i < call.record.outputs.size(); ++i) scope.names[call.record.outputs[i]] = results[i];
    return true;
}

bool Importer::import_loop(Scope& scope, Call& call) {
    Iteration state{.scope = scope, .call = call, .body = body_of(call, "body"), .is_loop = true};
    const std::size_t inputs = call.inputs.size();
    const std::size_t carried = inputs > 2 ? inputs - 2 : 0;
    if (state.body->inputs.size() != carried + 2 || state.body->outputs.size() < carried + 1 ||
        call.record.outputs.size() + 1 > state.body->outputs.size()) {
        throw_error(ErrorCode::model, "node '{}' (Loop): inputs and outputs of node and body do not fit",
                    excerpt(call.name));
    }
    const bool has_count = inputs > 0 && call.inputs[0] != no_tensor;
    const bool has_condition = inputs > 1 && call.inputs[1] != no_tensor;
    if (inputs > 2) state.carried.assign(call.inputs.begin() + 2, call.inputs.end());
    const Scalars* count = has_count ? construction_.value_of(call.inputs[0]) : nullptr;
    state.count = count && count->size() == 1 ? ShapeMath::expression(count->front()) : unknown_dim;
    const auto limit = construction_.math.constant_value(state.count);
    const auto condition = has_condition ? number_of(call.inputs[1]) : std::nullopt;
    if (const auto given = given_passes(construction_.graph, options_, call.name)) {
        state.passes = *given;
        state.count = construction_.math.constant(*given);
    } else if (condition == 0) {
        state.passes = 0;
        state.count = construction_.math.constant(0);
    } else if (limit && *limit <= most_counted) {
        state.passes = std::max<std::int64_t>(*limit, 0);
    } else if (has_condition && (limit || !has_count)) {
        state.by_condition = true;
        state.passes = max_passes;
        state.count = unknown_dim;
    } else {
        state.passes = 1;
        warn_of_passes(state);
        if (limit) state.count = unknown_dim;
    }
    iterate(state);
    return true;
}

void Importer::warn_of_passes(const Iteration& state) {
    construction_.warn(
        fmt::format("node '{}': the number of passes depends on data; {} counted (--trip {}=N)", state.call.name,
                    state.passes == 1 ? "one pass is" : fmt::format("{} passes are", state.passes), state.call.name));
}

bool Importer::import_scan(Scope& scope, Call& call) {
    const auto integers = [&](std::string_view key) {
        const AttributeRecord* found = find_attribute(call.attributes, key);
        return found ? found->integers : std::vector<std::int64_t>{};
    };
    const auto fail = [&](std::string_view what) -> Error {
        return {ErrorCode::model, fmt::format("node '{}' (Scan): {}", excerpt(call.name), what)};
    };
    if (opset(scope, "") < 9) {
        construction_.warn(fmt::format("node '{}': Scan of operator set 8 is not inlined", call.name));
        return false;
    }
    const AttributeRecord* count = find_attribute(call.attributes, "num_scan_inputs");
    const std::int64_t scan_inputs = count ? count->integer : -1;
    if (scan_inputs < 1 || static_cast<std::size_t>(scan_inputs) > call.inputs.size())
        throw fail("num_scan_inputs does not fit the inputs");
    Iteration state{.scope = scope, .call = call, .body = body_of(call, "body")};
    const std::size_t carried = call.inputs.size() - static_cast<std::size_t>(scan_inputs);
    if (state.body->inputs.size() != call.inputs.size() || state.body->outputs.size() < carried ||
        call.record.outputs.size() > state.body->outputs.size()) {
        throw fail("inputs and outputs of node and body do not fit");
    }
    state.carried.assign(call.inputs.begin(), call.inputs.begin() + static_cast<std::ptrdiff_t>(carried));
    state.sources.assign(call.inputs.begin() + static_cast<std::ptrdiff_t>(carried), call.inputs.end());
    const auto axes = integers("scan_input_axes");
    for (std::size_t i = 0; i < state.sources.size(); ++i) {
        if (state.sources[i] == no_tensor) throw fail("a scan input is missing");
        const Tensor& source = construction_.graph.tensors[state.sources[i]];
        const auto rank = static_cast<std::int64_t>(source.shape.size());
        std::int64_t axis = i < axes.size() ? axes[i] : 0;
        if (!source.known_shape) return false;
        if (axis < -rank || axis >= rank) throw fail(fmt::format("axis {} does not exist in rank {}", axis, rank));
        state.source_axes.push_back(static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
    }
    state.output_axes = integers("scan_output_axes");
    state.count = construction_.graph.tensors[state.sources[0]].shape[state.source_axes[0]];
    const auto length = construction_.math.constant_value(state.count);
    state.passes = passes_of(construction_.graph, options_, call.name, length);
    if (options_.trip_counts.contains(call.name)) state.count = construction_.math.constant(state.passes);
    if (static_cast<std::uint64_t>(state.passes) > options_.max_nodes / 8)
        construction_.spend(options_.max_nodes, call.name);
    iterate(state);
    return true;
}

TensorId Importer::slice_of(const std::string& name, TensorId tensor, std::size_t axis) {
    construction_.spend(1, name);
    Dims dims = construction_.graph.tensors[tensor].shape;
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    return construction_.add_op({.kind = OpKind::slice,
                                 .name = name,
                                 .source = "Scan",
                                 .inputs = {tensor},
                                 .attributes = {{"axes", std::vector{static_cast<std::int64_t>(axis)}}}},
                                construction_.graph.tensors[tensor].dtype, std::move(dims));
}

TensorId Importer::stacked(const std::string& name, const std::vector<TensorId>& parts, std::int64_t axis,
                           Expression count) {
    construction_.spend(1 + parts.size() / 4, name);
    std::optional<Dims> dims;
    DType dtype = DType::unknown;
    if (!parts.empty()) {
        const Tensor& part = construction_.graph.tensors[parts.front()];
        dtype = part.dtype;
        const auto end = static_cast<std::int64_t>(part.shape.size());
        if (axis < 0) axis += end + 1;
        if (part.known_shape && axis >= 0 && axis <= end) {
            dims = part.shape;
            dims->insert(dims->begin() + axis, count);
        }
    }
    return construction_.add_op(
        {.kind = OpKind::concat, .name = name, .source = "stack", .inputs = parts, .attributes = {{"axis", axis}}},
        dtype, std::move(dims));
}

void Importer::iterate(Iteration& state) {
    const GraphRecord& body = *state.body;
    const std::string& name = state.call.name;
    ShapeMath& math = construction_.math;
    std::vector<std::vector<TensorId>> scanned(body.outputs.size() - state.carried.size() - state.is_loop);
    bool stopped = false;  // the body's condition is known to be false
    for (std::int64_t done = 0; done < state.passes && !stopped;) {
        auto inner = body_scope(state.scope, state.body, fmt::format("{}/{}", name, done));
        inner->repeated = inner->repeated || done > 0;
        auto input = body.inputs.begin();
        const auto bind = [&](TensorId tensor) { inner->names[(input++)->name] = tensor; };
        const auto input_name = [&] { return tensor_name(*inner, input->name); };
        if (state.is_loop) {
            const Scalar index = math.constant_value(state.count) ? math.integer(done) : Scalar{};
            bind(construction_.add_constant(input_name(), DType::i64, {}, {index}));
            bind(construction_.add_constant(input_name(), DType::boolean, {}, {math.integer(1)}));
        }
        for (const TensorId carried : state.carried) bind(carried);
        for (std::size_t i = 0; i < state.sources.size(); ++i)
            bind(slice_of(input_name(), state.sources[i], state.source_axes[i]));
        const std::vector<TensorId> results = run_body(std::move(inner), name);
        auto result = results.begin();
        ++done;
        if (state.is_loop) {
            const auto condition = number_of(*result++);
            stopped = condition == 0;
            if (state.by_condition && !condition) state.passes = done;
        }
        for (TensorId& carried : state.carried) carried = *result++;
        for (auto& parts : scanned) parts.push_back(*result++);
        if (stopped) state.count = math.constant(done);
        if (state.by_condition && !stopped && done == state.passes) warn_of_passes(state);
    }
    const auto& names = state.call.record.outputs;
    if (names.size() > state.carried.size() + scanned.size())
        throw_error(ErrorCode::model, "node '{}': more outputs than its body has", excerpt(name));
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].empty()) continue;
        TensorId& result = state.scope.names[names[i]];
        const std::size_t scan = i - state.carried.size();
        const std::int64_t axis = scan < state.output_axes.size() ? state.output_axes[scan] : 0;
        result = i < state.carried.size()
                     ? state.carried[i]
                     : stacked(tensor_name(state.scope, names[i]), scanned[scan], axis, state.count);
    }
}

}  // namespace ftax::onnx_import
