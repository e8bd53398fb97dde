#include "src/scenario/row_predictor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "calibration/bench/bench_device.hpp"
#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "src/io/number.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {
namespace {

/// Models of the zoo by the names that measured rows give them. Source: models_2x.csv.
std::string zoo_model(const std::string& model) {
    static const std::map<std::string, std::string> names{{"bert_base", "bert"},
                                                          {"bert_base_12x768", "bert"},
                                                          {"hf_resnet50", "resnet50"},
                                                          {"vit_base_patch16_224", "vit-base-patch16-224"},
                                                          {"vit_base_patch16_384", "vit-base-patch16-384"}};
    const auto found = names.find(model);
    return "zoo:" + (found == names.end() ? model : found->second);
}

/// The file of a model in the folder, or its zoo name.
std::string locate(const std::string& folder, const std::string& model) {
    if (folder.empty()) return zoo_model(model);
    for (const char* extension : {".pt2", ".onnx", ".pt", ".txt"}) {
        const std::filesystem::path path = std::filesystem::path(folder) / (model + extension);
        std::error_code ignored;
        if (std::filesystem::is_regular_file(path, ignored)) return path.string();
    }
    return zoo_model(model);
}

/// Values of the graph's symbols: the batch, and for every other one the row's sequence length or image side.
/// Throws Error{usage} when the model is fixed at another size, or the row does not say one.
ShapeBindings bindings_for(const Graph& graph, const Measurement& row) {
    const std::optional<std::int64_t> size = row.seq ? row.seq : row.input;
    ShapeBindings bindings;
    bool fixed_size = true;
    for (const std::string& symbol : graph.expressions.symbols()) {
        if (symbol == "batch") {
            bindings[symbol] = row.batch;
            continue;
        }
        fixed_size = false;
        if (!size)
            throw Error(ErrorCode::usage,
                        fmt::format("{} needs a value for {}: no column input or seq", row.model, symbol));
        bindings[symbol] = *size;
    }
    if (graph.inputs.empty()) return bindings;
    const std::vector<Expression>& shape = graph.tensors[graph.inputs[0]].shape;
    if (shape.empty()) return bindings;
    const auto fixed_batch = graph.expressions.constant_value(shape.front());
    if (fixed_batch && *fixed_batch != row.batch) {
        throw Error(ErrorCode::usage, fmt::format("{} is fixed at batch {}", row.model, *fixed_batch));
    }
    const auto side = graph.expressions.constant_value(shape.back());
    if (fixed_size && size && side && *side != *size) {
        throw Error(ErrorCode::usage, fmt::format("{} is fixed at input {}, not {}", row.model, *side, *size));
    }
    return bindings;
}

/// The libraries that come with a version of PyTorch: cuDNN 9 from 2.4 on. Files write "2.4.1" or "240".
LibraryVersions libraries_of(std::string_view torch_version) {
    const std::size_t dot = torch_version.find('.');
    if (dot == std::string_view::npos) return {.cudnn = parse_integer(torch_version).value_or(0) >= 240 ? 9 : 8};
    const std::int64_t major = parse_integer(torch_version.substr(0, dot)).value_or(0);
    const std::string_view rest = torch_version.substr(dot + 1);
    const std::int64_t minor = parse_integer(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
    return {.cudnn = major > 2 || (major == 2 && minor >= 4) ? 9 : 8};
}

LibraryVersions libraries_of(const Measurement& row) {
    LibraryVersions libraries = libraries_of(row.torch);
    if (row.framework.find("tensorrt") != std::string::npos)
        libraries.tensorrt =
            tensorrt_version(row.version).value_or(row.framework == "tensorrt-onnx" ? 804 : libraries.tensorrt);
    return libraries;
}

PredictOptions options_for(const Measurement& row) {
    // `ftax measure` and the campaign wait for the device after each run; other files do not say so.
    return {.precision = row.precision,
            .channels_last = row.layout == "nhwc",
            .libraries = libraries_of(row),
            .synchronized = row.mode == bench::name_of(bench::Mode::end_to_end)};
}

/// torch.compile is an option of the row in some files; here it is a framework of its own.
Measurement with_own_framework(Measurement row) {
    if (row.option == "fusion" && row.framework == "pytorch-eager") row.framework = "torch-compile";
    // Rows of TensorRT that name another version are of a model exported from that PyTorch.
    const bool exported = row.framework == "tensorrt" && !row.version.empty() && !tensorrt_version(row.version);
    if (exported) row.framework = "tensorrt-onnx";
    return row;
}

/// Times of the host or the device alone, which stand beside those end to end in the files of `ftax measure model`.
bool is_part_of_latency(std::string_view mode) {
    using bench::Mode;
    const Mode parts[]{Mode::device_cold, Mode::device_hot, Mode::host_dispatch};
    return std::any_of(std::begin(parts), std::end(parts), [&](Mode part) { return mode == bench::name_of(part); });
}

}  // namespace

const Graph& RowPredictor::graph(const std::string& model) {
    const auto found = graphs_.find(model);
    if (found != graphs_.end()) return found->second;
    ImportOptions options;
    options.vary_batch = true;
    return graphs_.emplace(model, load_graph(locate(models_folder_, model), options)).first->second;
}

const HostScalars* RowPredictor::host_of(const Measurement& row) const {
    HostKey key = host_key(row);
    auto found = hosts_.find(key);
    if (found == hosts_.end()) {
        key.run.clear();  // anchor rows that name no run hold for every run
        found = hosts_.find(key);
    }
    return found == hosts_.end() ? nullptr : &found->second;
}

Predictor& RowPredictor::predictor(const Measurement& row) {
    const PredictOptions options = options_for(row);
    const Key key{row.model,
                  host_key(row),
                  options.precision,
                  options.channels_last,
                  std::pair(options.libraries.cudnn, options.libraries.tensorrt),
                  options.synchronized};
    const auto found = predictors_.find(key);
    if (found != predictors_.end()) return found->second;
    FrameworkProfile framework = framework_profile(row.framework);
    if (const HostScalars* host = host_of(row)) framework = anchored(std::move(framework), *host);
    return predictors_
        .emplace(key, Predictor(graph(row.model), device_profile(row.gpu, device_profile_path_), std::move(framework),
                                options))
        .first->second;
}

Measurement RowPredictor::predictable(const Measurement& measured) {
    Measurement row = with_own_framework(measured);
    row.gpu = device_spec(row.gpu).slug;
    if (row.mode == "train") throw Error(ErrorCode::usage, "training is not modelled");
    if (is_part_of_latency(row.mode))
        throw Error(ErrorCode::usage,
                    fmt::format("{} is a part of the latency; rows of end_to_end are predicted", row.mode));
    return row;
}

Prediction RowPredictor::predict(const Measurement& measured) {
    const Measurement row = predictable(measured);
    const ShapeBindings bindings = bindings_for(graph(row.model), row);
    return predictor(row).predict(bindings);
}

std::vector<CountedKernel> RowPredictor::kernels(const Measurement& measured) {
    const Measurement row = with_own_framework(measured);
    const PredictOptions options = options_for(row);
    const DeviceSpec device = device_spec(row.gpu);
    const FrameworkModel& framework = framework_model(row.framework);
    const std::optional<Graph> optimised = optimised_graph(graph(row.model), framework, device, options);
    const Graph& source = optimised ? *optimised : graph(row.model);
    const Schedule schedule = lower(source, device, options, framework.traits);
    return list_kernels(source, schedule, ftax::bind(source, bindings_for(source, row)),
                        is_channels_last(framework.traits, row.precision));
}

std::set<report::UsedProfile> RowPredictor::profiles() const {
    std::set<report::UsedProfile> result;
    for (const auto& [key, predictor] : predictors_) {
        result.insert(report::used(predictor.device()));
        result.insert(report::used(predictor.framework()));
    }
    return result;
}

AnchorRow RowPredictor::anchor_row_of(const Measurement& measured) {
    const Measurement row = predictable(measured);
    const ShapeBindings bindings = bindings_for(graph(row.model), row);
    return anchor_row(row, predictor(row), bindings);
}

std::vector<std::string> RowPredictor::anchor(std::span<const Measurement> measured) {
    std::vector<Measurement> rows;
    for (const Measurement& row : measured) {
        if (!is_part_of_latency(row.mode)) rows.push_back(with_own_framework(row));
    }
    const auto hosts = fit_hosts(rows, [this](const Measurement& row) { return anchor_row_of(row); });
    predictors_.clear();  // they were built for hosts that nobody had measured
    std::vector<std::string> warnings;
    for (const auto& [key, host] : hosts) {
        hosts_[{key.framework, key.run, device_spec(key.gpu).slug}] = host;
        for (const std::string& warning : host.warnings) {
            warnings.push_back(fmt::format("{} on {}{}{}: {}", key.framework, key.gpu, key.run.empty() ? "" : ", run ",
                                           key.run, warning));
        }
    }
    return warnings;
}

FrameworkProfile anchored_on(FrameworkProfile profile, const std::string& device_slug,
                             std::span<const Measurement> rows) {
    std::vector<Measurement> own;
    for (const Measurement& measured : rows) {
        Measurement row = with_own_framework(measured);
        row.run.clear();
        if (is_part_of_latency(row.mode)) continue;
        if (row.framework == profile.framework && device_spec(row.gpu).slug == device_slug) own.push_back(row);
    }
    if (own.empty()) {
        throw Error(ErrorCode::usage,
                    fmt::format("no anchor row was measured with {} on {}", profile.framework, device_slug));
    }
    RowPredictor predictor;
    const auto hosts = fit_hosts(own, [&](const Measurement& row) { return predictor.anchor_row_of(row); });
    if (hosts.empty()) throw Error(ErrorCode::usage, "no anchor row could be predicted; see ftax validate for why");
    return anchored(std::move(profile), hosts.begin()->second);
}

}  // namespace ftax::scenario
