#!/usr/bin/env python3
"""Prints what re-recording changed in the tables of this folder: rows by table, and the 20 numbers that moved most.

Usage: changes.py [COMMIT]    compares the working tree with COMMIT (default: HEAD)
"""
import math
import pathlib
import re
import subprocess
import sys

MOST = 20
FOLDER = pathlib.Path(__file__).resolve().parent


def git(*words):
    return subprocess.run(["git", *words], cwd=FOLDER, capture_output=True, text=True, check=True).stdout


def rows_of(text):
    """Rows by their first cell; equal first cells are numbered."""
    lines = text.splitlines()
    titles = lines[0].split("\t") if lines else []
    rows, seen = {}, {}
    for line in lines[1:]:
        cells = line.split("\t")
        seen[cells[0]] = number = seen.get(cells[0], 0) + 1
        rows[cells[0] if number == 1 else f"{cells[0]} ({number})"] = cells
    return titles, rows


def number_of(cell):
    """The number that a cell starts with, in front of the slash of 0.0063/524d; None for texts and hashes."""
    number = re.match(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?(?=/|$)", cell)
    return float(number[0]) if number and not re.fullmatch("[0-9a-f]{10}|[0-9]+e[0-9]+", cell) else None


def moved(before, after):
    """Distance of two numbers on a logarithmic scale; infinite where one of them is zero."""
    if before * after <= 0:
        return 0.0 if before == after else math.inf
    return abs(math.log(abs(after)) - math.log(abs(before)))


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    largest, summary = [], []
    for path in git("diff", "--relative", "--name-only", commit, "--", "*.tsv").split():
        titles, before = rows_of(git("show", f"{commit}:./{path}"))
        _, after = rows_of((FOLDER / path).read_text() if (FOLDER / path).exists() else "")
        common = [row for row in before if row in after and before[row] != after[row]]
        numbers = 0
        for row in common:
            distances = []
            for title, old, new in zip(titles[1:], before[row][1:], after[row][1:]):
                values = number_of(old), number_of(new)
                if None not in values and values[0] != values[1]:
                    distances.append((moved(*values), path, row, title, *values))
            numbers += bool(distances)
            largest += distances
        summary.append(f"{path}: {len(common)} of {len(before)} rows changed, {numbers} of them in a number; "
                       f"{len(after.keys() - before.keys())} new, {len(before.keys() - after.keys())} gone")
    print("\n".join(summary) or "no table changed")
    for _, path, row, title, old, new in sorted(largest, key=lambda change: -change[0])[:MOST]:
        change = f"{100 * (new / old - 1):+.2f} %" if old else "was 0"
        print(f"  {path}: {row[:100]}: {title} {old:g} -> {new:g} ({change})")


if __name__ == "__main__":
    main()
