#include <doctest/doctest.h>
#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "graphs/pt2/archive.hpp"
#include "graphs/torchscript/program.hpp"
#include "tests/graphs/pt2/archives.hpp"
#include "tests/recorded/recorded.hpp"

// Networks as exporters write them: each of their nodes left out and changed, and imported with other options.

using namespace ftax;
using namespace ftax::test;
using nlohmann::ordered_json;

namespace {

/// Digest of all that is imported, or of the refusal; text of other libraries does not count.
class Imports {
  public:
    template <class Import>
    void add(const Import& import) {
        try {
            add_graph(import());
        } catch (const Error& error) {
            digest_.add(static_cast<double>(error.code()));
            if (std::string_view(error.what()).find("LibTorch") == std::string_view::npos) digest_.add(error.what());
        }
    }
    [[nodiscard]] std::string cell() const { return digest_.text(6); }

  private:
    void add_graph(Graph graph) {
        find_size_checks(graph);
        digest_.add(to_text(graph)).add(static_cast<double>(graph.ops.size()));
        for (const ModuleCall& call : graph.module_calls) digest_.add(call.path).add(call.type);
        for (const UndecidedBranch& branch : graph.undecided) digest_.add(branch.name).add(branch.then_taken ? 1 : 0);
        for (const std::string& warning : graph.warnings) digest_.add(warning);
        for (const SizeCheck& check : graph.size_checks) {
            digest_.add(check.op).add(graph.expressions.to_string(check.is));
            digest_.add(graph.expressions.to_string(check.must_be));
        }
        ShapeBindings bindings;
        for (const std::string& symbol : graph.expressions.symbols()) bindings[symbol] = 2;
        const Work work = total_work(graph, ftax::bind(graph, bindings));
        digest_.add(static_cast<double>(work.flops)).add(static_cast<double>(work.read_bytes));
        digest_.add(static_cast<double>(work.write_bytes));
    }

    Digest digest_;
};

/// Calls `visit` for some of the places, evenly spread: fewer in a file of more bytes.
template <class Visit>
void spread(std::size_t places, std::size_t bytes, const Visit& visit) {
    const std::size_t most = std::clamp<std::size_t>(300'000 / bytes, 2, 24);
    const std::size_t step = std::max<std::size_t>(1, (places + most - 1) / most);
    for (std::size_t place = 0; place < places; place += step) visit(place);
}

/// Ways to import a file as it is.
template <class Import>
std::string with_options(const Import& import) {
    Imports imports;
    const Graph whole = import(ImportOptions{});
    const auto with = [&](const std::function<void(ImportOptions&)>& change) {
        ImportOptions options;
        change(options);
        imports.add([&] { return import(options); });
    };
    with([](ImportOptions& o) { o.strict = true; });
    with([](ImportOptions& o) { o.unsupported_is_error = true; });
    for (const std::size_t nodes : {whole.ops.size() - 1, whole.ops.size(), whole.ops.size() / 2})
        with([&](ImportOptions& o) { o.max_nodes = nodes; });
    for (const UndecidedBranch& branch : whole.undecided)
        with([&](ImportOptions& o) { o.branches[branch.name] = !branch.then_taken; });
    imports.add([&] {
        Graph graph = import(ImportOptions{});
        vary_batch(graph, graph.expressions.symbol("batch"));
        return graph;
    });
    imports.add([&] {
        Graph graph = import(ImportOptions{});
        shorten_names(graph);
        return graph;
    });
    for (const TensorId id : whole.inputs) {
        const Tensor& input = whole.tensors[id];
        for (std::size_t dim = 0; dim <= input.shape.size(); ++dim) {
            for (const char* size : {"2", "batch", "3*n"}) {
                InputShape given{.input = input.name};
                for (std::size_t i = 0; i < input.shape.size(); ++i)
                    given.dims.push_back(i == dim ? size : whole.expressions.to_string(input.shape[i]));
                if (dim == input.shape.size()) given.dims.emplace_back(size);
                imports.add([&] {
                    Graph graph = import(ImportOptions{});
                    apply_input_shapes(graph, {given});
                    return graph;
                });
            }
        }
    }
    return imports.cell();
}

/// Columns of the table: the file with other options, and its places by kind, each changed alone.
struct Columns {
    Imports nodes, attributes, tensors;

    [[nodiscard]] std::vector<std::string> cells(std::string options) const {
        return {std::move(options), nodes.cell(), attributes.cell(), tensors.cell()};
    }
};

// ---- ONNX

void change_node(::onnx::NodeProto& node, int change) {
    if (change == 0) node.set_op_type("Mystery");
    if (change == 1) node.clear_name();
    if (change == 2 && node.input_size() > 0) node.add_input(node.input(node.input_size() - 1));
    if (change == 3 && node.input_size() > 0) node.mutable_input()->RemoveLast();
    if (change == 4 && node.input_size() > 1) std::swap(*node.mutable_input(0), *node.mutable_input(1));
}

void change_attribute(::onnx::AttributeProto& attribute, int by) {
    using ::onnx::AttributeProto;
    if (attribute.type() == AttributeProto::INT) attribute.set_i(attribute.i() + by);
    if (attribute.type() == AttributeProto::FLOAT) attribute.set_f(attribute.f() * (1 + 0.5f * static_cast<float>(by)));
    if (attribute.type() == AttributeProto::STRING) attribute.set_s(attribute.s() + "x");
    for (auto& i : *attribute.mutable_ints()) i += by;
}

/// The first number of a small tensor of 64-bit integers, one more; for any other, its type or first dimension.
void change_tensor(::onnx::TensorProto& tensor, int change) {
    if (change == 0 && tensor.data_type() == ::onnx::TensorProto::INT64 && tensor.raw_data().size() >= 8) {
        (*tensor.mutable_raw_data())[0] = static_cast<char>(tensor.raw_data()[0] + 1);
    } else if (change == 0 && tensor.int64_data_size() > 0) {
        tensor.set_int64_data(0, tensor.int64_data(0) + 1);
    } else if (change == 1) {
        tensor.set_data_type(tensor.data_type() == ::onnx::TensorProto::FLOAT ? ::onnx::TensorProto::FLOAT16
                                                                              : ::onnx::TensorProto::FLOAT);
    } else if (change == 2 && tensor.dims_size() > 0) {
        tensor.set_dims(0, tensor.dims(0) + 1);
    }
}

std::vector<std::string> changes_of_onnx(const std::string& path) {
    ::onnx::ModelProto model;
    REQUIRE(model.ParseFromString(read_source_file(path)));
    const auto import = [](const ::onnx::ModelProto& changed, const ImportOptions& options) {
        return import_onnx(changed.SerializeAsString(), "model.onnx", options);
    };
    Columns columns;
    const std::size_t bytes = model.ByteSizeLong() * 8;  // as fast to read as so much JSON
    spread(static_cast<std::size_t>(model.graph().node_size()), bytes, [&](std::size_t place) {
        const auto n = static_cast<int>(place);
        for (int change = 0; change < 5; ++change) {
            ::onnx::ModelProto copy = model;
            change_node(*copy.mutable_graph()->mutable_node(n), change);
            columns.nodes.add([&] { return import(copy, {}); });
        }
        for (int a = 0; a < model.graph().node(n).attribute_size(); ++a) {
            for (const int by : {-1, 0, 1}) {
                ::onnx::ModelProto copy = model;
                auto& attributes = *copy.mutable_graph()->mutable_node(n)->mutable_attribute();
                by == 0 ? attributes.DeleteSubrange(a, 1) : change_attribute(*attributes.Mutable(a), by);
                columns.attributes.add([&] { return import(copy, {}); });
            }
        }
    });
    spread(static_cast<std::size_t>(model.graph().initializer_size()), bytes, [&](std::size_t place) {
        for (int change = 0; change < 3; ++change) {
            ::onnx::ModelProto copy = model;
            change_tensor(*copy.mutable_graph()->mutable_initializer(static_cast<int>(place)), change);
            columns.tensors.add([&] { return import(copy, {}); });
        }
    });
    for (int version = 0; version < model.opset_import_size(); ++version) {
        for (const int by : {-8, -3, -1, 1}) {
            ::onnx::ModelProto copy = model;
            copy.mutable_opset_import(version)->set_version(model.opset_import(version).version() + by);
            columns.tensors.add([&] { return import(copy, {}); });
        }
    }
    return columns.cells(with_options([&](const ImportOptions& options) { return import(model, options); }));
}

// ---- torch.export

/// The least integer follows the greatest.
std::int64_t next(std::int64_t value) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + 1);
}

/// Other values of an argument of a node.
std::vector<ordered_json> other_arguments(const ordered_json& argument) {
    std::vector<ordered_json> others{{{"as_none", true}}, {{"as_int", 2}}};
    if (!argument.is_object() || argument.empty()) return others;
    const std::string key = argument.begin().key();
    const ordered_json value = argument.begin().value();
    if (key == "as_int") others.push_back({{key, next(value.get<std::int64_t>())}});
    if (key == "as_float") others.push_back({{key, value.get<double>() * 2}});
    if (key == "as_bool") others.push_back({{key, !value.get<bool>()}});
    if (key.ends_with("s") && value.is_array() && !value.empty()) {
        ordered_json shorter = value;
        shorter.erase(shorter.size() - 1);
        others.push_back({{key, shorter}});
        ordered_json changed = value;
        if (changed[0].is_number_integer()) changed[0] = next(changed[0].get<std::int64_t>());
        others.push_back({{key, changed}});
    }
    return others;
}

void change_node_of_pt2(ordered_json& nodes, std::size_t n, int change) {
    ordered_json& node = nodes[n];
    if (change == 0) node["target"] = "torch.ops.vendor.mystery.default";
    if (change == 1) node["metadata"] = ordered_json::object();
    if (change == 2 && !node.at("inputs").empty()) node["inputs"].erase(node["inputs"].size() - 1);
    if (change == 3 && !node.at("outputs").empty()) node["outputs"].erase(node["outputs"].size() - 1);
    if (change == 4) nodes.erase(n);
}

std::vector<std::string> changes_of_pt2(const std::string& path) {
    Archive archive(std::string(FTAX_SOURCE_DIR) + "/" + path, 1 << 28);
    std::vector<std::pair<std::string, std::string>> members;
    std::size_t program = 0;
    for (const std::string& name : archive.names()) {
        if (name.ends_with("model.json") || name.ends_with("serialized_exported_program.json"))
            program = members.size();
        if (name.ends_with('/') || name.find("weight_") != std::string::npos) continue;
        std::string& content = members.emplace_back(name, "").second;
        archive.read(name, [&](std::string_view part) { content += part; });
    }
    std::string& text = members[program].second;  // in which Python writes numbers that JSON does not have
    for (std::size_t at; (at = text.find("Infinity")) != std::string::npos;) text.replace(at, 8, "1e300");
    const ordered_json document = ordered_json::parse(text);
    const auto import = [&](const ordered_json& changed, const ImportOptions& options) {
        members[program].second = changed.dump();
        const TemporaryFile file("model.pt2", zip_bytes(members));
        try {
            Graph graph = import_pt2(file.path(), options);
            graph.name = "model";  // not that of the temporary file
            return graph;
        } catch (const Error& error) {
            std::string message = error.what();  // begins with the path
            if (const std::size_t at = message.find(file.path()); at != std::string::npos)
                message.erase(at, file.path().size());
            throw Error(error.code(), message);
        }
    };
    const auto graph_of = [](ordered_json& whole) -> ordered_json& { return whole.at("graph_module").at("graph"); };
    Columns columns;
    ordered_json copy = document;
    const std::size_t count = graph_of(copy).at("nodes").size();
    const std::size_t bytes = text.size();
    spread(count, bytes, [&](std::size_t n) {
        for (int change = 0; change < 5; ++change) {
            copy = document;
            change_node_of_pt2(graph_of(copy)["nodes"], n, change);
            columns.nodes.add([&] { return import(copy, {}); });
        }
        copy = document;
        const std::size_t inputs = graph_of(copy)["nodes"][n].at("inputs").size();
        for (std::size_t i = 0; i < inputs; ++i) {
            const ordered_json argument = graph_of(copy)["nodes"][n]["inputs"][i].at("arg");
            for (const ordered_json& other : other_arguments(argument)) {
                copy = document;
                graph_of(copy)["nodes"][n]["inputs"][i]["arg"] = other;
                columns.attributes.add([&] { return import(copy, {}); });
            }
            copy = document;
        }
    });
    std::vector<std::string> tensors;
    for (const auto& item : graph_of(copy).at("tensor_values").items()) tensors.push_back(item.key());
    spread(tensors.size(), bytes, [&](std::size_t t) {
        for (int change = 0; change < 3; ++change) {
            copy = document;
            ordered_json& tensor = graph_of(copy)["tensor_values"][tensors[t]];
            if (change == 0 && !tensor.at("sizes").empty()) tensor["sizes"][0] = {{"as_int", 5}};
            if (change == 1) tensor["dtype"] = tensor.at("dtype") == 7 ? 6 : 7;
            if (change == 2 && !tensor.at("strides").empty())
                std::swap(tensor["strides"].front(), tensor["strides"].back());
            columns.tensors.add([&] { return import(copy, {}); });
        }
    });
    return columns.cells(with_options([&](const ImportOptions& options) { return import(document, options); }));
}

}  // namespace

TEST_CASE("networks of exporters, with other options and each node changed, are the graphs that are recorded") {
    check_recorded("exported.tsv", 1, [](std::span<const std::string> row) {
        return row[0].ends_with(".onnx") ? changes_of_onnx(row[0]) : changes_of_pt2(row[0]);
    });
}
