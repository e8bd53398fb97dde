#include "ftax/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "graphs/base/checked_math.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax {
namespace {

enum class NodeKind : std::uint8_t { polynomial, symbol, floor_divide, ceil_divide, modulo, minimum, maximum };

/// coefficient × product of atoms; an atom is a node that is not a polynomial. Atoms sorted, repeated for powers.
struct Monomial {
    std::int64_t coefficient = 0;
    std::vector<std::uint32_t> atoms;
    friend bool operator==(const Monomial&, const Monomial&) = default;
};

struct Node {
    NodeKind kind = NodeKind::polynomial;
    std::uint32_t a = 0, b = 0;       ///< operands, or the symbol's index in `a`
    std::vector<Monomial> monomials;  ///< sorted by_atoms; a constant has at most one, without atoms
};

/// Bounds the length of one expression when printed: the graph of a hostile model can square a dimension at every node.
constexpr std::size_t max_terms = 2000;
constexpr std::size_t max_symbols = 1000;
/// Every node is evaluated for each binding.
constexpr std::size_t max_expressions = 2'000'000;

/// The entry of a function of two operands in a list in the order of NodeKind.
template <class Entry>
Entry of_two(NodeKind kind, const Entry (&entries)[5]) {
    return entries[static_cast<std::size_t>(kind) - static_cast<std::size_t>(NodeKind::floor_divide)];
}

std::int64_t modulus(std::int64_t a, std::int64_t b) {
    return a - checked_multiply(floor_quotient(a, b), b);
}

constexpr std::int64_t (*functions_of_two[])(std::int64_t, std::int64_t) = {
    floor_quotient, ceil_quotient, modulus, [](std::int64_t a, std::int64_t b) { return std::min(a, b); },
    [](std::int64_t a, std::int64_t b) { return std::max(a, b); }};

[[noreturn]] void fail_too_large() {
    throw_error(ErrorCode::limit, "a shape expression has more than {} terms", max_terms);
}

/// Lower powers first. Multiplying two monomials by the same one keeps their order, as Storage::quotient needs.
bool by_atoms(const Monomial& x, const Monomial& y) {
    return x.atoms.size() != y.atoms.size() ? x.atoms.size() < y.atoms.size() : x.atoms < y.atoms;
}

std::string key_of(const Node& node) {
    if (node.kind != NodeKind::polynomial) return fmt::format("{}:{}:{}", static_cast<int>(node.kind), node.a, node.b);
    std::string key = "p";
    for (const Monomial& m : node.monomials) {
        key += "+" + std::to_string(m.coefficient);
        for (const auto atom : m.atoms) key += "*" + std::to_string(atom);
    }
    return key;
}

}  // namespace

struct ExpressionPool::Storage {
    std::vector<Node> nodes;
    std::unordered_map<std::string, std::uint32_t> ids;
    std::unordered_map<std::int64_t, Expression> constants;  ///< those asked for
    std::vector<std::string> symbols;
    std::vector<std::size_t> terms_printed;  ///< parallel to nodes: symbols and numbers of the printed expression

    std::uint32_t intern(Node node) {
        const std::size_t length = printed_length(node);
        if (length > max_terms) fail_too_large();
        if (nodes.size() >= max_expressions)
            throw_error(ErrorCode::limit, "the shapes need more than {} expressions", max_expressions);
        auto [position, added] = ids.try_emplace(key_of(node), static_cast<std::uint32_t>(nodes.size()));
        if (added) {
            nodes.push_back(std::move(node));
            terms_printed.push_back(length);
        }
        return position->second;
    }

    [[nodiscard]] std::size_t printed_length(const Node& node) const {
        if (node.kind == NodeKind::symbol) return 1;
        if (node.kind != NodeKind::polynomial) return terms_printed[node.a] + terms_printed[node.b];
        std::size_t length = 0;
        for (const Monomial& m : node.monomials) {
            ++length;
            for (const std::uint32_t atom : m.atoms) length += terms_printed[atom];
        }
        return length;
    }

    /// A node as a sum of monomials: polynomials as they are, anything else as the monomial 1 × itself.
    [[nodiscard]] std::vector<Monomial> terms(std::uint32_t id) const {
        if (nodes[id].kind == NodeKind::polynomial) return nodes[id].monomials;
        return {Monomial{1, {id}}};
    }

    Expression from_terms(std::vector<Monomial> monomials) {
        std::ranges::sort(monomials, by_atoms);
        std::vector<Monomial> merged;
        for (Monomial& m : monomials) {
            if (!merged.empty() && merged.back().atoms == m.atoms) {
                merged.back().coefficient = checked_add(merged.back().coefficient, m.coefficient);
            } else {
                merged.push_back(std::move(m));
            }
        }
        std::erase_if(merged, [](const Monomial& m) { return m.coefficient == 0; });
        if (merged.size() == 1 && merged[0].coefficient == 1 && merged[0].atoms.size() == 1)
            return {merged[0].atoms[0]};
        return {intern({NodeKind::polynomial, 0, 0, std::move(merged)})};
    }

    Expression binary(NodeKind kind, Expression a, Expression b) { return {intern({kind, a.id, b.id, {}})}; }

    [[nodiscard]] std::optional<std::int64_t> constant(std::uint32_t id) const {
        const Node& node = nodes[id];
        if (node.kind != NodeKind::polynomial) return std::nullopt;
        if (node.monomials.empty()) return 0;
        if (node.monomials.size() == 1 && node.monomials[0].atoms.empty()) return node.monomials[0].coefficient;
        return std::nullopt;
    }

    /// True when every value of the expression is at least `bound`, given that symbols are at least 1.
    [[nodiscard]] bool at_least(std::uint32_t id, std::int64_t bound) const {
        std::int64_t least = 0;
        for (const Monomial& m : terms(id)) {
            if (m.coefficient < 0 && !m.atoms.empty()) return false;
            bool at_least_one = true;  // a product of symbols; anything else that is not negative may be 0
            for (const std::uint32_t atom : m.atoms) {
                if (nodes[atom].kind == NodeKind::symbol) continue;
                if (!nonnegative(atom)) return false;
                at_least_one = false;
            }
            if (at_least_one && __builtin_add_overflow(least, m.coefficient, &least)) return m.coefficient > 0;
        }
        return least >= bound;
    }

    [[nodiscard]] bool nonnegative(std::uint32_t atom) const {
        const Node& node = nodes[atom];
        if (node.kind == NodeKind::symbol) return true;
        if (node.kind == NodeKind::polynomial) return at_least(atom, 0);
        return at_least(node.a, 0) && at_least(node.b, 0);
    }

    /// Divides every monomial by the single monomial `divisor`, splitting off what does not divide:
    /// quotient and remainder with p = quotient × divisor + remainder.
    static std::pair<std::vector<Monomial>, std::vector<Monomial>> divide(const std::vector<Monomial>& p,
                                                                          const Monomial& divisor) {
        std::vector<Monomial> quotient, remainder;
        for (const Monomial& m : p) {
            const bool atoms_divide =
                std::includes(m.atoms.begin(), m.atoms.end(), divisor.atoms.begin(), divisor.atoms.end());
            // The least integer divided by -1 is none.
            const bool negates = divisor.coefficient == -1;
            if (atoms_divide && (negates || m.coefficient % divisor.coefficient == 0)) {
                Monomial q{negates ? checked_multiply(m.coefficient, -1) : m.coefficient / divisor.coefficient, {}};
                std::set_difference(m.atoms.begin(), m.atoms.end(), divisor.atoms.begin(), divisor.atoms.end(),
                                    std::back_inserter(q.atoms));
                quotient.push_back(std::move(q));
            } else {
                remainder.push_back(m);
            }
        }
        return {std::move(quotient), std::move(remainder)};
    }

    /// Cancels the greatest common monomial of two term lists.
    static void cancel_common_factor(std::vector<Monomial>& a, std::vector<Monomial>& b) {
        std::vector<std::uint32_t> common = b.front().atoms;
        std::uint64_t factor = 0;
        const auto magnitude = [](std::int64_t c) {
            return c < 0 ? -static_cast<std::uint64_t>(c) : static_cast<std::uint64_t>(c);
        };
        for (const auto* list : {&a, &b}) {
            for (const Monomial& m : *list) {
                std::vector<std::uint32_t> shared;
                std::set_intersection(common.begin(), common.end(), m.atoms.begin(), m.atoms.end(),
                                      std::back_inserter(shared));
                common = std::move(shared);
                factor = std::gcd(factor, magnitude(m.coefficient));
            }
        }
        constexpr std::uint64_t largest = std::uint64_t{1} << 62;  // the least integer has no magnitude of its own
        const Monomial divisor{static_cast<std::int64_t>(std::min(factor, largest)), common};
        a = divide(a, divisor).first;
        b = divide(b, divisor).first;
    }

    Expression quotient(NodeKind kind, Expression a, Expression b) {
        const auto dividend = constant(a.id), divisor = constant(b.id);
        if (divisor && *divisor == 0) throw Error(ErrorCode::model, "division by zero in a shape expression");
        if (dividend && divisor) return from_terms({{of_two(kind, functions_of_two)(*dividend, *divisor), {}}});
        if (dividend && *dividend == 0) return a;
        if (a == b) return from_terms({{1, {}}});
        std::vector<Monomial> p = terms(a.id), q = terms(b.id);
        if (q.size() > 1) {  // (k·q) / q for a sum q
            auto [ratio, rest] = divide({p.front()}, q.front());
            if (rest.empty()) {
                const Expression candidate = from_terms(ratio);
                if (from_terms(product(terms(candidate.id), q)) == a) return candidate;
            }
        }
        cancel_common_factor(p, q);
        if (q.size() == 1) {
            auto [whole, remainder] = divide(p, q.front());
            if (remainder.empty()) return from_terms(std::move(whole));
            if (!whole.empty()) {
                // (x + k·d) / d = x/d + k holds for floor and ceiling alike
                const Expression rest = quotient(kind, from_terms(std::move(remainder)), from_terms(std::move(q)));
                for (Monomial& m : terms(rest.id)) whole.push_back(std::move(m));
                return from_terms(std::move(whole));
            }
        }
        const Expression left = from_terms(std::move(p)), right = from_terms(std::move(q));
        if (constant(left.id) && constant(right.id)) return quotient(kind, left, right);  // x / (9·x) is 1 / 9
        return binary(kind, left, right);
    }

    static std::vector<Monomial> product(const std::vector<Monomial>& p, const std::vector<Monomial>& q) {
        if (p.size() * q.size() > max_terms) fail_too_large();
        std::vector<Monomial> result;
        result.reserve(p.size() * q.size());
        for (const Monomial& x : p) {
            for (const Monomial& y : q) {
                Monomial m{checked_multiply(x.coefficient, y.coefficient), {}};
                std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), std::back_inserter(m.atoms));
                result.push_back(std::move(m));
            }
        }
        return result;
    }

    /// Printed expressions, in an order that does not depend on which symbol the pool met first: they read back alike.
    [[nodiscard]] std::vector<std::string> print_sorted(const std::vector<std::uint32_t>& atoms) const {
        std::vector<std::string> texts;
        for (const std::uint32_t atom : atoms) {
            const NodeKind kind = nodes[atom].kind;
            const bool parenthesize = kind == NodeKind::floor_divide || kind == NodeKind::modulo;
            texts.push_back(parenthesize ? "(" + print(atom) + ")" : print(atom));
        }
        std::ranges::sort(texts);
        return texts;
    }

    [[nodiscard]] std::string print(std::uint32_t id) const {
        static constexpr const char* formats[] = {"({})//({})", "ceildiv({},{})", "({})%({})", "min({},{})",
                                                  "max({},{})"};
        const Node& node = nodes[id];
        if (node.kind == NodeKind::symbol) return symbols[node.a];
        if (node.kind == NodeKind::polynomial) return print_sum(node.monomials);
        std::vector<std::string> operands{print(node.a), print(node.b)};
        if (node.kind == NodeKind::minimum || node.kind == NodeKind::maximum) std::ranges::sort(operands);
        return fmt::format(fmt::runtime(of_two(node.kind, formats)), operands[0], operands[1]);
    }

    [[nodiscard]] std::string print_sum(const std::vector<Monomial>& monomials) const {
        if (monomials.empty()) return "0";
        struct Term {
            std::size_t power;
            std::string atoms;
            std::int64_t coefficient;
        };
        std::vector<Term> terms;
        for (const Monomial& m : monomials)
            terms.push_back({m.atoms.size(), fmt::format("{}", fmt::join(print_sorted(m.atoms), "*")), m.coefficient});
        // Highest powers first, the constant last, as people write them.
        std::ranges::sort(terms, [](const Term& x, const Term& y) {
            return x.power != y.power ? x.power > y.power : x.atoms < y.atoms;
        });
        std::string text;
        for (const Term& term : terms) {
            if (!text.empty() && term.coefficient > 0) text += '+';
            if (term.power == 0) {
                text += std::to_string(term.coefficient);
            } else if (term.coefficient == -1) {
                text += '-' + term.atoms;
            } else if (term.coefficient == 1) {
                text += term.atoms;
            } else {
                text += fmt::format("{}*{}", term.coefficient, term.atoms);
            }
        }
        return text;
    }
};

ExpressionPool::ExpressionPool() : storage_(std::make_unique<Storage>()) {
    storage_->from_terms({});
}
ExpressionPool::~ExpressionPool() = default;
ExpressionPool::ExpressionPool(const ExpressionPool& other) : storage_(std::make_unique<Storage>(*other.storage_)) {}
ExpressionPool& ExpressionPool::operator=(const ExpressionPool& other) {
    if (this != &other) storage_ = std::make_unique<Storage>(*other.storage_);
    return *this;
}
ExpressionPool::ExpressionPool(ExpressionPool&&) noexcept = default;
ExpressionPool& ExpressionPool::operator=(ExpressionPool&&) noexcept = default;

Expression ExpressionPool::constant(std::int64_t value) {
    return kept_in(storage_->constants, value, [&] { return storage_->from_terms({{value, {}}}); });
}

Expression ExpressionPool::symbol(std::string_view name) {
    auto found = std::ranges::find(storage_->symbols, name);
    if (found == storage_->symbols.end()) {
        if (storage_->symbols.size() == max_symbols)
            throw_error(ErrorCode::limit, "more than {} different dynamic dimensions", max_symbols);
        found = storage_->symbols.emplace(found, name);
    }
    const auto index = static_cast<std::uint32_t>(found - storage_->symbols.begin());
    return {storage_->intern({NodeKind::symbol, index, 0, {}})};
}

Expression ExpressionPool::add(Expression a, Expression b) {
    std::vector<Monomial> sum = storage_->terms(a.id);
    for (Monomial& m : storage_->terms(b.id)) sum.push_back(std::move(m));
    return storage_->from_terms(std::move(sum));
}

Expression ExpressionPool::subtract(Expression a, Expression b) {
    return add(a, multiply(constant(-1), b));
}

Expression ExpressionPool::multiply(Expression a, Expression b) {
    return storage_->from_terms(Storage::product(storage_->terms(a.id), storage_->terms(b.id)));
}

Expression ExpressionPool::floor_divide(Expression a, Expression b) {
    return storage_->quotient(NodeKind::floor_divide, a, b);
}

Expression ExpressionPool::ceil_divide(Expression a, Expression b) {
    return storage_->quotient(NodeKind::ceil_divide, a, b);
}

Expression ExpressionPool::modulo(Expression a, Expression b) {
    const auto x = constant_value(a), y = constant_value(b);
    if (y && *y == 0) throw Error(ErrorCode::model, "modulo by zero in a shape expression");
    if (x && y) return constant(modulus(*x, *y));
    const auto divisor = storage_->terms(b.id);
    if (divisor.size() == 1 && Storage::divide(storage_->terms(a.id), divisor.front()).second.empty())
        return constant(0);
    return storage_->binary(NodeKind::modulo, a, b);
}

Expression ExpressionPool::minimum(Expression a, Expression b) {
    if (a == b) return a;
    if (storage_->at_least(subtract(b, a).id, 0)) return a;
    if (storage_->at_least(subtract(a, b).id, 0)) return b;
    return storage_->binary(NodeKind::minimum, {std::min(a.id, b.id)}, {std::max(a.id, b.id)});
}

Expression ExpressionPool::maximum(Expression a, Expression b) {
    if (a == b) return a;
    if (storage_->at_least(subtract(b, a).id, 0)) return b;
    if (storage_->at_least(subtract(a, b).id, 0)) return a;
    return storage_->binary(NodeKind::maximum, {std::min(a.id, b.id)}, {std::max(a.id, b.id)});
}

std::optional<std::int64_t> ExpressionPool::constant_value(Expression e) const {
    return storage_->constant(e.id);
}
std::string ExpressionPool::to_string(Expression e) const {
    return storage_->print(e.id);
}
const std::vector<std::string>& ExpressionPool::symbols() const noexcept {
    return storage_->symbols;
}
std::size_t ExpressionPool::size() const noexcept {
    return storage_->nodes.size();
}

std::vector<std::string> ExpressionPool::symbols_of(Expression e) const {
    std::vector<bool> needed(e.id + 1, false);
    needed[e.id] = true;
    std::vector<std::string> result;
    for (std::uint32_t id = e.id + 1; id-- > 0;) {  // operands have smaller ids than what uses them
        if (!needed[id]) continue;
        const Node& node = storage_->nodes[id];
        if (node.kind == NodeKind::symbol) {
            result.push_back(storage_->symbols[node.a]);
        } else if (node.kind == NodeKind::polynomial) {
            for (const Monomial& m : node.monomials)
                for (const std::uint32_t atom : m.atoms) needed[atom] = true;
        } else {
            needed[node.a] = needed[node.b] = true;
        }
    }
    std::ranges::reverse(result);
    return result;
}

void ExpressionPool::evaluate(std::span<const std::int64_t> symbol_values, std::vector<std::int64_t>& values) const {
    const std::vector<Node>& nodes = storage_->nodes;
    values.resize(nodes.size());
    for (std::size_t id = 0; id < nodes.size(); ++id) {
        const Node& node = nodes[id];
        if (node.kind == NodeKind::symbol) {
            values[id] = symbol_values[node.a];
        } else if (node.kind == NodeKind::polynomial) {
            std::int64_t sum = 0;
            for (const Monomial& m : node.monomials) {
                std::int64_t term = m.coefficient;
                for (const std::uint32_t atom : m.atoms) term = checked_multiply(term, values[atom]);
                sum = checked_add(sum, term);
            }
            values[id] = sum;
        } else {
            if (values[node.b] == 0 && node.kind <= NodeKind::modulo)
                throw_error(ErrorCode::model, "division by zero in shape expression {}",
                            storage_->print(static_cast<std::uint32_t>(id)));
            values[id] = of_two(node.kind, functions_of_two)(values[node.a], values[node.b]);
        }
    }
}

Expression ExpressionPool::import(const ExpressionPool& other, Expression e,
                                  const std::map<std::string, Expression, std::less<>>& replace) {
    const Node& node = other.storage_->nodes[e.id];
    const auto operand = [&](std::uint32_t id) { return import(other, {id}, replace); };
    if (node.kind == NodeKind::symbol) {
        const std::string& name = other.storage_->symbols[node.a];
        const Expression* replaced = found_in(replace, name);
        return replaced == nullptr ? symbol(name) : *replaced;
    }
    if (node.kind != NodeKind::polynomial) {
        using Pool = ExpressionPool;
        static constexpr Expression (Pool::*functions[])(Expression, Expression) = {
            &Pool::floor_divide, &Pool::ceil_divide, &Pool::modulo, &Pool::minimum, &Pool::maximum};
        return (this->*of_two(node.kind, functions))(operand(node.a), operand(node.b));
    }
    Expression sum = constant(0);
    for (const Monomial& m : node.monomials) {
        Expression term = constant(m.coefficient);
        for (const std::uint32_t atom : m.atoms) term = multiply(term, operand(atom));
        sum = add(sum, term);
    }
    return sum;
}

}  // namespace ftax
