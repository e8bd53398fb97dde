#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ftax/expression.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// Canonical operators. Importers map every operator of their format to one of these, so that one model gives the same
/// Graph from any exporter. Attribute names are in braces; dimensions come from the tensors.
enum class OpKind : std::uint8_t {
    // contractions
    conv,  ///< inputs x[N,C,spatial…], w[K,C/groups,kernel…], bias?; {stride,pad_begin,pad_end,dilation,groups}
    conv_transpose,  ///< inputs x, w[C,K/groups,kernel…], bias?; attributes of conv
    linear,          ///< inputs x[…,k], w[n,k] (or [k,n] with {transposed_weight=0}), bias?: one fused GEMM
    matmul,  ///< inputs a[…,m,k], b[…,k,n], broadcast over leading dims; {transpose_a,transpose_b}; c? added with
             ///< addmm/baddbmm
    attention,  ///< fused scaled dot product: q[…,h,s,d], k, v, mask?; {causal}
    recurrent,  ///< LSTM/GRU/RNN: x[seq,N,input]; {cell="lstm|gru|rnn",hidden,layers,directions}
    // normalisation and softmax
    batch_norm,
    layer_norm,
    group_norm,
    instance_norm,
    rms_norm,
    local_response_norm,  ///< {axis} or {groups}
    softmax,
    log_softmax,  ///< {axis}
    // elementwise
    pointwise,  ///< any elementwise function of n inputs with broadcasting; {function="relu|gelu|add|…"}
    cast,       ///< change of element type
    // reductions, scans, order
    reduce,      ///< {function="sum|mean|max|argmax|…",axes,keepdims}
    cumulative,  ///< cumsum, cumprod; {function,axis}
    sort,        ///< sort, topk, unique; {function,axis}
    // windows
    pool,         ///< {function="max|average",kernel,stride,pad_begin,pad_end}
    global_pool,  ///< adaptive pooling; {function}
    resize,       ///< {function="nearest|bilinear|bicubic"}
    // lookups
    embedding,  ///< inputs table[rows,width], indices
    gather,
    scatter,
    // data movement: views in eager frameworks (host cost only), possibly copies elsewhere
    reshape,    ///< any reinterpretation of contiguous data: view, flatten, squeeze, unsqueeze
    transpose,  ///< {perm}
    slice,
    split,
    expand,
    // data movement with copies
    concat,  ///< {axis}
    pad,
    copy,  ///< copy: contiguous, clone, repeat, tile, roll, flip
    fill,  ///< new tensor without inputs read: zeros, full, arange, random
    // others
    fft,  ///< {axes}, or frames of {frame} points with {bins} results; {pairs}: the last dimension is real and
          ///< imaginary
    quantize,
    dequantize,
    nonzero,     ///< data-dependent output size: the host waits
    to_host,     ///< item(), device-to-host copy: the host waits
    shape,       ///< shape arithmetic on the host
    identity,    ///< no kernel and no host work: dropout in eval mode, detach
    all_reduce,  ///< sums a tensor over {ranks} cards
    control,     ///< If/Loop/Scan whose body was not inlined
    custom,      ///< operator without a rule: modelled as memory-bound, lowers the coverage
};
inline constexpr int op_kind_count = static_cast<int>(OpKind::custom) + 1;

/// Attributes of a grouped matmul (rows sorted by expert, one weight per expert): number of experts, experts per token.
inline constexpr std::string_view experts_attribute = "experts", experts_per_token_attribute = "experts_per_token";

[[nodiscard]] std::string_view name_of(OpKind kind) noexcept;
[[nodiscard]] std::optional<OpKind> op_kind_from_name(std::string_view name) noexcept;

using TensorId = std::uint32_t;
using OpId = std::uint32_t;
inline constexpr TensorId no_tensor = ~TensorId{0};  ///< an absent optional input
inline constexpr OpId no_op = ~OpId{0};

enum class TensorRole : std::uint8_t {
    activation,
    input,
    weight,    ///< parameter or buffer, constant over a run, read from memory
    constant,  ///< small value known at import: folded, never read by a kernel
};

/// Type of a tensor with known numbers only.
struct TensorType {
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
};

struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    TensorRole role = TensorRole::activation;
    bool known_shape = true;          ///< false: downstream of an operator without a shape rule
    std::vector<Expression> shape;    ///< one expression per dimension; empty for a scalar
    std::vector<Expression> strides;  ///< in elements; empty means contiguous, row-major
    OpId producer = no_op;
};

using AttributeValue = std::variant<std::int64_t, double, std::vector<std::int64_t>, std::string>;
struct Attribute {
    std::string name;
    AttributeValue value;
    friend bool operator==(const Attribute&, const Attribute&) = default;
};

struct Op {
    OpKind kind = OpKind::custom;
    std::string name;              ///< unique within the graph
    std::string source;            ///< operator name in the file: "Conv", "aten::conv2d", "com.microsoft::Gelu"
    std::string module;            ///< path of the calling module ("layer1.0.conv1"); empty if not recorded
    std::vector<TensorId> inputs;  ///< no_tensor where an optional input is absent
    std::vector<TensorId> outputs;
    std::vector<Attribute> attributes;

    template <class... Kinds>
    [[nodiscard]] bool is(Kinds... kinds) const noexcept {  ///< true if `kind` is one of these
        return ((kind == kinds) || ...);
    }
    /// Returns the attribute or `fallback`; a value of another type counts as absent (importers check types).
    [[nodiscard]] std::int64_t integer(std::string_view attribute, std::int64_t fallback) const;
    [[nodiscard]] std::span<const std::int64_t> integers(std::string_view attribute) const;
    [[nodiscard]] std::string_view text(std::string_view attribute) const;
};

/// One call of an nn.Module in eager mode; its Python overhead is part of the host cost.
struct ModuleCall {
    std::string path;
    std::string type;  ///< class name when known ("torch.nn.modules.conv.Conv2d")
};

/// An If whose condition is unknown before the run; the graph contains the operators of one branch.
struct UndecidedBranch {
    std::string name;
    bool then_taken = false;
};

/// Range of a symbol for which the exporter guarantees that the program is valid.
struct SymbolRange {
    std::string symbol;
    std::int64_t least = 0, greatest = std::numeric_limits<std::int64_t>::max();
};

/// Two symbolic sizes that an operator requires to be equal; bind() compares them.
struct SizeCheck {
    std::string op;  ///< name and source of the operator, for messages
    Expression is, must_be;
    bool or_one = false;  ///< `is` may also be 1 (broadcast)
};

/// A network: operators in execution order, framework-neutral, shapes symbolic.
struct Graph {
    std::string name;
    std::string format;  ///< "onnx", "pt2", "torchscript", "text", "builder"
    ExpressionPool expressions;
    std::vector<Tensor> tensors;
    std::vector<Op> ops;
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<ModuleCall> module_calls;
    std::vector<UndecidedBranch> undecided;
    std::set<std::string> loops, conditions;  ///< names that ImportOptions::trip_counts and branches may use
    std::vector<SymbolRange> ranges;
    std::map<std::string, std::string, std::less<>> other_names;  ///< names of dimensions in the file → their symbols
    std::vector<SizeCheck> size_checks;                           ///< collected by load_graph()
    std::vector<std::string> warnings;                            ///< assumptions of the importer
    std::shared_ptr<const struct ImageEncoder> image_encoder;     ///< of a language model read from its config.json
    std::string no_images = "only a config.json with a vision_config takes images";  ///< why it has none
};

/// What makes the tokens of images: one pass over `batch` images, and the tokens of a prompt that each takes.
struct ImageEncoder {
    Graph graph;
    std::int64_t tokens = 0;
};

/// Sizes of a graph for one binding of its symbols. Rebinding the same object does not allocate.
struct BoundShapes {
    std::vector<std::int64_t> values;  ///< value of every expression of the pool

    [[nodiscard]] std::int64_t operator[](Expression e) const { return values[e.id]; }
};

/// Returns the bindings with names replaced by symbols of `graph`: `bindings` may use the file's names of dimensions
/// (Graph::other_names). Throws Error{usage} for two values of one symbol.
[[nodiscard]] ShapeBindings by_symbol(const Graph& graph, const ShapeBindings& bindings);

/// Throws Error{usage} naming each binding of a symbol that `graph` lacks.
void require_symbols(const Graph& graph, const ShapeBindings& bindings);

/// Binds every symbol of `graph`; checks that no dimension is negative and that operand sizes agree. Throws
/// Error{usage} naming each unbound symbol with the flag that sets it, and each binding of an unknown symbol;
/// Error{limit} on overflow; Error{model} on a negative dimension or a size check that fails.
void bind(const Graph& graph, const ShapeBindings& bindings, BoundShapes& bound);
[[nodiscard]] BoundShapes bind(const Graph& graph, const ShapeBindings& bindings);

/// Returns the product of the dimensions. Throws Error{limit} beyond int64.
[[nodiscard]] std::int64_t element_count(const Tensor& tensor, const BoundShapes& bound);
/// Returns the bytes of a densely stored tensor; sub-byte types are packed. Throws Error{limit} beyond int64.
[[nodiscard]] std::int64_t byte_count(const Tensor& tensor, const BoundShapes& bound);
[[nodiscard]] TensorType bound_type(const Tensor& tensor, const BoundShapes& bound);

/// Sorts the operators so that every input is produced before it is read. Returns false if they were already in order.
/// Throws Error{model} naming a cycle.
bool sort_topologically(Graph& graph);

}  // namespace ftax
