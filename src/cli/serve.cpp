#include "src/cli/scenario_options.hpp"
#include "src/scenario/serving.hpp"

namespace ftax::cli {

namespace {

int run_serve(const WithOutput<ServingArguments>& arguments) {
    ServingArguments serving = arguments;
    serving.rates = !arguments.output.html.empty();
    const report::ServingReport report = serve(serving);
    return write_result(arguments.output, forms_of(report, [&] { return serving_page(report); }));
}

}  // namespace

void setup_serve(CLI::App& verb, Action& action) {
    WithOutput<ServingArguments>& a = run_with(verb, action, run_serve);
    add_model_options(verb, a.model);
    add_run_options(verb, a.run, ", or a list");
    add_choice_options(verb, a.choice, "else fewest cards, then p99 latency");
    SchedulerOptions& engine = a.engine;
    const CLI::Validator share = is_share(), parts = within(1, 1024, "a number from 1 to 1024"),
                         steps = within(0, 1e9, "a number of steps from 0 on"),
                         some = within(1, 1e7, "a number from 1 to 10,000,000");
    const auto option = [&](const char* name, auto& value, const char* description, const CLI::Validator& check,
                            const char* type = "N") {
        return verb.add_option(name, value, description)->type_name(type)->check(check);
    };
    const auto with_default = [&](const char* name, auto& value, const char* description, const CLI::Validator& check,
                                  const char* type = "N") {
        option(name, value, description, check, type)->capture_default_str();
    };
    option("--rate", a.rate, "requests per second (Poisson arrivals)",
           within(0, 1e9, "a number of requests per second from 0 to 1e9"), "R");
    option("--concurrency", engine.concurrency, "outstanding requests (closed loop)", some);
    add_option(verb, "--requests", "FILE.csv", a.requests,
               "requests with arrival_s, prompt, output and, if cached, prefix");
    add_option(
        verb, "--verify", "RUN.json", a.verify,
        "compare with a benchmark's result (vLLM's, SGLang's, InferenceX's, AIPerf's), sending requests as it did");
    with_default("--count", a.count, "number of generated requests", some);
    add_option(verb, "--prompt", "N", a.prompt, "mean tokens per prompt");
    add_option(verb, "--new-tokens", "M", a.new_tokens, "mean new tokens per prompt");
    option("--spread", a.spread, "coefficient of variation of both lengths (default: 0; see docs/serving.md)",
           within(0, 10, "a number from 0 to 10"), "SHARE");
    with_default("--seed", a.seed, "random seed of generated requests", CLI::Validator(""));
    with_default("--slo-share", a.kept_share, "share of requests that must meet the --slo", is_share(0.01), "SHARE");
    verb.add_flag("--find-rate", a.find_rate, "also find the highest rate that meets the --slo");
    option("--max-num-seqs", engine.max_sequences, "maximum concurrent sequences (default: the engine's)", some);
    option("--max-num-batched-tokens", engine.max_tokens, "maximum tokens per step (default: the engine's)", some);
    add_engine_options(verb, a.model, a.run);
    with_default("--scheduler-recv-interval", engine.poll_steps,
                 "decoding steps between SGLang's checks for new requests", some);
    option("--batch-wait-iters", engine.gather_steps,
           "steps for which TensorRT-LLM gathers prompts while sequences decode (batch_wait_timeout_iters)", steps);
    with_default("--batch-wait-ratio", engine.gather_share,
                 "maximum tokens to gather, as a share of a step's maximum (batch_wait_max_tokens_ratio)", share,
                 "SHARE");
    option("--dp-balance-iters", engine.balance_steps,
           "steps for which TensorRT-LLM's groups wait until each has a prompt (attention_dp_config)", steps);
    option("--captured-tokens", a.captured_tokens,
           "tokens of the largest step with prompts in piecewise CUDA graphs (default: the engine's)", steps);
    with_default("--dp", a.layout.data,
                 "data parallelism: groups of --tp cards with separate requests and shared experts", parts);
    with_default("--ep", a.layout.experts,
                 "expert parallelism: parts into which the experts are split over all these cards", parts);
    with_default("--pp", a.layout.stages, "pipeline stages, each with --tp times --dp cards", parts);
    with_default("--replicas", a.layout.servers, "identical servers that share the load", parts);
    option(
        "--cards", a.cards,
        "try every layout on N cards and their divisors in place of --tp, --dp, --ep, --pp, --replicas and --prefill",
        within(1, 64, "a number of cards from 1 to 64"));
    add_option(verb, "--prefill", "LAYOUT", a.prefill,
               "prefill servers, which send keys and values to the others: servers=2,tp=4,dp=1,ep=1");
    option("--draft-tokens", engine.draft_tokens, "draft tokens verified per step and sequence (speculative decoding)",
           within(0, 32, "a number from 0 to 32"));
    with_default("--acceptance", engine.acceptance,
                 "probability that a draft token is accepted if the previous ones are", share, "SHARE");
    add_option(verb, "--draft", "DRAFT", a.draft,
               "draft model: head (MTP, EAGLE: one more layer; the default), ngram (no cost) or a model");
    option("--shared-prefix", engine.shared_prefix, "share of each prompt that is already cached", share, "SHARE");
    with_default("--max-batch", a.max_batch, "maximum batch of models that do not generate tokens", some);
    const std::vector<std::pair<std::string_view, double>> units{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1}};
    for (const auto& [name, seconds, what] :
         {std::tuple("--max-delay", &a.max_delay_s, "maximum wait of such a batch for more requests, e.g. 5ms"),
          {"--frontend-time", &engine.frontend_s, "from a request's arrival to the scheduler (default: 5 to 20ms)"}})
        add_option(verb, name, "TIME", *seconds, what)
            ->transform(is_quantity({"a time from 0 to 1e6 s, such as 5ms", 0, 1e6, units}));
    add_html_option(verb, a.output, "with percentiles, latency against rate and the queue over time");
    add_data_options(verb, a.output);
}

}  // namespace ftax::cli
