"""ftax in a browser against the program itself: web_test.py FTAX SITE, SITE being what `make web` builds.

Checks that reports of 30 models agree to 1e-9, that dropped files are read, that first paint, prediction time and size stay within
their limits, and that the page requests nothing from other servers. Takes Chromium from FTAX_BROWSER or the PATH; skipped (77) without it or without SITE, and says so.
"""

import functools
import gzip
import http.server
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "report"))
from browser import BROWSERS, SKIPPED, Browser, find_browser  # noqa: E402

FARTHEST = [0]  # relative difference of two numbers
LARGEST_BYTES, LONGEST_PAINT_MS, LONGEST_PREDICTION_MS, TOLERANCE = 6 << 20, 1000, 50, 1e-9

TEXT = ("bert bert_large roberta distilbert albert deberta mobile_bert squeeze_bert ibert fnet gpt2_forward opt_13").split()
IMAGES = ("resnet18 resnet50 resnet152 vgg16 densenet mobilenet_v2 efficientnet mnasnet shufflenet googlenet inception alexnet "
          "wide_resnet50_2 resnet34 resnet101 squeezenet vit32 gernet").split()
COMMANDS = ([["predict", model, "--device", "l4", "--precision", "fp16", "--batch", "1,16", "--dim", "seq=128"] for model in TEXT]
            + [["predict", model, "--device", "t4", "--framework", framework, "--batch", "1:64:x4"]
               for model, framework in zip(IMAGES, ["pytorch-eager", "tensorrt", "onnxruntime-cuda", "torchscript"] * 5)]
            + [["compare", "bert", "--device", "l4,t4,h100-sxm5-80gb", "--framework", "pytorch-eager,torch-compile", "--precision",
                "fp16,int8", "--batch", "1,8", "--dim", "seq=64", "--slo", "latency=20ms", "--price", "0.7,0.35,2.5"],
               ["generate", "llama-3-8b", "--device", "h100-sxm5-80gb", "--framework", "vllm", "--batch", "1,8", "--prompt", "512",
                "--new-tokens", "64"],
               ["headroom", "bert", "--device", "quadro-rtx-8000", "--precision", "fp16", "--dim", "seq=128"],
               ["crossover", "resnet18", "--device", "l4"],
               ["inspect", "gpt2_forward", "--batch", "2", "--dim", "seq=64"]])

INPUTS = pathlib.Path(__file__).parents[1] / "cases" / "inputs"
FILES = ["olive_unet.onnx", "mha_packed_kv.onnx", "up3d.pt2", "embed_256000.pt2", "qwen3_moe.json"]
GRAPH = """graph layer
input %x f32[batch,512]
weight %w f32[2048,512]
%1 f32[batch,2048] = linear(%x, %w) "aten::linear" @fc
output %1
"""


def serve(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def differences(ours, theirs, path=""):
    """Where two reports differ, as sentences."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        return [line for key in ours for line in differences(ours[key], theirs[key], f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [line for i, pair in enumerate(zip(ours, theirs)) for line in differences(*pair, f"{path}[{i}]")]
    if isinstance(ours, float) and isinstance(theirs, float):
        off = abs(ours - theirs) / max(abs(ours), abs(theirs), 1e-30)
        FARTHEST[0] = max(FARTHEST[0], off)
        same = off <= TOLERANCE
    else:
        same = ours == theirs
    return [] if same else [f"{path}: {ours!r} and {theirs!r}"]


def rounded(page):
    """A page with its numbers to ten digits: of the last digits, two C libraries may think differently."""
    return re.sub(r"\d+\.\d{6,}(e-?\d+)?", lambda number: f"{float(number[0]):.10g}", page)


def until(browser, condition):
    browser.evaluate(f"new Promise(done => {{ const look = () => ({condition}) ? done() : setTimeout(look, 20); look(); }})")


def run(browser, words):
    return browser.evaluate(f"ftax({json.dumps([*words, '--json', 'result.json'])})")


def compare(browser, ftax, words, folder=None):
    """A command's report in the browser against the program's."""
    native = subprocess.run([ftax, *words, "--json"], cwd=folder, capture_output=True, check=True).stdout
    ours = run(browser, words)
    assert not ours["code"], f"{' '.join(words)}: {ours['problems']}"
    wrong = differences(json.loads(ours["json"]), json.loads(native))
    assert not wrong, (f"{' '.join(words)}: {len(wrong)} differences (if the sources have changed, run `make web` first), e.g. "
                       + "\n".join(wrong[:10]))


def check_page(browser, ftax, url):
    """The form, a file, and the page that it shows."""
    browser.load("about:blank")
    browser.load(url + "#model=bert&dim=seq%3D128&device=t4&device=l4&precision=fp16")
    until(browser, "document.getElementById('page').srcdoc")
    words = browser.evaluate("document.getElementById('command').textContent").split()
    assert words[:3] == ["ftax", "compare", "bert"] and "l4,t4" in words, words
    shown = browser.evaluate("document.getElementById('page').srcdoc")
    with tempfile.TemporaryDirectory() as folder:
        native = pathlib.Path(folder, "page.html")
        subprocess.run([ftax, *words[1:], "--html", native.name, "--json", "result.json"], cwd=folder, check=True,
                       capture_output=True)
        assert rounded(shown) == rounded(native.read_text()), "the page is another than that of the program"

        pathlib.Path(folder, "layer.txt").write_text(GRAPH)
        for name in FILES:
            shutil.copy(INPUTS / name, folder)
        browser.load("about:blank")
        browser.load(url + "#batch=1&device=t4")
        until(browser, "document.getElementById('page').srcdoc")
        browser.call("DOM.enable")
        root = browser.call("DOM.getDocument")["root"]["nodeId"]
        node = browser.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
        browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(pathlib.Path(folder, name)) for name in ("layer.txt", *FILES)])
        until(browser, "document.getElementById('page').srcdoc.includes('layer')")
        for name in ("layer.txt", *FILES):
            words = ["predict", name, "--device", "t4", "--batch", "1,2" if name == "layer.txt" else "1"]
            if name.endswith(".json"):
                words += ["--dim", "seq=64", "--dim", "past=0"]
            compare(browser, ftax, words, folder)
        shutil.copy(INPUTS / "encoder.pt", folder)
        browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(pathlib.Path(folder, "encoder.pt"))])
        refused = run(browser, ["predict", "encoder.pt", "--device", "t4", "--batch", "1"])
        assert refused["code"] and "TorchScript" in refused["problems"], refused
        # What cannot be read is refused with the program's own words, and the next answer comes all the same.
        refused = run(browser, ["predict", "none.onnx", "--device", "t4", "--batch", "1"])
        assert refused["code"] == 2 and "none.onnx" in refused["problems"], refused
        assert run(browser, COMMANDS[0])["code"] == 0


def main(ftax, site):
    ftax = pathlib.Path(ftax).resolve()
    program = find_browser()
    if not program or not pathlib.Path(site, "ftax.wasm.gz").exists():
        print("web_test.py: skipped: " + ("no ftax.wasm.gz: `make web` builds it" if program else "no browser, one of " + ", ".join(BROWSERS)))
        sys.exit(SKIPPED)
    weight = sum(min(path.stat().st_size, len(gzip.compress(path.read_bytes()))) for path in pathlib.Path(site).iterdir())
    assert weight <= LARGEST_BYTES, f"{weight} bytes, compressed"
    url = serve(site)
    with Browser(program) as browser:
        browser.view(1400)
        browser.load(url)
        until(browser, "document.getElementById('page').srcdoc")
        paint = browser.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        times = []
        for words in COMMANDS:
            compare(browser, ftax, words)
            if words[0] == "predict":
                times.append(min(run(browser, [*words, "--html", "page.html"])["milliseconds"] for _ in range(3)))
        asked = {event["params"]["request"]["url"] for event in browser.events if event.get("method") == "Network.requestWillBeSent"}
        assert all(address.startswith((url, "data:", "about:")) for address in asked), asked
        check_page(browser, ftax, url)
    print(f"{len(COMMANDS)} reports agree, to {FARTHEST[0]:.0e}; {weight / 2**20:.2f} MiB compressed, first paint after {paint:.0f} ms, a prediction in "
          f"{statistics.median(times):.0f} ms (median; the longest {max(times):.0f} ms)")
    if os.getloadavg()[0] > os.cpu_count() + 1:
        print("web_test.py: times are not tested: other programs wait for this machine's processors")
    else:
        assert paint <= LONGEST_PAINT_MS and statistics.median(times) <= LONGEST_PREDICTION_MS


if __name__ == "__main__":
    main(*sys.argv[1:])
