#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

using namespace ftax::test;

namespace {

namespace fs = std::filesystem;

struct Block {
    std::string language;  ///< what stands behind the fence: "sh" is run, "sh gpu" only read
    std::string text;
};

std::vector<Block> blocks_of(const fs::path& page) {
    std::vector<Block> blocks;
    std::ifstream file(page);
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("```")) {
            inside = !inside;
            if (inside) blocks.push_back({line.substr(3), ""});
        } else if (inside) {
            blocks.back().text += line + "\n";
        }
    }
    CHECK_FALSE(inside);
    return blocks;
}

std::vector<fs::path> pages(const char* folder) {
    std::vector<fs::path> result;
    for (const auto& entry : fs::directory_iterator(fs::path(FTAX_SOURCE_DIR) / folder)) {
        if (entry.path().extension() == ".md") result.push_back(entry.path());
    }
    return result;
}

/// Runs a script in a folder, with `ftax` being the program under test; stops at the first failure.
std::string failure_of(const std::string& script, const TemporaryFolder& folder, const std::string& shell_options) {
    const std::string path = folder.write("script.sh", script);
    const int status = std::system(("cd '" + folder.path.string() + "' && PATH='" + folder.path.string() +
                                    ":'$PATH sh " + shell_options + " script.sh >output 2>&1 </dev/null")
                                       .c_str());
    return status == 0 ? "" : read_text(folder.file("output"));
}

/// Each command's verb has the options that it is given.
void check_options(const std::string& script) {
    const std::regex option("--[a-z0-9-]+");
    std::istringstream lines(script);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("ftax ")) continue;
        const std::string verb = line.substr(5, line.find(" -") - 5);
        std::string help = run_program(verb + " --help").output;
        std::replace(help.begin(), help.end(), ',', ' ');  // between the names of one option
        CHECK_MESSAGE(help.starts_with("Predicts the latency") == false, line);
        for (auto found = std::sregex_iterator(line.begin(), line.end(), option); found != std::sregex_iterator();
             ++found) {
            CHECK_MESSAGE(help.find(" " + found->str() + " ") != std::string::npos, line, found->str());
        }
    }
}

/// GitHub's name of a heading: lower case, spaces as hyphens, other punctuation dropped.
std::string anchor_of(const std::string& heading) {
    std::string anchor;
    for (const char c : heading) {
        if (c == ' ' || c == '-') anchor.push_back('-');
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
            anchor.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
        }
    }
    return anchor;
}

std::set<std::string> anchors_in(const fs::path& page) {
    std::set<std::string> anchors;
    std::ifstream file(page);
    for (std::string line; std::getline(file, line);) {
        const std::size_t text = line.find_first_not_of('#');
        if (text > 0 && text != std::string::npos && line[text] == ' ')
            anchors.insert(anchor_of(line.substr(text + 1)));
    }
    return anchors;
}

}  // namespace

TEST_CASE("every command of docs/ runs; those that need a GPU are read") {
    int run = 0, read = 0;
    for (const fs::path& page : pages("docs")) {
        CAPTURE(page.filename().string());
        const TemporaryFolder folder;
        fs::create_symlink(FTAX_PROGRAM, folder.path / "ftax");
        for (const Block& block : blocks_of(page)) {
            if (block.language == "sh") {
                CHECK_MESSAGE(failure_of(block.text, folder, "-e").empty(), block.text,
                              failure_of(block.text, folder, "-e"));
                ++run;
            } else if (block.language == "sh gpu") {
                CHECK(failure_of(block.text, folder, "-n").empty());
                check_options(block.text);
                ++read;
            }
        }
    }
    CHECK(run >= 15);
    CHECK(read >= 2);
}

TEST_CASE("outputs shown in docs/ are those of the commands above them") {
    // Without the numbers, which move with the models.
    const auto lines_of = [](const std::string& text) {
        static const std::regex number(R"([0-9]+(\.[0-9]+)?)"), spaces(" +");
        std::vector<std::string> lines;
        std::istringstream stream(text);
        for (std::string line; std::getline(stream, line);)
            lines.push_back(std::regex_replace(std::regex_replace(line, number, "#"), spaces, " "));
        return lines;
    };
    int shown = 0;
    for (const fs::path& page : pages("docs")) {
        const std::vector<Block> blocks = blocks_of(page);
        for (std::size_t i = 1; i < blocks.size(); ++i) {
            if (blocks[i].language != "output") continue;
            ++shown;
            REQUIRE(blocks[i - 1].text.starts_with("ftax "));
            const std::vector<std::string> real =
                lines_of(run_program(blocks[i - 1].text.substr(5, blocks[i - 1].text.find('\n') - 5)).output);
            for (const std::string& line : lines_of(blocks[i].text))
                CHECK_MESSAGE(std::ranges::count(real, line) > 0, line);
        }
    }
    CHECK(shown >= 1);
}

TEST_CASE("outputs.md names every key of --json") {
    const TemporaryFolder folder;
    const std::string text = read_text(std::string(FTAX_SOURCE_DIR) + "/docs/outputs.md");
    const std::string rows =
        folder.write("rows.csv", "gpu,model,batch,latency_ms\nT4,resnet18,1,4.7\nT4,unheard,1,1\n");
    const std::vector<std::vector<std::string>> commands{
        {"predict", "resnet18", "--device", "t4", "--batch", "1", "--measured", rows},
        {"crossover", "resnet18", "--device", "t4"},
        {"compare", "resnet18", "--device", "t4,h100-pcie-80gb", "--precision", "bf16", "--batch", "1"},
        {"headroom", "bert", "--device", "t4", "--dim", "seq=32"},
        {"inspect", "resnet18", "--batch", "1"},
        {"inspect", "resnet18", "--batch", "1", "--stream"},
        {"inspect", "resnet18", "--batch", "1", "--kernels", "--device", "t4"},
        {"validate", rows}};
    for (std::vector<std::string> arguments : commands) {
        CAPTURE(arguments.front());
        arguments.insert(arguments.end(), {"--json", "-"});
        const ProgramRun run = run_ftax(arguments);
        REQUIRE(run.exit_code == 0);
        const nlohmann::json flat = nlohmann::json::parse(run.output).flatten();
        for (const auto& item : flat.items()) {
            const std::string& path = item.key();
            std::istringstream parts(path);
            for (std::string key; std::getline(parts, key, '/');) {
                const bool index = key.find_first_not_of("0123456789") == std::string::npos;
                const bool given = path.starts_with("/dims/") || path.starts_with("/bindings/");
                const auto names = [&](const std::string& as) { return text.find(as) != std::string::npos; };
                if (!index && !given)
                    CHECK_MESSAGE((names("`" + key + "`") || names("." + key + "`") || names("`" + key + ".")), path);
            }
        }
    }
}

TEST_CASE("links of the README, docs/ and the folders' pages lead somewhere") {
    std::vector<fs::path> all = pages("docs");
    for (const char* folder : {".", "docs/kernel-models", "examples", "graphs/zoo", "data/devices", "data/profiles",
                               "data/ledger", "data/paper"}) {
        for (const fs::path& page : pages(folder)) all.push_back(page);
    }
    const std::regex link(R"(\]\(([^)\s]+)\))");
    std::size_t links = 0;
    for (const fs::path& page : all) {
        const std::string text = read_text(page.string());
        for (auto found = std::sregex_iterator(text.begin(), text.end(), link); found != std::sregex_iterator();
             ++found) {
            const std::string target = (*found)[1];
            CAPTURE(page.string());
            CAPTURE(target);
            ++links;
            if (target.starts_with("https://")) continue;  // nothing outside is asked
            const std::size_t hash = target.find('#');
            const std::string file = target.substr(0, hash);
            const fs::path path = file.empty() ? page : page.parent_path() / file;
            CHECK(fs::exists(path));
            if (hash != std::string::npos) CHECK(anchors_in(path).contains(target.substr(hash + 1)));
        }
    }
    CHECK(links >= 10);
}
