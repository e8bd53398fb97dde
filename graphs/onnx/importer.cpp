#include "graphs/onnx/importer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/canonical/canonical.hpp"
#include "graphs/ir/strides.hpp"

namespace ftax::onnx_import {
namespace {

constexpr std::int64_t newest_known_opset = 25;
constexpr std::int64_t oldest_supported_opset = 7;
constexpr std::int64_t newest_known_ir = 14;
/// Bytes of the path of an inlined node. Each copy of a node has a path of its own, so that paths as long as calls are
/// deep, or as the file likes to make names, would multiply.
constexpr std::size_t longest_path = 256;

std::string_view end_of_path(std::string_view path) {
    return path.substr(path.size() - std::min(path.size(), longest_path));
}

/// Inputs that stand where layers have their parameters, in a file that lost all its initializers but kept their names
/// among the inputs, as files up to IR version 3 list them.
std::unordered_set<std::string_view> stripped_weights(const GraphRecord& graph) {
    std::unordered_set<std::string_view> names;
    for (const TensorRecord& record : graph.initializers)
        if (record.dims.size() > 1) return names;
    constexpr std::string_view layers =
        "Conv ConvTranspose Gemm MatMul BatchNormalization LayerNormalization InstanceNormalization LSTM GRU RNN";
    const auto is_layer = [&](const NodeRecord& node) { return has_word(layers, node.op_type); };
    for (const NodeRecord& node : graph.nodes)
        for (std::size_t i = 1; i < node.inputs.size() && is_layer(node); ++i) names.insert(node.inputs[i]);
    for (const NodeRecord& node : graph.nodes)
        for (std::size_t i = 0; i < node.inputs.size() && !names.empty() && (i == 0 || !is_layer(node)); ++i)
            names.erase(node.inputs[i]);
    return names;
}

}  // namespace

std::vector<std::string_view> names_of(const std::vector<ValueRecord>& values) {
    return mapped(values, [](const ValueRecord& value) -> std::string_view { return value.name; });
}

Importer::Importer(ModelRecord& model, const ImportOptions& options, std::string directory, bool keep_batch)
    : model_(model), options_(options), keep_batch_(keep_batch), functions_(model, options.max_nodes) {
    construction_.options = &options;
    construction_.directory = std::move(directory);
    construction_.graph.format = "onnx";
    construction_.graph.name = std::string(model.graph.name);
}

Graph Importer::run(const std::function<void()>& release) {
    release_ = release;
    check_versions();
    scopes_.push_back(main_scope());
    const Scope* main = scopes_.front().get();
    scopes_.front()->finish = [this, main](Scope&) { finish_graph(*main); };
    run_scopes(0);
    return std::move(construction_.graph);
}

void Importer::check_versions() {
    if (!model_.has_graph) throw Error(ErrorCode::model, "the file holds no graph");
    if (!model_.ir_version || *model_.ir_version < 1) throw Error(ErrorCode::model, "ir_version is missing or zero");
    const auto complain = [&](std::string message) {
        if (options_.strict) throw Error(ErrorCode::model, message);
        construction_.warn(std::move(message));
    };
    if (*model_.ir_version > newest_known_ir)
        complain(
            fmt::format("IR version {} is newer than {}, the newest ftax knows", *model_.ir_version, newest_known_ir));
    if (model_.opsets.empty()) throw Error(ErrorCode::model, "the model imports no operator set");
    for (const OpsetRecord& imported : model_.opsets) {
        if (!imported.domain.empty() && imported.domain != "ai.onnx") continue;
        if (imported.version < 1) throw_error(ErrorCode::model, "operator set version {}", imported.version);
        if (imported.version > newest_known_opset)
            complain(fmt::format("operator set {} is newer than {}, the newest ftax knows: its rules are used",
                                 imported.version, newest_known_opset));
        if (imported.version < oldest_supported_opset)
            complain(fmt::format("operator set {} is older than {}: read as far as it means the same", imported.version,
                                 oldest_supported_opset));
    }
}

void Importer::add_inputs(Scope& scope) {
    for (const TensorRecord& record : model_.graph.initializers) {
        const TensorId id = construction_.add_record(std::string(record.name), record);
        if (!scope.names.emplace(record.name, id).second)
            throw_error(ErrorCode::model, "duplicate initializer '{}'", excerpt(record.name));
    }
    std::vector<std::pair<std::string_view, TypeRecord>> inputs;
    for (const ValueRecord& input : model_.graph.inputs) {
        // Up to IR version 3 initializers are listed as inputs too.
        if (!scope.names.contains(input.name)) inputs.emplace_back(input.name, type_of(input));
    }
    const auto weights = stripped_weights(model_.graph);
    dimension_names_ =
        std::make_unique<DimensionNames>(inputs, options_.input_shapes, keep_batch_, construction_.graph.warnings);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto& [name, type] = inputs[i];
        DType dtype = dtype_from_onnx(type.element_type);
        for (const InputShape& given : options_.input_shapes)
            if (given.input == name && given.dtype) dtype = *given.dtype;
        auto dims = dimension_names_->shape(i, construction_.graph.expressions);
        if (!dims && type.kind == TypeRecord::Kind::tensor)
            throw_error(ErrorCode::usage, "input '{}' has no shape; give it with --shapes {}:…", excerpt(name),
                        excerpt(name));
        const bool weight = weights.contains(name) && dims && construction_.math.static_count(*dims);
        const TensorId id = construction_.add_tensor(std::string(name), dtype,
                                                     weight ? TensorRole::weight : TensorRole::input, std::move(dims));
        if (!scope.names.emplace(name, id).second) throw_error(ErrorCode::model, "duplicate input '{}'", excerpt(name));
        construction_.graph.inputs.push_back(id);
    }
}

std::unique_ptr<Scope> Importer::main_scope() {
    auto scope = std::make_unique<Scope>();
    scope->nodes = &model_.graph.nodes;
    scope->opsets = &model_.opsets;
    const std::size_t count = model_.graph.nodes.size();
    construction_.graph.tensors.reserve(count + model_.graph.initializers.size() + model_.graph.inputs.size());
    construction_.graph.ops.reserve(count);
    scope->names.reserve(count);
    op_names_.reserve(count);
    add_inputs(*scope);
    for (const ValueRecord& value : model_.graph.value_info) scope->declared.emplace(value.name, &value);
    for (const ValueRecord& value : model_.graph.outputs) scope->declared.emplace(value.name, &value);
    scope->order = order_of(*scope, names_of(model_.graph.outputs), "the graph");
    return scope;
}

Order Importer::order_of(Scope& scope, const std::vector<std::string_view>& outputs, std::string_view what) {
    const auto is_outer = [&](std::string_view name) {
        // What only value_info knows is a weight whose initializer was stripped.
        return scope.declared.contains(name) || (scope.outer && lookup(*scope.outer, name) != no_tensor);
    };
    NodeOrder order = order_nodes(*scope.nodes, outputs, scope.names, is_outer);
    if (!order.sorted) construction_.warn(fmt::format("the nodes of {} were not in execution order; sorted", what));
    for (const std::string_view name : order.dangling_in_dead)
        construction_.warn(fmt::format("'{}' is read by an unused node, but nothing produces it", name));
    return std::make_shared<const std::vector<std::uint32_t>>(std::move(order.live));
}

void Importer::run_scopes(std::size_t below) {
    while (scopes_.size() > below) {
        Scope& scope = *scopes_.back();
        if (scope.next < scope.order->size()) {
            if (below == 0 && scopes_.size() == 1 && scope.next > 0) {  // the node before is done with
                NodeRecord& done = model_.graph.nodes[(*scope.order)[scope.next - 1]];
                done.inputs = done.outputs = std::vector<std::string_view>();
                if (release_ && scope.next % release_interval == 0) release_();
            }
            const std::uint32_t index = (*scope.order)[scope.next++];
            import_node(scope, (*scope.nodes)[index], index);
            continue;
        }
        const std::unique_ptr<Scope> done = std::move(scopes_.back());
        scopes_.pop_back();
        done->finish(*done);
    }
}

TensorId Importer::lookup(const Scope& scope, std::string_view name) {
    for (const Scope* at = &scope; at; at = at->outer)
        if (const TensorId* known = found_in(at->names, name)) return *known;
    return no_tensor;
}

TensorId Importer::resolve(Scope& scope, std::string_view name) {
    if (name.empty()) return no_tensor;
    const TensorId known = lookup(scope, name);
    if (known != no_tensor) return known;
    const auto declared = scope.declared.find(name);
    if (declared == scope.declared.end()) throw_error(ErrorCode::model, "nothing produces '{}'", excerpt(name));
    const TypeRecord type = type_of(*declared->second);
    std::optional<Dims> dims;
    if (type.shape) {
        dims.emplace();
        for (const DimRecord& dim : *type.shape)
            dims->push_back(dimension_names_->declared(dim, construction_.graph.expressions));
    }
    construction_.warn(fmt::format("'{}' has no initializer; its declared type makes it a weight", name));
    const TensorId id = construction_.add_tensor(tensor_name(scope, name), dtype_from_onnx(type.element_type),
                                                 TensorRole::weight, std::move(dims));
    scope.names.emplace(name, id);
    return id;
}

std::int64_t Importer::opset(const Scope& scope, std::string_view domain) const {
    for (const std::vector<OpsetRecord>* opsets : {scope.opsets, &std::as_const(model_.opsets)})
        for (const OpsetRecord& imported : *opsets)
            if (imported.domain == domain || (domain.empty() && imported.domain == "ai.onnx")) return imported.version;
    // Operators of other domains follow the conventions of the newest default operator set.
    return newest_known_opset;
}

std::string Importer::tensor_name(const Scope& scope, std::string_view name) const {
    return scope.prefix.empty() ? std::string(name) : fmt::format("{}/{}", scope.prefix, end_of_path(name));
}

std::string Importer::unique_name(const Scope& scope, const NodeRecord& record) {
    std::string name =
        record.name.empty() ? fmt::format("{}_{}", record.op_type, unnamed_++) : std::string(record.name);
    if (!scope.prefix.empty()) {
        const std::string path = fmt::format("{}/{}", scope.prefix, end_of_path(name));
        name = path.size() > longest_path ? fmt::format("…{}_{}", end_of_path(path), unnamed_++) : path;
    }
    if (name == record.name && op_names_.insert(record.name).second) return name;
    while (op_names_.contains(name)) name = fmt::format("{}_{}", name, unnamed_++);
    op_names_.insert(made_names_.emplace_back(name));
    return name;
}

void Importer::import_node(Scope& scope, const NodeRecord& record, std::size_t index) {
    construction_.spend(1, record.name.empty() ? scope.prefix : record.name);
    if (record.outputs.empty()) throw_error(ErrorCode::model, "{} has no output", title_of(record, index));
    Call call{record, {}, {}, unique_name(scope, record)};
    for (AttributeRecord& attribute : attributes_of(record)) {
        if (!attribute.reference.empty()) {
            const AttributeRecord* given = find_attribute(scope.call_attributes, attribute.reference);
            if (!given) continue;  // an optional attribute that the call leaves out
            const std::string_view name = attribute.name;
            attribute = *given;
            attribute.name = name;
        }
        call.attributes.push_back(std::move(attribute));
    }
    for (const std::string_view name : record.inputs) call.inputs.push_back(resolve(scope, name));
    if (const FunctionRecord* function = functions_.find(record))
        return call_function(scope, std::move(call), *function);
    if (record.domain.empty() && has_body(record)) {
        if (!import_control(scope, call)) apply_unknown(scope, std::move(call), OpKind::control);
        return;
    }
    if (const OpRow* row = find_row(record.domain, record.op_type)) return apply_row(scope, std::move(call), *row);
    if (options_.unsupported_is_error)
        throw_error(ErrorCode::model, "{}: no rule for this operator", title_of(record, index));
    construction_.warn(fmt::format("{}: no rule for operator {}; modelled as memory-bound", title_of(record, index),
                                   source_of(record)));
    apply_unknown(scope, std::move(call), OpKind::custom);
}

void Importer::apply_row(Scope& scope, Call call, const OpRow& row) {
    Node node(construction_, call.record, std::move(call.attributes), std::move(call.inputs),
              opset(scope, call.record.domain), std::move(call.name));
    node.kind = row.kind;
    node.function = row.function;
    bool unranked = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(row.required_inputs) || i < node.inputs.size(); ++i) {
        if (i < static_cast<std::size_t>(row.required_inputs))
            static_cast<void>(node.tensor(i));  // throws when missing
        unranked = unranked || (node.has(i) && !node.ranked(i));
    }
    if (unranked && !(row.flags & any_rank)) {
        for (std::size_t i = 0; i < node.output_count(); ++i)
            node.unknown_output(i, node.has(0) ? node.dtype(0) : DType::unknown);
    } else {
        if (row.flags & (reads_none | reads_first | reads_two))
            node.read_first(row.flags & reads_none ? 0 : row.flags & reads_first ? 1 : 2);
        node.apply(row);
    }
    settle(scope, node, &row);
}

void Importer::apply_unknown(Scope& scope, Call call, OpKind kind) {
    Node node(construction_, call.record, std::move(call.attributes), std::move(call.inputs),
              opset(scope, call.record.domain), std::move(call.name));
    node.kind = kind;
    settle(scope, node, nullptr);
}

void Importer::fill_from_declaration(const Scope& scope, Node& node) {
    for (std::size_t i = 0; i < node.output_count(); ++i) {
        Node::Output& output = node.outputs[i];
        const bool complete = output.dims && std::ranges::all_of(*output.dims, is_known);
        if (complete || output.alias != no_tensor || output.is_sequence) continue;
        const auto declared = scope.declared.find(node.record.outputs[i]);
        if (declared == scope.declared.end()) continue;
        const TypeRecord type = type_of(*declared->second);
        if (output.dtype == DType::unknown) output.dtype = dtype_from_onnx(type.element_type);
        if (!type.shape || type.kind != TypeRecord::Kind::tensor) continue;
        if (!output.dims) output.dims = Dims(type.shape->size(), unknown_dim);
        for (std::size_t d = 0; d < type.shape->size() && d < output.dims->size(); ++d) {
            Expression& dim = (*output.dims)[d];
            if (!is_known(dim)) dim = dimension_names_->declared((*type.shape)[d], construction_.graph.expressions);
        }
    }
}

void Importer::settle(Scope& scope, Node& node, const OpRow* row) {
    const auto is_folded = [&](TensorId id) { return id == no_tensor || construction_.is_folded(id); };
    const bool folded = row && !(row->flags & never_folded) && std::ranges::all_of(node.inputs, is_folded);
    fill_from_declaration(scope, node);
    if (folded) evaluate(node, *row);
    if (row && (row->kind == OpKind::nonzero || row->function == "unique") && !node.outputs[0].value)
        name_data_sizes(node);

    std::vector<TensorId> live;
    for (std::size_t i = 0; i < node.output_count(); ++i) {
        const std::string_view name = node.record.outputs[i];
        if (name.empty()) continue;
        Node::Output& output = node.outputs[i];
        TensorId id = output.alias;
        if (id == no_tensor && output.value) {
            id = construction_.add_constant(tensor_name(scope, name), output.dtype, *output.dims,
                                            std::move(*output.value));
        } else if (id == no_tensor) {
            const auto count = folded && output.dims ? construction_.math.static_count(*output.dims) : std::nullopt;
            const TensorRole role = !count        ? TensorRole::activation
                                    : *count <= 1 ? TensorRole::constant
                                                  : TensorRole::weight;
            id = construction_.add_tensor(tensor_name(scope, name), output.dtype, role, std::move(output.dims));
            if (output.sequence)
                construction_.notes[id].sequence = std::make_unique<std::vector<TensorId>>(std::move(*output.sequence));
            if (!count && !output.is_sequence) live.push_back(id);
        }
        scope.names[name] = id;
    }
    if (live.empty()) return;
    if (!node.function.empty())
        node.op_attributes.insert(node.op_attributes.begin(), {"function", std::string(node.function)});
    construction_.append({node.kind, node.name, source_of(node.record), module_of(node.record, scope.module),
                          std::move(node.op_inputs), std::move(live), std::move(node.op_attributes)});
}

/// Computes the elements of the outputs where those of all inputs are known.
void Importer::evaluate(Node& node, const OpRow& row) {
    const Node::Output& first = node.outputs[0];
    if (!row.evaluate || !first.dims || first.value || first.alias != no_tensor) return;
    const auto count = construction_.math.static_count(*first.dims);
    const bool sized_by_values = row.kind == OpKind::nonzero;
    bool known = sized_by_values || (count && *count <= max_followed_elements);
    for (std::size_t i = 0; i < node.inputs.size() && known; ++i) known = !node.has(i) || node.value(i) != nullptr;
    if (!known) return;
    construction_.spend(static_cast<std::uint64_t>(count.value_or(max_followed_elements)) / 16, node.name);
    row.evaluate(node);
}

void Importer::name_data_sizes(Node& node) {
    const std::string symbol = identifier(node.name);
    const bool given = std::ranges::find(options_.data_sizes, symbol) != options_.data_sizes.end();
    bool open = false;
    for (Node::Output& output : node.outputs) {
        if (!output.dims) continue;
        for (Expression& dim : *output.dims) {
            if (is_known(dim)) continue;
            open = true;
            if (given) dim = construction_.graph.expressions.symbol(symbol);
        }
    }
    if (open && !given) data_sizes_.push_back(symbol);
}

void Importer::call_function(Scope& scope, Call call, const FunctionRecord& function) {
    construction_.spend(4 + function.inputs.size() + call.attributes.size() + function.defaults.size(), call.name);
    auto inner = std::make_unique<Scope>();
    inner->nodes = &function.nodes;
    inner->opsets = &function.opsets;
    inner->prefix = call.name;
    inner->module = module_of(call.record, scope.module);
    inner->body_depth = scope.body_depth;
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
        inner->names.emplace(function.inputs[i], i < call.inputs.size() ? call.inputs[i] : no_tensor);
    inner->call_attributes = std::move(call.attributes);
    for (const AttributeRecord& fallback : function.defaults) inner->call_attributes.push_back(fallback);
    Order& order = orders_[&function];
    if (!order) order = order_of(*inner, function.outputs, fmt::format("function '{}'", excerpt(function.name)));
    inner->order = order;
    const NodeRecord& record = call.record;
    Scope& caller = scope;
    inner->finish = [&caller, &record, &function](Scope& done) {
        for (std::size_t i = 0; i < record.outputs.size() && i < function.outputs.size(); ++i)
            caller.names[record.outputs[i]] = lookup(done, function.outputs[i]);
    };
    scopes_.push_back(std::move(inner));
}

void Importer::finish_graph(const Scope& scope) {
    Graph& graph = construction_.graph;
    for (const ValueRecord& output : model_.graph.outputs) {
        const TensorId id = lookup(scope, output.name);
        if (id == no_tensor)
            throw_error(ErrorCode::model, "nothing produces the graph output '{}'", excerpt(output.name));
        if (const auto* members = construction_.notes[id].sequence.get()) {
            graph.outputs.insert(graph.outputs.end(), members->begin(), members->end());
        } else {
            graph.outputs.push_back(id);
        }
    }
    if (!data_sizes_.empty()) {
        constexpr std::size_t shown = 4;
        const std::size_t count = data_sizes_.size();
        data_sizes_.resize(std::min(shown, count));
        construction_.warn(fmt::format("the result size of {} is data-dependent; set it with --dim {}=N{}",
                                       count == 1 ? "a node" : fmt::format("{} nodes", count),
                                       fmt::join(data_sizes_, "=N --dim "),
                                       count > shown ? fmt::format(" and {} more", count - shown) : ""));
    }
    graph.other_names = dimension_names_->other_names(graph.expressions);
    // A dimension that only a run can tell makes the whole shape unknown to the Graph.
    for (Tensor& tensor : graph.tensors) {
        if (std::ranges::all_of(tensor.shape, is_known)) continue;
        tensor.known_shape = false;
        tensor.shape.clear();
    }
}

}  // namespace ftax::onnx_import

namespace ftax {

Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options,
                  const std::function<void()>& release, bool keep_batch) {
    try {
        onnx_import::ModelRecord model = onnx_import::read_model({bytes, 0}, options.max_nodes, release);
        const std::string directory = std::filesystem::path(path).parent_path().string();
        Graph graph = onnx_import::Importer(model, options, directory, keep_batch).run(release);
        const onnx_import::ModuleTypes types = onnx_import::module_types(model.graph.nodes, release);
        model.graph.nodes = std::vector<onnx_import::NodeRecord>();
        canonicalize(graph, SpelledOut::keep,
                     [&](const Op& last, OpKind kind) { return onnx_import::taken_apart(last, kind, types); });
        onnx_import::restore_folded_layers(graph, types);
        onnx_import::share_embedding(graph, model.graph, directory);
        onnx_import::record_module_calls(graph, types);
        propagate_strides(graph);
        if (graph.name.empty()) graph.name = std::filesystem::path(path).stem().string();
        return graph;
    } catch (const Error& error) {
        throw_error(error.code(), "{}: {}", path, error.what());
    }
}

}  // namespace ftax
