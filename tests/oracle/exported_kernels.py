"""Times networks that torch.export wrote and records their kernels, eager or compiled: exported_kernels.py FOLDER NAMES OUT SECONDS [--compile]"""
import csv, os, sys, time, warnings, logging, statistics
warnings.simplefilter("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "calibration", "bench", "python"))
begin = time.monotonic()
import torch
logging.disable(logging.WARNING)
import tracing
torch.set_grad_enabled(False)
folder, order, out, limit = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
compiled = "--compile" in sys.argv
dev = "cuda" if torch.cuda.is_available() else "cpu"

def real(t):
    if not isinstance(t, torch.Tensor): return t
    if t.dtype.is_floating_point: return torch.rand(t.shape, dtype=t.dtype, device=dev)
    return torch.ones(t.shape, dtype=t.dtype, device=dev) if t.dtype == torch.bool else torch.zeros(t.shape, dtype=t.dtype, device=dev)

def load(path):
    ep = torch.export.load(path)
    try: m = ep.module(check_guards=False)
    except TypeError: m = ep.module()
    for node in m.graph.nodes:
        if "device" in node.kwargs: node.kwargs = {**node.kwargs, "device": torch.device(dev)}
    m.recompile()
    m = m.to_empty(device=dev)
    for name, t in list(m.named_parameters()) + list(m.named_buffers()):
        if not t.dtype.is_floating_point: t.zero_()
        elif "running_var" in name: t.fill_(1)
        else: t.normal_(0, 0.02)
    for name, t in list(vars(m).items()):
        if isinstance(t, torch.Tensor): setattr(m, name, real(t))
    args, kwargs = ep.example_inputs
    return m, [torch.utils._pytree.tree_map(real, a) for a in args], {k: real(v) for k, v in kwargs.items()}

def sync():
    if dev == "cuda": torch.cuda.synchronize()

def times(run):
    sync(); n = 10; host = []
    for _ in range(3):
        b = time.perf_counter(); run(); host.append(time.perf_counter() - b); sync()
    if dev == "cpu": return min(host) * 1e3, min(host) * 1e3
    e = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    torch.cuda._sleep(int(2e6)); e[0].record()
    for i in range(n): run(); e[i + 1].record()
    sync()
    return statistics.median(e[i].elapsed_time(e[i + 1]) for i in range(n)), min(host) * 1e3

columns = ["framework", "model", "index", "kernel", "grid", "block", "registers", "shared_bytes", "start_us", "duration_us", "device_ms", "host_ms", "problem"]
with open(out, "a", newline="") as f:
    w = csv.DictWriter(f, columns, lineterminator="\n", restval="")
    if f.tell() == 0: w.writeheader()
    done = 0
    for name in open(order).read().split():
        if time.monotonic() - begin > limit: break
        fw = "torch-compile" if compiled else "pytorch-eager"
        try:
            m, args, kw = load(os.path.join(folder, name + ".pt2"))
            if compiled:
                torch._dynamo.reset()
                m = torch.compile(m)
            run = lambda: m(*args, **kw)
            run(); run()
            d, h = times(run)
            found = tracing.trace(run, sync)
            common = {"framework": fw, "model": name}
            for i, k in enumerate(found["kernels"]):
                w.writerow({**common, "index": i, "kernel": k["name"][:240], "grid": "x".join(map(str, k["grid"])), "block": "x".join(map(str, k["block"])), "registers": k["registers"], "shared_bytes": k["shared_bytes"], "start_us": k["start_us"], "duration_us": k["duration_us"]})
            w.writerow({**common, "index": -1, "device_ms": f"{d:.5g}", "host_ms": f"{h:.5g}", "problem": found["problem"]})
        except Exception as e:
            w.writerow({"framework": fw, "model": name, "index": -1, "problem": f"{type(e).__name__}: {e}".split("\n")[0][:160]})
            if "CUDA error" in str(e): break
        f.flush(); done += 1
        m = args = kw = run = None
        if dev == "cuda": torch.cuda.empty_cache()
    print(f"kbtrace: {done} models in {time.monotonic() - begin:.0f} s", file=sys.stderr)
