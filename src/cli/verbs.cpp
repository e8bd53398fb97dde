#include "src/cli/verbs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "ftax/error.hpp"
#include "graphs/base/embedded.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
namespace {

/// A test runs the examples.
constexpr std::string_view closing_words = "src/cli/assets/closing_words.txt";

void add_quiet(CLI::App& app) {
    for (CLI::App* verb : app.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); })) {
        verb->add_flag_callback(
            "-q,--quiet", [] { scenario::limit_notices(scenario::Notices::of_the_answer); },
            "suppress progress, and all warnings that do not affect the result");
        add_quiet(*verb);
    }
}

#if defined FTAX_FIT_PROGRAM  // ftax-fit defines these
constexpr Setup *setup_calibrate = nullptr, *setup_fit = nullptr;
#define FTAX_NOT_HERE
#elif defined FTAX_WITH_FIT
#define FTAX_NOT_HERE
#else
#define FTAX_NOT_HERE " (not in this build)"
/// Sets up a verb that needs the solvers in a build without them: it always fails with an explanation.
void setup_calibrate(CLI::App& verb, Action& action) {
    verb.prefix_command();
    verb.parse_complete_callback([&verb, &action] {
        action = [&verb]() -> int {
            throw Error(ErrorCode::refused, verb.get_name() +
                                                " is not in this build; configure it with "
                                                "-DFTAX_BUILD_FIT=ON, which needs Ceres");
        };
    });
}
constexpr Setup* setup_fit = setup_calibrate;
#endif

struct Verb {
    const char *name, *description;
    Setup* setup;
};
constexpr Verb verbs[] = {
    {"predict", "predict latency per batch, its bottleneck, and the crossover batch", setup_predict},
    {"crossover", "find the batch at which the framework stops being the bottleneck", setup_crossover},
    {"compare", "compare frameworks, devices and precisions: --device A,B --framework X,Y", setup_compare},
    {"explore", "write a page with sliders for batch, a dimension and card: --device A,B --over seq=…", setup_explore},
    {"headroom", "how much width, depth, length or batch can grow at the same latency", setup_headroom},
    {"generate", "predict language models: time to first token, time per token, memory", setup_generate},
    {"serve", "predict serving under load: latency percentiles, capacity, cost per token", setup_serve},
    {"inspect", "operators, FLOPs and MACs, bytes and coverage of a model", setup_inspect},
    {"convert", "write a model as a text graph", setup_convert},
    {"validate", "compare predictions with measured rows (CSV) or a trace of torch.profiler", setup_validate},
    {"models", "the built-in models: parameters, FLOPs, where they come from", setup_models},
    {"devices", "GPUs with a built-in datasheet", setup_devices},
    {"frameworks", "frameworks, and the hosts they are calibrated on", setup_frameworks},
    {"profiles", "fitted parameters of devices, frameworks and hosts", setup_profiles},
    {"doctor", "capabilities of this program and this machine", setup_doctor},
    {"nas", "latency of many architectures of a search space", setup_nas},
    {"measure", "measure this machine: operators, their dispatch, whole models", setup_measure},
    {"mcp", "Model Context Protocol server on standard input and output, for agents", setup_mcp},
    {"schema", "print the JSON schema of a command's --json output", setup_schema},
    {"calibrate", "measure this machine, fit its profiles, validate them on whole networks" FTAX_NOT_HERE,
     setup_calibrate},
    {"fit", "fit a device profile to measured operators and models" FTAX_NOT_HERE, setup_fit},
    {"completion", "print a shell completion script: bash, zsh or fish", setup_completion},
    {"manual", "print the man page: ftax manual | man -l -", setup_manual},
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

const Verb* find_verb(std::span<const std::string> words) {
    const auto* found =
        std::ranges::find_if(verbs, [&](const Verb& verb) { return !words.empty() && words[0] == verb.name; });
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

CLI::Validator is_quantity(Quantity quantity) {
    const auto read = [quantity = std::move(quantity)](std::string& text) {
        double value = 0;
        std::string problem = read_quantity(text, quantity, value);
        if (problem.empty()) text = format_number(value);
        return problem;
    };
    return {read, "", ""};
}

CLI::Validator within(double least, double most, const std::string& what) {
    return is_quantity({what, least, most});
}

CLI::Validator is_share(double least) {
    return within(least, 1, fmt::format("a share from {:g} to 1", least));
}

bool stands_alone(std::span<const std::string> words) {
    const Verb* verb = find_verb(words);
    return verb ? verb->setup && verb->setup != setup_completion && verb->setup != setup_manual : words.size() < 2;
}

void add_verb(CLI::App& app, Action& action, const std::string& name) {
    const Verb& verb = *find_verb({&name, 1});
    verb.setup(*app.add_subcommand(name, verb.description), action);
}

void setup_verbs(CLI::App& app, Action& action, std::span<const std::string> words) {
    app.description("Predicts the latency of a neural network on a GPU under a given framework.");
    app.set_version_flag("--version", FTAX_VERSION);
    app.require_subcommand(1);
    app.formatter(std::make_shared<Formatter>());
    if (!stands_alone(words)) {
        for (const Verb& verb : verbs) add_verb(app, action, verb.name);
    } else if (find_verb(words)) {
        add_verb(app, action, words.front());
    } else {
        for (const Verb& verb : verbs) app.add_subcommand(verb.name, verb.description);
    }
    add_quiet(app);
    scenario::limit_notices(scenario::Notices::all);  // until this line's --quiet
    const std::string_view footer = embedded_text(closing_words);
    app.footer(std::string(footer.substr(0, footer.rfind('\n'))));
}

}  // namespace ftax::cli
