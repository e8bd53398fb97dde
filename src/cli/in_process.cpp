#include "src/cli/in_process.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "src/cli/scenario_options.hpp"

namespace ftax::cli {
namespace {

using nlohmann::json;

/// Options for output files, and those that print instead of running.
constexpr std::string_view not_arguments = "help json csv html svg trace predictions";

Command described(const std::string& command) {
    CLI::App app("", "ftax");
    Action action;
    add_verb(app, action, command);
    return command_tree(app).at(1);
}

/// "--device" → "device"; "MODEL" → "model".
std::string argument_name(const OptionOfCommand& option) {
    return option.names.empty() ? lower_case(option.value) : option.names.back().substr(2);
}

std::vector<std::pair<std::string, OptionOfCommand>> arguments_of(const Command& command) {
    std::vector<std::pair<std::string, OptionOfCommand>> arguments;
    for (const auto* list : {&command.positionals, &command.options}) {
        for (const OptionOfCommand& option : *list) {
            const std::string name = argument_name(option);
            if (!has_word(not_arguments, name)) arguments.emplace_back(name, option);
        }
    }
    return arguments;
}

std::string word_of(const std::string& name, const json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) return value.dump();
    throw_error(ErrorCode::usage, "{}: must be a string or a number, not {}", name, excerpt(value.dump()));
}

}  // namespace

Result run_in_process(const std::vector<std::string>& words, const Graph* graph, bool with_page) {
    static std::mutex turns;
    const std::lock_guard turn(turns);
    CLI::App app("", "ftax");
    Result result;
    Action action;
    action.graph = graph, action.result = &result, action.with_page = with_page;
    add_verb(app, action, words.front());
    if (!parse(app, words)) throw Error(ErrorCode::usage, "--help and --version are for the program");
    scenario::forget_warnings();
    static_cast<void>(action());
    return result;
}

RunArguments run_of(const std::vector<std::string>& options) {
    CLI::App app;
    RunArguments run;
    add_run_options(app, run);
    static_cast<void>(parse(app, options));
    return run;
}

std::vector<std::pair<std::string, std::string>> options_of(const std::string& command) {
    std::vector<std::pair<std::string, std::string>> options;
    for (const OptionOfCommand& option : described(command).options)
        if (option.names.back() != "--help") options.emplace_back(argument_name(option), option.description);
    return options;
}

std::string description_of(const std::string& command) {
    return described(command).description;
}

json schema_of_arguments(const std::string& command) {
    json properties = json::object(), required = json::array();
    for (const auto& [name, option] : arguments_of(described(command))) {
        json property{{"description", option.description}};
        if (option.value.empty()) {
            property["type"] = "boolean";
        } else {
            property["type"] = {"string", "number", "array"};
            property["items"] = {{"type", {"string", "number"}}};
            if (!option.values.empty()) property["examples"] = option.values;
        }
        if (option.required) required.push_back(name);
        properties[name] = std::move(property);
    }
    return {{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}};
}

std::vector<std::string> words_of(const std::string& command, const json& arguments) {
    if (!arguments.is_object()) throw Error(ErrorCode::usage, "arguments must be an object");
    std::vector<std::string> words{command}, behind;
    const auto known = arguments_of(described(command));
    for (const auto& [name, value] : arguments.items()) {
        const auto found = std::ranges::find(known, name, [](const auto& argument) { return argument.first; });
        if (found == known.end()) throw_error(ErrorCode::usage, "{} has no argument '{}'", command, excerpt(name));
        const OptionOfCommand& option = found->second;
        if (option.value.empty() && !value.is_boolean())
            throw_error(ErrorCode::usage, "{} must be true or false", name);
        if (value.is_null() || value == json(false)) continue;
        std::vector<std::string> values;
        for (const json& one : value.is_array() ? value : json::array({value}))
            if (!option.value.empty()) values.push_back(word_of(name, one));
        if (option.value.empty()) {
            words.push_back("--" + name);
        } else if (option.names.empty()) {
            behind.insert(behind.end(), values.begin(), values.end());
        } else if (option.repeatable) {
            for (const std::string& one : values) words.push_back(fmt::format("--{}={}", name, one));
        } else {
            words.push_back(fmt::format("--{}={}", name, fmt::join(values, ",")));
        }
    }
    words.emplace_back("--");  // later words are not options
    words.insert(words.end(), behind.begin(), behind.end());
    return words;
}

}  // namespace ftax::cli
