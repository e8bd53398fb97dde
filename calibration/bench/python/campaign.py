"""Measures a GPU machine without ftax itself: plans a call by its budget, runs its stages in processes of their own, and
sees to it that every fault ends in a row or in the exit code. See calibration/campaign.sh."""

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import design  # noqa: E402
from recording import KernelRows, Rows  # noqa: E402

MOST_FILES, MOST_BYTES = 8, 16 << 20
MOST_FAULTS = 5  # of one process and those that went on after it: then it is no single case that is at fault
START_LIMIT_S = 120  # of a process until it begins its first case: importing torch, opening the GPU
CALL_IS_OVER = "the call's time is over"


class Outcome:
    """How a process ended: its exit code, the case it had begun, why it was ended."""

    def __init__(self, code, case, killed):
        self.code, self.case, self.killed = code, case, killed

    def problem(self):
        if self.killed:
            return f"stalled: {self.killed}; its process was ended"
        return f"its process was ended by signal {-self.code}" if self.code < 0 else f"its process ended with {self.code}"


def supervise(command, start_limit_s, call_end):
    """Runs a process that reports what it begins, and ends it, with all that it started, where a case takes longer than it
    said, or beyond `call_end` (of time.monotonic)."""
    reading, writing = os.pipe()
    process = subprocess.Popen([*command, "--report-fd", str(writing)], pass_fds=[writing], start_new_session=True)
    os.close(writing)
    case, killed, limit_s = None, "", start_limit_s
    end, text = min(time.monotonic() + limit_s, call_end), b""
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], max(0, end - time.monotonic()))
            if not ready:
                killed = f"no answer within {limit_s:.0f} s" if time.monotonic() < call_end else CALL_IS_OVER
                break
            part = os.read(reading, 65536)
            if not part:
                break
            *lines, text = (text + part).split(b"\n")
            for line in lines:
                message = json.loads(line)
                case, limit_s = message["begin"], message["limit_s"]
                end = min(time.monotonic() + limit_s, call_end)
        if not killed:
            # Its end of the pipe closes when it ends; a process that hangs on its way out does not stop the campaign.
            process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        killed = "it did not end"
    finally:
        os.close(reading)
        try:
            os.killpg(process.pid, signal.SIGKILL)  # Inductor's compilers, too
        except ProcessLookupError:
            pass
        process.wait()
    return Outcome(process.returncode, case, killed)


class Campaign:
    def __init__(self, arguments, start=None):
        self.arguments = arguments
        self.end = time.monotonic() + arguments.budget_s
        self.failures = []
        self.start = start or [sys.executable, os.path.join(HERE, "stages.py")]

    def left_s(self):
        return self.end - time.monotonic()

    def path(self, name):
        return os.path.join(self.arguments.output, name)

    def options(self):
        try:
            with open(self.path("environment.json")) as file:
                sms = json.load(file)["calls"][-1].get("multiprocessors", 0)
        except (FileNotFoundError, IndexError):
            sms = 0
        return design.Options(self.arguments.device, self.arguments.smoke, sms)

    def rows(self, stage):
        known = design.STAGES[stage]
        kind = KernelRows if known.file.endswith(".gz") else Rows
        return kind(self.path(known.file), list(known.columns), known.key)

    def remaining(self, stage):
        return [] if stage == "environment" else design.remaining(stage, self.options(), self.rows(stage))

    def expected(self, stages):
        return {stage: design.expected_s(stage, self.remaining(stage)) for stage in stages}

    def keep_failure(self, stage, case, problem):
        """A row for a case that took its process with it: without one it would do so for ever."""
        rows = self.rows(stage)
        if isinstance(rows, KernelRows):
            rows.add_case([{**case, "problem": problem}])
            return
        if stage in ("models", "frameworks", "more-frameworks"):
            case = {**case, "mode": next(mode for mode in design.modes_of(case) if not rows.has(**case, mode=mode))}
        rows.add(**case, problem=problem)

    def processes(self, stage):
        """Arguments of the processes that a stage takes: one for each repetition of dispatch, and for each framework."""
        cases = self.remaining(stage)
        if stage == "dispatch":
            return [["--repetition", str(r)] for r in sorted({case["repetition"] for case in cases})]
        if stage.endswith("frameworks"):
            return [["--framework", name] for name in dict.fromkeys(case["framework"] for case in cases)]
        return [[]] if cases or stage == "environment" else []

    def run_stage(self, stage, seconds):
        """Runs a stage until it is done or its time is over, again after each fault."""
        end = time.monotonic() + seconds
        for which in self.processes(stage):
            faults = 0
            while True:
                left = min(end - time.monotonic(), self.left_s())
                before = len(self.remaining(stage))
                if left < design.STAGES[stage].least_s:
                    return
                options = ["--smoke"] if self.arguments.smoke else []
                if self.arguments.libtorch:
                    options += ["--libtorch", self.arguments.libtorch]
                outcome = supervise([*self.start, stage, "--output", self.arguments.output, "--device", self.arguments.device,
                                     "--budget-s", f"{left:.1f}", *which, *options], START_LIMIT_S, self.end)
                if outcome.code == 0 and not outcome.killed:
                    break
                if outcome.killed == CALL_IS_OVER and stage != "environment":
                    return  # it is not known to have stalled: the next call tries again
                if outcome.case is not None and not design.is_done(stage, outcome.case, self.rows(stage)):
                    print(f"campaign: {stage} {outcome.case}: {outcome.problem()}", file=sys.stderr)
                    self.keep_failure(stage, outcome.case, outcome.problem())
                faults += 1
                if stage == "environment" or len(self.remaining(stage)) == before or faults == MOST_FAULTS:
                    self.failures.append(f"{stage}: {outcome.problem()}")
                    break

    def run(self):
        """Runs the stages of the slices that were asked for, by plan; what time is left goes to what is not done."""
        stages = list(dict.fromkeys(stage for name in self.arguments.slices for stage in design.SLICES.get(name, (name,))))
        if "environment" in stages:
            self.timed("environment", min(self.left_s(), design.STAGES["environment"].limit_s))
            if self.failures:
                return  # no GPU, or no torch: nothing else would run
            stages.remove("environment")
        counts = {stage: len(self.remaining(stage)) for stage in stages}
        first_plan = True
        while True:
            expected = self.expected(stages)
            planned = design.plan(expected, self.left_s())
            if first_plan:
                self.tell_plan(expected, planned)
            first_plan = False
            if not planned:
                break
            before = sum(len(self.remaining(stage)) for stage in stages)
            for stage, seconds in planned:
                self.timed(stage, min(seconds, self.left_s()))
            if self.failures or sum(len(self.remaining(stage)) for stage in stages) == before:
                break
        self.check_rows([stage for stage in stages if len(self.remaining(stage)) < counts[stage]])

    def tell_plan(self, expected, planned):
        print("campaign: planned " + (", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in planned) or "nothing") +
              f"; {self.left_s():.0f} s are left, all that is not done takes about {sum(expected.values()):.0f} s on an H200",
              file=sys.stderr)

    def timed(self, stage, seconds):
        begin = time.monotonic()
        self.run_stage(stage, seconds)
        left = "" if stage == "environment" else f", {len(self.remaining(stage))} cases are not done"
        print(f"{stage}: {time.monotonic() - begin:.0f} s{left}, {max(self.left_s(), 0):.0f} s left", file=sys.stderr)

    def check_rows(self, stages):
        """A stage that ran and has nothing but problems has failed, whatever its processes said."""
        for stage in stages:
            rows = self.rows(stage)
            if isinstance(rows, Rows) and rows.done and rows.done == rows.failed:
                self.failures.append(f"{stage}: each of its {len(rows.done)} rows has a problem")

    def check_output(self):
        """What comes back from a lent machine is limited."""
        names = os.listdir(self.arguments.output)
        size = sum(os.path.getsize(self.path(name)) for name in names)
        if len(names) > MOST_FILES or size > MOST_BYTES:
            self.failures.append(f"{len(names)} files of {size >> 20} MiB in {self.arguments.output}; "
                                 f"{MOST_FILES} of {MOST_BYTES >> 20} MiB come back")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("slices", nargs="+", choices=(*design.SLICES, *design.STAGES))
    parser.add_argument("--output", required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--budget-s", type=float, default=500)
    parser.add_argument("--libtorch", help="library of calibration/bench/libtorch/bare")
    parser.add_argument("--smoke", action="store_true", help="the smallest case of everything")
    campaign = Campaign(parser.parse_args())
    campaign.run()
    campaign.check_output()
    for failure in campaign.failures:
        print(f"campaign: {failure}", file=sys.stderr)
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what is complete has been kept")
    except (RuntimeError, OSError) as error:
        sys.exit(f"campaign: {error}")
