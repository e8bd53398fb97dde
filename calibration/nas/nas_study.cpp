#include "calibration/nas/nas_study.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

#include "ftax/error.hpp"
#include "ftax/work.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/number.hpp"

namespace ftax::nas_study {
namespace {

void read_space(const nas::Space& space, const CsvTable& table, std::size_t limit, std::vector<Column>& columns) {
    const std::size_t first = columns.size();
    for (const std::string_view name : table.header().subspan(1)) {
        const std::size_t underscore = std::min(name.rfind('_'), name.size() - 1);
        const auto batch = parse_integer(name.substr(underscore + 1));
        if (!batch) throw Error(ErrorCode::profile, fmt::format("column {} is not DEVICE_BATCH", name));
        columns.push_back({&space, std::string(name), device_profile(name.substr(0, underscore)), *batch, {}});
    }
    const std::size_t count = std::min(limit, table.rows());
    for (std::size_t i = 0; i < count; ++i) {
        const auto row = table.row(i * table.rows() / count);
        std::vector<int> choices;
        space.parse(row[0], choices);
        for (std::size_t c = 1; c < row.size(); ++c) {
            const auto latency_ms = parse_number(row[c]);
            if (!latency_ms) continue;
            Column& column = columns[first + c - 1];
            column.samples.push_back({choices, column.batch, *latency_ms * 1e-3});
        }
    }
}

constexpr const char* version = "1.8";
constexpr std::size_t rows_per_column = 300;

constexpr std::size_t draws = 5;
constexpr std::size_t samples_per_draw = 10;

/// Ranks less their mean; ties get their mean rank.
Eigen::ArrayXd centred_ranks(std::span<const double> values) {
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    Eigen::ArrayXd ranks(static_cast<Eigen::Index>(values.size()));
    for (Eigen::Index i = 0; i < ranks.size(); ++i) {
        const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), values[static_cast<std::size_t>(i)]);
        const auto below = first - sorted.begin(), above = sorted.end() - last;
        ranks[i] = static_cast<double>(below - above) / 2;
    }
    return ranks;
}

/// How well all samples but those of `left_out`, ascending, are predicted: Spearman's correlation and MAPE.
std::pair<double, double> fit_of(const Column& column, const FrameworkProfile& framework, const nas::Campaign& campaign,
                                 std::span<const std::size_t> left_out) {
    std::vector<int> choices;
    std::vector<double> measured_s;
    for (std::size_t i = 0; i < column.samples.size(); ++i) {
        if (std::binary_search(left_out.begin(), left_out.end(), i)) continue;
        const nas::Sample& sample = column.samples[i];
        choices.insert(choices.end(), sample.choices.begin(), sample.choices.end());
        measured_s.push_back(sample.latency_s);
    }
    const nas::CostFunction cost(*column.space, column.device, framework, {}, {column.batch}, campaign);
    std::vector<double> predicted_s(measured_s.size());
    cost.cost(choices, predicted_s, 1);
    double errors = 0;
    for (std::size_t i = 0; i < predicted_s.size(); ++i) errors += std::abs(predicted_s[i] / measured_s[i] - 1);
    return {spearman(predicted_s, measured_s), errors / static_cast<double>(predicted_s.size())};
}

constexpr std::size_t scored_of = 4;

std::vector<nas::Block> blocks_of(const nas::Space& space, const std::vector<int>& choices) {
    std::vector<nas::Block> chain;
    space.blocks(choices, chain);
    return chain;
}

/// One column per option of each choice, after a constant column.
Eigen::VectorXd design_row(const nas::Space& space, std::vector<int> choices) {
    const std::vector<int> options = space.options();
    Eigen::VectorXd row = Eigen::VectorXd::Zero(std::accumulate(options.begin(), options.end(), Eigen::Index{1}));
    row[0] = 1;
    const std::vector<nas::Block> chain = blocks_of(space, choices);
    Eigen::Index first = 1;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        // The kernel of a block that a shallow stage leaves out, say, is no choice.
        const int chosen = std::exchange(choices[i], choices[i] > 0 ? choices[i] - 1 : options[i] - 1);
        if (blocks_of(space, choices) != chain) row[first + chosen] = 1;
        choices[i] = chosen;
        first += options[i];
    }
    return row;
}

}  // namespace

std::vector<Column> read_columns(const std::filesystem::path& folder, std::size_t limit) {
    std::vector<Column> columns;
    for (const std::string& name : nas::space_names()) {
        // Cards that were measured later have files of their own.
        for (const std::string& file : {fmt::format("nas_{}.csv", name), fmt::format("nas_{}_2080ti.csv", name)}) {
            const std::filesystem::path path = folder / file;
            if (std::filesystem::exists(path)) read_space(nas::space(name), read_csv(path.string()), limit, columns);
        }
    }
    return columns;
}

fit::FrameworkFit fit_host_costs(std::span<const Column> columns, std::string_view left_out) {
    const FrameworkProfile start{.framework = std::string(nas::measured_framework), .version = version};
    std::vector<fit::HostRow> rows;
    std::size_t used = 0;
    for (const Column& column : columns) {
        if (column.device.device.slug == left_out) continue;
        ++used;
        const std::size_t count = std::min(rows_per_column, column.samples.size());
        for (std::size_t i = 0; i < count; ++i) {
            const nas::Sample& sample = column.samples[i * column.samples.size() / count];
            const Graph graph = nas::build_graph(*column.space, sample.choices);
            Predictor predictor(graph, column.device, start);
            const Measurement measurement{.gpu = column.device.device.slug,
                                          .framework = start.framework,
                                          .model = fmt::format("{} {}", column.space->name(), i),
                                          .batch = sample.batch,
                                          .run = fmt::format("{} {}", column.space->name(), column.name),
                                          .latency_s = sample.latency_s};
            rows.push_back(fit::host_row(measurement, predictor, {{"batch", sample.batch}}));
            if (!column.space->waits_after_blocks()) continue;
            rows.back().operations[static_cast<std::size_t>(HostKind::synchronize)] +=
                static_cast<double>(blocks_of(*column.space, sample.choices).size());
        }
    }
    fit::FrameworkFit fitted = fit::fit_framework(start.framework, version, rows);
    fitted.reference.host = nas::measured_host;
    for (Parameter& p : fitted.reference.parameters)
        p.source = fmt::format("fitted: nas_*.csv, {} rows of {} columns", fitted.rows, used);
    return fitted;
}

double spearman(std::span<const double> a, std::span<const double> b) {
    const Eigen::ArrayXd x = centred_ranks(a), y = centred_ranks(b);
    const double squares = x.square().sum() * y.square().sum();
    return squares > 0 ? (x * y).sum() / std::sqrt(squares) : 0;
}

Score score(const Column& column, const FrameworkProfile& framework) {
    Score result{std::string(column.space->name()), column.device.device.slug, column.batch};
    std::tie(result.spearman_0, result.mape_0) = fit_of(column, framework, {}, {});
    std::mt19937 random(1);
    std::vector<std::size_t> order(column.samples.size());
    for (std::size_t draw = 0; draw < draws; ++draw) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(samples_per_draw, order.size() / 2));
        std::sort(order.begin(), end);
        std::vector<nas::Sample> samples;
        for (auto i = order.begin(); i != end; ++i) samples.push_back(column.samples[*i]);
        const nas::Calibration calibration = nas::calibrate(*column.space, column.device, framework, {}, samples);
        const auto [rank, mape] = fit_of(column, framework, calibration.campaign, std::span(order.begin(), end));
        result.spearman_10 += rank / draws;
        result.mape_10 += mape / draws;
    }

    std::vector<double> operators, flops, measured_s;
    for (const nas::Sample& sample : column.samples) {
        measured_s.push_back(sample.latency_s);
        const Graph graph = nas::build_graph(*column.space, sample.choices);
        operators.push_back(static_cast<double>(graph.ops.size()));
        flops.push_back(static_cast<double>(total_work(graph, bind(graph, {{"batch", column.batch}})).flops));
    }
    result.spearman_operators = spearman(operators, measured_s);
    result.spearman_flops = spearman(flops, measured_s);
    result.spearman_additive = additive_spearman(column);
    return result;
}

std::string ledger_csv(std::span<const Column> columns, const FrameworkProfile& fitted) {
    std::string text =
        "fold,space,device,batch,spearman_0,mape_0_percent,spearman_10,mape_10_percent,spearman_operators,"
        "spearman_flops,spearman_additive\n";
    const auto append = [&](const Column& column, std::string_view fold, const FrameworkProfile& framework) {
        const Score s = score(column, framework);
        fmt::format_to(std::back_inserter(text), "{},{},{},{},{:.4f},{:.1f},{:.4f},{:.1f},{:.4f},{:.4f},{:.4f}\n", fold,
                       s.space, s.device, s.batch, s.spearman_0, 100 * s.mape_0, s.spearman_10, 100 * s.mape_10,
                       s.spearman_operators, s.spearman_flops, s.spearman_additive);
    };
    for (const Column& column : columns) append(column, "host costs fitted on all devices", fitted);
    std::map<std::string, FrameworkProfile> others;
    for (const Column& column : columns) {
        const std::string& device = column.device.device.slug;
        if (!others.contains(device)) others[device] = fit_host_costs(columns, device).reference;
        append(column, "host costs fitted on the other devices", others[device]);
    }
    return text;
}

double additive_spearman(const Column& column) {
    if (column.samples.empty()) return 0;
    const Eigen::Index columns = design_row(*column.space, column.samples.front().choices).size();
    // A ridge of one row holds what the rows do not tell apart.
    Eigen::MatrixXd normal = Eigen::MatrixXd::Identity(columns, columns);
    Eigen::VectorXd right = Eigen::VectorXd::Zero(columns);
    std::vector<Eigen::VectorXd> scored;
    std::vector<double> measured_s;
    for (std::size_t i = 0; i < column.samples.size(); ++i) {
        const nas::Sample& sample = column.samples[i];
        Eigen::VectorXd row = design_row(*column.space, sample.choices);
        if (i % scored_of == 0) {
            scored.push_back(std::move(row));
            measured_s.push_back(sample.latency_s);
        } else {
            normal.selfadjointView<Eigen::Lower>().rankUpdate(row);
            right += std::log(sample.latency_s) * row;
        }
    }
    const Eigen::VectorXd numbers = normal.selfadjointView<Eigen::Lower>().ldlt().solve(right);
    return spearman(mapped(scored, [&](const Eigen::VectorXd& row) { return row.dot(numbers); }), measured_s);
}

}  // namespace ftax::nas_study
