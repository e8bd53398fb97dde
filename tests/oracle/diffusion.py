#!/usr/bin/env python3
"""Exports diffusion networks without weights and prints predicted beside measured times per pass: the tables of docs/results.md.

    diffusion.py FTAX FOLDER diffusion.csv diffusion_eager.csv      # written with torch 2.11 and diffusers 0.35.2

FOLDER keeps the exported networks (a few minutes). Measured times include text encoder and decoder. ML.ENERGY v3 installs
diffusers 0.35.2 and PyTorch 2.6 (pyproject.toml and README.md of github.com/ml-energy/benchmark); other versions of
diffusers write other kernels for the same network.
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys

import diffusers
import torch

BF16 = torch.bfloat16


def empty(*shape, dtype=BF16):
    return torch.empty(shape, dtype=dtype)


def wan(heads, layers, ffn):
    return (lambda: diffusers.WanTransformer3DModel(num_attention_heads=heads, attention_head_dim=128, ffn_dim=ffn, num_layers=layers),
            lambda: dict(hidden_states=empty(1, 16, 21, 60, 104), timestep=empty(1), encoder_hidden_states=empty(1, 512, 4096)))


def unet(batch):
    half = torch.float16
    return (lambda: diffusers.UNet2DConditionModel(sample_size=64, cross_attention_dim=768),
            lambda: dict(sample=empty(batch, 4, 64, 64, dtype=half), timestep=empty(dtype=torch.int64),
                         encoder_hidden_states=empty(batch, 77, 768, dtype=half)))


NETWORKS = {  # network and inputs of one pass at batch 1, with guidance two sequences
    "FLUX.1-dev": (lambda: diffusers.FluxTransformer2DModel(guidance_embeds=True), lambda: dict(
        hidden_states=empty(1, 4096, 64), encoder_hidden_states=empty(1, 512, 4096), pooled_projections=empty(1, 768), timestep=empty(1),
        img_ids=empty(4096, 3), txt_ids=empty(512, 3), guidance=empty(1))),
    "stable-diffusion-3.5-large": (lambda: diffusers.SD3Transformer2DModel(
        sample_size=128, patch_size=2, in_channels=16, num_layers=38, attention_head_dim=64, num_attention_heads=38,
        joint_attention_dim=4096, caption_projection_dim=2432, pooled_projection_dim=2048, out_channels=16, pos_embed_max_size=192,
        qk_norm="rms_norm"), lambda: dict(hidden_states=empty(2, 16, 128, 128), encoder_hidden_states=empty(2, 333, 4096),
                                          pooled_projections=empty(2, 2048), timestep=empty(2))),
    "CogVideoX-2b": (lambda: diffusers.CogVideoXTransformer3DModel(), lambda: dict(
        hidden_states=empty(2, 13, 16, 60, 90), encoder_hidden_states=empty(2, 226, 4096), timestep=empty(2, dtype=torch.int64))),
    "Wan2.1-T2V-1.3B-Diffusers": wan(12, 30, 8960),
    "Wan2.1-T2V-14B-Diffusers": wan(40, 40, 13824),
    **{f"sd15_unet_{batch}": unet(batch) for batch in (2, 8, 32)}}
PASSES = {"Wan2.1-T2V-1.3B-Diffusers": 2, "Wan2.1-T2V-14B-Diffusers": 2}  # a step, where guidance is not batched


def exported(folder, name):
    path = folder / f"{name}.pt2"
    if not path.exists():
        network, inputs = NETWORKS[name]
        with torch.device("meta"), torch.no_grad():
            model = network().to(torch.float16 if name.startswith("sd15") else BF16).eval()
            torch.export.save(torch.export.export(model, (), dict(inputs(), return_dict=False), strict=False), path)
    return path


def predicted_ms(ftax, path, device, framework, *options):
    command = [ftax, "predict", path, "--device", device, "--framework", framework, "--json", "-q", *options]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["predictions"][0]["latency_s"] * 1e3


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def main(ftax, folder, transformers_csv, eager_csv):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = [(r["model"].split("/")[-1], r["gpu"], "pytorch-eager", float(r["latency_s"]) * 1e3 / int(r["steps"]))
            for r in read(transformers_csv) if r["gpus"] == r["batch"] == "1"]
    eager = read(eager_csv)
    rows += [("FLUX.1-dev", r["gpu"], r["framework"], float(r["latency_ms"])) for r in eager
             if r["model"] == "flux_dev" and r["precision"] == "bf16" and r["batch"] == "1" and r["framework"] != "pytorch-eager"]
    for name, gpu, framework, measured in dict.fromkeys(rows):
        measured /= PASSES.get(name, 1)
        ours = predicted_ms(ftax, exported(folder, name), gpu, f"{framework}@2.6")
        print(f"{name} {gpu} {framework}: measured {measured:.0f} ms, predicted {ours:.0f}")
    settings = {}
    for r in eager:
        if r["run"].startswith("diffusers torch2.0 page"):
            settings.setdefault((r["gpu"], r["framework"], r["version"][:3], r["batch"]), []).append(float(r["latency_ms"]))
    errors = {}
    for (gpu, framework, version, batch), times in settings.items():
        ours = predicted_ms(ftax, exported(folder, f"sd15_unet_{batch}"), gpu, f"{framework}@{version}", "--channels-last")
        errors.setdefault(gpu, []).append(100 * (ours / statistics.fmean(times) - 1))
    for gpu, percent in errors.items():
        print(f"sd15_unet {gpu}: {len(percent)} settings, mean error {statistics.fmean(map(abs, percent)):.1f} %, "
              f"bias {statistics.fmean(percent):+.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
