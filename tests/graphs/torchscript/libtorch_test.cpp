// TorchScript files that LibTorch writes, reads and runs: built with FTAX_BUILD_TORCH only.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/work.hpp"
#include "tests/graphs/pt2/archives.hpp"
#include "tests/graphs/torchscript/scripts.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

const std::vector<std::int64_t> image = {2, 3, 16, 16};

ImportOptions symbolic_image() {
    ImportOptions options;
    options.input_shapes = {{"", {"batch", "3", "16", "16"}, DType::f32}};
    return options;
}

/// Operators of the graph as LibTorch names them, those without a counterpart in a run left out.
std::vector<std::string> sources(const Graph& graph) {
    std::vector<std::string> result;
    for (const Op& op : graph.ops) result.push_back(op.source);
    return result;
}

/// Imports what LibTorch runs, and compares shape and stream with that run.
void check_against_run(const std::string& source) {
    const TemporaryFile file("script.pt");
    const RealRun run = save_and_run(source, file.path(), image);
    const Graph graph = load_graph(file.path(), symbolic_image());
    INFO(fmt::format("run: {}\ngraph: {}", fmt::join(run.dispatched, " "), fmt::join(sources(graph), " ")));
    CHECK(graph.warnings.empty());
    CHECK(sources(graph) == run.dispatched);
    REQUIRE(graph.outputs.size() == 1);
    const BoundShapes bound = bind(graph, {{"batch", image[0]}});
    CHECK(bound_type(graph.tensors[graph.outputs[0]], bound).shape == run.shape);
}

}  // namespace

TEST_CASE("a TorchScript network gives the operators and the shape of LibTorch's own run") {
    check_against_run(R"(
def forward(self, x):
    y = torch.conv2d(x, self.weight, None, [2, 2], [1, 1])
    y = torch.relu(y)
    y = torch.max_pool2d(y, [3, 3], [2, 2], [1, 1])
    y = torch.adaptive_avg_pool2d(y, [1, 1])
    y = torch.flatten(y, 1)
    return self.inner.forward(y)
)");
}

TEST_CASE("TorchScript conditions, loops, lists and tuples are followed as LibTorch runs them") {
    check_against_run(R"(
def forward(self, x):
    y = torch.conv2d(x, self.weight)
    parts = torch.chunk(y, 2, 1)
    total = parts[0]
    if y.dim() == 4 and y.size(1) > 4:
        total = torch.cat([parts[1], parts[0]], 1)
    else:
        total = torch.relu(total)
    for i in range(3):
        total = total + i
        if i == 1:
            total = torch.sigmoid(total)
    kept = (total, y)
    a, b = kept
    shape = [a.size(0), -1]
    outputs = [a.view(shape)]
    outputs.append(b.reshape(shape))
    while len(outputs) < 4:
        outputs.append(outputs[0] * 2.0)
    return torch.stack(outputs, 1).mean([1], False)
)");
}

TEST_CASE("TorchScript movements, reductions and types have the shapes of LibTorch's own run") {
    check_against_run(R"(
def forward(self, x):
    n, c, h, w = x.shape
    y = x.permute([0, 2, 3, 1]).contiguous().view([n, h * w, c])
    y = torch.constant_pad_nd(y, [0, 5], 0.0)
    y = torch.matmul(y, self.matrix)
    s = torch.matmul(y, y.transpose(1, 2)) / 8.0
    s = torch.softmax(s, -1)
    y = torch.matmul(s, y)
    y = y[:, ::2]
    y = torch.cumsum(y, 1)
    v, i = torch.max(y, 1, True)
    z = torch.where(v > 0, v, torch.zeros_like(v))
    z = z.expand([n, 4, 8]).unsqueeze(1).repeat([1, 2, 1, 1])
    return z.half().float().squeeze(0)
)");
}

TEST_CASE("TorchScript operators carry module paths, and weights are declared once") {
    const TemporaryFile file("script.pt");
    static_cast<void>(
        save_and_run("def forward(self, x):\n    y = torch.mean(torch.conv2d(x, self.weight), [2, 3])\n    return "
                     "self.inner.forward(self.inner.forward(y))\n",
                     file.path(), image));
    const Graph graph = load_graph(file.path(), symbolic_image());
    CHECK(graph.format == "torchscript");
    REQUIRE(graph.module_calls.size() == 2);
    CHECK(graph.module_calls[0].path == "inner");
    CHECK(graph.ops.back().module == "inner");
    CHECK(graph.ops.front().module.empty());
    std::vector<std::string> weights;
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::weight) weights.push_back(tensor.name);
    }
    CHECK(weights == std::vector<std::string>{"weight", "inner.matrix"});
}

TEST_CASE("BAD_INPUTS 38: what LibTorch refuses is an invalid model") {
    const TemporaryFile file("script.pt");
    static_cast<void>(save_and_run("def forward(self, x):\n    return torch.relu(x)\n", file.path(), image));
    std::ifstream in(file.path(), std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), {});
    const auto code = [&](const std::vector<std::pair<std::string, std::string>>& members) {
        const TemporaryFile bad("bad.pt", zip_bytes(members));
        try {
            static_cast<void>(load_graph(bad.path(), symbolic_image()));
        } catch (const Error& error) {
            CHECK(std::string(error.what()).find("LibTorch refuses") != std::string::npos);
            return error.code();
        }
        FAIL("no error");
        return ErrorCode::usage;
    };
    CHECK(code({{"m/code/__torch__.py", "def"}, {"m/data.pkl", "not a pickle"}, {"m/version", "3\n"}}) ==
          ErrorCode::model);
    CHECK(code({{"m/code/__torch__.py", ""}, {"m/constants.pkl", ""}, {"m/data.pkl", ""}}) == ErrorCode::model);
    // A pickle of any other kind reaches no interpreter of ours: c = os.system, R = call it.
    CHECK(code({{"m/code/__torch__.py", ""},
                {"m/constants.pkl", "\x80\x02)."},
                {"m/version", "3\n"},
                {"m/data.pkl",
                 "\x80\x02"
                 "cos\nsystem\nX\x04"
                 "\x00\x00\x00"
                 "true\x85R."}}) == ErrorCode::model);
    // Cut off anywhere, the archive is damaged before LibTorch sees it.
    for (const std::size_t share : {3, 2}) {
        const TemporaryFile cut("cut.pt", good.substr(0, good.size() / share));
        CHECK_THROWS_AS(static_cast<void>(load_graph(cut.path(), symbolic_image())), Error);
    }
}
