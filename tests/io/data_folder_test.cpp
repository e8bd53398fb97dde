#include "src/io/data_folder.hpp"

#include <doctest/doctest.h>

#include "ftax/framework.hpp"
#include "tests/failure.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;

TEST_CASE("what the build made of data/ is what its files say") {
    const std::string data = FTAX_SOURCE_DIR "/data";
    CHECK(to_text(embedded_device_profile()) == to_text(read_device_profiles(data)));
    const std::vector<FrameworkProfile> read = read_framework_profiles(data);
    CHECK(read.size() >= 20);
    for (const FrameworkProfile& profile : read) {
        CAPTURE(profile.framework);
        CAPTURE(profile.host);
        CHECK(to_text(framework_profile(profile.framework, profile.host)) == to_text(profile));
    }
    for (const DeviceSpec& spec : device_specs()) {
        const DeviceSpec file = read_device_spec(data + "/devices/" + spec.slug + ".json");
        CAPTURE(spec.slug);
        CHECK(spec.slug == file.slug);
        CHECK(spec.name == file.name);
        CHECK(spec.aliases == file.aliases);
        CHECK(spec.architecture == file.architecture);
        CHECK(spec.compute_capability_major == file.compute_capability_major);
        CHECK(spec.compute_capability_minor == file.compute_capability_minor);
        CHECK(spec.sms == file.sms);
        CHECK(spec.base_clock_hz == file.base_clock_hz);
        CHECK(spec.boost_clock_hz == file.boost_clock_hz);
        CHECK(spec.memory_bytes == file.memory_bytes);
        CHECK(spec.memory_bandwidth_bytes_per_s == file.memory_bandwidth_bytes_per_s);
        CHECK(spec.inline_ecc_share == file.inline_ecc_share);
        CHECK(spec.l2_bytes == file.l2_bytes);
        CHECK(spec.l2_bytes_per_clock == file.l2_bytes_per_clock);
        CHECK(spec.shared_memory_per_sm_bytes == file.shared_memory_per_sm_bytes);
        CHECK(spec.registers_per_sm == file.registers_per_sm);
        CHECK(spec.max_threads_per_sm == file.max_threads_per_sm);
        CHECK(spec.power_limit_w == file.power_limit_w);
        CHECK(spec.peak_flops_per_s == file.peak_flops_per_s);
    }
}

TEST_CASE("a data folder without profiles is rejected with the name of the missing file") {
    const test::TemporaryFolder folder;
    CHECK(test::failure_of([&] { return read_device_profiles(folder.path.string()); }).says("profiles/devices.json"));
    CHECK(test::failure_of([&] { return read_framework_profiles(folder.path.string()); }).says("profiles/frameworks"));
}
