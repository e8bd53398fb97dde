"""Inputs from public bug reports, each with the figure that is right for it.

    cases_test.py FTAX [torch]      # torch: the build reads TorchScript

A case is a command, the path of a figure in its JSON report, the right value and the relative tolerance; two commands and the path of a
figure that is smaller in the first; or an exit code and what the message contains. Weights of the inputs are zeros or absent.
"""
import json
import subprocess
import sys
from pathlib import Path

INPUTS = Path(__file__).parent / "inputs"
SECONDS = 30  # a sanitized build is ten times as slow

# Measured by others, unless the comment says otherwise.
FIGURES = [
    # vllm-project/vllm#20469: --enforce-eager, time per token and time to the first one
    ("generate qwen3-14b-awq.json --device a100-sxm4-80gb --framework vllm-eager --batch 1 --prompt 16000 --new-tokens 200",
     "predictions.0.tpot_s", 20.63e-3, 0.1),
    ("generate qwen3-14b-awq.json --device a100-sxm4-80gb --framework vllm-eager --batch 1 --prompt 16000 --new-tokens 200",
     "predictions.0.ttft_s", 3.345, 0.15),
    # NVIDIA/FasterTransformer, docs/vit_guide.md: products of 577 columns in fp16 under cuBLAS 11
    ("predict vit384.txt --device a100-sxm4-80gb --framework pytorch-eager@1.12 --precision fp16 --batch 32", "predictions.0.latency_s", 0.121, 0.1),
    # ggml-org/llama.cpp pull 4766: tokens per second of Q4_0
    ("generate llama-2-7b --device p40 --framework llama.cpp --batch 1 --prompt 1 --new-tokens 128 --precision w4a16",
     "predictions.0.tokens_per_s", 56.8, 0.1),
    # One row of 8 kB out of 256,000: the whole graph takes one linear layer and 4 us (first principles)
    ("predict embed_256000.pt2 --device a100-sxm4-80gb --framework torch-compile --precision fp16",
     "predictions.0.device_s", 26.7e-6, 0.2),
    # microsoft/onnxruntime, transformers/README.md, V100: milliseconds at 128 tokens
    ("predict ort_bert.onnx --device v100-pcie-16gb --framework onnxruntime-cuda --precision fp16 --batch 1 --dim seq=128",
     "predictions.0.latency_s", 1.45e-3, 0.1),
    # microsoft/onnxruntime#14596
    ("predict up3d.pt2 --device t4 --framework onnxruntime-cuda", "predictions.0.latency_s", 85.4e-3, 0.1),
    # Work by hand: 2 x 64 x 64 positions, 320 x 320 x 9 products of two operations
    ("inspect olive_unet.onnx --batch 2", "by_kind.conv.flops", 2 * 2 * 64 * 64 * 320 * 320 * 9, 0.001),
    ("inspect mha_packed_qkv.onnx --batch 2", "by_kind.attention.macs", 2 * 2 * 8 * 64 * 64 * 40, 0.001),
    ("inspect mha_packed_kv.onnx --batch 2", "by_kind.attention.macs", 2 * 2 * 8 * 64 * 77 * 40, 0.001),
    *((f"inspect {name}.onnx --shapes x:2x3x640x320", "by_kind.conv.macs", 2 * 640 * 320 * 16 * 27, 0.001)
      for name in ("paddle_in_hw", "none_str", "unnamed")),
    ("inspect dim_quest.onnx --shapes x:1x3x64x64", "by_kind.conv.macs", 64 * 64 * 16 * 27, 0.001),
    # Passes of a 96 x 96 layer over 4 rows; the larger branch of cond has two
    ("inspect cond.pt2 --batch 4", "total.macs", 2 * 4 * 96 * 96, 0.001),
    ("inspect while_loop.pt2", "total.macs", 4 * 96 * 96, 0.001),
    ("inspect while_loop.pt2 --trip while_loop=3", "total.macs", 3 * 4 * 96 * 96, 0.001),
    ("inspect scan.pt2", "total.macs", 16 * 4 * 96 * 96, 0.001),
    ("inspect map.pt2", "total.macs", 8 * 4 * 96 * 96, 0.001),
    # Exported at batch 2: four layers with four products of 256 x 256 and attention over 64 tokens
    *((f"inspect static_attn.onnx --batch {batch} --shapes input:batchx64x256", "total.macs",
       batch * 64 * 4 * (4 * 256 * 256 + 2 * 64 * 256), 0.001) for batch in (2, 3, 8)),
    # Dimensions by their names in the file as by batch and seq: tokens of 64 x 64, pixels of 3 x 3 x 3 x 8, nodes of 64 x 32
    *((f"inspect batch_size.onnx {dims}", "total.macs", 2 * 16 * 64 * 64, 1e-9)
      for dims in ("--dim batch_size=2 --dim sequence_length=16", "--batch 2 --dim seq=16", "--dim batch=2 --dim sequence_length=16")),
    ("inspect text.onnx --batch 2 --dim text_len=16", "total.macs", 2 * 16 * 64 * 64, 1e-9),
    ("inspect image.onnx --dim N=2 --dim height=64 --dim width=64", "total.macs", 2 * 64 * 64 * 27 * 8, 1e-9),
    ("predict image.onnx --device t4 --dim N=2 --dim height=64 --dim width=64", "predictions.0.batch", 2, 1e-9),
    ("inspect graph_network.onnx --dim nodes=2708 --dim edges=10556", "total.macs", 2708 * 64 * 32, 1e-9),
    # 98 frames of 400 points, 64 lines of 64 points: 5 n log2 n each
    *((f"inspect {name}.onnx --batch 4 --dim samples=16000", "by_kind.fft.flops", 5 * 4 * 98 * 400 * 9, 1e-9)
      for name in ("stft_2d", "stft_3d")),
    ("inspect dft.onnx --batch 4", "by_kind.fft.flops", 5 * 4 * 64 * 64 * 6, 1e-9),
    # torchao and PyTorch's fp8 product: 2 m n k, and weights of one byte
    ("inspect scaled_mm.pt2", "by_kind.matmul.flops", 2 * 16 * 64 * 256, 1e-9),
    ("inspect int4_weights.pt2", "by_kind.linear.macs", 2 * 16 * 64 * 256, 1e-9),
    ("inspect int8_dynamic.pt2", "by_kind.matmul.macs", 2 * 16 * 64 * 256, 1e-9),
    *((f"inspect {name}.pt2", "coverage.flops", 1, 1e-9) for name in ("scaled_mm", "int4_weights", "int8_dynamic")),
]
TORCH_FIGURES = [
    # A condition on an enum is decided: a layer of 8 x 8 over 2 x 4 rows
    ("inspect enum.pt --input float:batchx4x8 --batch 2", "total.macs", 8 * 8 * 8, 0.001),
    ("inspect gt_Cc.pt --input float:batchx32,long=5 --batch 4", "total.macs", 6 * 4 * 32 * 32, 0.001),
    # nn.TransformerEncoder's fused layer: four products of 16 x 16 and two of 16 x 32 for each of 2 x 8 tokens
    ("inspect encoder.pt --input float:batchx8x16 --batch 2", "by_kind.linear.macs", 2 * 8 * (4 * 16 * 16 + 2 * 16 * 32), 0.001),
    ("inspect gt_Cc.pt --input float:batchx32,long=3 --batch 4", "total.macs", 3 * 4 * 32 * 32, 0.001),
]
# What is faster than what. pytorch/pytorch#150488: the call of a small compiled graph takes 345 us around 72 us of kernels (under a
# profiler; KernelBench's calls take 55 to 105 us), and kernels one by one take longer.
ORDERS = [
    (f"predict short_kernels.pt2 --device a100-sxm4-80gb --framework {graphs} --precision fp16",
     "predict short_kernels.pt2 --device a100-sxm4-80gb --framework torch-compile --precision fp16", "predictions.0.latency_s")
    for graphs in ("torch-compile-cuda-graph", "torch-compile-max-autotune", "cuda-graph")
]
# Weights of four bits take less time than those of eight, and these less than the run in fp16
ORDERS += [("predict nbits4.onnx --device t4 --framework onnxruntime-cuda --batch 1",
            "predict nbits8.onnx --device t4 --framework onnxruntime-cuda --batch 1", "predictions.0.device_s"),
           ("predict nbits8.onnx --device t4 --framework onnxruntime-cuda --batch 1",
            "predict nbits8.onnx --device t4 --framework onnxruntime-cuda --batch 1 --precision fp16", "predictions.0.device_s")]
FP8 = "predict mlp_fp8.onnx --batch 8192 --framework tensorrt@10.0 --device"
DECODER = "qwen3-14b-w4.json --device rtx-5090 --framework vllm --prompt 128 --new-tokens 8"
# Exit code and a part of the message; 0 where the file is read.
ENDINGS = [
    (f"{FP8} a100-sxm4-80gb", 2, "has no fp8 arithmetic"),
    (f"{FP8} l40s", 0, ""),
    ("predict scaled_mm.pt2 --device a100-sxm4-80gb", 2, "has no fp8 arithmetic"),
    ("predict scaled_mm.pt2 --device h100-sxm5-80gb", 0, ""),
    ("inspect batch_size.onnx --dim batch_size=2 --dim batch=3", 2, "the dimension batch has two names and two values"),
    ("predict image.onnx --device t4 --batch 2 --dim N=3 --dim height=8 --dim width=8", 2, "--batch 2 and --dim batch=3 differ"),
    ("crossover image.onnx --device t4 --dim N=3 --dim height=8 --dim width=8", 2, "leave out --dim batch=3"),
    ("predict product_batch.onnx --device t4 --batch 2", 2, "columns*rows"),
    ("inspect missing_external.onnx --batch 2", 0, "'weights.bin' is missing"),
    ("inspect json_objects_60kB_2GB.pt2", 4, "a list of more than 250000 values"),
    ("convert image.onnx --dim depth=3", 2, "unknown dynamic dimension depth"),
    ("convert image.onnx --trip loop=3", 2, "no loop 'loop'"),
    *((f"{verb} {DECODER} {option}", 2, message) for verb in ("generate", "serve --concurrency 1 --count 2")
      for option, message in (("--dim depth=3", "unknown dynamic dimension depth"), ("--trip loop=3", "no loop 'loop'"),
                              ("--dim seq=3", "--dim seq=3"))),
    (f"generate {DECODER} --precision fp16", 0, "the model's weights are w4a16; --precision fp16 replaces them"),
    ("inspect qwen3_moe.json --batch 1", 0, ""),
    ("inspect mamba2.json --batch 1", 0, ""),
    ("inspect opfuzz_1013.onnx --batch 2", 0, ""),
    ("predict unnamed.onnx --device t4 --shapes x:(batch-9223372036854775807-1)//(-1)x3x64x64 --batch 2", 4, "integer overflow"),
    ("predict resnet50 --precision fp16 --device datasheet_bandwidth_1e-308.json --batch 1", 6, "memory_bandwidth_bytes_per_s.value: must be a number from"),
    ("serve llama-3-8b --device l40s --framework vllm@0.14 --concurrency 32 --prompt 1000 --new-tokens 200 --count 200 --anchor anchor_concurrency_1e9.csv",
     0, "concurrency is more than 100000"),  # the row is left out
    ("inspect resnet18 --max-nodes -1", 2, "max-nodes"),
    ("inspect unnamed.onnx --max-bytes -1", 2, "max-bytes"),
    ("predict unnamed.onnx --device t4 --shapes x:((-9223372036854775807-1)*batch)//(-batch)x3x64x64 --batch 2", 4, "integer overflow"),
]
# What a message must not say: options that are not given, a symbol's number.
SILENT = [(f"generate {DECODER}", "--precision"), ("inspect short_kernels.pt2", "symbol s"), ("inspect dft.onnx --batch 4", "warning"),
          ("inspect graph_network.onnx --dim nodes=8 --dim edges=9", "to be seq")]
TORCH_ENDINGS = [
    ("inspect nms.pt --input float:100x4,float:100", 0, ""),
    ("inspect unbind_const.pt --input float:batchx4x8 --batch 2", 0, ""),
    ("inspect gt_Cc.pt --input float:batchx32 --batch 4", 2, "n (a number)"),
]


def run(ftax, command):
    return subprocess.run([ftax, *command.split()], cwd=INPUTS, capture_output=True, text=True, timeout=SECONDS)


def figure(report, path):
    for key in path.split("."):
        if isinstance(report, list):
            report = report[int(key)] if key.isdigit() else next(row for row in report if row["name"] == key)
        else:
            report = report[key]
    return report


def failure(ftax, command, path, right, tolerance):
    ended = run(ftax, command + " --json -")
    if ended.returncode != 0:
        return f"exit {ended.returncode}: {ended.stderr.strip()}"
    got = figure(json.loads(ended.stdout), path)
    return "" if abs(got / right - 1) <= tolerance else f"{path} is {got:.6g}, right is {right:.6g}"


def wrong_order(ftax, faster, slower, path):
    ended = [run(ftax, command + " --json -") for command in (faster, slower)]
    if any(one.returncode != 0 for one in ended):
        return f"exit {[one.returncode for one in ended]}: {ended[0].stderr.strip()}"
    short, long = (figure(json.loads(one.stdout), path) for one in ended)
    return "" if 0 < short < long else f"{path} is {short:.6g}, no shorter than {long:.6g}"


def wrong_ending(ftax, command, code, message):
    ended = run(ftax, command)
    right = ended.returncode == code and message in ended.stderr
    return "" if right else f"exit {ended.returncode}, not {code}: {ended.stderr.strip()}"


def wrong_word(ftax, command, word):
    ended = run(ftax, command)
    return f"exit {ended.returncode}: {ended.stderr.strip()}" if ended.returncode or word in ended.stderr else ""


def main(ftax, torch):
    results = [(row[0], failure(ftax, *row)) for row in FIGURES + (TORCH_FIGURES if torch else [])]
    results += [(row[0], wrong_order(ftax, *row)) for row in ORDERS]
    results += [(row[0], wrong_word(ftax, *row)) for row in SILENT]
    results += [(row[0], wrong_ending(ftax, *row)) for row in ENDINGS + (TORCH_ENDINGS if torch else [])]
    for command, what in results:
        if what:
            print(f"ftax {command}\n    {what}")
    return any(what for _, what in results)


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve()), "torch" in sys.argv[2:]))
