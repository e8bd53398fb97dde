#!/usr/bin/env python3
"""Holds the figures that docs/ quotes (README rows are those of docs/results.md) to the ledgers, at their printed precision.

    quoted_figures.py [--write] [REPOSITORY]

Each entry of quoted_figures.json is a page, a text with {} where figures stand, and the SQL queries whose cells these are.
Tables are data/ledger/NAME.csv and `campaign`, of our own measurements; the file defines views. Without --write, a figure that
differs or a text that is not found once is named, and the exit code is 1; with it the pages are written with the figures.
"""

import csv
import json
import pathlib
import re
import sqlite3
import statistics
import sys


def number(text):
    return int(text) if text.isdigit() else float(text) if re.fullmatch(r"-?\d+\.?\d*(e[-+]?\d+)?", text) else text


class Mean:
    """SQLite's own average adds up in another order than the ledgers do."""

    def __init__(self):
        self.values = []
        self.step, self.finalize = self.values.append, lambda: statistics.fmean(self.values)


def ledgers(folder):
    database = sqlite3.connect(":memory:")
    database.create_function("percent", 1, lambda share: f"{100 * share:.1f}")
    database.create_function("whole", 1, lambda share: f"{100 * share:.0f}")
    database.create_aggregate("mean", 1, Mean)
    for path in folder.glob("*.csv"):
        header, *rows = csv.reader(path.read_text().splitlines())
        database.execute(f"CREATE TABLE {path.stem} ({', '.join(f'[{column}]' for column in header)})")
        database.executemany(f"INSERT INTO {path.stem} VALUES ({', '.join('?' * len(header))})", [list(map(number, row)) for row in rows])
    database.execute("CREATE TABLE campaign (card, part, rows_of, rows, mape, median, p90)")  # data/measurements/CARD/tables.md
    for path in folder.parent.glob("measurements/*/tables.md"):
        for part in path.read_text().split("\n## ")[1:]:
            head = [path.parent.name, part.splitlines()[0].split(":")[0]]
            rows = [head + [number(cell.strip(" %")) for cell in line.split("|")[1:-1]] for line in part.splitlines() if " % |" in line]
            database.executemany("INSERT INTO campaign VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return database


def hold(repository, quotes, source, write):
    """Compares each (page, text, figures) with the page, which `write` corrects; the exit code."""
    failures = 0
    for page, text, figures in quotes:
        path = repository / page
        content = path.read_text()
        pattern = re.sub(r"(\\?\s)+", r"\\s+", r"([-+]?[\d.]+)".join(re.escape(part) for part in text.split("{}")))  # a page may wrap the text elsewhere
        found = list(re.finditer(pattern, content))
        if len(found) != 1:
            print(f"{page}: found {len(found)} times: {text}")
            failures += 1
        elif list(found[0].groups()) != figures:
            print(f"{page}: {text}\n  quotes {', '.join(found[0].groups())}; {source} {', '.join(figures)}")
            failures += 1
            if write:
                for i, figure in reversed(list(enumerate(figures, 1))):
                    content = content[:found[0].start(i)] + figure + content[found[0].end(i):]
                path.write_text(content)
    return 1 if failures and not write else 0


def main():
    write, paths = "--write" in sys.argv[1:], [a for a in sys.argv[1:] if a != "--write"]
    repository = pathlib.Path(paths[0]) if paths else pathlib.Path(__file__).resolve().parents[2]
    quoted = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
    database = ledgers(repository / "data/ledger")
    for view in quoted["views"]:
        database.execute("CREATE VIEW " + view)
    quotes = ((page, text, [str(cell) for query in queries for row in database.execute("SELECT " + query) for cell in row])
              for page, text, *queries in quoted["figures"])
    return hold(repository, quotes, "the ledgers have", write)


if __name__ == "__main__":
    sys.exit(main())
