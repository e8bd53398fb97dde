"""Measures a GPU machine without ftax itself: operators, dispatch and networks, within a time budget, resumable.
See calibration/campaign.sh."""

import argparse
import csv
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SLICES = ("environment", "operators", "dispatch", "models", "frameworks")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
DISPATCH_PROCESSES = 9
TRACED_BATCHES = (1, 32)  # whose kernels are kept one by one: small files
# Networks whose text graph can be run, most informative first: a budget that ends early leaves a useful file.
MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "vit32", "distilbert", "densenet", "gpt2_forward", "vgg16",
          "efficientnet", "squeezenet", "alexnet", "googlenet", "resnext50_32x4d", "albert", "mnasnet", "shufflenet",
          "wide_resnet50_2", "resnet101", "squeeze_bert", "gernet", "inception", "efficientnet_lite", "resnet152",
          "roberta")
FRAMEWORKS = ("torchscript", "cuda-graph", "onnxruntime-cuda", "torch-compile")
FRAMEWORK_MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "distilbert", "vit32", "densenet", "squeezenet")


DISTURBED = "another process uses the GPU"


class Budget:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


class Rows:
    """A CSV file that is only appended to; a torn last line of a killed run is cut off, complete rows are not repeated."""

    def __init__(self, path, columns, key):
        self.columns, self.key, self.done, self.failed = columns, key, set(), set()
        if os.path.exists(path):
            with open(path, "rb+") as file:
                text = file.read()
                file.truncate(text.rfind(b"\n") + 1)
            with open(path, newline="") as file:
                reader = csv.DictReader(file)
                if reader.fieldnames and reader.fieldnames != columns:
                    raise RuntimeError(f"{path}: other columns than this campaign writes")
                for row in reader:
                    self._remember(row)
        new = not os.path.exists(path) or os.path.getsize(path) == 0
        self.file = open(path, "a", newline="")
        self.writer = csv.DictWriter(self.file, columns, lineterminator="\n")
        if new:
            self.writer.writeheader()

    def _key(self, row):
        return tuple(str(row[name]) for name in self.key)

    def _remember(self, row):
        if DISTURBED in row["problem"]:
            return  # it may be better next time
        self.done.add(self._key(row))
        if row["problem"]:
            self.failed.add(self._key(row))

    def has(self, **row):
        return self._key(row) in self.done

    def has_failed(self, **row):
        return self._key(row) in self.failed

    def add(self, **row):
        self.writer.writerow(row)
        self.file.flush()
        self._remember(row)


class Power:
    """Clock, power and other processes by NVML, where its package is there."""

    def __init__(self, device):
        self.handle, self.usual_processes = None, ""
        if device == "cpu":
            return
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception as error:
            print(f"warning: no clocks or power: {error}", file=sys.stderr)
        self.usual_processes = self.read("other_processes")

    def disturbed(self):
        """Whether somebody came to the GPU since this process began; the campaign's own processes were there."""
        now = self.read("other_processes")
        return now != "" and self.usual_processes != "" and now > self.usual_processes

    def read(self, what):
        if not self.handle:
            return ""
        nvml = self.nvml
        try:
            if what == "clock_mhz":
                return nvml.nvmlDeviceGetClockInfo(self.handle, nvml.NVML_CLOCK_SM)
            if what == "default_clock_mhz":
                return nvml.nvmlDeviceGetMaxClockInfo(self.handle, nvml.NVML_CLOCK_SM)
            if what == "power_w":
                return round(nvml.nvmlDeviceGetPowerUsage(self.handle) / 1000, 1)
            if what == "driver":
                return nvml.nvmlSystemGetDriverVersion()
            if what == "mig":
                return nvml.nvmlDeviceGetMigMode(self.handle)[0]
            if what == "other_processes":
                mine = os.getpid()
                return sum(p.pid != mine for p in nvml.nvmlDeviceGetComputeRunningProcesses(self.handle))
        except nvml.NVMLError:
            return ""


def measure(timer, run, mode, power, limits):
    """Samples until they agree (0.5 %), their noise has settled, or the limit; those under a throttled clock do not
    count. The rule of ftax (calibration/bench/stopping_rule.hpp) in few lines."""
    min_samples, min_s, max_s = limits
    for _ in range(3):
        run()
    timer.synchronize()
    begin = time.perf_counter()
    run()
    timer.synchronize()
    calls = max(1, min(64, int(2e-3 / max(time.perf_counter() - begin, 1e-7))))
    default = power.read("default_clock_mhz")
    samples, clocks, discarded, begin = [], [], 0, time.monotonic()
    while True:
        seconds = timer.sample(run, mode, calls)
        clock = power.read("clock_mhz")
        # 0.6 of the largest clock: big matrix products bring a power-limited card to 0.7 in steady state, small cards
        # (T4) below: what stays so after pauses is how the card runs, and the row says at which clock.
        if default and clock and mode != "host_dispatch" and clock < 0.6 * default and discarded < 20:
            discarded += 1
            time.sleep(0.02)
        else:
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
            "clock_mhz": round(statistics.mean(known)) if known else "", "power_w": power.read("power_w")}


TIMES = ["latency_ms", "min_ms", "samples", "calls", "discarded", "relative_stddev", "clock_mhz", "power_w", "problem"]
NOTHING = dict.fromkeys(TIMES, "")
NETWORK_MODES = ("end_to_end", "device_hot", "host_dispatch")


def wave_edges(sms):
    """Products that fill one or two waves of 128×128 tiles but for one tile, exactly, and with one tile too many: those of
    ftax (calibration/bench/operator_cases.cpp), whose other shapes depend on no card."""
    cases = []
    for tiles in (waves * sms + beside for waves in (1, 2) for beside in (-1, 0, 1)):
        m, n, k = 128 * tiles, 128, 1024
        cases.append({"op": "linear", "shape": f"k={k} m={m} n={n}", "bytes": 4 * (m * k + n * k + n + m * n),
                      "weight_bytes": 4 * (n * k + n),
                      "graph": f"graph linear\ninput %x f32[{m},{k}]\nweight %w f32[{n},{k}]\nweight %b f32[{n}]\n"
                               f'%y f32[{m},{n}] = linear(%x, %w, %b) "aten::linear"\noutput %y\n'})
        m, n, k = 128, 128, 64
        cases.append({"op": "bmm", "shape": f"b={tiles} k={k} m={m} n={n}", "bytes": 4 * tiles * (m * k + k * n + m * n),
                      "weight_bytes": 0,
                      "graph": f"graph bmm\ninput %x f32[{tiles},{m},{k}]\ninput %z f32[{tiles},{k},{n}]\n"
                               f'%y f32[{tiles},{m},{n}] = matmul(%x, %z) "aten::matmul"\noutput %y\n'})
    return cases


def reason(error):
    return f"{type(error).__name__}: {error}".split("\n")[0][:160]


class Lost(Exception):
    """No kernel runs any more in this process; another process may go on."""


class Campaign:
    def __init__(self, arguments):
        import torch
        import timing
        self.torch, self.arguments = torch, arguments
        torch.set_grad_enabled(False)
        self.device = arguments.device
        self.timer = timing.timer(self.device, 1)
        self.told_of_trace, self.kernel_rows = False, None
        self.power = Power(self.device)
        self.budget = Budget(arguments.budget_s)
        self.gpu = torch.cuda.get_device_name(0) if self.device != "cpu" else "cpu"
        self.limits = (3, 0, 0.01) if arguments.smoke else (10, 0.03, 0.25)
        self.precisions = ("fp32",) if self.device == "cpu" else PRECISIONS
        self.batches = (1, 2) if arguments.smoke else BATCHES
        self.models = ("squeezenet", "distilbert") if arguments.smoke else MODELS

    def path(self, name):
        return os.path.join(self.arguments.output, name)

    def progress(self, what, done, total):
        if sys.stderr.isatty():
            print(f"\r\033[K{what} {done}/{total}, {self.budget.left():.0f} s left", end="", file=sys.stderr, flush=True)

    def network(self, text, bindings, precision, model="", weight_sets=1):
        import networks
        self.torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        # Networks run with PyTorch's defaults (convolutions in TF32), operator rows state their precision exactly.
        self.torch.backends.cudnn.allow_tf32 = precision == "tf32" or (bool(model) and precision == "fp32")
        request = {"graph": text, "bindings": bindings, "model": model, "weight_sets": weight_sets}
        return networks.build(request, {"precision": precision, "device": self.device})

    def free(self):
        import gc
        gc.collect()
        if self.device != "cpu":
            self.torch.cuda.empty_cache()

    def check_alive(self):
        """A kernel that fails takes the process's context with it: every case after it would fail, too."""
        try:
            self.timer.synchronize()
        except Exception as error:
            raise Lost(reason(error)) from error

    # ---- slices ------------------------------------------------------------------------------------------------

    def environment(self):
        torch = self.torch
        found = {"schema_version": 1, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "device": self.gpu,
                 "torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0],
                 "command_line": " ".join(sys.argv), "logical_cores": os.cpu_count()}
        with open("/proc/cpuinfo") as file:
            found["cpu"] = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
        for what in ("driver", "default_clock_mhz", "mig", "other_processes"):
            found[what] = self.power.read(what)
        if found["other_processes"]:
            print("warning: another process uses this GPU", file=sys.stderr)
        if self.device != "cpu":
            p = torch.cuda.get_device_properties(0)
            found.update(multiprocessors=p.multi_processor_count, l2_bytes=p.L2_cache_size, memory_bytes=p.total_memory,
                         compute_capability=f"{p.major}.{p.minor}", cudnn=torch.backends.cudnn.version())
            found["ceilings"] = self.ceilings()
        with open(self.path("environment.json"), "w") as file:
            json.dump(found, file, indent=1)

    def ceilings(self):
        """Achievable bandwidth and arithmetic, the shortest kernel, a launch and a node of a CUDA graph."""
        torch, found = self.torch, {}

        def event_s(run, calls):
            return min(self.timer.sample(run, "device_hot", calls) for _ in range(5))

        for mib in (1, 4, 16, 64, 256, 1024):
            source = torch.rand(mib << 18, device="cuda")
            target = torch.empty_like(source)
            found[f"copy_{mib}_mib_bytes_per_s"] = 2 * (mib << 20) / event_s(lambda: target.copy_(source), 20)
        for name, dtype in (("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
            a = torch.rand(8192, 8192, device="cuda").to(dtype)
            found[f"gemm_{name}_flops_per_s"] = 2 * 8192 ** 3 / event_s(lambda: torch.mm(a, a), 5)
        torch.backends.cuda.matmul.allow_tf32 = True
        a = torch.rand(8192, 8192, device="cuda")
        found["gemm_tf32_flops_per_s"] = 2 * 8192 ** 3 / event_s(lambda: torch.mm(a, a), 5)
        torch.backends.cuda.matmul.allow_tf32 = False
        one = torch.zeros(1, device="cuda")
        found["shortest_kernel_s"] = event_s(lambda: one.add_(1), 64)
        found["eager_launch_s"] = min(self.timer.sample(lambda: one.add_(1), "host_dispatch", 64) for _ in range(9))
        graph = torch.cuda.CUDAGraph()
        one.add_(1)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(200):
                one.add_(1)
        found["graph_node_s"] = min(self.timer.sample(graph.replay, "end_to_end", 1) for _ in range(9)) / 200
        found["graph_launch_s"] = min(self.timer.sample(graph.replay, "host_dispatch", 4) for _ in range(9))
        return found

    def operators(self):
        rows = Rows(self.path("operators.csv"), ["gpu", "op", "precision", "shape", "mode", *TIMES],
                    ("op", "precision", "shape", "mode"))
        with open(os.path.join(ROOT, "calibration", "campaign_operators.jsonl")) as file:
            cases = [json.loads(line) for line in file]
        if self.device != "cpu":
            cases += wave_edges(self.torch.cuda.get_device_properties(0).multi_processor_count)
        if self.arguments.smoke:
            smallest = {}
            for case in cases:
                kept = smallest.setdefault(case["op"], case)
                if case["bytes"] < kept["bytes"]:
                    smallest[case["op"]] = case
            cases = list(smallest.values())
        work = [(case, precision) for case in cases for precision in self.precisions]
        random.Random(1).shuffle(work)
        for at, (case, precision) in enumerate(work):
            if self.budget.left() < 3:
                return
            self.progress("operators", at, len(work))
            key = {"op": case["op"], "precision": precision, "shape": case["shape"], "mode": "device_hot"}
            if rows.has(**key):
                continue
            result = dict(NOTHING)
            network = run = None
            try:
                weights = case["weight_bytes"]
                sets = max(1, min(16, (128 << 20) // weights)) if weights > 65536 else 1
                network, inputs, _ = self.network(case["graph"], {}, precision, weight_sets=sets)
                run = lambda network=network, inputs=inputs: network(*inputs)  # noqa: E731
                result |= measure(self.timer, run, "device_hot", self.power, self.limits)
            except Exception as error:
                result["problem"] = reason(error)
            rows.add(gpu=self.gpu, **key, **result)
            if result["problem"]:
                self.check_alive()
            del network, run
            if at % 50 == 0:
                self.free()

    def dispatch(self):
        """Host time per operator, each repetition in a process of its own: it differs from process to process."""
        for repetition in range(1 if self.arguments.smoke else DISPATCH_PROCESSES):
            if self.budget.left() < 20:
                return
            limit = min(self.budget.left() - 5, 60)
            command = [sys.executable, os.path.abspath(__file__), "--output", self.arguments.output, "--device", self.device,
                       "--budget-s", str(limit), "--repetition", str(repetition), "dispatch-once"]
            subprocess.run(command + (["--smoke"] if self.arguments.smoke else []), timeout=limit + 60, check=False)

    def dispatch_once(self):
        import frameworks
        repetition = self.arguments.repetition
        rows = Rows(self.path("dispatch.csv"), ["gpu", "framework", "op", "precision", "shape", "mode", "repetition", *TIMES],
                    ("framework", "op", "precision", "shape", "repetition"))
        with open(os.path.join(ROOT, "calibration", "campaign_operators.jsonl")) as file:
            cases = [json.loads(line) for line in file]
        smallest = {}
        for case in cases:
            kind = (case["op"], "times=" in case["shape"])
            if kind not in smallest or case["bytes"] < smallest[kind]["bytes"]:
                smallest[kind] = case
        names = ["pytorch-eager", "torchscript"] + (["cuda-graph"] if self.device != "cpu" else [])
        if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
            names.append("onnxruntime-cpu" if self.device == "cpu" else "onnxruntime-cuda")
        library = self.path("libtorch_dispatch.so")
        libtorch_timer = None
        if os.path.exists(library):
            import libtorch
            libtorch_timer = libtorch.LibtorchTimer(library, self.device)
            names.append("libtorch")
        work = [(framework, case, precision) for framework in names for case in smallest.values()
                for precision in (("fp32",) if self.device == "cpu" else ("fp32", "fp16"))]
        random.Random(repetition).shuffle(work)
        for framework, case, precision in work:
            if self.budget.left() < 2:
                return
            key = {"framework": framework, "op": case["op"], "precision": precision, "shape": case["shape"],
                   "repetition": repetition}
            if rows.has(**key):
                continue
            result = dict(NOTHING)
            try:
                timer = libtorch_timer if framework == "libtorch" else self.timer
                if framework == "libtorch":
                    timer.prepare(case["graph"], precision)
                    run = timer.run
                else:
                    network, inputs, _ = self.network(case["graph"], {}, precision)
                    run = frameworks.wrap(framework, network, inputs, precision, self.device)
                result |= measure(timer, run, "host_dispatch", self.power, self.limits)
            except Exception as error:
                result["problem"] = reason(error)
            rows.add(gpu=self.gpu, mode="host_dispatch", **key, **result)
            if result["problem"]:
                self.check_alive()

    def measure_networks(self, file, names, precisions, models, batches):
        columns = ["gpu", "framework", "precision", "model", "batch", "seq", "mode", "source", *TIMES, "kernels", "kernel_ms"]
        rows = Rows(self.path(file), columns, ("framework", "precision", "model", "batch", "mode"))
        # Model by model, so that a budget that ends early leaves whole curves.
        for model in models:
            with open(os.path.join(ROOT, "graphs", "zoo", model + ".txt")) as graph_file:
                text = graph_file.read()
            for framework in names:
                for precision in precisions:
                    for batch in batches:
                        if self.budget.left() < (60 if framework == "torch-compile" else 15):
                            return
                        label = {"framework": framework, "precision": precision, "model": model, "batch": batch}
                        if not self.measure_network(rows, text, label):
                            break  # what a framework refuses it refuses at every batch; larger ones do not fit, either

    def measure_network(self, rows, text, label):
        """Times one network at one batch in every mode. Returns False where it cannot be run, now or in an earlier call."""
        import frameworks
        if any(rows.has_failed(**label, mode=mode) for mode in NETWORK_MODES):
            return False
        missing = [mode for mode in NETWORK_MODES if not rows.has(**label, mode=mode)]
        if not missing:
            return True
        self.progress("{model} {framework} {precision}".format(**label), label["batch"], self.batches[-1])
        common = dict(gpu=self.gpu, seq=128 if "seq" in text else "", **label)
        run = network = None
        mode, problem = missing[0], ""
        try:
            bindings = {"batch": label["batch"], "seq": 128}
            network, inputs, source = self.network(text, bindings, label["precision"], label["model"])
            run = frameworks.wrap(label["framework"], network, inputs, label["precision"], self.device)
            for mode in missing:
                times = measure(self.timer, run, mode, self.power, self.limits)
                kernels = self.kernels(run, label) if mode == "device_hot" else {}
                rows.add(**common, mode=mode, source=source, **(NOTHING | times | kernels))
        except OSError:
            raise  # the disk is full, not the network at fault
        except Exception as error:
            problem = reason(error)
            rows.add(**common, mode=mode, source="", **(NOTHING | {"problem": problem}))
            self.check_alive()
        del run, network
        self.free()
        return not problem

    def kernels(self, run, label):
        """Number and time of the kernels of one call, one by one in kernels.csv; nothing where the profiler is denied."""
        if self.device == "cpu":
            return {}
        import tracing
        kernels = tracing.trace(run, self.timer.synchronize)["kernels"]
        if not kernels:
            if not self.told_of_trace:
                print(f"warning: {tracing.DENIED}", file=sys.stderr)
            self.told_of_trace = True
            return {}
        if label["batch"] in TRACED_BATCHES:
            key = ("framework", "precision", "model", "batch")
            if not self.kernel_rows:
                self.kernel_rows = Rows(self.path("kernels.csv"), [*key, "index", "kernel", "grid", "block", "registers",
                                                                   "shared_bytes", "start_us", "duration_us", "problem"],
                                        (*key, "index"))
            for index, kernel in enumerate(kernels):
                if not self.kernel_rows.has(**label, index=index):
                    self.kernel_rows.add(**label, index=index, kernel=kernel["name"][:80],
                                         grid="x".join(map(str, kernel["grid"])),
                                         block="x".join(map(str, kernel["block"])), registers=kernel["registers"],
                                         shared_bytes=kernel["shared_bytes"], start_us=kernel["start_us"],
                                         duration_us=kernel["duration_us"], problem="")
        return {"kernels": len(kernels), "kernel_ms": f"{tracing.busy_us(kernels) / 1e3:.6g}"}

    def models_slice(self):
        self.measure_networks("models.csv", ("pytorch-eager",), self.precisions, self.models, self.batches)

    def frameworks(self):
        names = ("torchscript",) if self.device == "cpu" else FRAMEWORKS
        precisions = ("fp32",) if self.device == "cpu" else ("fp32", "fp16")
        models = self.models if self.arguments.smoke else FRAMEWORK_MODELS
        batches = self.batches if self.arguments.smoke else (1, 4, 16, 64)
        for framework in names:  # the cheap ones first; compiling takes half a minute a network
            self.measure_networks("frameworks.csv", (framework,), precisions, models,
                                  batches if framework != "torch-compile" else batches[:3:2])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("slices", nargs="+", choices=(*SLICES, "all", "dispatch-once"))
    parser.add_argument("--output", required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--budget-s", type=float, default=500)
    parser.add_argument("--repetition", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="the smallest case of everything")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, HERE)
    campaign = Campaign(arguments)
    slices = SLICES if "all" in arguments.slices else arguments.slices
    for name in slices:
        begin = time.monotonic()
        {"environment": campaign.environment, "operators": campaign.operators, "dispatch": campaign.dispatch,
         "models": campaign.models_slice, "frameworks": campaign.frameworks,
         "dispatch-once": campaign.dispatch_once}[name]()
        print(f"{name}: {time.monotonic() - begin:.0f} s, {max(campaign.budget.left(), 0):.0f} s left", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; what is complete has been kept")
    except Lost as error:
        sys.exit(f"campaign: the GPU is lost to this process, another call goes on: {error}")
    except (RuntimeError, OSError) as error:
        sys.exit(f"campaign: {error}")
