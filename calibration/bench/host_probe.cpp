#include <fmt/format.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calibration/bench/bench_device.hpp"
#include "graphs/base/statistics.hpp"

namespace ftax::bench {
namespace {

constexpr std::size_t operators = 160, stages = 4, checks = 8, held = 6;

struct Value {
    std::vector<std::int64_t> sizes{1, 64, 56, 56};
    std::uint64_t keys = 0;
    std::atomic<int> references{1};
    virtual ~Value() = default;
    [[nodiscard]] virtual std::int64_t stride(std::size_t axis) const { return sizes[axis]; }
};
struct ChannelsLast final : Value {
    [[nodiscard]] std::int64_t stride(std::size_t axis) const override { return sizes[(axis + 1) % 4]; }
};
using Values = std::array<std::unique_ptr<Value>, held>;

/// Takes one of two ways by the argument's state, which is as good as random.
[[gnu::always_inline]] inline void check(Value& argument, std::uint64_t salt) {
    if ((argument.keys >> (salt >> 58) & 1U) != 0) {
        argument.keys = std::rotl(argument.keys, 7) ^ salt;
    } else {
        argument.keys += static_cast<std::uint64_t>(argument.sizes[salt % 4]) * (salt >> 40);
    }
}

std::unique_ptr<Value> make_value(std::size_t kind) {
    return kind % 2 == 0 ? std::make_unique<Value>() : std::make_unique<ChannelsLast>();
}

/// One function on an operator's way from Python to its kernel: counts a reference, checks an argument, asks it for a
/// stride, and allocates a result. Its branches and constants are its own, so that its code is, too.
template <std::size_t id>
void stage(Values& values) {
    Value& argument = *values[id % held];
    ++argument.references;
    [&]<std::size_t... at>(std::index_sequence<at...> /*all*/) {
        (check(argument, (id * checks + at + 1) * 0x9E3779B97F4A7C15U), ...);
    }
    (std::make_index_sequence<checks>());
    std::unique_ptr<Value> result = make_value(id);
    result->keys = argument.keys + static_cast<std::uint64_t>(argument.stride(id % 4));
    --argument.references;
    values[(id + 1) % held] = std::move(result);
}

}  // namespace

Environment probe_host(double seconds) {
    constexpr auto functions = []<std::size_t... id>(std::index_sequence<id...> /*all*/) {
        return std::array<void (*)(Values&), sizeof...(id)>{stage<id>...};
    }
    (std::make_index_sequence<operators * stages>());
    const auto name_of = [](std::size_t op) { return "aten::operator_" + std::to_string(op * op) + ".overload"; };
    std::unordered_map<std::string, std::size_t> registry;  // first function of each operator
    for (std::size_t op = 0; op < operators; ++op) registry[name_of(op)] = op * stages;
    std::vector<std::string> names(8192);
    std::mt19937 random(1);
    for (std::string& name : names) name = name_of(random() % operators);
    Values values;
    for (auto& value : values) value = make_value(0);
    std::vector<double> cpu, wall;
    using Seconds = std::chrono::duration<double>;
    const auto now = [] { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    const auto each = [&](double time) { return time / static_cast<double>(names.size()); };
    for (const double begin = now(); cpu.size() < 10 || now() - begin < seconds;) {
        const double start = now();
        const std::clock_t cpu_start = std::clock();
        for (const std::string& name : names)
            for (std::size_t at = registry.find(name)->second, end = at + stages; at < end; ++at) functions[at](values);
        cpu.push_back(each(static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC));
        wall.push_back(each(now() - start));
    }
    const auto in_us = [](const auto& times, double share) {
        return fmt::format("{:.4f}", 1e6 * quantile(times, share));
    };
    return {{"probe_cpu_p10_us", in_us(cpu, 0.1)},
            {"probe_cpu_median_us", in_us(cpu, 0.5)},
            {"probe_wall_p10_us", in_us(wall, 0.1)},
            {"probe_wall_median_us", in_us(wall, 0.5)},
            {"wall_over_cpu", fmt::format("{:.2f}", quantile(wall, 0.5) / quantile(cpu, 0.5))}};
}

}  // namespace ftax::bench
