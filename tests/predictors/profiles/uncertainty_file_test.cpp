#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "tests/approx.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;

namespace {

VarianceComponents components() {
    VarianceComponents result{.of = {}, .source = "a test"};
    for (std::size_t f = 0; f < factor_count; ++f) result.of[f] = 0.01 * static_cast<double>(f + 1);
    return result;
}

/// The message of the complaint about `text`.
std::string complaint(const std::string& text) {
    try {
        static_cast<void>(parse_variance_components(text, "u.json"));
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::profile);
        return error.what();
    }
    return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return text;
}

}  // namespace

TEST_CASE("variance components are read back as they were written") {
    const VarianceComponents read = parse_variance_components(to_text(components()), "u.json");
    CHECK(read.source == "a test");
    CHECK(read.of == components().of);
}

TEST_CASE("mistakes in a file of variance components are named with their field") {
    const std::string good = to_text(components());
    CHECK(complaint(replaced(good, "\"gemm\"", "\"gem\"")).find("factors[1].factor") != std::string::npos);
    CHECK(complaint(replaced(good, "\"gemm\"", "\"card\"")).find("twice") != std::string::npos);
    CHECK(complaint(replaced(good, "0.01", "-0.01")).find("stddev") != std::string::npos);
    CHECK(complaint(replaced(good, "\"uncertainty\"", "\"device\"")).find("kind") != std::string::npos);
    const std::size_t first = good.find("    {"), second = good.find("    {", first + 1);
    CHECK(complaint(good.substr(0, first) + good.substr(second)).find("lacks card") != std::string::npos);
}

TEST_CASE("the spread of a class of kernels is the prior of its factor") {
    CHECK(std::sqrt(prior_factors(components()).covariance[1][1]) == approx(0.02));
}

TEST_CASE("built-in cards carry the spread of their factors") {
    const auto of_card = [](const char* slug) { return device_profile(slug).factors.covariance[0][0]; };
    CHECK(of_card("t4") > 0);
    CHECK(of_card("a30") == of_card("t4"));  // what a card without rows adds is the evidence's
}

TEST_CASE("a profile may be fitted on a card without a datasheet") {
    const test::TemporaryFolder folder;
    const std::string path = folder.write("own.json", R"({
  "schema_version": 1, "kind": "device", "version": "1", "fitted_on": ["prototype"],
  "parameters": [{"name": "clock.fp32", "value": 0.9, "source": "a test"}]
})");
    const DeviceProfile profile = device_profile("t4", path);
    CHECK(profile.measured == FactorSet{});
    CHECK(profile.factors.covariance[0][0] >= device_profile("t4").factors.covariance[0][0]);
}
