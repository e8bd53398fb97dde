#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ftax/architecture.hpp"
#include "ftax/factors.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// Distance of a prediction from the measured rows behind the rules that it applies.
enum class Evidence : std::uint8_t {
    unrated,   ///< not rated: engines that serve language models, CPUs, frameworks of other programs
    measured,  ///< rows exist of this framework, version, card, precision and kernel classes; the host is known
    near,      ///< no rows of the version, the precision or the card; or the host decides and is unknown
    far,       ///< no rows of kernels that take more than a tenth of the device time
    guess,     ///< no rows of the framework
};
[[nodiscard]] std::string_view name_of(Evidence evidence) noexcept;

/// Measured rows of whole networks under one framework on one card (a row of data/profiles/evidence.csv).
struct MeasuredSet {
    std::string rows;  ///< name of the file with the rows
    int version = 0;   ///< version of the library that decides the rules, see LibraryVersions; 0: none
    Precision precision = Precision::fp32;
    std::string card;  ///< DeviceSpec::slug
    Architecture architecture = Architecture::cpu;
    FactorSet kernels{};  ///< classes that take at least 5 % of the device time of one of the rows
};

}  // namespace ftax
