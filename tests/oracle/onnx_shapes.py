"""Random single operators of ONNX with the types and shapes that ONNX Runtime computes, for values_test.cpp.

    onnx_shapes.py > onnx_shapes.tsv      # written with onnxruntime 1.32

A line has the opset, the type and shape of the input x, the operators in ONNX's text format, constants before the one that yields y, and
the type and shape of y.
"""
import random

import numpy as np
import onnx.parser
import onnxruntime

draw = random.Random(2)
NAMES = {np.dtype("float32"): "f32", np.dtype("float64"): "f64", np.dtype("float16"): "f16", np.dtype("int64"): "i64", np.dtype("int32"): "i32",
         np.dtype("bool"): "bool", np.dtype("uint8"): "u8"}
ONNX_TYPES = {"f32": "float", "i64": "int64", "bool": "bool"}


def some(*choices):
    return draw.choice(choices)


def yes():
    return draw.random() < 0.5


def ints(values):
    return f"[{', '.join(map(str, values))}]"


class Operators:
    def __init__(self):
        self.lines = []

    def constant(self, values, kind="int64"):
        values = np.asarray(values)
        name = f"c{len(self.lines)}"
        shape = ints(values.shape) if values.shape else ""
        numbers = ", ".join(f"{float(v):.2f}" if kind == "float" else str(int(v)) for v in values.flatten())
        self.lines.append(f"{name} = Constant <value = {kind}{shape} {{{numbers}}}> ()")
        return name

    def zeros(self, shape, kind="float"):
        name = f"c{len(self.lines)}w"
        self.lines.append(f"{name} = ConstantOfShape <value = {kind}[1] {{{'0.0' if kind == 'float' else '0'}}}> ({self.constant(shape)})")
        return name

    def result(self, op, inputs, attributes=None, outputs="y"):
        given = ", ".join(f"{name} = {value}" for name, value in (attributes or {}).items() if value is not None)
        self.lines.append(f"{outputs} = {op} {f'<{given}> ' if given else ''}({', '.join(inputs)})")


def convolution(o):
    d, groups = draw.randint(1, 3), draw.randint(1, 2)
    x = [draw.randint(1, 2), 2 * groups] + [draw.randint(5, 8) for _ in range(d)]
    kernel = [draw.randint(1, 3) for _ in range(d)]
    strides, dilations = [draw.randint(1, 3) for _ in range(d)], [draw.randint(1, 2) for _ in range(d)]
    pads = [draw.randint(0, 2) for _ in range(2 * d)]
    auto = some(None, None, '"SAME_UPPER"', '"SAME_LOWER"', '"VALID"')
    if auto and "SAME" in auto:
        dilations, strides = [1] * d, [min(s, k) for s, k in zip(strides, kernel)]
    attributes = {"auto_pad": auto, "group": groups, "strides": ints(strides), "dilations": ints(dilations), "pads": None if auto else ints(pads)}
    if yes():
        o.result("Conv", ["x", o.zeros([3 * groups, 2] + kernel)], attributes)
    else:
        attributes["output_padding"] = ints([draw.randint(0, max(s, t) - 1) for s, t in zip(strides, dilations)]) if yes() and not auto else None
        if not auto and draw.random() < 0.3:  # the sizes alone
            attributes["output_shape"], attributes["pads"] = ints([(n - 1) * s + 1 + draw.randint(0, 2) for n, s in zip(x[2:], strides)]), None
        o.result("ConvTranspose", ["x", o.zeros([2 * groups, 3] + kernel)], attributes)
    return 17, "f32", x


def product(o):
    m, k, n = (draw.randint(1, 4) for _ in range(3))
    if yes():
        a, b = yes(), yes()
        inputs = ["x", o.zeros([n, k] if b else [k, n])] + ([o.zeros(some([n], [1], [m, 1], [1, n], [m, n]))] if yes() else [])
        o.result("Gemm", inputs, {"transA": int(a), "transB": int(b), "alpha": some(None, "0.5"), "beta": some(None, "0.5")})
        return 17, "f32", [k, m] if a else [m, k]
    o.result("MatMul", ["x", o.zeros(some([k], [k, n], [2, k, n], [3, 1, k, n]))])
    return 17, "f32", some([k], [m, k], [2, m, k], [1, 2, m, k])


def sums(o):
    b, i, j, k = 2, 3, 4, 5
    equation, x, w = some(("bij,bjk->bik", [b, i, j], [b, j, k]), ("bij,bjk", [b, i, j], [b, j, k]), ("ij,kj", [i, j], [k, j]),
                          ("bij,bkj->bki", [b, i, j], [b, k, j]), ("...ij,jk->...ik", [b, 2, i, j], [j, k]), ("ij,jk->ki", [i, j], [j, k]),
                          ("bi,bi->b", [b, i], [b, i]), ("i,j->ij", [i], [j]), ("bij,bij->bi", [b, i, j], [b, i, j]), ("bij,k->bijk", [b, i, j], [k]),
                          ("bhid,bhjd->bhij", [b, 2, i, k], [b, 2, j, k]), ("bhij,bhjd->bihd", [b, 2, i, j], [b, 2, j, k]))
    o.result("Einsum", ["x", o.zeros(w)], {"equation": f'"{equation}"'})
    return 17, "f32", x


def recurrence(o):
    op, gates = some(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    hidden, wide, batch, steps = (draw.randint(1, 4) for _ in range(4))
    direction = some(None, '"forward"', '"reverse"', '"bidirectional"')
    d = 2 if direction == '"bidirectional"' else 1
    outputs = some("y", "s, y") if op != "LSTM" else some("y", "s, y", "s, h, y")
    o.result(op, ["x", o.zeros([d, gates * hidden, wide]), o.zeros([d, gates * hidden, hidden])],
             {"hidden_size": hidden, "direction": direction}, outputs)
    return 17, "f32", [steps, batch, wide]


def signals(o):
    n = draw.randint(4, 9)
    kind = some("DFT", "DFT20", "STFT", "window", "mel")
    if kind.startswith("DFT"):
        x = [2, n, draw.randint(3, 6), 1]
        once = draw.randint(0, 1)
        length = o.constant(n + 1) if yes() else ""
        if kind == "DFT":
            o.result("DFT", ["x", length] if length else ["x"], {"onesided": once, "axis": some(None, 1, 2)})
            return 17, "f32", x
        where = [o.constant(some(1, 2, -3, -2))] if yes() else []
        o.result("DFT", ["x", length] + where if length or where else ["x"], {"onesided": once})
        return 20, "f32", x
    if kind == "STFT":
        o.result("STFT", ["x", o.constant(draw.randint(1, 3)), "", o.constant(4)], {"onesided": some(None, 0, 1)})
        return 17, "f32", [2, 4 * n, 1]
    if kind == "window":
        o.result(some("HannWindow", "HammingWindow", "BlackmanWindow"), [o.constant(n)], {"output_datatype": some(None, 1, 11), "periodic": some(None, 0)})
    else:
        o.result("MelWeightMatrix", [o.constant(3), o.constant(2 * n), o.constant(8000), o.constant(0.0, "float"), o.constant(4000.0, "float")])
    return 17, "f32", [1]


def chance(o):
    x = [draw.randint(1, 4) for _ in range(2)]
    kind = some("Bernoulli", "RandomUniformLike", "RandomNormalLike", "Multinomial", "RandomNormal", "EyeLike")
    if kind == "Multinomial":
        o.result(kind, ["x"], {"sample_size": draw.randint(1, 5), "dtype": some(None, 6, 7)})
    elif kind == "RandomNormal":
        o.result(kind, [], {"shape": ints(x), "dtype": some(None, 1, 11)})
    else:
        o.result(kind, ["x"], {"dtype": some(None, 1, 11)})
    return 17, "f32", x


def reductions(o):
    x = [draw.randint(1, 4) for _ in range(draw.randint(1, 4))]
    rank = len(x)
    axes = [a - rank if yes() else a for a in draw.sample(range(rank), draw.randint(0, rank))]
    kind = some("ArgMax", "TopK", "old", "old", "new", "Softmax", "CumSum")
    if kind == "ArgMax":
        o.result(some("ArgMax", "ArgMin"), ["x"], {"axis": some(None, draw.randint(-rank, rank - 1)), "keepdims": some(None, 0, 1)})
    elif kind == "TopK":
        axis = draw.randint(-rank, rank - 1)
        o.result("TopK", ["x", o.constant([draw.randint(1, x[axis])])], {"axis": axis}, some("y, i", "v, y"))
    elif kind == "old":
        o.result(some("ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd"), ["x"],
                 {"axes": ints(axes) if axes else None, "keepdims": some(None, 0, 1)})
    elif kind == "new":
        o.result(some("ReduceMean", "ReduceMax", "ReduceSum"), ["x", o.constant(axes)] if axes else ["x"],
                 {"keepdims": some(None, 0, 1), "noop_with_empty_axes": some(None, 1)})
        return 18, "f32", x
    elif kind == "Softmax":
        o.result(some("Softmax", "LogSoftmax", "Hardmax"), ["x"], {"axis": some(None, draw.randint(-rank, rank - 1))})
    else:
        o.result("CumSum", ["x", o.constant(draw.randint(-rank, rank - 1))])
    return 17, "f32", x


def movements(o):
    x = [draw.randint(1, 4) for _ in range(draw.randint(2, 4))]
    rank = len(x)
    axis = draw.randint(-rank, rank - 1)
    kind = some("Gather", "GatherElements", "Pad", "Resize", "Flatten", "OneHot", "SpaceToDepth", "DepthToSpace", "Split", "Trilu", "Slice", "Concat",
                "Compress", "ReverseSequence", "Unsqueeze", "Tile", "GatherND")
    if kind == "Gather":
        o.result(kind, ["x", o.zeros([draw.randint(1, 3) for _ in range(draw.randint(1, 2))], "int64")], {"axis": some(None, axis)})
    elif kind == "GatherElements":
        o.result(kind, ["x", o.zeros([draw.randint(1, d) for d in x], "int64")], {"axis": axis})
    elif kind == "GatherND":
        o.result(kind, ["x", o.zeros([2, draw.randint(1, 3), draw.randint(1, rank)], "int64")])
    elif kind == "Pad":
        o.result(kind, ["x", o.constant([draw.randint(0, 2) for _ in range(2 * rank)])])
    elif kind == "Resize":
        scales = [some(1.0, 2.0, 1.5, 0.5) if d > 1 else 1.0 for d in x]
        o.result(kind, ["x", "", o.constant(scales, "float")] if yes() else ["x", "", "", o.constant([max(1, int(d * s)) for d, s in zip(x, scales)])])
    elif kind == "Flatten":
        o.result(kind, ["x"], {"axis": some(None, axis, rank)})
    elif kind == "OneHot":
        o.lines.append("i = Cast <to = 7> (x)")
        o.result(kind, ["i", o.constant(draw.randint(2, 5)), o.constant([0.0, 1.0], "float")], {"axis": some(None, draw.randint(-rank - 1, rank))})
    elif kind in ("SpaceToDepth", "DepthToSpace"):
        o.result(kind, ["x"], {"blocksize": 2})
        x = [1, 8, 4, 2 * draw.randint(1, 3)]
    elif kind == "Split":
        if yes():
            left = draw.randint(0, x[axis])
            o.result(kind, ["x", o.constant([left, x[axis] - left])], {"axis": axis}, some("y, r", "r, y"))
        else:
            x[axis] = draw.randint(2, 7)
            o.result(kind, ["x"], {"axis": axis, "num_outputs": 2}, some("y, r", "r, y"))
            return 18, "f32", x
    elif kind == "Slice":
        o.result(kind, ["x", o.constant([some(-3, -1, 0, 1)]), o.constant([some(-9, -1, 0, 2, 9)]), o.constant([axis]), o.constant([some(1, 2, -1, -2)])])
    elif kind == "Concat":
        o.result(kind, ["x"] * draw.randint(1, 3), {"axis": axis})
    elif kind == "Compress":
        o.result(kind, ["x", o.constant([1, 0, 1][:max(1, x[axis])], "bool")], {"axis": axis})
    elif kind == "ReverseSequence":
        o.result(kind, ["x", o.constant([1] * x[1])])
    elif kind == "Unsqueeze":
        o.result(kind, ["x", o.constant(draw.sample(range(-rank - 2, 0), 2))])
    elif kind == "Tile":
        o.result(kind, ["x", o.constant([draw.randint(0, 3) for _ in x])])
    else:
        o.result(kind, ["x"], {"upper": some(None, 0)})
    return 17, "f32", x


def pools(o):
    d = draw.randint(1, 3)
    x = [draw.randint(1, 2), 2] + [draw.randint(4, 8) for _ in range(d)]
    kernel = [draw.randint(1, 3) for _ in range(d)]
    op = some("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
    if op.startswith("Global"):
        o.result(op, ["x"])
        return 17, "f32", x
    auto = some(None, None, None, '"SAME_UPPER"', '"SAME_LOWER"', '"VALID"')
    pads = [draw.randint(0, k - 1) for k in kernel + kernel]
    o.result(op, ["x"], {"kernel_shape": ints(kernel), "strides": some(None, ints([draw.randint(1, 3) for _ in kernel])), "auto_pad": auto,
                         "pads": None if auto else ints(pads), "ceil_mode": None if auto or op == "LpPool" else some(None, 1)})
    return 17, "f32", x


def second_results(o):
    """Results beside the first, and what later operator sets added."""
    kind = some("MaxPool", "MaxPool", "Resize", "Resize", "LayerNormalization", "Dropout", "Tile", "GroupNormalization", "ReduceSum", "Split13")
    if kind == "MaxPool":
        d = draw.randint(1, 3)
        o.result(kind, ["x"], {"kernel_shape": ints([draw.randint(1, 3) for _ in range(d)]), "strides": ints([draw.randint(1, 2)] * d),
                               "ceil_mode": some(None, 1)}, "v, y")
        return 17, "f32", [1, 2] + [draw.randint(4, 8) for _ in range(d)]
    if kind == "Resize":
        x = [1, 2, draw.randint(2, 9), draw.randint(2, 9)]
        sizes = o.constant([draw.randint(2, 20), draw.randint(2, 20)])
        policy = some('"stretch"', '"not_larger"', '"not_smaller"')
        o.result(kind, ["x", "", "", sizes], {"axes": "[2, 3]", "keep_aspect_ratio_policy": policy})
        return 18, "f32", x
    x = [2, draw.randint(1, 2) * 2, 3, draw.randint(1, 4)]
    if kind == "LayerNormalization":
        axis = draw.randint(-3, 3)
        o.result(kind, ["x", o.zeros(x[axis % 4:])], {"axis": axis}, some("v, y", "v, m, y", "y"))
    elif kind == "Dropout":
        o.result(kind, ["x"], outputs=some("v, y", "y"))
    elif kind == "Tile":
        o.result(kind, ["x", o.constant([draw.randint(1, 3) for _ in x])])
    elif kind == "GroupNormalization":
        o.result(kind, ["x", o.zeros([x[1]]), o.zeros([x[1]])], {"num_groups": 2})
        return 21, "f32", x
    elif kind == "ReduceSum":
        o.result(some("ReduceSum", "ReduceSumSquare"), ["x"], {"keepdims": some(None, 0), "axes": ints(draw.sample(range(-4, 0), 2))})
        return 11, "f32", x
    else:
        o.result("Split", ["x"], {"axis": some(1, -3)}, "y, v")
    return 17, "f32", x


KINDS = [convolution, convolution, product, sums, recurrence, signals, chance, reductions, reductions, movements, movements, movements, pools]


def type_of(opset, lines, x):
    body = "\n".join(lines)
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\ng (float[{",".join(map(str, x))}] x) => (float y) {{\n{body}\n}}')
    made.graph.output[0].ClearField("type")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    made = onnx.shape_inference.infer_shapes(made)
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    y = session.run(["y"], {"x": np.full(x, 0.5, np.float32)})[0]
    return f"{NAMES[y.dtype]}[{','.join(map(str, y.shape))}]"


def main():
    seen = set()
    while len(seen) < 850:
        o = Operators()
        opset, _, x = draw.choice(KINDS if len(seen) < 700 else [second_results])(o)
        try:
            y = type_of(opset, o.lines, x)
        except Exception:  # not valid, or without a kernel
            continue
        line = "\t".join([str(opset), ",".join(map(str, x)), "; ".join(o.lines), y])
        if line not in seen:
            seen.add(line)
            print(line)


main()
