"""Matrix products in element types that text graphs do not have: FP8 by cuBLASLt, and 4-bit weights under bf16 activations
by the kernel that PyTorch brings (tinygemm). Each returns a function that starts one product with the next set of weights."""

import itertools

import torch

from text_graph import Unsupported

INT4_GROUP = 128  # weights that share a scale


def _dimensions(shape):
    return {name: int(value) for name, value in (part.split("=") for part in shape.split())}


def _fp8(m, n, k, device, sets):
    if device != "cpu" and torch.cuda.get_device_capability() < (8, 9):
        raise Unsupported("FP8 before Ada")
    x = torch.randn(m, k, device=device).to(torch.float8_e4m3fn)
    # cuBLASLt multiplies FP8 by a column-major matrix only.
    weights = [(torch.randn(n, k, device=device) / k ** 0.5).to(torch.float8_e4m3fn).t() for _ in range(sets)]
    one = torch.ones((), device=device)
    turn = itertools.cycle(weights)
    return lambda: torch._scaled_mm(x, next(turn), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _int4(m, n, k, device, sets):
    x = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    scales = torch.full((k // INT4_GROUP, n, 2), 0.01, device=device, dtype=torch.bfloat16)
    if device == "cpu":
        packed = [torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.randint(16, (n, k), dtype=torch.int32), 1)
                  for _ in range(sets)]
        call = torch.ops.aten._weight_int4pack_mm_for_cpu
    else:
        # Two 4-bit weights a byte; 8 is the number of inner tiles that PyTorch's own callers take.
        packed = [torch.ops.aten._convert_weight_to_int4pack(
            torch.randint(256, (n, k // 2), device=device, dtype=torch.int32).to(torch.uint8), 8) for _ in range(sets)]
        call = torch.ops.aten._weight_int4pack_mm
    turn = itertools.cycle(packed)
    return lambda: call(x, next(turn), INT4_GROUP, scales)


PRECISIONS = {"fp8": _fp8, "int4-weights": _int4}


def build(case, device, sets):
    size = _dimensions(case["shape"])
    return PRECISIONS[case["precision"]](size["m"], size["n"], size["k"], device, sets)
