// Includes LibTorch, hence no fmt here (see cmake/layers.cmake).
#include "tests/graphs/torchscript/scripts.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

namespace ftax::test {
namespace {

thread_local std::vector<std::string>* recorded = nullptr;
thread_local int depth = 0;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
    if (recorded && depth++ == 0) recorded->push_back(function.name());
    return nullptr;
}

void leave(const at::RecordFunction&, at::ObserverContext*) {
    if (recorded) --depth;
}

}  // namespace

RealRun save_and_run(const std::string& source, const std::string& path, const std::vector<std::int64_t>& input_shape) {
    torch::jit::Module model("tiny");
    model.register_parameter("weight", torch::zeros({8, 3, 3, 3}), false);
    model.register_parameter("matrix", torch::zeros({8, 8}), false);
    torch::jit::Module inner("inner");
    inner.register_parameter("matrix", torch::zeros({8, 8}), false);
    inner.define("def forward(self, x):\n    return torch.relu(torch.linear(x, self.matrix))\n");
    model.register_module("inner", inner);
    model.define(source);
    model.eval();
    model.save(path);

    RealRun run;
    const c10::InferenceMode no_gradients;
    torch::jit::setGraphExecutorOptimize(false);
    const auto handle =
        at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave).scopes({at::RecordScope::FUNCTION}));
    const torch::Tensor input = torch::zeros(input_shape);
    recorded = &run.dispatched;
    const torch::Tensor output = model.forward({input}).toTensor();
    recorded = nullptr;
    at::removeCallback(handle);
    run.shape = output.sizes().vec();
    return run;
}

}  // namespace ftax::test
