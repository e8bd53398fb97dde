"""Files of a campaign that are only appended to: what a killed process had completed stays and is not repeated."""

import csv
import gzip
import io
import os
import zlib

DISTURBED = "another process uses the GPU"
NO_LIBRARY = "no LibTorch library"
SLOWED = "the GPU slows itself down"
PASSING = (DISTURBED, NO_LIBRARY, SLOWED)  # problems that the next call may not have


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
                    raise RuntimeError(f"{path}: other columns than this campaign writes")
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

    def has(self, **row):
        return self._key(row) in self.done

    def has_failed(self, **row):
        return self._key(row) in self.failed

    def _open(self):
        new = not os.path.exists(self.path) or os.path.getsize(self.path) == 0
        self.file = open(self.path, "a", newline="")
        self.writer = csv.DictWriter(self.file, self.columns, lineterminator="\n")
        if new:
            self.writer.writeheader()

    def add(self, **row):
        if not self.file:
            self._open()
        row = {name: row.get(name, "") for name in self.columns}
        self.writer.writerow(row)
        self.file.flush()
        self._remember(row)


class KernelRows:
    """The kernels of traced calls, one by one, as gzipped CSV: each case is one member of the file, there or not at all.
    Beyond `most_bytes` nothing more is written."""

    def __init__(self, path, columns, key, most_bytes=10 << 20):
        self.path, self.columns, self.key, self.most_bytes = path, columns, key, most_bytes
        self.done, self.new = set(), True
        if not os.path.exists(path):
            return
        with open(path, "rb+") as file:
            text, complete = self._members(file.read())
            file.truncate(complete)
        self.new = complete == 0
        reader = csv.DictReader(io.StringIO(text))
        if reader.fieldnames and reader.fieldnames != columns:
            raise RuntimeError(f"{path}: other columns than this campaign writes")
        self.done = {self._key(row) for row in reader}

    @staticmethod
    def _members(data):
        """Text of the complete members, and where they end."""
        texts, at = [], 0
        while at < len(data):
            member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                text = member.decompress(data[at:])
            except zlib.error:
                break
            if not member.eof:
                break
            texts.append(text)
            at = len(data) - len(member.unused_data)
        return b"".join(texts).decode(), at

    def _key(self, row):
        return tuple(str(row[name]) for name in self.key)

    def has(self, **row):
        return self._key(row) in self.done

    def full(self):
        return os.path.exists(self.path) and os.path.getsize(self.path) > self.most_bytes

    def add_case(self, rows):
        """Rows of one case, at least one."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        if self.new:
            writer.writeheader()
        writer.writerows({name: row.get(name, "") for name in self.columns} for row in rows)
        with open(self.path, "ab") as file:
            file.write(gzip.compress(text.getvalue().encode(), mtime=0))
        self.new = False
        self.done.add(self._key(rows[0]))
