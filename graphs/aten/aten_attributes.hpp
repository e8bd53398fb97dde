#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graphs/aten/aten_call.hpp"

/// Attributes of canonical operators, read from the arguments of ATen calls; the table in aten_table.cpp names them.
namespace ftax::aten_attributes {

using Integers = std::vector<std::int64_t>;

/// What a reader sees: the call, the graph it goes into, and where the attributes go.
struct Context {
    const Graph& graph;
    const AtenCall& call;
    std::vector<Attribute>& attributes;

    void add(std::string name, AttributeValue value) const {
        attributes.push_back({std::move(name), std::move(value)});
    }
    [[nodiscard]] std::size_t input_rank() const;  ///< fails when the call reads no tensor
};

using Reader = void (*)(const Context&);

void no_attributes(const Context& c);
void read_conv(const Context& c);
void read_pool(const Context& c);
void read_dim(const Context& c);         ///< the last dimension where none is named
void read_first_dim(const Context& c);   ///< the first dimension where none is named
void read_joined_dim(const Context& c);  ///< of a concatenation
void read_new_dim(const Context& c);     ///< of a result with one dimension more
void read_squeezed(const Context& c);
void read_slice(const Context& c);
void read_select(const Context& c);
void read_roll(const Context& c);
void read_normalized(const Context& c);  ///< from which dimension on a layer norm runs
void read_groups(const Context& c);
void read_training(const Context& c);  ///< a batch norm that computes its statistics
void read_reduce(const Context& c);
void read_permute(const Context& c);
void read_transpose(const Context& c);
void read_matrix_transpose(const Context& c);
void read_causal(const Context& c);
void read_recurrent(const Context& c);
void read_experts(const Context& c);  ///< of a product of groups of rows, each with weights of its own

}  // namespace ftax::aten_attributes
