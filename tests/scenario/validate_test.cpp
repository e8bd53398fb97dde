#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "src/io/csv.hpp"
#include "src/io/number.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

/// Measured latency that the program itself predicts: rows made of it have no error.
std::string predicted_ms(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--json", "-"});
    const auto json = nlohmann::json::parse(run_ftax(all).output);
    return format_number(1e3 * json["predictions"][0]["latency_s"].get<double>());
}

}  // namespace

TEST_CASE("validate takes columns in any order, keeps unknown ones, and fills in the defaults") {
    const TemporaryFolder folder;
    const std::string ms = predicted_ms({"predict", "resnet18", "--device", "t4", "--batch", "4"});
    const std::string rows =
        folder.write("rows.csv", "latency_ms,note,batch,model,gpu\n" + ms + ",\"a, b\",4,resnet18,Tesla T4\n");
    const std::string out = folder.file("out.csv");
    const ProgramRun outcome = run_ftax({"validate", rows, "--predictions", out, "--json", "-", "--max-mape", "0.001"});
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
    const auto json = nlohmann::json::parse(outcome.output);
    CHECK(json["overall"]["rows"] == 1);
    CHECK(json["groups"][0]["group"] ==
          nlohmann::json({{"gpu", "Tesla T4"}, {"framework", "pytorch-eager"}, {"precision", "fp32"}}));
    const CsvTable table = read_csv(out);
    CHECK(table.header().size() == 11);
    CHECK(table.row(0)[1] == "a, b");
    CHECK(*parse_number(table.row(0)[5]) == approx(*parse_number(ms)));
    CHECK(table.row(0)[10].empty());
}

TEST_CASE("MLPerf's single and multiple streams wait for each query") {
    const TemporaryFolder folder;
    const std::string ms = predicted_ms({"predict", "resnet50", "--device", "t4", "--framework", "tensorrt",
                                         "--precision", "int8", "--batch", "8", "--synchronized"});
    const std::string rows = folder.write("models.csv",
                                          "run,gpu,framework,precision,model,input,batch,latency_ms\n"
                                          "MLPerf 3.0 box,T4,tensorrt,int8,mlperf_resnet50,224,8," +
                                              ms + "\n");
    const ProgramRun outcome = run_ftax({"validate", rows, "--json", "-", "--max-mape", "0.001"});
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
    CHECK(nlohmann::json::parse(outcome.output)["overall"]["rows"] == 1);
}

TEST_CASE("of the rows of `ftax measure model` those end to end are predicted, as runs that are waited for") {
    const TemporaryFolder folder;
    const std::string ms = predicted_ms({"predict", "resnet18", "--device", "t4", "--batch", "4", "--synchronized"});
    const std::string rows = folder.write("models.csv",
                                          "gpu,framework,precision,model,batch,seq,latency_ms,mode\n"
                                          "t4,pytorch-eager,fp32,resnet18,4,," +
                                              ms +
                                              ",end_to_end\n"
                                              "t4,pytorch-eager,fp32,resnet18,4,,0.9,host_dispatch\n"
                                              "t4,pytorch-eager,fp32,resnet18,4,,0.7,device_hot\n");
    for (const std::vector<std::string>& anchor : {std::vector<std::string>{}, {"--anchor", rows}}) {
        std::vector<std::string> arguments{"validate", rows, "--json", "-", "--max-mape", "1"};
        arguments.insert(arguments.end(), anchor.begin(), anchor.end());
        const ProgramRun outcome = run_ftax(arguments);
        CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
        CHECK(nlohmann::json::parse(outcome.output)["overall"]["rows"] == 1);
    }
}

TEST_CASE("validate lists every row that it cannot predict, and predicts the others") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,framework,precision,model,batch,input,latency_ms,mode\n"
                                          "V100,pytorch-eager,fp16,resnet18,1,224,5,\n"
                                          "V101X,pytorch-eager,fp16,resnet18,1,224,5,\n"
                                          "V100,caffe,fp16,resnet18,1,224,5,\n"
                                          "V100,pytorch-eager,fp12,resnet18,1,224,5,\n"
                                          "V100,pytorch-eager,fp16,resnet19x,1,224,5,\n"
                                          "V100,pytorch-eager,fp16,resnet18,0,224,5,\n"
                                          "V100,pytorch-eager,fp16,resnet18,1,96,5,\n"
                                          "V100,pytorch-eager,fp16,bert,1,,5,\n"
                                          "V100,pytorch-eager,fp16,resnet18,1,224,-5,\n"
                                          "V100,pytorch-eager,fp16,resnet18,1,224,5,train\n"
                                          "V100,,,bert,1,128,5,inf\n");
    const std::string out = folder.file("out.csv");
    const ProgramRun outcome = run_ftax({"validate", rows, "--predictions", out});
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
    CHECK(outcome.output.find("9 of 11 rows without a prediction") != std::string::npos);
    const CsvTable table = read_csv(out);
    REQUIRE(table.rows() == 11);
    const std::size_t predicted = *table.column("predicted_ms");
    const std::size_t skipped = *table.column("skipped");
    const char* reasons[] = {"",    "V101X", "caffe",      "fp12",     "resnet19x", "batch",
                             "224", "seq",   "latency_ms", "training", ""};
    for (std::size_t i = 0; i < table.rows(); ++i) {
        const std::string reason = reasons[i];
        CHECK(table.row(i)[predicted].empty() == !reason.empty());
        CHECK_MESSAGE(table.row(i)[skipped].find(reason) != std::string_view::npos, i,
                      std::string(table.row(i)[skipped]));
        CHECK(table.row(i)[skipped].empty() == reason.empty());
    }
}

TEST_CASE("--max-mape is a gate") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv", "gpu,model,batch,latency_ms\nT4,resnet18,1,1000000\n");
    CHECK(run_ftax({"validate", rows}).exit_code == 0);
    CHECK(run_ftax({"validate", rows, "--max-mape", "10"}).exit_code == 1);
    CHECK(run_ftax({"validate", rows, "--max-mape", "-1"}).exit_code == 2);
    const std::string none = folder.write("none.csv", "gpu,model,batch,latency_ms\nT4,nosuchmodel,1,1\n");
    CHECK(run_ftax({"validate", none, "--max-mape", "10"}).exit_code == 1);
}

TEST_CASE("--models finds files, --by groups by any column, --anchor moves the host") {
    const TemporaryFolder folder;
    folder.write("mine.txt", tiny);
    const std::string ms =
        predicted_ms({"predict", folder.file("mine.txt"), "--device", "t4", "--batch", "2", "--dim", "seq=8"});
    const std::string slow = format_number(1.8 * *parse_number(ms));
    const std::string rows =
        folder.write("rows.csv", "gpu,model,batch,seq,latency_ms,day\nT4,mine,2,8," + slow + ",monday\n");
    CHECK(run_ftax({"validate", rows, "--max-mape", "100"}).exit_code == 1);  // no zoo model is called "mine"
    const auto mape = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments{"validate", rows, "--models", folder.file(""), "--by", "day", "--json", "-"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProgramRun outcome = run_ftax(arguments);
        REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.errors);
        const auto json = nlohmann::json::parse(outcome.output);
        CHECK(json["groups"][0]["group"]["day"] == "monday");
        return json["overall"]["mape"].get<double>();
    };
    const double without = mape({});
    CHECK(without == approx(1 - 1 / 1.8));
    CHECK(mape({"--anchor", rows}) < 0.7 * without);
    CHECK(run_ftax({"validate", rows, "--by", "week"}).exit_code == 2);
}

TEST_CASE("operator rows are told by their column op") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,op,precision,shape,latency_ms\n"
                                          "T4,linear,fp32,b=64 m=512 n=512 k=512,0.5\n"
                                          "T4,fourier,fp32,b=64,0.5\n");
    const ProgramRun outcome = run_ftax({"validate", rows, "--json", "-"});
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.errors);
    const auto json = nlohmann::json::parse(outcome.output);
    CHECK(json["overall"]["rows"] == 1);
    CHECK(json["groups"][0]["group"]["op"] == "linear");
    CHECK(json["skipped"][0]["lines"] == nlohmann::json({3}));
}
