#include <memory>

#include "src/cli/scenario_options.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/serving.hpp"

namespace ftax::cli {
using namespace scenario;

void setup_serve(CLI::App& app, Action& action) {
    CLI::App& verb = add_verb(app, "serve");
    struct Arguments : ServingArguments {
        OutputArguments output;
    };
    const auto arguments = std::make_shared<Arguments>();
    add_model_options(verb, arguments->model);
    add_run_options(verb, arguments->run, ", or a list");
    add_choice_options(verb, arguments->choice);
    const auto with_default = [&](const char* name, auto& value, const char* description, const char* type) {
        verb.add_option(name, value, description)->type_name(type)->capture_default_str();
    };
    verb.add_option("--rate", arguments->rate, "requests per second (Poisson arrivals)")->type_name("R");
    verb.add_option("--concurrency", arguments->concurrency, "outstanding requests (closed loop)")->type_name("N");
    verb.add_option("--requests", arguments->requests, "requests with arrival_s, prompt and output")
        ->type_name("FILE.csv");
    with_default("--count", arguments->count, "number of generated requests", "N");
    verb.add_option("--prompt", arguments->prompt, "mean tokens per prompt")->type_name("N");
    verb.add_option("--new-tokens", arguments->new_tokens, "mean new tokens per prompt")->type_name("M");
    verb.add_option("--spread", arguments->spread,
                    "coefficient of variation of both lengths (default: 0; see docs/serving.md)")
        ->type_name("SHARE");
    with_default("--seed", arguments->seed, "random seed of generated requests", "N");
    with_default("--slo-share", arguments->kept_share, "share of requests that must meet the --slo", "SHARE");
    verb.add_flag("--find-rate", arguments->find_rate, "also find the highest rate that meets the --slo");
    verb.add_option("--max-num-seqs", arguments->max_sequences, "maximum concurrent sequences (default: the engine's)")
        ->type_name("N");
    verb.add_option("--max-num-batched-tokens", arguments->max_tokens,
                    "maximum tokens per step (default: the engine's)")
        ->type_name("N");
    verb.add_option("--gpu-memory-utilization", arguments->memory_share,
                    "share of a card's memory used by the engine (default: 0.9)")
        ->type_name("SHARE");
    with_default("--scheduler-recv-interval", arguments->poll_steps,
                 "decoding steps between SGLang's checks for new requests", "N");
    verb.add_option("--batch-wait-iters", arguments->gather_steps,
                    "steps for which TensorRT-LLM gathers prompts beside decoding sequences (batch_wait_timeout_iters)")
        ->type_name("N");
    with_default("--batch-wait-ratio", arguments->gather_share,
                 "share of a step's maximum tokens that it gathers at most (batch_wait_max_tokens_ratio)", "SHARE");
    verb.add_option("--dp-balance-iters", arguments->balance_steps,
                    "steps for which TensorRT-LLM's groups wait until each has a prompt (attention_dp_config)")
        ->type_name("N");
    verb.add_option("--captured-tokens", arguments->captured_tokens,
                    "tokens of the largest step with prompts in piecewise CUDA graphs (default: the engine's)")
        ->type_name("N");
    with_default("--dp", arguments->data_parallel,
                 "data parallelism: groups of --tp cards with separate requests and shared experts", "N");
    with_default("--ep", arguments->expert_parallel,
                 "expert parallelism: parts into which the experts are split over all these cards", "N");
    with_default("--pp", arguments->stages, "pipeline stages, each with --tp times --dp cards", "N");
    with_default("--replicas", arguments->replicas, "identical servers that share the load", "N");
    verb.add_option("--prefill", arguments->prefill,
                    "prefill servers, which send keys and values to the others: servers=2,tp=4,dp=1,ep=1")
        ->type_name("LAYOUT");
    verb.add_option(
            "--transfer-bandwidth", arguments->transfer_bytes_per_s,
            "bandwidth from each of their cards in bytes per second (default: the link's up to 8 cards, else 50e9)")
        ->type_name("B");
    verb.add_option("--draft-tokens", arguments->draft_tokens,
                    "draft tokens verified per step and sequence (speculative decoding)")
        ->type_name("N");
    with_default("--acceptance", arguments->acceptance,
                 "probability that a draft token is accepted if the previous ones are", "SHARE");
    verb.add_option("--draft", arguments->draft,
                    "draft model: head (MTP, EAGLE: one more layer; the default), ngram (no cost) or a model")
        ->type_name("DRAFT");
    verb.add_option("--shared-prefix", arguments->shared_prefix, "share of each prompt that is already cached")
        ->type_name("SHARE");
    with_default("--max-batch", arguments->max_batch, "maximum batch of models that do not generate tokens", "N");
    verb.add_option("--max-delay", arguments->max_delay_s, "maximum wait of such a batch for more requests, e.g. 5ms")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}))
        ->type_name("TIME");
    add_html_option(verb, arguments->output, "with percentiles, latency against rate and the queue over time");
    add_data_options(verb, arguments->output);
    verb.callback([arguments, &action] {
        action = [arguments] {
            arguments->rates = !arguments->output.html.empty();
            const report::ServingReport report = serve(*arguments);
            Forms forms = forms_of(report);
            forms.html = [&] { return serving_page(report); };
            write_result(arguments->output, forms);
            return 0;
        };
    });
}

}  // namespace ftax::cli
