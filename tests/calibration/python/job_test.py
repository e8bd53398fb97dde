"""What `ftax measure` asks of Python, on a machine that a test invents: what is kept, what is measured again, what becomes of a
case that stalls, fails or takes its process with it."""

import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "calibration", "bench", "python"))
import job  # noqa: E402
import measuring  # noqa: E402


class Timer:
    """Kernels run until a case has lost the device."""
    is_lost = False

    def synchronize(self):
        if self.is_lost:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")


class Bench:
    """`faults`: what becomes of a case of that name."""

    def __init__(self, asked):
        self.faults, self.timer = asked["faults"], Timer()

    def times(self, case):
        fault = self.faults.get(case["id"], "")
        if fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "stall":
            time.sleep(60)
        if fault == "slow":
            time.sleep(0.5)
        self.timer.is_lost = fault == "lose"
        if fault in ("fail", "lose"):
            raise RuntimeError(fault)
        return {"latency_ms": 1, "source": str(os.getpid())}


class Jobs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "operators.csv")
        self.said = []
        self.limit_s, job.CASE_LIMIT_S = job.CASE_LIMIT_S, 1

    def tearDown(self):
        job.CASE_LIMIT_S = self.limit_s
        self.folder.cleanup()

    def asked(self, names="abcd", repetitions=1, budget_s=0, **faults):
        cases = [{"id": name, "labels": ["t4", name], "mode": "device_hot", "graph": "", "model": ""} for name in names]
        return {"file": self.path, "columns": ["gpu", "op"], "cases": cases, "repetitions": repetitions, "budget_s": budget_s,
                "framework": "pytorch-eager", "faults": faults}

    def run_job(self, make_bench=Bench, **options):
        return job.Job(self.asked(**options), lambda **answer: self.said.append(answer), make_bench).run()

    def rows(self):
        with open(self.path, newline="") as file:
            return list(csv.DictReader(file))

    def by_case(self):
        found = {}
        for row in self.rows():
            self.assertEqual((row["gpu"], row["op"], row["mode"]), ("t4", row["case"], "device_hot"))
            found.setdefault(row["case"], []).append(row["problem"])
        return found

    def test_every_case_is_measured_once_in_each_repetition_in_another_order_and_process(self):
        self.assertEqual(self.run_job(names="abcdefgh", repetitions=2), job.DONE)
        rows = self.rows()
        first, second = ([row for row in rows if row["repetition"] == str(i)] for i in range(2))
        self.assertEqual(sorted(row["case"] for row in first), list("abcdefgh"))
        self.assertEqual(sorted(row["case"] for row in second), list("abcdefgh"))
        self.assertNotEqual([row["case"] for row in first], [row["case"] for row in second])
        self.assertEqual(len({row["source"] for row in first}), 1)
        self.assertEqual(len({row["source"] for row in rows}), 2)

    def test_the_next_job_measures_what_is_missing_or_failed_and_a_torn_row_again(self):
        self.run_job(names="abc", b="fail")
        self.assertEqual(self.by_case(), {"a": [""], "b": ["RuntimeError: fail"], "c": [""]})
        with open(self.path, "a") as file:
            file.write("t4,d,device_h")
        self.assertEqual(self.run_job(names="abcd"), job.DONE)
        self.assertEqual(self.by_case(), {"a": [""], "b": ["RuntimeError: fail", ""], "c": [""], "d": [""]})

    def test_a_case_that_takes_its_process_with_it_has_a_row_and_the_others_are_measured(self):
        self.assertEqual(self.run_job(b="die"), job.DONE)
        self.assertEqual(self.by_case(), {"a": [""], "b": ["its process was ended by signal 9"], "c": [""], "d": [""]})
        self.assertIn({"warning": "b: its process was ended by signal 9"}, self.said)
        self.run_job(b="die", c="die")  # again in the next job, once
        self.assertEqual(len(self.by_case()["b"]), 2)

    def test_a_case_that_stalls_has_a_row_and_the_others_are_measured(self):
        begin = time.monotonic()
        self.assertEqual(self.run_job(c="stall"), job.DONE)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(self.by_case()["c"], ["stalled: no answer within 1 s; its process was ended"])
        self.assertEqual(len(self.by_case()), 4)

    def test_a_device_that_is_lost_costs_one_case_and_the_others_have_another_process(self):
        self.assertEqual(self.run_job(names="abcdefgh", d="lose"), job.DONE)
        self.assertEqual({name: problems for name, problems in self.by_case().items() if problems != [""]},
                         {"d": ["RuntimeError: lose"]})
        self.assertLessEqual(len({row["source"] for row in self.rows() if row["source"]}), 2)

    def test_a_machine_on_which_every_process_dies_is_given_up(self):
        with self.assertRaisesRegex(RuntimeError, "pytorch-eager: its process was ended by signal 9"):
            self.run_job(names="abcdefgh", **dict.fromkeys("abcdefgh", "die"))

        def refuse(asked):
            raise RuntimeError("torch sees no GPU")
        with self.assertRaisesRegex(RuntimeError, "its process ended with 1"):
            self.run_job(make_bench=refuse, names="xyz")

    def test_a_budget_that_is_spent_leaves_the_rest_to_the_next_job(self):
        self.assertEqual(self.run_job(budget_s=0.8, **dict.fromkeys("abcd", "slow")), job.STOPPED)
        self.assertLess(len(self.rows()), 4)
        self.assertEqual(self.run_job(), job.DONE)
        self.assertEqual(self.by_case(), {name: [""] for name in "abcd"})

    def test_two_jobs_do_not_write_one_file(self):
        import fcntl
        self.run_job(names="a")
        with open(self.path, "a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with self.assertRaises(OSError):
                job.Job(self.asked(), print, Bench).keep(job.Job(self.asked(), print, Bench).rows(), self.asked()["cases"][1], 0, {})

    def test_a_full_disk_is_an_error_with_its_reason_and_the_file_keeps_whole_rows(self):
        import resource
        self.run_job(names="a")
        rows = self.rows()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(self.path) + 20, limits[1]))
        try:
            with self.assertRaisesRegex(OSError, "File too large"):
                self.run_job()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual(self.run_job(), job.DONE)
        self.assertEqual(self.rows()[0], rows[0])
        self.assertEqual(self.by_case(), {name: [""] for name in "abcd"})

    def test_progress_counts_what_earlier_jobs_did(self):
        self.run_job(names="ab")
        code = f"""
import sys
sys.path[:0] = [{os.path.dirname(os.path.abspath(job.__file__))!r}, {os.path.dirname(os.path.abspath(__file__))!r}]
import job, job_test
job.Job({self.asked(repetitions=2)!r}, lambda **answer: print(answer, flush=True), job_test.Bench).run()"""
        said = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.splitlines(), [f"{{'done': {done}, 'total': 8}}" for done in range(3, 9)])

    def test_an_interrupted_job_ends_what_it_started_and_keeps_complete_rows(self):
        code = f"""
import sys
sys.path[:0] = [{os.path.dirname(os.path.abspath(job.__file__))!r}, {os.path.dirname(os.path.abspath(__file__))!r}]
import job, job_test
job.Job({self.asked("abcdefgh", **dict.fromkeys("abcdefgh", "slow"))!r},
        lambda **answer: print(answer, flush=True), job_test.Bench).run()"""
        process = subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(process.wait(20), 0)
        process.stdout.close()
        kept = len(self.rows())
        self.assertLess(kept, 8)
        time.sleep(1)
        self.assertEqual(len(self.rows()), kept)  # no process is left that appends rows
        self.assertEqual(self.run_job(names="abcdefgh"), job.DONE)
        self.assertEqual(self.by_case(), {name: [""] for name in "abcdefgh"})


class Machines(unittest.TestCase):
    def warnings(self, device="cuda", **known):
        bench = job.Bench.__new__(job.Bench)
        bench.job = {"device": device}
        bench.power = type("Power", (), {"read": lambda self, what: known.get(what, "")})()
        return list(bench.warnings())

    def test_mig_other_processes_and_a_gpu_without_nvml_data_cause_warnings(self):
        usual = {"mig": 0, "clock_mhz": 1500, "processes": 1}  # our own process is one
        self.assertEqual(self.warnings(**usual), [])
        self.assertEqual(self.warnings("cpu"), [])
        self.assertRegex(self.warnings(**{**usual, "mig": 1})[0], "^MIG is on")
        self.assertRegex(self.warnings(**{**usual, "processes": 2})[0], "^another process")
        self.assertRegex(self.warnings(mig=0, processes=1)[0], "^NVML does not report")


class Limits(unittest.TestCase):
    def samples(self, seconds, **limits):
        values = iter(seconds)
        timer = type("Timer", (), {"clock_mhz": 0, "synchronize": lambda self: None, "sample": lambda *_: next(values)})()
        power = type("Power", (), {"read": lambda self, what: "", "disturbed": lambda self: False})()
        times = measuring.measure(timer, lambda: None, "device_hot", power, measuring.Limits(5, 0, 100, **limits))
        self.assertEqual(len(times["samples_ms"].split()), times["samples"])
        return times["samples"]

    def test_samples_that_agree_suffice(self):
        self.assertEqual(self.samples([1.0] * 100), 5)
        self.assertEqual(self.samples([1.0, 1.01] * 50, relative_stddev=0.02), 5)
        self.assertGreater(self.samples([1.0, 1.01] * 50), 5)

    def test_a_mean_that_is_known_well_suffices_however_noisy(self):
        noisy = [1.0, 1.3, 0.8, 1.5, 0.7, 1.1, 0.9, 1.4] * 400
        self.assertEqual(self.samples(noisy, relative_interval=0.9), 5)


class Libtorch(unittest.TestCase):
    def test_what_a_library_does_not_run_is_told_from_what_fails(self):
        import libtorch
        from recording import Unsupported
        timer = libtorch.LibtorchTimer.__new__(libtorch.LibtorchTimer)
        answers = {"prepare": b"unsupported: LibTorch: cannot run fft", "sample": b"CUDA error\nCompile with", "open": None}
        timer.library = type("Library", (), {name: staticmethod(lambda answer=answer: answer) for name, answer in answers.items()})
        timer._do("open")
        with self.assertRaisesRegex(Unsupported, "^LibTorch: cannot run fft$"):
            timer._do("prepare")
        with self.assertRaisesRegex(RuntimeError, "^LibTorch: CUDA error$"):
            timer._do("sample")


if __name__ == "__main__":
    unittest.main()
