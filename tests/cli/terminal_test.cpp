#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "tests/cli/command.hpp"

using namespace ftax::test;

namespace {

/// The indented lines below a title of the help.
std::vector<std::string> section(const std::string& help, const std::string& title) {
    std::vector<std::string> lines;
    std::istringstream in(help);
    bool inside = false;
    for (std::string line; std::getline(in, line);) {
        if (inside && !line.starts_with("  ")) break;
        if (inside) lines.push_back(line.substr(2));
        if (line == title) inside = true;
    }
    return lines;
}

/// What bash offers for a command line that ends where the cursor is.
std::string completed(const std::vector<std::string>& words) {
    std::string script = "source <(ftax completion bash); COMP_WORDS=(";
    for (const std::string& word : words) script += " '" + word + "'";
    script += " ); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _ftax; echo \" ${COMPREPLY[*]} \"";
    const TemporaryFolder folder;
    const std::string path = folder.write("script.bash", "ftax() { " FTAX_PROGRAM " \"$@\"; }\n" + script + "\n");
    const std::string output = folder.file("output");
    REQUIRE(std::system(("bash " + path + " >" + output).c_str()) == 0);
    return read_text(output);
}

bool offers(const std::string& offered, const std::string& word) {
    return offered.find(" " + word + " ") != std::string::npos;
}

}  // namespace

TEST_CASE("every example of the help runs") {
    const std::string help = run_program("--help").output;
    const auto examples = section(help, "Examples:");
    CHECK(examples.size() >= 5);
    for (const std::string& example : examples) {
        REQUIRE(example.starts_with("ftax "));
        const ProgramRun outcome = run_program(example.substr(5));
        CHECK_MESSAGE(outcome.exit_code == 0, example, "\n", outcome.errors);
        CHECK_FALSE(outcome.output.empty());
    }
    CHECK_FALSE(section(help, "Exit status:").empty());
}

TEST_CASE("--quiet keeps away what a profile rests on, and not what changes the answer") {
    const TemporaryFolder folder;
    const std::string odd = folder.write("odd.txt",
                                         "graph odd\ninput %x f32[batch,8]\n"
                                         "%1 f32[batch,8] = pointwise(%x) {function=\"relu\"} \"aten::relu\"\n"
                                         "%2 f32[batch,8] = custom(%1) \"mine::op\"\noutput %2\n");
    const std::string command = "predict '" + odd + "' --device l4 --batch 1";
    const ProgramRun loud = run_program(command), quiet = run_program(command + " --quiet");
    CHECK(loud.errors.find("l4: not measured") != std::string::npos);
    CHECK(quiet.errors.find("l4: not measured") == std::string::npos);
    CHECK(loud.errors.find("have no rule") != std::string::npos);
    CHECK(quiet.errors.find("have no rule") != std::string::npos);
    CHECK(quiet.output == loud.output);
    CHECK(run_program("predict resnet18 --device l4 --batch 1 -q").errors.empty());
    for (const char* verb : {"predict", "crossover", "compare", "headroom"}) {
        CAPTURE(verb);
        const std::string named = run_program(std::string(verb) + " resnet18 --device a100 -q").errors;
        CHECK(named.find("a100 is taken as a100-sxm4-40gb") != std::string::npos);
    }
    CHECK(run_program("predict nosuchmodel --device t4 -q").errors.find("nosuchmodel") != std::string::npos);
}

TEST_CASE("bash completes commands, options, and the values of both") {
    CHECK(offers(completed({"ftax", "pre"}), "predict"));
    CHECK_FALSE(offers(completed({"ftax", "pre"}), "devices"));
    CHECK(offers(completed({"ftax", "devices", ""}), "show"));
    CHECK(offers(completed({"ftax", "devices", "show", "quadro"}), "quadro-rtx-8000"));
    CHECK(offers(completed({"ftax", "predict", "resnet"}), "resnet50"));
    CHECK(offers(completed({"ftax", "predict", "bert", "--dev"}), "--device"));
    CHECK(offers(completed({"ftax", "predict", "bert", "--device", "t"}), "t4"));
    CHECK(offers(completed({"ftax", "predict", "llama-3-8b", "--precision", ""}), "bf16"));
    CHECK(offers(completed({"ftax", "predict", "llama-3-8b", "--framework", ""}), "torch-compile"));
    CHECK(offers(completed({"ftax", "nas", "--space", ""}), "nasbench201"));
    CHECK(offers(completed({"ftax", "validate", "bert", "--kin"}), "--kineto"));
    CHECK(offers(completed({"ftax", "completion", ""}), "fish"));
    CHECK_FALSE(offers(completed({"ftax", "predict", "bert", "--json", "t"}), "t4"));
}

TEST_CASE("zsh and fish ask for the same words, one after a comma too") {
    const std::string zsh = run_program("completion zsh").output, fish = run_program("completion fish").output;
    CHECK(zsh.find("bashcompinit") != std::string::npos);
    CHECK(zsh.find(run_program("completion bash").output) != std::string::npos);
    CHECK(fish.starts_with("# Completes ftax in fish"));
    const std::string verbs = run_program("completion words -- pre").output;
    CHECK(verbs.find("predict\tpredict latency per batch") != std::string::npos);
    CHECK(run_program("completion words -- predict bert --device a1").output.starts_with("a10\n"));
    CHECK(run_program("completion words -- compare bert --device t4,a1").output.starts_with("t4,a10\n"));
    CHECK(run_program("completion words -- devices show t").output.find("\nquadro-rtx-8000\n") != std::string::npos);
    CHECK(run_program("completion tcsh").exit_code == 2);
}

TEST_CASE("the help, which sets up no verb, lists the verbs that can be called") {
    const std::string help = run_program("--help").output;
    CHECK(run_program("help").output == help);
    std::istringstream offered(run_program("completion words -- ''").output);  // of the verbs with their options
    std::vector<std::string> verbs;
    for (std::string line; std::getline(offered, line);) {
        verbs.push_back(line.substr(0, line.find('\t')));
        CHECK_MESSAGE(help.find(" " + line.substr(line.find('\t') + 1) + "\n") != std::string::npos, line);
    }
    CHECK(verbs.size() == section(help, "Subcommands:").size());
    CHECK(run_program("predct").errors.find("unknown command 'predct'; did you mean predict?") != std::string::npos);
    CHECK(run_program("").errors.find("missing command: predict, crossover") != std::string::npos);
    CHECK(run_program("completion words -- schema pr").output == run_program("completion words -- schema ''").output);
    CHECK(run_program("completion words -- schema ''").output.starts_with("predict\n"));
}

TEST_CASE("a start loads no library that only archives need") {
    const TemporaryFolder folder;
    const std::string libraries = folder.file("libraries");
    REQUIRE(std::system(("ldd " FTAX_PROGRAM " >" + libraries).c_str()) == 0);
    CHECK(read_text(libraries).find("libc.so") != std::string::npos);
    CHECK(read_text(libraries).find("libcrypto") == std::string::npos);
}

TEST_CASE("the man page has every command with its options, and the words of the help") {
    const std::string manual = run_program("manual").output;
    CHECK(manual.starts_with(".TH FTAX 1 "));
    for (const std::string& line : section(run_program("--help").output, "Subcommands:")) {
        const std::string verb = line.substr(0, line.find(' '));
        CHECK_MESSAGE(manual.find("\n.SS " + verb + "\n") != std::string::npos, verb);
    }
    CHECK(manual.find("\n.SS devices show\n") != std::string::npos);
    CHECK(manual.find("\\-\\-shapes\" \" \\fIINPUT:DIMS\\fR\"") != std::string::npos);
    std::vector<std::string> sections;
    std::istringstream lines(manual);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(".SH ")) sections.push_back(line.substr(4));
    }
    CHECK(sections == std::vector<std::string>{"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "Examples", "Exit status",
                                               "Environment"});
    CHECK(manual.find("resnet50 \\-\\-device t4") != std::string::npos);
}
