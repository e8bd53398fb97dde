#include "src/cli/verbs.hpp"
#include "src/core/embedded.hpp"
#include "src/io/json_document.hpp"

namespace ftax::cli {
namespace {

struct SchemaArguments {
    std::string command;
};

nlohmann::ordered_json schemas() {
    return nlohmann::ordered_json::parse(embedded_text("src/report/assets/schemas.json"));
}

int run_schema(const SchemaArguments& arguments) {
    nlohmann::ordered_json document{{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
    document.update(arguments.command.empty() ? nlohmann::ordered_json{{"$defs", schemas()}}
                                              : schemas()[arguments.command]);
    write_standard_output(to_text(document));
    return 0;
}

}  // namespace

void setup_schema(CLI::App& app, Action& action) {
    CLI::App& verb = add_verb(app, "schema");
    std::vector<std::string> commands;
    const nlohmann::ordered_json all = schemas();
    for (const auto& [name, schema] : all.items()) commands.push_back(name);
    verb.add_option("COMMAND", run_with(verb, action, run_schema).command, "command (default: all)")
        ->check(CLI::IsMember(commands));
}

}  // namespace ftax::cli
