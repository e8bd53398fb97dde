#include "graphs/onnx/rules.hpp"
#include "src/core/data_rows.hpp"
#include "src/core/embedded.hpp"
#include "src/core/named.hpp"
#include "src/core/operator_rows.hpp"

namespace ftax::onnx_import {
namespace {

unsigned flags_of(std::string_view words) {
    unsigned flags = none;
    for (const std::string_view word : words_of(words))
        flags |= 1U << DataRow(word).choice<unsigned>("any_rank never_folded reads_none reads_first reads_two");
    return flags;
}

std::vector<OpRow> read_rows() {
    const auto rules = by_name<Rule*>(FTAX_NAMED(
        conv, conv_integer, qlinear_conv, nhwc_conv, conv_transpose, matmul_nbits, affine_grid, einsum, gemm, matmul,
        matmul_integer, qlinear_matmul, fused_matmul, attention, packed_attention, multi_head_attention,
        group_query_attention, recurrent, batch_norm, layer_norm, skip_layer_norm, group_norm, channel_norm, lp_norm,
        softmax, bias_softmax, qlinear_same, same_as_first, broadcast_all, broadcast_boolean, like_first, clip, dropout,
        same_boolean, rotary_embedding, where, bias_function, bias_split_gelu, cast, cast_like, arg_reduce, det, reduce,
        cumulative, multinomial, top_k, unique, pool, global_pool, grid_sample, resize, upsample, embed_layer_norm,
        gather, gather_elements, gather_nd, roi_pool, col2im, max_unpool, one_hot, scatter, flatten, reshape, squeeze,
        unsqueeze, transpose, slice, split, expand, concat, concat_from_sequence, center_crop_pad, pad, depth_to_space,
        tile, window_function, constant, constant_of_shape, mel_weight_matrix, random_shape, range, dft, stft,
        dynamic_quantize, quantize, dequantize, compress, non_max_suppression, nonzero, optional_has_element,
        sequence_length, shape, size, alias_first, optional_pass, sequence_at, sequence_construct, sequence_empty,
        sequence_erase, sequence_insert, split_to_sequence, evaluate_elementwise, evaluate_cast, evaluate_reduce,
        evaluate_cumulative, evaluate_gather, evaluate_scatter_nd, evaluate_copy, evaluate_transpose, evaluate_slice,
        evaluate_split, evaluate_expand, evaluate_concat, evaluate_tile, evaluate_range, evaluate_nonzero));
    std::vector<OpRow> rows;
    for_each_data_row(embedded_text("data/onnx_operators.tsv"), [&](DataRow row) {
        const auto rule = [&] { return rules.at(row.text()); };
        rows.push_back({row.text(), op_kind_from_name(row.text()).value(), rule(), static_cast<int>(row.number()),
                        rule(), flags_of(row.text())});
    });
    return single_rows<OpRow>(rows);
}

}  // namespace

std::span<const OpRow> op_table() {
    static const std::vector<OpRow> rows = read_rows();
    return rows;
}

const OpRow* find_row(std::string_view domain, std::string_view op_type) {
    std::string name(op_type);
    if (!domain.empty()) name = std::string(domain) + "::" + name;
    return ftax::find_row(op_table(), name);
}

}  // namespace ftax::onnx_import
