#include "predictors/steps/evidence.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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
    const MeasuredSet older{"a.csv", 200, Precision::fp32, Architecture::ampere, classes({Factor::gemm})};
    const MeasuredSet half{"b.csv", 205, Precision::fp16, Architecture::ampere, classes({Factor::gemm})};
    const MeasuredSet sets[] = {older, half};
    constexpr EvidenceSpread spread;
    MeasuredSet run{"", 205, Precision::fp16, Architecture::ampere};

    const Distance same = distance_from(sets, run, seconds(1, 0));
    CHECK(same.set == &sets[1]);
    CHECK(same.log_stddev == 0);
    CHECK(grade(same, true) == Evidence::measured);
    CHECK(grade(same, false) == Evidence::near);
    CHECK(describe(same, run, "net") == "rows of net in b.csv");

    const Distance attends = distance_from(sets, run, seconds(3, 1));
    CHECK(attends.log_stddev == approx(spread.kernels / 4));
    CHECK(grade(attends, true) == Evidence::far);
    CHECK(describe(attends, run, "net") == "rows of net in b.csv, without attention");
    CHECK(grade(distance_from(sets, run, seconds(19, 1)), true) == Evidence::measured);

    run.version = 200;
    run.precision = Precision::fp32;
    run.architecture = Architecture::hopper;
    const Distance elsewhere = distance_from(sets, run, seconds(1, 0));
    CHECK(elsewhere.set == &sets[0]);
    CHECK(elsewhere.log_stddev == approx(spread.architecture));
    CHECK(grade(elsewhere, true) == Evidence::near);
    CHECK(describe(elsewhere, run, "net") == "rows of net in a.csv, without hopper cards");

    const Distance none = distance_from({}, run, seconds(1, 0));
    CHECK(none.log_stddev == spread.framework);
    CHECK(grade(none, true) == Evidence::guess);
    CHECK(describe(none, run, "net") == "no measured rows of net");
}

TEST_CASE("predictions say what they rest on, and less evidence widens them") {
    const auto predict = [](const std::string& framework, const std::string& precision) {
        const ProgramRun run = run_ftax({"predict", "resnet50", "--device", "t4", "--batch", "64", "--framework",
                                         framework, "--precision", precision, "--json", "--explain-interval"});
        REQUIRE(run.exit_code == 0);
        return nlohmann::json::parse(run.output);
    };
    const auto width = [](const nlohmann::json& report) {
        const auto& row = report["predictions"][0];
        return row["high_s"].get<double>() / row["low_s"].get<double>();
    };
    const auto eager = predict("pytorch-eager@1.12", "fp32"), engine = predict("onnxruntime-tensorrt", "fp32");
    CHECK(eager["predictions"][0]["evidence"] == "measured");
    CHECK(eager["nearest_rows"] == "rows of pytorch-eager in framework_tax.csv");
    CHECK(engine["predictions"][0]["evidence"] == "guess");
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

    const ProgramRun strict =
        run_ftax({"predict", "resnet50", "--device", "t4", "--framework", "onnxruntime-tensorrt", "--strict"});
    CHECK(strict.exit_code == 6);
    CHECK(strict.errors.find("no measured rows of onnxruntime-tensorrt") != std::string::npos);
    const ProgramRun table = run_ftax({"predict", "resnet50", "--device", "t4", "--batch", "64", "--explain-interval"});
    CHECK(table.output.find("; rests on: rows of pytorch-eager in ") != std::string::npos);
}

TEST_CASE("unknown words in the evidence of a data folder name their line") {
    const TemporaryFolder folder;
    std::filesystem::copy(FTAX_SOURCE_DIR "/data/profiles", folder.path / "profiles",
                          std::filesystem::copy_options::recursive);
    const std::string before = "export FTAX_DATA='" + folder.path.string() + "'";
    for (const char* cells :
         {"x,fp32,ampere,gemm", "112,fp31,ampere,gemm", "112,fp32,amper,gemm", "112,fp32,ampere,gem"}) {
        std::ofstream(folder.path / "profiles/evidence.csv")
            << "framework,rows,version,precision,architecture,kernels\npytorch-eager,a.csv," << cells << "\n";
        const ProgramRun run = run_program("predict resnet18 --device t4 --batch 1", before);
        CHECK_MESSAGE(run.exit_code == 6, cells);
        CHECK(run.errors.find("evidence.csv:2: unknown version, precision, architecture or kernels") !=
              std::string::npos);
    }
}
