#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graphs/aten/aten_shape_rules.hpp"

/// Attributes of canonical operators, read from the arguments of ATen calls; the table in aten_table.cpp names them.
namespace ftax::aten_attributes {

using Integers = std::vector<std::int64_t>;

/// Context of a reader: the call, its graph, and the destination of the attributes.
struct Context : aten_shapes::Call {
    std::vector<Attribute>& attributes;

    void add(std::string name, AttributeValue value) const {
        attributes.push_back({std::move(name), std::move(value)});
    }
    [[nodiscard]] std::size_t input_rank() const { return first().shape.size(); }
};

using ReaderFunction = void(const Context&);
using Reader = ReaderFunction*;

ReaderFunction no_attributes, read_conv, read_pool;
ReaderFunction read_dim;         ///< defaults to the last dimension
ReaderFunction read_first_dim;   ///< defaults to the first dimension
ReaderFunction read_joined_dim;  ///< dimension of a concatenation
ReaderFunction read_new_dim;     ///< dimension added to the result
ReaderFunction read_squeezed, read_slice, read_select, read_roll;
ReaderFunction read_normalized;  ///< first dimension of a layer norm
ReaderFunction read_training;    ///< a batch norm that computes its statistics
ReaderFunction read_groups, read_reduce, read_permute, read_transpose, read_matrix_transpose, read_causal,
    read_recurrent;
ReaderFunction read_fft, read_stft;
ReaderFunction read_experts;  ///< grouped product with weights per group

}  // namespace ftax::aten_attributes
