"""What is handed over and what comes back: whole numbers, names, and results that travel."""

import itertools
import json
import os
import pathlib
import pickle
import pydoc
import signal
import subprocess
import sys
import time
import warnings

import ftax
import numpy as np
import pytest


@pytest.mark.parametrize("batch", [1.5, 2.0, True, "8", np.float32(4), np.True_, [1, 2.5], np.array([1.0, 2.0]), [True, 8]])
def test_a_batch_is_a_whole_number(batch):
    for call in (lambda: ftax.predict("resnet18", "t4", batch=batch), lambda: ftax.compare("resnet18", "t4", batch=batch),
                 lambda: ftax.nas.CostFunction("fbnet", "1080ti", batches=batch),
                 lambda: ftax.generate("llama-3-8b", "t4", prompt=8, new_tokens=2, batch=batch)):
        with pytest.raises(ftax.UsageError, match="batch(es)? must be a whole number, not"):
            call()


def test_whole_numbers_of_every_kind_are_batches():
    for batch in (8, np.int64(8), [8], (8,), np.array([8]), range(8, 9)):
        assert ftax.predict("resnet18", "t4", batch=batch).batches == [8]


def test_messages_speak_of_arguments():
    with pytest.raises(ftax.UsageError, match=r"seq \(seq=N\)"):
        ftax.predict("bert", "t4")
    with pytest.raises(ftax.UsageError, match=r"'sq' is neither an argument nor an open dimension of bert"):
        ftax.predict("bert", "t4", sq=128)
    with pytest.raises(ftax.UsageError, match="seq must be a whole number, not 1.5"):
        ftax.predict("bert", "t4", seq=1.5)
    with pytest.raises(ftax.UsageError, match=r"ftax.devices\(\) shows all"):
        ftax.predict("resnet18", "t5000")
    with pytest.raises(ftax.UsageError, match="device must be one name; ftax.compare takes several"):
        ftax.predict("resnet18", ["t4", "l4"])
    with pytest.raises(ftax.UsageError, match="ftax.compare takes several"):
        ftax.predict("resnet18", "t4,l4")
    with pytest.raises(TypeError, match="chanels_last"):
        ftax.Predictor("resnet18", "t4", chanels_last=True)
    with pytest.raises(ftax.UsageError, match="model must be a file"):
        ftax.predict(7, "t4")


def test_numbers_beyond_64_bits_and_long_lists_are_refused():
    for call in (lambda: ftax.predict("resnet18", "t4", batch=2**63), lambda: ftax.predict("resnet18", "t4", batch=-2**70),
                 lambda: ftax.predict("bert", "t4", seq=10**5000), lambda: ftax.inspect("resnet18", batch=2**64),
                 lambda: ftax.compare("resnet18", "t4", batch=2**63)):
        with pytest.raises(ftax.UsageError, match="does not fit into 64 bits"):
            call()
    for call in (lambda: ftax.predict("resnet18", "t4", batch=range(1, 10_002)), lambda: ftax.predict("resnet18", "t4", batch=itertools.count(1)),
                 lambda: ftax.compare("resnet18", "t4", batch=[1] * 10_001)):
        with pytest.raises(ftax.LimitError, match="batch lists more than 10000 values"):
            call()


def test_a_fixed_batch_is_varied_as_python_does_it(tmp_path):
    (tmp_path / "fixed.txt").write_text("graph fixed\ninput %x f32[4,64]\n%y f32[4,64] = pointwise(%x)\noutput %y\n")
    with pytest.raises(ftax.UsageError, match=r"load_graph\(…, vary_batch=True\) lets it vary"):
        ftax.compare(tmp_path / "fixed.txt", "t4", batch=[1, 8])
    graph = ftax.load_graph(str(tmp_path / "fixed.txt"), vary_batch=True)
    assert len(ftax.compare(graph, "t4", batch=[1, 8])) == 2


def test_options_of_the_predictor_go_through_predict():
    plain, last = (ftax.predict("resnet18", "v100-sxm2-32gb", precision="fp16", batch=64, channels_last=flag)[0]
                   for flag in (False, True))
    assert plain.device_s != last.device_s


def test_warnings_reach_the_prediction_and_the_interpreter():
    with pytest.warns(UserWarning, match="initial values") as caught:
        sweep = ftax.predict("resnet18", "t4", "onnxruntime-cuda-graph", batch=[1, 8])
    assert caught[0].filename == __file__
    assert all(any("initial values" in warning for warning in p.warnings) for p in sweep)
    with pytest.warns(UserWarning, match="initial values"):
        assert ftax.nas.CostFunction("fbnet", "1080ti", "onnxruntime-cuda-graph").warnings
    large = ftax.predict("vgg16", "t4", batch=8192)[0]
    assert not large.fits and any("DOES NOT FIT" in warning for warning in large.warnings)


def test_results_travel():
    sweep = ftax.predict("bert", "t4", batch=[1, 8], seq=128)
    again = pickle.loads(pickle.dumps(sweep))
    assert [p.to_dict() for p in again] == [p.to_dict() for p in sweep] and again.batches == [1, 8]
    assert again.to_dict() == sweep.to_dict() and again.model == "bert" and again.dims == {"seq": 128}
    assert json.loads(json.dumps(sweep.to_dict()))["predictions"][1]["batch"] == 8
    assert pickle.loads(pickle.dumps(sweep[0])).latency_s == sweep[0].latency_s
    html = sweep._repr_html_()
    assert html.startswith("<svg") and "line prediction" in html and "bert on NVIDIA Tesla T4" in html
    assert again._repr_html_() == html and str(again) == str(sweep)
    assert "bound by" in sweep[0]._repr_html_()


def test_a_sweep_prints_the_table_of_the_program():
    words = ["predict", "bert", "--device", "t4", "--batch", "1,8", "--dim", "seq=128"]
    table = ftax._ftax.run(words, None, False)[1].split("\ncrossover:")[0]
    assert str(ftax.predict("bert", "t4", batch=[1, 8], seq=128)) == table


def test_a_sweep_is_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = ftax.predict("bert", "t4", batch=[1, 8], seq=128).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame["batch"]) == [1, 8] and set(frame["seq"]) == {128}


def test_models_of_torch_are_exported_without_their_weights():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512))
    one, many = ftax.predict(net, "t4", example_inputs=torch.empty(1, 512), batch=[1, 4096])
    assert one.device_s < many.device_s
    assert ftax.inspect(net, example_inputs=torch.empty(1, 512), batch=3)["total"]["macs"] == 3 * 2 * 512 * 2048
    program = torch.export.export(net, (torch.empty(2, 512),))
    assert ftax.predict(program, "t4").batches == [None]
    with pytest.raises(ftax.UsageError, match="example_inputs"):
        ftax.predict(net, "t4")

    class Branch(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(ftax.ModelError, match="torch.export cannot export Branch: .*data-dependent"):
        ftax.predict(Branch(), "t4", example_inputs=torch.empty(1, 4))


def test_each_prediction_of_a_sweep_is_explained():
    sweep = ftax.predict("resnet50", "t4", batch=[1, 64])
    first, second = ftax.explain(sweep).split("\n\n")
    assert first == "batch 1:\n" + ftax.explain(sweep[0]) and second == "batch 64:\n" + ftax.explain(sweep[1])


def test_precisions_have_the_names_of_torch():
    for name, same in (("half", "fp16"), ("float16", "fp16"), ("float32", "fp32"), ("bfloat16", "bf16")):
        assert ftax.predict("resnet18", "l4", precision=name)[0] == ftax.predict("resnet18", "l4", precision=same)[0]


def test_a_fixed_batch_is_predicted_as_it_is():
    graph = ftax.Graph.from_text("graph fixed\ninput %x f32[4,64]\n%y f32[4,64] = pointwise(%x)\noutput %y\n")
    assert ftax.predict(graph, "t4").batches == [None]
    with pytest.raises(ftax.UsageError, match="the batch of fixed is fixed"):
        ftax.predict(graph, "t4", batch=8)


def test_nothing_is_printed(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ftax.generate("llama-3-8b", "t4", "torch-compile", prompt=64, new_tokens=8)
    assert capfd.readouterr().err == ""


def test_quantities_out_of_range_are_refused_with_their_limits():
    for call, said in ((lambda: ftax.compare("resnet18", "t4", rate=float("nan")), "rate: nan is not a rate from 1e-6 to 1e12"),
                       (lambda: ftax.compare("resnet18", "t4", max_latency=0), "max_latency: 0 is not a time from"),
                       (lambda: ftax.compare("resnet18", "t4", slo="latency=5"), "slo latency: 5 is not a time from"),
                       (lambda: ftax.report("resnet18", "t4", measured="-3ms"), "measured: -3ms is not a time from"),
                       (lambda: ftax.headroom("resnet18", "t4", budget=float("nan")), "nan is not a budget from"),
                       (lambda: ftax.headroom("resnet18", "t4", budget=float("inf")), "inf is not a budget from"),
                       (lambda: ftax.predict("resnet18", "t4", padding=float("nan")), "padding: nan is not a share from 0 to 1"),
                       (lambda: ftax.predict("resnet18", "t4", host_load="heavy"), "host_load: heavy not in {dedicated,shared,unknown}"),
                       (lambda: ftax.predict("resnet18", "t4", host_file="/nonexistent/host.json"), "/nonexistent/host.json")):
        with pytest.raises(ftax.UsageError, match=said):
            call()


def test_messages_name_functions_that_exist():
    with pytest.raises(ftax.UsageError, match=r"did you mean resnet50.*\(ftax\.models\(\) lists all\)"):
        ftax.predict("resnet5", "t4")
    assert "resnet50" in ftax.models() and ftax.models() == ftax.zoo()


def test_help_lists_arguments_and_units():
    text = pydoc.render_doc(ftax.predict)
    for name in (*ftax._options - {"example_inputs"}, "device", "framework", "precision", "seconds", "bytes", ">>>"):
        assert name in text
    assert "html" not in text and "rate: required items per second" in pydoc.render_doc(ftax.compare)


def test_only_what_is_public_is_listed():
    assert set(dir(ftax)) == set(ftax.__all__) and "np" not in dir(ftax)
    assert all(hasattr(ftax, name) for name in ftax.__all__)


def test_rows_of_all_results_are_read_alike():
    row = ftax.compare("resnet18", "t4", "pytorch-eager", batch=8)[0]
    prediction = ftax.predict("resnet18", "t4", "pytorch-eager", batch=8)[0]
    for name in ("latency_s", "low_s", "high_s", "host_s", "device_s", "bound", "evidence", "sm_active", "power_w", "fits"):
        assert row[name] == getattr(row, name) == prediction[name] == getattr(prediction, name)
    assert pickle.loads(pickle.dumps(row)) == row
    with pytest.raises(AttributeError, match="this row has no 'latency'; it has device"):
        assert row.latency


PIPELINE = pathlib.Path(__file__).parent.parent / "graphs" / "diffusers" / "stable-diffusion-v1-5"


@pytest.mark.parametrize("call", ["ftax.serve('llama-3-70b', device='all', framework='vllm', cards=8, rate=50, prompt=2000, new_tokens=2000, count=20000)",
                                  f"ftax.predict({str(PIPELINE)!r}, 't4', batch=range(1, 9999))"])
def test_an_interrupt_ends_a_call(call):
    program = f"import ftax\nftax.predict('resnet18', 't4')\nprint('begins', flush=True)\n{call}\nprint('ended')"
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONUNBUFFERED": "1"}) as running:
        assert running.stdout.readline() == "begins\n"
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = running.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors and time.monotonic() - begin < 20
