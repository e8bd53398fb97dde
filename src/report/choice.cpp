#include "src/report/choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "graphs/base/named.hpp"
#include "graphs/base/throw_error.hpp"
#include "src/report/table.hpp"

namespace ftax::report {
namespace {

/// A criterion: its name, its figure of a choice (smaller is better), and the figure's format.
struct Figure {
    std::string_view name;
    std::optional<double> (*value)(const Choice&);
    std::string (*print)(double);
};

/// In the order of Criterion.
constexpr Figure all_figures[]{
    {"latency", [](const Choice& c) { return c.latency_s; }, duration},
    {"first-token", [](const Choice& c) { return c.first_token_s; }, duration},
    {"per-token", [](const Choice& c) { return c.per_token_s; }, duration},
    {"throughput", [](const Choice& c) { return c.items_per_s ? std::optional(1 / *c.items_per_s) : std::nullopt; },
     [](double seconds) { return significant(1 / seconds); }},
    {"cost", [](const Choice& c) { return c.dollars_per_million(); }, significant},
    {"energy", [](const Choice& c) { return c.energy_per_item_j; }, significant},
    {"memory", [](const Choice& c) { return c.memory_bytes; }, byte_size}};

const Figure& figure_of(Criterion by) {
    return all_figures[static_cast<std::size_t>(by)];
}

std::optional<double> value_of(const Choice& choice, Criterion by) {
    return figure_of(by).value(choice);
}

struct Factors {
    double low = 1, high = 1;
};

Factors factors_of(const Choice& choice, Criterion by) {
    const bool is_time = by == Criterion::latency || by == Criterion::first_token || by == Criterion::per_token;
    return by == Criterion::memory || (choice.is_paced && !is_time) ? Factors{} : Factors{choice.low, choice.high};
}

/// "2.16 ms (1.90 ms to 2.41 ms), 3500 items/s"
std::string figures(const Choice& choice, Criterion by, const Ranking& ranking) {
    const std::string& items = ranking.items;
    const double value = *value_of(choice, by);
    Factors factors = factors_of(choice, by);
    if (by == Criterion::throughput) std::swap(factors.low, factors.high);
    const auto print = figure_of(by).print;
    std::string text =
        (by == Criterion::latency && ranking.latency != "latency" ? ranking.latency + " " : "") + print(value);
    if (factors.low != factors.high)
        text += fmt::format(" ({} to {})", print(value * factors.low), print(value * factors.high));
    if (by == Criterion::cost) text += " $ per million " + items;
    if (by == Criterion::energy) text += " J/" + items.substr(0, items.size() - 1);
    if (by == Criterion::throughput) text += fmt::format(" {}/s", items);
    if (by != Criterion::throughput && choice.items_per_s)
        text += fmt::format(", {} {}/s", significant(*choice.items_per_s), items);
    if (by != Criterion::latency && choice.latency_s)
        text += fmt::format(", {} {}", ranking.latency, duration(*choice.latency_s));
    return text;
}

/// Those that may be named best: what runs, keeps up, keeps the level and fits, as long as something does.
bool is_eligible(const Choice& choice) {
    return choice.runs() && !choice.is_saturated && choice.keeps_level && choice.fits;
}

constexpr double nearly_equal = 1.005;  ///< ratio of two figures that count as equal

struct Lead {
    const Choice* best = nullptr;
    const Choice* next = nullptr;
    double ratio = 1, low = 1, high = 1;  ///< next over best, with its 90 % interval
    std::size_t tied = 0;                 ///< choices whose ratio may be 1
    const Choice* known = nullptr;        ///< the first of the tied ones that rests on nearer rows than the best

    [[nodiscard]] bool is_tie() const { return tied > 0; }
};

/// The interval of a ratio is that of independent errors: logarithms add in quadrature. Errors of one card and
/// framework cancel in part, which leaves it on the safe side.
Lead lead_of(const std::vector<const Choice*>& choices, Criterion by, bool same_cards = false) {
    Lead lead;
    for (const Choice* choice : choices) {
        const auto value = value_of(*choice, by);
        if (!choice->runs() || !value) continue;
        if (!lead.best) {
            lead.best = choice;
            continue;
        }
        if (choice->is_saturated || (is_eligible(*lead.best) && !is_eligible(*choice))) continue;
        if (same_cards && choice->cards != lead.best->cards) continue;
        const Factors best = factors_of(*lead.best, by), own = factors_of(*choice, by);
        const double ratio = *value / *value_of(*lead.best, by);
        const double low = ratio * std::exp(-std::hypot(std::log(best.high), std::log(own.low)));
        if (low < nearly_equal) ++lead.tied;
        const bool is_nearer = choice->rests_on != Evidence::unrated && choice->rests_on < lead.best->rests_on;
        if (low < nearly_equal && is_nearer && (!lead.known || choice->rests_on < lead.known->rests_on))
            lead.known = choice;
        if (lead.next) continue;
        lead.next = choice;
        lead.ratio = ratio;
        lead.low = low;
        lead.high = ratio * std::exp(std::hypot(std::log(best.low), std::log(own.high)));
    }
    return lead;
}

/// "vllm 0.14"; "vllm@0.11" says its version itself.
std::string versioned(const Choice& choice) {
    const bool known = choice.version.empty() || !split_at(choice.framework, '@').second.empty();
    return known ? choice.framework : choice.framework + " " + choice.version;
}

/// ", 41 % cheaper than tp 8": than the one server that shares each layer among the most cards.
std::string savings(const std::vector<const Choice*>& choices, const Choice& best) {
    const Choice* whole = &best;
    for (const Choice* choice : choices) {
        const Differences differences({choice, &best});
        if (choice->runs() && choice->layout == fmt::format("tp {}", choice->cards) && choice->cards >= whole->cards &&
            !differences.device && !differences.framework && !differences.precision)
            whole = choice;
    }
    const double share = best.cost() / whole->cost() - 1;
    if (std::abs(share) < nearly_equal - 1) return "";
    return fmt::format(", {} % {} than {}", significant(100 * std::abs(share)), share < 0 ? "cheaper" : "dearer",
                       whole->layout);
}

/// "; each of 8 cards does 56 % of what it does in 2"; empty for throughputs that the rate of arrivals sets.
std::string scaling(const std::vector<const Choice*>& choices, const Choice& best) {
    const auto fewer = std::ranges::min_element(choices, {}, [&](const Choice* c) {
        const bool comparable = c->runs() && c->items_per_s && !c->is_paced && c->batch == best.batch &&
                                c->device == best.device && c->framework == best.framework &&
                                c->precision == best.precision;
        return std::tuple(!comparable, c->cards);
    });
    if (!best.items_per_s || best.is_paced || (*fewer)->cards >= best.cards || !(*fewer)->items_per_s) return "";
    const double share = *best.items_per_s / best.cards / (*(*fewer)->items_per_s / (*fewer)->cards);
    return fmt::format("; each of {} cards does {} % of what it does in {}", best.cards, significant(100 * share),
                       (*fewer)->cards == 1 ? "one alone" : fmt::format("{}", (*fewer)->cards));
}

std::string verdict_over_all(const std::vector<const Choice*>& choices, Criterion by, const Ranking& ranking) {
    const Differences differences(choices);
    const Lead lead = lead_of(choices, by, ranking.fewest_cards);
    if (!lead.best) return "";
    const std::string figure = fmt::format("{}: {}", differences.name(*lead.best), figures(*lead.best, by, ranking));
    std::string text = lead.best->is_saturated   ? "none keeps up with the requests; closest: "
                       : !lead.best->keeps_level ? "none keeps the SLO; closest: "
                       : !lead.best->fits        ? "none fits into the memory; smallest misfit: "
                       : lead.next == nullptr    ? ""
                       : lead.is_tie()           ? "tie: "
                                                 : "best: ";
    text += figure;
    if (differences.layout) text += savings(choices, *lead.best);
    if (is_eligible(*lead.best) && !lead.best->keeps_level_surely) text += ", which may miss the SLO";
    if (lead.next) {
        const bool less = by == Criterion::throughput;  // the next choice has less throughput
        text += fmt::format("; next: {} at {} times that", differences.name(*lead.next),
                            significant(less ? 1 / lead.ratio : lead.ratio));
        if (lead.low != lead.high)
            text += fmt::format(" ({} to {})", significant(less ? 1 / lead.high : lead.low),
                                significant(less ? 1 / lead.low : lead.high));
    }
    if (lead.tied > 1) text += fmt::format(", and {} more within the intervals", lead.tied - 1);
    if (lead.known)
        text += fmt::format("; of these {} is `{}`, the first is `{}`", differences.name(*lead.known),
                            name_of(lead.known->rests_on), name_of(lead.best->rests_on));
    return differences.layout ? text : text + scaling(choices, *lead.best);
}

std::string verdict_by_batch(const std::vector<const Choice*>& choices) {
    const Differences differences(choices);
    struct Part {
        std::string name;
        bool is_tie;
        std::int64_t first, last;
        double least, most;
    };
    std::vector<Part> parts;
    for (auto at = choices.begin(); at != choices.end();) {
        const auto end = std::find_if(at, choices.end(), [&](const Choice* c) { return c->batch != (*at)->batch; });
        const std::vector<const Choice*> batch(at, end);
        at = end;
        const Lead lead = lead_of(batch, Criterion::latency);
        if (!lead.next) continue;
        Differences others = differences;
        others.batch = false;
        const std::string name = others.name(*lead.best);
        const std::int64_t size = lead.best->batch.value_or(1);
        if (!parts.empty() && parts.back().name == name && parts.back().is_tie == lead.is_tie()) {
            parts.back().last = size;
            parts.back().least = std::min(parts.back().least, lead.ratio);
            parts.back().most = std::max(parts.back().most, lead.ratio);
        } else {
            parts.push_back({name, lead.is_tie(), size, size, lead.ratio, lead.ratio});
        }
    }
    std::string text;
    for (const Part& part : parts) {
        text += text.empty() ? "best at batch " : "; at ";
        text +=
            part.first == part.last ? fmt::format("{}", part.first) : fmt::format("{} to {}", part.first, part.last);
        const std::string least = significant(part.least), most = significant(part.most);
        text += fmt::format(": {}, {} times ahead{}", part.name,
                            least == most ? least : fmt::format("{} to {}", least, most),
                            part.is_tie ? ", a tie within the 90 % intervals" : "");
    }
    return text;
}

}  // namespace

std::vector<std::string> criterion_names() {
    return mapped(all_figures, [](const Figure& figure) { return std::string(figure.name); });
}

std::optional<Criterion> criterion_from_name(std::string_view name) {
    return enumerator_named<Criterion>(all_figures, name, &Figure::name);
}

std::optional<double> Choice::dollars_per_million() const {
    if (!dollars_per_hour || !items_per_s) return std::nullopt;
    constexpr double seconds_per_hour = 3600, million = 1e6;
    return *dollars_per_hour / seconds_per_hour / *items_per_s * million;
}

bool is_on_front(const Choice& choice, const std::vector<const Choice*>& choices) {
    const auto keeps_up = [](const Choice& c) { return c.runs() && !c.is_saturated && c.latency_s; };
    return keeps_up(choice) && std::ranges::none_of(choices, [&](const Choice* other) {
               if (!keeps_up(*other) || *other->latency_s > *choice.latency_s) return false;
               return other->cost() < choice.cost() * (*other->latency_s < *choice.latency_s ? nearly_equal : 1);
           });
}

Columns<Choice> choice_columns(const Ranking& ranking) {
    const std::string item = ranking.items.substr(0, ranking.items.size() - 1);
    return {{"device", "device", Unit::text, &Choice::device},
            {"framework", "framework", Unit::text, &Choice::framework},
            {"versioned_framework", "framework", Unit::text, versioned},
            {"framework_version", "version", Unit::text, &Choice::version},
            {"host", "host", Unit::text, &Choice::host},
            {"precision", "precision", Unit::text, &Choice::precision},
            {"cards", "cards", Unit::plain, "number of cards", &Choice::cards},
            {"keeps_level", "keeps SLO", Unit::text, "with --slo: whether the limits are kept",
             [&](const Choice& choice) {
                 if (!ranking.has_level || !choice.runs()) return Value();
                 return Value(choice.keeps_level, choice.keeps_level ? Tone::strong : Tone::warning);
             }},
            {"items_per_s", ranking.items + "/s", Unit::significant, "items per second", &Choice::items_per_s},
            {"energy_per_item_j", "J/" + item, Unit::significant, "energy per token, or per request without tokens",
             &Choice::energy_per_item_j},
            {"dollars_per_million", "$/M " + ranking.items, Unit::significant,
             "with --price: per million items, tokens or requests", &Choice::dollars_per_million},
            {"skipped", "skipped", Unit::text, "why it cannot run, in place of its figures",
             [](const Choice& choice) { return choice.runs() ? Value() : Value(choice.skipped); }}};
}

std::string with_cards(const Choice& choice) {
    return choice.cards > 1 ? fmt::format("{} x {}", choice.cards, choice.device) : choice.device;
}

Differences::Differences(const std::vector<const Choice*>& choices) {
    for (const Choice* choice : choices) {
        const Choice& first = *choices.front();
        device = device || choice->device != first.device;
        framework = framework || choice->framework != first.framework;
        precision = precision || choice->precision != first.precision;
        cards = cards || choice->cards != first.cards;
        layout = layout || choice->layout != first.layout;
        batch = batch || (choice->runs() && first.runs() && choice->batch != first.batch);
    }
}

std::string Differences::keys(bool on_page) const {
    return fmt::format("{}{}{}{}", device || on_page ? "device " : "",
                       framework || on_page ? "=versioned_framework " : "", precision ? "precision " : "",
                       cards ? "cards " : "");
}

std::string Differences::name(const Choice& choice) const {
    std::vector<std::string> parts;
    if (framework) parts.push_back(choice.framework);
    if (device) parts.push_back(choice.device);
    if (precision) parts.push_back(choice.precision);
    if (cards || layout) parts.push_back(fmt::format("{} card{}", choice.cards, choice.cards == 1 ? "" : "s"));
    if (layout) parts.back() += " = " + choice.layout;
    for (std::size_t at = 0; layout && (at = parts.back().find(" x ")) != std::string::npos;)
        parts.back().replace(at, 3, " replicas of ");
    if (batch && choice.batch) parts.push_back(fmt::format("batch {}", *choice.batch));
    return parts.empty() ? choice.framework + " on " + with_cards(choice) : fmt::format("{}", fmt::join(parts, ", "));
}

std::string Differences::common(const Choice& choice) const {
    std::vector<std::string> parts;
    if (!framework) parts.push_back(versioned(choice));
    if (!device) parts.push_back(cards ? choice.device : with_cards(choice));
    if (!precision) parts.push_back(choice.precision);
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::size_t> order_of(const std::vector<const Choice*>& choices, const Ranking& ranking) {
    const Criterion by = ranking.by.value_or(Criterion::latency);
    std::vector<std::optional<std::int64_t>> batches;
    const auto key = [&](std::size_t i) {
        const Choice& choice = *choices[i];
        const auto batch = std::find(batches.begin(), batches.end(), choice.batch) - batches.begin();
        const bool by_rate = ranking.fewest_cards && choice.is_saturated;
        const double value =
            value_of(choice, by_rate ? Criterion::throughput : by).value_or(std::numeric_limits<double>::infinity());
        return std::tuple(!choice.runs(), ranking.by ? 0 : batch, choice.is_saturated, !choice.keeps_level,
                          !choice.fits, ranking.fewest_cards && !by_rate ? choice.cards : 0, value,
                          choice.latency_s.value_or(0));
    };
    std::vector<std::size_t> order;
    bool any = false;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        order.push_back(i);
        batches.push_back(choices[i]->batch);
        any = any || value_of(*choices[i], by) || !choices[i]->runs();
    }
    if (!any)
        throw_error(ErrorCode::usage, "--sort {}: not available for these rows{}", figure_of(by).name,
                    by == Criterion::cost ? "; give --price" : "");
    std::ranges::stable_sort(order, {}, key);
    return order;
}

std::string order_text(const Ranking& ranking) {
    const std::string_view by = figure_of(ranking.by.value_or(Criterion::latency)).name;
    return fmt::format("order: {}{}{}", ranking.has_level ? "SLO kept, " : "",
                       ranking.fewest_cards ? "fewest cards, then " : "",
                       ranking.by == Criterion::latency ? ranking.latency : by);
}

std::string verdict_on(const std::vector<const Choice*>& choices, const Ranking& ranking) {
    return !ranking.by && Differences(choices).batch
               ? verdict_by_batch(choices)
               : verdict_over_all(choices, ranking.by.value_or(Criterion::latency), ranking);
}

std::vector<std::string> reasons_of(const std::vector<const Choice*>& choices) {
    std::vector<std::string> lines;
    for (const Choice* choice : choices) {
        if (choice->runs()) continue;
        lines.push_back(fmt::format("{} on {}, {}: {}", choice->framework, with_cards(*choice), choice->precision,
                                    choice->skipped));
    }
    constexpr std::size_t most = 8;
    if (lines.size() > most) lines = {fmt::format("{} combinations, such as {}", lines.size(), lines.front())};
    return lines;
}

}  // namespace ftax::report
