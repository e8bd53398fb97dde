"""Writes files/planted_operators.csv: rows of operators as ftax predicts them, with a deviation of up to 12 %, for the fits of fits.tsv.

    plant_rows.py FTAX    # only where fits.tsv needs rows of another kind: its figures change with them
"""
import csv
import random
import subprocess
import sys
import tempfile
from pathlib import Path

FILE = Path(__file__).parent / "files/planted_operators.csv"
ROOT = Path(__file__).parents[2]
COLUMNS = "gpu op precision shape latency_ms kernel split order".split()
POINTWISE = "add mul div relu gelu tanh softmax ln".split()

draw = random.Random(17)


def shape(op):
    size = lambda low, high: round(2 ** draw.uniform(low, high))
    if op in POINTWISE:
        return f"b={size(4, 14)} h={size(6, 12)}"
    if op == "bmm":
        return f"b={size(0, 7)} m={size(4, 10)} n={size(4, 10)} k={size(4, 10)}"
    if op == "linear":
        return f"m={size(0, 12)} n={size(6, 13)} k={size(6, 13)}"
    kernel = draw.choice([1, 3, 3, 5])
    return f"b={size(0, 6)} cin={8 * size(0, 6)} cout={8 * size(0, 6)} hw={size(3, 7)} kernel={kernel} stride={draw.choice([1, 1, 2])} pad={kernel // 2}"


def rows():
    for gpu in ("NVIDIA A100-PCIE-40GB", "Tesla T4", "Tesla V100-PCIE-32GB"):
        for op in [*POINTWISE, *["bmm", "linear", "conv"] * 4]:
            for _ in range(10):
                yield {"gpu": gpu, "op": op, "precision": draw.choice(["fp32", "fp32", "fp16"]) if op in ("bmm", "linear") else "fp32", "shape": shape(op),
                       "split": draw.choice(["train", "train", "test"]), "latency_ms": "1"}


def write(path, table):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    table = list(rows())
    draw.shuffle(table)
    for order, row in enumerate(table):
        row["order"] = order
    write(FILE, table)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "p.csv"
        subprocess.run([sys.argv[1], "validate", FILE, "--predictions", out, "-q"], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        with out.open() as file:
            found = list(csv.DictReader(file))
    predicted = {(r["gpu"], r["op"], r["shape"], r["precision"]): float(r["predicted_ms"]) for r in found if r.get("predicted_ms")}
    kept = [row for row in table if (row["gpu"], row["op"], row["shape"], row["precision"]) in predicted]
    for row in kept:
        row["latency_ms"] = f"{predicted[row['gpu'], row['op'], row['shape'], row['precision']] * (1 + draw.uniform(-0.12, 0.12)):.6g}"
    write(FILE, kept)
    print(len(table), len(kept))
