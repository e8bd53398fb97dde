"""Random arithmetic on shape values in ONNX's text format, with the shape that ONNX Runtime gives for it, for values_test.cpp.

    onnx_values.py > onnx_values.tsv      # written with onnxruntime 1.32

A line has the operators of a graph whose result y is a ConstantOfShape of what the arithmetic before it yields, and the shape of y.
"""
import random

import numpy as np
import onnx.parser
import onnxruntime

draw = random.Random(1)
TYPES = {np.dtype("int64"): "int64", np.dtype("float32"): "float", np.dtype("bool"): "bool"}


class Program:
    def __init__(self):
        self.lines, self.values = [], []

    def constant(self, array, dtype="int64"):
        array = np.asarray(array, dtype)
        kind = TYPES[array.dtype]
        numbers = ", ".join(f"{float(v):.1f}" if kind == "float" else str(int(v)) for v in array.flatten())
        shape = f"[{','.join(map(str, array.shape))}]" if array.shape else ""
        return self.node("Constant", [], f"value = {kind}{shape} {{{numbers}}}", [array])

    def node(self, op, inputs, attributes="", known=None, outputs=1):
        names = [f"v{len(self.values) + i}" for i in range(outputs)]
        given = f" <{attributes}>" if attributes else ""
        self.lines.append(f"{', '.join(names)} = {op}{given} ({', '.join(inputs)})")
        if known is None:
            known = run(self.lines, names)
        self.values += list(zip(names, known))
        return names[0]

    def pick(self, dtype="int64", least_rank=0, most_rank=3):
        # The latest values come first, so that most steps read the one before.
        fitting = [v for v in self.values if v[1].dtype == np.dtype(dtype) and least_rank <= v[1].ndim <= most_rank and 0 < v[1].size <= 24]
        if not fitting or draw.random() < (0.15 if dtype == "int64" else 0.5):
            shape = [draw.randint(1, 3) for _ in range(draw.randint(least_rank, most_rank))]
            self.constant(np.array([draw.randint(0, 1 if dtype == "bool" else 6) for _ in range(int(np.prod(shape)))]).reshape(shape), dtype)
            return self.values[-1]
        return fitting[-1] if draw.random() < 0.7 else draw.choice(fitting[-4:])


def model(lines, results):
    outputs = ", ".join(f"float[N{i}] {name}" for i, name in enumerate(results))
    body = "\n".join(lines)
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\ng (float[1] x) => ({outputs}) {{\n{body}\n}}')


def run(lines, results):
    made = model(lines, results)
    for output in made.graph.output:
        output.ClearField("type")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(onnx.shape_inference.infer_shapes(made).SerializeToString(), options)
    values = session.run(results, {"x": np.zeros(1, np.float32)})
    assert all(np.isfinite(v).all() for v in values)
    return values


def axis_of(rank):
    return draw.randint(-rank, rank - 1)


def step(p):
    kind = draw.choice(["binary", "binary", "float", "compare", "logic", "slice", "slice", "gather", "gather", "concat", "transpose", "expand",
                        "tile", "split", "reduce", "cumulative", "empty", "nonzero", "range", "scatter", "squeeze", "shape", "size", "reshape", "where"])
    _ = [draw.randint(0, 6) for _ in range(3)]  # keeps the numbers that follow
    if kind == "binary":
        a, b = p.pick(), p.pick()
        p.node(draw.choice(["Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"]), [a[0], b[0]])
    elif kind == "float":
        a = p.node("Cast", [p.pick()[0]], "to = 1")
        b = p.constant(draw.choice([0.5, 0.25, 1.5, 2.0, 3.0]), "float32")
        c = p.node(draw.choice(["Mul", "Div", "Add", "Sub"]), [a, b])
        if draw.random() < 0.8:
            c = p.node(draw.choice(["Ceil", "Floor", "Sqrt", "Round"]), [c])
        p.node("Cast", [c], "to = 7")
    elif kind == "compare":
        p.node(draw.choice(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]), [p.pick()[0], p.pick()[0]])
    elif kind == "logic":
        a, b = p.pick("bool"), p.pick("bool")
        c = p.node(draw.choice(["And", "Or"]), [a[0], b[0]]) if draw.random() < 0.7 else p.node("Not", [a[0]])
        p.node("Cast", [c], "to = 7")
    elif kind == "where":
        p.node("Where", [p.pick("bool")[0], p.pick()[0], p.pick()[0]])
    elif kind == "slice":
        x = p.pick(least_rank=1)
        axes = draw.sample(range(x[1].ndim), draw.randint(1, x[1].ndim))
        steps = [draw.choice([1, 1, 2, -1, -1, -2]) for _ in axes]
        bounds = [[draw.choice([-9, -3, -2, -1, 0, 1, 2, 3, 9]) for _ in axes] for _ in range(2)]
        p.node("Slice", [x[0]] + [p.constant(v) for v in (bounds[0], bounds[1], axes, steps)])
    elif kind == "gather":
        x = p.pick(least_rank=1)
        axis = axis_of(x[1].ndim)
        size = x[1].shape[axis]
        where = np.array([draw.randint(-size, size - 1) for _ in range(draw.randint(1, 3))])
        p.node("Gather", [x[0], p.constant(where[0] if draw.random() < 0.4 else where)], f"axis = {axis}")
    elif kind == "concat":
        x = p.pick(least_rank=1)
        p.node("Concat", [x[0], x[0], x[0]][:draw.randint(1, 3)], f"axis = {axis_of(x[1].ndim)}")
    elif kind == "transpose":
        x = p.pick(least_rank=2)
        order = draw.sample(range(x[1].ndim), x[1].ndim)
        p.node("Transpose", [x[0]], f"perm = [{', '.join(map(str, order))}]" if draw.random() < 0.7 else "")
    elif kind == "expand":
        x = p.pick()
        p.node("Expand", [x[0], p.constant([draw.randint(1, 3)] + [1 if d > 1 else draw.randint(1, 3) for d in x[1].shape])])
    elif kind == "tile":
        x = p.pick(least_rank=1)
        p.node("Tile", [x[0], p.constant([draw.randint(1, 2) for _ in x[1].shape])])
    elif kind == "split":
        x = p.pick(least_rank=1)
        axis = axis_of(x[1].ndim)
        sizes, left = [], x[1].shape[axis]
        while left > 0 and len(sizes) < 3:
            sizes.append(left if len(sizes) == 2 else draw.randint(1, left))
            left -= sizes[-1]
        p.node("Split", [x[0], p.constant(sizes)], f"axis = {axis}", outputs=len(sizes))
    elif kind == "reduce":
        x = p.pick()
        op = draw.choice(["ReduceSum", "ReduceProd", "ReduceMin", "ReduceMax"])
        axes = draw.sample(range(x[1].ndim), draw.randint(min(1, x[1].ndim), x[1].ndim))
        keep = f"keepdims = {draw.randint(0, 1)}"
        if op == "ReduceSum":
            p.node(op, [x[0]] + ([p.constant(axes)] if axes else []), keep)
        else:
            p.node(op, [x[0]], keep + (f", axes = [{', '.join(map(str, axes))}]" if axes else ""))
    elif kind == "cumulative":
        x = p.pick(least_rank=1, most_rank=1)
        p.node("CumSum", [x[0], p.constant(0)], f"exclusive = {draw.choice([0, 0, 1])}, reverse = {draw.choice([0, 0, 1])}")
    elif kind == "empty":  # a sum or product over nothing
        x = p.node("Slice", [p.pick(least_rank=1, most_rank=1)[0], p.constant([9]), p.constant([9])])
        p.node(draw.choice(["ReduceSum", "ReduceProd"]), [x], f"keepdims = {draw.randint(0, 1)}")
    elif kind == "nonzero":
        p.node("NonZero", [p.pick(least_rank=1)[0]])
    elif kind == "range":
        step = draw.choice([1, 1, 2, -1])
        start = draw.randint(0, 4)
        p.node("Range", [p.constant(start), p.constant(max(start + step * draw.randint(0, 4), 0)), p.constant(step)])
    elif kind == "scatter":
        x = p.pick(least_rank=1, most_rank=1)
        size = x[1].shape[0]
        p.node("ScatterND", [x[0], p.constant([[draw.randint(-size, size - 1)]]), p.constant([draw.randint(0, 6)])])
    elif kind == "squeeze":
        x = p.pick()
        ones = [i for i, d in enumerate(x[1].shape) if d == 1]
        if ones and draw.random() < 0.5:
            p.node("Squeeze", [x[0], p.constant([draw.choice(ones)])])
        else:
            p.node("Unsqueeze", [x[0], p.constant([axis_of(x[1].ndim + 1)])])
    elif kind == "shape":
        x = p.pick(most_rank=3)
        bounds = {name: draw.randint(-3, 4) for name in ("start", "end") if draw.random() < 0.7}
        p.node("Shape", [x[0]], ", ".join(f"{name} = {v}" for name, v in bounds.items()))
    elif kind == "size":
        p.node("Size", [p.pick()[0]])
    elif kind == "reshape":
        x = p.pick()
        p.node("Reshape", [x[0], p.constant([-1] if draw.random() < 0.5 else [1, -1])])


def program():
    p = Program()
    for _ in range(draw.randint(3, 8)):
        step(p)
    made = [v for v in p.values if v[1].dtype == np.dtype("int64")]
    if not made:
        return None
    name, value = made[-1]
    if not 0 < value.size <= 6 or value.min() < 0 or value.max() > 99 or np.prod(value, dtype=float) > 10000 or value.size == 1 and value.max() < 1:
        return None
    flat = p.node("Reshape", [name, p.constant([-1])])
    p.lines.append(f"y = ConstantOfShape ({flat})")
    return needed(p.lines), ",".join(str(v) for v in value.flatten())


def needed(lines):
    """Those lines that the last one depends on."""
    kept, read = [], set()
    for line in reversed(lines):
        results, _, rest = line.partition(" = ")
        if kept and not read & set(results.split(", ")):
            continue
        kept.insert(0, line)
        read |= set(rest[rest.rindex("(") + 1:-1].split(", "))
    return "; ".join(kept)


def main():
    seen = set()
    while len(seen) < 700:
        try:
            made = program()
        except Exception:  # the draw is not valid ONNX
            continue
        if made and made[0] not in seen and made[0].count(" = ") - made[0].count("Constant") - made[0].count("value = ") >= 3:
            seen.add(made[0])
            print(*made, sep="\t")


main()
