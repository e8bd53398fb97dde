"""Times networks that torch.export wrote, eager, compiled and as compiled code's CUDA graphs, and records their kernels:
exported_kernels.py FOLDER NAMES OUT SECONDS [MODE...] with modes eager, compile, reduce-overhead. A process a network: a group compiles
at once, then each of it measures alone; a profiler, which slows later launches of its process, comes last."""
import csv, json, logging, os, select, signal, statistics, sys, time, warnings
warnings.simplefilter("ignore")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
begin = time.monotonic()
import torch
import tracing
logging.disable(logging.WARNING)
torch.set_grad_enabled(False)
folder, order, out, limit = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
modes = sys.argv[5:] or ["eager"]
GROUP, PREPARE_S, MEASURE_S = int(os.environ.get("GROUP", "14")), float(os.environ.get("PREPARE_S", "75")), 30
dev = "cpu" if os.environ.get("DEVICE") == "cpu" else "cuda"
FRAMEWORKS = {"eager": "pytorch-eager", "compile": "torch-compile", "reduce-overhead": "torch-compile-reduce-overhead"}
COLUMNS = ["framework", "model", "index", "kernel", "grid", "block", "registers", "shared_bytes", "start_us", "duration_us", "device_ms",
           "host_ms", "event_ms", "problem"]

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

def event_ms(run):
    """A call alone between two events, as KernelBench times it; median."""
    times = []
    for _ in range(15):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); run(); b.record(); sync()
        times.append(a.elapsed_time(b))
    return statistics.median(times)

def times(run):
    """Device time a call behind a queue, host time of a call, time of a call alone."""
    sync(); host = []
    for _ in range(5):
        b = time.perf_counter(); run(); host.append(time.perf_counter() - b); sync()
    if dev == "cpu": return min(host) * 1e3, min(host) * 1e3, min(host) * 1e3
    alone, n = event_ms(run), 10 if min(host) < 0.02 else 4
    e = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    torch.cuda._sleep(int(min(2e6 + 10 * min(host) * 2e9, 4e8))); e[0].record()
    for i in range(n): run(); e[i + 1].record()
    sync()
    return statistics.median(e[i].elapsed_time(e[i + 1]) for i in range(n)), min(host) * 1e3, alone

def work(name, told, to):
    def say(**what): os.write(to, (json.dumps(what) + "\n").encode())
    rows, runs = [], {}
    m, args, kw = load(os.path.join(folder, name + ".pt2"))
    for mode in modes:
        f = m if mode == "eager" else torch.compile(m, mode=None if mode == "compile" else mode)
        run = lambda f=f: f(*args, **kw)
        try:
            for _ in range(1 if mode == "eager" else 3): run()
            sync(); runs[mode] = run
        except Exception as e:
            rows.append({"framework": FRAMEWORKS[mode], "model": name, "index": -1, "problem": f"{type(e).__name__}: {e}".split("\n")[0][:160]})
    say(ready=True)
    os.read(told, 1)
    timed = {mode: times(run) for mode, run in runs.items()}
    for mode, run in runs.items():
        common = {"framework": FRAMEWORKS[mode], "model": name}
        found = tracing.trace(run, sync) if dev == "cuda" else {"kernels": [], "problem": ""}
        for i, k in enumerate(found["kernels"]):
            rows.append({**common, "index": i, "kernel": k["name"][:240], "grid": "x".join(map(str, k["grid"])),
                         "block": "x".join(map(str, k["block"])), **{c: k[c] for c in ("registers", "shared_bytes", "start_us", "duration_us")}})
        d, h, a = timed[mode]
        rows.append({**common, "index": -1, "device_ms": f"{d:.5g}", "host_ms": f"{h:.5g}", "event_ms": f"{a:.5g}", "problem": found["problem"]})
    say(rows=rows)

class Process:
    def __init__(self, name):
        self.name, self.text, self.rows = name, b"", None
        (self.told, self.tell), (self.hear, said) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            try: work(name, self.told, said)
            except BaseException as e:
                row = {"framework": FRAMEWORKS[modes[0]], "model": name, "index": -1, "problem": f"{type(e).__name__}: {e}".split("\n")[0][:160]}
                os.write(said, (json.dumps({"rows": [row]}) + "\n").encode())
            finally: os._exit(0)
        os.close(said); os.close(self.told)

    def answer(self, until):
        while b"\n" not in self.text:
            if not select.select([self.hear], [], [], max(until - time.monotonic(), 0))[0]: return {"problem": "no answer in time"}
            part = os.read(self.hear, 1 << 20)
            if not part: return {"problem": "its process ended"}
            self.text += part
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def end(self):
        if self.pid is None: return
        try: os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError: pass
        os.waitpid(self.pid, 0); os.close(self.hear); os.close(self.tell); self.pid = None

names = open(order).read().split()
done = 0
with open(out, "a", newline="") as f:
    w = csv.DictWriter(f, COLUMNS, lineterminator="\n", restval="")
    if f.tell() == 0: w.writeheader()
    while names and time.monotonic() - begin < limit:
        group, names = [Process(n) for n in names[:GROUP]], names[GROUP:]
        until = min(time.monotonic() + PREPARE_S, begin + limit)
        answers = [(p, p.answer(until)) for p in group]
        for p, a in answers:  # those not ready must not disturb those that are
            if "problem" in a: p.end()
        for p, a in answers:
            if "ready" in a:
                os.write(p.tell, b"!")
                a = p.answer(time.monotonic() + MEASURE_S)
            for row in a.get("rows", [{"framework": FRAMEWORKS[modes[-1]], "model": p.name, "index": -1, "problem": a.get("problem", "")}]): w.writerow(row)
            if "problem" not in a or "ready" in a: done += 1
            p.end()
        f.flush()
        print(f"exported_kernels: {done} done, {len(names)} left, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
