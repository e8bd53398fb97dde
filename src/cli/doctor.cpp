#include <fmt/format.h>

#include <array>
#include <string_view>

#include "calibration/bench/bench_device.hpp"
#include "graphs/base/named.hpp"
#include "graphs/files/machine.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {
using report::Align;
using report::Tone;
namespace {

struct Part {
    std::string_view name;
    bool built;
    std::string_view option, purpose;
};

#define FTAX_DEFINED(macro) (std::string_view(FTAX_TEXT(macro)) != #macro)

constexpr std::array parts{
    Part{"fit", FTAX_DEFINED(FTAX_WITH_FIT), "FTAX_BUILD_FIT", "fit profiles from measurements"},
    Part{"torch", FTAX_DEFINED(FTAX_WITH_TORCH), "FTAX_BUILD_TORCH", "read TorchScript, measure LibTorch"},
    Part{"cuda", FTAX_DEFINED(FTAX_WITH_CUDA), "FTAX_BUILD_CUDA", "measure kernels and dispatch"},
};

std::string doctor_table(const report::Grid& findings, report::Style style) {
    report::Table built({{"built in", Align::left}, {"", Align::left}, {"for", Align::left}, {"", Align::left}});
    for (const Part& part : parts)
        built.add({{std::string(part.name), Tone::strong},
                   {part.built ? "yes" : "no"},
                   {std::string(part.purpose)},
                   {part.built ? "" : fmt::format("cmake -D{}=ON", part.option), Tone::quiet}});
    return fmt::format("ftax {}\n\n{}\n{}", FTAX_VERSION, built.print(style), findings.print(style));
}

std::string doctor_json(const report::Grid& findings) {
    report::Json built_in;
    for (const Part& part : parts) built_in[std::string(part.name)] = part.built;
    return report::document({{"version", FTAX_VERSION}, {"built_in", built_in}, {"machine", findings.json()}});
}

int run_doctor(const OutputArguments& output) {
    using report::Unit, report::Value;
    const auto state = [](const Finding& finding) {
        return Value(finding.state, finding.state == FindingState::present ? Tone::plain : Tone::warning);
    };
    const report::Columns<Finding> columns{
        {"what", "this machine", Unit::text, [](const Finding& finding) { return Value(finding.what, Tone::strong); }},
        {"state", "", Unit::text, state},
        {"detail", "found", Unit::text, &Finding::detail},
        {"advice", "", Unit::text, [](const Finding& finding) { return Value(finding.advice, Tone::quiet); }}};
    std::vector<Finding> found = examine_machine();
    for (auto& [what, detail] : bench::host_environment(0.1))
        found.push_back({std::move(what), FindingState::present, std::move(detail), {}});
    const report::Grid findings = columns.select(found);
    return write_result(output, {.table = [&](report::Style style) { return doctor_table(findings, style); },
                                 .json = [&] { return doctor_json(findings); }});
}

}  // namespace

void setup_doctor(CLI::App& verb, Action& action) {
    add_json_option(verb, run_with(verb, action, run_doctor));
}

}  // namespace ftax::cli
