#include "predictors/framework_model.hpp"

#include <fmt/format.h>

#include <vector>

#include "ftax/error.hpp"
#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

std::span<const FrameworkModel* const> framework_models() {
    static const FrameworkModel* const models[] = {&pytorch_eager, &torchscript,      &torch_compile,  &libtorch,
                                                   &cuda_graph,    &onnxruntime_cuda, &torch_tensorrt, &tensorrt};
    return models;
}

const FrameworkModel& framework_model(std::string_view name) {
    for (const FrameworkModel* model : framework_models()) {
        if (model->name == name) return *model;
    }
    std::vector<std::string_view> names;
    for (const FrameworkModel* model : framework_models()) names.push_back(model->name);
    throw Error(ErrorCode::usage, fmt::format("no framework is called '{}'; there are: {}", name, fmt::join(names, ", ")));
}

}  // namespace ftax
