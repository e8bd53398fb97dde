#include "calibration/bench/libtorch_plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "ftax/error.hpp"

namespace ftax::bench {

std::unique_ptr<BenchDevice> open_libtorch(const std::string& device, Precision precision, int threads) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* folder : {".", "../lib/ftax"}) {
        const fs::path library = program / folder / "ftax_libtorch.so";
        if (!fs::exists(library, ignored)) continue;
        // Its BLAS is its own: Ceres brings another one under the same names.
        void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        if (!loaded) throw Error(ErrorCode::usage, fmt::format("cannot load {}: {}", library.string(), ::dlerror()));
        const auto open = reinterpret_cast<decltype(&ftax_open_libtorch)>(::dlsym(loaded, "ftax_open_libtorch"));
        if (!open) throw Error(ErrorCode::usage, fmt::format("{} is another library", library.string()));
        return std::unique_ptr<BenchDevice>(open(device.c_str(), precision, threads));
    }
    throw Error(
        ErrorCode::usage,
        "this ftax was built without LibTorch (cmake -DFTAX_BUILD_TORCH=ON); --framework pytorch-eager measures "
        "through Python");
}

}  // namespace ftax::bench
