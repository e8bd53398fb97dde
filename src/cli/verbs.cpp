#include "src/cli/verbs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include "ftax/error.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
namespace {

/// A test runs the examples.
constexpr const char* closing_words = R"(Examples:
  ftax predict resnet50 --device t4 --precision fp16 --batch 1,8,64
  ftax predict bert --device a100-sxm4-80gb --framework onnxruntime-cuda --batch 1:64:x2 --dim seq=128
  ftax crossover resnet18 --device l4
  ftax compare bert --device t4,l4 --framework pytorch-eager,torchscript --batch 1 --dim seq=64
  ftax headroom bert --device quadro-rtx-8000 --precision fp16 --dim seq=128
  ftax generate llama-3-8b --device h100-sxm5-80gb --framework vllm --batch 1,8 --prompt 512 --new-tokens 128
  ftax serve llama-3-8b --device h100-sxm5-80gb,l40s --framework vllm@0.11 --rate 5 --prompt 512 --new-tokens 128
  ftax inspect resnet50 --batch 1 --depth 1

Exit status:
  0 success, 1 gate exceeded or unexpected failure, 2 usage, 3 invalid model, 4 limit,
  5 refused, 6 invalid profile, CSV file or trace

Environment:
  NO_COLOR       disables colours, also on a terminal
  FTAX_PYTHON    Python interpreter used to measure frameworks
  FTAX_DATA      directory laid out like data/ whose profiles override the built-in ones)";

void add_quiet(CLI::App& app) {
    for (CLI::App* verb : app.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); })) {
        verb->add_flag_callback(
            "-q,--quiet", [] { scenario::limit_notices(scenario::Notices::of_the_answer); },
            "suppress progress, and all warnings that do not affect the result");
        add_quiet(*verb);
    }
}

#if !defined FTAX_WITH_FIT && !defined FTAX_FIT_PROGRAM
#define FTAX_NOT_HERE " (not in this build)"
/// Adds a verb that needs the solvers to a build without them: it always fails with an explanation.
void setup_without_fit(CLI::App& app, Action& action, const std::string& name) {
    CLI::App& verb = add_verb(app, name);
    verb.prefix_command();
    verb.parse_complete_callback([&action, name] {
        action = [name]() -> int {
            throw Error(ErrorCode::refused,
                        name + " is not in this build; configure it with -DFTAX_BUILD_FIT=ON, which needs Ceres");
        };
    });
}
void setup_calibrate(CLI::App& app, Action& action) {
    setup_without_fit(app, action, "calibrate");
}
void setup_fit(CLI::App& app, Action& action) {
    setup_without_fit(app, action, "fit");
}
#else
#define FTAX_NOT_HERE ""
#endif

#ifdef FTAX_FIT_PROGRAM  // ftax-fit has these
constexpr Setup *setup_calibrate = nullptr, *setup_fit = nullptr;
#endif

struct VerbSetup {
    std::string_view name;
    Setup* setup;
    const char* description;
};
constexpr VerbSetup verbs[] = {
    {"predict", setup_predict, "predict latency per batch, its bottleneck, and the crossover batch"},
    {"crossover", setup_crossover, "find the batch at which the framework stops being the bottleneck"},
    {"compare", setup_compare, "compare frameworks, devices and precisions: --device A,B --framework X,Y"},
    {"explore", setup_explore, "a page with sliders for batch, a dimension and card: --device A,B --over seq=…"},
    {"headroom", setup_headroom, "how much width, depth, length or batch can grow at the same latency"},
    {"generate", setup_generate, "predict language models: time to first token, time per token, memory"},
    {"serve", setup_serve, "predict serving under load: latency percentiles, capacity, cost per token"},
    {"inspect", setup_inspect, "operators, FLOPs and MACs, bytes and coverage of a model"},
    {"convert", setup_convert, "write a model as a text graph"},
    {"validate", setup_validate, "compare predictions with measured rows (CSV) or a trace of torch.profiler"},
    {"models", setup_models, "the built-in models: parameters, FLOPs, where they come from"},
    {"devices", setup_devices, "GPUs with a built-in datasheet"},
    {"frameworks", setup_frameworks, "frameworks, and the hosts they are calibrated on"},
    {"profiles", setup_profiles, "fitted parameters of devices, frameworks and hosts"},
    {"doctor", setup_doctor, "capabilities of this program and this machine"},
    {"nas", setup_nas, "latency of many architectures of a search space"},
    {"measure", setup_measure, "measure this machine: operators, their dispatch, whole models"},
    {"mcp", setup_mcp, "Model Context Protocol server on standard input and output, for agents"},
    {"schema", setup_schema, "print the JSON schema of a command's --json output"},
    {"calibrate", setup_calibrate,
     "measure this machine, fit its profiles, validate them on whole networks" FTAX_NOT_HERE},
    {"fit", setup_fit, "fit a device profile to measured operators and models" FTAX_NOT_HERE},
    {"completion", setup_completion, "print a shell completion script: bash, zsh or fish"},
    {"manual", setup_manual, "print the man page: ftax manual | man -l -"},
};

/// Lists what an option excludes by name; CLI11 lists it by address.
class Formatter : public CLI::Formatter {
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = CLI::Formatter::make_option_opts(option);
        std::vector<std::string> names;
        for (const CLI::Option* excluded : option->get_excludes()) names.push_back(excluded->get_name());
        std::ranges::sort(names);
        if (names.empty()) return text;
        return fmt::format("{}Excludes: {}", text.substr(0, text.rfind("Excludes:")), fmt::join(names, " "));
    }
};

const VerbSetup* find_verb(std::string_view name) {
    const auto* found = std::ranges::find(verbs, name, &VerbSetup::name);
    return found == std::end(verbs) ? nullptr : found;
}

}  // namespace

int gate(std::optional<double> mape_percent, double max_mape_percent) {
    if (max_mape_percent <= 0 || (mape_percent && *mape_percent <= max_mape_percent)) return 0;
    fmt::print(stderr, "ftax: {}, --max-mape is {:g} %\n",
               mape_percent ? fmt::format("the MAPE is {:.1f} %", *mape_percent) : "no row could be predicted",
               max_mape_percent);
    return 1;
}

CLI::App& add_verb(CLI::App& app, const std::string& name) {
    return *app.add_subcommand(name, find_verb(name)->description);
}

bool lists_verbs(std::string_view word) {
    return word == "--version" || word == "--help" || word == "-h";
}

bool stands_alone(std::string_view word) {
    if (lists_verbs(word)) return true;
    const VerbSetup* verb = find_verb(word);
    return verb && verb->setup && word != "completion" && word != "manual";
}

void setup_verbs(CLI::App& app, Action& action, std::string_view first_word) {
    app.description("Predicts the latency of a neural network on a GPU under a given framework.");
    app.set_version_flag("--version", FTAX_VERSION);
    app.require_subcommand(1);
    app.formatter(std::make_shared<Formatter>());
    if (lists_verbs(first_word)) {
        for (const VerbSetup& verb : verbs) add_verb(app, std::string(verb.name));
    } else if (stands_alone(first_word)) {
        find_verb(first_word)->setup(app, action);
    } else {
        for (const VerbSetup& verb : verbs) verb.setup(app, action);
    }
    add_quiet(app);
    scenario::limit_notices(scenario::Notices::all);  // until this line's --quiet
    app.footer(closing_words);
}

}  // namespace ftax::cli
