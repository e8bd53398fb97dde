"""The campaign's dry run on a CPU: rows in every file, none with a problem, tables and a host's profile from them, and a later
call that has nothing to do.

    dry_run_test.py FOLDER FTAX"""

import csv
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ROWS = {"dispatch.csv": 72, "models.csv": 24, "operators.csv": 24}


def run(output, *stages, **environment):
    done = subprocess.run([os.path.join(ROOT, "calibration", "campaign.sh"), *stages], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "DEVICE": "cpu", "SMOKE": "1", "BUDGET_S": "900", "OUT": output,
                               "PYTHON": sys.executable, **environment})
    sys.stderr.write(done.stderr)
    assert done.returncode == 0, done.returncode


def read(output, name):
    with open(os.path.join(output, name), newline="") as file:
        return list(csv.DictReader(file))


def carried(output):
    """What is carried to a machine (FTAX_CARRIED has it built already), and the PATH of one whose compiler must not be asked."""
    folder = output + ".carried"
    os.makedirs(folder, exist_ok=True)
    if "FTAX_CARRIED" in os.environ:
        shutil.copy(os.path.join(os.environ["FTAX_CARRIED"], "libtorch_dispatch.so"), folder)
    else:
        run(output, "build", CARRIED=folder)
    compiler = os.path.join(folder, "g++")
    with open(compiler, "w") as file:
        file.write("#!/bin/sh\nexit 1\n")
    os.chmod(compiler, 0o755)
    return {"CARRIED": folder, "PATH": folder + os.pathsep + os.environ["PATH"]}


def check_tables(ftax, output, device="h200-sxm-141gb"):
    """What is made of a campaign's files can be made of these, once they say that they are of a card with a datasheet."""
    folder = output + ".tables"
    os.makedirs(folder, exist_ok=True)
    for name in ROWS:
        rows = [{**row, "gpu": device} for row in read(output, name)]
        with open(os.path.join(folder, name), "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    tables = [sys.executable, os.path.join(ROOT, "calibration", "campaign_tables.py"), "--ftax", ftax]
    models = sorted({row["model"] for row in read(output, "models.csv")})
    subprocess.run([*tables, "predict", "-o", folder, "--device", device, "--models", *models], check=True)
    subprocess.run([*tables, "tables", folder], check=True)
    with open(os.path.join(folder, "tables.md")) as file:
        assert "| pytorch-eager, fp32 | 4 |" in file.read()
    subprocess.run([ftax, "fit", *(os.path.join(folder, name) for name in ("dispatch.csv", "models.csv")),
                    "--framework", "pytorch-eager", "--host-output", os.path.join(folder, "host.json")], check=True)


def main():
    output, ftax = sys.argv[1:]
    machine = carried(output)
    run(output, "dispatch", **machine)
    assert sorted(os.listdir(output)) == ["dispatch.csv", "environment.json"]
    run(output, **machine)
    for name, count in ROWS.items():
        rows = read(output, name)
        problems = [row for row in rows if row["problem"] or not float(row["latency_ms"]) > 0]
        assert not problems, problems
        assert len(rows) >= count, (name, len(rows))
    assert {row["framework"] for row in read(output, "dispatch.csv")} == {"pytorch-eager", "torchscript", "libtorch"}
    assert {(row["framework"], row["precision"], row["layout"]) for row in read(output, "models.csv")} == {
        ("pytorch-eager", "fp32", ""), ("torchscript", "fp32", ""), ("pytorch-eager", "amp", ""), ("pytorch-eager", "fp32", "nhwc")}
    complete = {name: len(read(output, name)) for name in ROWS}
    fresh = output + ".fresh"  # simulates another machine with the files of the last call
    run(fresh, RESUME=output, **machine)
    assert {name: len(read(fresh, name)) for name in ROWS} == complete
    with open(os.path.join(fresh, "environment.json")) as file:
        assert len(json.load(file)["calls"]) == 3
    check_tables(ftax, output)


if __name__ == "__main__":
    main()
