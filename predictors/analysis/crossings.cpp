#include "predictors/analysis/crossings.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ftax {
namespace {

constexpr std::int64_t finest_search = 16;     ///< steps without a change of sign, relative to their start
constexpr std::int64_t finest_bracket = 1024;  ///< steps with one
constexpr double level = 0.02;                 ///< threshold of log(device / host)

struct Sample {
    std::int64_t at = 0;
    TwoSides sides;
    [[nodiscard]] double log_ratio() const { return std::log(sides.device_s / sides.host_s); }
    [[nodiscard]] bool host_decides() const { return sides.host_s > sides.device_s; }
};

class Search {
  public:
    explicit Search(const std::function<TwoSides(std::int64_t)>& sides) : sides_(sides) {}

    [[nodiscard]] Sample sample(std::int64_t at) const { return {at, sides_(at)}; }

    void look_between(const Sample& a, const Sample& b) {
        const bool changes = a.host_decides() != b.host_decides();
        // Two non-decreasing curves cannot cross if the end of one is below the start of the other.
        const bool certain =
            !changes && (a.host_decides() ? b.sides.device_s < a.sides.host_s : b.sides.host_s < a.sides.device_s);
        const std::int64_t finest = std::max<std::int64_t>(1, a.at / (changes ? finest_bracket : finest_search));
        if (!certain && b.at - a.at > finest) {
            const Sample middle = sample(a.at + (b.at - a.at) / 2);
            look_between(a, middle);
            look_between(middle, b);
            return;
        }
        if (changes) add(a, b);
        farthest_ = std::max(farthest_, std::abs(b.log_ratio()));
    }

    [[nodiscard]] const std::vector<Crossing>& found() const { return found_; }

  private:
    void add(const Sample& a, const Sample& b) {
        if (!found_.empty() && farthest_ < level) {
            found_.pop_back();
            farthest_ = before_;
            return;
        }
        const double share = a.log_ratio() / (a.log_ratio() - b.log_ratio());
        found_.push_back(
            {a.at, b.at, static_cast<double>(a.at) + share * static_cast<double>(b.at - a.at), b.host_decides()});
        before_ = std::exchange(farthest_, 0);
    }

    const std::function<TwoSides(std::int64_t)>& sides_;
    std::vector<Crossing> found_;
    double farthest_ = 0;  ///< |log ratio| since the last crossing
    double before_ = 0;    ///< the same before it
};

}  // namespace

std::vector<Crossing> find_crossings(std::int64_t first, std::int64_t last,
                                     const std::function<TwoSides(std::int64_t)>& sides) {
    Search search(sides);
    Sample below = search.sample(first);
    while (below.at < last) {
        const Sample above = search.sample(std::min(2 * below.at, last));
        search.look_between(below, above);
        below = above;
    }
    return search.found();
}

}  // namespace ftax
