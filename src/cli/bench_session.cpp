#include "src/cli/bench_session.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "calibration/bench/libtorch_plugin.hpp"
#include "calibration/bench/machine.hpp"
#include "calibration/bench/python_device.hpp"
#include "calibration/bench/watched_device.hpp"
#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/precision.hpp"
#include "ftax/work.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/file.hpp"
#include "src/io/json_document.hpp"
#include "src/scenario/scenario.hpp"

extern char** environ;

namespace ftax::cli {
using namespace scenario;
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

/// During its lifetime, Ctrl-C stops the measurement instead of the program.
class InterruptGuard {
  public:
    InterruptGuard() {
        interrupt_seen = 0;
        struct sigaction action {};
        action.sa_handler = [](int) { interrupt_seen = 1; };
        for (const int signal : signals) ::sigaction(signal, &action, &before_[signal == SIGTERM]);
    }
    ~InterruptGuard() {
        for (const int signal : signals) ::sigaction(signal, &before_[signal == SIGTERM], nullptr);
    }
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

  private:
    static constexpr std::array signals{SIGINT, SIGTERM};
    std::array<struct sigaction, 2> before_{};
};

/// Returns the command line of this process from the kernel.
std::string command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::replace(text.begin(), text.end(), '\0', ' ');
    return text;
}

std::string python_of(const BenchArguments& arguments) {
    if (!arguments.python.empty()) return arguments.python;
    const char* variable = std::getenv("FTAX_PYTHON");
    return variable && *variable ? variable : "python3";
}

std::unique_ptr<bench::BenchDevice> open_device(const BenchArguments& arguments) {
    const Precision precision = parse_precision(arguments.precision);
    if (precision_spec(precision).quantizes_weights()) {
        throw Error(ErrorCode::usage, fmt::format("operators are not measured in {}", arguments.precision));
    }
    std::unique_ptr<bench::BenchDevice> device;
    if (arguments.framework == "libtorch") {
        device = bench::open_libtorch(arguments.device, precision, arguments.threads);
    } else {
        device = bench::open_python({.python = python_of(arguments),
                                     .device = arguments.device,
                                     .framework = arguments.framework,
                                     .precision = precision,
                                     .threads = arguments.threads});
    }
    if (arguments.device == "cpu") return device;
    return std::make_unique<bench::WatchedDevice>(std::move(device), bench::nvml_monitor());
}

std::string value_of(const bench::Environment& environment, std::string_view key) {
    const auto found =
        std::find_if(environment.begin(), environment.end(), [&](const auto& e) { return e.first == key; });
    return found == environment.end() ? std::string() : found->second;
}

/// Rows of two machines or frameworks in one file would be fitted as one.
void refuse_other_machine(const std::string& file, const bench::Environment& now) {
    if (!std::filesystem::exists(file)) return;
    const nlohmann::json before = parse_json(read_file(file), file);
    for (const char* key : {"device", "cpu", "framework"}) {
        const auto was = before.value("environment", nlohmann::json::object()).value(key, ""), is = value_of(now, key);
        if (was != is && !was.empty())
            throw Error(ErrorCode::refused,
                        fmt::format("{}: {} is {}, now {}: choose another folder (--output)", file, key, was, is));
    }
}

/// Returns the calls per sample: about a millisecond on a slow device, and few enough not to fill the queue.
int calls_for(const Graph& graph) {
    const Work work = total_work(graph, bind(graph, {}));
    const double slow_s =
        static_cast<double>(work.flops) / 5e10 + static_cast<double>(work.read_bytes + work.write_bytes) / 1e10 + 5e-6;
    return static_cast<int>(std::clamp(1e-3 / slow_s, 1.0, 64.0));
}

/// Asynchronous calls that leave the launch queue of 1,024 kernels half empty, at two kernels per operator.
int queued_operators(const Graph& graph) {
    return std::max(1, 256 / static_cast<int>(graph.ops.size()));
}

/// Time of a case besides its samples: creating its tensors, warming up.
constexpr double start_of_case_s = 0.05;

std::string minutes(double seconds) {
    return fmt::format("{:.0f}", std::max(1.0, std::ceil(seconds / 60)));
}

/// Runs this program again and returns its exit code. Ctrl-C reaches it through the terminal's process group.
int run_again(const std::vector<std::string>& arguments) {
    std::vector<const char*> pointers{"ftax"};
    for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
    pointers.push_back(nullptr);
    pid_t child = -1;
    const int reason =
        ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char* const*>(pointers.data()), environ);
    if (reason != 0) throw Error(ErrorCode::refused, fmt::format("cannot start ftax again: {}", std::strerror(reason)));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::vector<std::string> dispatch_command(const BenchArguments& arguments, int repetition) {
    std::vector<std::string> command{"measure",      "dispatch",
                                     "--device",     arguments.device,
                                     "--framework",  arguments.framework,
                                     "--precision",  arguments.precision,
                                     "--threads",    fmt::format("{}", arguments.threads),
                                     "--output",     arguments.output,
                                     "--repetition", fmt::format("{}", repetition)};
    if (arguments.quick) command.push_back("--quick");
    if (arguments.resume || repetition > 0) command.push_back("--resume");
    if (arguments.budget_s > 0) {
        command.push_back("--budget");
        command.push_back(fmt::format("{}", arguments.budget_s));
    }
    return command;
}

void add_bench_options(Verb verb, BenchArguments& arguments) {
    verb.add_option("--device", arguments.device, "cpu, or cuda for this machine's GPU")
        .one_of({"cpu", "cuda", "cuda:0"})
        .capture_default_str();
    verb.add_option("--framework", arguments.framework,
                    "framework that runs the operators: libtorch in this program, others through Python")
        .one_of({"libtorch", "pytorch-eager", "torchscript", "torch-cuda-graph", "torch-compile", "onnxruntime-cuda",
                 "onnxruntime-cpu"},
                true)
        .capture_default_str();
    verb.add_option("--precision", arguments.precision, "fp32, tf32, fp16, bf16 or amp").capture_default_str();
    verb.add_option("--python", arguments.python, "Python with the framework (default: $FTAX_PYTHON, then python3)");
    verb.add_option("-o,--output", arguments.output, "folder for the results", "DIR").capture_default_str();
    verb.add_option("--threads", arguments.threads,
                    "CPU threads; a single thread is timed by CPU time, independent of other processes")
        .range(1, 1024)
        .capture_default_str();
    verb.add_flag("--quick", arguments.quick, "fewer shapes and samples: minutes instead of tens of minutes");
    verb.add_option("--budget", arguments.budget_s, "stop after this many seconds; --resume continues").positive();
    verb.add_flag("--resume", arguments.resume, "continue existing result files: measure only missing cases");
}

BenchSession::BenchSession(const BenchArguments& arguments) : BenchSession(arguments, open_device(arguments)) {}

BenchSession::BenchSession(const BenchArguments& arguments, std::unique_ptr<bench::BenchDevice> device)
    : arguments_(arguments), device_(std::move(device)) {
    std::error_code failed;
    std::filesystem::create_directories(arguments_.output, failed);
    if (failed) throw Error(ErrorCode::usage, fmt::format("cannot create {}: {}", arguments_.output, failed.message()));
    print_warnings(device_->warnings());
    bench::Environment environment = bench::machine_environment(command_line());
    environment.emplace_back("ftax", FTAX_VERSION);
    environment.emplace_back("framework", arguments_.framework);
    environment.emplace_back("precision", arguments_.precision);
    for (auto& entry : device_->environment()) environment.push_back(std::move(entry));
    if (arguments_.device == "cpu") {
        spec_ = bench::query_cpu(arguments_.threads);
    } else if (const std::string name = value_of(environment, "device"); !name.empty()) {
        spec_ = device_spec(name);
    } else {
        throw Error(ErrorCode::refused, "neither the framework nor NVML names this GPU: a datasheet cannot be chosen");
    }
    if (arguments_.resume) refuse_other_machine(path("environment.json"), environment);
    if (!arguments_.repetition) bench::write_environment(path("environment.json"), environment);
}

bool BenchSession::is_over() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    return arguments_.budget_s > 0 && spent.count() > arguments_.budget_s;
}

bool BenchSession::run(std::span<const bench::BenchCase> cases, const std::vector<std::vector<std::string>>& labels,
                       const std::vector<std::string>& columns, const std::string& file, bench::LoopOptions options) {
    options.settling_samples = arguments_.device == "cpu" ? 0 : 1;
    std::vector<std::string> header = columns;
    for (std::string& column : bench::result_columns()) header.push_back(std::move(column));
    bench::ResultFile results(path(file), header, arguments_.resume);
    const double least_s = options.limits.min_total_s + start_of_case_s,
                 most_s = options.limits.max_total_s + start_of_case_s;
    const double count = static_cast<double>(cases.size()) * (options.only_repetition ? 1 : options.repetitions);
    if (!options.only_repetition)
        fmt::print(
            notices(), "{}: {} cases, {} to {} min{}\n", file, cases.size(), minutes(count * least_s),
            minutes(count * most_s),
            arguments_.budget_s > 0 ? fmt::format("; --budget ends after {} min", minutes(arguments_.budget_s)) : "");
    Progress progress(file, std::chrono::milliseconds(0));
    const InterruptGuard guard;
    bench::LoopSurroundings surroundings{
        .is_done = [&](const bench::BenchCase& c, int repetition) { return results.has(c.id, repetition); },
        .keep =
            [&](const bench::BenchCase& c, const bench::CaseResult& result) {
                std::vector<std::string> cells = labels[static_cast<std::size_t>(&c - cases.data())];
                for (std::string& cell : bench::result_cells(c, result)) cells.push_back(std::move(cell));
                results.append(cells);
                if (!result.problem.empty()) print_warnings({fmt::format("{}: {}", c.id, result.problem)});
            },
        .interrupted = [&] { return interrupt_seen != 0 || is_over(); },
        .pause = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); },
        .progress = [&](std::size_t done, std::size_t total) { progress.show(done, total); }};
    if (bench::measure(cases, *device_, options, surroundings)) return true;
    print_warnings({fmt::format("stopped early; {} has the complete rows, --resume continues", results.path())});
    return false;
}

/// A framework in this process cannot be restarted, so each repetition runs in a separate process.
bool BenchSession::measure_dispatch_in_processes() {
    const InterruptGuard guard;
    for (int repetition = 0; repetition < arguments_.dispatch_processes; ++repetition) {
        const int code = run_again(dispatch_command(arguments_, repetition));
        if (interrupt_seen != 0 || is_over()) return false;
        if (code != 0)
            throw Error(ErrorCode::refused,
                        fmt::format("repetition {} of dispatch ended with status {}", repetition, code));
    }
    return true;
}

bool BenchSession::measure_operators(std::span<const bench::OperatorCase> cases, bench::Mode mode) {
    const bool dispatch = mode == bench::Mode::host_dispatch;
    if (dispatch && arguments_.framework == "libtorch" && !arguments_.repetition)
        return measure_dispatch_in_processes();
    std::vector<bench::BenchCase> bench_cases;
    std::vector<std::vector<std::string>> labels;
    for (const bench::OperatorCase& c : cases) {
        const auto graph = std::make_shared<const Graph>(bench::operator_graph(c));
        const std::string shape = bench::shape_text(c);
        bench_cases.push_back(
            {.id = fmt::format("{} {} {} {}", c.op, shape, arguments_.precision, name_of(mode)),
             .graph = graph,
             .mode = mode,
             .warm_ups = 2,
             .calls = dispatch ? std::min(calls_for(*graph), queued_operators(*graph)) : calls_for(*graph),
             .weight_sets = dispatch ? 1 : bench::weight_sets(*graph, parse_precision(arguments_.precision), spec_)});
        labels.push_back({spec_.slug, arguments_.framework, arguments_.precision, c.op, shape});
    }
    bench::LoopOptions options{.repetitions = arguments_.device == "cpu" || !arguments_.quick ? 2 : 1};
    if (arguments_.device == "cpu")
        options.limits = {.min_samples = 5, .min_total_s = 0.1, .relative_stddev = 0.01, .max_total_s = 1};
    if (arguments_.quick)
        options.limits = {.min_samples = 5, .min_total_s = 0.02, .relative_stddev = 0.02, .max_total_s = 0.25};
    if (arguments_.device != "cpu") options.limits = {.min_samples = 10, .min_total_s = 0.03, .max_total_s = 0.5};
    if (dispatch) options.repetitions = arguments_.dispatch_processes, options.fresh_processes = true;
    options.only_repetition = arguments_.repetition;
    return run(bench_cases, labels, {"gpu", "framework", "precision", "op", "shape"},
               dispatch ? "dispatch.csv" : "operators.csv", options);
}

bool BenchSession::measure_models(const std::vector<std::string>& models, const std::vector<std::int64_t>& batches,
                                  const ShapeBindings& dims, std::span<const bench::Mode> modes,
                                  const std::string& file) {
    std::vector<bench::BenchCase> cases;
    std::vector<std::vector<std::string>> labels;
    for (const std::string& model : models) {
        const auto graph = std::make_shared<const Graph>(ftax::load_graph(model));
        for (const std::int64_t batch : batches) {
            ShapeBindings bindings;
            for (const std::string& symbol : graph->expressions.symbols()) {
                const auto value = dims.find(symbol);
                if (value != dims.end()) bindings.emplace(symbol, value->second);
            }
            bindings["batch"] = batch;
            const auto seq = bindings.find("seq");
            const std::string seq_text = seq == bindings.end() ? "" : fmt::format("{}", seq->second);
            for (const bench::Mode mode : modes) {
                cases.push_back({.id = fmt::format("{} batch={} seq={} {} {}", model, batch, seq_text,
                                                   arguments_.precision, name_of(mode)),
                                 .model = model,
                                 .graph = graph,
                                 .bindings = bindings,
                                 .mode = mode,
                                 .warm_ups = arguments_.quick ? 2 : 10});
                labels.push_back({spec_.slug, arguments_.framework, arguments_.precision, model,
                                  fmt::format("{}", batch), seq_text});
            }
        }
    }
    bench::LoopOptions options;
    // Stops at a precision of 1 %: a hundred runs of each of 200 cases would take an hour.
    options.limits = {.min_samples = 10, .min_total_s = 0.1, .max_total_s = 5, .relative_interval = 0.01};
    if (arguments_.quick)
        options.limits = {.min_samples = 3, .min_total_s = 0.3, .relative_stddev = 0.02, .max_total_s = 2};
    return run(cases, labels, {"gpu", "framework", "precision", "model", "batch", "seq"}, file, options);
}

void BenchSession::measure_runtime() {
    const std::string file = path("runtime.csv");
    if (arguments_.device == "cpu" || std::filesystem::exists(file)) return;
    const std::string probe = bench::find_cuda_probe();
    if (probe.empty()) {
        print_warnings(
            {"the CUDA runtime itself is not measured: this ftax was built without it (cmake -DFTAX_BUILD_CUDA=ON)"});
        return;
    }
    try {
        write_file(file, bench::run_cuda_probe(probe));
    } catch (const Error& error) {
        print_warnings({fmt::format("the CUDA runtime itself is not measured: {}", error.what())});
    }
}

}  // namespace ftax::cli
