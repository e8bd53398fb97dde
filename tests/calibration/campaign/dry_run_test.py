"""The campaign's dry run on a CPU: rows in every file, none with a problem, continued by a later call, and tables and a host's
profile from them.

    dry_run_test.py FOLDER BUILD"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ROWS = {"dispatch.csv": 72, "models.csv": 8, "operators.csv": 24}
CAMPAIGN = [sys.executable, os.path.join(ROOT, "calibration", "campaign.py")]


def run(ftax, output, budget=500):
    done = subprocess.run([*CAMPAIGN, "--ftax", ftax, "measure", "-o", output, "--device", "cpu", "--budget", str(budget)])
    assert done.returncode == 0, done.returncode


def read(output, name):
    with open(os.path.join(output, name), newline="") as file:
        return list(csv.DictReader(file))


def carried(build):
    """The program and what it loads in a folder of their own, as on a machine to which they were copied."""
    folder = tempfile.mkdtemp(prefix="ftax-carried-")
    subprocess.run([*CAMPAIGN, "carry", build, "-o", folder], check=True)
    return os.path.join(folder, "ftax")


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
    tables = [*CAMPAIGN, "--ftax", ftax]
    models = sorted({row["model"] for row in read(output, "models.csv")})
    subprocess.run([*tables, "predict", "-o", folder, "--device", device, "--models", *models], check=True)
    subprocess.run([*tables, "tables", folder], check=True)
    with open(os.path.join(folder, "tables.md")) as file:
        assert "| pytorch-eager, fp32 | 4 |" in file.read()
    subprocess.run([ftax, "fit", *(os.path.join(folder, name) for name in ("dispatch.csv", "models.csv")),
                    "--framework", "pytorch-eager", "--host-output", os.path.join(folder, "host.json")], check=True)


def main():
    output, build = sys.argv[1:]
    ftax = carried(build)
    try:
        run(ftax, output, 30)  # its budget ends between two calls or within one
        measured = {name: read(output, name) for name in ROWS if os.path.exists(os.path.join(output, name))}
        run(ftax, output)
        for name, rows in measured.items():
            assert read(output, name)[:len(rows)] == rows, name  # continued, not measured again
        for name, count in ROWS.items():
            rows = read(output, name)
            problems = [row for row in rows if row["problem"] or not float(row["latency_ms"]) > 0]
            assert not problems, problems
            assert len(rows) >= count, (name, len(rows))
            cases = {(row["case"], row["repetition"]) for row in rows}
            assert len(cases) == len(rows), name
        assert {row["framework"] for row in read(output, "dispatch.csv")} == {"pytorch-eager", "torchscript", "libtorch"}
        assert {(row["framework"], row["precision"], row["layout"]) for row in read(output, "models.csv")} == {
            ("pytorch-eager", "fp32", ""), ("torchscript", "fp32", ""), ("pytorch-eager", "amp", ""), ("pytorch-eager", "fp32", "nhwc")}
        check_tables(os.path.join(build, "ftax"), output)
    finally:
        shutil.rmtree(os.path.dirname(ftax))


if __name__ == "__main__":
    main()
