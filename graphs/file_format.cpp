#include "graphs/file_format.hpp"

#include <algorithm>

namespace ftax {
namespace {

bool is_text(std::string_view bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
}

bool is_json(std::string_view bytes) {
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && bytes[first] == '{';
}

/// safetensors: a 64-bit header length, then JSON.
bool is_safetensors(std::string_view bytes) {
    return bytes.size() > 9 && bytes.substr(5, 3) == std::string_view("\0\0\0", 3) && bytes[8] == '{';
}

/// A ModelProto begins with one of its fields, as a rule ir_version (1, a varint), and goes on with a plausible second.
bool is_model_proto(std::string_view bytes) {
    const auto key = static_cast<unsigned char>(bytes.front());
    const unsigned number = key >> 3;
    const unsigned wire = key & 7u;
    return (wire == 0 && (number == 1 || number == 5)) || (wire == 2 && number >= 2 && number <= 14 && number != 5);
}

}  // namespace

FileFormat format_of(std::string_view bytes) noexcept {
    using enum FileFormat;
    constexpr std::size_t looked_at = 256;
    if (bytes.empty()) return empty;
    if (bytes.starts_with("PK")) return zip;
    if (bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 0 && bytes[1] <= 5) return pickle;
    if (bytes.starts_with("\x89HDF\r\n")) return hdf5;
    if (bytes.starts_with("GGUF")) return gguf;
    if (bytes.starts_with("\x1f\x8b")) return gzip;
    if (bytes.starts_with("\x7f"
                          "ELF"))
        return elf;
    if (is_safetensors(bytes)) return safetensors;
    // Neither text nor a wire key: a ModelProto begins with a control character.
    if (is_json(bytes.substr(0, looked_at))) return json;
    if (is_text(bytes.substr(0, looked_at))) return text;
    return is_model_proto(bytes) ? onnx : unknown;
}

std::string_view description_of(FileFormat format) noexcept {
    switch (format) {
        case FileFormat::empty:
            return "an empty file";
        case FileFormat::zip:
            return "a ZIP archive";
        case FileFormat::pickle:
            return "a pickle";
        case FileFormat::text:
            return "text";
        case FileFormat::json:
            return "JSON";
        case FileFormat::onnx:
            return "an ONNX model";
        case FileFormat::hdf5:
            return "HDF5 (Keras weights)";
        case FileFormat::gguf:
            return "GGUF";
        case FileFormat::safetensors:
            return "safetensors (weights without a graph)";
        case FileFormat::gzip:
            return "gzip-compressed";
        case FileFormat::elf:
            return "an ELF binary";
        case FileFormat::unknown:
            break;
    }
    return "of no known format";
}

}  // namespace ftax
