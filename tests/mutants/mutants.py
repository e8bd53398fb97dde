"""Faults planted in a copy of the sources, all in one build: which of them do the tests notice?

    mutants.py apply COPY                             # copies the tree and plants the faults of table.tsv in the copy
    mutants.py run BUILD [--pick N] [--seed S] [--only WORD] [--quick]
    mutants.py propose N [--seed S]                   # rows for the table: N random faults of the usual kinds

A row of the table has a file, a text that occurs in it once, the text that replaces it and what the fault does, between tabs. Texts
that end in ';' are statements, others expressions. The environment variable FTAX_MUTANT switches one fault on, by its line in the table.
Tests of the fault's own folder run first, then the others under `unit`, then those under `process`, until one fails or hangs.
"""
import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).parent / "table.tsv"
FOLDERS = ("src", "graphs", "predictors", "calibration/fit", "calibration/bench", "calibration/nas")
SWITCH = """#ifndef FTAX_MUTANT
#define FTAX_MUTANT
#include <cstdlib>
#include <type_traits>
inline int ftax_planted() { static const int planted = std::getenv("FTAX_MUTANT") ? std::atoi(std::getenv("FTAX_MUTANT")) : 0; return planted; }
constexpr bool ftax_mutant(int number) { return !std::is_constant_evaluated() && number == ftax_planted(); }
#endif
"""


def table():
    """(number, file, old, new, fault) of each row; the number is the row's line."""
    lines = enumerate(TABLE.read_text().splitlines(), 1)
    return [(number, *line.split("\t")) for number, line in lines if line and not line.startswith("#")]


def switched(number, old, new):
    if old.endswith(";"):
        return f"if (ftax_mutant({number})) {{ {new} }} else {{ {old} }}"
    depths = list(accumulate((c == "(") - (c == ")") for c in old))
    if old.startswith("(") and 0 not in depths[:-1]:  # the condition of an if
        old, new = f"bool{old}", f"bool{new}" if new.startswith("(") else f"bool({new})"
    return f"(ftax_mutant({number}) ? ({new}) : ({old}))"


def apply(copy):
    texts = {}
    for number, file, old, new, _ in table():
        text = texts.get(file) or ((ROOT / file).read_text() if (ROOT / file).exists() else "")
        if text.count(old) == 1:
            texts[file] = text.replace(old, switched(number, old, new))
        else:
            print(f"table.tsv:{number}: not once in {file}, left out: {old}")
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for file in listed.stdout.decode().strip("\0").split("\0"):
        source, target = ROOT / file, copy / file
        content = (SWITCH + texts[file]).encode() if file in texts else source.read_bytes()
        if not target.exists() or target.read_bytes() != content:  # so that only what changed is compiled anew
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(source.stat().st_mode)


def tests_of(build):
    """Commands of the tests, each with its folder and label."""
    listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True, check=True)
    tests = []
    for test in json.loads(listed.stdout)["tests"]:
        label, _, folder = test["name"].partition(":")
        if label in ("unit", "process") and folder not in ("tests", "tests/calibration/bench/cuda"):  # tests reads the sources
            tests.append((folder.removeprefix("tests").lstrip("/"), label, test["command"] + ["--abort-after=1"]))
        elif test["name"] in ("options", "cases", "quoted_figures", "regression"):
            tests.append(("", "process", test["command"]))
    return tests


def shared_folders(folder, file):
    return len(os.path.commonprefix([folder.split("/"), file.split("/")])) if folder else 0


def killer(mutant, tests, seconds, quick=False):
    """The test that notices a fault; None where it lives."""
    number, file = mutant[:2]
    if quick:
        tests = [t for t in tests if not t[0] or (t[1] == "unit" and shared_folders(t[0], file))]
    for test in sorted(tests, key=lambda t: (t[1] != "unit", -shared_folders(t[0], file), seconds.get(str(t[2]), 0))):
        environment = {**os.environ, "FTAX_MUTANT": str(number), "ASAN_OPTIONS": "allocator_may_return_null=1"}
        most = int(20 + 6 * seconds.get(str(test[2]), 100))  # of the processor: others may use this machine
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        ended = subprocess.run(test[2], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most))).returncode
        if number == 0:
            seconds[str(test[2])] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        if ended != 0:
            return f"{test[1]}:{test[0] or Path(test[2][-2]).name}"
    return None


def run(build, pick, seed, only, jobs, quick):
    tests, lived = tests_of(build), []
    recorded = build / "seconds.json"  # of the tests without a fault; deleted, they run again
    seconds = json.loads(recorded.read_text()) if recorded.exists() else {}
    if not seconds:
        if failing := killer((0, ""), tests, seconds):
            sys.exit(f"{failing} fails without a fault")
        recorded.write_text(json.dumps(seconds))
    planted = [row for row in table() if f"ftax_mutant({row[0]})" in (ROOT / row[1]).read_text()]
    mutants = [row for row in planted if only in "\t".join(row[1:])]
    if pick:
        print(f"seed {seed}")
        mutants = random.Random(seed).sample(mutants, min(pick, len(mutants)))
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, found in zip(mutants, pool.map(lambda m: killer(m, tests, seconds, quick), mutants)):
            number, file, old, new, fault = mutant
            print(f"{found or 'LIVES':40} {number:4} {file}: {fault}" + ("" if found else f"\n    {old}  ->  {new}"), flush=True)
            lived += [] if found else [mutant]
    print(f"{len(mutants) - len(lived)} of {len(mutants)} faults were noticed")


KINDS = [(r" <= ", " < ", "excludes the bound"), (r" >= ", " > ", "excludes the bound"), (r" < ", " <= ", "includes the bound"),
         (r" > ", " >= ", "includes the bound"), (r" == ", " != ", "tests the opposite"), (r" && ", " || ", "either suffices"),
         (r" \|\| ", " && ", "needs both"), (r" \+ ", " - ", "subtracts"), (r" - ", " + ", "adds"), (r" \* ", " / ", "divides"),
         (r"std::min", "std::max", "takes the larger"), (r"std::max", "std::min", "takes the smaller"),
         (r"!(?=[a-z(])", "", "tests the opposite"), (r"\btrue\b", "false", "says no"), (r"\bfalse\b", "true", "says yes"),
         (r" \+ [^+;()]+(?=;)", "", "drops the last term"), (r" \* [^*;()+]+(?=;)", "", "drops the last factor"),
         (r" \+ 1\b", "", "one fewer"), (r" - 1\b", "", "one more"), (r" \? (.+) : (.+)(?=;)", r" ? \2 : \1", "swaps the cases")]


def candidates(file):
    text = (ROOT / file).read_text()
    for line in re.findall(r"^ +((?:return .+|[\w.\->\[\]]+ [-+*]?= .+);|if \(.+\) .*;|if \(.+\) \{)$", text, re.M):
        if text.count(line) != 1 or "\t" in line or "[&]" in line or "format(" in line or "Error(" in line or '"' in line:
            continue
        old = re.match(r"if (\(.+\))(?: \{| return.*| continue;| break;)$", line)
        old = old.group(1) if old and old.group(1).count("(") == old.group(1).count(")") else line
        if line.startswith("if") and (old == line or " = " in old or text.count(old) != 1):
            continue
        for pattern, replacement, fault in KINDS:
            new = re.sub(pattern, replacement, old, count=1)
            balanced = all(new.count(a) == new.count(b) for a, b in ("()", "{}", "[]"))
            if new != old and balanced and not re.search(r"[{;].*\S", old.rstrip(";")) and ("&&" not in old or "auto" not in old):
                yield file, old, new, fault


def propose(count, seed):
    files = [str(p.relative_to(ROOT)) for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.[ch]pp"))]
    chosen, draw = [], random.Random(seed)
    taken = {row[2] for row in table()} if TABLE.exists() else set()
    found = [list(candidates(file)) for file in files if "python/" not in file and "/cuda" not in file and "libtorch" not in file]
    found = [rows for rows in found if rows]
    while len(chosen) < count:
        row = draw.choice(draw.choice(found))
        if row[1] not in taken:
            taken.add(row[1])
            chosen.append(row)
    for row in sorted(chosen):
        print("\t".join(row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("apply", "run", "propose"))
    parser.add_argument("what")
    parser.add_argument("--pick", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true", help="only tests of the fault's folders, and those of whole reports")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.action == "apply":
        apply(Path(given.what))
    elif given.action == "run":
        run(Path(given.what), given.pick, given.seed, given.only, given.jobs, given.quick)
    else:
        propose(int(given.what), given.seed)
