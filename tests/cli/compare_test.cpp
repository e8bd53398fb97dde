#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "graphs/files/csv.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

TEST_CASE("frameworks are listed with what they are, and the hosts they are calibrated on") {
    const std::string table = run_program("frameworks").output;
    CHECK(table.find("\ntensorrt                                  7.1-10.8         TensorRT engine; tensorrt@8.6") !=
          std::string::npos);
    CHECK(table.find("\nhelp-pytorch-1.8               pytorch-eager\n") != std::string::npos);
    const auto json = nlohmann::json::parse(run_program("frameworks --json").output);
    CHECK(json["frameworks"].size() >= 10);
    CHECK(json["frameworks"][0]["hosts"].size() >= 8);
    CHECK(json["frameworks"][0]["description"] ==
          "PyTorch eager: every operator dispatched from Python; pytorch-eager@2.4 sets the version, from 1.8 on");
}

TEST_CASE("a framework without a version is the newest measured, but on a host or from a file of one version") {
    const TemporaryFolder folder;
    const auto predicted = [](std::vector<std::string> more) {
        std::vector<std::string> words{"predict", "resnet18", "--device", "t4", "--batch", "1", "--json", "-"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramRun run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        const auto json = nlohmann::json::parse(run.output);
        return std::pair(json["framework"]["version"].get<std::string>(),
                         json["predictions"][0]["latency_s"].get<double>());
    };
    for (const auto& [name, newest] : {std::pair<std::string, std::string>{"pytorch-eager", "2.11"},
                                       {"onnxruntime-cuda", "1.23"},
                                       {"torch-compile-cuda-graph", "2.5"}}) {
        CHECK(predicted({"--framework", name}) == predicted({"--framework", name + "@" + newest}));
    }
    CHECK(predicted({"--framework", "pytorch-eager", "--host", "reference"}) ==
          predicted({"--framework", "pytorch-eager@1.12"}));
    const std::string file = std::string(FTAX_SOURCE_DIR) + "/data/profiles/frameworks/pytorch-eager.json";
    CHECK(predicted({"--framework-profile", file}).first == "1.12");
}

TEST_CASE("without a precision a model runs in that of its weights, as far as each card computes in it") {
    const TemporaryFolder folder;
    const std::string bf16 = folder.write("bf16.txt",
                                          "graph g\ninput %x f32[batch,64]\nweight %w bf16[64,64]\n%y f32[batch,64] = "
                                          "linear(%x,%w)\noutput %y\n");
    const auto parsed = [](const std::vector<std::string>& words) {
        const ProgramRun run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output);
    };
    const auto predicted = [&](const std::string& model, std::vector<std::string> more) {
        more.insert(more.begin(), {"predict", model, "--device", "l4", "--batch", "1", "--json", "-"});
        return parsed(more);
    };
    CHECK(predicted(bf16, {})["precision"] == "bf16");
    CHECK(predicted(bf16, {"--precision", "fp32"})["precision"] == "fp32");
    CHECK(predicted(bf16, {"--precision", "fp32"}).dump().find("the model's weights are bf16") != std::string::npos);
    CHECK(predicted("resnet18", {})["precision"] == "fp32");

    // A row that is not compared has its precision too.
    const auto compared = parsed(
        {"compare", bf16, "--device", "t4,l4", "--framework", "vllm,pytorch-eager", "--batch", "1", "--json", "-"});
    CHECK(compared["precision"] == "fp16,bf16");
    REQUIRE(compared["rows"].size() == 4);
    for (const auto& row : compared["rows"]) CHECK(row["precision"] == (row["device"] == "t4" ? "fp16" : "bf16"));
    CHECK(parsed({"compare", "resnet18", "--device", "l4", "--batch", "1", "--json", "-"})["precision"] == "fp32");
}

TEST_CASE("compare: frameworks times devices times batches, each against the best of its batch") {
    const ProgramRun run = run_ftax({"compare", "resnet18", "--device", "t4,a100-sxm4-40gb", "--framework",
                                     "pytorch-eager,onnxruntime-cuda", "--batch", "1,8", "--json"});
    REQUIRE(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.output);
    REQUIRE(json["rows"].size() == 8);
    for (const int batch : {1, 8}) {
        double best_s = 1e9, lowest_ratio = 1e9;
        for (const auto& row : json["rows"]) {
            if (row["batch"] != batch) continue;
            best_s = std::min(best_s, row["latency_s"].get<double>());
            lowest_ratio = std::min(lowest_ratio, row["ratio_to_best"].get<double>());
        }
        CHECK(lowest_ratio == 1);
        for (const auto& row : json["rows"]) {
            if (row["batch"] == batch)
                CHECK(row["ratio_to_best"].get<double>() == approx(row["latency_s"].get<double>() / best_s));
        }
    }
}

TEST_CASE("compare: a device without the precision is listed with the reason, only such devices are an error") {
    const ProgramRun mixed = run_ftax(
        {"compare", "resnet18", "--device", "t4,a100-sxm4-40gb", "--precision", "bf16", "--batch", "1", "--csv"});
    CHECK(mixed.exit_code == 0);
    const CsvTable table(mixed.output, "csv");
    REQUIRE(table.rows() == 2);
    CHECK(table.row(0)[*table.column("skipped")].empty());  // what runs stands first
    CHECK(table.row(1)[*table.column("skipped")].find("bf16") != std::string_view::npos);
    CHECK(table.row(1)[*table.column("latency_s")].empty());
    const ProgramRun alone = run_ftax({"compare", "resnet18", "--device", "t4", "--precision", "bf16", "--batch", "1"});
    CHECK(alone.exit_code == 2);
    CHECK(alone.errors.find("bf16") != std::string::npos);
}

TEST_CASE("compare: a misspelt device or framework is a usage error") {
    CHECK(run_ftax({"compare", "resnet18", "--device", "t4,t44", "--batch", "1"}).exit_code == 2);
    CHECK(run_ftax({"compare", "resnet18", "--device", "t4", "--framework", "pytorch-eager,caffe", "--batch", "1"})
              .exit_code == 2);
}

namespace {

nlohmann::json compared(std::vector<std::string> more) {
    std::vector<std::string> words{"compare", "resnet18", "--framework", "pytorch-eager,torchscript", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = run_ftax(words);
    REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
    return nlohmann::json::parse(run.output);
}

}  // namespace

TEST_CASE("compare: the criteria of --sort order the rows, --top cuts them, and the first line names the best") {
    const std::vector<std::string> lists{"--device", "t4,l4", "--precision", "fp32,fp16", "--batch", "1,32"};
    const auto sorted = [&](const char* by) {
        std::vector<std::string> words = lists;
        words.insert(words.end(), {"--sort", by, "--price", "0.5,1"});
        return compared(words)["rows"];
    };
    for (const auto& [by, key, sign] : {std::tuple{"latency", "latency_s", 1},
                                        {"throughput", "items_per_s", -1},
                                        {"cost", "dollars_per_million", 1}}) {
        const auto rows = sorted(by);
        REQUIRE(rows.size() == 16);
        for (std::size_t i = 1; i < rows.size(); ++i)
            CHECK(sign * rows[i - 1][key].get<double>() <= sign * rows[i][key].get<double>());
    }
    for (const auto& row : sorted("cost")) {
        CHECK(row["items_per_s"].get<double>() == approx(row["batch"].get<double>() / row["latency_s"].get<double>()));
        const double dollars_per_hour = row["device"] == "t4" ? 0.5 : 1;
        CHECK(row["dollars_per_million"].get<double>() ==
              approx(dollars_per_hour / 3600 / row["items_per_s"].get<double>() * 1e6));
    }
    std::vector<std::string> words = lists;
    words.insert(words.end(), {"--sort", "throughput", "--top", "3"});
    const auto top = compared(words);
    CHECK(top["rows"].size() == 3);
    CHECK(top["verdict"].get<std::string>().find(top["rows"][0]["device"].get<std::string>()) != std::string::npos);
    words.back() = "-1";
    words.insert(words.begin(), {"compare", "resnet18"});
    CHECK(run_ftax(words).exit_code == 2);
    CHECK(run_ftax({"compare", "resnet18", "--device", "t4", "--batch", "1", "--sort", "beauty"}).exit_code == 2);
    const ProgramRun unpriced = run_ftax({"compare", "resnet18", "--device", "t4", "--batch", "1", "--sort", "cost"});
    CHECK(unpriced.exit_code == 2);
    CHECK(unpriced.errors.find("give --price") != std::string::npos);
}

TEST_CASE("compare: the SLO comes before the price, whose file names the devices") {
    const TemporaryFolder folder;
    const std::string prices = folder.write("prices.csv", "device,dollars_per_hour\nT4,0.35\nL4,0.8\n");
    const auto json = compared({"--price", prices, "--batch", "1,8,64", "--slo", "latency=10ms"});
    bool kept = true;
    double dollars = 0;
    for (const auto& row : json["rows"]) {
        CHECK(row["keeps_level"].get<bool>() == (row["latency_s"].get<double>() <= 10e-3));
        CHECK((kept || !row["keeps_level"].get<bool>()));
        if (row["keeps_level"] != kept) dollars = 0;
        kept = row["keeps_level"];
        CHECK(row["dollars_per_million"].get<double>() >= dollars);
        dollars = row["dollars_per_million"];
    }
    CHECK(json["rows"].size() == 12);
    CHECK_FALSE(kept);
    CHECK(compared({"--price", prices, "--batch", "1,8,64", "--slo", "10ms"}) == json);  // of the latency
    const auto hopeless = compared({"--device", "t4", "--batch", "1", "--slo", "latency=1us"});
    CHECK(hopeless["verdict"].get<std::string>().starts_with("none keeps the SLO"));
    const auto refused = [&](const std::vector<std::string>& more) {
        std::vector<std::string> words{"compare", "resnet18", "--batch", "1"};
        words.insert(words.end(), more.begin(), more.end());
        return run_ftax(words).exit_code;
    };
    CHECK(refused({}) == 2);
    CHECK(refused({"--price", "1"}) == 2);
    CHECK(refused({"--device", "v100-sxm2-32gb", "--price", prices}) == 2);
    CHECK(refused({"--device", "t4", "--price", "nan"}) == 2);
    CHECK(refused({"--device", "t4", "--slo", "ttft=1ms"}) == 2);
    CHECK(refused({"--price", folder.write("bad.csv", "device,price\nt4,1\n")}) == 6);
}

TEST_CASE("headroom ends at the batch at which predict exceeds the budget, with the libraries of the version") {
    const std::vector<std::string> run{"resnet50",      "--device",    "h100-sxm5-80gb", "--framework",
                                       "torch-compile", "--precision", "bf16",           "--json"};
    const auto answer = [&](std::vector<std::string> words) {
        words.insert(words.begin() + 1, run.begin(), run.end());
        return nlohmann::json::parse(run_ftax(words).output);
    };
    const auto found = answer({"headroom", "--batch", "4"})["headroom"][0];
    REQUIRE(found["property"] == "batch");
    const int end = found["to"].get<int>();
    const auto rows = answer({"predict", "--batch", fmt::format("4,{},{}", end, end + 1)})["predictions"];
    CHECK(rows[1]["latency_s"].get<double>() <= 1.05 * rows[0]["latency_s"].get<double>());
    CHECK(rows[2]["latency_s"].get<double>() > 1.05 * rows[0]["latency_s"].get<double>());
}

TEST_CASE("headroom: properties and frameworks, and invalid budgets") {
    const ProgramRun run = run_ftax({"headroom", "bert", "--device", "t4", "--dim", "seq=128", "--json"});
    REQUIRE(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.output);
    std::vector<std::string> properties;
    for (const auto& row : json["headroom"]) properties.push_back(row["property"]);
    CHECK(properties == std::vector<std::string>{"batch", "seq", "width", "depth"});
    for (std::size_t i = 1; i < json["frameworks"].size(); ++i) {
        CHECK(json["frameworks"][i - 1]["latency_s"].get<double>() <= json["frameworks"][i]["latency_s"].get<double>());
    }
    std::set<std::string> others;
    for (const auto& row : json["frameworks"]) others.insert(row["framework"].get<std::string>());
    CHECK(others.size() == json["frameworks"].size());
    for (const auto& row : json["frameworks"]) {  // initial values where `ftax frameworks` has no measured version
        const std::string version = row["framework_version"];
        CHECK_MESSAGE(row["calibrated"] == (version != "uncalibrated"), row.dump());
        if (row["framework"] == "torch-compile") CHECK(row["calibrated"] == true);
        if (row["framework"] == "onnxruntime-tensorrt") CHECK(row["calibrated"] == false);
    }
    CHECK_FALSE(others.contains("pytorch-eager"));
    for (const char* name : {"torchscript", "tensorrt", "torch-compile", "cuda-graph"}) CHECK(others.contains(name));
    CHECK_FALSE(others.contains("vllm"));  // which serves no encoders
    for (const char* budget : {"0", "-5%", "much", "2000%"}) {
        CHECK(run_ftax({"headroom", "resnet18", "--device", "t4", "--budget", budget}).exit_code == 2);
    }
    CHECK(run_ftax({"headroom", "resnet18", "--device", "t4", "--batch", "1,2"}).exit_code == 2);
}

TEST_CASE("headroom says what a step beyond the budget allows, and warns of frameworks as compare does") {
    const ProgramRun run = run_ftax({"headroom", "resnet18", "--device", "t4", "--json"});
    REQUIRE(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.output);
    std::string names;
    for (const auto& row : json["frameworks"])
        names += (names.empty() ? "" : ",") + row["framework"].get<std::string>();
    const auto compared = nlohmann::json::parse(
        run_ftax({"compare", "resnet18", "--device", "t4", "--framework", names, "--json"}).output);
    std::map<std::string, std::string> evidence;
    for (const auto& row : compared["rows"]) evidence[row["framework"]] = row["evidence"];
    CHECK(evidence.size() == json["frameworks"].size());
    std::set<std::string> words;
    for (const auto& row : json["frameworks"]) {
        CHECK_MESSAGE(row["evidence"] == evidence.at(row["framework"]), row.dump());
        words.insert(row["evidence"]);
    }
    CHECK(words.contains("guess"));
    CHECK(words.size() > 1);
    const auto& fastest = json["frameworks"][0];
    CHECK((json["verdict"].get<std::string>().find("far from this framework's measurements") != std::string::npos) ==
          (fastest["calibrated"] == true && (fastest["evidence"] == "far" || fastest["evidence"] == "guess")));
    for (const auto& row : json["headroom"]) {
        if (row["property"] == "depth" || row["open"] == true) continue;
        CHECK(row["next_latency_s"].get<double>() > 1.05 * json["latency_s"].get<double>());
        CHECK(row["next_to"].get<double>() > row["to"].get<double>());
    }
}

TEST_CASE("compare says what each framework's prediction rests on") {
    const std::string pair = "compare resnet18 --device t4 --framework onnxruntime-tensorrt,pytorch-eager --batch 1";
    const std::string table = run_program(pair).output;
    CHECK(table.find("rests on") != std::string::npos);
    CHECK(table.find("guess") != std::string::npos);
    const auto rows = nlohmann::json::parse(run_program(pair + " --json").output)["rows"];
    CHECK(rows[0]["evidence"] == "guess");
    CHECK(rows[1]["evidence"] != "guess");
}

TEST_CASE("compare finds the cheapest of all cards for a rate within a latency") {
    const auto compared = [](std::vector<std::string> more) {
        more.insert(more.begin(), {"compare", "resnet50", "--precision", "fp16", "--batch", "8", "--json", "-"});
        const ProgramRun run = run_ftax(more);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output);
    };
    const auto all = compared({"--device", "all", "--framework", "all"});
    std::set<std::string> devices, frameworks;
    for (const auto& row : all["rows"]) {
        devices.insert(row["device"]);
        frameworks.insert(row["framework"]);
    }
    CHECK(devices.size() >= 100);
    CHECK(frameworks.size() >= 15);
    CHECK_FALSE(frameworks.contains("vllm"));
    // Many combinations that cannot run are one line.
    const std::string table = run_program("compare resnet50 --precision nvfp4 --device all --batch 8").output;
    const std::size_t line = table.find("not compared: ");
    REQUIRE(line != std::string::npos);
    CHECK(table.find("combinations, such as ", line) != std::string::npos);
    CHECK(table.find("not compared: ", line + 1) == std::string::npos);

    const TemporaryFolder folder;
    const std::string prices =
        folder.write("prices.csv", "device,dollars_per_hour\nt4,0.3\nl4,0.7\nh100-sxm5-80gb,9\n");
    const auto rows = compared({"--device", "all", "--framework", "tensorrt", "--price", prices, "--rate", "20000",
                                "--max-latency", "10ms"})["rows"];
    REQUIRE(rows.size() == 3);
    const auto one = compared({"--device", "t4,l4,h100-sxm5-80gb", "--framework", "tensorrt"})["rows"];
    double last = 0;
    for (const auto& row : rows) {
        const auto own = std::ranges::find_if(one, [&](const auto& other) { return other["device"] == row["device"]; });
        const double alone_s = own->at("latency_s"), rate_of_one = own->at("items_per_s");
        CHECK(row["cards"] == std::ceil(20000 / (0.98 * rate_of_one)));
        CHECK(row["items_per_s"] == 20000);
        CHECK(row["latency_s"] == alone_s);
        // M/D/1: half of the queue's service times, of single items.
        const double load = 20000 / (rate_of_one * row["cards"].get<double>());
        CHECK(row["keeps_level"] == (alone_s * (1 + load / (2 - 2 * load)) <= 0.01));
        if (row["keeps_level"] == false) last = 0;  // those come last
        const std::map<std::string, double> dollars{{"t4", 0.3}, {"l4", 0.7}, {"h100-sxm5-80gb", 9}};
        CHECK(row["dollars_per_million"].get<double>() ==
              doctest::Approx(row["cards"].get<double>() * dollars.at(row["device"]) / 3600 / 20000 * 1e6));
        CHECK(row["dollars_per_million"].get<double>() >= last);
        last = row["dollars_per_million"];
    }
    // Without prices, the fewest cards come first.
    const auto cards = compared({"--device", "t4,h100-sxm5-80gb", "--rate", "20000"})["rows"];
    CHECK(cards[0]["cards"].get<int>() < cards[1]["cards"].get<int>());
    for (const char* rate : {"0", "1e11"})
        CHECK(run_program(fmt::format("compare resnet50 --device t4 --rate {}", rate)).exit_code == 2);
    CHECK(run_program("compare resnet50 --device t4 --slo 1s --max-latency 1s").exit_code == 2);
}
