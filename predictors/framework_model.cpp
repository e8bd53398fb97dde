#include "predictors/framework_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

namespace {

std::vector<const FrameworkModel*>& models() {
    static std::vector<const FrameworkModel*> all = {
        &pytorch_eager, &torchscript,      &torch_compile,          &libtorch,       &bettertransformer,
        &cuda_graph,    &onnxruntime_cuda, &onnxruntime_cuda_graph, &torch_tensorrt, &tensorrt};
    return all;
}

}  // namespace

std::span<const FrameworkModel* const> framework_models() {
    return models();
}

void add_framework(const FrameworkModel& model) {
    const std::vector<std::string> taken = framework_names();
    if (std::find(taken.begin(), taken.end(), model.name) != taken.end()) {
        throw Error(ErrorCode::usage, fmt::format("there is a framework called '{}' already", model.name));
    }
    models().push_back(&model);
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
