#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "tests/fuzz/targets.hpp"

// Runs each reader over its seeds again and again, each time in a process of its own, and lets another allocation fail
// each time: the answer must be std::bad_alloc (exit status 4 of the program) or an Error, and nothing may be left
// allocated. Destructors of nlohmann's documents allocate, and cannot throw: what fails there ends the program through
// std::terminate, which src/main.cpp also makes exit status 4.

namespace {

std::size_t until_failure = 0;  // 0: none fails
std::ptrdiff_t allocated = 0;

}  // namespace

void* operator new(std::size_t size) {
    if (until_failure > 0 && --until_failure == 0) throw std::bad_alloc();
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) throw std::bad_alloc();
    ++allocated;
    return memory;
}
void operator delete(void* memory) noexcept {
    if (memory == nullptr) return;
    --allocated;
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    operator delete(memory);
}

namespace {

namespace fs = std::filesystem;

/// Beyond these many failures of one file, only every k-th allocation fails.
constexpr std::size_t most_failures = 300;

enum Ending : int { answered, other_exception, memory_left, terminated };

struct Outcome {
    std::size_t failures = 0, wrong = 0, terminated = 0;
};

/// Allocations of one run over the bytes.
std::size_t allocations_of(const ftax::fuzz::Target& target, std::string_view bytes) {
    constexpr std::size_t plenty = ~std::size_t{0};
    target.run(bytes);  // what is made once and kept
    until_failure = plenty;
    target.run(bytes);
    return plenty - std::exchange(until_failure, 0);
}

/// Lets the i-th allocation fail; what came of it is the exit status.
[[noreturn]] void run_with_failure(const ftax::fuzz::Target& target, std::string_view bytes, std::size_t i) {
    std::set_terminate([] {
        until_failure = 0;
        try {
            std::rethrow_exception(std::current_exception());
        } catch (const std::bad_alloc&) {
            std::_Exit(terminated);
        } catch (...) {
            std::_Exit(other_exception);
        }
    });
    const std::ptrdiff_t before = allocated;
    until_failure = i;
    try {
        target.run(bytes);
    } catch (const std::bad_alloc&) {
    } catch (const std::exception&) {
        std::_Exit(other_exception);
    }
    until_failure = 0;
    std::_Exit(allocated == before ? answered : memory_left);
}

void fail_each(const ftax::fuzz::Target& target, const fs::path& path, Outcome& outcome) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const std::size_t allocations = allocations_of(target, bytes);
    const std::size_t step = std::max<std::size_t>(1, allocations / most_failures);
    for (std::size_t i = 1; i <= allocations; i += step) {
        const pid_t child = ::fork();
        if (child == 0) run_with_failure(target, bytes, i);
        int status = 0;
        ::waitpid(child, &status, 0);
        ++outcome.failures;
        if (WIFEXITED(status) && WEXITSTATUS(status) == terminated) ++outcome.terminated;
        if (WIFEXITED(status) && (WEXITSTATUS(status) == answered || WEXITSTATUS(status) == terminated)) continue;
        ++outcome.wrong;
        std::printf("%s %s: allocation %zu of %zu: %s\n", target.name.data(), path.c_str(), i, allocations,
                    WIFSIGNALED(status)                  ? "a signal"
                    : WEXITSTATUS(status) == memory_left ? "memory is left"
                                                         : "another exception");
    }
}

}  // namespace

int main(int, char** argv) {
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    Outcome all;
    for (const ftax::fuzz::Target& target : ftax::fuzz::targets()) {
        Outcome outcome;
        const fs::path seeds = fs::path(argv[1]) / target.name;
        if (fs::is_directory(seeds)) {
            for (const auto& entry : fs::directory_iterator(seeds)) fail_each(target, entry.path(), outcome);
        }
        std::printf("%-16s %zu failed allocations, %zu of them in destructors\n", target.name.data(), outcome.failures,
                    outcome.terminated);
        all.wrong += outcome.wrong + (outcome.failures == 0 ? 1 : 0);  // a reader without a seed is not tested
    }
    return all.wrong == 0 ? 0 : 1;
}
