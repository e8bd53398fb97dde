"""The campaign's rules without a GPU and without torch: what counts, what is kept, what is measured again."""

import importlib.util
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "calibration", "bench", "python"))
import campaign  # noqa: E402

COLUMNS = ["model", "batch", "mode", "latency_ms", "problem"]
KEY = ("model", "batch", "mode")


class Timer:
    """Takes a millisecond per call, or what a test says."""

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
    def __init__(self, clock=lambda: 1500, processes=lambda: 1):
        self.clock, self.processes, self.usual_processes = clock, processes, processes()

    disturbed = campaign.Power.disturbed

    def read(self, what):
        return {"clock_mhz": self.clock, "default_clock_mhz": lambda: 1500, "power_w": lambda: 70.5,
                "other_processes": self.processes}[what]()


def measure(timer, power, mode="device_hot"):
    return campaign.measure(timer, lambda: None, mode, power, (5, 0, 0.05))


class Measuring(unittest.TestCase):
    def test_samples_under_a_throttled_clock_do_not_count(self):
        timer = Timer()
        timer.seconds = lambda: 9 if timer.samples <= 3 else 1e-3
        power = Power(clock=lambda: 600 if timer.samples <= 3 else 1500)
        times = measure(timer, power)
        self.assertEqual((times["latency_ms"], times["discarded"], times["clock_mhz"], times["power_w"]), ("1", 3, 1500, 70.5))

    def test_a_clock_that_stays_low_is_how_the_card_runs_and_stands_in_the_row(self):
        times = measure(Timer(), Power(clock=lambda: 800))
        self.assertEqual((times["discarded"], times["clock_mhz"]), (20, 800))

    def test_another_process_on_the_gpu_leaves_no_latency(self):
        counts = iter([1, 1, 1])
        power = Power()
        power.processes = lambda: next(counts, 0) + 1
        with self.assertRaisesRegex(RuntimeError, "another process"):
            measure(Timer(), power)

    def test_without_nvml_nothing_is_known_and_everything_counts(self):
        power = campaign.Power("cpu")
        self.assertEqual(measure(Timer(), power)["clock_mhz"], "")


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "models.csv")

    def tearDown(self):
        self.folder.cleanup()

    def rows(self):
        return campaign.Rows(self.path, COLUMNS, KEY)

    def text(self):
        with open(self.path) as file:
            return file.read()

    def test_rows_are_appended_once_and_a_torn_one_is_cut_off(self):
        rows = self.rows()
        rows.add(model="a", batch=1, mode="end_to_end", latency_ms=2, problem="")
        rows.file.close()
        complete = self.text()
        with open(self.path, "a") as file:
            file.write("b,1,end_to")
        rows = self.rows()
        self.assertEqual(self.text(), complete)
        self.assertTrue(rows.has(model="a", batch=1, mode="end_to_end"))
        self.assertFalse(rows.has(model="b", batch=1, mode="end_to_end"))
        rows.add(model="b", batch=1, mode="end_to_end", latency_ms=3, problem="")
        self.assertEqual(self.text(), complete + "b,1,end_to_end,3,\n")

    def test_a_file_of_another_campaign_is_not_continued(self):
        with open(self.path, "w") as file:
            file.write("model,latency_ms\na,1\n")
        with self.assertRaisesRegex(RuntimeError, "other columns"):
            self.rows()

    def test_a_network_that_failed_is_known_to_have_failed(self):
        self.rows().add(model="a", batch=8, mode="end_to_end", latency_ms="", problem="OutOfMemoryError: 20 GiB")
        rows = self.rows()
        self.assertTrue(rows.has_failed(model="a", batch=8, mode="end_to_end"))
        self.assertFalse(rows.has_failed(model="a", batch=4, mode="end_to_end"))

    def test_what_another_process_disturbed_is_measured_again(self):
        rows = self.rows()
        rows.add(model="a", batch=8, mode="end_to_end", latency_ms="", problem="RuntimeError: " + campaign.DISTURBED)
        self.assertFalse(rows.has(model="a", batch=8, mode="end_to_end"))
        self.assertFalse(self.rows().has_failed(model="a", batch=8, mode="end_to_end"))


class Networks(unittest.TestCase):
    """Campaign.measure_networks with networks that a test invents."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.campaign = campaign.Campaign.__new__(campaign.Campaign)
        self.campaign.device, self.campaign.gpu = "cpu", "fake"
        self.campaign.timer, self.campaign.power = Timer(), campaign.Power("cpu")
        self.campaign.limits, self.campaign.batches = (3, 0, 0.01), (1, 2, 4)
        self.campaign.budget = campaign.Budget(1000)
        self.campaign.arguments = type("Arguments", (), {"output": self.folder.name})()
        self.built = []
        self.largest = 4
        self.campaign.network = self.network
        sys.modules["frameworks"] = type("Frameworks", (), {"wrap": staticmethod(lambda *_: lambda: None)})

    def tearDown(self):
        del sys.modules["frameworks"]
        self.folder.cleanup()

    def network(self, text, bindings, precision, model="", weight_sets=1):
        self.built.append(bindings["batch"])
        if bindings["batch"] > self.largest:
            raise MemoryError("out of memory: 20 GiB")
        return None, (), "fake"

    def measure(self):
        self.built.clear()
        self.campaign.measure_networks("models.csv", ("pytorch-eager",), ("fp32",), ("resnet18",), (1, 2, 4))
        with open(os.path.join(self.folder.name, "models.csv")) as file:
            return file.read().splitlines()

    def test_every_mode_of_every_batch_once_however_often_it_is_called(self):
        lines = self.measure()
        self.assertEqual((len(lines), self.built), (1 + 9, [1, 2, 4]))
        self.assertEqual((self.measure(), self.built), (lines, []))

    def test_out_of_memory_ends_a_curve_in_this_call_and_in_the_next(self):
        self.largest = 1
        lines = self.measure()
        self.assertEqual((len(lines), self.built), (1 + 3 + 1, [1, 2]))
        self.assertIn("out of memory", lines[-1])
        self.assertEqual((self.measure(), self.built), (lines, []))

    def test_a_budget_that_is_spent_ends_the_slice_and_the_next_call_goes_on(self):
        self.campaign.budget = campaign.Budget(0)
        self.assertEqual(len(self.measure()), 1)
        self.campaign.budget = campaign.Budget(1000)
        self.assertEqual(len(self.measure()), 10)

    def test_a_gpu_that_is_lost_ends_the_process_instead_of_failing_every_case(self):
        def lose(*arguments, **options):
            self.campaign.timer.lost = True
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self.campaign.network = lose
        with self.assertRaises(campaign.Lost):
            self.measure()

    def test_a_full_disk_is_no_fault_of_the_network(self):
        def full(self, **row):
            raise OSError(28, "No space left on device")
        add, campaign.Rows.add = campaign.Rows.add, full
        try:
            with self.assertRaises(OSError):
                self.measure()
        finally:
            campaign.Rows.add = add


class Design(unittest.TestCase):
    def test_wave_edges_are_both_sides_of_one_and_two_waves(self):
        cases = campaign.wave_edges(132)
        shapes = {case["shape"] for case in cases}
        for tiles in (131, 132, 133, 263, 264, 265):
            self.assertIn(f"k=1024 m={128 * tiles} n=128", shapes)
            self.assertIn(f"b={tiles} k=64 m=128 n=128", shapes)
        self.assertEqual(len(shapes), 12)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs torch")
    def test_wave_edges_run(self):
        import text_graph
        for case in campaign.wave_edges(1):
            if "=0" in case["shape"]:
                continue  # no tile less than one
            network = text_graph.Network(case["graph"], {}, "fp32", "cpu")
            self.assertEqual(len(network(*network.inputs())[0].shape), 2 if case["op"] == "linear" else 3)


if __name__ == "__main__":
    unittest.main()
