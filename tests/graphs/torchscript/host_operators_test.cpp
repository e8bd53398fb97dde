#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graphs/torchscript/program.hpp"
#include "tests/failure.hpp"

using namespace ftax;
using namespace ftax::script;

namespace {

/// Evaluates operators of a program on values and writes their results as Python would.
class Host {
  public:
    Value number(std::int64_t value) { return graph_.expressions.constant(value); }
    Value symbol(const std::string& text) { return graph_.expressions.parse(text); }
    Value list(std::vector<Value> items) {
        return Sequence{std::make_shared<std::vector<Value>>(std::move(items)), nullptr};
    }
    Value numbers(const std::vector<std::int64_t>& values) {
        std::vector<Value> items;
        for (const std::int64_t value : values) items.push_back(number(value));
        return list(std::move(items));
    }
    Value dictionary(std::vector<Value> keys, std::vector<Value> items) {
        return Sequence{std::make_shared<std::vector<Value>>(std::move(items)),
                        std::make_shared<std::vector<Value>>(std::move(keys))};
    }
    Value tensor(const std::vector<std::string>& shape, DType dtype = DType::f32, bool known = true) {
        std::vector<Expression> dims;
        for (const std::string& dim : shape) dims.push_back(graph_.expressions.parse(dim));
        graph_.tensors.push_back({"t", dtype, TensorRole::activation, known, dims, {}, no_op});
        return TensorValue{static_cast<TensorId>(graph_.tensors.size() - 1)};
    }

    std::string text(const Value& value) const {
        if (value.is_none()) return "None";
        if (value.as<Unknown>()) return "?";
        if (const auto* held = value.as<bool>()) return *held ? "True" : "False";
        if (const auto* held = value.as<Expression>()) return graph_.expressions.to_string(*held);
        if (const auto* held = value.as<double>()) return fmt::format("{:g}", *held);
        if (const auto* held = value.as<std::string>()) return "'" + *held + "'";
        if (const auto* held = value.as<TensorValue>()) return fmt::format("tensor {}", held->id);
        if (const auto* held = value.as<Sequence>()) {
            std::vector<std::string> parts;
            for (std::size_t i = 0; i < held->items->size(); ++i) {
                parts.push_back((held->keys ? text((*held->keys)[i]) + ": " : "") + text((*held->items)[i]));
            }
            return fmt::format("{}{}{}", held->keys ? "{" : "[", fmt::join(parts, ", "), held->keys ? "}" : "]");
        }
        return "an object";
    }

    /// "no rule" where the operator is not the host's.
    std::string operator()(const std::string& kind, const std::vector<Value>& arguments) {
        const auto result = evaluate_on_host(graph_, kind, arguments);
        return result ? text(*result) : "no rule";
    }

  private:
    Graph graph_;
};

}  // namespace

TEST_CASE("what a program asks about a tensor is answered from its type") {
    Host host;
    const Value x = host.tensor({"batch", "3", "8"}, DType::f16);
    CHECK(host("prim::dtype", {x}) == "5");
    CHECK(host("aten::is_floating_point", {x}) == "True");
    CHECK(host("aten::is_complex", {x}) == "False");
    CHECK(host("aten::dim", {x}) == "3");
    CHECK(host("aten::numel", {x}) == "24*batch");
    CHECK(host("aten::len", {x}) == "batch");
    CHECK(host("aten::size", {x}) == "[batch, 3, 8]");
    CHECK(host("aten::size", {x, host.number(-1)}) == "8");
    CHECK(host("aten::size", {x, Unknown{}}) == "?");
    CHECK(host("aten::size", {host.tensor({}, DType::f32, false)}) == "?");
    CHECK(host("prim::unchecked_cast", {x}) == "tensor 0");
    CHECK(host("prim::device", {x}) == "'cuda'");
    CHECK(host("aten::is_scripting", {}) == "True");
    CHECK(host("aten::warn", {std::string("careful")}) == "None");
    CHECK(host("aten::relu", {x}) == "no rule");
    const Value axis = host.number(3);
    CHECK(test::failure_of([&] { return host("aten::size", {x, axis}); }).says("dimension out of range"));
}

TEST_CASE("identity is known between tensors, with None and for equal plain values") {
    Host host;
    const Value x = host.tensor({"n"}), y = host.tensor({"n"});
    CHECK(host("aten::__is__", {x, x}) == "True");
    CHECK(host("aten::__isnot__", {x, y}) == "True");
    CHECK(host("aten::__is__", {x, Value{}}) == "False");
    CHECK(host("aten::__is__", {Value{}, Value{}}) == "True");
    CHECK(host("aten::__is__", {Unknown{}, Value{}}) == "?");
    CHECK(host("aten::__is__", {host.number(2), host.number(2)}) == "True");
    CHECK(host("aten::__is__", {host.number(2), host.symbol("n")}) == "?");
}

TEST_CASE("lists of a program follow Python") {
    Host host;
    const Value list = host.numbers({3, 1, 2});
    CHECK(host("aten::len", {list}) == "3");
    CHECK(host("aten::__getitem__", {list, host.number(-1)}) == "2");
    CHECK(host("aten::__getitem__", {list, Unknown{}}) == "?");
    CHECK(host("aten::append", {list, host.symbol("n")}) == "[3, 1, 2, n]");
    CHECK(host("aten::pop", {list}) == "n");
    CHECK(host("aten::pop", {list, host.number(0)}) == "3");
    CHECK(host("aten::insert", {list, host.number(0), host.number(7)}) == "[7, 1, 2]");
    CHECK(host("aten::insert", {list, host.number(-1), host.number(5)}) == "[7, 1, 5, 2]");
    CHECK(host("aten::_set_item", {list, host.number(1), host.number(4)}) == "[7, 4, 5, 2]");
    CHECK(host("aten::reverse", {list}) == "[2, 5, 4, 7]");
    CHECK(host("aten::extend", {list, host.numbers({1})}) == "[2, 5, 4, 7, 1]");
    CHECK(host("aten::add_", {list, host.numbers({8})}) == "[2, 5, 4, 7, 1, 8]");
    CHECK(host("aten::add", {list, host.numbers({9})}) == "[2, 5, 4, 7, 1, 8, 9]");
    CHECK(host("aten::len", {list}) == "6");
    CHECK(host("aten::mul", {host.numbers({1, 2}), host.number(2)}) == "[1, 2, 1, 2]");
    CHECK(host("aten::mul", {host.numbers({1, 2}), Unknown{}}) == "?");
    CHECK(host("aten::mul", {host.numbers({}), host.number(1'000'000'000'000)}) == "[]");
    CHECK(host("aten::slice", {list, host.number(1), Value{}, host.number(2)}) == "[5, 7, 8]");
    CHECK(host("aten::slice", {list, host.number(-2), host.number(99)}) == "[1, 8]");
    CHECK(host("aten::slice", {list, Value{}, Value{}, host.number(-1)}) == "?");
    CHECK(host("aten::list", {list}) == "[2, 5, 4, 7, 1, 8]");
    CHECK(host("aten::__contains__", {list, host.number(7)}) == "True");
    CHECK(host("aten::__contains__", {list, host.number(6)}) == "False");
    CHECK(host("aten::__contains__", {list, host.symbol("n")}) == "?");
    CHECK(host("aten::eq", {host.numbers({1, 2}), host.numbers({1, 2})}) == "True");
    CHECK(host("aten::ne", {host.numbers({1, 2}), host.numbers({1, 3})}) == "True");
    CHECK(host("aten::eq", {host.numbers({1}), host.numbers({1, 3})}) == "False");
    CHECK(host("aten::eq", {host.numbers({1}), Unknown{}}) == "?");
    CHECK(host("aten::eq", {host.list({host.symbol("n")}), host.numbers({1})}) == "?");
    CHECK(host("aten::all", {host.list({true, host.number(1)})}) == "True");
    CHECK(host("aten::any", {host.list({false, Unknown{}})}) == "?");
    CHECK(host("aten::any", {host.list({true, Unknown{}})}) == "True");
    CHECK(host("aten::all", {host.list({host.tensor({})})}) == "no rule");
    CHECK(host("aten::sum", {host.list({host.number(2), host.symbol("n"), true})}) == "n+3");
    CHECK(host("aten::sum", {host.list({Unknown{}})}) == "?");
    CHECK(host("prim::max", {host.numbers({3, 9, 4})}) == "9");
    CHECK(host("prim::min", {host.list({host.symbol("n"), host.number(4)})}) == "min(4,n)");
    CHECK(host("prim::max", {host.list({Unknown{}})}) == "?");
    CHECK(host("aten::len", {Unknown{}}) == "?");
    const Value past = host.number(6), many = host.number(20'000'000), none = host.number(0);
    CHECK(test::failure_of([&] { return host("aten::__getitem__", {list, past}); }).says("list index out of range"));
    CHECK(test::failure_of([&] { return host("aten::mul", {list, many}); }).says("10,000,000"));
    CHECK(test::failure_of([&] { return host("aten::pop", {host.list({}), none}); }).says("out of range"));
}

TEST_CASE("dictionaries of a program follow Python") {
    Host host;
    const Value x = host.dictionary({std::string("a"), std::string("b")}, {host.number(1), host.number(2)});
    const Value a = std::string("a"), c = std::string("c"), nothing = Unknown{};
    CHECK(host("aten::len", {x}) == "2");
    CHECK(host("aten::keys", {x}) == "['a', 'b']");
    CHECK(host("aten::values", {x}) == "[1, 2]");
    CHECK(host("aten::items", {x}) == "[['a', 1], ['b', 2]]");
    CHECK(host("aten::copy", {x}) == "{'a': 1, 'b': 2}");
    CHECK(host("aten::__contains__", {x, a}) == "True");
    CHECK(host("aten::__contains__", {x, c}) == "False");
    CHECK(host("aten::__contains__", {x, nothing}) == "?");
    CHECK(host("aten::get", {x, c}) == "None");
    CHECK(host("aten::get", {x, c, host.number(5)}) == "5");
    CHECK(host("aten::get", {x, nothing}) == "?");
    CHECK(host("aten::__getitem__", {x, a}) == "1");
    CHECK(host("aten::__getitem__", {x, nothing}) == "?");
    CHECK(host("aten::_set_item", {x, a, host.number(7)}) == "{'a': 7, 'b': 2}");
    CHECK(host("aten::_set_item", {x, c, host.number(3)}) == "{'a': 7, 'b': 2, 'c': 3}");
    CHECK(host("aten::pop", {x, a}) == "7");
    CHECK(host("aten::pop", {x, a, host.number(0)}) == "0");
    CHECK(host("aten::Delete", {x, c}) == "3");
    CHECK(host("aten::len", {x}) == "1");
    CHECK(test::failure_of([&] { return host("aten::__getitem__", {x, c}); }).says("missing dictionary key"));
}

TEST_CASE("numbers and text of a program follow Python, symbols where they can be decided") {
    Host host;
    const auto n = [&](std::int64_t value) { return host.number(value); };
    const Value batch = host.symbol("batch");
    CHECK(host("aten::add", {batch, n(1)}) == "batch+1");
    CHECK(host("aten::rsub", {n(1), n(5)}) == "4");
    CHECK(host("aten::div", {n(7), n(2)}) == "3.5");
    CHECK(host("aten::div", {n(7), n(2), std::string("floor")}) == "3");
    CHECK(host("aten::floordiv", {n(-7), n(2)}) == "-4");
    CHECK(host("aten::floordiv", {n(7), n(0)}) == "?");
    CHECK(host("aten::remainder", {n(7), n(4)}) == "3");
    CHECK(host("aten::remainder", {7.5, 2.0}) == "1.5");
    CHECK(host("aten::pow", {n(2), n(10)}) == "1024");
    CHECK(host("aten::pow", {n(2), n(-1)}) == "?");
    CHECK(host("aten::pow", {host.symbol("batch"), n(2)}) == "?");
    CHECK(host("aten::pow", {n(2), host.symbol("batch")}) == "?");
    CHECK(host("aten::pow", {n(10), n(20)}) == "?");
    CHECK(host("aten::pow", {2.0, 0.5}) == "1.41421");
    CHECK(host("aten::mul", {1.5, n(2)}) == "3");
    CHECK(host("aten::sub", {1.5, 0.5}) == "1");
    CHECK(host("aten::floordiv", {7.5, 2.0}) == "3");
    CHECK(host("prim::min", {2.5, n(2)}) == "2");
    CHECK(host("prim::max", {2.5, n(2)}) == "2.5");
    CHECK(host("aten::div", {n(1), n(0)}) == "?");
    CHECK(host("aten::add", {Unknown{}, n(1)}) == "?");
    CHECK(host("aten::neg", {batch}) == "-batch");
    CHECK(host("aten::neg", {1.5}) == "-1.5");
    CHECK(host("aten::ceil", {2.1}) == "3");
    CHECK(host("aten::floor", {batch}) == "batch");
    CHECK(host("aten::abs", {n(-3)}) == "3");
    CHECK(host("aten::sqrt", {n(16)}) == "4");
    CHECK(host("aten::exp", {batch}) == "?");
    CHECK(host("aten::Int", {2.9}) == "2");
    CHECK(host("aten::Int", {1e300}) == "?");
    CHECK(host("aten::Float", {n(2)}) == "2");
    CHECK(host("aten::Float", {batch}) == "?");
    CHECK(host("aten::Bool", {n(2)}) == "True");
    CHECK(host("aten::Bool", {Unknown{}}) == "?");
    CHECK(host("aten::__not__", {true}) == "False");
    CHECK(host("aten::__and__", {false, Unknown{}}) == "False");
    CHECK(host("aten::__or__", {false, Unknown{}}) == "?");
    CHECK(host("aten::__or__", {true, Unknown{}}) == "True");
    CHECK(host("aten::__and__", {true, true}) == "True");
    CHECK(host("aten::eq", {batch, batch}) == "True");
    CHECK(host("aten::ne", {batch, host.symbol("batch+1")}) == "True");
    CHECK(host("aten::eq", {batch, n(1)}) == "?");
    CHECK(host("aten::gt", {host.symbol("batch+1"), batch}) == "True");
    CHECK(host("aten::lt", {host.symbol("batch+1"), batch}) == "False");
    CHECK(host("aten::le", {n(2), 2.0}) == "True");
    CHECK(host("aten::ge", {batch, n(100)}) == "?");
    CHECK(host("aten::IntImplicit", {batch}) == "batch");
    CHECK(host("aten::len", {std::string("four")}) == "4");
    CHECK(host("aten::eq", {std::string("a"), std::string("a")}) == "True");
    CHECK(host("aten::ne", {std::string("a"), n(1)}) == "?");
    CHECK(host("aten::add", {std::string("a"), std::string("b")}) == "'ab'");
    CHECK(host("aten::add", {Unknown{}, std::string("b")}) == "?");
    CHECK(host("aten::format", {std::string("{}"), n(1)}) == "?");
    CHECK(host("aten::lower", {std::string("A")}) == "no rule");
    CHECK(host("aten::bincount", {n(1)}) == "no rule");
}
