"""Small inputs that ask for endless work, memory or a crash: each ends in time with an exit code and words.

    hostile_test.py FTAX [torch] [--keep FOLDER]      # torch: the build reads TorchScript

Every case is a command whose file the generator below writes. Whatever it ends in: no signal, no silence where it fails, at most SECONDS
and BYTES. Most also state the exit code and a part of the message.
"""
import io
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import zipfile
from itertools import chain
from pathlib import Path

SECONDS = 10  # of the processor: others may use the machine
BYTES = 1 << 30
LEAST = "(-9223372036854775807-1)"


# ---- ONNX, written as protobuf bytes: field numbers of onnx.proto

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(op, inputs, outputs, *attributes, domain=""):
    return (b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs) + field(4, op)
            + b"".join(field(5, a) for a in attributes) + (field(7, domain) if domain else b""))


def attribute(name, value):
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + field(6, value) + field(20, 5)  # a graph


def tensor(name, dims, data_type=1, raw=b""):
    return b"".join(field(1, d) for d in dims) + field(2, data_type) + field(8, name) + (field(9, raw) if raw else b"")


def value(name, dims=None, data_type=1):
    if dims is None:
        return field(1, name)
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, data_type) + field(2, shape)))


def graph(nodes, inputs, outputs, tensors=()):
    return (b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, t) for t in tensors)
            + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))


def onnx(*graph_parts, functions=(), domain=""):
    opsets = field(8, field(1, "") + field(2, 17)) + (field(8, field(1, domain) + field(2, 1)) if domain else b"")
    return field(1, 8) + opsets + field(7, graph(*graph_parts)) + b"".join(field(25, f) for f in functions)


def int64(name, *numbers):
    return tensor(name, [len(numbers)] if len(numbers) != 1 else [], 7, struct.pack(f"<{len(numbers)}q", *numbers))


def loop(trips, body, tensors=()):
    """A Loop over one carried tensor v, whose body returns w."""
    inner = graph(body, [value("i"), value("c"), value("v")], [value("c"), value("w")], tensors)
    return onnx([node("Loop", ["trips", "", "x"], ["y"], attribute("body", inner))], [value("x", [4])], [value("y")],
                [int64("trips", trips)])


def nest(depth, trips):
    nodes = [node("Relu", [f"v{depth}"], [f"w{depth}"])]
    for level in range(depth, 0, -1):
        inner = graph(nodes, [value(f"i{level}"), value(f"c{level}"), value(f"v{level}")], [value(f"c{level}"), value(f"w{level}")])
        outer = ("x", "y") if level == 1 else (f"v{level - 1}", f"w{level - 1}")
        nodes = [node("Loop", ["trips", "", outer[0]], [outer[1]], attribute("body", inner))]
    return onnx(nodes, [value("x", [4])], [value("y")], [int64("trips", trips)])


def scan(length):
    inner = graph([node("Relu", ["item"], ["result"])], [value("item")], [value("result")])
    return onnx([node("Scan", ["x"], ["y"], attribute("body", inner), attribute("num_scan_inputs", 1))],
                [value("x", [length, 4])], [value("y")])


def functions(depth, width):
    made = []
    for level in range(depth):
        callee = ("Relu", "") if level == depth - 1 else (f"f{level + 1}", "local")
        nodes = [node(callee[0], [f"a{i}"], [f"a{i + 1}"], domain=callee[1]) for i in range(width)]
        made.append(field(1, f"f{level}") + field(4, "a0") + field(5, f"a{width}") + b"".join(field(7, n) for n in nodes)
                    + field(9, field(1, "") + field(2, 17)) + field(9, field(1, "local") + field(2, 1)) + field(10, "local"))
    return onnx([node("f0", ["x"], ["y"], domain="local")], [value("x", [4])], [value("y")], functions=made, domain="local")


def ifs(count):
    branch = graph([node("Relu", ["x"], ["t"])], [], [value("t")])
    nodes = [node("If", ["c"], [f"y{i}"], attribute("then_branch", branch), attribute("else_branch", branch)) for i in range(count)]
    return onnx(nodes, [value("x", [4]), value("c", [], 9)], [value(f"y{i}") for i in range(count)])


def sequences(count):
    nodes = []
    for i in range(count):
        nodes += [node("SplitToSequence", ["x"], [f"s{i}"]), node("ConcatFromSequence", [f"s{i}"], [f"y{i}"], attribute("axis", 0))]
    return onnx(nodes, [value("x", [500, 4])], [value(f"y{i}") for i in range(count)])


def squares(count):
    """Every node multiplies the value of a shape by itself and a new symbol."""
    nodes = [node("Shape", ["x"], ["s0"])]
    nodes += [node("Mul" if i % 2 else "Add", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(count)]
    nodes += [node("Expand", ["one", f"s{count}"], ["y"])]
    return onnx(nodes, [value("x", ["a", "b", "c"])], [value("y")], [tensor("one", [1, 1, 1])])


def text_graph(shape):
    return f"input %x f32[{shape}]\n%y f32[{shape}] = pointwise(%x) {{function=\"relu\"}}\noutput %y\n".encode()


# ---- archives

def archive(members, compression=zipfile.ZIP_STORED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return packed.getvalue()


def pt2(model_json, **kwargs):
    return archive({"m/archive_format": "pt2", "m/archive_version": "0", "m/models/model.json": model_json}, **kwargs)


def torchscript(code, data=None, constants=None, compression=zipfile.ZIP_STORED):
    """A program of one module M with the given methods; `data` and `constants` are pickles."""
    data = data or b"\x80\x02c__torch__\nM\nq\x00)\x81}(X\x08\x00\x00\x00trainingq\x01\x89ubq\x02."
    source = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n" + code
    return archive({"m/version": "3\n", "m/data.pkl": data, "m/constants.pkl": constants or b"\x80\x02).",
                    "m/code/__torch__.py": source}, compression)


def forward(*lines):
    return "  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n" + "".join(f"    {line}\n" for line in lines)


ENDLESS = "for i in range(1000000000):"
LOOPED = {
    "range": ["n = 0", ENDLESS, "  n = torch.add(n, i)", "return torch.mul(x, n)"],
    "set": ["l = [0]", ENDLESS, "  _0 = torch.append(l, i)", "return torch.mul(x, torch.len(l))"],
    "dict": ["d = annotate(Dict[int, int], {})", ENDLESS, "  torch._set_item(d, i, i)", "return torch.mul(x, torch.len(d))"],
    "dict_search": ["d = annotate(Dict[int, int], {})", "n = 0", ENDLESS, "  torch._set_item(d, i, i)",
                    "  if torch.__contains__(d, i):", "    n = torch.add(n, 1)", "  else:", "    n = n", "return torch.mul(x, n)"],
    "text": ["s = \"a\"", "for i in range(100):", "  s = torch.add(s, s)", "return torch.mul(x, torch.len(s))"],
    "nested": ["n = 0", "for i in range(100000):", "  for j in range(100000):", "    n = torch.add(n, j)", "return torch.mul(x, n)"],
    "operators": ["y = x", ENDLESS, "  y = torch.relu(y)", "return y"],
}


def cases(torch):
    """(name of the file or None, its bytes, command, exit code or None, words)"""
    inspect = "inspect {file} --batch 2"
    dead = [node("Relu", ["v"], ["w"])] + [node("Exp", ["v"], [f"d{i}"]) for i in range(1000)]
    yield "loop_dead.onnx", loop(10**6, dead), inspect, 4, "Loop"
    yield "loop_long.onnx", loop(10**6, [node("Relu", ["v"], ["w"])]), inspect, 4, "Loop"
    yield "loop_initialisers.onnx", loop(10**6, dead[:1], [tensor(f"w{i}", [3]) for i in range(1000)]), inspect, 4, "Loop"
    yield "loop_least.onnx", loop(-2**63, dead[:1]), inspect, None, ""
    yield "loop_most.onnx", loop(2**63 - 1, dead[:1]), inspect, None, ""
    for depth, trips in ((3, 1000), (60, 2)):
        yield f"nest{depth}.onnx", nest(depth, trips), inspect, 4, "Loop"
    yield "scan.onnx", scan(10**7), inspect, 4, "Scan"
    yield "functions.onnx", functions(10, 10), inspect, 4, "--max-nodes"
    yield "ifs.onnx", ifs(10000), inspect, None, ""
    yield "sequences.onnx", sequences(20000), inspect, 4, "SplitToSequence"
    yield "squares.onnx", squares(2000), inspect, 4, ""
    divided = onnx([node("Shape", ["x"], ["s"]), node("Mul", ["s", "zero"], ["z"]), node("Add", ["z", "least"], ["l"]),
                    node("Div", ["l", "minus"], ["d"]), node("Expand", ["one", "d"], ["y"])], [value("x", ["n"])], [value("y")],
                   [int64("zero", 0), int64("least", -2**63), int64("minus", -1), tensor("one", [1])])
    yield "least.onnx", divided, "inspect {file} --dim n=3", None, ""
    yield "least_dim.onnx", onnx([node("Relu", ["x"], ["y"])], [value("x", [f"{LEAST}//(-1)"])], [value("y")]), inspect, None, ""
    yield "least.txt", text_graph(f"batch, {LEAST}//(-1)"), inspect, 4, "overflow"
    yield None, b"", f"predict resnet18 --device t4 --batch 2 --shapes x:batchx{LEAST}//(-1)x3x3", None, ""
    yield "symbols.txt", text_graph("+".join(f"s{i}" for i in range(40000))), inspect, 4, ""
    yield "symbols.onnx", onnx([node("Relu", ["x"], ["y"])], [value("x", ["*".join(f"(a{i}+1)" for i in range(4000))])],
                               [value("y")]), inspect, 4, ""
    # JSON: of .pt2 files, config.json
    for name, text in (("spaces", " " * 20_000_000), ("brackets", "[" * 20_000_000), ("spaced", "{" + " " * 20_000_000),
                       ("digits", "{\"a\": " + "9" * 20_000_000), ("quote", "\"" + "x" * 20_000_000)):
        yield f"{name}.pt2", pt2(text, compression=zipfile.ZIP_DEFLATED), inspect, None, ""
        yield f"{name}.json", text.encode(), inspect, None, ""
    listed = json.dumps({"model_type": "llama", "num_hidden_layers": 1000, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
                         "intermediate_size": 64, "quantization_config": {"quant_method": "awq", "bits": 4, "modules_to_not_convert":
                                                                          [f"m{i}" for i in range(10000)]}})
    yield "listed.json", listed.encode(), inspect + " --dim seq=8", None, ""
    for key in ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "intermediate_size"):
        for number in (10**6, 10**9, 2**63 - 1, -2**63, 0, -1):
            config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
                      "intermediate_size": 64, key: number}
            yield f"{key}{number}.json", json.dumps(config).encode(), inspect + " --dim seq=8", None, ""
    # measurements
    columns = ",".join(f"c{i}" for i in range(50000))
    yield "columns.csv", (f"gpu,framework,precision,model,batch,latency_ms,{columns}\n"
                          + "\n".join("T4,pytorch-eager,fp32,resnet18,1,3" + "," * 50000 for _ in range(4))).encode(), "validate {file}", None, ""
    rows = "\n".join(f"T4,pytorch-eager,fp32,m{i},1,3" for i in range(10000))
    yield "models.csv", f"gpu,framework,precision,model,batch,latency_ms\n{rows}\n".encode(), "validate {file}", None, ""
    yield None, b"", "predict resnet18 --device t4 --batch 1 --anchor /dev/zero", None, "/dev/zero"
    yield None, b"", "validate /dev/zero", None, "/dev/zero"
    yield None, b"", "predict /dev/zero --device t4 --batch 1", 2, "device"
    for repeated in (True, False):
        rows = "".join(f"T4,pytorch-eager,fp32,resnet18,{1 if repeated else i},3\n" for i in range(1, 100_000))
        yield "anchors.csv", f"gpu,framework,precision,model,batch,latency_ms\n{rows}".encode(), "predict resnet18 --device t4 --batch 1 --anchor {file}", 4, "20000 anchor rows"
    yield "header.csv", b",".join([b"gpu"] * 300000), "validate {file}", None, ""
    # bombs
    for size in (1 << 30, 1 << 28):
        yield f"bomb{size}.pt2", pt2(b" " * size, compression=zipfile.ZIP_DEFLATED), inspect, 4, "model.json"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_BZIP2) as out:
        out.writestr("m/models/model.json", b"\0" * (1 << 30))
    yield "bzip2.pt2", packed.getvalue(), inspect, None, ""
    yield "bomb.pt", archive({"m/version": "3\n", "m/data.pkl": b"\0" * (1 << 30), "m/code/__torch__.py": ""},
                             zipfile.ZIP_DEFLATED), inspect, None, ""
    yield "pickle.pt", b"\x80\x02X\xff\xff\xff\x7f", inspect, 3, "pickle"
    if not torch:
        return
    script = "inspect {file} --batch 2 --input float:batchx4"
    for name, lines in LOOPED.items():
        yield f"{name}.pt", torchscript(forward(*lines)), script, None if name == "text" else 4, ""
    yield "deep_expression.pt", torchscript(forward("return " + "(" * 20000 + "x" + ")" * 20000)), script, None, "deep_expression.pt"
    yield "deep_calls.pt", torchscript(forward("return " + "torch.neg(" * 20000 + "x" + ")" * 20000)), script, None, "deep_calls.pt"
    yield "deep_minus.pt", torchscript(forward("return " + "-" * 100000 + "x")), script, None, "deep_minus.pt"
    blocks = ["  " * i + "if True:" for i in range(5000)] + ["  " * 5000 + "y = x", "return x"]
    yield "deep_blocks.pt", torchscript(forward(*blocks), compression=zipfile.ZIP_DEFLATED), script, None, "deep_blocks.pt"
    yield "deep_types.pt", torchscript(forward("a = annotate(" + "List[" * 20000 + "int" + "]" * 20000 + ", [])", "return x")), script, None, ""
    yield "deep_pickle.pt", torchscript(forward("return x"), b"\x80\x02" + b"(" * 10**6 + b"l" * 10**6 + b"."), script, None, "deep_pickle.pt"
    yield "nested_tuples.pt", torchscript(forward("return x"), constants=b"\x80\x02)" + b"\x85" * 10**6 + b"."), script, None, ""
    yield "constant.pt", torchscript(forward("return torch.add(x, CONSTANTS.c99999)")), script, None, "constant.pt"
    yield "constant_least.pt", torchscript(forward("return torch.add(x, CONSTANTS.c-1)")), script, None, "constant_least.pt"
    for name, pickle in (("text", b"X\xff\xff\xff\x7f"), ("long", b"\x8b\xff\xff\xff\x7f"), ("text4", b"\x8d" + b"\xff" * 7 + b"\x7f"),
                         ("bytes", b"B\xff\xff\xff\x7f"), ("get", b"j\xff\xff\xff\x7f"), ("put", b")r\xff\xff\xff\x7f"), ("frame", b"\x95" + b"\xff" * 8)):
        for place in ("data", "constants"):
            yield f"{place}_{name}.pt", torchscript(forward("return x"), **{place: b"\x80\x02" + pickle + b"."}), script, None, f"{place}_{name}.pt"
    yield "empty_stack.pt", torchscript(forward("return x"), b"\x80\x02" + b"0" * 100 + b"."), script, None, "empty_stack.pt"
    yield "no_state.pt", torchscript(forward("return self.nothing"), b"\x80\x02."), script, None, "no_state.pt"


def run(ftax, command, folder):
    """Exit code, errors, seconds of the processor and largest memory of one run, which is stopped after twice the time."""
    child = subprocess.Popen([ftax, *command.split()], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS)))
    errors = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, errors, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def complaint(code, errors, seconds, memory, right, words):
    if code < 0:
        return f"signal {-code}"
    if code and not errors.strip():
        return f"exit {code} without words"
    if code not in (0, 2, 3, 4, 5, 6) or right not in (None, code):
        return f"exit {code}, not {right}: {errors.strip()[:200]}"
    if code and words not in errors:
        return f"does not say '{words}': {errors.strip()[:200]}"
    if code and any(raw in errors for raw in ("std::", "bad_alloc", "basic_string", "vector::", ".find(")):
        return f"says it in the words of C++: {errors.strip()[:200]}"
    if seconds > SECONDS:
        return f"takes {seconds:.1f} s"
    return f"takes {memory >> 20} MB" if memory > BYTES else ""


def main(ftax, torch, folder, verbose):
    from generated_cases import generated
    failed = 0
    for name, content, command, right, words in chain(cases(torch), generated()):
        if name:
            (Path(folder) / name).write_bytes(content)
        command = command.format(file=name)
        ended = run(ftax, command, folder)
        what = complaint(*ended, right, words)
        failed += bool(what)
        if what or verbose:
            print(f"{ended[2]:5.1f} s {ended[3] >> 20:5} MB {ended[0]:3} ftax {command}\n    {what or ended[1].strip()[:150]}", flush=True)
        if name and not verbose:
            (Path(folder) / name).unlink()
    return failed > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        keep = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None
        sys.exit(main(str(Path(sys.argv[1]).resolve()), "torch" in sys.argv[2:], keep or temporary, bool(keep)))
