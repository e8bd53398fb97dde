#!/usr/bin/env python3
"""Scores the model of TensorRT's engines on NVIDIA's tables of BERT (models_2x.csv) and writes data/ledger/tensorrt.csv
and tensorrt.md.

    tensorrt_folds.py FTAX models_2x.csv DATA_FOLDER [--fit] [--models DIR --timm ROWS.csv...]

Each card is scored with the profile of all cards (`seen`) and with the parameters of engines (`engine.*`) fitted anew
without its rows (`left out`). Rows in int8 take part in no fit: they are scored with what those in fp16 gave. With --fit
the values fitted to all rows in fp16 are written into data/profiles/devices.json first. The other frameworks' rows in the
file take part in no fit of a kernel; they are scored as they are, and so are timm's benchmarks under torch.compile, of the
architectures that DIR and the zoo hold, beside the same cards' eager rows, which did take part.
"""

import argparse
import json
import math
import pathlib
import statistics
import tempfile

from rows import errors, predicted, read, write

# Initial values and widths of priors: predictors/kernels/engine.hpp.
PRIORS = {"engine.score_cycles": (0.33, 0.3), "engine.score_rate": (1.3, 0.3), "engine.energy_scale": (1.3, 0.2)}
ROW_LOG_STDDEV = 0.05
KERNL_PYTORCH = ("pytorch-eager", "cuda-graph", "torch-compile-cudagraph")
# Sequences and batches of kernl whose times are those of another sequence: 384 to the last of six digits, 512.
COPIED = {"pytorch-eager": [("256", "1")], "cuda-graph": [("256", "1")], "onnxruntime-cuda": [("256", "1")],
          "tensorrt": [("384", "1"), ("384", "8")]}
GROUP = ("framework", "precision", "gpu", "model", "version")


def is_copied(row):
    return row["run"] == "kernl" and (row["input"], row["batch"]) in COPIED.get(row["framework"], [])


def as_run(row):
    """The row in the precision that was run: kernl's PyTorch ran f32 models under one autocast context around all runs
    (its test/test_torchdynamo_bert.py and experimental/benchmarks/inductor.py)."""
    is_autocast = row["run"] == "kernl" and row["framework"] in KERNL_PYTORCH
    return dict(row, precision="amp_cached") if is_autocast else row


class Study:
    def __init__(self, arguments, folder):
        self.ftax, self.data = arguments.ftax, pathlib.Path(arguments.data)
        self.work = pathlib.Path(folder)
        self.models = arguments.models
        self.profile_path = self.data / "profiles/devices.json"
        self.profile = json.loads(self.profile_path.read_text())

    def with_values(self, values, rows):
        """The profile with these parameters of engines."""
        profile = dict(self.profile)
        kept = [p for p in profile["parameters"] if not p["name"].startswith("engine.")]
        source = f"fitted: TensorRT demo/BERT, {rows} rows"
        kept += [{"name": name, "value": value, "source": source} for name, value in values.items()]
        profile["parameters"] = sorted(kept, key=lambda p: p["name"])  # stable: scopes of a name keep their order
        return profile

    def predict(self, rows, profile):
        (self.work / "profile.json").write_text(json.dumps(profile))
        return predicted(self.ftax, rows, self.work / "rows", self.work / "profile.json", self.models)

    def loss(self, values, rows):
        """Robust squares of log errors and the priors."""
        total = 0
        for row in self.predict(rows, self.with_values(values, len(rows))):
            z = math.log(float(row["predicted_ms"]) / float(row["latency_ms"])) / ROW_LOG_STDDEV
            total += 2 * (math.sqrt(1 + z * z) - 1)
        for name, value in values.items():
            start, width = PRIORS[name]
            total += (math.log(value / start) / width) ** 2
        return total

    def fit(self, rows):
        """Coordinate search in log space."""
        values = {name: start for name, (start, _) in PRIORS.items()}
        best, step = self.loss(values, rows), 0.1
        while step > 0.004:
            improved = False
            for name in values:
                for factor in (math.exp(step), math.exp(-step)):
                    tried = dict(values, **{name: values[name] * factor})
                    loss = self.loss(tried, rows)
                    if loss < best - 1e-6:
                        values, best, improved = tried, loss, True
                        break
            if not improved:
                step /= 2
        return {name: float(f"{value:.4g}") for name, value in values.items()}


def summary(fold, group, rows):
    inside = sum(float(r["low_ms"]) <= float(r["latency_ms"]) <= float(r["high_ms"]) for r in rows)
    return {"fold": fold, **group, "rows": len(rows), **errors(rows), "inside_percent": round(100 * inside / len(rows))}


def groups(rows, *columns):
    found = {}
    for row in rows:
        found.setdefault(tuple(row[c] for c in columns), []).append(row)
    return [(dict(zip(columns, key)), part) for key, part in sorted(found.items())]


def without_fused_networks(rows):
    """Leaves out rows whose MACs are not those of the first rows of the architecture: torch 2.9's benchmark fused branches
    first (timm's reparameterize_model: RepVGG, MobileOne, FastViT and others), and the exported graphs have them."""
    macs = {}
    return [r for r in rows if macs.setdefault((r["model"], r["img"]), r["gmacs"]) == r["gmacs"]]


def compiled_against_eager(rows):
    """Lines of the ledger: errors under both frameworks and of their ratio, by version of PyTorch."""
    pairs = {}
    for row in rows:
        if row["layout"] == "nchw" and not row["skipped"]:
            times = float(row["predicted_ms"]) / int(row["batch"]), float(row["latency_ms"]) / int(row["batch"])
            pairs.setdefault((row["torch"], row["gpu"], row["model"], row["img"]), {})[row["framework"]] = times
    lines = {}
    for (torch, gpu, _, _), found in pairs.items():
        if len(found) == 2:
            lines.setdefault((torch, gpu), []).append((found["pytorch-eager"], found["torch-compile"]))
    text = "| torch | gpu | models | eager MAPE | compiled MAPE | log error of compiled ÷ eager |\n|---|---|---|---|---|---|\n"
    for (torch, gpu), found in sorted(lines.items()):
        eager = statistics.fmean(abs(e[0] / e[1] - 1) for e, _ in found)
        compiled = statistics.fmean(abs(c[0] / c[1] - 1) for _, c in found)
        ratio = statistics.fmean(abs(math.log(c[0] / c[1] / (e[0] / e[1]))) for e, c in found)
        text += f"| {torch} | {gpu} | {len(found)} | {100 * eager:.1f} | {100 * compiled:.1f} | {100 * ratio:.1f} |\n"
    return text


def markdown(figures):
    text = (
        "# Engines of TensorRT and other frameworks of models_2x.csv\n\n"
        "Written by calibration/crossvalidation/tensorrt_folds.py. `left out`: what is fitted of engines is fitted without\n"
        "the card's rows; `seen`: to all rows, the card's among them; `not fitted`: rows that took part in no fit, but for\n"
        "one factor of eager PyTorch's hosts (tag studies-2026-11, calibration/studies/host_dispatch). Rows in int8 are scored with what rows in fp16\n"
        "gave. Per cent.\n"
    )
    for fold in dict.fromkeys(f["fold"] for f in figures):
        columns = [c for c in figures[0] if c != "fold"]
        text += f"\n## {fold}\n\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|\n"
        for f in figures:
            if f["fold"] == fold:
                text += "| " + " | ".join(str(f[c]) for c in columns) + " |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ftax")
    parser.add_argument("rows")
    parser.add_argument("data")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--models")
    parser.add_argument("--timm", nargs="*", default=[])
    arguments = parser.parse_args()
    measured = [as_run(r) for r in read(arguments.rows) if not is_copied(r)]
    tables = [r for r in measured if r["run"].startswith("TensorRT demo/BERT")]
    fitted = [r for r in tables if r["precision"] == "fp16"]
    others = [r for r in measured if not r["run"].startswith("TensorRT demo/BERT")]
    with tempfile.TemporaryDirectory() as folder:
        study = Study(arguments, folder)
        if arguments.fit:
            values = study.fit(fitted)
            print(values)
            study.profile = study.with_values(values, len(fitted))
            study.profile_path.write_text(json.dumps(study.profile, indent=2) + "\n")
        figures, left_out, seen = [], [], study.predict(tables, study.profile)
        for card in sorted({r["gpu"] for r in fitted}):
            rest = [r for r in fitted if r["gpu"] != card]
            values = study.fit(rest)
            print("without", card, values)
            own = [r for r in tables if r["gpu"] == card]
            left_out += study.predict(own, study.with_values(values, len(rest)))
        for fold, rows in (("left out", left_out), ("seen", seen)):
            rows = [dict(r, framework="tensorrt", model="bert") for r in rows]
            for part in groups([dict(r, version="") for r in rows], *GROUP) + groups(rows, *GROUP):
                figures.append(summary(fold, *part))
        rows = [r for r in study.predict(others, study.profile) if not r["skipped"]]
        for part in groups(rows, *GROUP):
            figures.append(summary("not fitted", *part))
        timm = [r for path in arguments.timm for r in read(path)]
        timm = [dict(r, framework=r["framework"].replace("pytorch-compile", "torch-compile")) for r in timm]
        text = markdown(figures)
        if timm:
            timm = [dict(r, model=r["model"].split(".")[0]) for r in timm]
            text += "\n## torch.compile, timm's benchmarks, amp\n\n"
            text += compiled_against_eager(study.predict(without_fused_networks(timm), study.profile))
    write(study.data / "ledger/tensorrt.csv", figures)
    (study.data / "ledger/tensorrt.md").write_text(text)


if __name__ == "__main__":
    main()
