#include "ftax/text_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax {
namespace {

constexpr std::size_t max_text_bytes = std::size_t{1} << 30;
constexpr std::size_t max_ops = 1'000'000;
constexpr std::size_t max_rank = 32;
constexpr std::size_t reserved_tensors = 10'000;  ///< more than most models have; a hostile text reserves no more

/// Keyword of the statement that declares a tensor without a producer, indexed by TensorRole.
constexpr std::array<std::string_view, 4> role_keywords{"activation", "input", "weight", "constant"};

/// Characters of a name that needs no quotes; from '-' to ':' are the digits and "-./:".
bool is_name_character(char c) {
    return (c >= '-' && c <= ':') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// A name is unquoted unless it could be confused with the separator ':' or the absent input '_'.
bool is_bare_name(std::string_view name) {
    return !name.empty() && name != ":" && name != "_" && std::ranges::all_of(name, is_name_character);
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += {'\\', c};
        } else if (c >= ' ' && c <= '~') {
            result += c;
        } else {
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
    return result + '"';
}

class Parser {
  public:
    Parser(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

    Graph parse() {
        if (text_.size() > max_text_bytes)
            throw_error(ErrorCode::limit, "{}: text graph larger than {} bytes", origin_, max_text_bytes);
        graph_.name = origin_;
        graph_.format = "text";
        constexpr std::size_t usual_line = 50;
        const std::size_t expected = std::min(text_.size() / usual_line + 1, reserved_tensors);
        graph_.tensors.reserve(expected);
        graph_.ops.reserve(expected);
        tensors_.reserve(expected);
        op_names_.reserve(expected);
        while (position_ < text_.size()) {
            statement();
            skip_spaces();
            if (at('#')) position_ = std::min(text_.find('\n', position_), text_.size());
            if (position_ < text_.size() && text_[position_] != '\n') fail("unexpected text at the end of a statement");
            ++position_;
            ++line_;
            line_begin_ = position_;
        }
        if (graph_.tensors.empty())
            throw_error(ErrorCode::model, "{}: neither an input nor an operator in the file", origin_);
        for (const auto& [text, known] : tensors_)
            if (!known.defined)
                fail_at(known.first_use, fmt::format("tensor {} is not defined", quoted(excerpt(text))));
        if (sort_topologically(graph_))
            graph_.warnings.push_back(fmt::format("{}: operators were not in execution order; sorted", origin_));
        return std::move(graph_);
    }

  private:
    struct Place {
        std::size_t line = 0, column = 0;
    };
    struct KnownTensor {
        std::string_view name;
        TensorId id = no_tensor;
        bool defined = false;
        Place first_use;
    };

    [[nodiscard]] Place here() const { return {line_, position_ - line_begin_ + 1}; }

    [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::model) const {
        fail_at(here(), what, code);
    }
    [[noreturn]] void fail_at(Place place, std::string_view what, ErrorCode code = ErrorCode::model) const {
        throw_error(code, "{}:{}:{}: {}", origin_, place.line, place.column, what);
    }

    [[nodiscard]] bool at(char c) const { return position_ < text_.size() && text_[position_] == c; }
    void skip_spaces() {
        while (at(' ') || at('\t') || at('\r')) ++position_;
    }
    bool accept(char c) {
        skip_spaces();
        if (!at(c)) return false;
        ++position_;
        skip_spaces();
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail(fmt::format("expected '{}'", c));
    }

    /// Calls `read` for each item of a list that `close` ends.
    template <class Read>
    void list(char close, Read read) {
        if (accept(close)) return;
        do read();
        while (accept(','));
        expect(close);
    }

    template <class Belongs>
    std::string_view take_while(const Belongs& belongs) {
        const std::string_view rest = text_.substr(position_);
        const auto end = std::ranges::find_if_not(rest, belongs);
        position_ += static_cast<std::size_t>(end - rest.begin());
        return {rest.begin(), end};
    }

    std::string_view bare_name() {
        const std::string_view found = take_while(is_name_character);
        if (found.empty()) fail("expected a name");
        return found;
    }

    /// A name, bare or quoted; the view lives as long as the parser.
    std::string_view name() { return at('"') ? quoted_text() : bare_name(); }

    std::string_view quoted_text() {
        const Place begin = here();
        if (!at('"')) fail("expected a quoted text");
        ++position_;
        std::string& value = unquoted_.emplace_back();
        while (!at('"')) {
            if (position_ >= text_.size() || at('\n')) fail_at(begin, "quoted text without an end");
            value += take_while([](char c) { return c != '"' && c != '\\' && c != '\n'; });
            if (at('\\')) value += escaped_character();
        }
        ++position_;
        return value;
    }

    char escaped_character() {
        ++position_;
        if (at('"') || at('\\')) return text_[position_++];
        if (at('x') && position_ + 2 < text_.size()) {
            unsigned value = 0;
            const char* digits = text_.data() + position_ + 1;
            const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
            if (error == std::errc{} && end == digits + 2) {
                position_ += 3;
                return static_cast<char>(value);
            }
        }
        fail(R"(unknown escape; known are \" \\ \xHH)");
    }

    /// Reads one tensor name after '%' and returns its entry, creating it on first occurrence.
    KnownTensor& tensor_name() {
        const Place place = here();
        if (!at('%')) fail("expected a tensor (%name)");
        ++position_;
        const std::string_view text = name();
        const auto [found, added] = tensors_.try_emplace(text);
        if (added) {
            found->second = {text, static_cast<TensorId>(graph_.tensors.size()), false, place};
            graph_.tensors.emplace_back().name = text;
        }
        return found->second;
    }

    /// Reads `%name type` of a tensor that is defined here.
    const KnownTensor& definition(TensorRole role) {
        const Place place = here();
        KnownTensor& known = tensor_name();
        if (known.defined) fail_at(place, fmt::format("tensor {} is defined twice", quoted(excerpt(known.name))));
        known.defined = true;
        skip_spaces();
        type(graph_.tensors[known.id]);
        graph_.tensors[known.id].role = role;
        return known;
    }

    void type(Tensor& tensor) {
        const Place place = here();
        const std::string_view text = bare_name();
        const auto dtype = dtype_from_name(text);
        if (!dtype) fail_at(place, fmt::format("unknown element type {}", excerpt(text)));
        tensor.dtype = *dtype;
        if (at('?')) {
            ++position_;
            tensor.known_shape = false;
            return;
        }
        dims('[', ']', tensor.shape);
        if (!at('{')) return;
        dims('{', '}', tensor.strides);
        if (tensor.strides.size() != tensor.shape.size()) fail("as many strides as dimensions are needed");
    }

    /// Comma-separated expressions between brackets; a comma inside parentheses belongs to the expression.
    void dims(char open, char close, std::vector<Expression>& result) {
        if (!at(open)) fail(fmt::format("expected '{}'", open));
        accept(open);
        result.reserve(4);  // most tensors have no more dimensions
        if (at(close)) {
            ++position_;
            return;
        }
        while (true) {
            const std::size_t begin = position_;
            int depth = 0;
            const std::string_view text = take_while([&](char c) {
                if (c == '\n' || (depth == 0 && (c == ',' || c == close))) return false;
                depth += c == '(' ? 1 : c == ')' ? -1 : 0;
                return true;
            });
            if (position_ >= text_.size() || text_[position_] == '\n') fail(fmt::format("expected '{}'", close));
            if (result.size() == max_rank) fail(fmt::format("more than {} dimensions", max_rank), ErrorCode::limit);
            result.push_back(expression(text, begin));
            if (text_[position_++] == close) return;
        }
    }

    Expression expression(std::string_view text, std::size_t begin) {
        const auto [found, added] = expressions_.try_emplace(text);
        if (!added) return found->second;
        const Place place{line_, begin - line_begin_ + 1};
        try {
            found->second = graph_.expressions.parse(text);
        } catch (const Error& error) {  // the position is known only here
            fail_at(place, error.what(), error.code());
        }
        if (graph_.expressions.constant_value(found->second).value_or(0) < 0) fail_at(place, "negative dimension");
        return found->second;
    }

    void statement() {
        skip_spaces();
        if (position_ >= text_.size() || at('\n') || at('#')) return;
        if (at('%') || at('=')) return operation();
        const Place place = here();
        const std::string_view keyword = bare_name();
        skip_spaces();
        const auto role = std::ranges::find(role_keywords, keyword);
        if (role != role_keywords.end()) {
            const TensorId id = definition(static_cast<TensorRole>(role - role_keywords.begin())).id;
            if (graph_.tensors[id].role == TensorRole::input) graph_.inputs.push_back(id);
        } else if (keyword == "output") {
            graph_.outputs.push_back(tensor_name().id);
        } else if (keyword == "module") {
            ModuleCall& call = graph_.module_calls.emplace_back();
            call.path = name();
            skip_spaces();
            if (at('"') || (position_ < text_.size() && is_name_character(text_[position_]))) call.type = name();
        } else if (keyword == "graph") {
            graph_.name = name();
        } else if (keyword == "range") {
            range();
        } else if (keyword == "warning") {
            graph_.warnings.emplace_back(quoted_text());
        } else {
            // Python and notes are text as well; what is no graph may be a secret.
            fail_at(place, graph_.tensors.empty() && graph_.name == origin_
                               ? "not a text graph of ftax (docs/formats.md); a model in Python is "
                                 "exported first (docs/exporting.md)"
                               : "unknown statement " + excerpt(keyword));
        }
    }

    /// `range symbol least greatest`, the greatest left out where there is none.
    void range() {
        SymbolRange& range = graph_.ranges.emplace_back();
        range.symbol = name();
        skip_spaces();
        range.least = integer();
        skip_spaces();
        const char next = position_ < text_.size() ? text_[position_] : '\n';
        if (next == '-' || (next >= '0' && next <= '9')) range.greatest = integer();
    }

    void operation() {
        if (graph_.ops.size() == max_ops) fail(fmt::format("more than {} operators", max_ops), ErrorCode::limit);
        const auto id = static_cast<OpId>(graph_.ops.size());
        Op op;
        std::string_view op_name;
        if (!at('=')) {
            do {
                const KnownTensor& output = definition(TensorRole::activation);
                graph_.tensors[output.id].producer = id;
                if (op.outputs.empty()) op_name = output.name;
                op.outputs.push_back(output.id);
            } while (accept(','));
        }
        expect('=');
        const Place place = here();
        const std::string_view kind_name = bare_name();
        const auto kind = op_kind_from_name(kind_name);
        if (!kind) fail_at(place, fmt::format("unknown operator {}", excerpt(kind_name)));
        op.kind = *kind;
        op.inputs.reserve(4);
        expect('(');
        list(')', [&] {
            op.inputs.push_back(at('_') ? no_tensor : tensor_name().id);
            if (op.inputs.back() == no_tensor) ++position_;
        });
        skip_spaces();
        if (at('{')) attributes(op.attributes);
        skip_spaces();
        if (at('"')) op.source = quoted_text();
        if (accept('@')) op.module = name();
        const Place name_place = here();
        if (accept(':')) {
            op_name = name();
        } else if (op.outputs.empty()) {
            op_name = unquoted_.emplace_back(fmt::format("{}_{}", kind_name, id));
        }
        if (!op_names_.insert(op_name).second)
            fail_at(name_place, fmt::format("operator name {} is used twice", quoted(excerpt(op_name))));
        op.name = op_name;
        if (const auto missing = missing_operand(op)) fail_at(place, *missing);
        graph_.ops.push_back(std::move(op));
    }

    void attributes(std::vector<Attribute>& result) {
        expect('{');
        while (!accept('}')) {
            Attribute& attribute = result.emplace_back();
            attribute.name = name();
            expect('=');
            if (at('"')) {
                attribute.value = std::string(quoted_text());
            } else if (accept('[')) {
                auto& values = attribute.value.emplace<std::vector<std::int64_t>>();
                values.reserve(4);
                list(']', [&] { values.push_back(integer()); });
            } else {
                attribute.value = number();
            }
        }
    }

    std::int64_t integer() {
        const Place place = here();
        const AttributeValue value = number();
        const auto* integer = std::get_if<std::int64_t>(&value);
        if (!integer) fail_at(place, "expected an integer");
        return *integer;
    }

    /// An integer, or a floating-point number where it is written with a point, an exponent, or as inf or nan.
    AttributeValue number() {
        const char* begin = text_.data() + position_;
        const char* limit = text_.data() + text_.size();
        std::int64_t integer = 0;
        const auto [integer_end, integer_error] = std::from_chars(begin, limit, integer);
        const bool is_integer =
            integer_error == std::errc{} &&
            (integer_end == limit || std::string_view(".eE").find(*integer_end) == std::string_view::npos);
        double real = 0;
        const auto [real_end, real_error] =
            is_integer ? std::from_chars_result{integer_end, {}} : std::from_chars(begin, limit, real);
        if (real_error == std::errc::invalid_argument) fail("expected a number, a quoted text or a list of integers");
        if (real_end == integer_end) {
            if (integer_error != std::errc{}) fail("integer out of range", ErrorCode::limit);
            position_ += static_cast<std::size_t>(integer_end - begin);
            return integer;
        }
        if (real_error != std::errc{}) fail("number out of range", ErrorCode::limit);
        position_ += static_cast<std::size_t>(real_end - begin);
        return real;
    }

    std::string_view text_;
    std::string_view origin_;
    std::size_t position_ = 0, line_ = 1, line_begin_ = 0;
    Graph graph_;
    std::deque<std::string> unquoted_;  ///< storage of names that are escaped in the text
    std::unordered_map<std::string_view, KnownTensor> tensors_;
    std::unordered_map<std::string_view, Expression> expressions_;
    std::unordered_set<std::string_view> op_names_;
};

class Printer {
  public:
    explicit Printer(const Graph& graph) : graph_(graph), printed_(graph.tensors.size(), false) {}

    std::string print() {
        name_tensors();
        line("graph {}", name(graph_.name));
        for (const std::string& warning : graph_.warnings) line("warning {}", quoted(warning));
        for (const SymbolRange& range : graph_.ranges) {
            const bool bounded = range.greatest != SymbolRange{}.greatest;
            line("range {} {}{}", name(range.symbol), range.least, bounded ? fmt::format(" {}", range.greatest) : "");
        }
        for (const TensorId id : graph_.inputs) {
            if (graph_.tensors[id].role == TensorRole::input) declare(id);  // a weight may be fed like an input too
        }
        for (const ModuleCall& call : graph_.module_calls)
            line("module {}{}", name(call.path), call.type.empty() ? "" : " " + name(call.type));
        for (const Op& op : graph_.ops) operation(op);
        declare_below(static_cast<TensorId>(graph_.tensors.size()));
        for (const TensorId id : graph_.outputs) line("output {}", tensor_names_[id]);
        return std::move(text_);
    }

  private:
    template <class... Arguments>
    void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
        text_ += '\n';
    }

    static std::string name(std::string_view text) { return is_bare_name(text) ? std::string(text) : quoted(text); }

    /// Names are unique in the text: empty and duplicate ones get a number.
    void name_tensors() {
        std::unordered_set<std::string> taken;
        for (std::size_t id = 0; id < graph_.tensors.size(); ++id) {
            std::string unique = graph_.tensors[id].name;
            if (unique.empty()) unique = std::to_string(id);
            while (!taken.insert(unique).second) unique += fmt::format(".{}", id);
            tensor_names_.push_back("%" + name(unique));
        }
    }

    [[nodiscard]] std::string expressions(const std::vector<Expression>& list) const {
        std::string text;
        for (const Expression e : list) text += (text.empty() ? "" : ",") + graph_.expressions.to_string(e);
        return text;
    }

    [[nodiscard]] std::string typed(TensorId id) const {
        const Tensor& tensor = graph_.tensors[id];
        std::string text = fmt::format("{} {}", tensor_names_[id], name_of(tensor.dtype));
        if (!tensor.known_shape) return text + '?';
        text += fmt::format("[{}]", expressions(tensor.shape));
        if (!tensor.strides.empty()) text += fmt::format("{{{}}}", expressions(tensor.strides));
        return text;
    }

    void declare(TensorId id) {
        if (printed_[id] || graph_.tensors[id].producer != no_op) return;
        printed_[id] = true;
        line("{} {}", role_keywords[static_cast<std::size_t>(graph_.tensors[id].role)], typed(id));
    }

    /// Tensors are declared in the order of their ids, so that reading the text back gives them the same ids.
    void declare_below(TensorId end) {
        for (; declared_ < end; ++declared_) declare(declared_);
    }

    void operation(const Op& op) {
        if (!op.outputs.empty()) declare_below(op.outputs.front());
        std::string text;
        for (const TensorId id : present(op.inputs)) declare(id);
        for (const TensorId id : op.outputs) text += (text.empty() ? "" : ", ") + typed(id);
        text += fmt::format("{}= {}(", text.empty() ? "" : " ", name_of(op.kind));
        const auto input = [&](TensorId id) { return id == no_tensor ? "_" : tensor_names_[id]; };
        text += fmt::format("{})", fmt::join(mapped(op.inputs, input), ", "));
        if (!op.attributes.empty()) text += " {" + attributes(op.attributes) + "}";
        if (!op.source.empty()) text += " " + quoted(op.source);
        if (!op.module.empty()) text += " @" + name(op.module);
        if (op.outputs.empty() || op.name != graph_.tensors[op.outputs.front()].name) text += " : " + name(op.name);
        line("{}", text);
    }

    static std::string attributes(const std::vector<Attribute>& list) {
        std::string text;
        for (const Attribute& attribute : list) {
            text += fmt::format("{}{}=", text.empty() ? "" : " ", name(attribute.name));
            if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) text += std::to_string(*integer);
            if (const auto* real = std::get_if<double>(&attribute.value)) text += real_number(*real);
            if (const auto* string = std::get_if<std::string>(&attribute.value)) text += quoted(*string);
            if (const auto* values = std::get_if<std::vector<std::int64_t>>(&attribute.value))
                text += fmt::format("[{}]", fmt::join(*values, ","));
        }
        return text;
    }

    /// The shortest text that reads back to the same number and is not an integer.
    static std::string real_number(double value) {
        std::array<char, 32> buffer;
        const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
        std::string text(buffer.data(), end);
        const bool integral = text.find_first_not_of("-0123456789") == std::string::npos;
        return integral ? text + ".0" : text;
    }

    const Graph& graph_;
    std::string text_;
    std::vector<bool> printed_;
    std::vector<std::string> tensor_names_;
    TensorId declared_ = 0;
};

}  // namespace

Graph parse_text_graph(std::string_view text, std::string_view origin) {
    return Parser(text, origin).parse();
}

std::string to_text(const Graph& graph) {
    return Printer(graph).print();
}

}  // namespace ftax
