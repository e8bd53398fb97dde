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
import operator
import os
import sys
import warnings as _warnings
from collections.abc import Iterable, Sequence
from html import escape as _escape
from typing import TYPE_CHECKING, Any, Union

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
from ._whole import whole as _whole, wholes as _wholes

if TYPE_CHECKING:
    import pandas
    import torch

__all__ = [
    "Crossover", "Error", "Graph", "GraphBuilder", "Headroom", "LimitError", "ModelError", "Prediction",
    "Predictor", "ProfileError", "RefusedError", "Sweep", "UsageError", "compare", "crossover", "crossovers", "device", "devices", "framework",
    "frameworks", "from_torch", "generate", "headroom", "hosts", "inspect", "load_graph", "nas", "predict", "serve", "validate", "zoo",
    "__version__",
]

Model = Union[str, "os.PathLike[str]", Graph, "torch.nn.Module", "torch.export.ExportedProgram"]

assumed_framework = "pytorch-eager"


def _is_torch(model: Any) -> bool:
    torch = sys.modules.get("torch")  # who has a model of torch has imported it
    return torch is not None and isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))


def from_torch(model: torch.nn.Module | torch.export.ExportedProgram, example_inputs: Any = None, *,
               example_kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None) -> Graph:
    """The graph of a PyTorch model, exported on the meta device: neither its weights nor its inputs are read or copied.

    `example_inputs` are those of forward(): a tensor or a tuple. Without `dynamic_shapes` (those of torch.export) the leading
    dimension of all example tensors becomes `batch`; where the model does not allow that, it stays as the examples have it.
    """
    from . import _torch

    return _torch.graph_of(model, example_inputs, example_kwargs, dynamic_shapes)


def _graph(model: Model, example_inputs: Any = None) -> Graph:
    if isinstance(model, Graph):
        return model
    if _is_torch(model):
        return from_torch(model, example_inputs)
    if not isinstance(model, (str, os.PathLike)):
        raise UsageError(f"model must be a file, a name of the zoo, a Graph or a PyTorch model, not {type(model).__name__}")
    return load_graph(os.fspath(model))


def _one(argument: str, value: Any) -> str:
    """A name where one is asked for; a list of them belongs to compare()."""
    if isinstance(value, (list, tuple)):
        raise UsageError(f"{argument} must be one name; ftax.compare takes several")
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(f"{argument} must be a name, not {value!r}")
    return os.fspath(value)


def _warned(rows: list[dict[str, Any]], warnings: list[str]) -> list[dict[str, Any]]:
    """Adds the warnings of a whole report to each row and warns the caller of the caller, once each."""
    for row in rows:
        row["warnings"] = warnings + row["warnings"]
    for warning in dict.fromkeys(warning for row in rows for warning in row["warnings"]):
        _warnings.warn(warning, stacklevel=3)
    return rows


def _dims(graph: Graph, dims: dict[str, Any]) -> dict[str, int]:
    for name in dims:
        if name not in graph.symbols:
            known = ", ".join(graph.symbols) or "none"
            raise UsageError(f"'{name}' is neither an argument nor an open dimension of {graph.name} (those are: {known})")
    return {name: _whole(name, value) for name, value in dims.items()}


def _prediction_html(prediction: Prediction) -> str:
    return Sweep([prediction], [None])._repr_html_()


Prediction._repr_html_ = _prediction_html  # type: ignore[attr-defined]


class Sweep(list):
    """The predictions of one model for a list of batches: a list, with what it was asked for."""

    def __init__(self, predictions: Iterable[Prediction] = (), batches: Iterable[int | None] = (), *, model: str = "",
                 device: str = "", framework: str = "", host: str = "", precision: str = "",
                 dims: dict[str, int] | None = None) -> None:
        super().__init__(predictions)
        self.batches = list(batches)
        self.model, self.device, self.framework, self.host, self.precision = model, device, framework, host, precision
        self.dims = dict(dims or {})

    @property
    def warnings(self) -> list[str]:
        """Those of all predictions, each once."""
        return list(dict.fromkeys(warning for p in self for warning in p.warnings))

    def rows(self) -> list[dict[str, Any]]:
        """A dict per batch."""
        return [{"batch": batch, **p.to_dict()} for batch, p in zip(self.batches, self)]

    def to_dict(self) -> dict[str, Any]:
        return {"model": self.model, "device": self.device, "framework": self.framework, "host": self.host,
                "precision": self.precision, "dims": self.dims, "predictions": self.rows()}

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with one row per batch."""
        import pandas

        sides = {key: value for key, value in self.to_dict().items() if key not in ("dims", "predictions")}
        rows = [{**sides, **self.dims, **row} for row in self.rows()]
        for row in rows:
            row.update({f"coverage_{of}": share for of, share in row.pop("coverage").items()})
            row["warnings"] = "; ".join(row["warnings"])
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        title = ", ".join(filter(None, [self.model, self.device, self.framework, self.precision,
                                        *(f"{name} {value}" for name, value in self.dims.items())]))
        cells = [("batch", "latency", "90 % interval", "host", "device", "bound", "memory")]
        for batch, p in zip(self.batches, self):
            cells.append(("" if batch is None else str(batch), f"{p.latency_s * 1e3:.3g} ms",
                          f"{p.low_s * 1e3:.3g} to {p.high_s * 1e3:.3g} ms", f"{p.host_s * 1e3:.3g} ms",
                          f"{p.device_s * 1e3:.3g} ms", p.bound, f"{p.memory_bytes / 1e9:.3g} GB"))
        html = "".join("<tr>" + "".join(f"<{tag}>{_escape(cell)}</{tag}>" for cell in row) + "</tr>"
                       for tag, row in zip(itertools.chain(["th"], itertools.repeat("td")), cells))
        notes = "".join(f"<li>{_escape(warning)}</li>" for warning in self.warnings)
        return f"<table><caption>{_escape(title)}</caption>{html}</table>" + (f"<ul>{notes}</ul>" if notes else "")


class Predictor:
    """Predicts one graph on one device under one framework; threads may share it.

    `anchor` is a CSV file of measured rows that calibrate the host. `device_profile` and `framework_profile` are files with
    fitted parameters; `cudnn` is 8 or 9; `padding` the share of padded tokens; `synchronized`: each run waits for the one
    before. `example_inputs` are those of a PyTorch model (from_torch).
    """

    def __init__(self, model: Model, device: str, framework: str | None = None, precision: str = "fp32", *,
                 example_inputs: Any = None, anchor: str | os.PathLike[str] = "", host: str = "",
                 device_profile: str | os.PathLike[str] = "", framework_profile: str | os.PathLike[str] = "",
                 channels_last: bool = False, cudnn: int = 8, padding: float = 0.0, synchronized: bool = False) -> None:
        self.graph = self._graph = _graph(model, example_inputs)
        self.precision = _one("precision", precision)
        self._predictor = _ftax.Predictor(
            self.graph, _one("device", device), _one("framework", framework or assumed_framework), self.precision,
            host=host, anchor=os.fspath(anchor), device_profile=os.fspath(device_profile),
            framework_profile=os.fspath(framework_profile), channels_last=channels_last, cudnn=cudnn, padding=padding,
            synchronized=synchronized, framework_given=framework is not None)
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
        return self._predictor.predict(_dims(self._graph, dims))

    def sweep(self, batch: int | Iterable[int] | None = None, **dims: int) -> Sweep:
        """Predicts one forward pass per batch size; without a batch, one of a model that fixes its own."""
        sizes = _dims(self._graph, dims)
        if batch is None and "batch" not in self._graph.symbols:
            predictions, batches = [self._predictor.predict(sizes)], [None]
        else:
            batches = _wholes("batch", 1 if batch is None else batch)
            if "batch" not in self._graph.symbols:
                raise UsageError(f"the batch of {self._graph.name} is fixed: leave batch out, or load it with vary_batch=True")
            predictions = self._predictor.sweep(batches, sizes)
        return Sweep(predictions, batches, model=self._graph.name, device=self.device, framework=self.framework,
                     host=self.host, precision=self.precision, dims=sizes)

    def latency_s(self, batch: int | Iterable[int], **dims: int) -> np.ndarray:
        """Latencies of a sweep as an array."""
        return np.array([p.latency_s for p in self.sweep(batch, **dims)])

    def crossover(self, largest: int = 4096, **dims: int) -> Crossover | None:
        """The first of crossovers(); None when there is none up to `largest`."""
        return next(iter(self.crossovers(largest, **dims)), None)

    def crossovers(self, largest: int = 4096, **dims: int) -> list[Crossover]:
        """Every batch up to `largest` at which host and device take equally long, in ascending order."""
        return self._predictor.crossovers(_dims(self._graph, dims), _whole("largest", largest))

    def headroom(self, budget: float = 0.05, **dims: int) -> list[Headroom]:
        """How much wider, deeper, longer or larger in batch for at most `budget` (a share) more latency."""
        return self._predictor.headroom(_dims(self._graph, dims), budget)

    def operators(self, **dims: int) -> list[dict[str, Any]]:
        """Every scheduled operation of one forward pass with its host and device time."""
        return self._predictor.operators(_dims(self._graph, dims))


_options = frozenset(["anchor", "host", "device_profile", "framework_profile", "channels_last", "cudnn", "padding",
                      "synchronized", "example_inputs"])


def _predictor(model: Model, device: str, framework: str | None, precision: str,
               arguments: dict[str, Any]) -> tuple[Predictor, dict[str, Any]]:
    """The predictor of a function's arguments, and those of them that are dimensions."""
    options = {name: value for name, value in arguments.items() if name in _options}
    with _warnings.catch_warnings(record=True) as caught:
        _warnings.simplefilter("always")
        predictor = Predictor(model, device, framework, precision, **options)
    for warning in caught:  # told where the function was called
        _warnings.warn(warning.message, warning.category, stacklevel=3)
    return predictor, {name: value for name, value in arguments.items() if name not in _options}


def predict(model: Model, device: str, framework: str | None = None, precision: str = "fp32", *,
            batch: int | Iterable[int] | None = None, **dims_and_options: Any) -> Sweep:
    """Predicts a model for each batch size (default: 1, or the one that the model fixes).

    Keyword arguments are dimensions that the model leaves open (seq=128) and options of Predictor (anchor, host, …).
    """
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    return predictor.sweep(batch, **dims)


def crossover(model: Model, device: str, framework: str | None = None, precision: str = "fp32", *,
              largest: int = 4096, **dims_and_options: Any) -> Crossover | None:
    """The first of crossovers(); None when there is none up to `largest`."""
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    return predictor.crossover(largest, **dims)


def crossovers(model: Model, device: str, framework: str | None = None, precision: str = "fp32", *,
               largest: int = 4096, **dims_and_options: Any) -> list[Crossover]:
    """Every batch up to `largest` at which host and device take equally long, in ascending order."""
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    return predictor.crossovers(largest, **dims)


def headroom(model: Model, device: str, framework: str | None = None, precision: str = "fp32", *,
             batch: int = 1, budget: float = 0.05, **dims_and_options: Any) -> list[Headroom]:
    """How much wider, deeper, longer or larger in batch for at most `budget` (a share) more latency; as `ftax headroom`."""
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    if "batch" in predictor.graph.symbols:
        dims["batch"] = batch
    return predictor.headroom(budget, **dims)


def compare(model: Model, devices: str | Sequence[str], frameworks: str | Sequence[str] = assumed_framework,
            precisions: str | Sequence[str] = "fp32", *, batch: int | Iterable[int] | None = None, example_inputs: Any = None,
            **dims: int) -> list[dict[str, Any]]:
    """Predicts a model side by side: a dict per device, framework, precision and batch size.

    A combination that does not exist (a precision that the device lacks) has `skipped` in place of a prediction.
    """
    graph = _graph(model, example_inputs)
    batches = None if batch is None else _wholes("batch", batch)
    _dims(graph, {name: value for name, value in dims.items() if name not in _options})
    sides = [[side] if isinstance(side, str) else list(side) for side in (devices, frameworks, precisions)]
    rows: list[dict[str, Any]] = []
    for on, under, precision in itertools.product(*sides):
        side = {"device": on, "framework": under, "precision": precision}
        try:
            predictor, sizes = _predictor(graph, on, under, precision, dims)
            predictions = predictor.sweep(batches, **sizes)
        except UsageError as error:
            rows.append({**side, "skipped": str(error)})
            continue
        rows += [{**side, "batch": b, "latency_s": p.latency_s, "low_s": p.low_s, "high_s": p.high_s, "host_s": p.host_s,
                  "device_s": p.device_s, "bound": p.bound, "warnings": p.warnings} for b, p in zip(predictions.batches, predictions)]
    if rows and all("skipped" in row for row in rows):
        raise UsageError(rows[0]["skipped"])
    return rows


def generate(model: str | os.PathLike[str], device: str, framework: str = assumed_framework, precision: str = "", *,
             prompt: int, new_tokens: int, batch: int | Iterable[int] = 1, longest_prompt: int = 0,
             tp: int | Iterable[int] = 1, price: float = 0.0, host: str = "", kv_cache: str = "",
             kv_precision: str = "") -> list[dict[str, Any]]:
    """Predicts the text of a language model: a dict per number of cards `tp` and batch; as `ftax generate --json`.

    Keys: ttft_s (time to the first token), tpot_s (mean time per further token), total_s, tokens_per_s, memory, fits,
    largest_batch and more. `model` is a config.json, a folder with one, or a name of the zoo; without a `precision` its
    own holds. `price` is that of one card in dollars per hour.
    """
    report = json.loads(_ftax.generate_json(
        os.fspath(model), _one("device", device), _one("framework", framework), precision, host, _wholes("batch", batch),
        _whole("prompt", prompt), _whole("new_tokens", new_tokens), _whole("longest_prompt", longest_prompt), _wholes("tp", tp),
        price, kv_cache, kv_precision))
    return _warned(report["predictions"], report["warnings"])


def serve(model: str | os.PathLike[str], device: str | Iterable[str], framework: str | Iterable[str] = "vllm",
          precision: str | Iterable[str] = "", *, tp: int | Iterable[int] = 1, requests: str | os.PathLike[str] = "", slo: str = "",
          price: float | Iterable[float] = (), dims: dict[str, int] | None = None, **numbers: float) -> list[dict[str, Any]]:
    """Serves requests that arrive over time: a dict per combination, the best first; as `ftax serve --json`.

    One of `rate`, `concurrency` and `requests` (a CSV file) says how they come. Other `numbers`: prompt, new_tokens,
    spread, count, seed, slo_share, find_rate, max_num_seqs, max_num_batched_tokens, shared_prefix, max_batch, max_delay
    (seconds). `slo` is as in "ttft=500ms,tpot=50ms".
    """
    known = {"rate", "concurrency", "count", "prompt", "new_tokens", "spread", "seed", "slo_share", "find_rate", "max_num_seqs",
             "max_num_batched_tokens", "shared_prefix", "max_batch", "max_delay"}
    for name in numbers.keys() - known:
        raise TypeError(f"serve() got an unexpected keyword argument '{name}'")

    def listed(values: Any) -> str:
        return values if isinstance(values, str) else ",".join(map(str, values)) if isinstance(values, Iterable) else str(values)

    report = json.loads(_ftax.serve_json(
        os.fspath(model), listed(device), listed(framework), listed(precision), listed(tp),
        {name: float(value) for name, value in numbers.items()},
        {"requests": os.fspath(requests), "slo": slo, "price": listed(price)},
        [f"{name}={value}" for name, value in (dims or {}).items()]))
    return _warned(report["rows"], report["warnings"])


def inspect(model: Model, depth: int = 1, *, example_inputs: Any = None, **dims: int) -> dict[str, Any]:
    """Operators, FLOPs and MACs, bytes and parameters of a model; as `ftax inspect --json`."""
    graph = _graph(model, example_inputs)
    return json.loads(_ftax.inspect_json(graph, _dims(graph, dims), _whole("depth", depth)))


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
