#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/aten/aten_call.hpp"
#include "tests/graphs/onnx/testdata.hpp"
#include "tests/recorded/recorded.hpp"

/// Calls of ATen and ONNX models, imported for recorded tables.
namespace ftax::test {

/// What a group of inputs gives in total.
struct Group {
    std::size_t inputs = 0, imported = 0, operators = 0;
    double flops = 0, bytes = 0;

    [[nodiscard]] std::vector<std::string> cells() const {
        return {fmt::format("n{}", inputs), fmt::format("n{}", imported), fmt::format("n{}", operators), figure(flops),
                figure(bytes)};
    }
};

/// The graph's text and the work of its operators, with 2 for each symbol.
inline void add(Digest& digest, const Graph& graph, Group& group) {
    digest.add(to_text(graph));
    for (const std::string& warning : graph.warnings) digest.add(warning);
    ShapeBindings bindings;
    for (const std::string& symbol : graph.expressions.symbols()) bindings[symbol] = 2;
    ++group.imported;
    group.operators += graph.ops.size();
    const BoundShapes bound = ftax::bind(graph, bindings);
    for (const Op& op : graph.ops) {
        const Work work = work_of(graph, op, bound);
        group.flops += static_cast<double>(work.flops);
        group.bytes += static_cast<double>(work.read_bytes + work.write_bytes);
        digest.add(static_cast<double>(work.flops)).add(static_cast<double>(work.read_bytes));
        digest.add(static_cast<double>(work.write_bytes));
    }
    for (const bool guessed : guessed_operators(graph)) digest.add(guessed ? 1.0 : 0.0);
}

template <class Import>
void add_import(Digest& digest, Group& group, const Import& import) {
    ++group.inputs;
    try {
        add(digest, import(), group);
    } catch (const Error& error) {
        digest.add(static_cast<double>(error.code())).add(error.what());
    }
}

inline std::vector<std::string> words(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
}

/// A call of tests/oracle/aten_calls.tsv: its arguments as "name=value" words, its outputs as "f32[2,3]" words.
struct AtenRow {
    std::string target, arguments, outputs;
};

inline TensorId add_tensor(Graph& graph, const std::string& text) {
    const std::size_t open = text.find('[');
    Tensor tensor{.name = "t" + std::to_string(graph.tensors.size()), .dtype = *dtype_from_name(text.substr(0, open))};
    for (const std::string& dim : words(text.substr(open + 1, text.size() - open - 2), ',')) {
        tensor.shape.push_back(graph.expressions.parse(dim));
    }
    graph.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph.tensors.size() - 1);
}

inline AtenArgument argument_of(Graph& graph, const std::string& name, const std::string& value) {
    AtenArgument argument{name, {}, {}, {}, {}, {}};
    if (value.front() == '\'') {
        argument.text = value.substr(1, value.size() - 2);
    } else if (value.find_first_of(".e") != std::string::npos && value.find('[') == std::string::npos) {
        argument.number = std::stod(value);
    } else if (value.find('[') == std::string::npos) {
        for (const std::string& number : words(value, ',')) {
            argument.integers.push_back(std::stoll(number));
            argument.sizes.push_back(graph.expressions.constant(argument.integers.back()));
        }
    } else {
        for (const std::string& tensor : words(value, '+')) argument.tensors.push_back(add_tensor(graph, tensor));
    }
    return argument;
}

/// The call's operators, with the given outputs or those that its rule infers.
inline Graph graph_of(const std::string& target, std::span<const std::string> arguments,
                      std::optional<std::string> outputs) {
    Graph graph;
    graph.name = "call";
    AtenCall call{.target = target, .name = "call"};
    for (const std::string& argument : arguments) {
        const std::size_t equals = argument.find('=');
        call.arguments.push_back(argument_of(graph, argument.substr(0, equals), argument.substr(equals + 1)));
    }
    for (TensorId t = 0; t < graph.tensors.size(); ++t)
        graph.inputs.push_back(t), graph.tensors[t].role = TensorRole::input;
    if (outputs) {
        for (const std::string& output : words(*outputs, ' ')) {
            if (output.find('[') == std::string::npos) return graph;
            call.outputs.push_back(add_tensor(graph, output));
        }
    } else {
        const auto inferred = infer_aten(graph, call);
        if (!inferred) return graph;
        for (const AtenOutput& output : *inferred) {
            graph.tensors.push_back({.name = "o" + std::to_string(graph.tensors.size()),
                                     .dtype = output.dtype,
                                     .known_shape = output.known_shape,
                                     .shape = output.shape});
            call.outputs.push_back(static_cast<TensorId>(graph.tensors.size() - 1));
        }
    }
    graph.outputs = call.outputs;
    append_aten(graph, call);
    return graph;
}

inline const std::map<std::string, std::vector<AtenRow>>& aten_rows() {
    static const auto all = [] {
        std::map<std::string, std::vector<AtenRow>> result;
        std::ifstream file(FTAX_SOURCE_DIR "/tests/oracle/aten_calls.tsv");
        for (std::string line; std::getline(file, line);) {
            const auto columns = words(line, '\t');
            result[columns[0]].push_back({columns[0], columns[1], columns[2]});
        }
        return result;
    }();
    return all;
}

/// By the first word of their folders' names: "test_conv_with_strides" is of "conv".
inline std::map<std::string, std::vector<std::filesystem::path>> models_by_operator() {
    std::map<std::string, std::vector<std::filesystem::path>> result;
    for (const auto& path : model_files()) {
        std::string name = path.parent_path().filename().string();
        if (name.starts_with("test_")) name.erase(0, 5);
        result[name.substr(0, name.find('_'))].push_back(path);
    }
    return result;
}

inline std::string random_bytes(std::mt19937& random, std::size_t count) {
    std::string bytes(count, '\0');
    for (char& c : bytes) c = static_cast<char>(random() >> 8);
    return bytes;
}

}  // namespace ftax::test
