#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

struct Page {
    std::string html;
    nlohmann::json json;
};

/// Runs a verb with --html and --json.
Page page_of(std::vector<std::string> arguments, int exit_code = 0) {
    const TemporaryFolder folder;
    arguments.insert(arguments.end(), {"--json", "-", "--html", folder.file("page.html")});
    const ProgramRun run = run_ftax(arguments);
    REQUIRE_MESSAGE(run.exit_code == exit_code, run.errors);
    return {read_text(folder.file("page.html")), nlohmann::json::parse(run.output)};
}

void check_number(const std::string& html, double value) {
    CHECK_MESSAGE(html.find(fmt::format("data-v=\"{}\"", value)) != std::string::npos, value);
}

void check_self_contained(const std::string& html) {
    for (const char* outside : {"src=", "href=", "@import", "url("}) CHECK(html.find(outside) == std::string::npos);
    CHECK(html.find(">nan") == std::string::npos);
}

const std::vector<std::string> times{"latency_s", "low_s", "high_s", "host_s", "device_s"};

/// Names of all members, on every level; groups of a validation are named by its columns.
void add_keys(const nlohmann::json& json, std::set<std::string>& keys) {
    if (!json.is_structured()) return;
    for (const auto& [key, value] : json.items()) {
        if (json.is_object()) keys.insert(key);
        if (key != "group" && key != "dims") add_keys(value, keys);
    }
}

/// A model whose every name would be markup.
constexpr const char* hostile_model = R"(graph "<script>alert(1)</script>"
input %x f32[batch,64]
weight %w f32[64,64]
%"<b>\"'&" f32[batch,64] = linear(%x, %w) "<img src=x onerror=alert(2)>" @"</td><script>alert(3)</script>"
%2 f32[batch,64] = custom(%"<b>\"'&") "evil::\"><script>alert(4)</script>"
output %2
)";

void check_harmless(const std::string& markup) {
    for (const char* tag : {"<script>alert", "<img", "<b>", "</td><script", "\"><script", "'<script"}) {
        CHECK_MESSAGE(markup.find(tag) == std::string::npos, tag);
    }
}

}  // namespace

TEST_CASE("predict --html holds the numbers of --json and reads nothing from elsewhere") {
    const Page page = page_of({"predict", "resnet18", "--device", "t4", "--precision", "fp16", "--batch", "1,8"});
    for (const auto& row : page.json["predictions"]) {
        for (const std::string& quantity : times) check_number(page.html, row[quantity]);
    }
    check_self_contained(page.html);
    for (const char* part :
         {"Launches at batch 8", "id=\"coverage\"", "fp16_tensor 65.1 TFLOP/s", "id=\"provenance\""}) {
        CHECK_MESSAGE(page.html.find(part) != std::string::npos, part);
    }
}

TEST_CASE("predict --measured of several batches draws each likely cause beside the measurements") {
    const std::vector<std::string> run{"predict", "resnet18", "--device",   "t4",
                                       "--batch", "1,8,64",   "--measured", "3ms,10.5ms,56ms"};
    const Page page = page_of(run);
    std::size_t likely = 0, charts = 0;
    for (const auto& cause : page.json["diagnosis"]) likely += cause["share"] >= 0.01;
    const std::regex title("<h2>[0-9.]+ %: ");
    charts = static_cast<std::size_t>(
        std::distance(std::sregex_iterator(page.html.begin(), page.html.end(), title), std::sregex_iterator()));
    CHECK(charts == std::min<std::size_t>(likely, 6));
    CHECK(charts > 1);
    const Page one = page_of({"predict", "resnet18", "--device", "t4", "--batch", "8", "--measured", "10.5ms"});
    CHECK_FALSE(std::regex_search(one.html, title));
}

TEST_CASE("docs/outputs.md names every member of --json") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,framework,precision,model,batch,latency_ms,kernel_ms\n"
                                          "T4,pytorch-eager,fp32,resnet18,1,4.7,3\nT4,,,unheard,1,4.7,3\n");
    std::set<std::string> keys;
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"predict", "resnet18", "--device", "t4", "--batch", "1", "--measured", rows},
          {"crossover", "resnet18", "--device", "t4", "--framework", "torch-tensorrt"},
          {"compare", "resnet18", "--device", "t4,l4", "--precision", "bf16", "--batch", "1"},
          {"validate", rows}}) {
        add_keys(page_of(arguments).json, keys);
    }
    CHECK(keys.size() > 50);
    const std::string docs = read_text(std::string(FTAX_SOURCE_DIR) + "/docs/outputs.md");
    const auto names = [&](const std::string& as) { return docs.find(as) != std::string::npos; };
    for (const std::string& key : keys)
        CHECK_MESSAGE((names("`" + key + "`") || names("." + key + "`") || names("`" + key + ".")), key);
}

TEST_CASE("compare --html holds the numbers of --json, and why a pair is left out") {
    const Page page = page_of({"compare", "resnet18", "--device", "t4,l4", "--framework", "pytorch-eager,torchscript",
                               "--precision", "bf16", "--batch", "1,8"});
    int compared = 0, skipped = 0;
    for (const auto& row : page.json["rows"]) {
        if (row.contains("skipped")) {
            ++skipped;
            continue;
        }
        for (const std::string& quantity : times) check_number(page.html, row[quantity]);
        check_number(page.html, row["ratio_to_best"]);
        ++compared;
    }
    CHECK(compared >= 2);
    CHECK(skipped >= 1);
    CHECK(page.html.find("Not compared") != std::string::npos);
    check_self_contained(page.html);
}

TEST_CASE("crossover --html holds the numbers of --json, whether there is a crossover or not") {
    const Page page = page_of({"crossover", "resnet18", "--device", "a100-sxm4-40gb"});
    const auto& crossover = page.json["crossover"];
    for (const char* quantity : {"batch", "low", "high", "host_s"}) check_number(page.html, crossover[quantity]);
    for (const auto& row : page.json["predictions"]) {
        for (const std::string& quantity : times) check_number(page.html, row[quantity]);
    }
    check_self_contained(page.html);

    const Page without = page_of({"crossover", "resnet18", "--device", "t4", "--framework", "torch-tensorrt"});
    CHECK(without.json["crossover"]["batch"].is_null());
    CHECK(without.html.find("Crossover: none between batch 1 and 4096") != std::string::npos);
    CHECK(without.html.find("id=\"interval\"") == std::string::npos);
}

TEST_CASE("validate --html has the numbers of --json, or a note without predictions") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,framework,precision,model,batch,latency_ms\nT4,,fp32,resnet18,1,4.7\n"
                                          "T4,,fp32,resnet18,32,34.1\nV100,torchscript,fp16,resnet50,4,7\n"
                                          "T4,,fp32,unheard,1,3\n");
    const Page page = page_of({"validate", rows});
    for (const auto& errors : {page.json["overall"], page.json["groups"][0], page.json["groups"][1]}) {
        for (const char* quantity : {"rows", "median_ape", "mape", "p90_ape", "bias", "inside_interval"}) {
            check_number(page.html, errors[quantity]);
        }
    }
    for (const char* part :
         {"torchscript (1)", "id=\"by-batch\"", "id=\"by-gpu\"", "id=\"by-model\"", "id=\"furthest\"", "unheard"}) {
        CHECK_MESSAGE(page.html.find(part) != std::string::npos, part);
    }
    check_self_contained(page.html);
    REQUIRE(page.json["profiles"].size() == 4);  // two devices, two frameworks
    for (const auto& profile : page.json["profiles"]) {
        CHECK_FALSE(profile["version"].get<std::string>().empty());
        const std::string cells =
            fmt::format("<td class=\"text\">{}</td><td class=\"text\">{}</td>", profile["name"].get<std::string>(),
                        profile["version"].get<std::string>());
        CHECK_MESSAGE(page.html.find(cells) != std::string::npos, cells);
    }
    const std::string anchor =
        folder.write("anchor.csv", "gpu,model,batch,latency_ms\nT4,unheard,1,3\nT4,resnet18,1,5\n");
    const Page anchored = page_of({"validate", rows, "--anchor", anchor});
    CHECK(anchored.html.find("<li>Warning: ") != std::string::npos);
    CHECK(anchored.json["profiles"][2]["host"] == "anchored");
    const std::string none = folder.write("none.csv", "gpu,model,batch,latency_ms\nT4,unheard,1,3\n");
    const Page empty = page_of({"validate", none}, 6);
    CHECK(empty.html.find("none of 1 rows could be predicted") != std::string::npos);
    CHECK(empty.json["profiles"].empty());
    std::string many = "gpu,model,batch,latency_ms\n";
    for (int i = 0; i < 120; ++i) many += "T4,unheard" + std::to_string(i) + ",1,3\n";
    CHECK(page_of({"validate", folder.write("many.csv", many)}, 6).html.find("100 of 120 reasons") !=
          std::string::npos);
    const std::string operators =
        folder.write("operators.csv", "gpu,op,precision,shape,latency_ms\nT4,softmax,fp32,b=512 h=512,0.01\n");
    CHECK(page_of({"validate", operators}).json["profiles"][0]["name"] == "t4");
    CHECK(run_ftax({"validate", "--kineto", rows, "--html", folder.file("page.html"), "resnet18", "--device", "t4"})
              .exit_code == 2);
}

TEST_CASE("BAD_INPUTS 6: names of a model are text in pages, charts and traces, never markup") {
    const TemporaryFolder folder;
    const std::string model = folder.write("<script>alert(0)<'&.txt", hostile_model);
    const std::string svg = folder.file("chart.svg"), trace = folder.file("trace.json");
    const Page page = page_of({"predict", model, "--device", "t4", "--batch", "1", "--svg", svg, "--trace", trace});
    check_harmless(page.html);
    for (const char* shown : {"&lt;script&gt;alert(0)&lt;&#39;&amp;.txt", "\\u003c/td>\\u003cscript>alert(3)",
                              "alert(4)", "\\u003cimg src=x onerror=alert(2)>"}) {
        CHECK_MESSAGE(page.html.find(shown) != std::string::npos, shown);
    }
    check_harmless(read_text(svg));
    CHECK(read_text(svg).find("&lt;script&gt;alert(0)") != std::string::npos);
    CHECK_FALSE(nlohmann::json::parse(read_text(trace)).empty());
    check_harmless(page_of({"compare", model, "--device", "t4", "--framework", "pytorch-eager", "--batch", "1"}).html);
    check_harmless(page_of({"crossover", model, "--device", "t4"}).html);
}

TEST_CASE("BAD_INPUTS 6: cells and columns of measured rows are text in a page, never markup") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("<img src=x>.csv",
                                          "gpu,model,batch,latency_ms,run,\"\"\"><script>alert(5)\"\n"
                                          "T4,resnet18,1,4.7,<b>run,\"'\"\"><script>alert(6)</script>\"\n"
                                          "T4,<script>alert(7)</script>,1,4.7,,\n");
    const Page page = page_of({"validate", rows, "--by", "\"><script>alert(5)"});
    check_harmless(page.html);
    CHECK(page.html.find("&quot;&gt;&lt;script&gt;alert(6)") != std::string::npos);
    CHECK(page.html.find("&lt;script&gt;alert(7)") != std::string::npos);
    CHECK(page.html.find("&lt;b&gt;run") != std::string::npos);
}

TEST_CASE("compared pairs: a chart for each device with frameworks in colour and dash; one for devices alone") {
    const auto looks = [](const char* devices, const char* frameworks) {
        const std::string html =
            page_of({"compare", "resnet18", "--device", devices, "--framework", frameworks, "--batch", "1,8"}).html;
        std::vector<std::string> found;
        const std::regex line("class=\"line (k[0-9] d[0-9])\" d=\"M[0-9.]+ [0-9.]+L");
        for (auto at = std::sregex_iterator(html.begin(), html.end(), line); at != std::sregex_iterator(); ++at)
            found.push_back((*at)[1]);
        std::sort(found.begin(), found.end());  // the best comes first
        return found;
    };
    using Looks = std::vector<std::string>;
    CHECK(looks("t4,l4", "pytorch-eager,torchscript") == Looks{"k0 d0", "k0 d0", "k1 d1", "k1 d1"});
    CHECK(looks("t4", "pytorch-eager,torchscript") == Looks{"k0 d0", "k1 d1"});
    CHECK(looks("t4,l4", "torchscript") == Looks{"k0 d0", "k1 d1"});
}

TEST_CASE("a page, a chart and a trace go to standard output alone") {
    const std::vector<std::string> predict{"predict", "resnet18", "--device", "t4", "--batch", "1"};
    const auto standard_output = [](std::vector<std::string> arguments, const char* option) {
        arguments.insert(arguments.end(), {option, "-"});
        const ProgramRun run = run_ftax(arguments);
        CHECK(run.exit_code == 0);
        return run.output;
    };
    const std::string page = standard_output(predict, "--html"), svg = standard_output(predict, "--svg");
    CHECK(page.starts_with("<!doctype html>"));
    CHECK(page.ends_with("</html>\n"));
    CHECK(svg.starts_with("<svg "));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(nlohmann::json::parse(standard_output(predict, "--trace")).contains("traceEvents"));
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv", "gpu,model,batch,latency_ms\nT4,resnet18,1,4.7\n");
    CHECK(standard_output({"validate", rows}, "--predictions").starts_with("gpu,model,batch,latency_ms,predicted_ms"));
    CHECK(standard_output({"convert", "resnet18"}, "-o") == run_ftax({"convert", "resnet18"}).output);
    CHECK(standard_output({"crossover", "resnet18", "--device", "t4"}, "--html").ends_with("</html>\n"));
}

TEST_CASE("a page that cannot be written is a usage error") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv", "gpu,model,batch,latency_ms\nT4,resnet18,1,4.7\n");
    for (std::vector<std::string> arguments :
         {std::vector<std::string>{"predict", "resnet18", "--device", "t4", "--batch", "1"},
          {"compare", "resnet18", "--device", "t4", "--batch", "1"},
          {"crossover", "resnet18", "--device", "t4"},
          {"validate", rows}}) {
        arguments.insert(arguments.end(), {"--html", "/nowhere/page.html"});
        CHECK(run_ftax(arguments).exit_code == 2);
    }
}

TEST_CASE("the page of headroom draws latency over width and marks the flat part") {
    const Page page = page_of({"headroom", "bert", "--device", "t4", "--precision", "fp16", "--dim", "seq=128"});
    const std::size_t chart = page.html.find("width of the layers, %");
    REQUIRE(chart != std::string::npos);
    const std::size_t begin = page.html.rfind("<figure", chart), end = page.html.find("</figure>", chart);
    const std::string figure = page.html.substr(begin, end - begin);
    CHECK(figure.find("Within 5 % more latency") != std::string::npos);
    for (const char* series : {"prediction", "host", "device"}) CHECK(figure.find(series) != std::string::npos);
}
