#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "src/io/device_file.hpp"
#include "src/python/bindings.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::python {
namespace {

nb::list parameters(const std::vector<Parameter>& values) {
    nb::list list;
    for (const Parameter& p : values) {
        nb::dict row;
        row["name"] = p.name;
        row["value"] = p.value;
        row["relative_stddev"] = p.relative_stddev;
        row["source"] = p.source;
        list.append(row);
    }
    return list;
}

nb::dict datasheet(const DeviceSpec& device) {
    nb::dict sheet;
    sheet["slug"] = device.slug;
    sheet["name"] = device.name;
    sheet["aliases"] = device.aliases;
    sheet["architecture"] = std::string(name_of(device.architecture));
    sheet["sms"] = device.sms;
    sheet["boost_clock_hz"] = device.boost_clock_hz;
    sheet["memory_bytes"] = device.memory_bytes;
    sheet["memory_bandwidth_bytes_per_s"] = device.memory_bandwidth_bytes_per_s;
    sheet["l2_bytes"] = device.l2_bytes;
    sheet["power_limit_w"] = device.power_limit_w;
    nb::dict peaks;
    for (int path = 0; path < math_path_count; ++path) {
        const auto peak = device.peak(static_cast<MathPath>(path));
        if (peak) peaks[nb::str(std::string(name_of(static_cast<MathPath>(path))).c_str())] = *peak;
    }
    sheet["peak_flops_per_s"] = peaks;
    return sheet;
}

nb::dict device(const std::string& name, const std::string& profile) {
    const DeviceProfile found = device_profile(name, profile);
    nb::dict result = datasheet(found.device);
    result["version"] = found.version;
    result["warnings"] = found.warnings;
    result["parameters"] = parameters(found.parameters);
    return result;
}

nb::dict framework(const std::string& name, const std::string& host, const std::string& profile) {
    LibraryVersions libraries;
    const FrameworkProfile found =
        scenario::resolve_framework({.framework = name, .host = host, .framework_profile = profile}, libraries);
    nb::dict result;
    result["framework"] = found.framework;
    result["version"] = found.version;
    result["host"] = found.host;
    result["warnings"] = found.warnings;
    result["parameters"] = parameters(found.parameters);
    return result;
}

}  // namespace

void bind_profiles(nb::module_& module) {
    module.def("devices", &device_slugs,
               "Slugs of the GPUs that ftax has the datasheet of.\n\n>>> 'l4' in ftax.devices()\nTrue");
    module.def("frameworks", &framework_names, "Names of the frameworks.\n\n>>> ftax.frameworks()[0]\n'pytorch-eager'");
    module.def("hosts", &host_names, "framework"_a,
               "Hosts that a framework has been calibrated on.\n\n>>> ftax.hosts('tensorrt')\n['reference']");
    module.def("device", device, "name"_a, "profile"_a = "",
               "Datasheet of a GPU (SI units) with the parameters of the kernel models that hold for it.\n\n"
               ">>> ftax.device('t4')['memory_bandwidth_bytes_per_s']\n320000000000.0");
    module.def("framework", framework, "name"_a, "host"_a = "", "profile"_a = "",
               "Host costs of a framework, with their provenance: 'pytorch-eager@2.5' is a version, the default the "
               "newest measured.\n\n>>> ftax.framework('tensorrt')['host']\n'reference'");
}

}  // namespace ftax::python
