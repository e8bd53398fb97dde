"""Files that are only appended to: what a killed process had completed stays and is not repeated."""

import csv
import fcntl
import io
import os

DISTURBED = "another process uses the GPU"
SLOWED = "the GPU slows itself down"
PASSING = (DISTURBED, SLOWED)  # problems that the next call may not have
# What a row says of a network that was run from ftax's own graph: it makes no module calls (src/scenario/machine_rows.cpp).
GRAPH_SOURCE = "ftax graph"


class Unsupported(Exception):
    """What this framework, device or interpreter of graphs cannot run."""


class Rows:
    """A CSV file; a torn last line of a killed run is cut off, complete rows are not repeated."""

    def __init__(self, path, columns, key):
        self.columns, self.key, self.done, self.failed = columns, key, set(), set()
        if os.path.exists(path):
            with open(path, "rb+") as file:
                text = file.read()
                file.truncate(text.rfind(b"\n") + 1)
            with open(path, newline="") as file:
                reader = csv.DictReader(file)
                if reader.fieldnames and reader.fieldnames != columns:
                    raise RuntimeError(f"{path}: unexpected columns; choose another folder (--output)")
                for row in reader:
                    self._remember(row)
        self.path, self.file = path, None

    def _key(self, row):
        return tuple(str(row[name]) for name in self.key)

    def _remember(self, row):
        if any(problem in row["problem"] for problem in PASSING):
            return
        self.done.add(self._key(row))
        if row["problem"]:
            self.failed.add(self._key(row))

    def add(self, **row):
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        if not self.file:
            self.file = open(self.path, "a", newline="")
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError(f"{self.path}: another process is writing to it") from None
        if self.file.tell() == 0:
            writer.writeheader()
        row = {name: row.get(name, "") for name in self.columns}
        writer.writerow(row)
        self._remember(row)
        self.file.write(text.getvalue())
        self.file.flush()
