#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.hpp"

// One program for all targets; the environment says which (FTAX_FUZZ_TARGET), so that they share one build.

namespace {

const ftax::fuzz::Target& chosen() {
    const char* name = std::getenv("FTAX_FUZZ_TARGET");
    for (const ftax::fuzz::Target& target : ftax::fuzz::targets()) {
        if (name != nullptr && target.name == name) return target;
    }
    std::fputs("FTAX_FUZZ_TARGET must name one of:\n", stderr);
    for (const ftax::fuzz::Target& target : ftax::fuzz::targets()) std::fprintf(stderr, "%s\n", target.name.data());
    std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const ftax::fuzz::Target& target = chosen();
    static_cast<void>(target.run({reinterpret_cast<const char*>(data), size}));
    return 0;
}
