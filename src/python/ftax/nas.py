"""Latency as a cost function for architecture search.

    cost = ftax.nas.CostFunction("nasbench201", "1080ti", batches=[1, 256])
    cost(["|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|avg_pool_3x3~2|"])   # seconds, one row per architecture

An architecture is a text in the notation of its space, or a row of integers: the option taken at each choice.
"""

from __future__ import annotations

import os
import warnings as _warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _ftax
from ._ftax import Campaign, Graph, GraphBuilder, measured_host
from ._whole import whole, wholes

__all__ = ["Campaign", "CostFunction", "Space", "measured_host", "space_names"]


class Space(ABC):
    """A search space of one's own: how an architecture is written, which blocks it chains, how each block is built.

    A block is a tuple of at most eight small integers; its launches may depend on these alone, so that a block that was
    timed once is never timed again.
    """

    name: str
    options: Sequence[int]  # number of options of each choice
    usual_dims: dict[str, int] = {}  # dimensions besides batch that the networks leave open, and what they usually are
    waits_after_blocks = False  # whether the host waits for the device after each block

    def parse(self, text: str) -> list[int]:
        """Choices of an architecture. The default reads "0-3-1"."""
        return [int(part) for part in text.split("-")]

    @abstractmethod
    def blocks(self, choices: list[int]) -> list[tuple[int, ...]]:
        """Blocks of an architecture in execution order."""

    @abstractmethod
    def inputs(self, net: GraphBuilder, choices: list[int]) -> list[int]:
        """Declares the inputs of the network; returns the first live tensors."""

    @abstractmethod
    def build(self, net: GraphBuilder, block: tuple[int, ...], live: list[int]) -> list[int]:
        """Appends one block (eight numbers, zeros where it has fewer); returns the tensors that later blocks may read.

        The first one is the output at the end.
        """


def space_names() -> list[str]:
    """Names of the built-in spaces."""
    return _ftax.space_names()


def options_of(**arguments: Any) -> list[str]:
    """The arguments of a run as options of the program: device="t4" is --device=t4."""
    return [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
            for name, value in arguments.items() if value is not None and value is not False and value != ""]


class CostFunction:
    """Latency of architectures of one space on one device under one framework, for fixed batch sizes.

    Each distinct block is timed once; then a call only composes. Threads may share it, and it can be pickled (blocks are
    timed anew on the other side). `anchor`: measured architectures (arch, batch, seconds) that calibrate the campaign;
    ten are enough. `dims`: dimensions that the space leaves open, {"seq": 512} for transformers. `framework` may name a version
    ("pytorch-eager@1.12"); `host`: the machine whose costs hold, `measured_host` that of the runs the built-in spaces are known
    from.
    """

    def __init__(self, space: str | Space, device: str, framework: str = "pytorch-eager", precision: str = "fp32", *,
                 batches: int | Iterable[int] = 1, anchor: Iterable[tuple[str | Sequence[int], int, float]] = (),
                 campaign: Campaign | None = None, dims: dict[str, int] | None = None, host: str = "",
                 device_profile: str | os.PathLike[str] = "", framework_profile: str | os.PathLike[str] = "") -> None:
        self._arguments: dict[str, Any] = {
            "space": space, "device": device, "framework": framework, "precision": precision,
            "batches": wholes("batches", batches), "host": host,
            "dims": {name: whole(name, value) for name, value in (dims or {}).items()},
            "device_profile": os.fspath(device_profile), "framework_profile": os.fspath(framework_profile)}
        options = options_of(**{name: value for name, value in self._arguments.items() if name not in ("space", "batches", "dims")})
        self._space = _ftax.SpaceHandle(space)
        samples = [(self._choices([arch])[0].tolist(), whole("batch", batch), float(seconds)) for arch, batch, seconds in anchor]
        self._cost = _ftax.CostFunction(space=space, options=options, batches=self.batches, campaign=campaign or Campaign(),
                                        samples=samples, dims=self._arguments["dims"])
        self.warnings: list[str] = self._cost.warnings
        for warning in self.warnings:
            _warnings.warn(warning, stacklevel=2)

    @property
    def batches(self) -> list[int]:
        return list(self._arguments["batches"])

    @property
    def dims(self) -> dict[str, int]:
        """Sizes of the dimensions that the space leaves open, but for the batch."""
        return self._cost.dims

    @property
    def options(self) -> list[int]:
        """Number of options of each choice."""
        return self._space.options

    @property
    def campaign(self) -> Campaign:
        """What the anchor showed."""
        return self._cost.campaign

    def parse(self, archs: Sequence[str]) -> np.ndarray:
        """Choices of architectures written as text: one row of integers each."""
        return self._space.parse(list(archs))

    def _choices(self, archs: Any) -> np.ndarray:
        if isinstance(archs, (list, tuple)) and archs and isinstance(archs[0], str):
            return self.parse(archs)
        choices = np.asarray(archs)
        if choices.shape == (0,):
            return np.empty((0, len(self.options)), dtype=np.int32)
        if choices.ndim != 2 or not np.issubdtype(choices.dtype, np.integer):
            raise _ftax.UsageError("architectures are a list of texts, or an array of integers with one row each")
        if choices.size and (choices.min() < 0 or choices.max() > np.iinfo(np.int32).max):
            raise _ftax.UsageError("a choice is negative or too large")
        return np.ascontiguousarray(choices, dtype=np.int32)

    def __call__(self, archs: Sequence[str] | np.ndarray, threads: int = 1) -> np.ndarray:
        """Seconds: one row per architecture, one column per batch size. `threads`: 0 for all cores."""
        if threads < 0:
            raise _ftax.UsageError("threads must be 0 (all cores) or more")
        choices = self._choices(archs)
        return self._cost.cost(choices, threads)

    def marginal_cost(self, arch: str | Sequence[int], site: int) -> np.ndarray:
        """Seconds with each option of one choice instead of the one taken: one row per option."""
        if site < 0:
            raise _ftax.UsageError(f"there is no choice {site}")
        return self._cost.marginal_cost(self._choices([arch])[0].tolist(), site)

    def table(self, arch: str | Sequence[int]) -> list[np.ndarray]:
        """Marginal costs of every choice around one architecture: what a differentiable search interpolates."""
        return [self.marginal_cost(arch, site) for site in range(len(self.options))]

    def random(self, count: int, rng: np.random.Generator | None = None) -> np.ndarray:
        """Random architectures, one row of choices each, of the options that the space's authors search."""
        rng = rng or np.random.default_rng()
        usual = [np.array(self._space.usual_options(site) or range(options), dtype=np.int32) for site, options in enumerate(self.options)]
        drawn = rng.integers(0, [len(options) for options in usual], size=(count, len(usual)), dtype=np.int32)
        return np.stack([options[column] for options, column in zip(usual, drawn.T)], axis=1)

    def build_graph(self, arch: str | Sequence[int]) -> Graph:
        """The whole network of an architecture."""
        return self._space.build_graph(self._choices([arch])[0].tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._arguments, self.campaign)


def _restore(arguments: dict[str, Any], campaign: Campaign) -> CostFunction:
    return CostFunction(**arguments, campaign=campaign)
