"""Writes the command lines of options.tsv: every option of every verb alone, with values that hold and values that do not.

    draw_options.py FTAX    # `make golden` then records what they print

The verbs, their options and which take a value come from `ftax VERB --help`; an option without values below is given none, a
word and a number.
"""
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = "tests/recorded/files"
TEXT = f"{FILES}/two_symbols.txt --dim seq=16"
SERVED = "--device h100-sxm5-80gb --framework vllm@0.11 --precision bf16"

# Lines of a verb to which each of its options is added, in place of the one that stands there.
LINES = {
    "predict": [f"predict {TEXT} --device t4 --batch 2"],
    "crossover": [f"crossover {TEXT} --device t4"],
    "compare": [f"compare {TEXT} --device t4,l4 --batch 2"],
    "explore": [f"explore {TEXT} --device t4 --batch 1,4 --html OUT/e.html"],
    "headroom": [f"headroom {TEXT} --device t4"],
    "generate": ["generate gpt2-small --device t4 --prompt 16 --new-tokens 4"],
    "serve": [f"serve llama-3-8b {SERVED} --rate 4 --count 12 --prompt 64 --new-tokens 8", f"serve {TEXT} --device t4 --rate 40 --count 20"],
    "inspect": [f"inspect {TEXT} --batch 2", f"inspect {TEXT} --kernels --device t4 --batch 2"],
    "convert": [f"convert {FILES}/two_symbols.txt -o OUT/g.txt"],
    "validate": [f"validate {FILES}/anchors.csv", f"validate {FILES}/two_symbols.txt --dim seq=33 --batch 2 --device t4 --kineto {FILES}/trace.json"],
    "nas": [f"nas {FILES}/fbnet.csv --space fbnet --device t4 -o OUT/n.csv"],
    "fit": ["fit tests/regression/operators.csv -o IGNORED/d.json --iterations 1 --starts 1"],
    "models": ["models"], "devices": ["devices", "devices list", "devices show t4", "devices diff t4 l4"], "frameworks": ["frameworks"], "profiles": ["profiles", "profiles list", "profiles show tensorrt"],
    "schema": ["schema", "schema predict"], "completion": ["completion bash", "completion powershell"], "manual": ["manual"],
    "doctor": [], "mcp": [],  # what measures differs with the build
}
VALUES = {
    "--dim": "seq=7 seq x=3 seq=0 =4 seq=a", "--shapes": "x:4x16x256 y:3 x:4 x", "--input": "float:4x16x256 long=5 half:batchxseqx256 foo:3 float",
    "--trip": "l=3 l l=-1", "--branch": "i=then i=maybe i", "--kv-cache": "static paged round", "--kv-precision": "fp8 fp16 fp3", "--unsupported": "error maybe",
    "--max-bytes": "10 x", "--max-nodes": "2 -1", "--device": "l4 t5 t4,l4 data/devices/t4.json README.md ,", "--framework": "tensorrt torch-compile@2.0 abacus tensorrt@6 pytorch-eager,tensorrt",
    "--precision": "fp16 bf16 fp17 fp32,fp16 amp int8", "--host": "reference framework-tax-gtx-1080-ti nowhere", "--anchor": f"{FILES}/anchors.csv {FILES}/served.csv nothing.csv README.md", "--models": f"{FILES} nowhere",
    "--profile": "data/profiles/devices.json README.md tests/fuzz/seeds/profile_json/parameters.json", "--framework-profile": "data/profiles/frameworks/pytorch-eager.json README.md data/profiles/frameworks/tensorrt.json",
    "--host-profile": "data/profiles/hosts/neusight-pytorch-2.1.json README.md", "--cudnn": "7 9 6 x", "--padding": "0.3 2 -1 x", "--batch": "1,4 0 1:9:+2 x 7", "--measured": f"4ms 3 {FILES}/anchors.csv 0s",
    "--trace": "OUT/t.json nowhere/t.json", "--svg": "OUT/c.svg", "--html": "OUT/p.html -", "--json": "OUT/j.json - nowhere/j.json", "--csv": "OUT/c.csv -", "--price": f"2 1,2 -1 {FILES}/prices.csv x",
    "--slo": "latency=5ms ttft=100ms,tpot=10ms latency=x speed=3 latency=5", "--sort": "latency throughput cost energy memory first-token beauty", "--top": "1 0 9", "--tp": "2 1,2 0 3", "--over": "seq=16:64:x2 seq x=1:2:x2",
    "--budget": "20% 0.1 0 x", "--prompt": "32 0 x 16,32", "--new-tokens": "1 0 9", "--longest-prompt": "64 1", "--images": "0 1 -1", "--image-size": "224x448 224 0x1", "--rate": "1 0 x 400", "--concurrency": "2 0", "--requests": f"{FILES}/requests.csv {FILES}/llm_requests.csv README.md",
    "--count": "5 0", "--spread": "0.5 -1", "--seed": "7 x", "--slo-share": "0.5 2", "--max-num-seqs": "1 0", "--max-num-batched-tokens": "64 0", "--gpu-memory-utilization": "0.3 2", "--scheduler-recv-interval": "5 0",
    "--batch-wait-iters": "5 -1", "--batch-wait-ratio": "0.5 2", "--dp-balance-iters": "5 -1", "--captured-tokens": "512 -1", "--frontend-time": "5ms 0s x", "--cards": "2 0", "--moe-backend": "cutlass moon", "--verify": "nothing.json README.md",
    "--cpu": "epyc-7742 nowhere", "--host-load": "shared busy", "--host-file": "nothing.json README.md", "--steps": "2 x", "--max-memory": "1e9 0", "--dp": "2 0", "--ep": "2 0", "--pp": "2 0", "--replicas": "2 0", "--prefill": "servers=1 servers=2,tp=2 servers=x wheels=4",
    "--link": "host wire", "--link-bandwidth": "5e9 0", "--link-cards": "1 0", "--transfer-bandwidth": "10e9 0", "--draft-tokens": "2 -1", "--acceptance": "0.5 2", "--draft": "ngram opt-350m nothing", "--shared-prefix": "0.5 2", "--max-batch": "2 0", "--max-delay": "2ms x 3", "--depth": "0 2 -1 x",
    "--by": "gpu framework,batch colour", "--max-mape": "1 900 -1", "--predictions": "OUT/p.csv", "--kineto": f"{FILES}/trace.json {FILES}/broken_trace.json README.md", "--calibrated": "OUT/p.json", "--space": "ofa moon", "--max-latency": "5ms 3",
    "--score": "score nothing", "--threads": "2 -1", "--only": "gemm moon", "--start": "data/profiles/devices.json README.md", "--framework-version": "2.1", "--profile-version": "9", "--leave-out-device": "t4 t5", "--leave-out-model": "bert_base x", "--leave-out-run": "1 x",
    "--iterations": "2 0 x", "--starts": "1 0", "--output": "OUT/o.json nowhere/o.json", "--host-output": "IGNORED/h.json",
}


def options_of(program, verb):
    """Long names of a verb's options, each with whether it takes a value."""
    text = subprocess.run([program, *verb.split(), "--help"], capture_output=True, text=True, check=False).stdout
    found = {}
    for line in text.splitlines():
        if match := re.match(r"\s+(?:-\w,)?(--[a-z][a-z-]+)(?:,--[a-z-]+)?( [A-Z\[{].*)?", line):
            found[match[1]] = bool(match[2])
    return found


if __name__ == "__main__":
    lines = []
    for verb, bases in LINES.items():
        options = options_of(sys.argv[1], verb)
        for base in bases:
            lines.append(base)
            for option, takes_value in options.items():
                if re.search(option + r"(?![a-z-])", base) and option != "--dim":
                    rest = re.sub(rf" {option} \S+", "", base)
                    lines.append(rest)
                else:
                    rest = base
                lines += [f"{rest} {option} {value}" for value in VALUES[option].split()] if option in VALUES else [f"{rest} {option}"] + [f"{rest} {option} 3"] * takes_value
            lines += [f"{base} --nothing", f"{base} surplus", f"{base} -q"]
    header = (HERE / "reports.tsv").read_text().splitlines()[0]
    (HERE / "options.tsv").write_text(header + "\n" + "".join(line + "\n" for line in dict.fromkeys(lines)))
