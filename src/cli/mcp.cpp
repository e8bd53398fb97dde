#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "ftax/error.hpp"
#include "graphs/files/child_process.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "src/cli/in_process.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {
namespace {

using nlohmann::json;

/// Supported versions of the Model Context Protocol, newest last. Source: https://modelcontextprotocol.io/specification
constexpr std::string_view versions[] = {"2024-11-05", "2025-03-26", "2025-06-18"};
constexpr std::size_t longest_line = std::size_t{1} << 20;
enum Fault { not_json = -32700, no_request = -32600, no_method = -32601, bad_parameters = -32602 };  // JSON-RPC 2.0

struct Refusal {
    Fault code;
    std::string message;
};

json tools() {
    json list = json::array();
    for (const char* const command : commands_in_process)
        list.push_back({{"name", command},
                        {"description", description_of(command)},
                        {"inputSchema", schema_of_arguments(command)},
                        {"annotations", {{"readOnlyHint", true}}}});
    return {{"tools", list}};
}

struct McpArguments {
    std::string root;
    unsigned seconds = 120;
    std::uint64_t megabytes = 4096;
};

/// A failed tool call is a result, so that the caller can correct its arguments. Its own process may die.
json call(const json& parameters, const McpArguments& limits) {
    const std::string name = parameters.value("name", "");
    if (std::ranges::count(commands_in_process, name) == 0)
        throw Refusal{bad_parameters, fmt::format("unknown tool '{}'", escape_terminal(excerpt(name)))};
    const auto answer = [](const std::string& text, bool is_error) {
        return json{{"content", {{{"type", "text"}, {"text", text}}}}, {"isError", is_error}};
    };
    const ChildResult child = run_in_child({limits.megabytes << 20, limits.seconds}, [&] {
        json result;
        try {
            const Result forms =
                run_in_process(words_of(name, parameters.value("arguments", json::object())), nullptr, false);
            result = answer(forms.table, false);
            if (!forms.json.empty()) result["structuredContent"] = json::parse(forms.json);
        } catch (const Error& error) {
            result = answer(error.what(), true);
        } catch (const json::exception& error) {
            result = answer(error.what(), true);
        }
        return result.dump(-1, ' ', false, json::error_handler_t::replace);
    });
    if (!child.died()) return json::parse(child.output);
    return answer(!child.signal.empty()
                      ? fmt::format("{} crashed ({})", name, child.signal)
                      : fmt::format("{} needs more than {} s or {} MB (ftax mcp --timeout, --max-memory)", name,
                                    limits.seconds, limits.megabytes),
                  true);
}

json initialize(const json& parameters) {
    const std::string wanted = parameters.value("protocolVersion", "");
    const bool known = std::ranges::find(versions, wanted) != std::end(versions);
    return {{"protocolVersion", known ? wanted : std::string(*std::rbegin(versions))},
            {"capabilities", {{"tools", json::object()}}},
            {"serverInfo", {{"name", "ftax"}, {"version", FTAX_VERSION}}},
            {"instructions",
             "Predicts the latency of neural networks on GPUs. Times are in seconds. predict takes one device, "
             "framework and precision, compare, generate and serve take lists; models and devices list the names."}};
}

json answer_to(const json& request, const McpArguments& limits) {
    const std::string method = request.at("method");
    const json parameters = request.value("params", json::object());
    if (!parameters.is_object()) throw Refusal{bad_parameters, "params must be an object"};
    if (method == "initialize") return initialize(parameters);
    if (method == "ping") return json::object();
    if (method == "tools/list") return tools();
    if (method == "tools/call") return call(parameters, limits);
    throw Refusal{no_method, fmt::format("unknown method '{}'", escape_terminal(excerpt(method)))};
}

/// Answers one line of JSON with one line of JSON; returns nothing for a notification.
std::string reply_to(const std::string& line, const McpArguments& limits) {
    json reply{{"jsonrpc", "2.0"}, {"id", nullptr}};
    try {
        if (line.size() > longest_line) throw Refusal{no_request, fmt::format("longer than {} bytes", longest_line)};
        json request;
        try {
            request = parse_json(line, "request");
        } catch (const Error& error) {
            throw Refusal{not_json, error.what()};
        }
        if (!request.is_object() || !request.contains("method") || !request["method"].is_string())
            throw Refusal{no_request, "a request is an object with a method"};
        if (!request.contains("id")) return "";
        reply["id"] = request["id"];
        reply["result"] = answer_to(request, limits);
    } catch (const Refusal& refusal) {
        reply["error"] = {{"code", refusal.code}, {"message", refusal.message}};
    } catch (const json::exception& error) {  // a field has the wrong type
        reply["error"] = {{"code", bad_parameters}, {"message", error.what()}};
    }
    return reply.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

/// Reads a line; of one that is too long, only so much that it is seen to be.
bool read_line(std::string& line) {
    line.clear();
    int c = std::getchar();
    for (; c != EOF && c != '\n'; c = std::getchar())
        if (line.size() <= longest_line) line += static_cast<char>(c);
    return c != EOF || !line.empty();
}

int run_mcp(const McpArguments& arguments) {
    if (!arguments.root.empty()) confine_files(arguments.root);
    for (std::string line; read_line(line);) {
        if (line.find_first_not_of(" \t\r") == line.npos) continue;
        write_standard_output(reply_to(line, arguments));
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace

void setup_mcp(CLI::App& verb, Action& action) {
    McpArguments& arguments = run_with(verb, action, run_mcp);
    add_option(verb, "--root", "FOLDER", arguments.root,
               "read files below this folder only, which becomes the working folder");
    add_option(verb, "--timeout", "SECONDS", arguments.seconds, "seconds after which a call is ended")
        ->check(CLI::Range(1, 86'400))
        ->capture_default_str();
    add_option(verb, "--max-memory", "MB", arguments.megabytes, "address space of a call in MB")
        ->check(CLI::Range(64, 1 << 24))
        ->capture_default_str();
}

}  // namespace ftax::cli
