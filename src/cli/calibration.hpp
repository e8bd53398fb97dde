#pragma once

#include "src/cli/bench_session.hpp"

namespace ftax::cli {

struct CalibrateArguments {
    BenchArguments bench{.dispatch_processes = 3};  ///< five minutes on a GPU
    double max_mape_percent = 0;                    ///< 0: the validation error is only reported
};

/// Measures operators and their dispatch in an open session, fits the machine's profiles, writes them into the
/// session's folder, and validates them on networks not used in the fit. Returns the exit code. Throws Error{usage} if
/// too little could be measured.
[[nodiscard]] int calibrate(const CalibrateArguments& arguments, BenchSession& session);

}  // namespace ftax::cli
