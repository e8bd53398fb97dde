#include <sstream>

#include "graphs/base/embedded.hpp"
#include "graphs/files/json_document.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {
namespace {

constexpr const char* schemas_file = "src/report/assets/schemas.json";

nlohmann::ordered_json schemas() {
    return nlohmann::ordered_json::parse(embedded_text(schemas_file));
}

int run_schema(const std::string& command) {
    nlohmann::ordered_json document{{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
    document.update(command.empty() ? nlohmann::ordered_json{{"$defs", schemas()}} : schemas()[command]);
    write_standard_output(to_text(document));
    return 0;
}

}  // namespace

void setup_schema(CLI::App& verb, Action& action) {
    std::vector<std::string> commands;
    std::istringstream text{std::string(embedded_text(schemas_file))};  // parsed for what is printed only
    for (std::string line; std::getline(text, line);)
        if (line.starts_with(" \"")) commands.push_back(line.substr(2, line.find('"', 2) - 2));
    verb.add_option("COMMAND", run_with(verb, action, run_schema), "command (default: all)")
        ->check(CLI::IsMember(commands));
}

}  // namespace ftax::cli
