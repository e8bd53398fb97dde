"""Runs exported networks and single operators for SECONDS each, from a rested board on, and records every pass's time beside clock, power
and temperature: sustained_load.py OUT SECONDS [NETWORK.pt2...]. What a board at its power limit does to a pass that runs for minutes."""
import csv, os, sys, threading, time
import pynvml
import torch
torch.set_grad_enabled(False)
out, seconds, paths = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
pynvml.nvmlInit()
board = pynvml.nvmlDeviceGetHandleByIndex(0)
COLUMNS = ["what", "pass", "since_s", "ms", "sm_mhz", "power_w", "temperature_c", "problem"]

def load(path):
    program = torch.export.load(path)
    try: module = program.module(check_guards=False)
    except TypeError: module = program.module()
    for node in module.graph.nodes:
        if "device" in node.kwargs: node.kwargs = {**node.kwargs, "device": torch.device("cuda")}
    module.recompile()
    module = module.to_empty(device="cuda")
    for _, t in list(module.named_parameters()) + list(module.named_buffers()):
        if t.dtype.is_floating_point: t.normal_(0, 0.02)
        else: t.zero_()
    def real(t):
        if not isinstance(t, torch.Tensor): return t
        return torch.randn(t.shape, device="cuda").to(t.dtype) if t.dtype.is_floating_point else torch.zeros(t.shape, dtype=t.dtype, device="cuda")
    for name, t in list(vars(module).items()):
        if isinstance(t, torch.Tensor): setattr(module, name, real(t))
    args, kwargs = torch.utils._pytree.tree_map(real, program.example_inputs)
    return lambda: module(*args, **kwargs)

def operators():
    bf16 = torch.bfloat16
    for m, n, k in ((8192, 8192, 8192), (4608, 12288, 3072), (4608, 3072, 15360)):
        a, b = torch.randn(m, k, device="cuda").to(bf16), torch.randn(n, k, device="cuda").to(bf16)
        yield f"matmul {m}x{n}x{k}", lambda a=a, b=b: torch.nn.functional.linear(a, b)
    for heads, length, size in ((24, 4608, 128), (76, 4429, 64), (12, 32760, 128)):
        q = torch.randn(1, heads, length, size, device="cuda").to(bf16)
        yield f"attention {heads}x{length}x{size}", lambda q=q: torch.nn.functional.scaled_dot_product_attention(q, q, q)
    x = torch.randn(2**28, device="cuda").to(bf16)
    yield "gelu 268435456", lambda: torch.nn.functional.gelu(x)
    image, filters = [t.to(torch.float16, memory_format=torch.channels_last) for t in (torch.randn(64, 256, 56, 56, device="cuda"), torch.randn(256, 256, 3, 3, device="cuda"))]
    yield "conv3x3 64x256x56x56", lambda: torch.nn.functional.conv2d(image, filters, padding=1)

def record(write, what, run, seconds):
    run(); torch.cuda.synchronize()
    time.sleep(2.5)
    begin, states, stop = time.perf_counter(), [], threading.Event()
    def watch():
        while not stop.is_set():
            states.append((time.perf_counter() - begin, pynvml.nvmlDeviceGetClockInfo(board, pynvml.NVML_CLOCK_SM),
                           pynvml.nvmlDeviceGetPowerUsage(board) / 1e3, pynvml.nvmlDeviceGetTemperature(board, pynvml.NVML_TEMPERATURE_GPU)))
            time.sleep(0.05)
    thread = threading.Thread(target=watch)
    thread.start()
    events, ends, repeats = [torch.cuda.Event(enable_timing=True)], [], 1
    events[0].record()
    while time.perf_counter() - begin < seconds:
        for _ in range(repeats): run()
        events.append(torch.cuda.Event(enable_timing=True)); events[-1].record()
        if len(events) == 2:
            events[-1].synchronize()
            repeats = max(1, int(50 / events[0].elapsed_time(events[1])))  # an event each 50 ms
        elif len(events) > 3: events[-3].synchronize()  # two groups ahead of the device
        ends.append(repeats if len(events) > 2 else 1)
    torch.cuda.synchronize(); stop.set(); thread.join()
    since = 0.0
    for at, count in enumerate(ends):
        ms = events[at].elapsed_time(events[at + 1])
        since += ms / 1e3
        near = min(states, key=lambda s: abs(s[0] - since))
        write({"what": what, "pass": at, "since_s": f"{since:.3f}", "ms": f"{ms / count:.4g}", "sm_mhz": near[1], "power_w": f"{near[2]:.0f}", "temperature_c": near[3]})
    print(f"sustained_load: {what}: {events[0].elapsed_time(events[1]):.3g} ms, {ms / count:.3g} ms at the end, {states[-1]}", file=sys.stderr, flush=True)

with open(out, "a", newline="") as f:
    w = csv.DictWriter(f, COLUMNS, lineterminator="\n", restval="")
    w.writeheader()
    for what, run in operators(): record(w.writerow, what, run, min(seconds, 3)); f.flush()
    for path in paths:
        what = os.path.basename(path)[:-4]
        try:
            run = load(path)
            run()
            record(w.writerow, what, run, seconds)
            del run
        except Exception as error:
            w.writerow({"what": what, "problem": f"{type(error).__name__}: {error}".split("\n")[0][:200]})
            print(f"sustained_load: {what}: {error}"[:800], file=sys.stderr)
        torch.cuda.empty_cache(); f.flush()
