#include "graphs/onnx/shared_weights.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/onnx/external_data.hpp"

namespace ftax::onnx_import {
namespace {

constexpr std::uint32_t raw_data = 9;                         // of TensorProto
constexpr std::int64_t largest_side = std::int64_t{1} << 28;  // of a matrix whose bytes are still counted in 64 bits
constexpr std::size_t most_tables = 16;                       // a guess: tokens, positions, types; of text and speech

/// A matrix of numbers in the file.
class Matrix {
  public:
    Matrix(const TensorRecord& record, const std::string& directory)
        : record_(record), directory_(directory), value_bytes_(bits_of(dtype_from_onnx(record.data_type)) / 8) {
        if (record.external || record.message.size() != 1) return;
        WireReader reader(record.message[0]);
        for (Field field; reader.next(field);) {
            if (field.number == raw_data && field.type == WireType::length_delimited) raw_ = field.bytes.data;
        }
    }

    /// The bytes of one number; nullopt where they cannot be read.
    [[nodiscard]] std::optional<std::string> at(std::int64_t row, std::int64_t column) const {
        const std::int64_t offset = (row * record_.dims[1] + column) * value_bytes_;
        if (record_.external) {
            ExternalData value = *record_.external;
            value.offset += static_cast<std::uint64_t>(offset);
            value.length = static_cast<std::uint64_t>(value_bytes_);
            try {
                return read_external_data(value, directory_, value_bytes_);
            } catch (const Error&) {
                return std::nullopt;
            }
        }
        if (static_cast<std::uint64_t>(offset + value_bytes_) > raw_.size()) return std::nullopt;
        return std::string(raw_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(value_bytes_)));
    }

  private:
    const TensorRecord& record_;
    const std::string& directory_;
    std::int64_t value_bytes_;
    std::string_view raw_;
};

bool at_one_place(const TensorRecord& a, const TensorRecord& b) {
    return a.external && b.external && a.external->location == b.external->location &&
           a.external->offset == b.external->offset;
}

bool equal_values(const TensorRecord& embedding, const TensorRecord& head, const std::string& directory) {
    const bool same = embedding.dims == head.dims;
    const bool transposed = embedding.dims[0] == head.dims[1] && embedding.dims[1] == head.dims[0];
    if (embedding.data_type != head.data_type || (!same && !transposed)) return false;
    if (same && at_one_place(embedding, head)) return true;
    const Matrix a(embedding, directory), b(head, directory);
    constexpr std::int64_t samples = 64;
    std::optional<std::string> first;
    bool varied = false;  // what holds one number everywhere has not been trained and may equal anything
    bool straight = same, turned = transposed;
    for (std::int64_t i = 0; i < samples && (straight || turned); ++i) {
        const std::int64_t row = i * (embedding.dims[0] - 1) / (samples - 1), column = (i * 37) % embedding.dims[1];
        const auto value = a.at(row, column);
        if (!value) return false;
        if (!first) first = value;
        varied = varied || *value != *first;
        straight = straight && b.at(row, column) == value;
        turned = turned && b.at(column, row) == value;
    }
    return varied && (straight || turned);
}

}  // namespace

void share_embedding(Graph& graph, const GraphRecord& records, const std::string& directory) {
    std::unordered_map<std::string_view, const TensorRecord*> matrices;
    for (const TensorRecord& record : records.initializers) {
        if (record.dims.size() != 2) continue;
        const auto [least, most] = std::minmax(record.dims[0], record.dims[1]);
        if (least > 0 && most <= largest_side) matrices.emplace(record.name, &record);
    }
    const auto record_of = [&](const Op& op, std::size_t input) -> const TensorRecord* {
        if (op.inputs.size() <= input || op.inputs[input] == no_tensor) return nullptr;
        const Tensor& tensor = graph.tensors[op.inputs[input]];
        const auto found = matrices.find(tensor.name);
        return tensor.role == TensorRole::weight && found != matrices.end() ? found->second : nullptr;
    };
    std::vector<std::pair<TensorId, const TensorRecord*>> tables;
    for (const Op& op : graph.ops) {
        if (op.kind != OpKind::embedding || tables.size() == most_tables) continue;
        if (const TensorRecord* record = record_of(op, 0)) tables.emplace_back(op.inputs[0], record);
    }
    for (Op& op : graph.ops) {
        const TensorRecord* head = op.kind == OpKind::linear ? record_of(op, 1) : nullptr;
        if (head == nullptr) continue;
        const auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) {
            return t.second != head && equal_values(*t.second, *head, directory);
        });
        if (table == tables.end()) continue;
        graph.tensors[op.inputs[1]].shape = graph.tensors[table->first].shape;
        op.inputs[1] = table->first;
        std::erase_if(op.attributes, [](const Attribute& a) { return a.name == "transposed_weight"; });
    }
}

}  // namespace ftax::onnx_import
