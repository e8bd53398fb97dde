#include "ftax/device.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ftax/error.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/files/csv.hpp"
#include "predictors/profiles/device_file.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"

using namespace ftax;

namespace {

std::string failure(const std::string& text) {
    try {
        static_cast<void>(parse_device(text, "card.json"));
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::profile);
        return error.what();
    }
    return "accepted";
}

/// 89 for compute capability 8.9.
int capability(const DeviceSpec& device) {
    return 10 * device.compute_capability_major + device.compute_capability_minor;
}

std::vector<double> numbers(const DeviceSpec& d) {
    std::vector<double> all{static_cast<double>(d.sms),
                            d.base_clock_hz.value_or(0),
                            d.boost_clock_hz,
                            d.memory_bytes,
                            d.memory_bandwidth_bytes_per_s,
                            d.inline_ecc_share.value_or(0),
                            d.l2_bytes,
                            d.l2_bytes_per_clock.value_or(0),
                            d.shared_memory_per_sm_bytes,
                            d.registers_per_sm,
                            static_cast<double>(d.max_threads_per_sm),
                            d.power_limit_w,
                            d.least_power_w.value_or(0),
                            d.host_slowdown.value_or(0),
                            d.kernel_gap_s.value_or(0),
                            d.peer_bandwidth_bytes_per_s.value_or(0),
                            static_cast<double>(d.linked_cards)};
    for (const auto& peak : d.peak_flops_per_s) all.push_back(peak.value_or(0));
    return all;
}

nlohmann::json t4() {
    return nlohmann::json::parse(device_text("t4"));
}

}  // namespace

TEST_CASE("every datasheet is consistent with itself") {
    CHECK(device_specs().size() >= 50);
    for (const DeviceSpec& device : device_specs()) {
        CAPTURE(device.slug);
        const auto json = nlohmann::json::parse(device_text(device.slug));
        CHECK(json["slug"] == device.slug);
        const double cores = device.sms * json["fp32_cores_per_sm"]["value"].get<double>();
        CHECK(device.peak(MathPath::fp32).value() == approx(cores * 2 * device.boost_clock_hz).epsilon(0.03));
        CHECK(device.base_clock_hz.value_or(0) < device.boost_clock_hz);
        CHECK(*device.peak(MathPath::fp64) < *device.peak(MathPath::fp32));
        CHECK(device.l2_bytes < device.memory_bytes);
        CHECK(device.memory_bandwidth_bytes_per_s < device.peak(MathPath::fp32).value());
        // The narrower the type, the faster its tensor cores; fp32 accumulation never beats fp16 accumulation.
        const auto& peaks = json["peak_flops_per_s"];
        const char* ascending[] = {"fp32", "tf32", "fp16_tensor", "fp16_tensor_fp16_accumulate", "int8_tensor"};
        double previous = 0;
        for (const char* path : ascending) {
            // The GTX 16 emulates tensor cores.
            if (!peaks.contains(path) || device.slug.starts_with("gtx-16")) continue;
            // Blackwell Ultra gave up its INT8 units for FP4.
            if (std::string_view(path) == "int8_tensor" && capability(device) == 103) continue;
            CAPTURE(path);
            CHECK(peaks[path]["value"].get<double>() >= previous);
            previous = peaks[path]["value"].get<double>();
        }
    }
}

TEST_CASE("a device is found by each of its names, as if all datasheets were read") {
    std::map<std::string, std::string> expected;  // the first of a name counts, slugs before names
    std::vector<std::string> slugs;
    for (const DeviceSpec& device : device_specs()) {
        slugs.push_back(device.slug);
        expected.emplace(normalized_name(device.slug), device.slug);
    }
    CHECK(device_slugs() == slugs);
    for (const DeviceSpec& device : device_specs()) {
        expected.emplace(normalized_name(device.name), device.slug);
        for (const std::string& alias : device.aliases) expected.emplace(normalized_name(alias), device.slug);
    }
    CHECK(expected.size() > slugs.size());
    for (const auto& entry : expected) {
        CHECK_MESSAGE(device_spec(entry.first).slug == entry.second, entry.first);
        CHECK_MESSAGE(&device_spec(entry.first) == &device_spec(entry.second), entry.first);
    }
    CHECK(test::failure_of([] { return device_spec("sources"); }).says("unknown device 'sources'"));
}

TEST_CASE("each number of a datasheet, changed alone, changes the device") {
    std::set<std::string> changed;
    for (const DeviceSpec& device : device_specs()) {
        auto sheet = nlohmann::json::parse(device_text(device.slug));
        const auto change = [&](nlohmann::json& field, const std::string& key) {
            const nlohmann::json kept = field["value"];
            if (!kept.is_number()) return;
            field["value"] = kept.is_number_integer() ? nlohmann::json(2 * kept.get<std::int64_t>())
                                                      : nlohmann::json(2 * kept.get<double>());
            CHECK_MESSAGE(numbers(parse_device(sheet.dump(), "card.json")) != numbers(device), device.slug, " ", key);
            field["value"] = kept;
            changed.insert(key);
        };
        for (auto& [key, field] : sheet.items()) {
            // For readers of the file: the lanes follow from the rate.
            if (field.is_object() && field.contains("value") && key != "fp32_cores_per_sm") change(field, key);
        }
        for (int i = 0; i < math_path_count; ++i) {
            const std::string path(name_of(static_cast<MathPath>(i)));
            if (auto& peaks = sheet["peak_flops_per_s"]; peaks.contains(path)) change(peaks[path], path);
        }
    }
    CHECK(changed.size() >= numbers(device_specs()[0]).size() - 3);
}

TEST_CASE("every datasheet has the numbers that its chip's kernels need") {
    for (const DeviceSpec& device : device_specs()) {
        CAPTURE(device.slug);
        const auto peaks = nlohmann::json::parse(device_text(device.slug))["peak_flops_per_s"];
        const int chip = capability(device);
        CHECK(peaks.contains("fp16_tensor") == (chip >= 70));
        if (chip >= 70)
            CHECK((peaks["fp16_tensor"]["value"] < peaks["fp32"]["value"]) == device.slug.starts_with("gtx-16"));
        CHECK(peaks.contains("bf16_tensor") == (chip >= 80));
        CHECK(peaks.contains("fp8_tensor") == (chip >= 89));
        CHECK(peaks.contains("fp4_tensor") == (chip >= 100));
        CHECK((device.architecture == Architecture::rtx_blackwell) == (chip >= 120));
        if (chip >= 89) CHECK(peaks["fp8_tensor"]["value"] >= peaks["bf16_tensor"]["value"]);
        if (chip >= 100) CHECK(peaks["fp4_tensor"]["value"] >= peaks["fp8_tensor"]["value"]);
        // The L2 slices of the Jetsons are not published.
        const bool jetson = chip == 72 || chip == 87 || chip == 110;
        CHECK(device.l2_bytes_per_clock.has_value() == !jetson);
        if (!device.l2_bytes_per_clock) continue;
        CHECK(*device.l2_bytes_per_clock * device.boost_clock_hz > 1.5 * device.memory_bandwidth_bytes_per_s);
    }
}

TEST_CASE("no spelling belongs to two devices, and none is given twice") {
    std::set<std::string> seen;
    for (const DeviceSpec& device : device_specs()) {
        CHECK_MESSAGE(seen.insert(normalized_name(device.slug)).second, device.slug);
        if (normalized_name(device.name) != normalized_name(device.slug)) {
            CHECK_MESSAGE(seen.insert(normalized_name(device.name)).second, device.name);
        }
        for (const std::string& alias : device.aliases)
            CHECK_MESSAGE(seen.insert(normalized_name(alias)).second, alias);
    }
}

TEST_CASE("devices are found under the names that drivers, frameworks and data sets give them") {
    const std::map<std::string, std::string> names{
        {"Tesla_V100-PCIE-32GB", "v100-pcie-32gb"},
        {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
        {"NVIDIA GeForce RTX 3090", "rtx-3090"},
        {"NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"},
        {"1080ti", "gtx-1080-ti"},
        {"titanx", "titan-x-pascal"},
        {"TITAN_XP", "titan-xp"},
        {"quadro rtx 8000", "quadro-rtx-8000"},
        {"NVIDIA GH200 480GB", "gh200-96gb"},
        {"NVIDIA B300 SXM6 AC", "b300"},
        {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-blackwell-max-q"},
        {"NVIDIA GeForce RTX 3080 Ti Laptop GPU", "rtx-3080-ti-laptop"}};
    for (const auto& [name, slug] : names) CHECK(device_spec(name).slug == slug);
    CHECK(device_spec("T4").peak(MathPath::fp16_tensor).value() == approx(65e12).epsilon(0.01));
    CHECK_FALSE(device_spec("GTX 1080 Ti").peak(MathPath::fp16_tensor));
}

TEST_CASE("a name of several devices is taken as one of them with a warning that lists the others") {
    const auto warning = [](const char* name) {
        const std::vector<std::string> all = device_profile(name).warnings;
        return all.empty() || all[0].find(" is taken as ") == std::string::npos ? "" : all[0];
    };
    CHECK(warning("a100") == "a100 is taken as a100-sxm4-40gb; others: a100-pcie-40gb, a100-pcie-80gb, a100-sxm4-80gb");
    CHECK(warning("A100 80GB") == "A100 80GB is taken as a100-sxm4-80gb; others: a100-pcie-80gb");
    CHECK(warning("NVIDIA H100") == "NVIDIA H100 is taken as h100-sxm5-80gb; others: h100-nvl, h100-pcie-80gb");
    CHECK(warning("RTX PRO 6000").ends_with("others: rtx-pro-6000-blackwell-max-q, rtx-pro-6000-blackwell-server"));
    for (const char* clear : {"t4", "Tesla T4", "3080", "RTX 3080", "1080ti", "l40", "NVIDIA H100 80GB HBM3",
                              "a100-pcie-40gb", "Tesla V100-PCIE-32GB"})
        CHECK_MESSAGE(warning(clear) == "", clear);
}

TEST_CASE("a CPU and an AMD card are refused with what to give instead") {
    const auto failure = [](const char* name) {
        return test::failure_of([&] { return device_spec(name).slug; }).message;
    };
    for (const char* name : {"cpu", "Xeon Gold 6226R", "AMD EPYC 7763", "Ryzen 9"})
        CHECK_MESSAGE(failure(name).find("`ftax calibrate --device cpu`") != std::string::npos, name);
    for (const char* name : {"mi300x", "MI250", "amd", "AMD Instinct MI300X", "Radeon RX 7900"})
        CHECK_MESSAGE(failure(name).find("AMD GPUs are not modelled") != std::string::npos, name);
}

TEST_CASE("every GPU of the measurement files is a known device") {
    const char* variable = std::getenv("FTAX_MEASUREMENTS");
    const std::filesystem::path folder = variable ? variable : FTAX_SOURCE_DIR "/../shared/measurements";
    if (!std::filesystem::exists(folder)) {
        MESSAGE("skipped: no measurements at ", folder.string());
        return;
    }
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".csv") continue;
        const CsvTable table = read_csv(entry.path().string());
        std::set<std::string_view> names;
        if (const auto column = table.column("gpu")) {
            for (std::size_t row = 0; row < table.rows(); ++row) names.insert(table.row(row)[*column]);
        } else if (table.column("arch")) {
            for (const std::string_view name : table.header().subspan(1)) names.insert(name.substr(0, name.rfind('_')));
        } else {
            continue;
        }
        ++files;
        for (const std::string_view name : names) CHECK_NOTHROW(static_cast<void>(device_spec(name)));
    }
    CHECK(files >= 8);
}

TEST_CASE("a setting behind a device's name is a power mode, a power limit or a clock") {
    const DeviceSpec& orin = device_spec("jetson-agx-orin-64gb");
    const DeviceSpec& low = device_spec("AGX Orin@15W");
    CHECK(low.slug == "jetson-agx-orin-64gb@15w");
    CHECK(low.sms == 6);
    CHECK(low.boost_clock_hz == 420.75e6);
    CHECK(low.power_limit_w == 15);
    CHECK(!low.least_power_w);
    const double share = 6 * 420.75e6 / (orin.sms * orin.boost_clock_hz);
    CHECK(*low.peak(MathPath::fp32) == doctest::Approx(share * *orin.peak(MathPath::fp32)));
    CHECK(low.memory_bandwidth_bytes_per_s < 0.7 * orin.memory_bandwidth_bytes_per_s);
    const DeviceSpec &t4 = device_spec("t4"), &slow = device_spec("t4@795MHz"), &capped = device_spec("Tesla T4@50w");
    CHECK(slow.boost_clock_hz == 795e6);
    CHECK(*slow.peak(MathPath::fp32) == doctest::Approx(*t4.peak(MathPath::fp32) / 2));
    CHECK(capped.power_limit_w == 50);
    CHECK(capped.boost_clock_hz == t4.boost_clock_hz);
    // Parameters that were fitted on the board hold for it in any mode.
    CHECK(device_profile("t4@50w").parameters.size() == device_profile("t4").parameters.size());
    CHECK(device_profile("t4@50w").measured == device_profile("t4").measured);
    const auto refused = [](std::string_view name) {
        return test::failure_of([&] { return device_spec(name).slug; }).message;
    };
    CHECK(refused("jetson-agx-orin-64gb@40w").find("the power modes are 30w, 15w, 50w, maxn") != std::string::npos);
    CHECK(refused("t4@71w").find("a power limit of at most 70 W, or a clock of at most 1590 MHz") != std::string::npos);
    CHECK(refused("jetson-orin-nx-16gb@60w").find("the clocks of its power modes are not known") != std::string::npos);
    for (const char* wrong : {"t4@0w", "t4@-5w", "t4@nanw", "t4@2000mhz", "t4@maxn", "t4@w"})
        CHECK(!refused(wrong).empty());
}

TEST_CASE("a module is predicted in the mode that it is shipped in, with an interval of all modes, or in a named one") {
    const DeviceProfile shipped = device_profile("jetson-agx-orin-64gb"),
                        named = device_profile("jetson-agx-orin-64gb@30w");
    CHECK(shipped.device.boost_clock_hz == named.device.boost_clock_hz);
    CHECK(shipped.device.slug == "jetson-agx-orin-64gb");
    CHECK(shipped.factors.covariance[0][0] > 5 * named.factors.covariance[0][0]);
    CHECK(shipped.factors.log_mean[0] == 0);
    CHECK(shipped.warnings.back().find("jetson-agx-orin-64gb@30w") != std::string::npos);
    CHECK(device_profile("jetson-agx-orin-32gb").factors.log_mean[0] > 0);  // the clocks of its modes are not known
}

TEST_CASE("a laptop is predicted at the highest power that makers set, with an interval of all, or at a named one") {
    const DeviceProfile any = device_profile("NVIDIA GeForce RTX 4060 Laptop GPU"),
                        least = device_profile("rtx-4060-laptop@35w");
    CHECK(any.device.power_limit_w == 115);
    CHECK(least.device.boost_clock_hz == 1470e6);
    CHECK(any.factors.covariance[0][0] > 2 * least.factors.covariance[0][0]);
    CHECK(any.warnings.back().find("rtx-4060-laptop@115w") != std::string::npos);
    CHECK(device_spec("RTX 3080 Ti Mobile").least_power_w == 80);
}

TEST_CASE("an unknown device is a usage error that names near ones") {
    const test::Failure failure = test::failure_of([] { return device_spec("quadro rtx 800"); });
    CHECK(failure.code == ErrorCode::usage);
    CHECK(failure.says("quadro-rtx-8000"));
    CHECK_THROWS_AS(static_cast<void>(device_spec("")), Error);
    CHECK_THROWS_AS(static_cast<void>(device_text("../devices/t4")), Error);
}

TEST_CASE("BAD_INPUTS 41: a datasheet with an impossible value names the field") {
    CHECK(failure(t4().dump()) == "accepted");
    const auto changed = [](const char* pointer, nlohmann::json value) {
        nlohmann::json device = t4();
        device[nlohmann::json::json_pointer(pointer)] = std::move(value);
        return failure(device.dump());
    };
    CHECK(changed("/sms/value", 0) == "card.json: sms.value: must be a positive number");
    CHECK(changed("/sms/value", 2.5) == "card.json: sms.value: must be a whole number");
    CHECK(changed("/l2_bytes/value", -1) == "card.json: l2_bytes.value: must be a positive number");
    CHECK(changed("/l2_bytes/value", nullptr) == "card.json: l2_bytes.value: must be a positive number");
    CHECK(changed("/memory_bandwidth_bytes_per_s/value", 1e-308) ==
          "card.json: memory_bandwidth_bytes_per_s.value: must be a number from 1e-30 to 1e30");
    CHECK(changed("/power_limit_w/value", 1e300) ==
          "card.json: power_limit_w.value: must be a number from 1e-30 to 1e30");
    CHECK(changed("/l2_bytes/value", "4 MB") == "card.json: l2_bytes.value: must be a positive number");
    CHECK(changed("/l2_bytes/source", "hearsay") ==
          "card.json: l2_bytes.source: is neither a key of sources nor \"derived: …\"");
    CHECK(changed("/peak_flops_per_s/fp32/value", 0) ==
          "card.json: peak_flops_per_s.fp32.value: must be a positive number");
    CHECK(changed("/slug", "") == "card.json: slug: must be a non-empty string");
    CHECK(changed("/aliases/0", 7) == "card.json: aliases[0]: must be a non-empty string");
    CHECK(changed("/architecture", "kepler") == "card.json: architecture: unknown architecture");
    CHECK(changed("/compute_capability", "7,5").find("compute_capability") != std::string::npos);
    CHECK(changed("/sm_count", 40).find("card.json: sm_count: is not a known field") == 0);
    nlohmann::json without = t4();
    without["peak_flops_per_s"].erase("fp32");
    CHECK(failure(without.dump()) == "card.json: peak_flops_per_s.fp32: is missing");
    CHECK(failure("[]") == "card.json: the document: must be an object");
}
