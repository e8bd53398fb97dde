#include "calibration/fit/operator_fit.hpp"

#include <map>
#include <string_view>
#include <utility>

#include "calibration/fit/dispatch_fit.hpp"
#include "calibration/fit/operator_profile.hpp"
#include "src/io/number.hpp"

namespace ftax::fit {
namespace {

/// Cells of a row that only some files have.
struct CampaignCells {
    std::string_view split, kernel;
    std::int64_t order = 0;
};

class CampaignColumns {
  public:
    explicit CampaignColumns(const CsvTable& table)
        : table_(table),
          split_(table.column("split")),
          kernel_(table.column("kernel")),
          order_(table.column("order")) {}

    [[nodiscard]] CampaignCells at(std::size_t row) const {
        const auto cells = table_.row(row);
        return {.split = split_ ? cells[*split_] : std::string_view{},
                .kernel = kernel_ ? cells[*kernel_] : std::string_view{},
                .order = order_ ? parse_integer(cells[*order_]).value_or(0) : 0};
    }

  private:
    const CsvTable& table_;
    std::optional<std::size_t> split_, kernel_, order_;
};

/// Device parameters of that name in a report.
std::vector<ScopedParameter> device_parameters(const FitReport& report, std::string_view name) {
    std::vector<ScopedParameter> found;
    for (const ScopedParameter& p : report.parameters) {
        if (p.scope == ParameterScope::device && p.parameter.name == name) found.push_back(p);
    }
    return found;
}

std::map<std::string, double> host_scales(const FitReport& memory) {
    std::map<std::string, double> scales;
    for (const ScopedParameter& p : memory.nuisance) {
        if (p.scope == ParameterScope::device && p.parameter.name == "operator.host_scale")
            scales[p.key] = p.parameter.value;
    }
    return scales;
}

}  // namespace

OperatorFit fit_operators(const MeasurementFile<OperatorMeasurement>& file, const OperatorFitOptions& options,
                          std::string version) {
    std::map<std::string, DeviceSpec> devices;
    std::vector<MemoryRow> memory_rows;
    std::vector<GemmRow> gemm_rows;
    std::vector<ConvRow> conv_rows;
    std::vector<DispatchRow> dispatch_rows;
    const CampaignColumns columns(file.table);
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        if (!file.problems[i].empty()) continue;
        const OperatorMeasurement& measured = file.rows[i];
        auto device = devices.find(measured.gpu);
        if (device == devices.end()) device = devices.emplace(measured.gpu, device_spec(measured.gpu)).first;
        const CampaignCells cells = columns.at(i);
        if (auto memory = memory_row(measured, device->second, cells.split, cells.order)) {
            memory_rows.push_back(std::move(*memory));
            continue;
        }
        dispatch_rows.push_back({&device->second, &measured, static_cast<double>(cells.order)});
        if (measured.op == "conv") {
            conv_rows.push_back(conv_row(measured, device->second, static_cast<double>(cells.order), cells.kernel));
        } else if (auto gemm = gemm_row(measured, device->second, cells.split, cells.order, cells.kernel)) {
            gemm_rows.push_back(std::move(*gemm));
        }
    }

    OperatorFit result;
    OperatorFitOptions with_known = options;
    result.reports.push_back(fit_memory(memory_rows, options.memory));
    with_known.gemm.host_scales = host_scales(result.reports.back());
    with_known.gemm.held = with_known.conv.held = device_parameters(result.reports.back(), "bandwidth");

    result.reports.push_back(fit_gemm(gemm_rows, with_known.gemm));
    for (const ScopedParameter& clock : device_parameters(result.reports.back(), "clock.fp32")) {
        with_known.conv.held.push_back(clock);
    }
    result.reports.push_back(fit_conv(conv_rows, with_known.conv));
    result.reports.push_back(fit_dispatch(dispatch_rows, operator_profile(result.reports, version)));
    result.profile = operator_profile(result.reports, std::move(version));
    return result;
}

}  // namespace ftax::fit
