"""Large honest files and small bombs: seconds of the processor and memory that reading takes.

    large_files_test.py FTAX [NODES]      # NODES: of the files that are read whole, 100,000 if not given
"""
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from hostile_test import field, node, onnx, value

TENSOR = ('{"dtype": 7, "sizes": [{"as_int": 8}, {"as_int": 64}], "requires_grad": false, "device": {"type": "cpu", "index": null}, '
          '"strides": [{"as_int": 64}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}')
NODE = ('{"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "r%d"}}, "kind": 1}], '
        '"outputs": [{"as_tensor": {"name": "r%d"}}], "metadata": {"stack_trace": "File \\"m.py\\", line 1, in forward", '
        '"nn_module_stack": "L__self__,,__main__.M", "torch_fn": "relu_1;method_descriptor.relu"}, '
        '"is_hop_single_tensor_return": null, "name": "r%d"}')


def packed(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("m/archive_format", "pt2")
        with out.open("m/models/model.json", "w", force_zip64=True) as member:
            for part in parts:
                member.write(part.encode())
    return buffer.getvalue()


def chain(count):
    """A program of `count` ReLUs, one after the other."""
    yield '{"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "r0"}}], "nodes": ['
    for first in range(0, count, 1000):
        nodes = (NODE % (i, i + 1, i + 1) for i in range(first, min(first + 1000, count)))
        yield (", " if first else "") + ", ".join(nodes)
    yield '], "tensor_values": {"r0": ' + TENSOR
    for first in range(0, count, 1000):
        yield "".join(f', "r{i + 1}": {TENSOR}' for i in range(first, min(first + 1000, count)))
    yield ('}, "sym_int_values": {}, "outputs": [{"as_tensor": {"name": "r%d"}}]}, "signature": {"input_specs": [{"user_input": '
           '{"arg": {"as_tensor": {"name": "r0"}}}}]}, "module_call_graph": []}, "range_constraints": {}, '
           '"schema_version": {"major": 8, "minor": 2}}') % count


def repeated(before, count, item, after):
    yield before
    for _ in range(count // 1000):
        yield item * 1000
    yield item.rstrip(",") + after


def keyed(before, count, value, after):
    """Members with keys of their own, which no compression makes small."""
    yield before
    for first in range(0, count, 1000):
        yield "".join(f'"{i}":{value},' for i in range(first, first + 1000))
    yield f'"last":{value}' + after


def onnx_chain(count):
    nodes = [node("Relu", [f"r{i}"], [f"r{i + 1}"]) + field(3, f"n{i}") for i in range(count)]
    return onnx(nodes, [value("r0", ["batch", 64])], [value(f"r{count}", ["batch", 64])])


def cases(count):
    """File, its content, options, exit code, seconds of the processor and megabytes at most."""
    share = count / 1_000_000
    limit = f"--max-nodes {2 * count}"
    yield "chain.pt2", packed(chain(count)), limit, 0, 4, 100 + 2000 * share
    yield "refused.pt2", packed(chain(1_000_000)), "", 4, 3, 250
    yield "chain.onnx", onnx_chain(count), limit + " --batch 2", 0, 3, 40 + 660 * share
    for name, before, item, after in (
            ("list", '{"a": [', "{},", "]}"), ("nodes", '{"graph_module": {"graph": {"nodes": [', "{},", "]}}}"),
            ("lists", '{"a": [', "[],", "]}"), ("numbers", '{"graph_module": [', "1,", "]}"),
            ("inputs", '{"graph_module": {"graph": {"nodes": [{"inputs": [', "{},", "]}]}}}")):
        yield f"{name}.pt2", packed(repeated(before, 20_000_000, item, after)), "", 4, 3, 100
    graph = '{"graph_module": {"graph": {"'
    for name, before, item, after in (
            ("keys", '{"a": {', "0", "}}"), ("tensors", graph + 'tensor_values": {', "{}", "}}}}"), ("rows", '{"a": {"b": {', "[{}]", "}}}"),
            ("metadata", graph + 'nodes": [{"metadata": {', "0", "}}]}}}")):
        yield f"{name}.pt2", packed(keyed(before, 3_000_000, item, after)), "", 4, 3, 150


def run(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, errors.strip(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(ftax, count):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, content, options, code, most_s, most_mb in cases(count):
            path = Path(folder) / name
            path.write_bytes(content)
            ended, errors, seconds, megabytes = run([ftax, "inspect", str(path), *options.split()])
            wrong = ended != code or seconds > most_s or megabytes > most_mb
            failed += wrong
            print(f"{'WRONG ' if wrong else ''}{name}: exit {ended}, {seconds:.2f} s of {most_s:.2f}, {megabytes:.0f} MB of {most_mb:.0f} {errors[-150:]}",
                  flush=True)
            path.unlink()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000))
