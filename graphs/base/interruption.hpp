#pragma once

#include <atomic>

namespace ftax {

struct Interrupted {};  ///< ends calls that the user stopped; no Error, which could be the outcome of a row

inline std::atomic<bool> interrupted = false;  ///< running calls are to end: Ctrl-C in Python

inline void stop_if_interrupted() {
    if (interrupted.load(std::memory_order_relaxed)) throw Interrupted();
}

}  // namespace ftax
