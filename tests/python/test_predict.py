import json
import pathlib
import pickle
import subprocess
import sys

import ftax
import numpy as np
import pytest


def test_a_sweep_equals_single_predictions(tiny):
    predictor = ftax.Predictor(tiny, "t4")
    sweep = predictor.sweep([1, 8, 64])
    assert [p.latency_s for p in sweep] == [predictor.predict(batch=b).latency_s for b in (1, 8, 64)]
    assert np.array_equal(predictor.latency_s(np.array([1, 8, 64])), [p.latency_s for p in sweep])
    assert all(p.low_s < p.latency_s < p.high_s for p in sweep)
    assert sweep[0].bound == "host"
    assert sweep[0].closed_form_s == max(sweep[0].host_s, sweep[0].device_s)


def test_functions_give_what_predictors_give():
    predictor = ftax.Predictor("resnet18", "t4", "pytorch-eager@1.12")
    assert ftax.predict("resnet18", "t4", "pytorch-eager@1.12", batch=4)[0].latency_s == predictor.predict(batch=4).latency_s
    found = ftax.crossover("resnet18", "t4", "pytorch-eager@1.12")
    assert found.low < found.batch < found.high and found.gpu_waits == "below"
    assert [c.batch for c in ftax.crossovers("resnet18", "t4", "pytorch-eager@1.12")] == [found.batch]
    assert found.causes[0][0] == "conv" and len(found.causes) <= 3
    before, after = predictor.sweep([int(found.batch), int(found.batch) + 1])
    assert before.bound == "host" and after.bound != "host"


@pytest.mark.parametrize("framework, device", [("pytorch-eager@1.13", "quadro-rtx-8000"), ("torch-compile", "h100-sxm5-80gb")])
def test_headroom_ends_where_the_budget_does(framework, device):
    predictor = ftax.Predictor("resnet18", device, framework)
    found = {h.name: h for h in ftax.headroom("resnet18", device, framework, budget=0.1, batch=2)}
    assert set(found) == {"batch", "width", "depth"}
    batch = found["batch"]
    before, within, beyond = predictor.sweep([2, int(batch.end), int(batch.end) + 1])
    assert batch.start == 2 < batch.end
    assert batch.latency_s == within.latency_s <= 1.1 * before.latency_s < beyond.latency_s
    assert batch.bound == within.bound
    assert found["width"].start == 1 < found["width"].end
    assert ftax.headroom("resnet18", "t4")[0].start == 1
    with pytest.raises(ftax.UsageError):
        ftax.headroom("resnet18", "t4", budget=0)


def test_residency_is_a_share_that_grows_with_the_batch():
    small, large = ftax.predict("resnet50", "t4", batch=[1, 64])
    assert 0 < small.sm_active < large.sm_active <= 1
    assert 0 < small.warp_occupancy < large.warp_occupancy < large.sm_active


def test_operators_add_up(tiny):
    predictor = ftax.Predictor(tiny, "t4")
    operators = predictor.operators(batch=8)
    prediction = predictor.predict(batch=8)
    assert sum(op["host_s"] for op in operators) == pytest.approx(prediction.host_s)
    assert sum(op["device_s"] for op in operators) == pytest.approx(prediction.device_s)
    assert sum(op["kernels"] for op in operators) == prediction.kernels


def test_operators_are_those_the_framework_runs():
    convolutions = [op for op in ftax.Predictor("resnet18", "t4", "torch-tensorrt").operators(batch=1)
                    if op["source"].startswith("Convolution")]  # by the names of TensorRT's layers
    assert len(convolutions) == 20  # batch norms and relus are folded into them: labels must not shift


def test_cudnn_9_runs_filters_of_one_pixel_in_nchw():
    old, new = (ftax.Predictor("resnet50", "t4", precision="fp16", cudnn=version, host="reference").predict(batch=64) for version in (8, 9))
    assert new.device_s < old.device_s
    with pytest.raises(ftax.UsageError, match="cuDNN 6"):
        ftax.Predictor("resnet18", "t4", cudnn=6)


def test_compare_skips_what_a_device_lacks(tiny):
    rows = ftax.compare(tiny, ["t4", "p100"], precision=["fp32", "bf16"], batch=[1, 8])
    assert [row["batch"] for row in rows if "skipped" not in row and row["device"].startswith("p100")] == [1, 8]
    assert any(row["device"].startswith("p100") and row["precision"] == "bf16" and "skipped" in row for row in rows)
    with pytest.raises(ftax.UsageError):
        ftax.compare(tiny, "p100", precision="bf16", batch=1)
    with pytest.raises(ftax.UsageError, match="bf16"):
        ftax.compare(tiny, ["p100", "p4"], precision="bf16", batch=1)
    with pytest.raises(ftax.UsageError, match="'frameworks' is neither an argument nor an open dimension"):
        ftax.compare(tiny, ["t4", "p100"], frameworks="pytorch-eager", batch=1)


def test_a_graph_survives_the_round_trip_through_text(tiny):
    again = ftax.Graph.from_text(tiny.to_text())
    assert again.symbols == ["batch"]
    assert [op["kind"] for op in again.operators] == ["conv", "batch_norm", "pointwise", "global_pool", "reshape", "linear"]
    assert again.inputs == [("x", "f32", ["batch", "3", "32", "32"])]
    assert ftax.predict(again, "t4")[0].latency_s == ftax.predict(tiny, "t4")[0].latency_s


def test_inspect_counts_flops_by_hand(tiny):
    report = ftax.inspect(tiny, batch=2)
    # 2 images of 32 × 32 pixels, 16 channels of 27 taps; 16 · 10 products at the end. A multiply-add counts one MAC.
    assert report["total"]["macs"] == 2 * 32 * 32 * 16 * 27 + 2 * 16 * 10
    # With an open batch: formulas, as the program gives them.
    (flops,) = ftax.inspect("resnet50")["work"]["flops"]
    assert flops["powers"] == {"batch": 1} and flops["coefficient"] == ftax.inspect("resnet50", batch=1)["total"]["flops"]


def test_a_predictor_keeps_its_graph():
    predictor = ftax.Predictor(ftax.load_graph("resnet18"), "t4")
    predictor.graph = None
    assert predictor.predict(batch=1).latency_s > 0


def test_validate_reports_errors_and_writes_rows(tmp_path):
    latency_ms = 1e3 * ftax.predict("resnet18", "t4", "pytorch-eager", batch=1)[0].latency_s
    rows = tmp_path / "rows.csv"
    rows.write_text(f"gpu,framework,precision,model,batch,latency_ms\nt4,pytorch-eager,fp32,resnet18,1,{2 * latency_ms}\n"
                    "t4,pytorch-eager,fp32,no_such_model,1,5\n")
    report = ftax.validate(rows, predictions=tmp_path / "out.csv")
    assert report["overall"]["bias"] == pytest.approx(-0.5, rel=1e-3)
    assert report["skipped"]
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    anchored = ftax.validate(rows, anchor=rows)
    assert anchored["overall"]["mape"] == pytest.approx(0.5, rel=1e-3)  # the only row is left out of its own anchors


def test_profiles_carry_their_provenance():
    sheet = ftax.device("Tesla T4")
    assert sheet["slug"] == "t4" and sheet["sms"] == 40
    assert all(p["source"] for p in sheet["parameters"])
    host = ftax.framework("pytorch-eager", ftax.nas.measured_host)
    assert host["version"] == "1.8"
    assert set(ftax.hosts("pytorch-eager")) >= {"reference", ftax.nas.measured_host}


def test_the_package_has_types_for_checkers():
    import importlib.resources

    files = {f.name for f in importlib.resources.files("ftax").iterdir()}
    assert {"py.typed", "_ftax.pyi"} <= files
    stub = (importlib.resources.files("ftax") / "_ftax.pyi").read_text()
    assert "class Predictor" in stub and "def load_graph" in stub


def test_importing_does_not_load_what_is_not_needed():
    code = "import sys, ftax, json; print(json.dumps([m for m in ('torch', 'onnx', 'pandas') if m in sys.modules]))"
    assert json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) == []


def test_generate_gives_both_phases_of_each_batch():
    eight, one = ftax.generate("llama-3-8b", "h100-sxm5-80gb", "vllm", prompt=512, new_tokens=64, batch=[1, 8], price=2.0)
    assert one["batch"] == 1 and eight["batch"] == 8
    assert one["ttft_s"] < eight["ttft_s"] and one["tpot_s"] < eight["tpot_s"]
    assert one["total_s"] == pytest.approx(one["ttft_s"] + 63 * one["tpot_s"])
    assert eight["tokens_per_s"] == pytest.approx(8 * 64 / eight["total_s"])
    assert eight["tokens_per_dollar"] == pytest.approx(eight["tokens_per_s"] * 1800)
    assert eight["memory"]["cache_bytes"] == pytest.approx(8 * one["memory"]["cache_bytes"])
    assert one["fits"] and one["largest_batch"] > 8
    with pytest.raises(ftax.UsageError):
        ftax.generate("llama-3-8b", "t4", prompt=512, new_tokens=0)


def test_a_version_of_a_framework_can_be_named():
    def latency(framework):
        return ftax.predict("resnet18", "t4", framework, batch=1)[0].latency_s

    assert latency("pytorch-eager@2.4") != latency("pytorch-eager@1.13")
    assert ftax.Predictor("resnet18", "t4", "pytorch-eager@2.4").framework == "pytorch-eager"
    with pytest.raises(ftax.UsageError):
        latency("pytorch-eager@new")


def test_serve_ranks_combinations_and_counts_as_the_program_does():
    rows = ftax.serve("llama-3-8b", ["h100-sxm5-80gb", "l40s"], "vllm@0.11", rate=5, prompt=512, new_tokens=64, slo="ttft=500ms",
                      price=[3, 1], count=200)
    assert [row["device"] for row in rows] == ["l40s", "h100-sxm5-80gb"]
    assert all(row["keeps_level"] and row["ttft_p50_s"] <= row["ttft_p99_s"] for row in rows)
    with pytest.raises(ftax.UsageError, match="rate"):
        ftax.serve("llama-3-8b", "l40s", prompt=512, new_tokens=64)
    with pytest.raises(ftax.UsageError, match="rates"):
        ftax.serve("llama-3-8b", "l40s", rate=5, rates=5, prompt=8, new_tokens=2)


def test_a_report_is_a_table_a_frame_and_a_page(tiny):
    report = ftax.compare(tiny, ["t4", "l4"], batch=[1, 64], sort="throughput")
    assert str(report).startswith(report.verdict) and report.verdict.startswith(("best: ", "tie: "))
    assert len(str(report).splitlines()) >= 4 + len(report)
    assert report.to_dict()["rows"] == list(report) and report.to_dict()["model"] == tiny.name
    assert report[0]["items_per_s"] == max(row["items_per_s"] for row in report)
    page = report._repr_html_()
    assert page.startswith("<iframe") and "&lt;table" in page
    single = ftax.predict(tiny, report[0]["device"], batch=report[0]["batch"])[0]
    assert single.latency_s == pytest.approx(report[0]["latency_s"], rel=1e-12)
    again = pickle.loads(pickle.dumps(report))
    assert again == report and str(again) == str(report) and again._repr_html_() == page
    assert len(ftax.compare(tiny, ["t4", "l4"], batch=[1, 64], top=3)) == 3


def test_the_examples_of_the_docstrings_hold(monkeypatch):
    import doctest
    import importlib.util
    import inspect
    import pathlib
    import warnings

    monkeypatch.chdir(pathlib.Path(__file__).resolve().parents[2])
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for name in ftax.__all__:
        function = getattr(ftax, name)
        if not callable(function) or inspect.isclass(function) and function is not ftax.Sweep:
            continue
        assert ">>> " in function.__doc__, name
        if name == "from_torch" and importlib.util.find_spec("torch") is None:
            continue
        (test,) = finder.find(function, name, globs={"ftax": ftax})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runner.run(test)
    assert runner.tries >= 25 and runner.failures == 0
    assert "slo: service level objectives" in ftax.compare.__doc__


def test_a_folder_of_diffusers_is_a_pipeline():
    folder = pathlib.Path(__file__).parent.parent / "graphs" / "diffusers" / "stable-diffusion-v1-5"
    # A V100 stays below its power limit, which a pipeline shares.
    few, many = (ftax.predict(folder, "v100-sxm2-16gb", precision="fp16", steps=steps)[0] for steps in (2, 12))
    parts = [{part["name"]: part["device_s"] for part in p.parts} for p in (few, many)]
    assert list(parts[0]) == ["scheduler", "text_encoder", "unet", "vae"]
    assert parts[1]["unet"] == pytest.approx(parts[0]["unet"] * 13 / 3)  # PNDM: one pass more than steps
    assert parts[1]["vae"] == pytest.approx(parts[0]["vae"])
    assert ftax.predict("resnet50", "t4")[0].parts == []
    with pytest.raises(ftax.UsageError, match="steps"):
        ftax.predict("resnet50", "t4", steps=2)
