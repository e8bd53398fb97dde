"""How one case is measured, whatever runs it."""

import statistics
import time

from nvml import FAULTS
from recording import DISTURBED, SLOWED

TIMES = ["latency_ms", "min_ms", "samples", "calls", "discarded", "relative_stddev", "clock_mhz", "slowdown", "problem"]

# Of the largest clock: a power-limited card runs big matrix products at 0.7 of it in steady state, small cards (T4) below.
# What stays under the limit after pauses is how the card runs, and the row says at which clock.
LOWEST_CLOCK = 0.6
MOST_DISCARDED = 20
# The launch queue takes 1,024 kernels before the host blocks; half of it, two kernels an operator.
QUEUED_OPERATORS = 256


def reason(error):
    return f"{type(error).__name__}: {error}".split("\n")[0][:160]


def measure(timer, run, mode, power, limits, operators=1):
    """Samples until they agree (0.5 %), their noise has settled, or the limit; those under a throttled clock do not
    count. The rule of ftax (calibration/bench/measurement_loop.hpp) in few lines. `operators`: of one call."""
    min_samples, min_s, max_s = limits
    for _ in range(3):
        run()
    timer.synchronize()
    begin = time.perf_counter()
    run()
    timer.synchronize()
    calls = max(1, min(64, int(2e-3 / max(time.perf_counter() - begin, 1e-7))))
    if mode == "host_dispatch":
        calls = max(1, min(calls, QUEUED_OPERATORS // operators))
    largest = power.read("largest_clock_mhz")
    timer.sample(run, mode, calls)  # how long queueing takes is known from here on
    samples, clocks, discarded, begin = [], [], 0, time.monotonic()
    while True:
        seconds = timer.sample(run, mode, calls)
        clock = timer.clock_mhz or power.read("clock_mhz")
        slowdown = power.read("slowdown")
        fault = any(name in slowdown for name in FAULTS)
        slow = largest and clock and mode != "host_dispatch" and clock < LOWEST_CLOCK * largest
        if (fault or slow) and discarded < MOST_DISCARDED:
            discarded += 1
            time.sleep(0.02 if fault else 0)
            continue
        if fault:
            raise RuntimeError(f"{SLOWED}: {slowdown}")
        samples.append(seconds)
        clocks.append(clock)
        elapsed = time.monotonic() - begin
        if elapsed > max_s and samples:
            break
        if len(samples) >= min_samples and elapsed > min_s:
            noise = statistics.stdev(samples) / statistics.mean(samples)
            before = statistics.stdev(samples[:-4]) / statistics.mean(samples[:-4]) if len(samples) > 5 else 1
            if noise < 0.005 or abs(noise - before) < 0.05 * noise:
                break
    if power.disturbed():
        raise RuntimeError(DISTURBED)
    known = [c for c in clocks if c != ""]
    return {"latency_ms": f"{1e3 * statistics.median(samples):.6g}", "min_ms": f"{1e3 * min(samples):.6g}",
            "samples": len(samples), "calls": calls, "discarded": discarded,
            "relative_stddev": f"{statistics.stdev(samples) / statistics.mean(samples):.3g}" if len(samples) > 1 else 0,
            "clock_mhz": round(statistics.median(known)) if known else "", "slowdown": slowdown}
