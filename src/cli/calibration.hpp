#pragma once

#include "src/cli/bench_session.hpp"

namespace ftax::cli {

struct CalibrateArguments {
    /// Five minutes on a GPU; its networks run in the process that ran the operators.
    BenchArguments bench{.dispatch_processes = 3, .traced = false};
    double max_mape_percent = 0;  ///< 0: the error of the proof is only reported
};

/// Measures operators and their dispatch in an open session, fits the machine's profiles, writes them into the
/// session's folder, and proves them on networks that were not fitted. Returns the exit code. Throws Error{usage} when
/// too little could be measured.
[[nodiscard]] int calibrate(const CalibrateArguments& arguments, BenchSession& session);

}  // namespace ftax::cli
