"""The rules of measuring without a GPU and without torch: what counts, what is kept, what is measured again."""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "calibration", "bench", "python"))
import measuring  # noqa: E402
import nvml  # noqa: E402
import recording  # noqa: E402

COLUMNS = ["model", "batch", "mode", "latency_ms", "problem"]
KEY = ("model", "batch", "mode")


class Timer:
    """Takes a millisecond per call, or what a test says."""
    clock_mhz = 0

    def __init__(self, seconds=lambda: 1e-3):
        self.seconds, self.samples, self.lost = seconds, 0, False

    def synchronize(self):
        if self.lost:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def sample(self, run, mode, calls):
        self.samples += 1
        run()
        return self.seconds()


class Power:
    def __init__(self, clock=lambda: 1500, processes=lambda: 1, slowdown=lambda: ""):
        self.slowdown, self.clock, self.processes, self.usual_processes = slowdown, clock, processes, processes()

    disturbed = nvml.Nvml.disturbed

    def read(self, what):
        return {"clock_mhz": self.clock, "largest_clock_mhz": lambda: 1500, "slowdown": self.slowdown,
                "processes": self.processes}[what]()


def measure(timer, power, mode="device_hot", operators=1):
    return measuring.measure(timer, lambda: None, mode, power, (5, 0, 0.05), operators)


class Measuring(unittest.TestCase):
    def test_samples_under_a_throttled_clock_do_not_count(self):
        timer = Timer()
        timer.seconds = lambda: 9 if timer.samples <= 4 else 1e-3
        power = Power(clock=lambda: 600 if timer.samples <= 4 else 1500)
        times = measure(timer, power)
        self.assertEqual((times["latency_ms"], times["discarded"], times["clock_mhz"], times["slowdown"]), ("1", 3, 1500, ""))

    def test_the_first_sample_waits_for_the_host_and_does_not_count(self):
        timer = Timer()
        timer.seconds = lambda: 5e-3 if timer.samples == 1 else 1e-3
        self.assertEqual(measure(timer, Power())["relative_stddev"], "0")

    def test_a_clock_that_stays_low_is_how_the_card_runs_and_stands_in_the_row(self):
        times = measure(Timer(), Power(clock=lambda: 800))
        self.assertEqual((times["discarded"], times["clock_mhz"]), (20, 800))

    def test_each_sample_is_judged_by_the_clock_it_ran_at_itself(self):
        timer = Timer()
        timer.seconds = lambda: setattr(timer, "clock_mhz", 700 if timer.samples == 3 else 1480) or (
            2e-3 if timer.samples == 3 else 1e-3)
        times = measure(timer, Power(clock=lambda: 300))  # idle between two samples
        self.assertEqual((times["latency_ms"], times["discarded"], times["clock_mhz"]), ("1", 1, 1480))

    def test_a_hot_card_is_waited_for_and_measured_again_while_a_power_cap_is_how_it_runs(self):
        timer = Timer()
        times = measure(timer, Power(slowdown=lambda: "thermal" if timer.samples < 5 else "power cap"))
        self.assertEqual((times["discarded"], times["slowdown"]), (3, "power cap"))
        with self.assertRaisesRegex(RuntimeError, recording.SLOWED + ": power cap and hardware"):
            measure(Timer(), Power(slowdown=lambda: "power cap and hardware"))
        self.assertIn(recording.SLOWED, recording.PASSING)

    def test_a_clock_that_steps_back_never_becomes_a_latency(self):
        for wrong in (-1.0, 0.0, float("nan"), float("inf")):
            timer = Timer()
            timer.seconds = lambda: wrong if timer.samples <= 3 else 1e-3
            times = measure(timer, Power())
            self.assertEqual((times["latency_ms"], times["discarded"]), ("1", 2))
            with self.assertRaisesRegex(RuntimeError, "the clock stepped"):
                measure(Timer(lambda: wrong), Power())

    def test_another_process_on_the_gpu_leaves_no_latency(self):
        counts = iter([1, 1, 1])
        power = Power()
        power.processes = lambda: next(counts, 0) + 1
        with self.assertRaisesRegex(RuntimeError, "another process"):
            measure(Timer(), power)

    def test_the_steady_state_of_a_power_limited_card_counts_at_once(self):
        times = measure(Timer(), Power(clock=lambda: 1000))
        self.assertEqual((times["discarded"], times["clock_mhz"]), (0, 1000))

    def test_without_nvml_nothing_is_known_and_everything_counts(self):
        for library in (nvml.Nvml("cpu"), nvml.Nvml("cuda", library="libnothing.so.0")):
            self.assertEqual(measure(Timer(), library)["clock_mhz"], "")

    def test_host_times_stay_below_the_launch_queue(self):
        self.assertEqual(measure(Timer(), Power(), "host_dispatch")["calls"], 64)
        self.assertEqual(measure(Timer(), Power(), "host_dispatch", operators=100)["calls"], 2)
        self.assertEqual(measure(Timer(), Power(), "host_dispatch", operators=2000)["calls"], 1)
        self.assertEqual(measure(Timer(), Power(), "device_hot", operators=200)["calls"], 64)


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "models.csv")

    def tearDown(self):
        self.folder.cleanup()

    def rows(self):
        return recording.Rows(self.path, COLUMNS, KEY)

    def text(self):
        with open(self.path) as file:
            return file.read()

    def test_rows_are_appended_once_and_a_torn_one_is_cut_off(self):
        rows = self.rows()
        rows.add(model="a", batch=1, mode="end_to_end", latency_ms=2, problem="")
        complete = self.text()
        with open(self.path, "a") as file:
            file.write("b,1,end_to")
        rows = self.rows()
        self.assertEqual(self.text(), complete)
        self.assertEqual(rows.done, {("a", "1", "end_to_end")})
        rows.add(model="b", batch=1, mode="end_to_end", latency_ms=3, problem="")
        self.assertEqual(self.text(), complete + "b,1,end_to_end,3,\n")

    def test_a_file_of_another_campaign_is_not_continued(self):
        with open(self.path, "w") as file:
            file.write("model,latency_ms\na,1\n")
        with self.assertRaisesRegex(RuntimeError, "unexpected columns"):
            self.rows()

    def test_a_network_that_failed_is_known_to_have_failed(self):
        self.rows().add(model="a", batch=8, mode="end_to_end", latency_ms="", problem="OutOfMemoryError: 20 GiB")
        rows = self.rows()
        self.assertEqual(rows.failed, {("a", "8", "end_to_end")})

    def test_what_another_process_disturbed_is_measured_again(self):
        rows = self.rows()
        rows.add(model="a", batch=8, mode="end_to_end", latency_ms="", problem="RuntimeError: " + recording.DISTURBED)
        self.assertEqual((rows.done, self.rows().failed), (set(), set()))


if __name__ == "__main__":
    unittest.main()
