#include <doctest/doctest.h>

#include <tuple>

#include "calibration/rows/measurement_file.hpp"
#include "ftax/error.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"

using namespace ftax;

TEST_CASE("model rows are recognised by header, columns in any order, missing ones at their default") {
    const auto file = read_model_measurements(CsvTable(
        "note,latency_ms,batch,model,gpu,seq,option\nx,12.5,8.0,gpt2_large,Tesla T4,1024,fusion\n", "rows.csv"));
    REQUIRE(file.rows.size() == 1);
    const Measurement& row = file.rows[0];
    CHECK(file.problems[0].empty());
    CHECK(row.gpu == "Tesla T4");
    CHECK(row.framework == "pytorch-eager");
    CHECK(row.precision == Precision::fp32);
    CHECK(row.model == "gpt2_large");
    CHECK(row.batch == 8);
    CHECK(row.seq == 1024);
    CHECK_FALSE(row.input);
    CHECK(row.option == "fusion");
    CHECK(row.latency_s == approx(0.0125));
    CHECK(row.line == 2);
    CHECK(file.table.row(0)[0] == "x");
    CHECK_FALSE(holds_operators(file.table));
}

TEST_CASE("an image side is the input under either name") {
    const auto file = read_model_measurements(CsvTable(
        "gpu,framework,precision,model,batch,img,input,latency_ms\ng,TorchScript,amp,m,1,160,,1\ng,,,m,1,160,224,1\n",
        "rows.csv"));
    CHECK(file.rows[0].input == 160);
    CHECK(file.rows[0].framework == "torchscript");
    CHECK(file.rows[0].precision == Precision::amp);
    CHECK(file.rows[1].input == 224);
    CHECK(file.rows[1].framework == "pytorch-eager");
    CHECK_FALSE(file.rows[1].height);
}

TEST_CASE("an image side may be a height and a width") {
    const auto file = read_model_measurements(CsvTable(
        "gpu,model,batch,input,latency_ms\ng,m,1,512x1024,1\ng,m,1,224x224,1\ng,m,1,224x,1\ng,m,1,x224,1\n", "r.csv"));
    CHECK(std::tuple(file.rows[0].height, file.rows[0].input) == std::tuple(512, 1024));
    CHECK(std::tuple(file.rows[1].height, file.rows[1].input) == std::tuple(224, 224));
    CHECK(std::tuple(file.problems[0], file.problems[1]) == std::tuple("", ""));
    CHECK(file.problems[2] == "input is not a positive whole number: 224x");
    CHECK(file.problems[3] == "input is not a positive whole number: ");
}

TEST_CASE("a row that cannot be used is kept with its problem") {
    const auto problem = [](const std::string& cells) {
        return read_model_measurements(CsvTable("gpu,precision,model,batch,latency_ms\n" + cells + "\n", "r.csv"))
            .problems[0];
    };
    CHECK(problem("g,fp16,m,1,2") == "");
    CHECK(problem(",fp16,m,1,2") == "no gpu");
    CHECK(problem("g,fp17,m,1,2") == "unknown precision: fp17");
    CHECK(problem("g,fp16,,1,2") == "no model");
    CHECK(problem("g,fp16,m,0,2") == "batch is not a positive whole number: 0");
    CHECK(problem("g,fp16,m,,2") == "no batch");
    CHECK(problem("g,fp16,m,1,") == "no latency_ms");
    CHECK(problem("g,fp16,m,1,nan") == "latency_ms is not a positive number: nan");
    CHECK(problem("g,fp16,m,1,-3") == "latency_ms is not a positive number: -3");
    CHECK(problem("g,fp16,m,1,5e-324") == "latency_ms is not a nanosecond or more: 5e-324");
    CHECK(problem("g,fp16,m,1,1e-6") == "");
    CHECK(problem("g,fp16,m,1,\"1,5\"") == "latency_ms is not a positive number (write decimals with a point): 1,5");
    CHECK(problem(",fp17,,0,nan") == "no gpu");  // the first of several
    CHECK(problem("g,fp16,m,9223372036854775808,1") == "batch is not a positive whole number: 9223372036854775808");
}

TEST_CASE("rows that differ in their time alone name the first of them") {
    const auto file =
        read_model_measurements(CsvTable("gpu,precision,model,batch,std_ms,latency_ms\n"
                                         "g,fp16,m,1,,nan\n"   // whose time is its problem
                                         "g,fp16,m,1,,2\n"     // the same cells
                                         "g,fp16,m,1,0.1,3\n"  // a column that is not read
                                         "g,half,m,1,,4\n"     // another spelling
                                         "g,fp17,m,1,,5\n"
                                         "g,fp17,m,1,,6\n"
                                         "g,fp16,m,2,,7\n",
                                         "rows.csv"));
    CHECK(file.alike == std::vector<std::size_t>{0, 0, 0, 0, 4, 4, 6});
    CHECK(file.problems[0] == "latency_ms is not a positive number: nan");
    CHECK(file.problems[1].empty());
    CHECK(file.problems[5] == "unknown precision: fp17");
    CHECK(std::tuple(file.rows[1].latency_s, file.rows[1].line, file.rows[2].latency_s) == std::tuple(2e-3, 3, 3e-3));
}

TEST_CASE("runs of servers are rows of language models with clients") {
    const std::string header = "gpu,framework,precision,model,isl,osl,concurrency,tp,dp,ep,max_num_seqs,tpot_ms\n";
    const auto file =
        read_language_measurements(CsvTable(header + "b200,vLLM@0.14,fp8,llama-3-8b,512,64,16,4,2,8,12,7.5\n"
                                                     "b200,vllm,,llama-3-8b,512,64,16,,,,,7.5\n"
                                                     "b200,vllm,fp8,llama-3-8b,512,1,16,,,,,7.5\n"
                                                     "b200,vllm,fp8,llama-3-8b,512,64,16,,,,,\n"
                                                     "b200,vllm,fp8,llama-3-8b,512,64,,,,,,7.5\n",
                                            "served.csv"));
    const LanguageMeasurement& row = file.rows[0];
    CHECK(file.problems[0].empty());
    CHECK(std::tuple(row.framework, row.version, row.precision, row.prompt, row.new_tokens, row.clients) ==
          std::tuple("vllm", "0.14", Precision::fp8, 512, 64, 16));
    CHECK(std::tuple(row.cards, row.data_parallel, row.expert_parallel, row.most_sequences, row.latency_s) ==
          std::tuple(4, 2, 8, 12, 7.5e-3));
    CHECK(file.problems[1] == "no precision");
    CHECK(file.problems[2] == "osl is 1: there is no time per further token");
    CHECK(file.problems[3] == "no tpot_ms");
    CHECK(file.problems[4] == "no batch");
    CHECK(std::tuple(file.rows[1].cards, file.rows[1].data_parallel, file.rows[1].most_sequences) ==
          std::tuple(1, 1, 0));
}

TEST_CASE("a missing column is named") {
    const test::Failure failure =
        test::failure_of([] { return read_model_measurements(CsvTable("gpu,model,latency_ms\n", "rows.csv")); });
    CHECK(failure.code == ErrorCode::profile);
    CHECK(failure.message == "rows.csv: no column batch; needed are gpu, model, batch, latency_ms");
    CHECK_THROWS_AS(static_cast<void>(read_operator_measurements(CsvTable("gpu,op,latency_ms\n", "rows.csv"))), Error);
}

TEST_CASE("operator rows carry the kernel that ran, where a column names it") {
    const auto named = read_operator_measurements(
        CsvTable("gpu,op,shape,latency_ms,kernel\ng,linear,m=1 n=2 k=3,0.5,volta_sgemm_64x64_tn\n", "rows.csv"));
    CHECK(named.rows[0].kernel == "volta_sgemm_64x64_tn");
    const auto unnamed =
        read_operator_measurements(CsvTable("gpu,op,shape,latency_ms\ng,linear,m=1 n=2 k=3,0.5\n", "rows.csv"));
    CHECK(unnamed.rows[0].kernel.empty());
}

TEST_CASE("operator rows carry their shape as numbers") {
    const auto file =
        read_operator_measurements(CsvTable("gpu,op,precision,shape,latency_ms\n"
                                            "g,bmm,fp32,b=6 m=27 n=390 k=21,0.5\n"
                                            "g,conv,fp32,b=1 pad=0,0.5\n"
                                            "g,add,fp32,b=1 h,0.5\n"
                                            "g,add,fp32,b=1 b=2,0.5\n"
                                            "g,add,fp32,,0.5\n",
                                            "rows.csv"));
    CHECK(holds_operators(file.table));
    CHECK(file.rows[0].shape == std::map<std::string, std::int64_t>{{"b", 6}, {"m", 27}, {"n", 390}, {"k", 21}});
    CHECK(file.rows[1].shape.at("pad") == 0);
    CHECK(file.problems[0].empty());
    CHECK(file.problems[1].empty());
    CHECK(file.problems[2] == "shape is not a list of name=number: b=1 h");
    CHECK(file.problems[3] == "shape is not a list of name=number: b=1 b=2");
    CHECK(file.problems[4] == "no shape");
}
