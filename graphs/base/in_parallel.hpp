#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "graphs/base/interruption.hpp"

namespace ftax {

/// Calls `work(i)` for each i below `count`, on `threads` threads, the caller's among them; 0: as many as there are
/// processors. Rethrows what the first of those i threw that failed, when all have ended.
template <class Work>
void in_parallel(std::size_t count, unsigned threads, const Work& work) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::exception_ptr failure;
    std::size_t failed = std::numeric_limits<std::size_t>::max();
    const auto take = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            try {
                stop_if_interrupted();
                work(i);
            } catch (...) {
                const std::lock_guard guard(mutex);
                if (i < failed) failure = std::current_exception();
                failed = std::min(failed, i);
            }
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) others.emplace_back(take);
        take();
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace ftax
