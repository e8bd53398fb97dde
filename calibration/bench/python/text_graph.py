"""Reads ftax's text graphs (include/ftax/text_graph.hpp) and runs them with torch, operator by operator.

A graph holds shapes and no values: weights are random, and constants that the form does not keep (the slope of an
activation, where a slice begins) are chosen so that the operator costs what it costs in the model.
"""

import ast
import functools
import math
import re
from dataclasses import dataclass, field

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


@dataclass
class Tensor:
    dtype: str
    shape: list


@dataclass
class Operator:
    kind: str
    inputs: list
    outputs: list
    attributes: dict
    source: str


@dataclass
class Graph:
    tensors: dict = field(default_factory=dict)
    inputs: list = field(default_factory=list)
    weights: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    operators: list = field(default_factory=list)
    outputs: list = field(default_factory=list)


_NAME = r'%(?:"((?:[^"\\]|\\.)*)"|([\w./:\-]+))'
_TYPED = re.compile(_NAME + r"\s+(\w+)\[([^\]]*)\](\{[^}]*\})?")
_OPERATOR = re.compile(r"^(.*?)\s=\s(\w+)\((.*?)\)(?:\s\{(.*?)\})?(?:\s\"((?:[^\"\\]|\\.)*)\")?(?:\s@.*|\s:.*)?$")
_ATTRIBUTE = re.compile(r'(\w+)=(\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[^\s}]+)')
_EXPRESSION = re.compile(r"[\w+\-*/%(), ]*\Z")


def _evaluate(text, bindings):
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if not _EXPRESSION.match(text):
        raise Unsupported(f"dimension {text!r}")
    names = dict(bindings, min=min, max=max, ceildiv=lambda a, b: -(-a // b))
    missing = [word for word in re.findall(r"[A-Za-z_]\w*", text) if word not in names]
    if missing:
        raise Unsupported(f"dimension {missing[0]} has no value")
    return int(eval(text, {"__builtins__": {}}, names))


def _split(text):
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if text.strip():
        parts.append(text[start:])
    return [part.strip() for part in parts]


def parse(text, bindings):
    """Returns the Graph with every dimension a number."""
    graph = Graph()

    def declare(text):
        match = _TYPED.match(text)
        if not match:
            raise Unsupported(f"tensor {text!r}")
        name = match[1] or match[2]
        graph.tensors[name] = Tensor(match[3], [_evaluate(d, bindings) for d in _split(match[4])])
        return name

    def names(text):
        found = [re.match(_NAME, part) for part in _split(text)]
        return [(match[1] or match[2]) if match else None for match in found]

    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("input", "weight", "constant"):
            getattr(graph, word + "s").append(declare(rest))
        elif word == "output":
            graph.outputs = names(rest)
        elif line.startswith("%"):
            match = _OPERATOR.match(line)
            if not match:
                raise Unsupported(f"statement {line!r}")
            outputs = [declare(part) for part in _split(match[1])]
            attributes = {key: ast.literal_eval(value) for key, value in _ATTRIBUTE.findall(match[4] or "")}
            graph.operators.append(Operator(match[2], names(match[3]), outputs, attributes, match[5] or ""))
    return graph


_UNARY = {"relu": torch.relu, "gelu": F.gelu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": F.silu,
          "exp": torch.exp, "log": torch.log, "erf": torch.erf, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
          "neg": torch.neg, "reciprocal": torch.reciprocal, "abs": torch.abs, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid,
          "leaky_relu": F.leaky_relu, "elu": F.elu, "softplus": F.softplus, "mish": F.mish, "not": torch.logical_not,
          "cos": torch.cos, "sin": torch.sin, "clamp": lambda x: torch.clamp(x, 0.0, 6.0),
          "relu6": lambda x: torch.clamp(x, 0.0, 6.0)}
_UNARY_IN_PLACE = {"relu": torch.relu_, "clamp": lambda x: x.clamp_(0.0, 6.0), "sigmoid": torch.sigmoid_,
                   "silu": lambda x: F.silu(x, inplace=True), "hardswish": lambda x: F.hardswish(x, inplace=True)}
_BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
           "equal": torch.eq, "not_equal": torch.ne, "max": torch.maximum, "min": torch.minimum,
           "maximum": torch.maximum, "minimum": torch.minimum, "greater": torch.gt, "less": torch.lt,
           "and": torch.logical_and, "or": torch.logical_or}
_BINARY_IN_PLACE = {"add": torch.Tensor.add_, "mul": torch.Tensor.mul_, "div": torch.Tensor.div_,
                    "sub": torch.Tensor.sub_}


def _pointwise(operator, shapes, out_shape, integral):
    function, count = operator.attributes.get("function", "add"), len(shapes)
    in_place = operator.source.endswith("_") and shapes[0] == out_shape
    if operator.source.startswith("aten::masked_fill"):
        return lambda x, mask, *_: torch.masked_fill(x, mask.bool(), -1e4)
    if function == "where" and count == 3:
        return lambda condition, x, y: torch.where(condition.bool(), x, y)
    if count == 1 and function in _UNARY:
        return _UNARY_IN_PLACE[function] if in_place and function in _UNARY_IN_PLACE else _UNARY[function]
    if function in _BINARY and count in (1, 2):
        call = _BINARY_IN_PLACE[function] if in_place and function in _BINARY_IN_PLACE else _BINARY[function]
        # A whole power, because the base may be negative; a whole number where the sum is an index.
        scalar = 1 if integral else 3.0 if function == "pow" else 1.5
        return call if count == 2 else lambda x: call(x, scalar)
    raise Unsupported(f"pointwise {function} of {count} inputs")


def _convolution(operator, shapes, out_shape):
    a = operator.attributes
    call = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(shapes[0])]
    begin, end = a.get("pad_begin", [0]), a.get("pad_end", [0])
    options = (a.get("stride", 1), begin if begin == end else 0, a.get("dilation", 1), a.get("groups", 1))
    if begin == end:
        return lambda x, w, b=None: call(x, w, b, *options)
    pads = [side for first, last in zip(reversed(begin), reversed(end)) for side in (first, last)]
    return lambda x, w, b=None: call(F.pad(x, pads), w, b, *options)


def _pool(operator, shapes, out_shape):
    a, call = operator.attributes, _pooling(operator, shapes)
    # A last window that begins inside and ends outside of the padded input: ceil mode.
    last = [(out - 1) * s + k - (size + p + q) for out, s, k, size, p, q in zip(
        out_shape[2:], a["stride"], a["kernel"], shapes[0][2:], a["pad_begin"], a["pad_end"])]
    return lambda x: call(x, a["kernel"], a["stride"], a["pad_begin"], ceil_mode=any(over > 0 for over in last))


def _slice(operator, shapes, out_shape):
    source = shapes[0]
    if len(source) == len(out_shape) + 1:  # select
        axis = operator.attributes.get("axis", 0)
        return lambda x: x.select(axis, 0)
    if len(source) != len(out_shape):
        raise Unsupported(f"{operator.source} from rank {len(source)} to {len(out_shape)}")
    cut = [(axis, size) for axis, (old, size) in enumerate(zip(source, out_shape)) if old != size]
    if not cut:
        return lambda x: x[:]
    axis, size = cut[0]
    if len(cut) > 1:
        raise Unsupported(f"{operator.source} along {len(cut)} axes")
    return lambda x: x.narrow(axis, 0, size)


def _matmul(operator, shapes, out_shape):
    a, b = operator.attributes.get("transpose_a", 0), operator.attributes.get("transpose_b", 0)
    return lambda x, y, *c: sum(c, torch.matmul(x.mT if a else x, y.mT if b else y))


def _known(calls, operator, usual=None):
    function = operator.attributes.get("function", usual)
    if function not in calls:
        raise Unsupported(f"{operator.kind} {function}")
    return calls[function]


def _reduce(operator, shapes, out_shape):
    call = _known({"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "var": torch.var}, operator, "sum")
    axes, keep = operator.attributes.get("axes", list(range(len(shapes[0])))), len(out_shape) == len(shapes[0])
    return lambda x: call(x, dim=axes, keepdim=keep)


def _pooling(operator, shapes, prefix=""):
    kind = "max" if operator.attributes.get("function") == "max" else "avg"
    return getattr(F, f"{prefix}{kind}_pool{len(shapes[0]) - 2}d")


def _norm(operator, shapes, out_shape):
    normalized, call = shapes[0][operator.attributes.get("axis", -1) % len(shapes[0]):], getattr(F, operator.kind)
    return lambda x, *weights: call(x, normalized, *weights)


def _attention(operator, shapes, out_shape):
    """Keys and values may have fewer heads than the queries."""
    options = {"is_causal": bool(operator.attributes.get("causal", 0))}
    if len(shapes[0]) == 4 and shapes[0][1] != shapes[1][1]:
        options["enable_gqa"] = True
    return lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, mask, **options)


def _cumulative(operator, shapes, out_shape):
    call = _known({"cumsum": torch.cumsum, "cumprod": torch.cumprod}, operator)
    return lambda x: call(x, operator.attributes.get("axis", 0))


def _split_along_axis(operator, shapes, out_shape):
    axis, parts = operator.attributes.get("axis", 0), len(operator.outputs)
    if len(out_shape) == len(shapes[0]) - 1:  # unbind drops the axis
        return lambda x: x.unbind(axis)
    return lambda x: x.chunk(parts, axis)


_RULES = {
    "conv": _convolution,
    "linear": lambda o, s, t: F.linear,
    "matmul": _matmul,
    "attention": _attention,
    "cumulative": _cumulative,
    "rms_norm": _norm,
    "batch_norm": lambda o, s, t: lambda x, w, b, mean, var: F.batch_norm(x, mean, var, w, b, False),
    "layer_norm": _norm,
    "softmax": lambda o, s, t: lambda x: torch.softmax(x, o.attributes.get("axis", -1)),
    "log_softmax": lambda o, s, t: lambda x: torch.log_softmax(x, o.attributes.get("axis", -1)),
    "reduce": _reduce,
    "pool": _pool,
    "global_pool": lambda o, s, t: functools.partial(_pooling(o, s, "adaptive_"), output_size=t[2:]),
    "embedding": lambda o, s, t: lambda table, indices: F.embedding(indices, table),
    "reshape": lambda o, s, t: lambda x: x.reshape(t),
    "transpose": lambda o, s, t: lambda x: x.permute(o.attributes["perm"]),
    "slice": _slice,
    "split": _split_along_axis,
    "expand": lambda o, s, t: lambda x, *like: x.expand(t),
    "concat": lambda o, s, t: lambda *xs: torch.cat(xs, o.attributes.get("axis", 0)),
    "identity": lambda o, s, t: lambda x: x,
}


class Network(torch.nn.Module):
    """A text graph as a module. `weight_sets` > 1 gives every call other weights, so that they are not in a cache."""

    def __init__(self, text, bindings, precision="fp32", device="cpu", weight_sets=1):
        super().__init__()
        self.graph = parse(text, bindings)
        self.float_type = float_type(precision)
        self.device = device
        self.slots = {name: at for at, name in enumerate(self.graph.tensors)}
        self.uses = self._uses()
        # One allocation a weight: a hundred sets made one by one take longer than measuring them.
        kept = self.graph.weights + self.graph.constants
        self.sets = [[self._filled(name) for name in kept]] if weight_sets == 1 or not kept else list(
            zip(*(self._filled(name, weight_sets) for name in kept)))
        self.next_set = 0
        self.weight_slots = [self.slots[name] for name in kept]
        self.input_slots = [self.slots[name] for name in self.graph.inputs]
        self.output_slots = [self.slots[name] for name in self.graph.outputs]
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
        if use in ("gain", "variance"):
            return torch.ones(shape, device=self.device)
        if use in ("bias", "mean"):
            return torch.zeros(shape, device=self.device)
        if use == "product":
            fan_in = max(1, math.prod(of_one[1:]))
            return torch.randn(shape, device=self.device).mul_(math.sqrt(2 / fan_in))
        if use == "table":
            return torch.randn(shape, device=self.device)
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
        operators = dict(zip((id(step) for step in self.steps), self.graph.operators))

        def before(step, values):
            operator = operators[id(step)]
            if operator.kind != "batch_norm":
                return
            x, mean, variance = (values[slot] for slot in (step[1][0], step[1][3], step[1][4]))
            axes = [axis for axis in range(x.dim()) if axis != 1]
            if x.numel() > 2 * x.shape[1]:
                mean.copy_(x.float().mean(axes))
                variance.copy_(x.float().var(axes))
        self._run(inputs, before)

    def _steps(self):
        last_use = {}
        for at, operator in enumerate(self.graph.operators):
            for name in operator.inputs:
                last_use[name] = at
        kept = set(self.graph.outputs + self.graph.weights + self.graph.constants)
        steps = []
        for at, operator in enumerate(self.graph.operators):
            dead = [self.slots[name] for name in set(operator.inputs)
                    if name is not None and name not in kept and last_use[name] == at]
            inputs = [None if name is None else self.slots[name] for name in operator.inputs]
            while inputs and inputs[-1] is None:
                inputs.pop()
            outputs = [self.slots[name] for name in operator.outputs]
            steps.append((self._call(operator), inputs, outputs, dead))
        return steps

    def _call(self, operator):
        shapes = [self.graph.tensors[name].shape for name in operator.inputs if name is not None]
        out = operator.outputs[0]
        out_shape, dtype = self.graph.tensors[out].shape, self._type(out)
        if operator.kind == "pointwise":
            return _pointwise(operator, shapes, out_shape, not dtype.is_floating_point and dtype != torch.bool)
        if operator.kind in _RULES:
            return _RULES[operator.kind](operator, shapes, out_shape)
        if operator.kind == "fill":
            return lambda *_: torch.ones(out_shape, dtype=dtype, device=self.device)
        if operator.kind == "cast":
            return lambda x, *_: x.to(dtype)
        if operator.kind == "copy":
            contiguous = operator.source.endswith("contiguous")
            return (lambda x: x.contiguous()) if contiguous else (lambda x: x.clone())
        raise Unsupported(f"operator {operator.kind}")

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
