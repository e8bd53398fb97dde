"""Random faults of the kinds that a reviewer plants, over all product folders: rows for mutants.py.

    propose.py N [--seed S] [--only WORD]

A fault changes one place in a line of code: a comparison, a sign, a term, a bound, a constant, the case of a choice, a statement. The
file is drawn by its lines of code, then the kind, then the place. The row holds the smallest expression around the place that occurs
once in the file; a line break in it is written as ⏎. What does not compile, mutants.py leaves out.
"""
import argparse
import random
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "graphs", "predictors", "calibration/fit", "calibration/bench", "calibration/nas")
PYTHON = "src/python/ftax"  # a fault changes one line
LEFT_OUT = ("python/", "/cuda", "libtorch/", "embedded/", "crossvalidation")  # which ftax_tests and ftax do not hold, or data

# Kind, pattern, replacement, what the fault does. A kind is drawn before a place.
KINDS = [
    ("bound", r" <= ", " < ", "excludes the bound"), ("bound", r" >= ", " > ", "excludes the bound"),
    ("bound", r" < ", " <= ", "includes the bound"), ("bound", r" > ", " >= ", "includes the bound"),
    ("opposite", r" == ", " != ", "tests the opposite"), ("opposite", r" != ", " == ", "tests the opposite"),
    ("opposite", r" < ", " > ", "compares the other way"), ("opposite", r" > ", " < ", "compares the other way"),
    ("opposite", r"(?<=[ (])!(?=[\w(])", "", "tests the opposite"),
    ("logic", r" && ", " || ", "either suffices"), ("logic", r" \|\| ", " && ", "needs both"),
    ("term", r" && [^&|?:;,]+$", "", "drops the last condition"), ("term", r"^[^&|?:;,]+ && ", "", "drops the first condition"),
    ("term", r" \|\| [^&|?:;,]+$", "", "drops the last case"), ("term", r"^[^&|?:;,]+ \|\| ", "", "drops the first case"),
    ("term", r" [+-] [^-+?:;,&|<>=]+$", "", "drops the last term"), ("term", r"^[^-+?:;,&|<>=]+ \+ ", "", "drops the first term"),
    ("term", r" [*/] [^-+*/?:;,&|<>=]+$", "", "drops the last factor"), ("term", r"^[^-+*/?:;,&|<>=]+ \* ", "", "drops the first factor"),
    ("sign", r" \+ ", " - ", "subtracts"), ("sign", r" - ", " + ", "adds"),
    ("sign", r" \* ", " / ", "divides"), ("sign", r" / ", " * ", "multiplies"),
    ("order", r"\bmin\b", "max", "takes the larger"), ("order", r"\bmax\b", "min", "takes the smaller"),
    ("order", r"\bminimum\(", "maximum(", "takes the larger"), ("order", r"\bmaximum\(", "minimum(", "takes the smaller"),
    ("order", r"\bceil", "floor", "rounds down"), ("order", r"\bfloor", "ceil", "rounds up"),
    ("order", r"\.front\(\)", ".back()", "takes the last"), ("order", r"\.back\(\)", ".front()", "takes the first"),
    ("order", r"\bany_of\b", "all_of", "needs all"), ("order", r"\ball_of\b", "any_of", "needs any"),
    ("order", r"\blower_bound\b", "upper_bound", "finds the next"), ("order", r"\bupper_bound\b", "lower_bound", "finds the first"),
    ("order", r"\bstarts_with\b", "ends_with", "looks at the end"), ("order", r"\bends_with\b", "starts_with", "looks at the start"),
    ("order", r"\bmin_element\b", "max_element", "takes the largest"), ("order", r"\bmax_element\b", "min_element", "takes the smallest"),
    ("arguments", r"(?<=[(\s])([\w.]+), ([\w.]+)(?=[,)]|$)", r"\2, \1", "swaps two arguments"),
    ("constant", r"(?<![\w.\]])0(?![\w.])", "1", "1 for 0"), ("constant", r"(?<![\w.])1(?![\w.])", "2", "2 for 1"),
    ("constant", r"(?<![\w.])([2-9]|[1-9]\d+)(?![\w.])", lambda m: str(int(m[0]) + 1), "one more"),
    ("constant", r"(?<![\w.])([2-9]|[1-9]\d+)(?![\w.])", lambda m: str(int(m[0]) - 1), "one less"),
    ("constant", r"(?<![\w.])\d+(\.\d+)?(e-?\d+)?(?<=[.e-]\d)\d*(?![\w.])", lambda m: f"{float(m[0]) * 1.25:g}", "a quarter more"),
    ("constant", r"\btrue\b", "false", "says no"), ("constant", r"\bfalse\b", "true", "says yes"),
    ("index", r"\[0\]", "[1]", "takes the second"), ("index", r"\[1\]", "[0]", "takes the first"),
    ("index", r" \+ 1\b", "", "one fewer"), ("index", r" - 1\b", "", "one more"),
    ("choice", r"^([^?;{]+) \? ([^?:;{]+) : ([^?;{]+)$", r"\1 ? \3 : \2", "swaps the cases"),
    ("choice", r"^([^?;{]+) \? ([^?:;{]+) : ([^?;{]+)$", r"\2", "always the first case"),
    ("choice", r"^([^?;{]+) \? ([^?:;{]+) : ([^?;{]+)$", r"\3", "always the second case"),
]


PYTHON_KINDS = [
    ("opposite", r" == ", " != ", "tests the opposite"), ("opposite", r" != ", " == ", "tests the opposite"), ("opposite", r" is not None", " is None", "tests the opposite"),
    ("opposite", r" is None", " is not None", "tests the opposite"), ("opposite", r"\bnot (?!in\b)", "", "tests the opposite"), ("opposite", r" not in ", " in ", "tests the opposite"),
    ("logic", r" and ", " or ", "either suffices"), ("logic", r" or ", " and ", "needs both"), ("bound", r" < ", " <= ", "includes the bound"), ("bound", r" > ", " >= ", "includes the bound"),
    ("constant", r"\bTrue\b", "False", "says no"), ("constant", r"\bFalse\b", "True", "says yes"), ("constant", r"(?<![\w.])0(?![\w.])", "1", "1 for 0"), ("constant", r"(?<![\w.])1(?![\w.])", "2", "2 for 1"),
    ("sign", r" \+ ", " - ", "subtracts"), ("sign", r" - ", " + ", "adds"), ("sign", r" \* ", " / ", "divides"), ("sign", r" / ", " * ", "multiplies"),
    ("arguments", r"(?<=\()(\w+), (\w+)(?=[,)])", r"\2, \1", "swaps two arguments"), ("statement", r"^( +)[\w.\[\]]+(?: [+]?= |\().*[^,({\[]$", r"\1pass", "the statement is left out"),
]


def masked(text):
    """The text with comments and the contents of strings blanked out."""
    def blank(match):
        found = match[0]
        return re.sub(r"[^\n]", " ", found) if found[0] == "/" else found[0] + "\x01" * (len(found) - 2) + found[-1]
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', blank, text, flags=re.S)


OPEN, CLOSE = "([{", ")]}"


def enclosing(code, begin, end):
    """Ends of the smallest expression around a place, and the bracket before it; None where none is found."""
    depth, left = 0, begin
    while left > 0:
        c = code[left - 1]
        if c in CLOSE:
            if c == "}" and depth == 0 and code[left:left + 1] == "\n":
                break
            depth += 1
        elif c in OPEN:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (c in ",;" or re.search(r"(?:[^=!<>]= |\breturn )$", code[max(0, left - 8):left])):
            break
        left -= 1
    depth, right = 0, end
    while right < len(code):
        c = code[right]
        if c in OPEN:
            depth += 1
        elif c in CLOSE:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and c in ",;":
            break
        right += 1
    while left < begin and code[left].isspace():
        left += 1
    return left, right


def parent(code, left, right):
    """Where the bracket around an expression opens, and where it has closed; None without one."""
    depth = 0
    for at in range(left - 1, -1, -1):
        depth += (code[at] in CLOSE) - (code[at] in OPEN)
        if depth < 0:
            break
    else:
        return None
    for end in range(right, len(code)):
        depth += (code[end] in CLOSE) - (code[end] in OPEN)
        if depth == 0:
            return at, end + 1
    return None


def expression(text, code, begin, end):
    """The smallest unique expression around a place, as ends."""
    for _ in range(4):
        left, right = enclosing(code, begin, end)
        inner = code[left:right]
        is_statement = code[left - 1:left].isspace() and code[:left].rstrip()[-1:] in "{};:"  # no space follows the brace of a list
        is_declaration = re.match(r"(if|for|while|else|case|const|auto|using|template|delete)\b|[\w:]+(<[^()]*>)?[&*]* \w", inner)
        if right - left > 400 or is_statement or is_declaration:
            return None
        if text.count(text[left:right]) == 1 and "⏎" not in text and "\t" not in text[left:right]:
            return left, right
        around = parent(code, left, right)
        if around is None or code[around[0]] == "{":
            return None
        begin, end = around
    return None


def unreachable(code, begin):
    """Whether a place is a constant, a message or not in a body."""
    start = code.rfind("\n", 0, begin) + 1
    while start > 0 and not re.search(r"[;{}:]\s*$", code[:start - 1][-80:]):  # the statement's first line
        start = code.rfind("\n", 0, start - 1) + 1
    statement = code[start:begin]
    return (not code[start:start + 4].isspace() or re.search(r"\bconstexpr\b|static_assert|\bError\b|\bfail\w*\(|\bwarn\w*\(|\bcase\b|template <|#|\boperator", statement)
            or "// " in statement)


def faults(file):
    text = (ROOT / file).read_text()
    code = masked(text)
    for kind, pattern, replacement, effect in KINDS:
        anchored = "^" in pattern[:1] or pattern.endswith("$")
        if not anchored:
            for place in re.finditer(pattern, code):
                if unreachable(code, place.start()):
                    continue
                found = expression(text, code, place.start(), place.end())
                if not found:
                    continue
                left, right = found
                part = place.expand(replacement) if isinstance(replacement, str) else replacement(place)
                if "\x01" in part or part == place[0]:
                    continue
                new = text[left:place.start()] + part + text[place.end():right]
                yield kind, file, text[left:right], new, effect
        else:
            for place in re.finditer(r" && | \|\| | [+*/-] | \? ", code):
                if unreachable(code, place.start()):
                    continue
                found = expression(text, code, place.start(), place.end())
                if not found:
                    continue
                inner = text[found[0]:found[1]]
                if "{" in inner or '"' in inner:
                    continue
                new = re.sub(pattern, replacement, inner, count=1)
                if new != inner and all(new.count(a) == new.count(b) for a, b in ("()", "[]")):
                    yield kind, file, inner, new, effect
    for match in re.finditer(r"^ {4,}(?:else )?if (\()", code, re.M):  # conditions as a whole
        at, depth = match.start(1), 0
        for right in range(at, len(code)):
            depth += (code[right] == "(") - (code[right] == ")")
            if depth == 0:
                break
        condition = text[at:right + 1]
        if re.search(r"(?<![=!<>])=(?!=)", re.sub(r"\[[^\]]*\]", "", code[at:right + 1])) or "constexpr" in code[match.start():at] or text.count(condition) != 1 or len(condition) > 400:
            continue
        leaves = "return" if re.match(r"\)?\s*(return|continue|break)", code[right + 1:right + 40]) else "branch"
        after = code[right + 1:right + 60]
        if re.match(r"\s*\{?\s*(throw|fail|warn)", after):
            continue
        yield "condition", file, condition, "(false)", f"the {leaves} is never taken"
        yield "condition", file, condition, f"(!{condition})", f"the {leaves} is taken where it should not be"
    for match in re.finditer(r"^ {4,}((?!return|throw|using|case|co_|else|delete|const |auto |static )[\w.\->\[\]]+(?:\(| [-+*|&]?= )[^;{}\n]*;)$", code, re.M):
        statement = text[match.start(1):match.end(1)]
        if text.count(statement) == 1 and not re.search(r"\bError|\bfail|print|= delete|= default", statement) and re.search(r"[;{}]\s*$", code[:match.start()]):
            yield "statement", file, statement, ";", "the statement is left out"


def python_faults(file):
    text = (ROOT / file).read_text()
    code = re.sub(r'"""(?:.|\n)*?"""', lambda m: re.sub(r"[^\n]", "#", m[0]), text)
    code = re.sub(r"  #.*", lambda m: "#" * len(m[0]), code)
    for line, bare in zip(text.splitlines(), code.splitlines()):
        if not bare.startswith("    ") or bare.lstrip().startswith(("#", "raise", "import", "from", "def ", "class ", "@")) or text.count(line) != 1:
            continue
        for kind, pattern, replacement, effect in PYTHON_KINDS:
            for place in re.finditer(pattern, bare):
                yield kind, file, line, line[:place.start()] + place.expand(replacement) + line[place.end():], effect


def propose(count, seed, only=""):
    draw, chosen, taken = random.Random(seed), [], set()
    files = [str(p.relative_to(ROOT)) for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.[ch]pp"))]
    files = [f for f in files if not any(word in f for word in LEFT_OUT) and only in f]
    files += [f for p in sorted((ROOT / PYTHON).glob("*.py")) if only in (f := str(p.relative_to(ROOT)))]
    found = {}
    for file in files:
        kinds = {}
        for kind, *row in (python_faults if file.endswith(".py") else faults)(file):
            kinds.setdefault(kind, []).append(row)
        if kinds:
            found[file] = list(kinds.values())
    weights = [len((ROOT / file).read_text().splitlines()) for file in found]
    for _ in range(100 * count):
        if len(chosen) == count:
            break
        file = draw.choices(list(found), weights)[0]
        row = draw.choice(draw.choice(found[file]))
        place = next((old for f, old in taken if f == file and (old in row[1] or row[1] in old)), None)  # faults do not nest
        if place is None:
            taken.add((file, row[1]))
            chosen.append([cell.replace("\n", "⏎") for cell in row])
    return sorted(chosen)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    for proposed in propose(given.count, given.seed, given.only):
        print("\t".join(proposed))
