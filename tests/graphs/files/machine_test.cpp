#include "graphs/files/machine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/temporary_folder.hpp"

using namespace ftax;

namespace {

const Finding& finding_of(const std::vector<Finding>& findings, std::string_view what) {
    const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.what == what; });
    REQUIRE(found != findings.end());
    return *found;
}

}  // namespace

TEST_CASE("the machine is described, with advice on missing components where needed") {
    const std::vector<Finding> findings = examine_machine();
    CHECK(finding_of(findings, "cpu").state != FindingState::absent);
    CHECK(finding_of(findings, "cpu").detail.find("logical cores") != std::string::npos);
    for (const char* what : {"gpu", "driver", "cuda", "cupti", "python", "working folder", "temporary folder"}) {
        CHECK_FALSE(finding_of(findings, what).detail.empty());
    }
    for (const Finding& finding : findings) {
        CAPTURE(finding.what);
        if (finding.state == FindingState::limited) CHECK_FALSE(finding.advice.empty());
    }
}

TEST_CASE("a machine without Python is a finding, not a failure") {
    const char* const before = std::getenv("PATH");
    const std::string saved = before ? before : "";
    ::setenv("PATH", "/nonexistent", 1);
    const std::vector<Finding> findings = examine_machine();
    ::setenv("PATH", saved.c_str(), 1);
    CHECK(finding_of(findings, "python").state == FindingState::absent);
}

TEST_CASE("packages of the Python on the path are listed in a line, torch or not") {
    const char* const before = std::getenv("PATH");
    const std::string saved = before ? before : "";
    for (const std::string packages : {"", "timm 1.0", "torch 2.4.0", "torch 2.4.0\ntimm 1.0\nonnx 1.16"}) {
        const test::TemporaryFolder folder;
        const std::string python =
            folder.write("python3", "#!/bin/sh\nprintf '3.11.2 /usr/bin/python3\\n" + packages + "\\n'\n");
        std::filesystem::permissions(python, std::filesystem::perms::owner_all);
        ::setenv("PATH", (std::filesystem::path(python).parent_path().string() + ":" + saved).c_str(), 1);
        const std::vector<Finding> findings = examine_machine();
        ::setenv("PATH", saved.c_str(), 1);
        CHECK(finding_of(findings, "python").detail == "3.11.2 /usr/bin/python3");
        const Finding& torch = finding_of(findings, "torch");
        const bool present = packages.starts_with("torch");
        CHECK((torch.state == FindingState::present) == present);
        CHECK(torch.advice.empty() == present);
        std::string line = packages;
        std::ranges::replace(line, '\n', ',');
        CHECK(torch.detail == (line.empty() ? "not in this python" : line));
    }
}
