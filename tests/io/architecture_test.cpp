#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "ftax/device.hpp"
#include "src/io/architecture_file.hpp"

using namespace ftax;

namespace {

std::vector<std::string> tiles_of(const GemmCatalogue& catalogue) {
    std::vector<std::string> names;
    for (const GemmCandidate& candidate : catalogue.candidates) names.push_back(candidate.tile.name);
    return names;
}

}  // namespace

TEST_CASE("every datasheet has a chip with features, tiles and rates") {
    for (const DeviceSpec& device : device_specs()) {
        CAPTURE(device.slug);
        const ArchitectureSpec& chip = device.chip();
        CHECK(chip.architecture == device.architecture);
        if (device.architecture == Architecture::cpu) continue;
        CHECK_FALSE(chip.kin.empty());
        CHECK_FALSE(chip.layers.candidates.empty());
        CHECK_FALSE(chip.batched.candidates.empty());
        CHECK_FALSE(chip.winograd_tiles.empty());
        CHECK(chip.f32_energy_per_flop_j > 1e-12);
        CHECK(chip.dram_share > 0.5);
        CHECK(chip.dram_share <= 1);
        if (device.peak(MathPath::fp16_tensor)) CHECK_FALSE(chip.tensor.candidates.empty());
    }
}

TEST_CASE("a generation inherits what its file does not say, a chip what its generation does not") {
    const auto pascal = read_architecture(Architecture::pascal, 6, 1);
    const auto gp100 = read_architecture(Architecture::pascal, 6, 0);
    CHECK(pascal.schedulers_per_sm == 4);
    CHECK(gp100.schedulers_per_sm == 2);
    CHECK(tiles_of(gp100.layers) == tiles_of(pascal.layers));
    CHECK(pascal.layers.candidates.back().tile.resident == 8);
    CHECK(gp100.layers.candidates.back().tile.resident == 7);
    CHECK(tiles_of(gp100.batched) == std::vector<std::string>{"128x64"});  // Maxwell's
    const auto ga100 = read_architecture(Architecture::ampere, 8, 0),
               ga102 = read_architecture(Architecture::ampere, 8, 6);
    CHECK_FALSE(ga100.integer_shares_lanes);
    CHECK(ga102.integer_shares_lanes);
    CHECK(
        read_architecture(Architecture::volta, 7, 0).layers_without_lt.candidates.empty());  // taken back from Maxwell
    CHECK(read_architecture(Architecture::hopper, 9, 0).asynchronous_copies);                // Ampere's
    CHECK(read_architecture(Architecture::cpu, 0, 0).layers.candidates.empty());
}

TEST_CASE("an architecture is read once and stays where it is") {
    const ArchitectureSpec& first = architecture_spec(Architecture::turing, 7, 5);
    CHECK(&first == &architecture_spec(Architecture::turing, 7, 5));
    CHECK(&first == &device_spec("t4").chip());
}
