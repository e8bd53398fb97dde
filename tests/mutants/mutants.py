"""Faults planted beside a build: which of them do the tests notice?

    mutants.py BUILD [--pick N] [--seed S] [--only WORD] [--quick] [--table FILE]
    mutants.py propose N [--seed S]                   # rows for the table: N random faults of the usual kinds

A row of table.tsv has a file, a text that occurs in it once, the text that replaces it and what the fault does, between tabs. Texts
that end in ';' are statements, others expressions. The faults are planted in copies of the sources, whose objects are linked in the
place of those of BUILD: its programs with all faults in them then lie in BUILD/mutants. The environment variable FTAX_MUTANT switches
one fault on, by its line in the table. Tests of the fault's own folder run first, then the others under `unit`, then those under
`process`, until one fails or hangs. Fails where more than half live.
"""
import argparse
import json
import os
import random
import re
import resource
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).parent / "table.tsv"
FOLDERS = ("src", "graphs", "predictors", "calibration/fit", "calibration/bench", "calibration/nas")
OTHER_TARGETS = ("ftax_threads", "ftax_instructions", "ftax_allocation_failures", "ftax_folds", "ftax_torchscript", "ftax_libtorch", "ftax_fuzzer")
SWITCH = """#ifndef FTAX_MUTANT
#define FTAX_MUTANT
#include <cstdlib>
#include <type_traits>
inline int ftax_planted() { static const int planted = std::getenv("FTAX_MUTANT") ? std::atoi(std::getenv("FTAX_MUTANT")) : 0; return planted; }
constexpr bool ftax_mutant(int number) { return !std::is_constant_evaluated() && number == ftax_planted(); }
#endif
"""


def table(path=TABLE):
    """(number, file, old, new, fault) of each row; the number is the row's line."""
    lines = enumerate(path.read_text().splitlines(), 1)
    return [(number, *line.split("\t")) for number, line in lines if line and not line.startswith("#")]


def switched(number, old, new):
    if old.endswith(";"):
        return f"if (ftax_mutant({number})) {{ {new} }} else {{ {old} }}"
    depths = list(accumulate((c == "(") - (c == ")") for c in old))
    if old.startswith("(") and 0 not in depths[:-1]:  # the condition of an if
        old, new = f"bool{old}", f"bool{new}" if new.startswith("(") else f"bool({new})"
    return f"(ftax_mutant({number}) ? ({new}) : ({old}))"


def compiled(command, build, planted, directory):
    """Runs a compiler's command of the build for a planted copy of its source, where it is newer than its object; the object."""
    words = shlex.split(command)
    source = Path(words[words.index("-c") + 1])
    copy = planted / source.relative_to(ROOT)
    target = build / "mutants" / "objects" / words[words.index("-o") + 1]
    target.parent.mkdir(parents=True, exist_ok=True)
    words[words.index("-c") + 1] = str(copy if copy.exists() else source)
    words[words.index("-o") + 1] = str(target)
    first_option = next(i for i, word in enumerate(words) if word.startswith("-"))
    words.insert(first_option, f"-I{planted}")
    words = [word.replace(f'"{build}/ftax"', f'"{build}/mutants/ftax"') for word in words] + ["-O1", "-w"]
    command = target.with_suffix(".sh")
    if not (target.exists() and command.exists() and command.read_text() == shlex.join(words)):
        subprocess.run(words, cwd=directory, check=True)
        command.write_text(shlex.join(words))
    return target


def plant(build, rows, jobs):
    """Compiles the sources of the rows with their faults and links the programs; the rows whose text was found once."""
    texts, planted, found = {}, build / "mutants" / "sources", []
    for row in rows:
        number, file, old, new, _ = row
        text = texts.get(file) or ((ROOT / file).read_text() if (ROOT / file).exists() else "")
        if text.count(old) == 1:
            texts[file] = text.replace(old, switched(number, old, new))
            found.append(row)
        else:
            print(f"line {number}: not once in {file}, left out: {old}")
    objects = build / "mutants" / "objects"
    for copy in [p for p in planted.rglob("*") if p.is_file() and str(p.relative_to(planted)) not in texts]:
        copy.unlink()
    for file, text in texts.items():
        copy = planted / file
        if not copy.exists() or copy.read_text() != SWITCH + text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(SWITCH + text)
    commands = json.loads((build / "compile_commands.json").read_text())
    dependencies, headers = {}, {str(ROOT / file) for file in texts if file.endswith(".hpp")}
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for block in listed.split("\n\n"):
        name, *files = block.splitlines() or [""]
        dependencies[name.partition(":")[0]] = {str((build / file.strip()).resolve()) for file in files}

    def is_concerned(entry):
        source = Path(entry["file"])
        of_programs = re.search(r" -o (?:tests/)?CMakeFiles/(ftax_\w+)\.dir", entry["command"])
        if of_programs is None or of_programs.group(1) in OTHER_TARGETS:
            return False
        return (str(source.relative_to(ROOT)) in texts or headers & dependencies.get(Path(entry["output"]), dependencies.get(entry["output"], set()))
                or (source.is_relative_to(ROOT / "tests") and "FTAX_PROGRAM" in source.read_text()))

    for entry in commands:
        entry["output"] = shlex.split(entry["command"])[shlex.split(entry["command"]).index("-o") + 1]
    concerned = [e for e in commands if (ROOT in Path(e["file"]).parents) and is_concerned(e)]
    made = {}
    for entry in concerned:  # an object older than a file it includes is compiled again
        target = objects / entry["output"]
        below = [planted / Path(f).relative_to(ROOT) if Path(f).is_relative_to(ROOT) and (planted / Path(f).relative_to(ROOT)).exists() else Path(f)
                 for f in dependencies.get(entry["output"], set()) | {entry["file"]}]
        if target.exists() and any(f.exists() and f.stat().st_mtime > target.stat().st_mtime for f in below):
            target.unlink()
    with ThreadPoolExecutor(jobs) as pool:
        for entry, target in zip(concerned, pool.map(lambda e: compiled(e["command"], build, planted, e["directory"]), concerned)):
            made[entry["output"]] = target
    linked = subprocess.run(["ninja", "-C", build, "-t", "commands", "ftax_tests", "ftax_program"], capture_output=True, text=True, check=True).stdout
    for program in ("ftax", "ftax-fit", "tests/ftax_tests"):
        command = re.search(rf"^: && (.* -o {program} .*) && :$", linked, re.M)
        if command is None:
            continue
        words = command.group(1).split()
        alone = {word.partition(".dir/")[2] for word in words if ".dir/" in word}

        def replaced(word):
            """An object with faults for one without; for a library that holds such objects, its objects."""
            objects = [e["output"] for e in commands if e["output"].endswith(".o") and e["output"].startswith(f"CMakeFiles/{Path(word).stem.removeprefix('lib')}.dir/")]
            if word.endswith(".a") and any(o in made for o in objects):
                return [str(made.get(o, o)) for o in objects if o.partition(".dir/")[2] not in alone]
            return [str(made.get(word, word))]

        at = words.index("-o")
        libraries = {word for word in words if word.endswith(".a")}  # a line may list one twice
        rest = [word for i, word in enumerate(words) if i not in (at, at + 1) and not (word in libraries and word in words[:i])]
        words = [new for word in rest for new in replaced(word)] + ["-o", str(build / "mutants" / Path(program).name)]
        subprocess.run(words, cwd=build, check=True)
    for module in build.glob("*.so"):  # which the program loads from beside itself
        if not (link := build / "mutants" / module.name).exists():
            link.symlink_to(module.resolve())
    return found


def tests_of(build):
    """Commands of the tests, each with its folder and label, of the programs with the faults."""
    listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True, check=True)
    programs = {f"{build}/ftax": f"{build}/mutants/ftax", f"{build}/tests/ftax_tests": f"{build}/mutants/ftax_tests"}
    tests = []
    for test in json.loads(listed.stdout)["tests"]:
        label, _, folder = test["name"].partition(":")
        command = [programs.get(word, word) for word in test.get("command", [])]
        if label in ("unit", "process") and folder not in ("tests", "tests/calibration/bench/cuda"):  # tests reads the sources
            tests.append((folder.removeprefix("tests").lstrip("/"), label, command + ["--abort-after=1"]))
        elif test["name"] in ("options", "cases", "quoted_figures", "regression", "agents"):
            tests.append(("", "process", command))
    return tests


def shared_folders(folder, file):
    return len(os.path.commonprefix([folder.split("/"), file.removeprefix("src/").split("/")])) if folder else 0


def killer(mutant, tests, seconds, quick=False):
    """The test that notices a fault; None where it lives."""
    number, file = mutant[:2]
    if quick:
        tests = [t for t in tests if not t[0] or (t[1] == "unit" and shared_folders(t[0], file))]
    for test in sorted(tests, key=lambda t: (-shared_folders(t[0], file), t[1] != "unit", seconds.get(str(t[2]), 0))):
        environment = {**os.environ, "FTAX_MUTANT": str(number), "ASAN_OPTIONS": "allocator_may_return_null=1"}
        most = int(20 + 6 * seconds.get(str(test[2]), 100))  # of the processor: others may use this machine
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        ended = subprocess.run(test[2], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most))).returncode
        if number == 0:
            seconds[str(test[2])] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        if ended not in (0, 77):  # 77: skipped
            return f"{test[1]}:{test[0] or Path(test[2][-2]).name}"
    return None


def run(build, pick, seed, only, jobs, quick, path):
    rows = [row for row in table(path) if any(only in cell for cell in row[1:])]
    if pick:
        print(f"seed {seed}")
        rows = random.Random(seed).sample([row for row in rows if row[1].endswith(".cpp")], pick)
    mutants = plant(build, rows, jobs)
    tests, lived = tests_of(build), []
    recorded = build / "mutants" / "seconds.json"  # of the tests without a fault; deleted, they run again
    seconds = json.loads(recorded.read_text()) if recorded.exists() else {}
    if not seconds and not pick:
        if failing := killer((0, ""), tests, seconds):
            sys.exit(f"{failing} fails without a fault")
        recorded.write_text(json.dumps(seconds))
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, found in zip(mutants, pool.map(lambda m: killer(m, tests, seconds, quick), mutants)):
            number, file, old, new, fault = mutant
            print(f"{found or 'LIVES':40} {number:4} {file}: {fault}" + ("" if found else f"\n    {old}  ->  {new}"), flush=True)
            lived += [] if found else [mutant]
    print(f"{len(mutants) - len(lived)} of {len(mutants)} faults were noticed")
    return len(lived) <= len(mutants) / 2


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
    parser.add_argument("build", help="or propose N")
    parser.add_argument("count", type=int, nargs="?", default=0)
    parser.add_argument("--pick", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true", help="only tests of the fault's folders, and those of whole reports")
    parser.add_argument("--table", type=Path, default=TABLE, help="other faults, as a reviewer writes them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.build == "propose":
        propose(given.count, given.seed)
    else:
        sys.exit(not run(Path(given.build).resolve(), given.pick, given.seed, given.only, given.jobs, given.quick, given.table))
