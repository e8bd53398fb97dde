#include "src/report/breakdown.hpp"

#include <algorithm>
#include <map>

#include "src/report/quantities.hpp"

namespace ftax::report {

Columns<Share> share_columns(std::string_view title, const std::vector<Share>& shares) {
    double longest_s = 0;
    for (const Share& share : shares) longest_s = std::max({longest_s, share.host_s, share.device_s});
    return {{"name", std::string(title), Unit::text, &Share::name},
            {"launches", "launches", Unit::plain, &Share::launches},
            {"kernels", "kernels", Unit::plain, &Share::kernels},
            {"host_s", "host", Unit::duration, &Share::host_s},
            {"device_s", "device", Unit::duration, &Share::device_s},
            {"bars", "host above device", Unit::bars, [longest_s](const Share& share) {
                 return host_and_device_bars(share.host_s, share.device_s, longest_s);
             }}};
}

std::vector<Share> sum_by_name(const std::vector<OpPrediction>& launches,
                               const std::function<std::string(std::size_t)>& group) {
    std::map<std::string, Share> shares;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        const std::string name = group(i);
        Share& share = shares[name];
        share.name = name;
        ++share.launches;
        share.kernels += launches[i].kernels;
        share.host_s += launches[i].host_s;
        share.device_s += launches[i].device_s;
    }
    std::vector<Share> result;
    for (auto& [name, share] : shares) result.push_back(std::move(share));
    return result;
}

std::vector<Share> breakdown(const Graph& graph, const std::vector<OpPrediction>& launches) {
    auto shares = sum_by_name(launches, [&](std::size_t i) {
        return std::string(launches[i].op == no_op ? "forward" : name_of(graph.ops[launches[i].op].kind));
    });
    std::ranges::stable_sort(shares, std::greater<>(), [](const Share& s) { return std::max(s.host_s, s.device_s); });
    return shares;
}

}  // namespace ftax::report
