#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ftax/expression.hpp"
#include "ftax/graph.hpp"
#include "ftax/import.hpp"

/// A TorchScript program without LibTorch types, so that it can be interpreted and tested without LibTorch.
namespace ftax::script {

struct Value;

/// A list, tuple or dictionary. Copies share their items, as Python's do.
struct Sequence {
    std::shared_ptr<std::vector<Value>> items;
    std::shared_ptr<std::vector<Value>> keys;  ///< keys of a dictionary; null for lists and tuples
};

struct TensorValue {
    TensorId id = no_tensor;
};

/// A tensor stored in the file: weight, buffer or constant.
struct StoredTensor {
    std::uint32_t index = 0;  ///< into Program::tensors
};

/// An instance of a module or class.
struct ObjectValue {
    std::uint32_t index = 0;  ///< into Program::objects
};

struct Unknown {};

/// Value of a variable: None, a number of the host (integers may be symbolic), text, or one of the above.
struct Value : std::variant<std::monostate, Unknown, bool, Expression, double, std::string, TensorValue, StoredTensor,
                            ObjectValue, Sequence> {
    using variant::variant;

    template <class T>
    [[nodiscard]] const T* as() const noexcept {
        return std::get_if<T>(this);
    }
    [[nodiscard]] bool is_none() const noexcept { return index() == 0; }
};

/// A list or tuple of its own.
[[nodiscard]] inline Value make_list(std::vector<Value> items) {
    return Sequence{std::make_shared<std::vector<Value>>(std::move(items)), nullptr};
}

[[nodiscard]] inline Value make_dictionary(std::vector<Value> keys, std::vector<Value> items) {
    return Sequence{std::make_shared<std::vector<Value>>(std::move(items)),
                    std::make_shared<std::vector<Value>>(std::move(keys))};
}

struct Node;

/// Statements; values are numbered within their function.
struct Block {
    std::vector<std::uint32_t> inputs, outputs;
    std::vector<Node> nodes;
};

/// Declared type of a parameter or output.
enum class ValueType : std::uint8_t { other, tensor, tensors, integer, real, boolean };

struct Node {
    std::string kind;  ///< "aten::conv2d", "prim::If"
    std::string name;  ///< name of the attribute or method; for operators, of the first output
    std::vector<std::uint32_t> inputs, outputs;
    std::vector<ValueType> output_types;
    std::vector<std::string> arguments;  ///< names of the inputs in the operator's schema; may be empty
    std::vector<Block> blocks;
    std::uint32_t list_items = 0;  ///< size of the returned list, if the program unpacks it; 0: unknown
    Value constant;                ///< value of prim::Constant
    std::uint32_t function = 0;    ///< target of prim::CallFunction
};

struct Function {
    std::string name;
    std::uint32_t value_count = 0;
    std::vector<std::string> parameters;  ///< names of the body's inputs, the object itself first
    std::vector<Value> defaults;          ///< one per parameter; Unknown where it must be given
    Block body;
    std::vector<ValueType> types = {};  ///< one per parameter; may be empty
};

struct Object {
    std::string type;  ///< "torch.nn.modules.conv.Conv2d"
    std::string path;  ///< path of a module: "layer1.0.conv1"
    std::map<std::string, Value, std::less<>> attributes;
    std::map<std::string, std::uint32_t, std::less<>> methods;  ///< into Program::functions
};

struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape, strides;
};

/// Integer constants are expressions of `expressions`.
struct Program {
    ExpressionPool expressions;
    std::vector<Function> functions;
    std::vector<Object> objects;  ///< the first is the model
    std::vector<Tensor> tensors;
};

/// Loads a TorchScript archive with LibTorch and translates the functions that its forward method can reach. The
/// program is not run. Throws Error{model} with LibTorch's message if it rejects the file, and in a build without
/// LibTorch. LibTorch treats such a file as a program and crashes on some: interpret_file() is for untrusted ones.
[[nodiscard]] Program load_program(const std::string& path);

/// Interprets the forward method of a program with inputs of the given shapes and appends the dispatched operators to
/// `graph`, in order: follows calls and resolves conditions and trip counts that do not depend on data. No tensor is
/// computed. A condition on data: the branch that ImportOptions::branches names, else the one with more operators, with
/// a warning. A loop without a known number of passes: ImportOptions::trip_counts by its name, else one pass with a
/// warning. Throws Error{usage} for an input without a shape, Error{model} for a program that fails, Error{limit}
/// beyond the limits of `options`, whose nodes count each time they are passed.
void interpret(Program program, const ImportOptions& options, Graph& graph);

/// Leaves this process only the system calls that reading and computing take, where the kernel has seccomp.
void confine();

/// Loads and interprets a file in a child process, which has limits of memory and time and can only read files, and
/// returns its graph. Throws as load_program() and interpret(), Error{model} for a crash, Error{limit} beyond limits.
[[nodiscard]] Graph interpret_file(const std::string& path, const ImportOptions& options);

/// Evaluates operators that Python or the interpreter computes on the host: sizes, numbers, lists, conditions. Only the
/// types of tensor arguments are used. The result is Unknown if it depends on data. nullopt: no such operator, or one
/// that works on the elements of a tensor.
[[nodiscard]] std::optional<Value> evaluate_on_host(Graph& graph, std::string_view kind,
                                                    std::span<const Value> arguments);

/// Returns the value of a condition; nullopt if it depends on data.
[[nodiscard]] std::optional<bool> truth_of(const Graph& graph, const Value& value);

}  // namespace ftax::script

// In the module that is linked with LibTorch, for load_program() and interpret_file().
extern "C" {
__attribute__((visibility("default"))) void ftax_load_torchscript(const std::string& path,
                                                                  ftax::script::Program& program);
__attribute__((visibility("default"))) void ftax_confine();
}
