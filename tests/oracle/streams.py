#!/usr/bin/env python3
"""Compares the stream of operators that ftax reads from files with a real eager run under PyTorch's profiler.

    streams.py FTAX DIR MODEL…  > streams.tsv     DIR as exporters.py write fills it, the models likewise

Of both, the operators that launch kernels are taken, in order. A row per file says how many there are and how many of them stand
in both streams in the same order; fails where that is less than 99 %.
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


def eager_stream(spec):
    """Operators that Python calls and that launch kernels, from a run without data."""
    model, inputs, _ = export.build(spec)
    with torch.no_grad(), torch.device("meta"), torch.autograd.profiler.profile() as profile:
        model(**inputs)
    events = sorted((e for e in profile.function_events if e.cpu_parent is None), key=lambda e: e.time_range.start)
    return [event.name.removeprefix("aten::").rstrip("_") for event in events if launches(event)]


def file_stream(ftax, path):
    command = [ftax, "inspect", path, *flags_for(ftax, path), "--stream", "--json", "-"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["stream"]
    return [row["operator"].removeprefix("aten::").rstrip("_") for row in rows if row["dispatch"] == "kernel"]


def main():
    ftax, folder, *models = sys.argv[1:]
    torch.backends.mha.set_fastpath_enabled(False)
    print("model\tfile\teager_kernels\tfile_kernels\tmatched_percent\tonly_eager\tonly_file")
    misses = 0
    for text in models:
        spec = export.Spec.parse(text)
        eager = eager_stream(spec)
        for kind in ("pt2.pt2", "traced.pt", "scripted.pt"):
            path = pathlib.Path(folder) / f"{spec.name}.{kind}"
            if not path.exists():
                continue
            read = file_stream(ftax, path)
            blocks = difflib.SequenceMatcher(None, eager, read, autojunk=False).get_opcodes()
            same = sum(b - a for tag, a, b, _, _ in blocks if tag == "equal")
            only = [sorted({x for tag, a, b, c, d in blocks if tag != "equal" for x in (eager[a:b] if side else read[c:d])}) for side in (1, 0)]
            share = same / max(len(eager), len(read))
            misses += share < MATCHED
            print(spec.name, kind.split(".")[0], len(eager), len(read), f"{100 * share:.2f}", *(" ".join(names) for names in only), sep="\t", flush=True)
    return misses > 0


if __name__ == "__main__":
    sys.exit(main())
