#include <doctest/doctest.h>

#include <string>

#include "graphs/files/file.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax::test;

namespace {

constexpr const char* header = "arch\n";
const std::string small = "|none~0|+|none~0|none~1|+|none~0|none~1|nor_conv_3x3~2|";
const std::string large =
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|";

/// The predicted latency in a row of the output.
double latency_ms(const std::string& output, const std::string& row) {
    const std::size_t at = output.find(row + ",");
    REQUIRE(at != std::string::npos);
    return std::stod(output.substr(at + row.size() + 1));
}

}  // namespace

TEST_CASE("nas scores the other lines when one does not parse, and says which and what was expected") {
    const TemporaryFolder folder;
    const std::string archs = folder.write("archs.csv", header + small + "\n|conv~0|\n" + large + "\n");
    const ProgramRun run = run_ftax({"nas", "--space", "nasbench201", archs, "--device", "1080ti", "--batch", "1,256"});
    CHECK(run.exit_code == 6);
    CHECK(run.errors.find(archs + ":3: nasbench201: expected one of none, skip_connect") != std::string::npos);
    CHECK(run.output.starts_with("arch,batch,predicted_ms\n"));
    CHECK(latency_ms(run.output, large + ",1") > latency_ms(run.output, small + ",1"));
    CHECK(latency_ms(run.output, large + ",256") > latency_ms(run.output, large + ",1"));
}

TEST_CASE("nas takes a version of the framework in place of the measured host") {
    const TemporaryFolder folder;
    const std::string archs = folder.write("archs.csv", header + large + "\n");
    const auto latency = [&](const std::string& framework) {
        const ProgramRun run = run_ftax(
            {"nas", "--space", "nasbench201", archs, "--device", "t4", "--batch", "1", "--framework", framework});
        CHECK_MESSAGE(run.exit_code == 0, run.errors);
        return latency_ms(run.output, large + ",1");
    };
    CHECK(latency("pytorch-eager@2.4") != latency("pytorch-eager@1.13"));
    CHECK(latency("pytorch-eager@1.13") != latency("pytorch-eager"));
}

TEST_CASE("nas anchors its host on measured architectures") {
    const TemporaryFolder folder;
    const std::string archs = folder.write("archs.csv", header + small + "\n" + large + "\n");
    const std::vector<std::string> arguments{"nas", "--space", "nasbench201", archs, "--device", "1080ti"};
    const double before = latency_ms(run_ftax(arguments).output, large + ",1");
    const std::string anchor = folder.write(
        "anchor.csv", "arch,batch,latency_ms\n" + large + ",1," + std::to_string(2 * before) + "\nnonsense,1,3\n");
    std::vector<std::string> anchored = arguments;
    anchored.insert(anchored.end(), {"--anchor", anchor});
    const ProgramRun run = run_ftax(anchored);
    CHECK(run.exit_code == 0);
    CHECK(run.errors.find(anchor + ":3: nasbench201: expected") != std::string::npos);
    CHECK(latency_ms(run.output, large + ",1") == approx(2 * before).epsilon(0.05));
    CHECK(run_ftax({"nas", "--space", "nasbench201", archs, "--device", "1080ti", "--anchor", archs}).exit_code == 6);
}

TEST_CASE("nas refuses files that lack what it reads, as validate does") {
    const TemporaryFolder folder;
    const std::string other = folder.write("other.csv", "network,accuracy\n" + small + ",70\n");
    const std::string unrated = folder.write("unrated.csv", "arch,accuracy\n" + small + ",good\n");
    const auto run = [](const std::string& archs, const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"nas", "--space", "nasbench201", archs, "--device", "1080ti"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_ftax(arguments);
    };
    const ProgramRun without_column = run(other, {});
    CHECK(without_column.exit_code == 6);
    CHECK(without_column.errors == "ftax: " + other + ": no column arch\n");
    CHECK(run_ftax({"validate", other}).exit_code == 6);
    CHECK(run(unrated, {"--top", "1", "--score", "accuracy"}).exit_code == 6);
    CHECK(run(unrated, {"--top", "1", "--score", "beauty"}).exit_code == 2);  // a name of the command line
}

TEST_CASE("nas refuses unknown spaces and devices with what there is") {
    const TemporaryFolder folder;
    const std::string archs = folder.write("archs.csv", header + small + "\n");
    const ProgramRun space = run_ftax({"nas", "--space", "darts", archs, "--device", "1080ti"});
    CHECK(space.exit_code == 2);
    CHECK(space.errors.find("available: nasbench201, fbnet, ofa") != std::string::npos);
    CHECK(run_ftax({"nas", "--space", "nasbench201", archs, "--device", "rtx-9999"}).exit_code == 2);
    CHECK(run_ftax({"nas", "--space", "nasbench201", folder.file("none.csv"), "--device", "1080ti"}).exit_code == 2);
}

TEST_CASE("nas keeps the Pareto front of latency and score") {
    const TemporaryFolder folder;
    const std::string archs =
        folder.write("archs.csv", "arch,accuracy\n" + small + ",50\n" + large + ",70\n" + large + ",60\n");
    const ProgramRun run =
        run_ftax({"nas", "--space", "nasbench201", archs, "--device", "1080ti", "--pareto", "--score", "accuracy"});
    CHECK(run.exit_code == 0);
    CHECK(run.output.find(small) < run.output.find(large));
    CHECK(run.output.find(large) == run.output.rfind(large));
    CHECK(run.output.starts_with("arch,batch,predicted_ms,accuracy\n"));
    CHECK(run.output.ends_with(",70\n"));
}

TEST_CASE("nas waits after blocks as the space was measured, unless overridden") {
    const TemporaryFolder folder;
    const std::string arch = "0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0";
    const std::string archs = folder.write("archs.csv", header + arch + "\n");
    const auto latency = [&](const std::vector<std::string>& flags) {
        std::vector<std::string> arguments{"nas", "--space", "fbnet", archs, "--device", "1080ti"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        return latency_ms(run_ftax(arguments).output, arch + ",1");
    };
    CHECK(latency({}) == latency({"--waits"}));
    CHECK(latency({"--no-waits"}) < latency({"--waits"}));
    CHECK(run_ftax({"nas", "--space", "fbnet", archs, "--device", "1080ti", "--waits", "--no-waits"}).exit_code == 2);
}

TEST_CASE("nas streams to standard output what it writes to a file, and keeps to a largest latency and a count") {
    const TemporaryFolder folder;
    const std::string archs = folder.write("archs.csv", header + large + "\n" + small + "\n" + large + "\n");
    const std::vector<std::string> all{"nas",      "--space", "nasbench201", archs,
                                       "--device", "1080ti",  "--batch",     "1,256"};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = all;
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_ftax(arguments).output;
    };
    const std::string streamed = with({});
    with({"-o", folder.file("out.csv")});
    CHECK(ftax::read_file(folder.file("out.csv")) == streamed);
    const std::string limit =
        std::to_string((latency_ms(streamed, small + ",1") + latency_ms(streamed, large + ",1")) / 2) + "ms";
    const std::string fast = with({"--max-latency", limit});
    CHECK(fast.find(large) == std::string::npos);
    CHECK(latency_ms(fast, small + ",256") == latency_ms(streamed, small + ",256"));
    CHECK(with({"--top", "1"}) == fast);
}

TEST_CASE("nas searches for several cards at once, within a latency and a memory that all of them keep") {
    const TemporaryFolder folder;
    const std::string archs = folder.write("archs.csv", header + large + "\n" + small + "\n");
    const auto with = [&](const std::string& devices, const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"nas",      "--space", "nasbench201", archs,
                                           "--device", devices,   "--batch",     "256,1"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_ftax(arguments);
    };
    const std::string both = with("1080ti,t4", {}).output;
    CHECK(both.starts_with("arch,device,batch,predicted_ms\n"));
    for (const std::string card : {"gtx-1080-ti", "t4"})
        for (const std::string& arch : {small, large})
            CHECK(latency_ms(both, arch + "," + card + ",256") == latency_ms(with(card, {}).output, arch + ",256"));
    // The slower of the two cards has to keep the latency.
    const auto of_large = [&](const std::string& card) { return latency_ms(both, large + "," + card + ",256"); };
    const double between = (of_large("gtx-1080-ti") + of_large("t4")) / 2;
    const std::string limited = with("1080ti,t4", {"--max-latency", std::to_string(between) + "ms"}).output;
    CHECK(limited.find(large) == std::string::npos);
    CHECK(limited.find(small + ",t4,1,") != std::string::npos);
    // Memory is that of `predict`: 256 images through the larger network need more.
    const std::string all = with("t4", {"--max-memory", "16GB"}).output;
    CHECK(all == with("t4", {}).output);
    CHECK(with("t4", {"--max-memory", "1MB"}).output == "arch,batch,predicted_ms\n");
    const auto least_mb = [&](const std::string& arch) {
        double low = 1, high = 16e3;
        while (high - low > 0.01) {
            const double middle = (low + high) / 2;
            const bool fits =
                with("t4", {"--max-memory", std::to_string(middle) + "MB"}).output.find(arch) != std::string::npos;
            (fits ? high : low) = middle;
        }
        return high;
    };
    const double least = least_mb(small);
    CHECK(least > 300);
    CHECK(least_mb(large) > least + 0.1);  // its weights
    CHECK(with("t4", {"--max-memory", "much"}).exit_code == 2);
    CHECK(with("t4,", {}).exit_code == 2);
}
