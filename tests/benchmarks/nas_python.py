"""Architectures per second from Python, by processor time; tests/benchmarks/nas_bench.cpp does the same in C++ (nasbench201_large)."""

import time
import warnings

import ftax
import numpy as np

warnings.simplefilter("ignore")
cost = ftax.nas.CostFunction("nasbench201", "rtx-2080-ti", host="reference", batches=[1, 32, 64])
archs = cost.random(200_000, np.random.default_rng(1))
cost(archs)
seconds = []
for _ in range(7):
    start = time.process_time()
    cost(archs)
    seconds.append(time.process_time() - start)
print(f"nasbench201 from Python: {np.median(seconds) * 1e3:.0f} ms, {len(archs) / np.median(seconds) / 1e3:.1f} k networks/s")
