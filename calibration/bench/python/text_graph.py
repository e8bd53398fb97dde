"""Reads ftax's text graphs (include/ftax/text_graph.hpp) and runs them with torch, operator by operator.

A graph holds shapes and no values: weights are random, and constants that the form does not keep (the slope of an
activation, where a slice begins) are chosen so that the operator costs what it costs in the model.
"""

import ast
import functools
import math
import re
from collections import namedtuple

import torch
import torch.nn.functional as F

from recording import Unsupported

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
          "bool": torch.bool}
PRECISIONS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
              "amp": torch.float32}


def float_type(precision):
    if precision not in PRECISIONS:
        raise Unsupported(f"networks in {precision} are predicted, not measured")
    return PRECISIONS[precision]


Tensor = namedtuple("Tensor", "dtype shape")
Operator = namedtuple("Operator", "kind inputs outputs attributes source")
Result = namedtuple("Result", "shape dtype device")

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_NAME = r'%(?:"(?:[^"\\]|\\.)*"|[\w./:\-]+)'
_TYPED = re.compile(rf"({_NAME}) (\w+)(\[([^\]]*)\]|\?)")
_OPERATOR = re.compile(rf"(.*?) = (\w+)\((.*?)\)(?: {{(.*?)}})?(?: {_QUOTED})?(?: [@:].*)?")
_ATTRIBUTE = re.compile(r'(\w+)=(\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[^\s}]+)')


def _evaluate(text, bindings):
    """The numbers of a list of dimensions."""
    if not re.fullmatch(r"[\w+\-*/%(), ]*", text):
        raise Unsupported(f"dimensions {text!r}")
    names = dict(bindings, min=min, max=max, ceildiv=lambda a, b: -(-a // b))
    missing = [word for word in re.findall(r"[A-Za-z_]\w*", text) if word not in names]
    if missing:
        raise Unsupported(f"dimension {missing[0]} has no value")
    return [int(size) for size in eval(f"[{text}]", {"__builtins__": {}}, names)]


class Graph:
    """A text as ftax writes it, with every dimension a number. Names are as in the text, absent inputs None."""

    def __init__(self, text, bindings):
        self.tensors, self.inputs, self.weights, self.constants, self.operators, self.outputs = {}, [], [], [], [], []
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("input", "weight", "constant"):
                getattr(self, word + "s").extend(self._declared(rest, bindings))
            elif word == "output":
                self.outputs = re.findall(_NAME, rest)
            elif line.startswith("%"):
                match = _OPERATOR.fullmatch(line)
                if not match:
                    raise Unsupported(f"statement {line!r}")
                inputs = [None if name == "_" else name for name in re.findall(_NAME + "|_", match[3])]
                attributes = {key: ast.literal_eval(value) for key, value in _ATTRIBUTE.findall(match[4] or "")}
                self.operators.append(Operator(match[2], inputs, [*self._declared(match[1], bindings)], attributes, match[5] or ""))

    def _declared(self, text, bindings):
        found = _TYPED.findall(text)
        if not found or any(known == "?" for _, _, known, _ in found):
            raise Unsupported(f"tensor {text!r}")
        for name, dtype, _, shape in found:
            self.tensors[name] = Tensor(dtype, _evaluate(shape, bindings))
            yield name


def _named(module, names):
    return {name: getattr(module, name) for name in names.split()}


_UNARY = {**_named(torch, "relu tanh sigmoid exp log erf sqrt rsqrt neg reciprocal abs cos sin"), "not": torch.logical_not,
          **_named(F, "gelu silu hardswish hardsigmoid leaky_relu elu softplus mish"),
          **dict.fromkeys(("clamp", "relu6"), lambda x: torch.clamp(x, 0.0, 6.0))}
_UNARY_IN_PLACE = {"relu": torch.relu_, "clamp": lambda x: x.clamp_(0.0, 6.0), "sigmoid": torch.sigmoid_,
                   "silu": lambda x: F.silu(x, inplace=True), "hardswish": lambda x: F.hardswish(x, inplace=True)}
_BINARY = {**_named(torch, "add sub mul div pow maximum minimum"), "max": torch.maximum, "min": torch.minimum, "equal": torch.eq,
           "not_equal": torch.ne, "greater": torch.gt, "less": torch.lt, "and": torch.logical_and, "or": torch.logical_or}
_BINARY_IN_PLACE = {name: getattr(torch.Tensor, name + "_") for name in ("add", "mul", "div", "sub")}


def _pointwise(operator, shapes, out):
    function, count = operator.attributes.get("function", "add"), len(shapes)
    if operator.source.startswith("aten::masked_fill"):
        return lambda x, mask, *_: torch.masked_fill(x, mask.bool(), -1e4)
    if function == "where" and count == 3:
        return lambda condition, x, y: torch.where(condition.bool(), x, y)
    calls, calls_in_place = (_UNARY, _UNARY_IN_PLACE) if count == 1 and function in _UNARY else (_BINARY, _BINARY_IN_PLACE)
    if function not in calls or count not in (1, 2):
        raise Unsupported(f"pointwise {function} of {count} inputs")
    in_place = operator.source.endswith("_") and shapes[0] == out.shape
    call = calls_in_place.get(function, calls[function]) if in_place else calls[function]
    if calls is _UNARY or count == 2:
        return call
    # A whole power, because the base may be negative; a whole number where the sum is an index.
    integral = not out.dtype.is_floating_point and out.dtype != torch.bool
    scalar = 1 if integral else 3.0 if function == "pow" else 1.5
    return lambda x: call(x, scalar)


def _convolution(operator, shapes, out):
    a = operator.attributes
    call = getattr(F, f"conv{len(shapes[0]) - 2}d")
    begin, end = a.get("pad_begin", [0]), a.get("pad_end", [0])
    options = (a.get("stride", 1), begin if begin == end else 0, a.get("dilation", 1), a.get("groups", 1))
    if begin == end:
        return lambda x, w, b=None: call(x, w, b, *options)
    pads = [side for first, last in zip(reversed(begin), reversed(end)) for side in (first, last)]
    return lambda x, w, b=None: call(F.pad(x, pads), w, b, *options)


def _pool(operator, shapes, out):
    a, call = operator.attributes, _pooling(operator, shapes)
    # A last window that begins inside and ends outside of the padded input: ceil mode.
    last = [(out - 1) * s + k - (size + p + q) for out, s, k, size, p, q in zip(
        out.shape[2:], a["stride"], a["kernel"], shapes[0][2:], a["pad_begin"], a["pad_end"])]
    return lambda x: call(x, a["kernel"], a["stride"], a["pad_begin"], ceil_mode=any(over > 0 for over in last))


def _slice(operator, shapes, out):
    source = shapes[0]
    if len(source) == len(out.shape) + 1:  # select
        axis = operator.attributes.get("axis", 0)
        return lambda x: x.select(axis, 0)
    if len(source) != len(out.shape):
        raise Unsupported(f"{operator.source} from rank {len(source)} to {len(out.shape)}")
    cut = [(axis, size) for axis, (old, size) in enumerate(zip(source, out.shape)) if old != size]
    if not cut:
        return lambda x: x[:]
    axis, size = cut[0]
    if len(cut) > 1:
        raise Unsupported(f"{operator.source} along {len(cut)} axes")
    return lambda x: x.narrow(axis, 0, size)


def _matmul(operator, shapes, out):
    a, b = operator.attributes.get("transpose_a", 0), operator.attributes.get("transpose_b", 0)
    return lambda x, y, *c: sum(c, torch.matmul(x.mT if a else x, y.mT if b else y))


def _known(calls, operator, usual=None):
    function = operator.attributes.get("function", usual)
    if function not in calls:
        raise Unsupported(f"{operator.kind} {function}")
    return calls[function]


def _reduce(operator, shapes, out):
    call = _known({"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "var": torch.var}, operator, "sum")
    axes, keep = operator.attributes.get("axes", list(range(len(shapes[0])))), len(out.shape) == len(shapes[0])
    return lambda x: call(x, dim=axes, keepdim=keep)


def _pooling(operator, shapes, prefix=""):
    kind = "max" if operator.attributes.get("function") == "max" else "avg"
    return getattr(F, f"{prefix}{kind}_pool{len(shapes[0]) - 2}d")


def _norm(operator, shapes, out):
    normalized, call = shapes[0][operator.attributes.get("axis", -1) % len(shapes[0]):], getattr(F, operator.kind)
    return lambda x, *weights: call(x, normalized, *weights)


def _attention(operator, shapes, out):
    """Keys and values may have fewer heads than the queries."""
    options = {"is_causal": bool(operator.attributes.get("causal", 0))}
    if len(shapes[0]) == 4 and shapes[0][1] != shapes[1][1]:
        options["enable_gqa"] = True
    return lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, mask, **options)


def _split_along_axis(operator, shapes, out):
    axis, parts = operator.attributes.get("axis", 0), len(operator.outputs)
    if len(out.shape) == len(shapes[0]) - 1:  # unbind drops the axis
        return lambda x: x.unbind(axis)
    return lambda x: x.chunk(parts, axis)


_RULES = {
    "conv": _convolution,
    "linear": lambda o, s, out: F.linear,
    "matmul": _matmul,
    "attention": _attention,
    "cumulative": lambda o, s, out: functools.partial(_known({"cumsum": torch.cumsum, "cumprod": torch.cumprod}, o),
                                                      dim=o.attributes.get("axis", 0)),
    "rms_norm": _norm,
    "batch_norm": lambda o, s, out: lambda x, w, b, mean, var: F.batch_norm(x, mean, var, w, b, False),
    "layer_norm": _norm,
    "softmax": lambda o, s, out: lambda x: torch.softmax(x, o.attributes.get("axis", -1)),
    "log_softmax": lambda o, s, out: lambda x: torch.log_softmax(x, o.attributes.get("axis", -1)),
    "reduce": _reduce,
    "pool": _pool,
    "global_pool": lambda o, s, out: functools.partial(_pooling(o, s, "adaptive_"), output_size=out.shape[2:]),
    "embedding": lambda o, s, out: lambda table, indices: F.embedding(indices, table),
    "reshape": lambda o, s, out: lambda x: x.reshape(out.shape),
    "transpose": lambda o, s, out: lambda x: x.permute(o.attributes["perm"]),
    "slice": _slice,
    "split": _split_along_axis,
    "expand": lambda o, s, out: lambda x, *like: x.expand(out.shape),
    "concat": lambda o, s, out: lambda *xs: torch.cat(xs, o.attributes.get("axis", 0)),
    "identity": lambda o, s, out: lambda x: x,
    "pointwise": _pointwise,
    "fill": lambda o, s, out: lambda *_: torch.ones(out.shape, dtype=out.dtype, device=out.device),
    "cast": lambda o, s, out: lambda x, *_: x.to(out.dtype),
    "copy": lambda o, s, out: (lambda x: x.contiguous()) if o.source.endswith("contiguous") else (lambda x: x.clone()),
}


class Network(torch.nn.Module):
    """A text graph as a module. `weight_sets` > 1 gives every call other weights, so that they are not in a cache."""

    def __init__(self, text, bindings, precision="fp32", device="cpu", weight_sets=1):
        super().__init__()
        self.graph = Graph(text, bindings)
        self.float_type = float_type(precision)
        self.device = device
        self.slots = {name: at for at, name in enumerate(self.graph.tensors)}
        self.uses = self._uses()
        # One allocation a weight: a hundred sets made one by one take longer than measuring them.
        kept = self.graph.weights + self.graph.constants
        self.sets = [[self._filled(name) for name in kept]] if weight_sets == 1 or not kept else list(
            zip(*(self._filled(name, weight_sets) for name in kept)))
        self.next_set = 0
        self.weight_slots, self.input_slots, self.output_slots = (
            [self.slots[name] for name in names] for names in (kept, self.graph.inputs, self.graph.outputs))
        self.steps = self._steps()

    def inputs(self):
        return tuple(self._filled(name) for name in self.graph.inputs)

    def _type(self, name):
        dtype = DTYPES.get(self.graph.tensors[name].dtype)
        if dtype is None:
            raise Unsupported(f"element type {self.graph.tensors[name].dtype}")
        return self.float_type if dtype == torch.float32 else dtype

    def _filled(self, name, *sets):
        tensor, dtype = self.graph.tensors[name], self._type(name)
        shape = [*sets, *tensor.shape]
        if dtype.is_floating_point:
            return self._random(name, shape, tensor.shape).to(dtype)
        rows = [self.graph.tensors[o.inputs[0]].shape[0] for o in self.graph.operators
                if o.kind == "embedding" and o.inputs[1] == name]
        if not rows and dtype != torch.bool and name not in self.graph.inputs:
            return torch.zeros(shape, dtype=dtype, device=self.device)  # a table's rows on the way to a lookup
        high = 2 if dtype == torch.bool else min(rows, default=2)
        return torch.randint(0, high, shape, device=self.device).to(dtype)

    def _random(self, name, shape, of_one):
        """Values that keep activations finite through the deepest network, in half precision, too: what overflows
        draws another power. Products get the variance of He et al. (arXiv 1502.01852), norms those of a normed input."""
        use = self.uses.get(name)
        if name in self.graph.inputs:
            values = torch.randn(shape, device=self.device)
            return values.abs_().add_(1) if use == "divisor" else values
        if use in ("gain", "variance", "bias", "mean"):
            return torch.full(shape, float(use in ("gain", "variance")), device=self.device)
        if use in ("product", "table"):
            fan_in = max(1, math.prod(of_one[1:]))
            return torch.randn(shape, device=self.device).mul_(math.sqrt(2 / fan_in) if use == "product" else 1)
        # A constant may be a divisor, the argument of a root or a power.
        return torch.rand(shape, device=self.device).add_(0.5).div_(max(of_one[-1:] or [1]))

    def _uses(self):
        """What each weight is to the operator that reads it."""
        places = {"batch_norm": (None, "gain", "bias", "mean", "variance"), "layer_norm": (None, "gain", "bias"),
                  "rms_norm": (None, "gain"), "conv": (None, "product", "bias"), "linear": (None, "product", "bias"),
                  "matmul": (None, "product", "bias"), "embedding": ("table", None)}
        uses = {}
        for operator in self.graph.operators:
            divides = operator.kind == "pointwise" and operator.attributes.get("function") == "div"
            for name, use in zip(operator.inputs, (None, "divisor") if divides else places.get(operator.kind, ())):
                if use:
                    uses.setdefault(name, use)
        return uses

    def settle(self, inputs):
        """Gives every batch norm the mean and variance of what it reads, as training would: without it a residual
        network doubles its activations' variance in each of its blocks."""
        norms = {id(step) for step, operator in zip(self.steps, self.graph.operators) if operator.kind == "batch_norm"}

        def before(step, values):
            if id(step) not in norms:
                return
            x, mean, variance = (values[slot] for slot in (step[1][0], step[1][3], step[1][4]))
            axes = [axis for axis in range(x.dim()) if axis != 1]
            if x.numel() > 2 * x.shape[1]:
                mean.copy_(x.float().mean(axes))
                variance.copy_(x.float().var(axes))
        self._run(inputs, before)

    def _steps(self):
        last_use = {name: at for at, operator in enumerate(self.graph.operators) for name in operator.inputs}
        kept = set(self.graph.outputs + self.graph.weights + self.graph.constants)
        steps = []
        for at, operator in enumerate(self.graph.operators):
            dead = [self.slots[name] for name in set(operator.inputs)
                    if name is not None and name not in kept and last_use[name] == at]
            inputs = [None if name is None else self.slots[name] for name in operator.inputs]
            while inputs and inputs[-1] is None:
                inputs.pop()
            steps.append((self._call(operator), inputs, [self.slots[name] for name in operator.outputs], dead))
        return steps

    def _call(self, operator):
        if operator.kind not in _RULES:
            raise Unsupported(f"operator {operator.kind}")
        out, shapes = operator.outputs[0], [self.graph.tensors[name].shape for name in operator.inputs if name is not None]
        return _RULES[operator.kind](operator, shapes, Result(self.graph.tensors[out].shape, self._type(out), self.device))

    def forward(self, *inputs):
        return self._run(inputs)

    def _run(self, inputs, before=None):
        values = [None] * len(self.slots)
        weights = self.sets[self.next_set]
        self.next_set = (self.next_set + 1) % len(self.sets)
        for slot, value in zip(self.weight_slots, weights):
            values[slot] = value
        for slot, value in zip(self.input_slots, inputs):
            values[slot] = value
        for step in self.steps:
            if before:
                before(step, values)
            call, ins, outs, dead = step
            result = call(*[None if i is None else values[i] for i in ins])
            if len(outs) == 1:
                values[outs[0]] = result
            else:
                for slot, value in zip(outs, result):
                    values[slot] = value
            for slot in dead:
                values[slot] = None
        return tuple(values[slot] for slot in self.output_slots)
