"""The campaign's rules without a GPU and without torch: what counts, what is kept, what is measured again, what becomes of a
process that stalls or dies."""

import csv
import os
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "calibration", "bench", "python"))
import campaign  # noqa: E402
import design  # noqa: E402
import measuring  # noqa: E402
import nvml  # noqa: E402
import recording  # noqa: E402
import stages  # noqa: E402

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
        self.assertTrue(rows.has(model="a", batch=1, mode="end_to_end"))
        self.assertFalse(rows.has(model="b", batch=1, mode="end_to_end"))
        rows.add(model="b", batch=1, mode="end_to_end", latency_ms=3, problem="")
        self.assertEqual(self.text(), complete + "b,1,end_to_end,3,\n")

    def test_the_kernels_of_a_case_are_written_as_one_piece_under_their_whole_names(self):
        name = "cudnn::" + 40 * "ampere_scudnn_128x64_" + "nn"
        with mock.patch("builtins.open", wraps=open) as opened:
            rows = self.rows()
            rows.add({"model": name, "batch": 1, "mode": "x"}, {"model": "relu", "batch": 1, "mode": "x"})
        self.assertEqual(opened.call_count, 1)
        self.assertEqual([line.split(",")[0] for line in self.text().splitlines()], ["model", name, "relu"])
        self.assertTrue(self.rows().has(model="relu", batch=1, mode="x"))

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
        rows.add(model="a", batch=8, mode="end_to_end", latency_ms="", problem="RuntimeError: " + recording.DISTURBED)
        self.assertFalse(rows.has(model="a", batch=8, mode="end_to_end"))
        self.assertFalse(self.rows().has_failed(model="a", batch=8, mode="end_to_end"))


class Networks(unittest.TestCase):
    """Stages of networks that a test invents."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.campaign = stages.Campaign.__new__(stages.Campaign)
        self.campaign.device, self.campaign.gpu = "cpu", "fake"
        self.campaign.timer, self.campaign.power = Timer(), nvml.Nvml("cpu")
        self.campaign.limits = (3, 0, 0.01)
        self.campaign.options = design.Options("cpu", smoke=True)
        self.campaign.end = time.monotonic() + 1000
        self.campaign.reporter = stages.Reporter(None)
        self.campaign.arguments, self.campaign.only = type("Arguments", (), {"output": self.folder.name})(), {}
        self.campaign.check_finite = lambda outputs: None
        self.built, self.largest = [], 128
        self.campaign.network = self.network
        self.models, design.SMOKE_MODELS = design.SMOKE_MODELS, ("resnet18",)
        self.batches, design.Options.batches = design.Options.batches, (1, 2, 16)
        sys.modules["networks"] = mock.Mock(waits=lambda called: 2)
        sys.modules["frameworks"] = type("Frameworks", (), {"wrap": staticmethod(lambda *_: lambda: None)})

    def tearDown(self):
        del sys.modules["frameworks"], sys.modules["networks"]
        design.SMOKE_MODELS, design.Options.batches = self.models, self.batches
        self.folder.cleanup()

    def network(self, text, bindings, precision, model="", weight_sets=1):
        self.built.append(bindings["batch"])
        if bindings["batch"] > self.largest:
            raise MemoryError("out of memory: 20 GiB")
        return lambda: None, (), "fake"

    def measure(self):
        self.built.clear()
        self.campaign.run("models")
        path = os.path.join(self.folder.name, "models.csv")
        if not os.path.exists(path):
            return []
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def test_every_mode_of_every_batch_once_however_often_it_is_called(self):
        rows = self.measure()
        self.assertEqual(self.built, [1, 2, 16])
        # The host's time ends where the launch queue may be full.
        self.assertEqual([(row["batch"], row["mode"]) for row in rows],
                         [(batch, mode) for batch in "12" for mode in ("end_to_end", "device_hot", "host_dispatch")] +
                         [("16", "end_to_end"), ("16", "device_hot")])
        self.assertEqual((self.measure(), self.built), (rows, []))

    def test_rows_say_how_often_the_network_waits_for_the_device(self):
        self.assertEqual({row["waits"] for row in self.measure() if row["mode"] == "host_dispatch"}, {"2"})

    def test_out_of_memory_ends_a_curve_in_this_call_and_in_the_next(self):
        self.largest = 1
        rows = self.measure()
        self.assertEqual((len(rows), self.built), (3 + 1, [1, 2]))
        self.assertIn("out of memory", rows[-1]["problem"])
        self.assertEqual((self.measure(), self.built), (rows, []))

    def test_a_network_that_overflows_has_a_problem_and_no_latency(self):
        def overflowed(outputs):
            raise stages.NotFinite("an output is infinite or not a number")
        self.campaign.check_finite = overflowed
        self.assertEqual([(row["latency_ms"], row["problem"]) for row in self.measure()],
                         [("", "NotFinite: an output is infinite or not a number")])

    def test_a_budget_that_is_spent_ends_the_stage_and_the_next_call_goes_on(self):
        self.campaign.end = time.monotonic()
        self.assertEqual(self.measure(), [])
        self.campaign.end = time.monotonic() + 1000
        self.assertEqual(len(self.measure()), 8)

    def test_a_gpu_that_is_lost_ends_the_process_instead_of_failing_every_case(self):
        def lose(*arguments, **options):
            self.campaign.timer.lost = True
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self.campaign.network = lose
        with self.assertRaises(stages.Lost):
            self.measure()

    def test_a_full_disk_is_no_fault_of_the_network(self):
        def full(self, **row):
            raise OSError(28, "No space left on device")
        add, recording.Rows.add = recording.Rows.add, full
        try:
            with self.assertRaises(OSError):
                self.measure()
        finally:
            recording.Rows.add = add


    def read(self, name):
        with open(os.path.join(self.folder.name, name), newline="") as file:
            return list(csv.DictReader(file))

    def test_a_libtorch_library_that_does_not_load_costs_its_own_rows_and_they_say_so(self):
        def load(path, device):
            raise OSError(f"{path}: undefined symbol: missing_operand")
        self.campaign.arguments.libtorch = "carried.so"
        self.campaign.network = lambda *arguments: (lambda: None, (), "fake")
        with mock.patch.dict(sys.modules, libtorch=mock.Mock(LibtorchTimer=load)):
            self.campaign.dispatch()
        problems = {}
        for row in self.read("dispatch.csv"):
            problems.setdefault(row["framework"], set()).add(row["problem"])
        self.assertEqual(problems, {"pytorch-eager": {""}, "torchscript": {""}, "libtorch": {
            "RuntimeError: no LibTorch library: OSError: carried.so: undefined symbol: missing_operand"}})
        # The next call finds the library.
        with mock.patch.dict(sys.modules, libtorch=mock.Mock(LibtorchTimer=lambda *_: mock.Mock(sample=lambda *_: 1e-3, clock_mhz=0, clock=time.monotonic))):
            self.campaign.dispatch()
        self.assertEqual(sum(row["framework"] == "libtorch" and not row["problem"] for row in self.read("dispatch.csv")),
                         sum(row["framework"] == "torchscript" for row in self.read("dispatch.csv")))

    def test_kernels_are_recorded_under_their_whole_names(self):
        name = "cudnn::" + 9 * "ampere_scudnn_128x64_" + "nn"
        record = {"name": name, "grid": [4, 1, 1], "block": [128, 1, 1], "registers": 32, "shared_bytes": 0, "start_us": 0,
                  "duration_us": 2.5}
        self.campaign.options = design.Options("cuda", smoke=True)
        tracing = mock.Mock(trace=lambda run, synchronize: {"kernels": [record], "problem": ""})
        with mock.patch.dict(sys.modules, tracing=tracing):
            self.campaign.traces()
        self.assertEqual([row["kernel"] for row in self.read("kernels.csv")], [name])

    def test_another_card_does_not_continue_the_rows_of_the_first(self):
        self.campaign.torch = mock.Mock(__version__="2", version=mock.Mock(cuda="13"))
        self.campaign.gpu = "NVIDIA H100 80GB HBM3"
        self.campaign.environment()
        self.campaign.environment()
        self.campaign.gpu = "NVIDIA H200"
        with self.assertRaisesRegex(RuntimeError, "is of NVIDIA H100 80GB HBM3, this is NVIDIA H200"):
            self.campaign.environment()


def fake(fault):
    """A stage that writes rows as stages.py does, and meets with what a test names: "stall MODEL", "slow MODEL", "die MODEL",
    "fail", "spoil": every row has a problem; "hang": it never begins."""
    fault, _, model = fault.partition(" ")

    def work(name, arguments, smoke, only, left_s, report_to):
        if name == "environment":
            return 0
        if fault == "fail":
            return 1
        if fault == "hang":
            time.sleep(60)
        reporter, stage = stages.Reporter(report_to), design.STAGES[name]
        rows = recording.Rows(os.path.join(arguments.output, stage.file), list(stage.columns), stage.key)
        for case in design.remaining(name, design.Options("cpu", True), rows):
            reporter.tell(begin=case, limit_s=60 if fault == "slow" else 1)
            if case["model"] == model:
                if fault in ("stall", "slow"):
                    os.system("sleep 60 &")  # a compiler of its own
                    time.sleep(60)
                os.kill(os.getpid(), signal.SIGKILL)
            for mode in design.modes_of(case):
                rows.add(**case, mode=mode, latency_ms=1, problem="spoiled" if fault == "spoil" else "")
        return 0
    return work


class Supervising(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.start_limit_s, campaign.START_LIMIT_S = campaign.START_LIMIT_S, 2
        self.stderr, sys.stderr = sys.stderr, open(os.devnull, "w")

    def tearDown(self):
        campaign.START_LIMIT_S = self.start_limit_s
        sys.stderr.close()
        sys.stderr = self.stderr
        self.folder.cleanup()

    def run_models(self, fault, budget_s=100):
        """Rows by model (their problems), and what the campaign says of itself."""
        arguments = type("Arguments", (), {"output": self.folder.name, "device": "cpu", "smoke": True, "libtorch": None,
                                           "budget_s": budget_s, "stages": ["models"]})()
        run = campaign.Campaign(arguments, fake(fault))
        run.run()
        problems = {}
        path = os.path.join(self.folder.name, "models.csv")
        if os.path.exists(path):
            with open(path, newline="") as file:
                for row in csv.DictReader(file):
                    problems.setdefault(row["model"], []).append(row["problem"])
        return problems, run.failures

    def test_every_case_is_measured(self):
        self.assertEqual(self.run_models(""), ({"squeezenet": [""] * 6, "distilbert": [""] * 6}, []))

    def test_a_case_that_stalls_has_a_row_and_the_others_are_measured(self):
        begin = time.monotonic()
        problems, failures = self.run_models("stall squeezenet")
        self.assertEqual(problems, {"squeezenet": ["stalled: no answer within 1 s; its process was ended"],
                                    "distilbert": [""] * 6})
        self.assertEqual(failures, [])
        self.assertLess(time.monotonic() - begin, 30)

    def test_a_case_that_the_end_of_the_call_cuts_off_is_left_to_the_next_call(self):
        begin = time.monotonic()
        self.assertEqual(self.run_models("slow distilbert", budget_s=3), ({"squeezenet": [""] * 3}, []))
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(self.run_models("")[0]["distilbert"], [""] * 6)

    def test_a_case_that_takes_its_process_with_it_has_a_row_and_the_others_are_measured(self):
        problems, failures = self.run_models("die distilbert")
        self.assertEqual(problems, {"squeezenet": [""] * 6, "distilbert": ["its process was ended by signal 9"]})
        self.assertEqual(failures, [])

    def test_a_process_that_ends_without_a_row_fails_the_campaign(self):
        self.assertEqual(self.run_models("fail"), ({}, ["models: its process ended with 1"]))

    def test_a_process_that_never_begins_fails_the_campaign(self):
        self.assertEqual(self.run_models("hang"),
                         ({}, ["models: stalled: no answer within 2 s; its process was ended"]))

    def test_rows_that_all_have_a_problem_fail_the_campaign(self):
        self.assertEqual(self.run_models("spoil")[1], ["models: each of its 12 rows has a problem"])

    def test_too_many_files_do_not_pass(self):
        arguments = type("Arguments", (), {"output": self.folder.name, "budget_s": 1})()
        for i in range(9):
            open(os.path.join(self.folder.name, str(i)), "w").close()
        run = campaign.Campaign(arguments)
        run.check_output()
        self.assertEqual(len(run.failures), 1)


class Design(unittest.TestCase):
    gpu = design.Options("cuda")

    def empty(self, stage):
        known = design.STAGES[stage]
        return recording.Rows("/nowhere/" + known.file, list(known.columns), known.key)

    def cases(self, stage, smoke=False):
        return [] if stage == "environment" else design.remaining(
            stage, design.Options("cuda", smoke), self.empty(stage))

    def expected_s(self, *names, smoke=False):
        return sum(design.expected_s(stage, self.cases(stage, smoke)) for stage in names)

    def test_the_first_call_reaches_every_path_and_what_no_table_has_and_three_calls_hold_the_rest(self):
        order = list(design.STAGES)
        self.assertEqual(order, ["environment", "frameworks", "dispatch", "models", "settings", "operators", "compiled", "traces"])
        smoke = self.expected_s(*order, smoke=True)
        self.assertLessEqual(smoke, design.SMOKE_S)
        self.assertLessEqual(smoke + self.expected_s("frameworks"), design.CALLS_S[0])
        self.assertLessEqual(sum(design.CALLS_S) + 3 * design.START_OF_MACHINE_S, 30 * 60)
        self.assertLessEqual(max(design.CALLS_S), 570)  # of 600: Python, the last case, copying
        order.remove("compiled")  # takes what is left
        self.assertLessEqual(smoke + self.expected_s(*order), sum(design.CALLS_S))

    def test_one_case_of_each_path_counts_and_leaves_none_out(self):
        for stage in ("frameworks", "dispatch", "models", "settings", "operators", "traces"):
            everything = [{**case, "graph": ""} for case in self.cases(stage)]
            smoke = self.cases(stage, smoke=True)
            for case in smoke:
                self.assertIn({**case, "graph": ""}, everything, stage)
            for key in ("framework", "layout", "op"):
                self.assertEqual({case.get(key) for case in smoke}, {case.get(key) for case in everything}, (stage, key))
        self.assertEqual({case["precision"] for case in self.cases("operators", smoke=True)},
                         {*design.PRECISIONS, "fp8", "int4-weights"})
        self.assertEqual({case["precision"] for case in self.cases("operators")[:1]}, {"fp16"})
        self.assertEqual(self.cases("operators")[0]["op"], "attention")

    def test_each_framework_can_be_fitted_with_a_network_left_out_and_one_that_did_not_compile(self):
        cases = design.framework_cases(self.gpu)
        for framework in {case["framework"] for case in cases}:
            rows = [case["model"] for case in cases if case["framework"] == framework and
                    "host_dispatch" in design.modes_of(case)]
            two = sum(rows.count(model) for model in design.FRAMEWORK_MODELS[:2])
            self.assertGreaterEqual(len(rows) - two, 8, framework)

    def test_at_most_eight_files(self):
        self.assertLessEqual(len({stage.file for stage in design.STAGES.values()}) + 1, campaign.MOST_FILES)  # and the probe

    def test_dispatch_has_every_kind_of_operator_in_three_precisions_under_every_framework(self):
        cases = [case for case in design.dispatch_cases(self.gpu) if case["repetition"] == 0]
        shapes = {(case["op"], case["shape"]) for case in cases}
        convolutions = [shape for op, shape in shapes if op == "conv"]
        self.assertEqual(sum("groups" not in shape for shape in convolutions), 2)  # dense and 1×1
        self.assertIn("cin=64 cout=64 groups=64", " ".join(convolutions))
        grouped = [shape for shape in convolutions if "groups=32" in shape]
        self.assertEqual({shape[shape.index("kernel"):][:8] for shape in grouped}, {"kernel=1", "kernel=3"})
        self.assertIn(("linear", "k=64 m=8 n=64"), shapes)
        self.assertEqual({case["precision"] for case in cases}, {"fp32", "fp16", "bf16"})
        self.assertEqual(len(cases), len(shapes) * 3 * len({case["framework"] for case in cases}))
        self.assertIn("libtorch", {case["framework"] for case in cases})

    def test_operators_hold_what_language_models_run(self):
        cases = design.operator_cases(self.gpu)
        shapes = {(case["op"], case["shape"]) for case in cases}
        self.assertIn(("attention", "b=1 causal=1 d=128 heads=32 kv_heads=8 s=8192"), shapes)
        self.assertIn(("attention", "b=64 d=128 heads=32 kv=2048 kv_heads=8 s=1"), shapes)
        for op in ("rmsnorm", "rope", "silu_mul"):
            self.assertIn(op, {case["op"] for case in cases})
        self.assertLessEqual({"fp8", "int4-weights"}, {case["precision"] for case in cases})
        largest = max(eval(case["shape"].replace("k=", "").replace(" m=", "*").replace(" n=", "*"))
                      for case in cases if case["op"] == "linear")
        self.assertGreater(largest, 1 << 37)

    def test_rotated_weights_exceed_the_cache_twice_in_their_own_type(self):
        l2 = 50 << 20
        properties = type("Properties", (), {"L2_cache_size": l2})
        one = stages.Campaign.__new__(stages.Campaign)
        one.device = "cuda"
        one.torch = type("Torch", (), {"cuda": type("Cuda", (), {"get_device_properties": staticmethod(lambda _: properties)})})
        tensors = 0
        for case in design.operator_cases(self.gpu):
            sets = one.weight_sets(case)
            tensors += sets * case.get("graph", "").count("\nweight ")
            weights = case["weight_bytes"] * {"fp16": 0.5, "bf16": 0.5}.get(case["precision"], 1)
            if weights >= 25 << 10:
                self.assertGreaterEqual(sets * weights, 2 * l2, case["shape"])
            else:
                self.assertLessEqual(sets, 64)
        self.assertLess(tensors, 1_000_000)

    def test_wave_edges_are_both_sides_of_one_and_two_waves(self):
        shapes = {case["shape"] for case in design.operator_cases(self.gpu)}
        for tiles in (131, 132, 133, 263, 264, 265):
            self.assertIn(f"k=1024 m={128 * tiles} n=128", shapes)
            self.assertIn(f"b={tiles} k=64 m=128 n=128", shapes)


if __name__ == "__main__":
    unittest.main()
