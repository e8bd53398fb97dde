#!/usr/bin/env python3
"""Counts what language models do in transformers, for the graphs that ftax builds from their config.json.

    language_models.py > language_models.tsv        needs torch and transformers

Each model is built on the meta device from a small configuration, exported by torch.export with a DynamicCache (`past` tokens
cached, `seq` new ones, batch 2) and read node by node: floating-point operations and bytes, operands once, of its
contractions (linear layers, matrix products, scaled dot product attention, grouped experts), kernels of the other operators,
and parameters. tests/graphs/config/oracle_test.cpp holds ftax's graphs to the rows.
"""

import json
import pathlib
import sys

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "graphs" / "zoo"))
import export

BATCH = 2
SMALL = {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000}
GATED = {**SMALL, "intermediate_size": 640, "num_key_value_heads": 2}
GPT2 = {"n_embd": 256, "n_layer": 3, "n_head": 8, "vocab_size": 1000, "n_positions": 1024}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 192}
LATENT = {"q_lora_rank": 96, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
          "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 1}

MODELS = {
    "llama": GATED,
    "mistral": {**GATED, "sliding_window": None},
    "mixtral": {**GATED, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen2": GATED,
    "qwen2_moe": {**GATED, **EXPERTS, "shared_expert_intermediate_size": 320},
    "qwen3": {**GATED, "head_dim": 64},
    "qwen3_moe": {**GATED, **EXPERTS, "head_dim": 64},
    "gemma": {**GATED, "head_dim": 64},
    "gemma2": {**GATED, "head_dim": 64, "sliding_window": 4096},
    "gemma3_text": {**GATED, "head_dim": 64, "sliding_window": 4096},
    "phi": {**SMALL, "intermediate_size": 1024},
    "phi3": {**GATED, "pad_token_id": 0},
    "gpt2": GPT2,
    "gpt_neox": {**SMALL, "intermediate_size": 1024},
    "gptj": {**GPT2, "rotary_dim": 16},
    "opt": {**SMALL, "ffn_dim": 1024, "word_embed_proj_dim": 128, "do_layer_norm_before": False,
            "max_position_embeddings": 2048},
    "falcon": {**SMALL, "multi_query": True},
    "bloom": {"hidden_size": 256, "n_layer": 3, "n_head": 8, "vocab_size": 1000},
    "starcoder2": GATED,
    "deepseek_v2": {**SMALL, **LATENT, "intermediate_size": 640, "num_key_value_heads": 8, "n_shared_experts": 2},
    "deepseek_v3": {**SMALL, **LATENT, "intermediate_size": 640, "num_key_value_heads": 8, "n_shared_experts": 1,
                    "n_group": 4, "topk_group": 2},
    "gpt_oss": {**GATED, "num_local_experts": 8, "num_experts_per_tok": 2, "head_dim": 64},
    "bert": {**SMALL, "intermediate_size": 1024, "max_position_embeddings": 512},
    "roberta": {**SMALL, "intermediate_size": 1024, "max_position_embeddings": 514},
    "modernbert": {**SMALL, "intermediate_size": 384, "pad_token_id": 0, "local_attention": 4096},
    "vit": {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 1024,
            "image_size": 64, "patch_size": 16},
}
ENCODERS = {"bert", "roberta", "modernbert", "vit"}
VIEWS = {"view", "reshape", "transpose", "permute", "slice", "unsqueeze", "expand", "chunk", "split", "split_with_sizes", "select",
         "detach_", "alias", "dropout", "to", "type_as", "numpy_T", "t", "contiguous", "_assert_tensor_metadata", "squeeze",
         "flatten", "lift_fresh_copy", "unbind", "unflatten", "detach", "empty_like", "new_empty", "expand_as", "view_as"}


class Step(torch.nn.Module):
    """One pass over new tokens with a cache of what came before."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, past):
        cache = transformers.DynamicCache(config=self.model.config)
        for index, (keys, values) in enumerate(past):
            cache.update(keys, values, index)
        return self.model(input_ids=input_ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits


class Encode(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        outputs = self.model(x)
        return [outputs[i] for i in range(len(outputs))]


def build(name, fields):
    config = transformers.CONFIG_MAPPING[name](**fields)
    factory = transformers.AutoModel if name in ENCODERS else transformers.AutoModelForCausalLM
    for attention in ("sdpa", "eager"):  # not every model has scaled dot product attention
        try:
            with torch.device("meta"):
                return factory.from_config(config, attn_implementation=attention).eval()
        except ValueError:
            continue
    raise ValueError(name)


def cache_of(config, past):
    zeros = lambda heads, width: torch.zeros(BATCH, heads, past, width, device="meta")
    layers = range(config.num_hidden_layers if past else 0)
    if hasattr(config, "kv_lora_rank"):
        return [(zeros(1, config.kv_lora_rank), zeros(1, config.qk_rope_head_dim)) for _ in layers]
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    keys = 1 if getattr(config, "multi_query", False) else getattr(config, "num_key_value_heads", None) or heads
    return [(zeros(keys, width), zeros(keys, width)) for _ in layers]


def tensors(values):
    return [v.meta["val"] for v in values if isinstance(v, torch.fx.Node) and isinstance(v.meta.get("val"), torch.Tensor)]


def contraction(name, inputs, output):
    """Floating-point operations and bytes of a contraction; None for any other operator."""
    if name == "addmm":
        inputs = [inputs[1], inputs[2], inputs[0]]
    elif name == "baddbmm":
        inputs = [inputs[1], inputs[2]]
    size = lambda t: t.numel() * t.element_size()
    if name in ("linear", "matmul", "addmm", "bmm", "mm", "baddbmm", "conv2d"):
        depth = inputs[1][0].numel() if name == "conv2d" else inputs[0].shape[-1]
        return 2 * output.numel() * depth, sum(map(size, inputs)) + size(output)
    if name.startswith("grouped_mm"):
        tokens, weights = inputs[:2]
        experts = min(tokens.shape[0], weights.shape[0])
        return 2 * output.numel() * tokens.shape[1], size(tokens) + size(weights) * experts // weights.shape[0] + size(output)
    if name == "scaled_dot_product_attention":
        q, k, v = inputs[:3]
        return 2 * q.numel() * k.shape[2] + 2 * output.numel() * k.shape[2], size(q) + size(k) + size(v) + size(output)
    return None


def count(name, fields, seq, past):
    model = build(name, fields)
    if name == "vit":
        step, arguments = Encode(model), (torch.zeros(BATCH, 3, fields["image_size"], fields["image_size"], device="meta"),)
    else:
        ids = torch.zeros(BATCH, seq, dtype=torch.long, device="meta")
        step, arguments = (Encode(model), (ids,)) if name in ENCODERS else (Step(model), (ids, cache_of(model.config, past)))
    with export.tracing(export.Spec(f"transformers:{name}")):
        program = torch.export.export(step, arguments, strict=False)
    flops = moved = kernels = 0
    for node in program.graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            continue
        operator = node.target._schema.name.split("::")[1]
        numbers = contraction(operator, tensors(node.args), node.meta["val"])
        if numbers:
            flops, moved = flops + numbers[0], moved + numbers[1]
        kernels += operator not in VIEWS
    if past:
        kernels -= 2 * model.config.num_hidden_layers  # what fills the cache before the step
    parameters = sum(p.numel() for p in model.parameters())
    return parameters, flops, moved, kernels


def main():
    print("# transformers", transformers.__version__, "torch", torch.__version__.split("+")[0])
    print("model_type\tseq\tpast\tparameters\tflops\tbytes\tkernels\tconfig")
    for name, fields in MODELS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        for seq, past in ((16, 0),) if name in ENCODERS else ((16, 0), (1, 48)):
            try:
                numbers = count(name, fields, seq, past)
            except Exception as error:  # one model must not stop the others
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            config = json.dumps({"model_type": name, **fields}, separators=(",", ":"))
            print(name, seq, past, *numbers, config, sep="\t", flush=True)


if __name__ == "__main__":
    main()
