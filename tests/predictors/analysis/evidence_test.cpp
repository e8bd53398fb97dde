#include "predictors/steps/evidence.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "ftax/device.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

FactorSet classes(std::initializer_list<Factor> factors) {
    FactorSet set{};
    for (const Factor factor : factors) set[static_cast<std::size_t>(factor)] = true;
    return set;
}

std::array<double, factor_count> seconds(double gemm, double attention) {
    std::array<double, factor_count> class_s{};
    class_s[static_cast<std::size_t>(Factor::gemm)] = gemm;
    class_s[static_cast<std::size_t>(Factor::attention)] = attention;
    return class_s;
}

}  // namespace

TEST_CASE("the nearest measured rows are those whose differences add least to the interval") {
    const auto set = [](const char* rows, int version, Precision precision, const char* card) {
        const Architecture architecture = device_spec(card).architecture;
        return MeasuredSet{rows, version, precision, card, architecture, classes({Factor::gemm})};
    };
    const MeasuredSet sets[] = {set("a.csv", 200, Precision::fp32, "a100-sxm4-40gb"),
                                set("b.csv", 205, Precision::fp16, "a100-sxm4-40gb")};
    constexpr EvidenceSpread spread;
    MeasuredSet run = set("", 205, Precision::fp16, "a100-sxm4-40gb");
    constexpr double known_host = 0.1, unknown_host = 0.3;

    const Distance same = distance_from(sets, run, seconds(1, 0));
    CHECK(same.set == &sets[1]);
    CHECK(same.log_stddev() == 0);
    CHECK(grade(same, known_host) == Evidence::measured);
    CHECK(grade(same, unknown_host) == Evidence::near);
    CHECK(describe(same, run, "net") == "rows of net in b.csv");

    const Distance nothing = distance_from(sets, run, seconds(0, 0));  // a network of views takes the device no time
    CHECK(nothing.log_stddev() == 0);
    CHECK(grade(nothing, known_host) == Evidence::measured);

    const Distance attends = distance_from(sets, run, seconds(3, 1));
    CHECK(attends.log_stddev() == approx(spread.kernels / 4));
    CHECK(grade(attends, known_host) == Evidence::far);
    CHECK(describe(attends, run, "net") == "rows of net in b.csv, without attention");
    const Distance little = distance_from(sets, run, seconds(39, 1));
    CHECK(grade(little, known_host) == Evidence::measured);
    CHECK(little.log_stddev() == approx(spread.kernels / 40));
    CHECK(describe(little, run, "net") == "rows of net in b.csv");  // too little to be named

    // Versions and precisions add nothing, but among equals the set with fewer differences is the nearest.
    run = set("", 200, Precision::fp32, "h100-sxm5-80gb");
    const Distance elsewhere = distance_from(sets, run, seconds(1, 0));
    CHECK(elsewhere.set == &sets[0]);
    CHECK(elsewhere.log_stddev() == approx(spread.card));
    CHECK(grade(elsewhere, known_host) == Evidence::near);
    CHECK(describe(elsewhere, run, "net") == "rows of net in a.csv, without hopper cards");
    run = set("", 204, Precision::fp32, "a30");
    CHECK(describe(distance_from(sets, run, seconds(1, 0)), run, "net") ==
          "rows of net in a.csv, without version 2.4, a30");
    CHECK(distance_from(sets, run, seconds(3, 1)).log_stddev() == approx(std::hypot(spread.card, spread.kernels / 4)));

    const Distance none = distance_from({}, run, seconds(1, 0));
    CHECK(none.log_stddev() == spread.framework);
    CHECK(grade(none, known_host) == Evidence::guess);
    CHECK(describe(none, run, "net") == "no measured rows of net");
}

TEST_CASE("predictions say what they rest on, and less evidence widens them") {
    const auto predict = [](const std::string& framework, const std::string& precision) {
        const ProgramRun run =
            run_ftax({"predict", "resnet50", "--device", "v100-sxm2-32gb", "--batch", "64", "--framework", framework,
                      "--precision", precision, "--json", "--explain-interval"});
        REQUIRE(run.exit_code == 0);
        return nlohmann::json::parse(run.output);
    };
    const auto width = [](const nlohmann::json& report) {
        const auto& row = report["predictions"][0];
        return row["high_s"].get<double>() / row["low_s"].get<double>();
    };
    const auto eager = predict("pytorch-eager@1.12", "fp32"), engine = predict("onnxruntime-tensorrt", "fp32");
    CHECK(eager["predictions"][0]["evidence"] == "measured");
    CHECK(eager["nearest_rows"] == "rows of pytorch-eager in framework_tax");
    CHECK(engine["predictions"][0]["evidence"] == "guess");
    CHECK(predict("tensorrt", "fp16")["predictions"][0]["evidence"] !=
          "guess");  // a CUDA graph's rows show its kernels
    CHECK(engine["nearest_rows"] == "no measured rows of onnxruntime-tensorrt");
    CHECK(width(engine) > 1.2 * width(eager));

    double sum = 0, last = 1;
    for (const auto& part : engine["interval"]) {
        CHECK(part["stddev"].get<double>() <= last);
        last = part["stddev"];
        sum += last * last;
    }
    CHECK(engine["interval"][0]["name"] == "the distance from measured rows");
    CHECK(std::log(width(engine)) == approx(2 * 1.645 * std::sqrt(sum)).epsilon(0.05));

    const ProgramRun table = run_ftax({"predict", "resnet50", "--device", "t4", "--batch", "64", "--explain-interval"});
    CHECK(table.output.find("; rests on: rows of pytorch-eager in ") != std::string::npos);
}

TEST_CASE("unknown words in the evidence of a data folder name their line") {
    const TemporaryFolder folder;
    std::filesystem::copy(FTAX_SOURCE_DIR "/data/profiles", folder.path / "profiles",
                          std::filesystem::copy_options::recursive);
    const std::string before = "export FTAX_DATA='" + folder.path.string() + "'";
    for (const auto& wrong :
         {std::pair("x,fp32,t4,turing,gemm", "evidence.csv:2: unknown version, precision or kernels"),
          std::pair("112,fp31,t4,turing,gemm", "evidence.csv:2: unknown version, precision or kernels"),
          std::pair("112,fp32,t4,turing,gem", "evidence.csv:2: unknown version, precision or kernels"),
          std::pair("112,fp32,t4,tuning,gemm", "evidence.csv:2: unknown version, precision or kernels")}) {
        std::ofstream(folder.path / "profiles/evidence.csv")
            << "framework,rows,version,precision,card,architecture,kernels\npytorch-eager,a.csv," << wrong.first
            << "\n";
        const ProgramRun run = run_program("predict resnet18 --device t4 --batch 1", before);
        CHECK_MESSAGE(run.exit_code != 0, wrong.first);
        CHECK_MESSAGE(run.errors.find(wrong.second) != std::string::npos, run.errors);
    }
    std::ofstream(folder.path / "profiles/evidence.csv")
        << "framework,rows,version,precision,card,architecture,kernels\n";
    const ProgramRun strict = run_program("predict resnet18 --device v100-sxm2-32gb --batch 1 --strict", before);
    CHECK(strict.exit_code == 6);
    CHECK(strict.errors.find("no measured rows of pytorch-eager") != std::string::npos);
}

TEST_CASE("validate groups rows by what their predictions rest on") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,framework,version,precision,model,batch,latency_ms\n"
                                          "v100-sxm2-32gb,pytorch-eager,1.12,fp32,resnet50,64,160\n"
                                          "v100-sxm2-32gb,pytorch-eager,1.12,fp32,resnet50,128,310\n"
                                          "v100-sxm2-32gb,onnxruntime-tensorrt,,fp32,resnet50,64,90\n");
    const ProgramRun run = run_ftax({"validate", rows, "--by", "evidence", "--json"});
    REQUIRE(run.exit_code == 0);
    const auto groups = nlohmann::json::parse(run.output)["groups"];
    REQUIRE(groups.size() == 2);
    CHECK(groups[0]["group"]["evidence"] == "guess");
    CHECK(groups[1]["group"]["evidence"] == "measured");
    CHECK(groups[1]["rows"] == 2);
}
