#include "graphs/onnx/records.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax::onnx_import {
namespace {

constexpr int max_type_depth = 64;
constexpr std::size_t release_interval_bytes = 16u << 20;

/// The record that `set` fills field by field.
template <class Record, class Set>
Record read(const Bytes& message, Set set) {
    Record record;
    for_each_field(message, [&](const Field& field) { set(field, record); });
    return record;
}

using Entry = std::pair<std::string_view, std::string_view>;

void set_entry(const Field& field, Entry& entry) {
    if (field.number == 1) entry.first = field.text();
    if (field.number == 2) entry.second = field.text();
}

void set_opset(const Field& field, OpsetRecord& opset) {
    if (field.number == 1) opset.domain = field.text();
    if (field.number == 2) opset.version = field.integer();
}

std::uint64_t unsigned_number(std::string_view text, std::string_view key, std::size_t offset) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        throw_error(ErrorCode::model, "byte {}: external data {} '{}' is not an unsigned 64-bit number", offset, key,
                    excerpt(text));
    return value;
}

void read_tensor_fields(const Bytes& message, TensorRecord& tensor) {
    bool external = false;
    bool inline_payload = false;
    std::optional<ExternalData> data;
    for_each_field(message, [&](const Field& field) {
        if (field.number == 1) append_integers(field, tensor.dims);
        if (field.number == 2) tensor.data_type = field.integer();
        if (field.number == 8) tensor.name = field.text();
        if (field.number >= 4 && field.number <= 11 && field.number != 8)
            inline_payload = inline_payload || field.type != WireType::length_delimited || !field.bytes.data.empty();
        if (field.number == 13) {
            if (!data) data.emplace();
            const auto [key, value] = read<Entry>(field.message(), set_entry);
            if (key == "location") data->location = value;
            if (key == "offset") data->offset = unsigned_number(value, key, field.bytes.offset);
            if (key == "length") data->length = unsigned_number(value, key, field.bytes.offset);
        }
        if (field.number == 14) external = field.integer() == 1;
    });
    tensor.message.push_back(message);
    if (external) {
        const auto fail = [&](std::string_view what) {
            throw_error(ErrorCode::model, "byte {}: initializer '{}' {}", message.offset, excerpt(tensor.name), what);
        };
        if (!data || data->location.empty()) fail("is external but names no location");
        if (inline_payload) fail("has both inline and external data");
        std::uint64_t end = 0;
        if (__builtin_add_overflow(data->offset, data->length.value_or(0), &end))
            throw_error(ErrorCode::model, "byte {}: external data of '{}' ends beyond 2^64", message.offset,
                        excerpt(tensor.name));
        tensor.external = data;
    }
}

/// SparseTensorProto: {values, indices, dims}; the dense tensor is what operators see.
void read_sparse_fields(const Bytes& message, TensorRecord& tensor) {
    for_each_field(message, [&](const Field& field) {
        if (field.number == 1) {
            TensorRecord values;
            read_tensor_fields(field.message(), values);
            tensor.name = values.name;
            tensor.data_type = values.data_type;
        }
        if (field.number == 3) append_integers(field, tensor.dims);
    });
}

NodeRecord read_node(const Bytes& message) {
    NodeRecord node;
    node.message = message;
    for_each_field(message, [&](const Field& field) {
        if (field.number == 1) node.inputs.push_back(field.text());
        if (field.number == 2) node.outputs.push_back(field.text());
        if (field.number == 3) node.name = field.text();
        if (field.number == 4) node.op_type = field.text();
        if (field.number == 7) node.domain = field.text();
        if (field.number == 8) node.overload = field.text();
    });
    if (node.domain == "ai.onnx") node.domain = {};
    return node;
}

void add_node(const Bytes& message, std::vector<NodeRecord>& nodes, std::uint64_t max_nodes) {
    if (nodes.size() >= max_nodes)
        throw_error(ErrorCode::limit, "byte {}: more than {} nodes (--max-nodes)", message.offset, max_nodes);
    nodes.push_back(read_node(message));
}

ValueRecord read_value(const Bytes& message) {
    ValueRecord value{{}, message};
    for_each_field(message, [&](const Field& field) {
        if (field.number == 1) value.name = field.text();
    });
    return value;
}

void read_graph_fields(const Bytes& message, GraphRecord& graph, std::uint64_t max_nodes,
                       const std::function<void()>& release = {}) {
    std::size_t passed = 0, nodes = 0;
    for_each_field(message, [&](const Field& field) { nodes += field.number == 1; });
    graph.nodes.reserve(graph.nodes.size() + std::min<std::uint64_t>(nodes, max_nodes));
    for_each_field(message, [&](const Field& field) {
        if (field.number == 1) add_node(field.message(), graph.nodes, max_nodes);
        if (field.number == 2) graph.name = field.text();
        if (field.number == 5) {
            read_tensor_fields(field.message(), graph.initializers.emplace_back());
            passed += field.bytes.data.size();
            if (release && passed > release_interval_bytes) {
                release();
                passed = 0;
            }
        }
        if (field.number == 11) graph.inputs.push_back(read_value(field.message()));
        if (field.number == 12) graph.outputs.push_back(read_value(field.message()));
        if (field.number == 13) graph.value_info.push_back(read_value(field.message()));
        if (field.number == 15) read_sparse_fields(field.message(), graph.initializers.emplace_back());
    });
}

AttributeRecord read_attribute(const Bytes& message) {
    return read<AttributeRecord>(message, [](const Field& field, AttributeRecord& attribute) {
        if (field.number == 1) attribute.name = field.text();
        if (field.number == 2) attribute.real = field.real();
        if (field.number == 3) attribute.integer = field.integer();
        if (field.number == 4) attribute.text = field.text();
        if (field.number == 5) attribute.tensor.push_back(field.message());
        if (field.number == 6) attribute.graph.push_back(field.message());
        if (field.number == 7) append_floats(field, attribute.reals);
        if (field.number == 8) append_integers(field, attribute.integers);
        if (field.number == 9) attribute.texts.push_back(field.text());
        if (field.number == 20) attribute.type = field.integer();
        if (field.number == 21) attribute.reference = field.text();
        if (field.number == 22) {
            attribute.tensor.push_back(field.message());
            attribute.sparse = true;
        }
    });
}

FunctionRecord read_function(const Bytes& message, std::uint64_t max_nodes) {
    return read<FunctionRecord>(message, [&](const Field& field, FunctionRecord& function) {
        if (field.number == 1) function.name = field.text();
        if (field.number == 4) function.inputs.push_back(field.text());
        if (field.number == 5) function.outputs.push_back(field.text());
        if (field.number == 7) add_node(field.message(), function.nodes, max_nodes);
        if (field.number == 9) function.opsets.push_back(read<OpsetRecord>(field.message(), set_opset));
        if (field.number == 10) function.domain = field.text();
        if (field.number == 11) function.defaults.push_back(read_attribute(field.message()));
        if (field.number == 13) function.overload = field.text();
    });
}

void set_dim(const Field& field, DimRecord& dim) {
    if (field.number == 1) dim.value = field.integer();
    if (field.number == 2) dim.value = field.text();
}

void read_tensor_type(const Bytes& message, TypeRecord& type) {
    for_each_field(message, [&](const Field& field) {
        if (field.number == 1) type.element_type = field.integer();
        if (field.number != 2) return;
        if (!type.shape) type.shape.emplace();
        for_each_field(field.message(), [&](const Field& dim) {
            if (dim.number == 1) type.shape->push_back(read<DimRecord>(dim.message(), set_dim));
        });
    });
}

void read_type(const Bytes& message, TypeRecord& type, int depth) {
    if (depth > max_type_depth)
        throw_error(ErrorCode::limit, "byte {}: types nested deeper than {} levels", message.offset, max_type_depth);
    for_each_field(message, [&](const Field& field) {
        if (field.number == 1) {
            if (type.kind == TypeRecord::Kind::none) type.kind = TypeRecord::Kind::tensor;
            read_tensor_type(field.message(), type);
        }
        if (field.number == 4) type.kind = TypeRecord::Kind::sequence;
        if (field.number == 5 || field.number == 7 || field.number == 8) type.kind = TypeRecord::Kind::other;
        // an optional is replaced by its content type
        if (field.number == 4 || field.number == 9) {
            for_each_field(field.message(), [&](const Field& element) {
                if (element.number == 1) read_type(element.message(), type, depth + 1);
            });
        }
    });
}

/// Widens a float of `exponent_bits` and `mantissa_bits` with an IEEE-like bias; infinities and NaN of the 8-bit types
/// are not distinguished, since they never occur in shape arithmetic.
double small_float(std::uint64_t bits, int exponent_bits, int mantissa_bits) {
    const std::uint64_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
    const bool negative = (bits >> (exponent_bits + mantissa_bits)) & 1;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
    const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return negative ? -value : value;
}

/// Interprets the low bits of `bits` as one element.
std::optional<Number> number_from_bits(DType type, std::uint64_t bits) {
    using enum DType;
    const auto sign_extended = [&](int width) {
        const int shift = 64 - width;
        return static_cast<std::int64_t>(bits << shift) >> shift;
    };
    if (type == f64) return std::bit_cast<double>(bits);
    if (type == f32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    if (type == f16) return small_float(bits, 5, 10);
    if (type == bf16) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16)));
    if (type == f8e4m3) return small_float(bits, 4, 3);
    if (type == f8e5m2) return small_float(bits, 5, 2);
    if (type == i64 || type == u64) return static_cast<std::int64_t>(bits);
    if (type == i32 || type == i16 || type == i8) return sign_extended(bits_of(type));
    if (type == u32 || type == u16 || type == u8)
        return static_cast<std::int64_t>(bits & ((1ULL << bits_of(type)) - 1));
    if (type == boolean) return static_cast<std::int64_t>((bits & 0xffu) != 0);
    return std::nullopt;  // packed, complex and string elements: no shape depends on them
}

std::vector<std::uint64_t> elements_of(std::string_view raw, std::size_t width) {
    std::vector<std::uint64_t> words(raw.size() / width, 0);
    for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], raw.data() + i * width, width);
    return words;
}

/// Payload of the typed fields (float_data, int32_data, …) as bit patterns.
std::vector<std::uint64_t> typed_payload(const TensorRecord& tensor, std::string_view& raw) {
    std::vector<std::uint64_t> words;
    for (const Bytes& part : tensor.message) {
        for_each_field(part, [&](const Field& field) {
            const std::uint32_t number = field.number;
            if (number == 4) {
                std::vector<float> floats;
                append_floats(field, floats);
                for (const float f : floats) words.push_back(std::bit_cast<std::uint32_t>(f));
            }
            if (number == 5 || number == 7 || number == 11) {
                std::vector<std::int64_t> integers;
                append_integers(field, integers);
                for (const std::int64_t i : integers) words.push_back(static_cast<std::uint64_t>(i));
            }
            if (number == 9) raw = field.text();
            if (number == 10 && field.type == WireType::fixed64) words.push_back(field.value);
            if (number == 10 && field.type != WireType::fixed64)
                for (const std::uint64_t word : elements_of(field.text(), 8)) words.push_back(word);
        });
    }
    return words;
}

}  // namespace

ModelRecord read_model(Bytes message, std::uint64_t max_nodes, const std::function<void()>& release) {
    return read<ModelRecord>(message, [&](const Field& field, ModelRecord& model) {
        if (field.number == 1) model.ir_version = field.integer();
        if (field.number == 2) model.producer_name = field.text();
        if (field.number == 7) {
            model.has_graph = true;
            read_graph_fields(field.message(), model.graph, max_nodes, release);
        }
        if (field.number == 8) model.opsets.push_back(read<OpsetRecord>(field.message(), set_opset));
        if (field.number == 25) model.functions.push_back(read_function(field.message(), max_nodes));
    });
}

GraphRecord read_graph(const std::vector<Bytes>& parts, std::uint64_t max_nodes) {
    GraphRecord graph;
    for (const Bytes& part : parts) read_graph_fields(part, graph, max_nodes);
    return graph;
}

std::vector<AttributeRecord> attributes_of(const NodeRecord& node) {
    using Attributes = std::vector<AttributeRecord>;
    return read<Attributes>(node.message, [](const Field& field, Attributes& attributes) {
        if (field.number == 5) attributes.push_back(read_attribute(field.message()));
    });
}

TensorRecord read_tensor(const std::vector<Bytes>& parts, bool sparse) {
    TensorRecord tensor;
    for (const Bytes& part : parts) sparse ? read_sparse_fields(part, tensor) : read_tensor_fields(part, tensor);
    return tensor;
}

TypeRecord type_of(const ValueRecord& value) {
    return read<TypeRecord>(value.message, [](const Field& field, TypeRecord& type) {
        if (field.number == 2) read_type(field.message(), type, 0);
    });
}

std::string_view metadata_of(const NodeRecord& node, std::string_view key) {
    return read<std::string_view>(node.message, [&](const Field& field, std::string_view& found) {
        if (field.number != 9) return;
        const auto [entry, value] = read<Entry>(field.message(), set_entry);
        if (entry == key) found = value;
    });
}

DType dtype_from_onnx(std::int64_t data_type) noexcept {
    using enum DType;
    constexpr std::array types{unknown, f32,    u8,     i8,  u16, i16, i32,  i64,  string,
                               boolean, f16,    f64,    u32, u64, c64, c128, bf16, f8e4m3,
                               f8e4m3,  f8e5m2, f8e5m2, u4,  i4,  f4,  u8,   u2,   i2};
    return data_type < 0 || data_type >= std::ssize(types) ? unknown : types[static_cast<std::size_t>(data_type)];
}

std::optional<std::vector<Number>> read_numbers(const TensorRecord& tensor, std::int64_t count,
                                                std::string_view external_bytes) {
    const DType type = dtype_from_onnx(tensor.data_type);
    const int bits = bits_of(type);
    if (bits % 8 != 0 || !number_from_bits(type, 0)) return std::nullopt;
    std::string_view raw = external_bytes;
    std::vector<std::uint64_t> words;
    if (!tensor.external) words = typed_payload(tensor, raw);
    if (!raw.empty()) words = elements_of(raw, static_cast<std::size_t>(bits / 8));
    if (words.empty() && count > 0) return std::nullopt;
    if (words.size() != static_cast<std::size_t>(count))
        throw_error(ErrorCode::model, "tensor '{}' holds {} elements, its dims say {}", excerpt(tensor.name),
                    words.size(), count);
    return mapped(words, [&](std::uint64_t word) { return *number_from_bits(type, word); });
}

}  // namespace ftax::onnx_import
