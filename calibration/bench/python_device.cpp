#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "calibration/bench/bench_device.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/machine.hpp"

extern char** environ;

namespace ftax::bench {
namespace {

using nlohmann::json;

constexpr std::string_view script_folder = "calibration/bench/python/";

/// A folder with the embedded scripts, which goes with it.
struct Scripts {
    std::string folder = (std::filesystem::temp_directory_path() / "ftax-measure-XXXXXX").string();

    Scripts() {
        if (!::mkdtemp(folder.data()))
            throw_error(ErrorCode::usage, "cannot create {}: {}", folder, std::strerror(errno));
        for (const EmbeddedFile& file : embedded_files())
            if (file.path.starts_with(script_folder))
                write_file(fmt::format("{}/{}", folder, file.path.substr(script_folder.size())), file.content);
    }
    ~Scripts() {
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
    }
    Scripts(const Scripts&) = delete;
    Scripts& operator=(const Scripts&) = delete;
};

json case_json(const BenchCase& one) {
    return {{"id", one.id},
            {"labels", one.labels},
            {"model", one.model},
            {"graph", to_text(*one.graph)},
            {"bindings", one.bindings},
            {"mode", name_of(one.mode)},
            {"warm_ups", one.warm_ups},
            {"weight_sets", one.weight_sets}};
}

class PythonDevice : public BenchDevice {
  public:
    explicit PythonDevice(PythonOptions options) : options_(std::move(options)) {
        if (options_.framework == "libtorch") library_ = find_beside_program("ftax_libtorch.so");
        if (options_.framework == "libtorch" && library_.empty())
            throw Error(ErrorCode::usage,
                        "this ftax was built without LibTorch (cmake -DFTAX_BUILD_TORCH=ON); --framework "
                        "pytorch-eager measures through Python");
        run(json::object(), {}, [&](const json& answer) {
            for (const auto& [key, value] : answer.at("environment").items()) environment_.emplace_back(key, value);
            warnings_ = answer.at("warnings").get<std::vector<std::string>>();
        });
        if (environment_.empty()) throw_error(ErrorCode::refused, "{} ended without an answer", options_.python);
    }

    [[nodiscard]] Environment environment() const override { return environment_; }
    [[nodiscard]] std::vector<std::string> warnings() const override { return warnings_; }

    bool measure(const BenchJob& job, const BenchEvents& events) override {
        const StoppingLimits& limits = job.limits;
        json request{{"file", job.path},
                     {"columns", job.columns},
                     {"cases", json::array()},
                     {"limits",
                      {limits.min_samples, limits.min_total_s, limits.max_total_s, limits.relative_stddev,
                       limits.relative_interval}},
                     {"repetitions", job.repetitions},
                     {"budget_s", job.budget_s}};
        for (const BenchCase& one : job.cases) request["cases"].push_back(case_json(one));
        return run(std::move(request), events.interrupted, [&](const json& answer) {
            if (answer.contains("warning")) events.warn(answer["warning"].get<std::string>());
            if (answer.contains("done")) events.progress(answer["done"], answer.at("total"));
        });
    }

  private:
    /// Runs job.py. Returns whether it did all; `hear` gets each of its answers but errors, which are thrown.
    template <class Hear>
    bool run(json request, const std::function<bool()>& interrupted, const Hear& hear) {
        request.update({{"device", options_.device},
                        {"framework", options_.framework},
                        {"precision", name_of(options_.precision)},
                        {"threads", options_.threads},
                        {"channels_last", options_.channels_last},
                        {"library", library_}});
        const std::string job = scripts_.folder + "/job.json", script = scripts_.folder + "/job.py";
        write_file(job, request.dump());
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0)
            throw_error(ErrorCode::limit, "cannot create a pipe: {}", std::strerror(errno));
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        // Ctrl-C goes to the whole terminal; this process passes it on.
        posix_spawnattr_t attributes;
        ::posix_spawnattr_init(&attributes);
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        const std::string python = find_program(options_.python);
        // Isolated (-I), Python imports nothing from the working folder.
        const std::array<const char*, 5> arguments{python.c_str(), "-I", script.c_str(), job.c_str(), nullptr};
        pid_t process = -1;
        const int reason = ::posix_spawn(&process, python.c_str(), &actions, &attributes,
                                         const_cast<char* const*>(arguments.data()), environ);
        ::posix_spawnattr_destroy(&attributes);
        ::posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        std::optional<Error> problem;
        if (reason != 0) {
            ::close(ends[0]);
            throw_error(ErrorCode::usage, "cannot start {}: {}; --python names another", options_.python,
                        std::strerror(reason));
        }
        bool is_told = false;
        for (std::string unread;;) {
            if (interrupted && !is_told && interrupted()) is_told = ::kill(process, SIGINT) == 0;
            pollfd waiting{ends[0], POLLIN, 0};
            constexpr int patience_ms = 100;
            if (::poll(&waiting, 1, patience_ms) <= 0) continue;
            std::array<char, 1 << 16> buffer;
            const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) break;
            unread.append(buffer.data(), static_cast<std::size_t>(count));
            for (std::size_t end; (end = unread.find('\n')) != std::string::npos; unread.erase(0, end + 1)) {
                try {
                    const json answer = json::parse(unread.substr(0, end));
                    if (!answer.contains("error")) {
                        hear(answer);
                        continue;
                    }
                    const ErrorCode code = answer["error"] == "unusable" ? ErrorCode::usage : ErrorCode::refused;
                    problem.emplace(code,
                                    fmt::format("{}: {}", options_.python, answer.at("message").get<std::string>()));
                } catch (const json::exception&) {
                    problem.emplace(ErrorCode::refused, fmt::format("{}: not an answer of job.py", options_.python));
                }
            }
        }
        ::close(ends[0]);
        int status = 0;
        while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
        }
        if (problem) throw *problem;
        if (WIFSIGNALED(status))
            throw_error(ErrorCode::refused, "{} was ended by signal {}", options_.python, WTERMSIG(status));
        return status == 0;
    }

    PythonOptions options_;
    Scripts scripts_;
    std::string library_;
    Environment environment_;
    std::vector<std::string> warnings_;
};

}  // namespace

std::unique_ptr<BenchDevice> open_python(PythonOptions options) {
    return std::make_unique<PythonDevice>(std::move(options));
}

}  // namespace ftax::bench
