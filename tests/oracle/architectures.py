#!/usr/bin/env python3
"""Takes 25 architectures of three libraries through three exporters, as their users would, and tabulates what ftax makes of the files.

    architectures.py write DIR [NAME…]    needs torch, torchvision, timm, transformers and onnxscript; about half an hour
    architectures.py table FTAX DIR       prints the table of docs/architectures.md

`write` makes DIR/NAME.pt2 (torch.export), NAME.onnx (torch.onnx.export, dynamo) and NAME.pt (torch.jit.trace), the first two with
the batch open where the model allows it, at BATCH where not. What cannot be exported is said in DIR/NAME.failed.
"""

import json
import pathlib
import subprocess
import sys

BATCH = 8
DEVICE = "t4"
SUFFIXES = {".pt2": "torch.export", ".pt": "TorchScript", ".onnx": "ONNX"}
AGREEING = 0.05  # largest difference between exporters of one network


# ---- write -------------------------------------------------------------------------------------------------------------


def architectures():
    """Functions that return a model and its inputs, by name. Those of transformers have few layers and random weights."""
    import timm
    import torch
    import torchvision
    import transformers

    class FirstOutput(torch.nn.Module):
        """The first tensor that a model returns, of whatever holds its outputs."""

        def __init__(self, model, call=lambda model, x: model(x)):
            super().__init__()
            self.model, self.call = model, call

        def forward(self, x):
            output = self.call(self.model, x)
            if isinstance(output, dict):
                output = next(iter(output.values()))
            return output[0] if isinstance(output, (tuple, list)) else output

    def image(size):
        return torch.randn(BATCH, 3, size, size)

    def tokens(length=128):
        return torch.randint(0, 100, (BATCH, length))

    def of_torchvision(name):
        return lambda: (torchvision.models.get_model(name, weights=None), image(224))

    def of_timm(name):
        return lambda: (timm.create_model(name), image(224))

    def of_transformers(name, x, call=lambda model, x: model(x), **config):
        def build():
            kind = getattr(transformers, name)
            settings = kind.config_class(**config)
            settings.use_cache = False
            return FirstOutput(kind(settings), call), x()

        return build

    def whisper():
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        config = transformers.WhisperConfig(encoder_layers=2, d_model=384, encoder_attention_heads=6, encoder_ffn_dim=1536)
        return FirstOutput(WhisperEncoder(config)), torch.randn(BATCH, 80, 3000)

    small = {"num_hidden_layers": 2, "vocab_size": 3000}
    grouped = {"num_attention_heads": 8, "num_key_value_heads": 4}
    return {
        **{name: of_torchvision(name) for name in ("resnet50", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "vit_b_16",
                                                   "swin_t", "densenet121", "regnet_y_400mf", "shufflenet_v2_x1_0")},
        "deeplabv3_resnet50": lambda: (FirstOutput(torchvision.models.segmentation.deeplabv3_resnet50(weights_backbone=None)), image(256)),
        "r3d_18": lambda: (torchvision.models.video.r3d_18(), torch.randn(BATCH, 3, 8, 112, 112)),
        "raft_small": lambda: (FirstOutput(torchvision.models.optical_flow.raft_small(),
                                           lambda model, x: model(x, x, num_flow_updates=3)[-1]), image(128)),
        **{name: of_timm(name) for name in ("deit_tiny_patch16_224", "maxvit_tiny_rw_224", "mixer_s32_224", "coatnet_0_rw_224")},
        "BertModel": of_transformers("BertModel", tokens, num_hidden_layers=4),
        "DebertaV2Model": of_transformers("DebertaV2Model", tokens, **{**small, "num_hidden_layers": 3}, hidden_size=384, num_attention_heads=6,
                                          intermediate_size=1536, relative_attention=True, pos_att_type=["p2c", "c2p"]),
        "T5Model": of_transformers("T5Model", tokens, lambda model, x: model(input_ids=x, decoder_input_ids=x), num_layers=3, vocab_size=3000),
        "LlamaForCausalLM": of_transformers("LlamaForCausalLM", tokens, **small, **grouped, hidden_size=1024, intermediate_size=2816),
        "Qwen2MoeForCausalLM": of_transformers("Qwen2MoeForCausalLM", tokens, **small, **grouped, hidden_size=512, intermediate_size=1024,
                                               moe_intermediate_size=256, shared_expert_intermediate_size=512, num_experts=8,
                                               num_experts_per_tok=2),
        "MambaModel": of_transformers("MambaModel", lambda: tokens(16), **small, hidden_size=384),
        "WhisperEncoder": whisper,
        "Wav2Vec2Model": of_transformers("Wav2Vec2Model", lambda: torch.randn(BATCH, 16000), num_hidden_layers=2),
        "SegformerForSemanticSegmentation": of_transformers("SegformerForSemanticSegmentation", lambda: image(256)),
    }


def write(folder, names):
    import logging
    import warnings

    import torch

    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    folder.mkdir(parents=True, exist_ok=True)
    builders = architectures()
    for name in names or builders:
        model, x = builders[name]()
        model.eval()
        for parameter in model.parameters():  # an exporter drops biases of zero, which only untrained models have
            if not parameter.any():
                torch.nn.init.normal_(parameter)

        def exported(path, shapes):
            torch.export.save(torch.export.export(model, (x,), dynamic_shapes=shapes), path)

        def onnx(path, shapes):
            torch.onnx.export(model, (x,), path, dynamo=True, dynamic_shapes=shapes, verbose=False)
            path.with_name(path.name + ".data").unlink(missing_ok=True)  # its weights

        def traced(path, _):
            torch.jit.save(torch.jit.trace(model, (x,), check_trace=False, strict=False), path)

        (folder / f"{name}.input").write_text(f"{'float' if x.is_floating_point() else 'long'}:batchx{'x'.join(map(str, x.shape[1:]))}")
        failures = []
        for suffix, export in ((".pt2", exported), (".pt", traced), (".onnx", onnx)):
            path = folder / (name + suffix)
            for shapes in (({0: torch.export.Dim("batch", min=1, max=1024)},), None):
                if path.exists():
                    break
                try:
                    with torch.no_grad():
                        export(path, shapes)
                except Exception as error:  # not every model keeps its batch open, not every exporter takes every model
                    path.unlink(missing_ok=True)
                    failures.append(f"{suffix}: {type(error).__name__}: {' '.join(str(error).split())[:200]}\n")
        (folder / f"{name}.failed").write_text("".join(failures))
        print(name, "written", flush=True)


# ---- table -------------------------------------------------------------------------------------------------------------


def reported(ftax, verb, path, *flags):
    """What a verb of ftax says of a file; RuntimeError where it refuses it."""
    for batch in (["--batch", str(BATCH)], []):  # a fixed batch takes no flag
        done = subprocess.run([ftax, verb, path, *flags, *batch, "--json", "-"], capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)
    raise RuntimeError(done.stderr.strip().splitlines()[-1])


def predicted(ftax, path):
    """The smallest of the shares of nodes, FLOPs and time with a rule, and the latency."""
    shape = ["--input", path.with_suffix(".input").read_text()] if path.suffix == ".pt" else []
    prediction = reported(ftax, "predict", path, "--device", DEVICE, "--framework", "pytorch-eager", *shape)["predictions"][0]
    return min(prediction["coverage"].values()), prediction["latency_s"]


def table(ftax, folder):
    print("| architecture | GFLOP |", " | ".join(SUFFIXES.values()), "| apart | TFLOP/s |")
    print("|---|" + "---|" * (len(SUFFIXES) + 3))
    for path in sorted(folder.glob("*.input"), key=lambda path: path.name.lower()):
        first = next(filter(pathlib.Path.exists, map(path.with_suffix, SUFFIXES)))
        shape = ["--input", path.read_text()] if first.suffix == ".pt" else []
        flops = 2 * reported(ftax, "inspect", first, *shape)["total"]["macs"]  # of its contractions
        cells, latencies = [], []
        for suffix in SUFFIXES:
            file = path.with_suffix(suffix)
            if not file.exists():
                cells.append("not exported")
                continue
            try:
                coverage, latency = predicted(ftax, file)
                latencies.append(latency)
                cells.append(f"{1e3 * latency:.2f} ms" + ("" if coverage > 0.9995 else f", {100 * coverage:.1f} %"))
            except RuntimeError as error:
                cells.append(f"no: {error}")
        apart = max(latencies) / min(latencies) - 1
        print(f"| {path.stem} | {flops / 1e9:.1f} |", " | ".join(cells), f"| {100 * apart:.1f} % | {flops / min(latencies) / 1e12:.1f} |")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        sys.exit(write(pathlib.Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(table(sys.argv[2], pathlib.Path(sys.argv[3])))
