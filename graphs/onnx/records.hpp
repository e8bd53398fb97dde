#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ftax/types.hpp"

namespace ftax::onnx_import {

/// A byte range of the model file with its offset.
struct Bytes {
    std::string_view data;
    std::size_t offset = 0;
};

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };

struct Field {
    std::uint32_t number = 0;
    WireType type = WireType::varint;
    std::uint64_t value = 0;  ///< varint, fixed32 or fixed64
    Bytes bytes;              ///< length-delimited content

    /// Throw Error{model} with the byte offset if the field's wire type does not match its schema.
    [[nodiscard]] std::int64_t integer() const;
    [[nodiscard]] float real() const;
    [[nodiscard]] std::string_view text() const;
    [[nodiscard]] const Bytes& message() const;
};

/// Reads the fields of one protobuf message lazily and without copying.
/// Groups, which ONNX does not use, are skipped iteratively. Source: protobuf encoding specification.
class WireReader {
  public:
    explicit WireReader(Bytes message) : bytes_(message) {}

    /// Reads the next field; returns false at the end of the message.
    /// Throws Error{model} with the byte offset of malformed data, Error{limit} for groups nested beyond 100.
    bool next(Field& field);
    [[nodiscard]] bool has_more() const noexcept { return position_ < bytes_.data.size(); }
    std::uint64_t varint();

  private:
    std::string_view take(std::uint64_t count);
    bool read(Field& field, std::uint32_t& group);
    [[nodiscard]] std::size_t offset() const noexcept { return bytes_.offset + position_; }

    Bytes bytes_;
    std::size_t position_ = 0;
};

/// Calls `visit` with every field; it skips those that it does not know.
template <class Visit>
void for_each_field(const Bytes& message, Visit visit) {
    WireReader reader(message);
    for (Field field; reader.next(field);) visit(field);
}

/// Appends the integers of a repeated int field, packed or not.
void append_integers(const Field& field, std::vector<std::int64_t>& values);
/// Appends the numbers of a repeated float field, packed or not.
void append_floats(const Field& field, std::vector<float>& values);

// The messages of onnx.proto needed by a latency model. Text and payload are views of the mapped file; rarely needed
// parts (attributes, types, tensor data) are decoded on demand.

struct ExternalData {
    std::string_view location;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
};

/// TensorProto without its payload.
struct TensorRecord {
    std::string_view name;
    std::vector<std::int64_t> dims;
    std::int64_t data_type = 0;
    std::vector<Bytes> message;  ///< whole messages, for decoding the payload on demand; more than one are merged
    std::optional<ExternalData> external;
};

struct DimRecord {
    std::variant<std::monostate, std::int64_t, std::string_view> value;  ///< nothing, dim_value or dim_param
};

struct TypeRecord {
    enum class Kind : std::uint8_t { none, tensor, sequence, other } kind = Kind::none;
    std::int64_t element_type = 0;  ///< type of a tensor, or of the tensors in a sequence
    std::optional<std::vector<DimRecord>> shape;
};

/// ValueInfoProto; type_of() decodes the type.
struct ValueRecord {
    std::string_view name;
    Bytes message;
};

/// NodeProto without its attributes; see attributes_of().
struct NodeRecord {
    std::string_view name, op_type, domain, overload;
    std::vector<std::string_view> inputs, outputs;
    Bytes message;
};

struct GraphRecord {
    std::string_view name;
    std::vector<NodeRecord> nodes;
    std::vector<TensorRecord> initializers;  ///< sparse ones too, with their dense dims
    std::vector<ValueRecord> inputs, outputs, value_info;
};

struct AttributeRecord {
    std::string_view name, reference;  ///< reference: name of the function's attribute whose value is taken
    std::int64_t type = 0;             ///< AttributeProto.AttributeType; 0 in very old files
    std::int64_t integer = 0;
    float real = 0;
    std::string_view text;
    std::vector<std::int64_t> integers;
    std::vector<float> reals;
    std::vector<std::string_view> texts;
    std::vector<Bytes> tensor, graph;  ///< parts of one message, to be merged; empty when absent
    bool sparse = false;               ///< `tensor` holds a SparseTensorProto
};

/// Returns the attribute of that name; nullptr if there is none.
[[nodiscard]] inline const AttributeRecord* find_attribute(const std::vector<AttributeRecord>& attributes,
                                                           std::string_view name) {
    const auto found = std::ranges::find(attributes, name, &AttributeRecord::name);
    return found == attributes.end() ? nullptr : &*found;
}

struct OpsetRecord {
    std::string_view domain;
    std::int64_t version = 0;
};

struct FunctionRecord {
    std::string_view name, domain, overload;
    std::vector<std::string_view> inputs, outputs;
    std::vector<NodeRecord> nodes;
    std::vector<AttributeRecord> defaults;
    std::vector<OpsetRecord> opsets;
};

struct ModelRecord {
    std::optional<std::int64_t> ir_version;
    std::string_view producer_name;
    std::vector<OpsetRecord> opsets;
    bool has_graph = false;
    GraphRecord graph;
    std::vector<FunctionRecord> functions;
};

/// Decodes a ModelProto. `release` is called periodically while payload is skipped, since each access to a large file
/// can map megabytes around it. Throws Error{model} with byte offsets, Error{limit} beyond `max_nodes`.
[[nodiscard]] ModelRecord read_model(Bytes message, std::uint64_t max_nodes, const std::function<void()>& release = {});
/// Decodes a GraphProto given in parts that protobuf would merge.
[[nodiscard]] GraphRecord read_graph(const std::vector<Bytes>& parts, std::uint64_t max_nodes);
[[nodiscard]] std::vector<AttributeRecord> attributes_of(const NodeRecord& node);
[[nodiscard]] TensorRecord read_tensor(const std::vector<Bytes>& parts, bool sparse = false);
[[nodiscard]] TypeRecord type_of(const ValueRecord& value);
/// Returns the value of a key in the node's metadata_props; empty if missing.
[[nodiscard]] std::string_view metadata_of(const NodeRecord& node, std::string_view key);

/// Maps TensorProto.DataType to an element type, else DType::unknown. Source: onnx.proto of ONNX 1.19 (1 to 26).
[[nodiscard]] DType dtype_from_onnx(std::int64_t data_type) noexcept;

using Number = std::variant<std::int64_t, double>;
/// Decodes the payload of a small tensor. `external_bytes` replaces the payload of an external one.
/// Returns nullopt if the payload is absent (stripped) or strings. Throws Error{model} if its size contradicts dims.
[[nodiscard]] std::optional<std::vector<Number>> read_numbers(const TensorRecord& tensor, std::int64_t count,
                                                              std::string_view external_bytes = {});

/// Reads `count` bytes of a small external tensor whose value a shape depends on. The file must lie below the model's
/// directory, be reached without symbolic links, and be a regular file with one name.
/// Returns nullopt if it does not exist (a graph without its weights). Throws Error{refused} for any other location or
/// kind of file, Error{model} if the range exceeds the file.
[[nodiscard]] std::optional<std::string> read_external_data(const ExternalData& data, const std::string& directory,
                                                            std::int64_t count);

}  // namespace ftax::onnx_import
