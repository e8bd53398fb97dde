#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/types.hpp"

namespace ftax::bench {

/// Runs a Graph with LibTorch's operators, one by one, as a C++ program would. Weights are random; constants that a
/// Graph does not keep are chosen so that operators cost the same.
class Network {
  public:
    /// `weight_sets` > 1 gives every call other weights. Throws Error{usage} naming the first operator it cannot run;
    /// what LibTorch throws passes through.
    Network(const Graph& graph, const ShapeBindings& bindings, Precision precision, c10::Device device,
            int weight_sets);

    /// One forward pass over inputs made once.
    void run();

    /// Gives every batch norm the mean and variance of what it reads, as training would: without it a residual network
    /// doubles its activations' variance in each of its blocks.
    void settle();

  private:
    using Call = std::function<at::Tensor(const std::vector<at::Tensor>& values)>;
    struct Step {
        Call call;
        TensorId output;
        std::vector<TensorId> dead;  ///< read for the last time here
    };
    struct Fixed {
        TensorId slot;
        std::vector<at::Tensor> sets;
    };

    enum class Use : std::uint8_t;
    [[nodiscard]] Use use_of(TensorId id) const;
    [[nodiscard]] at::Tensor filled(TensorId id) const;
    [[nodiscard]] at::ScalarType type_of(TensorId id) const;
    [[nodiscard]] std::vector<std::int64_t> shape_of(TensorId id) const;
    [[nodiscard]] Call call_for(const Op& op) const;
    [[nodiscard]] Call pointwise(const Op& op) const;
    [[nodiscard]] Call convolution(const Op& op) const;
    [[nodiscard]] Call norm(const Op& op) const;
    [[nodiscard]] Call slice(const Op& op) const;
    [[nodiscard]] Call movement(const Op& op) const;

    const Graph& graph_;
    BoundShapes bound_;
    Precision precision_;
    c10::Device device_;
    std::vector<Fixed> fixed_;  ///< weights, constants and inputs
    std::vector<Step> steps_;
    std::vector<at::Tensor> values_;
    std::size_t next_set_ = 0;
    bool settling_ = false;
};

}  // namespace ftax::bench
