#include <algorithm>
#include <array>
#include <map>

#include "graphs/ir/einsum.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {
namespace {

std::int64_t group_count(const Node& n) {
    const std::int64_t groups = n.integer("group", 1);
    if (groups < 1 || groups > largest_window) n.fail("group {}", groups);
    return groups;
}

void check_divides(const Node& n, std::int64_t groups, Expression dim, std::string_view what) {
    const auto channels = n.math().constant_value(dim);
    if (channels && *channels % groups != 0) n.fail("group {} does not divide {} {}", groups, *channels, what);
}

/// Dimensions of a convolution's result, whose attributes it sets.
Dims convolved(Node& n, const Dims& input, const Dims& weight) {
    if (input.size() < 3) n.fail("input of rank {}; a convolution needs 3 or more", input.size());
    if (weight.size() != input.size()) n.fail("weight of rank {} for an input of rank {}", weight.size(), input.size());
    const std::int64_t groups = group_count(n);
    check_divides(n, groups, input[1], "channels");
    check_divides(n, groups, weight[0], "output channels");
    const auto channels = n.math().constant_value(input[1]), group_channels = n.math().constant_value(weight[1]);
    if (channels && group_channels && *channels / groups != *group_channels)
        n.fail("weight takes {} × {} channels, the input has {}", groups, *group_channels, *channels);
    const WindowShape window = read_window(n, Dims(weight.begin() + 2, weight.end()));
    Dims result{input[0], weight[0]};
    for (std::size_t i = 0; i < window.kernel.size(); ++i) result.push_back(window.output(n, input[i + 2], i, false));
    window.write(n, input);
    n.set("groups", groups);
    if (n.attribute("activation")) n.set("activation", std::string(n.text("activation")));
    return result;
}

/// Whether an operand is multiplied with its last dimensions exchanged.
bool is_transposed(const Node& n, std::string_view key) {
    return n.integer(key, 0) != 0;
}

/// Sets the product of the first two inputs, each transposed if its attribute says so.
void multiply_transposed(Node& n) {
    const auto operand = [&](std::size_t input, std::string_view key) {
        Dims dims = n.dims(input);
        if (is_transposed(n, key) && dims.size() > 1) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
        return dims;
    };
    n.output(0, n.dtype(0), n.multiplied(operand(0, "transA"), operand(1, "transB")));
}

void set_transposed(Node& n) {
    n.set("transpose_a", std::int64_t{is_transposed(n, "transA")});
    n.set("transpose_b", std::int64_t{is_transposed(n, "transB")});
}

}  // namespace

void conv(Node& n) {
    n.output(0, n.dtype(0), convolved(n, n.dims(0), n.dims(1)));
}

void qlinear_conv(Node& n) {
    n.output(0, n.dtype(7), convolved(n, n.dims(0), n.dims(3)));
    n.op_inputs = {n.inputs[0], n.inputs[3]};
    if (n.has(8)) n.op_inputs.push_back(n.inputs[8]);
}

void conv_transpose(Node& n) {
    const Dims& input = n.dims(0);
    const Dims& weight = n.dims(1);
    if (input.size() < 3 || weight.size() != input.size()) n.fail("ranks of input and weight do not fit a convolution");
    const std::int64_t groups = group_count(n);
    check_divides(n, groups, input[1], "channels");
    const WindowShape window = read_window(n, Dims(weight.begin() + 2, weight.end()));
    const std::size_t spatial = window.kernel.size();
    const auto extra = n.integers("output_padding").value_or(std::vector<std::int64_t>(spatial, 0));
    const auto wanted = n.integers("output_shape");
    if (extra.size() != spatial || (wanted && wanted->size() < spatial))
        n.fail("output_padding or output_shape has a wrong length");
    for (const std::int64_t e : extra)
        if (e < 0 || e > largest_window) n.fail("output_padding contains {}", e);
    ShapeMath& math = n.math();
    Dims result{input[0], math.multiply(weight[1], groups)};
    for (std::size_t i = 0; i < spatial; ++i) {
        if (wanted) {
            result.push_back(math.constant((*wanted)[wanted->size() - spatial + i]));
        } else if (window.same_upper || window.same_lower) {
            result.push_back(math.multiply(input[i + 2], window.stride[i]));
        } else {
            result.push_back(math.add(n.window_input(input[i + 2], window.axis(n, i)), extra[i]));
        }
    }
    window.write(n, input);
    n.set("groups", groups);
    n.output(0, n.dtype(0), std::move(result));
}

void matmul(Node& n) {
    n.output(0, n.dtype(0), n.multiplied(n.dims(0), n.dims(1)));
}

void qlinear_matmul(Node& n) {
    n.output(0, n.dtype(7), n.multiplied(n.dims(0), n.dims(3)));
    n.op_inputs = {n.inputs[0], n.inputs[3]};
}

void fused_matmul(Node& n) {
    multiply_transposed(n);
    set_transposed(n);
}

/// Inputs and results are [N, spatial…, C].
void nhwc_conv(Node& n) {
    const Dims x = n.dims(0);
    if (x.size() < 3 || n.rank(1) != x.size()) n.fail("input of rank {} and weight of rank {}", x.size(), n.rank(1));
    Dims first{x[0], x.back()};
    first.insert(first.end(), x.begin() + 1, x.end() - 1);
    // ONNX Runtime keeps a filter's channels in place on the CPU and last on the GPU.
    Dims weight = n.dims(1);
    const Expression group = n.math().floor_divide(x.back(), n.math().constant(group_count(n)));
    if (weight[1] != group && weight.back() == group) {
        std::rotate(weight.begin() + 1, weight.end() - 1, weight.end());
        n.construction.graph.tensors[n.inputs[1]].shape = weight;
    }
    const DType dtype = n.dtype(0);
    const Dims result = convolved(n, first, weight);
    std::vector<TensorId> operands = n.inputs;
    operands[0] = n.emit(OpKind::reshape, "channels_first", {n.inputs[0]}, {}, dtype, first);
    n.op_inputs = {n.emit(OpKind::conv, "conv", operands, std::move(n.op_attributes), dtype, result)};
    n.op_attributes.clear();
    n.kind = OpKind::reshape;
    Dims last{result[0]};
    last.insert(last.end(), result.begin() + 2, result.end());
    last.push_back(result[1]);
    n.output(0, dtype, std::move(last));
}

void gemm(Node& n) {
    if (n.rank(0) != 2 || n.rank(1) != 2) n.fail("A and B must have rank 2");
    multiply_transposed(n);
    const bool plain = n.real("alpha", 1) == 1 && n.real("beta", 1) == 1 && !is_transposed(n, "transA");
    const bool row_bias = !n.has(2) || n.rank(2) == 1 || (n.rank(2) == 2 && n.math().is_constant(n.dims(2)[0], 1));
    if (plain && row_bias && n.construction.is_folded(n.inputs[1])) {
        n.kind = OpKind::linear;
        if (!is_transposed(n, "transB")) n.set("transposed_weight", std::int64_t{0});
        return;
    }
    set_transposed(n);
}

namespace {

/// Permutes and folds an operand to [batch, rows, columns], as torch.einsum does.
TensorId to_matrix(Node& n, std::size_t input, std::string_view labels, const std::array<std::string, 3>& groups) {
    ShapeMath& math = n.math();
    const std::vector<std::int64_t> perm = einsum_permutation(labels, groups[0] + groups[1] + groups[2]);
    Dims permuted, folded;
    for (const std::int64_t at : perm) permuted.push_back(n.dims(input)[static_cast<std::size_t>(at)]);
    for (std::size_t i = 0, begin = 0; i < groups.size(); begin += groups[i++].size())
        folded.push_back(math.product(permuted, begin, begin + groups[i].size()));
    TensorId tensor = n.inputs[input];
    if (!std::ranges::is_sorted(perm))
        tensor = n.emit(OpKind::transpose, "permute", {tensor}, {{"perm", perm}}, n.dtype(input), permuted);
    if (folded != permuted) tensor = n.emit(OpKind::reshape, "reshape", {tensor}, {}, n.dtype(input), folded);
    return tensor;
}

}  // namespace

void einsum(Node& n) {
    std::vector<std::size_t> ranks;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) ranks.push_back(n.rank(i));
    const EinsumEquation equation = read_einsum(n.text("equation"), ranks);
    if (!equation.problem.empty()) n.fail(equation.problem);
    std::map<char, Expression> sizes;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        for (std::size_t d = 0; d < ranks[i]; ++d) {
            const auto [known, added] = sizes.emplace(equation.operands[i][d], n.dims(i)[d]);
            if (!added) known->second = n.broadcast(known->second, n.dims(i)[d]);
        }
    }
    const auto dims_of = [&](std::string_view labels) {
        return mapped(labels, [&](char label) { return sizes.at(label); });
    };
    n.output(0, n.dtype(0), dims_of(equation.result));
    if (ranks.size() != 2) {
        n.kind = OpKind::reduce;
        n.function = "einsum";
        return;
    }
    const std::string &left = equation.operands[0], &right = equation.operands[1];
    const auto [batch, rows, columns, summed] =
        einsum_roles(left, right, equation.result, equation.result + left + right);
    const std::string order = batch + rows + columns;
    // An outer product, a trace, a diagonal or a sum over one operand: one elementwise pass.
    if (summed.empty() || order.size() != equation.result.size() ||
        left.size() != batch.size() + rows.size() + summed.size() ||
        right.size() != batch.size() + summed.size() + columns.size()) {
        n.kind = OpKind::pointwise;
        n.function = "mul";
        return;
    }
    const TensorId a = to_matrix(n, 0, left, {batch, rows, summed});
    const TensorId b = to_matrix(n, 1, right, {batch, summed, columns});
    const std::vector<Tensor>& tensors = n.construction.graph.tensors;
    const Dims product{tensors[a].shape[0], tensors[a].shape[1], tensors[b].shape[2]}, unfolded = dims_of(order);
    if (unfolded == product && order == equation.result) {
        n.op_inputs = {a, b};
        return;
    }
    TensorId tensor = n.emit(OpKind::matmul, "bmm", {a, b}, {}, n.dtype(0), product);
    const std::vector<std::int64_t> perm = einsum_permutation(order, equation.result);
    if (std::ranges::is_sorted(perm)) {
        n.kind = OpKind::reshape;
        n.op_inputs = {tensor};
        return;
    }
    if (unfolded != product) tensor = n.emit(OpKind::reshape, "reshape", {tensor}, {}, n.dtype(0), unfolded);
    n.kind = OpKind::transpose;
    n.op_inputs = {tensor};
    n.set("perm", perm);
}

void recurrent(Node& n) {
    const Dims& x = n.dims(0);
    const Dims& w = n.dims(1);
    if (x.size() != 3 || w.size() != 3) n.fail("X and W must have rank 3");
    const std::int64_t gates = n.function == "lstm" ? 4 : n.function == "gru" ? 3 : 1;
    ShapeMath& math = n.math();
    const Expression hidden =
        n.attribute("hidden_size") ? math.constant(n.integer("hidden_size", 0)) : math.floor_divide(w[1], gates);
    const std::int64_t directions = n.text("direction", "forward") == "bidirectional" ? 2 : 1;
    const bool batch_first = n.integer("layout", 0) == 1;
    const Expression length = x[batch_first ? 1 : 0];
    const Expression batch = x[batch_first ? 0 : 1];
    const Expression d = math.constant(directions);
    n.output(0, n.dtype(0), batch_first ? Dims{batch, length, d, hidden} : Dims{length, d, batch, hidden});
    const Dims state = batch_first ? Dims{batch, d, hidden} : Dims{d, batch, hidden};
    n.output(1, n.dtype(0), state);
    n.output(2, n.dtype(0), state);
    n.set("cell", std::string(n.function));
    n.function = {};
    if (const auto known = math.constant_value(hidden)) n.set("hidden", *known);
    n.set("layers", std::int64_t{1});
    n.set("directions", directions);
    if (batch_first) n.set("batch_first", std::int64_t{1});
}

void quantize(Node& n) {
    const auto stated = [&] { return n.integer("output_dtype", 0); };
    n.output(0, n.has(2) ? n.dtype(2) : stated() != 0 ? dtype_from_onnx(stated()) : DType::u8, n.dims(0));
}

void dequantize(Node& n) {
    n.output(0, n.dtype(1), n.dims(0));
}

void dynamic_quantize(Node& n) {
    n.output(0, DType::u8, n.dims(0));
    n.output(1, DType::f32, {});
    n.output(2, DType::u8, {});
}

void qlinear_same(Node& n) {
    // QLinearAdd, QLinearMul: A, scale, zero, B, scale, zero, …; the others have one tensor operand
    const bool two = n.function == "add" || n.function == "mul";
    n.output(0, n.dtype(0), two ? n.broadcast(n.dims(0), n.dims(3)) : n.dims(0));
    n.op_inputs = {n.inputs[0]};
    if (two) n.op_inputs.push_back(n.inputs[3]);
}

void matmul_nbits(Node& n) {
    Dims result = n.dims(0);
    if (result.empty()) n.fail("A is a scalar");
    result.back() = n.math().constant(n.required_integer("N"));
    n.output(0, n.dtype(0), std::move(result));
    // The operator's weight is stored in blocks; a linear operator wants [n, k] in the packed element type.
    const std::int64_t bits = n.integer("bits", 4);
    const DType packed = bits == 2 ? DType::u2 : bits == 8 ? DType::u8 : DType::u4;
    const Dims dims{n.math().constant(n.required_integer("N")), n.math().constant(n.required_integer("K"))};
    const TensorId weight = n.construction.add_tensor(n.name + "/weight", packed, TensorRole::weight, dims);
    if (bits == 4 || bits == 8) n.set(weights_attribute, std::string(bits == 4 ? "w4a16" : "w8a16"));
    n.op_inputs = {n.inputs[0], weight};
    if (n.has(5)) n.op_inputs.push_back(n.inputs[5]);
}

}  // namespace ftax::onnx_import
