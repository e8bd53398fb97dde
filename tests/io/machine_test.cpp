#include "src/io/machine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

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
