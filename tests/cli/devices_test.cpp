#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "ftax/device.hpp"
#include "tests/cli/command.hpp"
#include "tests/program.hpp"
#include "tests/temporary_folder.hpp"

using nlohmann::json;

TEST_CASE("ftax devices lists every datasheet, with or without `list`") {
    const ProgramRun run = run_program("devices list");
    CHECK(run.exit_code == 0);
    for (const ftax::DeviceSpec& device : ftax::device_specs()) {
        CHECK(run.output.find("\n" + device.slug + " ") != std::string::npos);
    }
    CHECK(run_program("devices").output == run.output);
    const json list = json::parse(run_program("devices list --json").output);
    CHECK(list["devices"].size() == ftax::device_specs().size());
}

TEST_CASE("ftax devices show prints one datasheet, as JSON the file itself") {
    const ProgramRun run = run_program("devices show 'Tesla T4'");
    CHECK(run.exit_code == 0);
    CHECK(run.output.find("t4: NVIDIA Tesla T4, turing, compute capability 7.5") == 0);
    CHECK(json::parse(run_program("devices show t4 --json").output)["sources"].size() > 1);
    const std::string own = FTAX_SOURCE_DIR "/data/devices/t4.json";
    CHECK(run_program("devices show " + own).output == run.output);
}

TEST_CASE("ftax devices diff compares with the first device") {
    const json diff = json::parse(run_program("devices diff t4 l4 h100 --json").output);
    REQUIRE(diff["devices"].size() == 3);
    CHECK(diff["devices"][0]["ratio_to_first"]["sms"] == 1);
    CHECK(diff["devices"][2]["slug"] == "h100-sxm5-80gb");
}

TEST_CASE("a wrong device or form is a usage error") {
    const ProgramRun run = run_program("devices show quadro-rtx-800");
    CHECK(run.exit_code == 2);
    CHECK(run.output.empty());
    CHECK(run.errors.find("near: quadro-rtx-8000") != std::string::npos);
    CHECK(run_program("devices diff t4").exit_code == 2);
    CHECK(run_program("devices paint").exit_code == 2);
    CHECK(run_program("devices show /nonexistent.json").exit_code == 2);
    CHECK(run_program("devices show " FTAX_SOURCE_DIR "/CMakePresets.json").exit_code == 6);
}

TEST_CASE("BAD_INPUTS 47: a full disk and a closed pipe are failures, not signals") {
    CHECK(run_program("devices list > /dev/full").exit_code != 0);
    CHECK(run_program("devices list --json /dev/full").exit_code == 2);
    CHECK(run_program("devices list --json /nonexistent/out.json").exit_code == 2);
    const ftax::test::TemporaryFolder folder;
    const std::string limited = folder.file("limited.json");
    CHECK(run_program("devices show t4 --json '" + limited + "'", "ulimit -f 1").exit_code == 2);
    CHECK_FALSE(std::filesystem::exists(limited));
    const ProgramRun pipe = run_program("devices list | true");
    CHECK(pipe.exit_code == 0);  // the status of `true`; a death by SIGPIPE would be reported on standard error
    CHECK(pipe.errors.empty());
}

TEST_CASE("ftax doctor lists built-in components and the machine's capabilities") {
    const ProgramRun run = run_program("doctor --json");
    CHECK(run.exit_code == 0);
    const json report = json::parse(run.output);
    CHECK(report["built_in"].size() == 3);
    CHECK(report["machine"].size() > 5);
    CHECK(run_program("doctor").output.find("temporary folder") != std::string::npos);
}

TEST_CASE("models are listed with their size, and found by other names and spellings") {
    const auto listed = nlohmann::json::parse(run_program("models --json").output);
    std::map<std::string, nlohmann::json> models;
    for (const auto& model : listed["models"]) models[model["name"]] = model;
    CHECK(models.size() > 55);
    constexpr int of_torchvision = 25'557'032, of_batch_norms = 53'173;  // running means, variances and counts
    CHECK(models["resnet50"]["parameters"] == of_torchvision + of_batch_norms);
    CHECK(models["resnet50"]["source"] == "torchvision:resnet50");
    CHECK(models["llama-3-8b"]["parameters"].get<double>() == doctest::Approx(8.03e9).epsilon(0.001));
    CHECK(models["llama-3-8b"]["source"] == "meta-llama/Meta-Llama-3-8B");
    CHECK(models["bert"]["flops"].get<double>() > 20e9);
    CHECK(models["efficientnet"]["note"] == "EfficientNetV2-M at 224 pixels");
    const auto flops = [](const std::string& name) {
        const ProgramRun run = ftax::test::run_ftax({"inspect", name, "--batch", "1", "--json", "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["total"]["flops"];
    };
    for (const char* name : {"EfficientNetV2-M", "efficientnetv2_m", "zoo:Efficient-Net"})
        CHECK(flops(name) == models["efficientnet"]["flops"]);
    CHECK(flops("ResNet_50") == models["resnet50"]["flops"]);
    CHECK(flops("mlperf_resnet50") == models["resnet50"]["flops"]);
    CHECK(ftax::test::run_ftax({"inspect", "resnet_51", "--batch", "1"}).errors.find("did you mean") !=
          std::string::npos);
}
