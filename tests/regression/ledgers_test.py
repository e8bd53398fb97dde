"""The pages of data/ledger hold the figures of the tables beside them, and figures of a table hold together.

    ledgers_test.py REPOSITORY

No measured row is needed: a figure that is changed in one of the two, or in both against the groups that it sums up, is named.
"""
import csv
import re
import sys
from pathlib import Path

FIGURES = re.compile(r"mape|median|p90|bias|inside|half_width|spearman|rows|models")
TITLES = {"GPU": "gpu", "MAPE": "mape", "P90": "p90", "inside 90 %": "inside_90", "half its width": "half_width"}


def tables(page):
    """Rows of the page's tables as dictionaries, by heading."""
    found, heading, columns = {}, "", None
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            heading, columns = line[3:], None
        elif line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|\n").split("|")]
            if columns is None:
                columns = [TITLES.get(cell, cell) for cell in cells]
            else:
                found.setdefault(heading, []).append(dict(zip(columns, cells)))
        elif not line.startswith("|"):
            columns = None
    return found


def shown(column, cell):
    """A figure of a table as its page prints it, and by how much rounding twice may differ."""
    if column in ("mape", "median", "p90", "bias"):
        return 100 * float(cell), 0.0501 + 0.005
    if column in ("inside_90", "half_width"):
        return 100 * float(cell), 0.55
    return float(cell), 1e-9


def of_pages(folder):
    for table in sorted(folder.glob("*.csv")):
        pages = tables(table.with_suffix(".md"))
        with open(table, newline="") as file:
            rows = [row for row in csv.DictReader(file) if not row.get("region")]
        for row in rows:
            keys = {k: v for k, v in row.items() if not FIGURES.search(k) and k not in ("fold", "region") and k in pages[row["fold"]][0]}
            same = [r for r in pages[row["fold"]] if all(r.get(k) == v for k, v in keys.items())]
            if len(same) != 1:
                yield f"{table.name}: {row['fold']} {keys}: {len(same)} lines on the page"
                continue
            for column, cell in row.items():
                if FIGURES.search(column) and cell and column in same[0]:
                    value, rounding = shown(column, cell)
                    if abs(float(same[0][column]) - value) > rounding:
                        yield f"{table.name}: {row['fold']} {keys}: {column} is {cell}, its page says {same[0][column]}"


def of_groups(folder):
    """Rows and MAPE of `all` are the sum and the mean of the groups that divide it."""
    for name, by in (("framework_tax", "framework"), ("kernelbench", "framework,level"), ("timm", "family"), ("timm", "gpu")):
        with open(folder / f"{name}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        keys = [k for k in rows[0] if not FIGURES.search(k) and k != "fold"]
        for fold in {row["fold"] for row in rows}:
            own = [row for row in rows if row["fold"] == fold]
            if name == "timm":
                whole, parts = [r for r in own if r["by"] == "all"], [r for r in own if r["by"] == by]
            else:
                divided = by.split(",")
                whole = [r for r in own if all(r[k] == "all" for k in keys)]
                parts = [r for r in own if all((r[k] != "all") == (k in divided) for k in keys)]
            mape = next(k for k in rows[0] if k.startswith("mape"))
            count = sum(int(r["rows"]) for r in parts)
            mean = sum(int(r["rows"]) * float(r[mape]) for r in parts) / max(1, count)
            rounding = 0.051 if mape == "mape_percent" else 0.000051
            if len(whole) != 1 or int(whole[0]["rows"]) != count or abs(float(whole[0][mape]) - mean) > 2 * rounding:
                yield f"{name}.csv: {fold}: {count} rows of {by} with a MAPE of {mean:.4f}, all: {whole[0]['rows']}, {whole[0][mape]}"


def of_means(folder):
    """The page's means over the GPUs, and its table of regions, are those of the table's rows."""
    for name in ("operators", "layer_kernels", "quantized"):
        with open(folder / f"{name}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        pages = tables(folder / f"{name}.md")
        cells = []
        for line in pages["Means over the GPUs, worst GPU in brackets"]:
            for cls, cell in line.items():
                own = [100 * float(r["mape"]) for r in rows if (r["fold"], r["class"], r["region"]) == (line["fold"], cls, "")]
                cells += [(f"{line['fold']}, {cls}", cell, (sum(own) / len(own), max(own)))] if own else []
        for line in pages.get("validate, usual, by region of shapes", ()):
            for r in rows:
                if (r["fold"], r["class"], r["region"]) == ("validate, usual", line["class"], line["region"]) and int(r["rows"]) >= 20:
                    cells.append((f"{line['class']}, {line['region']}, {r['gpu']}", line[r["gpu"].split("-")[0]], (100 * float(r["mape"]), 100 * float(r["bias"]))))
        for what, cell, wanted in cells:
            printed = [float(number) for number in re.findall(r"[+-]?[\d.]+", cell)]
            if len(printed) != 2 or any(abs(a - b) > 0.0551 for a, b in zip(printed, wanted)):
                yield f"{name}.md: {what}: '{cell}', the table says {wanted[0]:.2f} ({wanted[1]:.2f})"


if __name__ == "__main__":
    ledgers = Path(sys.argv[1]) / "data" / "ledger"
    problems = [*of_pages(ledgers), *of_groups(ledgers), *of_means(ledgers)]
    print("\n".join(problems[:40]), f"\n{len(problems)} problems" if problems else "")
    sys.exit(len(problems) > 0)
