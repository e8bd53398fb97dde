"""Measures a GPU machine without ftax itself: forks each stage's processes from this one, which has imported torch. Every fault ends in a row or in the exit code. See calibration/campaign.sh."""

import argparse
import json
import os
import select
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import design  # noqa: E402
import stages  # noqa: E402

MOST_FILES, MOST_BYTES = 8, 16 << 20
MOST_FAULTS = 5  # of one process and those that went on after it: then it is no single case that is at fault
START_LIMIT_S = 120  # of a process until it begins its first case: opening the GPU
CALL_IS_OVER = "the call's time is over"


class Outcome:
    """How a process ended: its exit code, the case it had begun, why it was ended."""

    def __init__(self, code, case, killed):
        self.code, self.case, self.killed = code, case, killed

    def problem(self):
        if self.killed:
            return f"stalled: {self.killed}; its process was ended"
        return f"its process was ended by signal {-self.code}" if self.code < 0 else f"its process ended with {self.code}"


def supervise(work, start_limit_s, call_end):
    """Forks a process that does `work(report_to)` and reports what it begins; ends it, with all that it started, where a case
    takes longer than it said, or beyond `call_end` (of time.monotonic)."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        os.setsid()
        code = 1
        try:
            code = work(writing)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    begun, text, status, killed = {"begin": None, "limit_s": start_limit_s}, b"", None, ""
    since = time.monotonic()
    try:
        while status is None and not killed:
            is_told = select.select([reading], [], [], 0.05)[0] and (part := os.read(reading, 65536))
            if is_told:
                *lines, text = (text + part).split(b"\n")
                begun, since = json.loads(lines[-1]) if lines else begun, time.monotonic()
                continue
            time.sleep(0.01)
            ended, code = os.waitpid(process, os.WNOHANG)
            if ended:
                status = code
            elif time.monotonic() > min(since + begun["limit_s"], call_end):
                killed = f"no answer within {begun['limit_s']:.0f} s" if time.monotonic() < call_end else CALL_IS_OVER
    finally:
        os.close(reading)
        try:
            os.killpg(process, signal.SIGKILL)  # Inductor's compilers, too
        except ProcessLookupError:
            pass
    if status is None:
        status = os.waitpid(process, 0)[1]
    return Outcome(os.waitstatus_to_exitcode(status), begun["begin"], killed)


class Campaign:
    """`work`: what a process of a stage does (stages.work)."""

    def __init__(self, arguments, work=stages.work):
        self.arguments, self.work, self.failures = arguments, work, []
        self.end = time.monotonic() + arguments.budget_s

    def left_s(self):
        return self.end - time.monotonic()

    def path(self, name):
        return os.path.join(self.arguments.output, name)

    def rows(self, stage):
        return design.STAGES[stage].rows(self.arguments.output)

    def remaining(self, stage, smoke):
        return design.remaining(stage, design.Options(self.arguments.device, smoke), self.rows(stage)) if stage != "environment" else []

    def keep_failure(self, stage, case, problem):
        """A row for a case that took its process with it: without one it would do so for ever."""
        rows = self.rows(stage)
        if stage in design.NETWORK_STAGES:
            case = {**case, "mode": next(mode for mode in design.modes_of(case) if not rows.has(**case, mode=mode))}
        rows.add(**case, problem=problem)

    def run_stage(self, stage, smoke=False):
        """Runs a stage until it is done or the call is over, again after each fault."""
        begin = time.monotonic()
        for only in design.processes(stage, self.remaining(stage, smoke)) if stage != "environment" else [{}]:
            faults = 0
            while self.left_s() > 0:
                before = len(self.remaining(stage, smoke))
                outcome = supervise(lambda report_to: self.work(stage, self.arguments, smoke, only, self.left_s(), report_to),
                                    START_LIMIT_S, self.end)
                if outcome.code == 0 and not outcome.killed or outcome.killed == CALL_IS_OVER and stage != "environment":
                    break  # what the end of the call cut off is not known to have stalled: the next call tries again
                if outcome.case is not None and not design.is_done(stage, outcome.case, self.rows(stage)):
                    print(f"campaign: {stage} {outcome.case}: {outcome.problem()}", file=sys.stderr)
                    self.keep_failure(stage, outcome.case, outcome.problem())
                faults += 1
                if stage == "environment" or len(self.remaining(stage, smoke)) == before or faults == MOST_FAULTS:
                    self.failures.append(f"{stage}: {outcome.problem()}")
                    break
        print(f"{stage}{' (one case a path)' if smoke else ''}: {time.monotonic() - begin:.0f} s, "
              f"{len(self.remaining(stage, smoke))} cases are not done, {max(self.left_s(), 0):.0f} s left", file=sys.stderr)

    def run(self):
        """One case of every path first, so that what does not run is known at once; then all cases, stage by stage."""
        chosen = self.arguments.stages or list(design.STAGES)
        self.run_stage("environment")
        if self.failures:
            return  # no GPU, no torch, or another card: nothing else would run
        chosen = [stage for stage in chosen if stage != "environment"]
        counts = {stage: len(self.remaining(stage, self.arguments.smoke)) for stage in chosen}
        for smoke in (True,) if self.arguments.smoke else (True, False):
            expected = sum(design.expected_s(stage, self.remaining(stage, smoke)) for stage in chosen)
            print(f"campaign: {'one case of every path' if smoke else 'all cases'} in about {expected:.0f} s on an H200, "
                  f"{self.left_s():.0f} s are left", file=sys.stderr)
            for stage in chosen:
                if self.remaining(stage, smoke) and self.left_s() > 0:
                    self.run_stage(stage, smoke)
            if smoke:
                for stage in chosen:
                    self.tell_problems(stage)
        for stage in chosen:
            rows = self.rows(stage)
            if len(self.remaining(stage, self.arguments.smoke)) < counts[stage] and rows.done and rows.done == rows.failed:
                self.failures.append(f"{stage}: each of its {len(rows.done)} rows has a problem")

    def tell_problems(self, stage):
        for case in sorted(self.rows(stage).failed):
            print(f"campaign: {stage} {' '.join(case)}: has a problem (its row says which)", file=sys.stderr)

    def check_output(self):
        """What comes back from a lent machine is limited."""
        names = os.listdir(self.arguments.output)
        size = sum(os.path.getsize(self.path(name)) for name in names)
        if len(names) > MOST_FILES or size > MOST_BYTES:
            self.failures.append(f"{len(names)} files of {size >> 20} MiB in {self.arguments.output}; "
                                 f"{MOST_FILES} of {MOST_BYTES >> 20} MiB come back")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", choices=[*design.STAGES, []], help="default: all")
    parser.add_argument("--output", required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--budget-s", type=float, default=design.CALLS_S[0])
    parser.add_argument("--libtorch", help="library that calibration/bench/libtorch/build.sh builds")
    parser.add_argument("--smoke", action="store_true", help="one case of every path, quickly")
    campaign = Campaign(parser.parse_args())
    import torch  # noqa: F401  once, for every process: it opens no GPU
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
    except (ImportError, RuntimeError, OSError) as error:
        sys.exit(f"campaign: {error}")
