#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "ftax/error.hpp"
#include "ftax/work.hpp"
#include "graphs/loading.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

/// A row of tests/oracle/language_models.tsv: what torch.export of transformers has.
struct Row {
    std::string model_type;
    std::int64_t seq = 0, past = 0;
    double parameters = 0, flops = 0, bytes = 0, kernels = 0;
    std::string config;
};

/// Calls `read` with the rows of a table, each as a stream of its fields.
template <class Read>
void read_rows(const std::string& table, Read read) {
    std::ifstream file(std::string(FTAX_SOURCE_DIR) + "/tests/oracle/" + table);
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#') || line.starts_with("model_type\t")) continue;
        std::istringstream fields(line);
        read(fields);
    }
}

std::vector<Row> rows() {
    std::vector<Row> result;
    read_rows("language_models.tsv", [&](std::istringstream& fields) {
        Row row;
        fields >> row.model_type >> row.seq >> row.past >> row.parameters >> row.flops >> row.bytes >> row.kernels >>
            row.config;
        result.push_back(std::move(row));
    });
    return result;
}

bool is_view(OpKind kind) {
    constexpr std::array views{OpKind::reshape, OpKind::transpose, OpKind::slice, OpKind::split,
                               OpKind::expand,  OpKind::identity,  OpKind::cast,  OpKind::shape};
    return std::find(views.begin(), views.end(), kind) != views.end();
}

struct Count {
    double parameters = 0, flops = 0, bytes = 0, kernels = 0;
};

/// What a graph has. Scores of an attention count twice two more operations there, for the softmax.
Count count(const Graph& graph, const Row& row) {
    ShapeBindings bindings;
    for (const std::string& symbol : graph.expressions.symbols()) {
        bindings[symbol] = symbol == "batch" ? 2 : symbol == "seq" ? row.seq : row.past;
    }
    const BoundShapes bound = ftax::bind(graph, bindings);
    Count result;
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::weight) result.parameters += static_cast<double>(element_count(tensor, bound));
    }
    for (const Op& op : graph.ops) {
        const Work work = work_of(graph, op, bound);
        result.kernels += is_view(op.kind) ? 0 : 1;
        const bool attention = op.kind == OpKind::attention;
        if (!attention && op.kind != OpKind::linear && op.kind != OpKind::matmul && op.kind != OpKind::conv) continue;
        result.flops += static_cast<double>(work.flops);
        result.bytes += static_cast<double>(work.read_bytes) + static_cast<double>(work.write_bytes);
        if (!attention) continue;
        const Tensor& query = graph.tensors[op.inputs[0]];
        const auto keys = static_cast<double>(bound[graph.tensors[op.inputs[1]].shape[2]]);
        result.flops -= 4 * keys * static_cast<double>(element_count(query, bound) / bound[query.shape[3]]);
    }
    return result;
}

}  // namespace

TEST_CASE("graphs of config.json have the parameters, operations and bytes that torch.export of transformers has") {
    const std::vector<Row> all = rows();
    CHECK(all.size() > 40);
    for (const Row& row : all) {
        const Graph graph = import_config(row.config, "config.json", row.model_type);
        const Count counted = count(graph, row);
        CAPTURE(row.model_type);
        CAPTURE(row.past);
        CHECK(counted.parameters == approx(row.parameters).epsilon(1e-3));
        CHECK(counted.flops == approx(row.flops).epsilon(1e-3));
        CHECK(counted.bytes == approx(row.bytes).epsilon(1e-3));
        // All but those that make masks, once a pass.
        CHECK(counted.kernels == approx(row.kernels).epsilon(0.15));
    }
}

TEST_CASE("graphs of config.json have the parameters and operations of transformers' own models, family by family") {
    int families = 0;
    read_rows("families.tsv", [&](std::istringstream& fields) {
        Row row;
        double step_flops = 0;
        fields >> row.model_type >> row.parameters >> row.flops >> step_flops >> row.config;
        ++families;
        CAPTURE(row.model_type);
        try {
            const Graph graph = import_config(row.config, "config.json", row.model_type);
            row.seq = 16;
            const Count prefill = count(graph, row);
            row.seq = 1;
            row.past = 48;
            const Count step = count(graph, row);
            CHECK(prefill.parameters == approx(row.parameters).epsilon(1e-3));
            CHECK(prefill.flops == approx(row.flops).epsilon(1e-3));
            if (step_flops > 0) CHECK(step.flops == approx(step_flops).epsilon(1e-3));
        } catch (const Error& error) {
            FAIL_CHECK(std::string(error.what()));
        }
    });
    CHECK(families >= 125);
}
