#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "predictors/profiles/device_file.hpp"
#include "src/python/bindings.hpp"
#include "src/report/quantities.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::python {
namespace {

nb::dict to_python(const report::Json& object) {
    return nb::cast<nb::dict>(nb::module_::import_("json").attr("loads")(object.dump()));
}

nb::dict device(const std::string& name, const std::string& profile) {
    const DeviceProfile found = device_profile(name, profile);
    const DeviceSpec& sheet = found.device;
    report::Json peaks = report::Json::object();
    for (int i = 0; i < math_path_count; ++i) {
        const auto path = static_cast<MathPath>(i);
        if (const auto peak = sheet.peak(path)) peaks[std::string(name_of(path))] = *peak;
    }
    return to_python({{"slug", sheet.slug},
                      {"name", sheet.name},
                      {"aliases", sheet.aliases},
                      {"architecture", name_of(sheet.architecture)},
                      {"sms", sheet.sms},
                      {"boost_clock_hz", sheet.boost_clock_hz},
                      {"memory_bytes", sheet.memory_bytes},
                      {"memory_bandwidth_bytes_per_s", sheet.memory_bandwidth_bytes_per_s},
                      {"l2_bytes", sheet.l2_bytes},
                      {"power_limit_w", sheet.power_limit_w},
                      {"peak_flops_per_s", peaks},
                      {"version", found.version},
                      {"warnings", found.warnings},
                      {"parameters", report::parameter_columns(0).json_rows(found.parameters)}});
}

nb::dict framework(const std::string& name, const std::string& host, const std::string& profile) {
    LibraryVersions libraries;
    const FrameworkProfile found =
        scenario::resolve_framework({.framework = name, .host = host, .framework_profile = profile}, libraries);
    return to_python({{"framework", found.framework},
                      {"version", found.version},
                      {"host", found.host},
                      {"warnings", found.warnings},
                      {"parameters", report::parameter_columns(0).json_rows(found.parameters)}});
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
