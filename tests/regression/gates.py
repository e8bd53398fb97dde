"""Errors on the measured rows of this folder, group by group, against those of gates.tsv.

    gates.py FTAX            # fails where an error is worse, or better by more than the tolerance: then the gate is tightened
    gates.py FTAX --record   # writes gates.tsv; the commit says why errors moved

Columns of gates.tsv: file, group, rows, MAPE and bias in percent. Rows of served.csv are one run of `ftax serve` each.
"""
import csv
import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parent
GATES = FOLDER / "gates.tsv"
TOLERANCE = 0.2  # points: compilers round alike to 1e-6, so this is what a change may move without a word
GROUPS = {"operators.csv": "gpu,op,precision", "models.csv": "gpu,version,precision"}


def errors(ftax):
    found = {}
    for file, by in GROUPS.items():
        ended = subprocess.run([ftax, "validate", str(FOLDER / file), "--by", by, "--json", "-"], capture_output=True, text=True)
        if ended.returncode:
            sys.exit(f"{file}: exit {ended.returncode}: {ended.stderr}")
        report = json.loads(ended.stdout)
        for group in [{"group": {"all": ""}, **report["overall"]}, *report["groups"]]:
            name = " ".join(group["group"].values()) or "all"
            found[file, name] = (group["rows"], 100 * group["mape"], 100 * group["bias"])
    return found


def served_errors(ftax):
    with (FOLDER / "served.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))

    def error(row):
        ended = subprocess.run([ftax, "serve", row["model"], "--device", row["gpu"], "--framework", row["framework"], *row["options"].split(),
                                "--spread", "0", "-q", "--json", "-"], capture_output=True, text=True)
        if ended.returncode:
            sys.exit(f"served.csv: {row}: exit {ended.returncode}: {ended.stderr}")
        return json.loads(ended.stdout)["rows"][0]["tokens_per_s"] / float(row["tokens_per_s"]) - 1

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        own = list(pool.map(error, rows))
    groups = {"all": own}
    for row, value in zip(rows, own):
        for name in (row["gpu"], row["model"]):
            groups.setdefault(name, []).append(value)
    return {("served.csv", name): (len(e), 100 * statistics.fmean(map(abs, e)), 100 * statistics.fmean(e)) for name, e in groups.items()}


def main(ftax, record):
    found = errors(ftax) | served_errors(ftax)
    if record:
        GATES.write_text("".join(f"{file}\t{name}\t{rows}\t{mape:.1f}\t{bias:+.1f}\n" for (file, name), (rows, mape, bias) in found.items()))
        return False
    gates = {}
    for line in GATES.read_text().splitlines():
        file, name, rows, mape, bias = line.split("\t")
        gates[file, name] = (int(rows), float(mape), float(bias))
    wrong = [key for key in found.keys() | gates.keys() if key not in found or key not in gates or found[key][0] != gates[key][0]
             or any(abs(a - b) > TOLERANCE for a, b in zip(found[key][1:], gates[key][1:]))]
    for key in sorted(wrong):
        print(f"{' '.join(key)}: rows, MAPE and bias are {found.get(key)}, the gate is {gates.get(key)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve()), "--record" in sys.argv[2:]))
