"""One process of the campaign (campaign.py forks it): measures the cases of one stage that its file lacks, and reports
each before it begins, so that somebody else can say which one stalled or took the process with it."""

import json
import os
import sys
import time
import traceback
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import design  # noqa: E402
from measuring import Limits, attempt, measure, reason  # noqa: E402
from nvml import Nvml  # noqa: E402
from recording import NO_LIBRARY  # noqa: E402

LOST = 3  # exit code: no kernel runs any more in this process; another process may go on
# Of a weight that many kernels' worth of would not fill the cache before tensors are all a process makes: ftax counts the
# same number (calibration/bench/operator_cases.cpp).
SMALL_BYTES, SMALL_COPIES = 25 << 10, 64


class Lost(Exception):
    pass


class NotFinite(Exception):
    """An overflowing network draws different power and is not a valid measurement."""


class Reporter:
    """Reports progress to the parent process; one JSON object per line."""

    def __init__(self, descriptor):
        self.pipe = os.fdopen(descriptor, "w") if descriptor is not None else None

    def tell(self, **message):
        if self.pipe:
            self.pipe.write(json.dumps(message) + "\n")
            self.pipe.flush()


class Campaign:
    """`only`: the value of a key that cases of this process have."""

    def __init__(self, arguments, smoke, only, left_s, report_to):
        import timing
        import torch
        torch.set_grad_enabled(False)
        self.arguments, self.only, self.device, self.torch = arguments, only, arguments.device, torch
        self.timer = timing.timer(self.device, 1)
        self.power = Nvml(self.device)
        self.end = time.monotonic() + left_s
        self.reporter = Reporter(report_to)
        self.gpu = torch.cuda.get_device_name(0) if self.device != "cpu" else "cpu"
        self.limits = Limits(3, 0, 0.01) if arguments.smoke else Limits(10, 0.03, 0.25)
        self.options = design.Options(self.device, smoke)

    def path(self, name):
        return os.path.join(self.arguments.output, name)

    def begin(self, stage, case):
        """Announces a case; False if no time is left for it."""
        known = design.STAGES[stage]
        if self.end < time.monotonic():
            return False
        key = {name: case[name] for name in (*known.key, "mode") if name in case}
        self.reporter.tell(begin=key, limit_s=known.limit_s)
        return True

    def network(self, text, bindings, precision, model="", weight_sets=1):
        import networks
        request = {"graph": text, "bindings": bindings, "model": model, "weight_sets": weight_sets}
        return networks.build(request, {"precision": precision, "device": self.device})

    def check_finite(self, outputs):
        import networks
        if not networks.finite(outputs):
            raise NotFinite("an output is infinite or not a number")

    def check_alive(self):
        """A kernel that fails takes the process's context with it: every case after it would fail, too."""
        try:
            self.timer.synchronize()
        except Exception as error:
            raise Lost(reason(error)) from error

    # ---- stages ------------------------------------------------------------------------------------------------

    def environment(self):
        torch = self.torch
        call = {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "device": self.gpu,
                "torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0],
                "logical_cores": os.cpu_count()}
        with open("/proc/cpuinfo") as file:
            call["cpu"] = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
        for what in ("driver", "largest_clock_mhz", "power_limit_w", "mig", "processes"):
            call[what] = self.power.read(what)
        path = self.path("environment.json")
        found = {"schema_version": 2, "calls": []}
        if os.path.exists(path):
            with open(path) as file:
                found = json.load(file)
            before = found["calls"][-1]["device"]
            if before != self.gpu:
                raise RuntimeError(f"{path} is of {before}, this is {self.gpu}: one card a folder")
        if self.device != "cpu":
            p = torch.cuda.get_device_properties(0)
            call.update(multiprocessors=p.multi_processor_count, l2_bytes=p.L2_cache_size, memory_bytes=p.total_memory,
                        compute_capability=f"{p.major}.{p.minor}", cudnn=torch.backends.cudnn.version())
        found["calls"].append(call)
        with open(path + ".new", "w") as file:
            json.dump(found, file, indent=1)
        os.replace(path + ".new", path)

    def rows(self, stage):
        return design.STAGES[stage].rows(self.arguments.output)

    def measure_cases(self, stage, run_case):
        """Every case that the file lacks and this process is asked for, until the budget ends."""
        import networks
        rows = self.rows(stage)
        for at, case in enumerate(design.remaining(stage, self.options, rows)):
            if any(case[key] != value for key, value in self.only.items()):
                continue
            if design.is_done(stage, case, rows):
                continue  # a smaller batch of it has failed meanwhile
            if not self.begin(stage, case):
                return
            problem = run_case(rows, case)
            if problem:
                self.check_alive()
            if at % 50 == 0 or "model" in case:
                networks.free(self.device)

    def weight_sets(self, case):
        """Copies of the weights that together exceed the L2 cache twice in the type that is measured, so that a call finds
        them where a forward pass of a large network does."""
        weights = case["weight_bytes"]
        if weights == 0:
            return 1
        element = {"fp16": 2, "bf16": 2, "fp32": 4, "tf32": 4}.get(case["precision"])
        if element:
            weights = weights * element // 4  # the design counts four bytes an element
        l2 = self.torch.cuda.get_device_properties(0).L2_cache_size if self.device != "cpu" else 8 << 20
        copies = max(2, -(-2 * l2 // weights))
        return min(copies, SMALL_COPIES) if weights < SMALL_BYTES else copies

    def operator(self, rows, case):
        def times():
            sets = self.weight_sets(case)
            if "graph" in case:
                network, inputs, _ = self.network(case["graph"], {}, case["precision"], weight_sets=sets)
                run = lambda: network(*inputs)  # noqa: E731
            else:
                import quantised
                run = quantised.build(case, self.device, sets)
            self.check_finite(run())
            return measure(self.timer, run, "device_hot", self.power, self.limits)
        result = attempt(times)
        rows.add(gpu=self.gpu, **case, **result)
        return result.get("problem")

    def dispatch(self):
        """Host time per operator. It differs from process to process, so that each repetition gets one of its own."""
        import frameworks
        library, libtorch_timer, why_not = self.arguments.libtorch, None, "campaign.sh found and built none"
        if library:
            try:
                import libtorch
                libtorch_timer = libtorch.LibtorchTimer(library, self.device)
            except OSError as error:
                why_not = reason(error)

        def times(case):
            timer = self.timer
            if case["framework"] == "libtorch":
                if not libtorch_timer:
                    raise RuntimeError(f"{NO_LIBRARY}: {why_not}")
                timer = libtorch_timer
                timer.prepare(case["graph"], case["precision"], "host_dispatch")
                run = timer.run
            else:
                network, inputs, _ = self.network(case["graph"], {}, case["precision"])
                run = frameworks.wrap(case["framework"], network, inputs, case["precision"], self.device)
            return measure(timer, run, "host_dispatch", self.power, self.limits, case["graph"].count(" = "))

        def one(rows, case):
            result = attempt(times, case)
            rows.add(gpu=self.gpu, **case, **result)
            return result.get("problem")
        self.measure_cases("dispatch", one)

    def text_of(self, model):
        with open(os.path.join(design.ROOT, "graphs", "zoo", model + ".txt")) as file:
            return file.read()

    def measure_network(self, rows, label):
        """Times one network at one batch in every mode that the file lacks. Returns why it cannot be run, or ''."""
        import frameworks
        import networks
        text = self.text_of(label["model"])
        missing = [mode for mode in design.modes_of(label) if not rows.has(**label, mode=mode)]
        common = dict(gpu=self.gpu, seq=128 if "seq" in text else "", **label)
        run = network = None
        mode, problem = missing[0], ""
        try:
            bindings = {"batch": label["batch"], "seq": 128}
            network, inputs, source = self.network(text, bindings, label["precision"], label["model"])
            if label["layout"] == "nhwc":
                network, inputs = frameworks.channels_last(network, inputs)
            self.check_finite(network(*inputs))
            common["waits"] = networks.waits(networks.operators(network, inputs)) if "host_dispatch" in missing else ""
            run = frameworks.wrap(label["framework"], network, inputs, label["precision"], self.device)
            count = sum(line.startswith("%") for line in text.splitlines())
            for mode in missing:
                times = measure(self.timer, run, mode, self.power, self.limits, count)
                rows.add(**common, mode=mode, source=source, **times)
        except OSError:
            raise  # the disk is full, not the network at fault
        except Exception as error:
            problem = reason(error)
            rows.add(**common, mode=mode, problem=problem)
        return problem

    def traces(self):
        """Kernels of single calls. The profiler stays attached: nothing is timed in this process."""
        import tracing

        def one(rows, case):
            def kernels_of():
                network, inputs, _ = self.network(self.text_of(case["model"]), {"batch": case["batch"], "seq": 128},
                                                  case["precision"], case["model"])
                network(*inputs)
                return tracing.trace(lambda: network(*inputs), self.timer.synchronize)
            found = attempt(kernels_of)
            problem, kernels = found["problem"], found.get("kernels", [])
            rows.add(*({**case, "index": index, "kernel": kernel["name"], "grid": "x".join(map(str, kernel["grid"])),
                        "block": "x".join(map(str, kernel["block"])), "registers": kernel["registers"],
                        "shared_bytes": kernel["shared_bytes"], "start_us": kernel["start_us"],
                        "duration_us": kernel["duration_us"]} for index, kernel in enumerate(kernels)),
                     **{**case, "problem": problem})
            return problem
        self.measure_cases("traces", one)

    def run(self, stage):
        if stage in design.NETWORK_STAGES:
            self.measure_cases(stage, self.measure_network)
        elif stage == "operators":
            self.measure_cases(stage, self.operator)
        else:
            getattr(self, stage)()


def work(stage, *arguments):
    """What a process of a stage does. Returns its exit code."""
    warnings.simplefilter("ignore")
    try:
        Campaign(*arguments).run(stage)
        return 0
    except Lost as error:
        print(f"campaign: the GPU is lost to this process, another one goes on: {error}", file=sys.stderr)
        return LOST
    except (RuntimeError, OSError) as error:
        print(f"campaign: {error}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return 1
