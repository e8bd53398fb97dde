#include "src/cli/scenario_options.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/comparison.hpp"

namespace ftax::cli {
namespace {

int run_compare(const WithOutput<ComparisonArguments>& arguments) {
    static_cast<void>(combinations(arguments.run, arguments.choice));  // reports misspelt names before reading a model
    const report::ComparisonReport report = compare(load_graph(arguments.model), arguments);
    return write_result(arguments.output, forms_of(report, [&] { return comparison_page(report); }));
}

}  // namespace

void setup_compare(CLI::App& verb, Action& action) {
    WithOutput<ComparisonArguments>& arguments = run_with(verb, action, run_compare);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run, ", or a list");
    add_choice_options(verb, arguments.choice);
    add_option(verb, "--max-latency", "TIME", arguments.choice.level, "latency limit, the same as --slo latency=TIME")
        ->excludes("--slo")
        ->check(is_quantity(time_quantity()));
    add_option(verb, "--rate", "R", arguments.rate,
               "required items per second, which set the number of servers: ranks by cards, or by cost with --price")
        ->check(within(1e-6, 1e12, "a rate from 1e-6 to 1e12"));
    add_batch_option(verb, arguments.batches);
    add_html_option(verb, arguments.output, "with chart and table");
    add_data_options(verb, arguments.output);
}

}  // namespace ftax::cli
