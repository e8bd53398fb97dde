#include <memory>

#include "src/cli/scenario_options.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/serving.hpp"

namespace ftax::cli {
using namespace scenario;

void setup_serve(Verb app, Action& action) {
    const Verb verb = app.add_subcommand("serve", "requests that come and go: percentiles, capacity, cost per token");
    struct Arguments : ServingArguments {
        OutputArguments output;
    };
    const auto arguments = std::make_shared<Arguments>();
    add_model_options(verb, arguments->model);
    add_run_options(verb, arguments->run);
    add_choice_options(verb, arguments->choice);
    verb.add_option("--rate", arguments->rate, "requests per second, at random times", "R");
    verb.add_option("--concurrency", arguments->concurrency, "requests that clients keep outstanding", "N");
    verb.add_option("--requests", arguments->requests, "requests with arrival_s, prompt and output", "FILE.csv");
    verb.add_option("--count", arguments->count, "requests that are drawn", "N").capture_default_str();
    verb.add_option("--prompt", arguments->prompt, "tokens of each prompt, on average", "N");
    verb.add_option("--new-tokens", arguments->new_tokens, "tokens that each prompt gets, on average", "M");
    verb.add_option("--spread", arguments->spread,
                    "standard deviation of both over their means (default: 0; see docs/serving.md)", "SHARE");
    verb.add_option("--seed", arguments->seed, "of the requests that are drawn", "N").capture_default_str();
    verb.add_option("--slo-share", arguments->kept_share, "of the requests that must keep it", "SHARE")
        .capture_default_str();
    verb.add_flag("--find-rate", arguments->find_rate, "also the largest rate that keeps the --slo");
    verb.add_option("--max-num-seqs", arguments->max_sequences, "sequences that run at a time (default: the engine's)",
                    "N");
    verb.add_option("--max-num-batched-tokens", arguments->max_tokens, "tokens of a step (default: the engine's)", "N");
    verb.add_option("--gpu-memory-utilization", arguments->memory_share,
                    "of a card's memory that the engine uses (default: 0.9)", "SHARE");
    verb.add_option("--scheduler-recv-interval", arguments->poll_steps,
                    "decoding steps after which SGLang looks for new requests", "N")
        .capture_default_str();
    verb.add_option("--dp", arguments->data_parallel,
                    "groups of --tp cards with requests of their own, which share a model's experts", "N")
        .capture_default_str();
    verb.add_option("--ep", arguments->expert_parallel, "parts of all these cards, each with experts of its own", "N")
        .capture_default_str();
    verb.add_option("--pp", arguments->stages, "stages of a pipeline, each of --tp times --dp cards", "N")
        .capture_default_str();
    verb.add_option("--replicas", arguments->replicas, "alike servers between which requests are dealt", "N")
        .capture_default_str();
    verb.add_option("--prefill", arguments->prefill,
                    "servers that only read prompts, and send keys and values to the others: servers=2,tp=4,dp=1,ep=1",
                    "LAYOUT");
    verb.add_option("--transfer-bandwidth", arguments->transfer_bytes_per_s,
                    "from each of their cards, in bytes per second (default: the link's up to 8 cards, else 50e9)",
                    "B");
    verb.add_option("--draft-tokens", arguments->draft_tokens,
                    "that each step verifies for each sequence (speculative decoding)", "N");
    verb.add_option("--acceptance", arguments->acceptance, "chance that a draft token is right if those before it are",
                    "SHARE")
        .capture_default_str();
    verb.add_option("--draft", arguments->draft,
                    "what drafts: head (MTP, EAGLE: one more layer; the default), ngram (takes no time) or a model",
                    "DRAFT");
    verb.add_option("--shared-prefix", arguments->shared_prefix, "share of each prompt that is cached already",
                    "SHARE");
    verb.add_option("--max-batch", arguments->max_batch, "of models that generate no tokens", "N")
        .capture_default_str();
    verb.add_option("--max-delay", arguments->max_delay_s, "that such a batch waits for more requests, e.g. 5ms")
        .with_unit({{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}})
        .type_name("TIME");
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
