#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/import.hpp"
#include "graphs/ir/control_flow.hpp"
#include "graphs/onnx/records.hpp"
#include "graphs/onnx/scalar.hpp"

namespace ftax::onnx_import {

using Scalars = std::vector<Scalar>;

/// Largest tensor whose elements are followed one by one.
inline constexpr std::int64_t max_followed_elements = 512;
inline constexpr std::size_t max_rank = 32;

/// What the importer knows of a tensor beyond the Graph.
struct TensorNotes {
    std::unique_ptr<Scalars> value;                   ///< elements in row-major order
    const TensorRecord* record = nullptr;             ///< initializer whose payload may be decoded
    std::unique_ptr<std::vector<TensorId>> sequence;  ///< elements of a sequence whose members are known
};

/// The operator as the file calls it: "Conv", "com.microsoft::Gelu".
[[nodiscard]] std::string source_of(const NodeRecord& node);

/// The graph under construction, shared by every scope of one model.
struct Construction {
    Graph graph;
    const ImportOptions* options = nullptr;
    std::string directory;                            ///< of the model file; external data is looked for below it
    std::unordered_map<TensorId, TensorNotes> notes;  ///< of the few tensors that have any
    std::deque<TensorRecord> records;                 ///< tensors that stand in attributes
    std::uint64_t spent = 0;                          ///< of max_nodes
    ShapeMath math{graph.expressions};

    TensorId add_tensor(std::string name, DType dtype, TensorRole role, std::optional<Dims> dims);
    TensorId add_constant(std::string name, DType dtype, Dims dims, Scalars value);
    /// Appends an operator whose only output is a new tensor of its name, which it returns.
    TensorId add_op(Op op, DType dtype, std::optional<Dims> dims);
    /// Appends an operator whose outputs are there.
    void append(Op op);
    /// Adds an initializer; its role follows from its size: small integers and scalars are constants, the rest weights.
    TensorId add_record(std::string name, const TensorRecord& record);
    /// Elements of a tensor, decoded if need be; nullptr when they are not known one by one.
    const Scalars* value_of(TensorId tensor);
    void warn(std::string message) { ftax::warn(graph, std::move(message)); }
    /// Counts work that inlining, sequences and folding do beyond the nodes of the file: a unit is about what a node
    /// takes. Throws Error{limit} naming the node when a file, which may be small, asks for more than
    /// ImportOptions::max_nodes.
    void spend(std::uint64_t units, std::string_view node);
    [[nodiscard]] bool is_folded(TensorId tensor) const;
};

struct OpRow;

/// What an operator's rule sees of one node, and where it leaves its results.
class Node : public ShapeRules<Node> {
  public:
    Node(Construction& construction, const NodeRecord& record, std::vector<AttributeRecord> attributes,
         std::vector<TensorId> inputs, std::int64_t opset, std::string name);

    struct Output {
        DType dtype = DType::unknown;
        std::optional<Dims> dims;  ///< empty: even the rank is unknown
        std::optional<Scalars> value;
        TensorId alias = no_tensor;  ///< the output is this very tensor
        std::optional<std::vector<TensorId>> sequence;
        bool is_sequence = false;
    };

    Construction& construction;
    const NodeRecord& record;
    const std::vector<AttributeRecord> attributes;
    const std::vector<TensorId> inputs;
    const std::int64_t opset;
    const std::string name;
    OpKind kind = OpKind::custom;
    std::string_view function;             ///< of pointwise, reduce, pool, …
    std::vector<Attribute> op_attributes;  ///< canonical attributes of the Op to be
    std::vector<TensorId> op_inputs;       ///< what the Op reads
    std::vector<Output> outputs;

    // inputs; throw Error{model} naming the node when a required input is missing
    [[nodiscard]] bool has(std::size_t input) const noexcept;
    [[nodiscard]] const Tensor& tensor(std::size_t input) const;
    [[nodiscard]] const Dims& dims(std::size_t input) const { return tensor(input).shape; }
    [[nodiscard]] std::size_t rank(std::size_t input) const { return dims(input).size(); }
    [[nodiscard]] bool ranked(std::size_t input) const { return tensor(input).known_shape; }
    [[nodiscard]] DType dtype(std::size_t input) const { return tensor(input).dtype; }
    [[nodiscard]] const Scalars* value(std::size_t input) const;
    /// Elements as integers; an element that is not known is unknown_dim. nullopt when nothing is known.
    [[nodiscard]] std::optional<Dims> expressions(std::size_t input) const;
    /// Elements as numbers, when all are constants.
    [[nodiscard]] std::optional<std::vector<std::int64_t>> integers_of(std::size_t input) const;
    /// The only element; unknown_dim where there are more or it is not known.
    [[nodiscard]] Expression only(std::size_t input) const;
    /// Elements as a shape; unknown dims where no more is known than how many there are.
    [[nodiscard]] std::optional<Dims> target_shape(std::size_t input) const;
    [[nodiscard]] std::optional<double> scalar(std::size_t input) const;

    // attributes; throw Error{model} for one of the wrong type
    [[nodiscard]] const AttributeRecord* attribute(std::string_view key) const {
        return find_attribute(attributes, key);
    }
    [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t fallback) const;
    [[nodiscard]] std::int64_t required_integer(std::string_view key) const;
    [[nodiscard]] double real(std::string_view key, double fallback) const;
    [[nodiscard]] std::string_view text(std::string_view key, std::string_view fallback = {}) const;
    [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
    [[nodiscard]] std::optional<Dims> constants(std::string_view key) const;  ///< a list of integers
    /// A list that older opsets give as an attribute and newer ones as an input. Outer nullopt: given but not known.
    struct List {
        bool given = false;
        std::optional<std::vector<std::int64_t>> values;
    };
    [[nodiscard]] List list(std::string_view key, std::size_t input) const;

    [[nodiscard]] ShapeMath& math() const noexcept { return construction.math; }

    // results: output 0 begins with type and shape of input 0, except for rows of any rank
    void apply(const OpRow& row);
    [[nodiscard]] Dims& result() { return *outputs[0].dims; }  ///< shape of output 0
    [[nodiscard]] std::size_t output_count() const noexcept { return outputs.size(); }
    void output(std::size_t index, DType dtype, Dims dims);
    void unknown_output(std::size_t index, DType dtype);
    void value_output(std::size_t index, DType dtype, Dims dims, Scalars value);
    void set(std::string_view key, AttributeValue value) {
        op_attributes.push_back({std::string(key), std::move(value)});
    }
    /// Sets the attribute `axis` to an axis counted from the front, and returns it.
    std::size_t set_axis(std::int64_t value, std::size_t rank) {
        const std::size_t at = axis(value, rank);
        set("axis", static_cast<std::int64_t>(at));
        return at;
    }
    /// The Op reads no more than the first `count` inputs.
    void read_first(std::size_t count);
    /// Adds an operator of its own in front of the node's own, for operators that stand for several.
    TensorId emit(OpKind op, std::string_view step, const std::vector<TensorId>& op_inputs,
                  std::vector<Attribute> attributes, DType dtype, Dims dims);

    using ShapeRules<Node>::fail;
    [[noreturn]] void fail(std::string_view what) const;

  private:
    const AttributeRecord* typed(std::string_view key, std::int64_t type, std::string_view what) const;

    int emitted_ = 0;
};

enum RowFlags : unsigned {
    none = 0,
    any_rank = 1,      ///< the rule copes with inputs of unknown rank
    never_folded = 2,  ///< runs even on constants: random numbers, dequantisation of weights
    // Inputs that the Op reads; the others are shapes, axes or scalars, or are fused into it.
    reads_none = 4,
    reads_first = 8,
    reads_two = 16,
};

struct OpRow {
    std::string_view name;  ///< "Conv", "com.microsoft::Gelu"
    OpKind kind;
    void (*rule)(Node&);
    int required_inputs = 1;
    void (*evaluate)(Node&) = nullptr;  ///< computes the outputs' elements when those of all inputs are known
    unsigned flags = none;
    std::optional<DType> type{};  ///< of output 0, in place of what the rule says
    std::string_view function{};  ///< attribute `function` of the Op; empty when its kind says all
};

/// All operators that have a row, sorted by name.
[[nodiscard]] std::span<const OpRow> op_table();
/// Finds the row of an operator; nullptr for one that ftax does not know.
[[nodiscard]] const OpRow* find_row(std::string_view domain, std::string_view op_type);

}  // namespace ftax::onnx_import
