"""Runs networks for `ftax measure` and `ftax calibrate`: one JSON object a line on standard input, one answer a line on
standard output. A failure is an answer, too: {"error": kind, "message": text}."""

import json
import os
import sys
import warnings


def environment(arguments):
    import torch
    found = {"framework_version": torch.__version__, "python": sys.version.split()[0], "threads": torch.get_num_threads()}
    if arguments["device"] != "cpu":
        properties = torch.cuda.get_device_properties(0)
        found.update(device=properties.name, cuda=torch.version.cuda, l2_bytes=properties.L2_cache_size,
                     multiprocessors=properties.multi_processor_count, memory_bytes=properties.total_memory)
    if arguments["framework"].startswith("onnxruntime"):
        import onnxruntime
        found["framework_version"] = onnxruntime.__version__
    return found


class Worker:
    def __init__(self):
        self.run = None
        self.kept = None

    def start(self, request):
        import torch
        import timing
        torch.set_grad_enabled(False)
        self.arguments = request
        self.timer = timing.timer(request["device"], request["threads"])
        torch.backends.cuda.matmul.allow_tf32 = request["precision"] == "tf32"
        return {"environment": environment(request)}

    def prepare(self, request):
        import frameworks
        import networks
        import torch
        self.run = self.kept = None  # the last network's memory first
        # Networks run with PyTorch's defaults (convolutions in TF32), operators in exactly the precision they name.
        precision = self.arguments["precision"]
        torch.backends.cudnn.allow_tf32 = precision == "tf32" or (bool(request["model"]) and precision == "fp32")
        network, inputs, note = networks.build(request, self.arguments)
        self.kept = network
        self.run = frameworks.wrap(self.arguments["framework"], network, inputs, self.arguments["precision"],
                                   self.arguments["device"])
        self.mode = request["mode"]
        for _ in range(request["warm_ups"]):
            self.run()
        self.timer.synchronize()
        return {"note": note}

    def sample(self, request):
        return {"seconds": self.timer.sample(self.run, self.mode, request["calls"])}


def answer(worker, line):
    request = json.loads(line)
    try:
        return getattr(worker, request.pop("do"))(request)
    except ImportError as error:
        return {"error": "unsupported", "message": str(error)}
    except Exception as error:  # whatever a framework throws becomes an answer; the caller decides
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        memory = isinstance(error, MemoryError) or "out of memory" in text.lower() or "allocate memory" in text.lower()
        kind = "out_of_memory" if memory else "unsupported" if type(error).__name__ == "Unsupported" else "failed"
        return {"error": kind, "message": text}


def main():
    # Answers go to a copy of standard output; what frameworks print goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    worker = Worker()
    for line in sys.stdin:
        answers.write(json.dumps(answer(worker, line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
