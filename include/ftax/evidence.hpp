#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/architecture.hpp"
#include "ftax/factors.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// How far a prediction is from the measured rows behind the rules that it applies.
enum class Evidence : std::uint8_t {
    unrated,   ///< not rated: engines that serve language models, CPUs, frameworks of other programs
    measured,  ///< rows of this framework, version, card, precision and these classes of kernels, on a known host
    near,      ///< without rows of the version, the precision or the card, or the host decides and is unknown
    far,       ///< without rows of kernels that take more than a tenth of the device time
    guess,     ///< without rows of the framework
};
[[nodiscard]] std::string_view name_of(Evidence evidence) noexcept;

/// Measured rows of whole networks under one framework on one card (a row of data/profiles/evidence.csv).
struct MeasuredSet {
    std::string rows;  ///< name of the file
    int version = 0;   ///< of the library that decides the framework's rules, see LibraryVersions; 0: none
    Precision precision = Precision::fp32;
    std::string card;  ///< DeviceSpec::slug
    Architecture architecture = Architecture::cpu;
    FactorSet kernels{};  ///< classes that take at least 5 % of the device time of one of the rows
};

}  // namespace ftax
