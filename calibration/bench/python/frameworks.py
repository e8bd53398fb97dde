"""One callable per framework: how the same network is run by eager PyTorch, TorchScript, CUDA graphs, torch.compile and
ONNX Runtime. Each returns a function without arguments that starts one forward pass."""

import contextlib
import io
import sys

import torch

from text_graph import Unsupported


def _autocast(precision, device):
    if precision == "amp":
        return torch.autocast(device.split(":")[0], torch.float16 if device != "cpu" else torch.bfloat16)
    return contextlib.nullcontext()


def channels_last(network, inputs):
    """Convolutions in PyTorch's channels-last layout: what a user writes before the first pass."""
    layout = {"memory_format": torch.channels_last}
    return network.to(**layout), tuple(x.to(**layout) if x.dim() == 4 else x for x in inputs)


def _eager(network, inputs, precision, device):
    def run():
        with _autocast(precision, device):
            return network(*inputs)
    return run if precision == "amp" else lambda: network(*inputs)


def _torchscript(network, inputs, precision, device):
    with _autocast(precision, device):
        traced = torch.jit.trace(network, inputs, check_trace=False)
    return lambda: traced(*inputs)


# What compiles; the tests replace it by one that takes no minute.
COMPILER = "inductor"


def _compiled(network, inputs, precision, device):
    """Dynamo gives up after eight versions of one code object, which all networks of the text graph share, and runs the
    rest eagerly without a word: it starts afresh for each, and what was not compiled as one graph is refused."""
    torch._dynamo.reset()
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    counters = torch._dynamo.utils.counters
    counters.clear()
    run = _eager(torch.compile(network, dynamic=False, backend=COMPILER), inputs, precision, device)
    run()
    graphs, breaks = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
    if graphs == 0:
        raise Unsupported("torch.compile left this network eager")
    if breaks:
        print(f"warning: torch.compile broke this network into {graphs} graphs", file=sys.stderr)
    return run


def _cuda_graph(network, inputs, precision, device):
    run = _eager(network, inputs, precision, device)
    stream = torch.cuda.Stream()
    # Inputs and weights were made on the current stream, possibly this moment.
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()
    # The captured graph writes into these tensors: they live as long as the function that replays it.
    return lambda: (graph.replay(), kept)


def _onnxruntime(provider):
    def wrap(network, inputs, precision, device):
        import numpy
        import onnxruntime
        if provider not in onnxruntime.get_available_providers():
            raise Unsupported(f"ONNX Runtime {onnxruntime.__version__} has no {provider}")
        buffer = io.BytesIO()
        names = [f"in{i}" for i in range(len(inputs))]
        torch.onnx.export(network, inputs, buffer, input_names=names, opset_version=17, dynamo=False)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if provider == "CPUExecutionProvider":
            options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(buffer.getvalue(), options, providers=[provider])
        if provider not in session.get_providers():
            raise Unsupported(f"ONNX Runtime could not load its {provider}")
        binding = session.io_binding()
        kind = device.split(":")[0]
        for name, tensor in zip(names, inputs):
            element = {torch.float32: "float32", torch.float16: "float16", torch.int64: "int64"}.get(tensor.dtype)
            if element is None:
                raise Unsupported(f"ONNX Runtime binding of {tensor.dtype}")
            binding.bind_input(name, kind, 0, getattr(numpy, element), list(tensor.shape), tensor.data_ptr())
        for output in session.get_outputs():
            binding.bind_output(output.name, kind)
        # The binding holds addresses: the tensors live as long as the function.
        return lambda kept=inputs: session.run_with_iobinding(binding)
    return wrap


WRAPPERS = {
    "pytorch-eager": _eager,
    "torchscript": _torchscript,
    "torch-compile": _compiled,
    "torch-cuda-graph": _cuda_graph,
    "onnxruntime-cuda": _onnxruntime("CUDAExecutionProvider"),
    "onnxruntime-cpu": _onnxruntime("CPUExecutionProvider"),
}


def wrap(framework, network, inputs, precision, device):
    if framework not in WRAPPERS:
        raise Unsupported(f"framework {framework}; there are {', '.join(WRAPPERS)}")
    if framework in ("torch-cuda-graph", "onnxruntime-cuda") and device == "cpu":
        raise Unsupported(f"{framework} on a CPU")
    return WRAPPERS[framework](network, inputs, precision, device)
