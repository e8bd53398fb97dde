"""Cases for hostile_test.py that are a product of places and values: the least and largest numbers in every attribute, field, cell and
option; damaged and crafted archives; texts that no reader expects. They ask for no exit code, only for an end with words."""
import io
import json
import re
import struct
import zipfile
from pathlib import Path

from hostile_test import archive, field, node, onnx, pt2, tensor, value, varint

NUMBERS = (2**63 - 1, -2**63, 2**40, 0, -1)
INSPECT = "inspect {file} --batch 2"
PREDICT = "predict {file} --device t4"
DATA = Path(__file__).parents[2] / "data"

# operator, shapes of its inputs, attributes of integers with how many they hold
NODES = (
    ("Conv", [(1, 3, 8, 8), (4, 3, 3, 3)], {"group": 0, "strides": 2, "pads": 4, "dilations": 2, "kernel_shape": 2}),
    ("ConvTranspose", [(1, 3, 8, 8), (3, 4, 3, 3)], {"group": 0, "strides": 2, "output_padding": 2, "output_shape": 2, "dilations": 2}),
    ("MaxPool", [(1, 3, 8, 8)], {"kernel_shape": 2, "ceil_mode": 0}),
    ("AveragePool", [(1, 3, 8, 8)], {"kernel_shape": 1}),
    ("Transpose", [(2, 3, 4)], {"perm": 3}),
    ("Concat", [(2, 3), (2, 3)], {"axis": 0}),
    ("Split", [(6, 3)], {"axis": 0, "num_outputs": 0}),
    ("Gather", [(6, 3), (2,)], {"axis": 0}),
    ("Flatten", [(6, 3, 2)], {"axis": 0}),
    ("ReduceSum", [(6, 3)], {"axes": 1}),
    ("Softmax", [(6, 3)], {"axis": 0}),
    ("DepthToSpace", [(1, 4, 2, 2)], {"blocksize": 0}),
    ("SpaceToDepth", [(1, 4, 2, 2)], {"blocksize": 0}),
    ("LSTM", [(5, 1, 4), (1, 32, 4), (1, 32, 8)], {"hidden_size": 0}),
    ("TopK", [(6, 3), (1,)], {"axis": 0}),
    ("OneHot", [(6,), (), (2,)], {"axis": 0}),
    ("EyeLike", [(3, 3)], {"k": 0, "dtype": 0}),
    ("Cast", [(3, 3)], {"to": 0}),
    ("MultiHeadAttention", [(1, 4, 8), (1, 4, 8), (1, 4, 8)], {"num_heads": 0}),
    ("GroupNormalization", [(1, 4, 2, 2), (4,), (4,)], {"num_groups": 0}),
    ("LRN", [(1, 4, 2, 2)], {"size": 0}),
    ("Unsqueeze", [(2, 3)], {"axes": 1}),
)


def integers(name, count, number):
    """An attribute: one integer for a count of 0, else a list of so many."""
    if count == 0:
        return field(1, name) + varint(3 << 3) + varint(number) + field(20, 2)
    return field(1, name) + b"".join(varint(8 << 3) + varint(number) for _ in range(count)) + field(20, 7)


def single_nodes():
    for op, shapes, attributes in NODES:
        names = [f"x{i}" for i in range(len(shapes))]
        inputs = [value(name, list(shape)) for name, shape in zip(names, shapes)]
        for attribute, count in attributes.items():
            for number in NUMBERS[:3] if count else NUMBERS[:2]:
                made = node(op, names, ["y"], integers(attribute, count, number))
                yield f"{op}_{attribute}_{number}.onnx", onnx([made], inputs, [value("y")]), PREDICT
    for number in NUMBERS:
        for op in ("Reshape", "Expand", "Tile", "ConstantOfShape", "Range", "Pad", "Slice", "Resize"):
            constants = [tensor("c", [4], 7, struct.pack("<4q", *[number] * 4)), tensor("p", [8], 7, struct.pack("<8q", *[number] * 8)), tensor("s", [], 7, struct.pack("<q", number))]
            inputs = {"Range": ["s", "s", "s"], "ConstantOfShape": ["c"], "Pad": ["x", "p"], "Slice": ["x", "c", "c", "c", "c"], "Resize": ["x", "", "", "c"]}.get(op, ["x", "c"])
            made = onnx([node(op, inputs, ["y"])], [value("x", [1, 2, 3, 4])], [value("y")], constants)
            yield f"{op}_{number}.onnx", made, INSPECT
            yield f"{op}_{number}_fixed.onnx", made, PREDICT
        yield f"dim_{number}.onnx", onnx([node("Relu", ["x"], ["y"])], [value("x", [number, number])], [value("y")]), INSPECT
        yield f"initializer_{number}.onnx", onnx([node("Add", ["x", "w"], ["y"])], [value("x", [2])], [value("y")], [tensor("w", [number, number])]), INSPECT


def texts():
    graph = 'input %x f32[batch, 3, 8, 8]\nweight %w f32[3, 3, 1, 1]\n%y f32[batch, 3, 8, 8] = {op}(%x, %w) {{{attribute}={number}}}\noutput %y\n'
    for op, attribute in (("conv", "groups"), ("pool", "stride"), ("reduce", "axes"), ("softmax", "axis"), ("transpose", "perm"), ("recurrent", "hidden")):
        for number in (2**63 - 1, -2**63, f"[{2**63 - 1}, {2**63 - 1}]"):
            yield f"{op}_{number}.txt", graph.format(op=op, attribute=attribute, number=number).encode(), INSPECT
    for name, content in (("empty", b""), ("nul", b"\0" * 100_000), ("lines", b"\n" * 900_000), ("percent", b"%" * 900_000),
                          ("brackets", b"input %x f32[" * 60_000), ("utf", "input %\u202e f32[2]\n".encode() * 40_000), ("bad_utf", b"\xff\xfe" * 400_000)):
        yield f"{name}.txt", content, INSPECT


def configs():
    llama = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 64}
    for key in ("num_key_value_heads", "head_dim", "max_position_embeddings", "sliding_window", "rms_norm_eps", "rope_theta", "tie_word_embeddings",
                "torch_dtype", "architectures", "layer_types", "quantization_config", "rope_scaling"):
        for odd in (2**63 - 1, -1, 1e308, "x" * 100_000, [[[]]] * 1000, {"a": {}}):
            if isinstance(odd, (int, float)) or key in ("layer_types", "quantization_config", "torch_dtype"):
                yield f"{key}_{str(odd)[:9]}.json", json.dumps({**llama, key: odd}).encode(), INSPECT + " --dim seq=8"


def rows():
    header = "gpu,framework,precision,model,batch,latency_ms\n"
    row = "T4,pytorch-eager,fp32,resnet18,{},{}\n"
    for batch, latency in ((1, 1e308), (1, 5e-324), (1, "nan"), (1, "inf"), (1, "-1"), (2**63 - 1, 1), (2**64, 1), ("0x10", 1), (10**12, 1), ("1" * 100_000, 1)):
        yield f"row_{str(batch)[:20]}_{latency}.csv", (header + row.format(batch, latency)).encode(), "validate {file}"
    for name, content in (("quotes", '"' * 900_000), ("quote", header + '"' + "x" * 900_000), ("bom", "\ufeff" + header), ("returns", header.replace("\n", "\r") * 9),
                          ("twice", header + header), ("commas", header + "," * 900_000), ("short", header + "T4\n" * 200_000)):
        yield f"{name}.csv", content.encode(), "validate {file}"
    yield "one_line.csv", (header + "," * 60_000_000).encode(), "validate {file}"  # cells that are kept are 1 GB
    yield "anchor_least.csv", (header + row.format(1, 5e-324)).encode(), "predict resnet18 --device t4 --batch 1 --anchor {file}"


def archives():
    model = json.dumps({"graph_module": {}})
    whole = pt2(model)
    for cut in (1, 4, 22, len(whole) // 2, len(whole) - 1):
        yield f"cut{cut}.pt2", whole[:cut], INSPECT
    for at in (6, 8, 14, 18, 22, 26, 28, -22 + 10, -22 + 12, -22 + 16):
        damaged = bytearray(whole)
        damaged[at:at + 2] = b"\xff\xff"
        yield f"damaged{at}.pt2", bytes(damaged), INSPECT
    yield "many.pt2", archive({f"m/{i}": "" for i in range(8000)}), INSPECT
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as out:
        for i in range(3):
            out.writestr(f"m{i}/models/model.json", model)
    yield "twice.pt2", twice.getvalue(), INSPECT
    for name, member in (("parent", "../../models/model.json"), ("root", "/models/model.json"), ("long", "m/" * 20_000 + "model.json"), ("none", "m/x")):
        yield f"{name}.pt2", archive({member: model}), INSPECT
    for name, graph in (("numbers", {"graph": {"nodes": 2**63 - 1}}), ("nodes", {"graph": {"nodes": [{}] * 5000}}), ("deep", {"graph": [[[[[[[[[[]]]]]]]]]]}),
                        ("text", {"graph": "x"}), ("null", {"graph": None})):
        yield f"graph_{name}.pt2", pt2(json.dumps({"graph_module": graph, "schema_version": {"major": 8, "minor": 2}})), INSPECT


def files_of_data():
    device = json.loads((DATA / "devices" / "t4.json").read_text())
    for key in device:
        for odd in (2**63 - 1, -1, 0, 5e-324, 1e308, "x" * 100_000, [[]]) if key not in ("notes", "sources") else ([[]],):
            changed = {**device[key], "value": odd} if isinstance(device[key], dict) and "value" in device[key] else odd
            yield f"device_{key}_{str(odd)[:9]}.json", json.dumps({**device, key: changed}).encode(), "predict resnet18 --batch 1 --device {file}"
    for option in ("--profile", "--framework-profile", "--anchor"):
        for name, content in (("brackets", b"[" * 900_000), ("nul", b"\0" * 900_000), ("number", b"1e999999999"), ("text", b'"' + b"\\u0000" * 100_000 + b'"')):
            yield f"{name}{option}.json", content, "predict resnet18 --batch 1 --device t4 " + option + " {file}"
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "pid": 0, "tid": 0}
    for key in ("ts", "dur", "tid", "name"):
        for odd in (2**63 - 1, -2**63, 1e308, "x" * 50_000, [[]]):
            trace = {"traceEvents": [{**event, key: odd}, {**event, "cat": "cpu_op", key: odd}] * 50}
            yield f"trace_{key}_{str(odd)[:9]}.json", json.dumps(trace).encode(), "validate resnet18 --kineto {file} --device t4 --batch 1"
    for name, content in (("archs_long", "arch\n" + "1-" * 400_000), ("archs_many", "arch\n" + "0-0-0\n" * 100_000), ("archs_none", "arch\n")):
        yield f"{name}.csv", content.encode(), "nas {file} --space fbnet --device t4 --batch 1"


OPTIONS = (
    ("predict resnet18 --device t4 --batch {}", (2**63 - 1, "1:9223372036854775807:x2", "1:9223372036854775807:+1", "1:1000000000", "1," * 20000 + "1", "-1", "1e9", "0x10", "")),
    ("predict bert --device t4 --batch 1 --dim seq={}", (2**63 - 1, 2**31, 10**6, 0, -1, "1:2:3")),
    ("predict resnet18 --device t4 --batch 1 --shapes x:{}", ("9223372036854775807x3x224x224", "x", "1x", "1x3x0x0", "((((((1))))))x3x9x9", "batch^9x3x9x9")),
    ("predict resnet18 --device t4 --batch 1 --padding {}", (2, "nan", "-0.5")),
    ("predict resnet18 --device t4 --batch 1 --measured {}", ("1e308s", "5e-324s", "nan", "0ms", "1" * 5000 + "ms")),
    ("predict resnet18 --device t4 --batch 1 --max-nodes {}", (0, 2**64 - 1, 2**64, -1)),
    ("predict resnet18 --device t4 --batch 1 --max-bytes {}", (0, 2**64 - 1)),
    ("generate llama-3-8b --device h100-sxm5-80gb --batch 1 --prompt 8 --new-tokens {}", (2**63 - 1, 2**40, 0, -1)),
    ("generate llama-3-8b --device h100-sxm5-80gb --batch 1 --new-tokens 8 --prompt {}", (2**63 - 1, 2**40, 0)),
    ("generate llama-3-8b --device h100-sxm5-80gb --prompt 8 --new-tokens 8 --batch {}", (2**63 - 1, 2**40)),
    ("generate llama-3-8b --device h100-sxm5-80gb --batch 1 --prompt 8 --new-tokens 8 --tp {}", (2**63 - 1, 3, 0, -1, 10**6)),
    ("serve llama-3-8b --device h100-sxm5-80gb --framework vllm --prompt 8 --new-tokens 8 --count 20 --rate {}", ("1e308", "5e-324", "nan", "-1", "0")),
    ("serve llama-3-8b --device h100-sxm5-80gb --framework vllm --prompt 8 --new-tokens 8 --rate 1 --count {}", (2**63 - 1, 10**9, 0, -1)),
    ("serve llama-3-8b --device h100-sxm5-80gb --framework vllm --rate 1 --count 20 --new-tokens 8 --prompt {}", (2**63 - 1, 10**9, 0)),
    ("serve llama-3-8b --device h100-sxm5-80gb --framework vllm --rate 1 --count 20 --prompt 8 --new-tokens {}", (2**63 - 1, 10**9)),
    ("serve llama-3-8b --device h100-sxm5-80gb --framework vllm --rate 1 --count 20 --prompt 8 --new-tokens 8 {}",
     ("--max-num-seqs 9223372036854775807", "--max-num-batched-tokens 9223372036854775807", "--max-num-batched-tokens 1", "--spread 1e308", "--spread nan",
      "--shared-prefix 2", "--slo ttft=0s --find-rate", "--slo ttft=1e308s --find-rate", "--concurrency 9223372036854775807")),
    ("serve resnet18 --device t4 --rate 10 --count 20 --max-batch {}", (2**63 - 1, 0, -1)),
    ("headroom resnet18 --device t4 --budget {}", ("1e308%", "nan", "-5%", "0%", "999%")),
    ("explore resnet18 --device t4 --html page.html --batch {}", ("1:1000000:+1", "1:9223372036854775807:x2")),
    ("explore bert --device t4 --html page.html --over seq={}", ("1:1000000:+1", "0")),
    ("compare resnet18 --device t4 --batch 1 --price {}", ("nan", "-1", "1e308")),
    ("inspect resnet18 --batch 1 --depth {}", (2**63 - 1, -1)),
)


def options():
    for command, odd in OPTIONS:
        for one in odd:
            yield None, b"", command.format(one)


def generated():
    for kind in (single_nodes, texts, configs, rows, archives, files_of_data, options):
        for name, content, command in kind():
            yield name and re.sub(r"[^\w.-]", "_", name), content, command, None, ""
