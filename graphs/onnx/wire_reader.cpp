#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "graphs/base/throw_error.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {
namespace {

constexpr std::size_t max_group_depth = 100;
constexpr std::uint32_t group_start = 3;
constexpr std::uint32_t group_end = 4;

[[noreturn]] void fail(std::size_t offset, std::string_view what) {
    throw_error(ErrorCode::model, "byte {}: {}", offset, what);
}

void expect(const Field& field, WireType type) {
    if (field.type == type) return;
    fail(field.bytes.offset, fmt::format("field {} has wire type {} where ONNX has {}", field.number,
                                         static_cast<int>(field.type), static_cast<int>(type)));
}

template <class Word>
Word little_endian(std::string_view data) {
    static_assert(std::endian::native == std::endian::little);
    Word word = 0;
    std::memcpy(&word, data.data(), sizeof word);
    return word;
}

}  // namespace

std::int64_t Field::integer() const {
    expect(*this, WireType::varint);
    return static_cast<std::int64_t>(value);
}

float Field::real() const {
    expect(*this, WireType::fixed32);
    return std::bit_cast<float>(static_cast<std::uint32_t>(value));
}

std::string_view Field::text() const {
    return message().data;
}

const Bytes& Field::message() const {
    expect(*this, WireType::length_delimited);
    return bytes;
}

std::uint64_t WireReader::varint() {
    const std::size_t begin = offset();
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (position_ >= bytes_.data.size()) fail(begin, "the message ends within a varint");
        const auto byte = static_cast<std::uint8_t>(bytes_.data[position_++]);
        if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
    }
    fail(begin, "varint longer than 10 bytes");
}

std::string_view WireReader::take(std::uint64_t count) {
    const std::size_t left = bytes_.data.size() - position_;
    if (count > left) fail(offset(), fmt::format("{} bytes announced, {} left", count, left));
    const std::string_view taken = bytes_.data.substr(position_, count);
    position_ += count;
    return taken;
}

bool WireReader::read(Field& field, std::uint32_t& group) {
    const std::size_t begin = offset();
    const std::uint64_t key = varint();
    const std::uint64_t number = key >> 3;
    if (number == 0) fail(begin, "field number 0");
    if (number >= (1u << 29)) fail(begin, fmt::format("field number {} out of range", number));
    field.number = static_cast<std::uint32_t>(number);
    field.bytes = {{}, begin};
    group = static_cast<std::uint32_t>(key & 7);
    field.type = static_cast<WireType>(group);
    if (group == group_start || group == group_end) return false;
    if (group == 0) {
        field.value = varint();
    } else if (group == 1) {
        field.value = little_endian<std::uint64_t>(take(8));
    } else if (group == 5) {
        field.value = little_endian<std::uint32_t>(take(4));
    } else if (group == 2) {
        const std::uint64_t length = varint();
        const std::size_t content = offset();
        field.bytes = {take(length), content};
    } else {
        fail(begin, fmt::format("wire type {} does not exist", group));
    }
    return true;
}

bool WireReader::next(Field& field) {
    std::vector<std::uint32_t> open_groups;
    while (has_more()) {
        const std::size_t begin = offset();
        std::uint32_t group = 0;
        if (read(field, group)) {
            if (open_groups.empty()) return true;
        } else if (group == group_start) {
            if (open_groups.size() == max_group_depth)
                throw_error(ErrorCode::limit, "byte {}: groups nested deeper than {} levels", begin, max_group_depth);
            open_groups.push_back(field.number);
        } else {
            if (open_groups.empty() || open_groups.back() != field.number)
                fail(begin, "end of a group that did not begin");
            open_groups.pop_back();
        }
    }
    if (!open_groups.empty()) fail(offset(), "the message ends within a group");
    return false;
}

void append_integers(const Field& field, std::vector<std::int64_t>& values) {
    if (field.type == WireType::varint) {
        values.push_back(field.integer());
        return;
    }
    // Packed: the same varints one after another.
    WireReader packed(field.message());
    while (packed.has_more()) values.push_back(static_cast<std::int64_t>(packed.varint()));
}

void append_floats(const Field& field, std::vector<float>& values) {
    if (field.type == WireType::fixed32) {
        values.push_back(field.real());
        return;
    }
    const Bytes& packed = field.message();
    if (packed.data.size() % 4 != 0) fail(packed.offset, "packed floats are not a multiple of 4 bytes");
    for (std::size_t i = 0; i < packed.data.size(); i += 4)
        values.push_back(std::bit_cast<float>(little_endian<std::uint32_t>(packed.data.substr(i, 4))));
}

}  // namespace ftax::onnx_import
