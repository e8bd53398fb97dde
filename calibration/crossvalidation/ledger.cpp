#include "calibration/crossvalidation/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "src/core/statistics.hpp"
#include "src/io/csv.hpp"

namespace ftax::folds {
namespace {

struct Figures {
    std::size_t rows = 0;
    double mean = 0, median = 0, p90 = 0;  ///< |predicted − measured| / measured
    double bias = 0;                       ///< median of log(predicted / measured)
    double inside = 0;                     ///< share of rows within the 90 % interval
};

Figures figures(const std::vector<const Scored*>& rows) {
    Figures f{.rows = rows.size()};
    if (rows.empty()) return f;
    std::vector<double> errors, logs;
    for (const Scored* s : rows) {
        const double measured_s = s->row->latency_s;
        errors.push_back(std::abs(s->predicted_s / measured_s - 1));
        logs.push_back(std::log(s->predicted_s / measured_s));
        f.mean += errors.back() / static_cast<double>(rows.size());
        f.inside += (s->low_s <= measured_s && measured_s <= s->high_s ? 1.0 : 0.0) / static_cast<double>(rows.size());
    }
    f.median = quantile(errors, 0.5);
    f.p90 = quantile(errors, 0.9);
    f.bias = quantile(logs, 0.5);
    return f;
}

/// Groups by framework, precision and GPU, with a line for each framework and one for all.
using Group = std::tuple<std::string, std::string, std::string>;
std::map<Group, Figures> grouped(const std::vector<Scored>& rows) {
    std::map<Group, std::vector<const Scored*>> groups;
    for (const Scored& s : rows) {
        const std::string precision(name_of(s.row->precision));
        groups[{"all", "all", "all"}].push_back(&s);
        groups[{s.row->framework, "all", "all"}].push_back(&s);
        groups[{s.row->framework, precision, "all"}].push_back(&s);
        groups[{s.row->framework, precision, s.row->gpu}].push_back(&s);
        groups[{"all", "all", "model " + s.row->model}].push_back(&s);
    }
    std::map<Group, Figures> result;
    for (const auto& [group, own] : groups) result[group] = figures(own);
    return result;
}

/// A latency curve over batch and its crossover as the measurements define it: flat start ÷ per-sample slope of the
/// largest batch.
struct Curve {
    std::vector<const Scored*> rows;  ///< in order of batch

    double crossover(double (*latency)(const Scored&)) const {
        const double slope = latency(*rows.back()) / static_cast<double>(rows.back()->row->batch);
        return latency(*rows.front()) / slope;
    }

    /// Half the width of the crossover's 90 % interval, as a logarithm: the errors of both ends are independent.
    double log_half_width() const {
        const auto half = [](const Scored& s) { return std::log(s.high_s / s.low_s) / 2; };
        return std::hypot(half(*rows.front()), half(*rows.back()));
    }
};

struct CurveFigures {
    std::size_t curves = 0;
    std::size_t near = 0;     ///< crossover within a factor 1.41
    std::size_t inside = 0;   ///< crossover within its 90 % interval
    std::size_t clear = 0;    ///< rows at least a factor 2 away from the measured crossover
    std::size_t classed = 0;  ///< of those, rows on whose bound (host or device) the prediction agrees
};

/// Curves from batch 1 to at least 64, by framework; "all" for all of them.
std::map<std::string, CurveFigures> curve_figures(const std::vector<Scored>& rows) {
    std::map<std::tuple<std::string, std::string, std::string, std::string, Precision>, Curve> curves;
    for (const Scored& s : rows) {
        curves[{s.row->framework, s.row->run, s.row->gpu, s.row->model, s.row->precision}].rows.push_back(&s);
    }
    std::map<std::string, CurveFigures> result;
    for (auto& [key, curve] : curves) {
        std::sort(curve.rows.begin(), curve.rows.end(),
                  [](const Scored* a, const Scored* b) { return a->row->batch < b->row->batch; });
        if (curve.rows.front()->row->batch != 1 || curve.rows.back()->row->batch < 64) continue;
        const double measured = curve.crossover([](const Scored& s) { return s.row->latency_s; });
        const double predicted = curve.crossover([](const Scored& s) { return s.predicted_s; });
        for (const std::string& group : {std::get<0>(key), std::string("all")}) {
            CurveFigures& f = result[group];
            ++f.curves;
            const double error = std::abs(std::log(predicted / measured));
            if (error <= std::log(1.41)) ++f.near;
            if (error <= curve.log_half_width()) ++f.inside;
            for (const Scored* s : curve.rows) {
                const auto batch = static_cast<double>(s->row->batch);
                if (batch > measured / 2 && batch < 2 * measured) continue;
                ++f.clear;
                if ((batch < measured) == (s->host_s > s->device_s)) ++f.classed;
            }
        }
    }
    return result;
}

/// "2 to 5, 9": runs of lines that follow each other.
std::string line_ranges(std::vector<std::size_t> lines) {
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (std::size_t first = 0, end = 0; first < lines.size(); first = end) {
        for (end = first + 1; end < lines.size() && lines[end] == lines[end - 1] + 1;) ++end;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", lines[first]);
        if (end - first > 1) text += fmt::format(" to {}", lines[end - 1]);
    }
    return text;
}

/// Lines of the file without a score, by reason.
LinesByReason unscored(const Folds& folds, const std::vector<Scored>& scored) {
    LinesByReason lines = folds.left_out();
    std::set<std::size_t> known;
    for (const Scored& s : scored) known.insert(s.row->line);
    for (const Measurement& row : folds.rows()) {
        if (known.contains(row.line)) continue;
        lines["no other model of the run tells of its host (line 7813 also says 0.3 ms where 65 would do)"].push_back(
            row.line);
    }
    return lines;
}

}  // namespace

std::string ledger_csv(const std::vector<LedgerSection>& sections) {
    std::string text = "fold,framework,precision,gpu,rows,mape,median,p90,bias,inside_90\n";
    for (const LedgerSection& section : sections) {
        for (const auto& [group, f] : grouped(section.rows)) {
            const auto& [framework, precision, gpu] = group;
            append_csv_row(text,
                           std::vector<std::string>{section.title, framework, precision, gpu, std::to_string(f.rows),
                                                    fmt::format("{:.4f}", f.mean), fmt::format("{:.4f}", f.median),
                                                    fmt::format("{:.4f}", f.p90), fmt::format("{:.4f}", f.bias),
                                                    fmt::format("{:.3f}", f.inside)});
        }
    }
    return text;
}

std::string predictions_csv(const std::vector<LedgerSection>& sections) {
    std::string text =
        "fold,framework,precision,gpu,run,model,batch,measured_ms,predicted_ms,low_ms,high_ms,host_ms,device_ms\n";
    for (const LedgerSection& section : sections) {
        for (const Scored& s : section.rows) {
            std::vector<std::string> cells{section.title,
                                           s.row->framework,
                                           std::string(name_of(s.row->precision)),
                                           s.row->gpu,
                                           s.row->run,
                                           s.row->model,
                                           std::to_string(s.row->batch)};
            for (const double seconds : {s.row->latency_s, s.predicted_s, s.low_s, s.high_s, s.host_s, s.device_s}) {
                cells.push_back(fmt::format("{:.4f}", 1e3 * seconds));
            }
            append_csv_row(text, cells);
        }
    }
    return text;
}

std::string ledger_markdown(const std::vector<LedgerSection>& sections, const Folds& folds) {
    std::string text =
        "# Framework latencies that the fit has not seen\n\n"
        "framework_tax.csv (Framework-Tax, 2022), batch 1 to 128; errors in %, bias the median of log(predicted / "
        "measured).\n"
        "Host costs and scalars have not seen the rows; the kernel models are those of data/profiles/devices.json, "
        "which whole\n"
        "eager rows went into. Written by `ftax_folds frameworks`; the A100 fp32 eager run of 2022-10-26 is left out "
        "by name.\n";
    for (const LedgerSection& section : sections) {
        text += fmt::format(
            "\n## {}\n\n| framework | precision | GPU | rows | MAPE | median | P90 | bias | inside 90 % |\n"
            "|---|---|---|---|---|---|---|---|---|\n",
            section.title);
        for (const auto& [group, f] : grouped(section.rows)) {
            const auto& [framework, precision, gpu] = group;
            text += fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} | {:.0f} |\n", framework,
                                precision, gpu, f.rows, 100 * f.mean, 100 * f.median, 100 * f.p90, 100 * f.bias,
                                100 * f.inside);
        }
        text +=
            "\n| framework | curves | crossover within a factor 1.41 | within its interval | rows a factor 2 from it | "
            "bound "
            "class right |\n|---|---|---|---|---|---|\n";
        for (const auto& [framework, f] : curve_figures(section.rows)) {
            const auto percent = [](std::size_t part, std::size_t whole) {
                return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(1, whole));
            };
            text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {} | {:.1f} % |\n", framework, f.curves,
                                percent(f.near, f.curves), percent(f.inside, f.curves), f.clear,
                                percent(f.classed, f.clear));
        }
    }
    text += "\n## Rows without a score in the first fold\n\n| why | rows | lines of the file |\n|---|---|---|\n";
    for (const auto& [why, lines] : unscored(folds, sections.front().rows))
        text += fmt::format("| {} | {} | {} |\n", why, lines.size(), line_ranges(lines));
    return text;
}

}  // namespace ftax::folds
