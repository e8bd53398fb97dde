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
        {"latency_s", "latency", Unit::milliseconds, [](const P& p) { return Value(p.latency_s, Tone::strong); }},
        {"low_s", "90 % from", Unit::milliseconds, &P::low_s},
        {"high_s", "to", Unit::milliseconds, &P::high_s},
        {"interval", "90 % interval", Unit::plain,
         [](const P& p) { return range_value(p.low_s, p.high_s, milliseconds); }},
        {"host_s", "host", Unit::milliseconds, &P::host_s},
        {"device_s", "device", Unit::milliseconds, &P::device_s},
        {"closed_form_s", "max", Unit::milliseconds, &P::closed_form_s},
        {"bound", "bound", Unit::text,
         [](const P& p) { return Value(p.bound, p.bound == Bound::host ? Tone::warning : Tone::plain); }},
        {"kernels", "kernels", Unit::plain, &P::kernels},
        {"host_share", "host share", Unit::share, [](const P& p) { return p.host_s / (p.host_s + p.device_s); }},
        {"framework_overhead", "overhead", Unit::share,
         [](const P& p) { return equations::framework_overhead(p.latency_s, p.device_s); }},
        {"sm_active", "SM active", Unit::share, &P::sm_active},
        {"warp_occupancy", "warp occupancy", Unit::share, &P::warp_occupancy},
        {"power_w", "power, W", Unit::significant, &P::power_w},
        {"energy_j", "energy, J", Unit::significant, [](const P& p) { return p.power_w * p.latency_s; }},
        {"coverage_nodes", "operators", Unit::share, [](const P& p) { return p.coverage.nodes; }},
        {"coverage_flops", "FLOPs", Unit::share, [](const P& p) { return p.coverage.flops; }},
        {"coverage_time", "modelled", Unit::share, [](const P& p) { return p.coverage.time; }},
        {"evidence", "rests on", Unit::text,
         [](const P& p) { return Value(p.evidence, p.evidence >= Evidence::far ? Tone::warning : Tone::plain); }},
        {"widest_component", "interval", Unit::text, &P::widest_component},
        {"widest_component_stddev", "", Unit::share, &P::widest_component_stddev},
        {"warnings", "warnings", Unit::text, &P::warnings}};
    return columns;
}

const Columns<MemoryUse>& memory_columns() {
    using M = MemoryUse;
    static const Columns<M> columns{
        {"weights_bytes", "weights", Unit::bytes, &M::weights_bytes},
        {"cache_bytes", "keys and values", Unit::bytes, &M::cache_bytes},
        {"activations_bytes", "activations", Unit::bytes, &M::activations_bytes},
        {"workspace_bytes", "workspace", Unit::bytes, &M::workspace_bytes},
        {"context_bytes", "context", Unit::bytes, &M::context_bytes},
        {"total_bytes", "memory", Unit::bytes, [](const M& m) { return m.total_bytes(); }},
        {"capacity_bytes", "capacity", Unit::bytes, &M::capacity_bytes},
        {"fits", "fits", Unit::text,
         [](const M& m) { return Value(m.fits(), m.fits() ? Tone::plain : Tone::warning); }},
        {"total_and_fits", "memory", Unit::plain,
         [](const M& m) {
             return Value(m.total_bytes(), byte_size(m.total_bytes()) + (m.fits() ? "" : ", does not fit"),
                          m.fits() ? Tone::plain : Tone::warning);
         }},
        {"memory", "memory", Unit::text, [](const M& m) { return memory_json(m); }}};
    return columns;
}

const Columns<Crossover>& crossover_columns() {
    static const Columns<Crossover> columns{
        {"batch", "crossover batch", Unit::significant, &Crossover::batch},
        {"low", "90 % from", Unit::significant, &Crossover::low},
        {"high", "to", Unit::significant, &Crossover::high},
        {"host_s", "host there", Unit::duration, &Crossover::host_s},
        {"gpu_waits", "the device waits", Unit::text,
         [](const Crossover& c) { return c.gpu_waits_above ? "above" : "below"; }},
        {"causes", "", Unit::text, [](const Crossover& c) {
             Json causes = Json::array();
             for (const HostCause& cause : c.causes)
                 causes.push_back(
                     {{"kind", name_of(cause.kind)}, {"operations", cause.operations}, {"host_s", cause.host_s}});
             return causes;
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
