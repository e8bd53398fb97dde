#include "src/cli/verbs.hpp"

namespace ftax::cli {

void setup_verbs(CLI::App& app, Action& action) {
    app.description("Predicts how long a neural network takes on a GPU under a given framework.");
    app.set_version_flag("--version", FTAX_VERSION);
    app.require_subcommand(1);
    setup_predict(app, action);
    setup_crossover(app, action);
    setup_compare(app, action);
    setup_headroom(app, action);
    setup_inspect(app, action);
    setup_convert(app, action);
    setup_validate(app, action);
    setup_devices(app, action);
    setup_frameworks(app, action);
    setup_profiles(app, action);
    setup_doctor(app, action);
    setup_nas(app, action);
    setup_measure(app, action);
#ifdef FTAX_WITH_FIT
    setup_calibrate(app, action);
    setup_fit(app, action);
#endif
}

}  // namespace ftax::cli
