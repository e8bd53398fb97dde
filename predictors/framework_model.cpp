#include "predictors/framework_model.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

std::span<const FrameworkModel* const> framework_models() {
    static const FrameworkModel* const models[] = {
        &pytorch_eager, &torchscript,      &torch_compile,          &libtorch,       &bettertransformer,
        &cuda_graph,    &onnxruntime_cuda, &onnxruntime_cuda_graph, &torch_tensorrt, &tensorrt};
    return models;
}

const FrameworkModel& framework_model(std::string_view name) {
    for (const FrameworkModel* model : framework_models()) {
        if (model->name == name) return *model;
    }
    throw Error(ErrorCode::usage,
                fmt::format("no framework is called '{}'; there are: {}", name, fmt::join(framework_names(), ", ")));
}

std::vector<std::string> framework_names() {
    std::vector<std::string> names;
    for (const FrameworkModel* model : framework_models()) names.emplace_back(model->name);
    return names;
}

}  // namespace ftax
