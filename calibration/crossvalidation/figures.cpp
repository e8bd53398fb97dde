#include "calibration/crossvalidation/figures.hpp"

#include "src/io/csv.hpp"
#include "src/io/number.hpp"

namespace ftax::folds {

std::string figures_csv(std::span<const Figures> figures) {
    std::string text = "fold,class,region,gpu,rows,mape,median,p90,bias\n";
    for (const Figures& f : figures) {
        const fit::ErrorSummary& e = f.of_gpu;
        append_csv_row(text, std::vector<std::string>{f.fold, f.op_class, f.region, e.group, std::to_string(e.rows),
                                                      format_number(e.mean), format_number(e.median),
                                                      format_number(e.p90), format_number(e.bias)});
    }
    return text;
}

}  // namespace ftax::folds
