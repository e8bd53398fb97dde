#include "graphs/ir/work_polynomial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ftax/error.hpp"
#include "ftax/work.hpp"

namespace ftax {
namespace {

constexpr std::size_t points = 4;  ///< per symbol: one more than the highest power
constexpr std::size_t most_symbols = 4;

/// Six times the coefficients (by row: of x^0 to x^3) of the cubic through values at x = 1 to 4: Lagrange's formula.
constexpr std::array<std::array<int, points>, points> through_values{
    {{24, -36, 24, -6}, {-26, 57, -42, 11}, {9, -24, 21, -6}, {-1, 3, -3, 1}}};

/// Integer coefficients divided by six once per symbol only lose their last digits to rounding.
using Values = std::vector<long double>;

struct Totals {
    long double flops = 0, bytes = 0;
};

Totals totals(const Graph& graph, ShapeBindings bindings, const std::vector<std::string>& symbols,
              const std::vector<std::int64_t>& sizes) {
    for (std::size_t i = 0; i < symbols.size(); ++i) bindings[symbols[i]] = sizes[i];
    const Work work = total_work(graph, ftax::bind(graph, bindings));
    return {static_cast<long double>(work.flops),
            static_cast<long double>(work.read_bytes) + static_cast<long double>(work.write_bytes)};
}

/// Replaces values on the grid by coefficients, one symbol after another; the first symbol varies slowest.
void interpolate(Values& values, std::size_t symbols) {
    for (std::size_t stride = 1, symbol = 0; symbol < symbols; ++symbol, stride *= points) {
        for (std::size_t base = 0; base < values.size(); ++base) {
            if (base / stride % points != 0) continue;
            std::array<long double, points> held{};
            for (std::size_t i = 0; i < points; ++i) held[i] = values[base + i * stride];
            for (std::size_t power = 0; power < points; ++power) {
                long double sum = 0;
                for (std::size_t i = 0; i < points; ++i) sum += through_values[power][i] * held[i];
                values[base + power * stride] = sum / 6;
            }
        }
    }
}

/// Terms in the sizes themselves, of coefficients in multiples of the steps; what rounding left is dropped.
std::vector<PolynomialTerm> terms(const Values& coefficients, const std::vector<std::int64_t>& steps) {
    const std::size_t symbols = steps.size();
    const long double largest =
        std::abs(*std::ranges::max_element(coefficients, [](auto a, auto b) { return std::abs(a) < std::abs(b); }));
    std::vector<PolynomialTerm> result;
    for (std::size_t at = 0; at < coefficients.size(); ++at) {
        if (std::abs(coefficients[at]) <= 1e-14L * largest || std::abs(coefficients[at]) < 0.01L) continue;
        PolynomialTerm term{0, std::vector<int>(symbols)};
        long double scale = 1;
        for (std::size_t symbol = symbols, rest = at; symbol-- > 0; rest /= points) {
            term.powers[symbol] = static_cast<int>(rest % points);
            scale *= std::pow(static_cast<long double>(steps[symbol]), term.powers[symbol]);
        }
        term.coefficient = static_cast<double>(coefficients[at] / scale);
        result.push_back(std::move(term));
    }
    std::ranges::stable_sort(result, [](const PolynomialTerm& a, const PolynomialTerm& b) {
        const int degree_a = std::accumulate(a.powers.begin(), a.powers.end(), 0);
        const int degree_b = std::accumulate(b.powers.begin(), b.powers.end(), 0);
        return degree_a != degree_b ? degree_a > degree_b : a.powers > b.powers;
    });
    return result;
}

long double value_at(const std::vector<PolynomialTerm>& polynomial, const std::vector<std::int64_t>& sizes) {
    long double sum = 0;
    for (const PolynomialTerm& term : polynomial) {
        long double product = term.coefficient;
        for (std::size_t i = 0; i < sizes.size(); ++i)
            product *= std::pow(static_cast<long double>(sizes[i]), term.powers[i]);
        sum += product;
    }
    return sum;
}

bool holds_at(const WorkPolynomial& work, const std::vector<std::int64_t>& sizes, const Totals& counted) {
    constexpr long double tolerance = 1e-6L;
    return std::abs(value_at(work.flops, sizes) - counted.flops) <= tolerance * counted.flops &&
           std::abs(value_at(work.bytes, sizes) - counted.bytes) <= tolerance * counted.bytes;
}

/// The distance of the grid's sizes. Images and windows divide by 64, and positions may be few. No shape rounds the
/// batch, and with few items a gather does not read its whole table, from where on bytes would grow no more.
std::int64_t step_of(const Graph& graph, const std::string& symbol) {
    constexpr std::int64_t widest = 64, largest_factor = 6;
    if (symbol == "batch") return 1;
    std::int64_t step = widest;
    for (const SymbolRange& range : graph.ranges)
        if (range.symbol == symbol) step = std::min(step, range.greatest / largest_factor);
    return step;
}

std::optional<WorkPolynomial> found(const Graph& graph, const ShapeBindings& bindings,
                                    std::vector<std::string> symbols) {
    const std::size_t count = symbols.size();
    std::vector<std::int64_t> steps, beyond, between, sizes(count);
    for (const std::string& symbol : symbols) {
        const std::int64_t step = step_of(graph, symbol);
        if (step < 1) return std::nullopt;
        beyond.push_back(step * (steps.size() % 2 == 0 ? 6 : 5));
        between.push_back(2 * step + 1);
        steps.push_back(step);
    }
    std::size_t size = 1;
    for (std::size_t i = 0; i < count; ++i) size *= points;
    Values flops(size), bytes(size);
    for (std::size_t at = 0; at < size; ++at) {
        for (std::size_t symbol = count, rest = at; symbol-- > 0; rest /= points)
            sizes[symbol] = steps[symbol] * static_cast<std::int64_t>(rest % points + 1);
        const Totals counted = totals(graph, bindings, symbols, sizes);
        flops[at] = counted.flops;
        bytes[at] = counted.bytes;
    }
    interpolate(flops, count);
    interpolate(bytes, count);
    const std::int64_t step = *std::ranges::max_element(steps);
    WorkPolynomial work{std::move(symbols), terms(flops, steps), terms(bytes, steps), true, step};
    if (!holds_at(work, beyond, totals(graph, bindings, work.symbols, beyond))) return std::nullopt;
    work.everywhere = holds_at(work, between, totals(graph, bindings, work.symbols, between));
    return work;
}

}  // namespace

std::optional<WorkPolynomial> work_polynomial(const Graph& graph, const ShapeBindings& bindings) {
    std::vector<std::string> open;
    for (const std::string& symbol : graph.expressions.symbols())
        if (!bindings.contains(symbol)) open.push_back(symbol);
    if (open.empty() || open.size() > most_symbols) return std::nullopt;
    try {
        return found(graph, bindings, std::move(open));
    } catch (const Error&) {  // sizes that the model does not have, or work beyond int64
        return std::nullopt;
    }
}

}  // namespace ftax
