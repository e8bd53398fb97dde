#include "predictors/frameworks/framework_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/strides.hpp"
#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/math_path.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

namespace {

// clang-format off
constexpr const FrameworkModel* models[] = {
    &pytorch_eager, &torchscript, &torch_compile, &torch_compile_max_autotune_no_cudagraphs,
    &torch_compile_cuda_graph, &torch_compile_max_autotune, &libtorch, &bettertransformer, &torch_cuda_graph,
    &cuda_graph, &onnxruntime_cuda, &onnxruntime_cuda_graph, &onnxruntime_tensorrt, &torch_tensorrt, &tensorrt,
    &tensorrt_cuda_graph, &tensorrt_onnx, &vllm, &vllm_eager, &tensorrt_llm, &sglang, &llama_cpp};
// clang-format on

/// Returns the framework of that name, ignoring case and punctuation; nullptr if there is none. Ollama runs llama.cpp.
const FrameworkModel* model_called(std::string_view spelled) {
    const auto exact = std::ranges::find(models, spelled, &FrameworkModel::name);
    if (exact != std::end(models)) return *exact;
    const auto name = [](const FrameworkModel* model) { return normalized_name(model->name); };
    const auto found = std::ranges::find(models, normalized_name(spelled == "ollama" ? llama_cpp.name : spelled), name);
    return found != std::end(models) ? *found : nullptr;
}

}  // namespace

bool Pass::applies(const PredictOptions& options, const LibraryBehaviour& libraries) const {
    return (limits.when == nullptr || libraries.*limits.when) &&
           (limits.unless == nullptr || !(libraries.*limits.unless)) &&
           (!limits.in_f32_only || storage_type(options.precision) == DType::f32);
}

std::span<const FrameworkModel* const> framework_models() {
    return models;
}

const FrameworkModel& framework_model(std::string_view name) {
    if (const FrameworkModel* model = model_called(name)) return *model;
    const std::vector<std::string> names = framework_names();
    const std::vector<std::string> near = near_names(name, names);
    const std::string hint = name.find(',') != name.npos ? "; `ftax compare` takes several"
                             : near.empty()
                                 ? fmt::format("; available: {}", fmt::join(names, ", "))
                                 : fmt::format(" (near: {}); `ftax frameworks list` shows all", fmt::join(near, ", "));
    throw_error(ErrorCode::usage, "unknown framework '{}'{}", name, hint);
}

const FrameworkModel& model_of(const FrameworkProfile& profile) {
    return profile.model != nullptr ? *profile.model : framework_model(profile.framework);
}

FrameworkProfile framework_profile(const FrameworkModel& model) {
    return {.framework = std::string(model.name),
            .version = "uncalibrated",
            .host = "reference",
            .warnings = {fmt::format("host costs of {} are initial values (not measured)", model.name)},
            .model = &model};
}

std::string framework_name(std::string_view spelled) {
    const FrameworkModel* model = model_called(spelled);
    return std::string(model != nullptr ? model->name : spelled);
}

std::vector<std::string> framework_names() {
    return mapped(framework_models(), [](const FrameworkModel* model) { return std::string(model->name); });
}

std::optional<Graph> optimised_graph(const Graph& graph, const FrameworkModel& model, const DeviceSpec& device,
                                     const PredictOptions& options) {
    const LibraryBehaviour libraries = behaviour_of(model, options.libraries, device);
    const bool chosen = !options.channels_last && model.traits.lays_out_convolutions && !libraries.keeps_layouts &&
                        rewrites::gains_from_channels_last(graph);
    if (model.rewrites.empty() && !chosen && !options.channels_last) return std::nullopt;
    Graph result = graph;
    if (chosen || options.channels_last) lay_out_for_cuda(result, true);
    if (chosen) rewrites::convert_layouts_at_edges(result);
    for (const Pass& pass : model.rewrites)
        if (pass.applies(options, libraries)) pass.rewrite(result);
    return result;
}

}  // namespace ftax
