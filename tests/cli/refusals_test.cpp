#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

using namespace ftax::test;

namespace {

using Words = std::vector<std::string>;

Words plus(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// Whether a command ends with this code, nothing but one line that says so.
void check_refused(const Words& words, int code, const std::string& says) {
    const ProgramRun run = run_ftax(words);
    std::string line;
    for (const std::string& word : words) line += word + " ";
    CHECK_MESSAGE(run.exit_code == code, line, run.errors);
    CHECK_MESSAGE(run.errors.find(says) != std::string::npos, line, run.errors);
    CHECK_MESSAGE(std::count(run.errors.begin(), run.errors.end(), '\n') == 1, line, run.errors);
    CHECK_MESSAGE(run.output.empty(), line);
}

const Words predict_resnet18{"predict", "resnet18", "--device", "t4"};
const Words serve_llama{"serve", "llama-3-8b", "--device", "h100-sxm5-80gb", "-q", "--rate", "5", "--prompt",
                        "100",   "--count",    "5",        "--new-tokens",   "10"};

}  // namespace

TEST_CASE("an empty value is refused for every option, as an unset variable gives it") {
    for (const char* option : {"--anchor", "--framework", "--precision", "--host", "--models", "--profile",
                               "--framework-profile", "--batch", "--measured", "--html", "--svg", "--dim", "--shapes"})
        check_refused(plus(predict_resnet18, {option, ""}), 2, "is empty: give a value or leave it out");
    check_refused(plus(predict_resnet18, {"--anchor="}), 2, "--anchor: 1 required ROWS.csv missing");
    check_refused({"predict", "", "--device", "t4"}, 2, "MODEL is empty");
    check_refused({"predict", "resnet18", "--device", ""}, 2, "--device is empty");
    check_refused({"validate", "rows.csv", "--by", ""}, 2, "--by is empty");
    check_refused(plus(serve_llama, {"--slo", ""}), 2, "--slo is empty");
    check_refused(plus(serve_llama, {"--requests", ""}), 2, "--requests is empty");
    CHECK(run_ftax(plus(predict_resnet18, {"--json"})).exit_code == 0);
    CHECK(run_ftax({"predict", "--csv", "resnet18", "--device", "t4"}).exit_code == 0);
}

TEST_CASE("numbers that are none, infinite or absurd are refused at their option") {
    for (const char* value : {"nan", "inf", "-0.1", "1.5", "1e400", "x"})
        check_refused(plus(predict_resnet18, {"--padding", value}), 2,
                      "--padding: " + std::string(value) + " is not a share");
    for (const char* value : {"nan", "inf", "0", "-1", "1e300", "1e-300"}) {
        check_refused(plus(serve_llama, {"--price", value}), 2,
                      "--price " + std::string(value) + " is not a number of dollars");
        check_refused(plus(serve_llama, {"--transfer-bandwidth", value}), 2, "--transfer-bandwidth: ");
    }
    for (const char* option :
         {"--acceptance", "--batch-wait-ratio", "--shared-prefix", "--slo-share", "--gpu-memory-utilization"})
        for (const char* value : {"nan", "inf", "-1", "90"})
            check_refused(plus(serve_llama, {option, value}), 2, std::string(option) + ": ");
    for (const char* option : {"--spread", "--max-delay", "--count", "--concurrency", "--max-batch", "--max-num-seqs",
                               "--draft-tokens", "--dp", "--pp", "--scheduler-recv-interval", "--batch-wait-iters"})
        for (const char* value : {"nan", "-1", "1e300"})
            CHECK(run_ftax(plus(serve_llama, {option, value})).exit_code == 2);
    for (const std::string time : {"-3ms", "nan", "infms", "0s", "12MS", "1e300s", "3 m", "40", "1ms,x"})
        check_refused(plus(predict_resnet18, {"--measured", time, "--batch", "1"}), 2, " is not a time from 1e-9 s to");
    check_refused(plus(predict_resnet18, {"--measured", "ROWS", "-q"}), 2, "cannot open ROWS");
    for (const std::string time : {"0", "nan", "-1ms", "20", "1e30s"}) {
        check_refused({"compare", "resnet18", "--device", "t4", "--max-latency", time}, 2,
                      "--max-latency: " + time + " is not a time from 1e-9 s to 1e9 s with its unit");
        check_refused(plus(serve_llama, {"--slo", "ttft=" + time}), 2, "--slo ttft: " + time + " is not a time");
    }
    check_refused(plus(serve_llama, {"--slo", "speed=2s"}), 2,
                  "--slo: unknown limit 'speed=2s'; available: ttft, tpot and latency");
    for (const std::string rate : {"0", "-1", "nan", "1e30", "inf"})
        check_refused({"compare", "resnet18", "--device", "t4", "--rate", rate}, 2,
                      "--rate: " + rate + " is not a rate from 1e-6 to 1e12");
    for (const std::string budget : {"-5%", "nan", "0", "1001%", "inf%"})
        check_refused({"headroom", "resnet18", "--device", "t4", "--budget", budget}, 2,
                      "--budget: " + budget + " is not a budget from 1e-6 to 1000%");
    for (const std::string prompt : {"1.5", "x"})
        check_refused({"generate", "llama-3-8b", "--device", "t4", "--new-tokens", "5", "--prompt", prompt}, 2,
                      "--prompt: " + prompt + (prompt == "x" ? " is not a number" : " is not a whole number"));
    for (const std::string top : {"0", "-1"})
        check_refused(plus(serve_llama, {"--top", top}), 2, "--top: " + top + " is not a number of rows");
}

TEST_CASE("an option of one engine is refused by the others") {
    check_refused(plus(serve_llama, {"--framework", "vllm", "--scheduler-recv-interval", "4"}), 2,
                  "--scheduler-recv-interval is an option of sglang; vllm has none like it");
    check_refused(plus(serve_llama, {"--framework", "sglang", "--batch-wait-iters", "4"}), 2,
                  "--batch-wait-iters is an option of tensorrt-llm");
    check_refused(plus(serve_llama, {"--framework", "vllm", "--batch-wait-ratio", "0.5"}), 2,
                  "is an option of tensorrt-llm");
    check_refused(plus(serve_llama, {"--framework", "sglang", "--dp-balance-iters", "4"}), 2,
                  "is an option of tensorrt-llm");
    CHECK(run_ftax(plus(serve_llama, {"--framework", "sglang", "--scheduler-recv-interval", "4"})).exit_code == 0);
    CHECK(run_ftax(plus(serve_llama, {"--framework", "tensorrt-llm", "--batch-wait-iters", "4"})).exit_code == 0);
    for (const char* engine : {"vllm-eager", "vllm@0.2", "llama.cpp"})
        check_refused(plus(serve_llama, {"--framework", engine, "--captured-tokens", "512"}), 2,
                      "captures no steps with prompts");
    CHECK(run_ftax(plus(serve_llama, {"--framework", "vllm", "--captured-tokens", "512"})).exit_code == 0);
    for (const char* precision : {"fp8", "fp8_block", "nvfp4"})
        check_refused(
            {"generate", "llama-3-8b", "--device", "b200", "--framework", "llama.cpp", "--precision", precision,
             "--prompt", "8", "--new-tokens", "8", "-q"},
            2, "llama.cpp has no " + std::string(precision) + ": quantised weights of llama.cpp are those of GGUF");
    check_refused(plus(serve_llama, {"--framework", "vllm", "--precision", "q4_k_m"}), 2,
                  "vllm has no q4_k_m: quantised weights of llama.cpp");
}

TEST_CASE("broken files of prices and requests, and a wrong FTAX_DATA, are invalid profiles") {
    const TemporaryFolder folder;
    const auto price = [&](const char* text) {
        return plus(serve_llama, {"--price", folder.write("price.csv", text)});
    };
    check_refused(price("device\nh100-sxm5-80gb\n"), 6, "no column dollars_per_hour");
    check_refused(price("device,dollars_per_hour\n"), 6, "there are no prices");
    check_refused(price("device,dollars_per_hour\nh100-sxm5-80gb,free\n"), 6, "price.csv:2: free is not a number");
    check_refused(price("device,dollars_per_hour\nh101,3\n"), 6, "price.csv:2: unknown device 'h101'");
    check_refused(price("device;dollars_per_hour\nh100-sxm5-80gb;3,5\n"), 6, "separate columns by commas");
    const auto requests = folder.write("requests.csv", "arrival_s,prompt,output\n");
    check_refused({"serve", "llama-3-8b", "--device", "l40s", "-q", "--requests", requests}, 6,
                  "there are no requests");
    check_refused(plus(serve_llama, {"--tp", "3"}), 2, "32 heads (num_attention_heads) are not divisible by 3 cards");
    const ProgramRun wrong = run_program("predict resnet18 --device t4", "export FTAX_DATA=/nowhere");
    CHECK(wrong.exit_code == 6);
    CHECK(wrong.errors.find("FTAX_DATA: /nowhere is not a folder") != std::string::npos);
}

TEST_CASE("architectures that do not parse are counted, also without notices") {
    const TemporaryFolder folder;
    const std::string path = folder.write("archs.csv", "arch\n768-2-12-3072\n768-2\n");
    const ProgramRun run = run_program("nas --space transformer --device t4 -q " + path);
    CHECK(run.exit_code == 6);
    CHECK(run.output.find("768-2-12-3072,1,") != std::string::npos);
    CHECK(run.errors == "ftax: " + path + ": 1 of 2 architectures do not parse\n");
}

TEST_CASE("measured rows with decimal commas say how to write them") {
    const TemporaryFolder folder;
    const ProgramRun run =
        run_ftax({"validate", folder.write("rows.csv", "gpu,model,batch,latency_ms\nT4,resnet18,1,\"6,1\"\n")});
    CHECK(run.exit_code == 6);
    CHECK(run.output.find("latency_ms is not a positive number (write decimals with a point): 6,1") !=
          std::string::npos);
}

TEST_CASE("nas refuses limits and selections that keep nothing") {
    const TemporaryFolder folder;
    const auto nas = [&](const char* archs, const Words& more) {
        return plus({"nas", "--space", "fbnet", folder.write("archs.csv", archs), "--device", "t4", "-q"}, more);
    };
    const char* none = "arch,accuracy\n";
    for (const char* limit : {"0", "0ms", "-5ms", "nan", "inf"})
        check_refused(nas(none, {"--max-latency", limit}), 2, "--max-latency: ");
    check_refused(nas(none, {"--top", "0"}), 2, "--top: 0 is not a number of architectures");
    check_refused(nas(none, {"--score", "accuracy"}), 6, "no architectures");
}

TEST_CASE("help prints no default that another option replaces") {
    const std::string help = run_ftax({"predict", "--help"}).output;
    CHECK(help.find("--cudnn VERSION ") != std::string::npos);
    CHECK(help.find("default: that of the framework's version") != std::string::npos);
}

TEST_CASE("warnings that differ in numbers alone are one line") {
    const ProgramRun run =
        run_ftax({"generate", "llama-3-8b", "--device", "rtx-4090", "--framework", "vllm", "--precision", "fp16",
                  "--batch", "128,256,512", "--prompt", "1000", "--new-tokens", "10"});
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = run.errors.find("sequences fit into the memory at once", at)) != std::string::npos;
         ++at)
        ++lines;
    CHECK_MESSAGE(lines == 1, run.errors);
    CHECK_MESSAGE(run.errors.find(" of 128 to 512 sequences fit") != std::string::npos, run.errors);
}
