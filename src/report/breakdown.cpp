#include "src/report/breakdown.hpp"

#include <algorithm>
#include <map>

namespace ftax::report {

std::vector<Share> breakdown(const Graph& graph, const std::vector<OpPrediction>& launches,
                             const std::function<std::string(const Op&)>& group) {
    std::map<std::string, Share> shares;
    for (const OpPrediction& launch : launches) {
        const std::string name = launch.op == no_op ? "forward" : group(graph.ops[launch.op]);
        Share& share = shares[name];
        share.name = name;
        ++share.launches;
        share.kernels += launch.kernels;
        share.host_s += launch.host_s;
        share.device_s += launch.device_s;
    }
    std::vector<Share> result;
    for (auto& [name, share] : shares) result.push_back(std::move(share));
    std::stable_sort(result.begin(), result.end(), [](const Share& a, const Share& b) {
        return std::max(a.host_s, a.device_s) > std::max(b.host_s, b.device_s);
    });
    return result;
}

std::string kind_of(const Op& op) {
    return std::string(name_of(op.kind));
}

std::string stage_of(const Op& op) {
    if (op.module.empty()) return "(no module)";
    const std::size_t first = op.module.find('.');
    return first == std::string::npos ? op.module : op.module.substr(0, op.module.find('.', first + 1));
}

}  // namespace ftax::report
