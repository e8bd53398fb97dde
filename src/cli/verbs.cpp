#include "src/cli/verbs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "ftax/error.hpp"
#include "src/io/number.hpp"
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
/// Adds a verb that needs the solvers to a build without them: it always fails with an explanation.
void setup_without_fit(CLI::App& app, Action& action, const std::string& name, const std::string& purpose) {
    CLI::App& verb = *app.add_subcommand(name, purpose + " (not in this build)");
    verb.prefix_command();
    verb.parse_complete_callback([&action, name] {
        action = [name]() -> int {
            throw Error(ErrorCode::refused,
                        name + " is not in this build; configure it with -DFTAX_BUILD_FIT=ON, which needs Ceres");
        };
    });
}
void setup_calibrate(CLI::App& app, Action& action) {
    setup_without_fit(app, action, "calibrate",
                      "measure this machine, fit its profiles, validate them on whole networks");
}
void setup_fit(CLI::App& app, Action& action) {
    setup_without_fit(app, action, "fit", "fit a device profile to measured operators and models");
}
#endif

struct VerbSetup {
    std::string_view name;
    Setup* setup;
};
constexpr VerbSetup verbs[] = {
    {"predict", setup_predict},       {"crossover", setup_crossover},
    {"compare", setup_compare},       {"explore", setup_explore},
    {"headroom", setup_headroom},     {"generate", setup_generate},
    {"serve", setup_serve},           {"inspect", setup_inspect},
    {"convert", setup_convert},       {"validate", setup_validate},
    {"models", setup_models},         {"devices", setup_devices},
    {"frameworks", setup_frameworks}, {"profiles", setup_profiles},
    {"doctor", setup_doctor},         {"nas", setup_nas},
    {"measure", setup_measure},       {"mcp", setup_mcp},
    {"schema", setup_schema},
#ifndef FTAX_FIT_PROGRAM  // ftax-fit defines these
    {"calibrate", setup_calibrate},   {"fit", setup_fit},
#endif
    {"completion", setup_completion}, {"manual", setup_manual},
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
    if (!mape_percent) {
        fmt::print(stderr, "ftax: no row could be predicted\n");
        return static_cast<int>(ErrorCode::profile);
    }
    if (max_mape_percent <= 0 || *mape_percent <= max_mape_percent) return 0;
    fmt::print(stderr, "ftax: the MAPE is {:.1f} %, --max-mape is {:g} %\n", *mape_percent, max_mape_percent);
    return 1;
}

CLI::Validator within(double least, double most, const std::string& what) {
    const auto check = [=](const std::string& text) {
        const auto number = parse_number(text);
        return number && least <= *number && *number <= most ? "" : fmt::format("{} is not {}", text, what);
    };
    return {check, "", ""};
}

CLI::Validator is_share(double least) {
    return within(least, 1, fmt::format("a share from {:g} to 1", least));
}

bool stands_alone(std::string_view word) {
    return find_verb(word) && word != "completion" && word != "manual";
}

void setup_verbs(CLI::App& app, Action& action, std::string_view first_word) {
    app.description("Predicts the latency of a neural network on a GPU under a given framework.");
    app.set_version_flag("--version", FTAX_VERSION);
    app.require_subcommand(1);
    app.formatter(std::make_shared<Formatter>());
    if (stands_alone(first_word)) {
        find_verb(first_word)->setup(app, action);
    } else {
        for (const VerbSetup& verb : verbs) verb.setup(app, action);
    }
    add_quiet(app);
    scenario::limit_notices(scenario::Notices::all);  // until this line's --quiet
    app.footer(closing_words);
}

}  // namespace ftax::cli
