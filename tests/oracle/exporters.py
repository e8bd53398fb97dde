#!/usr/bin/env python3
"""Writes the same models through every exporter, and compares what ftax makes of the files.

    exporters.py write DIR [MODEL…]     MODEL as graphs/zoo/export.py takes it (default: the list MODELS)
    exporters.py compare FTAX DIR  > exporters.tsv

`write` makes DIR/MODEL.EXPORTER.SUFFIX, weightless: pt2, dynamo (ONNX of torch.onnx.export(dynamo=True)), legacy13 and legacy20
(ONNX of the exporter that traces), traced and scripted (TorchScript; not every model can be scripted). `compare` prints FLOPs of
contractions, canonical operators and predictions for one file each, and fails where they differ from those of the .pt2 file by
more than the tolerances below and nothing below says why.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "graphs" / "zoo"))

MODELS = [
    *(f"torchvision:{name}" for name in ("resnet50", "densenet121", "regnet_y_400mf", "convnext_tiny", "mobilenet_v2")),
    *(f"torchvision:{name}" for name in ("efficientnet_b0", "shufflenet_v2_x1_0", "vit_b_16", "swin_t")),
    *(f"transformers:{name}Model" for name in ("Bert", "DistilBert", "Electra", "Albert", "GPT2")),
    "transformers:Wav2Vec2Model,samples=16000",
]
BATCH, SEQ = 2, 128
DEVICE = "a100-sxm4-40gb"
TOLERANCE = {"flops": 0.005, "onnxruntime-cuda": 0.02, "pytorch-eager": 0.05}

# What an exporter writes otherwise, by the kinds of operators that it changes the number of.
EAGER_ONLY = "ONNX has no dropout, detach or contiguous in inference"
FOLDED = "what depends on weights and fixed sizes only is folded into constants"
SPELLED = "torch.chunk and torch.roll are slices and concatenations, a concatenation of one part that is not empty is none"
OTHER_KINDS = {
    ".onnx": {
        **dict.fromkeys(("identity", "copy"), EAGER_ONLY),
        **dict.fromkeys(("fill", "gather", "embedding", "cast", "expand", "reshape", "transpose", "pointwise"), FOLDED),
        **dict.fromkeys(("slice", "split", "concat"), SPELLED),
        **dict.fromkeys(("reduce", "global_pool"), "a mean over both image axes is recognised as global pooling; weight norms are folded"),
    },
    ".pt": {
        "slice": "x[:, :n] cuts every dimension named, the whole ones too; torch.export leaves those out",
        "identity": "calls without effect (detach, type_as) are left out",
        **dict.fromkeys(("fill", "copy", "expand", "reshape"), "assignments to slices are one fill each"),
    },
}
FAST_PATH = "scripted, nn.MultiheadAttention takes its fast path: one operator of C++ instead of the calls of Python"
UNLIKE = {
    ("vit_b_16", "scripted"): {"kinds": ("linear", "split", "transpose", "slice", "reshape", "copy"), "why": FAST_PATH,
                               "targets": ("onnxruntime-cuda", "pytorch-eager")},
    ("swin_t", "scripted"): {"why": OTHER_KINDS[".pt"]["fill"], "targets": ("pytorch-eager",)},
    ("swin_t", "traced"): {"why": OTHER_KINDS[".pt"]["fill"], "targets": ("pytorch-eager",)},
    ("swin_t", ".onnx"): {"why": "the mask that eager PyTorch computes in each of the shifted blocks is a constant", "targets": ("pytorch-eager",)},
    ("GPT2Model", ".onnx"): {"why": "dropout is gone, and so is joining keys and values with an empty cache, which eager PyTorch does as a copy",
                             "targets": ("pytorch-eager",)},
    ("GPT2Model", "dynamo"): {"why": "torch.split is one slice for each piece, where the tracing exporter writes Split",
                              "targets": ("onnxruntime-cuda", "pytorch-eager")},
}


# ---- write -------------------------------------------------------------------------------------------------------------


def strip_weights(source, target):
    """Keeps name, type and shape of the large initializers, and says that their data lie in a file that is not there."""
    import onnx

    model = onnx.load(source)
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) <= 1024:
            continue
        entries = {"location": "weights-not-included", "offset": "0", "length": str(len(tensor.raw_data))}
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
    onnx.save(model, target)


def write_legacy(spec, opset, target):
    import export
    import torch

    model, inputs, _ = export.BUILDERS.get(spec.source, export.build_own)(spec)
    inputs = tuple(torch.zeros_like(value, device="cpu") for value in inputs.values())
    # The exporter appends the defaults of all further parameters, which the decorators of transformers 5 pass by name as well.
    forward = model.forward
    model.forward = lambda *values: forward(*values)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        whole = pathlib.Path(folder) / "model.onnx"
        torch.onnx.export(model.eval(), inputs, whole, opset_version=opset, dynamo=False)
        strip_weights(whole, target)


def write_torchscript(spec, scripted, target):
    import export
    import torch

    if scripted:
        torch.jit.script(export.build(spec)[0]).save(str(target))
        return
    # Tracing turns sizes into tensors, which the meta device's own checks do not take.
    model, inputs, _ = export.BUILDERS.get(spec.source, export.build_own)(spec)
    inputs = tuple(torch.zeros_like(value, device="cpu") for value in inputs.values())
    with torch.no_grad():
        torch.jit.trace(model.eval(), inputs, check_trace=False, strict=False).to("meta").save(str(target))


def write(folder, models):
    import export
    import torch

    torch.backends.mha.set_fastpath_enabled(False)  # tracers would write one fused operator, torch.export never does
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    for text in models or MODELS:
        spec = export.Spec(text)
        spec.export["symbols"] = []  # tracers fix every size: so do the others here
        jobs = {
            "traced.pt": lambda path: write_torchscript(spec, False, path),
            "scripted.pt": lambda path: write_torchscript(spec, True, path),
            "pt2.pt2": lambda path: (export.export_spec(spec, path.parent), (path.parent / f"{spec.name}.pt2").rename(path)),
            "dynamo.onnx": lambda path: (export.export_spec(spec, path.parent, onnx=True), (path.parent / f"{spec.name}.onnx").rename(path)),
            "legacy13.onnx": lambda path: write_legacy(spec, 13, path),
            "legacy20.onnx": lambda path: write_legacy(spec, 20, path),
        }
        for suffix, job in jobs.items():
            path = folder / f"{spec.name}.{suffix}"
            if path.exists():
                continue
            try:
                job(path)
                print(path.name, "written", flush=True)
            except Exception as error:  # not every exporter takes every model
                print(path.name, f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:160]}", flush=True)
        model, inputs, _ = export.build(spec)
        shapes = [f"{'float' if v.is_floating_point() else 'long'}:{'x'.join(map(str, v.shape))}" for v in inputs.values()]
        (folder / f"{spec.name}.inputs").write_text(",".join(shapes))


# ---- compare -----------------------------------------------------------------------------------------------------------


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def flags_for(ftax, path):
    """Arguments required by the file: the shapes of TorchScript, the symbols of the others."""
    if path.suffix == ".pt":
        return ["--input", path.with_name(path.name.split(".")[0] + ".inputs").read_text()]
    for flags in (["--batch", str(BATCH), "--dim", f"seq={SEQ}"], ["--batch", str(BATCH)], ["--dim", f"seq={SEQ}"], []):
        if run([ftax, "inspect", path, *flags, "--json", "-"]).returncode != 2:
            return flags
    raise RuntimeError(f"{path}: no flags fit")


def measure(ftax, path):
    flags = flags_for(ftax, path)
    done = run([ftax, "inspect", path, *flags, "--json", "-"])
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout)
    counts = collections.Counter({kind["name"]: kind["operators"] for kind in report["by_kind"]})
    result = {"flops": 2 * report["total"]["macs"], "unknown": report["unknown_operators"], "counts": counts}
    for framework in ("onnxruntime-cuda", "pytorch-eager"):
        done = run([ftax, "predict", path, *flags, "--device", DEVICE, "--framework", framework, "--json", "-"])
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        result[framework] = json.loads(done.stdout)["predictions"][0]["latency_s"]
    return result


def judge(name, exporter, suffix, difference, kinds):
    """The reasons for what is otherwise, and what is otherwise without one."""
    reasons, unexplained = [], []
    own = [UNLIKE[key] for key in ((name, exporter), (name, suffix)) if key in UNLIKE]
    for kind in kinds:
        why = [entry["why"] for entry in own if kind in entry.get("kinds", ())] + [OTHER_KINDS.get(suffix, {}).get(kind)]
        (reasons if any(why) else unexplained).append(next(filter(None, why), kind))
    for target, limit in TOLERANCE.items():
        if abs(difference[target]) > limit:
            why = [entry["why"] for entry in own if target in entry["targets"]]
            (reasons if why else unexplained).append(why[0] if why else f"{target} {100 * difference[target]:+.1f} %")
    return list(dict.fromkeys(reasons)), unexplained


def compare(ftax, folder):
    frameworks = ("onnxruntime-cuda", "pytorch-eager")
    columns = [f"{framework}_{what}" for framework in frameworks for what in ("ms", "difference_percent")]
    print("model\texporter\tgflop\tdifference_percent\tunknown_operators", *columns, "other_numbers_of_operators", "why", "unexplained", sep="\t")
    misses = 0
    for reference_path in sorted(folder.glob("*.pt2.pt2")):
        name = reference_path.name.split(".")[0]
        reference = measure(ftax, reference_path)
        for path in [reference_path, *sorted(p for p in folder.glob(f"{name}.*.*") if p.suffix in (".pt", ".onnx"))]:
            exporter = path.name.split(".")[1]
            try:
                measured = measure(ftax, path)
            except (RuntimeError, IndexError) as error:
                misses += 1
                print(name, exporter, f"failed: {error}", sep="\t", flush=True)
                continue
            difference = {key: measured[key] / reference[key] - 1 for key in TOLERANCE}
            numbers = {kind: measured["counts"][kind] - reference["counts"][kind] for kind in {**measured["counts"], **reference["counts"]}}
            kinds = {kind: number for kind, number in sorted(numbers.items()) if number}
            reasons, unexplained = judge(name, exporter, path.suffix, difference, kinds)
            misses += bool(unexplained)
            cells = [f"{1e3 * measured[f]:.4f}\t{100 * difference[f]:.2f}" for f in frameworks]
            print(name, exporter, f"{measured['flops'] / 1e9:.4f}", f"{100 * difference['flops']:.3f}", measured["unknown"], *cells,
                  " ".join(f"{kind}{number:+d}" for kind, number in kinds.items()), "; ".join(reasons), "; ".join(unexplained), sep="\t", flush=True)
    return misses > 0


if __name__ == "__main__":
    if sys.argv[1] == "write":
        sys.exit(write(pathlib.Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(compare(sys.argv[2], pathlib.Path(sys.argv[3])))
