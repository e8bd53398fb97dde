// The only unit of the importers that includes LibTorch, whose include folder has another version of fmt: no fmt here.
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/script.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "ftax/error.hpp"
#include "graphs/aten/aten_call.hpp"
#include "graphs/torchscript/program.hpp"

namespace ftax::script {
namespace {

namespace jit = torch::jit;

/// "__torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d" → "torch.nn.modules.conv.Conv2d"
std::string type_name(const c10::NamedType& type) {
    std::string name = type.name() ? type.name()->qualifiedName() : std::string{};
    constexpr std::string_view prefix = "__torch__.", mangled = "___torch_mangle_";
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
    for (auto at = name.find(mangled); at != std::string::npos; at = name.find(mangled))
        name.erase(at, name.find('.', at) - at + 1);
    return name;
}

class Translator {
  public:
    Program translate(const jit::Module& module) {
        name_modules(module._ivalue(), {}, 0);
        add_object(module._ivalue());
        // Translating a function finds others; those are appended and their turn comes.
        for (std::size_t i = 0; i < pending_.size(); ++i) translate_function(i);
        return std::move(program_);
    }

  private:
    using ObjectPointer = c10::intrusive_ptr<c10::ivalue::Object>;

    void name_modules(const ObjectPointer& module, const std::string& path, int depth) {
        constexpr int deepest = 256;
        if (depth > deepest) throw Error(ErrorCode::limit, "modules nested deeper than 256");
        if (!paths_.emplace(module.get(), path).second) return;
        const c10::ClassTypePtr type = module->type();
        for (std::size_t i = 0; i < type->numAttributes(); ++i) {
            const c10::IValue& value = module->getSlot(i);
            const std::string name = path.empty() ? type->getAttributeName(i) : path + "." + type->getAttributeName(i);
            if (value.isModule()) name_modules(value.toObject(), name, depth + 1);
            if (value.isTensor() && value.toTensor().defined()) tensor_names_.emplace(identity(value.toTensor()), name);
        }
    }

    static const void* identity(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

    std::uint32_t add_object(const ObjectPointer& object) {
        const auto [known, fresh] = objects_.emplace(object.get(), program_.objects.size());
        if (!fresh) return known->second;
        const std::uint32_t index = known->second;
        const c10::ClassTypePtr type = object->type();
        program_.objects.push_back({type_name(*type), paths_[object.get()], {}, {}});
        for (jit::Function* method : type->methods())
            program_.objects[index].methods.emplace(method->name(), add_function(*method));
        for (std::size_t i = 0; i < type->numAttributes(); ++i) {
            Value value = translate_value(object->getSlot(i));
            program_.objects[index].attributes.emplace(type->getAttributeName(i), std::move(value));
        }
        return index;
    }

    std::uint32_t add_function(jit::Function& function) {
        const auto [known, fresh] = functions_.emplace(&function, pending_.size());
        if (fresh) {
            pending_.push_back(&function);
            program_.functions.emplace_back();
        }
        return known->second;
    }

    void translate_function(std::size_t index) {
        jit::Function* function = pending_[index];
        Function result;
        result.name = function->name();
        if (function->isGraphFunction()) {
            const std::shared_ptr<jit::Graph> graph = jit::toGraphFunction(*function).graph();
            values_.clear();
            for (const jit::Value* input : graph->inputs()) {
                result.parameters.push_back(input->debugNameBase());
                result.types.push_back(value_type(*input->type()));
            }
            for (const c10::Argument& argument : function->getSchema().arguments()) {
                const auto& value = argument.default_value();
                result.defaults.push_back(value ? translate_value(*value) : Value(Unknown{}));
            }
            result.defaults.resize(result.parameters.size(), Unknown{});
            result.body = translate_block(*graph->block(), 0);
            result.value_count = static_cast<std::uint32_t>(values_.size());
        }
        program_.functions[index] = std::move(result);
    }

    std::uint32_t value_number(const jit::Value* value) {
        return values_.emplace(value, static_cast<std::uint32_t>(values_.size())).first->second;
    }

    Block translate_block(const jit::Block& block, int depth) {
        constexpr int deepest = 64;
        if (depth > deepest) throw Error(ErrorCode::limit, "blocks nested deeper than 64");
        Block result;
        for (const jit::Value* input : block.inputs()) result.inputs.push_back(value_number(input));
        for (const jit::Node* node : block.nodes()) result.nodes.push_back(translate_node(*node, depth));
        for (const jit::Value* output : block.outputs()) result.outputs.push_back(value_number(output));
        return result;
    }

    Node translate_node(const jit::Node& node, int depth) {
        Node result;
        result.kind = node.kind().toQualString();
        for (const jit::Value* input : node.inputs()) result.inputs.push_back(value_number(input));
        for (const jit::Value* output : node.outputs()) {
            result.outputs.push_back(value_number(output));
            result.output_types.push_back(value_type(*output->type()));
            if (result.output_types.back() == ValueType::tensors) result.list_items = unpacked_items(*output);
        }
        if (node.hasAttribute(c10::attr::name) && node.kindOf(c10::attr::name) == jit::AttributeKind::s) {
            result.name = node.s(c10::attr::name);
        } else if (!node.outputs().empty()) {
            result.name = node.outputs()[0]->debugName();
        }
        if (const c10::FunctionSchema* schema = node.maybeSchema())
            for (const c10::Argument& argument : schema->arguments()) result.arguments.push_back(argument.name());
        if (node.kind() == c10::prim::Constant) {
            if (node.outputs().at(0)->type()->kind() == c10::TypeKind::FunctionType) return result;
            const auto value = jit::toIValue(node.output());
            result.constant = value ? translate_value(*value) : Value(Unknown{});
        }
        if (node.kind() == c10::prim::CallFunction) {
            const auto type = node.inputs().at(0)->type()->cast<c10::FunctionType>();
            if (!type) throw Error(ErrorCode::model, "a call of a value that is not a function");
            result.function = add_function(*type->function());
        }
        for (const jit::Block* block : node.blocks()) result.blocks.push_back(translate_block(*block, depth + 1));
        return result;
    }

    static ValueType value_type(const c10::Type& type) {
        switch (type.kind()) {
            case c10::TypeKind::TensorType:
                return ValueType::tensor;
            case c10::TypeKind::IntType:
                return ValueType::integer;
            case c10::TypeKind::FloatType:
                return ValueType::real;
            case c10::TypeKind::BoolType:
                return ValueType::boolean;
            case c10::TypeKind::ListType:
                return type.containedType(0)->kind() == c10::TypeKind::TensorType ? ValueType::tensors
                                                                                  : ValueType::other;
            default:
                return ValueType::other;
        }
    }

    static std::uint32_t unpacked_items(const jit::Value& list) {
        for (const jit::Use& use : list.uses())
            if (use.user->kind() == c10::prim::ListUnpack)
                return static_cast<std::uint32_t>(use.user->outputs().size());
        return 0;
    }

    template <class Items>
    Sequence translate_items(const Items& items) {
        auto values = std::make_shared<std::vector<Value>>();
        for (const c10::IValue& item : items) values->push_back(translate_value(item));
        return {std::move(values), nullptr};
    }

    Value translate_value(const c10::IValue& value) {
        if (value.isNone()) return {};
        if (value.isBool()) return value.toBool();
        if (value.isInt()) return program_.expressions.constant(value.toInt());
        if (value.isDouble()) return value.toDouble();
        if (value.isString()) return value.toStringRef();
        if (value.isEnum()) return value.toEnumHolder()->qualifiedClassName() + "." + value.toEnumHolder()->name();
        if (value.isDevice()) return value.toDevice().str();
        if (value.isTensor()) return translate_tensor(value.toTensor());
        if (value.isTuple()) return translate_items(value.toTupleRef().elements());
        if (value.isList()) return translate_items(value.toListRef());
        if (value.isObject()) return ObjectValue{add_object(value.toObject())};
        if (value.isGenericDict()) {
            Sequence dictionary{std::make_shared<std::vector<Value>>(), std::make_shared<std::vector<Value>>()};
            for (const auto& entry : value.toGenericDict()) {
                dictionary.keys->push_back(translate_value(entry.key()));
                dictionary.items->push_back(translate_value(entry.value()));
            }
            return dictionary;
        }
        return Unknown{};
    }

    Value translate_tensor(const at::Tensor& tensor) {
        if (!tensor.defined()) return {};
        const auto [known, fresh] = tensors_.emplace(identity(tensor), program_.tensors.size());
        if (!fresh) return StoredTensor{known->second};
        const auto name = tensor_names_.find(identity(tensor));
        if (name == tensor_names_.end() && tensor.dim() == 0 && tensor.device().is_cpu()) {
            // The tracer writes numbers of the host as tensors without dimensions.
            tensors_.erase(known);
            const auto type = tensor.scalar_type();
            if (c10::isIntegralType(type, false)) return program_.expressions.constant(tensor.item<std::int64_t>());
            if (c10::isFloatingType(type)) return tensor.item<double>();
            if (type == c10::ScalarType::Bool) return tensor.item<bool>();
            return Unknown{};
        }
        Tensor stored;
        stored.name = name == tensor_names_.end() ? "constant" : name->second;
        stored.dtype = dtype_of_scalar_type(static_cast<int>(tensor.scalar_type()));
        if (tensor.layout() == c10::kStrided) {
            stored.shape = tensor.sizes().vec();
            stored.strides = tensor.strides().vec();
        } else {
            stored.dtype = DType::unknown;
        }
        program_.tensors.push_back(std::move(stored));
        kept_.push_back(tensor);
        return StoredTensor{known->second};
    }

    Program program_;
    std::unordered_map<const void*, std::string> paths_, tensor_names_;
    std::unordered_map<const void*, std::uint32_t> objects_, functions_, tensors_, values_;
    std::vector<jit::Function*> pending_;
    std::vector<at::Tensor> kept_;  ///< so that no two tensors get one address
};

/// Schemas of operators that ftax has rules for and LibTorch alone does not know. Source: torchvision/csrc/ops.
constexpr std::string_view known_schemas[] = {
    "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, "
    "int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask) "
    "-> Tensor"};

/// "torchvision::nms", where LibTorch complains that it does not know it; empty for other complaints.
std::string unknown_operator(const std::string& complaint) {
    constexpr std::string_view words = "Unknown builtin op: ";
    const std::size_t at = complaint.find(words);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + words.size();
    const std::string name = complaint.substr(begin, complaint.find_first_of(".\n", begin) - begin);
    return name.find("::") == std::string::npos || name.starts_with("aten::") ? std::string{} : name;
}

/// Tensors that a statement "a, b, = ops.my.name(…)" assigns, as the complaint quotes it.
std::size_t assigned_tensors(const std::string& complaint, const std::string& name) {
    const std::size_t colons = name.find("::");
    const std::string call = "ops." + name.substr(0, colons) + "." + name.substr(colons + 2) + "(";
    const std::size_t end = complaint.find(call);
    if (end == std::string::npos) return 1;
    const std::size_t line = complaint.rfind('\n', end) + 1;
    const std::string before = complaint.substr(line, end - line);
    const auto commas = std::ranges::count(before, ',');
    return std::max<std::size_t>(1, static_cast<std::size_t>(commas));
}

/// Makes an operator known to LibTorch, so that programs that call it can be read. It takes anything and cannot run.
void declare_operator(const std::string& name, std::size_t tensors) {
    std::string schema = name + "(...) -> (Tensor";
    for (std::size_t i = 1; i < tensors; ++i) schema += ", Tensor";
    schema += ")";
    for (const std::string_view known : known_schemas)
        if (known.starts_with(name + "(")) schema = known;
    static std::vector<std::unique_ptr<jit::RegisterOperators>> registered;
    registered.push_back(std::make_unique<jit::RegisterOperators>(std::vector<std::optional<jit::Operator>>{
        jit::Operator(schema, jit::Operation([](jit::Stack&) {}), c10::AliasAnalysisKind::CONSERVATIVE)}));
}

/// Weights stay where they were saved from, also nowhere (the meta device); those of a missing GPU go to memory.
jit::Module load_anywhere(const std::string& path) {
    constexpr int most_unknown_operators = 100;
    for (int declared = 0;; ++declared) {
        try {
            try {
                return jit::load(path);
            } catch (const c10::Error&) {
                return jit::load(path, c10::kCPU);
            }
        } catch (const std::exception& error) {
            const std::string name = unknown_operator(error.what());
            if (name.empty() || declared == most_unknown_operators) throw;
            declare_operator(name, assigned_tensors(error.what(), name));
        }
    }
}

/// LibTorch's messages include stack traces; their first line is the error.
[[noreturn]] void refuse(const std::string& message) {
    const std::size_t begin = std::min(message.find_first_not_of(" \n"), message.size());
    throw Error(ErrorCode::model,
                "LibTorch refuses the program: " + message.substr(begin, message.find('\n', begin) - begin));
}

}  // namespace

}  // namespace ftax::script

void ftax_load_torchscript(const std::string& path, ftax::script::Program& program) {
    using namespace ftax::script;
    try {
        program = Translator().translate(load_anywhere(path));
    } catch (const ftax::Error&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw ftax::Error(ftax::ErrorCode::limit, "LibTorch runs out of memory");
    } catch (const c10::Error& error) {
        refuse(error.what_without_backtrace());
    } catch (const std::exception& error) {
        refuse(error.what());
    }
}
