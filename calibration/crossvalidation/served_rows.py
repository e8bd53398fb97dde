#!/usr/bin/env python3
"""Predicts runs of servers of language models with `ftax serve`, for ledger.py to score.

    served_rows.py FTAX serving.csv serving_engines.csv requests_vllm_rtx4090_llama8b.csv OUT.csv

Runs on one to eight cards by tensor parallelism alone, of serving_engines.csv every fifth of those that are aggregated, with
five requests a client, of which the first come at once. serving.csv does not say how long prompts are: 150 tokens are taken
for chat, 250 for gpqa.
"""

import concurrent.futures
import csv
import json
import os
import subprocess
import sys

PROMPTS = {"gpqa": 250}
CHAT_PROMPT, MOST_TOKENS, EVERY = 150, 4000, 5
MODELS = {"Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b", "DeepSeek-R1": "deepseek-v3",
          "Llama-3.1-70B-Instruct": "llama-3.1-70b", "Llama-3.1-8B-Instruct": "llama-3.1-8b"}
DEVICES = {"h100_sxm": "h100-sxm5-80gb", "b200_sxm": "b200"}
ENGINES = {"trtllm": "tensorrt-llm@1.0", "sglang": "sglang@0.5", "vllm": "vllm@0.14"}
PRECISIONS = {"bfloat16": "bf16", "fp4": "nvfp4"}


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def model_of(path):
    name = path.rsplit("/", 1)[-1]
    return MODELS.get(name, name.lower())


def precision_of(row, model):
    """That of the configuration where it quantises itself."""
    return () if model.startswith("gpt-oss") else ("--precision", PRECISIONS.get(row["precision"], row["precision"]))


def serving(rows):
    for row in rows:
        if row["gpus"] != row["tp"]:
            continue
        model, batch = model_of(row["model"]), row["max_batch"]
        tokens = min(round(float(row["osl"])), MOST_TOKENS)
        yield (row["framework"], row["gpu"], model, [
            model, "--device", row["gpu"], "--framework", row["framework"], *precision_of(row, model), "--tp", row["tp"],
            "--max-num-seqs", batch, "--concurrency", batch, "--prompt", PROMPTS.get(row["task"], CHAT_PROMPT),
            "--new-tokens", tokens, "--count", max(2 * int(batch), 64)],
            {"between tokens, p50": ("itl_p50_s", float(row["itl_p50_ms"]) * 1e-3),
             "between tokens, p90": ("itl_p90_s", float(row["itl_p90_ms"]) * 1e-3),
             "between tokens, p99": ("itl_p99_s", float(row["itl_p99_ms"]) * 1e-3),
             "tokens per second": ("tokens_per_s", float(row["tokens_per_s"])),
             "watts": ("power_w", float(row["power_w"])),
             "joules per token": ("energy_per_item_j", float(row["j_per_token"]))})


def engines(rows):
    alone = [r for r in rows if r["mode"] == "agg" and int(r["tp_size"] or 1) <= 8 and
             all(r[c] in ("", "1") for c in ("pp_size", "moe_ep_size", "attention_dp_size"))]
    for row in alone[::EVERY]:
        model, clients = model_of(row["model_path"]), int(row["concurrency"] or 1)
        yield (ENGINES[row["backend"]], DEVICES[row["system"]], model, [
            model, "--device", DEVICES[row["system"]], "--framework", ENGINES[row["backend"]], *precision_of(row, model),
            "--tp", row["tp_size"] or 1, "--concurrency", clients, "--prompt", row["isl"], "--new-tokens", row["osl"],
            "--count", max(5 * clients, 20)],
            {"time per token": ("tpot_mean_s", float(row["silicon_tpot_ms"]) * 1e-3),
             "first token": ("ttft_mean_s", float(row["silicon_ttft_ms"]) * 1e-3)})


def requests(path):
    times = [{k: float(v) for k, v in row.items()} for row in read(path)]
    first = sorted(r["first_token_s"] - r["arrival_s"] for r in times)
    last = [r["last_token_s"] - r["arrival_s"] for r in times]
    each = [(r["last_token_s"] - r["first_token_s"]) / (r["output"] - 1) for r in times if r["output"] > 1]
    yield ("vllm@0.19", "rtx-4090", "llama-3.1-8b", ["llama-3.1-8b", "--device", "rtx-4090", "--framework", "vllm@0.19",
                                                     "--requests", path],
           {"300 requests, time per token": ("tpot_mean_s", sum(each) / len(each)),
            "300 requests, first token, p90": ("ttft_p90_s", first[int(0.9 * len(first))]),
            "300 requests, latency": ("latency_mean_s", sum(last) / len(last))})


def main():
    ftax, serving_csv, engines_csv, requests_csv, out = sys.argv[1:]
    runs = [*serving(read(serving_csv)), *engines(read(engines_csv)), *requests(requests_csv)]

    def predict(run):
        done = subprocess.run([ftax, "serve", *map(str, run[3]), "--json", "-", "-q"], capture_output=True, text=True)
        return json.loads(done.stdout)["rows"][0] if done.returncode == 0 else {"skipped": done.stderr.strip()}

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, open(out, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["fold", "framework", "gpu", "model", "measured", "predicted", "low", "high", "skipped"])
        for (framework, gpu, model, _, figures), row in zip(runs, pool.map(predict, runs)):
            for fold, (name, measured) in figures.items():
                predicted = row.get(name)
                scale = {"tpot_mean_s": "tpot", "latency_mean_s": "latency"}.get(name)
                low, high = (row.get(f"{scale}_{end}_s") for end in ("low", "high")) if scale else (predicted, predicted)
                table.writerow([fold, framework, gpu, model, measured, predicted, low, high, row.get("skipped", "")])


if __name__ == "__main__":
    main()
