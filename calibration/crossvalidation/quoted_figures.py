#!/usr/bin/env python3
"""Holds the figures that the README and docs/ quote to the ledgers, at their printed precision.

    quoted_figures.py [--write] [REPOSITORY]

Each entry of QUOTED is a page, a text with {} where figures stand, and the figures as the ledgers have them. Without
--write, a figure that differs or a text that is not found once is named, and the exit code is 1; with it the pages are
written with the ledgers' figures. docs/accuracy.md says which command writes which ledger.
"""

import csv
import pathlib
import re
import statistics
import sys

HOSTS = "leave one {} out, anchored by "
MODELS = HOSTS.format("model") + "the other models of the run"
SHAPES, CARD = "a fifth of the shapes left out", "the GPU left out"


class Ledgers:
    """Figures of data/ledger/*.csv and of the tables of *.md, by the values of the columns that name a row."""

    def __init__(self, folder):
        self.folder = folder
        self.read = {}

    def rows(self, name, **columns):
        if name not in self.read:
            with open(self.folder / f"{name}.csv") as file:
                self.read[name] = list(csv.DictReader(file))
        return [r for r in self.read[name] if all(r[k] == v for k, v in columns.items())]

    def row(self, name, **columns):
        found = self.rows(name, **columns)
        if len(found) != 1:
            sys.exit(f"{name}.csv has {len(found)} rows of {columns}")
        return found[0]

    def host(self, left_out, framework, column, anchor):
        return self.row("framework_tax", fold=HOSTS.format(left_out) + anchor, framework=framework, precision="all",
                        gpu="all")[column]

    def of_model(self, framework, column):
        return self.host("model", framework, column, "the other models of the run")

    def mean_by_gpu(self, name, fold, kernels):
        return 100 * statistics.fmean(float(r["mape"]) for r in self.rows(name, fold=fold, **{"class": kernels}))

    def served(self, framework, runs="all"):
        """MAPE and median in the table of serving.md."""
        for line in (self.folder / "serving.md").read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[:2] == [framework, runs]:
                return [cell.removesuffix(" %") for cell in cells[3:5]]
        sys.exit(f"serving.md has no row of {framework}")


def percent(share):
    return f"{100 * float(share):.1f}"


def whole(share):
    return f"{100 * float(share):.0f}"


def quoted(l):
    def frameworks(label, left_out, framework):
        return ("README.md", f"| {label} | {left_out} | {{}} | {{}} % | {{}} % | |",
                [l.of_model(framework, "rows"), percent(l.of_model(framework, "mape")),
                 percent(l.of_model(framework, "median"))])

    def bert(precision):
        rows = [l.row("tensorrt", fold="left out", precision=precision, gpu=gpu, model="bert", version="")
                for gpu in ("a100-sxm4-40gb", "a30", "t4")]
        return [str(sum(int(r["rows"]) for r in rows))] + [r["mape_percent"] for r in rows]

    def bound(fold):
        return [percent(l.row("device_bound", fold=fold, precision=p, group="all")["mape"])
                for p in ("fp32", "fp16 tensor cores", "fp16 Pascal")]

    def architectures(space, batch, digits):
        return [f"{float(l.row('nas', host_fit='all', space=space, device=d, batch=batch)['spearman_10']):.{digits}f}"
                for d in ("gtx-1080-ti", "titan-x-pascal", "rtx-2080-ti")]

    def rows_of(fold):
        return str(sum(int(r["rows"]) for r in l.rows("layer_kernels", fold=fold, **{"class": "gemm"})))

    def kernels(fold, *classes):
        return [f"{l.mean_by_gpu('layer_kernels', fold, c):.1f}" for c in classes]

    groups = [r for r in l.rows("framework_tax", fold=MODELS)
              if int(r["rows"]) >= 100 and not r["gpu"].startswith("model ")]
    all_fold = "all", "inside_90"
    engines = [r for r in l.rows("framework_tax", fold=MODELS, framework="torch-tensorrt")
               if r["precision"] != "all" and r["gpu"] not in ("all", "V100")]
    squeezed = l.row("framework_tax", fold=MODELS, framework="all", gpu="model squeeze_bert")
    timm = l.row("timm", fold="gpu", by="all")
    families = [float(l.row("timm", fold="gpu", group=family)["mape_percent"])
                for family in ("convmixer", "cait", "focalnet", "efficientvit_msra")]
    cards = ("a100-sxm4-80gb", "a40", "l40s", "rtx-4090", "h100-sxm5-80gb", "b200", "rtx-pro-6000-blackwell-server")
    gemm = {fold: [percent(l.row("layer_kernels", fold=fold, gpu=gpu, **{"class": "gemm"})["mape"]) for gpu in cards] +
                  kernels(fold, "gemm") for fold in (SHAPES, CARD)}
    quantized = {fold: [f"{l.mean_by_gpu('quantized', fold, p):.1f}" for p in ("fp8", "fp8_block", "nvfp4")]
                 for fold in (SHAPES, CARD)}
    return [
        frameworks("PyTorch eager, 20 models, batch 1 to 128", "the model", "pytorch-eager"),
        frameworks("TorchScript", "the model", "torchscript"),
        frameworks("ONNX Runtime (CUDA)", "the model", "onnxruntime-cuda"),
        frameworks("Torch-TensorRT", "the model", "torch-tensorrt"),
        ("README.md", "| timm's 304 architectures, eager with amp, RTX 3090 and 4090 | the card | {} | {} % | {} % | |",
         [timm[k] for k in ("rows", "mape_percent", "median_percent")]),
        ("README.md", "| bf16 and fp16 GEMMs, 7 cards from A100 to B200 | a fifth of the shapes | {} | {} % | | |",
         [rows_of(SHAPES)] + kernels(SHAPES, "gemm")),
        ("README.md", "| – | the card: datasheet only | {} | {} % | | |", [rows_of(CARD)] + kernels(CARD, "gemm")),
        ("README.md", "| attention of the same: prompts, decoding, encoders | the card | | {}, {}, {} % | | |",
         kernels(CARD, "prefill", "decode", "encoder")),
        ("README.md", "| TensorRT's BERT on A100, A30, T4: fp16 | the card | {} | {}, {}, {} % | | |", bert("fp16")),
        ("README.md", "| – int8 | the card | {} | {}, {}, {} % | | |", bert("int8")),
        ("README.md", "| vLLM, prompts and tokens of 7B and 8B models on an A100 | the model | 60 | {} % | {} % | |",
         l.served("vllm")),
        ("README.md", "| TensorRT-LLM, the same | the model | 60 | {} % | {} % | |", l.served("tensorrt-llm")),
        ("docs/language-models.md", "fitted to the other two models, is {} and {} % off",
         [l.served(framework, "meta-llama/Meta-Llama-3-8B")[0] for framework in ("vllm", "tensorrt-llm")]),
        ("README.md", "NAS-Bench-201 at batch 256 {}, {} and {} (HELP", architectures("nasbench201", "256", 4)),
        ("README.md", "FBNet at batch 64 {}, {} and {} (HELP", architectures("fbnet", "64", 3)),
        ("README.md", "rows that the device decides are {} % (f32), {} % (f16 on tensor cores) and {} % (f16 on Pascal) off",
         bound("leave one model out")),
        ("README.md", "known by its datasheet only, {} %, {} % and {} % (`data/ledger/device_bound.md`)",
         bound("leave one GPU out, datasheet")),
        ("README.md", "batch 1) has {} % over all frameworks",
         [percent(l.host("GPU", "all", "mape", "resnet18 at batch 1"))]),
        ("README.md", "Quantised kernels of a card left out are {} to {} % off",
         [f"{f(map(float, quantized[CARD])):.0f}" for f in (min, max)]),
        ("README.md", "EfficientViT of MSRA are furthest off on a card left out:\n  {} to {} %",
         [f"{f(families):.0f}" for f in (min, max)]),
        ("docs/uncertainty.md", "{} %\nlie inside the interval",
         [whole(l.of_model(*all_fold))]),
        ("docs/uncertainty.md", "fewer than {} %", [str(int(100 * min(float(r["inside_90"]) for r in groups)))]),
        ("docs/uncertainty.md", "(resnet18, batch 1) it is {} %",
         [whole(l.host("GPU", *all_fold, "resnet18 at batch 1"))]),
        ("docs/uncertainty.md", "batch 1 of each model known, {} % of its other batches",
         [whole(l.host("GPU", *all_fold, "batch 1 of each model"))]),
        ("docs/accuracy.md", "Of the {} % with the model left out, SqueezeBERT alone has {}",
         [percent(l.of_model("all", "mape")),
          percent(float(squeezed["mape"]) * int(squeezed["rows"]) / int(l.of_model("all", "rows")))]),
        ("docs/accuracy.md", "without that card its {} %\nare {}.",
         [percent(l.of_model("torch-tensorrt", "mape")),
          percent(sum(float(r["mape"]) * int(r["rows"]) for r in engines) / sum(int(r["rows"]) for r in engines))]),
        ("docs/kernel-models/gemm-on-tensor-cores.md", "| a fifth of the shapes left out | " + "{} | " * 7 + "**{}** |", gemm[SHAPES]),
        ("docs/kernel-models/gemm-on-tensor-cores.md", "| the GPU left out | " + "{} | " * 7 + "**{}** |", gemm[CARD]),
        ("docs/kernel-models/quantised-products.md", "| a fifth of the shapes | {} | {} | {} |", quantized[SHAPES]),
        ("docs/kernel-models/quantised-products.md", "| the GPU, and with it its generation | {} | {} | {} |", quantized[CARD]),
    ]


def main():
    write = "--write" in sys.argv[1:]
    paths = [a for a in sys.argv[1:] if a != "--write"]
    repository = pathlib.Path(paths[0]) if paths else pathlib.Path(__file__).resolve().parents[2]
    failures = 0
    for page, text, figures in quoted(Ledgers(repository / "data/ledger")):
        path = repository / page
        content = path.read_text()
        pattern = r"([-+]?[\d.]+)".join(re.escape(part) for part in text.split("{}"))
        found = list(re.finditer(pattern, content))
        if len(found) != 1:
            print(f"{page}: found {len(found)} times: {text}")
            failures += 1
        elif list(found[0].groups()) != figures:
            print(f"{page}: {text}\n  quotes {', '.join(found[0].groups())}; the ledgers have {', '.join(figures)}")
            failures += 1
            if write:
                path.write_text(content[:found[0].start()] + text.format(*figures) + content[found[0].end():])
    return 1 if failures and not write else 0


if __name__ == "__main__":
    sys.exit(main())
