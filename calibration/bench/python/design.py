"""What the campaign measures, in which order, and how long that takes. Needs neither torch nor a GPU."""

import json
import os
from dataclasses import dataclass

from measuring import TIMES
from recording import Rows

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PRECISIONS = ("fp16", "bf16", "fp32", "tf32")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
# Beyond it the launch queue may be full, and the host's time is the device's (src/scenario/machine_rows.cpp).
LARGEST_HOST_BATCH = 8
SAMPLED_BATCHES = (1, 8, 64)  # of precisions that run the kernels of another one at another rate
DISPATCH_PROCESSES = 3
TRACED_BATCHES = (1, 32)
# Networks whose text graph can be run, most informative first: a budget that ends early leaves a useful file.
MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "vit32", "distilbert", "densenet", "gpt2_forward", "vgg16",
          "efficientnet", "squeezenet", "alexnet", "googlenet", "resnext50_32x4d", "albert", "mnasnet", "shufflenet",
          "wide_resnet50_2", "resnet101", "squeeze_bert", "gernet", "inception", "efficientnet_lite", "resnet152",
          "roberta")
FRAMEWORKS = ("pytorch-eager", "torch-cuda-graph", "torch-compile")
FRAMEWORK_MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "distilbert", "vit32", "densenet", "squeezenet")
CONVOLUTIONAL = tuple(model for model in FRAMEWORK_MODELS if "bert" not in model and model != "vit32")
# The host costs of a framework are fitted to eight rows or more (calibration/fit/machine_fit.cpp): two batches leave enough
# with a network left out and another that did not compile.
FRAMEWORK_BATCHES = (1, 8)
SMOKE_MODELS = ("squeezenet", "distilbert")

NETWORK_KEY = ("framework", "precision", "model", "layout", "batch", "mode")
KERNEL_KEY = ("framework", "precision", "model", "batch")
NETWORK_STAGES = ("frameworks", "models", "settings", "compiled")


@dataclass(frozen=True)
class Stage:
    """`limit_s`: of one case, after which its process is taken for stalled. `start_s`, `case_s`: expected on an H200 with 16
    cores, of a process (forked from one that has torch) and of a case; so far estimates."""
    file: str
    columns: tuple
    key: tuple
    limit_s: float
    start_s: float
    case_s: float

    def rows(self, folder):
        return Rows(os.path.join(folder, self.file), list(self.columns), self.key)


def _networks_stage(limit_s, case_s):
    return Stage("models.csv", ("gpu", "framework", "precision", "model", "batch", "seq", "layout", "mode", "source", "waits",
                                *TIMES), NETWORK_KEY, limit_s, 4, case_s)


# In order: host costs of compiled networks and CUDA graphs, which no public table has, then networks, then operators. A
# profiler stays attached to its process and lengthens what follows: traces run in the last one.
STAGES = {
    "environment": Stage("environment.json", (), (), 120, 4, 8),
    "frameworks": _networks_stage(180, 1.2),
    "dispatch": Stage("dispatch.csv", ("gpu", "framework", "op", "precision", "shape", "mode", "repetition", *TIMES),
                      ("framework", "op", "precision", "shape", "repetition"), 60, 4, 0.09),
    "models": _networks_stage(90, 0.6),
    "settings": _networks_stage(90, 0.8),
    "operators": Stage("operators.csv", ("gpu", "op", "precision", "shape", "mode", *TIMES),
                       ("op", "precision", "shape", "mode"), 60, 4, 0.11),
    "compiled": _networks_stage(180, 0.6),
    "traces": Stage("kernels.csv", (*KERNEL_KEY, "index", "kernel", "grid", "block", "registers", "shared_bytes",
                                    "start_us", "duration_us", "problem"), KERNEL_KEY, 60, 4, 0.8),
}
COMPILE_CASE_S = 15  # Inductor's, of one network at one batch

# Calls of the tool that lends a machine, by the seconds of each: half an hour in all, a start before each.
CALLS_S = (570, 540, 270)
START_OF_MACHINE_S = 120
SMOKE_S = 90  # the first call quickly checks whether every path runs


@dataclass(frozen=True)
class Options:
    device: str
    smoke: bool = False

    @property
    def precisions(self):
        return ("fp32",) if self.device == "cpu" else PRECISIONS

    @property
    def batches(self):
        return (1, 2) if self.smoke else BATCHES


def read_list(name):
    with open(os.path.join(ROOT, "calibration", name)) as file:
        return [json.loads(line) for line in file]


def quantised_products():
    """Products in element types that text graphs do not have (quantised.py), of Llama 3 8B's layers."""
    cases = []
    for n, k in ((4096, 4096), (14336, 4096), (4096, 14336)):
        for m in (1, 16, 64, 128, 1024, 4096, 8192):
            shape = f"k={k} m={m} n={n}"
            if m >= 16:
                cases.append({"op": "linear", "precision": "fp8", "shape": shape, "bytes": m * k + n * k + 2 * m * n,
                              "weight_bytes": n * k})
            if m <= 1024:
                cases.append({"op": "linear", "precision": "int4-weights", "shape": shape,
                              "bytes": 2 * m * k + n * k // 2 + 2 * m * n, "weight_bytes": n * k // 2})
    return cases


def _smallest(cases, kind):
    kept = {}
    for case in cases:
        if kind(case) not in kept or case["bytes"] < kept[kind(case)]["bytes"]:
            kept[kind(case)] = case
    return list(kept.values())


def operator_cases(options):
    cases = read_list("campaign_operators.jsonl")
    quantised = quantised_products()
    if options.smoke:
        cases = _smallest(cases, lambda case: (case["op"], "kv_heads" in case["shape"]))
        quantised = _smallest(quantised, lambda case: case["precision"])
    cases = [{**case, "precision": precision, "mode": "device_hot"} for precision in options.precisions for case in cases
             if not options.smoke or precision == options.precisions[0] or case["op"] in ("linear", "conv")] + [
        {**case, "mode": "device_hot"} for case in quantised]
    # All operators in fp16 and fp32, then what runs on tensor cores in other types; attention, which the fewest tables have,
    # and products first.
    by_value = ("attention", "linear", "conv", "bmm")
    return sorted(cases, key=lambda case: (
        0 if case["precision"] in ("fp16", "fp32") else 1 if case["op"] in by_value else 2,
        by_value.index(case["op"]) if case["op"] in by_value else len(by_value)))


def dispatch_cases(options):
    frameworks = ("pytorch-eager", "torchscript", "libtorch") + (() if options.device == "cpu" else ("torch-cuda-graph",))
    precisions = ("fp32",) if options.device == "cpu" or options.smoke else ("fp32", "fp16", "bf16")
    return [{**case, "framework": framework, "precision": precision, "mode": "host_dispatch", "repetition": repetition}
            for repetition in range(1 if options.smoke else DISPATCH_PROCESSES) for framework in frameworks
            for case in read_list("campaign_dispatch.jsonl") for precision in precisions]


def _networks(frameworks, precisions, models, batches, layout=""):
    return [{"framework": framework, "precision": precision, "model": model, "layout": layout, "batch": batch}
            for framework in frameworks for model in models for precision in precisions for batch in batches]


def framework_cases(options):
    frameworks = ("pytorch-eager", "torchscript") if options.device == "cpu" else FRAMEWORKS
    precisions = ("fp32",) if options.device == "cpu" else ("fp16", "fp32")[:1 if options.smoke else 2]
    if options.smoke:
        return _networks(frameworks, precisions, SMOKE_MODELS[:1], (1,) if options.device != "cpu" else options.batches)
    return [case for case in _networks(frameworks, precisions, FRAMEWORK_MODELS, FRAMEWORK_BATCHES)
            if case["framework"] != "torch-compile" or case["precision"] == "fp16"]


def compiled_cases(options):
    """Compiling takes longest: in fp32 once all else is there."""
    return [] if options.device == "cpu" or options.smoke else _networks(
        ("torch-compile",), ("fp32",), FRAMEWORK_MODELS, FRAMEWORK_BATCHES)


def model_cases(options):
    models = SMOKE_MODELS if options.smoke else MODELS
    precisions = options.precisions[:1] if options.smoke else options.precisions
    cases = [case for case in _networks(("pytorch-eager",), precisions, models, options.batches)
             if case["precision"] in ("fp16", "fp32") or case["batch"] in SAMPLED_BATCHES]
    return sorted(cases, key=lambda case: (case["precision"] not in ("fp16", "fp32"), case["batch"] not in SAMPLED_BATCHES))


def setting_cases(options):
    """Autocast, and convolutions in channels-last layout."""
    models = SMOKE_MODELS[:1] if options.smoke else FRAMEWORK_MODELS
    batches = (1,) if options.smoke else FRAMEWORK_BATCHES
    return _networks(("pytorch-eager",), ("amp",), models, batches) + _networks(
        ("pytorch-eager",), options.precisions[:1], [model for model in models if model in CONVOLUTIONAL], batches, "nhwc")


def trace_cases(options):
    if options.device == "cpu":
        return []  # no kernels to record
    models = SMOKE_MODELS[:1] if options.smoke else FRAMEWORK_MODELS
    cases = _networks(("pytorch-eager",), ("fp16",) if options.smoke else ("fp16", "fp32"), models,
                      (1,) if options.smoke else TRACED_BATCHES)
    return [{name: case[name] for name in KERNEL_KEY} for case in cases]


CASES = {"frameworks": framework_cases, "dispatch": dispatch_cases, "models": model_cases, "settings": setting_cases,
         "operators": operator_cases, "compiled": compiled_cases, "traces": trace_cases}


def modes_of(case):
    return ("end_to_end", "device_hot", *(("host_dispatch",) if case["batch"] <= LARGEST_HOST_BATCH else ()))


def is_done(stage, case, rows):
    """Whether nothing of a case is left to measure: it is there, or it failed. What a framework refuses it refuses at every
    batch, and batches larger than one that did not fit do not fit, either."""
    if stage not in NETWORK_STAGES:
        return rows.has(**case)
    curve = {**case}
    for batch in BATCHES:
        curve["batch"] = batch
        if batch <= case["batch"] and any(rows.has_failed(**curve, mode=mode) for mode in modes_of(curve)):
            return True
    return all(rows.has(**case, mode=mode) for mode in modes_of(case))


def remaining(stage, options, rows):
    """Cases that are not done, in the order of the design."""
    return [case for case in CASES[stage](options) if not is_done(stage, case, rows)]


def processes(stage, cases):
    """What each of the processes that a stage takes measures: one for each repetition of dispatch, which differs from
    process to process, and for each framework."""
    by = "repetition" if stage == "dispatch" else "framework" if stage == "frameworks" else None
    return [{by: value} if by else {} for value in dict.fromkeys(case.get(by) for case in cases)]


def expected_s(stage, cases):
    """How long cases take, the starts of their processes included."""
    known = STAGES[stage]
    if stage == "environment":
        return known.start_s + known.case_s
    return len(processes(stage, cases)) * known.start_s + sum(
        COMPILE_CASE_S if case.get("framework") == "torch-compile" else known.case_s for case in cases)
