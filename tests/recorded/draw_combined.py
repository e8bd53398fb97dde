"""Writes the command lines of combined.tsv: random models, devices, frameworks and three to six options at once, for each verb, and fits of measured rows.

    draw_combined.py FTAX    # `make golden` then records what they print

Their values are those of draw_options.py. Of the lines that a verb refuses, a quarter as many are kept.
"""
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from draw_options import FILES, VALUES, options_of

HERE = Path(__file__).parent
MODELS = ["resnet18 --dim batch=2", "mobilenet_v2", "bert --dim seq=32", "gpt2 --dim seq=24", "shufflenet", "efficientnet", f"{FILES}/two_symbols.txt --dim seq=16", "bert --dim seq=64",
          f"{FILES}/every_statement.txt", "vit32", "squeezenet", "longformer --dim seq=512", "switchxl4 --dim seq=16"]
LANGUAGE = ["gpt2-small", "llama-3-8b", "llama-3-8b", "opt-350m", "qwen2.5-7b", "mixtral-8x7b", "gpt2"]
DEVICES = ["t4", "l4", "a100-sxm4-80gb", "h100-sxm5-80gb", "v100-sxm2-32gb", "rtx-4090", "gtx-1080-ti", "rtx-5090", "b200", "jetson-agx-orin-64gb", "p100-pcie-16gb", "rtx-a6000", "h200-sxm-141gb"]
FRAMEWORKS = ["pytorch-eager", "torchscript", "torch-compile", "torch-compile-cuda-graph", "torch-cuda-graph", "onnxruntime-cuda", "onnxruntime-tensorrt", "torch-tensorrt", "tensorrt",
              "tensorrt-onnx", "libtorch", "pytorch-eager@2.1", "torch-compile@2.0"]
SERVERS = ["vllm@0.11", "vllm", "tensorrt-llm", "sglang", "llama.cpp", "pytorch-eager"]
PRECISIONS = ["fp32", "tf32", "fp16", "bf16", "amp", "int8", "fp8"]
COUNTS = {"predict": 240, "crossover": 60, "compare": 120, "explore": 40, "headroom": 80, "generate": 150, "serve": 200, "inspect": 150, "validate": 120, "nas": 80, "convert": 20}
KEPT = {"--json", "--csv", "--html", "--svg", "--trace"}  # forms of results are recorded anyway
LEFT_OUT = {"--help", "--output", "--predictions", "--models", "--max-nodes", "--max-bytes", "--threads", "--quiet", "--requests"}

H200 = "data/measurements/h200-sxm-141gb"
FITS = [f"{H200}/dispatch.csv {H200}/operators.csv {H200}/models.csv -o IGNORED/d.json --host-output IGNORED/h.json", f"{H200}/operators.csv -o IGNORED/d.json",
        "tests/regression/operators.csv -o IGNORED/d.json --folds",
        "tests/regression/operators.csv tests/regression/models.csv -o IGNORED/d.json --iterations 2 --starts 1 --framework tensorrt",
        "tests/regression/operators.csv tests/regression/models.csv -o IGNORED/d.json --iterations 2 --starts 1 --leave-out-device t4 --leave-out-model bert_base --only gemm",
        f"{H200}/models.csv -o IGNORED/d.json --start data/profiles/devices.json --iterations 2 --starts 1"]


def base(draw, verb):
    several = draw.random() < 0.5
    devices = ",".join(draw.sample(DEVICES, draw.choice((2, 3)) if several else 1))
    frameworks = ",".join(draw.sample(FRAMEWORKS, draw.choice((1, 2))))
    precision = draw.choice(PRECISIONS)
    one = f"--device {draw.choice(DEVICES)} --framework {draw.choice(FRAMEWORKS)} --precision {precision}"
    if verb in ("generate", "serve"):
        return (f"{verb} {draw.choice(LANGUAGE)} --device {draw.choice(DEVICES)} --framework {draw.choice(SERVERS)} --precision {draw.choice(('fp16', 'bf16', 'fp8'))} "
                f"--prompt {draw.choice((16, 100, 700))} --new-tokens {draw.choice((1, 5, 20))}" + (f" --count {draw.choice((6, 15))} --rate {draw.choice((1, 8, 60))}" if verb == "serve" else ""))
    if verb == "compare":
        return f"compare {draw.choice(MODELS)} --device {devices} --framework {frameworks} --batch {draw.choice(('1', '1,8', '4'))}"
    if verb == "explore":
        return f"explore {draw.choice(MODELS)} --device {devices} --batch 1,4 --html OUT/e.html"
    if verb == "nas":
        space = draw.choice(("fbnet", "nasbench201", "ofa", "ofa-resnet", "transformer"))
        return f"nas {FILES}/{space}.csv --space {space} {one} -o OUT/n.csv"
    if verb == "validate":
        rows = draw.choice((f"{FILES}/anchors.csv", f"{FILES}/all_columns.csv", f"{FILES}/language.csv", f"{FILES}/planted_operators.csv", f"{FILES}/anchors.csv"))
        return f"validate {rows}"
    if verb == "convert":
        return f"convert {draw.choice(MODELS + LANGUAGE)} -o OUT/g.txt"
    return f"{verb} {draw.choice(MODELS)}" + ("" if verb == "inspect" and several else " " + one)


if __name__ == "__main__":
    draw, lines = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 41), [f"fit {line}" for line in FITS]
    for verb, count in COUNTS.items():
        options = {option: takes for option, takes in options_of(sys.argv[1], verb).items() if option not in LEFT_OUT | KEPT and (option in VALUES or not takes)}
        found, refused = 0, 0
        while found < count:
            line = base(draw, verb)
            for option in draw.sample(sorted(options), draw.randrange(2, 6)):
                if re.search(option + r"(?![a-z-])", line):
                    continue
                values = VALUES.get(option, "").split()
                line += f" {option}" + (f" {values[0] if draw.random() < 0.75 else draw.choice(values)}" if values else "")
            with tempfile.TemporaryDirectory() as folder:
                code = subprocess.run([sys.argv[1], *line.replace("OUT/", folder + "/").replace("IGNORED/", folder + "/").split()], capture_output=True, check=False, timeout=60).returncode
            if code:
                refused += 1
                if refused > count / 4:
                    continue
            found += code == 0
            lines.append(line)
    header = (HERE / "reports.tsv").read_text().splitlines()[0]
    (HERE / "combined.tsv").write_text(header + "\n" + "".join(line + "\n" for line in dict.fromkeys(lines)))
