"""Ray scores architectures across processes; says how that compares with one process."""

import argparse
import time

import ftax
import numpy as np
import ray


@ray.remote(num_cpus=1)
class Scorer:
    """One process with its own cost function: blocks are timed once per process, archs travel as arrays."""

    def __init__(self, cost):
        self.cost = cost
        self.cost(self.cost.random(200, np.random.default_rng(0)))  # meets the blocks before the clock runs

    def score(self, archs):
        return self.cost(archs)

    def ready(self):
        return True


def score(cost, archs, processes, share=50_000):
    """Returns the latencies, and the seconds that the workers took once they had started."""
    workers = [Scorer.remote(cost) for _ in range(processes)]
    ray.get([worker.ready.remote() for worker in workers])
    start = time.perf_counter()
    parts = [archs[i : i + share] for i in range(0, len(archs), share)]
    futures = [workers[i % processes].score.remote(part) for i, part in enumerate(parts)]
    latencies = np.concatenate(ray.get(futures))
    return latencies, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--space", default="nasbench201")
    parser.add_argument("--device", default="1080ti")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    cost = ftax.nas.CostFunction(arguments.space, arguments.device, batches=[1, 32, 256])
    archs = cost.random(arguments.count, np.random.default_rng(1))
    cost(archs[:200])
    start = time.perf_counter()
    cost(archs)
    alone_s = time.perf_counter() - start
    ray.init(num_cpus=arguments.processes, include_dashboard=False, log_to_driver=False)
    try:
        _, together_s = score(cost, archs, arguments.processes)
    finally:
        ray.shutdown()
    rate = arguments.count / together_s
    print(f"one process: {arguments.count / alone_s:,.0f} networks/s; {arguments.processes} Ray workers: {rate:,.0f} "
          f"networks/s, efficiency {alone_s / together_s / arguments.processes:.0%}")


if __name__ == "__main__":
    main()
