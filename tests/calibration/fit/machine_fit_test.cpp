#include "calibration/fit/machine_fit.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "calibration/bench/operator_cases.hpp"
#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/version.hpp"
#include "graphs/files/csv.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/cli/bench_session.hpp"
#include "tests/approx.hpp"
#include "tests/calibration/fit/simulated_gpu.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;

namespace {

const std::string slug = "quadro-rtx-8000";

template <class Parameters>
double& value_in(Parameters& parameters, std::string_view name) {
    const auto found =
        std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
    REQUIRE(found != parameters.end());
    return found->value;
}

/// This very card, slower than its generation in every way that is its own.
DeviceProfile true_device() {
    DeviceProfile device = device_profile(slug);
    value_in(device.parameters, "clock.fp32") *= 0.8;
    value_in(device.parameters, "bandwidth") *= 0.85;
    value_in(device.parameters, "kernel_floor_s") *= 1.4;
    return device;
}

/// A host of another speed, where convolutions cost more than elsewhere.
FrameworkProfile true_host() {
    FrameworkProfile host = at_version(framework_profile("pytorch-eager"), *newest_version("pytorch-eager"));
    value_in(host.parameters, "host.scale") *= 0.6;
    value_in(host.parameters, "host.conv") *= 1.5;
    return host;
}

double cost(const FrameworkProfile& profile, HostKind kind) {
    return host_costs(profile, Precision::fp32)[kind];
}

}  // namespace

TEST_CASE("a GPU's calibration recovers the machine behind the measurements and predicts its networks") {
    const test::TemporaryFolder folder;
    cli::CalibrateArguments arguments;
    arguments.bench.device = "cuda:0";
    arguments.bench.framework = "pytorch-eager";
    arguments.bench.quick = true;
    arguments.bench.output = folder.file("calibrated");
    arguments.max_mape_percent = 3;
    auto device = std::make_unique<bench::test::SimulatedGpu>(true_device(), true_host(), 0.03);
    const bench::test::SimulatedGpu& gpu = *device;
    cli::BenchSession session(arguments.bench, std::move(device));
    CHECK(cli::calibrate(arguments, session) == 0);
    CHECK(gpu.jobs.at(0).repetitions == 3);  // of dispatch, each in a process of its own

    const std::string profile = session.path("profile.json");
    DeviceProfile fitted = device_profile(slug, profile);
    DeviceProfile truth = true_device();
    CHECK(value_in(fitted.parameters, "clock.fp32") == approx(value_in(truth.parameters, "clock.fp32")).epsilon(0.03));
    CHECK(value_in(fitted.parameters, "bandwidth") == approx(value_in(truth.parameters, "bandwidth")).epsilon(0.03));
    CHECK(value_in(fitted.parameters, "kernel_floor_s") ==
          approx(value_in(truth.parameters, "kernel_floor_s")).epsilon(0.05));
    // Ratios of the generation are those of the built-in profile; so are other cards.
    CHECK(value_in(fitted.parameters, "memory.norm_efficiency") ==
          value_in(truth.parameters, "memory.norm_efficiency"));
    CHECK(device_profile("a100-sxm4-40gb", profile).parameters.size() ==
          device_profile("a100-sxm4-40gb").parameters.size());
    const auto clock = std::find_if(fitted.parameters.begin(), fitted.parameters.end(),
                                    [](const Parameter& p) { return p.name == "clock.fp32"; });
    CHECK(clock->source.find("left out") != std::string::npos);

    const FrameworkProfile host = framework_profile("pytorch-eager", {}, session.path("framework.json"));
    for (const HostKind kind : {HostKind::conv, HostKind::gemm, HostKind::elementwise, HostKind::batch_norm}) {
        CAPTURE(name_of(kind));
        CHECK(cost(host, kind) == approx(cost(true_host(), kind)).epsilon(0.1));
    }
    // Nothing measured makes module calls: they follow the machine.
    CHECK(cost(host, HostKind::module_call) == approx(cost(true_host(), HostKind::module_call)).epsilon(0.15));

    // The rows that `ftax measure` wrote say the same to `ftax fit`.
    const auto run = test::run_ftax({"fit", session.path("operators.csv"), session.path("dispatch.csv"),
                                     session.path("fitted_models.csv"), "-o", folder.file("again.json"),
                                     "--host-output", folder.file("host.json")});
    CHECK(run.exit_code == 0);
    DeviceProfile again = device_profile(slug, folder.file("again.json"));
    CHECK(value_in(again.parameters, "clock.fp32") == approx(value_in(fitted.parameters, "clock.fp32")).epsilon(1e-6));
    CHECK(cost(framework_profile("pytorch-eager", {}, folder.file("host.json")), HostKind::conv) ==
          approx(cost(host, HostKind::conv)).epsilon(1e-6));
}

namespace {

const std::string hopper = "h200-sxm-141gb";

/// Rows in the format of `ftax measure`, of an H200 and a host without a profile.
class SyntheticCampaign {
  public:
    static constexpr double gap_s = 1.7e-6, launch_latency_s = 6e-6;
    /// What is this card's own, against what ftax expects of an H200.
    static constexpr std::pair<std::string_view, double> planted[] = {{"clock.fp32", 0.9},
                                                                      {"clock.tensor", 0.85},
                                                                      {"tensor_gemm.clock", 0.9},
                                                                      {"bandwidth", 0.92},
                                                                      {"kernel_floor_s", 1.3}};

    DeviceProfile device = device_profile(hopper);
    FrameworkProfile host = at_version(framework_profile("pytorch-eager"), *newest_version("pytorch-eager"));

    explicit SyntheticCampaign(double throttled_share = 0) : throttled_share_(throttled_share) {
        for (const auto& [name, factor] : planted) scale(std::string(name), factor);
        value_in(host.parameters, "host.scale") *= 0.6;
        value_in(host.parameters, "host.conv") *= 1.5;
        without_modules_ = host;
        set(without_modules_.parameters, "host.module_call", 0);
        for (const bench::OperatorCase& c : bench::gpu_operators(device.device.sms)) {
            for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
                add_operator(c, precision);
        }
        for (int repetition = 0; repetition < 5; ++repetition) {
            for (const bench::OperatorCase& c : bench::dispatch_operators()) {
                const Graph graph = bench::operator_graph(c);
                dispatch_ += fmt::format("{},pytorch-eager,{},fp32,{},host_dispatch,{},{:.9g},\n", hopper, c.op,
                                         bench::shape_text(c), repetition,
                                         1e3 * noisy(predict(graph, host, Precision::fp32, {}).host_s));
            }
        }
        for (const char* model : {"resnet18", "bert", "mobilenet_v2", "densenet"}) {
            const Graph graph = load_graph(model);
            for (const std::int64_t batch : {1, 8, 128}) {
                const Prediction p =
                    predict(graph, without_modules_, Precision::fp32, {{"batch", batch}, {"seq", 128}});
                const double device_s = p.device_s + p.kernels * gap_s;
                // With a full launch queue the host waits for the device.
                const double host_s = batch == 128 ? std::max(p.host_s, device_s) : p.host_s;
                for (const auto& [mode, seconds] : {std::pair{"device_hot", device_s}, {"host_dispatch", host_s}})
                    models_ +=
                        fmt::format("{},pytorch-eager,fp32,{},{},{},{},ftax graph,{:.9g},\n", hopper, model, batch,
                                    model == std::string_view("bert") ? "128" : "", mode, 1e3 * noisy(seconds));
            }
        }
    }

    /// Fits all of it; `probe`: what the runtime costs, beside the rows.
    std::pair<DeviceProfile, FrameworkProfile> fit(const std::string& probe) const {
        const test::TemporaryFolder folder;
        const std::vector<std::string> files{
            folder.write("operators.csv", "gpu,op,precision,shape,mode,latency_ms,clock_mhz,problem\n" + operators_),
            folder.write("dispatch.csv",
                         "gpu,framework,op,precision,shape,mode,repetition,latency_ms,problem\n" + dispatch_),
            folder.write("models.csv",
                         "gpu,framework,precision,model,batch,seq,mode,source,latency_ms,problem\n" + models_)};
        std::vector<std::string> command{"fit", files[0], files[1], files[2]};
        if (!probe.empty()) command.push_back(folder.write("probe.csv", probe));
        command.insert(command.end(), {"-o", folder.file("profile.json"), "--host-output", folder.file("host.json")});
        const auto run = test::run_ftax(command);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return {device_profile(hopper, folder.file("profile.json")),
                framework_profile("pytorch-eager", {}, folder.file("host.json"))};
    }

    static std::string probe() {
        return fmt::format(
            "quantity,value,unit,samples,source\nlaunch_latency,{},s,256,cupti\nkernel_gap,{},s,21,events\n"
            "graph_gap,9e-7,s,21,events\n",
            launch_latency_s, gap_s);
    }

    static double value(const std::vector<Parameter>& parameters, std::string_view name) {
        const auto found =
            std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
        REQUIRE_MESSAGE(found != parameters.end(), name);
        return found->value;
    }

  private:
    /// Profiles have their parameters in order of their names.
    static void set(std::vector<Parameter>& parameters, const std::string& name, double value) {
        std::erase_if(parameters, [&](const Parameter& p) { return p.name == name; });
        const auto place =
            std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name > name; });
        parameters.insert(place, {name, value, 0, "test"});
    }
    void scale(const std::string& name, double factor) {
        double initial = 0;
        KernelParameters parameters = kernel_parameters(device);
        visit_parameters(parameters, device.device, [&](std::string_view known, double& value, const ParameterSpec&) {
            if (known == name) initial = value;
        });
        set(device.parameters, name, initial * factor);
    }
    Prediction predict(const Graph& graph, const FrameworkProfile& framework, Precision precision,
                       const ShapeBindings& bindings, bool has_tf32 = true) const {
        ShapeBindings known;
        for (const std::string& symbol : graph.expressions.symbols()) known[symbol] = bindings.at(symbol);
        DeviceProfile card = device;
        if (!has_tf32) card.device.peak_flops_per_s[static_cast<std::size_t>(MathPath::tf32)].reset();
        Predictor predictor(graph, std::move(card), framework,
                            {.precision = precision, .libraries = {.cudnn = 9}, .synchronized = true});
        return predictor.predict(known);
    }
    /// 3 % of noise; two rows three times too long.
    double noisy(double seconds) {
        ++rows_;
        return seconds * std::exp(noise_(random_)) * (rows_ == 20 || rows_ == 90 ? 3 : 1);
    }
    /// Operators are measured in exactly the precision they name: their fp32 convolutions do not use TF32.
    void add_operator(const bench::OperatorCase& c, Precision precision) {
        Graph graph = bench::operator_graph(c);
        // Weights that other calls read.
        const std::int64_t other_copies = bench::weight_sets(graph, precision, device.device) - 1;
        graph.tensors.push_back({.name = "copies",
                                 .role = TensorRole::weight,
                                 .shape = {graph.expressions.constant(bench::weight_bytes(graph) / 4 * other_copies)}});
        const Prediction p = predict(graph, host, precision, {}, precision != Precision::fp32);
        // The share that is throttled runs at 0.72 of the clock, one slice of the time.
        const double clock = rows_ > 500 && rows_ < 500 + throttled_share_ * 2640 ? 0.72 : 1;
        operators_ +=
            fmt::format("{},{},{},{},device_hot,{:.9g},{:.0f},\n", hopper, c.op, name_of(precision),
                        bench::shape_text(c), 1e3 * noisy(p.device_s / clock + p.kernels * gap_s), 1980 * clock);
    }

    double throttled_share_;
    FrameworkProfile without_modules_;
    std::mt19937 random_{7};
    std::normal_distribution<double> noise_{0, 0.03};
    int rows_ = 0;
    std::string operators_, dispatch_, models_;
};

}  // namespace

TEST_CASE("an H200's campaign returns what it was made with: clocks, bandwidth, floor, gap, launch and host costs") {
    const SyntheticCampaign campaign;
    const auto [device, host] = campaign.fit(SyntheticCampaign::probe());
    for (const auto& planted : SyntheticCampaign::planted) {
        const auto& name = planted.first;
        CAPTURE(name);
        CHECK(SyntheticCampaign::value(device.parameters, name) ==
              approx(SyntheticCampaign::value(campaign.device.parameters, name)).epsilon(0.05));
    }
    for (const HostKind kind : {HostKind::conv, HostKind::conv_depthwise, HostKind::gemm, HostKind::bmm,
                                HostKind::elementwise, HostKind::layer_norm, HostKind::batch_norm}) {
        CAPTURE(name_of(kind));
        CHECK(cost(host, kind) == approx(cost(campaign.host, kind)).epsilon(0.05));
    }
    // Nothing that ran made a module call: they follow the machine.
    CHECK(cost(host, HostKind::module_call) == approx(cost(campaign.host, HostKind::module_call)).epsilon(0.1));
    CHECK(host_costs(host, Precision::fp32).kernel_gap_s == approx(SyntheticCampaign::gap_s));
    CHECK(host_costs(host, Precision::fp32).launch_latency_s == approx(SyntheticCampaign::launch_latency_s));
}

TEST_CASE("a slice of the campaign on a hot card leaves the clocks as they are; most of it at a low clock is refused") {
    const SyntheticCampaign campaign(0.25);
    const auto device = campaign.fit(SyntheticCampaign::probe()).first;
    for (const auto& [name, factor] : SyntheticCampaign::planted) {
        const std::string parameter(name);
        CAPTURE(parameter);
        CHECK(SyntheticCampaign::value(device.parameters, parameter) ==
              approx(SyntheticCampaign::value(campaign.device.parameters, parameter)).epsilon(0.05));
    }
    const test::TemporaryFolder folder;
    std::string rows = "gpu,op,precision,shape,mode,latency_ms,clock_mhz,slowdown\n";
    for (int i = 0; i < 40; ++i)
        rows += fmt::format("t4,relu,fp32,b=1 h={},device_hot,0.01,{},\n", 128 + i, i < 5 ? 950 : 700);
    const auto refused = test::run_ftax({"fit", folder.write("rows.csv", rows), "-o", folder.file("profile.json")});
    CHECK(refused.exit_code == 5);
    CHECK(refused.errors.find("35 of 40 rows ran below 85 % of the clock") != std::string::npos);
}

TEST_CASE("a card that its power limit holds back gets an energy per operation of its own, another one keeps it") {
    const auto fitted_scale = [](std::string_view card, double energy_scale) {
        const DeviceSpec device = device_spec(card);
        KernelParameters truth = kernel_parameters(device_profile(card));
        const double expected = truth.gemm.energy_scale;
        truth.gemm.energy_scale *= energy_scale;
        const KernelModels machine(device, truth);
        std::vector<fit::ModelRow> rows;
        for (const std::int64_t size : {512, 768, 1024, 1536, 2048, 3072, 4096, 6144}) {
            for (const std::int64_t k : {128, 256, 512, 1024, 2048}) {
                const kernels::GemmShape product{.m = size, .n = 1024, .k = k, .linear = true};
                rows.push_back({.kernels = {{product, MathPath::fp32}}, .group = std::to_string(size)});
                rows.back().latency_s = kernels::within_power(sum_time(rows.back().kernels, machine));
            }
        }
        const auto profile = fit::fit_gpu(rows, device, embedded_device_profile()).profile;
        return kernel_parameters(compose(profile, device)).gemm.energy_scale / expected;
    };
    CHECK(fitted_scale("t4", 1.2) == approx(1.2).epsilon(0.03));
    CHECK(fitted_scale("v100-sxm2-32gb", 1.05) == 1);
}

TEST_CASE("too few rows, and rows of two machines, are refused") {
    const DeviceSpec device = device_spec(slug);
    CHECK_THROWS_AS(static_cast<void>(fit::fit_gpu({}, device, {})), Error);
    CHECK_THROWS_AS(static_cast<void>(fit::fit_machine_host({}, framework_profile("pytorch-eager"), "here")), Error);
    const test::TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,op,precision,shape,mode,latency_ms\n"
                                          "t4,relu,fp32,b=1 h=128,device_hot,0.01\n"
                                          "l4,relu,fp32,b=1 h=128,device_hot,0.01\n");
    const auto run = test::run_ftax({"fit", rows, "-o", folder.file("profile.json")});
    CHECK(run.exit_code == 6);
    CHECK(run.errors.find("rows of t4 and of l4") != std::string::npos);
    const std::string models = folder.write("models.csv", "gpu,model,batch,latency_ms\nT4,resnet18,1,5\n");
    const auto without_host =
        test::run_ftax({"fit", models, "-o", folder.file("profile.json"), "--host-output", folder.file("host.json")});
    CHECK(without_host.exit_code == 2);
    CHECK(without_host.errors.find("--host-output") != std::string::npos);
}

TEST_CASE("fit refuses options that its rows give no meaning to, and writes what it is asked for") {
    const test::TemporaryFolder folder;
    const std::string here = folder.write("here.csv",
                                          "gpu,framework,op,precision,shape,mode,latency_ms\n"
                                          "t4,pytorch-eager,relu,fp32,b=1 h=128,host_dispatch,0.01\n");
    const std::string models = folder.write("models.csv", "gpu,model,batch,latency_ms\nT4,resnet18,64,50\n");
    const std::string operators =
        folder.write("operators.csv", "gpu,op,precision,shape,latency_ms\nT4,relu,fp32,b=1 h=128,0.01\n");
    const auto refused = [&](std::vector<std::string> arguments, const std::string& says) {
        arguments.insert(arguments.begin(), "fit");
        const auto run = test::run_ftax(arguments);
        CHECK(run.exit_code == 2);
        CHECK_MESSAGE(run.errors.find(says) != std::string::npos, run.errors);
    };
    const std::string out = folder.file("profile.json");
    for (const char* flag :
         {"--only", "--models", "--iterations", "--starts", "--leave-out-device", "--leave-out-run"}) {
        refused({here, "-o", out, flag, "1"}, std::string(flag) + " does not apply to rows that were measured");
        if (std::string_view(flag) != "--leave-out-device")
            refused({operators, "-o", out, flag, "1"}, std::string(flag) + " does not apply to rows of operators");
    }
    refused({here, "-o", out, "--folds"}, "--folds does not apply to rows that were measured");
    refused({models, "-o", out, "--folds"}, "--folds does not apply to rows of whole models");
    refused({models, "--host-output", out}, "--host-output does not apply to rows of whole models");
    refused({operators, models, "-o", out, "--start", out}, "use --start or operator rows, not both");
    refused({here, "--host-output", out, "--framework", "libtorch", "torchscript"}, "--framework");
    refused({here, "-o", out}, "--output: none of these rows was timed as device_hot");
    refused({here}, "give --output");
    refused({models, "-o", out, "--framework", "caffe"}, "unknown framework 'caffe'");
    refused({here, models, "-o", out}, "the other files are fitted without it");
    CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("BAD_INPUTS 46: calibrating a missing GPU fails before anything is measured") {
    const test::TemporaryFolder folder;
    const std::string python = folder.write("python",
                                            "#!/bin/sh\nread -r line\necho '{\"error\": \"failed\", \"message\": "
                                            "\"torch sees no GPU: no driver or no device\"}'\n");
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    const auto run = test::run_ftax({"calibrate", "--device", "cuda:0", "--framework", "pytorch-eager", "--python",
                                     python, "-o", folder.file("calibrated")});
    CHECK(run.exit_code == 5);
    CHECK(run.errors.find("torch sees no GPU") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder.file("calibrated")));
}
