// Files that torch.export.save wrote: of each version of torch (tests/oracle/versions.py), and of a sample of the
// architectures in tests/oracle/coverage.tsv (graphs/zoo/export.py).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "ftax/import.hpp"
#include "ftax/work.hpp"

using namespace ftax;

namespace {

const std::filesystem::path folder = std::filesystem::path(FTAX_SOURCE_DIR) / "tests" / "graphs" / "pt2";

std::vector<std::filesystem::path> files_in(const std::filesystem::path& where) {
    std::vector<std::filesystem::path> result;
    for (const auto& entry : std::filesystem::directory_iterator(where)) {
        if (entry.path().extension() == ".pt2") result.push_back(entry.path());
    }
    std::sort(result.begin(), result.end());
    return result;
}

std::int64_t contraction_flops(const Graph& graph, const BoundShapes& bound) {
    std::int64_t flops = 0;
    for (const Op& op : graph.ops) {
        const bool contracts = op.kind == OpKind::conv || op.kind == OpKind::linear || op.kind == OpKind::matmul ||
                               op.kind == OpKind::attention;
        if (contracts) flops += work_of(graph, op, bound).flops;
    }
    return flops;
}

std::vector<std::string> unknown_operators(const Graph& graph) {
    std::vector<std::string> result;
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::custom) result.push_back(op.source);
    }
    return result;
}

struct Expected {
    std::int64_t flops;  ///< FLOPs of contractions at batch 2 and sequence 16
    std::vector<std::vector<std::int64_t>> outputs;
};

/// Counted by hand from tests/oracle/small_models.py and versions.py.
const std::map<std::string, Expected> networks{
    // stem, depthwise branch, head
    {"image", {2 * 2 * 16 * 16 * (16 * 27 + 8 * 9) + 2 * 2 * 16 * 10, {{2, 10}}}},
    // 32 rows: q, k and v; both products of attention; output; both layers of the MLP; softmax of 2048 scores
    {"encoder", {2 * 32 * (32 * 96 + 2 * 16 * 32 + 32 * 32 + 2 * 32 * 128) + 4 * 2048, {{2, 16, 32}}}},
    // q, k and v; both products of attention; convolution
    {"mixed", {2 * 32 * (32 * 96 + 2 * 16 * 32 + 3 * 32 * 32), {{2, 32}, {2, 16, 3}, {2, 1, 32, 64}}}}};

}  // namespace

TEST_CASE(".pt2 archives of torch 2.4 to 2.11 are read with the same work and shapes") {
    std::map<std::string, int> files;
    for (const auto& path : files_in(folder / "versions")) {
        const std::string stem = path.stem().string(), name = stem.substr(0, stem.find('-'));
        CAPTURE(stem);
        ++files[stem.substr(stem.find('-') + 1)];
        const Expected& expected = networks.at(name);
        const Graph graph = load_graph(path.string());
        CHECK(unknown_operators(graph).empty());
        for (const std::string& warning : graph.warnings)
            CHECK_MESSAGE(warning.starts_with("dimensions that the exporter numbered"), warning);
        CHECK(std::any_of(graph.module_calls.begin(), graph.module_calls.end(),
                          [](const ModuleCall& call) { return call.type.starts_with("torch.nn.modules."); }));
        REQUIRE(graph.ranges.size() == graph.expressions.symbols().size());
        CHECK(graph.ranges[0].greatest == 1024);
        ShapeBindings bindings{{"batch", 2}};
        if (name == "mixed") bindings["seq"] = 16;
        const BoundShapes bound = ftax::bind(graph, bindings);
        CHECK(contraction_flops(graph, bound) == expected.flops);
        REQUIRE(graph.outputs.size() == expected.outputs.size());
        for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
            CHECK(bound_type(graph.tensors[graph.outputs[i]], bound).shape == expected.outputs[i]);
        }
    }
    CHECK(files ==
          std::map<std::string, int>{
              {"2.4", 3}, {"2.5", 3}, {"2.6", 3}, {"2.7", 3}, {"2.8", 3}, {"2.9", 3}, {"2.10", 3}, {"2.11", 3}});
}

TEST_CASE("architectures of timm and transformers are read in full, with the FLOPs of the table") {
    std::map<std::string, std::string> table;  // model → GFLOP
    std::ifstream rows(std::filesystem::path(FTAX_SOURCE_DIR) / "tests/oracle/coverage.tsv");
    for (std::string line; std::getline(rows, line);) {
        std::istringstream cells(line);
        std::string source, model, result, operators, gflop;
        cells >> source >> model >> result >> operators >> gflop;
        table[model] = gflop;
    }
    const auto files = files_in(folder / "architectures");
    CHECK(files.size() >= 12);
    for (const auto& path : files) {
        CAPTURE(path.stem().string());
        const Graph graph = load_graph(path.string());
        CHECK(unknown_operators(graph).empty());
        ShapeBindings bindings;
        for (const std::string& symbol : graph.expressions.symbols()) bindings[symbol] = symbol == "batch" ? 2 : 128;
        const auto flops = static_cast<double>(total_work(graph, ftax::bind(graph, bindings)).flops);
        CHECK(fmt::format("{:.4f}", flops / 1e9) == table[path.stem().string()]);
    }
}
