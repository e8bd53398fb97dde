"""Which kernels a call runs on the GPU, from torch.profiler (CUPTI activity records): it sees those of every framework in
this process."""

import json
import os
import tempfile

# Categories of events in the profiler's trace that occupy the device.
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
DENIED = ("the profiler recorded no kernel: run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0, and "
          "end other profilers; device time comes from CUDA events")


def kernels_of(trace):
    """Kernels of a Chrome trace as torch.profiler writes it, in order of start, which is counted from the first."""
    events = sorted((event for event in trace.get("traceEvents", [])
                     if event.get("ph") == "X" and event.get("cat") in DEVICE_WORK and event.get("ts")), key=lambda event: event["ts"])
    return [{"name": event.get("name", ""), "grid": known.get("grid", [1, 1, 1]), "block": known.get("block", [1, 1, 1]),
             "registers": known.get("registers per thread", 0), "shared_bytes": known.get("shared memory", 0),
             "correlation": known.get("correlation", 0), "start_us": round(event["ts"] - events[0]["ts"], 3),
             "duration_us": event.get("dur", 0)} for event in events for known in [event.get("args", {})]]


def trace(run, synchronize):
    """Kernels of one call of `run`, and why there are none."""
    from torch.profiler import ProfilerActivity, profile
    synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        run()
        synchronize()
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profiler.export_chrome_trace(path)
        with open(path) as file:
            kernels = kernels_of(json.load(file))
    finally:
        os.unlink(path)
    return {"kernels": kernels, "problem": "" if kernels else DENIED}
