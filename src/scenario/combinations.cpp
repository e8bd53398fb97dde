#include "src/scenario/combinations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/number.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/profiles/device_file.hpp"

namespace ftax::scenario {
namespace {

bool is_file(const std::string& prices) {
    return prices.ends_with(".csv");
}

double parse_price(std::string_view text, std::string_view where, ErrorCode code = ErrorCode::usage) {
    double price = 0;
    const std::string problem =
        read_quantity(text, {"a number of dollars per hour from 1e-6 to 1e6", 1e-6, 1e6}, price);
    if (!problem.empty()) throw_error(code, "{} {}", where, problem);
    return price;
}

struct PricedDevice {
    std::string name;  ///< slug or datasheet file
    std::optional<double> dollars_per_hour;
};

std::vector<PricedDevice> read_prices(const std::string& path) {
    const CsvTable table = read_csv(path);
    table.require({"device", "dollars_per_hour"});
    std::vector<PricedDevice> list;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const std::string where = fmt::format("{}:{}:", path, table.line(row));
        const double dollars = parse_price(table.cell(row, "dollars_per_hour"), where, ErrorCode::profile);
        try {
            list.push_back({device_spec(table.cell(row, "device")).slug, dollars});
        } catch (const Error& error) {
            throw_error(ErrorCode::profile, "{} {}", where, error.what());
        }
    }
    if (list.empty()) throw_error(ErrorCode::profile, "{}: there are no prices", path);
    return list;
}

constexpr std::string_view every = "all";

/// Serving engines are for language models alone: they are named.
std::vector<std::string> frameworks_of(const RunArguments& run) {
    if (run.framework != every) return split_list(run.framework);
    std::vector<std::string> names;
    for (const FrameworkModel* model : framework_models())
        if (!model->traits.serves_sequences) names.emplace_back(model->name);
    return names;
}

std::vector<PricedDevice> priced_devices(const RunArguments& run, const std::string& prices) {
    if (run.device.empty() || (run.device == every && is_file(prices))) {
        if (is_file(prices)) return read_prices(prices);
        throw Error(ErrorCode::usage,
                    "give --device, or a file of prices (--price FILE.csv) whose devices are compared");
    }
    // Reports misspelt names before any model is read; they are errors, not combinations that cannot run.
    const auto unpriced = [](const std::string& name) {
        print_warnings(warnings_of_name(name));
        return PricedDevice{name.ends_with(".json") ? name : device_spec(name).slug, std::nullopt};
    };
    std::vector<PricedDevice> devices =
        mapped(run.device == every ? mapped(device_specs(), &DeviceSpec::slug) : split_list(run.device), unpriced);
    if (prices.empty()) return devices;
    if (is_file(prices)) {
        const std::vector<PricedDevice> known = read_prices(prices);
        for (PricedDevice& device : devices) {
            const auto found = std::ranges::find_if(known, [&](const auto& k) { return k.name == device.name; });
            if (found == known.end()) throw_error(ErrorCode::usage, "{} has no price of {}", prices, device.name);
            device.dollars_per_hour = found->dollars_per_hour;
        }
        return devices;
    }
    const std::vector<std::string> words = split_list(prices);
    if (words.size() != 1 && words.size() != devices.size())
        throw_error(ErrorCode::usage, "--price has {} values for {} devices; give one, or one for each", words.size(),
                    devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i)
        devices[i].dollars_per_hour = parse_price(words[words.size() == 1 ? 0 : i], "--price");
    return devices;
}

}  // namespace

report::Choice Combination::choice() const {
    return {.device = run.device,
            .framework = run.framework,
            .precision = run.precision,
            .cards = static_cast<int>(cards),
            .dollars_per_hour = dollars_per_hour};
}

std::vector<Combination> combinations(const RunArguments& run, const ChoiceArguments& arguments) {
    const std::vector<PricedDevice> devices = priced_devices(run, arguments.prices);
    const std::vector<std::string> frameworks = frameworks_of(run), precisions = split_list(run.precision);
    for (const std::string& name : frameworks) {
        LibraryVersions ignored;
        static_cast<void>(framework_model(take_version(name, ignored).name));
    }
    for (const std::string& name : precisions)
        if (!name.empty()) static_cast<void>(parse_precision(name));
    std::vector<Combination> all;
    for (const PricedDevice& device : devices) {
        for (const std::string& framework : frameworks) {
            for (const std::string& precision : precisions) {
                for (const std::int64_t cards : parse_counts(arguments.tensor_parallel, "--tp")) {
                    Combination& one = all.emplace_back(Combination{.run = run, .cards = cards});
                    one.run.device = device.name;
                    one.run.framework = framework;
                    one.run.precision = precision;
                    if (device.dollars_per_hour)
                        one.dollars_per_hour = *device.dollars_per_hour * static_cast<double>(cards);
                }
            }
        }
    }
    return all;
}

report::Ranking ranking_of(const ChoiceArguments& arguments, std::optional<report::Criterion> without,
                           std::string items) {
    report::Ranking ranking{
        .by = without, .top = arguments.top, .has_level = !arguments.level.empty(), .items = std::move(items)};
    if (!arguments.prices.empty()) ranking.by = report::Criterion::cost;
    if (!arguments.sort.empty()) {
        ranking.by = report::criterion_from_name(arguments.sort);
        if (!ranking.by)
            throw_error(ErrorCode::usage, "--sort: unknown criterion '{}'; available: {}",
                        escape_terminal(arguments.sort), fmt::join(report::criterion_names(), ", "));
    }
    return ranking;
}

ServiceLevel parse_level(std::string_view text, double kept_share) {
    ServiceLevel level{.share = kept_share};
    if (text.empty()) return level;
    const std::map<std::string, double*, std::less<>> limits{
        {"ttft", &level.ttft_s}, {"tpot", &level.tpot_s}, {"latency", &level.latency_s}};
    for (const std::string& word : split_list(text)) {
        const std::size_t equals = word.find('=');
        std::string name = equals == std::string::npos ? "latency" : word.substr(0, equals);
        if (name.ends_with("_p99")) name.resize(name.size() - 4);
        const auto limit = limits.find(name);
        if (limit == limits.end())
            throw_error(ErrorCode::usage,
                        "--slo: unknown limit '{}'; available: ttft, tpot and latency, as in ttft=500ms",
                        escape_terminal(excerpt(word)));
        // npos + 1: the whole word
        const std::string problem =
            read_quantity(std::string_view(word).substr(equals + 1), time_quantity(), *limit->second);
        if (!problem.empty()) throw_error(ErrorCode::usage, "--slo {}: {}", name, problem);
    }
    return level;
}

void hold_to(const ServiceLevel& level, report::Choice& choice) {
    const auto within = [&](const std::optional<double>& seconds, double limit, const char* name) {
        if (!std::isfinite(limit)) return;
        if (!seconds) throw_error(ErrorCode::usage, "--slo {}: not available for these rows", name);
        choice.keeps_level = choice.keeps_level && *seconds <= limit;
        choice.keeps_level_surely = choice.keeps_level_surely && *seconds * choice.high <= limit;
    };
    choice.keeps_level = choice.keeps_level_surely = true;
    within(choice.latency_s, level.latency_s, "latency");
    within(choice.first_token_s, level.ttft_s, "ttft");
    within(choice.per_token_s, level.tpot_s, "tpot");
}

}  // namespace ftax::scenario
