"""Draws the command lines of reports.tsv: every verb with random options; `make golden` then records their results.

    draw_reports.py FTAX    # the program: a line that it refuses is drawn again, nine times of ten

Files that commands write go to OUT, which the test replaces, or to IGNORED, where their content does not count.
"""
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from draw import DEVICES, FRAMEWORKS, SERVING, Deck, runs

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
H100, FILES = "data/measurements/h100-sxm5-80gb", "tests/recorded/files"

draw = random.Random(11)
device = Deck(draw, DEVICES)
card = Deck(draw, "t4 l4 a10 a100-sxm4-40gb a100-sxm4-80gb h100-sxm5-80gb l40s rtx-4090 rtx-a6000 v100-sxm2-32gb gtx-1080-ti quadro-rtx-8000".split())
framework = Deck(draw, FRAMEWORKS[:16] + ["pytorch-eager@2.4", "pytorch-eager@1.13", "torch-compile@2.0", "tensorrt@8.6", "tensorrt@7.2", "onnxruntime-cuda@1.20", "onnxruntime-cuda@1.10", "libtorch@2.5"])
server = Deck(draw, SERVING + ["vllm@0.11", "vllm@0.3", "vllm@0.2", "tensorrt-llm@1.0", "sglang@0.5", "pytorch-eager"])
network = Deck(draw, ["resnet50", "resnet18", "mobilenet_v2", "squeezenet", "efficientnet_lite", "vgg16", "bert --dim seq=128", "distilbert --dim seq=64", "roberta --dim seq=32",
                      "gpt2_forward --dim seq=48", "vit-base-patch16-224", "albert --dim seq=100", "fnet --dim seq=512", "shufflenet", "zoo:alexnet", f"{FILES}/two_symbols.txt --dim seq=33",
                      "tests/cases/inputs/ort_bert.onnx --dim seq=16", "tests/graphs/exported/gru.pt2"])
decoder = Deck(draw, ["llama-3-8b", "llama-2-7b", "mistral-7b", "qwen3-8b", "gpt2-small", "opt-350m", "pythia-410m", "phi-3-mini", "gemma-2-9b", "falcon-7b", "qwen3-30b-a3b", "gpt-oss-20b",
                      "tests/cases/inputs/qwen3-14b-awq.json", "tests/cases/inputs/mamba2.json", "mixtral-8x7b", "deepseek-v3"])
precision = Deck(draw, "fp32 fp16 fp16 bf16 amp tf32 int8 fp8 w4a16 w8a16".split())
batch = Deck(draw, ["1", "1,8", "4", "1:64:x2", "16", "2,3,5", "100:300:+100", "32"])


def some(share, *words):
    return [draw.choice(words)] if draw.random() < share else []


def chosen(d):
    while not runs(d, p := precision()):
        pass
    return f"--precision {p}"


def run_options():
    return (some(0.1, "--channels-last") + some(0.2, "--cudnn 7", "--cudnn 9") + some(0.15, "--synchronized") + some(0.15, "--copies") + some(0.1, "--padding 0.4")
            + some(0.08, f"--anchor {H100}/models.csv", f"--anchor {FILES}/anchors.csv") + some(0.05, "--strict") + some(0.1, "-q"))


def predict():
    d = device()
    words = ["predict", network(), "--device", d, "--framework", framework(), "--batch", batch()] + some(0.7, chosen(d)) + run_options()
    words += some(0.15, "--measured 12ms", "--measured 900us", f"--measured {FILES}/anchors.csv", "--measured 0.002s") + some(0.15, "--suggest-anchors")
    words += some(0.3, "--csv OUT/a.csv") + some(0.2, "--trace OUT/t.json") + some(0.2, "--svg OUT/c.svg")
    return words


def compare():
    devices = [card() for _ in range(draw.choice([1, 2, 3]))]
    words = ["compare", network(), "--device", ",".join(devices), "--framework", ",".join(sorted({framework() for _ in range(draw.choice([1, 2, 3]))})), "--batch", batch()]
    words += some(0.6, "--precision fp16", "--precision fp32,fp16", "--precision amp") + run_options() + some(0.4, "--price " + ",".join(str(draw.choice([0.35, 0.8, 1.2, 3])) for _ in devices), f"--price {FILES}/prices.csv")
    words += some(0.3, "--slo latency=20ms", "--slo latency=3ms", "--slo latency=1s") + some(0.4, *(f"--sort {k}" for k in "latency throughput cost energy memory".split())) + some(0.3, "--top 2", "--top 1")
    return words + some(0.3, "--csv OUT/a.csv")


def compare_decoders():
    devices = [card() for _ in range(draw.choice([1, 2]))]
    return (["compare", decoder(), "--device", ",".join(devices), "--framework", ",".join(sorted({server(), server()})), "--batch", draw.choice(["1", "1,8", "16"]), "--dim seq=1 --dim past=512"]
            + some(0.5, "--tp 1,2", "--tp 4") + some(0.5, "--precision bf16", "--precision fp16,w4a16", "--precision fp8") + some(0.3, "--price 2") + some(0.3, "--kv-cache paged", "--kv-cache static --dim cache=1024"))


def generate():
    d = draw.choice([card(), "h100-sxm5-80gb,a100-sxm4-80gb", "l4,t4"])
    words = ["generate", decoder(), "--device", d, "--framework", ",".join(sorted({server() for _ in range(draw.choice([1, 1, 2]))})), "--batch", draw.choice(["1", "1,8", "4,32", "200"]),
             "--prompt", draw.choice(["1", "128", "1000", "4096"]), "--new-tokens", draw.choice(["1", "2", "64", "300"])]
    words += some(0.3, "--longest-prompt 5000", "--longest-prompt 1200") + some(0.4, "--largest-batch") + some(0.3, "--tp 2", "--tp 1,4") + some(0.5, "--precision bf16", "--precision fp16", "--precision fp8", "--precision w4a16,fp16", "--precision int8")
    words += some(0.3, "--price 1.5", f"--price {FILES}/prices.csv") + some(0.3, "--slo ttft=500ms,tpot=50ms", "--slo latency=2s") + some(0.4, *(f"--sort {k}" for k in "latency first-token per-token throughput cost energy memory".split()))
    return words + some(0.3, "--kv-cache paged", "--kv-cache static", "--kv-cache dynamic") + some(0.2, "--kv-precision fp8", "--kv-precision fp16") + some(0.2, "--top 1") + some(0.3, "--csv OUT/a.csv") + some(0.1, "--synchronized")


def serve():
    words = ["serve", decoder(), "--device", draw.choice(["h100-sxm5-80gb", "a100-sxm4-80gb", "l40s,l4", "h200-sxm-141gb,h100-sxm5-80gb"]), "--framework", server(), "--precision", draw.choice(["bf16", "fp16", "fp8", "w4a16"]),
             "--prompt", draw.choice(["64", "512", "2000"]), "--new-tokens", draw.choice(["1", "16", "128"]), "--count", draw.choice(["20", "60", "150"])]
    words += draw.choice([["--rate", draw.choice(["0.5", "4", "40"])], ["--concurrency", draw.choice(["1", "8", "64"])]])
    words += some(0.4, "--spread 0.5", "--spread 1.2") + some(0.2, "--seed 7") + some(0.2, "--tp 2", "--tp 1,4") + some(0.3, "--price 2", "--price 2,3") + some(0.4, "--slo ttft=500ms,tpot=50ms", "--slo latency=5s", "--slo ttft=1s")
    words += some(0.2, "--slo-share 0.9") + some(0.2, "--max-num-seqs 4", "--max-num-seqs 64") + some(0.2, "--max-num-batched-tokens 512", "--max-num-batched-tokens 4096") + some(0.2, "--gpu-memory-utilization 0.6", "--gpu-memory-utilization 0.95")
    words += some(0.1, "--scheduler-recv-interval 10") + some(0.15, "--dp 2", "--dp 2 --ep 2") + some(0.15, "--pp 2") + some(0.2, "--replicas 2", "--replicas 3") + some(0.15, "--prefill servers=2,tp=2", "--prefill servers=1 --transfer-bandwidth 10e9")
    words += some(0.2, "--draft-tokens 3", "--draft-tokens 2 --acceptance 0.5", "--draft-tokens 4 --draft ngram", "--draft-tokens 2 --draft opt-350m") + some(0.2, "--shared-prefix 0.5") + some(0.3, "--csv OUT/a.csv") + some(0.2, "--sort throughput", "--sort cost", "--sort energy")
    return words + some(0.1, "--kv-precision fp8")


def serve_runs():
    words = ["serve", network(), "--device", draw.choice(["t4,l4", "a10", "l4"]), "--framework", framework(), "--precision", draw.choice(["fp16", "fp32"]), "--count", draw.choice(["50", "200"])]
    words += draw.choice([["--rate", draw.choice(["20", "150"])], ["--concurrency", "16"], [f"--requests {FILES}/requests.csv"]]) + some(0.6, "--slo latency=20ms", "--slo latency=100ms") + some(0.4, "--find-rate")
    return words + some(0.4, "--max-batch 1", "--max-batch 32") + some(0.4, "--max-delay 5ms", "--max-delay 500us") + some(0.4, "--price 0.35", f"--price {FILES}/prices.csv") + some(0.3, "--replicas 4") + some(0.3, "--seed 3")


def crossover():
    d = device()
    return ["crossover", network(), "--device", d, "--framework", framework()] + some(0.7, chosen(d)) + run_options() + some(0.3, "--csv OUT/a.csv")


def headroom():
    d = device()
    return ["headroom", network(), "--device", d, "--framework", framework()] + some(0.7, chosen(d)) + some(0.5, "--budget 20%", "--budget 1%", "--budget 0.3") + some(0.5, "--batch 4", "--batch 16") + some(0.3, "--csv OUT/a.csv") + some(0.3, "--channels-last")


INSPECTED = Deck(draw, ["resnet50", "bert --dim seq=128", "gpt2 --dim seq=16", "densenet", "reformer", "wavlm", "switchxl4 --dim seq=32", "llama-3-8b --dim seq=1 --dim past=100", "deepseek-v3 --dim seq=4 --dim past=0", "longformer", "mobile_bert --dim seq=8"]
                 + [str(p.relative_to(ROOT)) for p in sorted((ROOT / "tests/cases/inputs").iterdir()) if p.suffix in (".onnx", ".pt2", ".json")]
                 + [str(p.relative_to(ROOT)) for p in sorted((ROOT / "tests/graphs/exported").iterdir())] + [str(p.relative_to(ROOT)) for p in sorted((ROOT / "tests/graphs/pt2").rglob("*.pt2"))])


def inspect():
    words = ["inspect", INSPECTED(), "--batch", draw.choice(["1", "2", "32"])]
    kind = draw.random()
    if kind < 0.3:
        d = device()
        words += ["--kernels", "--device", d, "--framework", framework()] + some(0.5, "--all") + some(0.5, chosen(d)) + some(0.2, "--channels-last")
    elif kind < 0.5:
        words.append("--stream")
    else:
        words += some(0.6, "--depth 0", "--depth 2", "--depth 3", "--depth 9")
    return words + some(0.3, "--csv OUT/a.csv") + some(0.1, "--unsupported error")


def validate():
    rows = draw.choice(["tests/regression/models.csv", "tests/regression/operators.csv", f"{H100}/models.csv", f"{FILES}/anchors.csv", f"{H100}/sustained.csv"])
    return (["validate", rows] + some(0.4, "--by gpu", "--by framework,precision", "--by batch", "--by model", "--by op") + some(0.3, "--predictions OUT/p.csv") + some(0.3, "--max-mape 5", "--max-mape 900")
            + some(0.3, f"--anchor {FILES}/anchors.csv", f"--anchor {H100}/models.csv") + some(0.5, "-q"))


def nas():
    space = draw.choice(["nasbench201", "fbnet", "ofa", "ofa-resnet", "transformer"])
    d = device()
    return (["nas", f"{FILES}/{space}.csv", "--space", space, "--device", d, "--framework", draw.choice(["pytorch-eager", "tensorrt", "torch-compile", "onnxruntime-cuda"]), "--batch", draw.choice(["1", "1,16", "64"]), "-o OUT/n.csv"]
            + some(0.4, chosen(d)) + some(0.3, "--top 3") + some(0.3, "--score score", "--score score --pareto", "--pareto --score score") + some(0.3, "--waits", "--no-waits") + some(0.2, "--max-latency 5ms", "--max-latency 900us") + some(0.2, "--threads 2")
            + (some(0.5, "--dim seq=64") if space == "transformer" else []))


def others():
    yield from (["models"], ["models", "--csv OUT/m.csv"], ["devices"], ["devices", "list"], ["frameworks"], ["profiles"], ["profiles", "show", "pytorch-eager"], ["profiles", "show", "devices"], ["schema"])
    for d in ("t4", "h100", "jetson-agx-thor", "v100s", "gtx-980", "b200", "gtx-16"):
        yield ["devices", "show", d]
    for pair in ("t4 l4", "a100-sxm4-40gb a100-sxm4-80gb h100-sxm5-80gb", "gtx-1080-ti titan-v"):
        yield ["devices", "diff", pair]
    for verb in "predict crossover compare headroom generate serve validate models devices frameworks doctor inspect".split():
        yield ["schema", verb]
    for model in ("resnet18", "gpt2-small", "tests/graphs/exported/lstm-dynamo.onnx", "tests/graphs/exported/gru.pt2", "tests/cases/inputs/mha_packed_qkv.onnx"):
        yield ["convert", model, "-o OUT/g.txt"] + some(0.5, "--short-names")
    for model in ("resnet18", "bert --over seq=64:256:x2"):
        yield ["explore", model, "--device", "t4,l4", "--html OUT/e.html", "--batch 1,4,16"]
    for shell in ("bash", "zsh", "fish"):
        yield ["completion", shell]
    for words in ("pre", "devices ''", "devices show quadro", "predict resnet", "predict bert --dev", "predict bert --device t", "predict bert --framework torch-", "predict bert --framework tensorrt@", "serve llama --precision b",
                  "profiles show torch", "fit --o", "validate --by g", "nas --space o", "predict --batch 1 res", "generate --kv-cache ''", "convert resnet18 -o ''", "surprise ''", "''"):
        yield ["completion", "words", "--", words]
    for name in ("pytorch-eager@reference", "pytorch-eager@framework-tax-gtx-1080-ti", "pytorch-eager@help-pytorch-1.8", "pytorch-eager@nowhere", "pytorch-eager@", "vllm", "tensorrt-llm@reference", "neusight-pytorch-2.1", "neusight-pytorch-2.1@v100-sxm2-32gb",
                 "neusight-pytorch-2.1@nothing", "neusight-pytorch-2.1@", "torch", "t4", "h100", "t4@reference", "@", "@t4", "data/devices/t4.json"):
        yield ["profiles", "show", name]
    for batch in ("1:8:", "1:8:x", "1:8:x1", "1:8:+", "1:8:+3", "2:2:x2", "1:9:x3", "8:1:+1", "1:x2", ":8:x2", "1,1", "1,,2", ",", "1:8:*2", "99999999999999999999", "1:9223372036854775807:x9"):
        yield ["predict", "alexnet", "--device t4", f"--batch {batch}"]
    for budget in ("word", "0%", "0", "10", "11", "1001%", "-1", "1e", "5 %", "%"):
        yield ["headroom", "alexnet", "--device t4", f"--budget {budget}"]
    for over, batches in (("seq=1:5001:+1", "1"), ("seq=1:2501:+1", "1,2"), ("seq=1:100:+0", "1"), ("seq=4", "1"), ("width=1:4:x2", "1"), ("seq", "1"), ("=1:4:x2", "1")):
        yield ["explore", "bert", f"--over {over}", f"--device t4,l4 --batch {batches} --html OUT/e.html"]
    for wrong in (["predict"], ["predict", "resnet5"], ["predict", "resnet50"], ["predict", "resnet50", "--device", "t5"], ["predict", "resnet50", "--device t4 --framework pytorch"], ["predict", "bert", "--device t4"],
                  ["predict", "resnet50", "--device t4 --batch 0"], ["predict", "resnet50", "--device t4 --batch 1:8"], ["predict", "resnet50", "--device t4 --batch 8:1:x2"], ["predict", "resnet50", "--device t4 --batch 1:9:+0"],
                  ["predict", "resnet50", "--device t4 --precision fp17"], ["predict", "resnet50", "--device gtx-1080-ti --precision fp8"], ["predict", "resnet50", "--device t4 --cudnn 6"], ["predict", "resnet50", "--device t4 --padding 2"],
                  ["predict", "resnet50", "--device t4 --dim seq=3"], ["predict", "resnet50", "--device t4 --dim seq"], ["predict", "resnet50", "--device t4 --host nowhere"], ["predict", "resnet50", "--device t4 --framework tensorrt@6.0"],
                  ["predict", "resnet50", "--device t4 --framework pytorch-eager@0.4"], ["predict", "resnet50", "--device t4 --measured 5"], ["predict", "resnet50", "--device t4 --measured 5parsec"], ["predict", "resnet50", "--device t4 --measured -5ms"],
                  ["compare", "resnet50"], ["compare", "resnet50", "--device t4 --price 1,2"], ["compare", "resnet50", "--device t4 --price -1"], ["compare", "resnet50", "--device t4 --slo latency=0"], ["compare", "resnet50", "--device t4 --slo speed=3"],
                  ["compare", "resnet50", "--device t4 --sort beauty"], ["compare", "resnet50", "--device t4 --top 0"], ["compare", "resnet50", "--device t4 --tp 2"], ["compare", "resnet50", "--device t4 --sort cost"],
                  ["serve", "llama-3-8b", "--device h100-sxm5-80gb --framework vllm"], ["serve", "llama-3-8b", "--device h100-sxm5-80gb --framework vllm --rate 1 --concurrency 2 --prompt 1 --new-tokens 1"],
                  ["serve", "resnet50", "--device t4 --rate 0"], ["serve", "resnet50", "--device t4 --rate 5 --max-batch 0"], ["serve", "resnet50", "--device t4 --rate 5 --prompt 3"], ["serve", "resnet50", "--device t4 --rate 5 --slo ttft=3ms"],
                  ["generate", "resnet50", "--device t4 --prompt 3 --new-tokens 3"], ["generate", "llama-3-8b", "--device t4 --prompt 0 --new-tokens 3"], ["generate", "llama-3-70b", "--device t4 --framework vllm --prompt 10 --new-tokens 3"],
                  ["generate", "llama-3-8b", "--device t4 --prompt 10 --new-tokens 3 --tp 3"], ["generate", "llama-3-8b", "--device t4 --prompt 10 --new-tokens 3 --kv-cache round"], ["inspect", "resnet50", "--kernels"],
                  ["inspect", "resnet50", "--all"], ["inspect", "resnet50", "--depth -1"], ["headroom", "resnet50", "--device t4 --budget 0"], ["headroom", "resnet50", "--device t4 --budget 5000%"], ["validate", "nothing.csv"],
                  ["validate", "README.md"], ["validate", "tests/regression/models.csv", "--by colour"], ["nas", f"{FILES}/fbnet.csv", "--space moon --device t4"], ["nas", f"{FILES}/ofa.csv", "--space fbnet --device t4 -o OUT/n.csv"], ["explore", "resnet50", "--device t4"],
                  ["fit", "README.md", "-o OUT/f.json"], ["fit", f"{H100}/operators.csv"], ["devices", "show"], ["devices", "show", "abacus"], ["profiles", "show", "nothing"], ["convert", "nothing.onnx"], ["predict", "README.md", "--device t4"], ["surprise"]):
        yield wrong


def added():
    """Traces, fits and profiles."""
    trace = ["validate", f"{FILES}/two_symbols.txt", "--device t4 --batch 2 --dim seq=33"]
    for name, more in (("trace.json", ""), ("trace.json", "--framework torchscript"), ("trace.json", "--calibrated OUT/p.json"), ("broken_trace.json", ""), ("trace.json", "--precision fp16 --synchronized"), ("foreign_trace.json", ""), ("cpu_trace.json", "")):
        yield trace + [f"--kineto {FILES}/{name}", more]
    yield ["validate", "resnet18", f"--device t4 --batch 1 --kineto {FILES}/trace.json"]
    yield ["fit", f"{FILES}/language.csv", "-o IGNORED/d.json"]
    for profile in ("--profile data/profiles/devices.json", "--framework-profile data/profiles/frameworks/pytorch-eager.json", "--framework-profile 'data/profiles/frameworks/tensorrt.json'", "--profile tests/fuzz/seeds/profile_json/parameters.json", "--profile README.md",
                    "--framework-profile data/profiles/frameworks/pytorch-eager@help-pytorch-1.8.json --strict"):
        for verb in ("predict resnet18 --device t4 --batch 1,32", "compare bert --dim seq=32 --device t4,l4 --framework pytorch-eager,tensorrt", "serve resnet18 --device t4 --framework tensorrt --rate 30 --count 30", "headroom resnet18 --device rtx-2080-ti"):
            yield [*verb.split(), profile]
    for host in ("", "--host-profile data/profiles/hosts/neusight-pytorch-2.1.json"):
        yield ["validate", "tests/regression/operators.csv", host]
    for given in ("--shapes x:4x16x256", "--shapes x:batchx16x256", "--shapes y:3", "--input float:4x16x256", "--input half:batchxseqx256", "--input long=5", "--unsupported error", "--max-nodes 2", "--max-bytes 10", "--trip l=3", "--branch i=then"):
        yield ["inspect", f"{FILES}/two_symbols.txt --dim seq=16", given]
        yield ["predict", "tests/cases/inputs/ort_bert.onnx --device t4 --dim seq=16", given.replace("x:", "input_ids:")]
    for model in ("while_loop.pt2", "scan.pt2", "map.pt2", "cond.pt2"):
        for given in ("", "--trip while_loop=3", "--trip scan=2", "--branch cond=then", "--branch cond=else"):
            yield ["inspect", f"tests/cases/inputs/{model}", given]


def anchored():
    """Anchors, requests, prices and pages, each with what it changes."""
    h200 = "data/measurements/h200-sxm-141gb"
    for rows, card_of_rows in ((f"{H100}/models.csv", "h100-sxm5-80gb"), (f"{h200}/models.csv", "h200-sxm-141gb"), (f"{h200}/operators.csv", "h200-sxm-141gb"), (f"{H100}/dispatch.csv", "h100-sxm5-80gb"), (f"{FILES}/anchors.csv", "t4")):
        for framework_of_row, p in (("pytorch-eager", "fp16"), ("torch-compile", "fp32"), ("torch-cuda-graph", "bf16"), ("tensorrt", "fp16"), ("libtorch", "amp")):
            if (p, card_of_rows) != ("bf16", "t4"):
                yield ["predict", "resnet50", f"--device {card_of_rows} --framework {framework_of_row} --precision {p} --batch 1,16 --anchor {rows}"]
        yield ["predict", "bert --dim seq=128", f"--device {card_of_rows} --batch 4 --anchor {rows} --suggest-anchors"]
        yield ["compare", "bert --dim seq=128", f"--device {card_of_rows},l4 --framework pytorch-eager,torch-compile --precision fp16 --batch 4 --anchor {rows}"]
        yield ["crossover", "resnet50", f"--device {card_of_rows} --anchor {rows}"]
        yield ["generate", "gpt2-small", f"--device {card_of_rows} --batch 2 --prompt 64 --new-tokens 16 --precision fp16 --anchor {rows}"]
        yield ["validate", rows, "--by framework,precision"]
        yield ["validate", rows, f"--anchor {rows} -q"]
    for f in ("pytorch-eager", "torchscript", "tensorrt", "torch-tensorrt", "onnxruntime-cuda"):
        yield ["predict", "vgg16", f"--device quadro-rtx-8000 --framework {f} --batch 1,8 --suggest-anchors"]
        yield ["predict", "resnet18", f"--device rtx-2080-ti --framework {f} --batch 8 --measured 4ms"]
    llm = "llama-3-8b --device h100-sxm5-80gb --framework vllm"
    for more in (f"--requests {FILES}/llm_requests.csv", f"--requests {FILES}/llm_requests.csv --concurrency 2", f"--requests {FILES}/llm_requests.csv --slo ttft=200ms,tpot=20ms --find-rate", "--rate 3 --count 40 --prompt 300 --new-tokens 30 --slo ttft=500ms --find-rate --price 3",
                 "--concurrency 4 --count 30 --prompt 300 --new-tokens 30 --slo tpot=15ms", "--rate 50 --count 200 --prompt 4000 --new-tokens 200 --gpu-memory-utilization 0.4", "--rate 50 --count 60 --prompt 4000 --new-tokens 300 --max-num-seqs 16 --slo latency=9s --slo-share 0.5",
                 "--rate 2 --count 20 --prompt 10 --new-tokens 10 --spread 3 --seed 5", "--rate 20 --count 40 --prompt 500 --new-tokens 50 --dp 2 --tp 2 --pp 2 --replicas 2 --prefill servers=2,tp=2,dp=1", "--rate 20 --count 40 --prompt 500 --new-tokens 50 --draft-tokens 5 --acceptance 0.9",
                 "--rate 20 --count 40 --prompt 500 --new-tokens 50 --draft-tokens 5 --acceptance 0", "--rate 20 --count 40 --prompt 500 --new-tokens 50 --shared-prefix 0.9 --kv-precision fp8"):
        yield ["serve", llm, more]
    for f in ("vllm@0.2", "vllm@0.8", "sglang", "tensorrt-llm", "llama.cpp", "vllm-eager"):
        yield ["serve", f"qwen3-8b --device a100-sxm4-80gb --framework {f} --rate 8 --count 60 --prompt 700 --new-tokens 60 --spread 0.7"]
    yield ["compare", "resnet50", f"--price {FILES}/prices.csv --framework tensorrt --precision fp16 --batch 8"]
    yield ["compare", "resnet50", f"--price {FILES}/prices.csv --framework tensorrt --precision fp16 --batch 8,32 --slo latency=4ms --top 3"]
    for more in ("--device t4 --batch 1,4 --html OUT/e.html", "--device t4,a100-sxm4-40gb --framework tensorrt --precision fp16 --over seq=16:512:x2 --html OUT/e.html", "--device h100-sxm5-80gb --channels-last --copies --html OUT/e.html"):
        yield ["explore", "distilbert" if "seq" in more else "resnet18", more]
    yield ["manual"]
    for model in ("gpt2 --dim seq=16", "switchxl4 --dim seq=16", "llama-3-8b --dim seq=1 --dim past=64 --kv-cache static --dim cache=128", "deepseek-v3 --dim seq=1 --dim past=64 --kv-cache paged"):
        for more in ("--depth 1", "--depth 4 --csv OUT/a.csv", "--stream", "--kernels --all --device h100-sxm5-80gb --framework vllm --precision bf16", "--kernels --device a100-sxm4-40gb"):
            yield ["inspect", model, "--batch 2", more]
    for budget in ("1%", "5%", "100%", "1000%", "0.05", "0%", "1001%", "-1%", "five"):
        yield ["headroom", "resnet18", f"--device t4 --budget {budget}"]
    for sizes in ("1", "1,2", "1:8:x2", "8:1:x2", "1:10:+3", "1:10:x1", "1:10:+0", "1,1", "", "1:4", "1000000", "99999999999999999999", "1.5", "-1", "1:100000000:+1", "2:9:x3,5"):
        yield ["predict", "squeezenet", f"--device t4 --batch '{sizes}'"]


def refusal(line, program):
    """What the program says to a line that it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        words = shlex.split(" ".join(line).replace("OUT/", folder + "/"))
        ended = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.stderr if ended.returncode > 1 else ""


def accepted(draw_line, program):
    while True:
        line = draw_line()
        said = refusal(line, program)
        if missing := re.findall(r"--dim ([\w.]+)=N", said):
            line += [f"--dim {name}={draw.choice([1, 16, 33])}" for name in missing]
            said = refusal(line, program)
        if "fixed" in said and "--batch" in line:
            at = line.index("--batch")
            del line[at:at + 2]
            said = refusal(line, program)
        if not said or draw.random() < 0.1:
            return line


if __name__ == "__main__":
    lines = [list(word) for word in others()]
    for verb, count in ((predict, 80), (compare, 45), (compare_decoders, 15), (generate, 55), (serve, 70), (serve_runs, 30), (crossover, 20), (headroom, 20), (inspect, 110), (validate, 14), (nas, 30)):
        lines += [accepted(verb, sys.argv[1]) for _ in range(count)]
    lines += [[word for word in line if word] for part in (added(), anchored()) for line in part]
    header = "\t".join(["command", "seconds", "others", "numbers", "json", "table", "page", "files", "messages"]) + "\n"
    (HERE / "reports.tsv").write_text(header + "".join(" ".join(line) + "\n" for line in lines))
