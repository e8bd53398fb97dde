#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ftax {

/// Values of the symbols of a graph, e.g. {"batch": 8, "seq": 128}.
using ShapeBindings = std::map<std::string, std::int64_t, std::less<>>;

/// Handle of an integer expression inside one ExpressionPool. Equal handles mean equal expressions.
struct Expression {
    std::uint32_t id = 0;  ///< 0 is the constant 0
    friend bool operator==(Expression, Expression) = default;
};

/// Stores the integer expressions of one graph: polynomials over named symbols, floor division, modulo, minimum and
/// maximum. Expressions are stored once, in a normal form, so that comparing handles compares expressions. A single
/// pass evaluates all of them for one binding, without allocation. Symbols stand for dimensions, i.e. positive
/// integers; simplifications may rely on that.
class ExpressionPool {
  public:
    ExpressionPool();
    ~ExpressionPool();
    ExpressionPool(const ExpressionPool&);
    ExpressionPool& operator=(const ExpressionPool&);
    ExpressionPool(ExpressionPool&&) noexcept;
    ExpressionPool& operator=(ExpressionPool&&) noexcept;

    /// Like all operations below, throws Error{limit} if a constant exceeds the range of int64.
    Expression constant(std::int64_t value);
    Expression symbol(std::string_view name);
    Expression add(Expression a, Expression b);
    Expression subtract(Expression a, Expression b);
    Expression multiply(Expression a, Expression b);
    /// Rounds towards minus infinity; simplifies exact quotients of polynomials by monomials.
    /// Throws Error{model} for the constant divisor 0.
    Expression floor_divide(Expression a, Expression b);
    Expression ceil_divide(Expression a, Expression b);
    /// The result has the sign of the divisor (Python's %).
    Expression modulo(Expression a, Expression b);
    Expression minimum(Expression a, Expression b);
    Expression maximum(Expression a, Expression b);

    /// Parses `+ - * // % ( )`, min(a,b), max(a,b), ceildiv(a,b), integers and symbol names; also the forms that
    /// torch.export writes (`Max(1, s0)`, `FloorDiv(s0, 2)`, `Mod(...)`, `s0**2`, `CeilToInt(IntTrueDiv(a, b))`).
    /// Throws Error{model} with the position of the syntax error, Error{limit} beyond 64 levels or 4 KiB.
    Expression parse(std::string_view text);

    [[nodiscard]] std::optional<std::int64_t> constant_value(Expression e) const;
    /// Prints the normal form; parse() reads it back ("2*batch*seq+1").
    [[nodiscard]] std::string to_string(Expression e) const;
    /// Returns the names of all symbols of the pool, in order of first use.
    [[nodiscard]] const std::vector<std::string>& symbols() const noexcept;
    /// Returns the names of the symbols that `e` depends on.
    [[nodiscard]] std::vector<std::string> symbols_of(Expression e) const;
    [[nodiscard]] std::size_t size() const noexcept;

    /// Evaluates every expression of the pool; `values[e.id]` is the value of `e`. `symbol_values` follows symbols().
    /// Throws Error{limit} on overflow, Error{model} on division by zero.
    void evaluate(std::span<const std::int64_t> symbol_values, std::vector<std::int64_t>& values) const;

    /// Copies an expression of another pool into this one and replaces symbols by the given expressions of this pool.
    Expression import(const ExpressionPool& other, Expression e,
                      const std::map<std::string, Expression, std::less<>>& replace = {});

  private:
    struct Storage;
    std::unique_ptr<Storage> storage_;
};

}  // namespace ftax
