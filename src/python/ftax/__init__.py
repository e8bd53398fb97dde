"""How long a neural network takes on a GPU under a given framework, before anyone deploys it.

    import ftax
    for p in ftax.predict("resnet50", "t4", batch=[1, 8, 64]):
        print(p.latency_s, p.bound)
    ftax.crossover("bert", "quadro-rtx-8000", precision="fp16", seq=128)

Models are files (.onnx, .pt2, .pt, .txt), names of the zoo, or graphs (`load_graph`, `GraphBuilder`). Dimensions that a
model leaves open are keyword arguments. All times are seconds. Whatever takes time releases the interpreter lock.
"""

from __future__ import annotations

import itertools
import json
import os
import warnings as _warnings
from collections.abc import Iterable, Sequence
from typing import Any, Union

import numpy as np

from . import _ftax, nas
from ._ftax import (
    Crossover,
    Error,
    Graph,
    GraphBuilder,
    Headroom,
    LimitError,
    ModelError,
    Prediction,
    ProfileError,
    RefusedError,
    UsageError,
    __version__,
    device,
    devices,
    framework,
    frameworks,
    hosts,
    load_graph,
    zoo,
)

__all__ = [
    "Crossover", "Error", "Graph", "GraphBuilder", "Headroom", "LimitError", "ModelError", "Prediction",
    "Predictor", "ProfileError", "RefusedError", "UsageError", "compare", "crossover", "device", "devices", "framework",
    "frameworks", "generate", "headroom", "hosts", "inspect", "load_graph", "nas", "predict", "validate", "zoo", "__version__",
]

Model = Union[str, "os.PathLike[str]", Graph]


def _graph(model: Model) -> Graph:
    return model if isinstance(model, Graph) else load_graph(os.fspath(model))


def _batches(batch: int | Iterable[int]) -> list[int]:
    return [int(b) for b in np.atleast_1d(np.asarray(batch)).ravel()]


class Predictor:
    """Predicts one graph on one device under one framework; threads may share it.

    `anchor` is a CSV file of measured rows that calibrate the host. `options`: host, device_profile,
    framework_profile (files), channels_last, cudnn (8 or 9), padding, synchronized.
    """

    def __init__(self, model: Model, device: str, framework: str = "pytorch-eager", precision: str = "fp32", *,
                 anchor: str | os.PathLike[str] = "", **options: Any) -> None:
        self.graph = _graph(model)
        self._predictor = _ftax.Predictor(self.graph, device, framework, precision, anchor=os.fspath(anchor), **options)
        self.warnings: list[str] = self._predictor.warnings
        for warning in self.warnings:
            _warnings.warn(warning, stacklevel=2)

    @property
    def device(self) -> str:
        return self._predictor.device

    @property
    def framework(self) -> str:
        return self._predictor.framework

    @property
    def host(self) -> str:
        return self._predictor.host

    def predict(self, **dims: int) -> Prediction:
        """Predicts one forward pass, e.g. predict(batch=8, seq=128)."""
        return self._predictor.predict(dims)

    def sweep(self, batch: int | Iterable[int], **dims: int) -> list[Prediction]:
        """Predicts one forward pass per batch size."""
        return self._predictor.sweep(_batches(batch), dims)

    def latency_s(self, batch: int | Iterable[int], **dims: int) -> np.ndarray:
        """Latencies of a sweep as an array."""
        return np.array([p.latency_s for p in self.sweep(batch, **dims)])

    def crossover(self, largest: int = 4096, **dims: int) -> Crossover | None:
        """The batch at which the framework stops being the bottleneck; None when there is none up to `largest`."""
        return self._predictor.crossover(dims, largest)

    def headroom(self, budget: float = 0.05, **dims: int) -> list[Headroom]:
        """How much wider, deeper, longer or larger in batch for at most `budget` (a share) more latency."""
        return self._predictor.headroom(dims, budget)

    def operators(self, **dims: int) -> list[dict[str, Any]]:
        """Every scheduled operation of one forward pass with its host and device time."""
        return self._predictor.operators(dims)


def predict(model: Model, device: str, framework: str = "pytorch-eager", precision: str = "fp32", *,
            batch: int | Iterable[int] = 1, anchor: str | os.PathLike[str] = "", **dims: int) -> list[Prediction]:
    """Predicts a model for each batch size."""
    return Predictor(model, device, framework, precision, anchor=anchor).sweep(batch, **dims)


def crossover(model: Model, device: str, framework: str = "pytorch-eager", precision: str = "fp32", *,
              largest: int = 4096, anchor: str | os.PathLike[str] = "", **dims: int) -> Crossover | None:
    """The batch at which the framework stops being the bottleneck; None when there is none up to `largest`."""
    return Predictor(model, device, framework, precision, anchor=anchor).crossover(largest, **dims)


def headroom(model: Model, device: str, framework: str = "pytorch-eager", precision: str = "fp32", *,
             batch: int = 1, budget: float = 0.05, anchor: str | os.PathLike[str] = "", **dims: int) -> list[Headroom]:
    """How much wider, deeper, longer or larger in batch for at most `budget` (a share) more latency; as `ftax headroom`."""
    return Predictor(model, device, framework, precision, anchor=anchor).headroom(budget, batch=batch, **dims)


def compare(model: Model, devices: str | Sequence[str], frameworks: str | Sequence[str] = "pytorch-eager",
            precisions: str | Sequence[str] = "fp32", *, batch: int | Iterable[int] = 1,
            **dims: int) -> list[dict[str, Any]]:
    """Predicts a model side by side: a dict per device, framework, precision and batch size.

    A combination that does not exist (a precision that the device lacks) has `skipped` in place of a prediction.
    """
    graph = _graph(model)
    sides = [[side] if isinstance(side, str) else list(side) for side in (devices, frameworks, precisions)]
    rows: list[dict[str, Any]] = []
    for on, under, precision in itertools.product(*sides):
        side = {"device": on, "framework": under, "precision": precision}
        try:
            predictions = Predictor(graph, on, under, precision).sweep(batch, **dims)
        except UsageError as error:
            if len(sides[0]) * len(sides[1]) * len(sides[2]) == 1:
                raise
            rows.append({**side, "skipped": str(error)})
            continue
        rows += [{**side, "batch": b, "latency_s": p.latency_s, "low_s": p.low_s, "high_s": p.high_s, "host_s": p.host_s,
                  "device_s": p.device_s, "bound": p.bound} for b, p in zip(_batches(batch), predictions)]
    return rows


def generate(model: str | os.PathLike[str], device: str, framework: str = "pytorch-eager", precision: str = "", *,
             prompt: int, new_tokens: int, batch: int | Iterable[int] = 1, longest_prompt: int = 0,
             tp: int | Iterable[int] = 1, price: float = 0.0, host: str = "", kv_cache: str = "",
             kv_precision: str = "") -> list[dict[str, Any]]:
    """Predicts the text of a language model: a dict per number of cards `tp` and batch; as `ftax generate --json`.

    Keys: ttft_s (time to the first token), tpot_s (mean time per further token), total_s, tokens_per_s, memory, fits,
    largest_batch and more. `model` is a config.json, a folder with one, or a name of the zoo; without a `precision` its
    own holds. `price` is that of one card in dollars per hour.
    """
    report = json.loads(_ftax.generate_json(os.fspath(model), device, framework, precision, host, _batches(batch),
                                            prompt, new_tokens, longest_prompt, _batches(tp), price, kv_cache,
                                            kv_precision))
    rows: list[dict[str, Any]] = report["predictions"]
    return rows


def inspect(model: Model, depth: int = 1, **dims: int) -> dict[str, Any]:
    """Operators, FLOPs and MACs, bytes and parameters of a model; as `ftax inspect --json`."""
    return json.loads(_ftax.inspect_json(_graph(model), dims, depth))


def validate(rows: str | os.PathLike[str], *, anchor: str | os.PathLike[str] = "", models: str | os.PathLike[str] = "",
             by: Sequence[str] = (), device_profile: str | os.PathLike[str] = "",
             host_profile: str | os.PathLike[str] = "", predictions: str | os.PathLike[str] = "") -> dict[str, Any]:
    """Predictions against the measured rows of a CSV file; as `ftax validate --json`.

    `host_profile` says what calls cost the host that rows of operators were measured on. `predictions` names a file
    that gets every row with its prediction.
    """
    report, doubts = _ftax.validate_json(os.fspath(rows), os.fspath(anchor), os.fspath(models), ",".join(by),
                                         os.fspath(device_profile), os.fspath(host_profile), os.fspath(predictions))
    for doubt in doubts:
        _warnings.warn(doubt, stacklevel=2)
    return json.loads(report)
