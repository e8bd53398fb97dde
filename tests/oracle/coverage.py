#!/usr/bin/env python3
"""Reads every model file of some folders and says which of them ftax knows in full.

    coverage.py FTAX DIR…  > coverage.tsv     the folders as graphs/zoo/export.py fills them

One row per file: what ended the program, operators, FLOPs, operators without a rule. Fails when a file ends it in another way
than with a result, or when fewer than 97 % of the files are covered in full.
"""

import json
import pathlib
import subprocess
import sys

SYMBOLS = (["--batch", "2", "--dim", "seq=128"], ["--batch", "2"], ["--dim", "seq=128"], [])
FULL = 0.97


def inspect(ftax, path):
    """Runs `ftax inspect` with the symbols that the file has."""
    for flags in SYMBOLS:
        done = subprocess.run([ftax, "inspect", path, *flags, "--json", "-"], capture_output=True, text=True, timeout=300)
        if done.returncode != 2:
            break
    return done


def main():
    ftax, *folders = sys.argv[1:]
    print("folder\tmodel\tresult\toperators\tgflop\tunknown_operators\tunknown")
    failed = full = files = 0
    for path in sorted(path for folder in folders for path in pathlib.Path(folder).glob("*.pt2")):
        done = inspect(ftax, path)
        files += 1
        row = [path.parent.name.removeprefix("zoo_pt2_"), path.stem]
        if done.returncode:
            failed += 1
            message = (done.stderr.strip().splitlines() or [""])[-1].split(path.name + ": ")[-1]
            print(*row, f"exit {done.returncode}: {message}", "", "", "", "", sep="\t", flush=True)
            continue
        report = json.loads(done.stdout)
        full += report["unknown_operators"] == 0
        print(*row, "ok", report["total"]["operators"], f"{report['total']['flops'] / 1e9:.4f}", report["unknown_operators"],
              " ".join(report["unknown"]), sep="\t", flush=True)
    print(f"{files} files, {files - failed} read, {full} covered in full", file=sys.stderr)
    return failed > 0 or full < FULL * files


if __name__ == "__main__":
    sys.exit(main())
