#include "predictors/lowering/library_behaviour.hpp"

#include <array>
#include <bit>
#include <limits>
#include <map>
#include <vector>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"

namespace ftax {
namespace {

constexpr std::string_view library_names = "cudnn tensorrt torch none onnxruntime vllm sglang tensorrt_llm llama_cpp";

struct Rule {
    std::size_t field;
    Library library;
    double from, until, from_chip, until_chip;
};

std::vector<Rule> read_rules() {
    std::vector<Rule> rules;
    std::map<std::string_view, std::size_t> fields;
    for (const std::string_view name : names_in(library_rule_names)) fields.emplace(name, fields.size());
    for_each_data_row(embedded_text("data/library_rules.tsv"), [&](DataRow row) {
        constexpr double newest = std::numeric_limits<double>::infinity();
        rules.push_back({fields.at(row.text()), row.choice<Library>(library_names), row.number(), row.number(newest),
                         row.number(), row.number(newest)});
    });
    return rules;
}

}  // namespace

LibraryBehaviour behaviour_of(const LibraryVersions& versions, Library engine, const DeviceSpec& device) {
    static const std::vector<Rule> rules = read_rules();
    const int chip = 10 * device.compute_capability_major + device.compute_capability_minor;
    const int shared[] = {versions.cudnn, versions.tensorrt, versions.torch};
    std::array<bool, sizeof(LibraryBehaviour)> holds{};
    for (const auto& [field, library, from, until, from_chip, until_chip] : rules) {
        if (library > Library::none && library != engine) continue;
        const int version = library < Library::none ? shared[static_cast<int>(library)] : versions.engine;
        if (version >= from && version < until && chip >= from_chip && chip < until_chip) holds[field] = true;
    }
    return std::bit_cast<LibraryBehaviour>(holds);
}

}  // namespace ftax
