#pragma once

#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "graphs/loading.hpp"
#include "tests/failure.hpp"
#include "tests/temporary_folder.hpp"

namespace ftax::test {

/// Builds small ONNX models in memory; what a test needs beyond this it sets on `proto`.
struct OnnxModel {
    explicit OnnxModel(std::int64_t opset = 17) {
        proto.set_ir_version(8);
        auto* imported = proto.add_opset_import();
        imported->set_domain("");
        imported->set_version(opset);
        proto.mutable_graph()->set_name("test");
    }

    ::onnx::GraphProto& graph() { return *proto.mutable_graph(); }

    /// Dims are numbers or names: {"batch", "3"}.
    OnnxModel& input(const std::string& name, const std::vector<std::string>& dims,
                     int type = ::onnx::TensorProto::FLOAT) {
        value(*graph().add_input(), name, dims, type);
        return *this;
    }
    OnnxModel& output(const std::string& name) {
        graph().add_output()->set_name(name);
        return *this;
    }
    OnnxModel& weight(const std::string& name, const std::vector<std::int64_t>& dims,
                      int type = ::onnx::TensorProto::FLOAT) {
        auto* tensor = graph().add_initializer();
        tensor->set_name(name);
        tensor->set_data_type(type);
        for (const std::int64_t dim : dims) tensor->add_dims(dim);
        return *this;
    }
    OnnxModel& integers(const std::string& name, const std::vector<std::int64_t>& values) {
        auto* tensor = graph().add_initializer();
        tensor->set_name(name);
        tensor->set_data_type(::onnx::TensorProto::INT64);
        tensor->add_dims(static_cast<std::int64_t>(values.size()));
        for (const std::int64_t v : values) tensor->add_int64_data(v);
        return *this;
    }
    ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs) {
        return add_node(*graph().mutable_node(), op, inputs, outputs);
    }

    static ::onnx::NodeProto& add_node(google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes,
                                       const std::string& op, const std::vector<std::string>& inputs,
                                       const std::vector<std::string>& outputs) {
        auto* node = nodes.Add();
        node->set_op_type(op);
        node->set_name(op + "_of_" + outputs.at(0));
        for (const std::string& i : inputs) node->add_input(i);
        for (const std::string& o : outputs) node->add_output(o);
        return *node;
    }
    static void value(::onnx::ValueInfoProto& info, const std::string& name, const std::vector<std::string>& dims,
                      int type = ::onnx::TensorProto::FLOAT) {
        info.set_name(name);
        auto* tensor = info.mutable_type()->mutable_tensor_type();
        tensor->set_elem_type(type);
        auto* shape = tensor->mutable_shape();
        for (const std::string& dim : dims) {
            auto* d = shape->add_dim();
            const bool number = dim.find_first_not_of("-0123456789") == std::string::npos && !dim.empty();
            if (number) {
                d->set_dim_value(std::stoll(dim));
            } else if (!dim.empty()) {
                d->set_dim_param(dim);
            }
        }
    }
    static ::onnx::AttributeProto& attribute(::onnx::NodeProto& node, const std::string& name, std::int64_t v) {
        auto* a = node.add_attribute();
        a->set_name(name);
        a->set_type(::onnx::AttributeProto::INT);
        a->set_i(v);
        return *a;
    }
    static ::onnx::AttributeProto& attribute(::onnx::NodeProto& node, const std::string& name,
                                             const std::vector<std::int64_t>& v) {
        auto* a = node.add_attribute();
        a->set_name(name);
        a->set_type(::onnx::AttributeProto::INTS);
        for (const std::int64_t i : v) a->add_ints(i);
        return *a;
    }

    std::string bytes() const { return proto.SerializeAsString(); }
    Graph import(const ImportOptions& options = {}) const { return import_onnx(bytes(), "test.onnx", options); }

    ::onnx::ModelProto proto;
};

/// x[batch,8] → Relu → y
inline OnnxModel relu_model() {
    OnnxModel model;
    model.input("x", {"batch", "8"}).output("y");
    model.node("Relu", {"x"}, {"y"});
    return model;
}

}  // namespace ftax::test
