#include "ftax/nas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>

#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/number.hpp"
#include "src/cli/scenario_options.hpp"

namespace ftax::cli {
namespace {

constexpr std::size_t rows_per_step = 4096;  // rows between progress updates

struct NasArguments {
    std::string space;
    std::string architectures;
    RunArguments run{.precision = "fp32"};
    std::string batches = "1";
    std::vector<std::string> dims;
    std::string output = "-";
    std::string score;
    std::uint64_t top = 0;
    double max_latency_s = std::numeric_limits<double>::infinity();
    double max_memory_bytes = std::numeric_limits<double>::infinity();
    unsigned threads = 0;
    bool pareto = false;
    std::optional<bool> waits;
};

/// Measured architectures of a file with the columns arch, batch and latency_ms; rows that do not parse are reported
/// and skipped. Throws Error{profile} if nothing is left.
std::vector<nas::Sample> read_samples(const std::string& path, const nas::Space& space) {
    const CsvTable table = read_csv(path);
    table.require({"arch", "batch", "latency_ms"});
    std::vector<nas::Sample> samples;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        try {
            nas::Sample sample{.batch = parse_integer(table.cell(row, "batch")).value_or(0),
                               .latency_s = parse_number(table.cell(row, "latency_ms")).value_or(0) * 1e-3};
            space.parse(table.cell(row, "arch"), sample.choices);
            if (sample.batch < 1) throw Error(ErrorCode::profile, "expected a batch of at least 1");
            if (!(sample.latency_s > 0)) throw Error(ErrorCode::profile, "expected a positive latency_ms");
            samples.push_back(std::move(sample));
        } catch (const Error& error) {
            print_warnings({fmt::format("{}:{}: {}", path, table.line(row), error.what())});
        }
    }
    if (samples.empty()) throw_error(ErrorCode::profile, "{}: no usable sample", escape_terminal(path));
    return samples;
}

/// Returns the campaign estimated from the anchor rows, or that of the profiles without any.
nas::Campaign campaign_of(const NasArguments& arguments, const nas::Space& space, const Scenario& scenario,
                          const ShapeBindings& dims) {
    const auto& [device, framework, options] = scenario;
    const nas::Campaign campaign{.waits_after_blocks = arguments.waits};
    if (arguments.run.anchor.empty()) return campaign;
    const std::vector<nas::Sample> samples = read_samples(arguments.run.anchor, space);
    const nas::Calibration fitted = nas::calibrate(space, device, framework, options, samples, campaign, dims);
    fmt::print(notices(), "{} anchor rows: host time × {:.2f} (± {:.0f} %), device time × {:.2f} (± {:.0f} %)\n",
               samples.size(), fitted.campaign.host_scale, 100 * fitted.host_relative_stddev,
               fitted.campaign.device_scale, 100 * fitted.device_relative_stddev);
    return fitted.campaign;
}

/// Architectures of a file: those that parse, with the rows they came from.
struct Architectures {
    CsvTable table;
    std::size_t column = 0;
    std::vector<std::size_t> kept;  ///< input columns copied to the result
    std::vector<std::size_t> rows;  ///< table row of each parsed architecture
    std::vector<int> choices;       ///< parsed choices, concatenated
    std::size_t broken = 0;
};

Architectures read_architectures(const std::string& path, const nas::Space& space) {
    Architectures result{read_csv(path), 0, {}, {}, {}, 0};
    const auto column = result.table.column("arch");
    if (!column) throw_error(ErrorCode::profile, "{}: no column arch", escape_terminal(path));
    if (result.table.rows() == 0) throw_error(ErrorCode::profile, "{}: no architectures", escape_terminal(path));
    result.column = *column;
    std::vector<int> one;
    for (std::size_t row = 0; row < result.table.rows(); ++row) {
        try {
            space.parse(result.table.row(row)[*column], one);
        } catch (const Error& error) {
            fmt::print(notices(), "{}:{}: {}\n", escape_terminal(path), result.table.line(row),
                       escape_terminal(error.what()));
            ++result.broken;
            continue;
        }
        result.rows.push_back(row);
        result.choices.insert(result.choices.end(), one.begin(), one.end());
    }
    return result;
}

/// A card to search for, with the latencies on it: a row per architecture, a column per batch.
struct Target {
    std::string name;
    Scenario scenario;
    nas::CostFunction cost;
    std::vector<double> latency_s{};

    [[nodiscard]] double latency_of(std::size_t i) const { return latency_s[i * cost.batches().size()]; }
};

/// With several cards, the result names each row's; with a score, it keeps the input columns. Returns all columns.
std::vector<std::string> keep_columns(Architectures& archs, const std::string& score, bool names_devices) {
    std::vector<std::string> names{"arch", "batch", "predicted_ms"};
    if (names_devices) names.insert(names.begin() + 1, "device");
    if (score.empty()) return names;
    if (!archs.table.column(score)) throw_error(ErrorCode::usage, "no column {} for --score", score);
    for (std::size_t column = 0; column < archs.table.header().size(); ++column) {
        const std::string name(archs.table.header()[column]);
        if (std::ranges::count(names, name) > 0) continue;
        names.push_back(name);
        archs.kept.push_back(column);
    }
    return names;
}

/// Costs all architectures in steps, passes on each finished step, and shows the progress on a terminal.
std::vector<double> cost_all(const nas::CostFunction& cost, std::span<const int> choices, std::size_t count,
                             unsigned threads,
                             const std::function<void(std::size_t, std::span<const double>)>& finished) {
    const std::size_t sites = cost.space().options().size();
    const std::size_t batches = cost.batches().size();
    std::vector<double> latency_s(count * batches);
    Progress progress("architectures");
    for (std::size_t first = 0; first < count; first += rows_per_step) {
        const std::size_t step = std::min(rows_per_step, count - first);
        const std::span<double> part = std::span(latency_s).subspan(first * batches, step * batches);
        cost.cost(choices.subspan(first * sites, step * sites), part, threads);
        finished(first, part);
        progress.show(first + step, count);
    }
    return latency_s;
}

/// Appends the rows of one architecture on one card, which is named unless `device` is empty.
void append_rows(std::string& text, const Architectures& archs, std::size_t i, std::span<const double> latency_s,
                 std::span<const std::int64_t> batches, const std::string& device) {
    for (std::size_t b = 0; b < batches.size(); ++b) {
        const auto input = archs.table.row(archs.rows[i]);
        std::vector<std::string> cells{std::string(input[archs.column]), std::to_string(batches[b]),
                                       format_number(latency_s[b] * 1e3)};
        if (!device.empty()) cells.insert(cells.begin() + 1, device);
        for (const std::size_t column : archs.kept) cells.emplace_back(input[column]);
        append_csv_row(text, cells);
    }
}

bool keeps_memory(const NasArguments& arguments, const Architectures& archs, std::size_t i,
                  std::span<const Target> targets) {
    const nas::CostFunction& cost = targets[0].cost;
    const std::size_t sites = cost.space().options().size();
    const Graph graph = nas::build_graph(cost.space(), std::span(archs.choices).subspan(i * sites, sites));
    ShapeBindings dims = cost.dims();
    dims["batch"] = std::ranges::max(cost.batches());
    return std::ranges::all_of(targets, [&](const Target& target) {
        const auto& [device, framework, options] = target.scenario;
        return Predictor(graph, device, framework, options).memory(dims).total_bytes() <= arguments.max_memory_bytes;
    });
}

/// Indices of the architectures to write, in order. With several cards the slowest one counts.
std::vector<std::size_t> select(const NasArguments& arguments, const Architectures& archs,
                                std::span<const Target> targets) {
    std::vector<std::size_t> selected(archs.rows.size());
    std::iota(selected.begin(), selected.end(), std::size_t{0});
    const auto first_s = [&](std::size_t i) {
        double slowest = 0;
        for (const Target& target : targets) slowest = std::max(slowest, target.latency_of(i));
        return slowest;
    };
    std::erase_if(selected, [&](std::size_t i) { return first_s(i) > arguments.max_latency_s; });
    if (std::isfinite(arguments.max_memory_bytes)) {
        Progress progress("networks, for their memory");
        std::size_t done = 0;
        const std::size_t all = selected.size();
        std::erase_if(selected, [&](std::size_t i) {
            progress.show(++done, all);
            return !keeps_memory(arguments, archs, i, targets);
        });
    }
    if (arguments.top == 0 && !arguments.pareto) return selected;
    std::vector<double> score(archs.rows.size());
    if (!arguments.score.empty()) {
        const auto column = archs.table.column(arguments.score);
        for (std::size_t i = 0; i < score.size(); ++i) {
            const auto value = parse_number(archs.table.row(archs.rows[i])[*column]);
            if (!value)
                throw_error(ErrorCode::profile, "{}:{}: {} is not a number", arguments.architectures,
                            archs.table.line(archs.rows[i]), arguments.score);
            score[i] = *value;
        }
    }
    if (arguments.pareto) {  // fastest first, each with a higher score than every faster one
        std::ranges::stable_sort(selected, {}, [&](auto i) { return std::pair(first_s(i), -score[i]); });
        std::optional<double> best;
        std::erase_if(selected, [&](std::size_t i) {
            if (best && score[i] <= *best) return true;
            best = score[i];
            return false;
        });
    } else {
        std::ranges::stable_sort(selected, {}, [&](auto i) { return std::pair(-score[i], first_s(i)); });
    }
    if (arguments.top > 0 && selected.size() > arguments.top) selected.resize(arguments.top);
    return selected;
}

int run_nas(const NasArguments& arguments) {
    if (arguments.pareto && arguments.score.empty()) throw Error(ErrorCode::usage, "--pareto needs --score COLUMN");
    const nas::Space& space = nas::space(arguments.space);
    const ShapeBindings dims = parse_dimensions(arguments.dims);
    Architectures archs = read_architectures(arguments.architectures, space);
    std::vector<Target> targets;
    for (const std::string& name : split_list(arguments.run.device)) {
        RunArguments run = arguments.run;
        run.device = name;
        Scenario scenario = resolve(run, parse_precision(run.precision));
        const auto& [device, framework, options] = scenario;
        print_provenance(device.warnings);
        print_provenance(framework.warnings);
        print_provenance(nas_assumptions(run, framework));
        const nas::Campaign campaign = campaign_of(arguments, space, scenario, dims);
        nas::CostFunction cost(space, device, framework, options, parse_batches(arguments.batches), campaign, dims);
        targets.push_back({device.device.slug, std::move(scenario), std::move(cost)});
    }
    const bool several = targets.size() > 1;
    const auto& batches = targets[0].cost.batches();
    // Without a selection, rows are written immediately; a file appears complete, at the end.
    const bool streams = arguments.output == "-" && arguments.top == 0 && !arguments.pareto && !several &&
                         std::isinf(arguments.max_memory_bytes);
    std::string text;
    append_csv_row(text, keep_columns(archs, arguments.score, several));
    const auto stream = [&](std::size_t first, std::span<const double> part) {
        if (!streams) return;
        for (std::size_t i = 0; i * batches.size() < part.size(); ++i) {
            if (part[i * batches.size()] <= arguments.max_latency_s)
                append_rows(text, archs, first + i, part.subspan(i * batches.size()), batches, "");
        }
        write_standard_output(text);
        std::fflush(stdout);
        text.clear();
    };
    for (Target& target : targets)
        target.latency_s = cost_all(target.cost, archs.choices, archs.rows.size(), arguments.threads, stream);
    if (!streams) {
        for (const std::size_t i : select(arguments, archs, targets))
            for (const Target& target : targets)
                append_rows(text, archs, i, std::span(target.latency_s).subspan(i * batches.size()), batches,
                            several ? target.name : "");
    }
    write_output(arguments.output, text);
    if (archs.broken == 0) return 0;
    throw_error(ErrorCode::profile, "{}: {} of {} architectures do not parse", escape_terminal(arguments.architectures),
                archs.broken, archs.table.rows());
}

}  // namespace

void setup_nas(CLI::App& verb, Action& action) {
    NasArguments& arguments = run_with(verb, action, run_nas);
    verb.add_option("--space", arguments.space, fmt::format("search space: {}", fmt::join(nas::space_names(), ", ")))
        ->required();
    verb.add_option("ARCHS", arguments.architectures, "CSV with a column arch")->required();
    add_run_options(verb, arguments.run);
    CLI::Option* device = verb.get_option("--device");
    device->description(device->get_description() + ", or a list");
    add_batch_option(verb, arguments.batches);
    add_option(verb, "--dim", "NAME=N", arguments.dims, "value of a symbolic dimension of the space, e.g. seq=512")
        ->allow_extra_args(false);
    add_option(
        verb, "-o,--output", "FILE", arguments.output,
        "CSV to write: arch,batch,predicted_ms, with several cards also device, with --score the other columns of "
        "ARCHS; - is standard output")
        ->capture_default_str();
    add_option(verb, "--top", "K", arguments.top, "keep only the best K: by --score, else the fastest")
        ->check(within(1, 1e18, "a number of architectures from 1 on"));
    const std::vector<std::pair<std::string_view, double>> units{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1e-3}};
    add_option(verb, "--max-latency", "TIME", arguments.max_latency_s,
               "keep only architectures up to this latency at the first batch: 5ms, 800us (default unit: ms)")
        ->transform(is_quantity({"a latency from 1e-9 s to 1e6 s, such as 5ms", 1e-9, 1e6, units}));
    const std::vector<std::pair<std::string_view, double>> sizes{{"MB", 1e6}, {"GB", 1e9}, {"", 1}};
    add_option(verb, "--max-memory", "SIZE", arguments.max_memory_bytes,
               "keep only architectures whose peak memory at the largest batch is up to this: 500MB, 2GB")
        ->transform(is_quantity({"a size from 1 to 1e15 bytes, such as 2GB", 1, 1e15, sizes}));
    add_option(verb, "--score", "COLUMN", arguments.score, "column of ARCHS with a score to maximise");
    verb.add_flag("--pareto", arguments.pareto, "keep only Pareto-optimal architectures in latency and score");
    // Two flags instead of one with two names: CLI11 sets an optional flag that is not given to false.
    verb.add_flag_callback(
        "--waits", [&arguments] { arguments.waits = true; },
        "the host waits for the device after each block (default: as the space was measured)");
    verb.add_flag_callback(
            "--no-waits", [&arguments] { arguments.waits = false; }, "the host runs ahead of the device")
        ->excludes(verb.get_option("--waits"));
    add_option(verb, "--threads", "N", arguments.threads, "threads to cost on; 0: all cores");
}

}  // namespace ftax::cli
