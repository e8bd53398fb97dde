#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "ftax/error.hpp"
#include "ftax/graph_builder.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

// docs/extending.md shows these lines.
constexpr Pass my_passes[] = {rewrites::fold_batch_norm, rewrites::fuse_epilogue};
constexpr HostPrior my_costs[] = {{"host.engine", 4e-6}, {"host.forward", 50e-6}};
const FrameworkModel my_engine{
    .name = "my-engine",
    .description = "an engine of compiled layers",
    .traits = {.module_calls = false, .separate_conv_bias = false, .host_kind = HostKind::engine},
    .rewrites = my_passes,
    .priors = my_costs,
};

std::string read(const std::string& path) {
    std::ifstream file(std::string(FTAX_SOURCE_DIR) + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a framework is added in the lines that docs/extending.md shows") {
    const std::string page = read("/docs/extending.md");
    const std::size_t begin = page.find("constexpr Pass my_passes");
    REQUIRE(begin != std::string::npos);
    const std::string lines = page.substr(begin, page.find("```", begin) - begin);
    CHECK(std::count(lines.begin(), lines.end(), '\n') <= 10);
    CHECK(read("/tests/predictors/frameworks/add_framework_test.cpp").find(lines) != std::string::npos);
}

TEST_CASE("a framework of the caller's own predicts with its rewrites and costs") {
    GraphBuilder net("block");
    TensorId x = net.input("x", {"batch", "16", "28", "28"});
    for (int i = 0; i < 6; ++i) x = net.relu(net.batch_norm(net.conv(x, 16, {.kernel = 3, .pad = 1})));
    const Graph graph = net.finish({x});
    Predictor own(graph, device_profile("t4"), framework_profile(my_engine));
    const Prediction p = own.predict({{"batch", 1}});
    CHECK(p.kernels <
          Predictor(graph, device_profile("t4"), framework_profile("pytorch-eager")).predict({{"batch", 1}}).kernels);
    CHECK(p.host_s == approx(50e-6 + 6 * 4e-6));
    const FrameworkProfile unnamed{.framework = "my-engine"};
    CHECK_THROWS_AS(Predictor(graph, device_profile("t4"), unnamed), Error);
}
