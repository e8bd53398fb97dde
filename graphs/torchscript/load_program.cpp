#include "graphs/torchscript/program.hpp"
#include "src/core/throw_error.hpp"

#ifdef FTAX_TORCHSCRIPT_MODULE

#include <dlfcn.h>

#include <filesystem>

#include "src/io/child_process.hpp"

namespace ftax::script {
namespace {

/// LibTorch takes 0.2 s to load, hence only when it is needed. An installed module is found as any library.
void* open_module() {
    const std::string_view built = FTAX_TORCHSCRIPT_MODULE;
    const std::string name(built.substr(built.rfind('/') + 1));
    for (const std::string& path : {std::string(built), name})
        if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
    throw_error(ErrorCode::model, "LibTorch does not load: {}", dlerror());
}

using Load = decltype(&ftax_load_torchscript);

/// Loads the program in a child process first: LibTorch crashes on deeply nested programs, and a pickle may state any
/// length. Refusals are left to the load that follows in this process.
void load_in_child(Load load, const std::string& path) {
    constexpr std::uint64_t free_bytes = 512 << 20, free_seconds = 8, bytes_per_second = 4 << 20;
    const std::uint64_t file_bytes = std::filesystem::file_size(path);
    const std::uint64_t seconds = free_seconds + file_bytes / bytes_per_second;
    const std::uint64_t bytes = free_bytes + 4 * file_bytes;
    const ChildResult result = run_in_child({bytes, static_cast<unsigned>(seconds)}, [&]() -> std::string {
        try {
            Program unused;
            load(path, unused);
        } catch (const Error& error) {
            if (error.code() == ErrorCode::limit) throw;
        }
        return {};
    });
    if (!result.signal.empty()) throw_error(ErrorCode::model, "LibTorch crashes on the program ({})", result.signal);
    if (result.beyond)
        throw_error(ErrorCode::limit, "LibTorch needs more than {} s or {} MB for the program", seconds, bytes >> 20);
}

}  // namespace

Program load_program(const std::string& path) {
    static void* const module = open_module();
    const auto load = reinterpret_cast<Load>(dlsym(module, "ftax_load_torchscript"));
    if (!load) throw_error(ErrorCode::model, "the module of LibTorch is of another version: {}", dlerror());
    load_in_child(load, path);
    Program program;
    load(path, program);
    return program;
}

}  // namespace ftax::script

#else

namespace ftax::script {

Program load_program(const std::string&) {
    throw Error(ErrorCode::model,
                "a TorchScript program, which this build cannot read: configure it with -DFTAX_BUILD_TORCH=ON, or "
                "export the model with torch.export.save");
}

}  // namespace ftax::script

#endif
