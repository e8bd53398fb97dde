#pragma once

#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

/// The models of libonnx-testdata, with the inputs and outputs that ONNX's reference implementation recorded.
namespace ftax::test {

inline const std::filesystem::path data_folder = "/usr/share/libonnx-testdata/data";

inline std::string read_bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::filesystem::path> model_files() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data_folder)) {
        if (entry.path().filename() == "model.onnx") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

inline bool is_small_integer(const ::onnx::TensorProto& tensor) {
    std::int64_t count = 1;
    for (const std::int64_t dim : tensor.dims()) count *= dim;
    const auto type = tensor.data_type();
    const bool integral =
        type == ::onnx::TensorProto::INT64 || type == ::onnx::TensorProto::INT32 || type == ::onnx::TensorProto::BOOL;
    return count <= 64 && (integral || (type == ::onnx::TensorProto::FLOAT && count <= 4));
}

/// The model as an exporter writes it: small operands (shapes, axes, scales) as initializers instead of inputs, and
/// without the declared shapes of outputs, which would give the answer away.
inline std::string without_answers(const std::filesystem::path& path) {
    ::onnx::ModelProto model;
    REQUIRE(model.ParseFromString(read_bytes(path)));
    ::onnx::GraphProto& graph = *model.mutable_graph();
    graph.clear_value_info();
    for (auto& output : *graph.mutable_output()) {
        if (output.type().has_tensor_type()) output.mutable_type()->mutable_tensor_type()->clear_shape();
    }
    const auto folder = path.parent_path() / "test_data_set_0";
    std::vector<std::string> known;
    for (int i = 0; i < graph.input_size(); ++i) {
        ::onnx::TensorProto value;
        if (!graph.input(i).type().has_tensor_type()) continue;
        if (!value.ParseFromString(read_bytes(folder / ("input_" + std::to_string(i) + ".pb"))) ||
            !is_small_integer(value))
            continue;
        value.set_name(graph.input(i).name());
        *graph.add_initializer() = value;
        known.push_back(value.name());
    }
    return model.SerializeAsString();
}

}  // namespace ftax::test
