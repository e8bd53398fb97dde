#!/usr/bin/env python3
"""Writes a ledger of data/ledger (NAME.csv and NAME.md) from rows or figures that ftax_folds computes.

    ledger.py [--check] NAME DATA_FOLDER FTAX_FOLDS PART ARGUMENTS...

Runs `FTAX_FOLDS PART ARGUMENTS... OUT.csv` and formats OUT.csv. With --check the committed ledger is compared instead, up
to a tolerance: figures of folds that were not computed again are left out. The exit code is 1 where they differ and 77
where a file of measured rows is missing.
"""

import csv
import io
import itertools
import math
import pathlib
import subprocess
import sys
import tempfile

from rows import read


def quantile(values, share):
    """Rounded down to a value that occurs."""
    return sorted(values)[int(share * (len(values) - 1))]


def percent(value, sign=""):
    return f"{100 * float(value):{sign}.1f}"


def markdown_row(cells):
    return "| " + " | ".join(map(str, cells)) + " |\n"


def markdown_table(titles, rows):
    return markdown_row(titles) + "|" + "---|" * len(titles) + "\n" + "".join(map(markdown_row, rows))


def csv_text(header, rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def unique(values):
    return list(dict.fromkeys(values))


ERROR_TITLES = ["rows", "MAPE", "median", "P90", "bias"]


def error_cells(f):
    return [f["rows"], percent(f["mape"]), percent(f["median"]), percent(f["p90"]), percent(f["bias"], "+")]


def figures_csv(figures, columns):
    """`columns` by name: those of the folds. Fractions have four digits."""
    rows = [[f[own] for own in columns.values()] + [f["rows"]] +
            [f"{float(f[error]):.4f}" for error in ("mape", "median", "p90", "bias")] for f in figures]
    return csv_text([*columns, "rows", "mape", "median", "p90", "bias"], rows)


def by_fold(figures, titles, keys):
    """A section for each fold with a line for each of its figures."""
    text = ""
    for fold in unique(f["fold"] for f in figures):
        own = [[f[k] for k in keys] + error_cells(f) for f in figures if f["fold"] == fold and not f["region"]]
        text += f"\n## {fold}\n\n" + markdown_table(titles + ERROR_TITLES, own)
    return text


OPERATOR_COLUMNS = {"fold": "fold", "class": "class", "region": "region", "gpu": "gpu"}

OPERATORS = """\
# Errors of single operators

neusight_ops.csv (NeuSight): one operator timed alone, f32 without TF32; errors in %, bias the median of
log(predicted / measured). `validate` predicts with the committed profile, tile and algorithm chosen by the
model; the other folds refit the operators without the GPU and take its host from the others or as known. A
measured clock is that under load: where a power limit sets it, the energy of an operation.
Written by `ftax_folds operators`. No row is left out but by name: see the sections of other conditions,
whose rows are scored and never fitted, but for layers without cublasLt, of a P4, which are: they had no
bias, as no column but the kernel's name says. Folds without rows under other conditions are without them,
too. `in the fit` of ln, softmax and pointwise comes before each machine's host times are measured, which
`validate` has.

## Means over the GPUs, worst GPU in brackets

"""


def operators(figures):
    classes = ["linear", "bmm", "conv", "ln", "softmax", "pointwise"]
    means, regions, cards = [], [], unique(f["gpu"].split("-")[0] for f in figures if f["region"])
    for fold in unique(f["fold"] for f in figures if not f["region"]):
        line = [fold]
        for name in classes:
            own = [float(f["mape"]) for f in figures if not f["region"] and (f["fold"], f["class"]) == (fold, name)]
            line.append(f"{percent(sum(own) / len(own))} ({percent(max(own))})" if own else "")
        means.append(line)
    for (name, region), own in itertools.groupby((f for f in figures if f["region"]), lambda f: (f["class"], f["region"])):
        cells = {f["gpu"].split("-")[0]: f"{percent(f['mape'])} ({percent(f['bias'], '+')})" for f in own if int(f["rows"]) >= 20}
        if cells:
            regions.append([name, region] + [cells.get(card, "") for card in cards])
    text = OPERATORS + markdown_table(["fold"] + classes, means).replace("|  |", "| |").replace("|  |", "| |") + by_fold(figures, ["class", "GPU"], ["class", "gpu"])
    text += "\n## validate, usual, by region of shapes\n\nMAPE with the bias in brackets, of regions with at least 20 rows.\n\n"
    text += markdown_table(["class", "region"] + cards, regions)
    return figures_csv(figures, OPERATOR_COLUMNS), text


DEVICE_BOUND = """\
# Forward passes that the device decides

framework_tax.csv, eager, rows whose latency grows 1.75- to 2.6-fold per doubling of the batch and exceeds 1.5
times the flat start; the prediction is the sum of the kernels and of the gaps between them. Errors in %, bias the median of
log(predicted / measured). Each fold starts from a fit of single operators and refits on the other rows, at most
12 iterations. A GPU left out is predicted from its datasheet; `V100` is the SXM2 card, the operators know the
PCIe one. Written by `ftax_folds devices`; the A100 fp32 run of 2022-10-26 is left out by name.
"""


def device_bound(figures):
    return (figures_csv(figures, {"fold": "fold", "precision": "class", "group": "gpu"}),
            DEVICE_BOUND + by_fold(figures, ["precision", "rows of"], ["class", "gpu"]))


LAYER_KERNELS = """\
# Errors of kernels of language models' layers

tensor_ops.csv and layer_ops.csv (AIConfigurator, vidur, LLMServingSim): bf16 and f16 kernels timed alone as
nodes of CUDA graphs; errors in %, bias the median of log(predicted / measured). Both folds refit: without a
fifth of the shapes, the same on all GPUs, or without a GPU, whose matrix products are left out with it.
Structure and constants were chosen with all GPUs in sight. Written by `ftax_folds layers`.
"""


def layer_kernels(figures):
    gpus = sorted({f["gpu"] for f in figures})
    text = LAYER_KERNELS
    for fold in unique(f["fold"] for f in figures):
        lines = []
        for name in unique(f["class"] for f in figures):
            own = {f["gpu"]: f for f in figures if (f["fold"], f["class"]) == (fold, name)}
            mean = sum(float(own[gpu]["mape"]) for gpu in gpus if gpu in own) / max(len(own), 1)
            lines.append([name] + [f"{percent(own[g]['mape'])}, {percent(own[g]['median'])}, {percent(own[g]['bias'], '+')}"
                                   if g in own else "–" for g in gpus] + [f"**{percent(mean)}**"])
        text += f"\n## {fold}\n\nMAPE, median, bias\n\n" + markdown_table(["class", *gpus, "mean of MAPE"], lines)
    return figures_csv(figures, OPERATOR_COLUMNS), text


QUANTIZED = """\
# Errors of quantised products and mixtures of experts

tensor_ops.csv: kernels timed alone in CUDA graphs, a product with the kernel that quantises its activations,
experts as one fused operator; errors in %, bias the median of log(predicted / measured). Ratios of products in
16 bits are frozen, fitted to all GPUs. A GPU left out is here a generation left out: it takes the median of the
others. fp8 experts of the H100 rest on three facts of untuned kernels (data/architectures/hopper.json) that its own
rows gave. Written by `ftax_folds quantized`.

"""


def quantized(figures):
    means = []
    for (name, fold), own in itertools.groupby(figures, lambda f: (f["class"], f["fold"])):
        errors = [float(f["mape"]) for f in own]
        means.append([name, fold, percent(sum(errors) / len(errors))])
    return (figures_csv(figures, OPERATOR_COLUMNS),
            QUANTIZED + markdown_table(["class", "fold", "mean over the GPUs"], means) + "\n" +
            markdown_table(["class", "fold", "GPU"] + ERROR_TITLES,
                           [[f["class"], f["fold"], f["gpu"]] + error_cells(f) for f in figures]))


def ratio(row):
    return row["predicted_s"] / row["measured_s"]


def inside(row):
    return row["low_s"] <= row["measured_s"] <= row["high_s"]


def with_numbers(rows):
    numbers = ("measured_s", "predicted_s", "low_s", "high_s", "host_s", "device_s", "batch", "line")
    return [{k: float(v) if k in numbers and v else v for k, v in row.items()} for row in rows]


FRAMEWORK_TAX = """\
# Framework latencies that the fit has not seen

framework_tax.csv (Framework-Tax, 2022), batch 1 to 128; errors in %, bias the median of log(predicted / measured).
Host costs and scalars have not seen the rows; the kernel models are those of data/profiles/devices.json, which whole
eager rows went into. Written by `ftax_folds frameworks`; the A100 fp32 eager run of 2022-10-26 is left out by name.
"""


def grouped(rows):
    """Errors by framework, precision and GPU, with a line for each framework, each model and one for all."""
    groups = {}
    for row in rows:
        for key in (("all", "all", "all"), (row["framework"], "all", "all"), (row["framework"], row["precision"], "all"),
                    (row["framework"], row["precision"], row["gpu"]), ("all", "all", "model " + row["model"])):
            groups.setdefault(key, []).append(row)
    for key, own in sorted(groups.items()):
        errors, logs = [abs(ratio(r) - 1) for r in own], [math.log(ratio(r)) for r in own]
        yield key, {"rows": len(own), "mape": sum(e / len(own) for e in errors), "median": quantile(errors, 0.5),
                    "p90": quantile(errors, 0.9), "bias": quantile(logs, 0.5), "inside": sum(map(inside, own)) / len(own)}


def curves(rows):
    """Curves of latency over batch, from 1 to at least 64: the crossover as the measurements define it (flat start ÷
    per-sample slope of the largest batch), and on which side of it a row is."""
    by_curve, counts = {}, {}
    for row in rows:
        by_curve.setdefault(tuple(row[k] for k in ("framework", "run", "gpu", "model", "precision")), []).append(row)
    for key, curve in by_curve.items():
        curve.sort(key=lambda row: row["batch"])
        first, last = curve[0], curve[-1]
        if first["batch"] != 1 or last["batch"] < 64:
            continue
        measured, predicted = (first[t] / (last[t] / last["batch"]) for t in ("measured_s", "predicted_s"))
        error = abs(math.log(predicted / measured))
        half_width = math.hypot(*(math.log(row["high_s"] / row["low_s"]) / 2 for row in (first, last)))
        clear = [row for row in curve if not measured / 2 < row["batch"] < 2 * measured]
        right = sum((row["batch"] < measured) == (row["host_s"] > row["device_s"]) for row in clear)
        for group in (key[0], "all"):
            found = counts.setdefault(group, [0] * 5)
            for i, value in enumerate((1, error <= math.log(1.41), error <= half_width, len(clear), right)):
                found[i] += value
    for group, (count, near, within, clear, right) in sorted(counts.items()):
        yield [group, count] + [f"{100 * part / max(1, count):.1f} %" for part in (near, within)] + [
            clear, f"{100 * right / max(1, clear):.1f} %"]


def line_ranges(lines):
    """ "2 to 5, 9": runs of lines that follow each other."""
    runs = []
    for line in sorted(lines):
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in runs)


def framework_tax(rows):
    rows = with_numbers(rows)
    cells, text = [], FRAMEWORK_TAX
    for fold in unique(r["fold"] for r in rows if r["fold"]):
        own = [r for r in rows if r["fold"] == fold]
        figures = list(grouped(own))
        cells += [[fold, *key, f["rows"]] + [f"{f[e]:.4f}" for e in ("mape", "median", "p90", "bias")] + [f"{f['inside']:.3f}"]
                  for key, f in figures]
        text += f"\n## {fold}\n\n" + markdown_table(
            ["framework", "precision", "GPU"] + ERROR_TITLES + ["inside 90 %"],
            [[*key] + error_cells(f) + [f"{100 * f['inside']:.0f}"] for key, f in figures])
        text += "\n" + markdown_table(["framework", "curves", "crossover within a factor 1.41", "within its interval",
                                       "rows a factor 2 from it", "bound class right"], curves(own))
    left_out = {}
    for row in rows:
        if not row["fold"]:
            left_out.setdefault(row["skipped"], []).append(int(row["line"]))
    text += "\n## Rows without a score in the first fold\n\n" + markdown_table(
        ["why", "rows", "lines of the file"], [[why, len(lines), line_ranges(lines)] for why, lines in sorted(left_out.items())])
    header = ["fold", "framework", "precision", "gpu", "rows", "mape", "median", "p90", "bias", "inside_90"]
    return csv_text(header, cells), text


SERVING = """\
# Errors of language models as they are served, the model left out

Total time of a static batch: prompts, then all new tokens. Host costs are fitted on the other models; runs whose batch \
exceeds the memory are scored and not fitted. At batch 1 nearly all of it is the time per token. llama.cpp has runs of \
batch 1 only and is predicted with start values, two of which were chosen with these and published runs in view.

"""
ANCHORED = """
Without a run of the model, and with one as `--anchor`: batch 1, the fewest tokens. The interval of a model takes its noise \
from the other models. The rows have total times only, so prompts and tokens are not told apart.

"""
RANKING = """
Ranking of the runs of one model by tokens per second (Kendall's τ): of all, and of frameworks that do the same work.

"""


def kendall_tau(pairs):
    """Pairs of (measured, predicted) that both order alike, less those that they order unlike, as a share of both."""
    signs = [s for s in ((a[0] - b[0]) * (a[1] - b[1]) for a, b in pairs) if s]
    return sum(1 if s > 0 else -1 for s in signs) / len(signs) if signs else 0


def serving(rows):
    costs = [r for r in rows if r["fold"] == "costs"]
    rows = with_numbers(r for r in rows if r["fold"] != "costs")
    runs, anchored = ([r for r in rows if r["fold"] == fold] for fold in ("model left out", "one run known"))
    fitted = [r["framework"] for r in costs]

    def figures(own):
        errors = [abs(ratio(r) - 1) for r in own]
        return [len(errors), f"{percent(sum(errors) / len(errors))} %", f"{percent(quantile(errors, 0.5))} %",
                f"{percent(quantile(errors, 0.9))} %"]

    lines, intervals, ranking = [], [], []
    for framework in fitted + unique(r["framework"] for r in runs if r["framework"] not in fitted):
        own = [r for r in runs if r["framework"] == framework]
        parts = [("all", own), ("batch 1", [r for r in own if r["batch"] == 1]),
                 ("batch fits", [r for r in own if r["waits"] == "0"]), ("batch waits", [r for r in own if r["waits"] == "1"])]
        parts += [(model, [r for r in own if r["model"] == model]) for model in sorted({r["model"] for r in own})]
        lines += [[framework, name] + figures(part) for name, part in parts if part]
    for framework in fitted:
        both = {r["line"] for r in anchored if r["framework"] == framework}
        for known, part in (("nothing", runs), ("one run", anchored)):
            own = [r for r in part if r["framework"] == framework and r["line"] in both]
            width = sum(math.log(r["high_s"] / r["low_s"]) / 2 for r in own) / max(1, len(own))
            if own:
                intervals.append([framework, known] + figures(own) + [f"{100 * sum(map(inside, own)) / len(own):.0f} %",
                                                                     f"{100 * math.expm1(width):.0f} %"])
    for model in sorted({r["model"] for r in runs}):
        own = []
        for r in (r for r in runs if r["model"] == model):
            tokens = r["batch"] * float(r["new_tokens"])
            own.append((tokens / r["measured_s"], tokens / r["predicted_s"], (r["prompt"], r["new_tokens"], r["batch"])))
        pairs = list(itertools.combinations(own, 2))
        ranking.append([model, len(own), f"{kendall_tau(pairs):.3f}", f"{kendall_tau(p for p in pairs if p[0][2] == p[1][2]):.3f}"])
    errors = ["rows", "MAPE", "median", "90 %"]
    return None, (SERVING + markdown_table(["framework", "runs"] + errors, lines) + ANCHORED +
                  markdown_table(["framework", "known of the model"] + errors + ["inside the 90 % interval", "half its width"],
                                 intervals) +
                  RANKING + markdown_table(["model", "runs", "all", "frameworks"], ranking) + "\n" +
                  markdown_table(["framework", "once per pass", "once per sequence"],
                                 [[r["framework"], f"{float(r['host_s']) * 1e3:.2f} ms", f"{float(r['device_s']) * 1e6:.0f} µs"]
                                  for r in costs]))


LEDGERS = {f.__name__: f for f in (operators, device_bound, layer_kernels, quantized, framework_tax, serving)}


def is_close(committed, now):
    """Counts of rows and shares inside the interval may differ by 5, errors by 15 % or 2 points."""
    if committed == now:
        return True
    try:
        a, b = float(committed), float(now)
    except ValueError:
        return False
    digits = len(committed.partition(".")[2])
    return abs(a - b) <= (5 if digits == 0 else max(0.02 if digits > 1 else 2, 0.15 * max(abs(a), abs(b))))


def differences(committed, now):
    def cells(line):
        return line.replace("|", " ").replace(",", " ").split(" ")

    before, after = committed.splitlines(), now.splitlines()
    if len(before) != len(after):
        return [f"{len(before)} lines are committed, there are {len(after)} now"]
    return [f"committed: {a}\nnow:       {b}" for a, b in zip(before, after)
            if len(cells(a)) != len(cells(b)) or not all(map(is_close, cells(a), cells(b)))][:10]


def check(folder, name, texts, folds):
    """Of a ledger of which only the first folds were computed, the CSV's lines of those are compared."""
    failed = False
    for suffix, text in zip(("csv", "md"), texts):
        if text is None:
            continue
        committed = (folder / f"{name}.{suffix}").read_text()
        if suffix == "csv":
            lines = committed.splitlines(keepends=True)
            is_partial = len(unique(next(csv.reader([line]))[0] for line in lines[1:])) > len(folds)
            committed = lines[0] + "".join(line for line in lines[1:] if next(csv.reader([line]))[0] in folds)
        elif name != "serving" and is_partial:
            continue
        for line in differences(committed, text):
            print(f"{name}.{suffix}:\n{line}")
            failed = True
    if failed:
        print("the ledger is stale; calibration/refit.sh writes it again")
    return failed


def main():
    words = [w for w in sys.argv[1:] if w != "--check"]
    if len(words) < 4 or words[0] not in LEDGERS:
        sys.exit(__doc__)
    name, data, command = words[0], pathlib.Path(words[1]), words[2:]
    for path in command:
        if path.endswith(".csv") and not pathlib.Path(path).exists():
            print(f"SKIPPED: there is no {path}; set FTAX_MEASUREMENTS to the folder of the measurements")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "folds.csv"
        subprocess.run([*command, out], check=True)
        rows = read(out)
    texts = LEDGERS[name](rows)
    if "--check" in sys.argv[1:]:
        return 1 if check(data / "ledger", name, texts, unique(r["fold"] for r in rows if r["fold"])) else 0
    for suffix, text in zip(("csv", "md"), texts):
        if text is not None:
            (data / "ledger" / f"{name}.{suffix}").write_text(text)
    print(texts[1], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
