#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibration/fit/fit_report.hpp"
#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_unknowns.hpp"

/// Fits the ratios of one class of kernels, shared and of each generation, to rows of several devices; what other
/// classes share with them is frozen.
namespace ftax::fit {

struct GenerationFitOptions {
    FitOptions fit{.starts = 1, .iterations = 30, .row_log_stddev = 0.1, .seed = 1};
    std::size_t rows_per_device = 450;  ///< spread evenly; errors are taken over all rows
    int rounds = 3;                     ///< fits, in between priors are centred on what was found
    bool folds = true;                  ///< a fifth of the shapes left out; one device
};

/// `Problem` says what is fitted:
///     Row { const DeviceSpec* device; double latency_s; … }      one measurement
///     Parameters<T>                                              with visit_parameters(p, visit)
///     static T latency_s(const Row&, const Parameters<T>&)       the model
///     static std::uint64_t shape_of(const Row&)                  the same for one shape on all devices
///     static std::string group_of(const Row&)                    whose errors are summed up together
template <class Problem>
class GenerationFit {
  public:
    using Row = typename Problem::Row;

    explicit GenerationFit(GenerationFitOptions options) : options_(std::move(options)) {}

    [[nodiscard]] FitReport run(std::string kernel_class, std::span<const Row> rows) const {
        FitReport report{.kernel_class = std::move(kernel_class)};
        Rows by_device;
        for (const Row& row : rows) by_device[row.device->slug].push_back(&row);
        if (by_device.empty()) return report;
        const Unknowns unknowns = solve(by_device, report.converged);
        if (options_.folds) add_folds(by_device, report);
        const std::string source = "fitted: " + report.kernel_class + " rows, " + std::to_string(rows.size());
        for (const Unknown& u : unknowns.shared) {
            if (is_unseen(u)) continue;
            report.parameters.push_back({{u.name, u.value, u.relative_stddev, source}, ParameterScope::shared, ""});
        }
        // Where no row of a generation with tensor cores tells, the median of the others stands closer to what it has
        // than a kin does: left-out cards.
        const LogFit::Block expected = middle(unknowns.generations);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            if (is_unseen_everywhere(unknowns, i)) continue;
            for (const Architecture generation :
                 {Architecture::volta, Architecture::turing, Architecture::ampere, Architecture::ada,
                  Architecture::hopper, Architecture::blackwell, Architecture::rtx_blackwell}) {
                const auto own = unknowns.generations.find(generation);
                const bool seen = own != unknowns.generations.end() && !is_unseen(own->second[i]);
                const Unknown& u = own != unknowns.generations.end() ? own->second[i] : expected[i];
                report.parameters.push_back(
                    {{u.name, u.value, seen ? u.relative_stddev : u.prior_log_stddev,
                      seen ? source : "median of " + report.kernel_class + " on other generations"},
                     ParameterScope::architecture,
                     std::string(name_of(generation))});
            }
        }
        return report;
    }

  private:
    struct Unknowns {
        LogFit::Block shared;
        std::map<Architecture, LogFit::Block> generations;
    };

    static bool is_unseen_everywhere(const Unknowns& unknowns, std::size_t i) {
        return std::all_of(unknowns.generations.begin(), unknowns.generations.end(),
                           [&](const auto& generation) { return is_unseen(generation.second[i]); });
    }

    using Rows = std::map<std::string, std::vector<const Row*>>;  // by device
    template <class T>
    using Parameters = typename Problem::template Parameters<T>;

    struct Model {
        const Row* row;

        template <class T>
        T operator()(T const* const* blocks) const {
            return Problem::latency_s(*row, parameters_of(blocks[0], blocks[1]));
        }
    };

    template <class T>
    static Parameters<T> parameters_of(const T* shared, const T* generation) {
        Parameters<T> p;
        visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec& spec) {
            value = spec.scope == ParameterScope::shared ? *shared++ : *generation++;
        });
        return p;
    }

    static LogFit::Block declared(ParameterScope scope) {
        LogFit::Block block;
        Parameters<double> p;
        visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
            if (spec.scope == scope) block.push_back(unknown(std::string(name), spec));
        });
        return block;
    }

    /// What a generation is expected to have before its rows are seen: the median of the others, of the middle two the
    /// geometric mean. A library may be far off on one of them.
    static LogFit::Block middle(const std::map<Architecture, LogFit::Block>& fitted) {
        LogFit::Block block = fitted.begin()->second;
        for (std::size_t i = 0; i < block.size(); ++i) {
            std::vector<double> found;
            for (const auto& [_, own] : fitted) found.push_back(own[i].value);
            std::sort(found.begin(), found.end());
            block[i].value = std::sqrt(found[(found.size() - 1) / 2] * found[found.size() / 2]);
        }
        return block;
    }

    Unknowns solve(const Rows& rows, bool& converged) const {
        Unknowns centres{declared(ParameterScope::shared), {}};
        for (const auto& [_, of_device] : rows) {
            centres.generations[of_device.front()->device->architecture] = declared(ParameterScope::architecture);
        }
        Unknowns unknowns = centres;
        for (int round = 0; round < options_.rounds; ++round) {
            LogFit fit(options_.fit);
            const std::size_t shared = fit.add_block(centres.shared);
            std::map<Architecture, std::size_t> generations;
            for (const auto& [generation, block] : centres.generations) generations[generation] = fit.add_block(block);
            for (const auto& [_, of_device] : rows) {
                const std::size_t count = std::min(of_device.size(), options_.rows_per_device);
                for (std::size_t i = 0; i < count; ++i) {
                    const Row& row = *of_device[i * of_device.size() / count];
                    fit.add_row(Model{&row}, row.latency_s, {shared, generations.at(row.device->architecture)});
                }
            }
            converged = fit.solve().converged;
            unknowns.shared = fit.block(shared);
            for (const auto& [generation, index] : generations) unknowns.generations[generation] = fit.block(index);
            const LogFit::Block expected = middle(unknowns.generations);
            for (auto& [_, block] : centres.generations) {
                for (std::size_t i = 0; i < block.size(); ++i) block[i].value = expected[i].value;
            }
            if (round == 0) centres.shared = unknowns.shared;
        }
        return unknowns;
    }

    using Errors = std::map<std::string, std::vector<double>>;

    static void add_errors(const std::vector<const Row*>& rows, const LogFit::Block& shared,
                           const LogFit::Block& generation, Errors& errors) {
        const auto p = parameters_of(values(shared).data(), values(generation).data());
        for (const Row* row : rows) {
            errors[Problem::group_of(*row)].push_back(std::log(Problem::latency_s(*row, p) / row->latency_s));
        }
    }

    static void add_fold(const std::string& name, Errors errors, FitReport& report) {
        Fold fold{.name = name};
        for (auto& [group, of_group] : errors) {
            fold.groups.push_back(summarize(group, std::move(of_group)));
            fold.mean += fold.groups.back().mean / static_cast<double>(errors.size());
        }
        if (!fold.groups.empty()) report.folds.push_back(std::move(fold));
    }

    void add_folds(const Rows& rows, FitReport& report) const {
        bool converged = false;
        Rows kept, left_out;
        for (const auto& [slug, of_device] : rows) {
            for (const Row* row : of_device) {
                (Problem::shape_of(*row) % 5 == 4 ? left_out : kept)[slug].push_back(row);
            }
        }
        Errors errors;
        const Unknowns seen = solve(kept, converged);
        for (const auto& [slug, of_device] : left_out) {
            add_errors(of_device, seen.shared, seen.generations.at(of_device.front()->device->architecture), errors);
        }
        add_fold("a fifth of the shapes left out", std::move(errors), report);
        errors.clear();
        if (rows.size() < 2) return;
        for (const auto& [slug, of_device] : rows) {
            Rows others = rows;
            others.erase(slug);
            const Unknowns fitted = solve(others, converged);
            const Architecture generation = of_device.front()->device->architecture;
            const auto own = fitted.generations.find(generation);
            add_errors(of_device, fitted.shared,
                       own != fitted.generations.end() ? own->second : middle(fitted.generations), errors);
        }
        add_fold("the GPU left out", std::move(errors), report);
    }

    GenerationFitOptions options_;
};

}  // namespace ftax::fit
