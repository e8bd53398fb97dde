#!/usr/bin/env python3
"""Export a PyTorch model to a weightless .pt2 (or ONNX) file with symbolic `batch` and `seq`.

    export.py torchvision:resnet50 timm:vit_base_patch32_224 transformers:BertModel -o DIR
    export.py transformers:BertModel,hidden_size=1024,num_attention_heads=16 -o DIR
    export.py zoo:bert | zoo: | FILE.py:FUNCTION          a row of models.tsv, all of them, or a user's own factory
    export.py FILE.tsv                                    every row of a table like models.tsv
    export.py --onnx torchvision:resnet50 -o DIR

The model is built on the meta device, so neither its weights nor the memory for them exist. The graph is torch.export's
training IR: ATen operators as eager dispatches them, views and module paths included, no decomposition. The archive keeps the
graph, has no weights and no stack traces, names the symbols, and adds `extra/module_calls.json`: every nn.Module call in order
(class and path), because modules that dispatch nothing (Identity) leave no trace in the graph yet cost host time.
"""

import argparse
import contextlib
import csv
import functools
import importlib.util
import io
import itertools
import json
import pathlib
import re
import sys
import zipfile
from unittest import mock

import torch
from torch.export import Dim
from torch.overrides import TorchFunctionMode

MAX_BATCH = 65536
HERE = pathlib.Path(__file__).resolve().parent


class Spec:
    """Names one model: `source:model` plus options, some for the export, the rest for the model's configuration."""

    EXPORT_KEYS = ("img", "samples", "seq", "decode", "control", "symbols", "attention", "unbacked")

    def __init__(self, text, name=None):
        self.source, _, rest = text.partition(":")
        self.model, *pairs = re.split(r",(?![^(]*\))", rest)  # commas inside parentheses belong to the value
        self.name = name or self.model
        self.config = {key: parse_value(value) for key, _, value in (pair.partition("=") for pair in pairs if pair)}
        self.export = {k: self.config.pop(k) for k in self.EXPORT_KEYS if k in self.config}


def parse_value(text):
    with contextlib.suppress(json.JSONDecodeError):
        return json.loads(text)
    return [parse_value(item) for item in text.split("|")] if "|" in text else text


def zoo_specs(wanted="", table=HERE / "models.tsv"):
    rows = csv.reader(table.open(), delimiter="\t")
    specs = [Spec(",".join(row[1:]), row[0]) for row in rows
             if row and not row[0].startswith("#") and wanted in ("", row[0])]
    return specs or sys.exit(f"the zoo has no model '{wanted}'")


def specs_of(text):
    if text.endswith(".tsv"):
        return zoo_specs(table=pathlib.Path(text))
    return zoo_specs(text[4:]) if text.startswith("zoo:") else [Spec(text)]


# ---- models and their example inputs: (model, inputs, {input: {dimension: symbol}}) --------------------------------------


def build_vision(model, img):
    return model, {"x": torch.zeros(2, 3, img, img, device="meta")}, {"x": {0: "batch"}}


def build_torchvision(spec):
    import torchvision

    model = torchvision.models.get_model(spec.model, weights=None, **spec.config)
    return build_vision(model, spec.export.get("img", 224))


def build_timm(spec):
    import timm

    model = timm.create_model(spec.model, pretrained=False, **spec.config)
    config = model.default_cfg
    size = (config if isinstance(config, dict) else vars(config)).get("input_size", (3, 224, 224))
    return build_vision(model, spec.export.get("img", size[-1]))


def tensors_in(output):
    """What a model returns, in objects of transformers and their caches as well, which torch.export does not know."""
    if isinstance(output, torch.Tensor):
        yield output
    for item in output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ():
        yield from tensors_in(item)
    for part in ("layers", "self_attention_cache", "cross_attention_cache", "keys", "values"):
        if hasattr(output, part) and not isinstance(output, (dict, torch.Tensor)):
            yield from tensors_in(getattr(output, part))


def build_transformers(spec):
    import transformers

    kind = getattr(transformers, spec.model)
    config = kind.config_class(**{"attn_implementation": "eager", **spec.config})
    model = kind(config)
    model.register_forward_hook(lambda _, __, output: tuple(tensors_in(output)))
    tokens = lambda: torch.zeros(2, spec.export.get("seq", 128), dtype=torch.long, device="meta")
    if "samples" in spec.export:
        inputs = {"input_values": torch.zeros(2, spec.export["samples"], device="meta")}
        return model, inputs, {"input_values": {0: "batch"}}
    if model.main_input_name == "pixel_values":
        size = spec.export.get("img", getattr(config, "image_size", 224))
        return model, {"pixel_values": torch.zeros(2, 3, size, size, device="meta")}, {"pixel_values": {0: "batch"}}
    names = ["input_ids"] + ["decoder_input_ids"] * config.is_encoder_decoder
    if "decode" in spec.export:
        model = GreedyDecoding(kind(config), spec.export["decode"])
    return model, {name: tokens() for name in names}, {name: {0: "batch", 1: "seq"} for name in names}


def build_own(spec):
    """Calls FILE.py:FUNCTION, which returns (model, inputs by name, {input: {dimension: symbol}})."""
    module_spec = importlib.util.spec_from_file_location("own_model", spec.source)
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return getattr(module, spec.model)()


BUILDERS = {"torchvision": build_torchvision, "timm": build_timm, "transformers": build_transformers}


class GreedyDecoding(torch.nn.Module):
    """Generates `steps` tokens greedily with a growing key/value cache: one prompt pass, then one pass per token."""

    def __init__(self, model, steps):
        super().__init__()
        self.model, self.steps = model, steps

    def forward(self, input_ids):
        past, tokens = None, [input_ids]
        for _ in range(self.steps):
            logits, past = self.model(tokens[-1], past_key_values=past, use_cache=True, return_dict=False)[:2]
            tokens.append(logits[:, -1].argmax(-1, keepdim=True))
        return torch.cat(tokens, 1)


@contextlib.contextmanager
def parameters_on_meta():
    """Moves each parameter to the meta device as it is registered, so that initialisation costs neither time nor memory.

    Building under `torch.device("meta")` would be simpler but breaks models that compute on numbers while they are built.
    """
    register = torch.nn.Module.register_parameter

    def register_on_meta(module, name, parameter):
        register(module, name, None if parameter is None else torch.nn.Parameter(parameter.to("meta"), requires_grad=False))

    with mock.patch.object(torch.nn.Module, "register_parameter", register_on_meta):
        yield


def build(spec):
    builder = BUILDERS.get(spec.source, build_own)
    try:
        with parameters_on_meta():
            model, inputs, dims = builder(spec)
    except RuntimeError:  # a model that runs parts of itself while it is built needs real numbers
        model, inputs, dims = builder(spec)
    return model.to("meta").eval(), {name: value.to("meta") for name, value in inputs.items()}, dims


class ControlUnknown(Exception):
    """The model asks for a value of a tensor that was not noted."""


class ControlValues(TorchFunctionMode):
    """Answers control flow on tensor values (`.item()`, `if tensor:`, `x in tensor`, `arange(tensor)`).

    A file without data cannot know them, so they are noted in one real run (random weights, zero inputs) and replayed,
    in order, while the model is traced.
    """

    ASKS = (torch.Tensor.item, torch.Tensor.__bool__, torch.Tensor.__int__)

    def __init__(self):
        super().__init__()
        self.values, self.replay = [], None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.ASKS:
            return self.answer(args[0])
        if func is torch.Tensor.__contains__:
            return bool(self.answer((args[0] == args[1]).any()))
        if func is torch.div and not any(isinstance(a, torch.Tensor) for a in args):
            return args[0] // args[1]  # models divide sizes by torch.div(…, rounding_mode="trunc")
        if func is torch.arange:
            args = [self.answer(a) if isinstance(a, torch.Tensor) else a for a in args]
        return func(*args, **(kwargs or {}))

    def answer(self, tensor):
        if self.replay is None:
            self.values.append(tensor.item())
            return self.values[-1]
        if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.device.type != "meta":
            torch.ops.aten.item.default(tensor)  # stays in the graph: the host waits here
        with contextlib.suppress(StopIteration):
            return next(self.replay)
        raise ControlUnknown("control flow depends on values of tensors; export with control=replay")

    @classmethod
    @functools.lru_cache
    def of(cls, spec):
        """Runs the model once for real, or does nothing for a model without such control flow."""
        control = cls()
        if spec.export.get("control") == "replay":
            model, inputs, _ = BUILDERS.get(spec.source, build_own)(spec)
            with torch.no_grad(), control:
                model.eval()(**{k: torch.zeros_like(v, device="cpu") for k, v in inputs.items()})
        return control


def attention_of_2022(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **_):
    """Attention as torch.nn.functional.multi_head_attention_forward computed it up to torch 1.12."""
    batch = query.shape[:-2]
    query, key, value = (x.flatten(0, -3) for x in (query / query.shape[-1] ** 0.5, key, value))
    if attn_mask is None:
        scores = torch.bmm(query, key.transpose(-2, -1))
    else:
        scores = torch.baddbmm(attn_mask.flatten(0, -3), query, key.transpose(-2, -1))
    return torch.bmm(torch.softmax(scores, -1), value).unflatten(0, batch)


@contextlib.contextmanager
def tracing(spec):
    """Runs the model without gradients or data: constants made on the way land on the meta device too."""
    control = ControlValues.of(spec)
    control.replay = iter(control.values)
    with torch.no_grad(), torch.device("meta"), control, contextlib.ExitStack() as stack:
        # Blocks that a model exempts from autocast: the meta device knows none to be exempted from.
        stack.enter_context(mock.patch.object(torch, "autocast", lambda *_, **__: contextlib.nullcontext()))
        # A module that converts itself on the way (`self.to(dtype)`) already is what it converts to.
        stack.enter_context(mock.patch.object(torch.nn.Module, "_apply", lambda module, *_, **__: module))
        # Exporting, transformers 5 computes masks that it leaves out when it runs, or leaves out others and stops.
        for name, module in [*sys.modules.items()] if "transformers" in sys.modules else ():
            for ask in {"is_torchdynamo_exporting", "is_torchdynamo_compiling"} & vars(module).keys():
                if name.startswith("transformers.models.") or name == "transformers.masking_utils":
                    stack.enter_context(mock.patch.object(module, ask, lambda: False))
        if spec.export.get("attention") == 2022:
            stack.enter_context(mock.patch("torch.nn.functional.scaled_dot_product_attention", attention_of_2022))
        yield


def export_program(spec, model, inputs, dims):
    """Exports with every dimension in `dims` symbolic; falls back, one step at a time, to what the model allows."""
    config = getattr(model, "config", None) or getattr(getattr(model, "model", None), "config", None)
    positions = getattr(config, "max_position_embeddings", None) or MAX_BATCH
    positions = (positions if positions > 0 else MAX_BATCH) - spec.export.get("decode", 0)
    symbols = {"batch": Dim("batch", min=1, max=MAX_BATCH), "seq": Dim("seq", min=2, max=positions)}
    wanted = {s for axes in dims.values() for s in axes.values()} & set(spec.export.get("symbols", symbols))
    deferred = {"prefer_deferred_runtime_asserts_over_guards": True}
    fewer = [wanted, {"batch"}] if wanted > {"batch"} else [wanted]
    failures = []
    for kept, options in [*itertools.product(fewer, ({}, deferred)), (set(), {})]:
        shapes = {k: {axis: symbols[s] for axis, s in axes.items() if s in kept} for k, axes in dims.items()}
        try:
            with tracing(spec), module_calls(model) as calls:
                program = torch.export.export(model, (), inputs, dynamic_shapes=shapes, strict=False, **options)
            kept_dims = {k: {a: s for a, s in axes.items() if s in kept} for k, axes in dims.items()}
            return program, calls, kept_dims, failures
        except Exception as error:  # torch.export raises many types; each failed attempt is reported
            failures.append(f"{sorted(kept)}: {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}")
    raise RuntimeError("; ".join(failures))


@contextlib.contextmanager
def module_calls(model):
    """Lists every nn.Module call of the forward passes inside as [path, qualified class], in order."""
    calls = []
    with contextlib.ExitStack() as hooks:
        for path, module in model.named_modules(remove_duplicate=True):
            entry = [path, f"{type(module).__module__}.{type(module).__qualname__}"]
            hooks.enter_context(module.register_forward_pre_hook(lambda *_, entry=entry: calls.append(entry)))
        yield calls


def symbol_names(program, dims, spec):
    """Maps torch's names of symbols (s72) to ours (batch), by the inputs that carry them.

    Sizes that depend on data (u0) become what the option `unbacked` says they are for typical data.
    """
    names = {}
    if "unbacked" in spec.export:
        sizes = {str(s) for node in program.graph.nodes for v in torch.utils._pytree.tree_leaves(node.meta.get("val"))
                 for size in getattr(v, "shape", ()) if isinstance(size, torch.SymInt) for s in size.node.expr.free_symbols}
        names = {size: f"({spec.export['unbacked']})" for size in sizes if size.startswith("u")}
    by_name = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    sizes = [(by_name[name].shape[axis], symbol) for name, axes in dims.items() for axis, symbol in axes.items()]
    return {**names, **{str(size.node.expr): symbol for size, symbol in sizes if isinstance(size, torch.SymInt)}}


def rename_symbols(text, names):
    if not names:
        return text
    return re.sub(r"\b(" + "|".join(map(re.escape, names)) + r")\b", lambda m: names[m.group(1)], text)


def save(program, names, calls, path):
    """Writes the archive without stack traces and with our symbol names; weights on the meta device have no bytes."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={"module_calls.json": json.dumps(calls, separators=(",", ":"))})
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.namelist():
            data = old.read(item)
            if re.search(r"models/[^/]*\.json$|serialized_exported_program\.json$", item):
                model = json.loads(rename_symbols(data.decode(), names))
                for node in model["graph_module"]["graph"]["nodes"]:
                    for key in ("stack_trace", "torch_fn", "source_fn_stack", "from_node"):
                        node.get("metadata", {}).pop(key, None)
                data = json.dumps(model, separators=(",", ":"))
            new.writestr(re.sub(r"^[^/]*/", f"{path.stem}/", item), data)


def save_onnx(program, names, path):
    """Writes an ONNX file whose initializers keep name, type and shape but have no data behind them."""
    import onnx_ir

    model = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False).model
    for value in model.graph.initializers.values():
        data = getattr(value.const_value, "raw", None)
        if not isinstance(data, torch.Tensor) or data.device.type != "meta":
            continue  # constants of the graph itself: shapes, axes
        value.const_value = onnx_ir.ExternalTensor("weights-not-included", 0, value.const_value.nbytes, value.dtype,
                                                   name=value.name, shape=value.shape)
    proto = onnx_ir.serde.serialize_model(model)
    for node in proto.graph.node:
        kept = [entry for entry in node.metadata_props if not entry.key.endswith("stack_trace")]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    for value in [*proto.graph.input, *proto.graph.output, *proto.graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = rename_symbols(dim.dim_param, names)
    path.write_bytes(proto.SerializeToString())


def describe(inputs, dims):
    shape = lambda k, v: "x".join(str(dims.get(k, {}).get(axis, n)) for axis, n in enumerate(v.shape))
    return " ".join(f"{k}:{shape(k, v)}:{str(v.dtype).removeprefix('torch.')}" for k, v in inputs.items())


def export_spec(spec, folder, onnx=False):
    """Exports one model and returns its row of the manifest."""
    model, inputs, dims = build(spec)
    program, calls, dims, failures = export_program(spec, model, inputs, dims)
    names = symbol_names(program, dims, spec)
    if onnx:
        save_onnx(program, names, folder / f"{spec.name}.onnx")
    else:
        save(program, names, calls, folder / f"{spec.name}.pt2")
    symbols = sorted({s for axes in dims.values() for s in axes.values()})
    if not symbols:
        print(f"{spec.name}: exported for one batch size only", file=sys.stderr)
    options = ",".join(f"{k}={v}" for k, v in {**spec.export, **spec.config}.items())
    return program, calls, [spec.name, f"{spec.source}:{spec.model}", options, describe(inputs, dims), ",".join(symbols), " | ".join(failures)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="SOURCE:MODEL[,option=value…]")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("."), help="folder to write to")
    parser.add_argument("--onnx", action="store_true", help="write ONNX instead of .pt2")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    failed = 0
    for spec in itertools.chain.from_iterable(map(specs_of, arguments.models)):
        try:
            print("\t".join(export_spec(spec, arguments.output, arguments.onnx)[2]), flush=True)
        except Exception as error:  # one model must not stop the others
            failed += 1
            print(f"{spec.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
