#include "tests/graphs/pt2/archives.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zip.h>

#include <fstream>
#include <iterator>

namespace ftax::test {

TemporaryFile::TemporaryFile(const std::string& name, const std::string& content)
    : path_((std::filesystem::temp_directory_path() / fmt::format("ftax_{}_{}", ::getpid(), name)).string()) {
    std::ofstream(path_, std::ios::binary) << content;
}

TemporaryFile::~TemporaryFile() {
    std::filesystem::remove(path_);
}

std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& members) {
    const TemporaryFile file("archive.zip");
    std::filesystem::remove(file.path());
    zip_t* zip = zip_open(file.path().c_str(), ZIP_CREATE, nullptr);
    REQUIRE(zip != nullptr);
    for (const auto& [name, content] : members) {
        zip_source_t* source = zip_source_buffer(zip, content.data(), content.size(), 0);
        const zip_int64_t index = zip_file_add(zip, name.c_str(), source, ZIP_FL_ENC_UTF_8);
        REQUIRE(index >= 0);
    }
    REQUIRE(zip_close(zip) == 0);
    std::ifstream in(file.path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string small_program(const std::string& batch_size) {
    std::string text = R"({
      "schema_version": {"major": 8, "minor": 17}, "torch_version": "2.11.0", "range_constraints": {},
      "graph_module": {
        "signature": {"input_specs": [
            {"parameter": {"arg": {"name": "p_conv_weight"}, "parameter_name": "conv.weight"}},
            {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}], "output_specs": []},
        "graph": {
          "inputs": [{"as_tensor": {"name": "p_conv_weight"}}, {"as_tensor": {"name": "x"}}],
          "outputs": [{"as_tensor": {"name": "relu"}}],
          "sym_int_values": {},
          "tensor_values": {
            "p_conv_weight": {"dtype": 7, "sizes": [{"as_int": 8}, {"as_int": 3}, {"as_int": 3}, {"as_int": 3}],
                              "strides": [{"as_int": 27}, {"as_int": 9}, {"as_int": 3}, {"as_int": 1}]},
            "x": {"dtype": 7, "sizes": [BATCH, {"as_int": 3}, {"as_int": 10}, {"as_int": 10}],
                  "strides": [{"as_int": 300}, {"as_int": 100}, {"as_int": 10}, {"as_int": 1}]},
            "conv2d": {"dtype": 7, "sizes": [BATCH, {"as_int": 8}, {"as_int": 5}, {"as_int": 5}],
                       "strides": [{"as_int": 200}, {"as_int": 25}, {"as_int": 5}, {"as_int": 1}]},
            "relu": {"dtype": 7, "sizes": [BATCH, {"as_int": 8}, {"as_int": 5}, {"as_int": 5}],
                     "strides": [{"as_int": 200}, {"as_int": 25}, {"as_int": 5}, {"as_int": 1}]}},
          "nodes": [
            {"target": "torch.ops.aten.conv2d.default",
             "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "x"}}},
                        {"name": "weight", "arg": {"as_tensor": {"name": "p_conv_weight"}}},
                        {"name": "bias", "arg": {"as_none": true}},
                        {"name": "stride", "arg": {"as_ints": [2, 2]}},
                        {"name": "padding", "arg": {"as_ints": [1, 1]}}],
             "outputs": [{"as_tensor": {"name": "conv2d"}}],
             "metadata": {"nn_module_stack": "L__self__,,demo.Net;L__self__conv,conv,torch.nn.modules.conv.Conv2d"}},
            {"target": "torch.ops.aten.relu.default",
             "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "conv2d"}}}],
             "outputs": [{"as_tensor": {"name": "relu"}}],
             "metadata": {"nn_module_stack": "L__self__,,demo.Net"}}]}}})";
    for (std::size_t at = text.find("BATCH"); at != std::string::npos; at = text.find("BATCH")) {
        text.replace(at, 5, batch_size);
    }
    return text;
}

}  // namespace ftax::test
