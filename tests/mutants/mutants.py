"""Faults planted beside a build: which of them do the tests notice?

    mutants.py BUILD [--pick N] [--seed S] [--only WORD] [--without WORD] [--quick] [--own-layer] [--table FILE]

propose.py draws random faults. A row of table.tsv has a file, a text that occurs in it once, the text that replaces it and what the fault does, between tabs. Texts
that end in ';' are statements, others expressions. The faults are planted in copies of the sources, whose objects are linked in the
place of those of BUILD: its programs with all faults in them then lie in BUILD/mutants. Faults that do not compile are left out. The
environment variable FTAX_MUTANT switches one fault on, by its line in the table. A first run of each test records which faults it
reaches (FTAX_REACHED); only the tests that reach a fault run with it, those of its own folder first, those under `unit` before those
under `process`, until one fails or hangs. Fails where more than half live.
"""
import argparse
import json
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).parent / "table.tsv"
OTHER_TARGETS = ("ftax_threads", "ftax_instructions", "ftax_allocation_failures", "ftax_folds", "ftax_pack", "ftax_torchscript", "ftax_libtorch", "ftax_fuzzer")
SWITCH = """#ifndef FTAX_MUTANT
#define FTAX_MUTANT
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
inline std::atomic<bool> ftax_seen[100000];
inline int ftax_planted() { static const int planted = std::getenv("FTAX_MUTANT") ? std::atoi(std::getenv("FTAX_MUTANT")) : 0; return planted; }
inline bool ftax_reached(int number) {
    static const char* const path = std::getenv("FTAX_REACHED");
    if (path && !ftax_seen[number].exchange(true)) {
        char line[16];
        const int file = ::open(path, O_WRONLY | O_APPEND), length = std::snprintf(line, sizeof line, "%d\\n", number);
        if (file >= 0 && ::write(file, line, static_cast<std::size_t>(length)) > 0) ::close(file);
    }
    return number == ftax_planted();
}
constexpr bool ftax_mutant(int number) { return !std::is_constant_evaluated() && ftax_reached(number); }
template <class Old, class New>  // a number of the type of what it replaces, which would else change its type
constexpr decltype(auto) ftax_like(New&& value) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<Old>> && !std::is_same_v<std::remove_cvref_t<Old>, std::remove_cvref_t<New>>)
        return static_cast<std::remove_cvref_t<Old>>(value);
    else
        return std::forward<New>(value);
}
#endif
"""


def table(path=TABLE):
    """(number, file, old, new, fault) of each row; the number is the row's line."""
    lines = enumerate(path.read_text().splitlines(), 1)
    return [(number, *line.replace("⏎", "\n").split("\t")) for number, line in lines if line and not line.startswith("#")]


def switched(number, old, new):
    if old.endswith(";"):
        return f"if (ftax_mutant({number})) {{ {new} }} else {{ {old} }}"
    depths = list(accumulate((c == "(") - (c == ")") for c in old))
    if old.startswith("(") and 0 not in depths[:-1]:  # the condition of an if
        old, new = f"bool{old}", f"bool{new}" if new.startswith("(") else f"bool({new})"
    if "[&" in old or "[=" in old or "[this" in old or "{" in old:
        return f"(ftax_mutant({number}) ? ({new}) : ({old}))"
    return f"(ftax_mutant({number}) ? ftax_like<decltype({old})>({new}) : ({old}))"


def compiled(command, build, planted, directory):
    """Runs a compiler's command of the build for a planted copy of its source, where it is newer than its object; the object, and errors."""
    words = shlex.split(command)
    source = Path(words[words.index("-c") + 1])
    copy = planted / source.relative_to(ROOT)
    target = build / "mutants" / "objects" / words[words.index("-o") + 1]
    target.parent.mkdir(parents=True, exist_ok=True)
    words[words.index("-c") + 1] = str(copy if copy.exists() else source)
    words[words.index("-o") + 1] = str(target)
    first_option = next(i for i, word in enumerate(words) if word.startswith("-"))
    words[first_option:first_option] = [f"-I{planted}", f"-I{planted}/include"]
    words = [word.replace(f'"{build}/ftax"', f'"{build}/mutants/ftax"') for word in words] + ["-O1", "-w"]
    command = target.with_suffix(".sh")
    if not (target.exists() and command.exists() and command.read_text() == shlex.join(words)):
        ended = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
        if ended.returncode:
            return target, ended.stderr
        command.write_text(shlex.join(words))
    return target, ""


def refused(errors, planted):
    """Numbers of the faults at the places of a compiler's errors."""
    numbers = set()
    for path, line in set(re.findall(rf"^({re.escape(str(planted))}/\S+?):(\d+):", errors, re.M)):
        lines = Path(path).read_text().splitlines()[:int(line)]
        for near in range(1, 9):  # a fault may begin some lines above
            if found := re.findall(r"ftax_mutant\((\d+)\)", " ".join(lines[-near:])):
                numbers |= {int(n) for n in found}
                break
    return numbers


def parts_of(source):
    """The sources that a source of a unity build includes; of any other, itself."""
    return [Path(part) for part in re.findall(r'^#include "(/.*)"', source.read_text(), re.M)] if "/Unity/" in str(source) else [source]


def write_sources(planted, rows, sources):
    """Writes the sources with the faults of the rows, those of unity builds included; the rows whose text was found once, and the files."""
    texts, found = {}, []
    for row in rows:
        number, file, old, new, _ = row
        text = texts.get(file) or ((ROOT / file).read_text() if (ROOT / file).exists() else "")
        if text.count(old) == 1:
            texts[file] = text.replace(old, switched(number, old, new))
            found.append(row)
        else:
            print(f"line {number}: not once in {file}, left out: {old}")
    written = {file: SWITCH + text for file, text in texts.items()}
    for source in sources:
        parts = {str(part.relative_to(ROOT)) for part in parts_of(source)} & set(texts) if "/Unity/" in str(source) else set()
        if parts:
            text = source.read_text()
            for part in parts:
                text = text.replace(f'"{ROOT / part}"', f'"{planted / part}"')
            written[str(source.relative_to(ROOT))] = text
    for copy in [p for p in planted.rglob("*") if p.is_file() and str(p.relative_to(planted)) not in written]:
        copy.unlink()
    for file, text in written.items():
        copy = planted / file
        if not copy.exists() or copy.read_text() != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
    return found, texts


def plant(build, rows, jobs, own_layer=False):
    """Compiles the sources of the rows with their faults and links the programs; the rows that were found and compile."""
    planted, objects = build / "mutants" / "sources", build / "mutants" / "objects"
    commands = json.loads((build / "compile_commands.json").read_text())
    sources = [Path(entry["file"]) for entry in commands if Path(entry["file"]).is_relative_to(ROOT)]
    found, texts = write_sources(planted, rows, sources)
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
        parts = parts_of(source)
        if any(part.is_relative_to(ROOT) and str(part.relative_to(ROOT)) in texts for part in parts):
            return True
        included = headers & dependencies.get(Path(entry["output"]), dependencies.get(entry["output"], set()))
        if own_layer:
            layers = {part.relative_to(ROOT).parts[0] for part in parts if part.is_relative_to(ROOT)}
            included = {h for h in included if Path(h).relative_to(ROOT).parts[0] in layers}
        if not parts[0].is_relative_to(ROOT / "tests"):
            return bool(included)
        text = "".join(part.read_text() for part in parts)  # of a header that a test does not name, the product's objects, linked first, hold the functions
        return "FTAX_PROGRAM" in text or any(f'"{Path(header).relative_to(ROOT)}"' in text or Path(header).name in text for header in included)

    for entry in commands:
        entry["output"] = shlex.split(entry["command"])[shlex.split(entry["command"]).index("-o") + 1]
    concerned = [e for e in commands if (ROOT in Path(e["file"]).parents) and is_concerned(e)]
    made = {}

    def remove_outdated():  # an object older than a file it includes is compiled again
        for entry in concerned:
            target = objects / entry["output"]
            below = [planted / Path(f).relative_to(ROOT) if Path(f).is_relative_to(ROOT) and (planted / Path(f).relative_to(ROOT)).exists() else Path(f)
                     for f in dependencies.get(entry["output"], set()) | {entry["file"]}]
            if target.exists() and any(f.exists() and f.stat().st_mtime > target.stat().st_mtime for f in below):
                target.unlink()

    # Sources with faults first and one source for each header, so that a fault that does not compile ends few compilations.
    first = [e for e in concerned if any(str(part.relative_to(ROOT)) in texts for part in parts_of(Path(e["file"])))]
    for header in headers:
        first += [e for e in concerned if header in dependencies.get(e["output"], set())][:1]
    for entries in [first] * 6 + [concerned] * 4:
        remove_outdated()
        with ThreadPoolExecutor(jobs) as pool:
            results = list(pool.map(lambda e: compiled(e["command"], build, planted, e["directory"]), entries))
        made = {e["output"]: target for e, (target, _) in zip(entries, results)}
        errors = "\n".join(text for _, text in results)
        wrong = refused(errors, planted)
        if errors.strip() and not wrong:
            sys.exit(errors)
        if wrong:
            print(f"{len(wrong)} faults do not compile: {sorted(wrong)}", flush=True)
            found, texts = write_sources(planted, [row for row in found if row[0] not in wrong], sources)
        elif entries is concerned:
            break
    linked = subprocess.run(["ninja", "-C", build, "-t", "commands", "ftax_tests", "ftax_program"], capture_output=True, text=True, check=True).stdout
    for program in ("ftax", "ftax-fit", "tests/ftax_tests"):
        command = re.search(rf"^: && (.* -o {program} .*) && :$", linked, re.M)
        if command is None:
            continue
        words = command.group(1).split()
        alone = {word.partition(".dir/")[2] for word in words if ".dir/" in word and "/Unity/" not in word}

        def replaced(word):
            """An object with faults for one without; for a library that holds such objects, its objects."""
            objects = [e["output"] for e in commands if e["output"].endswith(".o") and e["output"].startswith(f"CMakeFiles/{Path(word).stem.removeprefix('lib')}.dir/")]
            if word.endswith(".a") and any(o in made for o in objects):
                return [str(made.get(o, o)) for o in objects if o.partition(".dir/")[2] not in alone]
            return [str(made.get(word, word))]

        at = words.index("-o")
        libraries = {word for word in words if word.endswith(".a")}  # a line may list one twice
        rest = [word for i, word in enumerate(words) if i not in (at, at + 1) and not (word in libraries and word in words[:i])]
        words = [new for word in rest for new in replaced(word)]
        words = words[:1] + sorted(words[1:], key=lambda word: not word.startswith(f"{objects}/CMakeFiles/")) + ["-o", str(build / "mutants" / Path(program).name)]
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


def ended(command, seconds, **environment):
    """A test's exit status, and the processor's time that it took; it may take twenty seconds and six times what it usually takes."""
    most = int(20 + 6 * seconds)  # of the processor: others may use this machine
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1", **environment}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime


def reach_of(build, tests, jobs):
    """What each test takes and which faults it evaluates, all of them off. Tests that fail so are left out."""
    def run_without(number, test):
        path = build / "mutants" / f"reached.{number}"
        path.write_text("")
        code, seconds = ended(test[2], 100, FTAX_MUTANT="0", FTAX_REACHED=str(path))
        reached = {int(n) for n in path.read_text().split()}
        path.unlink()
        if code not in (0, 77):  # 77: skipped; one test watches which files are opened
            code, seconds = ended(test[2], 100, FTAX_MUTANT="0")
            if code not in (0, 77):
                print(f"fails without a fault, left out: {test[1]}:{test[0]} {Path(test[2][-2]).name}", flush=True)
                return None
        return (*test, seconds, reached)

    with ThreadPoolExecutor(jobs) as pool:
        return [t for t in pool.map(run_without, range(len(tests)), tests) if t]


def killer(mutant, tests, quick=False):
    """The test that notices a fault; None where it lives."""
    number, file = mutant[:2]
    tests = [t for t in tests if number in t[4] and not (quick and t[0] and not ("recorded" in t[0] or (t[1] == "unit" and shared_folders(t[0], file))))]
    for folder, label, command, seconds, _ in sorted(tests, key=lambda t: (-shared_folders(t[0], file), t[1] != "unit", t[3])):
        code, _ = ended(command, seconds, FTAX_MUTANT=str(number))
        if code not in (0, 77):
            return f"{label}:{folder or Path(command[-2]).name}"
    return None


def python_of(build):
    """The Python of the build that has the package; empty where none is configured or it has none."""
    python = re.search(r"^FTAX_PYTHON:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
    if python and subprocess.run([python.group(1), "-c", "import ftax"], capture_output=True, check=False).returncode == 0:
        return python.group(1)
    return ""


def python_killer(build, python, mutant):
    """Whether tests/python notice a fault of the package, which is in a copy of the installed one."""
    _, file, old, new, _ = mutant
    installed = subprocess.run([python, "-c", "import ftax; print(ftax.__path__[0])"], capture_output=True, text=True, check=True).stdout.strip()
    copy = build / "mutants/python/ftax"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(installed, copy)
    text = (ROOT / file).read_text()
    if text.count(old) != 1:
        sys.exit(f"not once in {file}: {old}")
    (copy / Path(file).name).write_text(text.replace(old, new))
    tests = subprocess.run([python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", ROOT / "tests/python"], cwd=build, check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{build}:{os.environ['PATH']}"})
    return tests.returncode != 0


def run(build, given):
    rows = [row for row in table(given.table) if any(given.only in cell for cell in row[1:])]
    if given.pick:
        print(f"seed {given.seed}")
        rows = random.Random(given.seed).sample([row for row in rows if row[1].endswith(".cpp")], given.pick)
    in_python = [row for row in rows if row[1].endswith(".py")]
    python = python_of(build) if in_python else ""
    if in_python and not python:
        print(f"{len(in_python)} faults of the Python package are left out: configure with -DFTAX_BUILD_PYTHON=ON -DFTAX_PYTHON=PYTHON and install "
              "it there (ctest -R python_install)")
        rows, in_python = [row for row in rows if row not in in_python], []
    mutants = plant(build, [row for row in rows if row not in in_python], given.jobs, given.own_layer)
    tests, lived = [t for t in tests_of(build) if not given.without or given.without not in t[0]], []
    tests = reach_of(build, tests, given.jobs)
    unreached = [m for m in mutants if not any(m[0] in t[4] for t in tests)]
    print(f"{len(unreached)} of {len(mutants)} faults are reached by no test", flush=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, found in zip(mutants, pool.map(lambda m: killer(m, tests, given.quick), mutants)):
            number, file, old, new, fault = mutant
            lives = "NOT REACHED" if mutant in unreached else "LIVES"
            print(f"{found or lives:40} {number:4} {file}: {fault}" + ("" if found else f"\n    {old}  ->  {new}"), flush=True)
            lived += [] if found else [mutant]
    for mutant in in_python:
        found = python_killer(build, python, mutant)
        print(f"{'python' if found else 'LIVES':40} {mutant[0]:4} {mutant[1]}: {mutant[4]}" + ("" if found else f"\n    {mutant[2]}  ->  {mutant[3]}"), flush=True)
        lived += [] if found else [mutant]
    mutants += in_python
    print(f"{len(mutants) - len(lived)} of {len(mutants)} faults were noticed")
    for folder in ("graphs/", "predictors/", "calibration/", "src/report/", "src/scenario/", "src/cli/"):
        here = [m for m in mutants if m[1].startswith(folder)]
        print(f"    {folder:16} {len([m for m in here if m not in lived])} of {len(here)}")
    return len(lived) <= len(mutants) / 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--pick", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="")
    parser.add_argument("--without", default="", help="leave out tests of the folders with this word")
    parser.add_argument("--quick", action="store_true", help="only tests of the fault's folders, of recorded tables, and of whole reports")
    parser.add_argument("--own-layer", action="store_true", help="faults of a header only in the sources of its own layer: few are compiled")
    parser.add_argument("--table", type=Path, default=TABLE, help="other faults, as a reviewer writes them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    sys.exit(not run(arguments.build.resolve(), arguments))
