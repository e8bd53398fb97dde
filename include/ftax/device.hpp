#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/architecture.hpp"
#include "ftax/factors.hpp"
#include "ftax/parameter.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// Resources of the GPU in one power mode of a module (nvpmodel).
struct PowerMode {
    std::string name;  ///< "30w", "maxn"
    int sms = 0;
    double clock_hz = 0, memory_bandwidth_bytes_per_s = 0, power_limit_w = 0;
};

/// Datasheet of a GPU (data/devices/SLUG.json, where each number names its source). SI units.
struct DeviceSpec {
    std::string slug;                     ///< "quadro-rtx-8000"
    std::string name;                     ///< "NVIDIA Quadro RTX 8000"
    std::vector<std::string> aliases;     ///< other spellings that resolve to this device
    std::string host_cpu;                 ///< CPU of a combined module ("NVIDIA Grace"); empty: any host
    std::optional<double> host_slowdown;  ///< host times of that CPU relative to the reference host; nullopt if unknown
    std::optional<double> kernel_gap_s;   ///< gap between a module's kernels outside CUDA graphs; nullopt if unknown
    Architecture architecture = Architecture::turing;
    int compute_capability_major = 0;
    int compute_capability_minor = 0;
    int sms = 0;                          ///< streaming multiprocessors
    std::optional<double> base_clock_hz;  ///< nullopt if not published
    double boost_clock_hz = 0;
    double memory_bytes = 0;
    double memory_bandwidth_bytes_per_s = 0;
    std::optional<double> inline_ecc_share;  ///< share of the memory taken by ECC in GDDR; nullopt without it
    double l2_bytes = 0;
    std::optional<double> l2_bytes_per_clock;  ///< read rate of the whole L2; nullopt if unknown
    double shared_memory_per_sm_bytes = 0;
    double registers_per_sm = 0;
    int max_threads_per_sm = 0;
    double power_limit_w = 0;
    std::optional<double> least_power_w;  ///< lowest power mode of a module; nullopt for boards without modes
    std::vector<PowerMode> modes;         ///< published power modes of a module; it is shipped in the first
    /// Bandwidth from one GPU to its peers in the machine, in one direction; nullopt if unknown.
    std::optional<double> peer_bandwidth_bytes_per_s;
    bool peer_access = true;  ///< if false, traffic between cards goes through the memory of the host
    int linked_cards = 8;     ///< largest number of cards that the link joins; more of them use a network
    /// Dense peak rate of each math path at boost clock, indexed by MathPath; nullopt if the device lacks it.
    std::array<std::optional<double>, math_path_count> peak_flops_per_s{};

    [[nodiscard]] std::optional<double> peak(MathPath path) const { return peak_flops_per_s[static_cast<int>(path)]; }
    /// Returns the idle power of the board at full clocks, in watts. Source: nvidia-smi of idle boards in performance
    /// state P0: V100 33 to 45 of 250 W (github.com/sasha0552/nvidia-pstated/issues/6), V100 SXM2 53 of 300
    /// (github.com/zai-org/GLM-130B/issues/32), RTX 3070 48 of 220 (github.com/lyulyul/shine-cluster/issues/54).
    [[nodiscard]] double idle_power_w() const { return std::min(20 + 0.08 * power_limit_w, 0.4 * power_limit_w); }
    /// Returns the features and library kernels of its chip. Throws what architecture_spec() throws.
    [[nodiscard]] const ArchitectureSpec& chip() const {
        return architecture_spec(architecture, compute_capability_major, compute_capability_minor);
    }
};

/// Returns true if the device is the host CPU: every operation is synchronous.
[[nodiscard]] inline bool is_cpu(const DeviceSpec& device) noexcept {
    return device.architecture == Architecture::cpu;
}

/// A GPU with its kernel-model parameters, each with its provenance. Values of the device take precedence over those of
/// its architecture, and these over shared ones. Parameters not set by any profile keep their ParameterSpec::initial.
struct DeviceProfile {
    DeviceSpec device;
    std::vector<Parameter> parameters;  ///< sorted by name, unique
    std::string version;                ///< version of the profile file the parameters come from
    std::vector<std::string> warnings;  ///< e.g. the profile was fitted on another card
    FactorSet measured{};               ///< kernel classes measured on this card
    DeviceFactors factors;              ///< remaining error of the parameters on this card
};

/// Returns all embedded datasheets, sorted by slug.
[[nodiscard]] const std::vector<DeviceSpec>& device_specs();

/// Finds a device by slug, name or alias, ignoring case and punctuation. "NAME@30w" is a module in that power mode, or
/// a board with that power limit; "NAME@1200MHz" is a board whose clock does not exceed that. Throws Error{usage} for
/// an unknown device or mode, listing similar names or the device's modes.
[[nodiscard]] const DeviceSpec& device_spec(std::string_view name);

/// Reads a user's datasheet file (format: data/devices/README.md).
/// Throws Error{usage} if the file cannot be read, Error{profile} naming the invalid field.
[[nodiscard]] DeviceSpec read_device_spec(const std::string& path);

/// Composes the profile of a device (a name, or the path of a datasheet ending in .json) from the embedded fitted
/// parameters, or from `profile_path` if it is not empty.
/// Throws Error{usage} for an unknown device, Error{profile} for an invalid file, naming the field.
[[nodiscard]] DeviceProfile device_profile(std::string_view device, const std::string& profile_path = {});

}  // namespace ftax
