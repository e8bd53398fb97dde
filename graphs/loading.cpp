#include "graphs/loading.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/file.hpp"
#include "graphs/ir/symbol_names.hpp"
#include "graphs/ir/symbol_range.hpp"

namespace ftax {
namespace {

bool is_text(std::string_view bytes) {
    return std::ranges::all_of(bytes,
                               [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
}

bool is_json(std::string_view bytes) {
    if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);  // a byte order mark
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && bytes[first] == '{';
}

/// A ModelProto begins with one of its fields, as a rule ir_version (1, a varint), and goes on with a plausible second.
bool is_model_proto(std::string_view bytes) {
    const auto key = static_cast<unsigned char>(bytes.front());
    const unsigned number = key >> 3;
    const unsigned wire = key & 7u;
    return (wire == 0 && (number == 1 || number == 5)) || (wire == 2 && number >= 2 && number <= 14 && number != 5);
}

/// `position` is that of a shape without a name among its kind.
const Tensor& find_input(const Graph& graph, const InputShape& shape, std::size_t position) {
    if (shape.input.empty() && position < graph.inputs.size()) return graph.tensors[graph.inputs[position]];
    std::vector<std::string> known;
    for (const TensorId id : graph.inputs) {
        if (graph.tensors[id].name == shape.input) return graph.tensors[id];
        known.push_back(graph.tensors[id].name);
    }
    throw_error(ErrorCode::usage, "no input '{}'; the model has: {}", shape.input, fmt::join(known, ", "));
}

/// A file exported for one batch size takes another one when the user gives its inputs another leading dimension;
/// inputs that the user leaves out follow where theirs is the same.
void vary_fixed_batch(Graph& graph, const std::vector<InputShape>& shapes) {
    std::vector<const Tensor*> given;
    std::vector<TensorId> varied;
    std::optional<Expression> held, wanted;
    for (std::size_t i = 0, position = 0; i < shapes.size(); ++i) {
        const Tensor& input = find_input(graph, shapes[i], position);
        position += shapes[i].input.empty();
        if (input.shape.empty() || shapes[i].dims.empty()) continue;
        given.push_back(&input);
        const Expression leading = input.shape[0], asked = graph.expressions.parse(shapes[i].dims[0]);
        const auto size = graph.expressions.constant_value(leading);
        if (!size || *size < 1 || asked == leading) continue;
        if (held && (leading != *held || asked != *wanted))
            throw_error(ErrorCode::usage, "input {}: {} in place of {} and {} in place of {}: one batch can vary",
                        input.name, shapes[i].dims[0], *size, graph.expressions.to_string(*wanted),
                        graph.expressions.to_string(*held));
        held = leading;
        wanted = asked;
        varied.push_back(static_cast<TensorId>(&input - graph.tensors.data()));
    }
    if (!held) return;
    for (const TensorId id : graph.inputs) {
        const Tensor& input = graph.tensors[id];
        const bool named = std::ranges::find(given, &input) != given.end();
        if (!named && !input.shape.empty() && input.shape[0] == *held) varied.push_back(id);
    }
    vary_batch(graph, *wanted, varied);
}

/// What names symbols that the user renamed goes by the new name; a number in place of one is held against its range.
void replace_names(Graph& graph, const ExpressionPool& pool,
                   const std::map<std::string, Expression, std::less<>>& replace) {
    for (auto& [name, symbol] : graph.other_names)
        if (const auto found = replace.find(symbol); found != replace.end()) symbol = bare_symbol(pool, found->second);
    std::erase_if(graph.other_names, [](const auto& one) { return one.second.empty(); });
    std::vector<SymbolRange> kept;
    for (SymbolRange& range : graph.ranges) {
        const auto found = replace.find(range.symbol);
        if (found != replace.end()) {
            const auto number = pool.constant_value(found->second);
            std::string warning = number ? range_warning(range, *number) : std::string{};
            if (!warning.empty()) graph.warnings.push_back(std::move(warning));
            range.symbol = bare_symbol(pool, found->second);
        }
        if (!range.symbol.empty()) kept.push_back(std::move(range));
    }
    graph.ranges = std::move(kept);
}

/// Above this size most of a model is payload that is skipped, so that reading ahead would only fill memory.
constexpr std::size_t large_file_bytes = 16u << 20;

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
    if (bytes.starts_with("\177ELF")) return elf;
    // safetensors: a 64-bit header length, then JSON.
    if (bytes.size() > 9 && bytes.substr(5, 3) == std::string_view("\0\0\0", 3) && bytes[8] == '{') return weights;
    if (bytes.starts_with("ptrt") || bytes.starts_with("ftrt")) return engine;
    const bool little_endian = bytes.starts_with("\xff\xfe");
    if (bytes.size() > 3 && (little_endian || bytes.starts_with("\xfe\xff")) && bytes[little_endian ? 3 : 2] == '\0')
        return utf16;
    // Neither text nor a wire key: a ModelProto begins with a control character.
    if (is_json(bytes.substr(0, looked_at))) return json;
    if (is_text(bytes.substr(0, looked_at))) return text;
    return is_model_proto(bytes) ? onnx : unknown;
}

std::string_view description_of(FileFormat format) noexcept {
    static const std::vector<std::string_view> descriptions = data_column("data/file_formats.tsv", 1);
    return descriptions[static_cast<std::size_t>(format)];
}

void shorten_names(Graph& graph) {
    int weights = 0, activations = 0;
    for (Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::activation) {
            tensor.name = fmt::format("{}", ++activations);
        } else if (tensor.role != TensorRole::input) {
            tensor.name = fmt::format("w{}", ++weights);
        }
    }
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        Op& op = graph.ops[i];
        op.name = op.outputs.empty() ? fmt::format("op{}", i) : graph.tensors[op.outputs[0]].name;
    }
}

void apply_input_shapes(Graph& graph, const std::vector<InputShape>& shapes) {
    if (shapes.empty()) return;
    vary_fixed_batch(graph, shapes);
    ExpressionPool pool;
    std::map<std::string, Expression, std::less<>> replace;
    std::size_t position = 0;
    for (const InputShape& shape : shapes) {
        const Tensor& input = find_input(graph, shape, position);
        position += shape.input.empty();
        if (!shape.value.empty())
            throw_error(ErrorCode::usage, "input {} is a tensor: give its shape, not the value {}", input.name,
                        shape.value);
        if (shape.dims.size() != input.shape.size())
            throw_error(ErrorCode::usage, "input {} has {} dimensions, not {}", shape.input, input.shape.size(),
                        shape.dims.size());
        for (std::size_t i = 0; i < shape.dims.size(); ++i) {
            const Expression wanted = pool.parse(shape.dims[i]);
            const std::string held = graph.expressions.to_string(input.shape[i]);
            const std::string symbol = bare_symbol(graph.expressions, input.shape[i]);
            if (symbol.empty() && pool.to_string(wanted) != held)
                throw_error(ErrorCode::usage,
                            "dimension {} of input {} is fixed to {} in this file; export it with a dynamic dimension",
                            i, shape.input, held);
            if (!symbol.empty() && !(replace.try_emplace(symbol, wanted).first->second == wanted))
                throw_error(ErrorCode::usage, "the shapes give {} two values", symbol);
        }
    }
    for (Tensor& tensor : graph.tensors) {
        for (Expression& dim : tensor.shape) dim = pool.import(graph.expressions, dim, replace);
        for (Expression& stride : tensor.strides) stride = pool.import(graph.expressions, stride, replace);
    }
    replace_names(graph, pool, replace);
    graph.expressions = std::move(pool);
}

MappedFile::MappedFile(const std::string& path) {
    const Descriptor file = open_file(path);
    struct stat status {};
    if (::fstat(file.number(), &status) == 0 && status.st_size > 0) {
        size_ = static_cast<std::size_t>(status.st_size);
        void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
        if (mapping == MAP_FAILED) throw_error(ErrorCode::model, "{}: {}", path, std::strerror(errno));
        data_ = static_cast<const char*>(mapping);
    }
    if (size_ > large_file_bytes) ::madvise(const_cast<char*>(data_), size_, MADV_RANDOM);
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::release() const noexcept {
    if (data_) ::madvise(const_cast<char*>(data_), size_, MADV_DONTNEED);
}

}  // namespace ftax
