"""NSGA-II finds the front of latency and capacity of FBNet. Capacity stands in for a predictor of accuracy."""

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
    def __init__(self, device, batch):
        self.cost = ftax.nas.CostFunction("fbnet", device, batches=batch)
        options = self.cost.options
        super().__init__(n_var=len(options), n_obj=2, xl=0, xu=np.array(options) - 1, vtype=int)

    def _evaluate(self, archs, out, *_, **__):
        out["F"] = np.column_stack([self.cost(archs)[:, 0], -CAPACITY[archs].sum(axis=1)])


def search(device, batch, generations, population=64, seed=0):
    """Returns architectures and (latency in seconds, capacity) of the front, fastest first."""
    algorithm = NSGA2(pop_size=population, sampling=IntegerRandomSampling(), eliminate_duplicates=True,
                      crossover=SBX(vtype=float, repair=RoundingRepair()), mutation=PM(vtype=float, repair=RoundingRepair()))
    found = minimize(FBNet(device, batch), algorithm, ("n_gen", generations), seed=seed)
    order = np.argsort(found.F[:, 0])
    return found.X[order], found.F[order] * [1, -1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="titan-x-pascal")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--generations", type=int, default=60)
    arguments = parser.parse_args()
    archs, front = search(arguments.device, arguments.batch, arguments.generations)
    for arch, (latency_s, capacity) in zip(archs, front):
        print(f"{latency_s * 1e3:8.3f} ms  capacity {capacity:6.1f}  {'-'.join(map(str, arch))}")


if __name__ == "__main__":
    main()
