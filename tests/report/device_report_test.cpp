#include "src/report/device_report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "predictors/profiles/device_file.hpp"

using namespace ftax;

namespace {

DeviceSpec small_card() {
    DeviceSpec card;
    card.slug = "small";
    card.name = "Small card";
    card.architecture = Architecture::turing;
    card.compute_capability_major = 7;
    card.compute_capability_minor = 5;
    card.sms = 10;
    card.boost_clock_hz = 1.5e9;
    card.memory_bytes = 4.0 * (1 << 30);
    card.memory_bandwidth_bytes_per_s = 200e9;
    card.l2_bytes = 1.5 * (1 << 20);
    card.shared_memory_per_sm_bytes = 64 * 1024;
    card.registers_per_sm = 65536;
    card.max_threads_per_sm = 1024;
    card.power_limit_w = 50;
    card.peak_flops_per_s[static_cast<int>(MathPath::fp32)] = 1.92e12;
    return card;
}

DeviceSpec large_card() {
    DeviceSpec card = small_card();
    card.slug = "large";
    card.name = "Large \x1b[31mcard";
    card.sms = 25;
    card.base_clock_hz = 1.2e9;
    card.memory_bandwidth_bytes_per_s = 500e9;
    card.peak_flops_per_s = {};
    card.peak_flops_per_s[static_cast<int>(MathPath::fp32)] = 4.8e12;
    card.peak_flops_per_s[static_cast<int>(MathPath::fp16_tensor)] = 38.4e12;
    return card;
}

}  // namespace

TEST_CASE("BAD_INPUTS 6: devices are listed one a line, and names from files cannot steer the terminal") {
    CHECK(report::device_list_table({small_card(), large_card()}, {}) ==
          "device  architecture   cc  SMs     boost  memory  bandwidth          fp32   fp16 tensor  name\n"
          "small   turing        7.5   10  1500 MHz   4 GiB   200 GB/s  1.92 TFLOP/s             –  Small card\n"
          "large   turing        7.5   25  1500 MHz   4 GiB   500 GB/s   4.8 TFLOP/s  38.4 TFLOP/s  Large "
          "\\x1b[31mcard\n");
}

TEST_CASE("devices are compared with the first") {
    const std::string table = report::device_diff_table({small_card(), large_card()}, {});
    CHECK(table.find("quantity                                        small         large  ratio\n") == 0);
    CHECK(table.find("\nsms                                                10            25  2.50×\n") !=
          std::string::npos);
    CHECK(table.find("\nbase_clock_hz                                       –      1200 MHz") != std::string::npos);
    CHECK(table.find("\nfp32_flops_per_s                         1.92 TFLOP/s   4.8 TFLOP/s  2.50×\n") !=
          std::string::npos);
    const auto json = nlohmann::json::parse(report::device_diff_json({small_card(), large_card()}));
    CHECK(json["devices"][1]["ratio_to_first"]["sms"] == 2.5);
    CHECK(json["devices"][1]["ratio_to_first"]["base_clock_hz"].is_null());
}

TEST_CASE("JSON carries SI units, whole numbers as such, and null for what a device lacks") {
    const std::string text = report::device_list_json({small_card()});
    CHECK(text.find("\"l2_bytes\": 1572864,") != std::string::npos);
    const auto json = nlohmann::json::parse(text);
    CHECK(json["schema_version"] == 1);
    CHECK(json["devices"][0]["fp32_flops_per_s"] == 1.92e12);
    CHECK(json["devices"][0]["base_clock_hz"].is_null());
}

TEST_CASE("a datasheet is shown with every number, its sources and the notes") {
    for (const DeviceSpec& device : device_specs()) {
        const auto datasheet = nlohmann::json::parse(device_text(device.slug));
        const std::string shown = report::device_table(device_text(device.slug), {});
        for (const auto& [key, source] : datasheet["sources"].items()) {
            CHECK(shown.find(key + ": " + source.get<std::string>()) != std::string::npos);
        }
        for (const auto& [key, value] : datasheet.items()) {
            if (value.is_object() && value.contains("value")) CHECK(shown.find("\n" + key + " ") != std::string::npos);
        }
        for (const auto& note : datasheet.value("notes", nlohmann::json::array())) {
            CHECK(shown.find("note: " + note.get<std::string>()) != std::string::npos);
        }
    }
}
