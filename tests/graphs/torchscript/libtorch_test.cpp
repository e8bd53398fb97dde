// TorchScript files that LibTorch writes, reads and runs: built with FTAX_BUILD_TORCH only.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "graphs/files/child_process.hpp"
#include "graphs/files/file.hpp"
#include "graphs/torchscript/program.hpp"
#include "tests/graphs/pt2/archives.hpp"
#include "tests/graphs/torchscript/scripts.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

const Shape image = {2, 3, 16, 16};

ImportOptions symbolic_image() {
    ImportOptions options;
    options.input_shapes = {{"", {"batch", "3", "16", "16"}, DType::f32}};
    return options;
}

/// Traced, a convolution is the operator that eager PyTorch calls within conv2d.
std::string name(const ScriptOperator& op) {
    if (op.name != "aten::_convolution" || op.outputs.empty()) return op.name;
    return fmt::format("aten::conv{}d", op.outputs[0].size() - 2);
}

std::string described(const ScriptOperator& op) {
    std::string text = name(op);
    for (const Shape& shape : op.outputs) text += fmt::format("[{}]", fmt::join(shape, ","));
    return text;
}

std::vector<std::string> described(const std::vector<ScriptOperator>& operators) {
    std::vector<std::string> result;
    for (const ScriptOperator& op : operators) result.push_back(described(op));
    return result;
}

/// Operators of the graph as LibTorch names them, with the shapes that our rules give.
std::vector<ScriptOperator> operators_of(const Graph& graph, const ShapeBindings& bindings) {
    const BoundShapes bound = ftax::bind(graph, bindings);
    std::vector<ScriptOperator> result;
    for (const Op& op : graph.ops) {
        result.push_back({op.source, {}});
        for (const TensorId id : op.outputs) {
            result.back().outputs.push_back(bound_type(graph.tensors[id], bound).shape);
        }
    }
    return result;
}

/// Compares shapes with LibTorch's propagation on a frozen graph, which has fewer operators.
void check_against_propagation(const std::vector<ScriptOperator>& own, const std::vector<ScriptOperator>& known) {
    auto next = own.begin();
    for (const ScriptOperator& op : known) {
        next = std::find_if(next, own.end(), [&](const ScriptOperator& other) { return name(other) == name(op); });
        REQUIRE_MESSAGE(next != own.end(), described(op));
        CHECK(described(*next) == described(op));
        ++next;
    }
}

/// Imports a program that LibTorch runs, and compares the stream and every shape with that run and with the
/// `propagated` shapes that its own propagation knows.
void check_against_run(const std::string& source, std::size_t propagated) {
    const TemporaryFile file("script.pt");
    const RealRun run = save_and_run(source, file.path(), image);
    const Graph graph = load_graph(file.path(), symbolic_image());
    CHECK(graph.warnings.empty());
    const ShapeBindings bindings{{"batch", image[0]}};
    const std::vector<ScriptOperator> own = operators_of(graph, bindings);
    CHECK(described(own) == described(run.dispatched));
    if (propagated > 0) {
        const std::vector<ScriptOperator> known = propagate_shapes(file.path(), {{image}});
        CHECK(known.size() >= propagated);
        check_against_propagation(own, known);
    }
    REQUIRE(graph.outputs.size() == 1);
    CHECK(bound_type(graph.tensors[graph.outputs[0]], ftax::bind(graph, bindings)).shape == run.shape);
}

/// A TorchScript file of tests/oracle/exporters.py, beside which stands what its inputs are.
struct ScriptFile {
    std::string path;
    ImportOptions options;
    std::vector<ScriptInput> inputs;
};

ScriptFile script_file(const std::filesystem::path& path) {
    ScriptFile file{path.string(), {}, {}};
    const std::string name = path.filename().string();
    std::ifstream text(path.parent_path() / (name.substr(0, name.find('.')) + ".inputs"));
    for (std::string input; std::getline(text, input, ',');) {
        const bool integers = input.starts_with("long:");
        ScriptInput& shape = file.inputs.emplace_back();
        shape.integers = integers;
        InputShape given{"", {}, integers ? DType::i64 : DType::f32};
        std::istringstream dims(input.substr(input.find(':') + 1));
        for (std::string dim; std::getline(dims, dim, 'x');) {
            shape.shape.push_back(std::stoll(dim));
            given.dims.push_back(dim);
        }
        file.options.input_shapes.push_back(std::move(given));
    }
    return file;
}

std::vector<std::filesystem::path> script_files() {
    std::vector<std::filesystem::path> result;
    for (const auto& entry : std::filesystem::directory_iterator(FTAX_SOURCE_DIR "/tests/oracle/exported")) {
        if (entry.path().extension() == ".pt") result.push_back(entry.path());
    }
    return result;
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
)",
                      7);
}

TEST_CASE("the trip count and the branch of a TorchScript file are those of --trip and --branch") {
    const TemporaryFile file("script.pt");
    static_cast<void>(save_and_run(R"(
def forward(self, x):
    for i in range(int(x[0, 0, 0, 0])):
        x = torch.relu(x)
    if bool(torch.sum(x) > 0.):
        x = torch.neg(x)
    return x
)",
                                   file.path(), image));
    ImportOptions options = symbolic_image();
    const Graph once = load_graph(file.path(), options);
    REQUIRE(once.conditions.size() == 1);
    CHECK(once.loops == std::set<std::string>{"loop0"});
    options.trip_counts["loop0"] = 7;
    options.branches[*once.conditions.begin()] = false;
    CHECK(load_graph(file.path(), options).ops.size() == once.ops.size() + 6 - 1);
    options.trip_counts["loop1"] = 7;
    CHECK_THROWS_WITH_AS(load_graph(file.path(), options), "no loop 'loop1'; the model has loop0", Error);
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
)",
                      0);
}

TEST_CASE("host values of TorchScript programs are those of LibTorch's own run") {
    // Statements, then the integer that they give; n is 16 and m is 3.
    const std::vector<std::pair<const char*, const char*>> programs{
        {"", "n + m"},
        {"", "m - n"},
        {"", "n * m - 5"},
        {"", "n // m"},
        {"", "-n // m"},
        {"", "n // -m"},
        {"", "-n // -m"},
        {"", "n % m"},
        {"", "-n % m"},
        {"", "n % -m"},
        {"", "int(n / m * 100)"},
        {"", "int(-n / m * 10)"},
        {"", "int(float(n) * 2.5)"},
        {"", "int(float(n) - 20.75)"},
        {"", "int(float(n) // 3.0)"},
        {"", "int(float(-n) // 3.0)"},
        {"", "int(float(n) % 2.5 * 10.0)"},
        {"", "int(float(-n) % 2.5 * 10.0)"},
        {"", "int(float(n) ** 0.5)"},
        {"", "int(float(m) ** 2 * 10.0)"},
        {"", "n & m"},
        {"", "(n + 1) & m"},
        {"", "(n + 2) & (m + 16)"},
        {"", "(n + 2) | (m + 9)"},
        {"", "int((n > m) & (m > 9)) + 2 * int((n > m) | (m > 9))"},
        {"", "n | m"},
        {"", "abs(m - n)"},
        {"", "int(abs(float(m) - 9.5) * 10.0)"},
        {"", "min(n, m)"},
        {"", "max(n, m)"},
        {"", "min([n, m, 7, 2])"},
        {"", "max([n, m, 7, 2])"},
        {"", "int(min(2.5, float(n)) * 10.0)"},
        {"", "int(max(2.5, float(m)) * 10.0)"},
        {"", "int(round(2.5)) + int(round(3.5)) * 10"},
        {"", "int(round(float(n) / 7.0))"},
        {"", "int(n == m) + 2 * int(n != m) + 4 * int(n < m) + 8 * int(n <= m) + 16 * int(n > m) + 32 * int(n >= m)"},
        {"", "int(m == 3) + 2 * int(m != 3) + 4 * int(m < 3) + 8 * int(m <= 3) + 16 * int(m > 3) + 32 * int(m >= 3)"},
        {"f = float(m)",
         "int(f == 3.0) + 2 * int(f != 3.0) + 4 * int(f < 3.0) + 8 * int(f <= 3.0) + 16 * int(f > 3.0) + "
         "32 * int(f >= 3.0)"},
        {"f = float(m)", "int(f < 3.5) + 2 * int(f > 2.5) + 4 * int(f <= 2.5) + 8 * int(f >= 3.5)"},
        {"", "int(n > 3 and m > 3) + 2 * int(n > 3 or m > 3) + 4 * int(not n > 3)"},
        {"", "5 if n > m else 7"},
        {"", "5 if n < m else 7"},
        {"", "int(bool(n)) + 2 * int(bool(n - 16)) + 4 * int(bool(0.5))"},
        {"", "int(True) + int(2.75) + int(-2.75) + 10"},
        {"l = [m, n, 2, 7]", "len(l)"},
        {"l = [m, n, 2, 7]", "l[0] * 100 + l[-1]"},
        {"l = [m, n, 2, 7]", "l[1:][0] + l[:2][1] * 2 + len(l[1:3]) * 100"},
        {"l = [m, n, 2, 7]", "l[-3:-1][0] + len(l[::2]) * 20 + l[::2][1]"},
        {"l = [m, n, 2, 7]", "len(l[3:1]) + len(l[9:]) + len(l[-9:]) * 10"},
        {"l = [m, n, 2, 7]", "sum(l)"},
        {"l = [m, n, 2, 7]", "sum(l[1:])"},
        {"l = [m, n] + [4]", "len(l) * 100 + l[2]"},
        {"l = [m, n] * 2", "len(l) * 100 + l[2]"},
        {"l = [m, n]\n    l.append(8)", "l[2] + len(l) * 10"},
        {"l = [m, n]\n    l.extend([8, 9])", "l[3] + len(l) * 10"},
        {"l = [m, n]\n    l += [8, 9]", "l[3] + len(l) * 10"},
        {"l = [m, n]\n    l.insert(1, 8)", "l[1] * 10 + l[2]"},
        {"l = [m, n]\n    l.insert(-1, 8)", "l[0] * 100 + l[1] * 10"},
        {"l = [m, n, 5]\n    p = l.pop()", "p * 10 + len(l)"},
        {"l = [m, n, 5]\n    p = l.pop(0)", "p * 10 + l[0]"},
        {"l = [m, n, 5]\n    l[1] = 6", "l[1] * 10 + l[2]"},
        {"l = [m, n, 5]\n    l[-1] = 6", "l[1] * 10 + l[2]"},
        {"l = [m, n, 5]\n    l.reverse()", "l[0] * 10 + l[2]"},
        {"l = [m, n, 5]\n    k = l.copy()\n    k.append(1)", "len(l) * 10 + len(k)"},
        {"l = [m, n, 5]\n    k = l\n    k.append(1)", "len(l) * 10 + len(k)"},
        {"l = [m, n, 5]", "int(m in l) + 2 * int(4 in l) + 4 * int(m not in l)"},
        {"l = [m, n, 5]",
         "int(l == [3, 16, 5]) + 2 * int(l == [3, 16]) + 4 * int(l != [3, 16, 5]) + 8 * int(l == [3, 16, 6])"},
        {"l = [m > 2, n > 99]", "int(all(l)) + 2 * int(any(l))"},
        {"l = [m > 2, n > 9]", "int(all(l)) + 2 * int(any(l))"},
        {"l = [i * m for i in [1, 2, 3]]", "l[2] * 10 + len(l)"},
        {"l = list([m, n])\n    l.append(2)", "len(l)"},
        {"a, b = m, n", "a * 100 + b"},
        {"t = (m, n, 2)", "t[1] + t[-1] * 100"},
        {"t = (m, n, 2)", "len(t[1:]) * 10 + t[1:][1]"},
        {"t = (m, 2.5)", "t[0] + int(t[1] * 10.0)"},
        {"s = 'abc' if n > m else 'de'", "int(s == 'abc') + 2 * int(s == 'de') + 4 * int(s != 'abc') + len(s) * 10"},
        {"s = 'ab' if n > m else 'de'", "int(s + 'c' == 'abc')"},
        {"d = {'a': m, 'b': n}", "d['a'] * 100 + d['b']"},
        {"d = {'a': m, 'b': n}", "len(d) + 10 * int('a' in d) + 20 * int('c' in d)"},
        {"d = {'a': m, 'b': n}\n    d['c'] = 4\n    d['a'] = 5", "d['c'] * 100 + d['a'] * 10 + len(d)"},
        {"d = {'a': m, 'b': n}\n    p = d.pop('a')", "p * 10 + len(d)"},
        {"d = {'a': m, 'b': n}\n    del d['b']", "len(d)"},
        {"d = {1: m, 2: n}\n    k = list(d.keys())\n    v = list(d.values())", "k[1] * 100 + v[0]"},
        {"d = {1: m, 2: n}\n    r0 = 0\n    for k, v in d.items():\n        r0 += k * v", "r0"},
        {"d = {1: m, 2: n}\n    c = d.copy()\n    c[3] = 7", "len(d) * 10 + len(c)"},
        {"r0 = 0\n    for i in range(m):\n        r0 += i * n", "r0"},
        {"r0 = 0\n    for i in range(2, n, 5):\n        r0 += i", "r0"},
        {"r0 = 0\n    for i in range(n, 0, -3):\n        r0 = r0 * 2 + i", "r0"},
        {"r0 = 0\n    for i in range(5, 2):\n        r0 += 1", "r0 + 3"},
        {"r0 = n\n    while r0 > 5:\n        r0 = r0 // 2", "r0"},
        {"r0 = 0\n    while True:\n        r0 += m\n        if r0 > 10:\n            break", "r0"},
        {"r0 = 0\n    for i in range(6):\n        if i % 2 == 0:\n            continue\n        r0 += i", "r0"},
        {"r0 = 0\n    for i, v in enumerate([m, n, 4]):\n        r0 += i * v", "r0"},
        {"r0 = 0\n    for a, b in zip([m, n], [5, 6]):\n        r0 += a * b", "r0"},
        {"r0 = 0\n    for v in [m, n, 4]:\n        r0 = r0 * 3 + v", "r0"},
        {"", "x.dim() * 10 + x.size(-1) + len(x.shape) * 100"},
        {"", "x.shape[1] * 100 + x.shape[-2] + len(x.shape[1:])"},
        {"y = x.permute([0, 2, 3, 1])", "y.size(3) * 10 + y.size(1)"},
        {"y = x[:, 0]", "y.dim() * 100 + y.numel() // x.size(0)"},
        {"y: Optional[int] = None", "7 if y is None else 9"},
        {"y: Optional[int] = None\n    if n > m:\n        y = 5", "7 if y is None else y"},
        {"y: Optional[int] = n", "7 if y is not None else 9"},
        {"assert n > m", "n"},
    };
    const TemporaryFile file("script.pt");
    for (const auto& [statements, result] : programs) {
        const std::string lines = statements, last = result;  // clang captures no structured bindings
        CAPTURE(lines);
        CAPTURE(last);
        const std::string source = fmt::format(
            "\ndef forward(self, x):\n    n = x.size(2)\n    m = x.size(1)\n    {}\n    r = {}\n"
            "    return torch.zeros([r % 7 + 1, (r // 7) % 7 + 1, (r // 49) % 7 + 1])\n",
            *statements ? statements : "pass", result);
        const RealRun run = save_and_run(source, file.path(), image);
        const Graph graph = load_graph(file.path(), symbolic_image());
        const Tensor& output = graph.tensors[graph.outputs[0]];
        REQUIRE(output.known_shape);
        ShapeBindings bindings;
        for (const std::string& symbol : graph.expressions.symbols()) bindings[symbol] = image[0];
        CHECK(bound_type(output, ftax::bind(graph, bindings)).shape == run.shape);
    }
}

TEST_CASE("TorchScript dictionaries have the same contents as LibTorch's, for any type of key") {
    check_against_run(R"(
def forward(self, x):
    maps = {"low": torch.relu(x), "high": torch.sigmoid(x)}
    kept = maps.copy()
    y = maps.pop("low")
    for name, value in kept.items():
        if name == "low":
            y = y + value
        else:
            y = y * value
    if len(maps) == 1 and "low" not in maps:
        y = torch.tanh(y)
    maps["last"] = y
    by_number = {1: 2, 3: 4}
    by_number[5] = by_number.pop(3)
    for i in range(by_number[5] + len(by_number)):
        y = y + i
    print("{} maps".format(len(maps)))
    z = maps.get("last")
    if z is not None:
        y = y - z
    return torch.cat([y, maps["high"]], 1)
)",
                      0);
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
    z = torch.glu(z.expand([n, 4, 8]), -1).unsqueeze(1).repeat([1, 2, 1, 1])
    return z.half().float().squeeze(0)
)",
                      1);
}

TEST_CASE("every value of a TorchScript file has the shape that LibTorch gives it, run and propagated") {
    const auto files = script_files();
    CHECK(files.size() == 4);
    for (const auto& path : files) {
        CAPTURE(path.filename().string());
        const ScriptFile file = script_file(path);
        const std::vector<ScriptOperator> own = operators_of(load_graph(file.path, file.options), {});
        CHECK(described(own) == described(run_file(file.path, file.inputs)));
        check_against_propagation(own, propagate_shapes(file.path, file.inputs));
    }
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

TEST_CASE("a confined process reads files and starts threads, but neither writes, nor starts a program, nor connects") {
    const TemporaryFile file("confined.txt", "text");
    const ChildResult result = run_in_child({std::uint64_t{1} << 30, 20}, [&] {
        script::confine();
        std::string done;
        std::jthread([&] { done += read_file(file.path()); }).join();
        if (std::ofstream(file.path() + ".new")) done += " wrote";
        if (std::ofstream(file.path(), std::ios::in)) done += " opened";
        if (::rename(file.path().c_str(), (file.path() + ".moved").c_str()) == 0) done += " moved";
        if (::socket(AF_INET, SOCK_STREAM, 0) >= 0) done += " connected";
        if (::fork() >= 0) done += " forked";
        ::execl("/bin/true", "true", nullptr);
        return done;
    });
    CHECK_FALSE(result.died());
    CHECK(result.output == "text");
}
