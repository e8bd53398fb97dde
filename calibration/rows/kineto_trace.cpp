#include "calibration/rows/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "graphs/base/throw_error.hpp"
#include "graphs/files/file.hpp"

namespace ftax {
namespace {

using nlohmann::json;

constexpr double microsecond_s = 1e-6;
/// Below this share of usable events the rest says little about the run.
constexpr double least_usable_share = 0.8;
constexpr std::size_t longest_name = 512;
constexpr std::size_t longest_header = 1 << 20;

struct RawEvent {
    std::string phase, category, name, thread;
    std::optional<double> start_us, duration_us;
    std::uint64_t correlation = 0, external_id = 0;
};

/// Extracts the relevant fields of one event and ignores all others.
class EventFields : public nlohmann::json_sax<json> {
  public:
    RawEvent event;

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
    bool number_unsigned(number_unsigned_t value) override {
        if (depth_ == 2 && in_args_) {
            if (key_ == "correlation") event.correlation = value;
            if (key_ == "External id" || key_ == "external id") event.external_id = value;
        }
        return number(static_cast<double>(value));
    }
    bool number_float(number_float_t value, const string_t&) override { return number(value); }
    bool string(string_t& value) override {
        if (depth_ != 1) return true;
        if (key_ == "ph") event.phase = value;
        if (key_ == "cat") event.category = value;
        if (key_ == "name") event.name = value.substr(0, longest_name);
        if (key_ == "pid" || key_ == "tid") add_to_thread(value.substr(0, longest_name));
        return true;
    }
    bool binary(binary_t&) override { return true; }
    bool key(string_t& name) override {
        if (depth_ == 1 || (depth_ == 2 && in_args_)) key_ = name;
        return true;
    }
    bool start_object(std::size_t) override { return open(key_ == "args"); }
    bool start_array(std::size_t) override { return open(false); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  private:
    static constexpr int deepest_level = 64;

    bool open(bool args) {
        if (depth_ == 1) in_args_ = args;
        return ++depth_ < deepest_level;
    }
    bool close() {
        --depth_;
        return true;
    }
    bool number(double value) {
        if (depth_ != 1) return true;
        if (key_ == "ts") event.start_us = value;
        if (key_ == "dur") event.duration_us = value;
        if (key_ == "pid" || key_ == "tid") add_to_thread(std::to_string(value));
        return true;
    }
    void add_to_thread(std::string_view part) { event.thread.append(part).push_back('/'); }

    std::string key_;
    int depth_ = 0;
    bool in_args_ = false;
};

/// Categories of torch 1.12 and later, then those of 1.8 to 1.11; the others are annotations, Python frames and flows.
std::optional<TraceEventKind> kind_of(std::string_view category) {
    struct Category {
        std::string_view name;
        TraceEventKind kind;
    };
    static constexpr std::array categories{
        Category{"cpu_op", TraceEventKind::operation},    Category{"cuda_runtime", TraceEventKind::runtime},
        Category{"cuda_driver", TraceEventKind::runtime}, Category{"kernel", TraceEventKind::kernel},
        Category{"gpu_memcpy", TraceEventKind::kernel},   Category{"gpu_memset", TraceEventKind::kernel},
        Category{"Operator", TraceEventKind::operation},  Category{"Runtime", TraceEventKind::runtime},
        Category{"Kernel", TraceEventKind::kernel},       Category{"Memcpy", TraceEventKind::kernel},
        Category{"Memset", TraceEventKind::kernel}};
    const auto known = std::ranges::find(categories, category, &Category::name);
    return known == categories.end() ? std::nullopt : std::optional(known->kind);
}

class TraceReader {
  public:
    TraceReader(std::istream& in, const std::string& origin, const TraceLimits& limits)
        : in_(in), origin_(origin), limits_(limits) {}

    KinetoTrace run() {
        read_header();
        trace_.damage.truncated = true;
        while (true) {
            const int next = in_.rdbuf()->sgetc();
            if (next == end_of_file) break;
            if (next == '{') {
                read_event();
            } else {
                if (next == ']') trace_.damage.truncated = false;
                in_.rdbuf()->sbumpc();
            }
        }
        count_lost_kernels();
        check();
        return std::move(trace_);
    }

  private:
    static constexpr int end_of_file = std::char_traits<char>::eof();

    [[noreturn]] void fail(std::string_view what) const { throw_error(ErrorCode::profile, "{}: {}", origin_, what); }

    /// Reads up to the bracket that opens the list of events, and what the profiler says of the GPU before it.
    void read_header() {
        static constexpr std::string_view list = "\"traceEvents\"";
        std::string header;
        while (!header.ends_with(list)) {
            const int c = in_.rdbuf()->sbumpc();
            if (c == '[' && header.find_first_not_of(" \t\r\n") == std::string::npos) return;  // the list alone
            if (header.starts_with("\x1f\x8b")) fail("this is compressed: gunzip it first");
            if (c == end_of_file || header.size() == longest_header) fail("not a trace: it has no \"traceEvents\"");
            header.push_back(static_cast<char>(c));
        }
        for (int c = 0; c != '[';) {
            c = in_.rdbuf()->sbumpc();
            if (c != '[' && c != ':' && (c == end_of_file || std::strchr(" \t\r\n", c) == nullptr))
                fail("\"traceEvents\" is not a list");
        }
        const json document = json::parse(header + ":[]}", nullptr, false);
        if (!document.is_object()) return;  // damaged, and not needed
        const auto devices = document.find("deviceProperties");
        if (devices == document.end() || !devices->is_array() || devices->empty()) return;
        const json& device = devices->front();
        if (device.is_object() && device.contains("name") && device["name"].is_string())
            trace_.gpu = device["name"].get<std::string>().substr(0, longest_name);
    }

    void read_event() {
        EventFields fields;
        const bool complete = json::sax_parse(in_, &fields, json::input_format_t::json, false);
        in_.clear();
        if (!complete) {
            ++trace_.damage.unreadable;
            return;
        }
        trace_.damage.truncated = true;  // a bracket inside a broken event was not the end
        add(fields.event);
    }

    void add(RawEvent& raw) {
        const auto kind = kind_of(raw.category);
        if (raw.phase != "X" || !kind) return;
        const bool timed = raw.start_us && raw.duration_us && *raw.start_us > 0 && *raw.duration_us >= 0 &&
                           std::isfinite(*raw.start_us + *raw.duration_us);
        if (!timed) {
            ++trace_.damage.untimed;
            return;
        }
        if (trace_.events.size() == limits_.max_events)
            throw_error(ErrorCode::limit, "{}: more than {} events", origin_, limits_.max_events);
        const int thread = threads_.try_emplace(std::move(raw.thread), static_cast<int>(threads_.size())).first->second;
        trace_.events.push_back({.kind = *kind,
                                 .name = std::move(raw.name),
                                 .start_s = *raw.start_us * microsecond_s,
                                 .end_s = (*raw.start_us + *raw.duration_us) * microsecond_s,
                                 .thread = thread,
                                 .correlation = raw.correlation,
                                 .external_id = raw.external_id});
    }

    /// CUPTI drops records when its buffers are full: one side of a launch is then missing.
    void count_lost_kernels() {
        std::unordered_set<std::uint64_t> launched, ran;
        for (const TraceEvent& event : trace_.events) {
            if (event.correlation == 0) continue;
            if (event.kind == TraceEventKind::runtime) launched.insert(event.correlation);
            if (event.kind == TraceEventKind::kernel) ran.insert(event.correlation);
        }
        for (const TraceEvent& event : trace_.events) {
            if (event.correlation == 0) continue;
            const bool launch =
                event.kind == TraceEventKind::runtime && event.name.find("LaunchKernel") != std::string::npos;
            const bool lost = launch ? !ran.contains(event.correlation)
                                     : event.kind == TraceEventKind::kernel && !launched.contains(event.correlation);
            trace_.damage.lost_kernels += lost ? 1 : 0;
        }
    }

    void check() const {
        const bool has_operators = std::ranges::count(trace_.events, TraceEventKind::operation, &TraceEvent::kind) > 0;
        const TraceDamage& damage = trace_.damage;
        const auto all = static_cast<double>(trace_.events.size() + damage.unreadable + damage.untimed);
        const double usable = static_cast<double>(trace_.events.size()) - static_cast<double>(damage.lost_kernels);
        if (usable < least_usable_share * all)
            fail(fmt::format(
                "only {} of {} events are usable: {} are not JSON, {} have no time, {} lack their kernel or launch",
                std::max(usable, 0.0), all, damage.unreadable, damage.untimed, damage.lost_kernels));
        if (!has_operators) fail("the trace holds no operators (torch.profiler's ProfilerActivity.CPU records them)");
    }

    std::istream& in_;
    const std::string& origin_;
    const TraceLimits& limits_;
    KinetoTrace trace_;
    std::unordered_map<std::string, int> threads_;
};

}  // namespace

KinetoTrace read_kineto_trace(std::istream& in, const std::string& origin, const TraceLimits& limits) {
    return TraceReader(in, origin, limits).run();
}

KinetoTrace read_kineto_trace(const std::string& path, const TraceLimits& limits) {
    static_cast<void>(open_file(path));  // a pipe would be waited for, a device read without end
    std::ifstream file(path, std::ios::binary);
    if (file.peek() == 0xff || file.peek() == 0xfe)
        throw_error(ErrorCode::usage, "{} is UTF-16; save it as UTF-8", path);
    return read_kineto_trace(file, path, limits);
}

}  // namespace ftax
