#!/usr/bin/env python3
"""Compares the stream of operators that ftax reads from files with a real eager run under PyTorch's profiler.

    streams.py FTAX DIR MODEL…  > streams.tsv     DIR written by `exporters.py write`, with the models

Of both, the operators that launch kernels are taken, in order. A row per file says how many there are and how many of them stand
in both streams in the same order. Where those are less than 99 %, a TorchScript file is also run itself: scripting and tracing
change some programs (a number assigned to a slice is a copy of a tensor in eager, a fill in the file; scripted,
nn.MultiheadAttention takes its fast path), and what TorchScript then runs is what the file says. Fails where neither fits.
"""

import difflib
import json
import pathlib
import subprocess
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "graphs" / "zoo"))
import export
from exporters import flags_for

MATCHED = 0.99
# Of these the profiler shows below them whether they copied.
COPY_SOMETIMES = {"contiguous": "clone", "reshape": "clone", "flatten": "clone", "to": "_to_copy", "type_as": "_to_copy", "expand_as": "clone"}
NO_KERNEL = set(
    "view transpose permute expand slice select unsqueeze squeeze t split split_with_sizes chunk unbind narrow dropout detach alias "
    "size empty empty_like new_empty as_strided unfold numpy_T broadcast_tensors resolve_conj item is_nonzero lift_fresh unflatten "
    "movedim diagonal view_as feature_dropout result_type _unsafe_view empty_strided mT adjoint swapaxes broadcast_to expand_as".split()
)


def launches(event):
    name = event.name.removeprefix("aten::").rstrip("_")
    if name in COPY_SOMETIMES:
        return any(child.name == "aten::" + COPY_SOMETIMES[name] for child in event.cpu_children)
    return event.name.startswith("aten::") and name not in NO_KERNEL


def within_operator(event):
    parent = event.cpu_parent  # TorchScript's interpreter names the function that it is in, too
    return parent is not None and (parent.name.startswith("aten::") or within_operator(parent))


def stream(model, inputs, device="meta"):
    """Operators that a program calls itself and that launch kernels."""
    with torch.no_grad(), torch.device(device), torch.autograd.profiler.profile(record_shapes=True) as profile:
        model(*inputs)
    return sorted((e for e in profile.function_events if not within_operator(e) and launches(e)), key=lambda e: e.time_range.start)


def on_host(event):
    """A number becomes a tensor of the host without dimensions, and traced, sizes are such tensors. The shapes are those of the
    interpreter's stack, the operands last."""
    name = event.name.removeprefix("aten::").rstrip("_")
    operands = {"add": 3, "sub": 3, "rsub": 3, **dict.fromkeys(("mul", "div", "floor_divide", "remainder", "pow"), 2), "to": 5}.get(name)
    return name == "scalar_tensor" or (operands is not None and not any(event.input_shapes[-operands:]))


def torchscript_stream(path, inputs):
    """What TorchScript's interpreter runs of a file, each operator as it stands there; its weights are zeros."""
    model = torch.jit.load(path).eval()
    for module in model.modules():
        for name, held in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            module._c.setattr(name, torch.zeros(held.shape, dtype=held.dtype))
    with torch.jit.optimized_execution(False):
        events = stream(model, [torch.zeros_like(value, device="cpu") for value in inputs], "cpu")
    return ["conv2d" if name == "_convolution" else name for name in names(event for event in events if not on_host(event))]


def names(events):
    return [event.name.removeprefix("aten::").rstrip("_") for event in events]


def matched(expected, read):
    """Share of the operators that stand in both streams in the same order, and which do not."""
    blocks = difflib.SequenceMatcher(None, expected, read, autojunk=False).get_opcodes()
    same = sum(b - a for tag, a, b, _, _ in blocks if tag == "equal")
    only = [sorted({x for tag, a, b, c, d in blocks if tag != "equal" for x in (expected[a:b] if side else read[c:d])}) for side in (1, 0)]
    return same / max(len(expected), len(read)), only


def file_stream(ftax, path):
    command = [ftax, "inspect", path, *flags_for(ftax, path), "--stream", "--json", "-"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["stream"]
    read = [row["operator"].removeprefix("aten::").rstrip("_") for row in rows if row["dispatch"] == "kernel"]
    # Of this one its parts are listed.
    return [name for i, name in enumerate(read) if name != "_native_multi_head_attention" or read[i - 1] != name]


def main():
    ftax, folder, *models = sys.argv[1:]
    torch.backends.mha.set_fastpath_enabled(False)
    print("model\tfile\teager_kernels\tfile_kernels\tmatched_percent\tonly_eager\tonly_file\ttorchscript_kernels\ttorchscript_matched_percent")
    misses = 0
    for text in models:
        spec = export.Spec(text)
        model, inputs, _ = export.build(spec)
        eager = names(stream(lambda *values: model(**dict(zip(inputs, values))), inputs.values()))
        for kind in ("pt2.pt2", "traced.pt", "scripted.pt"):
            path = pathlib.Path(folder) / f"{spec.name}.{kind}"
            if not path.exists():
                continue
            read = file_stream(ftax, path)
            share, only = matched(eager, read)
            cells = [spec.name, kind.split(".")[0], len(eager), len(read), f"{100 * share:.2f}", *(" ".join(names) for names in only)]
            if share < MATCHED and path.suffix == ".pt":
                run = torchscript_stream(path, inputs.values())
                share = matched(run, read)[0]
                cells += [len(run), f"{100 * share:.2f}"]
            misses += share < MATCHED
            print(*cells, sep="\t", flush=True)
    return misses > 0


if __name__ == "__main__":
    sys.exit(main())
