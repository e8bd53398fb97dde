"""Kernel records from a trace as torch.profiler writes it on a GPU (recorded form: torch 2.x, kineto)."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))
import tracing  # noqa: E402


def kernel(name, ts, dur, **args):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}


RECORDED = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 10, "tid": 10, "ts": 7000.1, "dur": 40.0, "args": {}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 10, "ts": 7020.0, "dur": 4.0,
         "args": {"correlation": 12}},
        kernel("relu", 7050.25, 1.5, correlation=13, grid=[4, 1, 1], block=[128, 1, 1]),
        kernel("ampere_sgemm_128x64_tn", 7030.0, 12.5, correlation=12, grid=[12, 3, 1], block=[256, 1, 1],
               **{"registers per thread": 122, "shared memory": 17408}),
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 7040.5, "dur": 4.0, "args": {}},
        kernel("still running", 0, 0),
        {"ph": "i", "cat": "kernel", "name": "an instant", "ts": 7031.0},
    ],
}


class Tracing(unittest.TestCase):
    def test_kernels_and_copies_in_order_of_start(self):
        kernels = tracing.kernels_of(RECORDED)
        self.assertEqual([k["name"] for k in kernels], ["ampere_sgemm_128x64_tn", "Memcpy HtoD", "relu"])
        first = kernels[0]
        self.assertEqual((first["grid"], first["block"]), ([12, 3, 1], [256, 1, 1]))
        self.assertEqual((first["registers"], first["shared_bytes"], first["correlation"]), (122, 17408, 12))
        self.assertEqual([k["start_us"] for k in kernels], [0, 10.5, 20.25])

    def test_a_trace_without_kernels_has_none(self):
        self.assertEqual(tracing.kernels_of({"traceEvents": []}), [])
        self.assertEqual(tracing.kernels_of({}), [])


if __name__ == "__main__":
    unittest.main()
