#!/usr/bin/env python3
"""Predicts measured rows of whole models by profiles that were fitted without them, for ledger.py to score.

    model_folds.py timm FTAX BLIND_PROFILE timm_infer.csv MODELS TABLE WORK OUT.csv
    model_folds.py tensorrt FTAX models_2x.csv DATA_FOLDER NETWORKS MODELS ROWS_OF_TIMM.csv... OUT.csv
    model_folds.py kernelbench FTAX kernelbench.csv kernelbench_models.tar.xz OUT.csv
    model_folds.py edge FTAX edge_models.csv OUT.csv

The introduction of each ledger says what its folds are. MODELS holds timm's architectures as .pt2 files (graphs/zoo/export.py),
NETWORKS those of networks.tsv, TABLE names timm's families (graphs/zoo/timm.tsv), WORK keeps the fits. `tensorrt` writes the
parameters of engines that are fitted to all rows of BERT in fp16 into data/profiles/devices.json first.
"""

import csv
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tarfile
import tempfile

FAMILY_GROUPS, ITERATIONS = 3, 8  # most of the way of a fit is short
# Initial values and widths of priors: predictors/kernels/engine.hpp.
PRIORS = {"engine.score_cycles": (0.33, 0.3), "engine.score_rate": (1.3, 0.3), "engine.energy_scale": (1.3, 0.2)}
ROW_LOG_STDDEV = 0.05
# Three that the host decides and three that the device does.
HOST_ANCHORS = ("L3_9_ResNet18", "L3_20_MobileNetV2", "L3_23_EfficientNetB1", "L3_11_VGG16", "L3_6_GoogleNetInceptionModule",
                "L3_43_MinGPTCausalAttention")
MODES = {"arttrt orin_agx PM0": "@maxn", "arttrt orin_agx PM1": "@15w", "arttrt orin_agx PM2": "@30w"}  # nvpmodel's numbers
# Sequences and batches of kernl whose times are those of another sequence: 384 to the last of six digits, 512.
COPIED = {"pytorch-eager": [("256", "1")], "cuda-graph": [("256", "1")], "onnxruntime-cuda": [("256", "1")],
          "tensorrt": [("384", "1"), ("384", "8")]}


def read(path, delimiter=","):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def write(path, rows):
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, dict.fromkeys(itertools.chain(*rows)), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


class Study:
    def __init__(self, ftax, work):
        self.ftax, self.models, self.work, self.predictions = ftax, work, pathlib.Path(work), []

    def predict(self, rows, profile=None, anchor=None):
        """The rows that can be predicted."""
        write(self.work / "left.csv", rows)
        out = self.work / "predictions.csv"
        options = ["--profile", profile] if profile else []
        if anchor:
            write(self.work / "anchor.csv", [anchor])
            options += ["--anchor", self.work / "anchor.csv"]
        subprocess.run([self.ftax, "validate", self.work / "left.csv", "--predictions", out, "-q", "--models", self.models,
                        *options], check=True, capture_output=True)
        return [r for r in read(out) if not r["skipped"]]

    def add(self, fold, rows, profile=None, anchor=None, **same):
        self.predictions += [dict(r, fold=fold, **same) for r in self.predict(rows, profile, anchor)]


def timm(study, blind, rows, models, families, work):
    study.models = models
    pathlib.Path(work).mkdir(parents=True, exist_ok=True)
    family = {row["model"]: row["family"] for row in read(families, "\t")}
    rows = [r | {"family": family[r["model"]]} for r in read(rows) if r["framework"] == "pytorch-eager" and r["model"] in family]
    study.add("blind", rows, blind)
    # Deals the families out by size, so that each group leaves out about as many rows.
    sizes = {name: sum(r["family"] == name for r in rows) for name in family.values()}
    order = sorted(filter(sizes.get, sizes), key=lambda name: (-sizes[name], name))
    group_of = {name: i % FAMILY_GROUPS for i, name in enumerate(order)}
    for kind, key in (("gpu", lambda row: row["gpu"]), ("family", lambda row: group_of[row["family"]])):
        for group in sorted(set(map(key, rows))):
            profile = pathlib.Path(work) / f"{kind}-{group}.json".replace(" ", "-")
            if not profile.exists():
                write(study.work / "fitted.csv", [r for r in rows if key(r) != group])
                subprocess.run([study.ftax, "fit", "--start", blind, study.work / "fitted.csv", "--models", models, "--iterations",
                                str(ITERATIONS), "-o", profile], check=True, stderr=subprocess.DEVNULL)
            study.add(kind, [r for r in rows if key(r) == group], profile)


class Engines:
    """The profile in a folder with other parameters of engines."""

    def __init__(self, study, path):
        self.study, self.profile = study, json.loads(path.read_text())

    def with_values(self, values, rows):
        source, cards = f"fitted: TensorRT demo/BERT, {len(rows)} rows", {r["gpu"] for r in rows}
        parameters = [p for p in self.profile["parameters"] if "demo/BERT" not in p["source"] or p.get("device") in cards]
        parameters += [{"name": name, "value": value, "source": source} for name, value in values.items()]
        path = self.study.work / "profile.json"
        # Stable: scopes of a name keep their order.
        path.write_text(json.dumps(self.profile | {"parameters": sorted(parameters, key=lambda p: p["name"])}, indent=2) + "\n")
        return path

    def loss(self, values, rows):
        """Robust squares of log errors and the priors."""
        total = sum((math.log(value / PRIORS[name][0]) / PRIORS[name][1]) ** 2 for name, value in values.items())
        for row in self.study.predict(rows, self.with_values(values, rows)):
            z = math.log(float(row["predicted_ms"]) / float(row["latency_ms"])) / ROW_LOG_STDDEV
            total += 2 * (math.sqrt(1 + z * z) - 1)
        return total

    def fitted(self, rows):
        """The profile fitted to rows, by coordinate search in log space."""
        values = {name: start for name, (start, _) in PRIORS.items()}
        best, step = self.loss(values, rows), 0.1
        while step > 0.004:
            before = best
            for name, sign in itertools.product(values, (step, -step)):
                tried = values | {name: values[name] * math.exp(sign)}
                loss = self.loss(tried, rows)
                if loss < best - 1e-6:
                    values, best = tried, loss
            if best == before:
                step /= 2
        return self.with_values({name: float(f"{value:.4g}") for name, value in values.items()}, rows)


def comparable(rows):
    """timm's rows without those whose MACs are not those of the first rows of the architecture: torch 2.9's benchmark fused
    branches first (reparameterize_model: RepVGG, MobileOne, FastViT and others), and the exported graphs have them."""
    macs = {}
    for row in rows:
        row |= {"framework": row["framework"].replace("pytorch-compile", "torch-compile"), "model": row["model"].split(".")[0]}
        if macs.setdefault((row["model"], row["img"]), row["gmacs"]) == row["gmacs"] and row["layout"] == "nchw":
            yield row


def tensorrt(study, rows, data, networks, models, *rows_of_timm):
    study.models = networks
    measured = [r for r in read(rows)
                if r["run"] != "kernl" or (r["input"], r["batch"]) not in COPIED.get(r["framework"], [])]
    tables = [r for r in measured if r["run"].startswith("TensorRT demo/BERT")]
    fitted = [r for r in tables if r["precision"] == "fp16"]
    committed = pathlib.Path(data) / "profiles/devices.json"
    engines = Engines(study, committed)
    committed.write_text(engines.fitted(fitted).read_text())
    for gpu in sorted({r["gpu"] for r in fitted}):
        study.add("left out", [r for r in tables if r["gpu"] == gpu], engines.fitted([r for r in fitted if r["gpu"] != gpu]),
                  framework="tensorrt", model="bert")
    study.add("seen", tables, committed, framework="tensorrt", model="bert")
    study.add("not fitted", [r for r in measured if r not in tables], committed)
    study.models = models
    study.add("compiled", list(comparable(r for path in rows_of_timm for r in read(path))), committed)


def kernelbench(study, rows, archive):
    with tarfile.open(archive) as models:
        models.extractall(study.work)
    study.models = study.work / "kernelbench"
    rows = [r for r in read(rows) if r["era"] == "2025"]
    study.add("blind", rows)
    anchors = (r for r in rows if r["framework"] == "pytorch-eager" and r["model"] == HOST_ANCHORS[0])
    for anchor in sorted(anchors, key=lambda r: r["run"]):
        study.add("machine known", [r for r in rows if r["run"] == anchor["run"] and r != anchor], anchor=anchor)
    networks = [r for r in rows if r["level"] == "level3" and r["framework"] in ("pytorch-eager", "torch-compile")]
    for anchor in sorted((r for r in networks if r["model"] in HOST_ANCHORS), key=lambda r: HOST_ANCHORS.index(r["model"])):
        own = [r for r in networks if r["run"] == anchor["run"] and r["framework"] == anchor["framework"] and r != anchor]
        study.add(f"{anchor['model']} known", own, anchor=anchor)


def edge(study, rows):
    rows = [r for r in read(rows) if r["run"].startswith("arttrt") and r["framework"] == "tensorrt-onnx"]
    study.add("blind", rows)
    study.add("mode named", [dict(r, gpu=r["gpu"] + MODES[r["run"]]) for r in rows if r["run"] in MODES])
    for run, *known in itertools.product(sorted({r["run"] for r in rows}), ("fp32", "fp16", "int8"), ("1", "32", "128")):
        own = [r for r in rows if r["run"] == run]
        for anchor in [r for r in own if [r["precision"], r["batch"]] == known and r["model"] in ("resnet18", "resnet50")][:1]:
            study.add("machine known", [r for r in own if r != anchor], anchor=anchor, known=", batch ".join(known))


if __name__ == "__main__":
    name, ftax, *arguments, out = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        study = Study(ftax, folder)
        {"timm": timm, "tensorrt": tensorrt, "kernelbench": kernelbench, "edge": edge}[name](study, *arguments)
    write(out, study.predictions)
