#include "src/cli/scenario_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ftax/precision.hpp"

namespace ftax::cli {

void add_model_options(Verb verb, ModelArguments& arguments) {
    verb.add_option("MODEL", arguments.model, "a file (.onnx .pt2 .pt .txt) or a zoo name (bert, resnet50)").required();
    add_import_options(verb, arguments);
}

void add_import_options(Verb verb, ModelArguments& arguments) {
    // One value each time, so that MODEL may stand behind.
    const auto repeatable = [&](const char* name, std::vector<std::string>& values, const char* description) {
        return verb.add_option(name, values, description).allow_extra_args(false);
    };
    repeatable("--dim", arguments.dims, "value of a dynamic dimension, e.g. seq=128").type_name("NAME=N");
    repeatable("--shapes", arguments.shapes, "shape of an input, e.g. in:4x3x224x224").type_name("INPUT:DIMS");
    verb.add_option("--input", arguments.inputs,
                    "types and shapes of all inputs, in order, or values of numbers: float:batchx3x224x224,long=5",
                    "TYPE:DIMS,...");
    repeatable("--trip", arguments.trips, "trip count of a loop").type_name("LOOP=N");
    repeatable("--branch", arguments.branches, "branch of an If whose condition depends on data")
        .type_name("IF=then|else");
    verb.add_option("--kv-cache", arguments.cache,
                    "of a config.json's decoder: dynamic, static or paged (default: dynamic)", "KIND");
    verb.add_option("--kv-precision", arguments.cache_type, "of keys and values: fp32, fp16, bf16 or fp8", "TYPE");
    verb.add_option("--unsupported", arguments.unsupported, "operators without a rule: memory-bound or error")
        .one_of({"memory-bound", "error"})
        .capture_default_str();
    verb.add_flag("--strict", arguments.strict,
                  "refuse models of unknown versions, and profiles of another GPU, framework or host");
    verb.add_option("--max-bytes", arguments.limits.max_bytes, "largest model file, in bytes").capture_default_str();
    verb.add_option("--max-nodes", arguments.limits.max_nodes, "most operators of a model").capture_default_str();
}

void add_run_options(Verb verb, RunArguments& arguments) {
    verb.add_option("--device", arguments.device, "GPU (ftax devices lists them) or the file of a datasheet")
        .required();
    verb.add_option("--framework", arguments.framework, "framework (ftax frameworks lists them)")
        .capture_default_str()
        .each([&](const std::string&) { arguments.framework_given = true; });
    verb.add_option("--precision", arguments.precision,
                    fmt::format("of weights and activations: {}; without: that of the model's weights",
                                fmt::join(precision_names(), ", ")));
    verb.add_option("--host", arguments.host, "host CPU that the framework was calibrated on");
    verb.add_option("--anchor", arguments.anchor, "measured rows that calibrate host and card (CSV)", "ROWS.csv");
    verb.add_option("--models", arguments.models, "folder where the models of these rows are files (NAME.pt2, .onnx…)",
                    "FOLDER");
    verb.add_option("--profile", arguments.device_profile, "fitted device parameters instead of the built-in ones",
                    "FILE");
    verb.add_option("--framework-profile", arguments.framework_profile, "host costs instead of the built-in ones",
                    "FILE");
    verb.add_flag("--channels-last", arguments.options.channels_last, "convolutions get NHWC activations");
    verb.add_option("--cudnn", arguments.options.libraries.cudnn,
                    "version of cuDNN: 7 (CUDA 10), 8, or 9 (PyTorch from 2.4 on)", "VERSION")
        .capture_default_str();
    verb.add_flag("--synchronized", arguments.options.synchronized,
                  "each run waits for the one before, as single requests do (else back to back, as benchmarks run)");
    verb.add_flag("--copies", arguments.options.copies,
                  "a run copies its inputs from pageable memory of the host, and its outputs back");
    verb.add_option("--padding", arguments.options.padding,
                    "share of padded tokens, which frameworks with nested tensors skip")
        .range(0.0, 1.0);
}

void add_choice_options(Verb verb, ChoiceArguments& arguments) {
    verb.get_option("--device").required(false);  // the file of prices names devices too
    verb.add_option("--tp", arguments.tensor_parallel, "cards that share each layer: 1,2,4,8", "LIST")
        .capture_default_str();
    verb.add_option("--price", arguments.prices,
                    "dollars per hour of one card: one number, one for each device, or a file with the columns device "
                    "and dollars_per_hour",
                    "LIST|FILE.csv");
    verb.add_option("--slo", arguments.level, "limits to keep: ttft=500ms,tpot=50ms,latency=2s", "LIMITS");
    verb.add_option("--sort", arguments.sort,
                    "what ranks the rows: " + fmt::format("{}", fmt::join(report::criterion_names(), ", ")), "KEY");
    verb.add_option("--top", arguments.top, "rows to show, the best", "N");
}

void add_batch_option(Verb verb, std::string& batches) {
    verb.add_option("--batch", batches, "batch sizes: 1,2,4:128:x2,200:400:+50", "LIST");
}

}  // namespace ftax::cli
