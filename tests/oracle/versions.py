#!/usr/bin/env python3
"""Writes three small networks as the torch that runs this exports them; the files stand in tests/graphs/pt2/versions.

    versions.py DIR       writes DIR/NAME-2.4.pt2 and so on; run it once with each version of torch

`torch.export.save` alone makes the archive, of weights without data; only the stack traces, which hold paths, are taken out.
"""

import json
import pathlib
import sys
import zipfile

import torch
from torch import nn
from torch.export import Dim

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import small_models


class Mixed(nn.Module):
    """Arguments of every form that an archive writes: symbolic sizes, lists, absent tensors, -inf, several outputs."""

    def __init__(self, words=100, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.embedding, self.positions = nn.Embedding(words, width), nn.Embedding(64, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Conv1d(width, width, 3, padding=1, bias=False)
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("steps", torch.arange(64), persistent=False)

    def forward(self, ids, mask):
        batch, length = ids.shape
        x = self.embedding(ids) + self.positions(self.steps[:length])
        causal = torch.ones(length, length, dtype=torch.bool, device=ids.device)
        mask = mask[:, None, None, :]
        with torch.no_grad():
            allowed = causal.tril() & mask.bool()
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * 8**-0.5
        scores = scores.masked_fill(~allowed, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)
        y = self.mix((y * self.scale).mT).mT
        y = torch.cat(y.split([8, 24], -1)[::-1], -1)
        best = y.topk(3, -1)[0] * 2
        kept = y[torch.arange(batch, device=ids.device), mask.sum((1, 2, 3)) - 1]
        return kept, best, nn.functional.interpolate(y[:, None], scale_factor=2.0, mode="bilinear")


def mixed():
    ids = torch.zeros(2, 16, dtype=torch.long, device="meta")
    axes = {0: "batch", 1: "seq"}
    return Mixed(), {"ids": ids, "mask": torch.ones_like(ids)}, {"ids": axes, "mask": axes}


def export(build):
    with torch.device("meta"):
        model, inputs, axes = build()
    symbols = {"batch": Dim("batch", min=1, max=1024), "seq": Dim("seq", min=2, max=64)}
    shapes = {name: {axis: symbols[symbol] for axis, symbol in dims.items()} for name, dims in axes.items()}
    return torch.export.export(model.eval(), (), inputs, dynamic_shapes=shapes, strict=False)


def without_stack_traces(value):
    if isinstance(value, dict):
        return {k: without_stack_traces(v) for k, v in value.items() if k not in ("stack_trace", "stack_traces")}
    return [without_stack_traces(v) for v in value] if isinstance(value, list) else value


def pack(source, target):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".json") and b"graph_module" in data:
                data = json.dumps(without_stack_traces(json.loads(data)), separators=(",", ":"))
            new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def main():
    folder = pathlib.Path(sys.argv[1])
    version = ".".join(torch.__version__.split(".")[:2])
    for build in (small_models.image, small_models.encoder, mixed):
        path = folder / f"{build.__name__}-{version}.pt2"
        try:
            torch.export.save(export(build), path)
            pack(path, path.with_suffix(".packed"))
            path.with_suffix(".packed").rename(path)
            print(path.name, path.stat().st_size)
        except Exception as error:  # not every version takes every network
            path.unlink(missing_ok=True)
            print(path.name, type(error).__name__, str(error)[:300])


if __name__ == "__main__":
    main()
