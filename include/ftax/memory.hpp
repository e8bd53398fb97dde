#pragma once

namespace ftax {

/// Peak device memory of a run, by component.
struct MemoryUse {
    double weights_bytes = 0;      ///< tied weights count once
    double cache_bytes = 0;        ///< keys and values of all sequences, including new tokens, and states
    double state_bytes = 0;        ///< the part of fixed size: states of linear attention and Mamba
    double activations_bytes = 0;  ///< largest total of inputs, outputs and intermediates alive at once
    double workspace_bytes = 0;    ///< library workspaces
    double context_bytes = 0;      ///< CUDA context and modules of the framework
    double capacity_bytes = 0;     ///< memory of the device

    [[nodiscard]] double total_bytes() const {
        return weights_bytes + cache_bytes + activations_bytes + workspace_bytes + context_bytes;
    }
    [[nodiscard]] bool fits() const { return total_bytes() <= capacity_bytes; }
};

}  // namespace ftax
