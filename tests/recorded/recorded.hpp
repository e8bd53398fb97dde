#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ftax::test {

/// Numbers and texts folded into one. Numbers count to 20 bits, so that compilers agree on them.
class Digest {
  public:
    Digest& add(double value) {
        if (!std::isfinite(value) || std::abs(value) < 1e-18) return mix(std::isnan(value) ? 2 : value > 1 ? 1 : 0);
        int exponent = 0;
        const double mantissa = std::frexp(value, &exponent);
        return mix(std::bit_cast<std::uint64_t>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 20)), exponent - 20)));
    }
    Digest& add(std::string_view text) {
        mix(text.size());
        for (const char c : text) mix(static_cast<unsigned char>(c));
        return *this;
    }
    /// A text in which each number counts as add() takes it.
    Digest& add_printed(std::string_view text);
    [[nodiscard]] std::string text(int digits = 10) const;

  private:
    Digest& mix(std::uint64_t word) {
        state_ = (state_ ^ word) * 0x9E3779B97F4A7C15u;
        state_ ^= state_ >> 32;
        return *this;
    }
    std::uint64_t state_ = 0xCBF29CE484222325u;
};

/// Returns the contents of a file of the repository.
[[nodiscard]] std::string read_source_file(const std::string& path);

/// A figure as a recorded table holds it.
[[nodiscard]] std::string figure(double value);

/// Recomputes each row of tests/recorded/FILE, whose first cells say what is computed, and compares it with the cells
/// recorded there: figures to `tolerance`, all else exactly. A cell may be a figure, a digest, or both with a slash
/// between. An Error is recorded as the digest of its message. Prints the rows that changed most. FTAX_UPDATE_GOLDEN=1
/// (`make golden`) records what it computes instead. Under sanitizers only every `sanitized_step`th row is computed.
void check_recorded(const std::string& file, std::size_t inputs,
                    const std::function<std::vector<std::string>(std::span<const std::string>)>& compute,
                    double tolerance = 1e-6, std::size_t sanitized_step = 1);

}  // namespace ftax::test
