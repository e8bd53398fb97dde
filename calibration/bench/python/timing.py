"""Times one call in one of the modes, which are never mixed:
device_hot     calls back to back, device time of the whole batch
host_dispatch  host time of asynchronous calls below the queue depth, synchronised outside
end_to_end     one call with its synchronisation, as a user waits for it
"""

import statistics
import time

import torch
from torch.nn.functional import embedding, layer_norm, linear

# The launch queue takes 1,024 entries; an operator launches a few kernels.
QUEUE_CALLS = 64
# Rate that torch.cuda._sleep is taken to count at; a GPU clocked higher sleeps a little less, which the margin covers.
CYCLES_PER_S = 2e9


def _seconds(run, calls, clock=time.perf_counter):
    begin = clock()
    for _ in range(calls):
        run()
    return clock() - begin


def light_operators():
    """Nine operators of PyTorch on the CPU, in turn: p10 and median of their mean CPU and wall time, in µs. On the one pair of machines
    compared, they took as long in proportion to their dispatch on CUDA to 4 %; heavier ones do not, as their kernels count."""
    x, one, eight, weights, table = map(torch.rand, ((1, 128), (1, 64), (8, 64), (64, 64), (1000, 64)))
    rows = torch.arange(32)
    calls = (x.relu, lambda: x + x, lambda: x / x, lambda: x.softmax(1), lambda: torch.cat((x, x), 1), lambda: layer_norm(x, (128,)),
             lambda: embedding(rows, table), lambda: linear(one, weights), lambda: linear(eight, weights))
    found = {}
    for name, clock in (("cpu", time.process_time), ("wall", time.perf_counter)):
        rounds = [statistics.fmean(_seconds(call, 100, clock) for call in calls) * 1e4 for _ in range(100)]
        deciles = statistics.quantiles(rounds, n=10)
        found |= {f"torch_{name}_p10_us": f"{deciles[0]:.3f}", f"torch_{name}_median_us": f"{deciles[4]:.3f}"}
    return found


class CpuTimer:
    """One thread is timed by the CPU time it used, which other processes on the machine do not lengthen; several
    threads wait for each other, and only a wall clock sees that."""
    clock_mhz = 0  # of the last sample; 0 where it is not known

    def __init__(self, threads):
        torch.set_num_threads(threads)
        self.clock = time.process_time if threads == 1 else time.perf_counter

    def synchronize(self):
        pass

    def sample(self, run, mode, calls):
        return _seconds(run, calls, self.clock) / calls


class CudaTimer:
    def __init__(self):
        self.asleep, self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        self.last, self.clock_mhz = (None, 0.0), 0
        a, end = torch.randn(4096, 4096, device="cuda"), time.perf_counter() + 0.5
        while time.perf_counter() < end:  # an idle card needs a while to raise its clocks
            torch.mm(a, a)
            torch.cuda.synchronize()

    def synchronize(self):
        torch.cuda.synchronize()

    def sample(self, run, mode, calls):
        self.clock_mhz = 0
        return getattr(self, "_" + mode)(run, calls)

    def _device_hot(self, run, calls):
        """Device time of calls that were queued behind a kernel which sleeps for as long as queueing took last time. It
        sleeps by its own clock: how long that takes is the clock that the sample runs at."""
        known_s = self.last[1] if self.last[0] is run else 2e-4
        torch.cuda.synchronize()
        cycles = int(min(1.2 * known_s + 5e-5, 0.2) * CYCLES_PER_S)
        torch.cuda._sleep(int(2e-5 * CYCLES_PER_S))  # meanwhile the next two are queued
        self.asleep.record()
        torch.cuda._sleep(cycles)
        self.begin.record()
        self.last = (run, _seconds(run, calls))
        self.end.record()
        self.end.synchronize()
        self.clock_mhz = round(cycles / (1e3 * self.asleep.elapsed_time(self.begin)))
        return self.begin.elapsed_time(self.end) * 1e-3 / calls

    def _host_dispatch(self, run, calls):
        torch.cuda.synchronize()
        calls = min(calls, QUEUE_CALLS)
        seconds = _seconds(run, calls) / calls
        torch.cuda.synchronize()
        return seconds

    def _end_to_end(self, run, calls):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        return time.perf_counter() - begin


def timer(device, threads):
    if device == "cpu":
        return CpuTimer(threads)
    if not torch.cuda.is_available():
        raise RuntimeError("torch sees no GPU: " + ("its build has no CUDA" if not torch.version.cuda else "no driver or no device"))
    return CudaTimer()
