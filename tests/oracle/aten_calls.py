"""Random calls of ATen operators with the types and shapes that PyTorch returns, for aten_shapes_test.cpp.

    aten_calls.py > aten_calls.tsv      # written with torch 2.11 and expecttest, which torch's own samples need
"""
import math
import random
import re
from pathlib import Path

import torch
from torch.testing._internal.common_methods_invocations import op_db

draw = random.Random(1)
TYPES = {torch.float32: "f32", torch.float16: "f16", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool", torch.complex64: "c64",
         torch.float64: "f64", torch.uint8: "u8", torch.bfloat16: "bf16", torch.int8: "i8", torch.int16: "i16", torch.complex128: "c128"}
SCALAR_TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, None,
                torch.complex64, torch.complex128, torch.bool, None, None, None, torch.bfloat16]
aten = torch.ops.aten


def dims(least=1, most=4):
    return [draw.randint(1, 5) for _ in range(draw.randint(least, most))]


def tensor(shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


def any_tensor(least=1, most=4):
    return tensor(dims(least, most))


def axis(x, extra=0):
    rank = x.dim() + extra
    return draw.randint(-rank, rank - 1)


def axes(x, least=1):
    chosen = draw.sample(range(x.dim()), draw.randint(min(least, x.dim()), x.dim()))
    return [a - x.dim() if draw.random() < 0.4 else a for a in chosen]


def yes():
    return draw.random() < 0.5


def broadcast(x):
    """A shape that broadcasts with that of x, some of its dimensions 1 or left out."""
    shape = [d if draw.random() < 0.6 else 1 for d in x.shape][draw.randint(0, x.dim()):]
    return tensor(shape, draw.choice([torch.float32, torch.float16, torch.int64, torch.bool]))


def reduction(op):
    x = any_tensor()
    return op, [x, axes(x), yes()]


def one_axis(op):
    x = any_tensor()
    return op, [x, axis(x), yes()]


def binary(op):
    x = any_tensor()
    x = x.to(draw.choice([torch.float32, torch.float16, torch.int64]))
    pair = [x, broadcast(x)]
    draw.shuffle(pair)
    return op, pair


def products():
    n, k, m = dims(3, 3)
    batch = dims(0, 2)
    shorter = [d if yes() else 1 for d in batch][draw.randint(0, len(batch)):]
    return draw.choice([(aten.matmul.default, [tensor(batch + [n, k]), tensor(shorter + [k, m])]),
                        (aten.matmul.default, [tensor(shorter + [n, k]), tensor(batch + [k, m])]),
                        (aten.matmul.default, [tensor([k]), tensor(batch + [k, m])]),
                        (aten.matmul.default, [tensor(batch + [n, k]), tensor([k])]),
                        (aten.linear.default, [tensor(batch + [n, k]), tensor([m, k])]),
                        (aten.addmm.default, [tensor([draw.choice([1, n]), m]), tensor([n, k]), tensor([k, m])])])


def transposed_convolution():
    d, groups = draw.randint(1, 3), draw.randint(1, 2)
    stride = [draw.randint(1, 3) for _ in range(d)]
    dilation = [draw.randint(1, 2) for _ in range(d)]
    output = [draw.randint(0, max(s, t) - 1) for s, t in zip(stride, dilation)]
    inside, outside = groups * draw.randint(1, 3), draw.randint(1, 3)
    op = getattr(getattr(aten, f"conv_transpose{d}d"), "default" if d == 1 else "input")
    return op, [tensor([draw.randint(1, 2), inside] + [draw.randint(3, 6) for _ in range(d)]),
                tensor([inside, outside] + [draw.randint(2, 4) for _ in range(d)]), None, stride,
                [draw.randint(0, 1) for _ in range(d)], output, groups, dilation]


def recurrence():
    layers, hidden, wide = draw.randint(1, 3), draw.randint(1, 4), draw.randint(1, 4)
    both, batch_first, kind = yes(), yes(), draw.choice(["lstm", "gru"])
    batch, steps = draw.randint(1, 3), draw.randint(1, 4)
    model = (torch.nn.LSTM if kind == "lstm" else torch.nn.GRU)(wide, hidden, layers, batch_first=batch_first, bidirectional=both)
    state = tensor([layers * (1 + both), batch, hidden])
    x = tensor([batch, steps, wide] if batch_first else [steps, batch, wide])
    hx = [state, state] if kind == "lstm" else state
    op = aten.lstm.input if kind == "lstm" else aten.gru.input
    return op, [x, hx, model._flat_weights, True, layers, 0.0, False, both, batch_first]


def slice_call():
    x = any_tensor()
    return aten.slice.Tensor, [x, axis(x), draw.choice([-3, -1, 0, 1, 2]), draw.choice([-2, -1, 1, 3, 9]), draw.randint(1, 3)]


def sequence(op, same=False):
    x = any_tensor()
    a = axis(x, 0 if not same else 1)
    parts = [x]
    for _ in range(draw.randint(1, 3)):
        shape = list(x.shape)
        if not same:
            shape[a] = draw.randint(1, 4)
        parts.append(tensor(shape))
    return op, [parts, a]


def pads():
    x = any_tensor(2, 4)
    count = draw.randint(1, x.dim())
    return aten.constant_pad_nd.default, [x, [draw.randint(0, 2) for _ in range(2 * count)]]


def factored(op, count):
    x = any_tensor(1, 3)
    a = draw.randrange(x.dim())
    return op, [x, count, a]


def gathered():
    x = any_tensor()
    a = axis(x)
    shape = [draw.randint(1, d) for d in x.shape]
    return aten.gather.default, [x, a, tensor(shape, torch.int64) * 0]


def squeezed():
    x = tensor([draw.choice([1, 1, 3]) for _ in range(draw.randint(1, 4))])
    return draw.choice([(aten.squeeze.default, [x]), (aten.squeeze.dim, [x, axis(x)]), (aten.squeeze.dims, [x, axes(x)])])


def flattened():
    x = any_tensor(2, 4)
    first = draw.randrange(x.dim())
    last = draw.randrange(first, x.dim())
    return aten.flatten.using_ints, [x, first, last - x.dim() if yes() else last]


def viewed():
    x = any_tensor(2, 4)
    shape = list(x.shape)
    draw.shuffle(shape)
    shape[draw.randrange(len(shape))] = -1
    return aten.view.default, [x, shape]


def expanded():
    x = tensor([draw.choice([1, 3]) for _ in range(draw.randint(1, 3))])
    return aten.expand.default, [x, dims(0, 2) + [draw.randint(2, 4) if d == 1 else -1 for d in x.shape]]


def shuffled():
    r = draw.randint(1, 3)
    if yes():
        return aten.pixel_shuffle.default, [tensor([2, 2 * r * r, 3, 2]), r]
    return aten.pixel_unshuffle.default, [tensor([2, 2, 3 * r, 2 * r]), r]


def windows():
    x = tensor([draw.randint(1, 2), 2, 6, 7])
    return aten.im2col.default, [x, [2, 3], [draw.randint(1, 2), 1], [draw.randint(0, 1), 1], [draw.randint(1, 3), 2]]


def unfolded():
    x = any_tensor()
    a = axis(x)
    return aten.unfold.default, [x, a, draw.randint(1, x.shape[a]), draw.randint(1, 3)]


def top():
    x = any_tensor()
    a = axis(x)
    return aten.topk.default, [x, draw.randint(1, x.shape[a]), a]


def splitted():
    x = any_tensor()
    a = axis(x)
    each = draw.randint(1, 4)
    return draw.choice([(aten.split.Tensor, [x, each, a]), (aten.chunk.default, [x, each, a]), (aten.unbind.int, [x, a]),
                        (aten.tensor_split.sections, [x, each, a])])


def moved():
    x = any_tensor()
    order = draw.sample(range(x.dim()), x.dim())
    return draw.choice([(aten.permute.default, [x, [o - x.dim() if yes() else o for o in order]]),
                        (aten.transpose.int, [x, axis(x), axis(x)]), (aten.movedim.intlist, [x, [axis(x)], [axis(x)]]),
                        (aten.unsqueeze.default, [x, axis(x, 1)]), (aten.select.int, [x, (a := axis(x)), draw.randrange(x.shape[a])]),
                        (aten.narrow.default, [x, (a := axis(x)), 0, draw.randint(1, x.shape[a])])])


def repeated():
    x = any_tensor(1, 3)
    return draw.choice([(aten.repeat.default, [x, dims(0, 1) + [draw.randint(1, 3) for _ in x.shape]]),
                        (aten.tile.default, [x, dims()]), (aten.repeat_interleave.self_int, [x, draw.randint(1, 3), axis(x)])])


def counted():
    start, step = draw.randint(-3, 3), draw.randint(1, 3)
    return aten.arange.start_step, [start, start + draw.randint(0, 9), step]


def read_rows():
    where = tensor(dims(0, 3), torch.int64) * 0
    x = any_tensor()
    return draw.choice([(aten.embedding.default, [tensor([5, 3]), where]), (aten.index_select.default, [x, axis(x), where.flatten()])])


def few_models():
    """Operators that few models call, mostly with what PyTorch assumes where an argument is left out."""
    x, n = any_tensor(), draw.randint(1, 5)
    pair = tensor([2, 3, n]), tensor([2, 4, n])
    image = tensor([2, 4, 6, 7])
    whole = (x * 1).to(draw.choice([torch.int64, torch.int32, torch.bool, torch.float32, torch.float16]))
    return draw.choice([
        (aten.cosine_similarity.default, [pair[0], pair[0], draw.choice([1, 1, -1, 2])]), (aten.histc.default, [x, draw.choice([100, 100, 7])]),
        (aten.softmax.int, [x, axis(x)]), (aten.cumsum.default, [whole, axis(x)]), (aten.sort.default, [x, draw.choice([-1, axis(x)])]),
        (aten.argsort.default, [x, draw.choice([-1, axis(x)])]), (aten.diff.default, [x, draw.choice([1, 1, 2]), draw.choice([-1, axis(x)])]),
        (aten.flip.default, [x, axes(x)]), (aten.eye.m, [n, draw.randint(1, 5)]), (aten.cdist.default, [*pair]),
        (aten.outer.default, [tensor([n]), tensor([3])]), (aten.fft_rfft.default, [x, draw.choice([None, n]), draw.choice([-1, axis(x)])]),
        (aten.fft_irfft.default, [x.to(torch.complex64), draw.choice([None, n]), draw.choice([-1, axis(x)])]),
        (aten.max_pool2d.default, [image, [2, 3], draw.choice([[], [1, 2]]), [draw.randint(0, 1), 1], 1, yes()]),
        (aten.avg_pool2d.default, [image, [3, 2], draw.choice([[], [2, 1]]), [draw.randint(0, 1), 1], yes()]),
        (aten.conv2d.default, [image, tensor([6, 2, 3, 2]), None, [draw.randint(1, 2), 1], [draw.randint(0, 1), 0], [1, draw.randint(1, 2)], 2]),
        (aten.adaptive_avg_pool2d.default, [image, [n, 3]]), (aten.glu.default, [tensor([2, 4, 6]), draw.choice([-1, 1])]),
        (aten.sum.default, [whole]), (aten.prod.default, [whole]), (aten.sum.dim_IntList, [whole, axes(x), yes()]),
        (aten.all.dim, [x, axis(x), yes()]), (aten.var_mean.correction, [x, axes(x)]), (aten.tril.default, [tensor([n, 3]), draw.randint(-1, 1)]),
        (aten.where.self, [tensor(x.shape, torch.bool), whole, x]), (aten.clamp.default, [whole, 0]), (aten.pow.Tensor_Scalar, [whole, 2]),
        (aten.unsqueeze.default, [whole, axis(x, 1)]), (aten.index_select.default, [x, axis(x), tensor([n], torch.int64) * 0]),
        (aten.tensordot.default, [tensor([2, 3, n]), tensor([n, 3, 4]), [2, 1], [0, 1]]), (aten.roll.default, [x, [1], [axis(x)]]),
        (aten.floor_divide.default, [whole, whole]), (aten.bitwise_and.Tensor, [tensor([n], torch.bool), tensor([n], torch.bool)])])


SPECS = [
    *[few_models] * 40,
    *[lambda op=op: reduction(op) for op in (aten.mean.dim, aten.sum.dim_IntList, aten.amax.default, aten.logsumexp.default)],
    *[lambda op=op: one_axis(op) for op in (aten.argmax.default, aten.prod.dim_int, aten.max.dim, aten.min.dim, aten.any.dim)],
    *[lambda op=op: binary(op) for op in (aten.add.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.maximum.default, aten.eq.Tensor,
                                          aten.lt.Tensor)],
    products, products, transposed_convolution, transposed_convolution, recurrence, recurrence, slice_call, slice_call,
    lambda: sequence(aten.cat.default), lambda: sequence(aten.stack.default, True), pads, gathered, squeezed, flattened, viewed, expanded,
    shuffled, windows, unfolded, top, splitted, splitted, moved, moved, repeated, counted, read_rows,
]


def mixed():
    """Operands of any two types."""
    x, y = (tensor(shape, draw.choice(list(TYPES))) for shape in ([2, 3], draw.choice([[2, 3], [1, 3], [3], []])))
    return draw.choice([aten.add.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.eq.Tensor]), [x, y]


def rarer():
    """Operators of which torch has no samples, or samples that call them by other names."""
    n, image, volume = draw.randint(1, 4), tensor([2, 4, 6, 7]), tensor([1, 2, 4, 5, 6])
    q, k, v = tensor([2, 4, n, 8]), tensor([2, 4, 5, 8]), tensor([2, 4, 5, draw.randint(1, 6)])
    both, layers = yes(), draw.randint(1, 2)
    rnn = torch.nn.RNN(3, n, layers, bidirectional=both)
    kernel, stride, pad = [2, 3], draw.choice([[], [1, 2], [2, 2]]), [1, draw.randint(0, 1)]
    return draw.choice([
        (aten.scaled_dot_product_attention.default, [q, k, v]), (aten.grid_sampler.default, [image, tensor([2, n, 3, 2]), 0, 0, False]),
        (aten.one_hot.default, [tensor([2, n], torch.int64) * 0, 5]), (aten.diagonal.default, [volume, 0, *draw.sample(range(-5, 0), 2)]),
        (aten.native_layer_norm.default, [image, [6, 7][n % 2:], None, None, 1e-5]), (aten.rms_norm.default, [image, [7]]),
        (aten.native_group_norm.default, [image, None, None, 2, 4, 42, draw.choice([1, 2, 4]), 1e-5]),
        (aten.group_norm.default, [image, draw.choice([1, 2, 4])]), (aten.instance_norm.default, [image, None, None, None, None, True, 0.1, 1e-5, False]),
        (aten.batch_norm.default, [image, None, None, tensor([4]), tensor([4]), False, 0.1, 1e-5, False]),
        (aten.max_pool2d_with_indices.default, [image, kernel, stride, pad, 1, yes()]), (aten.max_pool1d.default, [image[0], [2], [n], [1], 1, yes()]),
        (aten.max_pool3d.default, [volume, [2], [n], [1], [1], yes()]), (aten.avg_pool3d.default, [volume, [2], [n], [1], yes()]),
        (aten.adaptive_max_pool2d.default, [image, [n, 3]]), (aten.reflection_pad2d.default, [image, [n, 1, 0, 2]]),
        (aten.replication_pad3d.default, [volume, [n, 1, 0, 2, 3, 1]]), (aten.reflection_pad1d.default, [image[0], [n, 2]]),
        (aten.upsample_nearest2d.vec, [image, [n, 9], None]), (aten.upsample_trilinear3d.default, [volume, [n, 5, 7], False]),
        (aten.upsample_bicubic2d.default, [image, [5, n], False]), (aten.lstm_cell.default, [tensor([2, 3]), [tensor([2, n])] * 2, tensor([4 * n, 3]), tensor([4 * n, n])]),
        (aten.rnn_tanh.input, [tensor([5, 2, 3]), tensor([layers * (1 + both), 2, n]), rnn._flat_weights, True, layers, 0.0, False, both, False]),
        (aten._int_mm.default, [tensor([32, 16], torch.int8), tensor([16, 8 * n], torch.int8)]), (aten.swapaxes.default, [volume, -2, n]),
        (aten.gru_cell.default, [tensor([2, 3]), tensor([2, n]), tensor([3 * n, 3]), tensor([3 * n, n])]),
        (aten.linalg_vector_norm.default, [image, 2, axes(image)]), (aten.moveaxis.int, [volume, draw.randint(-5, 4), n]),
        (aten.to.dtype, [image, draw.choice([t for t in SCALAR_TYPES if t])]), (aten.type_as.default, [image, q.to(torch.bfloat16)]),
        (aten.channel_shuffle.default, [image, 2]), (aten.eye.m, [n, 3]), (aten.new_ones.default, [image, [n, 2]])])


# Left: numbers that take a complex one's place, statistics of a batch norm in training, and broadcasts that few calls write.
NOT_FOLLOWED = {"masked_scatter", "native_batch_norm", "normal", "square", "take_along_dim"}
REAL_OF_COMPLEX = {"abs", "norm", "std", "std_mean", "var"}


def samples(called):
    """Samples of torch's own tests of the operators that ftax has shape rules of and no call above."""
    table = Path(__file__).parents[2].joinpath("data/aten_operators.tsv").read_text().splitlines()[1:]
    rows = [line.split("\t") for line in table]
    known = {name.partition("=")[0] for names, _, shape, *_ in rows if shape for name in names.split()}
    for info in op_db:
        name = next((n for n in (info.aten_name, info.name.rpartition(".")[2]) if n in known - called), None)
        for dtype in (torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64):
            if name is None or name in NOT_FOLLOWED or dtype not in info.dtypes or (dtype.is_complex and name in REAL_OF_COMPLEX):
                continue
            try:
                found = [(s.input, *s.args) for s in info.sample_inputs("cpu", dtype) if not s.kwargs] + [
                    ((s.input, *s.args), s.kwargs) for s in info.sample_inputs("cpu", dtype) if s.kwargs]
            except Exception:  # without a library that this torch lacks
                continue
            for chosen in draw.sample(found, min(len(found), 6 if dtype == torch.float32 else 2)):
                arguments, named = chosen if isinstance(chosen[-1], dict) else (chosen, {})
                yield name, arguments, named


def written(value):
    if isinstance(value, torch.dtype):
        return str(SCALAR_TYPES.index(value))
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, (complex, torch.device, torch.layout, torch.memory_format)) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(value)
    if isinstance(value, (list, tuple)) and len(value) > 1 and any(isinstance(v, float) for v in value):
        raise ValueError(value)
    if isinstance(value, torch.Tensor):
        return f"{TYPES[value.dtype]}[{','.join(map(str, value.shape))}]"
    if isinstance(value, (list, tuple)):
        return ("+" if value and isinstance(value[0], torch.Tensor) else ",").join(map(written, value))
    return str(int(value)) if isinstance(value, (bool, int)) else repr(value)


def line_of(op, arguments, named, leaves_out):
    result = op(*arguments, **named)
    result = [result] if isinstance(result, torch.Tensor) else result
    formal = op._schema.arguments
    given = {**dict(zip([a.name for a in formal], arguments)), **named}
    left_out = {a.name: a.default_value for a in formal if a.has_default_value() and not isinstance(a.default_value, list) and leaves_out and yes()}
    texts = [f"{name}={written(value)}" for name, value in given.items() if value is not None and name not in ("params", "generator")
             and not (name in left_out and value == left_out[name])]
    return "\t".join(["aten::" + op._schema.name.split("::")[1], " ".join(texts), " ".join(map(written, result))])


def main():
    seen, calls, called = set(), 0, set()

    def keep(line):
        if line not in seen and len(line) < 400:
            seen.add(line)
            called.add(line.partition("\t")[0].removeprefix("aten::"))
            print(line)

    while calls < 2200 + 500:
        op, arguments = SPECS[calls % len(SPECS)]() if calls < 2200 else draw.choice([mixed, rarer, rarer])()
        try:
            line = line_of(op, arguments, {}, True)
        except (RuntimeError, ValueError):
            continue
        calls += 1
        keep(line)
    for name, arguments, named in samples(set(called)):
        try:
            overload = torch._C._jit_resolve_packet(f"aten::{name}", *arguments, **named)
            line = line_of(getattr(getattr(aten, name), overload or "default"), arguments, named, False)
        except Exception:  # functions of Python with other arguments than the operator's
            continue
        if not re.search(r"=( |\t)", line):
            keep(line)


main()
