#include "src/core/control_flow.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ftax/error.hpp"
#include "graphs/onnx/importer.hpp"
#include "graphs/onnx/node_order.hpp"
#include "src/core/excerpt.hpp"

namespace ftax::onnx_import {
namespace {

/// Passes that a loop without a trip count is followed for while its condition holds.
constexpr std::int64_t max_passes = 1 << 16;

}  // namespace

/// A Loop or Scan while its passes are inlined one after another.
struct Importer::Iteration {
    Scope* scope = nullptr;  ///< where the node stands
    const NodeRecord* record = nullptr;
    std::string name;
    std::shared_ptr<const GraphRecord> body;
    std::int64_t passes = 0;  ///< how many passes to inline
    Expression count;         ///< how many the run makes; unknown_dim when only it knows
    std::int64_t done = 0;
    std::vector<TensorId> carried;
    std::vector<std::vector<TensorId>> scanned;  ///< per scan output, its part from every pass
    std::vector<std::size_t> output_axes;
    // of a Loop
    bool is_loop = false;
    bool stopped = false;       ///< the body's condition is known to be false
    bool by_condition = false;  ///< no trip count: passes follow while the condition is known to hold
    // of a Scan
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
    throw Error(ErrorCode::model, fmt::format("node '{}' ({}): required attribute '{}' is missing", excerpt(call.name),
                                              excerpt(call.record.op_type), attribute));
}

std::unique_ptr<Scope> Importer::body_scope(Scope& outer, std::shared_ptr<const GraphRecord> body, std::string prefix) {
    if (outer.body_depth == max_body_depth) {
        throw Error(ErrorCode::limit,
                    fmt::format("{}: bodies nested deeper than {} levels", excerpt(prefix), max_body_depth));
    }
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
    for (const TensorRecord& record : body->initializers) {
        scope->names.emplace(record.name, construction_.add_record(tensor_name(*scope, record.name), record));
    }
    for (const ValueRecord& value : body->value_info) scope->declared.emplace(value.name, &value);
    for (const ValueRecord& value : body->outputs) scope->declared.emplace(value.name, &value);
    scope->body = std::move(body);
    return scope;
}

void Importer::order_body(Scope& scope, std::string_view what) {
    auto& order = body_orders_[scope.body.get()];
    if (!order) {
        std::vector<std::string_view> outputs;
        for (const ValueRecord& output : scope.body->outputs) outputs.push_back(output.name);
        order_scope(scope, outputs, what);
        order = scope.order;
    }
    scope.order = order;
}

bool Importer::import_control(Scope& scope, Call& call) {
    if (call.record.op_type == "If") return import_if(scope, call);
    if (call.record.op_type == "Loop") return import_loop(scope, call);
    if (call.record.op_type == "Scan") return import_scan(scope, call);
    construction_.warn(fmt::format("node '{}': {} is not inlined", call.name, call.record.op_type));
    return false;
}

bool Importer::import_if(Scope& scope, Call& call) {
    if (call.inputs.empty() || call.inputs[0] == no_tensor) {
        throw Error(ErrorCode::model, fmt::format("node '{}' (If): the condition is missing", excerpt(call.name)));
    }
    auto then_body = body_of(call, "then_branch");
    auto else_body = body_of(call, "else_branch");
    const Scalars* value = construction_.value_of(call.inputs[0]);
    std::optional<bool> condition;
    if (value && value->size() == 1) {
        if (const auto number = construction_.math.number(value->front())) condition = *number != 0;
    }
    const bool taken = take_branch(construction_.graph, options_, call.name, condition, then_body->nodes.size(),
                                   else_body->nodes.size(), scope.repeated);
    auto inner = body_scope(scope, taken ? std::move(then_body) : std::move(else_body), call.name);
    const std::shared_ptr<const GraphRecord> body = inner->body;
    if (body->outputs.size() < call.record.outputs.size()) {
        throw Error(ErrorCode::model,
                    fmt::format("node '{}' (If): a branch has {} outputs, the node {}", excerpt(call.name),
                                body->outputs.size(), call.record.outputs.size()));
    }
    order_body(*inner, call.name);
    const NodeRecord& record = call.record;
    Scope& outer = scope;
    inner->finish = [this, &outer, &record, body](Scope& done) {
        for (std::size_t i = 0; i < record.outputs.size(); ++i)
            outer.names[record.outputs[i]] = resolve(done, body->outputs[i].name);
    };
    scopes_.push_back(std::move(inner));
    return true;
}

bool Importer::import_loop(Scope& scope, Call& call) {
    auto state = std::make_shared<Iteration>();
    state->scope = &scope;
    state->record = &call.record;
    state->name = call.name;
    state->body = body_of(call, "body");
    state->is_loop = true;
    const std::size_t inputs = call.inputs.size();
    const std::size_t carried = inputs > 2 ? inputs - 2 : 0;
    if (state->body->inputs.size() != carried + 2 || state->body->outputs.size() < carried + 1 ||
        call.record.outputs.size() + 1 > state->body->outputs.size()) {
        throw Error(ErrorCode::model, fmt::format("node '{}' (Loop): inputs and outputs of node and body do not fit",
                                                  excerpt(call.name)));
    }
    const auto scalar_input = [&](std::size_t i) -> Scalar {
        if (i >= inputs || call.inputs[i] == no_tensor) return {};
        const Scalars* value = construction_.value_of(call.inputs[i]);
        return value && value->size() == 1 ? value->front() : Scalar{};
    };
    for (std::size_t i = 0; i < carried; ++i) state->carried.push_back(call.inputs[i + 2]);
    state->scanned.resize(state->body->outputs.size() - 1 - carried);
    state->output_axes.assign(state->scanned.size(), 0);
    state->count = ShapeMath::expression(scalar_input(0));
    const auto limit = construction_.math.constant_value(state->count);
    const auto condition = construction_.math.number(scalar_input(1));
    const bool has_condition = inputs > 1 && call.inputs[1] != no_tensor;
    const auto option = options_.trip_counts.find(call.name);
    if (option != options_.trip_counts.end()) {
        state->passes = option->second;
        state->count = construction_.math.constant(option->second);
    } else if (has_condition && condition && *condition == 0) {
        state->passes = 0;
        state->count = construction_.math.constant(0);
    } else if (limit && static_cast<std::uint64_t>(std::max<std::int64_t>(*limit, 0)) <= options_.max_nodes) {
        state->passes = std::max<std::int64_t>(*limit, 0);
    } else if (has_condition && (limit || inputs == 0 || call.inputs[0] == no_tensor)) {
        state->by_condition = true;
        state->passes = max_passes;
        state->count = unknown_dim;
    } else {
        state->passes = 1;
        warn_of_passes(*state);
        if (limit) state->count = unknown_dim;
    }
    next_iteration(state);
    return true;
}

void Importer::warn_of_passes(const Iteration& state) {
    construction_.warn(
        fmt::format("node '{}': the number of passes depends on data; {} counted (--trip {}=N)", state.name,
                    state.passes == 1 ? "one pass is" : fmt::format("{} passes are", state.passes), state.name));
}

bool Importer::import_scan(Scope& scope, Call& call) {
    const auto integers = [&](std::string_view key) {
        for (const AttributeRecord& a : call.attributes) {
            if (a.name == key) return a.integers;
        }
        return std::vector<std::int64_t>{};
    };
    const auto fail = [&](std::string_view what) -> Error {
        return {ErrorCode::model, fmt::format("node '{}' (Scan): {}", excerpt(call.name), what)};
    };
    if (opset(scope, "") < 9) {
        construction_.warn(fmt::format("node '{}': Scan of operator set 8 is not inlined", call.name));
        return false;
    }
    std::int64_t scan_inputs = -1;
    for (const AttributeRecord& a : call.attributes) {
        if (a.name == "num_scan_inputs") scan_inputs = a.integer;
    }
    if (scan_inputs < 1 || static_cast<std::size_t>(scan_inputs) > call.inputs.size())
        throw fail("num_scan_inputs does not fit the inputs");
    auto state = std::make_shared<Iteration>();
    state->scope = &scope;
    state->record = &call.record;
    state->name = call.name;
    state->body = body_of(call, "body");
    const std::size_t carried = call.inputs.size() - static_cast<std::size_t>(scan_inputs);
    if (state->body->inputs.size() != call.inputs.size() || state->body->outputs.size() < carried ||
        call.record.outputs.size() > state->body->outputs.size()) {
        throw fail("inputs and outputs of node and body do not fit");
    }
    state->carried.assign(call.inputs.begin(), call.inputs.begin() + static_cast<std::ptrdiff_t>(carried));
    state->sources.assign(call.inputs.begin() + static_cast<std::ptrdiff_t>(carried), call.inputs.end());
    const auto axes = integers("scan_input_axes");
    for (std::size_t i = 0; i < state->sources.size(); ++i) {
        if (state->sources[i] == no_tensor) throw fail("a scan input is missing");
        const Tensor& source = construction_.graph.tensors[state->sources[i]];
        const auto rank = static_cast<std::int64_t>(source.shape.size());
        std::int64_t axis = i < axes.size() ? axes[i] : 0;
        if (!source.known_shape) return false;
        if (axis < -rank || axis >= rank) throw fail(fmt::format("axis {} does not exist in rank {}", axis, rank));
        state->source_axes.push_back(static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
    }
    state->scanned.resize(state->body->outputs.size() - carried);
    const auto output_axes = integers("scan_output_axes");
    for (std::size_t i = 0; i < state->scanned.size(); ++i) {
        state->output_axes.push_back(
            static_cast<std::size_t>(i < output_axes.size() ? std::max<std::int64_t>(output_axes[i], 0) : 0));
    }
    state->count = construction_.graph.tensors[state->sources[0]].shape[state->source_axes[0]];
    const auto length = construction_.math.constant_value(state->count);
    state->passes = passes_of(construction_.graph, options_, call.name, length);
    if (options_.trip_counts.contains(call.name)) state->count = construction_.math.constant(state->passes);
    if (static_cast<std::uint64_t>(state->passes) > options_.max_nodes / 8)
        construction_.spend(options_.max_nodes, call.name);
    next_iteration(state);
    return true;
}

TensorId Importer::slice_of(const std::string& name, TensorId tensor, std::size_t axis) {
    construction_.spend(1, name);
    Dims dims = construction_.graph.tensors[tensor].shape;
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    const DType dtype = construction_.graph.tensors[tensor].dtype;
    const TensorId part = construction_.add_tensor(name, dtype, TensorRole::activation, std::move(dims));
    Graph& graph = construction_.graph;
    graph.tensors[part].producer = static_cast<OpId>(graph.ops.size());
    graph.ops.push_back(
        {OpKind::slice, name, "Scan", {}, {tensor}, {part}, {{"axes", std::vector{static_cast<std::int64_t>(axis)}}}});
    return part;
}

TensorId Importer::stacked(const std::string& name, const std::vector<TensorId>& parts, std::size_t axis,
                           Expression count) {
    construction_.spend(1 + parts.size() / 4, name);
    Graph& graph = construction_.graph;
    std::optional<Dims> dims;
    DType dtype = DType::unknown;
    if (!parts.empty()) {
        const Tensor& part = graph.tensors[parts.front()];
        dtype = part.dtype;
        if (part.known_shape && axis <= part.shape.size()) {
            dims = part.shape;
            dims->insert(dims->begin() + static_cast<std::ptrdiff_t>(axis), count);
        }
    }
    const TensorId whole = construction_.add_tensor(name, dtype, TensorRole::activation, std::move(dims));
    graph.tensors[whole].producer = static_cast<OpId>(graph.ops.size());
    graph.ops.push_back(
        {OpKind::concat, name, "stack", {}, parts, {whole}, {{"axis", static_cast<std::int64_t>(axis)}}});
    return whole;
}

void Importer::next_iteration(const std::shared_ptr<Iteration>& state) {
    if (state->done == state->passes || state->stopped) return finish_iterations(*state);
    auto inner = body_scope(*state->scope, state->body, fmt::format("{}/{}", state->name, state->done));
    if (state->done > 0) inner->repeated = true;
    const GraphRecord& body = *state->body;
    std::size_t at = 0;
    if (state->is_loop) {
        ShapeMath& math = construction_.math;
        const Scalar index =
            is_known(state->count) && math.constant_value(state->count) ? math.integer(state->done) : Scalar{};
        inner->names[body.inputs[0].name] =
            construction_.add_constant(tensor_name(*inner, body.inputs[0].name), DType::i64, {}, {index});
        inner->names[body.inputs[1].name] =
            construction_.add_constant(tensor_name(*inner, body.inputs[1].name), DType::boolean, {}, {math.integer(1)});
        at = 2;
    }
    for (const TensorId carried : state->carried) inner->names[body.inputs[at++].name] = carried;
    for (std::size_t i = 0; i < state->sources.size(); ++i) {
        const std::string_view name = body.inputs[at++].name;
        inner->names[name] = slice_of(tensor_name(*inner, name), state->sources[i], state->source_axes[i]);
    }
    order_body(*inner, state->name);
    inner->finish = [this, state](Scope& done) {
        std::size_t output = 0;
        const auto next_output = [&] { return resolve(done, state->body->outputs[output++].name); };
        if (state->is_loop) {
            const Scalars* value = construction_.value_of(next_output());
            const auto condition =
                value && value->size() == 1 ? construction_.math.number(value->front()) : std::nullopt;
            state->stopped = condition && *condition == 0;
            if (state->by_condition && !condition) state->passes = state->done + 1;
        }
        for (TensorId& carried : state->carried) carried = next_output();
        for (auto& parts : state->scanned) parts.push_back(next_output());
        ++state->done;
        if (state->stopped) state->count = construction_.math.constant(state->done);
        if (state->by_condition && !state->stopped && state->done == state->passes) warn_of_passes(*state);
        next_iteration(state);
    };
    scopes_.push_back(std::move(inner));
}

void Importer::finish_iterations(Iteration& state) {
    const auto& names = state.record->outputs;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].empty()) continue;
        if (i < state.carried.size()) {
            state.scope->names[names[i]] = state.carried[i];
            continue;
        }
        const std::size_t scan = i - state.carried.size();
        if (scan >= state.scanned.size())
            throw Error(ErrorCode::model,
                        fmt::format("node '{}': more outputs than its body has", excerpt(state.name)));
        state.scope->names[names[i]] =
            stacked(tensor_name(*state.scope, names[i]), state.scanned[scan], state.output_axes[scan], state.count);
    }
}

}  // namespace ftax::onnx_import
