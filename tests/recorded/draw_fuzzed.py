"""Writes the inputs of fuzzed.tsv: for each target of fuzzing few small ones that reach what its corpus reaches.

    draw_fuzzed.py FUZZER CORPUS    # after `make fuzz`: build/sanitized/ftax_fuzzer build/sanitized/corpus

`make golden` then records what the readers make of them.
"""
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
LEFT_OUT = {"zip"}  # whose container tests/hostile holds, and what lies in it pt2_json
MOST_BYTES = 2048


def merged(fuzzer, corpus, folder):
    """The inputs that libFuzzer keeps of a corpus, those of fewest bytes first."""
    subprocess.run([fuzzer, "-merge=1", f"-max_len={MOST_BYTES}", folder, corpus], check=True, stderr=subprocess.DEVNULL,
                   env={**os.environ, "FTAX_FUZZ_TARGET": corpus.name, "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0"})
    return sorted((path.read_bytes() for path in Path(folder).iterdir()), key=lambda content: (len(content), content))


if __name__ == "__main__":
    rows = []
    with zipfile.ZipFile(HERE / "files/fuzzed.zip", "w") as archive:
        for corpus in sorted(Path(sys.argv[2]).iterdir()):
            if corpus.name in LEFT_OUT:
                continue
            with tempfile.TemporaryDirectory() as folder:
                contents = [content for content in merged(sys.argv[1], corpus, folder) if 0 < len(content) <= MOST_BYTES]
            archive.writestr(zipfile.ZipInfo(corpus.name), b"".join(contents), zipfile.ZIP_DEFLATED, 9)
            at = 0
            for content in contents:
                rows.append(f"{corpus.name}\t{at}\t{len(content)}\n")
                at += len(content)
    (HERE / "fuzzed.tsv").write_text("target\tfrom\tbytes\tread\n" + "".join(rows))
