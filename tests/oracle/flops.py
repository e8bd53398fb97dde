#!/usr/bin/env python3
"""Compares the multiply-adds ftax counts in .pt2 files with torch.utils.flop_counter on the same models.

    flops.py FTAX MODEL…  > flops.tsv        MODEL as graphs/zoo/export.py takes it: zoo:bert timm:convnext_tiny …

Each model is exported weightless, read by `ftax inspect --json` and run once on the meta device under FlopCounterMode.
Prints one row per model and fails when one of them is more than 0.1 % off.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "graphs" / "zoo"))
import export

TOLERANCE = 1e-3


def run_flops(spec):
    model, inputs, _ = export.build(spec)
    with export.tracing(spec), FlopCounterMode(display=False) as counter:
        model(**inputs)
    return counter.get_total_flops()


def torch_flops(spec):
    """Floating-point operations of contractions in one forward pass with the example inputs."""
    try:
        return run_flops(spec)
    except export.ControlUnknown:  # asked while it runs, not while it is exported (is there padding at all?)
        replayed = copy.copy(spec)
        replayed.export = {**spec.export, "control": "replay"}
        return run_flops(replayed)


def ftax_flops(ftax, spec, folder):
    row = export.export_spec(spec, folder)[2]
    bindings = {"batch": ["--batch", "2"], "seq": ["--dim", f"seq={spec.export.get('seq', 128)}"]}
    flags = [flag for symbol in row[4].split(",") if symbol for flag in bindings[symbol]]
    command = [ftax, "inspect", str(folder / f"{spec.name}.pt2"), *flags, "--json", "-"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return 2 * report["total"]["macs"], report["unknown_operators"]


def main():
    ftax, *models = sys.argv[1:]
    specs = [spec for text in models for spec in (export.zoo_specs(text[4:]) if text.startswith("zoo:") else [export.Spec(text)])]
    print("model\tsource\ttorch_gflop\tftax_gflop\tdifference_percent\tunknown_operators")
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for spec in specs:
            expected = torch_flops(spec)
            counted, unknown = ftax_flops(ftax, spec, pathlib.Path(folder))
            difference = counted / expected - 1
            worst = max(worst, abs(difference))
            print(f"{spec.name}\t{spec.source}\t{expected / 1e9:.4f}\t{counted / 1e9:.4f}\t{100 * difference:.3f}\t{unknown}", flush=True)
    return worst > TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
