#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>

#include "calibration/nas/nas_study.hpp"
#include "src/io/file.hpp"
#include "src/io/profile_file.hpp"

namespace {

using namespace ftax;

constexpr std::size_t architectures_per_space = 2000;

/// Fits the host costs of the campaigns and writes them, then scores every column, with all devices in the fit and
/// with its own device left out, and writes the ledger.
void run(const std::filesystem::path& measurements, const std::filesystem::path& data, const std::string& profile) {
    const std::vector<nas_study::Column> columns =
        nas_study::read_columns(measurements, architectures_per_space, profile);
    const fit::FrameworkFit fitted = nas_study::fit_host_costs(columns, "");
    fmt::print("{} host-bound rows, in-fit {:.1f} / {:.1f} / {:.1f} %{}\n", fitted.rows, 100 * fitted.mean_error,
               100 * fitted.median_error, 100 * fitted.p90_error, fitted.converged ? "" : ", not converged");
    for (const auto& [host, scalars] : fitted.hosts) fmt::print("  {}: {:.2f}\n", host, scalars.scale);
    write_file(data / fmt::format("profiles/frameworks/pytorch-eager@{}.json", nas::measured_host),
               to_text(fitted.reference));

    std::vector<nas_study::Score> all, left_out;
    std::map<std::string, FrameworkProfile> others;
    for (const nas_study::Column& column : columns) {
        const std::string& device = column.device.device.slug;
        if (!others.contains(device)) others[device] = nas_study::fit_host_costs(columns, device).reference;
        all.push_back(nas_study::score(column, fitted.reference));
        left_out.push_back(nas_study::score(column, others[device]));
    }
    write_file(data / "ledger/nas.csv", nas_study::ledger_csv(all, left_out));
    const std::string markdown = nas_study::ledger_markdown(all, left_out);
    write_file(data / "ledger/nas.md", markdown);
    fmt::print("{}", markdown);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        fmt::print(stderr, "usage: ftax_nas_study MEASUREMENTS_FOLDER DATA_FOLDER [DEVICE_PROFILE]\n");
        return 2;
    }
    try {
        run(argv[1], argv[2], argc > 3 ? argv[3] : "");
    } catch (const std::exception& error) {
        fmt::print(stderr, "ftax_nas_study: {}\n", error.what());
        return 1;
    }
}
