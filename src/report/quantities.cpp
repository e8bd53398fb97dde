#include "src/report/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "ftax/equations.hpp"
#include "graphs/files/number.hpp"

namespace ftax::report {

const Columns<Prediction>& prediction_columns() {
    using P = Prediction;
    static const Columns<P> columns{
        {"latency_s", "latency", Unit::milliseconds, "time of one forward pass",
         [](const P& p) { return Value(p.latency_s, Tone::strong); }},
        {"low_s", "90 % from", Unit::milliseconds, "lower end of the 90 % interval", &P::low_s},
        {"high_s", "to", Unit::milliseconds, "upper end of the 90 % interval", &P::high_s},
        {"interval", "90 % interval", Unit::plain,
         [](const P& p) { return range_value(p.low_s, p.high_s, milliseconds); }},
        {"host_s", "host", Unit::milliseconds, "sum of the host's dispatch times", &P::host_s},
        {"device_s", "device", Unit::milliseconds, "sum of the kernels' times", &P::device_s},
        {"closed_form_s", "max", Unit::milliseconds, "the larger of `host_s` and `device_s`", &P::closed_form_s},
        {"bound", "bound", Unit::text, bound_meaning,
         [](const P& p) { return Value(p.bound, p.bound == Bound::host ? Tone::warning : Tone::plain); }},
        {"kernels", "kernels", Unit::plain, "number of launched kernels", &P::kernels},
        {"host_share", "host share", Unit::share, "`host_s` over the sum of `host_s` and `device_s`",
         [](const P& p) { return p.host_s / (p.host_s + p.device_s); }},
        {"framework_overhead", "overhead", Unit::share, "share of the latency during which the device waits",
         [](const P& p) { return equations::framework_overhead(p.latency_s, p.device_s); }},
        {"sm_active", "SM active", Unit::share, "share of the latency during which an SM holds work (estimate)",
         &P::sm_active},
        {"warp_occupancy", "warp occupancy", Unit::share, "resident warps over their maximum (estimate)",
         &P::warp_occupancy},
        {"power_w", "power, W", Unit::significant, "mean power of all cards over the latency", &P::power_w},
        {"energy_j", "energy, J", Unit::significant, "energy of all cards",
         [](const P& p) { return p.power_w * p.latency_s; }},
        {"coverage_nodes", "operators", Unit::share, "share of the operators that have a rule",
         [](const P& p) { return p.coverage.nodes; }},
        {"coverage_flops", "FLOPs", Unit::share, "their share of the FLOPs",
         [](const P& p) { return p.coverage.flops; }},
        {"coverage_time", "modelled", Unit::share, "share of the time that operators with a rule take",
         [](const P& p) { return p.coverage.time; }},
        {"evidence", "rests on", Unit::text,
         "distance from measured rows ([uncertainty.md](uncertainty.md)): measured, near, far, guess or unrated",
         [](const P& p) { return Value(p.evidence, p.evidence >= Evidence::far ? Tone::warning : Tone::plain); }},
        {"widest_component", "interval", Unit::text, "largest contributor to the interval", &P::widest_component},
        {"widest_component_stddev", "", Unit::share, "its part of the logarithm's stddev", &P::widest_component_stddev},
        {"warnings", "warnings", Unit::text, "messages about this row", &P::warnings}};
    return columns;
}

const Columns<MemoryUse>& memory_columns() {
    using M = MemoryUse;
    static const Columns<M> columns{
        {"weights_bytes", "weights", Unit::bytes, &M::weights_bytes},
        {"cache_bytes", "keys and values", Unit::bytes, "keys, values and states", &M::cache_bytes},
        {"activations_bytes", "activations", Unit::bytes, &M::activations_bytes},
        {"workspace_bytes", "workspace", Unit::bytes, &M::workspace_bytes},
        {"context_bytes", "context", Unit::bytes, "of CUDA and the framework", &M::context_bytes},
        {"total_bytes", "memory", Unit::bytes, "sum of all parts", [](const M& m) { return m.total_bytes(); }},
        {"capacity_bytes", "capacity", Unit::bytes, "memory of the device", &M::capacity_bytes},
        {"fits", "fits", Unit::text, "whether the device has enough memory",
         [](const M& m) { return Value(m.fits(), m.fits() ? Tone::plain : Tone::warning); }},
        {"total_and_fits", "memory", Unit::plain,
         [](const M& m) {
             return Value(m.total_bytes(), byte_size(m.total_bytes()) + (m.fits() ? "" : ", does not fit"),
                          m.fits() ? Tone::plain : Tone::warning);
         }},
        {"memory", "memory", Unit::text, "memory of a card at the run's peak",
         [](const M& m) { return memory_json(m); }}};
    return columns;
}

const Columns<Crossover>& crossover_columns() {
    static const Columns<Crossover> columns{
        {"batch", "crossover batch", Unit::significant, "batch of the crossover; null without one", &Crossover::batch},
        {"low", "90 % from", Unit::significant, "lower end of its 90 % interval", &Crossover::low},
        {"high", "to", Unit::significant, "upper end of its 90 % interval", &Crossover::high},
        {"host_s", "host there", Unit::duration, "host time at that batch", &Crossover::host_s},
        {"gpu_waits", "the device waits", Unit::text, "the GPU waits for the framework `below` or `above` it",
         [](const Crossover& c) { return c.gpu_waits_above ? "above" : "below"; }},
        {"causes", "", Unit::text, "the most expensive host work there", [](const Crossover& c) {
             return Columns<HostCause>{{"kind", "", Unit::text, &HostCause::kind},
                                       {"operations", "", Unit::plain, &HostCause::operations},
                                       {"host_s", "", Unit::duration, &HostCause::host_s}}
                 .json_rows(c.causes);
         }}};
    return columns;
}

Json memory_json(const MemoryUse& memory) {
    return memory_columns().json(memory,
                                 "weights_bytes cache_bytes activations_bytes workspace_bytes context_bytes "
                                 "total_bytes capacity_bytes fits");
}

std::string describe(const MemoryUse& memory) {
    std::string text =
        fmt::format("memory: {} of {}{}: weights {}", byte_size(memory.total_bytes()), byte_size(memory.capacity_bytes),
                    memory.fits() ? "" : ", DOES NOT FIT", byte_size(memory.weights_bytes));
    if (memory.cache_bytes > 0) text += fmt::format(", cache {}", byte_size(memory.cache_bytes));
    return text + fmt::format(", activations {}, workspace {}, context {}", byte_size(memory.activations_bytes),
                              byte_size(memory.workspace_bytes), byte_size(memory.context_bytes));
}

Json run_json(const PredictionReport& report) {
    return {{"model", report.model},
            {"device",
             {{"slug", report.device.device.slug},
              {"name", report.device.device.name},
              {"profile_version", report.device.version}}},
            {"framework",
             {{"name", report.framework.framework},
              {"version", report.framework.version},
              {"host", report.framework.host},
              {"host_assumed", report.framework.assumed}}},
            {"precision", name_of(report.precision)}};
}

std::vector<std::string> joined(std::vector<std::string> of_report, const std::vector<std::string>& of_row) {
    of_report.insert(of_report.end(), of_row.begin(), of_row.end());
    return of_report;
}

std::vector<std::string> merged(const std::vector<std::string>& warnings) {
    if (warnings.size() < 2) return warnings;
    static const std::regex number(
        R"((^|[ (:])(\d{1,15}(\.\d{1,15})?)(?![\w.]{0,3}\w))");  // not of a name or a version
    struct Kind {
        std::string text;                                          ///< with \x01 for each number
        std::vector<std::pair<std::string, std::string>> numbers;  ///< least and most of each
    };
    std::vector<Kind> kinds;
    for (const std::string& warning : warnings) {
        const std::string text = std::regex_replace(warning, number, "$1\x01");
        auto kind = std::ranges::find(kinds, text, &Kind::text);
        if (kind == kinds.end()) kind = kinds.insert(kind, {text, {}});
        std::size_t i = 0;
        for (std::sregex_iterator at(warning.begin(), warning.end(), number), end; at != end; ++at, ++i) {
            if (i == kind->numbers.size()) kind->numbers.emplace_back((*at)[2], (*at)[2]);
            auto& [least, most] = kind->numbers[i];
            least = std::ranges::min(least, (*at)[2].str(), {}, parse_number);
            most = std::ranges::max(most, (*at)[2].str(), {}, parse_number);
        }
    }
    std::vector<std::string> lines;
    std::map<std::string, std::size_t> line_of;  // of what is said of a name: ": not measured"
    for (auto& [text, numbers] : kinds) {
        std::size_t at = 0;
        for (const auto& [least, most] : numbers) {
            const std::string range = least == most ? least : fmt::format("{} to {}", least, most);
            at = std::min(text.find('\x01', at), text.size());
            text.replace(at, 1, range);
            at += range.size();
        }
        const auto name = text.find_first_of(" :");
        const std::string said = name < text.size() && text.find(": ") == name ? text.substr(name) : text;
        const auto [line, is_new] = line_of.try_emplace(said, lines.size());
        if (is_new)
            lines.push_back(std::move(text));
        else
            lines[line->second].insert(lines[line->second].size() - said.size(), ", " + text.substr(0, name));
    }
    return lines;
}

Columns<Parameter> parameter_columns(int digits) {
    return {{"name", "parameter", Unit::text, &Parameter::name},
            {"value", "value", Unit::plain,
             [digits](const Parameter& p) { return Value(p.value, fmt::format("{:.{}g}", p.value, digits)); }},
            {"relative_stddev", "uncertainty", Unit::plain,
             [](const Parameter& p) {
                 return Value(p.relative_stddev, p.relative_stddev > 0 ? "± " + percent(p.relative_stddev) : "unknown");
             }},
            {"source", "source", Unit::text, &Parameter::source}};
}

Value batch_value(const std::optional<std::int64_t>& batch) {
    return batch ? Value(*batch) : Value(nullptr, "fixed");
}

Value range_value(double low, double high, std::string (*print)(double)) {
    return shown(fmt::format("{} to {}", print(low), print(high)));
}

Value host_and_device_bars(double host_s, double device_s, double longest_s) {
    return Json{{"host", host_s / longest_s}, {"device", device_s / longest_s}};
}

}  // namespace ftax::report
