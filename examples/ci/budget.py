"""Fails when a model takes longer than its budget, or longer than it took before.

    python budget.py model.onnx --device l4 --precision fp16 --batch 1,8 --largest-ms 20
    python budget.py model.onnx --before main/model.onnx --growth 5% --device l4 --batch 8 --dim seq=128

The rest of the words are options of `ftax predict`. Both files are predicted for the same card and framework, so that what is
uncertain about these does not count: a change of a few per cent is one of the model. Writes a table to the summary of the job.
"""

import argparse
import json
import os
import subprocess
import sys


def latencies_ms(model, options):
    run = subprocess.run(["ftax", "predict", model, *options, "--json"], stdout=subprocess.PIPE)
    if run.returncode:  # ftax has said why
        sys.exit(run.returncode)
    return {row["batch"]: row["latency_s"] * 1e3 for row in json.loads(run.stdout)["predictions"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--before", help="the model of the branch that the pull request goes to")
    parser.add_argument("--growth", default="5%", help="how much longer than before it may take")
    parser.add_argument("--largest-ms", type=float, default=float("inf"), help="longest latency, in milliseconds")
    arguments, options = parser.parse_known_args()
    allowed = 1 + float(arguments.growth.rstrip("%")) / 100
    now = latencies_ms(arguments.model, options)
    before = latencies_ms(arguments.before, options) if arguments.before else {}
    lines, failed = ["| batch | before, ms | now, ms | change | |", "|---|---|---|---|---|"], False
    for batch, latency in now.items():
        known = before.get(batch)
        slower = latency > arguments.largest_ms or (known is not None and latency > known * allowed)
        failed |= slower
        change = "" if known is None else f"{100 * (latency / known - 1):+.1f} %"
        lines.append(f"| {batch} | {'' if known is None else f'{known:.3g}'} | {latency:.3g} | {change} | {'over budget' if slower else ''} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(summary, "a") as file:
            file.write(table)
    sys.exit(failed)


if __name__ == "__main__":
    main()
