#include "ftax/text_graph.hpp"
#include "graphs/loading.hpp"
#include "src/cli/scenario_options.hpp"

namespace ftax::cli {
namespace {

struct ConvertArguments {
    ModelArguments model;
    std::string output = "-";
    bool short_names = false;
};

/// Writes a model as text, which is small, has no weights and can be edited.
int run_convert(const ConvertArguments& arguments) {
    Graph graph = load_graph(arguments.model);
    if (arguments.short_names) shorten_names(graph);
    write_output(arguments.output, to_text(graph));
    return 0;
}

}  // namespace

void setup_convert(CLI::App& verb, Action& action) {
    ConvertArguments& arguments = run_with(verb, action, run_convert);
    add_model_options(verb, arguments.model);
    add_option(verb, "-o,--output", "FILE", arguments.output, "file to write, or standard output (-)")
        ->capture_default_str();
    verb.add_flag("--short-names", arguments.short_names, "number tensors and operators: half as long");
}

}  // namespace ftax::cli
