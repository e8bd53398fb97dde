#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

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

  private:
    std::uint64_t varint();
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

}  // namespace ftax::onnx_import
