"""Draws the rows of operators.tsv, networks.tsv and matrix.tsv: random combinations of what can be predicted.

    draw.py             # writes operators.txt and the rows without figures; `make golden` then records them

Rows are drawn without knowledge of the code, each value of each column about equally often. Written again only when a
column gets a new value: a row may also be added by hand.
"""
import itertools
import random
from pathlib import Path

HERE = Path(__file__).parent
COLUMNS = "latency_s low_s high_s host_s device_s kernels launches energy_j memory_bytes warnings digest".split()

DEVICES = ("gtx-980 m40 gtx-1080-ti p100-pcie-16gb p4 titan-v v100-sxm2-32gb jetson-xavier-nx-8gb gtx-1660 t4 quadro-rtx-8000 rtx-2080-ti "
           "a100-sxm4-40gb a100-sxm4-80gb a30 a10 a2 rtx-3090 rtx-a2000 jetson-orin-nano-8gb l4 rtx-4090 l40s rtx-4060 h100-sxm5-80gb h100-nvl "
           "h20 h200-sxm-141gb gh200-96gb b200 gb10 rtx-5090 rtx-5060 rtx-pro-6000-blackwell jetson-agx-thor").split()
FRAMEWORKS = ("pytorch-eager torchscript torch-compile torch-compile-max-autotune-no-cudagraphs torch-compile-cuda-graph torch-compile-max-autotune "
              "libtorch bettertransformer torch-cuda-graph cuda-graph onnxruntime-cuda onnxruntime-cuda-graph onnxruntime-tensorrt torch-tensorrt "
              "tensorrt tensorrt-onnx vllm vllm-eager tensorrt-llm sglang llama.cpp").split()
PRECISIONS = "fp32 tf32 fp16 bf16 amp amp_cached fp8 fp8_block int8 nvfp4 w8a16 w4a16".split()
OLDEST = {"bf16": "ampere", "tf32": "ampere", "fp8": "ada", "fp8_block": "ada", "nvfp4": "blackwell"}  # cards with the units
GENERATIONS = {"gtx-9": "maxwell", "m40": "maxwell", "gtx-10": "pascal", "p100": "pascal", "p4": "pascal", "titan-v": "volta", "v100": "volta", "jetson-xavier": "volta",
               "gtx-16": "turing", "t4": "turing", "quadro": "turing", "rtx-20": "turing", "l4": "ada", "rtx-40": "ada", "h": "hopper", "gh": "hopper", "b2": "blackwell",
               "gb10": "blackwell", "rtx-50": "blackwell", "rtx-pro": "blackwell", "jetson-agx-thor": "blackwell"}
ORDER = "maxwell pascal volta turing ampere ada hopper blackwell".split()
# Half of the draws are of these, which most cards and networks have.
USUAL_PRECISIONS = "fp32 fp16 fp16 bf16 amp tf32".split()
HOSTS = {"pytorch-eager": ["framework-tax-gtx-1080-ti", "framework-tax-a100-sxm4-40gb", "help-pytorch-1.8"], "torchscript": ["framework-tax-rtx-a6000"],
         "torch-tensorrt": ["framework-tax-v100-sxm2-32gb"], "onnxruntime-cuda": ["framework-tax-quadro-rtx-8000"]}


def operators():
    """name -> statements."""
    graphs = {}

    def chain(name, inputs, *statements):
        """Statements without their result's name: 'f32[2,3] = op(...)' or ('%a f32[2] = …')."""
        lines, last = list(inputs), None
        for i, statement in enumerate(statements, 1):
            if not statement.startswith("%") and " = " in statement:
                statement = f"%{i} {statement}"
            lines.append(statement)
            if " = " in statement:
                last = statement.split()[0].rstrip(",")
        graphs[name] = "; ".join(lines + [f"output {last}"])

    def conv(name, c, size, out, k, stride=1, pad=0, dilation=1, groups=1, bias=False, kind="conv", dims=2, after=(), source="aten::conv2d"):
        sizes = [size] * dims
        result = [(s + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for s in sizes] if kind == "conv" else [(s - 1) * stride - 2 * pad + dilation * (k - 1) + 1 for s in sizes]
        weight = [out, c // groups] if kind == "conv" else [c, out // groups]
        text = lambda values: ",".join(map(str, values))
        lines = [f"input %x f32[batch,{c},{text(sizes)}]", f"weight %w f32[{text(weight + [k] * dims)}]"] + ([f"weight %b f32[{out}]"] if bias else [])
        here = f"f32[batch,{out},{text(result)}]"
        each = lambda v: "[" + text([v] * dims) + "]"
        statement = (f"{here} = {kind}(%x, %w{', %b' if bias else ''}) {{stride={each(stride)} pad_begin={each(pad)} pad_end={each(pad)} "
                     f"dilation={each(dilation)} groups={groups}}} \"{source}\" @c")
        chain(name, lines, statement, *[a.replace("HERE", here).replace("OUT", str(out)) for a in after])

    norm = ["weight %g f32[OUT]", "weight %h f32[OUT]", "weight %m f32[OUT]", "weight %v f32[OUT]"]
    conv("conv3x3", 64, 56, 64, 3, pad=1)
    conv("conv3x3_wide", 256, 14, 512, 3, pad=1, bias=True)
    conv("conv3x3_stride2", 128, 28, 256, 3, stride=2, pad=1)
    conv("conv1x1", 256, 28, 64, 1)
    conv("conv1x1_deep", 1024, 7, 2048, 1, bias=True)
    conv("conv1x1_stride2", 256, 56, 512, 1, stride=2)
    conv("conv7x7", 3, 224, 64, 7, stride=2, pad=3)
    conv("conv5x5_odd", 17, 31, 33, 5, pad=2)
    conv("conv3x3_tiny", 8, 7, 8, 3, pad=1)
    conv("conv3x3_dilated", 64, 28, 64, 3, pad=2, dilation=2)
    conv("conv_grouped", 128, 28, 128, 3, pad=1, groups=32)
    conv("conv_grouped_1x1", 240, 14, 240, 1, groups=3)
    conv("conv_depthwise", 192, 28, 192, 3, pad=1, groups=192)
    conv("conv_depthwise5", 96, 14, 96, 5, stride=2, pad=2, groups=96)
    conv("conv_depthwise_double", 64, 28, 128, 3, pad=1, groups=64)
    conv("conv1d", 80, 3000, 384, 3, pad=1, dims=1, source="aten::conv1d")
    conv("conv3d", 16, 16, 32, 3, pad=1, dims=3, source="aten::conv3d")
    conv("conv_patch", 3, 224, 768, 16, stride=16, bias=True)
    conv("conv_large", 64, 112, 128, 3, pad=1)
    conv("conv_up", 64, 28, 32, 2, stride=2, kind="conv_transpose", source="aten::conv_transpose2d")
    conv("conv_up4", 128, 14, 64, 4, stride=2, pad=1, bias=True, kind="conv_transpose", source="aten::conv_transpose2d")
    norm_relu = tuple(norm) + ("%n HERE = batch_norm(%1, %g, %h, %m, %v) \"aten::batch_norm\" @n", "%r HERE = pointwise(%n) {function=\"relu\"} \"aten::relu\" @r")
    conv("conv_norm_relu", 64, 56, 64, 3, pad=1, after=norm_relu)
    conv("conv_norm_add", 64, 28, 64, 1, after=tuple(norm) + ("%n HERE = batch_norm(%1, %g, %h, %m, %v) \"aten::batch_norm\" @n",
                                                            "%a HERE = pointwise(%n, %x) {function=\"add\"} \"aten::add\"", "%r HERE = pointwise(%a) {function=\"relu\"} \"aten::relu\" @r"))
    conv("conv_silu", 32, 28, 96, 1, bias=True, after=("%s HERE = pointwise(%1) {function=\"silu\"} \"aten::silu\" @s",))
    conv("conv_swish", 32, 28, 96, 1, bias=True, after=("%s HERE = pointwise(%1) {function=\"sigmoid\"} \"aten::sigmoid\"", "%t HERE = pointwise(%1, %s) {function=\"mul\"} \"aten::mul\""))
    conv("conv_hardswish", 16, 56, 64, 3, pad=1, after=tuple(norm) + ("%n HERE = batch_norm(%1, %g, %h, %m, %v) \"aten::batch_norm\" @n", "%s HERE = pointwise(%n) {function=\"hardswish\"} \"aten::hardswish\" @s"))

    def linear(name, rows, k, n, bias=True, after=(), dtype="f32", transposed=True, source="aten::linear"):
        x = "batch," + rows if rows else "batch"
        here = f"{dtype}[{x},{n}]"
        weight = f"weight %w {dtype}[{n},{k}]" if transposed else f"weight %w {dtype}[{k},{n}]"
        chain(name, [f"input %x {dtype}[{x},{k}]", weight] + ([f"weight %b {dtype}[{n}]"] if bias else []),
              f"{here} = linear(%x, %w{', %b' if bias else ''}){'' if transposed else ' {transposed_weight=0}'} \"{source}\" @fc",
              *[a.replace("HERE", here).replace("OUT", str(n)) for a in after])

    linear("linear", "", 1024, 1024)
    linear("linear_seq", "128", 768, 3072)
    linear("linear_no_bias", "64", 4096, 4096, bias=False)
    linear("linear_odd", "17", 1001, 513)
    linear("linear_narrow", "", 4096, 8)
    linear("linear_one", "", 2048, 1)
    linear("linear_head", "1", 768, 50257, bias=False)
    linear("linear_deep", "4", 16384, 1024)
    linear("linear_large", "512", 4096, 11008, bias=False)
    linear("linear_huge_rows", "66000", 64, 128)
    linear("linear_conv1d", "128", 768, 2304, transposed=False, source="aten::addmm")
    linear("linear_half", "32", 2048, 2048, dtype="f16")
    linear("linear_bf16", "32", 2048, 2048, dtype="bf16")
    linear("linear_gelu", "128", 768, 3072, after=("%g HERE = pointwise(%1) {function=\"gelu\"} \"aten::gelu\" @act",))
    linear("linear_gelu_tanh", "128", 768, 3072, after=("%g HERE = pointwise(%1) {function=\"gelu_tanh\"} \"aten::gelu\" @act",))
    linear("linear_relu", "32", 1024, 4096, after=("%g HERE = pointwise(%1) {function=\"relu\"} \"aten::relu\" @act",))
    linear("linear_dropout_add_norm", "128", 768, 768, after=("%d HERE = identity(%1) \"aten::dropout\" @drop", "%a HERE = pointwise(%d, %x) {function=\"add\"} \"aten::add\"",
           "weight %g f32[OUT]", "weight %h f32[OUT]", "%n HERE = layer_norm(%a, %g, %h) \"aten::layer_norm\" @norm"))
    linear("linear_gate", "64", 1024, 2816, bias=False, after=("weight %u f32[2816,1024]", "%s HERE = pointwise(%1) {function=\"silu\"} \"aten::silu\" @act",
           "%p HERE = linear(%x, %u) \"aten::linear\" @up", "%m HERE = pointwise(%s, %p) {function=\"mul\"} \"aten::mul\"", "weight %v f32[1024,2816]", "%o f32[batch,64,1024] = linear(%m, %v) \"aten::linear\" @down"))
    linear("linear_softmax", "", 512, 1000, after=("%s HERE = softmax(%1) {axis=1} \"aten::softmax\"",))

    chain("matmul", ["input %x f32[batch,12,128,64]", "input %y f32[batch,12,64,128]"], "f32[batch,12,128,128] = matmul(%x, %y) \"aten::matmul\"")
    chain("matmul_bmm", ["input %x f32[batch,128,64]", "input %y f32[batch,64,256]"], "f32[batch,128,256] = matmul(%x, %y) \"aten::bmm\"")
    chain("matmul_transposed", ["input %x f32[batch,8,256,32]", "input %y f32[batch,8,256,32]"], "f32[batch,8,256,256] = matmul(%x, %y) {transpose_b=1} \"MatMul\"")
    chain("matmul_broadcast", ["input %x f32[batch,1,64,96]", "weight %w f32[6,96,80]"], "f32[batch,6,64,80] = matmul(%x, %w) \"aten::matmul\"")
    chain("matmul_vector", ["input %x f32[batch,1,1024]", "input %y f32[batch,1024,1]"], "f32[batch,1,1] = matmul(%x, %y) \"aten::bmm\"")
    chain("matmul_add", ["input %x f32[batch,64,64]", "input %y f32[batch,64,64]", "input %z f32[batch,64,64]"], "f32[batch,64,64] = matmul(%x, %y, %z) \"aten::baddbmm\"")
    chain("matmul_weight", ["input %x f32[batch,77,512]", "weight %w f32[512,512]"], "f32[batch,77,512] = matmul(%x, %w) \"MatMul\"", "weight %b f32[512]", "%a f32[batch,77,512] = pointwise(%1, %b) {function=\"add\"} \"Add\"")
    attention_inputs = lambda h, q, k, d, hk=None: [f"input %q f32[batch,{h},{q},{d}]", f"input %k f32[batch,{hk or h},{k},{d}]", f"input %v f32[batch,{hk or h},{k},{d}]"]
    sdpa = "aten::scaled_dot_product_attention"
    chain("attention", attention_inputs(12, 128, 128, 64), f"f32[batch,12,128,64] = attention(%q, %k, %v) {{causal=0}} \"{sdpa}\"")
    chain("attention_causal", attention_inputs(32, 1024, 1024, 128), f"f32[batch,32,1024,128] = attention(%q, %k, %v) {{causal=1}} \"{sdpa}\"")
    chain("attention_decode", attention_inputs(32, 1, 4000, 128, 8), f"f32[batch,32,1,128] = attention(%q, %k, %v) {{causal=0}} \"{sdpa}\"")
    chain("attention_masked", attention_inputs(16, 77, 77, 80) + ["input %m f32[batch,1,77,77]"], f"f32[batch,16,77,80] = attention(%q, %k, %v, %m) {{causal=0}} \"{sdpa}\"")
    chain("attention_wide", attention_inputs(1, 4096, 4096, 512), f"f32[batch,1,4096,512] = attention(%q, %k, %v) {{causal=0}} \"{sdpa}\"")
    chain("attention_narrow", attention_inputs(4, 33, 65, 24), f"f32[batch,4,33,24] = attention(%q, %k, %v) {{causal=0}} \"{sdpa}\"")
    chain("attention_spelled", attention_inputs(12, 64, 64, 64), "%t f32[batch,12,64,64] = transpose(%k) {perm=[0,1,3,2]} \"aten::transpose\"", "%s f32[batch,12,64,64] = matmul(%q, %t) \"aten::matmul\"",
          "%e f32[batch,12,64,64] = pointwise(%s) {function=\"div\" scalar=8} \"aten::div\"", "%p f32[batch,12,64,64] = softmax(%e) {axis=3} \"aten::softmax\"", "%o f32[batch,12,64,64] = matmul(%p, %v) \"aten::matmul\"")
    for cell in ("lstm", "gru", "rnn"):
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[cell]
        for name, layers, directions, length in ((cell, 1, 1, 50), (cell + "_deep", 2, 2, 20)):
            chain(name, [f"input %x f32[{length},batch,128]", f"weight %w f32[{gates * 256},128]", f"weight %r f32[{gates * 256},256]"],
                  f"f32[{length},batch,{256 * directions}] = recurrent(%x, %w, %r) {{cell=\"{cell}\" hidden=256 layers={layers} directions={directions}}} \"aten::{cell}\" @rnn")
    x4, x3 = "f32[batch,64,28,28]", "f32[batch,128,768]"
    weights = lambda n, count: [f"weight %{'ghmv'[i]} f32[{n}]" for i in range(count)]
    chain("batch_norm", [f"input %x {x4}"] + weights(64, 4), f"{x4} = batch_norm(%x, %g, %h, %m, %v) \"aten::batch_norm\" @n")
    chain("layer_norm", [f"input %x {x3}"] + weights(768, 2), f"{x3} = layer_norm(%x, %g, %h) \"aten::layer_norm\" @n")
    chain("layer_norm_wide", ["input %x f32[batch,8,12288]"] + weights(12288, 2), "f32[batch,8,12288] = layer_norm(%x, %g, %h) \"aten::layer_norm\" @n")
    chain("rms_norm", ["input %x f32[batch,32,4096]"] + weights(4096, 1), "f32[batch,32,4096] = rms_norm(%x, %g) \"aten::rms_norm\" @n")
    chain("group_norm", [f"input %x {x4}"] + weights(64, 2), f"{x4} = group_norm(%x, %g, %h) {{groups=8}} \"aten::group_norm\" @n")
    chain("instance_norm", [f"input %x {x4}"], f"{x4} = instance_norm(%x) \"aten::instance_norm\" @n")
    chain("local_response_norm", [f"input %x {x4}"], f"{x4} = local_response_norm(%x) \"LRN\"")
    for name, shape, axis in (("softmax", "batch,12,128,128", 3), ("softmax_wide", "batch,50257", 1), ("softmax_channels", "batch,19,64,64", 1), ("softmax_short", "batch,4096,9", 2)):
        chain(name, [f"input %x f32[{shape}]"], f"f32[{shape}] = softmax(%x) {{axis={axis}}} \"aten::softmax\"")
    chain("log_softmax", ["input %x f32[batch,128,2000]"], "f32[batch,128,2000] = log_softmax(%x) {axis=2} \"aten::log_softmax\"")
    for function in "relu gelu gelu_tanh silu tanh sigmoid exp erf sqrt rsqrt hardswish relu6 softplus abs neg log".split():
        chain(f"pointwise_{function}", [f"input %x {x3}"], f"{x3} = pointwise(%x) {{function=\"{function}\"}} \"aten::{function}\"")
    for function in "add sub mul div max pow where".split():
        third = ", %x" if function == "where" else ""
        chain(f"pointwise_{function}", [f"input %x {x3}", f"input %y {x3}"], f"{x3} = pointwise(%x, %y{third}) {{function=\"{function}\"}} \"aten::{function}\"")
    chain("pointwise_scalar", [f"input %x {x3}"], f"{x3} = pointwise(%x) {{function=\"pow\" scalar=3}} \"aten::pow\"")
    chain("pointwise_broadcast", [f"input %x {x4}", "input %y f32[batch,64,1,1]"], f"{x4} = pointwise(%x, %y) {{function=\"mul\"}} \"aten::mul\"")
    chain("pointwise_odd", ["input %x f32[batch,3,7,11]", "input %y f32[batch,3,7,11]"], "f32[batch,3,7,11] = pointwise(%x, %y) {function=\"add\"} \"aten::add\"")
    chain("pointwise_chain", [f"input %x {x3}", f"input %y {x3}"], f"%a {x3} = pointwise(%x, %y) {{function=\"add\"}} \"aten::add\"", f"%b {x3} = pointwise(%a) {{function=\"tanh\"}} \"aten::tanh\"",
          f"%c {x3} = pointwise(%b) {{function=\"mul\" scalar=2}} \"aten::mul\"", f"%d {x3} = pointwise(%c, %x) {{function=\"mul\"}} \"aten::mul\"", f"%e {x3} = pointwise(%d) {{function=\"sigmoid\"}} \"aten::sigmoid\"")
    chain("pointwise_i64", ["input %x i64[batch,512]", "input %y i64[batch,512]"], "i64[batch,512] = pointwise(%x, %y) {function=\"add\"} \"aten::add\"")
    chain("compare_select", [f"input %x {x3}", f"input %y {x3}"], "%a bool[batch,128,768] = pointwise(%x, %y) {function=\"gt\"} \"aten::gt\"", f"%b {x3} = pointwise(%a, %x, %y) {{function=\"where\"}} \"aten::where\"")
    chain("cast", [f"input %x {x3}"], "f16[batch,128,768] = cast(%x) \"aten::to\"")
    chain("cast_i64", ["input %x i64[batch,4096]"], "f32[batch,4096] = cast(%x) \"aten::to\"")
    for function in "sum mean max argmax".split():
        kept = "i64" if function == "argmax" else "f32"
        chain(f"reduce_{function}", [f"input %x {x3}"], f"{kept}[batch,128,1] = reduce(%x) {{function=\"{function}\" axes=[2] keepdims=1}} \"aten::{function}\"")
    chain("reduce_outer", [f"input %x {x3}"], "f32[batch,768] = reduce(%x) {function=\"mean\" axes=[1] keepdims=0} \"aten::mean\"")
    chain("reduce_all", ["input %x f32[batch,1000000]"], "f32[] = reduce(%x) {function=\"sum\" axes=[0,1] keepdims=0} \"aten::sum\"")
    chain("cumsum", ["input %x f32[batch,2048]"], "f32[batch,2048] = cumulative(%x) {function=\"cumsum\" axis=1} \"aten::cumsum\"")
    chain("topk", ["input %x f32[batch,32000]"], "%1 f32[batch,50], %2 i64[batch,50] = sort(%x) {axis=1 function=\"topk\"} \"aten::topk\"")
    chain("sort", ["input %x f32[batch,4096]"], "%1 f32[batch,4096], %2 i64[batch,4096] = sort(%x) {axis=1 function=\"sort\"} \"aten::sort\"")
    pool = lambda f, k, s, p, out: f"f32[batch,64,{out},{out}] = pool(%x) {{function=\"{f}\" kernel=[{k},{k}] stride=[{s},{s}] pad_begin=[{p},{p}] pad_end=[{p},{p}]}} \"aten::{f}_pool2d\" @p"
    chain("max_pool", ["input %x f32[batch,64,112,112]"], pool("max", 3, 2, 1, 56))
    chain("average_pool", ["input %x f32[batch,64,28,28]"], pool("average", 2, 2, 0, 14))
    chain("average_pool_large", ["input %x f32[batch,64,28,28]"], pool("average", 7, 1, 3, 28))
    chain("global_pool", ["input %x f32[batch,2048,7,7]"], "f32[batch,2048,1,1] = global_pool(%x) {function=\"average\"} \"aten::adaptive_avg_pool2d\" @p")
    for function in ("nearest", "bilinear", "bicubic"):
        chain(f"resize_{function}", ["input %x f32[batch,32,28,28]"], f"f32[batch,32,56,56] = resize(%x) {{function=\"{function}\"}} \"aten::upsample_{function}2d\"")
    chain("embedding", ["weight %t f32[30522,768]", "input %i i64[batch,128]"], "f32[batch,128,768] = embedding(%t, %i) \"aten::embedding\" @e")
    chain("embedding_sum", ["weight %t f32[30522,768]", "weight %u f32[512,768]", "input %i i64[batch,128]", "input %j i64[batch,128]"], "%a f32[batch,128,768] = embedding(%t, %i) \"aten::embedding\" @e",
          "%b f32[batch,128,768] = embedding(%u, %j) \"aten::embedding\" @f", "%c f32[batch,128,768] = pointwise(%a, %b) {function=\"add\"} \"aten::add\"")
    chain("gather", ["input %x f32[batch,4096]", "input %i i64[batch,64]"], "f32[batch,64] = gather(%x, %i) {axis=1} \"aten::gather\"")
    chain("scatter", ["input %x f32[batch,4096]", "input %i i64[batch,64]", "input %u f32[batch,64]"], "f32[batch,4096] = scatter(%x, %i, %u) {axis=1} \"aten::scatter\"")
    chain("transpose_copy", ["input %x f32[batch,128,12,64]"], "%a f32[batch,12,128,64]{98304,64,768,1} = transpose(%x) {perm=[0,2,1,3]} \"aten::permute\"", "%b f32[batch,12,128,64] = copy(%a) \"aten::contiguous\"", "%c f32[batch,12,8192] = reshape(%b) \"aten::view\"")
    chain("transpose", [f"input %x {x4}"], "f32[batch,28,28,64] = transpose(%x) {perm=[0,2,3,1]} \"Transpose\"", "%b f32[batch,28,28,64] = pointwise(%1) {function=\"relu\"} \"Relu\"")
    chain("slice", [f"input %x {x4}"], "f32[batch,32,28,28] = slice(%x) {axes=[1]} \"aten::slice\"", "%b f32[batch,32,28,28] = pointwise(%1) {function=\"relu\"} \"aten::relu\"")
    chain("split", [f"input %x {x3}"], "%a f32[batch,128,384], %b f32[batch,128,384] = split(%x) {axis=2} \"aten::chunk\"", "%c f32[batch,128,384] = pointwise(%a, %b) {function=\"mul\"} \"aten::mul\"")
    chain("expand", ["input %x f32[batch,1,768]"], "f32[batch,128,768] = expand(%x) \"aten::expand\"", "%b f32[batch,128,768] = copy(%1) \"aten::contiguous\"")
    chain("concat", [f"input %x {x4}", f"input %y {x4}", f"input %z {x4}"], "f32[batch,192,28,28] = concat(%x, %y, %z) {axis=1} \"aten::cat\"")
    chain("concat_many", ["input %x f32[batch,16]"], "f32[batch,160] = concat(%x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {axis=1} \"aten::cat\"")
    chain("pad", [f"input %x {x4}"], "f32[batch,64,30,30] = pad(%x) \"aten::pad\"")
    chain("repeat", ["input %x f32[batch,64,14,14]"], "f32[batch,128,28,28] = copy(%x) \"aten::repeat\"")
    chain("fill", ["input %x f32[batch,512]"], "%a f32[batch,512] = fill() \"aten::zeros\"", "%b f32[batch,512] = pointwise(%x, %a) {function=\"add\"} \"aten::add\"")
    chain("fft", ["input %x f32[batch,128,768]"], "c64[batch,128,768] = fft(%x) \"aten::fft_fftn\"")
    chain("quantize", [f"input %x {x3}"], "i8[batch,128,768] = quantize(%x) \"QuantizeLinear\"", f"%d {x3} = dequantize(%1) \"DequantizeLinear\"", "weight %w f32[768,768]", f"%o {x3} = linear(%d, %w) \"Gemm\"")
    chain("nonzero", ["input %x f32[batch,1000]"], "i64[batch,2] = nonzero(%x) \"aten::nonzero\"")
    chain("to_host", ["input %x f32[batch,16]"], "%a f32[] = reduce(%x) {function=\"max\" axes=[0,1] keepdims=0} \"aten::max\"", "%b f32[] = to_host(%a) \"aten::item\"", "%c f32[batch,16] = pointwise(%x, %b) {function=\"mul\"} \"aten::mul\"")
    for ranks in (2, 8):
        chain(f"all_reduce{ranks}", ["input %x f32[batch,16,4096]"], f"f32[batch,16,4096] = all_reduce(%x) {{ranks={ranks}}} \"all_reduce\"")
    chain("custom", [f"input %x {x3}"], f"{x3} = custom(%x) \"vendor::mystery\"", f"%b {x3} = pointwise(%1) {{function=\"relu\"}} \"aten::relu\"")
    chain("experts", ["input %x f32[batch,1024]", "weight %w f32[8,1024,512]"], "f32[batch,512] = matmul(%x, %w) {experts=8 experts_per_token=2} \"grouped_mm\"")
    chain("squeeze_excite", [f"input %x {x4}", "weight %w f32[16,64,1,1]", "weight %u f32[64,16,1,1]"], "%p f32[batch,64,1,1] = global_pool(%x) {function=\"average\"} \"aten::adaptive_avg_pool2d\" @p",
          "%c f32[batch,16,1,1] = conv(%p, %w) {stride=[1,1] pad_begin=[0,0] pad_end=[0,0] dilation=[1,1] groups=1} \"aten::conv2d\" @c", "%r f32[batch,16,1,1] = pointwise(%c) {function=\"relu\"} \"aten::relu\" @r",
          "%d f32[batch,64,1,1] = conv(%r, %u) {stride=[1,1] pad_begin=[0,0] pad_end=[0,0] dilation=[1,1] groups=1} \"aten::conv2d\" @d", "%s f32[batch,64,1,1] = pointwise(%d) {function=\"sigmoid\"} \"aten::sigmoid\"", f"%m {x4} = pointwise(%x, %s) {{function=\"mul\"}} \"aten::mul\"")
    chain("shuffle", [f"input %x {x4}"], "%a f32[batch,4,16,28,28] = reshape(%x) \"aten::view\"", "%b f32[batch,16,4,28,28]{50176,784,12544,28,1} = transpose(%a) {perm=[0,2,1,3,4]} \"aten::transpose\"", "%c f32[batch,16,4,28,28] = copy(%b) \"aten::contiguous\"", f"%d {x4} = reshape(%c) \"aten::view\"")
    return graphs


CONVOLUTIONAL = "alexnet densenet googlenet inception mnasnet mobilenet_v2 resnet18 resnet50 resnext50_32x4d shufflenet squeezenet vgg16 efficientnet efficientnet_lite gernet".split()
TRANSFORMERS = "vit32 albert bert deberta distilbert fnet funnel_transformer ibert longformer mobile_bert reformer roberta squeeze_bert gpt2 gpt2_forward opt_13 wavlm vit-base-patch16-224".split()
DECODERS = ("falcon-7b gemma-2-9b gpt-oss-20b gpt2-small llama-2-7b llama-3-8b mistral-7b mixtral-8x7b opt-350m phi-3-mini pythia-410m qwen2.5-7b qwen3-30b-a3b qwen3-8b "
            "deepseek-v3 bloom-176b llama-3-70b qwen3-235b-a22b gpt-oss-120b").split()
SERVING = "vllm vllm-eager tensorrt-llm sglang llama.cpp".split()


class Deck:
    """Draws every value about equally often."""

    def __init__(self, draw, values):
        self.draw, self.values, self.left = draw, list(values), []

    def __call__(self):
        if not self.left:
            self.left = self.values[:]
            self.draw.shuffle(self.left)
        return self.left.pop()


def options(draw, framework, precision):
    words = [f"precision={precision}"]
    if draw.random() < 0.2:
        words.append("channels_last")
    if draw.random() < 0.2:
        words.append("synchronized")
    if draw.random() < 0.15:
        words.append("copies")
    if draw.random() < 0.15 or framework == "bettertransformer":
        words.append(f"padding={draw.choice([0, 0.25, 0.6])}")
    if draw.random() < 0.4:
        words.append(f"cudnn={draw.choice([7, 8, 9])}")
    if "tensorrt" in framework and draw.random() < 0.7:
        words.append(f"tensorrt={draw.choice([701, 800, 803, 805, 806, 900, 1000, 1008])}")
    if framework in SERVING and draw.random() < 0.6:
        words.append(f"engine={draw.choice([1, 2, 4, 6, 8, 11, 14, 102])}")
    if "torch" in framework and draw.random() < 0.5:
        words.append(f"torch={draw.choice([112, 113, 200, 202, 204, 205, 207, 211])}")
    if framework in HOSTS and draw.random() < 0.2:
        words.append(f"host={draw.choice(HOSTS[framework])}")
    return words


def runs(device, precision):
    found = [g for prefix, g in sorted(GENERATIONS.items(), key=lambda item: -len(item[0])) if device.startswith(prefix)]
    return ORDER.index(found[0] if found else "ampere") >= ORDER.index(OLDEST.get(precision, "maxwell"))


def matrix(seed, models, count, sizes):
    """Rows whose columns are the frameworks."""
    draw = random.Random(seed)
    model, device = Deck(draw, models), Deck(draw, DEVICES)
    usual, precision = Deck(draw, USUAL_PRECISIONS), Deck(draw, PRECISIONS)
    for _ in range(count):
        m, d = model(), device()
        while not runs(d, p := usual() if draw.random() < 0.6 else precision()):
            pass
        words = [w for w in options(draw, "torch-tensorrt", p) if not w.startswith("host")]
        if draw.random() < 0.5:
            words.append(f"engine={draw.choice([1, 2, 4, 6, 8, 11, 14, 102])}")
        words += words_of_decoder(draw, m)
        s = draw.choice(sizes(draw, m)) + (" cache=2048" if "kv=static" in words else "")
        yield "\t".join([m, s, d, " ".join(words)])


def words_of_decoder(draw, m):
    words = []
    if m in DECODERS:
        big = m in ("deepseek-v3", "bloom-176b", "llama-3-70b", "qwen3-235b-a22b", "gpt-oss-120b")
        if big or draw.random() < 0.3:
            words.append(f"tp={8 if big else draw.choice([1, 2, 4])}")
        if draw.random() < 0.3 and m in ("mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b"):
            words += ["dp=2", "ep=2"] if not big else ["dp=2", "ep=16"]
        if draw.random() < 0.5:
            words.append(f"kv={draw.choice(['dynamic', 'static', 'paged'])}")
        if draw.random() < 0.2:
            words.append("kvtype=f8e4m3")
        words.append("last=2" if draw.random() < 0.7 else "last=0")
    return words


def rows(seed, models, count, sizes):
    draw = random.Random(seed)
    model, device, framework = (Deck(draw, values) for values in (models, DEVICES, FRAMEWORKS))
    usual, precision = Deck(draw, USUAL_PRECISIONS), Deck(draw, PRECISIONS)
    for _ in range(count):
        m, d, f = model(), device(), framework()
        if m in DECODERS and draw.random() < 0.5:
            f = draw.choice(SERVING)
        if m not in DECODERS and f in SERVING and draw.random() < 0.95:
            f = draw.choice(FRAMEWORKS[:16])
        while not runs(d, p := usual() if draw.random() < 0.6 else precision()):
            pass
        words = options(draw, f, p)
        words += words_of_decoder(draw, m)
        for s in sizes(draw, m):
            s += " cache=2048" if "kv=static" in words else ""
            yield "\t".join([m, s, d, f, " ".join(words)])


def sizes_of_operator(draw, model):
    return [f"batch={b}" for b in sorted(draw.sample([1, 2, 3, 4, 8, 12, 16, 32, 48, 64, 96, 128, 256], 2))]


def sizes_of_network(draw, model):
    batches = sorted(draw.sample([1, 2, 4, 7, 8, 16, 32, 64], 2))
    if model in DECODERS:
        return [f"batch={batches[0]} seq={draw.choice([16, 128, 500])} past=0", f"batch={batches[1]} seq=1 past={draw.choice([1, 100, 1000])}"]
    if model in CONVOLUTIONAL or model in ("vit32", "vit-base-patch16-224", "wavlm", "longformer", "reformer", "funnel_transformer"):
        return [f"batch={b}" for b in batches]
    return [f"batch={b} seq={draw.choice([8, 64, 100, 128, 384, 512])}" for b in batches]


if __name__ == "__main__":
    graphs = operators()
    (HERE / "operators.txt").write_text("# Graphs of operators.tsv, written by draw.py\n" + "".join(f"{name}: {text}\n" for name, text in graphs.items()))
    header = "\t".join(["model", "sizes", "device", "framework", "options"] + COLUMNS) + "\n"
    (HERE / "operators.tsv").write_text(header + "".join(row + "\n" for row in rows(1, graphs, 200, sizes_of_operator)))
    networks = itertools.chain(rows(2, CONVOLUTIONAL + TRANSFORMERS, 90, sizes_of_network), rows(3, DECODERS, 60, sizes_of_network))
    (HERE / "networks.tsv").write_text(header + "".join(row + "\n" for row in networks))
    header = "\t".join(["model", "sizes", "device", "options"] + FRAMEWORKS) + "\n"
    table = itertools.chain(matrix(4, graphs, 450, sizes_of_operator), matrix(5, CONVOLUTIONAL + TRANSFORMERS, 120, sizes_of_network), matrix(6, DECODERS, 80, sizes_of_network))
    (HERE / "matrix.tsv").write_text(header + "".join(row + "\n" for row in table))

    calls = sorted({line.split("\t")[0] for line in (HERE.parent / "oracle/aten_calls.tsv").read_text().splitlines()})
    groups = ["inputs", "imported", "operators", "flops", "bytes"]
    write = lambda name, header, lines: (HERE / name).write_text("\t".join(header) + "\n" + "".join(line + "\n" for line in lines))
    write("aten.tsv", ["operator"] + groups + ["whole", "without"], calls)
    write("random_onnx.tsv", ["seed"] + groups + ["as_given", "with_batch"], map(str, range(1, 51)))
    draw = random.Random(7)
    device, precision = Deck(draw, DEVICES), Deck(draw, ["fp32", "fp16", "amp"])
    write("random_graphs.tsv", ["seed", "device", "precision", "batch"] + FRAMEWORKS, [f"{seed}\t{device()}\t{precision()}\t{draw.choice([1, 3, 16, 200])}" for seed in range(1, 51)])
    kinds = {path.parent.name.removeprefix("test_").split("_")[0] for path in Path("/usr/share/libonnx-testdata/data").rglob("model.onnx")}
    write("onnx.tsv", ["models"] + groups + ["whole", "hidden", "attribute_left_out", "attribute_changed", "operand_left_out", "dimension_changed"], sorted(kinds))

    root = HERE.parents[1]
    def found(pattern, *more):
        return sorted(str(p.relative_to(root)) for p in root.glob(pattern)) + list(more)
    configs = found("graphs/zoo/configs/*.json", "tests/cases/inputs/qwen3-14b-awq.json", "tests/cases/inputs/qwen3_moe.json")
    files = [("config", f) for f in configs] + [("config-tp2-paged", f) for f in configs if "vit" not in f] + [("config-static", f) for f in configs[::3]]
    files += [("device", f"data/devices/{d}.json") for d in ("t4", "gh200-96gb", "jetson-agx-orin-64gb", "gtx-980", "rtx-pro-6000-blackwell")]
    files += [("framework_profile", f) for f in found("data/profiles/frameworks/*.json")[::4]] + [("host_profile", f) for f in found("data/profiles/hosts/*.json")]
    files += [("device_profile", "tests/fuzz/seeds/profile_json/parameters.json"), ("uncertainty", "data/profiles/uncertainty.json")]
    files += [("stack", f) for f in found("data/stacks/*.json")[::3]] + [("pt2", f) for f in found("tests/fuzz/seeds/pt2_json/*")] + [("trace", f) for f in found("tests/fuzz/seeds/kineto_trace/*")]
    write("json_files.tsv", ["reader", "file", "whole", "keys"], ["\t".join(row) for row in files])
    write("csv_files.tsv", ["file", "whole", "columns"], ["tests/regression/models.csv", "tests/regression/operators.csv", "tests/fuzz/seeds/measurement_csv/models.csv", "tests/recorded/files/language.csv", "tests/recorded/files/all_columns.csv"])
    write("expressions.tsv", ["seed", "simplified"], map(str, range(1, 31)))
    write("text_graphs.tsv", ["file", "whole", "left_out", "doubled", "changed"], ["tests/recorded/files/two_symbols.txt", "tests/recorded/files/every_statement.txt", "graphs/zoo/alexnet.txt"])
    write("architectures.tsv", ["space", "flops", "graphs", "texts"], "nasbench201 fbnet ofa ofa-resnet transformer".split())

    draw = random.Random(8)
    device, framework, precision = Deck(draw, DEVICES), Deck(draw, FRAMEWORKS[:16]), Deck(draw, PRECISIONS + USUAL_PRECISIONS)
    lines = []
    for name in [*graphs, *[g for g in graphs if g.startswith(("conv", "linear", "attention", "matmul", "softmax", "layer"))]]:
        d, f = device(), framework()
        while not runs(d, p := precision()):
            pass
        lines.append(["batch", name, "", d, f, " ".join(options(draw, f, p))])
    for network, others in (("bert", "batch=2"), ("distilbert", "batch=1"), ("gpt2_forward", "batch=3"), ("llama-3-8b", "batch=1 past=0"), ("qwen3-8b", "batch=4 past=0"), ("mixtral-8x7b", "batch=1 past=0")):
        for _ in range(3):
            d, f = device(), framework() if "past" not in others else draw.choice(SERVING)
            lines.append(["seq", network, others, d, f, "precision=fp16" + (" last=2" if "past" in others else "")])
    for network in ("llama-3-8b", "gpt-oss-20b", "deepseek-v3", "qwen3-30b-a3b"):
        for f in SERVING:
            lines.append(["batch", network, "seq=1 past=300", draw.choice(["h100-sxm5-80gb", "a100-sxm4-80gb", "rtx-4090", "b200"]), f, "precision=fp16 last=2" + (f" engine={draw.choice([2, 8, 11, 14])}" if draw.random() < 0.7 else "") + (" tp=4" if draw.random() < 0.4 else "")])
    write("sweeps.tsv", ["symbol", "model", "others", "device", "framework", "options", "1-40", "41-136", "256", "512", "1024", "2048", "4096", "65535"], ["\t".join(line) for line in lines])
    families = dict.fromkeys(line.split()[0] for line in (root / "graphs/config/families.txt").read_text().splitlines() if line.strip() and not line.startswith("#"))
    write("families.tsv", ["family", "whole", "without", "tp2_paged", "static"], families)
