#!/usr/bin/env python3
"""Times what a node and a run of ONNX Runtime cost the CPU, by version.

    onnxruntime_nodes.py write FOLDER                        chains of tiny nodes, 20 and 220 long (needs onnx 1.14)
    onnxruntime_nodes.py measure FOLDER OUT.csv PYTHON...    a Python per version, measured in turn, --rounds times over

The CPU provider runs the chains in one thread without graph optimisations: the difference of the two is 200 nodes (executor,
kernel context, making of the result, and arithmetic on four values), the rest is the run: Session.run with arrays of numpy, or
with an I/O binding. Times are CPU time of one thread in ns, the least of several repetitions.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

LENGTHS = (20, 220)
RUNS, REPETITIONS = 200, 15
CHAINS = {
    "Add": ("x", "w"),
    "Relu": ("x",),
    "MatMul": ("x", "m"),
    "Softmax": ("x",),
    "Transpose": ("x",),
    "Reshape": ("x", "shape"),
}


def write(folder):
    import numpy
    from onnx import TensorProto, helper, numpy_helper, save

    for kind, inputs in CHAINS.items():
        for length in LENGTHS:
            nodes, last = [], "x"
            for i in range(length):
                names = [last if name == "x" else name for name in inputs]
                nodes.append(helper.make_node(kind, names, [f"t{i}"]))
                last = f"t{i}"
            weights = {
                "w": numpy.ones((2,), numpy.float32),
                "m": numpy.eye(2, dtype=numpy.float32),
                "shape": numpy.array([2, 2], numpy.int64),
            }
            values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", last)]
            tensors = [numpy_helper.from_array(weights[name], name) for name in sorted(set(inputs) - {"x"})]
            graph = helper.make_graph(nodes, kind, values[:1], values[1:], tensors)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
            model.ir_version = 8
            save(model, str(pathlib.Path(folder) / f"{kind}_{length}.onnx"))


def least_ns(body):
    times = []
    for _ in range(REPETITIONS):
        start = time.thread_time_ns()
        for _ in range(RUNS):
            body()
        times.append((time.thread_time_ns() - start) / RUNS)
    return min(times)


def worker(folder):
    """Prints a JSON object of times in this Python."""
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    x = numpy.ones((2, 2), numpy.float32)
    times = []
    for kind in CHAINS:
        runs = {}
        for length in LENGTHS:
            path = str(pathlib.Path(folder) / f"{kind}_{length}.onnx")
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            name = session.get_outputs()[0].name
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x))
            binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(x.copy()))
            runs["run", length] = least_ns(lambda: session.run(None, {"x": x}))
            runs["bound", length] = least_ns(lambda: session.run_with_iobinding(binding))
        short, long = LENGTHS
        node = (runs["bound", long] - runs["bound", short]) / (long - short)
        times.append({"chain": kind, "what": "node", "ns": round(node)})
        for what in ("run", "bound"):
            times.append({"chain": kind, "what": what, "ns": round(runs[what, short] - short * node)})
    print(json.dumps({"version": onnxruntime.__version__, "python": sys.version.split()[0], "times": times}))


def measure(folder, out, pythons, rounds):
    rows = []
    core = min(os.sched_getaffinity(0))
    for number in range(rounds):
        for python in pythons:
            run = subprocess.run(
                ["taskset", "-c", str(core), python, __file__, "worker", folder], check=True, capture_output=True, text=True
            )
            found = json.loads(run.stdout.splitlines()[-1])
            for row in found["times"]:
                rows.append({"onnxruntime": found["version"], "python": found["python"], "round": number, **row})
    with open(out, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["write", "measure", "worker"])
    parser.add_argument("folder")
    parser.add_argument("out", nargs="?")
    parser.add_argument("pythons", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.verb == "write":
        write(arguments.folder)
    elif arguments.verb == "worker":
        worker(arguments.folder)
    else:
        measure(arguments.folder, arguments.out, arguments.pythons, arguments.rounds)


if __name__ == "__main__":
    main()
