"""Networks and frameworks as they are measured, on this machine's CPU. Needs a Python with torch; reports if there is none.
FTAX_PROGRAM and FTAX_LIBTORCH name the program and its library of LibTorch's dispatch."""

import importlib.util
import json
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path[:0] = [os.path.join(ROOT, "calibration", "bench", "python"), os.path.join(ROOT, "calibration")]
import campaign  # noqa: E402

HALF_LIMIT = 65504 / 16  # what a larger batch or another seed may add


def parsed(*lines):
    return "graph g\n" + "\n".join(lines) + "\n"


def designed(kind):
    """The smallest operators of a design, one of each kind."""
    listed = subprocess.run([os.environ["FTAX_PROGRAM"], "measure", kind, "--device", "cuda", "--list"], capture_output=True,
                            text=True, check=True).stdout
    kept = {}
    for case in map(json.loads, listed.splitlines()):
        numbers = [int(part.split("=")[1]) for part in case["shape"].split()]
        kept.setdefault((case["op"], "kv_heads" in case["shape"]), []).append((sum(numbers), case["graph"]))
    return {op: min(cases)[1] for op, cases in kept.items()}


@unittest.skipUnless(importlib.util.find_spec("torch"), "needs a Python with torch")
class Networks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        torch.set_grad_enabled(False)
        torch.manual_seed(1)

    def network(self, text, precision="fp32"):
        import text_graph
        return text_graph.Network(text, {"batch": 1, "seq": 128}, precision)

    def test_every_network_of_the_campaign_runs_without_overflow_in_half_precision(self):
        import networks
        for model in campaign.MODELS:
            with self.subTest(model):
                with open(os.path.join(ROOT, "graphs", "zoo", model + ".txt")) as file:
                    network = self.network(file.read())
                inputs = network.inputs()
                network.settle(inputs)
                largest = 0

                def before(step, values):
                    nonlocal largest
                    for slot in step[1]:
                        if slot is not None and values[slot] is not None and values[slot].is_floating_point():
                            largest = max(largest, values[slot].abs().max().item())
                outputs = network._run(inputs, before)
                self.assertTrue(networks.finite(outputs))
                self.assertLess(largest, HALF_LIMIT)

    def test_what_is_measured_has_the_kernels_that_ftax_predicts(self):
        """Libraries change: a network of theirs that is another one than the zoo's is run from the zoo's graph."""
        import networks
        for model in ("vit32", "distilbert", "bert", "squeeze_bert", "resnet18"):
            with self.subTest(model), open(os.path.join(ROOT, "graphs", "zoo", model + ".txt")) as file:
                text = file.read()
                found, inputs, source = networks.build({"graph": text, "bindings": {"batch": 1, "seq": 128}, "model": model},
                                                       {"precision": "fp32", "device": "cpu"})
                network = self.network(text)
                expected = networks.kernels(networks.operators(network, network.inputs()))
                called = networks.operators(found, inputs)
                self.assertEqual(networks.waits(called), 0)
                self.assertAlmostEqual(networks.kernels(called) / expected, 1, delta=0.02, msg=source)
                self.assertEqual(source == networks.GRAPH_SOURCE, model == "distilbert" or not self.has_library(model))

    @staticmethod
    def has_library(model):
        library = "timm" if model == "vit32" else "transformers" if "bert" in model else "torchvision"
        return importlib.util.find_spec(library) is not None

    def test_a_network_that_reads_numbers_back_is_seen_to_wait(self):
        import networks
        import torch
        self.assertEqual(networks.waits(networks.operators(lambda x: (x * bool(x.all())).masked_select(x > 0), (torch.ones(3),))), 2)
        self.assertEqual(networks.waits(networks.operators(lambda x: x.relu().view(3, 1), (torch.ones(3),))), 0)

    @unittest.skipUnless("FTAX_PROGRAM" in os.environ, "needs the program")
    def test_every_kind_of_designed_operator_runs(self):
        import networks
        for kind in ("kernels", "dispatch"):
            for op, graph in designed(kind).items():
                with self.subTest(op):
                    network = self.network(graph, "bf16")
                    self.assertTrue(networks.finite(network(*network.inputs())))

    def test_a_network_that_overflows_is_refused_and_rows_of_the_host_count_waits(self):
        import job
        bench = job.Bench({"framework": "pytorch-eager", "device": "cpu", "threads": 1, "precision": "fp16", "channels_last": False})
        text = parsed("input %x f32[8,64]", "weight %w f32[64,64]", '%y f32[8,64] = linear(%x, %w) "aten::linear"',
                      *(f'%{c} f32[8,64] = pointwise(%{b}) {{function="exp"}} "aten::exp"' for b, c in zip("yabc", "abcd")), "output %d")
        case = {"graph": text, "model": "", "bindings": {}, "weight_sets": 1, "mode": "host_dispatch"}
        with self.assertRaisesRegex(RuntimeError, "infinite or not a number"):
            bench.ready(case)
        finite = {**case, "graph": text.replace('"exp"', '"tanh"')}
        self.assertEqual(bench.ready(finite)[1], {"source": job.GRAPH_SOURCE, "waits": 0})
        self.assertEqual(bench.ready({**finite, "mode": "device_hot"})[1]["waits"], "")

    def test_large_divisions_stay_finite_in_half_precision(self):
        import networks
        text = parsed("input %x f32[4096,768]", "input %z f32[4096,768]",
                      '%y f32[4096,768] = pointwise(%x, %z) {function="div"} "aten::div"', "output %y")
        network = self.network(text, "fp16")
        x, divisor = network.inputs()
        self.assertTrue(networks.finite(network(x, divisor)))
        self.assertGreaterEqual(float(divisor.min()), 1)
        self.assertLess(float(x.min()), 0)

    def test_copies_of_a_weight_are_made_at_once_and_taken_in_turn(self):
        import text_graph
        import torch
        text = parsed("input %x f32[1,64]", "weight %w f32[64,64]", '%y f32[1,64] = linear(%x, %w) "aten::linear"', "output %y")
        with mock.patch.object(torch, "randn", wraps=torch.randn) as made:
            network = text_graph.Network(text, {}, weight_sets=500)
        self.assertEqual(made.call_count, 1)
        x, = network.inputs()
        first = network(x)[0]
        self.assertFalse(torch.equal(network(x)[0], first))
        for _ in range(498):
            network(x)
        torch.testing.assert_close(network(x)[0], first)

    def test_unbind_drops_its_axis_and_split_keeps_it(self):
        for source, dimensions in (("aten::unbind", "f32[4,5]"), ("aten::split", "f32[1,4,5]")):
            network = self.network(parsed("input %x f32[2,4,5]",
                                          f'%a {dimensions}, %b {dimensions} = split(%x) {{axis=0}} "{source}"',
                                          "output %a, %b"))
            shape = [2, 4, 5] if source == "aten::split" else None
            outputs = network(*network.inputs())
            self.assertEqual([list(o.shape) for o in outputs], [[1, 4, 5] if shape else [4, 5]] * 2)

    def test_fewer_heads_of_keys_than_of_queries(self):
        import torch
        text = parsed("input %q f32[1,8,3,16]", "input %k f32[1,2,5,16]", "input %v f32[1,2,5,16]",
                      '%y f32[1,8,3,16] = attention(%q, %k, %v) "aten::scaled_dot_product_attention"', "output %y")
        network = self.network(text)
        q, k, v = network.inputs()
        wide = torch.nn.functional.scaled_dot_product_attention(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))
        torch.testing.assert_close(network(q, k, v)[0], wide)

    def test_what_is_not_a_number_is_seen(self):
        import networks
        import torch
        good, bad = torch.ones(3), torch.tensor([1.0, float("inf")])
        self.assertTrue(networks.finite((good, [torch.tensor([1])])))
        self.assertFalse(networks.finite((good, [bad])))
        self.assertFalse(networks.finite({"logits": bad.sub(bad)}))

    def test_a_library_s_residual_network_does_not_grow(self):
        import networks
        import torch

        class Residual(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = torch.nn.ModuleList(
                    torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8))
                    for _ in range(60))
                for block in self.blocks:
                    torch.nn.init.kaiming_normal_(block[0].weight)

            def forward(self, x):
                for block in self.blocks:
                    x = x + block(x)
                return x
        module, x = Residual().eval(), torch.randn(2, 8, 8, 8)
        self.assertGreater(module(x).abs().max(), 65504)
        networks.settle(module, (x,))
        self.assertLess(module(x).abs().max(), 100)


@unittest.skipUnless(importlib.util.find_spec("torch"), "needs a Python with torch")
class Frameworks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        torch.set_grad_enabled(False)

    def test_every_network_is_compiled_however_many_came_before(self):
        """Dynamo allows a code object eight versions; all networks share the interpreter's."""
        import frameworks
        import text_graph
        import torch
        limit = torch._dynamo.config.recompile_limit
        self.assertLess(limit, 12)
        with mock.patch.object(frameworks, "COMPILER", "eager"):  # Dynamo's captures, run as they are
            for width in range(1, limit + 4):
                text = parsed(f"input %x f32[2,{width}]", f'%y f32[2,{width}] = pointwise(%x) {{function="relu"}} "aten::relu"',
                              "output %y")
                network = text_graph.Network(text, {}).eval()
                frameworks.wrap("torch-compile", network, network.inputs(), "fp32", "cpu")()
                self.assertEqual(torch._dynamo.utils.counters["stats"]["unique_graphs"], 1, width)

    def test_what_torch_compile_left_eager_is_refused(self):
        import frameworks
        import torch
        with mock.patch.object(torch, "compile", lambda network, **_: network):
            with self.assertRaisesRegex(Exception, "left this network eager"):
                frameworks.wrap("torch-compile", lambda x: x + 1, (torch.ones(2),), "fp32", "cpu")

    def test_onnx_runtime_without_the_provider_is_refused_before_anything_is_exported(self):
        import frameworks
        import torch
        fake = types.ModuleType("onnxruntime")
        fake.__version__, fake.get_available_providers = "1.30.0", lambda: ["CPUExecutionProvider"]
        with mock.patch.dict(sys.modules, onnxruntime=fake), mock.patch.object(torch.onnx, "export") as export:
            with self.assertRaisesRegex(Exception, "has no CUDAExecutionProvider"):
                frameworks.wrap("onnxruntime-cuda", None, (), "fp16", "cuda")
            export.assert_not_called()

    def test_warming_up_for_a_cuda_graph_waits_for_what_made_its_inputs(self):
        import frameworks
        import torch
        happened = []
        current = object()
        stream = mock.MagicMock()
        stream.wait_stream.side_effect = lambda other: happened.append(("waits", other is current))
        with mock.patch.multiple(torch.cuda, Stream=lambda: stream, current_stream=lambda: current, stream=mock.MagicMock(),
                                 CUDAGraph=mock.MagicMock(), graph=mock.MagicMock()):
            frameworks.wrap("torch-cuda-graph", lambda: happened.append("runs"), (), "fp32", "cuda")
        self.assertEqual(happened[:2], [("waits", True), "runs"])


@unittest.skipUnless(os.environ.get("FTAX_LIBTORCH"), "needs the library of a build with LibTorch")
class Libtorch(unittest.TestCase):
    def test_it_measures_every_kind_of_designed_operator(self):
        import libtorch
        timer = libtorch.LibtorchTimer(os.environ["FTAX_LIBTORCH"], "cpu")
        for op, graph in designed("dispatch").items():
            with self.subTest(op):
                timer.prepare(graph, "fp32", "host_dispatch")
                self.assertGreater(timer.sample(None, "host_dispatch", 2), 0)


if __name__ == "__main__":
    unittest.main()
