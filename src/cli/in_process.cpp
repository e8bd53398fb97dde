#include "src/cli/in_process.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "ftax/error.hpp"
#include "src/cli/command_tree.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
namespace {

void set_up(Verb app, Action& action, const std::string& command) {
    static const std::map<std::string, Setup*> setups{
        {"compare", setup_compare}, {"generate", setup_generate}, {"serve", setup_serve}, {"validate", setup_validate}};
    setups.at(command)(app, action);
}

}  // namespace

Result run_in_process(const std::vector<std::string>& words, const Graph* graph, bool with_page) {
    static std::mutex turns;
    const std::lock_guard turn(turns);
    const CommandLine command_line("ftax");
    Action action;
    set_up(command_line.root(), action, words.front());
    if (!command_line.parse(words)) throw Error(ErrorCode::usage, "--help and --version are for the program");
    const scenario::GivenGraph given(graph);
    scenario::forget_warnings();
    Result result;
    const Capture capture(result, with_page);
    static_cast<void>(action());
    return result;
}

std::vector<std::pair<std::string, std::string>> options_of(const std::string& command) {
    const CommandLine command_line("ftax");
    Action action;
    set_up(command_line.root(), action, command);
    std::vector<std::pair<std::string, std::string>> options;
    const std::vector<Command> commands = command_tree(command_line.root());
    for (const OptionOfCommand& option : commands.back().options) {
        if (option.names.back() != "--help") options.emplace_back(option.names.back().substr(2), option.description);
    }
    return options;
}

}  // namespace ftax::cli
