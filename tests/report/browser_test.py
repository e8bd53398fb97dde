"""The pages of ftax as a reader's browser shows them: browser_test.py FTAX.

Nothing complains in the console, what the tables show is what --json says, a click on a heading sorts, charts can be read on
a phone, in the dark and on paper, a wide window clips no table, the keyboard reaches every control, and no page exceeds 300 kB. Takes Chromium from FTAX_BROWSER or the PATH; without one it is skipped (77).
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from browser import BROWSERS, SKIPPED, Browser, find_browser

ROWS = """gpu,framework,precision,model,batch,latency_ms
T4,,fp32,resnet18,1,4.7
T4,,fp32,resnet18,8,9.9
T4,,fp32,resnet18,32,34.1
T4,torchscript,fp16,resnet18,4,3.1
V100,torchscript,fp16,resnet50,16,12
V100,,fp16,resnet50,128,71
T4,,fp32,unheard,1,3
"""

HOSTILE = r"""graph "<script>alert(1)</script>"
input %x f32[batch,64]
weight %w f32[64,64]
%"<b>\"'&" f32[batch,64] = linear(%x, %w) "<img src=x onerror=alert(2)>" @"</td><script>alert(3)</script>"
%2 f32[batch,64] = custom(%"<b>\"'&") "evil::\"><script>alert(4)</script>"
output %2
"""

# Every cell of a table: its column's key, what is shown, and the exact value where there is one.
READ_TABLE = """(id => {
  const table = document.getElementById(id);
  if (!table) return null;
  const keys = [...table.tHead.rows[0].cells].map(cell => cell.dataset.key ?? '');
  return [...table.tBodies[0].rows].map(row => [...row.cells].map((cell, i) =>
    ({key: keys[i], shown: cell.textContent, value: cell.dataset.v === undefined ? null : Number(cell.dataset.v)})));
})"""

# Columns of all tables that sort, and after clicks what one of them holds.
TABLES = """[...document.querySelectorAll('table.sortable')].map(table =>
  ({id: table.id, texts: [...table.tHead.rows[0].cells].map(cell => cell.classList.contains('text'))}))"""
COLUMN = """((id, i) => {
  const table = document.getElementById(id), head = table.tHead.rows[0].cells[i];
  return {order: head.getAttribute('aria-sort'), sorted: table.querySelectorAll('[aria-sort]').length,
          rows: [...table.tBodies[0].rows].map(row => row.textContent).sort(),
          values: [...table.tBodies[0].rows].map(row => row.cells[i].dataset.v ?? row.cells[i].textContent)};
})"""

# What is wrong with the layout of the page, as sentences.
LAYOUT = """(() => {
  const wrong = [];
  for (const plot of document.querySelectorAll('svg.plot')) {
    const frame = plot.getBoundingClientRect(), scale = frame.width / plot.viewBox.baseVal.width;
    const texts = [...plot.querySelectorAll('text')].map(text => ({text: text.textContent, box: text.getBoundingClientRect(),
                                                                   size: parseFloat(getComputedStyle(text).fontSize) * scale}));
    for (const {text, box, size} of texts) {
      if (size < 10) wrong.push(`"${text}" is ${size} px high`);
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        wrong.push(`"${text}" sticks out of its chart`);
    }
    texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
      if (a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1 && a.box.top < b.box.bottom - 3 && b.box.top < a.box.bottom - 3)
        wrong.push(`"${a.text}" lies on "${b.text}"`);
    }));
  }
  return wrong;
})()"""

# Tables that a window clips, and controls without a name or out of the keyboard's reach.
CLIPPED = """[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => `${e.firstElementChild.id} needs ${e.scrollWidth} px of ${e.clientWidth}`)"""
CONTROLS = """[...document.querySelectorAll('button,input,summary,[role=button],.legend [data-series],#timeline svg,#tree span')].filter(e =>
  e.tabIndex < 0 || !(e.textContent || e.placeholder || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML.slice(0, 90))"""

# Least contrast between letters and ground, of the page and of its charts; and how light the ground is.
CONTRAST = """(() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const inks = [...document.querySelectorAll('h1,p,th,td,label,figcaption,svg.plot text')].map(e =>
    light(e.tagName === 'text' ? getComputedStyle(e).fill : getComputedStyle(e).color));
  return {ground, least: Math.min(...inks.map(ink => (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)))};
})()"""

# Charts side by side: the card, the line that stands out, intervals that show, all lines, ticks of the latency.
PANELS = """[...document.querySelectorAll('section figure.picked')].map(figure => ({title: figure.parentElement.querySelector('h2').textContent,
  picked: figure.querySelector('.legend .on').textContent.trim(), lines: figure.querySelectorAll('.plot .line').length,
  bands: [...figure.querySelectorAll('.band.own')].filter(e => getComputedStyle(e).display !== 'none').length,
  ticks: [...figure.querySelectorAll('.plot text[text-anchor=end]')].map(e => e.textContent)}))"""

PREFIXES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "": 1}


def number_shown(text):
    """The number that a cell shows, in SI units; None where it shows none."""
    match = re.fullmatch(r"([+-]?[0-9.]+) ?([nµmkMGT]?)(s?)(%?)x?", text.strip())
    if not match:
        return None
    return float(match[1]) * PREFIXES[match[2]] * (0.01 if match[4] else 1)


class Test:
    def __init__(self, ftax, browser, folder):
        self.ftax, self.browser, self.folder = ftax, browser, folder
        self.failures = []
        self.checks = 0

    def check(self, holds, what):
        self.checks += 1
        if not holds:
            self.failures.append(what)

    def page(self, name, *arguments):
        """Runs a verb, opens its page and returns what --json says."""
        self.name = name
        self.path = os.path.join(self.folder, name + ".html")
        run = subprocess.run([self.ftax, *arguments, "--html", self.path, "--json", "-"], capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(f"ftax {' '.join(arguments)}: {run.stderr}")
        self.warnings = [line[len("warning: "):] for line in run.stderr.splitlines() if line.startswith("warning: ")]
        self.browser.view(1400)
        self.browser.open(self.path)
        self.browser.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        return json.loads(run.stdout)

    def table(self, table_id):
        rows = self.browser.evaluate(READ_TABLE + f"({json.dumps(table_id)})")
        self.check(rows, f"{self.name}: no rows in table {table_id}")
        for row in rows or []:
            for cell in row:
                shown = number_shown(cell["shown"])
                if cell["value"] is None or shown is None:
                    continue
                # Three significant digits, below 0.1 three decimals (units.hpp); of percents the last one that is shown.
                percent = 0.00101 if re.search(r"\.\d %", cell["shown"]) else 0.00501 if "%" in cell["shown"] else 0
                self.check(abs(shown - cell["value"]) <= max(0.006 * abs(cell["value"]), percent, 0.000501 * (abs(cell["value"]) < 0.1 and shown > 1e-3)),
                           f"{self.name}: {table_id} shows {cell['shown']} for {cell['value']}")
        return rows or []

    def equal(self, table_id, expected, keys):
        """The rows of a table say what the objects of --json say, in order, and each of `keys` stands in it."""
        rows = self.table(table_id)
        self.check(len(rows) == len(expected), f"{self.name}: {len(rows)} rows in {table_id}, {len(expected)} in --json")
        for row, entry in zip(rows, expected):
            cells = {cell["key"]: cell for cell in row if cell["key"]}
            self.check(set(keys) <= set(cells), f"{self.name}: {table_id} lacks {set(keys) - set(cells)}")
            for key, cell in cells.items():
                value = cell["shown"] if cell["value"] is None else cell["value"]
                shown = entry.get("memory", {}).get(key, "") if key in ("total_bytes", "fits") else entry.get(key, "")
                if isinstance(shown, bool):
                    shown = "yes" if shown else "no"
                self.check(value == shown, f"{self.name}: {table_id}.{key} is {value}, --json says {shown}")

    def sorts(self):
        """A click on each heading of each table sorts up, another one down, and no row is lost."""
        for table in self.browser.evaluate(TABLES):
            for i, is_text in enumerate(table["texts"]):
                read = COLUMN + f"({json.dumps(table['id'])}, {i})"
                rows = self.browser.evaluate(read)["rows"]
                for order in ("ascending", "descending"):
                    self.browser.click(f"#{table['id']} th:nth-child({i + 1}) button")
                    column = self.browser.evaluate(read)
                    what = f"{self.name}: column {i} of {table['id']}, {order}"
                    self.check(column["order"] == order and column["sorted"] == 1, f"{what}: marked {column['order']}")
                    self.check(rows == column["rows"], f"{what}: other rows than before")
                    values = column["values"]
                    if is_text:
                        # As the browser's language orders text: equal values stand together.
                        groups = [value for k, value in enumerate(values) if k == 0 or values[k - 1] != value]
                        self.check(len(groups) == len(set(groups)), f"{what}: {values}")
                    else:
                        numbers = [float(value or 0) for value in values]
                        self.check(numbers == sorted(numbers, reverse=order == "descending"), f"{what}: {values}")

    def reads(self):
        """Everything fits and can be read: wide, narrow, light, dark and printed."""
        for width, scheme, media in ((1400, "light", "screen"), (400, "light", "screen"), (400, "dark", "screen"),
                                     (720, "light", "print"), (720, "dark", "print")):
            self.browser.view(width, scheme=scheme, media=media)
            what = f"{self.name} at {width}, {scheme}, {media}"
            for complaint in [] if media == "print" else self.browser.evaluate(LAYOUT):
                self.check(False, f"{what}: {complaint}")
            width_used = self.browser.evaluate("document.documentElement.scrollWidth")
            self.check(width_used <= width, f"{what}: the page is {width_used} wide")
            for clipped in [] if media == "print" else self.browser.evaluate(CLIPPED):
                self.check(False, f"{what}: {clipped}")
            contrast = self.browser.evaluate(CONTRAST)
            self.check(contrast["least"] >= 4.5, f"{what}: contrast {contrast['least']:.2f}")
            dark = scheme == "dark" and media == "screen"
            self.check((contrast["ground"] < 0.1) == dark, f"{what}: the ground's lightness is {contrast['ground']:.2f}")
        for control in self.browser.evaluate(CONTROLS):
            self.check(False, f"{self.name}: the keyboard does not reach {control}, or it has no name")
        self.check(os.path.getsize(self.path) <= 310e3, f"{self.name}: {os.path.getsize(self.path)} bytes")
        self.browser.view(1400)

    def finish(self):
        """What holds for every page, whatever it shows."""
        self.sorts()
        self.reads()
        title = self.browser.evaluate("document.title")
        self.check(self.browser.evaluate("document.querySelector('h1').textContent") == title, f"{self.name}: heading and title differ")
        self.check(not self.browser.evaluate("[...document.querySelectorAll('svg text')].some(e => e.textContent === document.title)"),
                   f"{self.name}: the chart repeats the title of the page")
        shown = self.browser.evaluate("[...document.querySelectorAll('.warnings li')].map(e => e.textContent)")
        for warning in self.warnings:
            self.check(f"Warning: {warning}" in shown, f"{self.name}: the warning '{warning}' is not shown")
        for complaint in self.browser.complaints():
            self.check(False, f"{self.name}: {complaint}")


TIMES = ("latency_s", "low_s", "high_s", "host_s", "device_s", "bound")
ERRORS = ("rows", "median_ape", "mape", "p90_ape", "bias", "inside_interval")


def check_coverage(test, predictions):
    shares = [row[1]["value"] for row in test.table("coverage")]
    least = [min(p["coverage"][of] for p in predictions) for of in ("nodes", "flops", "time")]
    test.check(shares == least, f"{test.name}: coverage {shares}, --json says {least}")


def check_predict(test, rows_path):
    result = test.page("predict", "predict", "resnet18", "--device", "t4", "--framework", "pytorch-eager@1.13", "--batch", "1,8,32", "--measured", rows_path)
    test.equal("predictions", result["predictions"], ("batch", "measured_latency_s", *TIMES))
    check_coverage(test, result["predictions"])
    last = result["predictions"][-1]
    rows = test.table("kinds")
    for column, key in ((3, "host_s"), (4, "device_s")):
        total = sum(row[column]["value"] for row in rows)
        test.check(abs(total / last[key] - 1) < 1e-9, f"{test.name}: kinds add up to {total}, not {last[key]}")
    with open(test.path) as file:  # without JavaScript
        markup = file.read().split('id="launches"')[1].split("</table>")[0]
    test.check(markup.count("<tr>") - 1 == 50 < len(test.table("launches")), f"{test.name}: {markup.count('<tr>')} launches in the markup")
    # The longer a module, the hotter.
    heats = test.browser.evaluate("""[...document.querySelectorAll('#tree summary, #tree span')].map(e =>
      [parseFloat(e.style.getPropertyValue('--share')), Number(e.style.getPropertyValue('--heat').match(/[0-9.]+/g).at(-1))])""")
    test.check(len(heats) > 20 and sorted(heats) == sorted(heats, key=lambda heat: heat[1]) and heats[0][1] == 0.5, f"{test.name}: {heats}")
    whole = test.browser.evaluate("document.querySelector('#tree summary').textContent")
    shown = [number_shown(time) for time in re.findall(r"(?:host|device) ([0-9.]+ [µm]s)", whole)]
    test.check(all(abs(a / last[key] - 1) < 0.006 for a, key in zip(shown, ("host_s", "device_s"))) and len(shown) == 2, f"{test.name}: tree: {whole}")
    launches = test.table("launches")
    test.check(sum(row[4]["value"] for row in launches) == last["kernels"], f"{test.name}: the launches have other kernels")
    kernels = test.table("kernels")
    causes = test.browser.evaluate("document.querySelectorAll('.panels svg.plot').length")
    test.check(causes == min(6, sum(cause["share"] >= 0.01 for cause in result["diagnosis"])), f"{test.name}: {causes} charts of causes")
    dots = test.browser.evaluate("Math.max(...[...document.querySelectorAll('svg.plot')].map(plot => plot.querySelectorAll('.dot').length))")
    test.check(dots >= len(kernels), f"{test.name}: {dots} dots for {len(kernels)} kernels")
    batch = result["crossover"]["batch"]
    shown = test.browser.evaluate("document.getElementById('crossover').textContent")
    test.check(abs(float(re.search(r"batch ([0-9.]+)", shown)[1]) / batch - 1) < 0.006, f"{test.name}: crossover {batch}: {shown}")
    test.finish()


def check_filter(test):
    """A click on a module unfolds the launches of that module; the box over a table hides the rows without its words."""
    shown = "[...document.getElementById('launches').tBodies[0].rows].filter(row => !row.hidden).map(row => row.textContent)"
    test.page("filter", "predict", "resnet18", "--device", "t4", "--batch", "1")
    test.browser.evaluate("document.getElementById('launches').closest('details').open = false")
    every = test.browser.evaluate(shown)
    module = test.browser.evaluate("[...document.querySelectorAll('#tree details > summary')].find(e => e.parentElement.parentElement.firstElementChild.textContent.startsWith('layer1 ') && e.textContent.startsWith('0 ')).click()")
    test.check(test.browser.evaluate("document.getElementById('launches').closest('details').open"), f"{test.name}: {module} stays folded")
    some = test.browser.evaluate(shown)
    test.check(0 < len(some) < len(every) and all("layer1.0" in row for row in some), f"{test.name}: {len(some)} rows of {len(every)}")
    test.browser.evaluate("document.getElementById('launches').filter('')")
    test.check(test.browser.evaluate(shown) == every, f"{test.name}: rows are lost")


def check_explore(test):
    """Each slider changes the answer, the crossover moves, and the answer is what predict says."""
    test.name, test.path = "explore", os.path.join(test.folder, "explore.html")
    subprocess.run([test.ftax, "explore", "bert", "--device", "t4,a100-sxm4-40gb", "--framework", "pytorch-eager@1.13", "--over", "seq=64:256:x2", "--html", test.path],
                   check=True, capture_output=True)
    test.browser.view(1400)
    test.browser.open(test.path)
    answer = "[document.getElementById('answer').textContent, document.getElementById('mark')?.getAttribute('d')]"

    def drag(slider, value):
        test.browser.evaluate(f"{{const s = document.getElementById('{slider}'); s.value = {value}; s.dispatchEvent(new Event('input'));}}")
        return test.browser.evaluate(answer)

    seen = [drag("batch", 0), drag("batch", 3), drag("dimension", 1)]
    test.browser.click("#cards label:nth-of-type(2)")
    seen.append(test.browser.evaluate(answer))
    state = test.browser.evaluate("location.hash")
    test.check(state == "#batch=8&seq=128&card=NVIDIA+A100-SXM4-40GB", f"{test.name}: the address says {state}")
    test.browser.load("about:blank")
    test.browser.load(f"file://{test.path}{state}")
    test.check(test.browser.evaluate(answer) == seen[3], f"{test.name}: the address {state} gives {test.browser.evaluate(answer)}")
    listed = test.browser.evaluate("[...document.querySelectorAll('#cards output')].map(e => e.textContent)")
    test.check(len(set(listed)) == 2 and seen[3][0].startswith(listed[1]), f"{test.name}: cards show {listed}")
    test.check(test.browser.evaluate("document.querySelectorAll('#explorer .legend svg').length") == 3, f"{test.name}: swatches")
    test.check(len({answer for answer, _ in seen}) == 4, f"{test.name}: {seen}")
    test.check(seen[0][1] == seen[1][1] and seen[1][1] != seen[2][1] != seen[3][1], f"{test.name}: marks {seen}")
    run = subprocess.run([test.ftax, "predict", "bert", "--device", "a100-sxm4-40gb", "--framework", "pytorch-eager@1.13", "--batch", "8", "--dim", "seq=128", "--json", "-"],
                         capture_output=True, text=True)
    crossover = json.loads(run.stdout)["crossover"]["batch"]
    shown = float(re.search(r"bottleneck at batch ([0-9.]+)\.", seen[3][0])[1])
    test.check(abs(shown / crossover - 1) < 0.006, f"{test.name}: crossover {shown}, predict says {crossover}")
    test.reads()
    for complaint in test.browser.complaints():
        test.check(False, f"{test.name}: {complaint}")


def check_compare(test):
    result = test.page("compare", "compare", "resnet18", "--device", "t4,l4", "--framework", "pytorch-eager,torchscript",
                       "--precision", "bf16", "--batch", "1,8")
    compared = [row for row in result["rows"] if "skipped" not in row]
    compared.sort(key=lambda row: row["batch"])
    test.equal("comparison", compared, ("device", "batch", "ratio_to_best", "items_per_s", *TIMES))
    left_out = test.browser.evaluate("[...document.querySelectorAll('#skipped li')].map(e => e.textContent)")
    for row in result["rows"]:
        if "skipped" in row:
            test.check(f"{row['framework']} on {row['device']}, {row['precision']}: {row['skipped']}" in left_out, f"{test.name}: {row} is not shown")
    test.check(left_out, f"{test.name}: nothing is left out")
    test.finish()
    result = test.page("compare cards", "compare", "resnet18", "--device", "t4,l4", "--framework", "pytorch-eager@1.13,torchscript", "--batch", "1,8,32")
    panels = test.browser.evaluate(PANELS)
    best = [next(row for row in result["rows"] if row["device"] == panel["title"]) for panel in panels]
    test.check([panel["title"] for panel in panels] == list(dict.fromkeys(row["device"] for row in result["rows"])), f"{test.name}: {panels}")
    test.check([panel["picked"].split("@")[0] for panel in panels] == [row["framework"].split("@")[0] for row in best], f"{test.name}: {panels}")
    test.check(all(panel["bands"] == 1 and panel["lines"] == 2 for panel in panels), f"{test.name}: {panels}")
    test.check(panels[0]["ticks"] == panels[1]["ticks"], f"{test.name}: other axes: {panels}")
    test.finish()
    test.page("every column", "compare", "bert", "--device", "t4,a100-sxm4-40gb", "--framework", "pytorch-eager,tensorrt", "--precision", "fp16",
              "--batch", "1,8", "--dim", "seq=128", "--price", "0.35,3", "--slo", "20ms")
    test.finish()


def check_generate(test):
    result = test.page("generate", "generate", "llama-3-8b", "--device", "h100-sxm5-80gb,l40s", "--framework", "vllm@0.11",
                       "--precision", "bf16,fp8", "--batch", "1,16", "--prompt", "256", "--new-tokens", "32")
    rows = [row["device"]["slug"] if isinstance(row["device"], dict) else row["device"] for row in result["predictions"]]
    test.check(len(test.table("generations")) == len(rows) == 8, f"{test.name}: {len(rows)} predictions")
    test.check([panel["title"] for panel in test.browser.evaluate(PANELS)] == list(dict.fromkeys(rows)), f"{test.name}: panels of {rows}")
    test.finish()


def check_serve(test):
    """The chart over time spans the run, and the first line is that of the program."""
    result = test.page("serve", "serve", "llama-3-8b", "--device", "h100-sxm5-80gb,l40s", "--framework", "vllm@0.11", "--rate", "20",
                       "--prompt", "512", "--new-tokens", "128", "--slo", "ttft=500ms")
    test.equal("combinations", result["rows"], ("device", "keeps_level", "tokens_per_s", "latency_p99_s"))
    test.check(test.browser.evaluate("document.getElementById('best').textContent") == result["verdict"], f"{test.name}: another verdict")
    # On a phone each row is a paragraph, and each of its values has its name.
    test.browser.view(400)
    shown = test.browser.evaluate("""[...document.querySelectorAll('#combinations tbody tr')].map(row => [...row.cells].map(cell =>
      [cell.dataset.label, cell.offsetParent !== null || cell.textContent === '']))""")
    heads = test.browser.evaluate("[...document.querySelectorAll('#combinations th')].map(e => e.textContent)")
    test.check(len(shown) == 2 and all([cell[0] for cell in row] == heads for row in shown), f"{test.name}: {shown}")
    test.check(all(cell[1] for row in shown for cell in row), f"{test.name}: hidden cells in {shown}")
    test.browser.view(1400)
    running = test.browser.evaluate("""(() => {
      const plot = [...document.querySelectorAll('svg.plot')].at(-1), xs = plot.querySelector('.line.k0').getAttribute('d').match(/[ML][0-9.]+/g);
      return xs.map(text => Number(text.slice(1)));
    })()""")
    gaps = [b - a for a, b in zip(running, running[1:])]
    test.check(200 < len(running) <= 512 and running[0] < 110 and running[-1] > 600 and max(gaps) < 30,
               f"{test.name}: {len(running)} moments from {running[0]} to {running[-1]}, at most {max(gaps)} apart")
    test.finish()


def check_headroom(test):
    result = test.page("headroom", "headroom", "bert", "--device", "quadro-rtx-8000", "--precision", "fp16", "--dim", "seq=128")
    test.equal("growths", result["headroom"], ("property", "latency_s", "bound"))
    test.equal("frameworks", result["frameworks"], ("framework", "latency_s", "bound"))
    grown = [row[3]["value"] for row in test.table("growths")]
    test.check(grown == [row["to"] / row["from"] for row in result["headroom"]], f"{test.name}: growth {grown}")
    test.check(test.browser.evaluate("document.getElementById('best').textContent") == result["verdict"], f"{test.name}: another verdict")
    test.finish()


def check_crossover(test):
    result = test.page("crossover", "crossover", "resnet18", "--device", "t4", "--framework", "pytorch-eager@1.13")
    test.equal("interval", [result["crossover"]], ("batch", "low", "high", "host_s"))
    shown = test.browser.evaluate("document.getElementById('crossover').textContent")
    for cause in result["crossover"]["causes"]:
        share = f"{100 * cause['host_s'] / result['crossover']['host_s']:.0f} % for {cause['operations']} "
        test.check(share in shown, f"{test.name}: '{share}' is not in '{shown}'")
    test.equal("predictions", result["predictions"], ("batch", *TIMES))
    check_coverage(test, result["predictions"])
    test.finish()


def check_validate(test, rows_path):
    result = test.page("validate", "validate", rows_path)
    test.equal("overall", [result["overall"]], ERRORS)
    said = lambda cause: f"{cause['sentence']} ({100 * cause['share']:.0f} %)"
    groups = [entry | entry["group"] | ({"cause": said(entry["cause"])} if "cause" in entry else {}) for entry in result["groups"]]
    test.equal("groups", groups, ("gpu", "framework", "precision", *ERRORS))
    dots = test.browser.evaluate("[...document.querySelectorAll('svg.plot .dot')].length")
    test.check(dots == result["overall"]["rows"], f"{test.name}: {dots} dots")
    for column in ("gpu", "framework", "precision", "batch", "model"):
        run = subprocess.run([test.ftax, "validate", rows_path, "--by", column, "--json", "-"], capture_output=True, text=True)
        groups = {entry["group"][column]: entry for entry in json.loads(run.stdout)["groups"]}
        names = [row[0]["shown"] for row in test.table(f"by-{column}")]
        test.equal(f"by-{column}", [groups[name] | {column: float(name) if column == "batch" else name} for name in names],
                   (column, *ERRORS))
    lines = sum(len(skipped["lines"]) for skipped in result["skipped"])
    test.check(sum(row[0]["value"] for row in test.table("skipped")) == lines == 1, f"{test.name}: other rows are skipped")
    test.equal("profiles", result["profiles"], ("kind", "name", "version", "host"))
    test.check({(profile["kind"], profile["name"]) for profile in result["profiles"]} ==
               {("device", "t4"), ("device", "v100-sxm2-32gb"), ("framework", "pytorch-eager"), ("framework", "torchscript")},
               f"{test.name}: other profiles")
    test.finish()


def check_extremes(test):
    """Pages that hold very little, or very much."""
    model = os.path.join(test.folder, "one.txt")
    with open(model, "w") as file:
        file.write("graph one\ninput %x f32[batch,64]\nweight %w f32[64,64]\n%y f32[batch,64] = linear(%x, %w)\noutput %y\n")
    test.page("one operator, one batch", "predict", model, "--device", "t4", "--batch", "3")
    test.finish()
    rows = os.path.join(test.folder, "equal.csv")
    with open(rows, "w") as file:
        file.write("gpu,op,precision,shape,latency_ms\n")
        for h in range(950, 960):
            file.write(f"NVIDIA A100-PCIE-40GB,add,fp32,b=76 h={h},{0.0263 + h * 1e-6:.6f}\n")
    test.page("nearly equal rows", "validate", rows)
    test.finish()
    with open(rows, "w") as file:
        file.write("gpu,op,precision,shape,latency_ms\n")
        for i in range(12000):
            file.write(f"NVIDIA A100-PCIE-40GB,{'add' if i % 2 else 'mul'},fp32,b={1 + i // 40 * 7} h={64 * (1 + i % 40)},{0.004 * 1.0007 ** i:.6f}\n")
    test.page("thousands of rows", "validate", rows)
    test.finish()
    test.page("a large network", "predict", "gpt2", "--device", "t4", "--dim", "seq=128")
    launches = test.table("launches")
    title = test.browser.evaluate("document.getElementById('launches').closest('details').firstElementChild.textContent")
    test.check(len(launches) == 2500 and title.startswith("The first 2500 of "), f"{test.name}: {len(launches)} launches, '{title}'")
    test.reads()
    test.page("many pairs", "compare", "resnet18", "--device", "t4,l4,a10g", "--framework",
              "pytorch-eager,torchscript,onnxruntime-cuda", "--batch", "1,2,3,4,5,6,7,8,9,10")
    test.finish()


def check_hostile(test):
    model = os.path.join(test.folder, "<script>alert(0)<'&.txt")
    with open(model, "w") as file:
        file.write(HOSTILE)
    result = test.page("hostile names", "predict", model, "--device", "t4", "--batch", "1")
    scripts, pictures = test.browser.evaluate("[document.scripts.length, document.images.length]")
    test.check((scripts, pictures) == (1, 0), f"{test.name}: {scripts} scripts and {pictures} pictures")
    shown = [cell["shown"] for row in test.table("launches") for cell in row]
    for name in ("<img src=x onerror=alert(2)>", "</td><script>alert(3)</script>"):
        test.check(name in shown, f"{test.name}: {name} is not shown as it is")
    test.check([row[0]["shown"] for row in test.table("uncovered")] == ['evil::"><script>alert(4)</script>'], f"{test.name}: uncovered")
    check_coverage(test, result["predictions"])
    test.finish()


def main():
    program = find_browser()
    if program is None:
        print(f"skipped: no Chromium on this machine (looked for {', '.join(BROWSERS)}; FTAX_BROWSER names one)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder, Browser(program) as browser:
        test = Test(os.path.abspath(sys.argv[1]), browser, folder)
        rows_path = os.path.join(folder, "rows.csv")
        with open(rows_path, "w") as file:
            file.write(ROWS)
        check_predict(test, rows_path)
        check_filter(test)
        check_explore(test)
        check_compare(test)
        check_generate(test)
        check_serve(test)
        check_headroom(test)
        check_crossover(test)
        check_validate(test, rows_path)
        check_hostile(test)
        check_extremes(test)
    for failure in test.failures[:40]:
        print(failure)
    print(f"{test.checks} checks in {os.path.basename(program)}, {len(test.failures)} failed")
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
