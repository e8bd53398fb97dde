"""The campaign's dry run on a CPU: rows in every file, none with a problem, and a second call that has nothing to do."""

import csv
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ROWS = {"dispatch.csv": 69, "frameworks.csv": 12, "models.csv": 12, "operators.csv": 24}


def run(output, slice):
    done = subprocess.run([os.path.join(ROOT, "calibration", "campaign.sh"), slice], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "DEVICE": "cpu", "SMOKE": "1", "BUDGET_S": "400", "OUT": output,
                               "PYTHON": sys.executable})
    sys.stderr.write(done.stderr)
    assert done.returncode == 0, done.returncode


def read(output, name):
    with open(os.path.join(output, name), newline="") as file:
        return list(csv.DictReader(file))


def main():
    output = sys.argv[1]
    run(output, "first")
    assert sorted(os.listdir(output)) == ["dispatch.csv", "environment.json", "frameworks.csv"]
    run(output, "all")
    for name, count in ROWS.items():
        rows = read(output, name)
        problems = [row for row in rows if row["problem"] or not float(row["latency_ms"]) > 0]
        assert not problems, problems
        assert len(rows) >= count, (name, len(rows))
    assert {row["framework"] for row in read(output, "dispatch.csv")} == {"pytorch-eager", "torchscript", "libtorch"}
    complete = {name: len(read(output, name)) for name in ROWS}
    run(output, "all")
    assert {name: len(read(output, name)) for name in ROWS} == complete
    with open(os.path.join(output, "environment.json")) as file:
        assert len(json.load(file)["calls"]) == 3


if __name__ == "__main__":
    main()
