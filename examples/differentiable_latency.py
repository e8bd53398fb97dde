"""Latency inside the loss of a differentiable search, as ProxylessNAS has it (Cai et al., arXiv 1812.00332, section 3.3).

The expected latency of a mixture of candidates is linear in their probabilities: E[latency] = sum over layers and
candidates of p * cost. The costs are ftax's marginal costs around the most probable network, renewed as it moves, so that
the table stays right where the host hides the device's time and costs do not simply add.
"""

import argparse

import ftax
import numpy as np
import torch


class LatencyTable(torch.nn.Module):
    """Expected latency, in seconds, of a network whose choices have probabilities."""

    def __init__(self, cost):
        super().__init__()
        self.cost = cost
        widest = max(cost.options)
        self.register_buffer("table", torch.zeros(len(cost.options), widest))
        self.register_buffer("latency_s", torch.zeros(()))
        self.around = None

    def renew(self, arch):
        """Takes the marginal costs around an architecture."""
        if self.around == arch:
            return
        self.around = arch
        for site, costs in enumerate(self.cost.table(arch)):
            self.table[site, : len(costs)] = torch.from_numpy(costs[:, 0])
        self.latency_s.fill_(self.cost([arch])[0, 0])

    def forward(self, probabilities):
        self.renew(probabilities.argmax(dim=1).tolist())
        return self.latency_s + (probabilities * (self.table - self.latency_s)).sum()


def search(device, limit_s, steps, seed=0):
    """Gradient descent on a stand-in for the task's loss and the latency beyond the limit; returns the latencies."""
    torch.manual_seed(seed)
    cost = ftax.nas.CostFunction("fbnet", device, batches=64)
    latency = LatencyTable(cost)
    logits = torch.nn.Parameter(0.01 * torch.randn(len(cost.options), max(cost.options)))
    capacity = torch.tensor([1, 0.7, 3, 6, 1.2, 0.9, 3.4, 6.6, 0])
    optimizer = torch.optim.Adam([logits], lr=0.05)
    history = []
    for _ in range(steps):
        probabilities = logits.softmax(dim=1)
        task_loss = -(probabilities * capacity).sum(dim=1).mean()  # the cross entropy of the super-network goes here
        expected_s = latency(probabilities)
        loss = task_loss + 20 * torch.relu(expected_s / limit_s - 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(expected_s.item())
    arch = logits.argmax(dim=1).numpy().astype(np.int32)
    return arch, cost([arch])[0, 0], history


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="titan-x-pascal")
    parser.add_argument("--limit-ms", type=float, default=15)
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    arch, latency_s, history = search(arguments.device, arguments.limit_ms * 1e-3, arguments.steps)
    print(f"expected {history[0] * 1e3:.2f} -> {history[-1] * 1e3:.2f} ms")
    print(f"{'-'.join(map(str, arch))}: {latency_s * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
