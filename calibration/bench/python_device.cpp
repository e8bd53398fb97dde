#include "calibration/bench/python_device.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"
#include "src/core/embedded.hpp"
#include "src/io/file.hpp"

extern char** environ;

namespace ftax::bench {
namespace {

using nlohmann::json;

constexpr std::string_view script_folder = "calibration/bench/python/";

/// Writes the embedded scripts into a folder of their own.
std::string write_scripts() {
    std::string folder = (std::filesystem::temp_directory_path() / "ftax-worker-XXXXXX").string();
    if (!::mkdtemp(folder.data())) {
        throw Error(ErrorCode::usage, fmt::format("cannot create {}: {}", folder, std::strerror(errno)));
    }
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with(script_folder)) continue;
        write_file(fmt::format("{}/{}", folder, file.path.substr(script_folder.size())), file.content);
    }
    return folder;
}

FailureKind failure_kind(const std::string& name) {
    if (name == "out_of_memory") return FailureKind::out_of_memory;
    return name == "unsupported" ? FailureKind::unsupported
           : name == "lost"      ? FailureKind::device_lost
                                 : FailureKind::failed;
}

std::optional<Failure> failure_in(const json& answer) {
    if (!answer.contains("error")) return std::nullopt;
    return Failure{failure_kind(answer["error"].get<std::string>()), answer.value("message", "")};
}

json lost(std::string_view why) {
    return {{"error", "lost"}, {"message", why}};
}

class PythonDevice : public BenchDevice {
  public:
    explicit PythonDevice(PythonOptions options) : options_(std::move(options)), folder_(write_scripts()) {
        try {
            start();
        } catch (...) {
            close();
            throw;
        }
    }
    PythonDevice(const PythonDevice&) = delete;
    PythonDevice& operator=(const PythonDevice&) = delete;
    ~PythonDevice() override { close(); }

    [[nodiscard]] Environment environment() const override { return environment_; }
    [[nodiscard]] std::string source() const override { return source_; }

    bool restart() override {
        stop();
        try {
            start();
            return true;
        } catch (const Error&) {
            return false;
        }
    }

    std::optional<Failure> prepare(const BenchCase& bench_case) override {
        calls_ = bench_case.calls;
        const json answer = ask({{"do", "prepare"},
                                 {"model", bench_case.model},
                                 {"graph", to_text(*bench_case.graph)},
                                 {"bindings", bench_case.bindings},
                                 {"mode", name_of(bench_case.mode)},
                                 {"warm_ups", bench_case.warm_ups},
                                 {"weight_sets", bench_case.weight_sets}});
        source_ = answer.value("note", "");
        return failure_in(answer);
    }

    std::variant<Sample, Failure> sample() override {
        const json answer = ask({{"do", "sample"}, {"calls", calls_}});
        if (const auto failure = failure_in(answer)) return *failure;
        Sample sample{answer.value("seconds", 0.0)};
        if (answer.contains("clock_ratio")) sample.clock_ratio = answer["clock_ratio"].get<double>();
        sample.disturbed = answer.value("disturbed", false);
        return sample;
    }

  private:
    void start() {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
            throw Error(ErrorCode::limit, fmt::format("cannot create a socket: {}", std::strerror(errno)));
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
        ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        // Ctrl-C goes to the whole terminal; the worker must outlive it until the loop has stopped.
        posix_spawnattr_t attributes;
        ::posix_spawnattr_init(&attributes);
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        const std::string script = folder_ + "/worker.py";
        const std::array<const char*, 3> arguments{options_.python.c_str(), script.c_str(), nullptr};
        const int reason = ::posix_spawnp(&process_, options_.python.c_str(), &actions, &attributes,
                                          const_cast<char* const*>(arguments.data()), environ);
        ::posix_spawnattr_destroy(&attributes);
        ::posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        channel_ = ends[0];
        if (reason != 0) {
            process_ = -1;
            throw Error(ErrorCode::usage, fmt::format("cannot start {}: {}; --python names another", options_.python,
                                                      std::strerror(reason)));
        }
        const json answer = ask({{"do", "start"},
                                 {"device", options_.device},
                                 {"framework", options_.framework},
                                 {"precision", name_of(options_.precision)},
                                 {"threads", options_.threads}});
        if (const auto failure = failure_in(answer)) {
            throw Error(failure->kind == FailureKind::failed ? ErrorCode::refused : ErrorCode::usage,
                        fmt::format("{}: {}", options_.python, failure->message));
        }
        environment_.clear();
        for (const auto& [key, value] : answer["environment"].items()) {
            environment_.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
        }
    }

    void stop() {
        if (channel_ >= 0) ::close(std::exchange(channel_, -1));  // the worker ends at the end of its input
        unread_.clear();
        if (process_ <= 0) return;
        for (int i = 0; i < 50 && ::waitpid(process_, nullptr, WNOHANG) == 0; ++i) {
            if (i == 40) ::kill(process_, SIGKILL);
            ::usleep(50'000);
        }
        process_ = -1;
    }

    json ask(const json& request) {
        const std::string line = request.dump() + "\n";
        for (std::size_t written = 0; written < line.size();) {
            const ssize_t count = ::write(channel_, line.data() + written, line.size() - written);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return lost("the worker ended");
            written += static_cast<std::size_t>(count);
        }
        for (;;) {
            const std::size_t end = unread_.find('\n');
            if (end != std::string::npos) {
                json answer = json::parse(unread_.substr(0, end), nullptr, false);
                unread_.erase(0, end + 1);
                return answer.is_object() ? answer : lost("the worker answered with something else than JSON");
            }
            pollfd waiting{channel_, POLLIN, 0};
            const int ready = ::poll(&waiting, 1, static_cast<int>(options_.answer_limit_s * 1e3));
            if (ready < 0 && errno == EINTR) continue;
            if (ready <= 0) return lost("the worker does not answer");
            std::array<char, 1 << 16> buffer;
            const ssize_t count = ::read(channel_, buffer.data(), buffer.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return lost("the worker died");
            unread_.append(buffer.data(), static_cast<std::size_t>(count));
        }
    }

    void close() {
        stop();
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    PythonOptions options_;
    std::string folder_;  ///< folder of the scripts, removed at the end
    Environment environment_;
    pid_t process_ = -1;
    int channel_ = -1;  ///< requests go there, answers come from it
    std::string unread_;
    std::string source_;  ///< origin of the prepared network
    int calls_ = 1;
};

}  // namespace

std::unique_ptr<BenchDevice> open_python(PythonOptions options) {
    return std::make_unique<PythonDevice>(std::move(options));
}

}  // namespace ftax::bench
