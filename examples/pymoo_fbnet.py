"""NSGA-II finds the front of latency and capacity of FBNet on one or several cards, within a latency and a memory that all
of them have to keep. Capacity stands in for a predictor of accuracy."""

import argparse

import ftax
import numpy as np
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.repair.rounding import RoundingRepair
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.optimize import minimize

CAPACITY = np.array([1, 0.7, 3, 6, 1.2, 0.9, 3.4, 6.6, 0])  # of the nine candidates of a layer


class FBNet(Problem):
    def __init__(self, devices, batch, max_latency_s, max_memory_bytes):
        self.costs = [ftax.nas.CostFunction("fbnet", device, batches=batch) for device in devices]
        self.devices, self.batch, self.max_latency_s, self.max_memory_bytes = devices, batch, max_latency_s, max_memory_bytes
        limits = len(devices) * ((max_latency_s is not None) + (max_memory_bytes is not None))
        options = self.costs[0].options
        super().__init__(n_var=len(options), n_obj=2, n_ieq_constr=limits, xl=0, xu=np.array(options) - 1, vtype=int)

    def memory_bytes(self, arch):
        """Peak memory of the whole network on each card."""
        graph = self.costs[0].build_graph(arch)
        return [ftax.Predictor(graph, device).predict(batch=self.batch).memory_bytes for device in self.devices]

    def _evaluate(self, archs, out, *_, **__):
        latency_s = np.column_stack([cost(archs)[:, 0] for cost in self.costs])
        out["F"] = np.column_stack([latency_s.max(axis=1), -CAPACITY[archs].sum(axis=1)])
        excess = []  # a constraint holds where it is at most 0; each in units of its limit
        if self.max_latency_s is not None:
            excess.append(latency_s / self.max_latency_s - 1)
        if self.max_memory_bytes is not None:
            excess.append(np.array([self.memory_bytes(arch) for arch in archs]) / self.max_memory_bytes - 1)
        if excess:
            out["G"] = np.column_stack(excess)


def search(device, batch, generations, population=64, seed=0, max_latency_s=None, max_memory_bytes=None):
    """Returns architectures and (latency in seconds, capacity) of the front, fastest first. With a list of devices the latency
    is that of the slowest. Both are empty if nothing keeps the limits."""
    algorithm = NSGA2(pop_size=population, sampling=IntegerRandomSampling(), eliminate_duplicates=True,
                      crossover=SBX(vtype=float, repair=RoundingRepair()), mutation=PM(vtype=float, repair=RoundingRepair()))
    problem = FBNet([device] if isinstance(device, str) else list(device), batch, max_latency_s, max_memory_bytes)
    found = minimize(problem, algorithm, ("n_gen", generations), seed=seed)
    if found.F is None:
        return np.empty((0, problem.n_var), dtype=int), np.empty((0, 2))
    order = np.argsort(found.F[:, 0])
    return found.X[order], found.F[order] * [1, -1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="titan-x-pascal", help="a card, or several: t4,l4")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--max-latency", type=float, help="milliseconds that no card may exceed")
    parser.add_argument("--max-memory", type=float, help="megabytes that no card may exceed")
    given = parser.parse_args()
    archs, front = search(given.device.split(","), given.batch, given.generations,
                          max_latency_s=given.max_latency and given.max_latency * 1e-3,
                          max_memory_bytes=given.max_memory and given.max_memory * 1e6)
    for arch, (latency_s, capacity) in zip(archs, front):
        print(f"{latency_s * 1e3:8.3f} ms  capacity {capacity:6.1f}  {'-'.join(map(str, arch))}")


if __name__ == "__main__":
    main()
