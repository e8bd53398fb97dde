"""Errors on the measured rows of this folder, group by group, against those of gates.tsv.

    gates.py FTAX            # fails where an error is worse, or better by more than the tolerance: then the gate is tightened
    gates.py FTAX --record   # writes gates.tsv; the commit says why errors moved

Columns of gates.tsv: file, group, rows, MAPE and bias in percent. Rows of served.csv are one run of `ftax serve` each, those of decoded.csv one
of `ftax generate`.
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


def answer(ftax, file, *words):
    ended = subprocess.run([ftax, *words, "-q", "--json", "-"], capture_output=True, text=True, cwd=FOLDER)
    if ended.returncode:
        sys.exit(f"{file}: {words}: exit {ended.returncode}: {ended.stderr}")
    return json.loads(ended.stdout)


def served_error(ftax, row):
    served = answer(ftax, "served.csv", "serve", row["model"], "--device", row["gpu"], "--framework", row["framework"], *row["options"].split(),
                    "--spread", "0")
    return served["rows"][0]["tokens_per_s"] / float(row["tokens_per_s"]) - 1


def decoded_error(ftax, row):
    decoded = answer(ftax, "decoded.csv", "generate", row["model"], "--device", row["gpu"], "--framework", row["framework"], "--precision",
                     row["precision"], "--batch", "1", "--prompt", row["cached_tokens"], "--new-tokens", "128")
    return 1e3 * decoded["predictions"][0]["tpot_s"] / float(row["ms_per_token"]) - 1


def errors_of(ftax, name, error):
    with (FOLDER / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        own = list(pool.map(lambda row: error(ftax, row), rows))
    groups = {"all": own}
    for row, value in zip(rows, own):
        for group in (row["gpu"], row["model"].removeprefix("configs/").removesuffix(".json")):
            groups.setdefault(group, []).append(value)
    return {(name, group): (len(e), 100 * statistics.fmean(map(abs, e)), 100 * statistics.fmean(e)) for group, e in groups.items()}


def main(ftax, record):
    found = errors(ftax) | errors_of(ftax, "served.csv", served_error) | errors_of(ftax, "decoded.csv", decoded_error)
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
