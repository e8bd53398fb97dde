#!/usr/bin/env python3
"""Predicts runs of servers of language models with `ftax serve`, for ledger.py to score.

    served_rows.py FTAX serving.csv serving_engines.csv requests_vllm_rtx4090_llama8b.csv OUT.csv

Of serving_engines.csv every fifth aggregated run on up to eight cards, and every third with prefill and decode workers apart, on up
to 72. What a file does not say is what the run's recipe says: SemiAnalysisAI/InferenceX (benchmarks/*.sh; utils/bench_serving with
random-range-ratio 0.8, ten requests a client, whose first come at once), NVIDIA/srt-slurm (recipes), and for AIConfigurator's own runs
genai-perf (fixed lengths, ten requests a client; ai-dynamo/dynamo, performance_sweeps/scripts/bench.sh). serving.csv lacks lengths of
prompts: log-normal ones are drawn, whose median, spread and share that follows an answer were chosen with the times in view.
"""

import concurrent.futures
import json
import math
import operator
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

from model_folds import read, write

EVERY, APART_EVERY, ANCHORS, DRAWS = 5, 3, 5, 2
DEVICES = {"h100_sxm": "h100-sxm5-80gb", "h200_sxm": "h200-sxm-141gb", "b200_sxm": "b200"}
ENGINES = {"trtllm": "tensorrt-llm@1.2", "sglang": "sglang@0.5", "vllm": "vllm@0.14"}
PRECISIONS = {"": "bf16", "bfloat16": "bf16", "fp4": "nvfp4"}
BLOCK_SCALED = ("deepseek-v3", "qwen3-235b-a22b")  # checkpoints in fp8
OWN = ("qwen3-32b", "llama-3.1-8b")  # of AIConfigurator: requests of one length
UNTOLD = "1.1.0rc2.post2"  # TensorRT-LLM: ran with drafts and without, no column or pair of rows says which
GPT_OSS = {"h100-sxm5-80gb": "w4a16", "b200": "nvfp4"}  # how mxfp4 weights are predicted
# Places of a group that decodes, where it has fewer than its clients: srt-slurm's recipes/trtllm by clients, which no other has
PLACES = {6: 1, 9: 2, 30: 8, 60: 16, 100: 16, 154: 64, 180: 32, 370: 64, 450: 64, 837: 32, 1365: 32, 1606: 192, 2192: 128, 2222: 128}


def model_of(path):
    name = re.sub("-(instruct|2507|fp8|nvfp4)", "", path.rsplit("/", 1)[-1].lower())
    return "deepseek-v3" if name.startswith("deepseek") else name


def precision_of(row, model, *keys):
    """That of the configuration where it quantises itself; InferenceX's recipes ask for keys and values in fp8."""
    if row["precision"] == "fp8" and model in BLOCK_SCALED:
        return ("--precision", "fp8_block", *keys)
    if model.startswith("gpt-oss"):
        return keys if row.get("system", "").startswith("b") else ()
    if (model, row["precision"], row.get("backend")) == ("deepseek-v3", "fp4", "trtllm"):
        return "--precision", "nvfp4", "--moe-backend", "trtllm"  # dsr1_fp4_b200_trt*.sh; srt-slurm, recipes/trtllm
    return "--precision", PRECISIONS.get(row["precision"], row["precision"])


def log_normal(draw, median, sigma, most):
    return min(most, max(1, round(draw.lognormvariate(math.log(median), sigma))))


def lengths_of(draw, tokens, is_chat):
    """A message of LM Arena, in a template of 30 tokens, of which a quarter follow an answer that is not in the cache; or a question of
    GPQA Diamond and what a model thinks about it."""
    if not is_chat:
        return log_normal(draw, 200, 0.45, 2048), log_normal(draw, tokens * math.exp(-0.5 ** 2 / 2), 0.5, 32768)
    prompt = 30 + log_normal(draw, 40, 1.8, 12000)
    if draw.random() < 0.25:
        prompt += log_normal(draw, 280, 0.6, 4096)
    return prompt, log_normal(draw, tokens * math.exp(-0.7 ** 2 / 2), 0.7, 4096)


def ml_energy_requests(folder, row):
    """Requests of a run of ML.ENERGY (ml-energy/benchmark, mlenergy/llm and configs/vllm/*/sweeps.yaml): 1,024 of LM Arena or 198 of
    GPQA, repeated for large batches, all sent at once, so that one waits for each place that gets free."""
    batch, is_chat = int(row["max_batch"]), row["task"] != "gpqa"
    count = 1024 * math.ceil((2 * batch + 1) / 1024) if is_chat else 198 * math.ceil(1.15 * batch / 198)
    path = os.path.join(folder, f"{row['task']}_{row['osl']}_{batch}.csv")
    if not os.path.exists(path):
        draw = random.Random(1)
        lengths = (lengths_of(draw, float(row["osl"]), is_chat) for _ in range(count))
        write(path, [{"arrival_s": 0, "prompt": prompt, "output": output} for prompt, output in lengths])
    return ["--requests", path, "--concurrency", batch + 1]


def serving(rows, folder):
    """Apart are series whose client or API server is at its limit (data/ledger/served.md). Runs with --enable-expert-parallel have ep
    for tp: vLLM ran with --tensor-parallel-size all cards (mlenergy/llm/benchmark.py), attention split between them as well."""
    series = operator.itemgetter("gpu", "gpus", "model", "task")
    fewest = {series(row): row for row in reversed(rows)}
    for row in rows:
        model, first = model_of(row["model"]), fewest[series(row)]
        kind = (", client at its limit" if float(first["itl_p95_ms"]) > 1.3 * float(first["itl_p50_ms"]) else
                ", experts apart" if int(row["ep"]) > 1 else "")
        yield (row["framework"], row["gpu"], model, [
            *precision_of(row, model), "--tp", row["gpus"], "--ep", row["ep"], "--max-num-seqs", row["max_batch"],
            "--gpu-memory-utilization", 0.95, *ml_energy_requests(folder, row)],
            {**{f"between tokens, {p}{kind}": (f"itl_{p}_s", float(row[f"itl_{p}_ms"]) * 1e-3) for p in ("p50", "p90", "p99")},
             "tokens per second" + kind: ("tokens_per_s", float(row["tokens_per_s"])),
             "watts" + kind: ("power_w", float(row["power_w"])),
             "joules per token" + kind: ("energy_per_item_j", float(row["j_per_token"]))})


def of_2025(row):
    """DeepSeek under TensorRT-LLM 1.1, whose rows have neither version nor layout."""
    return row["backend"] == "trtllm" and not row["backend_version"] and row["mode"] == "agg" and "DeepSeek" in row["model_path"]


def layout_of_2025(row, cards):
    """Of nvidia-master.yaml, 700f3054b (InferenceX)."""
    clients, chat, long, fp8 = int(row["concurrency"]), row["osl"] == row["isl"], row["isl"] == "8192", row["precision"] == "fp8"
    if clients >= (256 if not fp8 and not long else 64) and not (fp8 and not chat):
        return 1, cards, cards
    apart = fp8 or (long if cards == 4 else clients >= (16 if chat else 32) and not long) or clients >= 64
    return cards, 1, cards if apart else 1


def layout(row):
    """Cards of an aggregated run: tensor, data and expert parallel. Some rows have products: a run with --tp 8 --ep 8 is there with
    tp_size 64, one with eight groups with attention_dp_size 64."""
    tp, dp, cut, ep = (max(1, int(row[c] or 1)) for c in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"))
    if of_2025(row):
        return layout_of_2025(row, tp)
    if ep > 1 and cut == ep and max(tp, dp) == cut * ep:
        tp, dp = (ep, 1) if dp == 1 else (1, ep)
    return tp, dp, ep


def drafts_of(row, dp, faster):
    """Draft tokens of DeepSeek's MTP layer: scripts with _mtp in their names ran TensorRT-LLM 1.2.0rc6.post3, and the faster of
    two runs of SGLang 0.5.9 that are alike in all columns."""
    if row["backend_version"].endswith("post3"):
        return 1 if dp > 1 else 3
    return 2 if faster and row["backend"] == "sglang" else 0


def gathered(row, tp, dp, clients, drafts):
    """What dsr1_*_b200_trt*.sh set by precision, lengths and clients: piecewise CUDA graphs, prompts gathered for 40 steps."""
    chat = (row["isl"], row["osl"]) == ("1024", "1024")
    think = (row["isl"], row["osl"]) == ("1024", "8192")
    if row["precision"] == "fp4":
        pieces = (chat and (clients in (32, 64) or clients == 128 and dp == 1) or think and clients == 64) if drafts else (
            chat and tp == 8 and row["moe_ep_size"] not in ("", "1"))
    elif drafts:
        pieces = dp == 1 and clients > (4 if chat else 8 if think else 16)
    else:
        pieces = clients >= 64 and (chat or not think) or think and clients == 128
    if pieces:
        yield from ("--captured-tokens", 100000)
    if row["precision"] == "fp8" and not drafts and chat and clients >= 64:
        yield from ("--batch-wait-iters", 40, "--batch-wait-ratio", 0.8)


def tensorrt_llm(row, model, tp, dp, clients, drafts):
    prompt = int(row["isl"])
    if dp > 1:
        yield from ("--dp-balance-iters", 60 if model == "deepseek-v3" else 50)
    if of_2025(row):
        yield from ("--max-num-batched-tokens", (clients + prompt + 127) // 64 * 64, "--gpu-memory-utilization", 0.8)
    elif model == "deepseek-v3":
        yield from gathered(row, tp, dp, clients, drafts)
        batch = (clients // max(tp, dp) if dp > 1 else clients) if drafts else clients
        tokens = ((drafts + 1) * batch + prompt + 127) // 64 * 64
        yield from ("--max-num-batched-tokens", tokens if drafts else max(8192, tokens), "--gpu-memory-utilization", 0.8)
        if drafts:
            yield from ("--max-num-seqs", batch)
    elif model == "llama-3.1-70b":
        yield from ("--max-num-batched-tokens", 16384)
        if (row["isl"], row["osl"]) == ("1024", "1024") and tp < 8:
            yield from ("--batch-wait-iters", 20, "--batch-wait-ratio", 0.9)
    elif model == "gpt-oss-120b":
        yield from ("--max-num-batched-tokens", 20000, "--max-num-seqs", 512, "--gpu-memory-utilization", 0.85)


def recipe(row, model, tp, dp, clients, drafts):
    """Options that a run's script gives its engine; data/ledger/served.md has those of TensorRT-LLM's Llama-3.1-8B."""
    if row["backend"] == "trtllm" and model == "llama-3.1-8b":
        yield from ("--max-num-seqs", clients - 1)
    if row["backend"] != "sglang" and model in OWN:  # a prompt a step: of four limits the best on a fifth of these runs
        yield from ("--spread", 0, "--max-num-batched-tokens", int(row["isl"]) + clients,
                    *(("--frontend-time", "5ms") if row["backend"] == "vllm" else ()))
    if drafts:
        yield from ("--draft-tokens", drafts)
    if row["backend"] == "sglang" and row["precision"] == "fp8" and model == "deepseek-v3" and row["system"][0] == "b":
        yield "--flashinfer-gemm"
    if row["backend"] == "trtllm":
        yield from tensorrt_llm(row, model, tp, dp, clients, drafts)
    if row["backend"] == "vllm" and model == "gpt-oss-120b":
        yield from ("--captured-tokens", 2048, "--max-num-seqs", clients if row["system"][0] == "h" else 512)
        if row["system"][0] == "h" and not row["backend_version"].startswith("0.11."):  # VLLM_MXFP4_USE_MARLIN; 0.10's default
            yield from ("--moe-backend", "marlin")
    elif row["backend"] == "vllm" and row["system"][0] == "h" and model == "llama-3.1-70b":  # on H100 the script before 23 September 2025
        yield from ("--max-num-seqs", clients, *(("--kv-precision", "bf16") if row["system"] == "h100_sxm" else ()))
    elif row["backend_version"].startswith("0.12.") and model == "llama-3.1-8b":
        yield from ("--shared-prefix", 0.9)  # without one its prompts would take more than the card's peak
    elif model in OWN and row["backend_version"][:5] in ("0.5.6", "0.5.7", "0.5.8", "0.5.9"):
        yield from ("--spread", 0.2)  # clients of SGLang drift apart
    elif row["backend"] == "sglang" and model == "deepseek-v3" and row["system"] == "h200_sxm":
        yield from ("--max-num-seqs", 512 if row["isl"] == row["osl"] else 256, "--max-num-batched-tokens", 32768)
    elif row["backend"] == "sglang" and model == "deepseek-v3":
        share, sequences, tokens = ((0.85, 256, 16384) if row["precision"] == "fp4" else
                                    (0.95, 32, 8192) if tp == 4 else (0.82, max(256, clients), 32768))
        yield from ("--gpu-memory-utilization", share, "--max-num-seqs", sequences, "--max-num-batched-tokens", tokens,
                    "--scheduler-recv-interval", 10 if clients < 16 or tp == 4 and row["precision"] == "fp8" else 30)


def requests_file(folder, row, clients):
    """Lengths as InferenceX's client draws them."""
    path = os.path.join(folder, f"{row['isl']}_{row['osl']}_{clients}.csv")
    if not os.path.exists(path):
        draw = random.Random(1)
        lengths = [[draw.randint(int(0.8 * int(row[c])), int(row[c])) for _ in range(10 * clients)] for c in ("isl", "osl")]
        write(path, [{"arrival_s": 0, "prompt": prompt, "output": output} for prompt, output in zip(*lengths)])
    return path


def different(rows):
    """Some runs are there under several names and layouts."""
    seen = set()
    for row in rows:
        run = tuple(row[c] for c in ("backend", "backend_version", "precision", "isl", "osl", "concurrency",
                                     "silicon_ttft_ms", "silicon_tpot_ms"))
        # Their client's tokenizer makes of 7,000 tokens 35,000 (InferenceX, pull request 937).
        miscounted = row["backend"] == "sglang" and any(v in row["image"] for v in ("0.5.10", "0.5.11"))
        if row["concurrency"] not in ("", "0") and run not in seen and not miscounted:
            seen.add(run)
            yield row


def engine_of(row):
    """That of a version that is named, else one of the time; disaggregated runs name that of Dynamo (0.8)."""
    if of_2025(row):
        return "tensorrt-llm@1.1"
    engine, version = ENGINES[row["backend"]], row["backend_version"].split(".")
    return engine if version[:2] in ([""], ["0", "8"]) else f"{engine.split('@')[0]}@{'.'.join(version[:2])}"


def figures(row, kind):
    """Without warm-up, before 21 January 2026, InferenceX's mean of SGLang's first tokens is 2.8 times their median: left out."""
    times = {"time per token": ("tpot_mean_s", row["silicon_tpot_ms"])}
    if row["backend"] != "sglang" or row["backend_version"]:
        times["first token"] = ("ttft_mean_s", row["silicon_ttft_ms"])
    return {fold + kind: (name, float(time_ms) * 1e-3) for fold, (name, time_ms) in times.items()}


def apart(rows, folder):
    """Workers that read prompts and others that decode. Under TensorRT-LLM attention in groups is that of experts apart, whatever
    moe_ep_size: runs that differ in it alone measure alike. Under SGLang it is what the recipes have (srt-slurm, recipes/b200-fp*)."""
    some = [row for row in different(rows) if row["mode"] == "disagg" and row["prefill_num_workers"] and
            row["isl"] in ("1024", "8192")]
    for row in some[::APART_EVERY]:
        model, (read, decode) = model_of(row["model_path"]), ([
            max(1, int(row[f"{worker}_{c}"] or 1)) for c in ("num_workers", "tp_size", "attention_dp_size", "moe_ep_size")]
            for worker in ("prefill", "decode"))
        clients = int(row["concurrency"])
        limits = ("--max-num-seqs", PLACES[clients]) if clients in PLACES else ()
        if row["backend"] == "sglang":
            fp8 = row["precision"] == "fp8"
            limits = ("--max-num-batched-tokens", 65536 if read[0] == 7 or fp8 and read[3] == 1 else 32768, "--max-num-seqs",
                      256 // decode[0] if clients == 288 else max(clients, 512), *["--flashinfer-gemm"] * fp8)
        else:
            read[3], decode[3] = max(read[2:]), max(decode[2:])
        yield (engine_of(row), DEVICES[row["system"]], model, [
            *precision_of(row, model, "--kv-precision", "fp8"),
            "--prefill", "servers={},tp={},dp={},ep={}".format(*read),
            "--replicas", decode[0], "--tp", decode[1], "--dp", decode[2], "--ep", decode[3],
            "--concurrency", clients, "--requests", requests_file(folder, row, clients), *limits],
            figures(row, ", prefill apart"))


def engines(rows, folder):
    some = [row for row in different(rows) if row["mode"] == "agg" and row["backend_version"] != UNTOLD]
    slowest = {}
    alike = ("backend", "backend_version", "precision", "isl", "osl", "concurrency")
    for row in some:
        key = (*(row[c] for c in alike), model_of(row["model_path"]), layout(row))
        slowest[key] = max(slowest.get(key, 0), float(row["silicon_tpot_ms"]))
    for row in some[::EVERY]:
        # data/ledger/served.md has the reasons; first tokens of SGLang 0.5.8's 16 clients take 7 to 89 s.
        if row["backend"] == "vllm" and row["concurrency"] == "512" or row["backend_version"][:6] in ("0.5.8.", "1.3.0r"):
            continue
        model, clients, (tp, dp, ep) = model_of(row["model_path"]), int(row["concurrency"]), layout(row)
        faster = 1.05 * float(row["silicon_tpot_ms"]) < slowest[(*(row[c] for c in alike), model, (tp, dp, ep))]
        drafts = drafts_of(row, dp, faster and model == "deepseek-v3")
        lengths = ("--requests", requests_file(folder, row, clients))
        if model in OWN or row["isl"] not in ("1024", "8192"):
            lengths = ("--prompt", row["isl"], "--new-tokens", row["osl"], "--count", 10 * clients)
        yield (engine_of(row), DEVICES[row["system"]], model, [
            *precision_of(row, model, "--kv-precision", "fp8"),
            "--tp", tp, "--dp", dp, "--ep", ep, "--concurrency", clients, *lengths, *recipe(row, model, tp, dp, clients, drafts)],
            figures(row, ", drafted" if drafts else ", groups" if dp > 1 else ", experts apart" if ep > 1 else ""))


def requests(path):
    times = [{k: float(v) for k, v in row.items()} for row in read(path)]
    first = sorted(r["first_token_s"] - r["arrival_s"] for r in times)
    each = [(r["last_token_s"] - r["first_token_s"]) / (r["output"] - 1) for r in times if r["output"] > 1]
    yield ("vllm@0.19", "rtx-4090", "llama-3.1-8b", ["--requests", path],
           {"300 requests, time per token": ("tpot_mean_s", sum(each) / len(each)),
            "300 requests, first token, p90": ("ttft_p90_s", first[int(0.9 * len(first))]),
            "300 requests, latency": ("latency_mean_s", statistics.fmean(r["last_token_s"] - r["arrival_s"] for r in times))})


def anchored(runs, folder):
    """Runs of an engine, a card and a model with five others of them as anchors: clients with the mean lengths of their requests
    (InferenceX's vary by 6.4 %)."""
    groups = {}
    for run in runs:
        if "time per token" in run[4]:
            groups.setdefault(run[:3], []).append(run)
    draw = random.Random(1)
    for group in [group for group in groups.values() if len(group) > ANCHORS] * DRAWS:
        anchors = draw.sample(group, ANCHORS)
        path = os.path.join(folder, f"anchors_{len(os.listdir(folder))}.csv")
        rows = []
        for framework, gpu, model, words, figures in anchors:
            options = dict(zip(words, words[1:]))
            requests = (read(options["--requests"]) if "--requests" in options else
                        [{"prompt": options["--prompt"], "output": options["--new-tokens"]}])
            isl, osl = (round(statistics.fmean(int(r[c]) for r in requests)) for c in ("prompt", "output"))
            rows.append({"gpu": gpu, "framework": framework, "model": model,
                         "precision": options.get("--precision", GPT_OSS[gpu]) or "bf16", "isl": isl, "osl": osl,
                         "concurrency": options["--concurrency"], "tp": options["--tp"],
                         "max_num_seqs": options.get("--max-num-seqs"), "tpot_ms": 1e3 * figures["time per token"][1]})
        write(path, rows)
        for framework, gpu, model, words, figures in [run for run in group if run not in anchors]:
            spread = ("--spread", 0.064) if "--requests" in words else ()
            yield (framework, gpu, model, [*words, *spread, "--anchor", path],
                   {"time per token, five anchors": figures["time per token"]})


def main():
    ftax, serving_csv, engines_csv, requests_csv, out = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        aggregated = [*engines(read(engines_csv), folder)]
        runs = [*serving(read(serving_csv), folder), *aggregated, *apart(read(engines_csv), folder), *requests(requests_csv),
                *anchored(aggregated, folder)]

        def predict(run):
            framework, gpu, model, words, _ = run
            done = subprocess.run([ftax, "serve", model, "--device", gpu, "--framework", framework, *map(str, words), "--json", "-",
                                   "-q"], capture_output=True, text=True)
            return json.loads(done.stdout)["rows"][0] if done.returncode == 0 else {"skipped": done.stderr.strip()}

        rows = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for (framework, gpu, model, _, figures), row in zip(runs, pool.map(predict, runs)):
                for fold, (name, measured) in figures.items():
                    predicted = row.get(name)
                    scale = {"tpot_mean_s": "tpot", "latency_mean_s": "latency"}.get(name)
                    low, high = (row.get(f"{scale}_{end}_s") for end in ("low", "high")) if scale else (predicted, predicted)
                    rows.append({"fold": fold, "framework": framework, "gpu": gpu, "model": model, "measured": measured,
                                 "predicted": predicted, "low": low, "high": high, "skipped": row.get("skipped", "")})
        write(out, rows)


if __name__ == "__main__":
    main()
