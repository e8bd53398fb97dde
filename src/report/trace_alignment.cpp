#include "src/report/trace_alignment.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace ftax::report {
namespace {

constexpr std::size_t most_cells = 64'000'000;

/// "aten::max_pool2d_" → "max_pool", "Conv" → "conv"
std::string bare_name(std::string_view name) {
    const std::size_t colons = name.rfind("::");
    if (colons != std::string_view::npos) name.remove_prefix(colons + 2);
    if (name.ends_with('_')) name.remove_suffix(1);
    if (name.ends_with('d') && name.size() > 2 && std::isdigit(static_cast<unsigned char>(name[name.size() - 2]))) {
        name.remove_suffix(2);
    }
    std::string result(name);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    return result;
}

/// Which way a cell of the table was reached.
enum Step : std::uint8_t { begin, match, skip_traced, skip_model };

constexpr int match_score = 4;  // per unit of resemblance, so that a match outweighs skipping around it
constexpr int skip_score = -1;

}  // namespace

int resemblance(const Op& op, std::string_view traced) {
    if (op.source == traced) return 2;
    const std::string bare = bare_name(traced);
    const bool alike = bare == bare_name(op.source) || bare == name_of(op.kind) || bare == op.text("function");
    return alike ? 1 : 0;
}

std::vector<std::optional<std::size_t>> align_cyclically(const std::vector<const Op*>& model,
                                                         const std::vector<std::string_view>& traced) {
    std::vector<std::optional<std::size_t>> result(traced.size());
    const std::size_t period = model.size();
    if (period == 0) return result;
    const std::size_t length = std::min(traced.size(), most_cells / period);

    // score[j]: best alignment of what was read so far whose next expected operator is j; no operator is worse than
    // none read, so that the alignment may start anywhere.
    std::vector<int> score(period, 0), previous(period);
    std::vector<std::uint8_t> steps((length + 1) * period, begin);
    std::unordered_map<std::string_view, std::vector<std::int8_t>> resemblances;
    for (std::size_t i = 1; i <= length; ++i) {
        const auto [known, is_new] = resemblances.try_emplace(traced[i - 1]);
        if (is_new) {
            for (const Op* op : model)
                known->second.push_back(static_cast<std::int8_t>(resemblance(*op, traced[i - 1])));
        }
        const std::vector<std::int8_t>& fits = known->second;
        std::uint8_t* const step = &steps[i * period];
        std::swap(score, previous);
        for (std::size_t j = 0; j < period; ++j) {
            score[j] = previous[j] + skip_score;
            step[j] = skip_traced;
        }
        for (std::size_t j = 0; j < period; ++j) {
            const std::size_t next = j + 1 == period ? 0 : j + 1;
            const int matched = previous[j] + match_score * fits[j];
            if (fits[j] > 0 && matched > score[next]) {
                score[next] = matched;
                step[next] = match;
            }
        }
        // Skipping operators of the model may go round once.
        for (std::size_t round = 0; round < 2 * period; ++round) {
            const std::size_t j = round % period, next = j + 1 == period ? 0 : j + 1;
            if (score[j] + skip_score > score[next]) {
                score[next] = score[j] + skip_score;
                step[next] = skip_model;
            }
        }
    }
    std::size_t j = static_cast<std::size_t>(std::max_element(score.begin(), score.end()) - score.begin());
    for (std::size_t i = length; i > 0;) {
        const auto step = steps[i * period + j];
        if (step != skip_traced) j = j == 0 ? period - 1 : j - 1;
        if (step == match) result[i - 1] = j;
        if (step != skip_model) --i;
    }
    return result;
}

}  // namespace ftax::report
