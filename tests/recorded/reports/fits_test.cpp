#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "ftax/error.hpp"
#include "src/cli/in_process.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"
#include "tests/recorded/recorded.hpp"
#include "tests/recorded/reports/outcome.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;
using namespace ftax::test;
using nlohmann::json;

namespace {

/// The parameters of a profile that a fit has written, if any: how many, what they are called, and a weighted sum of
/// their values and of their uncertainties.
std::vector<std::string> parameters_of(const std::string& path) {
    Digest names;
    double values = 0, deviations = 0;
    std::size_t count = 0;
    const std::string text = read(path);
    const json document = text.empty() ? json::object() : json::parse(text);
    const std::function<void(const json&, const std::string&)> add = [&](const json& value, const std::string& key) {
        if (value.is_structured()) {
            for (const auto& item : value.items()) add(item.value(), value.is_array() ? key : item.key());
        } else if (value.is_number()) {
            const double weight = 1 + static_cast<double>(count++ % 7) / 10, number = value.get<double>();
            names.add(key);
            (key.find("stddev") == std::string::npos ? values : deviations) +=
                weight * std::copysign(std::log1p(std::abs(number) * 1e9), number);
        } else if (key != "source" && value.is_string()) {
            names.add(value.get<std::string>());
        }
    };
    add(document, "");
    return {fmt::format("n{}", count), figure(values), figure(deviations), names.text(6)};
}

}  // namespace

TEST_CASE("fits write the parameters that are recorded") {
    const auto fit = [](std::span<const std::string> row) {
        const TemporaryFolder folder;
        cli::Result result;
        const std::string line = "fit " + row[0] + " -o OUT/d.json -q";
        const Redirected standard_output(stdout, folder.file("out")), standard_error(stderr, folder.file("err"));
        CLI::App app("", "ftax");
        cli::Action action;
        const std::vector<std::string> words = words_of_line(line, folder.file("."));
        cli::setup_verbs(app, action, words);
        scenario::forget_warnings();
        if (!cli::parse(app, words)) throw Error(ErrorCode::usage, "no command");
        static_cast<void>(action());
        std::vector<std::string> cells = parameters_of(folder.file("d.json"));
        for (std::string& cell : parameters_of(folder.file("h.json"))) cells.push_back(std::move(cell));
        return cells;
    };
    check_recorded("fits.tsv", 1, fit, 1e-4);
}
