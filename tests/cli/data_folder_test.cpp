#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "graphs/files/file.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "tests/cli/command.hpp"

using namespace ftax::test;

namespace {

double host_s(const std::string& before) {
    const ProgramRun run =
        run_program("predict resnet18 --device t4 --framework pytorch-eager@1.12 --batch 1 --json -", before);
    REQUIRE(run.exit_code == 0);
    return nlohmann::json::parse(run.output).at("predictions").at(0).at("host_s").get<double>();
}

}  // namespace

TEST_CASE("the profiles of the folder FTAX_DATA hold instead of the built-in ones") {
    namespace fs = std::filesystem;
    const TemporaryFolder folder;
    const fs::path profiles = folder.path / "profiles";
    fs::copy(FTAX_SOURCE_DIR "/data/profiles", profiles, fs::copy_options::recursive);
    const std::string before = "export FTAX_DATA='" + folder.path.string() + "'";
    const double built_in_s = host_s(":");
    CHECK(host_s(before) == built_in_s);

    const std::string path = (profiles / "frameworks/pytorch-eager.json").string();
    ftax::FrameworkProfile slow = ftax::parse_framework_profile(ftax::read_file(path), path);
    for (ftax::Parameter& p : slow.parameters) {
        if (p.name.starts_with("host.")) p.value *= 2;
    }
    ftax::write_file(path, to_text(slow));
    CHECK(host_s(before) > 1.5 * built_in_s);

    // Of the stacks only those that name the framework are parsed.
    fs::copy(FTAX_SOURCE_DIR "/data/stacks", folder.path / "stacks");
    const std::string stack = (folder.path / "stacks/vllm@9.9.json").string();
    ftax::write_file(stack, R"({"kind": "stack", "framework": "vllm", "version": 9.9})");
    CHECK(host_s(before) > 1.5 * built_in_s);
    const ProgramRun broken = run_program("predict resnet18 --device t4 --framework vllm --batch 1", before);
    CHECK(broken.exit_code == 6);
    CHECK(broken.errors.find("vllm@9.9.json: schema_version: is missing") != std::string::npos);
    fs::remove(stack);

    // An error of a profile that is parsed late ends no other way than one of the others.
    std::string text = ftax::read_file(path);
    const std::size_t value = text.find("\"value\": ") + 9;
    ftax::write_file(path, text.insert(text.find_first_of(",\n", value), "\"").insert(value, "\""));
    const ProgramRun typed = run_program("predict resnet18 --device t4 --batch 1", before);
    CHECK(typed.exit_code == 6);
    CHECK(typed.errors.find("pytorch-eager.json: parameters[0].value: must be a positive number") != std::string::npos);
    ftax::write_file(path, to_text(slow));

    fs::rename(path, profiles / "frameworks/pytorch-eager@slow.json");
    const ProgramRun misnamed = run_program("predict resnet18 --device t4 --host slow --batch 1", before);
    CHECK(misnamed.exit_code == 6);
    CHECK(misnamed.errors.find("pytorch-eager@slow.json: a file of this name holds the framework pytorch-eager on the "
                               "host slow") != std::string::npos);

    fs::remove_all(profiles / "frameworks");
    ftax::write_file((profiles / "frameworks").string(), "");
    const ProgramRun no_folder = run_program("predict resnet18 --device t4 --batch 1", before);
    CHECK(no_folder.exit_code == 6);
    CHECK(no_folder.errors.find("profiles/frameworks: Not a directory") != std::string::npos);
    fs::create_symlink("loop", folder.path / "loop");
    const ProgramRun loop =
        run_program("predict resnet18 --device t4", "export FTAX_DATA='" + (folder.path / "loop").string() + "'");
    CHECK(loop.exit_code == 6);
    CHECK(loop.errors.find("/loop is not a folder") != std::string::npos);

    fs::remove(profiles / "devices.json");
    const ProgramRun missing = run_program("predict resnet18 --device t4 --batch 1", before);
    CHECK(missing.exit_code == 6);
    CHECK(missing.errors.find("profiles/devices.json") != std::string::npos);
}
