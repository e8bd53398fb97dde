#!/usr/bin/env python3
"""Writes a ledger of data/ledger: NAME.csv and the tables of NAME.md, whose text before the first table stays.

    ledger.py [--check] NAME DATA_FOLDER COMMAND ARGUMENTS...

Runs `COMMAND ARGUMENTS... OUT.csv` and formats OUT.csv: figures that `ftax_folds` computes, or predicted rows by fold. With
--check the committed ledger is compared instead, up to a tolerance: figures of folds that were not computed again are left
out. The exit code is 1 where they differ and 77 where a file of measured rows is missing.
"""

import csv
import io
import itertools
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from model_folds import read


def quantile(values, share):
    """Linear between neighbours, as error_figures() of graphs/base/statistics.hpp has it."""
    ordered, at = sorted(values), share * (len(values) - 1)
    return ordered[int(at)] + at % 1 * (ordered[math.ceil(at)] - ordered[int(at)])


def unique(values):
    return list(dict.fromkeys(values))


def grouped(rows, *columns):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in columns), []).append(row)
    return groups


class Errors:
    """Errors of predicted rows, the columns of ledgers by name."""

    def __init__(self, rows):
        self.rows = rows
        self.ratios = [r["predicted"] / r["measured"] for r in rows]
        self.absolute = [abs(ratio - 1) for ratio in self.ratios]
        inside = sum(r["low"] <= r["measured"] <= r["high"] for r in rows) / len(rows)
        self.columns = {
            "rows": len(rows), "mape": statistics.fmean(self.absolute), "median": quantile(self.absolute, 0.5),
            "p90": quantile(self.absolute, 0.9), "bias": quantile([math.log(ratio) for ratio in self.ratios], 0.5),
            "half_width": math.expm1(statistics.fmean(math.log(r["high"] / r["low"]) / 2 for r in rows)),
            "width": round(math.sqrt(statistics.median(r["high"] / r["low"] for r in rows)), 2),
            "needed_width": round(quantile([max(ratio, 1 / ratio) for ratio in self.ratios], 0.9), 2),
            "inside_90": inside, "inside_percent": round(100 * inside), "models": len({r["model"] for r in rows}),
            "bias_percent": round(100 * (statistics.fmean(self.ratios) - 1), 1)}
        self.columns |= {f"{name}_percent": round(100 * self.columns[name], 1) for name in ("mape", "median", "p90")}

    def spearman(self):
        ranks = [dict(zip(sorted(range(len(self.rows)), key=[r[time] for r in self.rows].__getitem__), itertools.count()))
                 for time in ("predicted", "measured")]
        return round(statistics.correlation(*([rank[i] for i in range(len(rank))] for rank in ranks)), 4)

    def __getitem__(self, column):
        return self.spearman() if column == "spearman" else self.columns[column]


FIGURES = ("rows", "mape", "median", "p90", "bias")
PERCENT = ("rows", "mape_percent", "median_percent", "p90_percent", "bias_percent")
TITLES = {"gpu": "GPU", "mape": "MAPE", "p90": "P90", "inside_90": "inside 90 %", "half_width": "half its width"}
CSV_FORMATS = dict.fromkeys([*FIGURES[1:], "half_width"], "{:.4f}") | {"inside_90": "{:.3f}"}
TABLE_FORMATS = dict.fromkeys(FIGURES[1:4], "{:.1f}") | {"bias": "{:+.1f}", "inside_90": "{:.0f}", "half_width": "{:.0f}"}


def csv_text(figures):
    cells = [[CSV_FORMATS[k].format(float(v)) if k in CSV_FORMATS else v for k, v in f.items()] for f in figures]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([list(figures[0]), *cells])
    return out.getvalue()


def table(titles, rows):
    def line(cells):
        return "| " + " | ".join(map(str, cells)) + " |\n"

    return line(titles) + "|" + "---|" * len(titles) + "\n" + "".join(map(line, rows))


def percent(value, name="mape"):
    return TABLE_FORMATS[name].format(100 * float(value))


def by_fold(figures, after=lambda fold: ""):
    columns = [c for c in figures[0] if c not in ("fold", "region")]
    titles = [TITLES.get(c, c) for c in columns]
    return "".join(f"## {fold}\n\n" + table(titles, [[percent(f[c], c) if c in TABLE_FORMATS else f[c] for c in columns]
                                                     for f in own]) + after(fold) + "\n"
                   for (fold,), own in grouped((f for f in figures if not f.get("region")), "fold").items())


def means(figures):
    """Means of the groups' MAPE, the worst one's in brackets."""
    own, classes = grouped((f for f in figures if not f["region"]), "fold", "class"), unique(f["class"] for f in figures)
    lines = []
    for fold in unique(fold for fold, _ in own):
        errors = [[float(f["mape"]) for f in own.get((fold, c), ())] for c in classes]
        lines.append([fold, *(f"{percent(statistics.fmean(e))} ({percent(max(e))})" if e else "" for e in errors)])
    return "## Means over the GPUs, worst GPU in brackets\n\n" + table(["fold", *classes], lines) + "\n"


def regions(figures):
    """Errors by region of shapes, beside each other for the GPUs."""
    figures = [f | {"card": f["gpu"].split("-")[0]} for f in figures if f["region"]]
    cards, lines = unique(f["card"] for f in figures), []
    for key, own in grouped(figures, "class", "region").items():
        cells = {f["card"]: f"{percent(f['mape'])} ({percent(f['bias'], 'bias')})" for f in own if int(f["rows"]) >= 20}
        if cells:
            lines.append([*key, *(cells.get(card, "") for card in cards)])
    return ("## validate, usual, by region of shapes\n\nMAPE with the bias in brackets, of regions with at least 20 rows.\n\n" +
            table(["class", "region", *cards], lines))


def fits(*tables, **names):
    """A ledger of figures that ftax_folds has summed up; `names`: of columns, where they are others."""
    def ledger(rows):
        figures = [{names.get(k, k): v for k, v in row.items() if names.get(k, k)} for row in rows]
        return csv_text(figures), tables[0](rows) + by_fold(figures) + "".join(t(rows) for t in tables[1:])

    return ledger


def with_numbers(rows):
    names = {"measured_s": "measured", "predicted_s": "predicted", "low_s": "low", "high_s": "high", "latency_ms": "measured",
             "predicted_ms": "predicted", "low_ms": "low", "high_ms": "high", "host_s": "host", "device_s": "device"}
    numbers = {"batch", "line", "measured", "predicted", "low", "high", *names}
    return [{names.get(k, k): float(v) if k in numbers and v else v for k, v in row.items()} for row in rows]


def scored(rows, keys, columns):
    """Figures of each fold: the columns `columns` of the rows with the same key; a row has several."""
    figures = []
    for (fold,), own in grouped(rows, "fold").items():
        groups = {}
        for row in own:
            for key in keys(row):
                groups.setdefault(tuple(key.items()), []).append(row)
        for key, part in sorted(groups.items()):
            errors = Errors(part)
            figures.append({"fold": fold, **dict(key), **{c: errors[c] for c in columns}})
    return figures


def curves(rows):
    """Curves of latency over batch, from 1 to at least 64: the crossover as the measurements define it (flat start ÷
    per-sample slope of the largest batch), and on which side of it a row is."""
    counts = {}
    for key, curve in grouped(rows, "framework", "run", "gpu", "model", "precision").items():
        curve.sort(key=lambda row: row["batch"])
        first, last = curve[0], curve[-1]
        if first["batch"] != 1 or last["batch"] < 64:
            continue
        measured, predicted = (first[t] / (last[t] / last["batch"]) for t in ("measured", "predicted"))
        error = abs(math.log(predicted / measured))
        half_width = math.hypot(*(math.log(row["high"] / row["low"]) / 2 for row in (first, last)))
        clear = [row for row in curve if not measured / 2 < row["batch"] < 2 * measured]
        right = sum((row["batch"] < measured) == (row["host"] > row["device"]) for row in clear)
        for group in (key[0], "all"):
            new = (1, error <= math.log(1.41), error <= half_width, len(clear), right)
            counts[group] = [a + b for a, b in zip(counts.get(group, [0] * 5), new)]
    return "\n" + table(
        ["framework", "curves", "crossover within a factor 1.41", "within its interval", "rows a factor 2 from it",
         "bound class right"],
        [[group, count, f"{100 * near / count:.1f} %", f"{100 * within / count:.1f} %", clear,
          f"{100 * right / max(1, clear):.1f} %"] for group, (count, near, within, clear, right) in sorted(counts.items())])


def line_ranges(lines):
    """ "2 to 5, 9": runs of lines that follow each other."""
    runs = [[line for _, line in run] for _, run in itertools.groupby(enumerate(sorted(lines)), lambda x: x[1] - x[0])]
    return ", ".join(f"{r[0]:.0f}" if len(r) == 1 else f"{r[0]:.0f} to {r[-1]:.0f}" for r in runs)


def framework_tax(rows):
    rows = with_numbers(rows)
    folds = grouped(rows, "fold")
    skipped = grouped(folds.pop(("",), []), "skipped")

    def keys(row):
        own = {k: row[k] for k in ("framework", "precision", "gpu")}
        everything = dict.fromkeys(own, "all")
        return (everything, everything | {"framework": own["framework"]}, own | {"gpu": "all"}, own,
                everything | {"gpu": "model " + row["model"]})

    figures = scored(itertools.chain(*folds.values()), keys, [*FIGURES, "inside_90"])
    return csv_text(figures), (by_fold(figures, lambda fold: curves(folds[(fold,)])) +
        "## Rows without a score in the first fold\n\n" +
        table(["why", "rows", "lines of the file"],
              [[*why, len(own), line_ranges(r["line"] for r in own)] for why, own in sorted(skipped.items())]))


def timm(rows):
    figures = scored(with_numbers(rows), lambda row: [{"by": "all", "group": "all"}] +
                     [{"by": by, "group": row[by]} for by in ("gpu", "layout", "family")],
                     ["rows", "models", *PERCENT[1:], "spearman"])
    return csv_text(figures), by_fold(figures)


def compiled_against_eager(rows):
    """Errors under torch.compile and eager, and of their ratio, by version of PyTorch."""
    lines = {}
    for key, own in grouped(rows, "torch", "gpu", "model", "img").items():
        ratios = {r["framework"]: r["predicted"] / r["measured"] for r in own}
        if len(ratios) == 2:
            lines.setdefault(key[:2], []).append((ratios["pytorch-eager"], ratios["torch-compile"]))
    figures = [[*key, len(own), *(f"{100 * statistics.fmean(error):.1f}" for error in (
        [abs(e - 1) for e, _ in own], [abs(c - 1) for _, c in own], [abs(math.log(c / e)) for e, c in own]))]
        for key, own in sorted(lines.items())]
    return ("## torch.compile, timm's benchmarks, amp\n\n" + table(
        ["torch", "gpu", "models", "eager MAPE", "compiled MAPE", "log error of compiled ÷ eager"], figures))


def tensorrt(rows):
    rows = with_numbers(rows)

    def keys(row):
        own = {k: row[k] for k in ("framework", "precision", "gpu", "model", "version")}
        return [own] if row["fold"] == "not fitted" else [own, own | {"version": ""}]

    figures = scored([r for r in rows if r["fold"] != "compiled"], keys, [*PERCENT, "inside_percent"])
    return csv_text(figures), by_fold(figures) + compiled_against_eager([r for r in rows if r["fold"] == "compiled"])


def kendall_tau(pairs):
    """Pairs of (measured, predicted) that both order alike, less those that they order unlike, as a share of both."""
    signs = [s for s in ((a[0] - b[0]) * (a[1] - b[1]) for a, b in pairs) if s]
    return sum(1 if s > 0 else -1 for s in signs) / len(signs) if signs else 0


def serving(rows):
    folds = grouped(with_numbers(rows), "fold")
    costs, runs, anchored = (folds.get((fold,), []) for fold in ("costs", "model left out", "one run known"))
    known = {(r["framework"], r["line"]) for r in anchored}
    both = [r | {"fold": "model left out, the same runs"} for r in runs if (r["framework"], r["line"]) in known]

    def keys(row):
        parts = ["all", "batch waits" if row["waits"] == "1" else "batch fits", row["model"]]
        return [{"framework": row["framework"], "runs": part} for part in parts + ["batch 1"] * (row["batch"] == 1)]

    figures = scored(runs + both + anchored, keys, [*FIGURES[:4], "inside_90", "half_width"])
    ranking = []
    for (model,), part in sorted(grouped(runs, "model").items()):
        own = []
        for r in part:
            tokens = r["batch"] * float(r["new_tokens"])
            own.append((tokens / r["measured"], tokens / r["predicted"], (r["prompt"], r["new_tokens"], r["batch"])))
        pairs = list(itertools.combinations(own, 2))
        ranking.append([model, len(own), f"{kendall_tau(pairs):.3f}", f"{kendall_tau(p for p in pairs if p[0][2] == p[1][2]):.3f}"])
    return csv_text(figures), (
        by_fold(figures) + "## Ranking\n\nRuns of one model by tokens per second (Kendall's τ): all, and of frameworks that do "
        "the same work.\n\n" + table(["model", "runs", "all", "frameworks"], ranking) + "\n## Costs of the host\n\n" +
        table(["framework", "once per pass", "once per sequence"],
              [[r["framework"], f"{r['host'] * 1e3:.2f} ms", f"{r['device'] * 1e6:.0f} µs"] for r in costs]))


def groups(columns, *keys):
    """Errors of all rows of a fold and by these columns."""
    def ledger(rows):
        rows = with_numbers([r for r in rows if r["predicted" if "predicted" in r else "predicted_ms"]])
        figures = scored(rows, lambda row: [dict.fromkeys(keys, "all"), {k: row[k] for k in keys}], columns)
        return csv_text(figures), by_fold(figures)

    return ledger


LEDGERS = {"operators": fits(means, regions), "layer_kernels": fits(means), "quantized": fits(means),
           "device_bound": fits(lambda rows: "", **{"class": "precision", "region": "", "gpu": "group"}),
           "nas": fits(lambda rows: ""), "framework_tax": framework_tax, "timm": timm, "tensorrt": tensorrt, "serving": serving,
           "kernelbench": groups([*PERCENT, "inside_percent"], "framework", "level"),
           "coverage": groups(["rows", "inside_percent", "width", "needed_width"], "evidence", "framework"),
           "edge": groups([*PERCENT, "inside_percent"], "known", "gpu"),
           "other_networks": groups([*PERCENT, "inside_percent"], "part", "gpu"),
           "served": groups(PERCENT, "framework", "gpu", "model")}


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
        return re.split(r"[ |,()]+", line)

    before, after = committed.splitlines(), now.splitlines()
    if len(before) != len(after):
        return [f"{len(before)} lines are committed, there are {len(after)} now"]
    return [f"committed: {a}\nnow:       {b}" for a, b in zip(before, after)
            if len(cells(a)) != len(cells(b)) or not all(map(is_close, cells(a), cells(b)))][:10]


def main():
    words = [w for w in sys.argv[1:] if w != "--check"]
    if len(words) < 4 or words[0] not in LEDGERS:
        sys.exit(__doc__)
    name, folder, command = words[0], pathlib.Path(words[1]) / "ledger", words[2:]
    for path in command:
        if path.endswith(".csv") and not pathlib.Path(path).exists():
            print(f"SKIPPED: there is no {path}; set FTAX_MEASUREMENTS to the folder of the measurements")
            return 77
    with tempfile.TemporaryDirectory() as temporary:
        out = pathlib.Path(temporary) / "folds.csv"
        subprocess.run([*command, out], check=True)
        table_of, text = LEDGERS[name](read(out))
    page = folder / f"{name}.md"
    head = "".join(itertools.takewhile(lambda line: not line.startswith(("## ", "| ")), page.read_text().splitlines(True)))
    texts = {page: head + text.rstrip("\n") + "\n", folder / f"{name}.csv": table_of}
    if "--check" not in sys.argv[1:]:
        for path, text in texts.items():
            path.write_text(text)
        print(texts[page], end="")
        return 0
    # If only some folds of a ledger were computed, only their lines of the CSV are compared.
    folds = {row[0] for row in csv.reader(table_of.splitlines())}
    lines = (folder / f"{name}.csv").read_text().splitlines(True)
    own = lines[:1] + [line for line in lines[1:] if next(csv.reader([line]))[0] in folds]
    found = [f"{name}.csv:\n{line}" for line in differences("".join(own), table_of)]
    if own == lines:
        found = [f"{name}.md:\n{line}" for line in differences(page.read_text(), texts[page])] + found
    if found:
        print(*found, "the ledger is stale; calibration/refit.sh writes it again", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
