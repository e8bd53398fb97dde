#include "calibration/fit/machine_fit.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "ftax/error.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/cli/calibration.hpp"
#include "src/io/csv.hpp"
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
    FrameworkProfile host = framework_profile("pytorch-eager");
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
    CHECK(gpu.restarts == 8);  // nine repetitions of dispatch, each in a process of its own

    const std::string profile = session.path("profile.json");
    DeviceProfile fitted = device_profile(slug, profile);
    DeviceProfile truth = true_device();
    CHECK(value_in(fitted.parameters, "clock.fp32") ==
          doctest::Approx(value_in(truth.parameters, "clock.fp32")).epsilon(0.03));
    CHECK(value_in(fitted.parameters, "bandwidth") ==
          doctest::Approx(value_in(truth.parameters, "bandwidth")).epsilon(0.03));
    CHECK(value_in(fitted.parameters, "kernel_floor_s") ==
          doctest::Approx(value_in(truth.parameters, "kernel_floor_s")).epsilon(0.05));
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
        CHECK(cost(host, kind) == doctest::Approx(cost(true_host(), kind)).epsilon(0.1));
    }
    // Nothing measured makes module calls: they follow the machine.
    CHECK(cost(host, HostKind::module_call) == doctest::Approx(cost(true_host(), HostKind::module_call)).epsilon(0.15));

    // The rows that `ftax measure` wrote say the same to `ftax fit`.
    const auto run = test::run_ftax({"fit", session.path("operators.csv"), session.path("dispatch.csv"), "-o",
                                     folder.file("again.json"), "--host-output", folder.file("host.json")});
    CHECK(run.exit_code == 0);
    DeviceProfile again = device_profile(slug, folder.file("again.json"));
    CHECK(value_in(again.parameters, "clock.fp32") ==
          doctest::Approx(value_in(fitted.parameters, "clock.fp32")).epsilon(1e-6));
    CHECK(cost(framework_profile("pytorch-eager", {}, folder.file("host.json")), HostKind::conv) ==
          doctest::Approx(cost(host, HostKind::conv)).epsilon(1e-6));
}

TEST_CASE("a card that its power limit holds back gets an energy per operation of its own, another one keeps it") {
    const auto fitted_scale = [](std::string_view card, double energy_scale) {
        const DeviceSpec device = device_spec(card);
        KernelParameters<double> truth = kernel_parameters(device_profile(card));
        const double expected = truth.gemm.energy_scale;
        truth.gemm.energy_scale *= energy_scale;
        const KernelModels<double> machine(device, truth);
        std::vector<fit::DeviceRow> rows;
        for (const std::int64_t size : {512, 768, 1024, 1536, 2048, 3072, 4096, 6144}) {
            for (const std::int64_t k : {128, 256, 512, 1024, 2048}) {
                const kernels::GemmShape product{.m = size, .n = 1024, .k = k, .linear = true};
                rows.push_back({std::to_string(size), {{product, MathPath::fp32}}, 0});
                rows.back().latency_s = kernels::within_power(sum_time(rows.back().kernels, machine));
            }
        }
        const auto profile = fit::fit_gpu(rows, device, embedded_device_profile()).profile;
        return kernel_parameters(compose(profile, device)).gemm.energy_scale / expected;
    };
    CHECK(fitted_scale("t4", 1.2) == doctest::Approx(1.2).epsilon(0.03));
    CHECK(fitted_scale("v100-sxm2-32gb", 1.05) == 1);
}

TEST_CASE("too few rows, and rows of two machines, are refused") {
    const DeviceSpec device = device_spec(slug);
    CHECK_THROWS_AS(static_cast<void>(fit::fit_gpu({}, device, {})), Error);
    CHECK_THROWS_AS(static_cast<void>(fit::fit_machine_host({}, framework_profile("pytorch-eager"), "here", {})),
                    Error);
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
        refused({here, "-o", out, flag, "1"}, std::string(flag) + " means nothing for rows that were measured");
        if (std::string_view(flag) != "--leave-out-device")
            refused({operators, "-o", out, flag, "1"}, std::string(flag) + " means nothing for rows of operators");
    }
    refused({here, "-o", out, "--folds"}, "--folds means nothing for rows that were measured");
    refused({models, "-o", out, "--folds"}, "--folds means nothing for rows of whole models");
    refused({models, "--host-output", out}, "--host-output means nothing for rows of whole models");
    refused({operators, models, "-o", out, "--start", out}, "--start stands for a fit of operators");
    refused({here, "--host-output", out, "--framework", "libtorch", "torchscript"}, "--framework");
    refused({here, "-o", out}, "--output: none of these rows was timed as device_hot");
    refused({here}, "give --output");
    refused({models, "-o", out, "--framework", "caffe"}, "no framework is called 'caffe'");
    refused({here, models, "-o", out}, "the other files are fitted without it");
    CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("BAD_INPUTS 46: calibrating a GPU where there is none says so before anything is measured") {
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
