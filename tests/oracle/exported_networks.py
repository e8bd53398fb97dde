"""Exports networks of timm and transformers without weights, for exported_kernels.py: exported_networks.py FOLDER [NAME...].
Ran with torch 2.11, timm 1.0.22 and transformers 4.57.1; those of data/measurements/h100-sxm5-80gb/networks.csv.xz are all below."""
import logging, os, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
import timm
import torch
import transformers as hf

HALF, FLOAT, BRAIN = torch.float16, torch.float32, torch.bfloat16

def images(batch, side=224, dtype=HALF):
    return lambda: ((torch.empty(batch, 3, side, side, dtype=dtype),), {})

def tokens(batch, length):
    return lambda: ((), {"input_ids": torch.empty(batch, length, dtype=torch.int64)})

def timm_model(name):
    return lambda: timm.create_model(name, pretrained=False)

def whisper_encoder():
    config = hf.WhisperConfig(d_model=768, encoder_layers=12, encoder_attention_heads=12, encoder_ffn_dim=3072, attn_implementation="sdpa")
    return hf.models.whisper.modeling_whisper.WhisperEncoder(config)

class First(torch.nn.Module):
    """The first tensor of a network's results, which have no output class then."""
    def __init__(self, network):
        super().__init__()
        self.m = network

    def forward(self, *inputs, **named):
        result = self.m(*inputs, **named)
        if hasattr(result, "to_tuple"): result = result.to_tuple()
        return result[0] if isinstance(result, (tuple, list)) else result

NETWORKS = {
    "convnext_tiny_b8": (timm_model("convnext_tiny"), images(8), HALF),
    "swin_tiny_b8": (timm_model("swin_tiny_patch4_window7_224"), images(8), HALF),
    "vit_base16_b16": (timm_model("vit_base_patch16_224"), images(16), HALF),
    "efficientnet_b0_b1": (timm_model("efficientnet_b0"), images(1), HALF),
    "mobilenetv3_b32_fp32": (timm_model("mobilenetv3_large_100"), images(32, dtype=FLOAT), FLOAT),
    "resnet50_b1_fp32": (timm_model("resnet50"), images(1, dtype=FLOAT), FLOAT),
    "dinov2_large_b2": (timm_model("vit_large_patch14_dinov2.lvd142m"), images(2, 518), HALF),
    "mixer_b16_b8": (timm_model("mixer_b16_224"), images(8), HALF),
    "coatnet_0_b8": (timm_model("coatnet_0_rw_224"), images(8), HALF),
    "t5_base_b4": (lambda: hf.T5EncoderModel(hf.T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12)), tokens(4, 256), BRAIN),
    "whisper_small_b1": (whisper_encoder, lambda: ((torch.empty(1, 80, 3000, dtype=HALF),), {}), HALF),
    "clip_text_b16": (lambda: hf.CLIPTextModel(hf.CLIPTextConfig(attn_implementation="sdpa")), tokens(16, 77), HALF),
    "bert_base_b1_s128": (lambda: hf.BertModel(hf.BertConfig(attn_implementation="sdpa")), tokens(1, 128), HALF),
}

folder, names = sys.argv[1], sys.argv[2:] or list(NETWORKS)
os.makedirs(folder, exist_ok=True)
for name in names:
    make, inputs, dtype = NETWORKS[name]
    with torch.device("meta"), torch.no_grad():
        network = First(make()).to(dtype).eval()
        given, named = inputs()
        torch.export.save(torch.export.export(network, given, named, strict=False), os.path.join(folder, name + ".pt2"))
    print(name, flush=True)
