// Includes LibTorch, hence no fmt here (see cmake/layers.cmake).
#include "tests/graphs/torchscript/scripts.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/symbolic_shape_analysis.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <optional>

namespace ftax::test {
namespace {

namespace jit = torch::jit;

thread_local std::vector<ScriptOperator>* recorded = nullptr;
thread_local int depth = 0;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
    if (recorded && depth++ == 0) recorded->push_back({function.name(), {}});
    return nullptr;
}

void leave(const at::RecordFunction& function, at::ObserverContext*) {
    if (!recorded || --depth > 0) return;
    // What it gives lies on top of the interpreter's stack.
    const std::vector<c10::IValue>& stack = function.outputs();
    for (std::size_t i = stack.size() - std::min(stack.size(), function.num_outputs()); i < stack.size(); ++i) {
        if (stack[i].isTensor()) recorded->back().outputs.push_back(stack[i].toTensor().sizes().vec());
        if (!stack[i].isTensorList()) continue;
        for (const at::Tensor& tensor : stack[i].toTensorVector())
            recorded->back().outputs.push_back(tensor.sizes().vec());
    }
}

/// While it lives, the operators that this thread dispatches are listed.
class Recording {
  public:
    explicit Recording(std::vector<ScriptOperator>& operators)
        : handle_(at::addThreadLocalCallback(
              at::RecordFunctionCallback(enter, leave).needsOutputs(true).scopes({at::RecordScope::FUNCTION}))) {
        jit::setGraphExecutorOptimize(false);  // operators as they stand in the file
        recorded = &operators, depth = 0;
    }
    ~Recording() {
        recorded = nullptr;
        jit::setGraphExecutorOptimize(true);
        at::removeCallback(handle_);
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

  private:
    at::CallbackHandle handle_;
};

/// Runs forward without gradients and lists the operators that it dispatches itself.
std::vector<ScriptOperator> record(jit::Module& model, const std::vector<c10::IValue>& inputs, c10::IValue& output) {
    std::vector<ScriptOperator> operators;
    const c10::InferenceMode no_gradients;
    const Recording recording(operators);
    output = model.forward(inputs);
    return operators;
}

at::Tensor zeros(const ScriptInput& input) {
    return torch::zeros(input.shape, input.integers ? torch::kLong : torch::kFloat);
}

/// Loads a file whose weights lie on the meta device, that is nowhere, and makes them zeros.
jit::Module load_with_zeros(const std::string& path) {
    jit::Module model = jit::load(path);
    model.eval();
    for (jit::Module module : model.modules()) {
        for (const auto& attribute : module.named_attributes(false)) {
            if (!attribute.value.isTensor() || !attribute.value.toTensor().is_meta()) continue;
            const at::Tensor held = attribute.value.toTensor();
            module.setattr(attribute.name, torch::zeros(held.sizes(), held.scalar_type()));
        }
    }
    return model;
}

/// Shapes of what a node gives; nothing where one of them is not known in full.
std::optional<std::vector<Shape>> known_shapes(const jit::Node& node) {
    std::vector<Shape> shapes;
    for (const jit::Value* output : node.outputs()) {
        const auto type = output->type()->cast<c10::TensorType>();
        const auto sizes = type ? type->sizes().concrete_sizes() : std::nullopt;
        if (!sizes) return std::nullopt;
        shapes.push_back(*sizes);
    }
    return shapes;
}

}  // namespace

RealRun save_and_run(const std::string& source, const std::string& path, const Shape& input_shape) {
    jit::Module model("tiny");
    model.register_parameter("weight", torch::zeros({8, 3, 3, 3}), false);
    model.register_parameter("matrix", torch::zeros({8, 8}), false);
    jit::Module inner("inner");
    inner.register_parameter("matrix", torch::zeros({8, 8}), false);
    inner.define("def forward(self, x):\n    return torch.relu(torch.linear(x, self.matrix))\n");
    model.register_module("inner", inner);
    model.define(source);
    model.eval();
    model.save(path);

    RealRun run;
    c10::IValue output;
    run.dispatched = record(model, {torch::zeros(input_shape)}, output);
    run.shape = output.toTensor().sizes().vec();
    return run;
}

std::vector<ScriptOperator> run_file(const std::string& path, const std::vector<ScriptInput>& inputs) {
    jit::Module model = load_with_zeros(path);
    std::vector<c10::IValue> values;
    for (const ScriptInput& input : inputs) values.emplace_back(zeros(input));
    c10::IValue output;
    return record(model, values, output);
}

std::vector<ScriptOperator> propagate_shapes(const std::string& path, const std::vector<ScriptInput>& inputs) {
    const jit::Module model = load_with_zeros(path);
    std::shared_ptr<jit::Graph> graph = jit::freeze_module(model).get_method("forward").graph();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        graph->inputs().at(i + 1)->setType(c10::TensorType::create(zeros(inputs[i])));
    }
    jit::PropagateShapesOnGraph(graph);
    std::vector<ScriptOperator> operators;
    for (const jit::Node* node : graph->nodes()) {
        if (!node->kind().is_aten()) continue;
        if (auto shapes = known_shapes(*node)) operators.push_back({node->kind().toQualString(), std::move(*shapes)});
    }
    return operators;
}

}  // namespace ftax::test
