#include "src/io/version_file.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "ftax/version.hpp"
#include "src/scenario/scenario.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

constexpr std::string_view file = R"({
  "schema_version": 1,
  "kind": "versions",
  "versions": [
    {"framework": "pytorch-eager", "version": "2.0", "shared_log_stddev": 0.3, "model_log_stddev": 0.04,
     "ratios": [{"name": "host.module_call", "value": 1.5, "source": "a test"},
                {"name": "host.view", "value": 0.5, "source": "a test"}]},
    {"framework": "pytorch-eager", "version": "2.11", "shared_log_stddev": 0, "model_log_stddev": 0, "ratios": []}
  ]
})";

std::string replaced(std::string_view from, std::string_view to) {
    std::string text(file);
    return text.replace(text.find(from), from.size(), to);
}

/// The message of the complaint about `text`.
std::string complaint(const std::string& text) {
    try {
        static_cast<void>(parse_versions(text, "v.json"));
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

TEST_CASE("a version multiplies the costs that it has ratios of and widens what is believed") {
    const VersionRatios version = parse_versions(file, "v.json").front();
    const FrameworkProfile fitted{.framework = "pytorch-eager",
                                  .version = "1.12",
                                  .host = "reference",
                                  .parameters = {{"host.gemm", 6e-5, 0, "fitted"},
                                                 {"host.scale", 2, 0.4, "fitted"},
                                                 {"host.view", 4e-6, 0, "fitted"},
                                                 {"noise.host", 0.03, 0, "left out"}}};
    const FrameworkProfile newer = carried(fitted, version);
    CHECK(newer.version == "2.0");
    CHECK(parameter(newer, "host.gemm").value == 6e-5);
    CHECK(parameter(newer, "host.view").value == approx(2e-6));
    CHECK(parameter(newer, "host.view").source == "fitted, 1.12; times 0.5: a test");
    CHECK(parameter(newer, "host.scale").value == 2);
    CHECK(parameter(newer, "host.scale").relative_stddev == approx(0.5));
    CHECK(parameter(newer, "noise.host").value == approx(0.05));
}

TEST_CASE("mistakes in a file of versions are named with their field") {
    CHECK(complaint(std::string(file)).empty());
    CHECK(complaint(replaced("\"2.0\"", "\"two\"")).find("versions[0].version") != std::string::npos);
    CHECK(complaint(replaced("\"2.11\"", "\"2.0\"")).find("out of order") != std::string::npos);
    CHECK(complaint(replaced("0.5", "-0.5")).find("ratios[1].value") != std::string::npos);
    CHECK(complaint(replaced("host.view", "host.conv")).find("sorted by name") != std::string::npos);
    CHECK(complaint(replaced("\"versions\",", "\"version\",")).find("kind") != std::string::npos);
}

TEST_CASE("a framework's newest measured version that is not newer than the one asked for holds") {
    const FrameworkProfile fitted = framework_profile("pytorch-eager");
    CHECK(at_version(fitted, 112).version == "1.12");
    CHECK(at_version(fitted, 203).version == "2.2");
    CHECK(at_version(fitted, 299).version == "2.11");
    CHECK(at_version(fitted, 203).warnings == fitted.warnings);
    CHECK(at_version(fitted, 211).warnings == fitted.warnings);
    REQUIRE(at_version(fitted, 212).warnings.size() == fitted.warnings.size() + 1);
    CHECK(at_version(fitted, 212).warnings.back().find("pytorch-eager 2.11") != std::string::npos);
    CHECK(at_version(framework_profile("onnxruntime-cuda"), 121).version == "1.20");
    CHECK(at_version(framework_profile("torchscript"), 211).version == "1.12");
    CHECK(has_versions("onnxruntime-cuda"));
    CHECK_FALSE(has_versions("tensorrt"));
}

TEST_CASE("a version of PyTorch brings its cuDNN") {
    LibraryVersions libraries;
    const scenario::FrameworkChoice older = scenario::take_version("PyTorch-eager@2.2", libraries);
    CHECK(older.name == "pytorch-eager");
    CHECK(older.version == 202);
    CHECK(libraries.cudnn == 8);
    CHECK(scenario::take_version("pytorch-eager@2.4.1", libraries).version == 204);
    CHECK(libraries.cudnn == 9);
    CHECK(scenario::take_version("vLLM@0.2.3", libraries).version == 2);
    CHECK(libraries.engine == 2);
    CHECK(at_version(framework_profile("vllm"), 2).version == "0.2");
    CHECK(at_version(framework_profile("vllm"), 6).version == "0.3");
    for (const char* none : {"pytorch-eager@1.8", "pytorch-eager@new", "torchscript@2.4", "vllm@0.1", "vllm@old"}) {
        CAPTURE(std::string(none));
        CHECK_THROWS_AS(static_cast<void>(scenario::take_version(none, libraries)), Error);
    }
}
