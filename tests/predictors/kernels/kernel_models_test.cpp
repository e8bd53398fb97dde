#include "predictors/kernels/kernel_models.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "ftax/error.hpp"
#include "graphs/base/embedded.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/host/operator_host.hpp"
#include "predictors/kernels/cpu.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

DeviceProfile unfitted(std::string_view device) {
    DeviceProfile profile;
    profile.device = device_spec(device);
    return profile;
}

/// How many numbers of a generation's file (data/architectures) were chosen by fits of a library's heuristic: all in an
/// object with a corresponding source.
int heuristic_numbers(const nlohmann::json& value, bool heuristic = false) {
    if (value.is_number()) return heuristic ? 1 : 0;
    if (!value.is_structured()) return 0;
    if (value.is_object() && value.contains("source")) heuristic = value["source"] == "heuristic";
    int count = 0;
    for (const nlohmann::json& part : value) count += heuristic_numbers(part, heuristic);
    return count;
}

kernels::KernelPlan plan(const DeviceProfile& profile, const kernels::MemoryShape& shape) {
    return KernelModels(profile.device, kernel_parameters(profile)).plan(shape, MathPath::fp32);
}

}  // namespace

TEST_CASE("a parameter of the profile replaces the initial value") {
    DeviceProfile profile = unfitted("t4");
    const kernels::MemoryShape copy{kernels::MemoryClass::copy, 1 << 28, 1, 1, 1 << 30, 1 << 30, 4};
    const double before_s = plan(profile, copy).seconds;
    profile.parameters = {{.name = "bandwidth", .value = 0.38}};  // half of what is expected
    CHECK(plan(profile, copy).seconds == approx(2 * before_s).epsilon(0.01));
}

TEST_CASE("a parameter outside the bounds of its model is refused") {
    DeviceProfile profile = unfitted("t4");
    profile.parameters = {{.name = "bandwidth", .value = 7}};
    CHECK_THROWS_AS(static_cast<void>(kernel_parameters(profile)), Error);
    profile.parameters = {{.name = "bandwith", .value = 0.7}};
    CHECK_THROWS_AS(static_cast<void>(kernel_parameters(profile)), Error);
}

TEST_CASE("tiny kernels are bound by the floor, large copies by memory") {
    const DeviceProfile t4 = unfitted("t4");
    CHECK(plan(t4, kernels::MemoryShape{kernels::MemoryClass::copy, 64, 1, 64, 256, 256, 4}).bound() ==
          Bound::latency_floor);
    CHECK(plan(t4, kernels::MemoryShape{kernels::MemoryClass::copy, 1 << 28, 1, 1, 1 << 30, 1 << 30, 4}).bound() ==
          Bound::memory);
}

TEST_CASE("an engine reads the weights of few rows at full bandwidth, also under a filter over the whole input") {
    const DeviceProfile t4 = unfitted("t4");
    const KernelModels models(t4.device, kernel_parameters(t4));
    kernels::GemmShape layer{.m = 4, .n = 4096, .k = 512 * 7 * 7, .linear = true};
    const double cublas_s = models.plan(layer, MathPath::fp32).seconds;
    layer.engine = true;
    const double engine_s = models.plan(layer, MathPath::fp32).seconds;
    const double weights_s = 4.0 * 4096 * 512 * 49 / models.at(MathPath::fp32).bandwidth_bytes_per_s;
    CHECK(engine_s > weights_s);
    CHECK(engine_s < 1.3 * weights_s);
    CHECK(cublas_s > 2 * weights_s);
    kernels::ConvShape filter{.batch = 4, .in_channels = 512, .out_channels = 4096, .in_height = 7, .in_width = 7};
    filter.kernel_h = filter.kernel_w = 7;
    filter.library = kernels::ConvLibrary::tensorrt;
    CHECK(models.plan(filter, MathPath::fp32).seconds == engine_s);
    filter.library = kernels::ConvLibrary::cudnn_heuristic;
    CHECK(models.plan(filter, MathPath::fp32).algorithm != "gemm");
}

TEST_CASE("every row of data/parameters.tsv is a parameter of a model, between its bounds and with a source") {
    std::set<std::string, std::less<>> names;
    const auto add = [&](std::string_view name, double&, const ParameterSpec&) { names.emplace(name); };
    KernelParameters of_kernels;
    visit_parameters(of_kernels, device_spec("t4"), add);
    OperatorHostParameters of_calls;
    visit_parameters(of_calls, add);
    kernels::CpuParameters of_cpus;
    visit_parameters(of_cpus, DeviceSpec{.sms = 1}, add);
    std::istringstream file{std::string(embedded_text("data/parameters.tsv"))};
    std::string row;
    std::getline(file, row);
    std::size_t rows = 0;
    for (; std::getline(file, row); ++rows) {
        const std::string name = row.substr(0, row.find('\t'));
        CAPTURE(name);
        const bool is_of_host = name.starts_with("host.") || name.starts_with("half.") || name.starts_with("noise.") ||
                                name == "launch_latency_s" || name == "kernel_gap_s";
        CHECK(names.contains(name) != is_of_host);
        const ParameterSpec* const spec = declared_parameter(name);
        REQUIRE(spec);
        CHECK(spec->lower < spec->initial);
        CHECK(spec->initial <= spec->upper);
        CHECK(spec->prior_log_stddev > 0);
        CHECK(spec->scope <= ParameterScope::device);
        CHECK(spec->source.size() > 5);
    }
    CHECK(rows > 210);
    CHECK(declared_parameter("host.view")->upper == doctest::Approx(6e-5));  // empty cells: ten times the initial value
    CHECK_FALSE(declared_parameter("conv"));
}

// The limit is 25 free numbers per generation in total. The limits are what is true today: lower them with each number
// that goes. A generation's heuristic counts what its own file says; what it inherits counts where it stands.
TEST_CASE("a generation rests on no more free numbers than today") {
    KernelParameters p;
    std::map<ParameterScope, int> declared;
    visit_parameters(p, device_spec("t4"),
                     [&](std::string_view, double&, const ParameterSpec& spec) { ++declared[spec.scope]; });
    constexpr int most_shared = 127;  // one value for all generations
    constexpr int most_fitted = 15;   // a value for each
    constexpr int most_per_generation = 21;
    constexpr int most_per_card = 4;
    CHECK(declared[ParameterScope::shared] <= most_shared);
    CHECK(declared[ParameterScope::architecture] <= most_fitted);
    CHECK(declared[ParameterScope::device] <= most_per_card);
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(FTAX_SOURCE_DIR) / "data/architectures")) {
        CAPTURE(file.path().string());
        const auto generation = nlohmann::json::parse(std::ifstream(file.path()));
        CHECK(declared[ParameterScope::architecture] + heuristic_numbers(generation) <= most_per_generation);
    }
}
