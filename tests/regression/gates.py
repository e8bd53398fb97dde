"""Errors on the measured rows of this folder, group by group, against those of gates.tsv.

    gates.py FTAX            # fails where an error is worse, or better by more than the tolerance: then the gate is tightened
    gates.py FTAX --record   # writes gates.tsv; the commit says why errors moved

Columns of gates.tsv: file, group, rows, then in percent mean and median of the absolute errors, bias, and the share of rows inside their 90 %
interval (nan where a prediction has none). Rows of served.csv are one run of `ftax serve` each, those of decoded.csv, prompts.csv and
answered.csv one of `ftax generate`; the generation of their card is a group.
"""
import csv
import json
import math
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
            found[file, name] = (group["rows"], *(100 * group[key] for key in ("mape", "median_ape", "bias", "inside_interval")))
    return found


def answer(ftax, file, *words):
    ended = subprocess.run([ftax, *words, "-q", "--json", "-"], capture_output=True, text=True, cwd=FOLDER)
    if ended.returncode:
        sys.exit(f"{file}: {words}: exit {ended.returncode}: {ended.stderr}")
    return json.loads(ended.stdout)


def served_error(ftax, row):
    served = answer(ftax, "served.csv", "serve", row["model"], "--device", row["gpu"], "--framework", row["framework"], *row["options"].split(),
                    "--spread", "0")
    return served["rows"][0]["tokens_per_s"] / float(row["tokens_per_s"]) - 1, math.nan


def generated(ftax, file, row, prompt, new_tokens, phase, time):
    """Error and whether the interval holds the measured time; that of a pass is taken for the mean of several."""
    options = ("--device", "--framework", "--precision", "--batch", "--prompt", "--new-tokens")
    values = (row["gpu"], row["framework"], row["precision"], "1", prompt, new_tokens)
    predicted = answer(ftax, file, "generate", row["model"], *(word for pair in zip(options, values) for word in pair))["predictions"][0]
    ratio = 1e3 * predicted[time] / float(row["ms"])
    one = predicted[phase]
    return ratio - 1, one["low_s"] <= one["latency_s"] / ratio <= one["high_s"]


def decoded_error(ftax, row):
    return generated(ftax, "decoded.csv", row, row["cached_tokens"], "128", "decode", "tpot_s")


def prompt_error(ftax, row):
    return generated(ftax, "prompts.csv", row, row["tokens"], "1", "prefill", "ttft_s")


def answered_error(ftax, row):
    predicted = answer(ftax, "answered.csv", "generate", row["model"], "--device", row["gpu"], "--framework", row["framework"], "--precision",
                       row["precision"], "--tp", row["tp"], "--prompt", row["prompt"], "--new-tokens", "2048")["predictions"][0]
    measured = float(row["s"])
    return predicted["total_s"] / measured - 1, predicted["low_s"] <= measured <= predicted["high_s"]


def generation(gpu):
    datasheet = json.loads((FOLDER.parents[1] / "data" / "devices" / f"{gpu}.json").read_text())
    return f"{datasheet['architecture']} {datasheet['compute_capability']}"


def errors_of(ftax, name, error, card=generation):
    with (FOLDER / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        own = list(pool.map(lambda row: error(ftax, row), rows))
    groups = {"all": own}
    for row, value in zip(rows, own):
        for group in (card(row["gpu"]), row["model"].removeprefix("configs/").removesuffix(".json")):
            groups.setdefault(group, []).append(value)
    return {(name, group): summary(own) for group, own in groups.items()}


def summary(own):
    errors = [error for error, _ in own]
    absolute = [abs(error) for error in errors]
    of_rows = statistics.fmean(absolute), statistics.median(absolute), statistics.fmean(errors), statistics.fmean(inside for _, inside in own)
    return (len(own), *(100 * value for value in of_rows))


def moved(a, b):
    return abs(a - b) > TOLERANCE or math.isnan(a) != math.isnan(b)


def main(ftax, record):
    found = (errors(ftax) | errors_of(ftax, "served.csv", served_error, lambda gpu: gpu) | errors_of(ftax, "decoded.csv", decoded_error)
             | errors_of(ftax, "prompts.csv", prompt_error) | errors_of(ftax, "answered.csv", answered_error))
    if record:
        GATES.write_text("".join(f"{file}\t{name}\t{rows}\t{mape:.1f}\t{median:.1f}\t{bias:+.1f}\t{inside:.1f}\n"
                                 for (file, name), (rows, mape, median, bias, inside) in found.items()))
        return False
    gates = {}
    for line in GATES.read_text().splitlines():
        file, name, rows, *percent = line.split("\t")
        gates[file, name] = (int(rows), *map(float, percent))
    wrong = [key for key in found.keys() | gates.keys() if key not in found or key not in gates or found[key][0] != gates[key][0]
             or any(moved(a, b) for a, b in zip(found[key][1:], gates[key][1:]))]
    for file in dict.fromkeys(file for file, _ in found):
        rows, *percent = found[file, "all"]
        print(f"{file}: {rows} rows, MAPE %.1f, median %.1f, bias %+.1f, inside %.0f %%" % tuple(percent))
    for key in sorted(wrong):
        print(f"{' '.join(key)}: rows, MAPE, median, bias and share inside are {found.get(key)}, the gate is {gates.get(key)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve()), "--record" in sys.argv[2:]))
