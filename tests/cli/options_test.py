"""Each option changes what it says it changes, and figures of a report follow from one another.

    options_test.py FTAX

A row is a command, the options that are added and how figures of the JSON report change: '<' and '>' by at least 0.01 %, '=' not at all, a
number is the ratio to the figure before.
"""
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FTAX = ""
FOLDER = Path(__file__).parents[1]

BERT = "predict bert --device a100-sxm4-40gb --precision fp16 --batch 8 --dim seq=128"
BIG = "predict bert --device a100-sxm4-40gb --precision fp16 --batch 64 --dim seq=128"
NET = "predict resnet50 --device a100-sxm4-40gb --batch 32"
LLM = "generate llama-3-8b --device h100-sxm5-80gb --framework vllm --batch 8 --prompt 512 --new-tokens 64"
EAGER = "generate llama-3-8b --device h100-sxm5-80gb --batch 8 --prompt 512 --new-tokens 64"
SERVE = "serve llama-3-8b --device h100-sxm5-80gb --framework vllm@0.11 --rate 8 --prompt 512 --new-tokens 128 --count 60"
CLOSED = SERVE.replace("--rate 8", "--concurrency 8")
IMAGES = "serve resnet50 --device t4 --framework tensorrt --rate 400 --count 200"
SEEING = "generate cli/seeing.json --device h100-sxm5-80gb --framework vllm --prompt 64 --new-tokens 8 --images 1"
SEEING_SERVER = "serve cli/seeing.json --device h100-sxm5-80gb --framework vllm --rate 8 --prompt 64 --new-tokens 8 --count 60 --images 1"
HEAD = "headroom bert --device quadro-rtx-8000 --precision fp16 --dim seq=128"
P = "predictions.0."

ROWS = [
    (BERT, "--batch 16", {P + "host_s": "=", P + "device_s": ">"}),
    (BERT, "--dim seq=256", {P + "host_s": "=", P + "device_s": ">", P + "memory.activations_bytes": ">", P + "memory.weights_bytes": "="}),
    (BERT, "--precision fp32", {P + "device_s": ">", P + "memory.weights_bytes": ">"}),
    (BERT, "--precision bf16", {P + "memory.weights_bytes": "="}),
    (BERT, "--precision amp", {P + "host_s": ">", P + "kernels": ">"}),
    (BERT.replace("fp16", "amp"), "--precision amp_cached", {P + "host_s": "<", P + "kernels": "<"}),
    (BIG.replace("fp16", "fp32"), "--precision tf32", {P + "device_s": "<", P + "memory.weights_bytes": "="}),
    (NET, "--precision tf32", {P + "device_s": "<"}),  # the classifier alone: convolutions of fp32 take TF32
    (BERT, "--device h100-sxm5-80gb", {P + "host_s": "=", P + "device_s": "<", P + "memory.workspace_bytes": 33 / 9.125}),
    (BERT, "--device t4", {P + "host_s": "=", P + "device_s": ">", P + "power_w": "<"}),
    (BERT, "--framework torchscript", {P + "host_s": "<"}),
    (BERT, "--framework onnxruntime-cuda", {P + "host_s": "<", P + "kernels": "<"}),
    (BERT, "--framework tensorrt", {P + "host_s": "<", P + "kernels": "<"}),
    (BERT, "--framework cuda-graph", {P + "latency_s": "<", P + "host_s": "<"}),
    (BERT, "--framework torch-compile", {P + "kernels": "<"}),
    (BERT, "--framework pytorch-eager@1.13", {P + "host_s": "!"}),
    (BERT, "--framework better-transformer", {P + "kernels": "<", P + "host_s": "<"}),
    (BIG + " --framework better-transformer", "--padding 0.5", {P + "device_s": "<"}),
    (BIG, "--padding 0.5", {P + "device_s": "="}),
    (BIG, "--synchronized", {P + "latency_s": ">", P + "device_s": "="}),
    (BIG, "--copies", {P + "latency_s": ">", P + "low_s": ">", P + "high_s": ">", P + "device_s": "=", P + "host_s": "="}),
    (NET + " --precision fp16", "--channels-last", {P + "device_s": "<", P + "memory.weights_bytes": "="}),
    (NET.replace("a100-sxm4-40gb", "v100-pcie-16gb"), "--cudnn 7", {P + "device_s": ">"}),
    (NET.replace("a100-sxm4-40gb", "v100-pcie-16gb") + " --precision fp16", "--framework pytorch-eager@1.13", {P + "device_s": ">"}),
    ("predict cases/inputs/dim_quest.onnx --device t4 --shapes x:batchx3x640x640 --batch 2", "--shapes x:batchx3x640x1280",
     {P + "device_s": ">", P + "host_s": "="}),
    ("predict graphs/diffusers/stable-diffusion-2-1 --device t4 --precision fp16 --steps 2", "--steps 4",
     {P + "parts.unet.host_s": 2, P + "parts.vae.host_s": "=", P + "latency_s": ">", P + "memory.total_bytes": "="}),
    (BERT, "--suggest-anchors", {P + "latency_s": "="}),
    ("inspect bert --dim seq=128 --batch 2", "--batch 4", {"total.flops": 2, "total.macs": 2}),
    ("inspect cases/inputs/dim_quest.onnx --shapes x:1x3x64x64", "--shapes x:1x3x128x128", {"by_kind.conv.flops": 4}),
    ("inspect llama-3-8b --batch 2 --dim seq=1 --dim past=100", "--dim past=200",
     {"by_kind.attention.flops": 201 / 101, "by_kind.linear.flops": "="}),
    (EAGER, "--kv-precision fp8", {P + "memory.cache_bytes": 0.5}),
    (EAGER, "--longest-prompt 1024", {P + "ttft_s": ">", P + "memory.cache_bytes": (1024 + 64) / (512 + 64)}),
    (CLOSED.replace("vllm@0.11", "tensorrt-llm@1.2") + " --batch-wait-ratio 0.9", "--batch-wait-iters 10", {"rows.0.ttft_mean_s": ">"}),
    (CLOSED.replace("vllm@0.11", "tensorrt-llm@1.2") + " --batch-wait-iters 10", "--batch-wait-ratio 0.01", {"rows.0.ttft_mean_s": "<"}),
    (CLOSED.replace("vllm@0.11", "tensorrt-llm@1.2") + " --dp 2", "--dp-balance-iters 60", {"rows.0.ttft_mean_s": ">"}),
    (CLOSED.replace("vllm@0.11", "tensorrt-llm@1.2"), "--captured-tokens 8192", {"rows.0.tpot_mean_s": "<"}),
    (LLM, "--longest-prompt 1024", {P + "ttft_s": "="}),
    (LLM, "--batch 16", {P + "memory.cache_bytes": 2, P + "memory.weights_bytes": "=", P + "tokens_per_s": ">", P + "ttft_s": ">"}),
    (LLM, "--prompt 1024", {P + "ttft_s": ">", P + "tpot_s": ">", P + "memory.cache_bytes": (1024 + 64) / (512 + 64)}),
    (LLM, "--new-tokens 128", {P + "ttft_s": "=", P + "total_s": ">", P + "memory.cache_bytes": (512 + 128) / (512 + 64)}),
    (LLM, "--precision fp8", {P + "tpot_s": "<", P + "memory.weights_bytes": "<"}),
    (LLM, "--precision w4a16", {P + "tpot_s": "<", P + "memory.weights_bytes": "<"}),
    (LLM, "--kv-precision fp8", {P + "memory.cache_bytes": 0.5}),
    (LLM.replace("512", "4096"), "--kv-precision fp8", {P + "tpot_s": "<"}),  # a short context does not pay for the casts
    (LLM, "--tp 2", {P + "tpot_s": "<", P + "memory.cache_bytes": 0.5, P + "cards": 2}),
    (LLM + " --tp 2", "--tp 4", {P + "memory.cache_bytes": 0.5, P + "ttft_s": "<"}),
    (LLM + " --price 2", "--price 4", {P + "tokens_per_dollar": 0.5}),
    (LLM, "--framework vllm-eager", {P + "decode.host_s": ">", P + "tpot_s": ">"}),
    (SEEING, "--images 2", {P + "ttft_s": ">", P + "images.device_s": ">", P + "images.tokens": "=", P + "memory.weights_bytes": "=", P + "prompt": "=",
                            P + "memory.cache_bytes": ">", P + "images.kernels": "="}),
    (SEEING, "--image-size 1440x1280", {P + "images.device_s": ">", P + "images.tokens": (51 * 46 + 2) / (26 * 46 + 2), P + "memory.weights_bytes": "="}),
    (SEEING_SERVER, "--images 4", {"rows.0.ttft_mean_s": ">", "rows.0.duration_s": "!"}),
    (SEEING_SERVER, "--image-size 224x224", {"rows.0.ttft_mean_s": "<"}),
    (SERVE, "--rate 2", {"rows.0.mean_outstanding": "<", "rows.0.tpot_mean_s": "<", "rows.0.duration_s": ">"}),
    (SERVE, "--new-tokens 256", {"rows.0.latency_mean_s": ">", "rows.0.tokens_per_s": ">"}),
    (SERVE, "--prompt 1024", {"rows.0.ttft_mean_s": ">"}),
    (SERVE, "--shared-prefix 0.5", {"rows.0.ttft_mean_s": "<"}),
    (SERVE, "--seed 2", {"rows.0.duration_s": "!"}),
    (SERVE, "--spread 0.5", {"rows.0.latency_p99_s": ">"}),
    (SERVE, "--max-num-seqs 2", {"rows.0.mean_sequences": "<", "rows.0.ttft_mean_s": ">"}),
    (SERVE + " --max-num-seqs 64", "--max-num-batched-tokens 256", {"rows.0.steps": ">", "rows.0.ttft_mean_s": ">"}),
    (SERVE, "--tp 2", {"rows.0.tpot_mean_s": "<", "rows.0.cards": 2}),
    (SERVE.replace("vllm@0.11", "sglang"), "--scheduler-recv-interval 16", {"rows.0.ttft_mean_s": ">"}),
    (LLM, "--longest-prompt 1024", {P + "longest_prompt": 2, P + "prompt": "="}),
    ("predict llama-3-8b --device t4 --batch 1 --dim seq=8 --dim past=0", "--precision fp16", {P + "latency_s": "="}),
    ("predict llama-3-8b --device a100-sxm4-40gb --batch 1 --dim seq=8 --dim past=0", "--precision bf16", {P + "latency_s": "="}),
    (SERVE + " --price 2", "--price 6", {"rows.0.dollars_per_million": 3}),
    (CLOSED, "--concurrency 16", {"rows.0.mean_outstanding": ">", "rows.0.tokens_per_s": ">"}),
    (SERVE, "--frontend-time 100ms", {"rows.0.ttft_mean_s": ">"}),
    (IMAGES, "--max-batch 1", {"rows.0.latency_mean_s": "!", "rows.0.mean_sequences": "<"}),
    (IMAGES, "--max-delay 20ms", {"rows.0.latency_mean_s": ">"}),
    (HEAD, "--budget 20%", {"headroom.0.to": ">", "budget": 4}),
    (HEAD, "--batch 4", {"headroom.0.from": 4}),
    ("crossover bert --device l4 --dim seq=64 --precision fp16", "--dim seq=128", {"crossover.batch": "<"}),
    ("crossover bert --device l4 --dim seq=64 --precision fp16", "--device h100-sxm5-80gb", {"crossover.batch": ">"}),
]


def report(command):
    ended = subprocess.run([FTAX, *command.split(), "--json", "-"], capture_output=True, text=True, cwd=FOLDER)
    if ended.returncode:
        raise RuntimeError(f"exit {ended.returncode}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)


def figure(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) and key.isdigit() else (
            next(row for row in value if row["name"] == key) if isinstance(value, list) else value[key])
    return value


def holds(before, after, relation):
    if relation == "=":
        return after == before
    if relation == "!":
        return after != before
    if relation in "<>" if isinstance(relation, str) else False:
        return after < before * 0.9999 if relation == "<" else after > before * 1.0001
    return abs(after - before * relation) <= 1e-6 * abs(after)


def wrong_changes():
    bases = {}
    for command, options, changes in ROWS:
        try:
            base = bases.setdefault(command, None) or report(command)
            bases[command] = base
            other = report(replaced(command, options))
        except RuntimeError as error:
            yield f"{command} {options}: {error}"
            continue
        for path, relation in changes.items():
            try:
                before, after = figure(base, path), figure(other, path)
            except (KeyError, StopIteration) as error:
                yield f"{command} {options}: no figure {path} ({error})"
                continue
            if not holds(before, after, relation):
                yield f"{command} {options}: {path} {before} -> {after}, expected {relation}"


def replaced(command, options):
    """The command with an option's value in place of the one that it has."""
    words, name = command.split(), options.split()[0]
    if name in words and not (name == "--dim" and options.split()[1].split("=")[0] + "=" not in command):
        at = words.index(name)
        if name == "--dim":
            at = next(i for i, w in enumerate(words) if w.startswith(options.split()[1].split("=")[0] + "=")) - 1
        del words[at:at + 2]
    return " ".join(words) + " " + options


def differs(what, got, right):
    if abs(got - right) > 1e-6 * max(abs(got), abs(right), 1e-12):
        yield f"{what} is {got}, recomputed {right}"


def wrong_sums():
    one = report(BERT)["predictions"][0]
    memory = one["memory"]
    yield from differs("total_bytes", memory["total_bytes"], sum(memory[part + "_bytes"] for part in (
        "weights", "cache", "activations", "workspace", "context")))
    yield from differs("energy_j", one["energy_j"], one["power_w"] * one["latency_s"])
    yield from differs("closed_form_s", one["closed_form_s"], max(one["host_s"], one["device_s"]))
    yield from differs("framework_overhead", one["framework_overhead"], 1 - one["device_s"] / one["latency_s"])
    for command in (LLM, EAGER):
        one = report(command)["predictions"][0]
        yield from differs("total_s", one["total_s"], one["ttft_s"] + (one["new_tokens"] - 1) * one["tpot_s"])
        yield from differs("tokens_per_s", one["tokens_per_s"], one["batch"] * one["new_tokens"] / one["total_s"])
        layers, heads, width = 32, 8, 128
        yield from differs("cache_bytes", one["memory"]["cache_bytes"], 8 * 2 * layers * heads * width * (512 + 64) * 2)
    several = report(BERT.replace("--batch 8", "--batch 1,4,8,200"))["predictions"]
    for row in several:
        yield from differs("a sweep", row["latency_s"], report(BERT.replace("--batch 8", f"--batch {row['batch']}"))["predictions"][0]["latency_s"])
    rows = report("compare bert --device t4,l4,a100-sxm4-40gb --batch 1 --dim seq=64")["rows"]
    for row in rows:
        yield from differs("ratio_to_best", row["ratio_to_best"], row["latency_s"] / min(r["latency_s"] for r in rows))
    for command in ("bert --device l4 --dim seq=64 --precision fp16", "resnet50 --device t4 --precision fp16"):
        one = report("crossover " + command)["crossover"]
        yield from differs("the interval of a crossover", one["low"] * one["high"], one["batch"] ** 2)
        if not one["low"] < one["batch"] < one["high"]:
            yield f"the crossover of {command} is outside its interval"
        causes = [cause["host_s"] for cause in one["causes"]]
        if causes != sorted(causes, reverse=True) or not 0.5 * one["host_s"] < sum(causes) <= one["host_s"] or len(causes) != 3:
            yield f"the causes of the crossover of {command} are {causes} of {one['host_s']}"
    full = report("predict llama-3-8b --device t4 --batch 64 --dim seq=512 --dim past=0 --precision fp16")
    if full["predictions"][0]["fits"] or not any("DOES NOT FIT" in w for w in full["predictions"][0]["warnings"]):
        yield "memory that does not fit goes without a warning"


def errors_of(command):
    return subprocess.run([FTAX, *command.split()], capture_output=True, text=True, cwd=FOLDER).stderr


def table(command):
    return subprocess.run([FTAX, *command.split()], capture_output=True, text=True, cwd=FOLDER).stdout


def numbers(text, before, after):
    """The numbers of a report's sentence between two texts, those of an interval included."""
    found = re.search(re.escape(before) + r"([^;,]*?)" + re.escape(after), text)
    return [float(n) for n in re.findall(r"\d+(?:\.\d+)?", found.group(1))] if found else []


def near(what, got, right):
    """Figures of a sentence have three digits."""
    if len(got) != len(right) or any(abs(a - b) > 6e-3 * b for a, b in zip(got, right)):
        yield f"{what}: {got}, recomputed {right}"


CARDS = "compare llama-3-8b --device h100-sxm5-80gb,l40s --framework vllm --batch 4 --dim seq=512 --dim past=0 --tp 1,2 --price 3,1"
PRICES = {"h100-sxm5-80gb": 3, "l40s": 1}


def wrong_choices():
    """Figures by which combinations are ranked, and the sentence that names the best, from the rows."""
    per_s = {"compare": lambda r: 4 / r["latency_s"], "generate": lambda r: 8 * 64 / r["total_s"]}
    for command in (CARDS, LLM.replace("h100-sxm5-80gb", "h100-sxm5-80gb,l40s") + " --tp 1,2 --price 3,1"):
        verb = command.split()[0]
        rows, time = ("rows", "latency_s") if verb == "compare" else ("predictions", "total_s")
        by_cost, by_energy = report(command), report(command + " --sort energy")
        for row in by_cost[rows]:
            dollars = PRICES[row["device"]] * row["cards"] / 3600 / per_s[verb](row) * 1e6
            yield from differs(f"{verb}: dollars_per_million", row["dollars_per_million"], dollars)
            yield from differs(f"{verb}: energy_j", row["energy_j"], row["power_w"] * row[time])
            if row["cards"] == 2 and not 0.7 < row["power_w"] / next(
                    r["power_w"] for r in by_cost[rows] if r["device"] == row["device"] and r["cards"] == 1) < 2.1:
                yield f"{verb}: two cards draw {row['power_w']} W"
        if [r["dollars_per_million"] for r in by_cost[rows]] != sorted(r["dollars_per_million"] for r in by_cost[rows]):
            yield f"{verb}: rows are not in order of their cost"
        per_item = [r["energy_j"] / (4 if verb == "compare" else 8 * 64) for r in by_energy[rows]]
        if per_item != sorted(per_item):
            yield f"{verb}: rows are not in order of their energy: {per_item}"
        best, following = by_energy[rows][:2]
        bounds = [[row["low_s"] / row[time], row["high_s"] / row[time]] for row in (best, following)]
        unit = "J/item" if verb == "compare" else "J/token"
        yield from near(f"{verb}: energy of the best", numbers(by_energy["verdict"], "1 card: ", " " + unit),
                        [per_item[0], per_item[0] * bounds[0][0], per_item[0] * bounds[0][1]])
        ratio = per_item[1] / per_item[0]
        # Errors are independent: logarithms add in quadrature.
        low = ratio * math.exp(-math.hypot(math.log(bounds[0][1]), math.log(bounds[1][0])))
        high = ratio * math.exp(math.hypot(math.log(bounds[0][0]), math.log(bounds[1][1])))
        yield from near(f"{verb}: the lead", numbers(by_energy["verdict"], "2 cards at ", ")"), [ratio, low, high])
    served = report(SERVE + " --price 2 --slo ttft=48ms")["rows"][0]
    yield from differs("serve: goodput", served["goodput_per_s"], served["kept_share"] * served["requests_per_s"])
    yield from differs("serve: power", served["power_w"], served["energy_per_item_j"] * served["tokens_per_s"])
    yield from differs("serve: dollars", served["dollars_per_million"], 2 / 3600 / (8 * 128) * 1e6)  # 8 requests of 128 tokens each second
    if not 0.02 < served["kept_share"] < 0.98:
        yield f"serve: {served['kept_share']} of the first tokens are within 48 ms, the median is {served['ttft_p50_s']}"
    one = report(LLM)["predictions"][0]
    for limit, keeps, surely in ((1.01 * one["high_s"], True, True), (0.99 * one["high_s"], True, False), (0.99 * one["total_s"], False, False)):
        kept = report(f"{LLM} --slo latency={limit * 1e3:.3f}ms")
        if kept["predictions"][0]["keeps_level"] != keeps or ("which may miss the SLO" in kept["verdict"]) != (keeps and not surely):
            yield f"a limit of {limit} s for {one['total_s']} (up to {one['high_s']}): {kept['verdict']}"
    served = SERVE.replace("llama-3-8b", "qwen3-30b-a3b")
    for command, cards, warned in ((f"{LLM} --tp 8", 8, False), (f"{LLM} --tp 16", 16, True), (f"{served} --tp 4 --dp 2", 8, False),
                                   (f"{served} --tp 8 --dp 2", 16, True)):
        errors = errors_of(command)
        if ("share a link" in errors) != warned or (warned and f"{cards} cards" not in errors):
            yield f"{command}: cards that share a link: {errors.strip()}"
    for precision, share in (("fp8", 0.5), ("nvfp4", 0.5), ("w4a16", 1)):
        b200 = LLM.replace("h100-sxm5-80gb", "b200").replace("vllm", "vllm@0.11")
        cache = [report(f"{b200} --precision {p}")["predictions"][0]["memory"]["cache_bytes"] for p in ("bf16", precision)]
        yield from differs(f"cache beside {precision}", cache[1], share * cache[0])
    compared = "compare bert --device t4 --framework pytorch-eager,torch-compile-max-autotune --batch 1 --dim seq=64"
    rests = {row["framework"]: row["evidence"] for row in report(compared)["rows"]}
    shown = table(compared)
    if not rests or any(word not in shown for word in rests.values()):
        yield f"rows that rest on {rests} are listed as {shown}"


CROWD = "serve llama-3-8b --device h100-sxm5-80gb --framework vllm@0.11 --concurrency 600 --prompt 64 --new-tokens 128 --count 1200"


def wrong_servers():
    """Defaults of vLLM's scheduler by version and card, contexts and drafts."""
    for change, most in (("--top 1", 1024), ("--framework vllm@0.8", 256), ("--device a100-sxm4-80gb", 256)):
        row = report(replaced(CROWD, change))["rows"][0]
        if not most / 2.2 < row["mean_sequences"] <= most:
            yield f"{change}: {row['mean_sequences']} sequences run of at most {most}"
    for spread, same in ((0.2, True), (0, False)):
        if (report(CLOSED)["rows"] == report(f"{CLOSED} --spread {spread}")["rows"]) != same:
            yield f"closed loops draw lengths with another spread than 0.2 ({spread})"
    for tokens, fits in ((192, True), (193, False)):
        refused = "longer than the context" in errors_of(f"serve llama-3-8b --device h100-sxm5-80gb --rate 1 --prompt 8000 --new-tokens {tokens} "
                                                         "--framework vllm@0.11 --count 5")
        if refused == fits:
            yield f"8000 + {tokens} tokens in a context of 8192"
    lone = "--prompt 16 --new-tokens 512 --spread 0 --count 20"
    busy = report(f"serve llama-3-8b --device h100-sxm5-80gb --framework vllm@0.11 --concurrency 1 {lone}")["rows"][0]["power_w"]
    alone = report(replaced(replaced(LLM, "--batch 1 --prompt 16 --new-tokens 512"), "--framework vllm@0.11").replace(
        "--batch 8", "").replace("--prompt 512", "").replace("--new-tokens 64", ""))["predictions"][0]["power_w"]
    if not 0.9 < busy / alone < 1.05:
        yield f"a client that is always served draws {busy} W, a generation {alone} W"
    idle = report(f"serve llama-3-8b --device h100-sxm5-80gb --framework vllm@0.11 --rate 0.001 {lone}")["rows"][0]["power_w"]
    if not 1 < idle / (20 + 0.08 * 700) < 1.03:
        yield f"a server that idles draws {idle} W"
    alone, drafted = (report(SERVE + more)["rows"][0]["memory"]["weights_bytes"] for more in ("", " --draft llama-3-8b --draft-tokens 2"))
    yield from differs("weights with a draft of the same size", drafted, 2 * alone)


def wrong_texts(folder):
    """What tables and sentences say, from the figures of the JSON."""
    one = report(NET)["predictions"][0]
    for factor, inside, unit in ((0.999 * one["low_s"] / one["latency_s"], False, False), (1.01, True, False),
                                 (1.01 * one["high_s"] / one["latency_s"], False, False), (1e3, False, True), (1e-3, False, True),
                                 (400.0, False, False), (2600.0, False, False), (10.0, False, False)):
        text = report(f"{NET} --measured {factor * one['latency_s'] * 1e6:.4f}us")["measured"]
        if (", inside the" in text) != inside or ("the unit is wrong" in text) != unit:
            yield f"a measurement of {factor} times the prediction: {text}"
    rows = Path(folder) / "measured.csv"
    rows.write_text("gpu,framework,precision,model,batch,input,latency_ms,kernel_ms\n"
                    "a100-sxm4-40gb,pytorch-eager,fp16,bert,8,128,20,15\na100-sxm4-40gb,pytorch-eager,fp16,bert,8,256,40,30\n")
    one = report(f"{BERT} --measured {rows}")["predictions"][0]
    yield from differs("a measured latency", one["measured_latency_s"], 0.02)
    yield from differs("a measured device time", one["measured_device_s"], 0.015)
    found = report("crossover bert --device l4 --dim seq=64 --precision fp16")
    sides = [row["batch"] for row in found["predictions"]]
    if sides != [int(found["crossover"]["batch"]), int(found["crossover"]["batch"]) + 1]:
        yield f"a crossover at {found['crossover']['batch']} has rows of batch {sides}"
    growth = {row["property"]: f"{row['to'] / row['from']:.2f}x" for row in report(HEAD)["headroom"] if not row.get("skipped")}
    for name, text in growth.items():
        words = next(line.split() for line in table(HEAD).splitlines() if line.startswith(name))
        if words[3 if "more" not in words else 5] != text:
            yield f"growth of {name} is {words}, recomputed {text}"
    if "; 20 % more latency allows " not in table(HEAD + " --budget 20%"):
        yield "headroom does not say its budget in percent"
    sweep = BERT.replace("--batch 8", "--batch 1,2,4,64,128")
    causes = [row["widest_component"]["name"] for row in report(sweep)["predictions"]]
    line = next((line for line in table(sweep).splitlines() if line.startswith("interval: ")), "")
    runs = 1 + sum(a != b for a, b in zip(causes, causes[1:]))
    if line.count(" (± ") != runs or not all(line.count(cause) == 1 for cause in set(causes)):
        yield f"causes {causes} of the interval are listed as {line}"


def wrong_files(folder):
    """What is written beside the table: the last batch's timeline, the rows that are furthest off."""
    traces = [Path(folder) / f"{name}.json" for name in ("sweep", "last")]
    for trace, batches in zip(traces, ("1,32", "32")):
        table(f"{NET.replace('--batch 32', f'--batch {batches}')} --trace {trace}")
    if traces[0].read_text() != traces[1].read_text():
        yield "the timeline of a sweep is not that of its last batch"
    page, out = Path(folder) / "page.html", Path(folder) / "furthest.csv"
    table(f"validate regression/operators.csv --html {page} --predictions {out}")
    errors = [math.log(float(row["predicted_ms"]) / float(row["latency_ms"]))
              for row in csv.DictReader(io.StringIO(out.read_text())) if row["predicted_ms"]]
    listed = [math.log1p(float(e) / 100) for e in re.findall(r">([+-][\d.]+) %<", page.read_text().partition('id="furthest"')[2].partition("</table>")[0])]
    if len(listed) != 25 or any(abs(abs(a) - b) > 5e-3 for a, b in zip(listed, sorted(map(abs, errors), reverse=True))):
        yield f"the rows that are furthest off are off by {listed}"
    graph = Path(folder) / "many.txt"
    graph.write_text("graph g\n" + "".join(f"input %x{i} f32[n,4]\n" for i in range(12)) + '%y f32[n,4] = pointwise(%x1) {function="relu"}\noutput %y\n')
    shown = re.search(r"--dim n=N +(.*?) and (\d+) more", table(f"inspect {graph}"))
    if not shown or len(shown[1].split(", ")) + int(shown[2]) != 12:
        yield f"12 inputs of a size are listed as {shown and shown[0]}"
    python = subprocess.run([FTAX, "measure", "model", "resnet18", "--device", "cpu", "--framework", "pytorch-eager", "--output", folder + "/out"],
                            capture_output=True, text=True, env={**os.environ, "FTAX_PYTHON": "/nowhere/python3"})
    if python.returncode == 0 or "/nowhere/python3" not in python.stderr:
        yield f"FTAX_PYTHON is ignored: {python.stderr}"


def quantile(values, share):
    values, at = sorted(values), share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def wrong_scores(folder):
    """Errors of validate from its own table of predictions, over all rows and by group."""
    for file, by in (("models.csv", "gpu,version"), ("operators.csv", "op")):
        out = Path(folder) / file
        scored = report(f"validate regression/{file} --by {by} --predictions {out}")
        rows = [row for row in csv.DictReader(io.StringIO(out.read_text())) if row["predicted_ms"]]
        for group in [{"group": {}, **scored["overall"]}, *scored["groups"]]:
            mine = [row for row in rows if all(row[key] == value for key, value in group["group"].items())]
            errors = [float(row["predicted_ms"]) / float(row["latency_ms"]) - 1 for row in mine]
            absolute = [abs(e) for e in errors]
            inside = [float(row["low_ms"]) <= float(row["latency_ms"]) <= float(row["high_ms"]) for row in mine]
            for name, right in (("rows", len(mine)), ("mape", sum(absolute) / len(mine)), ("bias", sum(errors) / len(mine)),
                                ("median_ape", quantile(absolute, 0.5)), ("p90_ape", quantile(absolute, 0.9)),
                                ("inside_interval", sum(inside) / len(mine))):
                if abs(group[name] - right) > 2e-5:
                    yield f"{file} {group['group']}: {name} is {group[name]}, recomputed {right}"


def predictions(folder, name, header, rows, options=""):
    """What validate predicts for rows of a table, in milliseconds."""
    file, out = Path(folder) / f"{name}.csv", Path(folder) / f"{name}.out.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    report(f"validate {file} --predictions {out} {options}")
    return [float(row["predicted_ms"]) for row in csv.DictReader(io.StringIO(out.read_text()))]


def wrong_rows(folder):
    """Rows of validate are the predictions of the other verbs, and anchors of every kind of row move them."""
    header = "gpu,framework,precision,model,isl,osl,batch,tp,latency_s"
    served = predictions(folder, "served", header, [f"h100-sxm5-80gb,vllm@0.11,bf16,llama-3-8b,512,64,8,{tp},1" for tp in (1, 2, 4)])
    for tp, milliseconds in zip((1, 2, 4), served):
        right = report(replaced(LLM, f"--framework vllm@0.11 --precision bf16 --tp {tp}"))["predictions"][0]["total_s"] * 1e3
        if abs(milliseconds / right - 1) > 1e-3:
            yield f"a row with tp={tp} takes {milliseconds} ms, generate says {right}"
    header = "gpu,framework,version,precision,model,batch,input,latency_ms"
    rows = [f"a100-sxm4-40gb,pytorch-eager,2.5,fp16,bert,{batch},128,10" for batch in (1, 8, 64)]
    alone = predictions(folder, "networks", header, rows)
    for batch, milliseconds in zip((1, 8, 64), alone):
        right = report(BERT.replace("--batch 8", f"--batch {batch} --framework pytorch-eager@2.5"))["predictions"][0]["latency_s"] * 1e3
        if abs(milliseconds / right - 1) > 1e-3:
            yield f"a row of batch {batch} takes {milliseconds} ms, predict says {right}"
    # Columns that change how a row ran: layout, version as a number, torch.compile as an option.
    header = "gpu,framework,version,precision,model,batch,latency_ms,layout,option"
    variants = [f"a100-sxm4-40gb,pytorch-eager,{version},fp16,resnet50,32,10,{layout},{option}" for version, layout, option in (
        ("2.4", "", ""), ("240", "", ""), ("2.4.1", "nchw", ""), ("2.4", "nhwc", ""), ("2.4", "", "fusion"))]
    plain, number, nchw, nhwc, fused = predictions(folder, "variants", header, variants)
    eager = NET + " --precision fp16 --framework pytorch-eager@2.4"
    for what, got, options in (("2.4", plain, eager), ("240", number, eager), ("nchw", nchw, eager), ("nhwc", nhwc, eager + " --channels-last"),
                               ("fusion", fused, eager.replace("pytorch-eager", "torch-compile"))):
        right = report(options)["predictions"][0]["latency_s"] * 1e3
        if abs(got / right - 1) > 1e-3:
            yield f"a row of {what} takes {got} ms, predict says {right}"
    header = "gpu,framework,version,precision,model,batch,input,latency_ms"
    anchor = Path(folder) / "anchor.csv"
    anchor.write_text(f"{header}\na100-sxm4-40gb,pytorch-eager,2.5,fp16,resnet18,1,224,{3 * 2.6}\n")
    if not predictions(folder, "networks", header, rows, f"--anchor {anchor}")[0] > 1.3 * alone[0]:
        yield "an anchor of a slow host does not slow a row down"
    trained = Path(folder) / "trained.csv"
    trained.write_text("gpu,framework,precision,model,batch,mode,latency_ms\n" + "".join(
        f"t4,pytorch-eager,fp32,resnet18,8,{mode},10\n" for mode in ("train", "end_to_end")))
    scored = report(f"validate {trained}")
    if scored["overall"]["rows"] != 1 or "training is not modelled" not in json.dumps(scored["skipped"]):
        yield f"of a row of each mode {scored['overall']['rows']} were predicted: {scored['skipped']}"
    # Anchors of generations: the same model's bring it nearer to what was measured than another model's do.
    ask = replaced(LLM, "--framework vllm@0.8")
    before = report(ask)["predictions"][0]["total_s"]
    header = "gpu,framework,precision,model,isl,osl,batch,tp,latency_s"
    after = {}
    for framework, model in (("vllm@0.8", "llama-3-8b"), ("vllm", "llama-3-8b"), ("vllm@0.8", "llama-3.1-8b")):
        anchor = Path(folder) / "generated.csv"
        anchor.write_text(f"{header}\nh100-sxm5-80gb,{framework},fp16,{model},512,64,8,1,{1.5 * before}\n")
        after[framework, model] = report(f"{ask} --anchor {anchor}")["predictions"][0]["total_s"]
    own, unversioned, other = after.values()
    if not before < other < own < 1.55 * before:
        yield f"anchors of 1.5 times {before} give {own} for the same model, {other} for another"
    yield from differs("an anchor without a version", unversioned, own)
    # Frameworks of one machine share its CPU, those of another do not.
    header = "gpu,framework,version,precision,model,batch,input,latency_ms,run"
    rows = [f"a100-sxm4-40gb,pytorch-eager,2.5,fp16,bert,1,128,10,{run}" for run in ("m1", "m2")]
    alone = predictions(folder, "machines", header, rows)
    anchor.write_text(f"{header}\na100-sxm4-40gb,torchscript,2.5,fp16,resnet18,1,224,{3 * 2.6},m1\n")
    same, beside = predictions(folder, "machines", header, rows, f"--anchor {anchor}")
    if not same > 1.2 * max(beside, alone[0]):
        yield f"a slow framework of machine m1 changes {alone} to {same} on m1 and {beside} on m2"
    header = "gpu,op,precision,shape,latency_ms"
    rows = [f"t4,{op},fp32,b=8 h={h},0.05" for op in ("add", "relu") for h in (64, 256)]
    alone = predictions(folder, "operators", header, rows)
    anchor.write_text(f"{header}\n" + "".join(f"t4,mul,fp32,b=8 h={h},{3 * max(alone)}\n" for h in (32, 128, 512)))
    slowed = predictions(folder, "operators", header, rows, f"--anchor {anchor}")
    if not all(b > 1.3 * a for a, b in zip(alone, slowed)):
        yield f"anchors of operators on a slow host change {alone} to {slowed}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = [*wrong_changes(), *wrong_sums(), *wrong_choices(), *wrong_servers(), *wrong_texts(folder), *wrong_files(folder), *wrong_scores(folder), *wrong_rows(folder)]
    if wrong:
        print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    FTAX = str(Path(sys.argv[1]).resolve())
    sys.exit(main())
