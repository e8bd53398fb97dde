"""How one case is measured, whatever runs it."""

import statistics
import time
from typing import NamedTuple

from nvml import FAULTS
from recording import DISTURBED, SLOWED

TIMES = ["latency_ms", "min_ms", "samples", "calls", "discarded", "relative_stddev", "clock_mhz", "slowdown", "problem"]


class Limits(NamedTuple):
    """How long a case is sampled: at least this often and for so many seconds, at most for so many; between, until the samples
    agree (nvbench's stdrel criterion) or the 95 % interval of their mean is as narrow, relative to it (0: is not asked for)."""
    min_samples: int
    min_s: float
    max_s: float
    relative_stddev: float = 0.005
    relative_interval: float = 0


# Share of the largest clock: a power-limited card runs big matrix products at 0.7 of it in steady state, small cards (T4) below.
# What stays under the limit after pauses is how the card runs, and the row says at which clock.
LOWEST_CLOCK = 0.6
MOST_DISCARDED = 20
# The launch queue takes 1,024 kernels before the host blocks; half of it, two kernels an operator.
QUEUED_OPERATORS = 256


def reason(error):
    return f"{type(error).__name__}: {error}".split("\n")[0][:160]


def attempt(action, *arguments):
    """What an action gives, or the problem that a row has in its place."""
    try:
        return action(*arguments)
    except OSError:
        raise  # the disk is full, not the case at fault
    except Exception as error:
        return {"problem": reason(error)}


def noise_of(samples):
    return statistics.stdev(samples) / statistics.mean(samples) if len(samples) > 1 else 0


def agree(samples, limits):
    noise = noise_of(samples)
    before = noise_of(samples[:-4]) if len(samples) > 5 else 1
    known = 1.96 * noise / len(samples) ** 0.5 < limits.relative_interval
    return known or noise < limits.relative_stddev or abs(noise - before) < 0.05 * noise


def measure(timer, run, mode, power, limits, operators=1):
    """Samples until they agree, their noise has settled (more will not lower it), or the limit; those under a throttled clock
    do not count. `operators`: of one call."""
    limits = Limits(*limits)
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
    now = getattr(timer, "clock", time.monotonic)  # of one thread: what it computed, whatever else runs on the machine
    samples, clocks, discarded, begin = [], [], 0, now()
    while True:
        seconds = timer.sample(run, mode, calls)
        clock = timer.clock_mhz or power.read("clock_mhz")
        slowdown = power.read("slowdown")
        fault = any(name in slowdown for name in FAULTS)
        slow = largest and clock and mode != "host_dispatch" and clock < LOWEST_CLOCK * largest
        stepped = not 0 < seconds < float("inf")
        if (fault or slow or stepped) and discarded < MOST_DISCARDED:
            discarded += 1
            time.sleep(0.02 if fault else 0)
            continue
        if stepped:
            raise RuntimeError("the clock stepped")
        if fault:
            raise RuntimeError(f"{SLOWED}: {slowdown}")
        samples.append(seconds)
        clocks.append(clock)
        elapsed = now() - begin
        if elapsed > limits.max_s or len(samples) >= limits.min_samples and elapsed > limits.min_s and agree(samples, limits):
            break
    if power.disturbed():
        raise RuntimeError(DISTURBED)
    known = [c for c in clocks if c != ""]
    return {"latency_ms": f"{1e3 * statistics.median(samples):.6g}", "min_ms": f"{1e3 * min(samples):.6g}",
            "samples": len(samples), "calls": calls, "discarded": discarded,
            "relative_stddev": f"{noise_of(samples):.3g}",
            "clock_mhz": round(statistics.median(known)) if known else "", "slowdown": slowdown,
            "samples_ms": " ".join(f"{1e3 * seconds:.5g}" for seconds in samples)}
