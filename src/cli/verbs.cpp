#include "src/cli/verbs.hpp"

#include "src/cli/output.hpp"
#include "src/scenario/notices.hpp"

namespace ftax::cli {
namespace {

/// Its examples run in a test.
constexpr const char* closing_words = R"(Examples:
  ftax predict resnet50 --device t4 --precision fp16 --batch 1,8,64
  ftax predict bert --device a100-sxm4-80gb --framework onnxruntime-cuda --batch 1:64:x2 --dim seq=128
  ftax crossover resnet18 --device l4
  ftax compare bert --device t4,l4 --framework pytorch-eager,torchscript --batch 1 --dim seq=64
  ftax headroom bert --device quadro-rtx-8000 --precision fp16 --dim seq=128
  ftax inspect resnet50 --batch 1 --depth 1

Exit status:
  0 done, 1 gate exceeded or unforeseen failure, 2 usage, 3 invalid model, 4 limit,
  5 refused, 6 invalid profile, CSV file or trace

Environment:
  NO_COLOR       no colours, on a terminal either
  FTAX_PYTHON    the Python in which frameworks are measured)";

void add_quiet(CLI::App& app) {
    for (CLI::App* verb : app.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); })) {
        verb->add_flag_callback("-q,--quiet", scenario::silence_notices, "neither warnings nor progress");
        add_quiet(*verb);
    }
}

}  // namespace

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
    setup_completion(app, action);
    setup_manual(app, action);
    add_quiet(app);
    app.footer(closing_words);
}

}  // namespace ftax::cli
