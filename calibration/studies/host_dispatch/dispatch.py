#!/usr/bin/env python3
"""Times what a call of eager PyTorch costs the CPU before a kernel is launched, by kind of operator and version.

    dispatch.py measure OUT.csv PYTHON...   a Python per version of PyTorch, measured in turn, --rounds times over
    dispatch.py carry DATA_FOLDER           DATA_FOLDER/profiles/versions.json from the tables beside this program

A call runs on the device of empty_backend.cpp, whose kernels do nothing. Times are CPU time of one thread in ns, without the loop
around them: `alone`, in a loop of its own, the least of several repetitions, or `mixed`, between other calls, the median;
of both the lower quartile over the rounds. Operators of a module are timed as a call of the module, without what the call of a
module that returns its input costs.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BASE = "1.12.1"
CALLS, REPETITIONS, SHUFFLES = 300, 11, 400
# The Python that every version runs in; others tell what Python does.
PYTHON = "3.10"
# Parameters of the host model (host.KIND) and the calls that stand for them. Grouped convolutions are dispatched as others.
KINDS = {
    "batch_norm": "batch_norm",
    "bmm": "bmm",
    "conv": "conv",
    "conv_depthwise": "conv_depthwise",
    "conv_grouped": "conv",
    "elementwise": "elementwise",
    "gemm": "gemm",
    "layer_norm": "layer_norm",
    "module_call": "module_call",
    "view": "view",
}
# Kinds without a kernel. What they cost the fitted hosts over what they cost here says how much slower those are.
ALL_DISPATCH = ("module_call", "view")
# What a host's kinds share beyond what is measured here: cuDNN, cuBLAS, the driver, the version of Python (10 % of the dispatch).
# Two versions of PyTorch on the same kind of machine are 12 % apart: models_2x.csv, hf_compile on an A100, 2.0.1 and 2.1.
SHARED_LOG_STDDEV = 0.12
# What hosts of 1.13 and later take over those of the base, dispatch aside, by framework: README.md says whence. It multiplies
# each kind, also those that are not timed, so that a host's scale stays what its own rows say.
HOSTS = {"pytorch-eager": (0.82, ("forward", "list_part", "synchronize"))}
# Of models: blocks of a ResNet and a BERT against the sum of their calls, times the dispatch's share.
MODEL_LOG_STDDEV = 0.02


def backend():
    from torch.utils import cpp_extension

    standard = "-std=c++20" if sys.modules["torch"].__version__ >= "2.11" else "-std=c++17"
    return cpp_extension.load(
        "ftax_empty_backend",
        [str(HERE / "empty_backend.cpp")],
        extra_cflags=["-O2", standard, "-w"],
        build_directory=os.environ.get("FTAX_BUILD_DIRECTORY"),
    )


def blocks(torch, tensor, on_device):
    """Parts of models as torchvision and transformers write them: calls of every kind in their usual mixture."""
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(256, 64, 1, bias=False), nn.BatchNorm2d(64)
            self.conv2, self.bn2 = nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)
            self.conv3, self.bn3 = nn.Conv2d(64, 256, 1, bias=False), nn.BatchNorm2d(256)
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            identity = x
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.relu(self.bn2(self.conv2(out)))
            out = self.bn3(self.conv3(out))
            out += identity
            return self.relu(out)

    class SelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(768, 768) for _ in range(3))
            self.dropout = nn.Dropout(0.1)

        def heads(self, x):
            return x.view(x.size()[:-1] + (12, 64)).permute(0, 2, 1, 3)

        def forward(self, hidden, mask):
            key, value = self.heads(self.key(hidden)), self.heads(self.value(hidden))
            query = self.heads(self.query(hidden))
            scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(64)
            weights = self.dropout(nn.functional.softmax(scores + mask, dim=-1))
            mixed = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
            return mixed.view(mixed.size()[:-2] + (768,))

    class Output(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.dense, self.norm, self.dropout = nn.Linear(width, 768), nn.LayerNorm(768), nn.Dropout(0.1)

        def forward(self, hidden, residual):
            return self.norm(self.dropout(self.dense(hidden)) + residual)

    class BertLayer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.attention_output = SelfAttention(), Output(768)
            self.intermediate, self.output = nn.Linear(768, 3072), Output(3072)

        def forward(self, hidden, mask):
            attended = self.attention_output(self.attention(hidden, mask), hidden)
            return self.output(nn.functional.gelu(self.intermediate(attended)), attended)

    bottleneck, bert = on_device(Bottleneck()), on_device(BertLayer())
    image, hidden, mask = tensor(1, 256, 56, 56), tensor(1, 128, 768), tensor(1, 1, 1, 128)
    return [("bottleneck", lambda: bottleneck(image)), ("bert_layer", lambda: bert(hidden, mask))]


def cases(torch):
    """Calls by kind (HostKind of include/ftax/framework.hpp); modules are marked, their calls' own cost is taken off."""
    nn, f = torch.nn, torch.nn.functional
    make = backend().empty

    def tensor(*sizes, indices=False):
        return make(list(sizes), False, indices)

    def on_device(module):
        for part in module.modules():
            for table in (part._parameters, part._buffers):
                for name, value in table.items():
                    if value is None:
                        continue
                    new = tensor(*value.shape)
                    table[name] = nn.Parameter(new) if table is part._parameters else new
        return module.eval()

    class Plain(nn.Module):
        def forward(self, x):
            return x

    x, y = tensor(1, 128, 768), tensor(1, 128, 768)
    heads, keys, scores = tensor(1, 12, 128, 64), tensor(1, 12, 64, 128), tensor(1, 12, 128, 128)
    flat = tensor(128, 768)
    image, ids = tensor(1, 64, 56, 56), tensor(1, 128, indices=True)
    past, fresh = tensor(1, 16, 128, 64), tensor(1, 16, 1, 64)
    parts = [tensor(1, 16, 8, 8) for _ in range(34)]
    linear, plain_linear = on_device(nn.Linear(768, 768)), on_device(nn.Linear(768, 768, bias=False))
    conv, biased = on_device(nn.Conv2d(64, 64, 3, padding=1, bias=False)), on_device(nn.Conv2d(64, 64, 1))
    depthwise = on_device(nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False))
    batch_norm, layer_norm = on_device(nn.BatchNorm2d(64)), on_device(nn.LayerNorm(768))
    relu, relu_in_place, gelu = nn.ReLU(), nn.ReLU(inplace=True), nn.GELU()
    pool, global_pool = nn.MaxPool2d(3, 2, 1), nn.AdaptiveAvgPool2d(1)
    embedding = on_device(nn.Embedding(1000, 768))
    plain = Plain()
    by_view = [
        ("view", lambda: x.view(1, 128, 12, 64)),
        ("reshape", lambda: x.reshape(1, 128, 12, 64)),
        ("transpose", lambda: heads.transpose(1, 2)),
        ("permute", lambda: heads.permute(0, 2, 1, 3)),
        ("slice", lambda: x[:, :1]),
        ("unsqueeze", lambda: flat.unsqueeze(0)),
        ("expand", lambda: flat.expand(4, 128, 768)),
    ]
    by_elementwise = [
        ("add", lambda: x + y),
        ("mul", lambda: x * y),
        ("div_scalar", lambda: scores / 8.0),
        ("pow_scalar", lambda: torch.pow(x, 3.0)),
        ("tanh", lambda: torch.tanh(x)),
        ("rsqrt", lambda: torch.rsqrt(x)),
        ("mean", lambda: x.mean(-1, keepdim=True)),
        ("softmax", lambda: f.softmax(scores, dim=-1)),
        ("contiguous", lambda: heads.transpose(1, 2).contiguous()),
        ("cat", lambda: torch.cat((past, fresh), dim=2)),
    ]
    elementwise_modules = [
        ("relu", lambda: relu(image)),
        ("relu_in_place", lambda: relu_in_place(image)),
        ("gelu", lambda: gelu(x)),
        ("max_pool", lambda: pool(image)),
        ("global_pool", lambda: global_pool(image)),
        ("embedding", lambda: embedding(ids)),
    ]
    calls = [("empty", "loop", False, lambda: None), ("module_call", "module_call", False, lambda: plain(x))]
    calls += [("view", name, False, body) for name, body in by_view]
    calls += [("elementwise", name, False, body) for name, body in by_elementwise]
    calls += [("elementwise", name, True, body) for name, body in elementwise_modules]
    calls += [
        ("cat34", "cat34", False, lambda: torch.cat(parts, dim=1)),
        ("gemm", "linear", True, lambda: linear(x)),
        ("gemm", "linear_one_token", True, lambda: linear(flat)),
        ("gemm", "linear_without_bias", True, lambda: plain_linear(x)),
        ("bmm", "matmul", False, lambda: torch.matmul(heads, keys)),
        ("bmm", "matmul_transposed", False, lambda: torch.matmul(heads, heads.transpose(-1, -2))),
        ("bmm3", "bmm", False, lambda: torch.bmm(parts3, parts3)),
        ("conv", "conv", True, lambda: conv(image)),
        ("conv_with_bias", "conv_with_bias", True, lambda: biased(image)),
        ("conv_depthwise", "depthwise", True, lambda: depthwise(image)),
        ("batch_norm", "batch_norm", True, lambda: batch_norm(image)),
        ("layer_norm", "layer_norm", True, lambda: layer_norm(x)),
    ]
    parts3 = tensor(12, 64, 64)
    calls += [("block", name, False, body) for name, body in blocks(torch, tensor, on_device)]
    return calls


def alone_ns(calls):
    """Each call in a loop of its own: everything it needs stays in the caches."""
    loop = range(CALLS)
    times = []
    for _, _, _, body in calls:
        samples = []
        for _ in range(REPETITIONS):
            start = time.thread_time_ns()
            for _ in loop:
                body()
            samples.append((time.thread_time_ns() - start) / CALLS)
        times.append(min(samples))
    return times


def mixed_ns(calls):
    """Each call between others, as in a model: medians over shuffled orders."""
    samples = [[] for _ in calls]
    order = list(range(len(calls)))
    clock = time.perf_counter_ns
    for _ in range(SHUFFLES):
        random.shuffle(order)
        for i in order:
            body = calls[i][3]
            start = clock()
            body()
            samples[i].append(clock() - start)
    return [statistics.median(s) for s in samples]


def worker():
    """Prints a JSON object of times in this Python."""
    import torch

    torch.set_num_threads(1)
    every, usable, times, problems = cases(torch), [], [], []
    for mode in ("no_grad", "inference_mode"):
        with getattr(torch, mode)():
            for case in every if not usable else []:
                try:
                    case[3]()
                    usable.append(case)
                except (RuntimeError, NotImplementedError) as error:
                    problems.append(f"{case[1]}: {str(error).splitlines()[0]}")
            for order, time_all in (("alone", alone_ns), ("mixed", mixed_ns)):
                found = time_all(usable)
                own = {call: ns - found[0] for (_, call, _, _), ns in zip(usable, found)}
                for kind, call, in_module, _ in usable[1:]:
                    ns = own[call] - (own["module_call"] if in_module else 0)
                    times.append({"mode": mode, "order": order, "kind": kind, "call": call, "ns": round(ns)})
    version = torch.__version__.split("+")[0]
    print(json.dumps({"torch": version, "python": sys.version.split()[0], "times": times, "problems": problems}))


def measure(out, pythons, rounds):
    samples = {}
    core = min(os.sched_getaffinity(0))
    for number in range(rounds):
        for python in pythons:
            build = pathlib.Path(python).parent / "ftax_empty_backend"
            build.mkdir(exist_ok=True)
            run = subprocess.run(
                ["taskset", "-c", str(core), python, __file__, "worker"],
                env={**os.environ, "FTAX_BUILD_DIRECTORY": str(build), "OMP_NUM_THREADS": "1"},
                check=True,
                capture_output=True,
                text=True,
            )
            found = json.loads(run.stdout.splitlines()[-1])
            if number == 0 and found["problems"]:
                print(found["torch"], "; ".join(found["problems"]), file=sys.stderr)
            for row in found["times"]:
                key = (found["torch"], found["python"], row["mode"], row["order"], row["kind"], row["call"])
                samples.setdefault(key, []).append(row["ns"])
    with open(out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["torch", "python", "mode", "order", "kind", "call", "ns"])
        for key, times in samples.items():
            writer.writerow([*key, sorted(times)[len(times) // 4]])


class Times:
    """A committed table: times of each version by what was timed, of one Python, in seconds."""

    def __init__(self, name, version, what):
        self.seconds = {}
        for row in csv.DictReader((HERE / name).open()):
            if row["python"].startswith(PYTHON):
                self.seconds.setdefault(row[version], {})[tuple(row[w] for w in what)] = float(row["ns"]) * 1e-9

    def versions(self):
        return [v for v in sorted(self.seconds, key=lambda v: [int(part) for part in v.split(".")]) if v != BASE]

    def of(self, kind):
        return statistics.fmean(t for key, t in self.seconds[BASE].items() if key[0] == kind)

    def ratio(self, kind, version):
        """Geometric mean over calls and conditions of this version's time over the base's, and its logarithm's spread."""
        logs = [math.log(t / self.seconds[BASE][key]) for key, t in self.seconds[version].items() if key[0] == kind]
        return math.exp(statistics.fmean(logs)), statistics.pstdev(logs)


def fitted_costs(data, framework):
    """Seconds by kind on the reference host."""
    profile = json.loads((data / f"profiles/frameworks/{framework}.json").read_text())
    values = {p["name"]: p["value"] for p in profile["parameters"]}
    return {n.removeprefix("host."): values["host.scale"] * v for n, v in values.items() if n.startswith("host.")}


def entries(framework, times, costs, kinds, slower):
    """Ratios of the fitted costs: dispatch is as large a share of them as this CPU's times, `slower` times as long, are."""
    hosts, untimed = HOSTS.get(framework, (1, ()))
    fitted = f"; {hosts} fitted: host-bound rows of models_2x.csv, 5 machines" if hosts != 1 else ""
    for version in times.versions():
        ratios = [{"name": f"host.{kind}", "value": hosts, "source": fitted.removeprefix("; ")} for kind in untimed]
        for kind, timed in sorted(kinds.items()):
            ratio, spread = times.ratio(timed, version)
            share = 1 if kind in ALL_DISPATCH else slower * times.of(timed) / costs[kind]
            value = 1 + share * (ratio - 1)
            print(f"{framework} {version:7} {kind:15} {ratio:.3f} (spread {spread:.3f}), {share:.0%} of the cost: {value:.3f}")
            source = f"measured: calibration/studies/host_dispatch, dispatch {ratio:.2f}, {share:.0%} of the cost{fitted}"
            ratios.append({"name": f"host.{kind}", "value": round(hosts * value, 3), "source": source})
        yield {
            "framework": framework,
            "version": ".".join(version.split(".")[:2]),
            "shared_log_stddev": SHARED_LOG_STDDEV,
            "model_log_stddev": MODEL_LOG_STDDEV,
            "ratios": sorted(ratios, key=lambda ratio: ratio["name"]),
        }


def carry(data):
    calls = Times("dispatch.csv", "torch", ("kind", "mode", "order", "call"))
    nodes = Times("onnxruntime_nodes.csv", "onnxruntime", ("what", "chain"))
    eager, sessions = (fitted_costs(data, framework) for framework in ("pytorch-eager", "onnxruntime-cuda"))
    slower = statistics.geometric_mean(eager[kind] / calls.of(kind) for kind in ALL_DISPATCH)
    print(f"the fitted hosts take {slower:.1f} times as long as the CPU that ran this")
    versions = [
        *entries("onnxruntime-cuda", nodes, sessions, {"engine": "node", "forward": "run"}, slower),
        *entries("pytorch-eager", calls, eager, KINDS, slower),
    ]
    path = data / "profiles/versions.json"
    timed = {entry["framework"] for entry in versions}
    versions += [entry for entry in json.loads(path.read_text())["versions"] if entry["framework"] not in timed]
    versions.sort(key=lambda entry: (entry["framework"], [int(part) for part in entry["version"].split(".")]))
    document = {"schema_version": 1, "kind": "versions", "versions": versions}
    path.write_text(json.dumps(document, indent=2) + "\n")


def main():
    if sys.argv[1:] == ["worker"]:
        return worker()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["measure", "carry"])
    parser.add_argument("path")
    parser.add_argument("pythons", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.verb == "measure":
        measure(arguments.path, arguments.pythons, arguments.rounds)
    else:
        carry(pathlib.Path(arguments.path))


if __name__ == "__main__":
    main()
