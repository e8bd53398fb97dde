#pragma once

#include <cstdint>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "predictors/kernels/kernel.hpp"

namespace ftax {

/// Whether dispatching an operator queries the cuBLAS heuristic, which is slow on some hosts.
enum class BlasCall : std::uint8_t {
    never,
    always,        ///< torch.nn.Linear: cublasLtMatmulAlgoGetHeuristic on every call
    at_batch_one,  ///< cuDNN hands batch-1 pointwise convolutions to cuBLAS
};

/// One host operation: dispatch of an operator (with its kernels), a view, a module call, a synchronisation.
struct Launch {
    OpId op = no_op;
    HostKind host_kind = HostKind::elementwise;
    std::uint32_t first_kernel = 0;
    std::uint32_t kernel_count = 0;
    std::uint32_t module_calls = 0;  ///< nn.Module calls that begin just before it
    std::uint32_t list_parts = 0;    ///< tensors of its list argument
    BlasCall blas_call = BlasCall::never;
    std::uint32_t further_calls = 0;   ///< further launches of the same dispatch
    bool on_host = false;              ///< runs on the CPU, since no CUDA kernel exists
    std::vector<TensorId> crossing{};  ///< tensors copied between host and device for it
};

/// Execution of a graph by one framework, in the order of the host's work. Independent of the bound shapes.
struct Schedule {
    std::vector<Launch> launches;
    std::vector<Kernel> kernels;
    double weight_bytes = 0;     ///< all weights: traffic between two uses of one weight
    std::vector<DType> storage;  ///< element type of every tensor under the run's precision
};

}  // namespace ftax
