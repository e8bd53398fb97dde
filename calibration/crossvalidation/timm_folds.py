#!/usr/bin/env python3
"""Scores the device profile on timm's own benchmark (timm_infer.csv, eager amp, RTX 3090 and 4090) and writes
data/ledger/timm.csv and timm.md.

    timm_folds.py FTAX BLIND_PROFILE timm_infer.csv MODELS TABLE WORK LEDGER [--folds N] [--iterations N]

MODELS holds the architectures as .pt2 files (graphs/zoo/export.py), TABLE names their families (graphs/zoo/timm.tsv).
BLIND_PROFILE was fitted without a row of these cards. Three figures: `blind`, datasheets and that profile only;
`family`, the profile fitted to the rows of other families (N groups of families, each left out once); `gpu`, the profile
fitted to the rows of the other card.
"""

import argparse
import csv
import pathlib
import statistics
import subprocess

from rows import errors, predicted, read, write

EAGER = "pytorch-eager"


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    for rank, index in enumerate(order):
        result[index] = rank
    return result


def summary(rows):
    return {
        "rows": len(rows),
        "models": len({r["model"] for r in rows}),
        **errors(rows),
        "spearman": round(statistics.correlation(*(ranks([float(r[c]) for r in rows]) for c in ("predicted_ms", "latency_ms"))),
                          4),
    }


class Study:
    def __init__(self, arguments):
        self.arguments = arguments
        self.work = pathlib.Path(arguments.work)
        self.work.mkdir(parents=True, exist_ok=True)
        with open(arguments.table) as table:
            self.family = {row["model"]: row["family"] for row in csv.DictReader(table, delimiter="\t")}
        self.rows = [r for r in read(arguments.rows) if r["framework"] == EAGER and r["model"] in self.family]

    def fit(self, rows, name):
        profile = self.work / f"{name}.json"
        if not profile.exists():
            write(self.work / f"{name}.csv", rows)
            subprocess.run([self.arguments.ftax, "fit", "--start", self.arguments.blind, self.work / f"{name}.csv",
                            "--models", self.arguments.models, "--iterations", str(self.arguments.iterations),
                            "-o", profile], check=True, stderr=subprocess.DEVNULL)
        return profile

    def validate(self, rows, profile, name):
        found = predicted(self.arguments.ftax, rows, self.work / name, profile, self.arguments.models)
        return [r for r in found if not r["skipped"]]

    def blind(self):
        return self.validate(self.rows, self.arguments.blind, "blind")

    def left_out(self, kind, group_of):
        predicted = []
        for group in sorted({group_of(r) for r in self.rows}):
            name = f"{kind}-{group}".replace(" ", "-")
            profile = self.fit([r for r in self.rows if group_of(r) != group], name)
            predicted += self.validate([r for r in self.rows if group_of(r) == group], profile, name)
        return predicted

    def family_groups(self):
        """Deals the families out by size, so that each group leaves out about as many rows."""
        sizes = {}
        for row in self.rows:
            sizes[self.family[row["model"]]] = sizes.get(self.family[row["model"]], 0) + 1
        order = sorted(sizes, key=lambda family: (-sizes[family], family))
        return {family: i % self.arguments.folds for i, family in enumerate(order)}


def table(title, entries):
    lines = [f"| {title} | rows | models | MAPE | median | P90 | bias | Spearman |", "|---|---|---|---|---|---|---|---|"]
    lines += [f"| {name} | {s['rows']} | {s['models']} | {s['mape_percent']} | {s['median_percent']} | {s['p90_percent']} |"
              f" {s['bias_percent']:+} | {s['spearman']:.4f} |" for name, s in entries]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("ftax", "blind", "rows", "models", "table", "work", "ledger"):
        parser.add_argument(name)
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=10, help="of each fit: most of the way is short")
    study = Study(parser.parse_args())
    groups = study.family_groups()
    scores = {
        "blind": study.blind(),
        "gpu": study.left_out("gpu", lambda row: row["gpu"]),
        "family": study.left_out("family", lambda row: str(groups[study.family[row["model"]]])),
    }
    flat, text = [], ["# timm's benchmark, eager, amp, large batches (timm_infer.csv)\n"]
    text.append("Written by calibration/crossvalidation/timm_folds.py. `blind`: datasheets and other cards only; `gpu`: fitted to the "
                "other of the two cards; `family`: fitted to other families. Per cent.\n")
    text.append(f"{study.arguments.folds} groups of families; each fit starts from the blind profile and takes at most "
                f"{study.arguments.iterations} iterations.\n")
    text.append(table("fold", [(name, summary(rows)) for name, rows in scores.items()]))
    for fold, rows in scores.items():
        for title, key in (("gpu", lambda r: r["gpu"]), ("layout", lambda r: r["layout"]),
                           ("family", lambda r: study.family[r["model"]])):
            entries = [(name, summary([r for r in rows if key(r) == name])) for name in sorted({key(r) for r in rows})]
            text.append(f"## {fold}, by {title}\n\n" + table(title, entries))
            flat += [{"fold": fold, "by": title, "group": name, **s} for name, s in entries]
        flat.append({"fold": fold, "by": "all", "group": "all", **summary(rows)})
    ledger = pathlib.Path(study.arguments.ledger)
    write(ledger / "timm.csv", flat)
    (ledger / "timm.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
