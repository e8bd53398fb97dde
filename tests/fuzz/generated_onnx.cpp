#include "tests/fuzz/generated_onnx.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "graphs/onnx/node.hpp"

namespace ftax::fuzz {
namespace {

constexpr std::array<std::int64_t, 16> numbers{0,
                                               1,
                                               2,
                                               3,
                                               4,
                                               -1,
                                               -2,
                                               5,
                                               7,
                                               8,
                                               16,
                                               64,
                                               std::int64_t{1} << 31,
                                               std::int64_t{1} << 62,
                                               std::numeric_limits<std::int64_t>::max(),
                                               std::numeric_limits<std::int64_t>::min()};
constexpr std::array<std::string_view, 12> model_dimensions{"1",   "2",       "3", "4",  "8", "batch",
                                                            "seq", "2*batch", "?", "-1", "0", "16"};
constexpr std::array<std::string_view, 58> attributes{"axis",
                                                      "axes",
                                                      "keepdims",
                                                      "perm",
                                                      "group",
                                                      "kernel_shape",
                                                      "strides",
                                                      "pads",
                                                      "dilations",
                                                      "auto_pad",
                                                      "to",
                                                      "blocksize",
                                                      "num_heads",
                                                      "kv_num_heads",
                                                      "q_num_heads",
                                                      "hidden_size",
                                                      "direction",
                                                      "layout",
                                                      "equation",
                                                      "mode",
                                                      "N",
                                                      "K",
                                                      "bits",
                                                      "groups",
                                                      "num_groups",
                                                      "channels_last",
                                                      "allowzero",
                                                      "start",
                                                      "end",
                                                      "split",
                                                      "num_outputs",
                                                      "batch_dims",
                                                      "output_shape",
                                                      "output_padding",
                                                      "transA",
                                                      "transB",
                                                      "value_ints",
                                                      "value_int",
                                                      "value_floats",
                                                      "shape",
                                                      "dtype",
                                                      "k",
                                                      "ceil_mode",
                                                      "new_axis",
                                                      "qkv_hidden_sizes",
                                                      "sample_size",
                                                      "onesided",
                                                      "scales",
                                                      "pooled_shape",
                                                      "output_height",
                                                      "starts",
                                                      "ends",
                                                      "is_causal",
                                                      "reduction",
                                                      "exclusive",
                                                      "num_scan_inputs",
                                                      "activation",
                                                      "noop_with_empty_axes"};
constexpr std::array<std::string_view, 10> texts{
    "SAME_UPPER",  "VALID",          "linear", "bidirectional", "ij,jk->ik",
    "...ij,...jk", "bhwc,hkc->bhwk", "ii->i",  "none",          ""};
constexpr std::array<std::int64_t, 5> types{1, 7, 6, 9, 2};  // float, int64, int32, boolean, uint8
constexpr std::array<std::int64_t, 6> opsets{1, 6, 9, 11, 13, 21};

void varint(std::string& out, std::uint64_t value) {
    for (; value > 127; value >>= 7) out.push_back(static_cast<char>(value | 128));
    out.push_back(static_cast<char>(value));
}
void put(std::string& out, int field, std::int64_t value) {
    varint(out, static_cast<std::uint64_t>(field) << 3);
    varint(out, static_cast<std::uint64_t>(value));
}
void put(std::string& out, int field, std::string_view bytes) {
    varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
    varint(out, bytes.size());
    out.append(bytes);
}

class ModelGenerator {
  public:
    explicit ModelGenerator(Choices& choices) : choices_(choices) {}

    std::string run() {
        for (int i = 0; i < 3; ++i) put(graph_, 11, input("x" + std::to_string(i)));
        for (int i = 0; i < 4; ++i) put(graph_, 5, constant("c" + std::to_string(i)));
        const std::size_t nodes = 1 + choices_.below(4);
        for (std::size_t i = 0; i < nodes; ++i) put(graph_, 1, node(i));
        std::string output;
        put(output, 1, names_.back());
        put(graph_, 12, output);
        std::string model, opset, contributed;
        put(model, 1, std::int64_t{8});
        put(opset, 2, choices_.of(opsets));
        put(contributed, 1, "com.microsoft");
        put(contributed, 2, std::int64_t{1});
        put(model, 8, opset);
        put(model, 8, contributed);
        put(model, 7, graph_);
        return model;
    }

  private:
    std::string input(const std::string& name) {
        std::string shape, tensor, type, value;
        for (std::size_t i = choices_.below(6); i > 0; --i) {
            const std::string_view dim = choices_.of(model_dimensions);
            std::string proto;
            if (dim == "-1" || (dim[0] >= '0' && dim[0] <= '9' && dim.find('*') == dim.npos)) {
                put(proto, 1, std::stoll(std::string(dim)));
            } else {
                put(proto, 2, dim);
            }
            put(shape, 1, proto);
        }
        put(tensor, 1, choices_.of(types));
        put(tensor, 2, shape);
        put(type, 1, tensor);
        put(value, 1, name);
        put(value, 2, type);
        names_.push_back(name);
        return value;
    }

    std::string constant(const std::string& name) {
        std::string tensor;
        const std::size_t rank = choices_.below(3), size = choices_.below(5);
        for (std::size_t i = 0; i < rank; ++i) put(tensor, 1, static_cast<std::int64_t>(size));
        const bool real = choices_.below(4) == 0;
        put(tensor, 2, std::int64_t{real ? 1 : 7});
        const std::size_t count = rank == 0 ? 1 : rank == 1 ? size : size * size;
        if (real) {
            put(tensor, 9, std::string(4 * count, static_cast<char>(choices_.below(128))));
        } else {
            for (std::size_t i = 0; i < count; ++i) put(tensor, 7, choices_.of(numbers));
        }
        put(tensor, 8, name);
        names_.push_back(name);
        return tensor;
    }

    std::string attribute() {
        std::string proto;
        put(proto, 1, choices_.of(attributes));
        switch (choices_.below(4)) {
            case 0:
                put(proto, 4, choices_.of(texts));
                put(proto, 20, std::int64_t{3});
                break;
            case 1:
                put(proto, 3, choices_.of(numbers));
                put(proto, 20, std::int64_t{2});
                break;
            case 2: {
                const std::size_t values = choices_.below(5);
                put(proto, 7, std::string(4 * values, static_cast<char>(choices_.below(128))));
                put(proto, 20, std::int64_t{6});
                break;
            }
            default:
                for (std::size_t i = choices_.below(6); i > 0; --i) put(proto, 8, choices_.of(numbers));
                put(proto, 20, std::int64_t{7});
        }
        return proto;
    }

    std::string node(std::size_t index) {
        std::string proto;
        const onnx_import::OpRow& row = onnx_import::op_table()[choices_.below(onnx_import::op_table().size())];
        const std::size_t least = static_cast<std::size_t>(row.required_inputs);
        for (std::size_t i = least + choices_.below(3); i > 0; --i)
            put(proto, 1, choices_.below(10) == 0 ? std::string_view{} : std::string_view(choices_.of(names_)));
        const std::size_t outputs = 1 + choices_.below(3);
        for (std::size_t i = 0; i < outputs; ++i) {
            names_.push_back("t" + std::to_string(index) + "_" + std::to_string(i));
            put(proto, 2, names_.back());
        }
        put(proto, 3, "node" + std::to_string(index));
        const std::size_t colons = row.name.find("::");
        put(proto, 4, colons == row.name.npos ? row.name : row.name.substr(colons + 2));
        if (colons != row.name.npos) put(proto, 7, row.name.substr(0, colons));
        for (std::size_t i = choices_.below(5); i > 0; --i) put(proto, 5, attribute());
        return proto;
    }

    Choices& choices_;
    std::string graph_;
    std::vector<std::string> names_;
};

}  // namespace

std::string generate_onnx(Choices& choices) {
    return ModelGenerator(choices).run();
}

}  // namespace ftax::fuzz
