#include "src/cli/bench_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <utility>

#include "ftax/import.hpp"
#include "ftax/precision.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "src/scenario/scenario.hpp"

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

std::unique_ptr<bench::BenchDevice> open_device(const BenchArguments& arguments) {
    const Precision precision = parse_precision(arguments.precision);
    if (precision_spec(precision).quantizes_weights())
        throw_error(ErrorCode::usage, "operators are not measured in {}", arguments.precision);
    return bench::open_python({.python = arguments.python,
                               .device = arguments.device,
                               .framework = arguments.framework,
                               .precision = precision,
                               .threads = arguments.threads,
                               .channels_last = arguments.channels_last});
}

std::string value_of(const bench::Environment& environment, std::string_view key) {
    const auto found = std::ranges::find_if(environment, [&](const auto& e) { return e.first == key; });
    return found == environment.end() ? std::string() : found->second;
}

/// Rows of two machines in one file would be fitted as one.
void refuse_other_machine(const std::string& file, const bench::Environment& now) {
    if (!std::filesystem::exists(file)) return;
    const nlohmann::json before = parse_json(read_file(file), file);
    for (const char* key : {"device", "cpu"}) {
        const auto was = before.value("environment", nlohmann::json::object()).value(key, ""), is = value_of(now, key);
        if (was != is && !was.empty())
            throw_error(ErrorCode::refused, "{}: {} is {}, now {}: choose another folder (--output)", file, key, was,
                        is);
    }
}

/// Time of a case besides its samples: creating its tensors, warming up.
constexpr double start_of_case_s = 0.05;

std::string minutes(double seconds) {
    return fmt::format("{:.0f}", std::max(1.0, std::ceil(seconds / 60)));
}

/// Rows are appended to a file of the same columns only, and to an existing one only if that is asked for.
void refuse_other_file(const std::string& file, const std::vector<std::string>& columns, bool resume) {
    if (!std::filesystem::exists(file)) return;
    if (!resume) throw_error(ErrorCode::usage, "{} exists; --resume continues it", file);
    const std::string text = read_file(file);
    if (text.find('\n') == text.npos) return;  // a torn header
    const CsvTable table(text, file);
    const auto known = table.header().first(std::min(columns.size(), table.header().size()));
    if (!std::ranges::equal(columns, known))
        throw_error(ErrorCode::profile, "{}: unexpected columns; choose another folder (--output)", file);
}

}  // namespace

void add_bench_options(CLI::App& verb, BenchArguments& arguments) {
    verb.add_option("--device", arguments.device, "cpu, or cuda for this machine's GPU")
        ->check(CLI::IsMember({"cpu", "cuda", "cuda:0"}))
        ->capture_default_str();
    verb.add_option("--framework", arguments.framework, "framework that runs the operators, through Python")
        ->check(CLI::IsMember({"libtorch", "pytorch-eager", "torchscript", "torch-cuda-graph", "torch-compile",
                               "onnxruntime-cuda", "onnxruntime-cpu"},
                              CLI::ignore_case))
        ->capture_default_str();
    verb.add_option("--precision", arguments.precision, "fp32, tf32, fp16, bf16 or amp")->capture_default_str();
    verb.add_option("--python", arguments.python, "Python with the framework (else python3)")->envname("FTAX_PYTHON");
    add_option(verb, "-o,--output", "DIR", arguments.output, "folder for the results")->capture_default_str();
    verb.add_option("--threads", arguments.threads,
                    "CPU threads; a single thread is timed by CPU time, independent of other processes")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    verb.add_flag("--quick", arguments.quick, "fewer shapes and samples: minutes instead of tens of minutes");
    verb.add_option("--budget", arguments.budget_s, "stop after this many seconds; --resume continues")
        ->check(CLI::PositiveNumber);
    verb.add_flag("--resume", arguments.resume, "continue existing result files: measure only missing cases");
}

BenchSession::BenchSession(const BenchArguments& arguments) : BenchSession(arguments, open_device(arguments)) {}

BenchSession::BenchSession(const BenchArguments& arguments, std::unique_ptr<bench::BenchDevice> device)
    : arguments_(arguments), device_(std::move(device)) {
    std::error_code failed;
    std::filesystem::create_directories(arguments_.output, failed);
    if (failed) throw_error(ErrorCode::usage, "cannot create {}: {}", arguments_.output, failed.message());
    print_warnings(device_->warnings());
    bench::Environment environment = bench::machine_environment();
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
    version_ = value_of(environment, "framework_version");
    if (arguments_.resume) refuse_other_machine(path("environment.json"), environment);
    write_file(path("environment.json"), bench::environment_text(environment));
}

bool BenchSession::run(const std::string& file, bench::BenchJob job) {
    job.path = path(file);
    refuse_other_file(job.path, job.columns, arguments_.resume);
    const double count = static_cast<double>(job.cases.size()) * job.repetitions;
    fmt::print(
        notices(), "{}: {} cases, {} to {} min{}\n", file, job.cases.size(),
        minutes(count * (job.limits.min_total_s + start_of_case_s)),
        minutes(count * (job.limits.max_total_s + start_of_case_s)),
        arguments_.budget_s > 0 ? fmt::format("; --budget ends after {} min", minutes(arguments_.budget_s)) : "");
    Progress progress(file, std::chrono::milliseconds(0));
    const InterruptGuard guard;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    job.budget_s = arguments_.budget_s > 0 ? std::max(arguments_.budget_s - spent.count(), 1e-3) : 0;
    const bench::BenchEvents events{
        .progress = [&](std::size_t done, std::size_t total) { progress.show(done, total); },
        .warn = [](const std::string& warning) { print_warnings({warning}); },
        .interrupted = [] { return interrupt_seen != 0; }};
    if (device_->measure(job, events)) return true;
    print_warnings({fmt::format("stopped early; {} has the complete rows, --resume continues", job.path)});
    return false;
}

bool BenchSession::measure_operators(std::span<const bench::OperatorCase> cases, bench::Mode mode) {
    const bool dispatch = mode == bench::Mode::host_dispatch, cpu = arguments_.device == "cpu";
    bench::BenchJob job{.columns = {"gpu", "framework", "precision", "op", "shape"}};
    for (const bench::OperatorCase& c : cases) {
        const auto graph = std::make_shared<const Graph>(bench::operator_graph(c));
        const std::string shape = bench::shape_text(c);
        job.cases.push_back(
            {.id =
                 fmt::format("{} {} {} {} {}", arguments_.framework, c.op, shape, arguments_.precision, name_of(mode)),
             .labels = {spec_.slug, arguments_.framework, arguments_.precision, c.op, shape},
             .graph = graph,
             .mode = mode,
             .weight_sets = dispatch ? 1 : bench::weight_sets(*graph, parse_precision(arguments_.precision), spec_)});
    }
    if (cpu) job.limits = {.min_samples = 5, .min_total_s = 0.1, .max_total_s = 1, .relative_stddev = 0.01};
    if (arguments_.quick)
        job.limits = {.min_samples = 5, .min_total_s = 0.02, .max_total_s = 0.25, .relative_stddev = 0.02};
    if (!cpu) job.limits = {.min_samples = 10, .min_total_s = 0.03, .max_total_s = 0.5};
    job.repetitions = dispatch ? arguments_.dispatch_processes : cpu || !arguments_.quick ? 2 : 1;
    return run(dispatch ? "dispatch.csv" : "operators.csv", std::move(job));
}

bool BenchSession::measure_models(const std::vector<std::string>& models, const std::vector<std::int64_t>& batches,
                                  const ShapeBindings& dims, std::span<const bench::Mode> modes,
                                  const std::string& file) {
    bench::BenchJob job{.columns = {"gpu", "framework", "version", "precision", "model", "layout", "batch", "seq"}};
    const std::string layout = arguments_.channels_last ? "nhwc" : "";
    for (const std::string& model : models) {
        const auto graph = std::make_shared<const Graph>(ftax::load_graph(model));
        for (const std::int64_t batch : batches) {
            ShapeBindings bindings = by_symbol(*graph, dims);
            const std::vector<std::string>& symbols = graph->expressions.symbols();
            std::erase_if(bindings, [&](const auto& dim) { return std::ranges::count(symbols, dim.first) == 0; });
            bindings["batch"] = batch;
            const auto seq = bindings.find("seq");
            const std::string seq_text = seq == bindings.end() ? "" : fmt::format("{}", seq->second);
            for (const bench::Mode mode : modes) {
                job.cases.push_back({.id = fmt::format("{} {} {} batch={} seq={} {} {}", arguments_.framework, model,
                                                       layout, batch, seq_text, arguments_.precision, name_of(mode)),
                                     .labels = {spec_.slug, arguments_.framework, version_, arguments_.precision, model,
                                                layout, fmt::format("{}", batch), seq_text},
                                     .model = model,
                                     .graph = graph,
                                     .bindings = bindings,
                                     .mode = mode,
                                     .warm_ups = arguments_.quick ? 2 : 10});
            }
        }
    }
    // Other load slows a host for seconds: repetitions are spread over the session, and undisturbed ones count.
    if (arguments_.device != "cpu") job.repetitions = 3;
    // Stops at a precision of 1 %: a hundred runs of each of 200 cases would take an hour.
    job.limits = {.min_samples = 10, .min_total_s = 0.1, .max_total_s = 5, .relative_interval = 0.01};
    if (arguments_.quick)
        job.limits = {.min_samples = 3, .min_total_s = 0.3, .max_total_s = 2, .relative_stddev = 0.02};
    return run(file, std::move(job));
}

void BenchSession::measure_runtime() {
    const std::string file = path("runtime.csv");
    if (arguments_.device == "cpu" || std::filesystem::exists(file)) return;
    const std::string probe = bench::find_beside_program("ftax_cuda_probe");
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
