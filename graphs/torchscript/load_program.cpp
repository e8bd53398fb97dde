#include "graphs/base/throw_error.hpp"
#include "graphs/torchscript/program.hpp"

#ifdef FTAX_TORCHSCRIPT_MODULE

#include <dlfcn.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ftax/text_graph.hpp"
#include "graphs/files/child_process.hpp"

namespace ftax::script {
namespace {

/// LibTorch takes 0.2 s to load, hence only when it is needed. An installed module is found as any library.
void* open_module() {
    const std::string_view built = FTAX_TORCHSCRIPT_MODULE;
    const std::string name(built.substr(built.rfind('/') + 1));
    for (const std::string& path : {std::string(built), name})
        if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
    throw_error(ErrorCode::model, "cannot load LibTorch: {}", dlerror());
}

void* function_of_module(const char* name) {
    static void* const module = open_module();
    void* const function = dlsym(module, name);
    if (!function) throw_error(ErrorCode::model, "the module of LibTorch is of another version: {}", dlerror());
    return function;
}

/// What the child hands over: the graph as text and what that leaves out, or the error.
std::string interpreted(const std::string& path, const ImportOptions& options) {
    nlohmann::json answer;
    try {
        confine();
        Graph graph;
        interpret(load_program(path), options, graph);
        answer = {{"graph", to_text(graph)}, {"loops", graph.loops}, {"conditions", graph.conditions}};
        for (const UndecidedBranch& branch : graph.undecided)
            answer["undecided"].push_back({branch.name, branch.then_taken});
    } catch (const Error& error) {
        answer = {{"error", error.what()}, {"code", error.code()}};
    }
    return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Program load_program(const std::string& path) {
    Program program;
    reinterpret_cast<decltype(&ftax_load_torchscript)>(function_of_module("ftax_load_torchscript"))(path, program);
    return program;
}

void confine() {
    reinterpret_cast<decltype(&ftax_confine)>(function_of_module("ftax_confine"))();
}

Graph interpret_file(const std::string& path, const ImportOptions& options) {
    constexpr std::uint64_t free_bytes = 512 << 20, bytes_per_node = 2 << 10;
    constexpr std::uint64_t free_seconds = 8, bytes_per_second = 4 << 20, nodes_per_second = 50'000;
    static_cast<void>(function_of_module("ftax_load_torchscript"));  // opens the module once for all children
    const std::uint64_t file_bytes = std::filesystem::file_size(path);
    const std::uint64_t seconds = free_seconds + file_bytes / bytes_per_second + options.max_nodes / nodes_per_second;
    const std::uint64_t bytes = free_bytes + 4 * file_bytes + bytes_per_node * options.max_nodes;
    const ChildResult result =
        run_in_child({bytes, static_cast<unsigned>(seconds)}, [&] { return interpreted(path, options); });
    if (!result.signal.empty()) throw_error(ErrorCode::model, "LibTorch crashes on the program ({})", result.signal);
    if (result.beyond)
        throw_error(ErrorCode::limit, "LibTorch needs more than {} s or {} MB for the program", seconds, bytes >> 20);
    const nlohmann::json answer = nlohmann::json::parse(result.output);
    if (answer.contains("error")) throw Error(answer["code"].get<ErrorCode>(), answer["error"].get<std::string>());
    Graph graph = parse_text_graph(answer["graph"].get_ref<const std::string&>());
    answer["loops"].get_to(graph.loops);
    answer["conditions"].get_to(graph.conditions);
    for (const auto& branch : answer.value("undecided", nlohmann::json::array()))
        graph.undecided.push_back({branch[0], branch[1]});
    return graph;
}

}  // namespace ftax::script

#else

namespace ftax::script {

Graph interpret_file(const std::string&, const ImportOptions&) {
    throw Error(ErrorCode::model,
                "a TorchScript program, which this build cannot read: configure it with -DFTAX_BUILD_TORCH=ON, or "
                "export the model with torch.export.save");
}

}  // namespace ftax::script

#endif
