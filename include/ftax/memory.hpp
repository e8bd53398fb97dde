#pragma once

namespace ftax {

/// Device memory of a run at its peak, part by part.
struct MemoryUse {
    double weights_bytes = 0;      ///< each tensor once: tied weights count once
    double cache_bytes = 0;        ///< keys and values of all sequences, the new tokens' among them
    double activations_bytes = 0;  ///< inputs, results and what lies between them, alive at once
    double workspace_bytes = 0;    ///< of the libraries
    double context_bytes = 0;      ///< of the CUDA context and the framework's own modules
    double capacity_bytes = 0;     ///< what the device has

    [[nodiscard]] double total_bytes() const {
        return weights_bytes + cache_bytes + activations_bytes + workspace_bytes + context_bytes;
    }
    [[nodiscard]] bool fits() const { return total_bytes() <= capacity_bytes; }
};

}  // namespace ftax
