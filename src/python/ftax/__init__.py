"""How long a neural network takes on a GPU under a given framework, before anyone deploys it.

    import ftax
    for p in ftax.predict("resnet50", "t4", batch=[1, 8, 64]):
        print(p.latency_s, p.bound)
    ftax.crossover("bert", "quadro-rtx-8000", precision="fp16", seq=128)

Models are files (.onnx, .pt2, .pt, .txt), names of the zoo, or graphs (`load_graph`, `GraphBuilder`). Dimensions that a
model leaves open are keyword arguments. All times are seconds. Whatever takes time releases the interpreter lock.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings as _warnings
from collections.abc import Callable, Iterable
from html import escape as _escape
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _ftax, nas
from ._ftax import (
    Error, Graph, GraphBuilder, LimitError, ModelError, ProfileError, RefusedError, UsageError, __version__,
    device, devices, framework, frameworks, hosts, load_graph, models, zoo,
)
from ._whole import whole as _whole, wholes as _wholes

if TYPE_CHECKING:
    import pandas
    import torch

__all__ = [
    "Crossover", "Error", "Graph", "GraphBuilder", "Headroom", "LimitError", "ModelError", "Prediction",
    "Predictor", "ProfileError", "RefusedError", "Report", "Sweep", "UsageError", "compare", "crossover", "crossovers", "device", "devices", "explain", "framework",
    "frameworks", "from_torch", "generate", "headroom", "hosts", "inspect", "load_graph", "models", "nas", "predict", "report", "serve", "validate", "zoo",
    "__version__",
]

Model = Union[str, "os.PathLike[str]", Graph, "torch.nn.Module", "torch.export.ExportedProgram"]

Names = Union[str, Iterable[str], None]  # None: the default of the program

def _is_torch(model: Any) -> bool:
    torch = sys.modules.get("torch")  # who has a model of torch has imported it
    return torch is not None and isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))


def from_torch(model: torch.nn.Module | torch.export.ExportedProgram, example_inputs: Any = None, *,
               example_kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None) -> Graph:
    """The graph of a PyTorch model, exported on the meta device: neither its weights nor its inputs are read or copied.

    `example_inputs` are those of forward(): a tensor or a tuple. Without `dynamic_shapes` (those of torch.export) the leading
    dimension of all example tensors becomes `batch`; where the model does not allow that, it stays as the examples have it.

    >>> import torch
    >>> ftax.from_torch(torch.nn.Linear(512, 64), torch.empty(1, 512)).symbols
    ['batch']
    """
    from . import _torch

    return _torch.graph_of(model, example_inputs, example_kwargs, dynamic_shapes)


def _graph(model: Model, example_inputs: Any = None, steps: int | None = None) -> Graph:
    if isinstance(model, Graph):
        return model
    if _is_torch(model):
        return from_torch(model, example_inputs)
    if not isinstance(model, (str, os.PathLike)):
        raise UsageError(f"model must be a file, a name of the zoo, a Graph or a PyTorch model, not {type(model).__name__}")
    return load_graph(os.fspath(model), trips={} if steps is None else {"steps": _whole("steps", steps)})


def _one(argument: str, value: Any) -> str:
    """A name where one is asked for; a list of them belongs to compare()."""
    if isinstance(value, (list, tuple)):
        raise UsageError(f"{argument} must be one name; ftax.compare takes several")
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(f"{argument} must be a name, not {value!r}")
    return os.fspath(value)


def _dims(graph: Graph, dims: dict[str, Any]) -> dict[str, int]:
    symbols = {**graph.other_names, **{name: name for name in graph.symbols}}
    for name in dims:
        if name not in symbols:
            known = ", ".join(graph.symbols) or "none"
            raise UsageError(f"'{name}' is neither an argument nor an open dimension of {graph.name} (those are: {known})")
    return {symbols[name]: _whole(name, value) for name, value in dims.items()}


class Row(dict):
    """A row of a report: row["latency_s"] and row.latency_s are the same. The fields are those of `--json` (docs/outputs.md)."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"this row has no '{name}'; it has {', '.join(self)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Prediction(Row):
    """Latency of one forward pass in seconds, what bounds it, and the device memory of the run (`memory_bytes`, `fits`)."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        return dict(self)

    def __repr__(self) -> str:
        return f"<ftax.Prediction {self.latency_s * 1e3:.4g} ms, bound by {self.bound}>"

    def _repr_html_(self) -> str:
        return f"<pre>{_escape(explain(self))}</pre>"


class Crossover(Row):
    """Batch at which the host takes as long as the device; `causes` are (kind, operations, host seconds)."""

    __slots__ = ()


class Headroom(Row):
    """How far a property (`name`: batch, another dimension, width or depth) can grow, from `start` to `end`, within a latency
    budget; `is_open`: the search ended before the budget did; `skipped`: why it cannot grow, or ""."""

    __slots__ = ()


class Sweep(list):
    """The predictions of one model for a list of batches: a list, with what it was asked for. print() shows the table that
    `ftax predict` prints, a notebook the chart too.

    >>> sweep = ftax.predict("resnet50", "t4", batch=[1, 8])
    >>> sweep[1].latency_s > sweep[0].latency_s
    True
    """

    def __init__(self, predictions: Iterable[Prediction], batches: Iterable[int | None], render: Callable[[], tuple[str, str]], *,
                 model: str, device: str, framework: str, host: str, precision: str, dims: dict[str, int]) -> None:
        super().__init__(predictions)
        self.batches, self._render = list(batches), render
        self.model, self.device, self.framework, self.host, self.precision = model, device, framework, host, precision
        self.dims = dims

    def __reduce__(self) -> tuple[Any, ...]:
        sides = {name: value for name, value in self.to_dict().items() if name != "predictions"}
        return functools.partial(Sweep, **sides), (list(self), self.batches, functools.partial(tuple, self._render()))

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
        return pandas.json_normalize([{**sides, **self.dims, **row} for row in self.rows()], sep="_")

    def __str__(self) -> str:
        return self._render()[0].rstrip("\n")

    def _repr_html_(self) -> str:
        return f"{self._render()[1]}<pre>{_escape(str(self))}</pre>"


class Predictor:
    """Predicts one graph on one device under one framework; threads may share it.

    `anchor` is a CSV file of measured rows that calibrate the host, `cpu` the name of its CPU ("local": this machine's) and
    `host_load` "dedicated", "shared" or "unknown", `host_file` what `ftax measure host` wrote there: each narrows the interval. `device_profile` and `framework_profile` are files with
    fitted parameters; `cudnn` is 8 or 9; `padding` the share of padded tokens; `synchronized`: each run waits for the one
    before; `copies` adds the copies of inputs from, and outputs to, pageable host memory. `example_inputs` are those of a
    PyTorch model (from_torch); `steps` the denoising steps of a folder of diffusers.
    """

    def __init__(self, model: Model, device: str, framework: str | None = None, precision: str | None = None, *,
                 example_inputs: Any = None, anchor: str | os.PathLike[str] = "", host: str = "", cpu: str = "",
                 host_load: str = "unknown", host_file: str | os.PathLike[str] = "",
                 device_profile: str | os.PathLike[str] = "", framework_profile: str | os.PathLike[str] = "",
                 channels_last: bool = False, cudnn: int = 8, padding: float = 0.0, synchronized: bool = False,
                 copies: bool = False, steps: int | None = None) -> None:
        self.graph = self._graph = _graph(model, example_inputs, steps)
        self._predictor = _ftax.Predictor(self.graph, nas.options_of(
            device=_one("device", device), framework=_one("framework", framework or ""), precision=_one("precision", precision or ""),
            host=host, cpu=cpu, host_load=host_load, host_file=os.fspath(host_file), anchor=os.fspath(anchor),
            device_profile=os.fspath(device_profile), framework_profile=os.fspath(framework_profile),
            channels_last=channels_last, cudnn=cudnn, padding=padding, synchronized=synchronized, copies=copies))
        own = self._predictor
        self.device, self.framework, self.host, self.precision = own.device, own.framework, own.host, own.precision
        self.warnings: list[str] = own.warnings
        for warning in self.warnings:
            _warnings.warn(warning, stacklevel=2)

    def predict(self, **dims: int) -> Prediction:
        """Predicts one forward pass, e.g. predict(batch=8, seq=128)."""
        return self._predict(_dims(self._graph, dims))

    def _predict(self, sizes: dict[str, int]) -> Prediction:
        return Prediction({"parts": [], **json.loads(self._predictor.predict(sizes))})

    def sweep(self, batch: int | Iterable[int] | None = None, **dims: int) -> Sweep:
        """Predicts one forward pass per batch size; without a batch, one of a model that fixes its own."""
        sizes = _dims(self._graph, dims)
        named = sizes.pop("batch", batch)
        batch = named if batch is None else batch
        if batch is None and "batch" not in self._graph.symbols:
            batches: list[int | None] = [None]
        else:
            batches = _wholes("batch", 1 if batch is None else batch)
            if "batch" not in self._graph.symbols:
                raise UsageError(f"the batch of {self._graph.name} is fixed: leave batch out, or load it with vary_batch=True")
        each = (sizes if batch is None else {**sizes, "batch": batch} for batch in batches)
        predictions = map(self._predict, each)
        return Sweep(predictions, batches, functools.partial(self._predictor.render, batches, sizes), model=self._graph.name,
                     device=self.device, framework=self.framework, host=self.host, precision=self.precision, dims=sizes)

    def latency_s(self, batch: int | Iterable[int], **dims: int) -> np.ndarray:
        """Latencies of a sweep as an array."""
        return np.array([p.latency_s for p in self.sweep(batch, **dims)])

    def crossover(self, largest: int = 4096, **dims: int) -> Crossover | None:
        """The first of crossovers(); None when there is none up to `largest`."""
        return next(iter(self.crossovers(largest, **dims)), None)

    def crossovers(self, largest: int = 4096, **dims: int) -> list[Crossover]:
        """Every batch up to `largest` at which host and device take equally long, in ascending order."""
        found = json.loads(self._predictor.crossovers(_dims(self._graph, dims), _whole("largest", largest)))
        return [Crossover({**one, "causes": [tuple(cause.values()) for cause in one["causes"]]}) for one in found]

    def headroom(self, budget: float = 0.05, **dims: int) -> list[Headroom]:
        """How much wider, deeper, longer or larger in batch for at most `budget` (a share) more latency."""
        skipped = {"start": 0, "end": 0, "latency_s": 0, "bound": "", "is_open": False, "skipped": ""}
        return [Headroom({**skipped, **one}) for one in json.loads(self._predictor.headroom(_dims(self._graph, dims), budget))]

    def operators(self, **dims: int) -> list[dict[str, Any]]:
        """Every scheduled operation of one forward pass with its host and device time."""
        return json.loads(self._predictor.operators(_dims(self._graph, dims)))


_options = frozenset(Predictor.__init__.__kwdefaults__)


def _predictor(model: Model, device: str, framework: str | None, precision: str | None,
               arguments: dict[str, Any]) -> tuple[Predictor, dict[str, Any]]:
    """The predictor of a function's arguments, and those of them that are dimensions."""
    options = {name: value for name, value in arguments.items() if name in _options}
    with _warnings.catch_warnings(record=True) as caught:
        _warnings.simplefilter("always")
        predictor = Predictor(model, device, framework, precision, **options)
    for warning in caught:  # reported at the caller
        _warnings.warn(warning.message, warning.category, stacklevel=3)
    return predictor, {name: value for name, value in arguments.items() if name not in _options}


def predict(model: Model, device: str, framework: str | None = None, precision: str | None = None, *,
            batch: int | Iterable[int] | None = None, **dims_and_options: Any) -> Sweep:
    """Predicts a model for each batch size (default: 1, or the one that the model fixes).

    `model` is a file, a name of models(), a Graph or a PyTorch model with its `example_inputs`; `device` one of devices(),
    `framework` one of frameworks() (default: pytorch-eager), `precision` as "fp16" (default: that of the weights). Further
    arguments are dimensions that the model leaves open (seq=128) and the options below. In the result times are seconds,
    memory bytes, power watts, shares from 0 to 1.

    >>> sweep = ftax.predict("resnet50", "a100-sxm4-40gb", precision="fp16", batch=[1, 64])
    >>> [p.bound for p in sweep]
    ['host', 'compute']
    >>> 0.001 < sweep[1].latency_s < 0.1 and sweep[1].low_s < sweep[1].latency_s < sweep[1].high_s
    True
    """
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    return predictor.sweep(batch, **dims)


def crossover(model: Model, device: str, framework: str | None = None, precision: str | None = None, *,
              largest: int = 4096, **dims_and_options: Any) -> Crossover | None:
    """The first of crossovers(); None when there is none up to `largest`.

    >>> 1 < ftax.crossover("bert", "quadro-rtx-8000", precision="fp16", seq=128).batch < 30
    True
    """
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    return predictor.crossover(largest, **dims)


def crossovers(model: Model, device: str, framework: str | None = None, precision: str | None = None, *,
               largest: int = 4096, **dims_and_options: Any) -> list[Crossover]:
    """Every batch up to `largest` at which host and device take equally long, in ascending order.

    >>> [found.gpu_waits for found in ftax.crossovers("bert", "quadro-rtx-8000", precision="fp16", seq=128)]
    ['below']
    """
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    return predictor.crossovers(largest, **dims)


def headroom(model: Model, device: str, framework: str | None = None, precision: str | None = None, *,
             batch: int = 1, budget: float = 0.05, **dims_and_options: Any) -> list[Headroom]:
    """How much wider, deeper, longer or larger in batch for at most `budget` (a share) more latency; as `ftax headroom`.

    >>> [growth.name for growth in ftax.headroom("resnet50", "t4", precision="fp16")]
    ['batch', 'width', 'depth']
    """
    predictor, dims = _predictor(model, device, framework, precision, dims_and_options)
    if "batch" in predictor.graph.symbols:
        dims["batch"] = batch
    return predictor.headroom(budget, **dims)


class Report(list):
    """What compare, generate and serve found: a Row per combination, the best first. print() shows the table that the
    program prints, a notebook its page.

    `verdict` says the best in a sentence, `warnings` are those of the whole report, to_dict() has all that `--json` has.
    """

    def __init__(self, result: tuple[str, str, str], write_page: Callable[[], str]) -> None:
        self._result, self._write_page = result, write_page
        self._report: dict[str, Any] = json.loads(result[0])
        super().__init__(map(Row, self._report.get("predictions") or self._report["rows"]))
        self.verdict: str = self._report["verdict"]
        self.warnings: list[str] = self._report["warnings"]

    def __str__(self) -> str:
        return self._result[1].rstrip("\n")

    def __reduce__(self) -> tuple[Any, ...]:
        return Report, (self._result, functools.partial(str, self._write_page()))

    def to_dict(self) -> dict[str, Any]:
        return self._report

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with one row per combination; nested values get names like memory.total_bytes."""
        import pandas

        return pandas.json_normalize(list(self))

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{_escape(self._write_page())}" style="width:100%;height:640px;border:0"></iframe>'


def _words(command: str, subject: str, arguments: dict[str, Any], dims: Callable[[dict[str, Any]], Any]) -> list[str]:
    """The words of a command: an argument is its option --argument, or else goes to `dims`, which refuses unknown ones."""
    known = _ftax.options(command)
    words = [command, subject]
    for name, value in arguments.items():
        option = name.replace("_", "-")
        if option not in known:
            words += [f"--dim={name}={size}" for size in dims({name: value}).values()]
        elif value is not None and name in ("batch", "tp"):
            words.append(f"--{option}={','.join(map(str, _wholes(name, value)))}")
        elif value is True:
            words.append(f"--{option}")
        elif value is not None and value is not False:
            listed = isinstance(value, Iterable) and not isinstance(value, (str, os.PathLike))
            words.append(f"--{option}={','.join(map(str, value)) if listed else value}")
    return words


def _run(command: str, model: Model, arguments: dict[str, Any], example_inputs: Any = None) -> Report:
    graph = None if isinstance(model, (str, os.PathLike)) else _graph(model, example_inputs)
    words = _words(command, graph.name if graph else os.fspath(model), arguments,
                   lambda size: _dims(graph or load_graph(os.fspath(model)), size))
    run = functools.partial(_ftax.run, words, graph)
    report = Report(run(False), lambda: run(True)[2])
    for warning in dict.fromkeys([*report.warnings, *(w for row in report for w in row.get("warnings", ()))]):
        _warnings.warn(warning, stacklevel=3)
    return report


def compare(model: Model, device: Names = None, framework: Names = None, precision: Names = None, *,
            batch: int | Iterable[int] | None = None, example_inputs: Any = None, **options_and_dims: Any) -> Report:
    """Predicts every combination of the given devices, frameworks, precisions and numbers of cards (`tp`), the best first.

    A combination that does not exist (a precision that the device lacks) has `skipped` in place of figures. `price` is in
    dollars per hour of one card, or a CSV file of them; `slo` is as in "latency=20ms".

    >>> best = ftax.compare("resnet50", ["t4", "l4"], ["pytorch-eager", "tensorrt"], precision="fp16", batch=8)[0]
    >>> best["device"], best["framework"]
    ('l4', 'tensorrt')
    """
    arguments = {"device": device, "framework": framework, "precision": precision, "batch": batch, **options_and_dims}
    return _run("compare", model, arguments, example_inputs)


def generate(model: Model, device: Names = None, framework: Names = None, precision: Names = None, *, prompt: int,
             new_tokens: int, batch: int | Iterable[int] = 1, **options: Any) -> Report:
    """Predicts the text of a language model under every combination, numbers of cards (`tp`) and batch.

    Keys of a row: ttft_s (time to the first token), tpot_s (mean time per further token), total_s, tokens_per_s, memory,
    fits, largest_batch and more. `model` is a config.json, a folder with one, or a name of the zoo; without a `precision`
    its own holds.

    >>> one, many = ftax.generate("llama-3-8b", "h100-sxm5-80gb", "vllm", prompt=1024, new_tokens=256, batch=[1, 64])
    >>> one["tokens_per_s"] < many["tokens_per_s"]
    True
    """
    arguments = {"device": device, "framework": framework, "precision": precision, "batch": batch, "prompt": prompt,
                 "new_tokens": new_tokens, "largest_batch": True, **options}
    return _run("generate", model, arguments)


def serve(model: Model, device: Names = None, framework: Names = None, precision: Names = None, **options_and_dims: Any) -> Report:
    """Serves requests that arrive over time under every combination, the best first.

    One of `rate`, `concurrency` and `requests` (a CSV file) says how they come; `slo` is as in "ttft=500ms,tpot=50ms".

    >>> rows = ftax.serve("llama-3-8b", ["h100-sxm5-80gb", "l40s"], "vllm@0.19", rate=5, prompt=512, new_tokens=128,
    ...                   slo="ttft=500ms", count=100)
    >>> all(row["keeps_level"] for row in rows)
    True
    """
    return _run("serve", model, {"device": device, "framework": framework, "precision": precision, **options_and_dims})


def explain(prediction: Prediction | Sweep) -> str:
    """Says in sentences what a prediction, or each of a sweep, rests on: what limits it, how certain it is and why.

    >>> ftax.explain(ftax.predict("resnet50", "t4", batch=64)[0]).splitlines()[0].startswith("bound by")
    True
    """
    if isinstance(prediction, Sweep):
        return "\n\n".join(f"batch {batch}:\n{explain(one)}" for batch, one in zip(prediction.batches, prediction))
    p = prediction
    waits = max(0.0, 1 - p.device_s / p.latency_s)
    limit = {"host": "the framework: a faster GPU or larger kernels gain nothing until its dispatch is faster",
             "compute": "arithmetic", "memory": "memory traffic", "floor": "the shortest time that kernels take"}[p.bound]
    sentences = [f"bound by {limit}",
                 f"the host dispatches for {p.host_s * 1e3:.3g} ms, {p.kernels} kernels run for {p.device_s * 1e3:.3g} ms; "
                 f"the device waits for {100 * waits:.0f} % of {p.latency_s * 1e3:.3g} ms",
                 f"90 % interval {p.low_s * 1e3:.3g} to {p.high_s * 1e3:.3g} ms"
                 + (f", mostly for {p.widest_component}" if p.widest_component else ""),
                 f"{100 * p.coverage['time']:.0f} % of the time rests on rules of its operators",
                 f"{p.memory_bytes / 1e9:.3g} GB of memory{'' if p.fits else ', which do not fit'}"]
    return "\n".join([*sentences, *p.warnings])


def report(model: Model, device: str, framework: str | None = None, precision: str | None = None,
           **options_and_dims: Any) -> dict[str, Any]:
    """All that `ftax predict --json` says: with measured="34ms" its `diagnosis` ranks causes, with advise=True `advice` says
    what next.

    >>> ftax.report("resnet50", "t4", measured="4s")["diagnosis"][0]["name"]
    's-as-ms'
    """
    arguments = {"device": device, "framework": framework, "precision": precision, **options_and_dims}
    return _run("predict", model, arguments).to_dict()


def inspect(model: Model, depth: int = 1, *, example_inputs: Any = None, **dims: int) -> dict[str, Any]:
    """Operators, FLOPs and MACs, bytes and parameters of a model, formulas of its open dimensions; as `ftax inspect --json`.

    >>> 25e6 < ftax.inspect("resnet50", batch=1)["parameters"] < 26e6
    True
    """
    graph = _graph(model, example_inputs)
    return json.loads(_ftax.inspect_json(graph, _dims(graph, dims), _whole("depth", depth)))


def validate(rows: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """Predictions against the measured rows of a CSV file; as `ftax validate --json`.

    >>> errors = ftax.validate("examples/anchor.csv")["overall"]
    >>> 0 < errors["mape"] < 1
    True
    """

    def refuse(argument: dict[str, Any]) -> dict[str, int]:
        raise UsageError(f"validate has no argument '{next(iter(argument))}'")

    report = json.loads(_ftax.run(_words("validate", os.fspath(rows), options, refuse), None, False)[0])
    for doubt in report["warnings"]:
        _warnings.warn(doubt, stacklevel=2)
    return report


def __dir__() -> list[str]:
    return sorted(__all__)


def _list_options(function: Callable[..., Any], command: str, takes: Callable[[str], bool]) -> None:
    """Ends the help of a function with those options of a command that it takes."""
    texts = {name.replace("-", "_"): text for name, text in _ftax.options(command).items()}
    listed = "".join(f"    {name}: {text}\n" for name, text in texts.items() if takes(name))
    function.__doc__ = f"{function.__doc__}\n    Options, as those of `ftax {command}`:\n\n{listed}"


for _function in (compare, generate, serve, validate):
    _list_options(_function, _function.__name__, lambda name: name not in ("json", "csv", "html"))
for _function in (predict, crossover, crossovers, headroom):
    _list_options(_function, "predict", _options.__contains__)
