#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <utility>

#include "graphs/aten/aten_call.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/json_document.hpp"
#include "graphs/files/number.hpp"
#include "graphs/ir/control_flow.hpp"
#include "graphs/ir/shape_rules.hpp"
#include "graphs/ir/strides.hpp"
#include "graphs/ir/symbol_names.hpp"
#include "graphs/pt2/archive.hpp"

namespace ftax {
namespace {

using Json = nlohmann::json;

/// Long texts that latency does not depend on: most of a program.
constexpr std::string_view dropped[] = {"stack_trace", "torch_fn", "source_fn_stack", "from_node"};
constexpr std::size_t deepest_level = 200, piece_level = 4;
constexpr std::int64_t newest_schema = 8;  ///< torch 2.5 to 2.11; Source: torch/_export/serde/schema.py
constexpr std::size_t max_rank = 32;
constexpr int max_subgraph_depth = 64;

/// Source: torch/_export/serde/schema.py, ScalarType.
DType dtype_of(std::int64_t scalar_type) {
    using enum DType;
    constexpr DType types[] = {unknown, u8,      i8,      i16,     i32,     i64,     f16,     f32,     f64,
                               unknown, c64,     c128,    boolean, bf16,    unknown, unknown, unknown, unknown,
                               unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown,
                               unknown, u16,     f8e4m3,  f8e5m2,  f8e4m3,  f8e5m2};
    return scalar_type >= 0 && scalar_type < std::ssize(types) ? types[scalar_type] : unknown;
}

/// True for what get<std::int64_t>() returns unchanged.
bool is_integer(const Json& value) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
}

/// Throws Error{model} for anything but an integer of 64 bits or a truth value.
std::int64_t integer(const Json& value) {
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    if (!is_integer(value)) {
        const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
        throw_error(ErrorCode::model, "'{:.40}' is not a 64-bit integer", text);
    }
    return value.get<std::int64_t>();
}

/// Value of an optional member; null when it is absent or null.
const Json* member(const Json& object, std::string_view key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// Returns nlohmann::json's message without excerpts of the file.
std::string_view complaint(const Json::exception& error) {
    constexpr int wrong_type = 302, missing = 403;  // Source: the library's documentation, "Exceptions"
    return error.id == missing      ? "a field is missing"
           : error.id == wrong_type ? "a field is of another type"
                                    : "a wrong field";
}

/// Runs `read`; errors name the part of the file returned by `where()`.
template <class Where, class Read>
auto in_context(const Where& where, const Read& read) {
    try {
        return read();
    } catch (const Json::exception& error) {
        throw_error(ErrorCode::model, "{}: {}", where(), complaint(error));
    } catch (const Error& error) {
        throw_error(error.code(), "{}: {}", where(), error.what());
    }
}

/// "torch.ops.aten.conv2d.default" → "aten::conv2d"; operators of Python itself keep their name.
std::string operator_name(const std::string& target) {
    constexpr std::string_view prefix = "torch.ops.", higher_order_of_2_4 = "torch._higher_order_ops.";
    if (target.starts_with(higher_order_of_2_4)) return "higher_order::" + target.substr(target.rfind('.') + 1);
    if (!target.starts_with(prefix)) return target;
    const auto [space, name] = split_at(std::string_view(target).substr(prefix.size()), '.');
    return name.empty() ? target : std::string(space).append("::").append(split_at(name, '.').first);
}

/// Checks and bookkeeping on symbolic sizes launch nothing and read nothing.
bool is_bookkeeping(std::string_view target) {
    return target.starts_with("aten::sym_") || target.starts_with("aten::_assert") ||
           target.starts_with("aten::_check");
}

/// Reads "key,path,type". torch appends @1, @2 … to key and path of repeated calls.
ModuleCall module_call(std::string_view entry) {
    const auto [path, type] = split_at(split_at(entry, ',').second, ',');
    return {std::string(split_at(path, '@').first), std::string(type)};
}

constexpr std::array<bool, 256> marks(std::string_view characters) {
    std::array<bool, 256> found{};
    for (const char c : characters) found[static_cast<unsigned char>(c)] = true;
    return found;
}

/// The text of a program, cut while it is unpacked so that it is never parsed as a whole: each list and object at the
/// fourth level (a node, the shape of a tensor) is a piece, in whose place the outline has [its number].
class ProgramText {
  public:
    ProgramText(std::string origin, std::size_t longest_list) : origin_(std::move(origin)), longest_(longest_list) {}

    void append(std::string_view part) {
        std::size_t kept = 0, opened = part.size();
        std::string_view key;  // the last string that began in this part
        static constexpr auto ends_text = marks("\"\\"), is_mark = marks("\",:[]{}");
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (std::exchange(escaped_, false)) continue;
            const auto& ends_here = in_string_ ? ends_text : is_mark;
            while (i < part.size() && !ends_here[static_cast<unsigned char>(part[i])]) ++i;
            if (i == part.size()) break;
            const char c = part[i];
            if ((escaped_ = c == '\\')) continue;
            const bool ends = in_string_;
            in_string_ ^= c == '"';
            if (ends) key = part.substr(opened, i - opened);
            if (ends && drops_) kept = i;
            if (in_string_) opened = i + 1;
            if (in_string_ ? drops_ : !ends && room_.size() <= piece_level + 1) {
                open_text().append(part, kept, i + 1 - kept);
                kept = i + 1;
            }
            if (c != '"') follow(c, key);
        }
        if (!in_string_ || !drops_) open_text().append(part, kept);
    }

    [[nodiscard]] Json outline() { return parse(std::move(outline_), origin_); }

    [[nodiscard]] std::string_view piece(const Json& held) const {
        const auto number = held.at(0).get<std::size_t>();
        return number < pieces_.size() ? std::string_view(pieces_[number]) : "";
    }

    [[nodiscard]] Json whole(const Json& held) const {
        return parse(std::string(piece(held)), fmt::format("{}[{}]", origin_, held.at(0).get<std::size_t>()));
    }

    /// Returns whole(held) until the next call. Most nodes differ in their texts alone: nodes of one form share a
    /// document, in which these are replaced. Other texts than printable ASCII without escapes are parsed.
    [[nodiscard]] const Json& node(const Json& held) {
        constexpr std::size_t most_forms = 1000, largest_form = 1 << 16;  // a model has some dozens; a graph is no form
        const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '\\' && c != '"'; };
        const std::string_view json = piece(held);
        if (json.size() > largest_form) return other_ = whole(held);
        form_.clear(), texts_.clear();
        std::size_t begin = 0, searched = 0;  // of what is not yet part of the form; of what is not yet searched
        for (std::size_t open; (open = json.find('"', searched)) != json.npos;) {
            const auto end = std::find_if_not(json.begin() + open + 1, json.end(), is_plain);
            if (end == json.end() || *end != '"') return other_ = whole(held);
            const auto close = static_cast<std::size_t>(end - json.begin());
            searched = close + 1;
            const std::size_t next = json.find_first_not_of(" \t\r\n", searched);
            if (next != json.npos && json[next] == ':') continue;  // a key
            form_.append(json, begin, open + 1 - begin).append(fmt::format_int(texts_.size()).c_str());
            texts_.push_back(json.substr(open + 1, close - open - 1));
            begin = close;
        }
        form_.append(json, begin);
        auto& [document, places] = forms_[form_];
        if (document.is_null()) {
            other_ = whole(held);
            if (forms_.size() > most_forms) return forms_.erase(form_), other_;
            document = parse(form_, origin_);
            places.resize(texts_.size());
            const Json flat = document.flatten();
            for (const auto& [pointer, number] : flat.items())
                if (const auto place = number.is_string() ? parse_integer(number.get<std::string>()) : std::nullopt)
                    places.at(static_cast<std::size_t>(*place)) = &document[Json::json_pointer(pointer)];
        }
        for (std::size_t i = 0; i < texts_.size(); ++i) places[i]->get_ref<std::string&>() = texts_[i];
        return document;
    }

  private:
    static Json parse(std::string text, const std::string& origin) {
        return parse_json(quote_non_finite(std::move(text)), origin, ErrorCode::model, deepest_level);
    }

    std::string& open_text() { return room_.size() > piece_level ? piece_ : outline_; }

    void follow(char mark, std::string_view key) {
        drops_ = mark == ':' && std::ranges::find(dropped, key) != std::end(dropped);
        const std::size_t most = 4 * longest_ + 10'000;  // of the outline and of a piece: some hundred MB
        if (mark == ',' && ++(room_.size() > piece_level ? piece_values_ : values_) > most)
            throw_error(ErrorCode::limit, "{}: more than {} values (--max-nodes)", origin_, most);
        if (mark == '{' || mark == '[') {
            if (room_.size() == deepest_level)
                throw_error(ErrorCode::limit, "{}: nested deeper than {} levels", origin_, deepest_level);
            if (room_.size() == piece_level) {
                outline_.back() = '[';
                outline_.append(fmt::format_int(pieces_.size()).c_str()) += ']';
                piece_ = mark;
            }
            room_.push_back(mark == '[' ? longest_ : std::numeric_limits<std::size_t>::max());
        } else if (mark != ':' && !room_.empty()) {
            if (mark == ',' && --room_.back() == 0)
                throw_error(ErrorCode::limit, "{}: a list of more than {} values (--max-nodes)", origin_, longest_);
            if (mark == ',') return;
            room_.pop_back();
            if (room_.size() == piece_level) pieces_.push_back(piece_), piece_values_ = 0;
        }
    }

    std::string origin_;
    std::size_t longest_, values_ = 0, piece_values_ = 0;  ///< of a list; of the outline and of a piece
    std::string outline_, piece_;                          ///< the piece that is read
    std::deque<std::string> pieces_;
    std::vector<std::size_t> room_;  ///< values that each open list may still have
    bool in_string_ = false, escaped_ = false, drops_ = false;
    std::unordered_map<std::string, std::pair<Json, std::vector<Json*>>> forms_;
    Json other_;                           ///< the last node that shares no document
    std::string form_;                     ///< of the last node
    std::vector<std::string_view> texts_;  ///< of the last node
};

class Importer {
  public:
    Importer(Graph& graph, const ImportOptions& options, ProgramText& text)
        : graph_(graph), options_(options), text_(text) {}

    void import_program() {
        Json program = text_.outline();
        if (!program.is_object()) throw Error(ErrorCode::model, "the program is not a JSON object");
        check_schema(program);
        Json& module = program.at("graph_module");
        Json& graph = module.at("graph");
        Json& specs = module.at("signature").at("input_specs");
        for (Json* values : {&specs, &graph["outputs"], &graph["sym_int_values"]})
            for (Json& value : *values) value = text_.whole(value);
        name_symbols(graph, specs);
        read_ranges(program);
        Scope scope{graph, {}};
        const std::size_t tensors = graph.at("tensor_values").size();
        scope.tensors.reserve(tensors), used_.reserve(tensors), graph_.tensors.reserve(tensors);
        for (const Json& spec : specs) declare_input(scope, spec);
        import_nodes(scope, 0);
        for (const Json& output : graph.at("outputs"))
            if (const Json* tensor = member(output, "as_tensor"))
                graph_.outputs.push_back(lookup(scope, tensor->at("name")));
    }

  private:
    /// One (sub)graph of the file, with the tensors of its names.
    struct Scope {
        const Json& graph;
        std::unordered_map<std::string, TensorId> tensors;
    };

    void check_schema(const Json& program) const {
        const Json* version = member(program, "schema_version");
        const std::int64_t major = version ? integer(version->at("major")) : 0;
        if (major > newest_schema)
            throw_error(ErrorCode::model, "schema version {} is newer than {}; re-export with torch 2.4 to 2.11", major,
                        newest_schema);
    }

    void name_symbols(const Json& graph, const Json& specs) {
        for (const Json& spec : specs) {
            const Json* tensor = user_tensor(spec);
            if (!tensor) continue;
            const std::string name = tensor->at("name");
            const Json meta = text_.whole(graph.at("tensor_values").at(name));
            const auto dims = mapped(meta.at("sizes"), [&](const Json& size) { return size_text(size); });
            symbols_.add_input(name, dims, !is_float(dtype_of(integer(meta.at("dtype")))));
        }
        graph_.warnings = symbols_.warnings();
        graph_.other_names = symbols_.names();
    }

    /// torch writes 2 for the least size of a dimension that it does not specialise; the program also runs with 1.
    void read_ranges(const Json& program) {
        const Json* constraints = member(program, "range_constraints");
        if (!constraints || !constraints->is_object()) return;
        for (const auto& [symbol, bounds] : constraints->items()) {
            SymbolRange range{.symbol = symbols_.rename(symbol)};
            const Json* least = member(bounds, "min_val");
            const Json* greatest = member(bounds, "max_val");
            if (least && is_integer(*least) && integer(*least) > 2) range.least = integer(*least);
            if (greatest && is_integer(*greatest)) range.greatest = integer(*greatest);
            if (range.least > 0 || range.greatest < SymbolRange{}.greatest) graph_.ranges.push_back(std::move(range));
        }
    }

    static const Json* user_tensor(const Json& spec) {
        const Json* input = member(spec, "user_input");
        return input ? member(input->at("arg"), "as_tensor") : nullptr;
    }

    static std::string size_text(const Json& size) {
        if (const Json* number = member(size, "as_int")) return std::to_string(integer(*number));
        return size.at("as_expr").at("expr_str");
    }

    Expression size(const Json& size) {
        if (const Json* number = member(size, "as_int")) {
            if (integer(*number) < 0) throw Error(ErrorCode::model, "negative dimension or stride");
            return graph_.expressions.constant(integer(*number));
        }
        const std::string& text = size.at("as_expr").at("expr_str").get_ref<const std::string&>();
        return kept_in(parsed_, text, [&] { return graph_.expressions.parse(symbols_.rename(text)); });
    }

    Tensor read_tensor(const Scope& scope, const std::string& name) {
        const Json& held = scope.graph.at("tensor_values").at(name);
        if (!held.is_array()) return read_tensor(held);
        return kept_in(read_, text_.piece(held), [&] { return read_tensor(text_.whole(held)); });
    }

    Tensor read_tensor(const Json& meta) {
        Tensor tensor{.dtype = dtype_of(integer(meta.at("dtype")))};
        for (const Json& dim : meta.at("sizes")) tensor.shape.push_back(size(dim));
        if (tensor.shape.size() > max_rank) throw_error(ErrorCode::limit, "more than {} dimensions", max_rank);
        if (const Json* strides = member(meta, "strides")) {
            for (const Json& stride : *strides) tensor.strides.push_back(size(stride));
            if (tensor.strides.size() != tensor.shape.size())
                throw Error(ErrorCode::model, "a tensor has not as many strides as dimensions");
            tensor.strides =
                DimensionMath(graph_.expressions).unless_contiguous(tensor.shape, std::move(tensor.strides));
        }
        return tensor;
    }

    TensorId declare(Scope& scope, const std::string& name, TensorRole role) {
        Tensor tensor = in_context([&] { return fmt::format("tensor '{}'", excerpt(name)); },
                                   [&] { return read_tensor(scope, name); });
        tensor.name = name;
        tensor.role = role;
        graph_.tensors.push_back(std::move(tensor));
        const auto id = static_cast<TensorId>(graph_.tensors.size() - 1);
        if (!scope.tensors.emplace(name, id).second)
            throw_error(ErrorCode::model, "tensor '{}' is produced twice", excerpt(name));
        if (std::exchange(used_[name].tensor, true)) graph_.tensors[id].name = fmt::format("{}.{}", name, id);
        return id;
    }

    static TensorId lookup(const Scope& scope, const std::string& name) {
        const auto found = scope.tensors.find(name);
        if (found == scope.tensors.end())
            throw_error(ErrorCode::model, "tensor '{}' is read before it is produced", excerpt(name));
        return found->second;
    }

    void declare_input(Scope& scope, const Json& spec) {
        if (const Json* tensor = user_tensor(spec))
            graph_.inputs.push_back(declare(scope, tensor->at("name"), TensorRole::input));
        for (const std::string kind : {"parameter", "buffer", "tensor_constant"}) {
            const Json* weight = member(spec, kind);
            if (!weight) continue;
            const TensorId id = declare(scope, weight->at("arg").at("name"), TensorRole::weight);
            std::string name = weight->at(kind + "_name");
            if (!std::exchange(used_[name].tensor, true)) graph_.tensors[id].name = std::move(name);
        }
    }

    void import_nodes(Scope& scope, int depth) {
        if (depth > max_subgraph_depth)
            throw_error(ErrorCode::limit, "subgraphs nested deeper than {}", max_subgraph_depth);
        for (const Json& node : scope.graph.at("nodes"))
            import_node(scope, depth == 0 ? text_.node(node) : node, depth);
    }

    static std::string described(const Json& node) {
        const auto text = [&](const char* key) {
            const Json* held = node.is_object() ? member(node, key) : nullptr;
            return held && held->is_string() ? held->get<std::string>() : std::string("?");
        };
        return fmt::format("node {} ({})", text("name"), text("target"));
    }

    void import_node(Scope& scope, const Json& node, int depth) {
        AtenCall call;
        const auto here = [&] { return described(node); };
        call.target = in_context(here, [&] { return operator_name(node.at("target")); });
        if (is_bookkeeping(call.target)) return;
        if (graph_.ops.size() >= options_.max_nodes) check_room(graph_, options_.max_nodes, here());
        note_modules(node, call);
        if (call.target.starts_with("higher_order::"))
            return in_context(here, [&] { import_subgraph(scope, node, call, depth); });
        in_context(here, [&] {
            for (const Json& input : node.at("inputs")) add_argument(scope, input, call);
            declare_outputs(scope, node, call);
        });
        // Arithmetic on sizes (mul, floordiv …) has no tensor on either side: PyTorch does it in Python.
        const auto is_tensor = [](const AtenArgument& argument) { return !argument.tensors.empty(); };
        if (call.outputs.empty() && std::ranges::none_of(call.arguments, is_tensor)) return;
        const Json* name = member(node, "name");
        call.name = name                   ? name->get<std::string>()
                    : call.outputs.empty() ? call.target
                                           : graph_.tensors[call.outputs[0]].name;
        const bool fresh = !std::exchange(used_[call.name].op, true);  // a body that runs again has the names it had
        if (!fresh && !call.outputs.empty()) call.name = graph_.tensors[call.outputs[0]].name;
        if (options_.unsupported_is_error && !is_known_aten(call.target))
            throw_error(ErrorCode::model, "{}: no rule for operator {}", excerpt(call.name), excerpt(call.target));
        append_aten(graph_, call);
    }

    /// Calls `add` with each tensor of an argument or output, with null for one that is None.
    template <class Add>
    static void for_each_tensor(const Json& held, const Add& add) {
        if (const Json* tensor = member(held, "as_tensor")) return add(tensor);
        if (const Json* tensor = member(held, "as_optional_tensor")) add(member(*tensor, "as_tensor"));
        if (const Json* tensors = member(held, "as_tensors"))
            for (const Json& tensor : *tensors) add(&tensor);
        if (const Json* tensors = member(held, "as_optional_tensors"))
            for (const Json& tensor : *tensors) add(member(tensor, "as_tensor"));
        if (const Json* lists = member(held, "as_nested_tensors"))
            for (const Json& tensors : *lists)
                for (const Json& tensor : tensors) add(&tensor);
    }

    void declare_outputs(Scope& scope, const Json& node, AtenCall& call) {
        for (const std::string& name : output_names(node))
            call.outputs.push_back(declare(scope, name, TensorRole::activation));
    }

    void add_argument(const Scope& scope, const Json& input, AtenCall& call) {
        AtenArgument argument;
        argument.name = input.at("name");
        const Json& value = input.at("arg");
        if (!value.is_object()) throw_error(ErrorCode::model, "argument '{}' has no value", excerpt(argument.name));
        // Some versions of torch write every alternative of the union, all but one of them null.
        auto chosen = value.begin();
        while (chosen != value.end() && chosen.value().is_null()) ++chosen;
        if (chosen == value.end()) throw_error(ErrorCode::model, "argument '{}' has no value", excerpt(argument.name));
        const std::string& kind = chosen.key();
        const Json& held = chosen.value();
        if (kind.ends_with("tensor") || kind.ends_with("tensors")) {
            for_each_tensor(value, [&](const Json* tensor) {
                argument.tensors.push_back(tensor ? lookup(scope, tensor->at("name")) : no_tensor);
            });
        } else if (kind == "as_int" || kind == "as_bool") {
            argument.integers = {integer(held)};
        } else if (kind == "as_ints") {
            std::transform(held.begin(), held.end(), std::back_inserter(argument.integers), integer);
        } else if (kind == "as_sym_int") {
            read_sizes(scope, Json::array({held}), argument);
        } else if (kind == "as_sym_ints") {
            read_sizes(scope, held, argument);
        } else if (kind == "as_float" && held.is_number()) {
            argument.number = held.get<double>();
        } else if (kind == "as_string") {
            argument.text = held.get<std::string>();
        } else {
            return;  // None, devices, layouts: nothing that changes the work
        }
        call.arguments.push_back(std::move(argument));
    }

    void read_sizes(const Scope& scope, const Json& sizes, AtenArgument& argument) {
        for (const Json& item : sizes) {
            const Json* value = &item;
            if (!member(item, "as_int"))
                value = member(scope.graph.at("sym_int_values"), item.at("as_name").get<std::string>().c_str());
            if (!value) throw_error(ErrorCode::model, "size '{}' has no value", excerpt(item.at("as_name").dump()));
            const Json* number = member(*value, "as_int");
            argument.sizes.push_back(number ? graph_.expressions.constant(integer(*number)) : size(*value));
            if (number) argument.integers.push_back(integer(*number));
        }
        if (argument.integers.size() != argument.sizes.size()) argument.integers.clear();
    }

    /// One argument before, between or after the graphs that a node calls.
    struct Operands {
        std::vector<TensorId> tensors;  ///< no_tensor for other values
        std::optional<bool> truth;      ///< value of a condition known to the exporter
        bool is_text = false;
    };

    struct HigherOrder {
        std::string name;
        std::vector<const Json*> bodies;
        std::vector<Operands> operands;
        std::size_t before = 0;  ///< operands before the first body
    };

    HigherOrder read_higher_order(const Scope& scope, const Json& node, const AtenCall& call) {
        HigherOrder result;
        for (const Json& input : node.at("inputs")) {
            if (const Json* graph = member(input.at("arg"), "as_graph")) {
                result.bodies.push_back(&graph->at("graph"));
                continue;
            }
            AtenCall reads;
            add_argument(scope, input, reads);
            Operands& operands = result.operands.emplace_back();
            if (result.bodies.empty()) result.before = result.operands.size();
            operands.is_text = member(input.at("arg"), "as_string") != nullptr;
            if (reads.arguments.empty() || reads.arguments[0].tensors.empty()) {
                operands.tensors = {no_tensor};
                if (!reads.arguments.empty() && reads.arguments[0].integers.size() == 1)
                    operands.truth = reads.arguments[0].integers[0] != 0;
                const Json* list = member(input.at("arg"), "as_tensors");
                if ((list && list->empty()) || member(input.at("arg"), "as_ints")) operands.tensors.clear();
            } else {
                operands.tensors = std::move(reads.arguments[0].tensors);
            }
        }
        const Json* name = member(node, "name");
        const std::vector<std::string> outputs = output_names(node);
        result.name = name ? name->get<std::string>() : outputs.empty() ? call.target : outputs.front();
        return result;
    }

    static std::vector<std::string> output_names(const Json& node) {
        std::vector<std::string> names;
        for (const Json& output : node.at("outputs")) {
            for_each_tensor(output, [&](const Json* tensor) {
                if (tensor) names.push_back(tensor->at("name"));
            });
        }
        return names;
    }

    /// Follows the graphs that a node calls: those of wrap_with_set_grad_enabled, wrap_with_autocast and the like in
    /// place, those of cond, while_loop, scan and map as ONNX's If, Loop and Scan are. Others stay one opaque operator.
    void import_subgraph(Scope& scope, const Json& node, AtenCall& call, int depth) {
        const HigherOrder called = read_higher_order(scope, node, call);
        const std::string_view kind = std::string_view(call.target).substr(std::string_view("higher_order::").size());
        const std::size_t bodies = called.bodies.size(), operands = called.operands.size();
        std::optional<std::vector<TensorId>> results;
        if (kind == "cond" && bodies == 2 && operands == 2) {
            results = import_cond(called, call, depth);
        } else if (kind == "while_loop" && bodies == 2 && operands == 2) {
            results = import_while(called, call, depth);
        } else if (kind == "scan" && bodies == 1 && operands == 3) {
            results = import_slices(called, called.operands[0].tensors, called.operands[1].tensors,
                                    called.operands[2].tensors, call, depth);
        } else if ((kind == "map_impl" || kind == "map") && bodies == 1 && operands == 2) {
            results = import_slices(called, {}, called.operands[0].tensors, called.operands[1].tensors, call, depth);
        } else if (bodies == 1 && (kind.starts_with("wrap") || kind == "invoke_subgraph" || kind == "strict_mode")) {
            std::vector<TensorId> arguments;
            for (std::size_t i = called.before; i < operands; ++i) {
                if (called.operands[i].is_text) continue;
                const auto& tensors = called.operands[i].tensors;
                arguments.insert(arguments.end(), tensors.begin(), tensors.end());
            }
            if (called.bodies[0]->at("inputs").size() == arguments.size())
                results = import_body(*called.bodies[0], arguments, call, depth);
        }
        if (!results) return append_opaque(scope, node, call, called);
        const std::vector<std::string> names = output_names(node);
        if (names.size() != results->size())
            throw_error(ErrorCode::model, "{}: body and call differ in outputs", excerpt(call.target));
        for (std::size_t i = 0; i < names.size(); ++i)
            if (!scope.tensors.emplace(names[i], (*results)[i]).second)
                throw_error(ErrorCode::model, "tensor '{}' is produced twice", excerpt(names[i]));
    }

    void append_opaque(Scope& scope, const Json& node, AtenCall& call, const HigherOrder& called) {
        declare_outputs(scope, node, call);
        call.name = call.outputs.empty() ? call.target : graph_.tensors[call.outputs[0]].name;
        AtenArgument reads{"operands", {}, {}, {}, {}, {}};
        for (const Operands& operands : called.operands)
            reads.tensors.insert(reads.tensors.end(), operands.tensors.begin(), operands.tensors.end());
        std::erase(reads.tensors, no_tensor);
        call.arguments = {std::move(reads)};
        graph_.warnings.push_back(fmt::format("{}: the body of {} is not modelled", call.name, call.target));
        append_aten(graph_, call);
    }

    std::vector<TensorId> import_body(const Json& body, const std::vector<TensorId>& operands, const AtenCall& call,
                                      int depth) {
        const Json& inputs = body.at("inputs");
        if (inputs.size() != operands.size())
            throw_error(ErrorCode::model, "{}: a body has {} inputs, not {}", excerpt(call.target), operands.size(),
                        inputs.size());
        Scope inner{body, {}};
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const Json* tensor = member(inputs[i], "as_tensor");
            if (tensor && operands[i] != no_tensor) inner.tensors.emplace(tensor->at("name"), operands[i]);
        }
        import_nodes(inner, depth + 1);
        std::vector<TensorId> results;
        for (const Json& output : body.at("outputs"))
            if (const Json* tensor = member(output, "as_tensor")) results.push_back(lookup(inner, tensor->at("name")));
        return results;
    }

    /// The host reads a condition on the device before it goes on.
    void append_read(TensorId condition, const std::string& name, const AtenCall& call) {
        if (condition == no_tensor) return;
        append_aten(graph_, {"aten::item", name, call.module, {{"self", {condition}, {}, {}, {}, {}}}, {}});
    }

    std::vector<TensorId> import_cond(const HigherOrder& called, const AtenCall& call, int depth) {
        const Operands& condition = called.operands[0];
        const bool then = take_branch(graph_, options_, called.name, condition.truth,
                                      called.bodies[0]->at("nodes").size(), called.bodies[1]->at("nodes").size());
        if (condition.tensors.size() == 1) append_read(condition.tensors[0], called.name, call);
        return import_body(*called.bodies[then ? 0 : 1], called.operands[1].tensors, call, depth);
    }

    std::vector<TensorId> import_while(const HigherOrder& called, const AtenCall& call, int depth) {
        std::vector<TensorId> carried = called.operands[0].tensors;
        const std::vector<TensorId>& others = called.operands[1].tensors;
        const std::int64_t passes = passes_of(graph_, options_, called.name, std::nullopt);
        for (std::int64_t pass = 0;; ++pass) {
            std::vector<TensorId> operands = carried;
            operands.insert(operands.end(), others.begin(), others.end());
            const std::vector<TensorId> condition = import_body(*called.bodies[0], operands, call, depth);
            if (condition.size() == 1) append_read(condition[0], fmt::format("{}.{}", called.name, pass), call);
            if (pass == passes) return carried;
            std::vector<TensorId> next = import_body(*called.bodies[1], operands, call, depth);
            if (next.size() != carried.size())
                throw_error(ErrorCode::model, "{}: a body does not return what it carries", call.target);
            carried = std::move(next);
        }
    }

    /// scan and map: one pass per slice along the first dimension, whose results are stacked.
    std::vector<TensorId> import_slices(const HigherOrder& called, std::vector<TensorId> carried,
                                        const std::vector<TensorId>& sources, const std::vector<TensorId>& others,
                                        const AtenCall& call, int depth) {
        const bool sliceable = !sources.empty() && std::ranges::all_of(sources, [&](TensorId id) {
            return id != no_tensor && !graph_.tensors[id].shape.empty();
        });
        if (!sliceable) throw_error(ErrorCode::model, "{}: no dimension to slice", excerpt(call.target));
        Expression count = graph_.tensors[sources[0]].shape[0];
        const std::int64_t passes = passes_of(graph_, options_, called.name, graph_.expressions.constant_value(count));
        if (options_.trip_counts.contains(called.name)) count = graph_.expressions.constant(passes);
        std::vector<std::vector<TensorId>> stacked;
        for (std::int64_t pass = 0; pass < passes; ++pass) {
            std::vector<TensorId> operands = carried;
            for (const TensorId source : sources) operands.push_back(append_part(source, called.name, call));
            operands.insert(operands.end(), others.begin(), others.end());
            const std::vector<TensorId> results = import_body(*called.bodies[0], operands, call, depth);
            if (results.size() < carried.size())
                throw_error(ErrorCode::model, "{}: a body does not return what it carries", call.target);
            std::copy_n(results.begin(), carried.size(), carried.begin());
            stacked.resize(results.size() - carried.size());
            for (std::size_t i = 0; i < stacked.size(); ++i) stacked[i].push_back(results[carried.size() + i]);
        }
        if (stacked.empty()) {
            const std::size_t returned = called.bodies[0]->at("outputs").size();
            stacked.resize(returned - std::min(returned, carried.size()));
        }
        for (const std::vector<TensorId>& parts : stacked)
            carried.push_back(append_stack(parts, count, called.name, call));
        return carried;
    }

    TensorId new_tensor(const std::string& name, DType dtype, std::vector<Expression> shape) {
        const auto id = static_cast<TensorId>(graph_.tensors.size());
        graph_.tensors.push_back({.name = fmt::format("{}.{}", name, id), .dtype = dtype, .shape = std::move(shape)});
        return id;
    }

    void append_along_first(const char* target, AtenArgument operands, TensorId result, const AtenCall& call) {
        append_aten(graph_, {target,
                             graph_.tensors[result].name,
                             call.module,
                             {std::move(operands), {"dim", {}, {0}, {}, {}, {}}},
                             {result}});
    }

    TensorId append_part(TensorId source, const std::string& name, const AtenCall& call) {
        check_room(graph_, options_.max_nodes, name);
        const std::vector<Expression> shape(graph_.tensors[source].shape.begin() + 1,
                                            graph_.tensors[source].shape.end());
        const TensorId part = new_tensor(name, graph_.tensors[source].dtype, shape);
        append_along_first("aten::select", {"self", {source}, {}, {}, {}, {}}, part, call);
        return part;
    }

    TensorId append_stack(const std::vector<TensorId>& parts, Expression count, const std::string& name,
                          const AtenCall& call) {
        std::vector<Expression> shape{count};
        DType dtype = DType::f32;
        if (!parts.empty()) {
            const Tensor& part = graph_.tensors[parts.front()];
            dtype = part.dtype;
            shape.insert(shape.end(), part.shape.begin(), part.shape.end());
        }
        const TensorId whole = new_tensor(name, dtype, std::move(shape));
        if (!parts.empty()) append_along_first("aten::stack", {"tensors", parts, {}, {}, {}, {}}, whole, call);
        return whole;
    }

    /// Sets the module path of a call and notes which modules began since the last one.
    void note_modules(const Json& node, AtenCall& call) {
        const Json* metadata = member(node, "metadata");
        const Json* text = metadata ? member(*metadata, "nn_module_stack") : nullptr;
        if (!text) return;
        auto calls = text->get<std::string>();
        if (calls == last_calls_) return void(call.module = last_module_);
        std::vector<std::string> stack;
        for (const std::string_view entry : words_of(calls, ';'))
            if (std::ranges::count(entry, ',') > 1 && !entry.starts_with("_empty_nn_module_stack"))
                stack.emplace_back(entry);
        if (stack.empty()) return;
        last_calls_ = std::move(calls);
        call.module = last_module_ = module_call(stack.back()).path;
        const auto differs = std::ranges::mismatch(stack, last_stack_).in1;
        std::transform(differs, stack.end(), std::back_inserter(graph_.module_calls), module_call);
        last_stack_ = std::move(stack);
    }

    Graph& graph_;
    const ImportOptions& options_;
    ProgramText& text_;
    std::unordered_map<std::string_view, Tensor> read_;  ///< by the text that describes it
    SymbolNames symbols_;
    std::unordered_map<std::string, Expression> parsed_;
    struct Use {
        bool tensor = false, op = false;
    };
    std::unordered_map<std::string, Use> used_;  ///< names of tensors and operators
    std::vector<std::string> last_stack_;
    std::string last_calls_, last_module_;  ///< of the last stack, as the file has it and as a path
};

/// Finds the program in the archive, or says what else the file is.
std::string program_member(const Archive& archive) {
    std::vector<std::string> programs;
    bool compiled = false, pickle = false;
    for (const std::string& name : archive.names()) {
        const auto in_folder = [&](std::string_view folder) { return ("/" + name).find(folder) != std::string::npos; };
        if (in_folder("/models/") && name.ends_with(".json")) programs.push_back(name);
        if (name.ends_with("serialized_exported_program.json")) programs.push_back(name);
        compiled = compiled || in_folder("/aotinductor/") || name.ends_with(".so") || name.ends_with(".cubin");
        pickle = pickle || name.ends_with("data.pkl");
    }
    if (programs.size() == 1) return programs[0];
    if (programs.size() > 1)
        throw_error(ErrorCode::model, "holds {} programs; export one model per file", programs.size());
    if (compiled)
        throw Error(ErrorCode::model,
                    "compiled by AOTInductor, which keeps no graph; re-export with torch.export.save");
    if (pickle) throw Error(ErrorCode::model, "holds weights, not a graph; export the model with torch.export.save");
    throw Error(ErrorCode::model,
                "a ZIP archive without a torch.export program; export the model with torch.export.save");
}

/// Module calls as recorded with the program by graphs/zoo/export.py: [[path, class], …].
std::vector<ModuleCall> recorded_module_calls(Archive& archive) {
    std::vector<ModuleCall> calls;
    for (const std::string& name : archive.names()) {
        if (!name.ends_with("/module_calls.json")) continue;
        std::string text;
        archive.read(name, [&](std::string_view part) { text += part; });
        for (const Json& entry : parse_json(text, name, ErrorCode::model))
            calls.push_back({entry.at(0).get<std::string>(), entry.at(1).get<std::string>()});
    }
    return calls;
}

}  // namespace

Graph import_pt2(const std::string& path, const ImportOptions& options) {
    Graph graph{.name = std::filesystem::path(path).stem().string(), .format = "pt2"};
    try {
        Archive archive(path, options.max_bytes);
        const std::string name = program_member(archive);
        ProgramText text(name, options.max_nodes);
        archive.read(name, [&](std::string_view part) { text.append(part); });
        Importer(graph, options, text).import_program();
        lay_out_for_cuda(graph, false);
        // The module stacks lack modules that dispatch no operator.
        if (auto calls = recorded_module_calls(archive); !calls.empty()) graph.module_calls = std::move(calls);
    } catch (const Json::exception& error) {
        throw_error(ErrorCode::model, "{}: damaged program: {}", path, complaint(error));
    } catch (const Error& error) {
        throw_error(error.code(), "{}: {}", path, error.what());
    }
    return graph;
}

}  // namespace ftax
