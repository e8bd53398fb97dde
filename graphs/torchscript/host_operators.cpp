#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "ftax/error.hpp"
#include "graphs/aten/aten_call.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/ir/shape_rules.hpp"
#include "graphs/torchscript/program.hpp"

namespace ftax::script {
namespace {

using Arguments = std::span<const Value>;

constexpr std::int64_t longest_list = 10'000'000;
constexpr std::size_t longest_text = 100'000;  ///< nothing that decides about operators is longer

bool is_tensor(const Value& value) {
    return value.as<TensorValue>() || value.as<StoredTensor>();
}

/// Integer that a number or truth value is.
std::optional<Expression> integer_of(ExpressionPool& pool, const Value& value) {
    if (const auto* e = value.as<Expression>()) return *e;
    if (const auto* b = value.as<bool>()) return pool.constant(*b);
    return std::nullopt;
}

std::optional<double> number_of(const ExpressionPool& pool, const Value& value) {
    if (const auto* d = value.as<double>()) return *d;
    if (const auto* b = value.as<bool>()) return *b;
    if (const auto* e = value.as<Expression>())
        if (const auto known = pool.constant_value(*e)) return static_cast<double>(*known);
    return std::nullopt;
}

bool is_number(const Value& value) {
    return value.as<Expression>() || value.as<double>() || value.as<bool>() || value.as<Unknown>();
}

bool is_cast(std::string_view kind) {
    return kind == "prim::unchecked_cast" || kind == "prim::unchecked_unwrap_optional";
}

class HostOperators {
  public:
    HostOperators(Graph& graph, Arguments arguments) : graph_(graph), pool_(graph.expressions), a_(arguments) {}

    std::optional<Value> evaluate(std::string_view kind) {
        if (auto result = constant_answer(kind)) return result;
        if (a_.empty()) return std::nullopt;
        if (const auto* tensor = a_[0].as<TensorValue>())
            if (auto result = type_query(kind, graph_.tensors[tensor->id])) return result;
        if (kind == "aten::__is__" || kind == "aten::__isnot__") return identity(kind == "aten::__is__");
        if (a_[0].as<Unknown>() && (kind == "aten::len" || kind == "aten::__getitem__")) return Unknown{};
        if (a_[0].as<Sequence>()) return on_sequence(kind);
        if (std::ranges::any_of(a_, is_tensor)) return std::nullopt;
        if (is_cast(kind)) return a_[0];
        const bool joins_text = a_[0].as<Unknown>() && a_.size() > 1 && a_[1].as<std::string>();
        if (a_[0].as<std::string>() || joins_text) return on_text(kind);
        if (!is_number(a_[0])) return std::nullopt;
        return on_numbers(kind);
    }

  private:
    Value integer(std::int64_t value) { return pool_.constant(value); }

    /// What is `made` of a known value.
    template <class T, class Make = std::identity>
    static Value if_known(const std::optional<T>& value, const Make& made = {}) {
        return value ? Value(made(*value)) : Value(Unknown{});
    }

    Value equals(const Value& a, const Value& b, bool same) {
        return if_known(equality(a, b), [&](bool equal) { return equal == same; });
    }

    /// What holds for every run on a GPU without gradients, autocast or tracing.
    static std::optional<Value> constant_answer(std::string_view kind) {
        constexpr std::string_view no =
            "prim::is_meta prim::requires_grad prim::is_quantized prim::is_sparse prim::is_mkldnn prim::is_nested "
            "prim::is_mps prim::is_xla prim::is_cpu aten::is_grad_enabled aten::is_autocast_enabled "
            "aten::is_autocast_cpu_enabled aten::_is_tracing aten::requires_grad";
        if (has_word(no, kind)) return false;
        if (kind == "prim::is_cuda" || kind == "aten::is_scripting") return true;
        if (kind == "prim::device") return std::string("cuda");
        if (kind == "prim::layout") return Unknown{};
        if (kind == "aten::warn" || kind == "prim::Print") return Value{};
        if (kind == "aten::format" || kind == "aten::percentFormat" || kind == "aten::str") return Unknown{};
        return std::nullopt;
    }

    std::optional<Value> type_query(std::string_view kind, const ftax::Tensor& tensor) {
        if (kind == "prim::dtype") return integer(scalar_type_of(tensor.dtype));
        if (kind == "aten::is_floating_point") return is_float(tensor.dtype);
        if (kind == "aten::is_complex") return tensor.dtype == DType::c64 || tensor.dtype == DType::c128;
        if (kind == "prim::data" || is_cast(kind)) return a_[0];
        constexpr std::string_view queries =
            "aten::size prim::shape aten::dim aten::len aten::numel aten::sym_size aten::ndimension";
        if (!has_word(queries, kind)) return std::nullopt;
        if (!tensor.known_shape) return Unknown{};
        if (kind == "aten::dim" || kind == "aten::ndimension") return integer(std::ssize(tensor.shape));
        if (kind == "aten::numel") return DimensionMath(pool_).product(tensor.shape);
        if (kind == "aten::len") return dimension(tensor, 0);
        if (a_.size() > 1 && !a_[1].is_none())
            return if_known(number_of(pool_, a_[1]), [&](double axis) { return dimension(tensor, axis); });
        return make_list({tensor.shape.begin(), tensor.shape.end()});
    }

    static Value dimension(const ftax::Tensor& tensor, double place) {
        const std::int64_t rank = std::ssize(tensor.shape), axis = static_cast<std::int64_t>(place);
        if (axis < -rank || axis >= rank) throw Error(ErrorCode::model, "dimension out of range");
        return tensor.shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    }

    /// `x is None` and the like; other objects are not compared.
    std::optional<Value> identity(bool same) {
        if (a_.size() != 2) return std::nullopt;
        if (a_[0].as<Unknown>() || a_[1].as<Unknown>()) return Unknown{};
        const auto *tensor = a_[0].as<TensorValue>(), *other = a_[1].as<TensorValue>();
        if (tensor && other) return (tensor->id == other->id) == same;
        if (!a_[0].is_none() && !a_[1].is_none()) return equals(a_[0], a_[1], same);
        return (a_[0].is_none() && a_[1].is_none()) == same;
    }

    std::optional<bool> equality(const Value& a, const Value& b) {
        const auto *text = a.as<std::string>(), *other = b.as<std::string>();
        if (text && other) return *text == *other;
        const auto left = integer_of(pool_, a), right = integer_of(pool_, b);
        if (left && right) {
            if (*left == *right) return true;
            const auto difference = pool_.constant_value(pool_.subtract(*left, *right));
            return difference ? std::optional(*difference == 0) : std::nullopt;
        }
        const auto x = number_of(pool_, a), y = number_of(pool_, b);
        return x && y ? std::optional(*x == *y) : std::nullopt;
    }

    std::optional<std::size_t> position(const Value& index, std::size_t size) {
        const auto number = number_of(pool_, index);
        if (!number) return std::nullopt;
        const double at = *number < 0 ? *number + static_cast<double>(size) : *number;
        if (!(at >= 0 && at < static_cast<double>(size))) throw Error(ErrorCode::model, "list index out of range");
        return static_cast<std::size_t>(at);
    }

    /// Place in a list of that size, negative ones counted from its end, those outside moved to its ends.
    static std::int64_t clipped(double place, std::size_t size) {
        const auto end = static_cast<double>(size);
        return static_cast<std::int64_t>(std::clamp(place < 0 ? place + end : place, 0.0, end));
    }

    std::optional<Value> on_sequence(std::string_view kind) {
        const Sequence& sequence = *a_[0].as<Sequence>();
        std::vector<Value>& items = *sequence.items;
        if (is_cast(kind)) return a_[0];
        if (kind == "aten::len") return integer(std::ssize(items));
        if (sequence.keys) return on_dictionary(kind, items, *sequence.keys);
        if (change(kind, items)) return a_[0];
        if (has_word("aten::__getitem__ prim::TupleIndex prim::ModuleContainerIndex", kind))
            return if_known(position(a_[1], items.size()), [&](std::size_t at) { return items[at]; });
        if (kind == "aten::pop")
            return if_known(position(a_.size() > 1 ? a_[1] : integer(-1), items.size()),
                            [&](std::size_t at) { return taken(items, at); });
        if (const auto* more = second_list(); more && kind == "aten::add") {
            std::vector<Value> joined = items;
            append(joined, *more->items);
            return make_list(std::move(joined));
        }
        if (kind == "aten::mul" && a_.size() > 1) return repeated(items);
        if (kind == "aten::slice") return sliced(items);
        if (kind == "aten::list" || kind == "aten::copy") return make_list(items);
        if (kind == "aten::__contains__") return contains(items);
        if (kind == "aten::eq" || kind == "aten::ne") return compared(items, kind == "aten::eq");
        if (kind == "aten::all" || kind == "aten::any") return quantified(items, kind == "aten::all");
        if (kind == "aten::sum") return total(items);
        if (kind == "prim::min" || kind == "prim::max") return extremum(items, kind == "prim::max");
        return std::nullopt;
    }

    [[nodiscard]] const Sequence* second_list() const { return a_.size() > 1 ? a_[1].as<Sequence>() : nullptr; }

    /// Operators that change a list in place and return it; false for any other.
    bool change(std::string_view kind, std::vector<Value>& items) {
        const auto* more = second_list();
        if (kind == "aten::append") {
            append(items, {a_[1]});
        } else if ((kind == "aten::extend" || kind == "aten::add_") && more) {
            append(items, std::vector<Value>(*more->items));  // a copy: a list may extend itself
        } else if (kind == "aten::insert" && a_.size() == 3) {
            items.insert(items.begin() + clipped(number_of(pool_, a_[1]).value_or(0), items.size()), a_[2]);
        } else if (kind == "aten::_set_item" && a_.size() == 3) {
            if (const auto at = position(a_[1], items.size())) items[*at] = a_[2];
        } else if (kind == "aten::reverse") {
            std::ranges::reverse(items);
        } else {
            return false;
        }
        return true;
    }

    std::optional<Value> on_dictionary(std::string_view kind, std::vector<Value>& items, std::vector<Value>& keys) {
        if (kind == "aten::keys") return make_list(keys);
        if (kind == "aten::values") return make_list(items);
        if (kind == "aten::items") {
            std::vector<Value> pairs;
            for (std::size_t i = 0; i < keys.size(); ++i) pairs.push_back(make_list({keys[i], items[i]}));
            return make_list(std::move(pairs));
        }
        if (kind == "aten::copy" || kind == "aten::dict") return make_dictionary(keys, items);
        if (a_.size() < 2) return std::nullopt;
        const auto at = place_of(a_[1], keys);
        const bool there = at && *at < keys.size();
        if (kind == "aten::_set_item" && a_.size() == 3) {
            if (there) items[*at] = a_[2];
            if (at && !there) keys.push_back(a_[1]), items.push_back(a_[2]);
            return a_[0];
        }
        constexpr std::string_view lookups = "aten::__contains__ aten::get aten::__getitem__ aten::pop aten::Delete";
        if (!has_word(lookups, kind)) return std::nullopt;
        if (!at) return Unknown{};
        if (kind == "aten::__contains__") return there;
        if (!there && a_.size() > 2) return a_[2];  // the default of get and pop
        if (!there && kind == "aten::get") return Value{};
        if (!there) throw Error(ErrorCode::model, "missing dictionary key");
        if (kind == "aten::get" || kind == "aten::__getitem__") return items[*at];
        static_cast<void>(taken(keys, *at));
        return taken(items, *at);
    }

    /// Returns the position of a key, or the number of keys if it is missing; nullopt if that depends on data.
    std::optional<std::size_t> place_of(const Value& key, const std::vector<Value>& keys) {
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const auto equal = equality(keys[i], key);
            if (!equal) return std::nullopt;
            if (*equal) return i;
        }
        return keys.size();
    }

    static Value taken(std::vector<Value>& items, std::size_t at) {
        Value item = std::move(items[at]);
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
        return item;
    }

    static void check_length(double items) {
        if (items > longest_list) throw Error(ErrorCode::limit, "a list with more than 10,000,000 items");
    }

    static void append(std::vector<Value>& items, const std::vector<Value>& more) {
        items.insert(items.end(), more.begin(), more.end());
        check_length(static_cast<double>(items.size()));
    }

    Value repeated(const std::vector<Value>& items) {
        const auto times = number_of(pool_, a_[1]);
        if (!times) return Unknown{};
        if (items.empty()) return make_list({});
        check_length(*times * static_cast<double>(items.size()));
        std::vector<Value> result;
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(*times); ++i)
            result.insert(result.end(), items.begin(), items.end());
        return make_list(std::move(result));
    }

    Value sliced(const std::vector<Value>& items) {
        const auto size = static_cast<std::int64_t>(items.size());
        const auto at = [&](std::size_t i, std::int64_t fallback) {
            if (i >= a_.size() || a_[i].is_none()) return fallback;
            return clipped(number_of(pool_, a_[i]).value_or(static_cast<double>(fallback)), items.size());
        };
        const std::int64_t begin = at(1, 0), end = at(2, size);
        const auto step = a_.size() > 3 ? number_of(pool_, a_[3]).value_or(1) : 1;
        if (step < 1) return Unknown{};
        std::vector<Value> result;
        for (std::int64_t i = begin; i < end; i += static_cast<std::int64_t>(std::min(step, double{longest_list})))
            result.push_back(items[static_cast<std::size_t>(i)]);
        return make_list(std::move(result));
    }

    Value contains(const std::vector<Value>& items) {
        bool known = true;
        for (const Value& item : items) {
            const auto equal = equality(item, a_[1]);
            if (equal == true) return true;
            known = known && equal.has_value();
        }
        return known ? Value(false) : Value(Unknown{});
    }

    Value compared(const std::vector<Value>& items, bool same) {
        const auto* other = a_[1].as<Sequence>();
        if (!other) return Unknown{};
        if (other->items->size() != items.size()) return !same;
        for (std::size_t i = 0; i < items.size(); ++i) {
            const auto equal = equality(items[i], (*other->items)[i]);
            if (!equal) return Unknown{};
            if (!*equal) return !same;
        }
        return same;
    }

    std::optional<Value> quantified(const std::vector<Value>& items, bool all) {
        bool known = true;
        for (const Value& item : items) {
            if (is_tensor(item)) return std::nullopt;
            const auto held = truth_of(graph_, item);
            if (held == !all) return !all;
            known = known && held.has_value();
        }
        return known ? Value(all) : Value(Unknown{});
    }

    std::optional<Value> total(const std::vector<Value>& items) {
        Expression sum = pool_.constant(0);
        for (const Value& item : items) {
            if (is_tensor(item)) return std::nullopt;
            const auto value = integer_of(pool_, item);
            if (!value) return Unknown{};
            sum = pool_.add(sum, *value);
        }
        return sum;
    }

    Value extremum(const std::vector<Value>& items, bool largest) {
        std::optional<Expression> result;
        for (const Value& item : items) {
            const auto value = integer_of(pool_, item);
            if (!value) return Unknown{};
            result = !result ? *value : largest ? pool_.maximum(*result, *value) : pool_.minimum(*result, *value);
        }
        return if_known(result);
    }

    std::optional<Value> on_text(std::string_view kind) {
        const auto* text = a_[0].as<std::string>();
        if (kind == "aten::len" && text) return integer(static_cast<std::int64_t>(text->size()));
        if (a_.size() < 2) return std::nullopt;
        if (kind == "aten::eq" || kind == "aten::ne") return equals(a_[0], a_[1], kind == "aten::eq");
        if (kind == "aten::add") return joined(text, a_[1].as<std::string>());
        return std::nullopt;
    }

    static Value joined(const std::string* text, const std::string* more) {
        if (!text || !more || text->size() + more->size() > longest_text) return Unknown{};
        return *text + *more;
    }

    std::optional<Value> on_numbers(std::string_view kind) {
        const std::string_view name = kind.substr(kind.rfind(':') + 1);
        constexpr std::string_view passed =
            "NumToTensor ScalarImplicit IntImplicit FloatImplicit item detach clone to contiguous type_as lift_fresh "
            "tensor scalar_tensor as_tensor _to_copy";
        if (has_word(passed, name)) return a_[0];
        if (name == "Int" || name == "Float" || name == "Bool") return converted(name);
        if (name == "__not__" || name == "logical_not") return if_known(truth_of(graph_, a_[0]), std::logical_not{});
        if (name == "__range_length" || name == "__derive_index") return of_range(name == "__range_length");
        if (a_.size() > 1 && is_number(a_[1]))
            if (auto result = binary(name, a_[0], a_[1])) return result;
        return unary(name, a_[0]);
    }

    /// Number of integers from a first to a last one in steps; or start, plus so many steps.
    Value of_range(bool length) {
        if (a_.size() < 3) return Unknown{};
        const auto a = integer_of(pool_, a_[0]), b = integer_of(pool_, a_[1]), step = integer_of(pool_, a_[2]);
        if (!a || !b || !step || pool_.constant_value(*step).value_or(0) == 0) return Unknown{};
        if (!length) return pool_.add(*b, pool_.multiply(*a, *step));
        return pool_.maximum(pool_.constant(0), pool_.ceil_divide(pool_.subtract(*b, *a), *step));
    }

    Value converted(std::string_view name) {
        if (name == "Bool") return if_known(truth_of(graph_, a_[0]));
        if (name == "Float") return if_known(number_of(pool_, a_[0]));
        if (const auto held = integer_of(pool_, a_[0])) return *held;
        const auto* real = a_[0].as<double>();
        if (!real || !(std::abs(*real) < 9e18)) return Unknown{};
        return integer(static_cast<std::int64_t>(*real));
    }

    std::optional<Value> unary(std::string_view name, const Value& x) {
        static const std::map<std::string_view, double (*)(double), std::less<>> functions = {
            {"sqrt", std::sqrt},   {"exp", std::exp},     {"log", std::log},         {"log2", std::log2},
            {"log10", std::log10}, {"sin", std::sin},     {"cos", std::cos},         {"tanh", std::tanh},
            {"ceil", std::ceil},   {"floor", std::floor}, {"round", std::nearbyint}, {"trunc", std::trunc},
            {"abs", std::fabs},    {"neg", nullptr}};
        const auto found = functions.find(name);
        if (found == functions.end()) return std::nullopt;
        const auto whole = integer_of(pool_, x);
        if (name == "neg" && whole) return pool_.subtract(pool_.constant(0), *whole);
        const bool keeps = name == "ceil" || name == "floor" || name == "round" || name == "trunc";
        if (keeps && whole) return *whole;
        const auto number = number_of(pool_, x);
        if (!number) return Unknown{};
        if (name == "neg") return -*number;
        const double result = found->second(*number);
        if (name == "abs" && whole) return integer(static_cast<std::int64_t>(result));
        // In the program's own language these return integers.
        if (keeps && name != "round" && name != "trunc" && std::abs(result) < 9e18)
            return integer(static_cast<std::int64_t>(result));
        return result;
    }

    std::optional<Value> binary(std::string_view name, const Value& a, const Value& b) {
        if (has_word("eq ne lt le gt ge", name)) return comparison(name, a, b);
        if (name == "__and__" || name == "__or__") return logic(name == "__and__", a, b);
        static constexpr std::pair<std::string_view, std::string_view> aliases[] = {
            {"true_divide", "div"}, {"floor_divide", "floordiv"}, {"fmod", "remainder"},
            {"mod", "remainder"},   {"minimum", "min"},           {"maximum", "max"}};
        for (const auto& [alias, usual] : aliases)
            if (name == alias) name = usual;
        const bool floored = name == "div" && a_.size() > 2 && a_[2].as<std::string>();
        const std::string_view wanted = floored ? "floordiv" : name == "rsub" ? "sub" : name;
        const auto found = std::ranges::find(arithmetic, wanted, &Arithmetic::name);
        if (found == std::end(arithmetic)) return std::nullopt;
        if (a.as<Unknown>() || b.as<Unknown>()) return Unknown{};
        return name == "rsub" ? calculated(*found, b, a) : calculated(*found, a, b);
    }

    struct Arithmetic {
        std::string_view name;
        double (*real)(double, double);
        Expression (ExpressionPool::*integral)(Expression, Expression);  ///< null where the result may be no integer
    };
    static constexpr Arithmetic arithmetic[] = {
        {"add", [](double x, double y) { return x + y; }, &ExpressionPool::add},
        {"sub", [](double x, double y) { return x - y; }, &ExpressionPool::subtract},
        {"mul", [](double x, double y) { return x * y; }, &ExpressionPool::multiply},
        {"div", [](double x, double y) { return x / y; }, nullptr},
        {"pow", [](double x, double y) { return std::pow(x, y); }, nullptr},
        {"floordiv", [](double x, double y) { return std::floor(x / y); }, &ExpressionPool::floor_divide},
        {"remainder", [](double x, double y) { return x - y * std::floor(x / y); }, &ExpressionPool::modulo},
        {"min", [](double x, double y) { return std::min(x, y); }, &ExpressionPool::minimum},
        {"max", [](double x, double y) { return std::max(x, y); }, &ExpressionPool::maximum},
    };

    Value calculated(const Arithmetic& function, const Value& a, const Value& b) {
        const auto left = integer_of(pool_, a), right = integer_of(pool_, b);
        const auto x = number_of(pool_, a), y = number_of(pool_, b);
        if (left && right && function.name == "pow") {
            if (!x || !y || *y < 0 || !(std::abs(std::pow(*x, *y)) < 9e15)) return Unknown{};
            return integer(static_cast<std::int64_t>(std::llround(std::pow(*x, *y))));
        }
        if (left && right && function.integral) {
            const bool divides = function.name == "floordiv" || function.name == "remainder";
            if (divides && pool_.constant_value(*right) == 0) return Unknown{};
            return (pool_.*function.integral)(*left, *right);
        }
        if (!x || !y) return Unknown{};
        const double result = function.real(*x, *y);
        return std::isfinite(result) ? Value(result) : Value(Unknown{});
    }

    /// Joins integers bit by bit, all else by its truth.
    Value logic(bool both, const Value& a, const Value& b) {
        if (a.as<Expression>() && b.as<Expression>()) {
            const auto x = pool_.constant_value(*a.as<Expression>()), y = pool_.constant_value(*b.as<Expression>());
            return x && y ? integer(both ? *x & *y : *x | *y) : Value(Unknown{});
        }
        const auto left = truth_of(graph_, a), right = truth_of(graph_, b);
        if (left == !both || right == !both) return !both;
        if (left && right) return both;
        return Unknown{};
    }

    Value comparison(std::string_view name, const Value& a, const Value& b) {
        if (name == "eq" || name == "ne") return equals(a, b, name == "eq");
        const bool swapped = name == "lt" || name == "ge";  // a < b is b > a; a ≥ b is not b > a
        const bool negated = name == "ge" || name == "le";
        return if_known(is_greater(swapped ? b : a, swapped ? a : b), [&](bool greater) { return greater != negated; });
    }

    /// a > b, where it can be proved or disproved for all values of the symbols.
    std::optional<bool> is_greater(const Value& a, const Value& b) {
        const auto x = number_of(pool_, a), y = number_of(pool_, b);
        if (x && y) return *x > *y;
        const auto left = integer_of(pool_, a), right = integer_of(pool_, b);
        if (!left || !right) return std::nullopt;
        const Expression above = pool_.add(*right, pool_.constant(1));
        if (pool_.maximum(*left, above) == *left) return true;
        if (pool_.maximum(*left, *right) == *right) return false;
        return std::nullopt;
    }

    Graph& graph_;
    ExpressionPool& pool_;
    Arguments a_;
};

}  // namespace

std::optional<Value> evaluate_on_host(Graph& graph, std::string_view kind, std::span<const Value> arguments) {
    return HostOperators(graph, arguments).evaluate(kind);
}

std::optional<bool> truth_of(const Graph& graph, const Value& value) {
    if (const auto* b = value.as<bool>()) return *b;
    if (const auto number = number_of(graph.expressions, value)) return *number != 0;
    return std::nullopt;
}

}  // namespace ftax::script
