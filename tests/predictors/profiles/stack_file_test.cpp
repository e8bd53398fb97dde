#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "ftax/version.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "src/scenario/scenario.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

constexpr std::string_view file = R"({
  "schema_version": 1, "kind": "stack", "framework": "pytorch-eager", "version": "2.0",
  "libraries": {"cudnn": 8}, "scale_log_stddev": 0.3, "model_log_stddev": 0.04, "source": "a test",
  "ratios": {"host.module_call": 1.5, "host.view": 0.5}
})";

std::string replaced(std::string_view from, std::string_view to) {
    std::string text(file);
    return text.replace(text.find(from), from.size(), to);
}

/// The message of the complaint about `text`.
std::string complaint(const std::string& text) {
    try {
        static_cast<void>(parse_stack(text, "v.json"));
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::profile);
        return error.what();
    }
    return {};
}

const Parameter& parameter(const FrameworkProfile& profile, std::string_view name) {
    const auto found = std::find_if(profile.parameters.begin(), profile.parameters.end(),
                                    [&](const Parameter& p) { return p.name == name; });
    REQUIRE(found != profile.parameters.end());
    return *found;
}

}  // namespace

TEST_CASE("versions are numbers however precisely they are written") {
    CHECK(version_number("2.4") == 204);
    CHECK(version_number("2.11.0+cu130") == 211);
    CHECK(version_number("2.1-nightly") == 201);
    CHECK(version_number("10") == 1000);
    for (const char* none : {"", "two", ".4", "2.", "2.x", "-1.2", "2.123"}) {
        CAPTURE(std::string(none));
        CHECK_FALSE(version_number(none));
    }
}

TEST_CASE("a version multiplies costs by its ratios and widens the uncertainty") {
    const Stack version = parse_stack(file, "v.json");
    const FrameworkProfile fitted{.framework = "pytorch-eager",
                                  .version = "1.12",
                                  .host = "reference",
                                  .parameters = {{"host.gemm", 6e-5, 0, "fitted"},
                                                 {"host.scale", 2, 0.4, "fitted"},
                                                 {"host.view", 4e-6, 0, "fitted"},
                                                 {"noise.host", 0.03, 0, "left out"}}};
    const FrameworkProfile newer = on_stack(fitted, version);
    CHECK(newer.version == "2.0");
    CHECK(parameter(newer, "host.gemm").value == 6e-5);
    CHECK(parameter(newer, "host.view").value == approx(2e-6));
    CHECK(parameter(newer, "host.view").source == "fitted, 1.12; times 0.5: a test");
    CHECK(parameter(newer, "host.scale").value == 2);
    CHECK(parameter(newer, "host.scale").relative_stddev == approx(0.5));
    CHECK(parameter(newer, "noise.host").value == approx(0.05));
}

TEST_CASE("mistakes in a stack are named with their field") {
    CHECK(complaint(std::string(file)).empty());
    CHECK(complaint(replaced("\"2.0\"", "\"two\"")).find("version") != std::string::npos);
    CHECK(complaint(replaced("0.5", "-0.5")).find("ratios") != std::string::npos);
    CHECK(complaint(replaced("\"cudnn\"", "\"cudn\"")).find("cudn") != std::string::npos);
    CHECK(complaint(replaced("\"stack\"", "\"stacks\"")).find("kind") != std::string::npos);
}

TEST_CASE("costs of a stack replace the profile's, and a named host stays as fast over the reference") {
    std::string text(file);
    text.replace(text.find("\"ratios\""), text.npos, R"("costs": {"host.scale": 1.5, "host.view": 3e-6}})");
    const Stack stack = parse_stack(text, "v.json");
    const FrameworkProfile fitted{.framework = "pytorch-eager",
                                  .version = "1.12",
                                  .host = "fast",
                                  .parameters = {{"host.view", 4e-6, 0, "fitted"}}};
    const FrameworkProfile newer = on_stack(fitted, stack, 0.5);
    CHECK(parameter(newer, "host.view").value == 3e-6);
    CHECK(parameter(newer, "host.scale").value == approx(0.75));
    CHECK(parameter(newer, "host.scale").relative_stddev == 0.3);
}

TEST_CASE("a stack's groups of machines move with a named host, and its reference machine comes with them") {
    std::string text(file);
    text.replace(
        text.find("\"ratios\""), text.npos,
        R"("reference_cpu": "Intel Xeon Platinum 8480+", "groups": [{"weight": 0.6, "scale": 2, "log_stddev": 0.1},
                    {"weight": 0.4, "scale": 1, "log_stddev": 0.15}], "costs": {"host.scale": 2}})");
    const FrameworkProfile newer =
        on_stack({.framework = "pytorch-eager", .version = "1.12"}, parse_stack(text, "v.json"), 0.5);
    CHECK(newer.reference_cpu == "Intel Xeon Platinum 8480+");
    REQUIRE(newer.groups.size() == 2);
    CHECK(newer.groups[0].scale == approx(1));
    CHECK(newer.groups[1].scale == approx(0.5));
    CHECK(newer.groups[1].log_stddev == 0.15);
    text.replace(text.find("0.15"), 4, "-0.1");
    CHECK(complaint(text).find("log_stddev") != std::string::npos);
}

TEST_CASE("an unmeasured version is predicted as the nearest measured one, with a warning and a wider scale") {
    const FrameworkProfile fitted = framework_profile("pytorch-eager");
    CHECK(at_version(fitted, 112).warnings == fitted.warnings);
    CHECK(at_version(fitted, 205).warnings == fitted.warnings);
    const FrameworkProfile between = at_version(fitted, 203);
    CHECK(between.version == "2.2");
    REQUIRE(between.warnings.size() == fitted.warnings.size() + 1);
    CHECK(between.warnings.back().find("2.3") != std::string::npos);
    CHECK(parameter(between, "host.scale").relative_stddev >
          parameter(at_version(fitted, 202), "host.scale").relative_stddev);
    CHECK(at_version(fitted, 209).version == "2.11");
    CHECK(at_version(framework_profile("onnxruntime-tensorrt"), 211).version == "uncalibrated");
    CHECK(at_version(framework_profile("torch-compile-max-autotune"), 209).version ==
          "2.5");  // file shared by two modes
    CHECK_FALSE(newest_version("onnxruntime-cuda-graph"));
    CHECK(newest_version("onnxruntime-cuda"));
    CHECK(newest_version("llama.cpp") == 202606);
}

TEST_CASE("half precision costs the host as much as single up to PyTorch 1.9") {
    const FrameworkProfile fitted = framework_profile("pytorch-eager");
    const FrameworkProfile old = at_version(fitted, 107);
    CHECK(old.version == "1.8");
    for (const char* name : {"half.batch_norm", "half.conv", "half.conv_depthwise", "half.conv_grouped"})
        CHECK(parameter(old, name).value == 1);
    CHECK(at_version(fitted, 109).version == "1.8");
    CHECK(parameter(at_version(fitted, 111), "half.conv").value == parameter(fitted, "half.conv").value);
    CHECK(parameter(fitted, "half.conv").value > 1.1);
    CHECK(parameter(old, "host.conv").value == parameter(fitted, "host.conv").value);
    CHECK(parameter(old, "host.scale").relative_stddev > parameter(fitted, "host.scale").relative_stddev);
}

TEST_CASE("a version of PyTorch brings its cuDNN") {
    const auto libraries_of = [](std::string_view framework) {
        LibraryVersions libraries;
        static_cast<void>(scenario::take_version(framework, libraries));
        return libraries;
    };
    CHECK(libraries_of("PyTorch-eager@2.2").cudnn == 8);
    CHECK(libraries_of("pytorch-eager@2.4.1").cudnn == 9);
    CHECK(libraries_of("pytorch-eager@2.4.1").torch == 204);
    CHECK(libraries_of("vLLM@0.2.3").engine == 2);
    CHECK(libraries_of("llama.cpp@2024").engine == 202400);
    CHECK(libraries_of("llama.cpp@2024-06").engine == 202406);
    CHECK(at_version(framework_profile("vllm"), 2).version == "0.2");
    for (const char* none : {"pytorch-eager@new", "vllm@old", "llama.cpp@"}) {
        CAPTURE(std::string(none));
        CHECK_THROWS_AS(libraries_of(none), Error);
    }
    CHECK(libraries_of("torch-tensorrt@1.2").tensorrt == LibraryVersions{}.tensorrt);  // that of Torch-TensorRT
    CHECK(libraries_of("torch-tensorrt@8.4").tensorrt == 804);
}
