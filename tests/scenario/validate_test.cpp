#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "ftax/framework.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/number.hpp"
#include "predictors/profiles/profile_file.hpp"
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
    const std::string ms =
        predicted_ms({"predict", "resnet18", "--device", "t4", "--framework", "pytorch-eager@1.12", "--batch", "4"});
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
    CHECK(table.header().size() == 12);
    CHECK(table.row(0)[1] == "a, b");
    CHECK(*parse_number(table.row(0)[5]) == approx(*parse_number(ms)));
    CHECK(table.row(0)[10] == "near");
    CHECK(table.row(0)[11].empty());
}

TEST_CASE("MLPerf's streams wait for each query, whose images come from pinned memory unless the card is a module") {
    const TemporaryFolder folder;
    const auto predicted = [](const char* device, bool copies) {
        std::vector<std::string> run{
            "predict",     "resnet50", "--device", device, "--framework",   "tensorrt-cuda-graph",
            "--precision", "int8",     "--batch",  "8",    "--synchronized"};
        if (copies) run.emplace_back("--copies");
        return predicted_ms(run);
    };
    const std::string rows =
        folder.write("models.csv", fmt::format("run,gpu,framework,precision,model,input,batch,latency_ms\n"
                                               "MLPerf 3.0 box,T4,tensorrt,int8,mlperf_resnet50,224,8,{}\n"
                                               "MLPerf 3.0 box,A100-SXM-80GB,tensorrt,int8,mlperf_resnet50,224,8,{}\n",
                                               predicted("t4", true), predicted("a100-sxm4-80gb", false)));
    const ProgramRun outcome = run_ftax({"validate", rows, "--json", "-", "--max-mape", "0.001"});
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
    CHECK(nlohmann::json::parse(outcome.output)["overall"]["rows"] == 2);
    // 8 images of 150,528 values and 8,000 scores, a byte each, at 0.76 of the slot's rate, each with a call of 7 µs:
    // PCIe 3.0, 4.0, and 4.0 for a card whose slot is not known.
    for (const auto& [device, slot_bytes_per_ms] : {std::pair("t4", 15.75e6), {"l4", 31.5e6}, {"gb10", 31.5e6}})
        CHECK(*parse_number(predicted(device, true)) - *parse_number(predicted(device, false)) ==
              approx((8 * 150528 + 8 * 1000) / (0.76 * slot_bytes_per_ms) + 0.014).epsilon(0.01));
}

TEST_CASE("rows of TensorRT under optimum hold copies of inputs and outputs, which it does not bind") {
    const TemporaryFolder folder;
    const std::string copying =
        predicted_ms({"predict", "bert", "--device", "t4", "--framework", "onnxruntime-tensorrt", "--precision", "fp16",
                      "--batch", "8", "--dim", "seq=128", "--copies"});
    const std::string rows = folder.write("models.csv",
                                          "run,gpu,framework,precision,model,input,batch,latency_ms\n"
                                          "optimum sweep,T4,onnxruntime-tensorrt,fp16,bert,128,8," +
                                              copying + "\n");
    const ProgramRun outcome = run_ftax({"validate", rows, "--json", "-", "--max-mape", "0.001"});
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
}

TEST_CASE("rows of kernl ran under autocast, those of FasterTransformer in f32 without TF32") {
    const TemporaryFolder folder;
    const auto predicted = [](const char* framework, const char* precision) {
        return predicted_ms({"predict", "bert", "--device", "rtx-3090", "--framework", framework, "--precision",
                             precision, "--batch", "8", "--dim", "seq=128"});
    };
    std::string text = "run,gpu,framework,version,precision,model,input,batch,latency_ms\n";
    const auto add = [&](const char* row, const std::string& ms) {
        text += fmt::format("{},bert,128,8,{}\n", row, ms);
    };
    add("kernl,RTX 3090,tensorrt,1.14,fp16", predicted("tensorrt-onnx@8.5", "amp_cached"));
    add("kernl,RTX 3090,cuda-graph,1.14,fp16", predicted("cuda-graph@1.14", "amp_cached"));
    add("fastertransformer,RTX 3090,tensorrt,1.13,fp32", predicted("tensorrt@8.5", "fp32"));
    add("fastertransformer,RTX 3090,tensorrt,1.13,fp16", predicted("tensorrt-onnx@8.5", "fp16"));
    const std::string rows = folder.write("models.csv", text);
    const ProgramRun outcome = run_ftax({"validate", rows, "--json", "-", "--max-mape", "0.001"});
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
    CHECK(nlohmann::json::parse(outcome.output)["overall"]["rows"] == 4);
}

TEST_CASE("rows with copies hold the inputs' way to the device, also where they are anchors") {
    const TemporaryFolder folder;
    const std::vector<std::string> run{"predict",           "resnet50",    "--device", "rtx-3060", "--framework",
                                       "tensorrt-onnx@8.6", "--precision", "fp16",     "--batch",  "64"};
    std::vector<std::string> copying = run;
    copying.emplace_back("--copies");
    const std::string alone = predicted_ms(run), with_copies = predicted_ms(copying);
    // 64 images of 602,112 bytes and 64,000 scores in f32 at 3 GB/s, each with a call of 7 µs: an engine keeps their
    // type.
    CHECK(*parse_number(with_copies) - *parse_number(alone) ==
          approx((64 * 602112 + 64 * 4000) / 3e6 + 0.014).epsilon(0.001));
    // PyTorch's tensors are in the type of the run.
    for (const auto& [precision, bytes] : {std::pair("fp16", 2), std::pair("fp32", 4)}) {
        std::vector<std::string> eager{"predict",     "resnet50", "--device", "t4",
                                       "--precision", precision,  "--batch",  "64"};
        const double alone_ms = *parse_number(predicted_ms(eager));
        eager.emplace_back("--copies");
        CHECK(*parse_number(predicted_ms(eager)) - alone_ms ==
              approx(64 * (150528 + 1000) * bytes / 3e6 + 0.014).epsilon(0.001));
    }
    const std::string rows = folder.write("models.csv",
                                          "gpu,framework,version,precision,model,batch,latency_ms,kind\n"
                                          "rtx-3060,tensorrt-onnx,8.6,fp16,resnet50,64," +
                                              alone + ",model\nrtx-3060,tensorrt-onnx,8.6,fp16,resnet50,64," +
                                              with_copies + ",with_copies\n");
    for (const std::vector<std::string>& anchor : {std::vector<std::string>{}, {"--anchor", rows}}) {
        std::vector<std::string> arguments{"validate", rows, "--json", "-", "--max-mape", "0.2"};
        arguments.insert(arguments.end(), anchor.begin(), anchor.end());
        const ProgramRun outcome = run_ftax(arguments);
        CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
    }
}

TEST_CASE("the kind of a row says whether its time holds the host, an engine's enqueue or its kernels alone") {
    const TemporaryFolder folder;
    const std::string head = "gpu,framework,version,precision,model,batch,latency_ms,kind\n";
    const auto of_kind = [&](const std::string& kind) {
        const std::string row = "jetson-xavier-nx,tensorrt-onnx,8.5,fp16,resnet18,1,1," + kind + "\n";
        const ProgramRun outcome =
            run_ftax({"validate", folder.write("rows.csv", head + row), "--predictions", "-", "-q"});
        const CsvTable table(outcome.output, "predictions");
        return *parse_number(table.cell(0, "predicted_ms"));
    };
    const double call = of_kind("call"), enqueue = of_kind("enqueue"), gpu = of_kind("gpu");
    CHECK(of_kind("") == call);
    CHECK(call - enqueue > 0.14);  // setting bindings and waiting, 150 µs on a desktop's CPU
    CHECK(gpu < enqueue - 0.3);    // 20 µs between kernels are the module's CPU
}

TEST_CASE("of the rows of `ftax measure model` those end to end are predicted, as runs that are waited for") {
    const TemporaryFolder folder;
    const std::string ms = predicted_ms(
        {"predict", "resnet18", "--device", "t4", "--framework", "pytorch-eager", "--batch", "4", "--synchronized"});
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

TEST_CASE("images that are not square have a height and a width, which a model of a fixed size must have") {
    const TemporaryFolder folder;
    const auto model = [](const char* size) {
        return fmt::format("input %x f32[batch,64,{0}]\n%1 f32[batch,64,{0}] = softmax(%x) {{axis=-1}}\noutput %1\n",
                           size);
    };
    const std::string open = folder.write("open.txt", model("height,width"));
    folder.write("fixed.txt", model("512,1024"));
    const std::string ms =
        predicted_ms({"predict", open, "--device", "t4", "--dim", "height=512", "--dim", "width=1024", "--batch", "1"});
    const std::string rows =
        folder.write("rows.csv", "gpu,model,batch,input,latency_ms\nt4,open,1,512x1024," + ms +
                                     "\nt4,fixed,1,512x1024," + ms + "\nt4,fixed,1,768x1024,1\nt4,fixed,1,512x768,1\n");
    const ProgramRun outcome =
        run_ftax({"validate", rows, "--models", folder.file("."), "--json", "-", "--max-mape", "0.001"});
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.errors);
    const auto json = nlohmann::json::parse(outcome.output);
    CHECK(json["overall"]["rows"] == 2);
    CHECK(json.dump().find("fixed is fixed at input 512, not 768") != std::string::npos);
    CHECK(json.dump().find("fixed is fixed at input 1024, not 768") != std::string::npos);
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

TEST_CASE("--suggest-anchors names the rows of each GPU that would narrow the intervals of its others most") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,framework,version,precision,model,batch,seq,latency_ms\n"
                                          "t4,pytorch-eager,1.12,fp32,resnet50,1,,9\n"
                                          "t4,pytorch-eager,1.12,fp32,bert,1,8,9\n"
                                          "t4,pytorch-eager,1.12,fp32,bert,2,8,9\n"
                                          "t4,pytorch-eager,1.12,fp32,nosuchnetwork,2,,9\n"
                                          "a100,pytorch-eager,1.12,fp32,resnet50,64,,50\n");
    const auto result = run_ftax({"validate", rows, "--suggest-anchors"});
    CHECK(result.output.find("t4: latencies are known to within ") != std::string::npos);
    CHECK(result.output.find("; worth measuring, for --anchor: line ") != std::string::npos);
    CHECK(result.output.find("a100-sxm4-40gb: latencies are known to within ") != std::string::npos);
    const auto json = nlohmann::json::parse(run_ftax({"validate", rows, "--suggest-anchors", "--json", "-"}).output);
    REQUIRE(json["suggested_anchors"].size() == 2);
    const auto& t4 = json["suggested_anchors"][1];
    CHECK(t4["gpu"] == "t4");
    REQUIRE(!t4["runs"].empty());
    CHECK(t4["runs"][0]["half_width"] < 0.7 * t4["half_width"].get<double>());
    CHECK(!nlohmann::json::parse(run_ftax({"validate", rows, "--json", "-"}).output).contains("suggested_anchors"));
}

TEST_CASE("--max-mape is a gate") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv", "gpu,model,batch,latency_ms\nT4,resnet18,1,1000000\n");
    CHECK(run_ftax({"validate", rows}).exit_code == 0);
    const ProgramRun above = run_ftax({"validate", rows, "--max-mape", "10"});
    CHECK(above.exit_code == 1);
    CHECK(above.errors.find("--max-mape is 10 %") != std::string::npos);
    CHECK(run_ftax({"validate", rows, "--max-mape", "-1"}).exit_code == 2);
    const std::string none = folder.write("none.csv", "gpu,model,batch,latency_ms\nT4,nosuchmodel,1,1\n");
    const ProgramRun empty = run_ftax({"validate", none, "--max-mape", "10"});
    CHECK(empty.exit_code == 6);
    CHECK(empty.errors.find("no row could be predicted") != std::string::npos);
    const ProgramRun without_gate = run_ftax({"validate", none});
    CHECK(without_gate.exit_code == 6);
    CHECK(without_gate.output.starts_with("none of 1 rows could be predicted\n"));
    CHECK(above.output.starts_with("MAPE 100.0 %, median 100.0 %, bias -100.0 % over 1 of 1 rows"));
}

TEST_CASE("--models finds files, --by groups by any column, --anchor moves the host") {
    const TemporaryFolder folder;
    folder.write("mine.txt", tiny);
    const std::string ms = predicted_ms({"predict", folder.file("mine.txt"), "--device", "t4", "--framework",
                                         "pytorch-eager", "--batch", "2", "--dim", "seq=8"});
    const std::string slow = format_number(1.8 * *parse_number(ms));
    const std::string rows =
        folder.write("rows.csv", "gpu,model,batch,seq,latency_ms,day\nT4,mine,2,8," + slow + ",monday\n");
    CHECK(run_ftax({"validate", rows, "--max-mape", "100"}).exit_code == 6);  // no zoo model is called "mine"
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
    CHECK(mape({"--anchor", rows}) == approx(without));  // a row is left out of its own anchors
    const std::string other = folder.write("other.csv", "gpu,model,batch,seq,latency_ms\nT4,mine,1,8," + slow + "\n");
    CHECK(mape({"--anchor", other}) < 0.7 * without);
    CHECK(run_ftax({"validate", rows, "--by", "week"}).exit_code == 2);
}

TEST_CASE("a row names its model as every command does: a path, a folder, a name below --models") {
    const TemporaryFolder folder;
    const std::string config =
        R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
            "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4, "vocab_size": 100,
            "max_position_embeddings": 512, "hidden_act": "silu", "torch_dtype": "float16"})";
    std::filesystem::create_directories(folder.path / "owner" / "tiny");
    folder.write("owner/tiny/config.json", config);
    folder.write("alone.json", config);
    folder.write("net.txt", tiny);
    const std::vector<std::pair<std::string, bool>> models{{folder.file("owner/tiny"), true},
                                                           {folder.file("owner/tiny/config.json"), true},
                                                           {"owner/tiny", true},
                                                           {"owner/tiny/config.json", true},
                                                           {"tiny", true},
                                                           {"other/alone", true},
                                                           {"alone", true},
                                                           {"alone.json", true},
                                                           {"owner/none", false},
                                                           {"nothing", false}};
    std::string language = "gpu,framework,precision,model,isl,osl,batch,latency_s\n";
    std::string passes = "gpu,model,batch,seq,latency_ms\n";
    for (const auto& [model, found] : models) language += "t4,pytorch-eager,fp16," + model + ",16,4,1,0.01\n";
    for (const std::string model : {"net", "net.txt", "zoo:bert", "bert"}) passes += "t4," + model + ",1,8,1\n";
    const std::string rows = folder.write("language.csv", language);
    const ProgramRun outcome =
        run_ftax({"validate", rows, "--models", folder.file(""), "--by", "model", "--json", "-"});
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.errors);
    const auto json = nlohmann::json::parse(outcome.output);
    std::set<std::string> predicted;
    for (const auto& group : json["groups"]) predicted.insert(group["group"]["model"]);
    for (const auto& entry : models) CHECK_MESSAGE(predicted.contains(entry.first) == entry.second, entry.first);
    const ProgramRun other =
        run_ftax({"validate", folder.write("passes.csv", passes), "--models", folder.file(""), "--json", "-"});
    CHECK_MESSAGE(nlohmann::json::parse(other.output)["overall"]["rows"] == 4, other.output);
}

TEST_CASE("a module is another card in each run, and any other card the same") {
    const TemporaryFolder folder;
    const auto errors = [&](const std::string& gpu) {
        const double ms = *parse_number(predicted_ms({"predict", "resnet50", "--device", gpu, "--framework",
                                                      "tensorrt-onnx@8.6", "--precision", "fp32", "--batch", "64"}));
        const std::string header = "run,gpu,framework,version,precision,model,batch,latency_ms\n";
        std::string anchors = header, rows = header;
        for (const auto& [run, factor] : {std::pair{"fast", 1.0}, std::pair{"slow", 2.5}}) {
            const std::string start = fmt::format("{},{},tensorrt-onnx,8.6,fp32,resnet50,", run, gpu);
            anchors += fmt::format("{}64,{}\n", start, factor * ms);
            rows += fmt::format("{}128,{}\n", start, factor * 2 * ms);
        }
        const ProgramRun run = run_ftax({"validate", folder.write("rows.csv", rows), "--anchor",
                                         folder.write("anchors.csv", anchors), "--json", "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["overall"]["mape"].get<double>();
    };
    CHECK(errors("jetson-agx-orin-64gb") < 0.05);
    CHECK(errors("t4") > 0.2);
}

TEST_CASE("rows that anchor themselves are scored by the others alone") {
    const TemporaryFolder folder;
    std::vector<double> errors;
    std::string header = "gpu,model,batch,latency_ms\n", all, same;
    const std::vector<std::string> models{"resnet18", "mobilenet_v2", "squeezenet"};
    for (const std::string& model : models)
        all += "T4," + model + ",1," +
               format_number(1.6 * *parse_number(predicted_ms({"predict", model, "--device", "t4", "--batch", "1"}))) +
               "\n";
    const std::string rows = folder.write("rows.csv", header + all);
    const auto score = [&](const std::string& of, const std::string& anchor) {
        const ProgramRun run = run_ftax({"validate", of, "--anchor", anchor, "--json", "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["overall"]["mape"].get<double>();
    };
    double sum = 0;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < all.size(); at = all.find('\n', at) + 1)
        lines.push_back(all.substr(at, all.find('\n', at) + 1 - at));
    REQUIRE(lines.size() == models.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::string others = header;
        for (std::size_t j = 0; j < lines.size(); ++j) {
            if (j != i) others += lines[j];
        }
        sum += score(folder.write("one.csv", header + lines[i]), folder.write("others.csv", others));
    }
    CHECK(score(rows, rows) == approx(sum / static_cast<double>(lines.size())));
}

TEST_CASE("rows without a version are predicted as the stated default, with a warning") {
    const TemporaryFolder folder;
    const auto latency_of = [&](const std::string& version, bool warned) {
        const std::string rows = folder.write(
            "rows.csv", "gpu,version,model,batch,latency_ms\nT4," + version + ",resnet18,1,5\nL4,2.2,resnet18,1,5\n");
        const std::string out = folder.file("out.csv");
        const ProgramRun run = run_ftax({"validate", rows, "--predictions", out, "--json", "-"});
        REQUIRE(run.exit_code == 0);
        const std::string warnings = nlohmann::json::parse(run.output)["warnings"].dump();
        CHECK((warnings.find("1 row of pytorch-eager without a version: predicted as 2.11, the newest measured "
                             "(column version)") != std::string::npos) == warned);
        const CsvTable table = read_csv(out);
        return *parse_number(table.row(0)[5]);
    };
    CHECK(latency_of("", true) == latency_of("2.11", false));
    CHECK(latency_of("2.5", false) != approx(latency_of("1.12", false)));
}

TEST_CASE("a column in another unit gets a hint, a slow machine none") {
    const TemporaryFolder folder;
    const double ms = *parse_number(
        predicted_ms({"predict", "resnet18", "--device", "t4", "--framework", "pytorch-eager@1.12", "--batch", "1"}));
    const auto hinted = [&](double factor) {
        const std::string rows = folder.write(
            "rows.csv", "gpu,version,model,batch,latency_ms\nT4,1.12,resnet18,1," + format_number(factor * ms) + "\n");
        const ProgramRun run = run_ftax({"validate", rows, "--json", "-"});
        const auto json = nlohmann::json::parse(run.output);
        const bool reported = run.errors.find("check the unit of latency_ms") != std::string::npos;
        CHECK(json["warnings"].empty() != reported);
        return reported;
    };
    for (const double factor : {1e-6, 1e-3, 0.7e-3, 1e3, 1.5e3, 1e6}) CHECK_MESSAGE(hinted(factor), factor);
    for (const double factor : {0.01, 0.1, 0.5, 1.0, 2.0, 30.0}) CHECK_MESSAGE(!hinted(factor), factor);
}

TEST_CASE("operators that the host decides calibrate the host of other operators") {
    const TemporaryFolder folder;
    const std::string header = "gpu,op,precision,shape,latency_ms\n", shape = "T4,linear,fp32,b=1 m=64 n=64 k=";
    const auto predicted = [&](std::vector<std::string> more) {
        const std::string out = folder.file("out.csv");
        std::vector<std::string> arguments{"validate", folder.write("rows.csv", header + shape + "64,1\n"),
                                           "--predictions", out};
        arguments.insert(arguments.end(), more.begin(), more.end());
        REQUIRE(run_ftax(arguments).exit_code == 0);
        const CsvTable table = read_csv(out);
        return *parse_number(table.row(0)[*table.column("predicted_ms")]);
    };
    const double before = predicted({});
    const std::string anchor = folder.write("anchor.csv", header + shape + "64," + format_number(2 * before) + "\n" +
                                                              shape + "32," + format_number(2 * before) + "\n");
    CHECK(predicted({"--anchor", anchor}) == approx(2 * before).epsilon(0.1));
}

TEST_CASE("rows of an earlier era of networks are named, not predicted by the later ones") {
    const TemporaryFolder folder;
    const std::string rows = folder.write("rows.csv",
                                          "gpu,model,mode,batch,latency_ms,era,level\n"
                                          "T4,resnet18,end_to_end,1,5,v0.1,level3\n"
                                          "T4,resnet18,end_to_end,1,5,2025,level3\n");
    const auto json = nlohmann::json::parse(run_ftax({"validate", rows, "--by", "level", "--json", "-"}).output);
    CHECK(json["overall"]["rows"] == 1);
    CHECK(json["skipped"][0]["lines"] == nlohmann::json({2}));
}

TEST_CASE("operator rows are recognised by their column op") {
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

TEST_CASE("--framework-profile: the host costs of its framework's rows, at the version they name") {
    const TemporaryFolder folder;
    const std::string profile = folder.file("framework.json");
    FrameworkProfile slow = framework_profile("pytorch-eager");
    for (Parameter& p : slow.parameters) {
        if (p.name == "host.scale") p.value *= 3;
    }
    folder.write("framework.json", to_text(slow));
    const auto validated = [&](const std::string& framework, const std::vector<std::string>& options) {
        const std::string rows = folder.write("rows.csv", "gpu,framework,version,model,batch,latency_ms\nt4," +
                                                              framework + ",2.11.0+cu130,resnet18,1,5\n");
        std::vector<std::string> all{"validate", rows, "--predictions", folder.file("out.csv"), "-q"};
        all.insert(all.end(), options.begin(), options.end());
        const ProgramRun run = run_ftax(all);
        CHECK_MESSAGE(run.exit_code == 0, run.errors);
        const CsvTable table = read_csv(folder.file("out.csv"));
        return *parse_number(table.row(0)[*table.column("predicted_ms")]);
    };
    const std::string expected = predicted_ms({"predict", "resnet18", "--device", "t4", "--framework",
                                               "pytorch-eager@2.11", "--framework-profile", profile, "--batch", "1"});
    CHECK(validated("pytorch-eager", {"--framework-profile", profile}) == approx(*parse_number(expected)));
    CHECK(validated("pytorch-eager", {}) < 0.8 * *parse_number(expected));
    CHECK(validated("torchscript", {"--framework-profile", profile}) == approx(validated("torchscript", {})));
}

TEST_CASE("host costs that no row uses are reported in every form") {
    const TemporaryFolder folder;
    const std::string profile = folder.write("framework.json", to_text(framework_profile("pytorch-eager")));
    const std::string models = "gpu,framework,model,batch,latency_ms\nt4,FRAMEWORK,resnet18,1,5\n";
    const std::string operators = "gpu,op,precision,shape,latency_ms\nT4,linear,fp32,b=64 m=512 n=512 k=512,0.5\n";
    const std::string tokens =
        "gpu,framework,model,precision,batch,prompt,new_tokens,latency_ms\na100-sxm4-40gb,vllm,llama-2-7b,fp16,1,32,"
        "32,900\n";
    const auto of = [&](const char* framework) {
        std::string rows = models;
        return rows.replace(rows.find("FRAMEWORK"), 9, framework);
    };
    const struct {
        std::string rows, option;
        const char* warning;
    } cases[] = {
        {of("torchscript"), "--framework-profile",
         "--framework-profile is ignored: no predicted row is of pytorch-eager"},
        {tokens, "--framework-profile", "--framework-profile is ignored: no predicted row is of pytorch-eager"},
        {operators, "--framework-profile",
         "--framework-profile is ignored: it applies to rows of models (rows of operators: --host-profile)"},
        {of("torchscript"), "--host-profile",
         "--host-profile is ignored: it applies to rows of operators (rows of models: --framework-profile)"},
        {of("pytorch-eager"), "--framework-profile", nullptr}};
    for (const auto& one : cases) {
        const ProgramRun run = run_ftax({"validate", folder.write("rows.csv", one.rows), one.option, profile, "--json",
                                         "-", "--html", folder.file("page.html")});
        REQUIRE_MESSAGE(run.exit_code == (one.rows == tokens ? 6 : 0), run.errors);  // whose model is not known
        const std::string page = read_text(folder.file("page.html"));
        const auto warnings = nlohmann::json::parse(run.output)["warnings"];
        if (one.warning) {
            CHECK_MESSAGE(run.errors.find(one.warning) != std::string::npos, run.errors);
            CHECK_MESSAGE(std::ranges::count(warnings, one.warning) == 1, warnings.dump());
            CHECK(page.find(one.warning) != std::string::npos);
        } else {
            CHECK_MESSAGE((run.errors + page + warnings.dump()).find("ignored") == std::string::npos, run.errors);
        }
    }
}

TEST_CASE("validate names the likeliest cause of each group of rows: planted ones, in the table, JSON and page") {
    const TemporaryFolder folder;
    const std::string head = "gpu,framework,version,precision,model,batch,latency_ms\n";
    std::string rows = head;
    // Rows of a group: the latencies of runs with these options, changed by a factor.
    const auto plant = [&](const std::string& gpu, const std::string& framework, const std::string& precision,
                           const std::vector<std::string>& options, auto factor) {
        for (const char* model : {"resnet50", "vgg16", "densenet"}) {
            for (const double batch : {8.0, 64.0}) {
                std::vector<std::string> run{"predict", model, "--device", gpu, "--batch", format_number(batch)};
                run.insert(run.end(), options.begin(), options.end());
                const double ms = *parse_number(predicted_ms(run)) * factor(batch);
                const std::size_t at = framework.find('@');
                rows += fmt::format("{},{},{},{},{},{},{}\n", gpu, framework.substr(0, at), framework.substr(at + 1),
                                    precision, model, batch, ms);
            }
        }
    };
    const auto same = [](double) { return 1.0; };
    const auto thousandth = [](double) { return 1e-3; };
    const auto per_item = [](double batch) { return 1 / batch; };
    const std::string eager = "pytorch-eager@2.4";
    plant("a100-sxm4-80gb", "torch-compile@2.4", "fp32", {"--framework", eager, "--precision", "fp32"}, same);
    plant("h100-sxm5-80gb", eager, "fp16", {"--framework", eager, "--precision", "fp32"}, same);
    plant("l4", eager, "fp16", {"--framework", eager, "--precision", "fp16"}, same);
    plant("t4", eager, "fp16", {"--framework", eager, "--precision", "fp16"}, per_item);
    plant("v100-sxm2-32gb", "onnxruntime-cuda@1.20", "fp32", {"--framework", "onnxruntime-cuda@1.20"}, thousandth);
    const std::string file = folder.write("rows.csv", rows), page = folder.file("page.html");

    const ProgramRun outcome = run_ftax({"validate", file, "--json", "-", "-q"});
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.errors);
    std::string causes;
    const auto json = nlohmann::json::parse(outcome.output);
    for (const auto& group : json["groups"]) {
        causes += " " + (group.contains("cause") ? group["cause"]["name"].get<std::string>() : "none");
        if (group.contains("cause")) CHECK(group["cause"]["share"] > 0.5);
    }
    CHECK(causes == " pytorch-eager not-half none per-item ms-as-s");
    const std::string table = run_ftax({"validate", file, "-q", "--html", page}).output;
    CHECK(table.find("MAPE") != std::string::npos);
    for (const std::string& text : {table, read_text(page)})
        for (const char* sentence : {"it runs eagerly (", "half precision is not used", "the time is that of one item"})
            CHECK(text.find(sentence) != std::string::npos);
    // Rows of two frameworks have no common cause; neither have rows of operators.
    const ProgramRun mixed = run_ftax({"validate", file, "--json", "-", "-q", "--by", "precision"});
    CHECK_FALSE(nlohmann::json::parse(mixed.output)["groups"][1].contains("cause"));
}
