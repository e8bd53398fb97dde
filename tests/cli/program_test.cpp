#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

/// Words of a command line; the README's commands need no quoting.
std::vector<std::string> words_of(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

}  // namespace

TEST_CASE("no interpreter that a verb starts runs or imports a file of the working folder") {
    const TemporaryFolder folder;
    const std::string trace = folder.file("imported");
    for (const char* module : {"csv.py", "email.py", "textwrap.py", "json.py", "random.py"})
        folder.write(module, "open(r'" + trace + "', 'w')\n");
    const auto write_script = [&](const std::string& name, const std::string& text) {
        std::filesystem::permissions(folder.write(name, "#!/bin/sh\n" + text), std::filesystem::perms::owner_all);
    };
    write_script("python3", "touch '" + trace + "'\n");
    // Runs Python as it is asked to, but ends without an answer, so that nothing is measured.
    write_script("silent", "/usr/bin/python3 \"$@\" >/dev/null 2>&1\n");
    const std::string before = "cd '" + folder.path.string() + "' && PATH=:.:$PATH";
    CHECK(run_program("doctor", before).exit_code == 0);
    CHECK_FALSE(std::filesystem::exists(trace));
    const std::string out =
        " --device cpu --framework pytorch-eager --python ./silent --output '" + folder.file("out") + "'";
    for (const std::string verb : {"measure model resnet18", "measure operators", "measure dispatch", "calibrate"}) {
        CAPTURE(verb);
        CHECK(run_program(verb + out, before).exit_code != 0);
        CHECK_FALSE(std::filesystem::exists(trace));
    }
    // The trap works: without isolation Python imports it.
    CHECK(std::system(("cd '" + folder.path.string() + "' && /usr/bin/python3 -c 'import csv'").c_str()) == 0);
    CHECK(std::filesystem::exists(trace));
}

TEST_CASE("the commands of the README run") {
    std::istringstream readme(read_text(std::string(FTAX_SOURCE_DIR) + "/README.md"));
    int commands = 0;
    for (std::string line; std::getline(readme, line);) {
        const std::string indented = "      ftax ";
        if (!line.starts_with(indented)) continue;
        const ProgramRun outcome = run_ftax(words_of(line.substr(indented.size())));
        CHECK_MESSAGE(outcome.exit_code == 0, line, ": ", outcome.errors);
        CHECK_MESSAGE(!outcome.output.empty(), line);
        ++commands;
    }
    CHECK(commands == 7);
}

TEST_CASE("the answer that the README prints is that of the command above it") {
    const std::string readme = read_text(std::string(FTAX_SOURCE_DIR) + "/README.md");
    const std::size_t begin = readme.find("$ ftax ") + 7, end = readme.find('\n', begin);
    const std::string printed = readme.substr(end + 1, readme.find("```", end) - end - 1);
    const std::string output = run_ftax(words_of(readme.substr(begin, end - begin))).output;
    CHECK(output.substr(0, printed.size()) == printed);
    CHECK(std::ranges::count(printed, '\n') > 8);
}

TEST_CASE(
    "the accuracy rows of the README are those of docs/results.md, which quoted_figures.py holds to the ledgers") {
    const std::string results = read_text(std::string(FTAX_SOURCE_DIR) + "/docs/results.md");
    std::istringstream readme(read_text(std::string(FTAX_SOURCE_DIR) + "/README.md"));
    int quoted = 0;
    for (std::string row; std::getline(readme, row);) {
        if (!row.starts_with("| ") || row.find(" % ") == std::string::npos) continue;
        CHECK_MESSAGE(results.find(row + "\n") != std::string::npos, row);
        ++quoted;
    }
    CHECK(quoted == 4);
}

TEST_CASE("exit codes and messages of wrong usage") {
    const TemporaryFolder folder;
    const std::string model = folder.write("tiny.txt", tiny);
    const std::string broken = folder.write("broken.txt", "graph g\ninput %x f32[2\n");
    struct Case {
        std::vector<std::string> arguments;
        int exit_code;
        std::string says;
    };
    const std::vector<std::string> predict{"predict", model, "--device", "t4", "--batch", "1", "--dim", "seq=8"};
    const auto with = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments = predict;
        arguments.insert(arguments.end(), more.begin(), more.end());
        return arguments;
    };
    const std::vector<Case> cases{
        {{}, 2, "ftax: missing command: predict, crossover"},
        {{"frobnicate"}, 2, "ftax: unknown command 'frobnicate' (`ftax --help` lists all)"},
        {{"predct", model, "--device", "t4"}, 2, "unknown command 'predct'; did you mean predict?"},
        {{"--fast"}, 2, "ftax: unknown option --fast ("},
        {with({"--precison", "fp16"}), 2, "predict: unknown option --precison; did you mean --precision?"},
        {with({"twice"}), 2, "predict: unexpected argument 'twice'\n"},
        {{"compare", model, "--device", "t4", "l4"}, 2, "unexpected argument 'l4'; lists have commas: A,B"},
        {{"devices", "shw", "t4"}, 2, "devices: unknown command 'shw'; did you mean show?"},
        {{"predict"}, 2, "MODEL"},
        {{"predict", model}, 2, "--device"},
        {{"predict", model, "--device", "t4", "--batch", "1"}, 2, "seq (--dim seq=N)"},
        {{"predict", model, "--device", "t4", "--batch", "1", "--dim", "sequence=8"},
         2,
         "unknown dynamic dimension sequence (known: batch, seq)"},
        {{"inspect", "zoo:"}, 2, "the zoo holds albert, alexnet"},
        {{"predict", "resnet51", "--device", "t4", "--batch", "1"}, 2, "resnet50"},
        {{"predict", "google/vit-base-patch16", "--device", "t4", "--batch", "1"},
         2,
         "(`ftax models` lists all); give the file "
         "https://huggingface.co/google/vit-base-patch16/raw/main/config.json"},
        {{"predict", "missing.onnx", "--device", "t4", "--batch", "1"},
         2,
         "no zoo model 'missing.onnx' (`ftax models` lists all)\n"},
        {{"predict", model, "--device", "t4"}, 2, "--dim seq=N"},
        {with({"--measured", "40"}), 2,
         "--measured: 40 is not a time from 1e-9 s to 1e9 s with its unit (us, ms or s), such as 12ms"},
        {{"predict", model, "--device", "t4", "--batch", "1-8", "--dim", "seq=8"},
         2,
         "'1-8' is neither a number nor FIRST:LAST:xFACTOR"},
        {{"predict", model, "--device", "t5000", "--batch", "1", "--dim", "seq=8"}, 2, "t5000"},
        {{"predict", broken, "--device", "t4", "--batch", "1"}, 3, "broken.txt:2:15"},
        {with({"--dim", "height=3"}), 2, "height"},
        {with({"--precision", "fp12"}), 2, "fp12"},
        {with({"--framework", "caffe"}), 2, "ftax: unknown framework 'caffe'"},
        {{"compare", model, "--device", "t4,", "--batch", "1", "--dim", "seq=8"}, 2, "unknown device ''"},
        {with({"--cudnn", "6"}), 2, "cuDNN 6 is not modelled; there are 7, 8 and 9"},
        {with({"--host", "abacus"}), 2, "abacus"},
        {with({"--profile", "/nowhere.json"}), 2, "/nowhere.json"},
        {with({"--profile", broken}), 6, "broken.txt"},
        {with({"--json", "-", "--csv", "-"}), 2, "only one of --json and --csv can be written to standard output"},
        {with({"--html", "-", "--svg", "-"}), 2, "only one of --html and --svg can be written to standard output"},
        {with({"--html", "same.out", "--trace", "same.out"}), 2,
         "only one of --trace and --html can be written to same.out"},
        {with({"--json", "/nowhere/out.json"}), 2, "/nowhere/out.json"},
        {{"inspect", model, "--batch", "1,2", "--dim", "seq=8"}, 2, "one batch"},
        {{"inspect", model, "--batch", "1", "--dim", "seq=8", "--kernels"}, 2, "--device"},
        // Options that nothing would read are refused.
        {{"inspect", model, "--batch", "1", "--dim", "seq=8", "--device", "t4"}, 2, "--kernels"},
        {{"inspect", model, "--kernels", "--device", "t4", "--depth", "2"}, 2, "--depth"},
        {{"inspect", model, "--stream", "--kernels", "--device", "t4"}, 2, "--stream"},
        {{"validate", model, "--kineto", broken, "--device", "t4", "--predictions", "out.csv"}, 2, "--predictions"},
        {{"validate", model, "--kineto", broken, "--device", "t4", "--max-mape", "10"}, 2, "--max-mape"},
        {{"measure", "dispatch", "--device", "cpu", "--framework", "my-engine"}, 2, "my-engine not in {libtorch,"},
        {{"profiles", "show", "tensort"}, 2, "no device or framework named 'tensort' (near: tensorrt"},
        {{"profiles", "diff"}, 2, "unknown command 'diff'"},
        {{"serve", "bert", "--device", "t4", "--rate", "1,2"},
         2,
         "--rate: 1,2 is not a number of requests per second from 0 to 1e9"},
        {{"compare", "resnet18", "--device", "t4", "--slo", "latency=20"}, 2, "--slo latency: 20 is not a time"},
        {{"compare", "resnet18", "--device", "t4", "--slo", "20"}, 2, "--slo latency: 20 is not a time"},
        {{"compare", "resnet18", "--device", "t4", "--slo", "speed=20ms"}, 2, "available: ttft, tpot and latency"},
        {{"predict", "llama-3-8b", "--device", "t4"}, 2, "past (--dim past=N); `ftax generate` sets both"},
        {{"validate", "/nowhere.csv"}, 2, "/nowhere.csv"},
        {{"validate", broken}, 6, "broken.txt"},
    };
    for (const Case& test : cases) {
        const ProgramRun outcome = run_ftax(test.arguments);
        std::string line;
        for (const std::string& argument : test.arguments) line += argument + " ";
        CHECK_MESSAGE(outcome.exit_code == test.exit_code, line, outcome.errors);
        CHECK_MESSAGE(outcome.errors.find(test.says) != std::string::npos, line, outcome.errors);
        CHECK_MESSAGE(std::count(outcome.errors.begin(), outcome.errors.end(), '\n') == 1, line, outcome.errors);
        CHECK_MESSAGE(outcome.output.empty(), line);
    }
    CHECK(run_ftax(predict).exit_code == 0);
    CHECK(run_ftax({"predict", "--dim", "seq=8", model, "--device", "t4", "--batch", "1"}).exit_code == 0);
    CHECK(run_ftax(with({"--framework", "TensorRT"})).output == run_ftax(with({"--framework", "tensorrt"})).output);
    CHECK(run_ftax({"--help"}).exit_code == 0);
    CHECK(run_ftax({"validate", "--help"}).output.find("--max-mape") != std::string::npos);
    CHECK(run_ftax({"help", "validate"}).output == run_ftax({"validate", "--help"}).output);
    CHECK(run_ftax({"--version"}).exit_code == 0);
}

TEST_CASE("a model whose batch is fixed takes no other --batch") {
    const TemporaryFolder folder;
    const std::string model =
        folder.write("fixed.txt", "graph fixed\ninput %x f32[4,64]\n%y f32[4,64] = pointwise(%x)\n");
    CHECK(run_ftax({"predict", model, "--device", "t4", "--batch", "1,4"}).exit_code == 2);
    CHECK(run_ftax({"predict", model, "--device", "t4", "--batch", "4"}).exit_code == 0);
    const ProgramRun outcome = run_ftax({"predict", model, "--device", "t4", "--json", "-"});
    REQUIRE(outcome.exit_code == 0);
    const auto json = nlohmann::json::parse(outcome.output);
    CHECK(json["predictions"][0]["batch"].is_null());
    CHECK_FALSE(json.contains("crossover"));
    CHECK(run_ftax({"crossover", model, "--device", "t4"}).exit_code == 2);
}

TEST_CASE("table, JSON and CSV tell the same numbers") {
    const std::vector<std::string> predict{"predict", "resnet18", "--device", "v100-sxm2-32gb", "--batch", "1,64"};
    const auto with = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments = predict;
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_ftax(arguments);
    };
    const TemporaryFolder folder;
    const ProgramRun both = with({"--json", folder.file("out.json"), "--csv", folder.file("out.csv")});
    REQUIRE(both.exit_code == 0);
    CHECK(both.output.find("crossover") != std::string::npos);
    const auto json = nlohmann::json::parse(read_text(folder.file("out.json")));
    const ProgramRun alone = with({"--json", "-"});
    CHECK(alone.output == read_text(folder.file("out.json")));
    CHECK(with({"--csv", "-"}).output == read_text(folder.file("out.csv")));
    REQUIRE(json["predictions"].size() == 2);
    for (const auto& prediction : json["predictions"]) {
        CHECK(prediction["closed_form_s"] == std::max(prediction["host_s"], prediction["device_s"]));
        CHECK(prediction["latency_s"] >= prediction["closed_form_s"]);
        CHECK(prediction["coverage"]["nodes"] == 1.0);
    }
    CHECK(json["device"]["slug"] == "v100-sxm2-32gb");
    CHECK(json["framework"]["name"] == "pytorch-eager");
}

TEST_CASE("a bare --json in any position does not consume the model argument") {
    const std::string last = run_ftax({"predict", "resnet18", "--device", "t4", "--batch", "1", "--json"}).output;
    CHECK(nlohmann::json::accept(last));
    CHECK(run_ftax({"predict", "--json", "resnet18", "--device", "t4", "--batch", "1"}).output == last);
    CHECK(run_ftax({"predict", "--device", "t4", "--batch", "1", "--json", "resnet18"}).output == last);
    CHECK(run_ftax({"predict", "--json", "--device", "t4", "--batch", "1"}).exit_code == 2);
}

TEST_CASE("BAD_INPUTS 43: a profile of another GPU, framework or host warns; --strict refuses it") {
    const TemporaryFolder folder;
    const std::string model = folder.write("tiny.txt", tiny);
    const std::string device = folder.write("device.json", R"({"schema_version": 1, "kind": "device", "version": "1",
        "fitted_on": ["t4"], "parameters": [{"name": "bandwidth", "value": 0.9, "source": "test"}]})");
    const std::string framework = folder.write("framework.json", R"({"schema_version": 1, "kind": "framework",
        "framework": "pytorch-eager", "version": "1.12", "host": "abacus",
        "parameters": [{"name": "host.conv", "value": 1e-4, "source": "test"}]})");
    struct Case {
        std::vector<std::string> arguments;
        std::vector<std::string> names;  ///< what the warning must name; empty: there is no warning
    };
    const std::vector<std::string> own{"--device", "t4", "--profile", device, "--framework-profile", framework};
    const std::vector<Case> cases{
        {{"--host", "abacus"}, {}},
        {{"--host", "deep-thought"}, {"abacus", "deep-thought"}},
        {{"--framework", "torchscript"}, {"pytorch-eager", "torchscript"}},
        {{"--device", "l4"}, {"t4", "l4"}},
    };
    for (const Case& test : cases) {
        std::vector<std::string> arguments{"predict", model, "--batch", "1", "--dim", "seq=8"};
        arguments.insert(arguments.end(), own.begin() + (test.arguments[0] == "--device" ? 2 : 0), own.end());
        arguments.insert(arguments.end(), test.arguments.begin(), test.arguments.end());
        const ProgramRun loose = run_ftax(arguments);
        arguments.push_back("--strict");
        const ProgramRun strict = run_ftax(arguments);
        CAPTURE(strict.errors);
        CHECK(loose.exit_code == 0);
        CHECK(strict.exit_code == (test.names.empty() ? 0 : 6));
        CHECK(loose.errors.empty() == test.names.empty());
        for (const std::string& name : test.names) {
            CHECK(loose.errors.find(name) != std::string::npos);
            CHECK(strict.errors.find(name) != std::string::npos);
        }
    }
    const ProgramRun kind =
        run_ftax({"predict", model, "--batch", "1", "--dim", "seq=8", "--device", "t4", "--profile", framework});
    CHECK(kind.exit_code == 6);  // the mode a profile holds for is its kind: never taken for another
}

TEST_CASE("BAD_INPUTS 48: output does not depend on the locale, and a path need not be UTF-8") {
    const TemporaryFolder folder;
    const std::string model = folder.write("t\xff\xfe.txt", tiny);
    const std::vector<std::string> predict{"predict", model, "--device", "t4", "--batch", "1", "--dim", "seq=8"};
    const ProgramRun plain = run_ftax(predict);
    CHECK(plain.exit_code == 0);
    CHECK(plain.output.find('\xff') == std::string::npos);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    const ProgramRun german = run_ftax(predict);
    unsetenv("LC_ALL");
    CHECK(german.output == plain.output);
    std::vector<std::string> json = predict;
    json.insert(json.end(), {"--json", "-"});
    CHECK(nlohmann::json::accept(run_ftax(json).output));
}

TEST_CASE("BAD_INPUTS 47: a reader that goes away ends the program quietly and not with success") {
    const TemporaryFolder folder;
    const std::string status = folder.file("status");
    // The text is several times what a pipe holds, so that the reader is gone before the last write.
    const ProgramRun run = run_program("convert efficientnet; echo $? >'" + status + "'; } | { head -c 1 >/dev/null");
    CHECK(run.errors.empty());
    CHECK(read_text(status) == "1\n");
}

TEST_CASE("a model that is a folder, a pipe or a device is named as such and not read") {
    const TemporaryFolder folder;
    const std::string pipe = folder.file("pipe.onnx");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const auto refused = [](const std::string& model, const std::string& what) {
        const ProgramRun run = run_ftax({"inspect", model});
        CHECK(run.exit_code == 2);
        CHECK_MESSAGE(run.errors.find(" is a " + what) != std::string::npos, run.errors);
    };
    refused(folder.path.string(), "folder");
    refused(pipe, "pipe");
    refused("/dev/zero", "device");
}

TEST_CASE("every reader refuses a pipe, and a text in UTF-16 by its name") {
    const TemporaryFolder folder;
    const std::string wide = folder.write("wide", std::string("\xff\xfe{\0}\0", 6));
    const std::vector<std::vector<std::string>> readers{
        {"predict", "resnet18", "--device", "t4", "--device-profile"},
        {"predict", "resnet18", "--device", "t4", "--framework-profile"},
        {"predict", "resnet18", "--device", "t4", "--anchor"},
        {"predict", "resnet18", "--device", "t4", "--measured"},
        {"predict", "resnet18", "--device"},
        {"devices", "show"},
        {"nas", "--space", "nasbench201", "--device", "t4"},
        {"serve", "llama-3-8b", "--device", "l4", "--requests"},
        {"validate", "resnet18", "--device", "t4", "--kineto"},
        {"validate"},
    };
    for (const std::vector<std::string>& words : readers) {
        const bool is_list = words.back() == "--measured" || words.back() == "--requests";
        const std::string name = "file" + std::to_string(&words - readers.data()) + (is_list ? ".csv" : ".json");
        const std::string pipe = folder.file(name);
        REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
        std::vector<std::string> arguments = words;
        arguments.push_back(pipe);
        const ProgramRun waited = run_ftax(arguments);
        CHECK(waited.exit_code == 2);
        CHECK_MESSAGE(waited.errors.find(name + " is a pipe, not a file") != std::string::npos, waited.errors);
        std::filesystem::remove(pipe);
        std::filesystem::copy_file(wide, pipe);
        const ProgramRun read = run_ftax(arguments);
        CHECK_MESSAGE(read.errors.find("is UTF-16; save it as UTF-8") != std::string::npos, read.errors);
    }
}

TEST_CASE("a config.json may begin with a byte order mark") {
    const TemporaryFolder folder;
    const std::string text = R"({"model_type": "bert", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2,)"
                             R"("num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 64,)"
                             R"("type_vocab_size": 2})";
    const auto inspected = [&](const std::string& content) {
        return run_ftax({"inspect", folder.write("config.json", content), "--batch", "1", "--dim", "seq=8"});
    };
    CHECK(inspected(text).exit_code == 0);
    CHECK(inspected("\xef\xbb\xbf" + text).output == inspected(text).output);
}

TEST_CASE("a limit below 0 is refused, not taken for the largest") {
    for (const char* option : {"--max-nodes", "--max-bytes"}) {
        const ProgramRun run = run_ftax({"inspect", "resnet18", "--batch", "1", std::string(option) + "=-1"});
        CHECK(run.exit_code == 2);
        CHECK(run.errors == "ftax: " + std::string(option) + ": -1 is not a limit from 0 to 1e18\n");
        CHECK(run_ftax({"inspect", "resnet18", "--batch", "1", option, "1000000000"}).exit_code == 0);
    }
}

TEST_CASE("names of a card that hide, reorder or end text are escaped where they are printed") {
    const TemporaryFolder folder;
    nlohmann::json card = nlohmann::json::parse(read_text(std::string(FTAX_SOURCE_DIR) + "/data/devices/t4.json"));
    card["name"] = std::string(
        "T\xe2\x80\xae"
        "4\0x",
        7);
    for (auto& source : card["sources"]) source = std::string("so\xe2\x81\xa6urce\0", 10);
    const std::string file = folder.write("card.json", card.dump());
    const std::vector<std::vector<std::string>> commands{
        {"devices", "show", file},
        {"predict", "resnet18", "--batch", "1", "--device", file},
        {"compare", "resnet18", "--batch", "1", "--device", file + ",l4"},
        {"headroom", "resnet18", "--batch", "1", "--device", file}};
    for (const std::vector<std::string>& words : commands) {
        const ProgramRun run = run_ftax(words);
        const std::string printed = run.output + run.errors;
        CHECK_MESSAGE(run.exit_code == 0, run.errors);
        for (const std::string& hidden :
             {std::string("\xe2\x80\xae"), std::string("\xe2\x81\xa6"), std::string(1, '\0')})
            CHECK_MESSAGE(printed.find(hidden) == std::string::npos, words[0]);
        if (words[0] != "compare") CHECK_MESSAGE(printed.find("\\u{202e}") != std::string::npos, printed);
    }
}

TEST_CASE("a folder that is called like a zoo model does not hide it") {
    const TemporaryFolder folder;
    REQUIRE(std::filesystem::create_directory(folder.file("alexnet")));
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path);
    const ProgramRun run = run_ftax({"inspect", "alexnet", "--batch", "1"});
    std::filesystem::current_path(before);
    CHECK_MESSAGE(run.exit_code == 0, run.errors);
}

TEST_CASE("convert --short-names numbers weights and tensors and keeps the names of inputs") {
    const TemporaryFolder folder;
    const std::string model = folder.write("long.txt", R"(graph long
input %tokens f32[batch,64]
weight %encoder_weight f32[64,64]
%encoder_output f32[batch,64] = linear(%tokens, %encoder_weight) "aten::linear" @encoder
output %encoder_output
)");
    const ProgramRun run = run_ftax({"convert", model, "--short-names"});
    REQUIRE(run.exit_code == 0);
    CHECK(run.output.find("%encoder") == std::string::npos);
    CHECK(run.output.find("%1 f32[batch,64] = linear(%tokens, %w1) \"aten::linear\" @encoder") != std::string::npos);
}
