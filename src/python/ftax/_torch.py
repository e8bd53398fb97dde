"""Models of PyTorch without their weights: exported on the meta device, read as .pt2."""

from __future__ import annotations

import copy
import os
import tempfile
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ._ftax import Graph, ModelError, UsageError, load_graph


def _on_meta(model: torch.nn.Module) -> torch.nn.Module:
    """A copy whose parameters and buffers have shapes and no storage; those of the model are never copied."""
    stand_ins: dict[int, Any] = {}
    for tensor in [*model.parameters(), *model.buffers()]:
        meta = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, torch.nn.Parameter):
            meta = torch.nn.Parameter(meta, requires_grad=tensor.requires_grad)
        stand_ins[id(tensor)] = meta
    return copy.deepcopy(model, stand_ins).to("meta").eval()


def _with_batch(inputs: Any) -> tuple[Any, Any, bool]:
    """The examples with a leading dimension of at least 2 (1 would be taken for a constant), and what names it `batch`."""
    leading = {t.shape[0] for t in torch.utils._pytree.tree_leaves(inputs) if isinstance(t, torch.Tensor) and t.dim() > 0}
    if len(leading) != 1:
        return inputs, None, False
    size = max(2, *leading)
    batch = torch.export.Dim("batch")

    def widened(t: torch.Tensor) -> torch.Tensor:
        return t.new_empty((size, *t.shape[1:])) if t.dim() > 0 else t

    shapes = tree_map_only(torch.Tensor, lambda t: {0: batch} if t.dim() > 0 else None, inputs)
    return tree_map_only(torch.Tensor, widened, inputs), shapes, True


def _export(model: torch.nn.Module, inputs: Any, kwargs: dict[str, Any], dynamic_shapes: Any) -> torch.export.ExportedProgram:
    meta = _on_meta(model)
    inputs, kwargs = tree_map_only(torch.Tensor, lambda t: t.to("meta"), (inputs, kwargs))
    with torch.no_grad():
        if dynamic_shapes is None:
            (wide, wide_kwargs), shapes, varies = _with_batch((inputs, kwargs))
            if varies:
                try:
                    return torch.export.export(meta, wide, wide_kwargs, strict=False,
                                               dynamic_shapes=(*shapes[0], *shapes[1].values()) if kwargs else shapes[0])
                except Exception:  # whatever the exporter dislikes, the shapes of the examples remain
                    pass
        try:
            return torch.export.export(meta, inputs, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
        except Exception as error:  # noqa: BLE001
            raise ModelError(f"torch.export cannot export {type(model).__name__}: {str(error).strip().splitlines()[0]}") from error


def graph_of(model: Any, example_inputs: Any, example_kwargs: dict[str, Any] | None, dynamic_shapes: Any) -> Graph:
    """See ftax.from_torch."""
    if isinstance(model, torch.export.ExportedProgram):
        program = model
    elif isinstance(model, torch.nn.Module):
        if example_inputs is None and not example_kwargs:
            raise UsageError(f"{type(model).__name__} is a PyTorch model: give example_inputs=(…), those of its forward()")
        inputs = () if example_inputs is None else example_inputs
        inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        program = _export(model, inputs, dict(example_kwargs or {}), dynamic_shapes)
    else:
        raise UsageError(f"{type(model).__name__} is neither a torch.nn.Module nor an ExportedProgram")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{type(model).__name__}.pt2")
        torch.export.save(program, path)
        return load_graph(path)
