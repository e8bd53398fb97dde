#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ftax/import.hpp"
#include "graphs/files/csv.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;
using Json = nlohmann::json;

namespace {

constexpr const char* dynamic_onnx = FTAX_SOURCE_DIR "/tests/oracle/exported/image.dynamo.onnx";
constexpr const char* fixed_onnx = FTAX_SOURCE_DIR "/tests/oracle/exported/image.legacy20.onnx";

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

/// What standard error warns of, line by line.
std::vector<std::string> warnings_of(const ProgramRun& run) {
    std::vector<std::string> warnings;
    for (std::size_t at = 0; (at = run.errors.find("warning: ", at)) != std::string::npos;) {
        at += 9;
        warnings.push_back(run.errors.substr(at, run.errors.find('\n', at) - at));
    }
    return warnings;
}

}  // namespace

TEST_CASE("each warning on standard error is also in JSON and in every row of CSV") {
    const std::vector<std::vector<std::string>> commands{
        {"predict", "resnet18", "--device", "l4", "--framework", "torch-compile", "--batch", "1,8"},
        {"predict", "vgg16", "--device", "t4", "--framework", "torch-compile", "--batch", "4096"},
        {"predict", fixed_onnx, "--device", "l4"},
        {"crossover", "resnet18", "--device", "l4", "--framework", "torch-compile"},
        {"headroom", "resnet18", "--device", "l4", "--framework", "torch-compile"},
        {"compare", "resnet18", "--device", "l4", "--framework", "torch-compile", "--batch", "1,8"},
        {"generate", "llama-3-8b", "--device", "l4", "--framework", "torch-compile", "--batch", "1", "--prompt", "64",
         "--new-tokens", "8"},
        {"generate", "llama-3-8b", "--device", "h100-sxm5-80gb", "--framework", "vllm@0.11", "--precision", "fp8",
         "--batch", "1", "--prompt", "64", "--new-tokens", "8"},
        {"inspect", "resnet18", "--kernels", "--device", "l4", "--framework", "torch-compile", "--batch", "1"},
        {"inspect", fixed_onnx}};
    for (const auto& command : commands) {
        const ProgramRun run = run_ftax(with(command, {"--json", "-"}));
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        const std::vector<std::string> warnings = warnings_of(run);
        CHECK_MESSAGE(!warnings.empty(), command[0]);
        const std::string json = Json::parse(run.output).dump();
        for (const std::string& warning : warnings) {
            CHECK_MESSAGE(json.find(Json(warning).dump()) != std::string::npos, command[0], ": ", warning);
        }
        if (command[0] == "inspect") continue;  // its CSV is the sums or launches alone
        const CsvTable table(run_ftax(with(command, {"--csv", "-"})).output, "csv");
        const auto column = table.column("warnings");
        REQUIRE_MESSAGE(column, command[0]);
        for (std::size_t row = 0; row < table.rows(); ++row) {
            for (const std::string& warning : warnings) {
                CHECK_MESSAGE(table.row(row)[*column].find(warning) != std::string_view::npos, command[0], ": ",
                              warning);
            }
        }
    }
}

TEST_CASE("a sequence beyond the positions that a built-in model has is warned of, in every output") {
    const ProgramRun run =
        run_ftax({"predict", "Bert_Large", "--device", "t4", "--batch", "1", "--dim", "seq=4096", "--json", "-"});
    const std::string warning = "seq = 4096 lies outside the 1 to 512 that the model allows";
    CHECK(run.errors.find(warning) != std::string::npos);
    CHECK(Json::parse(run.output)["predictions"][0]["warnings"].dump().find(warning) != std::string::npos);
    CHECK(run_ftax({"predict", "bert", "--device", "t4", "--dim", "seq=512"}).errors.empty());
    std::size_t checked = 0;
    for (const ZooModel& model : zoo_models()) {
        const Graph graph = load_graph("zoo:" + model.name);
        const auto& symbols = graph.expressions.symbols();
        const bool varies = std::find(symbols.begin(), symbols.end(), "seq") != symbols.end();
        for (const ModuleCall& call : graph.module_calls) {
            const bool holds_positions = call.path.ends_with("position_embeddings") || call.path.ends_with(".wpe") ||
                                         call.path.ends_with("embed_positions");
            if (!varies || !holds_positions) continue;
            ++checked;
            CHECK_MESSAGE(!graph.ranges.empty(), model.name);
        }
    }
    CHECK(checked >= 14);
}

TEST_CASE("a run that does not fit has a warning in its row") {
    const ProgramRun run = run_ftax({"predict", "vgg16", "--device", "t4", "--batch", "1,8192", "--json", "-"});
    REQUIRE(run.exit_code == 0);
    const Json rows = Json::parse(run.output)["predictions"];
    CHECK(rows[0]["warnings"].empty());
    CHECK(rows[1]["warnings"].dump().find("DOES NOT FIT") != std::string::npos);
}

TEST_CASE("a list where one is asked for points to compare, a misspelt framework to the one that was meant") {
    const std::vector<std::string> predict{"predict", "resnet18", "--batch", "1"};
    CHECK(run_ftax(with(predict, {"--device", "t4,l4"})).errors.find("`ftax compare` takes several") !=
          std::string::npos);
    CHECK(run_ftax(with(predict, {"--device", "t4", "--framework", "pytorch-eager,torchscript"}))
              .errors.find("`ftax compare` takes several") != std::string::npos);
    CHECK(run_ftax(with(predict, {"--device", "t4", "--framework", "pytorch-eagr"}))
              .errors.find("(near: pytorch-eager)") != std::string::npos);
}

TEST_CASE("an ONNX file without a framework says which one is assumed") {
    const std::vector<std::string> predict{"predict", dynamic_onnx, "--device", "t4", "--batch", "2"};
    CHECK(run_ftax(predict).errors.find("no --framework given for an ONNX file; assuming pytorch-eager") !=
          std::string::npos);
    CHECK(run_ftax(with(predict, {"--framework", "pytorch-eager"})).errors.find("assuming") == std::string::npos);
}

TEST_CASE("the advice for a fixed batch can be followed") {
    const ProgramRun run = run_ftax({"predict", fixed_onnx, "--device", "t4", "--batch", "4"});
    CHECK(run.exit_code == 2);
    REQUIRE(run.errors.find("--shapes input.1:batchx3x32x32 lets it vary") != std::string::npos);
    CHECK(run_ftax({"predict", fixed_onnx, "--device", "t4", "--batch", "4", "--shapes", "input.1:batchx3x32x32"})
              .exit_code == 0);
    // Elements of four images in one row: which of them are of one image cannot be followed.
    const TemporaryFolder folder;
    const std::string model =
        folder.write("mixed.txt",
                     "graph mixed\ninput %x f32[4,64]\n%y f32[256] = reshape(%x)\n%z f32[64,4] = reshape(%y)\n"
                     "%s f32[64,4] = softmax(%z) axis=0\noutput %s\n");
    const ProgramRun mixed = run_ftax({"crossover", model, "--device", "t4"});
    CHECK(mixed.exit_code != 0);
    CHECK(mixed.errors.find("leave --batch out") == std::string::npos);
}

TEST_CASE("inspect --kernels sums up by class of kernel and lists the ten longest; --all lists every launch") {
    const std::vector<std::string> inspect{"inspect", "resnet50", "--batch", "8", "--kernels", "--device", "t4"};
    const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
    const std::string summary = run_ftax(inspect).output, all = run_ftax(with(inspect, {"--all"})).output;
    CHECK(lines(summary) < 40);
    CHECK(summary.find("implicit-gemm") != std::string::npos);
    CHECK(summary.find("the 10 of ") != std::string::npos);
    CHECK(lines(all) > 150);
    CHECK(run_ftax({"inspect", "resnet50", "--batch", "8", "--all"}).exit_code == 2);
    const Json launches =
        Json::parse(run_ftax(with(inspect, {"--precision", "fp16", "--json", "-"})).output)["launches"];
    for (const Json& launch : launches) {
        for (const Json& kernel : launch["kernel_details"]) {
            if (kernel["name"] == "copy" || kernel["name"] == "transpose") CHECK(kernel["path"] == "16 bit");
        }
    }
}

TEST_CASE("explore writes a page of its own with every prediction in it") {
    const TemporaryFolder folder;
    const std::string page = folder.file("explore.html");
    const ProgramRun run =
        run_ftax({"explore", "bert", "--device", "t4,l4", "--over", "seq=64:256:x2", "--html", page});
    REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
    const std::string html = read_text(page);
    CHECK(html.size() < 1'000'000);
    for (const char* outside : {"src=", "href=", "@import", "url("}) CHECK(html.find(outside) == std::string::npos);
    const std::size_t at = html.find("const data = ") + 13;
    const Json data = Json::parse(html.substr(at, html.find(";\n", at) - at));
    CHECK(data["values"] == Json({64, 128, 256}));
    REQUIRE(data["cards"].size() == 2);
    const Json one = Json::parse(
        run_ftax({"predict", "bert", "--device", "l4", "--batch", "32", "--dim", "seq=128", "--json", "-"}).output);
    const Json& curve = data["cards"][1]["curves"][1];
    CHECK(curve["latency"][5].get<double>() ==
          approx(1e6 * one["predictions"][0]["latency_s"].get<double>()).epsilon(1e-3));
    REQUIRE(curve["crossovers"].size() == 1);
    CHECK(curve["crossovers"][0]["batch"].get<double>() == approx(one["crossover"]["batch"].get<double>()));
    CHECK(run_ftax({"explore", "bert", "--device", "t4", "--over", "seq", "--html", page}).exit_code == 2);
}

TEST_CASE("every command that predicts memory warns where it does not fit") {
    const TemporaryFolder folder;
    const std::vector<std::string> run{"bert", "--device", "t4", "--dim", "seq=512", "--batch", "4096"};
    for (const std::string verb : {"predict", "compare", "headroom", "explore"}) {
        CAPTURE(verb);
        const std::string page = folder.file("page.html");
        std::vector<std::string> arguments = with({verb}, run);
        arguments = with(arguments, verb == "explore" ? std::vector<std::string>{"--html", page}
                                                      : std::vector<std::string>{"--json", "-"});
        const ProgramRun result = run_ftax(arguments);
        REQUIRE_MESSAGE(result.exit_code == 0, result.errors);
        CHECK(result.errors.find("DOES NOT FIT") != std::string::npos);
        CHECK((verb == "explore" ? read_text(page) : result.output).find("DOES NOT FIT") != std::string::npos);
    }
}
