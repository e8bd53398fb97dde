#!/usr/bin/env python3
"""Counts parameters, tokens and floating-point operations of the image encoders in transformers' models for text and images.

    vision.py > vision.tsv        needs torch and transformers; a minute on one core

Each family of graphs/config/vision.txt that transformers has is built small on the CPU and encodes one image of 224x448 pixels, whose products
torch.utils.flop_counter counts, and once in the size of a published checkpoint on the meta device, where only the parameters count. Layers after the one
whose features a model reads are left out, as engines do. tests/graphs/config/vision_test.cpp holds ftax's graphs to the rows.
"""

import json

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

TEXT = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, vocab_size=64)
QWEN = dict(depth=3, num_heads=2, patch_size=14, spatial_merge_size=2, temporal_patch_size=2)
VIT = dict(hidden_size=32, intermediate_size=80, num_hidden_layers=3, num_attention_heads=2, patch_size=14)
SIGLIP = dict(VIT, model_type="siglip_vision_model", vision_use_head=False)
SMALL = {
    "qwen2_vl": dict(text_config=TEXT, vision_config=dict(QWEN, embed_dim=32, hidden_size=64)),
    "qwen2_5_vl": dict(text_config=TEXT, vision_config=dict(QWEN, hidden_size=32, intermediate_size=80, out_hidden_size=64, window_size=112,
                                                            fullatt_block_indexes=[1])),
    "qwen3_vl": dict(text_config=TEXT, vision_config=dict(QWEN, patch_size=16, hidden_size=32, intermediate_size=80, out_hidden_size=64,
                                                          num_position_embeddings=64, deepstack_visual_indexes=[0, 2])),
    "qwen3_5": dict(text_config=dict(TEXT, layer_types=["full_attention"], linear_conv_kernel_dim=4, linear_num_value_heads=2, linear_num_key_heads=2,
                                     linear_key_head_dim=16, linear_value_head_dim=16), vision_config=dict(QWEN, patch_size=16, hidden_size=32, intermediate_size=80, out_hidden_size=64,
                                                         num_position_embeddings=64)),
    "llava": dict(text_config=dict(TEXT, model_type="llama"), vision_config=dict(VIT, model_type="clip_vision_model", image_size=112)),
    "llava/siglip": dict(vision_feature_select_strategy="full", text_config=dict(TEXT, model_type="llama"), vision_config=dict(SIGLIP, image_size=112)),
    "gemma3": dict(text_config=dict(TEXT, head_dim=32), vision_config=dict(SIGLIP, image_size=448), mm_tokens_per_image=256),
    "llava/pixtral": dict(vision_feature_select_strategy="full", text_config=dict(TEXT, model_type="mistral"), vision_feature_layer=-1, vision_config=dict(
        VIT, model_type="pixtral", image_size=336, patch_size=16, head_dim=16)),
    "mistral3": dict(text_config=dict(TEXT, model_type="mistral"), vision_config=dict(VIT, model_type="pixtral", image_size=336, head_dim=16)),
}
FULL = {  # config.json of Qwen/Qwen2-VL-7B-Instruct, Qwen/Qwen2.5-VL-7B-Instruct, Qwen/Qwen3-VL-8B-Instruct, llava-hf/llava-1.5-7b-hf,
    # google/gemma-3-4b-it, mistralai/Mistral-Small-3.1-24B-Instruct-2503
    "qwen2_vl": dict(text_config=dict(TEXT, hidden_size=3584), vision_config=dict(depth=32, embed_dim=1280, hidden_size=3584, num_heads=16, patch_size=14)),
    "qwen2_5_vl": dict(text_config=dict(TEXT, hidden_size=3584), vision_config=dict(
        depth=32, hidden_size=1280, intermediate_size=3420, out_hidden_size=3584, num_heads=16, window_size=112, fullatt_block_indexes=[7, 15, 23, 31])),
    "qwen3_vl": dict(text_config=dict(TEXT, hidden_size=4096), vision_config=dict(
        depth=27, hidden_size=1152, intermediate_size=4304, out_hidden_size=4096, num_heads=16, patch_size=16, num_position_embeddings=2304,
        deepstack_visual_indexes=[8, 16, 24])),
    "llava": dict(text_config=dict(TEXT, model_type="llama", hidden_size=4096), vision_config=dict(
        model_type="clip_vision_model", hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=336, patch_size=14)),
    "gemma3": dict(text_config=dict(TEXT, hidden_size=2560), vision_config=dict(
        SIGLIP, hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16, image_size=896)),
    "mistral3": dict(text_config=dict(TEXT, model_type="mistral", hidden_size=5120), vision_config=dict(
        model_type="pixtral", hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=1540, patch_size=14,
        head_dim=64)),
}
HEIGHT, WIDTH = 224, 448
READ_EARLY = ("llava", "llava/siglip")  # the layer before the last, without the norm behind it


def build(family, fields, device):
    if family in READ_EARLY:
        vision = fields["vision_config"]
        fields = dict(fields, vision_config=dict(vision, num_hidden_layers=vision["num_hidden_layers"] - 1), vision_feature_layer=-1)
    config = CONFIG_MAPPING[family.split("/")[0]](**fields)
    with torch.device(device):
        model = transformers.AutoModelForImageTextToText.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    return config, model.model


def image_of(config, family, model):
    """What the processor makes of the image, and its sizes."""
    vision = config.vision_config
    patch = vision.patch_size
    if family.startswith("qwen"):
        cell = patch * vision.spatial_merge_size
        side = (round(HEIGHT / cell) * cell // patch, round(WIDTH / cell) * cell // patch)
        pixels = torch.zeros(side[0] * side[1], 3 * vision.temporal_patch_size * patch * patch)
        return dict(pixel_values=pixels, image_grid_thw=torch.tensor([[1, *side]]))
    if vision.model_type == "pixtral":
        scale = max(1, max(HEIGHT, WIDTH) / vision.image_size)
        cell = patch * (config.spatial_merge_size if family == "mistral3" else 1)
        size = [-(-int(side / scale) // cell) * cell for side in (HEIGHT, WIDTH)]
        return dict(pixel_values=torch.zeros(1, 3, *size), image_sizes=torch.tensor([size]))
    return dict(pixel_values=torch.zeros(1, 3, vision.image_size, vision.image_size))


def parameters(config, model, family):
    vision = getattr(model, "vision_tower", None) or model.visual
    count = sum(p.numel() for part in (vision, getattr(model, "multi_modal_projector", None)) if part is not None for p in part.parameters())
    if family in READ_EARLY:
        for name, part in vision.named_modules():
            if name.split(".")[-1] in ("post_layernorm", "head"):
                count -= sum(p.numel() for p in part.parameters())
    return count


def operations(config, model, family):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        features = model.get_image_features(**image_of(config, family, model))
    found = features.pooler_output if hasattr(features, "pooler_output") else features
    found = found[0] if isinstance(found, (list, tuple)) else found
    return counter.get_total_flops(), found.reshape(-1, found.shape[-1]).shape[0]


def main():
    print("config\tparameters\tflops\ttokens")
    for table, device in ((SMALL, "cpu"), (FULL, "meta")):
        for family, fields in table.items():
            config, model = build(family, fields, device)
            text = dict(fields["text_config"], model_type=config.text_config.model_type)
            written = json.dumps(dict(fields, text_config=text, model_type=family.split("/")[0]), separators=(",", ":"))
            count = parameters(config, model, family)
            flops, tokens = operations(config, model, family) if device == "cpu" else ("", "")
            print(written, count, flops, tokens, sep="\t", flush=True)


if __name__ == "__main__":
    main()
