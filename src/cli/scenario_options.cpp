#include "src/cli/scenario_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ftax/precision.hpp"

namespace ftax::cli {

void add_model_options(CLI::App& verb, ModelArguments& arguments) {
    verb.add_option("MODEL", arguments.model,
                    "a file (.onnx .pt2 .pt .txt config.json) or a built-in name (`ftax models`)")
        ->required();
    add_import_options(verb, arguments);
}

void add_import_options(CLI::App& verb, ModelArguments& arguments) {
    // One value per occurrence, so that MODEL may follow.
    const auto repeatable = [&](const char* name, const char* type, std::vector<std::string>& values,
                                const char* description) {
        add_option(verb, name, type, values, description)->allow_extra_args(false);
    };
    repeatable("--dim", "NAME=N", arguments.dims, "value of a dynamic dimension, e.g. seq=128");
    repeatable("--shapes", "INPUT:DIMS", arguments.shapes, "shape of an input, e.g. in:4x3x224x224");
    add_option(verb, "--input", "TYPE:DIMS,...", arguments.inputs,
               "types and shapes of all inputs, in order, or values of numbers: float:batchx3x224x224,long=5");
    repeatable("--trip", "LOOP=N", arguments.trips, "trip count of a loop");
    const auto add_steps = [&](const std::string& steps) { arguments.trips.push_back("steps=" + steps); };
    verb.add_option_function<std::string>("--steps", add_steps,
                                          "denoising steps of a diffusers folder (default: the pipeline's)")
        ->type_name("N");
    repeatable("--branch", "IF=then|else", arguments.branches, "branch of an If whose condition depends on data");
    add_option(verb, "--kv-cache", "KIND", arguments.cache,
               "KV cache of a decoder built from config.json: dynamic, static or paged (default: dynamic)");
    add_option(verb, "--kv-precision", "TYPE", arguments.cache_type,
               "precision of keys and values: fp32, fp16, bf16 or fp8");
    verb.add_option("--unsupported", arguments.unsupported, "operators without a rule: memory-bound or error")
        ->check(CLI::IsMember({"memory-bound", "error"}))
        ->capture_default_str();
    verb.add_flag("--strict", arguments.strict,
                  "fail instead of warning about unknown versions, unmeasured frameworks, and profiles of another GPU, "
                  "framework or host");
    const CLI::Validator is_limit = within(0, 1e18, "a limit from 0 to 1e18");
    verb.add_option("--max-bytes", arguments.limits.max_bytes, "maximum size of a model file in bytes")
        ->check(is_limit)
        ->capture_default_str();
    verb.add_option("--max-nodes", arguments.limits.max_nodes, "maximum number of operators")
        ->check(is_limit)
        ->capture_default_str();
}

void add_run_options(CLI::App& verb, RunArguments& arguments, std::string_view several) {
    verb.add_option("--device", arguments.device, fmt::format("GPU (`ftax devices`) or a datasheet file{}", several))
        ->required();
    verb.add_option("--framework", arguments.framework, fmt::format("framework (`ftax frameworks`){}", several))
        ->capture_default_str()
        ->each([&](const std::string&) { arguments.framework_given = true; });
    verb.add_option("--precision", arguments.precision,
                    fmt::format("precision of weights and activations{}: {} (default: that of the model's weights)",
                                several, fmt::join(precision_names(), ", ")));
    verb.add_option("--host", arguments.host, "host CPU that the framework was calibrated on");
    add_option(verb, "--cpu", "NAME", arguments.cpu,
               "CPU of the host (data/cpus.csv), or local: scales the host costs and narrows the interval");
    add_option(verb, "--host-file", "FILE", arguments.host_file,
               "output of `ftax measure host` on the host: scales the host costs and narrows the interval");
    verb.add_option("--host-load", arguments.host_load, "whether other work slows the host")
        ->check(CLI::IsMember({"dedicated", "shared", "unknown"}))
        ->capture_default_str();
    add_option(verb, "--anchor", "ROWS.csv", arguments.anchor, "measured rows that calibrate host and card (CSV)");
    add_option(verb, "--models", "FOLDER", arguments.models,
               "folder with the model files of these rows (NAME.pt2, .onnx…)");
    add_option(verb, "--profile,--device-profile", "FILE", arguments.device_profile,
               "file of fitted device parameters that replaces the built-in ones");
    add_option(verb, "--framework-profile", "FILE", arguments.framework_profile,
               "file of host costs that replaces the built-in ones");
    verb.add_flag("--channels-last", arguments.options.channels_last, "run convolutions on NHWC activations");
    add_option(verb, "--cudnn", "VERSION", arguments.options.libraries.cudnn,
               "cuDNN version: 7 (CUDA 10), 8, or 9 (default: that of the framework's version)");
    verb.add_flag("--synchronized", arguments.options.synchronized,
                  "each run waits for the previous one, like single requests (default: back to back, like benchmarks)");
    verb.add_flag("--copies", arguments.options.copies,
                  "include copies of inputs from, and outputs to, pageable host memory");
    verb.add_option("--padding", arguments.options.padding,
                    "share of padded tokens, skipped by frameworks with nested tensors")
        ->check(is_share());
}

void add_choice_options(CLI::App& verb, ChoiceArguments& arguments, std::string_view order) {
    verb.get_option("--device")->required(false);  // a price file also lists devices
    add_option(verb, "--tp", "LIST", arguments.tensor_parallel, "tensor parallelism: cards per layer, e.g. 1,2,4,8")
        ->capture_default_str();
    add_option(verb, "--price", "LIST|FILE.csv", arguments.prices,
               "dollars per hour of one card: a number, one per device, or a file with the columns device "
               "and dollars_per_hour");
    add_option(verb, "--slo", "LIMITS", arguments.level, "service level objectives: ttft=500ms,tpot=50ms,latency=2s");
    verb.add_option("--sort", arguments.sort,
                    fmt::format("ranking criterion: {} (default: cost with --price, {})",
                                fmt::join(report::criterion_names(), ", "), order))
        ->type_name("KEY");
    add_option(verb, "--top", "N", arguments.top, "show only the best N rows (default: all)")
        ->check(within(1, 1e9, "a number of rows from 1 on"));
}

void add_batch_option(CLI::App& verb, std::string& batches, const std::string& note) {
    add_option(verb, "--batch", "LIST", batches, "batch sizes: 1,2,4:128:x2,200:400:+50" + note);
}

void add_advice_option(CLI::App& verb, bool& advises) {
    verb.add_flag("--advise", advises, "name the three changes that gain most: framework, precision, batch, settings");
}

void add_engine_options(CLI::App& verb, ModelArguments& model, RunArguments& arguments) {
    add_option(verb, "--images", "N", model.images, "images per prompt, besides the --prompt tokens of text")
        ->check(within(0, 1e4, "a number of images from 0 to 10,000"));
    add_option(verb, "--image-size", "HxW", model.limits.image_size,
               "height and width of the images in pixels (default: 720x1280)")
        ->delimiter('x')
        ->check(within(1, 1e5, "a height and a width from 1 to 100,000 pixels, such as 720x1280"));
    add_option(verb, "--link", "KIND", arguments.link,
               "link between cards: nvlink, peer (PCIe) or host (PCIe, through its memory) (default: the card's)")
        ->check(CLI::IsMember({"nvlink", "peer", "host"}));
    add_option(verb, "--link-bandwidth", "B", arguments.link_bytes_per_s,
               "bandwidth between cards in one direction, in bytes per second (default: the link's)")
        ->check(within(1e6, 1e15, "a bandwidth from 1e6 to 1e15 bytes per second"));
    add_option(verb, "--link-cards", "N", arguments.link_cards,
               "largest number of cards that the link joins; more use a network (default: 8, an NVL72: 72)")
        ->check(within(1, 1e4, "a number of cards from 1 on"));
    add_option(
        verb, "--transfer-bandwidth", "B", arguments.network_bytes_per_s,
        "bandwidth of each card between machines and from --prefill servers, in bytes per second (default: 50e9)")
        ->check(within(1e6, 1e15, "a bandwidth from 1e6 to 1e15 bytes per second"));
    verb.add_flag("--no-custom-all-reduce", arguments.no_custom_all_reduce,
                  "NCCL sums over cards instead of the engine's own kernels");
    verb.add_flag("--flashinfer-gemm", arguments.options.flashinfer_gemm,
                  "SGLang on Blackwell runs layers in fp8_block in FlashInfer's kernels, not DeepGEMM");
    verb.add_option_function<std::string>(
            "--moe-backend",
            [&arguments](const std::string& name) {
                using enum MoeBackend;
                arguments.options.moe_backend = name == "cutlass" ? cutlass : name == "trtllm" ? trtllm : marlin;
            },
            "kernels of experts in 4 bits: cutlass or trtllm under TensorRT-LLM on Blackwell (default: cutlass, for "
            "GPT-OSS trtllm), marlin for GPT-OSS under vLLM on Hopper (default: Triton's)")
        ->type_name("NAME")
        ->check(CLI::IsMember({"cutlass", "trtllm", "marlin"}));
    add_option(verb, "--gpu-memory-utilization", "SHARE", arguments.memory_share,
               "share of a card's memory used by a serving engine (default: 0.9)")
        ->check(is_share(0.01));
}

}  // namespace ftax::cli
