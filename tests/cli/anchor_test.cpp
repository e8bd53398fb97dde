#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

nlohmann::json predict(const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> arguments{"predict", model, "--device", "t4", "--batch", "1,64", "--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_ftax(arguments);
    REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
    return nlohmann::json::parse(run.output);
}

double latency(const nlohmann::json& report, int row) {
    return report["predictions"][row]["latency_s"];
}

double width(const nlohmann::json& report, int row) {
    return report["predictions"][row]["high_s"].get<double>() / report["predictions"][row]["low_s"].get<double>();
}

}  // namespace

TEST_CASE("the file that is predicted can be its own anchor; --dim holds for rows that do not say theirs") {
    const TemporaryFolder folder;
    const std::string model = folder.write("mine.txt", tiny);
    const nlohmann::json before = predict(model, {"--dim", "seq=128"});
    const std::string rows =
        folder.write("rows.csv", "gpu,framework,precision,model,batch,latency_ms\nTesla T4,pytorch-eager,fp32," +
                                     model + ",1," + std::to_string(2e3 * latency(before, 0)) + "\n");
    const nlohmann::json after = predict(model, {"--dim", "seq=128", "--anchor", rows});
    CHECK(latency(after, 0) == approx(2 * latency(before, 0)).epsilon(0.05));
    CHECK(width(after, 0) < 0.7 * width(before, 0));

    // A file of that name in the folder of models is the same model.
    const std::string named = folder.write(
        "named.csv", "gpu,framework,precision,model,batch,latency_ms\nTesla T4,pytorch-eager,fp32,mine,1," +
                         std::to_string(2e3 * latency(before, 0)) + "\n");
    const nlohmann::json of_folder =
        predict(model, {"--dim", "seq=128", "--anchor", named, "--models", folder.path.string()});
    CHECK(latency(of_folder, 0) == approx(2 * latency(before, 0)).epsilon(0.15));
}

TEST_CASE("an anchor row that names no version is of the version that is predicted") {
    const TemporaryFolder folder;
    const std::string header = "gpu,framework,precision,model,batch,latency_ms,version\n";
    const auto of = [&](const std::string& version) {
        const std::string rows =
            folder.write(version + ".csv", header + "t4,pytorch-eager,fp32,resnet18,1,3.5," + version + "\n");
        return latency(predict("resnet50", {"--framework", "pytorch-eager@2.4", "--anchor", rows}), 0);
    };
    CHECK(of("") == of("2.4"));
    CHECK(of("") > of("1.12"));
}

TEST_CASE(
    "an anchor row that the device decides moves the device, of another framework too; of another card it warns") {
    const TemporaryFolder folder;
    const auto rows_of = [&](const std::string& gpu, const std::string& framework) {
        return folder.write(gpu + framework + ".csv", "gpu,framework,precision,model,batch,latency_ms\n" + gpu + "," +
                                                          framework + ",fp32,resnet50,64,400\n");
    };
    const auto of = [&](const std::string& anchor) {
        std::vector<std::string> arguments{"predict", "resnet50", "--device", "t4", "--batch", "64", "--json", "-"};
        if (!anchor.empty()) arguments.insert(arguments.end(), {"--anchor", anchor});
        const ProgramRun run = run_ftax(arguments);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output);
    };
    const double blind = latency(of(""), 0);
    REQUIRE(blind < 0.35);
    CHECK(latency(of(rows_of("t4", "pytorch-eager")), 0) > 1.1 * blind);
    CHECK(latency(of(rows_of("t4", "torchscript")), 0) > 1.05 * blind);
    const nlohmann::json other = of(rows_of("v100-sxm2-32gb", "pytorch-eager"));
    CHECK(latency(other, 0) == approx(blind));
    CHECK(other["warnings"].dump().find("no anchor row was measured on t4") != std::string::npos);
}

TEST_CASE("an anchor row that cannot be right is named with its line") {
    const TemporaryFolder folder;
    const auto run = [&](const std::string& rows) {
        const std::string file = folder.write("rows.csv", "gpu,framework,precision,model,batch,latency_ms\n" + rows);
        return run_ftax({"predict", "resnet50", "--device", "t4", "--batch", "1", "--anchor", file});
    };
    const std::string good = "t4,pytorch-eager,fp32,resnet18,1,4\n";
    CHECK(run(good).errors.empty());
    // microseconds
    CHECK(run("t4,pytorch-eager,fp32,resnet50,1,9000\n").errors.find("anchor line 2: resnet50, batch 1: 9000 ms") !=
          std::string::npos);
    const ProgramRun card = run(good + "teslax,pytorch-eager,fp32,resnet18,1,4\n");
    CHECK(card.exit_code == 0);
    CHECK(card.errors.find("anchor line 3: unknown device 'teslax'") != std::string::npos);
    const ProgramRun model = run("t4,pytorch-eager,fp32,resnet51,1,4\n");
    CHECK(model.exit_code == 2);
    CHECK(model.errors.find("anchor line 2: no file and no zoo model 'resnet51'") != std::string::npos);
}

TEST_CASE("a suggested run narrows the intervals as much as promised once it was measured") {
    const TemporaryFolder folder;
    for (const std::string model : {"resnet50", "mobilenet_v2"}) {
        const nlohmann::json before = predict(model, {"--suggest-anchors"});
        const auto& plan = before["suggested_anchors"];
        REQUIRE(!plan["runs"].empty());
        std::string rows = "gpu,framework,precision,model,batch,latency_ms\n";
        double promised = plan["half_width"];
        const auto half_width = [](const nlohmann::json& report) {
            double sum = 0;
            for (const auto& row : report["predictions"])
                sum += row["high_s"].get<double>() / row["latency_s"].get<double>() - 1;
            return sum / static_cast<double>(report["predictions"].size());
        };
        CHECK(half_width(before) == approx(promised).epsilon(0.35));
        for (const auto& run : plan["runs"]) {
            const std::string batch = std::to_string(run["batch"].get<std::int64_t>());
            const ProgramRun one = run_ftax({"predict", model, "--device", "t4", "--batch", batch, "--json", "-"});
            const double ms = 1e3 * latency(nlohmann::json::parse(one.output), 0);
            rows += "t4,pytorch-eager,fp32," + model + "," + batch + "," + std::to_string(ms) + "\n";
            const double width = half_width(predict(model, {"--anchor", folder.write("rows.csv", rows)}));
            promised = run["half_width"];
            CAPTURE(model);
            CHECK(width == approx(promised).epsilon(0.35));
        }
    }
}

TEST_CASE("after a row of one framework, the others keep their order on the same machine") {
    const TemporaryFolder folder;
    const auto compared = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments{
            "compare", "resnet18", "--device",    "t4",
            "--batch", "1",        "--framework", "pytorch-eager@1.12,torchscript,libtorch",
            "--json",  "-"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProgramRun run = run_ftax(arguments);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        std::map<std::string, double> host_s;
        const nlohmann::json report = nlohmann::json::parse(run.output);
        for (const auto& row : report["rows"]) host_s[row["framework"]] = row["host_s"];
        return host_s;
    };
    const auto before = compared({});
    const double eager_ms = 1e3 * latency(predict("mobilenet_v2", {"--framework", "pytorch-eager@1.12"}), 0);
    for (const double speed : {0.6, 2.5}) {
        const std::string rows = folder.write(
            "rows.csv", "gpu,framework,precision,model,batch,latency_ms\nt4,pytorch-eager@1.12,fp32,mobilenet_v2,1," +
                            std::to_string(speed * eager_ms) + "\n");
        const auto after = compared({"--anchor", rows});
        for (const auto& entry : before) {
            CAPTURE(entry.first);
            const double ratio = std::log(after.at(entry.first) / entry.second);
            CHECK(ratio ==
                  approx(std::log(after.at("pytorch-eager@1.12") / before.at("pytorch-eager@1.12"))).epsilon(0.3));
        }
        CHECK(after.at("libtorch") < after.at("pytorch-eager@1.12"));
    }
}

TEST_CASE("a module with its own CPU is predicted with a warning and a wide interval, until rows of it are there") {
    const TemporaryFolder folder;
    const auto on = [](const std::string& device, std::vector<std::string> more) {
        std::vector<std::string> arguments{"predict", "resnet18", "--device", device, "--batch", "1", "--json", "-"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProgramRun run = run_ftax(arguments);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output);
    };
    const double x86 = width(on("h100-sxm5-80gb", {}), 0);
    for (const std::string device : {"gh200-96gb", "gb200", "gb10", "jetson-agx-orin-64gb", "jetson-agx-thor",
                                     "jetson-agx-xavier-32gb", "jetson-orin-nano-8gb"}) {
        CAPTURE(device);
        const nlohmann::json alone = on(device, {});
        CHECK(alone.dump().find("the host costs are those of an x86 CPU") != std::string::npos);
        if (alone["predictions"][0]["bound"] == "host") CHECK(width(alone, 0) > 1.3 * x86);
        const std::string rows = folder.write("rows.csv", "gpu,framework,precision,model,batch,latency_ms\n" + device +
                                                              ",pytorch-eager,fp32,mobilenet_v2,1,30\n");
        CHECK(on(device, {"--anchor", rows}).dump().find("x86") == std::string::npos);
    }
    CHECK(on("h100-sxm5-80gb", {}).dump().find("x86") == std::string::npos);
}

TEST_CASE("predict names the runs that are worth measuring") {
    const ProgramRun run =
        run_ftax({"predict", "resnet50", "--device", "t4", "--batch", "1,64", "--suggest-anchors", "--json", "-"});
    REQUIRE(run.exit_code == 0);
    const auto plan = nlohmann::json::parse(run.output)["suggested_anchors"];
    REQUIRE(!plan["runs"].empty());
    double width = plan["half_width"];
    for (const auto& one : plan["runs"]) {
        CHECK(one["half_width"].get<double>() < width);
        width = one["half_width"];
    }
    const ProgramRun fixed = run_ftax({"predict", "resnet50", "--device", "t4", "--batch", "1", "--suggest-anchors"});
    CHECK(fixed.output.find("worth measuring, for --anchor: batch") != std::string::npos);
}

TEST_CASE("predict --measured ranks what may explain a latency") {
    const auto explained = [](const std::string& time, const char* batch) {
        const ProgramRun run = run_ftax({"predict", "resnet50", "--device", "t4", "--framework", "pytorch-eager@1.12",
                                         "--batch", batch, "--measured", time, "--json", "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output);
    };
    const auto at = [&](const char* batch, double ratio) {
        const double latency_s = explained("1s", batch)["predictions"][0]["latency_s"];
        return explained(std::to_string(ratio * latency_s * 1e3) + "ms", batch);
    };
    const auto first = [&](const char* batch, double ratio) { return at(batch, ratio)["diagnosis"][0]["name"]; };
    CHECK(at("64", 1.5)["measured"].get<std::string>().find("is 1.50 times the predicted") != std::string::npos);
    CHECK(at("64", 1.5)["measured"].get<std::string>().find("outside the 90 % interval") != std::string::npos);
    CHECK(at("64", 1.02)["measured"].get<std::string>().find("inside the 90 % interval") != std::string::npos);
    CHECK(first("64", 1.02) == "right");
    CHECK(first("64", 1000) == "s-as-ms");
    CHECK(first("64", 1 / 64.0) == "per-item");
    CHECK(first("64", 30) == "unknown");
    // No cause predicts what is farther from the measurement than the prediction: first calls make no run faster.
    for (const double ratio : {0.4, 2.5}) {
        const auto report = at("64", ratio);
        const double predicted_s = report["predictions"][0]["latency_s"];
        for (const auto& one : report["diagnosis"])
            CHECK(std::abs(std::log(one["latency_s"][0].get<double>() / (ratio * predicted_s))) <=
                  std::abs(std::log(ratio)) * (1 + 1e-6));
    }
    const auto json = at("64", 1.5);
    double sum = 0, last = 1;
    for (const auto& one : json["diagnosis"]) {
        CHECK(one["latency_s"].size() == 1);
        CHECK(one["share"].get<double>() <= last);
        last = one["share"];
        sum += last;
    }
    CHECK(sum == doctest::Approx(1));
}

TEST_CASE("a curve tells a slow host from a slow card") {
    const std::vector<std::string> run{"predict", "resnet50", "--device", "a100-sxm4-80gb", "--batch", "1,8,64"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), run.begin(), run.end());
        more.insert(more.end(), {"--json", "-"});
        return nlohmann::json::parse(run_ftax(more).output);
    };
    for (const std::string cause : {"slow-host", "power-limit"}) {
        std::string times;
        const auto ranked = with({"--measured", "5ms,5ms,20ms"})["diagnosis"];
        const auto own = std::ranges::find_if(ranked, [&](const auto& one) { return one["name"] == cause; });
        for (const double latency_s : own->at("latency_s"))
            times += (times.empty() ? "" : ",") + std::to_string(1e3 * latency_s) + "ms";
        CHECK(with({"--measured", times})["diagnosis"][0]["name"] == cause);
    }
    const TemporaryFolder folder;
    const std::string rows = folder.write(
        "rows.csv", "gpu,model,batch,latency_ms\na100-sxm4-80gb,resnet50,1,9.9\na100-sxm4-80gb,resnet50,8,40\n");
    const auto json = with({"--measured", rows});
    CHECK(json["diagnosis"][0]["latency_s"].size() == 2);
    CHECK(json["measured"].get<std::string>().find(" at batch ") != std::string::npos);
    for (const char* wrong : {"3ms", "3ms,4ms", "3ms,4ms,5"})
        CHECK(run_ftax({"predict", "resnet50", "--device", "t4", "--batch", "1,8,64", "--measured", wrong}).exit_code ==
              2);
}

TEST_CASE("--advise names changes that gain, with the code that makes them") {
    const auto advised = [](std::vector<std::string> words) {
        words.insert(words.end(), {"--advise", "--json", "-"});
        const ProgramRun run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["advice"];
    };
    const auto advice = advised({"predict", "bert", "--dim", "seq=128", "--device", "a100-sxm4-80gb", "--batch", "1"});
    REQUIRE(advice.size() == 3);
    double last = 1e9;
    std::set<std::string> names;
    for (const auto& one : advice) {
        CHECK(one["speed"].get<double>() >= 1.05);
        CHECK(one["speed"].get<double>() <= last);
        CHECK(one["low_s"].get<double>() < one["latency_s"].get<double>());
        CHECK_FALSE(one["code"].get<std::string>().empty());
        last = one["speed"];
        names.insert(one["name"]);
    }
    // Each is the prediction of the changed run.
    const auto compiled = nlohmann::json::parse(run_ftax({"predict", "bert", "--dim", "seq=128", "--device",
                                                          "a100-sxm4-80gb", "--framework", "tensorrt-onnx", "--json"})
                                                    .output);
    for (const auto& one : advice)
        if (one["name"] == "tensorrt-onnx") CHECK(one["latency_s"] == compiled["predictions"][0]["latency_s"]);
    // A batch that is bound by the device gains nothing from a larger one or from fewer launches.
    for (const auto& one : advised({"predict", "resnet50", "--device", "t4", "--batch", "256"})) {
        CHECK(one["name"] != "batch");
        CHECK(one["name"] != "torch-cuda-graph");
    }
    CHECK_FALSE(advised({"crossover", "resnet50", "--device", "t4"}).empty());
    const std::string table = run_program("predict bert --dim seq=128 --device a100-sxm4-80gb --advise").output;
    CHECK(table.find("what next") < table.find("latency ms  90 % interval  host"));
}

TEST_CASE("a host file and a known row are evidence on one host") {
    const TemporaryFolder folder;
    const std::string slow =
        folder.write("host.json", R"({"schema_version": 1, "environment": {"cpu": "Intel(R) Xeon(R) Processor",
                         "probe_cpu_median_us": "0.8", "probe_wall_median_us": "0.8"}})");
    const double blind_ms = 1e3 * latency(predict("mnasnet", {}), 0);
    const std::string rows = folder.write(  // of a host of half the probe's time
        "rows.csv",
        "gpu,framework,precision,model,batch,latency_ms\nt4,pytorch-eager,fp32,mnasnet,1," + std::to_string(blind_ms));
    const nlohmann::json probed = predict("mobilenet_v2", {"--host-file", slow});
    const nlohmann::json known = predict("mobilenet_v2", {"--anchor", rows});
    const nlohmann::json both = predict("mobilenet_v2", {"--host-file", slow, "--anchor", rows});
    CHECK(latency(probed, 0) > 1.8 * latency(known, 0));
    CHECK(latency(both, 0) > 1.1 * latency(known, 0));
    CHECK(latency(both, 0) < 0.9 * latency(probed, 0));
    CHECK(width(both, 0) < width(probed, 0));
}

TEST_CASE("measured rows of another framework, precision or card stand beside no prediction") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,framework,precision,model,batch,latency_ms\n"
                                          "T4,pytorch-eager,fp32,resnet18,1,3\n"
                                          "T4,onnxruntime-cuda,fp32,resnet18,2,4\n"
                                          "T4,pytorch-eager,fp16,resnet18,4,5\n"
                                          "L4,pytorch-eager,fp32,resnet18,8,6\n");
    const ProgramRun run =
        run_ftax({"predict", "resnet18", "--device", "t4", "--batch", "1,2,4,8", "--measured", rows, "--json", "-"});
    const auto predictions = nlohmann::json::parse(run.output).at("predictions");
    REQUIRE(predictions.size() == 4);
    CHECK(predictions[0].value("measured_latency_s", 0.0) == 0.003);
    for (std::size_t i = 1; i < 4; ++i) CHECK_FALSE(predictions[i].contains("measured_latency_s"));
}
