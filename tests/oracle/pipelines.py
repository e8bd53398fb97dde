#!/usr/bin/env python3
"""Holds predictions of whole pipelines to measured ones: folders of diffusers against the rows of Stable Diffusion.

    pipelines.py FTAX diffusion_eager.csv lambda_diffusers.csv diffusion.csv

Times of diffusion_eager.csv are whole pipelines divided by their steps; rows of lambda_diffusers.csv with attention written
out run another network than the blocks of diffusers 0.35 and are left out.
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys

FOLDERS = pathlib.Path(__file__).parent.parent / "graphs" / "diffusers"
SD15, XL = FOLDERS / "stable-diffusion-v1-5", FOLDERS / "stable-diffusion-xl-base-1.0"
FLUX, SD35 = FOLDERS / "flux-1-dev", FOLDERS / "stable-diffusion-3.5-large"


def predicted(ftax, folder, steps, row, version, batch):
    layout = ["--channels-last"] if row.get("layout") == "nhwc" else []
    command = [ftax, "predict", folder, "--steps", str(steps), "--device", row["gpu"], "--framework", f"{row['framework']}@{version}",
               "--precision", row["precision"], "--batch", str(batch), "--json", "-q", *layout]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["predictions"][0]


def main(ftax, eager_csv, lambda_csv, served_csv):
    measured = {}  # mean of the tasks of one page
    for row in csv.DictReader(open(eager_csv, newline="")):
        if row["model"] in ("sd15_unet", "sdxl_unet"):
            version = ".".join(row["version"].split(".")[:2])
            key = (row["run"].split(" SD ")[0], row["model"], row["gpu"], row["framework"], version, row["precision"], row["layout"], row["batch"])
            measured.setdefault(key, (row, version, []))[2].append(float(row["latency_ms"]))
    settings = {}
    for key, (row, version, times) in measured.items():
        folder = XL if row["model"] == "sdxl_unet" else SD15
        run = predicted(ftax, folder, 50, row, version, int(row["batch"]) // 2)
        settings.setdefault(key[0], []).append((run, statistics.fmean(times) * 50e-3))
    for row in csv.DictReader(open(lambda_csv, newline="")):
        if row["attention"] == "xformers":
            run = predicted(ftax, SD15, int(row["steps"]), row, row["version"], row["batch"])
            settings.setdefault("lambda-diffusers, xformers", []).append((run, float(row["latency_ms"]) * 1e-3))
    for row in csv.DictReader(open(eager_csv, newline="")):
        if row["model"] == "flux_dev" and row["precision"] == "bf16":
            run = predicted(ftax, FLUX, 50, row, row["version"], row["batch"])
            settings.setdefault("torchao, FLUX.1-dev", []).append((run, float(row["latency_ms"]) * 50e-3))
    for row in csv.DictReader(open(served_csv, newline="")):
        folder = {"FLUX.1-dev": FLUX, "stable-diffusion-3.5-large": SD35}.get(row["model"].split("/")[1])
        if folder and row["gpus"] == "1":
            run = predicted(ftax, folder, row["steps"], {**row, "precision": "bf16"}, "2.6", row["batch"])
            settings.setdefault(f"ML.ENERGY, {folder.name}, {row['gpu']}", []).append((run, float(row["latency_s"])))
    for name, runs in settings.items():
        errors = [100 * (run["latency_s"] / seconds - 1) for run, seconds in runs]
        inside = sum(run["low_s"] <= seconds <= run["high_s"] for run, seconds in runs)
        print(f"{name}: {len(runs)} settings, mean error {statistics.fmean(map(abs, errors)):.1f} %, bias {statistics.fmean(errors):+.1f}, "
              f"{inside} inside the interval")


if __name__ == "__main__":
    main(*sys.argv[1:])
