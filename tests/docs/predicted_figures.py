#!/usr/bin/env python3
"""Holds the figures of docs/ that ftax predicts, in tables beside measured ones, to what the program predicts.

    predicted_figures.py FTAX [--write]

predicted_figures.json has, by page, commands by name and texts with {} where figures stand. Each figure is the name of a command, the
words that replace its {}, and a path in its --json, with :ms for milliseconds, :n for a number without zeros at its end; 3 significant
digits. --write writes the pages with the figures
(quoted_figures.py does the same for the ledgers).
"""

import functools
import json
import pathlib
import shlex
import subprocess
import sys

from quoted_figures import hold


@functools.cache
def predicted(ftax, command):
    ran = subprocess.run([ftax, *shlex.split(command), "--json"], capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{command}: {ran.stderr}")
    return json.loads(ran.stdout)


def cell(document, source):
    path, _, unit = source.partition(":")
    for key in path.split("/"):
        if isinstance(document, list) and not key.isdigit():  # rows come in the order of their latency
            document = next(row for row in document if key in (row.get("framework"), row.get("device")))
        else:
            document = document[int(key) if key.isdigit() else key]
    value = document * 1e3 if unit == "ms" else document
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if unit == "n" else f"{value:#.3g}"


def main():
    ftax, write = sys.argv[1], "--write" in sys.argv[2:]
    pages = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())

    def figure(commands, source):
        name, *words, path = source.split()
        return cell(predicted(ftax, commands[name].format(*words)), path)

    quotes = ((page, text, [figure(entry["commands"], source) for source in sources])
              for page, entry in pages.items() for text, *sources in entry["figures"])
    return hold(pathlib.Path(__file__).resolve().parents[2], quotes, "ftax predicts", write)


if __name__ == "__main__":
    sys.exit(main())
