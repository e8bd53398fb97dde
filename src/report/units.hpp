#pragma once

#include <string>
#include <string_view>

namespace ftax::report {

/// Format quantities human-readably with three significant digits and a suitable unit, independent of the locale.
[[nodiscard]] std::string duration(double seconds);                       ///< "14.2 ms"
[[nodiscard]] std::string byte_size(double bytes);                        ///< "1.25 MB" (powers of 1000)
[[nodiscard]] std::string count(double value);                            ///< "4.09 G"
[[nodiscard]] std::string quantity(double value, std::string_view unit);  ///< "130 TFLOP/s"
[[nodiscard]] std::string percent(double fraction);                       ///< "98.7 %", rounded down below 100 %
[[nodiscard]] std::string significant(double value);                      ///< "14.2", "0.031", "1240"

/// A duration in milliseconds with a fixed unit, for easy comparison in columns.
[[nodiscard]] std::string milliseconds(double seconds);

}  // namespace ftax::report
