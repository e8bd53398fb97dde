"""The examples, small. Those whose packages are not installed are left out."""

import ast
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import ftax
import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def test_optuna_keeps_to_the_latency(example):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    best = example("optuna_study").search("t4", limit_s=8e-3, trials=40)
    assert best.user_attrs["latency_s"] <= 8e-3
    # A larger latency allows a larger network.
    assert example("optuna_study").search("t4", limit_s=16e-3, trials=40).value > best.value


def test_pymoo_finds_a_front_above_random_networks(example):
    pytest.importorskip("pymoo")
    archs, front = example("pymoo_fbnet").search("titan-x-pascal", batch=64, generations=20, population=40)
    assert len(front) > 3
    assert (np.diff(front[:, 0]) >= 0).all() and (np.diff(front[:, 1]) >= 0).all()
    cost = ftax.nas.CostFunction("fbnet", "titan-x-pascal", batches=64)
    capacity = example("pymoo_fbnet").CAPACITY
    for arch in cost.random(100, np.random.default_rng(7)):
        allowed = front[front[:, 0] <= cost([arch])[0, 0]]
        assert len(allowed) == 0 or allowed[:, 1].max() >= capacity[arch].sum()


def test_pymoo_keeps_a_latency_and_a_memory_on_every_card(example):
    pytest.importorskip("pymoo")
    module = example("pymoo_fbnet")
    limits = {"max_latency_s": 15e-3, "max_memory_bytes": 0.57e9}
    archs, front = module.search(["titan-x-pascal", "t4"], batch=64, generations=6, population=24, **limits)
    assert len(front) > 1
    costs = np.column_stack([ftax.nas.CostFunction("fbnet", card, batches=64)(archs)[:, 0] for card in ("titan-x-pascal", "t4")])
    assert (costs <= 15e-3).all() and front[:, 0] == pytest.approx(costs.max(axis=1))
    problem = module.FBNet(["titan-x-pascal", "t4"], 64, None, None)
    assert max(max(problem.memory_bytes(arch)) for arch in archs) <= 0.57e9
    # Both limits exclude networks that the search without them finds.
    free_archs, free = module.search(["titan-x-pascal", "t4"], batch=64, generations=6, population=24)
    assert free[:, 0].max() > 15e-3 and max(max(problem.memory_bytes(arch)) for arch in free_archs) > 0.57e9
    assert len(module.search("t4", batch=64, generations=2, population=8, max_latency_s=1e-6)[0]) == 0


def test_a_differentiable_search_ends_within_its_latency(example):
    torch = pytest.importorskip("torch")
    module = example("differentiable_latency")
    _, latency_s, history = module.search("titan-x-pascal", limit_s=15e-3, steps=300)
    assert latency_s < 15e-3 * 1.05
    cost = ftax.nas.CostFunction("fbnet", "titan-x-pascal", batches=64)
    table = module.LatencyTable(cost)
    arch = cost.random(1, np.random.default_rng(8))[0]
    certain = torch.nn.functional.one_hot(torch.from_numpy(arch).long(), 9).float().requires_grad_()
    expected = table(certain)
    assert expected.item() == pytest.approx(cost([arch])[0, 0], rel=1e-5)
    expected.backward()
    assert certain.grad[3, 7] - certain.grad[3, 8] > 0  # the widest candidate costs more than skipping


def test_ray_workers_give_what_one_process_gives(example):
    ray = pytest.importorskip("ray")
    cost = ftax.nas.CostFunction("nasbench201", "1080ti", batches=[1, 256])
    archs = cost.random(20_000, np.random.default_rng(9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
                 runtime_env={"env_vars": {"PYTHONPATH": ":".join(sys.path)}})
    try:
        latencies, seconds = example("ray_scores").score(cost, archs, processes=2, share=4_000)
    finally:
        ray.shutdown()
    assert np.array_equal(latencies, cost(archs)) and seconds > 0


def test_a_space_of_ones_own_costs_what_its_graph_costs(example):
    space = example("own_space").Stages()
    cost = ftax.nas.CostFunction(space, "t4", batches=[1, 64], host="reference")
    for arch in cost.random(200, np.random.default_rng(10)):
        graph = cost.build_graph(arch)
        assert cost([arch])[0] == pytest.approx(ftax.Predictor(graph, "t4", host="reference").latency_s([1, 64]), rel=1e-3)
    source = (EXAMPLES / "own_space.py").read_text().splitlines()
    assert len(source) <= 40


def test_a_model_that_got_slower_fails_its_pull_request(tmp_path):
    def run(*words):
        return subprocess.run([sys.executable, EXAMPLES / "ci" / "budget.py", *words, "--device", "l4", "--batch", "64"], capture_output=True,
                              text=True, env={**os.environ, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")})

    if not shutil.which("ftax"):
        pytest.skip("no program ftax in the PATH")
    assert run("resnet50", "--before", "resnet50").returncode == 0
    slower = run("resnet101", "--before", "resnet50", "--growth", "10%")
    assert slower.returncode == 1 and "over budget" in slower.stdout and "over budget" in (tmp_path / "summary").read_text()
    assert run("resnet50", "--before", "resnet101").returncode == 0
    assert run("resnet50", "--largest-ms", "0.1").returncode == 1
    refused = run("resnet5", "--before", "resnet50")
    assert refused.returncode == 2 and "resnet50" in refused.stderr


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in cells:
            if cell["cell_type"] == "code":
                *lines, last = ast.parse("".join(cell["source"])).body
                exec(compile(ast.Module(lines, []), notebook.name, "exec"), names)
                if not isinstance(last, ast.Expr):
                    exec(compile(ast.Module([last], []), notebook.name, "exec"), names)
                elif (shown := eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)) is not None:
                    assert str(shown) and getattr(shown, "_repr_html_", lambda: "shown")()
    assert names["best"].verdict
