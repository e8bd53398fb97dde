#include "graphs/torchscript/load_program.hpp"

#include "ftax/error.hpp"

#ifdef FTAX_TORCHSCRIPT_MODULE

#include <dlfcn.h>
#include <fmt/format.h>

#include "graphs/torchscript/libtorch_module.hpp"

namespace ftax::script {
namespace {

/// LibTorch takes 0.2 s to load, hence only when it is needed. An installed module is found as any library.
void* open_module() {
    const std::string_view built = FTAX_TORCHSCRIPT_MODULE;
    const std::string name(built.substr(built.rfind('/') + 1));
    for (const std::string& path : {std::string(built), name}) {
        if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
    }
    throw Error(ErrorCode::model, fmt::format("LibTorch does not load: {}", dlerror()));
}

}  // namespace

Program load_program(const std::string& path) {
    static void* const module = open_module();
    const auto load = reinterpret_cast<decltype(&ftax_load_torchscript)>(dlsym(module, "ftax_load_torchscript"));
    if (!load)
        throw Error(ErrorCode::model, fmt::format("the module of LibTorch is of another version: {}", dlerror()));
    Program program;
    load(path, program);
    return program;
}

}  // namespace ftax::script

#else

namespace ftax::script {

Program load_program(const std::string&) {
    throw Error(
        ErrorCode::model,
        "a TorchScript program, which this build cannot read: configure it with -DFTAX_BUILD_TORCH=ON, or export "
        "the model with torch.export.save");
}

}  // namespace ftax::script

#endif
