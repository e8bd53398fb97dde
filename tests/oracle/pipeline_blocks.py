#!/usr/bin/env python3
"""Prints the blocks of transformers that denoise, and of their text encoder T5, for graphs/config/diffusers.txt.

    pipeline_blocks.py FTAX FOLDER

Needs diffusers 0.35, transformers 4.57 and torch. Each network is exported in bfloat16 with few layers and with sizes that no
two dimensions share, converted to a text graph, and cut where the modules of a layer begin; sizes become symbols. What stays
f32 in a bfloat16 network stays f32. FOLDER keeps the exported files.
"""
import pathlib
import re
import subprocess
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def zeros(*shape, dtype=torch.bfloat16):
    return torch.zeros(*shape, device="meta", dtype=dtype)


def first_output(model):
    model.register_forward_hook(lambda _, __, output: output[0])
    return model


def flux(guidance=True):
    from diffusers import FluxTransformer2DModel
    model = FluxTransformer2DModel(patch_size=1, in_channels=64, num_layers=1, num_single_layers=2, guidance_embeds=guidance)
    inputs = {"hidden_states": zeros(2, 101, 64), "encoder_hidden_states": zeros(2, 53, 4096), "pooled_projections": zeros(2, 768),
              "timestep": zeros(2), "img_ids": zeros(101, 3), "txt_ids": zeros(53, 3)}
    if guidance:
        inputs["guidance"] = zeros(2, dtype=torch.float32)
    dims = {name: {} if name.endswith("_ids") else {0: "batch"} for name in inputs}
    return first_output(model.to(torch.bfloat16)), inputs, dims


def flux_schnell():
    return flux(guidance=False)


def sd3(**config):
    from diffusers import SD3Transformer2DModel
    heads = config.setdefault("num_attention_heads", 23)
    model = SD3Transformer2DModel(num_layers=3, caption_projection_dim=heads * 64, pos_embed_max_size=197, sample_size=128, **config)
    inputs = {"hidden_states": zeros(2, 16, 94, 86), "encoder_hidden_states": zeros(2, 331, 4096), "pooled_projections": zeros(2, 2048),
              "timestep": zeros(2, dtype=torch.float32)}
    return first_output(model.to(torch.bfloat16)), inputs, {name: {0: "batch"} for name in inputs}


def sd3_medium():
    return sd3()


def sd35_medium():
    return sd3(qk_norm="rms_norm", dual_attention_layers=(0,))


def t5():
    import transformers
    config = transformers.T5Config(num_layers=2, d_model=4096, d_ff=10240, num_heads=64, d_kv=64, feed_forward_proj="gated-gelu",
                                   attn_implementation="eager")
    model = transformers.T5EncoderModel(config).to(torch.bfloat16)
    return first_output(model), {"input_ids": zeros(2, 37, dtype=torch.long)}, {"input_ids": {0: "batch", 1: "seq"}}


# Sizes of the exported networks, the largest first; a size or stride is the product of those that divide it and a number.
FLUX_SIZES = {154: "(tokens+words)", 101: "tokens", 53: "words"}
SD3_SIZES = {2352: "(tokens+words)", 2021: "tokens", 331: "words", 197: "most", 94: "h", 86: "w", 47: "(h//2)", 43: "(w//2)", 23: "heads"}
# network: sizes, {block: (first module, prefix that the pipeline gives)}; a block "-" is left out
NETWORKS = {
    "flux": (FLUX_SIZES, {"flux_guided": ("", ""), "flux_block": ("transformer_blocks.0",) * 2,
                          "flux_single": ("single_transformer_blocks.0",) * 2, "-": ("single_transformer_blocks.1", ""),
                          "flux_head": ("norm_out", "")}),
    "flux_schnell": (FLUX_SIZES, {"flux": ("", ""), "-": ("transformer_blocks.0", "")}),
    "sd3_medium": (SD3_SIZES, {"sd3": ("", ""), "sd3_block": ("transformer_blocks.0",) * 2, "-": ("transformer_blocks.1", ""),
                               "sd3_last": ("transformer_blocks.2",) * 2, "sd3_head": ("norm_out", "")}),
    "sd35_medium": (SD3_SIZES, {"-": ("", ""), "sd3_dual_rms_norm": ("transformer_blocks.0",) * 2,
                                "sd3_block_rms_norm": ("transformer_blocks.1",) * 2,
                                "sd3_last_rms_norm": ("transformer_blocks.2",) * 2, "--": ("norm_out", "")}),
    "t5": ({}, {"t5": ("", ""), "t5_block": ("encoder.block.1",) * 2, "t5_norm": ("encoder.final_layer_norm", "")}),
}
TENSOR = re.compile(r"(%[\w.]+) (\w+)\[([^\]]*)\](?:\{([^}]*)\})?")


CONSTANTS = ("%guidance", "%img_ids", "%txt_ids")  # the same in every step: weights of a block


class Op:
    def __init__(self, line):
        self.outputs, self.call = line.split(" = ", 1)
        self.call = re.sub(r" : \w+$", "", self.call)
        self.made = [match[1] for match in TENSOR.finditer(self.outputs)]
        self.used = re.findall(r"%[\w.]+", self.call[:self.call.index(")")])
        module = re.search(r" @([\w.]+)", self.call)
        self.module = module[1] if module else ""


def symbols(items, sizes):
    """Writes sizes and strides, numbers or products, as products of symbols."""
    result = []
    for item in filter(None, items.split(",")):
        factors = []
        for factor in item.split("*"):
            number = int(factor) if factor.isdigit() and int(factor) > 0 else None
            if number is None:
                factors.append(factor)
                continue
            for size, symbol in sizes.items():
                while number % size == 0:
                    number //= size
                    factors.append(symbol)
            if number > 1 or not factors:
                factors.append(str(number))
        result.append("*".join(factors))
    return ",".join(result)


def cut(text, sizes, blocks):
    """Yields each block: its inputs are what it reads of others, its outputs what others read of it, the image first, then the
    text, then the rest."""
    sized = lambda line: TENSOR.sub(lambda m: f"{m[1]} {m[2]}[{symbols(m[3], sizes)}]" + (f"{{{symbols(m[4], sizes)}}}" if m[4] else ""), line)
    lines = text.splitlines()
    shapes = {match[1]: sized(match[0]) for line in lines for match in TENSOR.finditer(line.split("(")[0])}
    weights = {line.split()[1] for line in lines if line.startswith("weight ")}
    modules = [line.split()[1:] for line in lines if line.startswith("module ")]
    ops = [Op(line) for line in lines if line.startswith("%")]
    starts = [next(i for i, op in enumerate(ops) if op.module.startswith(first)) for first, _ in blocks.values()]
    result = lines[-1].split()[1]

    def rank(tensor):
        dims = shapes[tensor].split("[")[1]
        return 2 if dims.count(",") < 2 else 0 if re.search(r"batch,(tokens,|seq,|16,h)", dims) else 1

    for (name, (_, prefix)), start, end in zip(blocks.items(), starts, [*starts[1:], len(ops)]):
        if name.startswith("-"):
            continue
        own = ops[start:end]
        made = {tensor for op in own for tensor in op.made}
        read = list(dict.fromkeys(tensor for op in own for tensor in op.used if tensor not in made))
        after = {tensor for op in ops[end:] for tensor in op.used} | {result}
        inputs = sorted((t for t in read if t not in weights and t not in CONSTANTS and t != "%timestep"), key=rank)
        outputs = sorted((t for op in own for t in op.made if t in after), key=rank)
        short = lambda path: path if not prefix else path[len(prefix) + 1:] if path.startswith(prefix + ".") else ""
        names = {t: "%" + short(t[1:]) if t in weights else t for t in read if t not in inputs}
        numbers = {t: f"%{i}" for i, t in enumerate(dict.fromkeys(["%timestep"] + [t for op in own for t in op.made]))}
        names.update({t: numbers[t] for t in made | {"%timestep"}})
        names.update({t: f"%in{i}" for i, t in enumerate(inputs)})
        swap = lambda line: re.sub(r"%[\w.]+", lambda m: names.get(m[0], m[0]), line)
        yield "~"
        yield f"graph {name}"
        yield from ("input " + swap(shapes[t].split("{")[0]) for t in inputs)
        yield from ("weight " + swap(shapes[t]) for t in read if t in weights or t in CONSTANTS)
        own_modules = {op.module for op in own}
        for path, kind in modules:
            path = path.strip('"')
            inside = path.startswith(prefix) if prefix else path == "" and start == 0 or any((m + ".").startswith(path + ".") for m in own_modules)
            if inside and (path or start == 0):
                yield f"module {short(path) or chr(34) * 2} {kind}"
        if "%timestep" in read:
            yield '%0a bf16[1] = fill() "aten::unsqueeze"'
            yield f'{names["%timestep"]} {shapes["%timestep"].split()[1]}{{0}} = expand(%0a) "aten::expand"'
        for op in own:
            module = short(op.module)
            call = re.sub(r" @[\w.]+", f" @{module}" if module else "", op.call)
            yield swap(f"{sized(op.outputs)} = {call}")
        yield from ("output " + names[t] for t in outputs)


def main(ftax, folder):
    folder = pathlib.Path(folder)
    for network, (sizes, blocks) in NETWORKS.items():
        pt2, text = folder / f"{network}.pt2", folder / f"{network}.txt"
        if not pt2.exists():
            subprocess.run([sys.executable, ROOT / "graphs/zoo/export.py", f"{__file__}:{network}", "-o", folder], check=True, stdout=sys.stderr)
        subprocess.run([ftax, "convert", pt2, "-o", text], check=True)
        print("\n".join(cut(text.read_text(), sizes, blocks)))


if __name__ == "__main__":
    main(*sys.argv[1:])
