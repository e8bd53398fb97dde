#include "src/cli/scenario_options.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/generation.hpp"

namespace ftax::cli {
namespace {

int run_generate(const WithOutput<GenerationArguments>& arguments) {
    GenerationResult result = generate(arguments);
    const auto page = [&] {
        const report::GenerationRow& row = shown(result.report);
        Generator& generator = result.models.generators[row.model];
        const Generation& g = row.generation;
        const auto explain = [](Predictor& predictor, const ShapeBindings& pass) {
            return report::ExplainedPass{predictor.graph(), predictor.explain(pass)};
        };
        const ShapeBindings first = generator.pass(g.request, g.prompts_per_pass, g.prompt_tokens_per_pass, 0);
        return generation_page(result.report, explain(generator.predictor(), first),
                               explain(generator.decoder(), generator.middle_step(g.request)));
    };
    return write_result(arguments.output, forms_of(result.report, page));
}

}  // namespace

void setup_generate(CLI::App& verb, Action& action) {
    WithOutput<GenerationArguments>& arguments = run_with(verb, action, run_generate);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run, ", or a list");
    add_choice_options(verb, arguments.choice);
    add_batch_option(verb, arguments.batches);
    add_engine_options(verb, arguments.model, arguments.run);
    GenerationRequest& request = arguments.request;
    add_option(verb, "--prompt", "N", request.prompt, "mean tokens per prompt")->required();
    add_option(verb, "--longest-prompt", "N", request.longest_prompt,
               "tokens of the longest prompt, to which eager frameworks pad");
    add_option(verb, "--new-tokens", "M", request.new_tokens, "new tokens per prompt")->required();
    verb.add_flag("--largest-batch", arguments.largest_batch, "also find the largest batch that fits into memory");
    add_html_option(verb, arguments.output, "with both phases and the memory");
    add_data_options(verb, arguments.output);
}

}  // namespace ftax::cli
