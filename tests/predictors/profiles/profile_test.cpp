#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "tests/approx.hpp"

using namespace ftax;
using nlohmann::json;

namespace {

DeviceProfileFile example() {
    DeviceProfileFile profile{"2026-11-21", {"t4"}, {}, {}};
    const auto add = [&](const char* name, double value, ParameterScope scope, const char* key) {
        profile.parameters.push_back({{name, value, 0.05, "fitted: example"}, scope, key});
    };
    add("clock.fp32", 0.9, ParameterScope::shared, "");
    add("clock.fp32", 0.8, ParameterScope::architecture, "turing");
    add("clock.fp32", 0.7, ParameterScope::device, "t4");
    add("gemm.fill_k", 8, ParameterScope::shared, "");
    return profile;
}

json example_json() {
    return json::parse(to_text(example()));
}

std::string failure(const std::string& text, ErrorCode code = ErrorCode::profile) {
    try {
        static_cast<void>(parse_device_profile(text, "p.json"));
    } catch (const Error& error) {
        CHECK(error.code() == code);
        return error.what();
    }
    return "accepted";
}

std::string failure_of_change(const char* pointer, json value) {
    json profile = example_json();
    profile[json::json_pointer(pointer)] = std::move(value);
    return failure(profile.dump());
}

double value_of(const DeviceProfile& profile, std::string_view name) {
    for (const Parameter& parameter : profile.parameters) {
        if (parameter.name == name) return parameter.value;
    }
    return 0;
}

}  // namespace

TEST_CASE("the tables of the built-in profiles hold what their files do") {
    namespace fs = std::filesystem;
    const fs::path folder = FTAX_SOURCE_DIR "/data/profiles";
    CHECK(to_text(embedded_device_profile()) == read_file(folder / "devices.json"));
    int profiles = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(folder / "frameworks")) {
        const std::string text = read_file(file.path());
        const FrameworkProfile profile = parse_framework_profile(text, file.path());
        CHECK_MESSAGE(to_text(framework_profile(profile.framework, profile.host, "")) == text, file.path().string());
        ++profiles;
    }
    CHECK(profiles > 20);
}

TEST_CASE("a profile reads back as it was written") {
    DeviceProfileFile shuffled = example();
    std::swap(shuffled.parameters.front(), shuffled.parameters.back());
    CHECK(to_text(shuffled) == to_text(example()));
    CHECK(to_text(parse_device_profile(to_text(example()), "p.json")) == to_text(example()));
    const FrameworkProfile framework{"pytorch-eager", "1.12", "reference", {{"host.conv", 93e-6, 0, "prior"}}, {}};
    CHECK(to_text(parse_framework_profile(to_text(framework), "f.json")) == to_text(framework));
}

TEST_CASE("the narrowest value of a parameter holds for a device") {
    const auto composed = [](std::string_view name) { return compose(example(), device_spec(name)); };
    CHECK(value_of(composed("t4"), "clock.fp32") == 0.7);
    CHECK(value_of(composed("rtx-2080-ti"), "clock.fp32") == 0.8);
    CHECK(value_of(composed("a100"), "clock.fp32") == 0.9);
    CHECK(composed("t4").parameters.size() == 2);
    CHECK(value_of(composed("t4"), "gemm.fill_k") == 8);
}

TEST_CASE("an architecture without values takes those of the nearest whose kernels it runs") {
    DeviceProfileFile profile = example();
    const auto add = [&](double value, std::string key) {
        profile.parameters.push_back({{"gemm.wide", value, 0, "test"}, ParameterScope::architecture, std::move(key)});
    };
    add(3, "ada");
    add(2, "ampere");
    add(5, "turing");
    const auto composed = [&](std::string_view name) {
        return value_of(compose(profile, device_spec(name)), "gemm.wide");
    };
    CHECK(composed("l4") == 3);
    CHECK(composed("a100") == 2);
    CHECK(composed("h100") == 2);
    CHECK(composed("rtx-5090") == 3);
    CHECK(composed("v100-sxm2-32gb") == 2);  // Ampere before Turing, whose SM reads half as much shared memory
    CHECK(composed("p4") == 0);              // no kin
    CHECK(find_architecture_parameter(profile, "gemm.wide", Architecture::hopper)->key == "ampere");
    CHECK(find_architecture_parameter(profile, "gemm.wide", Architecture::pascal) == nullptr);
    add(7, "pascal");
    CHECK(composed("p4") == 7);
    CHECK(composed("p100-pcie-16gb") == 7);
    CHECK(kin_of(Architecture::maxwell).front() == Architecture::pascal);
}

TEST_CASE("a value says whether rows of the card's own kind, of another architecture or of all moved it") {
    DeviceProfileFile profile = example();
    profile.parameters.push_back({{"gemm.wide", 0.9, 0, "fitted: 5 rows"}, ParameterScope::architecture, "ampere"});
    profile.parameters.push_back({{"memory.sort", 2, 0, "prior"}, ParameterScope::shared, ""});
    const auto source = [&](std::string_view device, std::string_view name) {
        for (const Parameter& p : compose(profile, device_spec(device)).parameters) {
            if (p.name == name) return p.source;
        }
        return std::string("unset");
    };
    CHECK(source("t4", "clock.fp32") == "fitted: example");
    CHECK(source("rtx-2080-ti", "clock.fp32") == "inherited from turing: example");
    CHECK(source("t4", "gemm.fill_k") == "shared: example");
    CHECK(source("h100", "gemm.wide") == "inherited from ampere: 5 rows");
    CHECK(source("t4", "memory.sort") == "prior");
    profile.fitted_on = {"rtx-2080-ti"};
    CHECK(source("rtx-2080-ti", "clock.fp32") == "fitted: example");
}

TEST_CASE("a host profile reads back as it was written and holds by machine") {
    using enum ParameterScope;
    HostProfileFile hosts{"pytorch-eager", "2.1", {}};
    hosts.parameters = {{{"operator.host_scale", 1.7, 0.1, "fitted: example"}, device, "t4"},
                        {{"operator.host_scale", 0.9, 0, "fitted: example"}, shared, ""}};
    const HostProfileFile read = parse_host_profile(to_text(hosts), "h.json");
    CHECK(to_text(read) == to_text(hosts));
    const FrameworkProfile t4 = compose(read, "t4"), other = compose(read, "p4");
    REQUIRE(t4.parameters.size() == 1);
    CHECK(t4.parameters[0].value == 1.7);
    CHECK(t4.parameters[0].source == "fitted: example");
    CHECK(t4.version == "2.1");
    REQUIRE(other.parameters.size() == 1);
    CHECK(other.parameters[0].value == 0.9);
    CHECK(other.parameters[0].source == "shared: example");
    json wrong = json::parse(to_text(hosts));
    wrong["parameters"][1]["device"] = "t4";
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_host_profile(wrong.dump(), "h.json")),
                         doctest::Contains("parameters[1].device"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_host_profile(to_text(example()), "h.json")),
                         "h.json: kind: is not \"host\"", Error);
}

TEST_CASE("the built-in device profile says of no inherited or unmoved value that it was fitted") {
    for (const ScopedParameter& p : embedded_device_profile().parameters) {
        CAPTURE(p.parameter.name);
        CAPTURE(p.key);
        CHECK_FALSE(p.parameter.name.starts_with("operator."));
        CHECK(p.parameter.source.find("neighbouring") == std::string::npos);
        if (p.scope != ParameterScope::architecture) continue;
        // No rows of this generation are in the measurements.
        if (p.key == "maxwell") {
            CHECK(p.parameter.source.starts_with("inherited from "));
        }
    }
}

TEST_CASE("a card that differs from a fitted one only in memory takes its values, with a warning") {
    const auto clock_of = [](const DeviceProfile& profile) {
        return std::ranges::find(profile.parameters, "clock.fp32", &Parameter::name)->value;
    };
    const DeviceProfile twin = device_profile("v100-sxm2-16gb"), fitted = device_profile("v100-sxm2-32gb");
    CHECK(twin.device.slug == "v100-sxm2-16gb");
    CHECK(clock_of(twin) == clock_of(fitted));
    CHECK(twin.warnings ==
          std::vector<std::string>{
              "v100-sxm2-16gb: measured as v100-sxm2-32gb, the same board with another amount of memory"});
    CHECK(fitted.warnings.empty());
}

TEST_CASE("a card with measurements of some kernels only has a warning") {
    DeviceProfileFile file = example();
    file.partly_fitted_on.push_back({"l4", {}});
    file.partly_fitted_on[0].kernels[static_cast<std::size_t>(Factor::gemm_tensor)] = true;
    CHECK(to_text(parse_device_profile(to_text(file), "test")) == to_text(file));
    const DeviceProfile l4 = compose(file, device_spec("l4"));
    CHECK(l4.measured == file.partly_fitted_on[0].kernels);
    CHECK(l4.warnings == std::vector<std::string>{"l4: only matrix products on tensor cores were measured; "
                                                  "other kernels are predicted from the datasheet"});
    json unknown = json::parse(to_text(file));
    unknown["partly_fitted_on"][0]["kernels"][0] = "gemv";
    CHECK_THROWS_WITH_AS(parse_device_profile(unknown.dump(), "d.json"),
                         "d.json: partly_fitted_on[0].kernels[0]: is not a class of kernels", Error);

    const auto gemm = static_cast<std::size_t>(Factor::gemm_tensor), pool = static_cast<std::size_t>(Factor::pool);
    const DeviceProfile h100 = device_profile("h100-sxm5-80gb");
    CHECK(h100.measured[gemm]);
    CHECK_FALSE(h100.measured[pool]);
}

TEST_CASE("BAD_INPUTS 43: a profile fitted on other cards warns and names both") {
    CHECK(compose(example(), device_spec("t4")).warnings.empty());
    const std::vector<std::string> warnings = compose(example(), device_spec("l4")).warnings;
    CHECK(
        compose({"1", {}, {}, example().parameters}, device_spec("t4")).warnings.empty());  // it has values of its own
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("l4") != std::string::npos);
    CHECK(warnings[0].find("t4") != std::string::npos);
}

TEST_CASE("BAD_INPUTS 41: NaN, Inf, negative, zero, empty, unsorted and duplicate values name their field") {
    CHECK(failure(example_json().dump()) == "accepted");
    CHECK(failure_of_change("/parameters/1/value", -1) == "p.json: parameters[1].value: must be a positive number");
    CHECK(failure_of_change("/parameters/1/value", 0) == "p.json: parameters[1].value: must be a positive number");
    CHECK(failure_of_change("/parameters/1/value", nullptr) ==
          "p.json: parameters[1].value: must be a positive number");
    CHECK(failure_of_change("/parameters/1/value", "NaN") == "p.json: parameters[1].value: must be a positive number");
    CHECK(failure_of_change("/parameters/2/relative_stddev", -0.1) ==
          "p.json: parameters[2].relative_stddev: must be a non-negative number");
    CHECK(failure_of_change("/parameters/2/source", "") == "p.json: parameters[2].source: must be a non-empty string");
    CHECK(failure_of_change("/parameters/2/device", "") == "p.json: parameters[2].device: must be a non-empty string");
    CHECK(failure_of_change("/parameters/1/architecture", "kepler") ==
          "p.json: parameters[1].architecture: unknown architecture");
    CHECK(failure_of_change("/parameters", json::array()) == "p.json: parameters: is empty");
    CHECK(failure_of_change("/parameters", "none") == "p.json: parameters: must be an array or an object");
    CHECK(failure_of_change("/kind", "framework") == "p.json: kind: is not \"device\"");

    json unsorted = example_json();
    std::swap(unsorted["parameters"][0], unsorted["parameters"][3]);
    CHECK(failure(unsorted.dump()) == "p.json: parameters[1].name: is out of order; parameters are sorted by name");
    json twice = example_json();
    twice["parameters"].push_back(twice["parameters"][3]);
    CHECK(failure(twice.dump()) == "p.json: parameters[4].name: occurs twice");
    json missing = example_json();
    missing["parameters"][0].erase("value");
    CHECK(failure(missing.dump()) == "p.json: parameters[0].value: is missing");
    CHECK(failure("{}") == "p.json: schema_version: is missing");
}

TEST_CASE("BAD_INPUTS 41, 36: text that is not strict JSON is rejected at its position") {
    CHECK(failure("") == "p.json:1:1: the document: not valid JSON");
    CHECK(failure(R"({"parameters": [{"value": NaN}]})") == "p.json:1:27: parameters[0].value: not valid JSON");
    CHECK(failure(R"({"parameters": [{"value": Infinity}]})").find("parameters[0].value") != std::string::npos);
    CHECK(failure(R"({"a": [1, 1e400]})") == "p.json: a[1]: a number too large for a double");
    CHECK(failure(R"({"a": 1, "b": {"c": 1, "c": 2}})") == "p.json: b.c: occurs twice");
    CHECK(failure("{\n\"a\": 1,\n\"b\" 2}").find("p.json:3:5: b") == 0);
    CHECK(failure(R"({"a": "\ud800"})").find("p.json:1:") == 0);
    CHECK(failure("{\"a\x1b[31m\": 1e400}") != "accepted");
    CHECK(failure(std::string(100'000, '['), ErrorCode::limit).find("nested deeper than 64 levels") !=
          std::string::npos);
}

TEST_CASE("BAD_INPUTS 42: a profile newer than the program is refused with both versions") {
    const std::string message = failure_of_change("/schema_version", 7);
    CHECK(message == "p.json: schema_version: is 7, newer than the 1 this program knows: update ftax");
    CHECK(failure_of_change("/schema_version", 0) == "p.json: schema_version: must be a positive number");
    CHECK(failure_of_change("/schema_version", "1") == "p.json: schema_version: must be a positive number");
}

TEST_CASE("a card that nothing was measured on says which cards the profile is of, or how many") {
    DeviceProfileFile file = example();
    const auto warning = [&] { return compose(file, device_spec("l4")).warnings.at(0); };
    file.fitted_on = {"a40", "t4", "v100-pcie-32gb"};
    CHECK(warning().find("from the datasheet and measurements of a40, t4, v100-pcie-32gb") != std::string::npos);
    file.fitted_on.emplace_back("p4");
    CHECK(warning().find("from the datasheet and measurements of 4 other cards") != std::string::npos);
    file.fitted_on.clear();
    CHECK(warning() == "l4: not measured; predicted from the datasheet");
    CHECK(compose(file, device_spec("t4")).warnings.empty());
}
