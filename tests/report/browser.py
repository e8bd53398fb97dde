"""A headless Chromium, driven through the DevTools protocol over its debugging pipe: nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

SKIPPED = 77  # the exit code of a test that this machine cannot run
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_browser():
    """Chromium from FTAX_BROWSER or the PATH; None where there is none."""
    return os.environ.get("FTAX_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


class Browser:
    """Opens pages one after the other and keeps what their consoles say."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="ftax-browser-", ignore_cleanup_errors=True)
        to_browser, self.requests = os.pipe()
        self.answers, from_browser = os.pipe()
        # Chromium reads requests from file 3 and answers on file 4; sandboxes need rights that containers seldom have.
        command = (f"exec 3<&{to_browser} 4>&{from_browser}; exec \"$0\" --headless --no-sandbox --disable-gpu "
                   "--disable-dev-shm-usage --disable-background-networking --no-first-run --hide-scrollbars "
                   f"--user-data-dir='{self.folder.name}' --remote-debugging-pipe about:blank")
        self.log = open(os.path.join(self.folder.name, "log"), "w+", errors="replace")
        # A group of its own, which ends with everything that the browser has started.
        self.process = subprocess.Popen(["bash", "-c", command, program], pass_fds=(to_browser, from_browser),
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last_id = 0
        self.events = []
        self.session = None
        try:
            self.attach()
        except BaseException:
            self.close()
            raise

    def attach(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.requests)
        os.close(self.answers)
        self.log.close()
        self.folder.cleanup()

    def receive(self, timeout_s):
        """The next message, or None when none comes in time."""
        end = time.monotonic() + timeout_s
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = os.read(self.answers, 1 << 20)
            if not data:
                self.log.seek(0)
                raise RuntimeError("the browser ended: " + self.log.read()[-2000:])
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        request = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.requests, data):]
        while True:
            message = self.receive(60)
            if message is None:
                raise RuntimeError(f"the browser does not answer to {method}")
            if message.get("id") != self.last_id:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            else:
                return message["result"]

    def open(self, path):
        """Loads a file to its end."""
        self.load("file://" + os.path.abspath(path))

    def load(self, url):
        self.events = []
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            message = self.receive(60)
            if message is None:
                raise RuntimeError(f"{url} does not load")
            self.events.append(message)

    def evaluate(self, expression):
        """The value of an expression; of a promise, what it is kept with."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def complaints(self):
        """What console and log have said since load(), and requests beyond the page itself."""
        found = []
        requests = 0
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(json.dumps(parameters)[:500])
            requests += method == "Network.requestWillBeSent"
        return found + ([f"{requests} requests for one page"] if requests > 1 else [])

    def view(self, width, height=900, scheme="light", media="screen"):
        """Sets the size of the window, the colour scheme, and screen or print."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        # The page lays itself out again on a resize event, which comes before the next frame.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def click(self, selector):
        """Presses and releases the mouse over the middle of an element, as a reader does."""
        box = self.evaluate(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
                            "e.scrollIntoView({block: 'center', inline: 'center'}); const r = e.getBoundingClientRect(); "
                            "return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def screenshot(self, path):
        """Writes the whole page as a PNG."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
