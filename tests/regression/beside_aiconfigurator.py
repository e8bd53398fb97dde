#!/usr/bin/env python3
"""Puts ftax and AIConfigurator beside measured runs of servers: a table of errors by engine, in Markdown.

    beside_aiconfigurator.py FTAX serving_engines.csv     (Python with aiconfigurator 0.12 of PyPI; about half an hour)

The runs are those of served_rows.py. AIConfigurator estimates them with its current tables (vLLM 0.24, SGLang 0.5.14, TensorRT-LLM
1.3) and mean lengths, ftax simulates them with the options of their scripts. Times that one of the two lacks are left out.
"""

import json
import logging
import pathlib
import statistics
import subprocess
import sys
import tempfile

from aiconfigurator.cli.api import cli_estimate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "calibration/crossvalidation"))
from model_folds import read  # noqa: E402
from served_rows import DEVICES, apart, engines  # noqa: E402

MODELS = {"llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B", "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
          "qwen3-32b": "Qwen/Qwen3-32B", "gpt-oss-120b": "openai/gpt-oss-120b", "deepseek-v3": "deepseek-ai/DeepSeek-R1"}
SYSTEMS = {device: system for system, device in DEVICES.items()}
ACCEPTED = 0.7  # probability that a draft token is accepted, as ftax assumes


def estimate(framework, gpu, model, words):
    """Time per token and to the first token, in seconds."""
    options = dict(zip(words, words[1:]))
    requests = read(options["--requests"]) if "--requests" in options else [
        {"prompt": options["--prompt"], "output": options["--new-tokens"]}]
    isl, osl = (round(statistics.fmean(int(r[c]) for r in requests)) for c in ("prompt", "output"))
    words = {"isl": isl, "osl": osl, "database_mode": "HYBRID"}
    if (precision := options.get("--precision")):
        words["gemm_quant_mode"] = words["moe_quant_mode"] = precision.replace("bf16", "bfloat16")
    elif gpu == "b200":  # GPT-OSS in mxfp4, whose scripts quantise activations to mxfp8 there
        words["moe_quant_mode"] = "w4a8_mxfp4_mxfp8"
    if "--kv-precision" in options:
        words["kvcache_quant_mode"] = options["--kv-precision"].replace("bf16", "bfloat16")
    if (drafts := options.get("--draft-tokens")):
        words |= {"nextn": drafts, "nextn_accepted": sum(ACCEPTED ** i for i in range(1, drafts + 1))}
    workers = {"": {"tp": options["--tp"], "dp": options["--dp"], "ep": options["--ep"], "servers": options.get("--replicas", 1)}}
    if "--prefill" in options:
        prefill = {key: int(value) for key, value in (pair.split("=") for pair in options["--prefill"].split(","))}
        workers = {"prefill_": prefill, "decode_": workers[""]}
        words |= {"mode": "disagg", "prefill_batch_size": 1}
    for kind, worker in workers.items():
        words |= {f"{kind}tp_size": worker["tp"], f"{kind}attention_dp_size": worker["dp"], f"{kind}moe_ep_size": worker["ep"],
                  f"{kind}moe_tp_size": worker["tp"] * worker["dp"] // worker["ep"]}
        if kind:
            words[f"{kind}num_workers"] = worker["servers"]
        if kind != "prefill_":
            words[f"{kind}batch_size"] = max(1, int(options["--concurrency"]) // worker["dp"] // worker["servers"])
    result = cli_estimate(MODELS[model], SYSTEMS[gpu], backend_name=framework.split("@")[0].replace("tensorrt-llm", "trtllm"), **words)
    return result.tpot * 1e-3, result.ttft * 1e-3


def simulate(ftax, framework, gpu, model, words):
    done = subprocess.run([ftax, "serve", model, "--device", gpu, "--framework", framework, *map(str, words), "--json", "-", "-q"],
                          capture_output=True, text=True, check=True)
    row = json.loads(done.stdout)["rows"][0]
    return row["tpot_mean_s"], row["ttft_mean_s"]


def main():
    ftax, engines_csv = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    errors = {}
    with tempfile.TemporaryDirectory() as folder:
        for *run, figures in [*engines(read(engines_csv), folder), *apart(read(engines_csv), folder)]:
            try:
                times = simulate(ftax, *run), estimate(*run)
            except (RuntimeError, ValueError, subprocess.CalledProcessError) as error:  # AIConfigurator: does not fit
                print(*run[:3], str(error).splitlines()[0], file=sys.stderr)
                continue
            group = "prompts apart" if "--prefill" in run[3] else run[0].split("@")[0]
            for (fold, (_, measured)), *predicted in zip(figures.items(), *times):
                errors.setdefault((group, fold.split(",")[0]), []).append([abs(time / measured - 1) * 100 for time in predicted])
    print("| measured | rows | ftax: MAPE (median) | AIConfigurator |\n|---|---|---|---|")
    for (group, time), rows in sorted(errors.items()):
        print(f"| {group}: {time} | {len(rows)} |", *(f"{statistics.fmean(of):.1f} ({statistics.median(of):.1f}) |" for of in zip(*rows)))


if __name__ == "__main__":
    main()
