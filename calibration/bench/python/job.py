"""Measures for `ftax measure` and `ftax calibrate`, which name a job's JSON file (calibration/bench/python_device.cpp): without
cases it describes the machine, with cases it appends a row for each that the job's file lacks. It answers on standard output
with a JSON object a line: {"environment", "warnings"}, {"done", "total"}, {"warning"}, {"error", "message"}."""

import ctypes
import json
import os
import random
import select
import signal
import sys
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from measuring import TIMES, Limits, attempt, measure, reason  # noqa: E402
from nvml import Nvml  # noqa: E402
from recording import GRAPH_SOURCE, Rows  # noqa: E402

START_LIMIT_S = 120  # until a process begins its first case: opening the GPU
CASE_LIMIT_S = 300  # a case that takes longer is taken for stalled
MOST_FAULTS = 5  # ended processes of a repetition: then no single case is at fault
OWN_COLUMNS = ["mode", "case", "repetition", *TIMES, "source", "waits", "samples_ms"]
DONE, STOPPED, LOST = 0, 1, 3  # exit codes; LOST: no kernel runs any more in this process, another one continues


def supervise(work, end):
    """Forks a process that runs `work(report_to)`, which writes a line with the name of each case that it begins. Ends it, with all
    that it started, where a case takes too long or at `end` (of time.monotonic). Returns its exit code, the case that it had
    begun ("": none) and why it failed (None: it did not, or `end` came)."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        os.setsid()
        code = STOPPED
        try:
            code = work(writing)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    begun, text, status, limit_s, since = "", b"", None, START_LIMIT_S, time.monotonic()
    try:
        while status is None and time.monotonic() < min(since + limit_s, end):
            part = os.read(reading, 65536) if select.select([reading], [], [], 0.05)[0] else b""
            if part:
                *lines, text = (text + part).split(b"\n")
                begun, limit_s, since = lines[-1].decode() if lines else begun, CASE_LIMIT_S, time.monotonic()
                continue
            time.sleep(0.01)
            ended, code = os.waitpid(process, os.WNOHANG)
            status = code if ended else None
    finally:
        os.close(reading)
        try:
            os.killpg(process, signal.SIGKILL)  # Inductor's compilers, too
        except ProcessLookupError:
            pass
    if status is None:
        os.waitpid(process, 0)
        stalled = f"stalled: no answer within {limit_s:.0f} s; its process was ended"
        return STOPPED, begun, stalled if time.monotonic() < end else None
    code = os.waitstatus_to_exitcode(status)
    return code, begun, None if code == DONE else (
        f"its process was ended by signal {-code}" if code < 0 else f"its process ended with {code}")


class Bench:
    """A framework, its timer and what the driver says meanwhile."""

    def __init__(self, job):
        self.job = job
        if job["framework"] == "libtorch":
            import libtorch
            self.timer = libtorch.LibtorchTimer(job["library"], job["device"], job["threads"])
        else:
            import timing
            import torch
            torch.set_grad_enabled(False)
            self.timer = timing.timer(job["device"], job["threads"])
        self.power = Nvml(job["device"])  # this process is on the GPU by now, others are not ours

    def environment(self):
        if self.job["framework"] == "libtorch":
            found = {"framework_version": self.timer.version(), "threads": self.job["threads"], "device": self.power.read("name")}
        else:
            import timing
            import torch
            found = {"framework_version": torch.__version__, "python": sys.version.split()[0], "threads": torch.get_num_threads(),
                     **timing.light_operators()}
            if self.job["framework"].startswith("onnxruntime"):
                import onnxruntime
                found["framework_version"] = onnxruntime.__version__
            if self.job["device"] != "cpu":
                properties = torch.cuda.get_device_properties(0)
                found.update(device=properties.name, cuda=torch.version.cuda, l2_bytes=properties.L2_cache_size,
                             multiprocessors=properties.multi_processor_count, memory_bytes=properties.total_memory)
        mig = self.power.read("mig")
        found.update(driver=self.power.read("driver"), mig={0: "off", 1: "on"}.get(mig, ""))
        return {name: str(value) for name, value in found.items() if value not in ("", None)}

    def warnings(self):
        if self.job["device"] == "cpu":
            return
        if self.power.read("mig") == 1:
            yield "MIG is on: this is a slice of the GPU, which its datasheet does not describe (nvidia-smi -mig 0 ends it)"
        if self.power.read("clock_mhz") == "":
            yield "NVML does not report the SM clock: throttled samples cannot be detected"
        if (self.power.read("processes") or 0) > 1:
            yield "another process uses this GPU"

    def ready(self, case):
        """Returns what runs a case once, and the cells that say where its network comes from and how often it waits for the device."""
        framework, precision, device = self.job["framework"], self.job["precision"], self.job["device"]
        if framework == "libtorch":
            self.timer.prepare(case["graph"], precision, case["mode"], case["bindings"], case["weight_sets"], bool(case["model"]))
            return self.timer.run, {"source": GRAPH_SOURCE}
        import frameworks
        import networks
        if case["model"]:
            networks.free(device)
        network, inputs, source = networks.build(case, self.job)
        if self.job["channels_last"]:
            network, inputs = frameworks.channels_last(network, inputs)
        if not networks.finite(network(*inputs)):
            raise RuntimeError("an output is infinite or not a number: such a network draws another power")
        waits = networks.waits(networks.operators(network, inputs)) if case["mode"] == "host_dispatch" else ""
        return frameworks.wrap(framework, network, inputs, precision, device), {"source": source, "waits": waits}

    def times(self, case):
        run, about = self.ready(case)
        for _ in range(case["warm_ups"]):
            run()
        operators = sum(line.startswith("%") for line in case["graph"].splitlines())
        return {**about, **measure(self.timer, run, case["mode"], self.power, Limits(*self.job["limits"]), operators)}


class Job:
    def __init__(self, job, tell, make_bench=Bench):
        self.job, self.tell, self.make_bench = job, tell, make_bench
        self.end = time.monotonic() + (job["budget_s"] or 1e9)
        self.count = len(job["cases"])
        self.earlier = self.rows().failed  # of an earlier call: measured again

    def rows(self):
        return Rows(self.job["file"], [*self.job["columns"], *OWN_COLUMNS], ("case", "repetition"))

    def missing(self, repetition):
        """Cases to measure, in an order of this repetition's own."""
        rows = self.rows()
        cases = [case for case in self.job["cases"]
                 if (key := (case["id"], str(repetition))) not in rows.done or key in self.earlier]
        random.Random(repetition).shuffle(cases)
        return cases

    def keep(self, rows, case, repetition, result):
        rows.add(**dict(zip(self.job["columns"], case["labels"])), mode=case["mode"], case=case["id"], repetition=repetition, **result)
        if result.get("problem"):
            self.tell(warning=f"{case['id']}: {result['problem']}")

    def work(self, repetition, report_to):
        """One process: measures until all is done, the budget is spent, or no kernel runs any more in it."""
        try:
            bench = self.make_bench(self.job)
        except Exception as error:
            print(reason(error), file=sys.stderr)
            return STOPPED
        rows = self.rows()
        cases = self.missing(repetition)
        for at, case in enumerate(cases):
            if time.monotonic() > self.end:
                return DONE
            os.write(report_to, case["id"].encode() + b"\n")
            result = attempt(bench.times, case)
            self.keep(rows, case, repetition, result)
            self.tell(done=(repetition + 1) * self.count - len(cases) + at + 1, total=self.job["repetitions"] * self.count)
            if result.get("problem"):
                try:
                    bench.timer.synchronize()
                except Exception:
                    return LOST
        return DONE

    def run(self):
        """Each repetition in processes of its own: dispatch differs between them, and what kills one costs one case."""
        for repetition in range(self.job["repetitions"]):
            faults = 0
            while (cases := self.missing(repetition)) and time.monotonic() < self.end:
                code, case, problem = supervise(lambda report_to: self.work(repetition, report_to), self.end)
                begun = [case["id"] for case in cases].index(case) + 1 if case else 0
                self.earlier -= {(case["id"], str(repetition)) for case in cases[:begun]}
                if not problem:
                    break
                faults += 1
                if begun and code != LOST:
                    self.keep(self.rows(), cases[begun - 1], repetition, {"problem": problem})
                if not begun or faults == MOST_FAULTS:
                    raise RuntimeError(f"{self.job['framework']}: {problem}")
            if self.missing(repetition):
                return STOPPED
        return DONE


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    # Answers go to a copy of standard output; what frameworks print goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    warnings.simplefilter("ignore")
    ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG: not without the program that asked
    try:
        if "cases" not in job:
            bench = Bench(job)
            tell(environment=bench.environment(), warnings=list(bench.warnings()))
            return DONE
        if job["framework"] != "libtorch":
            import torch  # noqa: F401  once, for every process: it opens no GPU
        return Job(job, tell).run()
    except KeyboardInterrupt:
        return STOPPED
    except ImportError as error:
        tell(error="unusable", message=str(error))
    except Exception as error:
        tell(error="refused", message=str(error))
    return STOPPED


if __name__ == "__main__":
    sys.exit(main())
