#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "graphs/aten/aten_call.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/control_flow.hpp"
#include "graphs/ir/shape_rules.hpp"
#include "graphs/torchscript/program.hpp"

namespace ftax::script {
namespace {

constexpr int max_depth = 256;  ///< calls and blocks within each other
/// Limits of host nodes: per dispatched operator (scripted modules need about 20), plus a share of max_nodes.
constexpr std::uint64_t steps_per_operator = 64, free_steps_per_node = 1;
constexpr std::size_t items_per_step = 4;  ///< list items that a node copies or searches per step
constexpr std::size_t max_rank = 32;

/// The program reached a statement that raises an exception.
struct Raised {
    std::string message;  ///< empty if it depends on data
};

class Interpreter {
  public:
    Interpreter(Program program, const ImportOptions& options, Graph& graph)
        : program_(std::move(program)), options_(options), graph_(graph), stored_(program_.tensors.size(), no_tensor) {
        graph_.expressions = std::move(program_.expressions);
    }

    void run() {
        const auto forward = program_.objects.at(0).methods.find("forward");
        if (forward == program_.objects[0].methods.end())
            throw Error(ErrorCode::model, "the program has no method 'forward'");
        std::vector<Value> arguments = inputs(program_.functions[forward->second]);
        try {
            for (const Value& output : call(forward->second, std::move(arguments))) add_outputs(output);
        } catch (const Raised& raised) {
            throw_error(ErrorCode::model, "the program raises an exception for these input shapes{}{}",
                        raised.message.empty() ? "" : ": ", raised.message);
        }
    }

  private:
    using Frame = std::vector<Value>;

    std::vector<Value> inputs(const Function& forward) {
        std::vector<Value> arguments{ObjectValue{0}};
        std::vector<std::string> missing;
        std::size_t used = 0;
        for (std::size_t i = 1; i < forward.parameters.size(); ++i) {
            const InputShape* shape = given_shape(forward.parameters[i], i - 1);
            used += shape != nullptr;
            const bool optional = i < forward.defaults.size() && !forward.defaults[i].as<Unknown>();
            const ValueType type = i < forward.types.size() ? forward.types[i] : ValueType::other;
            if (shape) {
                arguments.push_back(argument(forward.parameters[i], type, *shape));
            } else {
                arguments.push_back(optional ? forward.defaults[i] : Value{});
                if (!optional) missing.push_back(forward.parameters[i] + (is_number(type) ? " (a number)" : ""));
            }
        }
        if (!missing.empty())
            throw_error(ErrorCode::usage,
                        "a TorchScript file does not say what shapes its inputs have; give those of {}, e.g. --input "
                        "float:batchx3x224x224,long:batchxseq,long=5",
                        fmt::join(missing, ", "));
        if (used < options_.input_shapes.size())
            throw_error(ErrorCode::usage, "{} input shapes for {} inputs", options_.input_shapes.size(),
                        forward.parameters.size() - 1);
        return arguments;
    }

    const InputShape* given_shape(const std::string& parameter, std::size_t position) const {
        std::size_t place = 0;
        for (const InputShape& shape : options_.input_shapes) {
            if (shape.input == parameter || (shape.input.empty() && place == position)) return &shape;
            place += shape.input.empty();
        }
        return nullptr;
    }

    static bool is_number(ValueType type) {
        return type == ValueType::integer || type == ValueType::real || type == ValueType::boolean;
    }

    Value argument(const std::string& name, ValueType type, const InputShape& given) {
        if (!given.value.empty()) {
            if (type == ValueType::tensor || type == ValueType::tensors)
                throw_error(ErrorCode::usage, "input {} is a tensor: give its shape, e.g. --input float:4x3", name);
            return number(name, type, given);
        }
        if (is_number(type)) {
            const std::string_view example = type == ValueType::integer ? "long=5"
                                             : type == ValueType::real  ? "float=0.5"
                                                                        : "bool=true";
            throw_error(ErrorCode::usage, "input {} is a number: give its value, e.g. --input {}", name, example);
        }
        Value tensor = declare_input(name, given);
        if (type != ValueType::tensors) return tensor;
        return make_list({std::move(tensor)});
    }

    /// The value that the user gives for a number: of the type that the program declares, else of the type given.
    Value number(const std::string& name, ValueType type, const InputShape& given) {
        const std::string& text = given.value;
        const auto parsed = [&](auto value) {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
        };
        const bool other = type == ValueType::other;
        if (type == ValueType::boolean || (other && given.dtype == DType::boolean)) {
            if (text == "true" || text == "1") return true;
            if (text == "false" || text == "0") return false;
        } else if (type == ValueType::real || (other && given.dtype && is_float(*given.dtype))) {
            if (const auto real = parsed(double{})) return *real;
        } else if (const auto integer = parsed(std::int64_t{})) {
            return graph_.expressions.constant(*integer);
        } else if (!parsed(double{})) {
            return graph_.expressions.parse(text);
        }
        throw_error(ErrorCode::usage, "input {}: '{}' is not a value of its type", name, text);
    }

    Value declare_input(const std::string& name, const InputShape& given) {
        Dims shape = mapped(given.dims, [&](const std::string& dim) { return graph_.expressions.parse(dim); });
        const TensorId id = declare({given.dtype.value_or(DType::f32), std::move(shape), true}, name);
        graph_.tensors[id].role = TensorRole::input;
        graph_.inputs.push_back(id);
        return TensorValue{id};
    }

    void add_outputs(const Value& value) {
        take_steps(1);  // a list may occur in others many times
        if (const auto* sequence = value.as<Sequence>()) {
            for (const Value& item : *sequence->items) add_outputs(item);
        } else if (value.as<StoredTensor>() || value.as<TensorValue>()) {
            graph_.outputs.push_back(tensor_of(value));
        }
    }

    TensorId declare(AtenOutput type, std::string name) {
        if (type.shape.size() > max_rank)
            throw_error(ErrorCode::limit, "'{}' has more than {} dimensions", excerpt(name), max_rank);
        graph_.tensors.push_back({.name = unique_name(tensor_names_, std::move(name)),
                                  .dtype = type.dtype,
                                  .known_shape = type.known_shape,
                                  .shape = std::move(type.shape)});
        return static_cast<TensorId>(graph_.tensors.size() - 1);
    }

    using NameCounts = std::unordered_map<std::string, std::uint64_t>;

    static std::string unique_name(NameCounts& counts, std::string name) {
        const std::uint64_t count = counts[name]++;
        return count == 0 ? name : unique_name(counts, fmt::format("{}_{}", name, count));
    }

    TensorId tensor_of(const Value& value) {
        if (const auto* tensor = value.as<TensorValue>()) return tensor->id;
        const std::uint32_t index = value.as<StoredTensor>()->index;
        if (stored_[index] != no_tensor) return stored_[index];
        const Tensor& held = program_.tensors[index];
        const auto constants = [&](const std::vector<std::int64_t>& sizes) {
            return mapped(sizes, [&](std::int64_t size) { return graph_.expressions.constant(size); });
        };
        const TensorId id = declare({held.dtype, constants(held.shape), held.dtype != DType::unknown}, held.name);
        ftax::Tensor& tensor = graph_.tensors[id];
        tensor.role = TensorRole::weight;
        if (held.strides.size() == held.shape.size())
            tensor.strides = DimensionMath(graph_.expressions).unless_contiguous(tensor.shape, constants(held.strides));
        return stored_[index] = id;
    }

    /// A number of the host where an operator insists on a tensor.
    TensorId scalar_tensor(const Value& value) {
        const DType type = value.as<Expression>() ? DType::i64 : value.as<bool>() ? DType::boolean : DType::f32;
        const TensorId id = declare({type, {}, true}, "number");
        graph_.tensors[id].role = TensorRole::constant;
        return id;
    }

    std::vector<Value> call(std::uint32_t index, std::vector<Value> arguments) {
        const Function& function = program_.functions.at(index);
        check_recursion(index);
        active_.push_back(index);
        Frame frame(function.value_count);
        if (function.body.inputs.size() != arguments.size())
            throw_error(ErrorCode::model, "'{}' is called with {} arguments, not {}", excerpt(function.name),
                        arguments.size(), function.body.inputs.size());
        for (std::size_t i = 0; i < arguments.size(); ++i) frame.at(function.body.inputs[i]) = std::move(arguments[i]);
        std::vector<Value> results = run_block(function.body, frame);
        active_.pop_back();
        return results;
    }

    /// A function may call itself through another instance of its module (a chain of layers), but not for ever.
    void check_recursion(std::uint32_t index) const {
        if (active_.size() < max_depth) return;
        std::vector<std::string> cycle;
        for (auto caller = active_.rbegin(); caller != active_.rend(); ++caller) {
            cycle.insert(cycle.begin(), program_.functions[*caller].name);
            if (*caller == index) break;
        }
        throw_error(ErrorCode::model, "calls nested deeper than {}: {} → {}", max_depth, fmt::join(cycle, " → "),
                    program_.functions[index].name);
    }

    std::vector<Value> run_block(const Block& block, Frame& frame) {
        for (const Node& node : block.nodes) {
            take_steps(1);
            run_node(node, frame);
        }
        return mapped(block.outputs, [&](std::uint32_t output) { return frame.at(output); });
    }

    void take_steps(std::uint64_t count) {
        const std::uint64_t most = free_steps_per_node * options_.max_nodes + steps_per_operator * graph_.ops.size();
        steps_ += count;
        if (steps_ > most)
            throw_error(ErrorCode::limit, "the program takes more than {} steps for {} operators (--max-nodes)", most,
                        graph_.ops.size());
    }

    void run_node(const Node& node, Frame& frame) {
        if (node.kind == "prim::Constant") return set(node, frame, node.constant);
        if (node.kind == "prim::If") return run_if(node, frame);
        if (node.kind == "prim::Loop") return run_loop(node, frame);
        std::vector<Value> arguments = mapped(node.inputs, [&](std::uint32_t input) { return frame.at(input); });
        if (node.kind == "prim::CallMethod") return set_all(node, frame, call_method(node, std::move(arguments)));
        if (node.kind == "prim::CallFunction") {
            arguments.erase(arguments.begin());
            return set_all(node, frame, call(node.function, std::move(arguments)));
        }
        if (node.kind == "prim::RaiseException") {
            const auto* message = arguments.empty() ? nullptr : arguments[0].as<std::string>();
            throw Raised{message ? *message : std::string{}};
        }
        note_change(node, arguments);
        if (run_structure(node, frame, arguments)) return;
        for (Value& argument : arguments) {  // operators ask any tensor for its type
            if (argument.as<StoredTensor>()) argument = TensorValue{tensor_of(argument)};
        }
        if (auto result = on_host(node, arguments)) return set(node, frame, std::move(*result));
        if (node.kind.starts_with("prim::")) return set_unknown(node, frame);
        dispatch(node, frame, arguments);
    }

    std::optional<Value> on_host(const Node& node, const std::vector<Value>& arguments) {
        try {
            auto result = evaluate_on_host(graph_, node.kind, arguments);
            if (!arguments.empty()) take_steps(length(arguments[0]) / items_per_step);
            if (result) take_steps(length(*result) / items_per_step);
            return result;
        } catch (const Error& error) {
            throw_error(error.code(), "{} ({}): {}", place(), excerpt(node.kind), error.what());
        }
    }

    static std::size_t length(const Value& value) {
        const auto* sequence = value.as<Sequence>();
        return sequence ? sequence->items->size() : 0;
    }

    /// The function that is being run, for messages.
    std::string place() const {
        return excerpt(
            fmt::format("{}{}{}", module_, module_.empty() ? "" : ".", program_.functions[active_.back()].name));
    }

    void set(const Node& node, Frame& frame, Value value) const {
        if (!node.outputs.empty()) frame.at(node.outputs[0]) = std::move(value);
    }

    void set_all(const Node& node, Frame& frame, std::vector<Value> values) const {
        if (values.size() < node.outputs.size())
            throw_error(ErrorCode::model, "{} ({}): {} values for {} outputs", place(), excerpt(node.kind),
                        values.size(), node.outputs.size());
        for (std::size_t i = 0; i < node.outputs.size(); ++i) frame.at(node.outputs[i]) = std::move(values[i]);
    }

    void set_unknown(const Node& node, Frame& frame) {
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            const bool tensor = i < node.output_types.size() && node.output_types[i] == ValueType::tensor;
            frame.at(node.outputs[i]) =
                tensor ? Value(TensorValue{declare({DType::f32, {}, false}, "unknown")}) : Value(Unknown{});
        }
    }

    /// Containers and attributes. Returns false for other nodes.
    bool run_structure(const Node& node, Frame& frame, std::vector<Value>& arguments) {
        const std::string& kind = node.kind;
        if (kind == "prim::ListConstruct" || kind == "prim::TupleConstruct") {
            set(node, frame, make_list(std::move(arguments)));
        } else if (kind == "prim::DictConstruct") {
            std::vector<Value> keys, items;
            for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
                keys.push_back(arguments[i]);
                items.push_back(arguments[i + 1]);
            }
            set(node, frame, make_dictionary(std::move(keys), std::move(items)));
        } else if (kind == "prim::ListUnpack" || kind == "prim::TupleUnpack") {
            const auto* sequence = arguments.at(0).as<Sequence>();
            sequence ? set_all(node, frame, *sequence->items) : set_unknown(node, frame);
        } else if (kind == "prim::GetAttr") {
            const auto& attributes = object(arguments.at(0)).attributes;
            const auto found = attributes.find(node.name);
            if (found == attributes.end()) fail(fmt::format("missing attribute '{}'", excerpt(node.name)));
            set(node, frame, found->second);
        } else if (kind == "prim::SetAttr") {
            object(arguments.at(0)).attributes[node.name] = std::move(arguments.at(1));
        } else if (kind == "prim::CreateObject") {
            program_.objects.emplace_back();
            set(node, frame, ObjectValue{static_cast<std::uint32_t>(program_.objects.size() - 1)});
        } else {
            return false;
        }
        return true;
    }

    Object& object(const Value& value) {
        const auto* held = value.as<ObjectValue>();
        if (!held) fail("attribute access on a non-object");
        return program_.objects.at(held->index);
    }

    std::vector<Value> call_method(const Node& node, std::vector<Value> arguments) {
        const Object& callee = object(arguments.at(0));
        const auto method = callee.methods.find(node.name);
        if (method == callee.methods.end()) fail(fmt::format("missing method '{}'", excerpt(node.name)));
        const std::string caller = module_;
        if (node.name.starts_with("forward") && !callee.path.empty()) {
            module_ = callee.path;
            graph_.module_calls.push_back({callee.path, callee.type});
        }
        std::vector<Value> results = call(method->second, std::move(arguments));
        module_ = caller;
        return results;
    }

    [[noreturn]] void malformed(const Node& node) const { fail(fmt::format("a malformed {}", excerpt(node.kind))); }

    [[noreturn]] void fail(std::string_view what) const { throw_error(ErrorCode::model, "{}: {}", place(), what); }

    /// What was decided about a condition on data.
    struct Choice {
        bool then = true;
        bool steers = false;  ///< the branches give different numbers, so that later conditions depend on it
        std::size_t taken = 0, left = 0;  ///< operators of the branch taken and of the other
    };

    void run_if(const Node& node, Frame& frame) {
        if (node.inputs.empty() || node.blocks.size() != 2) malformed(node);
        const auto condition = truth_of(graph_, frame.at(node.inputs[0]));
        // The name holds the place in the program: another branch taken elsewhere does not change it.
        const std::string name = fmt::format("{}.if{}", place(), node.inputs[0]);
        if (const auto branch = condition ? condition : given_branch(graph_, options_, name))
            return set_all(node, frame, run_block(node.blocks[*branch ? 0 : 1], frame));
        const auto known = choices_.find(name);
        if (known == choices_.end()) return run_both(node, frame, name);
        const Mark begin = mark();
        report(name, known->second);
        auto results = attempt(node.blocks[known->second.then ? 0 : 1], frame);
        if (!results) {
            remove(begin, mark());
            results = run_block(node.blocks[known->second.then ? 1 : 0], frame);
        }
        set_all(node, frame, std::move(*results));
    }

    /// Condition on data: runs both branches and keeps the one with more operators, of equally many the one that lets
    /// a loop go on. A branch that raises is an error path and no alternative.
    void run_both(const Node& node, Frame& frame, const std::string& name) {
        const Tentative tentative(*this);
        const Mark begin = mark();
        auto first = attempt(node.blocks[0], frame);
        const Mark middle = mark();
        std::vector<Change> changes = take_back(begin.changes);
        auto second = attempt(node.blocks[1], frame);
        if (!first && !second) throw Raised{};
        const std::size_t first_count = middle.ops - begin.ops, second_count = graph_.ops.size() - middle.ops;
        const bool* goes_on = first && second ? first_difference(*first, *second) : nullptr;
        const bool then =
            first && (!second || first_count > second_count || (first_count == second_count && (!goes_on || *goes_on)));
        if (then) {
            take_back(begin.changes);
            for (Change& change : changes) {
                change();
                changes_.push_back(std::move(change));
            }
        }
        remove(then ? middle : begin, then ? mark() : middle);
        if (first && second && (goes_on != nullptr || first_count + second_count > 0)) {
            const auto [least, most] = std::minmax(first_count, second_count);
            const auto [choice, added] = choices_.insert({name, {then, goes_on != nullptr, most, least}});
            report(name, choice->second);
        }
        set_all(node, frame, then ? std::move(*first) : std::move(*second));
    }

    /// Truth, in `a`, of the first number that differs between two branches (true unless it is a truth value), or null.
    static const bool* first_difference(const std::vector<Value>& a, const std::vector<Value>& b) {
        static constexpr bool yes = true;
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            if (is_same(a[i], b[i]) != false) continue;
            const auto* truth = a[i].as<bool>();
            return truth ? truth : &yes;
        }
        return nullptr;
    }

    /// Whether two numbers or texts are the same; nullopt for anything else.
    static std::optional<bool> is_same(const Value& a, const Value& b) {
        const auto compared = [&]<class T>(const T* x) -> std::optional<bool> {
            const auto* y = b.as<T>();
            return x && y ? std::optional(*x == *y) : std::nullopt;
        };
        if (const auto same = compared(a.as<bool>())) return same;
        if (const auto same = compared(a.as<Expression>())) return same;
        if (const auto same = compared(a.as<double>())) return same;
        return compared(a.as<std::string>());
    }

    /// Notes a decision for the loop around it and, the first time, for the user.
    void report(const std::string& name, const Choice& choice) {
        if (choice.steers) decided_.push_back(name);
        if (!reported_.insert(name).second) return;
        graph_.undecided.push_back({name, choice.then});
        const std::string taken =
            choice.taken + choice.left == 0
                ? fmt::format("its {} branch is taken", choice.then ? "then" : "else")
                : fmt::format("the branch with {} operators is taken, not the one with {}", choice.taken, choice.left);
        graph_.warnings.push_back(fmt::format("{}: the condition depends on data or on a symbol; {} (--branch {}={})",
                                              name, taken, name, choice.then ? "else" : "then"));
    }

    /// How far the graph has grown, and which changes to lists and attributes are noted.
    struct Mark {
        std::size_t ops, tensors, calls, undecided, warnings, changes;
    };

    Mark mark() const {
        return {graph_.ops.size(),       graph_.tensors.size(),  graph_.module_calls.size(),
                graph_.undecided.size(), graph_.warnings.size(), changes_.size()};
    }

    /// Takes back what was appended between two marks.
    void remove(const Mark& begin, const Mark& end) {
        const auto erase = [](auto& items, std::size_t from, std::size_t to) {
            items.erase(items.begin() + static_cast<std::ptrdiff_t>(from),
                        items.begin() + static_cast<std::ptrdiff_t>(to));
        };
        for (std::size_t i = begin.undecided; i < end.undecided; ++i) reported_.erase(graph_.undecided[i].name);
        erase(graph_.ops, begin.ops, end.ops);
        erase(graph_.module_calls, begin.calls, end.calls);
        erase(graph_.undecided, begin.undecided, end.undecided);
        erase(graph_.warnings, begin.warnings, end.warnings);
        for (std::size_t i = begin.tensors; i < graph_.tensors.size(); ++i) {
            ftax::Tensor& tensor = graph_.tensors[i];
            if (tensor.producer == no_op || tensor.producer < begin.ops) continue;
            tensor.producer =
                tensor.producer < end.ops ? no_op : tensor.producer - static_cast<OpId>(end.ops - begin.ops);
        }
    }

    /// Exchanges what a list or an attribute holds with what it held before a change.
    using Change = std::function<void()>;

    /// While one lives, changes to lists and attributes are noted, so that they can be taken back.
    struct Tentative {
        explicit Tentative(Interpreter& interpreter) : owner(interpreter) { ++owner.tentative_; }
        ~Tentative() {
            if (--owner.tentative_ == 0) owner.changes_.clear();
        }
        Tentative(const Tentative&) = delete;
        Tentative& operator=(const Tentative&) = delete;
        Interpreter& owner;
    };

    void note_change(const Node& node, const std::vector<Value>& arguments) {
        if (tentative_ == 0 || arguments.empty()) return;
        constexpr std::string_view changing =
            "aten::append aten::extend aten::add_ aten::insert aten::pop aten::_set_item aten::Delete aten::reverse "
            "aten::clear aten::sort aten::setdefault";
        if (const auto* held = arguments[0].as<ObjectValue>(); held && node.kind == "prim::SetAttr") {
            const auto& attributes = object(arguments[0]).attributes;
            const auto found = attributes.find(node.name);
            changes_.emplace_back([this, index = held->index, name = node.name,
                                   value = found == attributes.end() ? Value{} : found->second]() mutable {
                std::swap(program_.objects[index].attributes[name], value);
            });
        }
        const auto* sequence = arguments[0].as<Sequence>();
        if (!sequence || !has_word(changing, node.kind)) return;
        take_steps(sequence->items->size() / items_per_step);
        for (const auto& items : {sequence->items, sequence->keys})
            if (items) changes_.emplace_back([items, held = *items]() mutable { std::swap(*items, held); });
    }

    /// Takes back the changes noted since there were `count`, and returns them.
    std::vector<Change> take_back(std::size_t count) {
        for (std::size_t i = changes_.size(); i-- > count;) changes_[i]();
        const auto begin = changes_.begin() + static_cast<std::ptrdiff_t>(count);
        std::vector<Change> taken(std::make_move_iterator(begin), std::make_move_iterator(changes_.end()));
        changes_.resize(count);
        return taken;
    }

    std::optional<std::vector<Value>> attempt(const Block& block, Frame& frame) {
        const std::size_t depth = active_.size();
        const std::string module = module_;
        try {
            return run_block(block, frame);
        } catch (const Raised&) {
            active_.resize(depth);
            module_ = module;
            return std::nullopt;
        }
    }

    void run_loop(const Node& node, Frame& frame) {
        if (node.inputs.size() < 2 || node.blocks.size() != 1) malformed(node);
        const Block& body = node.blocks[0];
        const std::string name = fmt::format("loop{}", loops_++);
        const auto* bound = frame.at(node.inputs[0]).as<Expression>();
        const auto known = bound ? graph_.expressions.constant_value(*bound) : std::nullopt;
        const auto given = given_passes(graph_, options_, name);
        const auto warn = [&](const std::string& what) {
            graph_.warnings.push_back(
                fmt::format("{}: {} (--trip {}=N)", module_.empty() ? "forward" : module_, what, name));
        };
        const auto count_one = [&] {
            warn(fmt::format("the number of passes of {} depends on data or on a symbol; one is counted", name));
            return std::int64_t{1};
        };
        std::int64_t passes = given ? *given : known ? *known : count_one();
        Value condition = frame.at(node.inputs[1]);
        std::vector<Value> carried;
        for (std::size_t i = 2; i < node.inputs.size(); ++i) carried.push_back(frame.at(node.inputs[i]));
        const std::size_t first_decision = decided_.size();
        std::int64_t done = 0;
        for (; done < passes; ++done) {
            take_steps(1);
            const auto goes_on = truth_of(graph_, condition);
            if (goes_on == false) break;
            if (!goes_on && !given && bound && passes > std::max<std::int64_t>(done, 1)) {
                passes = std::max(done, count_one());
                if (done == passes) break;
            }
            if (body.inputs.size() != carried.size() + 1 || body.outputs.size() != body.inputs.size()) malformed(node);
            const auto run_pass = [&] {
                frame.at(body.inputs[0]) = graph_.expressions.constant(done);
                for (std::size_t k = 0; k < carried.size(); ++k) frame.at(body.inputs[k + 1]) = carried[k];
                return run_block(body, frame);
            };
            bool idle = false;
            std::vector<Value> results = done == 0 ? first_pass(run_pass, carried, idle) : run_pass();
            condition = std::move(results.front());
            results.erase(results.begin());
            carried = std::move(results);
            if (idle && !given && passes == std::numeric_limits<std::int64_t>::max()) passes = count_one();
        }
        if (!given && done > 1 && decided_.size() > first_decision)
            warn(fmt::format(
                "{} may end before its {} passes, depending on the data-dependent {}; all passes are counted", name,
                done, decided_[first_decision]));
        decided_.resize(first_decision);
        set_all(node, frame, std::move(carried));
    }

    /// The first pass of a loop. Where it ends the loop because of how conditions on data were decided (`break` and
    /// `return` are such conditions), these are decided the other way, from the last one on, and the pass runs again.
    /// `idle`: such a condition alone can end the loop, since the pass changed no number.
    template <class Run>
    std::vector<Value> first_pass(const Run& run_pass, const std::vector<Value>& carried, bool& idle) {
        const Tentative tentative(*this);
        const Mark begin = mark();
        const std::size_t first_decision = decided_.size();
        const std::uint64_t loops = loops_;
        std::vector<Value> results = run_pass();
        const auto ends = [&] { return truth_of(graph_, results.front()) == false; };
        const auto again = [&] {
            take_back(begin.changes);
            remove(begin, mark());
            decided_.resize(first_decision);
            loops_ = loops;
            results = run_pass();
        };
        const auto flip = [&](const std::string& name) {
            Choice& choice = choices_.at(name);
            choice.then = !choice.then;
            std::swap(choice.taken, choice.left);
        };
        std::vector<std::string> flipped;
        while (ends()) {
            const auto end = decided_.rend() - static_cast<std::ptrdiff_t>(first_decision);
            const auto last =
                std::find_if(decided_.rbegin(), end, [&](const std::string& name) { return !settled_.contains(name); });
            if (last == end) break;
            flipped.push_back(*last);
            settled_.insert(*last);
            flip(flipped.back());
            again();
        }
        if (ends() && !flipped.empty()) {
            for (const std::string& name : flipped) flip(name);
            again();
        }
        idle = decided_.size() > first_decision && changes_.size() == begin.changes;
        for (std::size_t i = 0; i < carried.size(); ++i)
            idle = idle && is_same(carried[i], results[i + 1]).value_or(true);
        return results;
    }

    void dispatch(const Node& node, Frame& frame, const std::vector<Value>& arguments) {
        check_room(graph_, options_.max_nodes, node.kind);
        AtenCall call{.target = node.kind, .module = module_};
        bool computable = true;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const std::string name = i < node.arguments.size() ? node.arguments[i] : fmt::format("{}", i);
            computable = add_argument(call, name, arguments[i]) && computable;
        }
        name_convolution(call);
        const std::string_view target = call.target;
        const std::string operation(target.substr(target.rfind(':') + 1));
        call.name = unique_name(op_names_, operation.substr(0, operation.find_last_not_of('_') + 1));
        if (options_.unsupported_is_error && !is_known_aten(call.target))
            throw_error(ErrorCode::model, "{}: no rule for operator {}", call.name, call.target);
        if (operation == "Int" || operation == "Bool" || operation == "Float" || operation == "item" ||
            operation.ends_with("Implicit")) {
            call.target = "aten::item";
            append_aten(graph_, call);
            return set(node, frame, Unknown{});
        }
        const auto types = computable ? infer_aten(graph_, call) : std::nullopt;
        bind_outputs(node, frame, call, types);
        append_aten(graph_, call);
    }

    /// Returns false when the value is not known.
    bool add_argument(AtenCall& call, const std::string& name, const Value& value) {
        AtenArgument argument;
        argument.name = name;
        bool known = true;
        const bool wants_tensor = name == "self" || name == "input" || name == "tensors";
        const auto add = [&](const Value& item, bool in_list) {
            if (item.is_none()) {
                if (in_list) argument.tensors.push_back(no_tensor);
            } else if (item.as<TensorValue>() || item.as<StoredTensor>()) {
                argument.tensors.push_back(tensor_of(item));
            } else if (wants_tensor && (item.as<Expression>() || item.as<double>() || item.as<bool>())) {
                argument.tensors.push_back(scalar_tensor(item));
            } else if (const auto* size = item.as<Expression>()) {
                argument.sizes.push_back(*size);
            } else if (const auto* flag = item.as<bool>()) {
                argument.sizes.push_back(graph_.expressions.constant(*flag));
            } else if (const auto* real = item.as<double>()) {
                argument.number = *real;
                const auto whole = static_cast<std::int64_t>(std::min(std::max(*real, -1e15), 1e15));
                if (in_list && static_cast<double>(whole) == *real)
                    argument.sizes.push_back(graph_.expressions.constant(whole));
            } else if (const auto* text = item.as<std::string>()) {
                argument.text = *text;
            } else {
                known = false;
            }
        };
        if (const auto* sequence = value.as<Sequence>()) {
            for (const Value& item : *sequence->items) add(item, true);
            if (argument.number && argument.sizes.size() != sequence->items->size()) argument.sizes.clear();
        } else if (value.is_none()) {
            return true;
        } else {
            add(value, false);
        }
        for (const Expression size : argument.sizes)
            if (const auto number = graph_.expressions.constant_value(size)) argument.integers.push_back(*number);
        if (argument.integers.size() != argument.sizes.size()) argument.integers.clear();
        call.arguments.push_back(std::move(argument));
        return known;
    }

    /// Traced programs hold the operator below conv2d and its kin; eager dispatches those.
    void name_convolution(AtenCall& call) const {
        if (call.target != "aten::_convolution" && call.target != "aten::convolution") return;
        const TensorId weight = call.tensor("weight");
        const std::size_t rank = weight == no_tensor ? 0 : graph_.tensors[weight].shape.size();
        if (rank < 3 || rank > 5) return;
        call.target = fmt::format("aten::conv{}{}d", call.integer("transposed", 0) != 0 ? "_transpose" : "", rank - 2);
    }

    void bind_outputs(const Node& node, Frame& frame, AtenCall& call,
                      const std::optional<std::vector<AtenOutput>>& types) {
        const auto add = [&](AtenOutput type, bool only) {
            const std::string name = only ? call.name : fmt::format("{}.{}", call.name, call.outputs.size());
            call.outputs.push_back(declare(std::move(type), name));
            return Value(TensorValue{call.outputs.back()});
        };
        const AtenOutput unknown{DType::f32, {}, false};
        if (node.outputs.size() == 1 && node.output_types.at(0) == ValueType::tensors) {
            const std::vector<AtenOutput> unpacked(std::max<std::size_t>(node.list_items, 1), unknown);
            std::vector<Value> items;
            for (const AtenOutput& type : types.value_or(unpacked))
                items.push_back(add(type, types && types->size() == 1));
            if (!types && node.list_items == 0) return set(node, frame, Unknown{});
            return set(node, frame, make_list(std::move(items)));
        }
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            const bool known = types && i < types->size();
            const bool tensor = node.output_types.at(i) == ValueType::tensor;
            frame.at(node.outputs[i]) =
                tensor ? add(known ? (*types)[i] : unknown, node.outputs.size() == 1) : Value(Unknown{});
        }
    }

    Program program_;
    const ImportOptions& options_;
    Graph& graph_;
    std::vector<TensorId> stored_;  ///< graph tensors of Program::tensors
    NameCounts op_names_, tensor_names_;
    std::vector<std::uint32_t> active_;  ///< functions that are being run
    std::string module_;
    std::uint64_t steps_ = 0;
    std::uint64_t loops_ = 0;
    std::unordered_map<std::string, Choice> choices_;     ///< by the name of the condition
    std::unordered_set<std::string> reported_, settled_;  ///< conditions: warned of, tried by a loop
    std::vector<std::string> decided_;                    ///< conditions that steer, in execution order
    int tentative_ = 0;
    std::vector<Change> changes_;
};

}  // namespace

void interpret(Program program, const ImportOptions& options, Graph& graph) {
    Interpreter(std::move(program), options, graph).run();
}

}  // namespace ftax::script
