"""Measures a GPU machine without ftax itself: operators, dispatch and networks, within a time budget, resumable.
See calibration/campaign.sh."""

import argparse
import csv
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
# Networks whose text graph can be run, most informative first: a budget that ends early leaves a useful file.
MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "vit32", "distilbert", "densenet", "gpt2_forward", "vgg16",
          "efficientnet", "squeezenet", "alexnet", "googlenet", "resnext50_32x4d", "albert", "mnasnet", "shufflenet",
          "wide_resnet50_2", "resnet101", "squeeze_bert", "gernet", "inception", "efficientnet_lite", "resnet152",
          "roberta")
FRAMEWORKS = ("torchscript", "cuda-graph", "onnxruntime-cuda", "torch-compile")
FRAMEWORK_MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "distilbert", "vit32", "densenet", "squeezenet")


class Budget:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


class Rows:
    """A CSV file that is only appended to; a torn last line of a killed run is cut off, complete rows are not repeated."""

    def __init__(self, path, columns, key):
        self.columns, self.key, self.done = columns, key, set()
        if os.path.exists(path):
            with open(path, "rb+") as file:
                text = file.read()
                file.truncate(text.rfind(b"\n") + 1)
            with open(path, newline="") as file:
                self.done = {tuple(row[name] for name in key) for row in csv.DictReader(file)}
        new = not os.path.exists(path) or os.path.getsize(path) == 0
        self.file = open(path, "a", newline="")
        self.writer = csv.DictWriter(self.file, columns, lineterminator="\n")
        if new:
            self.writer.writeheader()

    def has(self, **row):
        return tuple(str(row[name]) for name in self.key) in self.done

    def add(self, **row):
        self.writer.writerow(row)
        self.file.flush()
        self.done.add(tuple(str(row[name]) for name in self.key))


class Power:
    """Clock, power and other processes by NVML, where its package is there."""

    def __init__(self, device):
        self.handle = None
        if device == "cpu":
            return
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception as error:
            print(f"warning: no clocks or power: {error}", file=sys.stderr)

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
        # 0.6 of the largest clock: big matrix products bring a power-limited card to 0.7 in steady state.
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
    known = [c for c in clocks if c != ""]
    return {"latency_ms": f"{1e3 * statistics.median(samples):.6g}", "min_ms": f"{1e3 * min(samples):.6g}",
            "samples": len(samples), "calls": calls, "discarded": discarded,
            "relative_stddev": f"{statistics.stdev(samples) / statistics.mean(samples):.3g}" if len(samples) > 1 else 0,
            "clock_mhz": round(statistics.mean(known)) if known else "", "power_w": power.read("power_w")}


TIMES = ["latency_ms", "min_ms", "samples", "calls", "discarded", "relative_stddev", "clock_mhz", "power_w", "problem"]
NOTHING = dict.fromkeys(TIMES, "")


def reason(error):
    return f"{type(error).__name__}: {error}".split("\n")[0][:160]


class Campaign:
    def __init__(self, arguments):
        import torch
        import timing
        self.torch, self.arguments = torch, arguments
        torch.set_grad_enabled(False)
        self.device = arguments.device
        self.timer = timing.timer(self.device, 1)
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
                network, inputs, _ = self.network(case["graph"], {}, precision)
                run = frameworks.wrap(framework, network, inputs, precision, self.device)
                result |= measure(self.timer, run, "host_dispatch", self.power, self.limits)
            except Exception as error:
                result["problem"] = reason(error)
            rows.add(gpu=self.gpu, mode="host_dispatch", **key, **result)

    def measure_networks(self, file, names, precisions, models, batches):
        import frameworks
        rows = Rows(self.path(file), ["gpu", "framework", "precision", "model", "batch", "seq", "mode", "source", *TIMES],
                    ("framework", "precision", "model", "batch", "mode"))
        modes = ("end_to_end", "device_hot", "host_dispatch")
        # Model by model, so that a budget that ends early leaves whole curves.
        for model in models:
            with open(os.path.join(ROOT, "graphs", "zoo", model + ".txt")) as graph_file:
                text = graph_file.read()
            for framework in names:
                for precision in precisions:
                    too_large = False
                    for batch in batches:
                        if self.budget.left() < (60 if framework == "torch-compile" else 15):
                            return
                        label = {"framework": framework, "precision": precision, "model": model, "batch": batch}
                        if all(rows.has(**label, mode=mode) for mode in modes) or too_large:
                            continue
                        self.progress(f"{model} {framework} {precision}", batch, batches[-1])
                        common = dict(gpu=self.gpu, seq=128 if "seq" in text else "", **label)
                        run = network = None
                        try:
                            network, inputs, source = self.network(text, {"batch": batch, "seq": 128}, precision, model)
                            run = frameworks.wrap(framework, network, inputs, precision, self.device)
                            for mode in modes:
                                if not rows.has(**label, mode=mode):
                                    rows.add(**common, mode=mode, source=source,
                                             **(NOTHING | measure(self.timer, run, mode, self.power, self.limits)))
                        except Exception as error:
                            rows.add(**common, mode="end_to_end", source="", **(NOTHING | {"problem": reason(error)}))
                            too_large = "memory" in str(error).lower()
                            # A network that this framework refuses is refused at every batch.
                            if not too_large:
                                too_large = True
                        del run, network
                        self.free()

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
    except RuntimeError as error:
        sys.exit(f"campaign: {error}")
