#!/usr/bin/env python3
"""Counts parameters and floating-point operations of transformers' causal language models, one small model per type.

    families.py [TYPE ...] > families.tsv        needs torch and transformers; 40 minutes on one core

Each type of MODEL_FOR_CAUSAL_LM that ftax reads, and each language model inside a model for text and images, to which a head is added, is
built small, with random weights on the CPU, and runs 16 new tokens (batch 2, logits of the last token) and one token behind 48 cached
ones. A dispatch mode counts the contractions: products, convolutions, grouped experts,
scaled dot product attention as two products. 0 operations of a step: the model has no cache, or only a form of its own. The fields of
the configuration are those that save_pretrained writes, without what changes neither count. tests/graphs/config/oracle_test.cpp holds
ftax's graphs to the rows.
"""

import importlib
import inspect
import json
import pathlib
import re
import sys

import torch
import transformers
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

HIDDEN, LAYERS, HEADS, WIDTH, EXPERTS = 128, 4, 8, 320, 8
SMALL = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "emb_dim"), HIDDEN),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers"), LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads", "encoder_attention_heads",
                     "attention_heads"), HEADS),
    **dict.fromkeys(("intermediate_size", "n_inner", "ffn_dim", "decoder_ffn_dim", "encoder_ffn_dim", "ffn_hidden_size"), WIDTH),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), EXPERTS),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k"), 2),
    "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1000, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "moe_intermediate_size": 96, "shared_expert_intermediate_size": 160, "shared_intermediate_size": 160, "n_group": 2, "topk_group": 1,
    "kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "qk_head_dim": 48, "v_head_dim": 24,
}
LATENT = {"head_dim": 16, "num_key_value_heads": HEADS}
MAMBA2 = {"mamba_n_heads": HEADS, "mamba_d_head": 32, "mamba_d_state": 16}
DELTA = {"layer_types": ["linear_attention", "full_attention"] * 2, "linear_num_value_heads": HEADS, "linear_num_key_heads": 4,
         "linear_key_head_dim": 16, "linear_value_head_dim": 24}
sections = lambda *widths: {"rope_parameters": {"rope_type": "default", "rope_theta": 10000, "mrope_section": widths}}
OWN = {
    **dict.fromkeys(("glm4v_text", "glm_ocr_text", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"), sections(2, 3, 3)),
    **dict.fromkeys(("qwen3_vl_text", "qwen3_omni_moe_text", "paddleocr_vl_text"), sections(4, 6, 6)),
    "glm4v_moe_text": sections(1, 1, 2),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "axk1", "glm4_moe_lite", "minicpm3", "sarvam_mla", "youtu"), LATENT),
    **dict.fromkeys(("codegen", "gptj"), {"rotary_dim": 16}),
    **dict.fromkeys(("mamba", "falcon_mamba"), {"intermediate_size": 256, "time_step_rank": 8}),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), DELTA),
    "bailing_hybrid": {"head_dim": 32, "n_group": 2, "num_key_value_heads": HEADS, "layer_types": ["linear_attention", "full_attention"] * 2},
    "bamba": {**MAMBA2, "attn_layer_indices": [1, 3]},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "num_experts_per_tok": 2, "head_dim": None},
    "deepseek_v4": {"head_dim": 64, "num_key_value_heads": 1, "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"], "o_groups": 2,
                    "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 8}, "o_lora_rank": 32,
                    "layer_types": ["sliding_attention", *["compressed_sparse_attention", "heavily_compressed_attention"] * 2][:4],
                    "index_n_heads": 4, "index_head_dim": 32},
    "dots1": {"n_shared_experts": 1},
    "falcon_h1": {**MAMBA2, "mamba_d_ssm": 256, "mamba_chunk_size": 64},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "gemma4_text": {"layer_types": ["sliding_attention", "full_attention"] * 2, "global_head_dim": 64, "num_global_key_value_heads": 1,
                    "attention_k_eq_v": True, "enable_moe_block": True, "top_k_experts": 2, "hidden_size_per_layer_input": 16,
                    "vocab_size_per_layer_input": 1000, "num_kv_shared_layers": 2, "use_double_wide_mlp": True},
    "granitemoehybrid": {**MAMBA2, "layer_types": ["mamba", "attention"] * 2},
    "helium": {"head_dim": 16},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_dt_rank": 8},
    "kimi_linear": {**LATENT, "layer_types": ["linear_attention", "full_attention"] * 2, "linear_num_heads": HEADS, "linear_head_dim": 32},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    "lfm3": {"layer_types": ["conv", "full_attention", "conv", "sliding_attention"]},
    "mamba2": {"num_heads": HEADS, "state_size": 16, "n_groups": 2},
    "minimax": {"layer_types": ["full_attention", "linear_attention"] * 2},
    "mistral4": {"head_dim": 48, "num_key_value_heads": HEADS},
    "mimo_v2_flash": {"layer_types": ["full_attention", "sliding_attention"] * 2, "swa_num_key_value_heads": 4,
                      "rope_parameters": {t: {"rope_type": "default", "rope_theta": 10000, "partial_rotary_factor": 0.25}
                                          for t in ("full_attention", "sliding_attention")}},
    "nemotron_h": {"layers_block_type": ["mamba", "attention", "mlp", "moe"], "num_hidden_layers": None, "mamba_num_heads": HEADS,
                   "mamba_head_dim": 32, "ssm_state_size": 16, "n_groups": 2, "chunk_size": 64, "moe_latent_size": 48,
                   "moe_shared_expert_intermediate_size": 160},
    "olmo_hybrid": {**DELTA, "linear_num_key_heads": HEADS},
}
# Their experts run over all tokens in transformers; their class has the encoders' weights.
UNLIKE = {"llama4_text", "phi4_multimodal"}
# Engines run the layers that share keys and values over all tokens of a prompt, transformers only over the last.
transformers.models.gemma4.modeling_gemma4.Gemma4TextModel._maybe_slice_kv_shared_inputs = lambda self, *inputs, **_: inputs[:4]
UNUSED = re.compile("drop|_token_id|initializer|_eps|epsilon|^eps$|^dtype$|^id2label|^label2id|output_|aux_|z_loss|use_cache|return_dict"
                    "|architectures|chunk_size_feed|problem_type|transformers_version|_name_or_path|pretraining_tp|rope_theta|alpha|beta"
                    "|scale_|summary|time_step_(min|max|floor|scale|init|limit)|init_|rescale|jitter|is_encoder_decoder|forced|use_mamba")


class Contractions(TorchDispatchMode):
    """Adds up the operations of what runs below it."""

    flops, muted = 0, False

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        out = function(*arguments, **(options or {}))
        name = function.overloadpacket.__name__
        if self.muted:
            return out
        if name in ("mm", "bmm") or "grouped_mm" in name:
            self.flops += 2 * out.numel() * arguments[0].shape[-1]
        elif name in ("addmm", "baddbmm"):
            self.flops += 2 * out.numel() * arguments[1].shape[-1]
        elif name == "convolution":
            self.flops += 2 * out.numel() * arguments[1][0].numel()
        return out


class Attention(TorchFunctionMode):
    """Counts scaled dot product attention as its two products."""

    def __init__(self, counted):
        super().__init__()
        self.counted = counted

    def __torch_function__(self, function, types, arguments=(), options=None):
        fused = getattr(function, "__name__", "") == "scaled_dot_product_attention"
        self.counted.muted = fused
        out = function(*arguments, **(options or {}))
        self.counted.muted = False
        if fused:
            self.counted.flops += 2 * arguments[1].shape[-2] * (arguments[0].numel() + out.numel())
        return out


class WithHead(torch.nn.Module):
    """A language model inside another, with a head for the last token."""

    def __init__(self, config, attention):
        super().__init__()
        module = importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))
        kind = next(c for n, c in vars(module).items() if n.endswith("Model") and not n.endswith("PreTrainedModel")
                    and getattr(c, "config_class", None) is type(config))
        config._attn_implementation = attention
        self.model = kind._from_config(config, attn_implementation=attention, dtype=torch.float32)
        self.head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if getattr(config, "tie_word_embeddings", False):
            self.head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids, past_key_values=None, use_cache=True):
        key = next(n for n in ("past_key_values", "cache", "cache_params") if n in inspect.signature(self.model.forward).parameters)
        outputs = self.model(input_ids=input_ids, use_cache=use_cache, **{key: past_key_values})
        outputs.logits = self.head(outputs.last_hidden_state[:, -1:])
        return outputs


def build(config, attention):
    if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32)
    return WithHead(config, attention)


def run(model, tokens, cache=None):
    accepted = inspect.signature(model.forward).parameters
    options = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
    if cache is not None:
        options[next(n for n in ("past_key_values", "cache", "cache_params") if n in accepted)] = cache
    with torch.no_grad(), Contractions() as counted, Attention(counted):
        outputs = model(input_ids=torch.randint(3, 900, (2, tokens)), use_cache=True, **options)
    caches = (getattr(outputs, n, None) for n in ("past_key_values", "cache", "cache_params"))
    return counted.flops, next((c for c in caches if c is not None), None)


def count(model_type):
    known = transformers.CONFIG_MAPPING[model_type]().to_dict()
    fields = {**{k: v for k, v in SMALL.items() if k in known}, **OWN.get(model_type, {})}
    config = transformers.CONFIG_MAPPING[model_type](**{k: v for k, v in fields.items() if v is not None})
    for attention in ("sdpa", "eager"):  # not every model has scaled dot product attention
        try:
            model = build(config, attention).eval()
            break
        except ValueError:
            continue
    prefill, _ = run(model, 16)
    _, cache = run(model, 48)
    step = run(model, 1, cache)[0] if cache is not None else 0
    saved = {k: v for k, v in json.loads(config.to_json_string()).items() if v is not None and not UNUSED.search(k)}
    rotary = {k: v for k, v in saved.pop("rope_parameters", {}).items() if k == "partial_rotary_factor"}
    if rotary:
        saved["rope_parameters"] = rotary
    return sum(p.numel() for p in model.parameters()), prefill, step, json.dumps(saved, separators=(",", ":"))


def main():
    table = pathlib.Path(__file__).resolve().parents[2] / "graphs" / "config" / "families.txt"
    read = {line.split()[0] for line in table.read_text().splitlines() if line and not line.startswith("#") and "missing=" not in line}
    print("# transformers", transformers.__version__, "torch", torch.__version__.split("+")[0])
    print("model_type\tparameters\tprefill_flops\tstep_flops\tconfig")
    inside = [t for t in sorted(read & set(CONFIG_MAPPING_NAMES) - set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES))
              if hasattr(transformers.CONFIG_MAPPING[t](), "num_key_value_heads")]
    for model_type in sys.argv[1:] or [t for t in [*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *inside] if t in read - UNLIKE]:
        try:
            print(model_type, *count(model_type), sep="\t", flush=True)
        except Exception as error:  # one model must not stop the others
            print(f"{model_type}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)


if __name__ == "__main__":
    main()
