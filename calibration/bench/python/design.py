"""What the campaign measures, in which order, and how long that takes. Needs neither torch nor a GPU."""

import json
import os
from dataclasses import dataclass

from measuring import TIMES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
# Beyond it the launch queue may be full, and the host's time is the device's (src/scenario/machine_rows.cpp).
LARGEST_HOST_BATCH = 8
DISPATCH_PROCESSES = 5
TRACED_BATCHES = (1, 32)
# Networks whose text graph can be run, most informative first: a budget that ends early leaves a useful file.
MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "vit32", "distilbert", "densenet", "gpt2_forward", "vgg16",
          "efficientnet", "squeezenet", "alexnet", "googlenet", "resnext50_32x4d", "albert", "mnasnet", "shufflenet",
          "wide_resnet50_2", "resnet101", "squeeze_bert", "gernet", "inception", "efficientnet_lite", "resnet152",
          "roberta")
TRACED_MODELS = MODELS[:8]
FRAMEWORKS = ("cuda-graph", "torch-compile", "torchscript", "onnxruntime-cuda")
FRAMEWORK_MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "distilbert", "vit32", "densenet", "squeezenet")
# Two of them say what the host costs: a fit takes eight such rows (calibration/fit/machine_fit.cpp) with a network left out
# and another that did not compile.
FRAMEWORK_BATCHES = (1, 8, 16)
SMOKE_MODELS = ("squeezenet", "distilbert")

NETWORK_COLUMNS = ["gpu", "framework", "precision", "model", "batch", "seq", "mode", "source", "waits", *TIMES]
NETWORK_KEY = ("framework", "precision", "model", "batch", "mode")
KERNEL_KEY = ("framework", "precision", "model", "batch")


@dataclass(frozen=True)
class Stage:
    """`limit_s`: of one case, after which its process is taken for stalled; no case begins with less than `least_s` left.
    `start_s`, `case_s`: expected on an H200 with 16 cores, of a process and of a case; so far estimates."""
    file: str
    columns: tuple
    key: tuple
    least_s: float
    limit_s: float
    start_s: float
    case_s: float


STAGES = {
    "environment": Stage("environment.json", (), (), 5, 120, 15, 10),
    "dispatch": Stage("dispatch.csv", ("gpu", "framework", "op", "precision", "shape", "mode", "repetition", *TIMES),
                      ("framework", "op", "precision", "shape", "repetition"), 3, 60, 8, 0.09),
    "frameworks": Stage("frameworks.csv", tuple(NETWORK_COLUMNS), NETWORK_KEY, 30, 180, 8, 2),
    "models": Stage("models.csv", tuple(NETWORK_COLUMNS), NETWORK_KEY, 20, 90, 8, 0.6),
    "operators": Stage("operators.csv", ("gpu", "op", "precision", "shape", "mode", *TIMES),
                       ("op", "precision", "shape", "mode"), 3, 60, 8, 0.11),
    "more-frameworks": Stage("frameworks.csv", tuple(NETWORK_COLUMNS), NETWORK_KEY, 30, 180, 8, 2),
    "traces": Stage("kernels.csv.gz", (*KERNEL_KEY, "index", "kernel", "grid", "block", "registers", "shared_bytes",
                                       "start_us", "duration_us", "problem"), KERNEL_KEY, 10, 60, 8, 0.8),
}
COMPILE_CASE_S = 20  # Inductor's, of one network at one batch

# Calls of the campaign by what no public table has: host costs of compiled networks and CUDA graphs, then networks, then
# operators. Each call first does its own, then what earlier ones left undone. A profiler stays attached to its process and
# lengthens what follows: traces run in the last one.
SLICES = {
    "first": ("environment", "dispatch", "frameworks"),
    "second": ("environment", "models", "dispatch", "frameworks"),
    "third": ("environment", "operators", "traces", "dispatch", "frameworks", "models", "more-frameworks"),
    "all": ("environment", "dispatch", "frameworks", "models", "operators", "traces", "more-frameworks"),
}


@dataclass(frozen=True)
class Options:
    device: str
    smoke: bool = False
    sms: int = 0  # multiprocessors; 0 where not known yet

    @property
    def precisions(self):
        return ("fp32",) if self.device == "cpu" else PRECISIONS

    @property
    def batches(self):
        return (1, 2) if self.smoke else BATCHES


def read_list(name):
    with open(os.path.join(ROOT, "calibration", name)) as file:
        return [json.loads(line) for line in file]


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
    if options.sms and options.device != "cpu":
        cases += wave_edges(options.sms)
    quantised = quantised_products()
    if options.smoke:
        cases = _smallest(cases, lambda case: (case["op"], "kv_heads" in case["shape"]))
        quantised = _smallest(quantised, lambda case: case["precision"])
    return [{**case, "precision": precision, "mode": "device_hot"} for case in cases for precision in options.precisions] + [
        {**case, "mode": "device_hot"} for case in quantised]


def dispatch_cases(options):
    frameworks = ("pytorch-eager", "torchscript", "libtorch") + (() if options.device == "cpu" else ("cuda-graph",))
    precisions = ("fp32",) if options.device == "cpu" else ("fp32", "fp16", "bf16")
    repetitions = 1 if options.smoke else DISPATCH_PROCESSES
    return [{**case, "framework": framework, "precision": precision, "mode": "host_dispatch", "repetition": repetition}
            for repetition in range(repetitions) for framework in frameworks
            for case in read_list("campaign_dispatch.jsonl") for precision in precisions]


def _networks(frameworks, precisions, models, batches):
    return [{"framework": framework, "precision": precision, "model": model, "batch": batch}
            for framework in frameworks for model in models for precision in precisions for batch in batches]


def model_cases(options):
    models = SMOKE_MODELS if options.smoke else MODELS
    return _networks(("pytorch-eager",), options.precisions, models, options.batches)


def framework_cases(options):
    if options.device == "cpu":
        return _networks(("torchscript",), ("fp32",), SMOKE_MODELS if options.smoke else FRAMEWORK_MODELS, options.batches[:2])
    return _networks(FRAMEWORKS, ("fp16",), SMOKE_MODELS[:1] if options.smoke else FRAMEWORK_MODELS, FRAMEWORK_BATCHES)


def more_framework_cases(options):
    if options.device == "cpu" or options.smoke:
        return []
    more = _networks([f for f in FRAMEWORKS if f != "torch-compile"], ("fp16", "fp32"), FRAMEWORK_MODELS, (1, 4, 16, 64))
    return more + _networks(("torch-compile",), ("fp32",), FRAMEWORK_MODELS, FRAMEWORK_BATCHES)


def trace_cases(options):
    if options.device == "cpu":
        return []  # no kernels to record
    models = SMOKE_MODELS[:1] if options.smoke else TRACED_MODELS
    return _networks(("pytorch-eager",), ("fp16",) if options.smoke else ("fp32", "fp16"), models,
                     (1,) if options.smoke else TRACED_BATCHES)


CASES = {"dispatch": dispatch_cases, "frameworks": framework_cases, "models": model_cases, "operators": operator_cases,
         "more-frameworks": more_framework_cases, "traces": trace_cases}


def modes_of(case):
    return ("end_to_end", "device_hot", *(("host_dispatch",) if case["batch"] <= LARGEST_HOST_BATCH else ()))


def is_done(stage, case, rows):
    """Whether nothing of a case is left to measure: it is there, or it failed. What a framework refuses it refuses at every
    batch, and batches larger than one that did not fit do not fit, either."""
    if stage not in ("models", "frameworks", "more-frameworks"):
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


def expected_s(stage, cases):
    """How long cases take, the starts of their processes included."""
    if stage == "environment":
        return STAGES[stage].start_s + STAGES[stage].case_s
    if not cases:
        return 0
    processes = len({(case.get("repetition"), case.get("framework")) if stage.endswith("frameworks") else
                     case.get("repetition") for case in cases})
    case_s = STAGES[stage].case_s
    return processes * STAGES[stage].start_s + sum(
        COMPILE_CASE_S if case.get("framework") == "torch-compile" else case_s for case in cases)


def plan(expected, budget_s):
    """Allots a budget: (stage, seconds) in order of running. `expected`: seconds by stage in order of importance; those that
    come first get all they need, the first that does not fit gets what is left."""
    allotted, left = {}, budget_s
    for stage, seconds in expected.items():
        least = STAGES[stage].start_s + STAGES[stage].least_s
        if seconds > 0 and left >= least:
            allotted[stage] = min(max(seconds, least), left)
            left -= allotted[stage]
    traces = allotted.pop("traces", None)
    return [*allotted.items(), *([("traces", traces)] if traces else [])]
