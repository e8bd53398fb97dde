#include "graphs/aten/aten_table.hpp"

#include "src/core/data_rows.hpp"
#include "src/core/embedded.hpp"
#include "src/core/named.hpp"
#include "src/core/operator_rows.hpp"

namespace ftax {
namespace {

std::vector<AtenRow> read_rows() {
    using namespace aten_attributes;
    using namespace aten_shapes;
    const auto shapes = by_name<Inference*>(FTAX_NAMED(
        conv, conv_transpose, linear, matmul, integer_matmul, matmul_added, grouped_matmul, attention, recurrent,
        recurrent_cell, same, normalized, same_cast, same_float, pointwise, division, comparison, same_boolean, polar,
        where, differences, outer, convert, convert_like, any_reduce, arg_reduce, reduce, extremum, moments, histogram,
        sort, topk, pool, pool_with_indices, adaptive_pool, resize, grid_sample, embedding, gather, index, view,
        flatten, real_view, view_like, complex_view, movedim, diagonal, chunk, split, tensor_split, unbind,
        broadcast_tensors, meshgrid, concat, stack, unfold_windows, one_hot, repeat_interleave, arange, eye, fill_float,
        fill, fft, tensordot, einsum, same_with_weights, pairwise_distance, edited<halved>, edited<index_select>,
        edited<unflatten>, edited<squeeze>, edited<unsqueeze>, edited<matrix_transpose>, edited<permute>,
        edited<transpose>, edited<unfold>, edited<narrow>, edited<slice>, edited<select>, edited<expand>, edited<pad>,
        edited<pixel_shuffle>, edited<repeat>));
    const auto readers = by_name<ReaderFunction*>(FTAX_NAMED(
        no_attributes, read_conv, read_experts, read_causal, read_recurrent, read_training, read_normalized,
        read_groups, read_dim, read_reduce, read_pool, read_squeezed, read_new_dim, read_matrix_transpose, read_permute,
        read_transpose, read_slice, read_select, read_first_dim, read_joined_dim, read_roll, read_fft, read_stft));
    const auto appenders = by_name<AppendFunction*>(
        FTAX_NAMED(append_logsumexp, append_cosine_similarity, append_inner_tensor, append_packed_linear,
                   append_tensordot, append_einsum, append_native_attention, append_encoder_layer, append_loss,
                   append_cross_entropy, append_triplet_loss));
    std::vector<AtenRow> rows;
    for_each_data_row(embedded_text("data/aten_operators.tsv"), [&](DataRow row) {
        rows.push_back({row.text(), op_kind_from_name(row.text()).value(), shapes.at(row.text()),
                        readers.at(row.text()), row.text(), appenders.at(row.text())});
    });
    return single_rows<AtenRow>(rows);
}

/// Returns true if an operator belongs to a library of the tables: names of other libraries ("my::add") may have a
/// different meaning.
bool is_of_known_library(std::string_view target) noexcept {
    static constexpr std::string_view libraries[] = {"aten",    "prims",  "quantized_decomposed", "torchvision",
                                                     "torchao", "export", "transformers"};
    const std::size_t colons = target.find("::");
    return colons == std::string_view::npos ||
           std::find(std::begin(libraries), std::end(libraries), target.substr(0, colons)) != std::end(libraries);
}

}  // namespace

const AtenRow* find_aten_row(std::string_view target) {
    if (!is_of_known_library(target)) return nullptr;
    static const std::vector<AtenRow> rows = read_rows();
    const std::string_view name = target.substr(target.rfind(':') + 1);
    const AtenRow* row = find_row<AtenRow>(rows, name);
    return row || !name.ends_with('_') ? row : find_row<AtenRow>(rows, name.substr(0, name.size() - 1));
}

}  // namespace ftax
