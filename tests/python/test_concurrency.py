"""Threads without the interpreter lock, exceptions out of callbacks, fork, and arrays that outlive what made them."""

import gc
import multiprocessing
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ftax
import numpy as np
import pytest


class CallbackFailed(Exception):
    pass


def failing(widths, method):
    def fail(*_):
        raise CallbackFailed(method)

    setattr(widths, method, fail)
    return widths


@pytest.mark.parametrize("method", ["parse", "blocks", "inputs", "build"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_callback_raises_reaches_the_caller(widths, method, threads):
    cost = ftax.nas.CostFunction(failing(widths, method), "t4")
    archs = ["0-0-0", "1-1-1"] if method == "parse" else [[0, 0, 0], [1, 1, 1]]
    with pytest.raises(CallbackFailed, match=method):
        cost(archs, threads=threads)
    delattr(widths, method)
    assert cost(archs, threads=threads).shape == (2, 1)  # nothing was left half done


@pytest.mark.parametrize("method, value", [
    ("blocks", lambda choices: None), ("blocks", lambda choices: [(1,) * 9]), ("blocks", lambda choices: [(10**6,)]),
    ("blocks", lambda choices: []), ("build", lambda net, block, live: []), ("build", lambda net, block, live: [10**6]),
    ("build", lambda net, block, live: "x"), ("inputs", lambda net, choices: []), ("parse", lambda text: [0])])
def test_what_a_callback_returns_is_checked(widths, method, value):
    setattr(widths, method, value)
    with pytest.raises((ftax.Error, RuntimeError, TypeError)):
        ftax.nas.CostFunction(widths, "t4")(["0-0-0"])


def test_a_callback_may_cost_architectures_itself(widths):
    inner = ftax.nas.CostFunction("nasbench201", "t4")
    archs = inner.random(20, np.random.default_rng(0))
    build = widths.build

    def nested(net, block, live):
        assert inner(archs, threads=2).shape == (20, 1)
        return build(net, block, live)

    widths.build = nested
    assert ftax.nas.CostFunction(widths, "t4")(["0-1-2"], threads=2).shape == (1, 1)


def test_threads_share_predictors_and_cost_functions():
    predictor = ftax.Predictor("resnet18", "t4")
    cost = ftax.nas.CostFunction("fbnet", "1080ti", batches=[1, 64])
    archs = cost.random(200, np.random.default_rng(1))
    expected = ftax.nas.CostFunction("fbnet", "1080ti", batches=[1, 64])(archs)
    batches = [1, 3, 17, 64]
    alone = {batch: predictor.predict(batch=batch).latency_s for batch in batches}

    def work(i):
        batch = batches[i % 4]
        return np.array_equal(cost(archs), expected) and predictor.predict(batch=batch).latency_s == alone[batch]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


def test_the_interpreter_runs_on_while_architectures_are_costed():
    cost = ftax.nas.CostFunction("nasbench201", "1080ti", batches=[1, 32, 256])
    archs = cost.random(1_000_000, np.random.default_rng(2))
    cost(archs[:1000])
    ticks, done = 0, threading.Event()

    def run():
        cost(archs)
        done.set()

    worker = threading.Thread(target=run)
    worker.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.01)
    worker.join()
    assert ticks > 5  # with the lock held the loop would turn once or twice


def test_an_array_outlives_the_cost_function():
    cost = ftax.nas.CostFunction("nasbench201", "1080ti", batches=[1, 256])
    archs = cost.random(1000, np.random.default_rng(3))
    latencies = cost(archs)
    kept = latencies.copy()
    view = latencies[::7]
    del cost, latencies
    gc.collect()
    np.random.default_rng(4).random(100_000)
    assert np.array_equal(view, kept[::7])
    view[0] = 1  # the array is the caller's


def test_arguments_are_not_changed_or_kept():
    cost = ftax.nas.CostFunction("nasbench201", "1080ti")
    archs = cost.random(10, np.random.default_rng(5))
    before, references = archs.copy(), sys.getrefcount(archs)
    cost(archs, threads=2)
    assert np.array_equal(archs, before) and sys.getrefcount(archs) == references
    archs.flags.writeable = False
    assert cost(archs).shape == (10, 1)


def score_in_child(cost, archs, queue):
    queue.put(cost(archs, threads=2))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_may_go_on_costing(method):
    cost = ftax.nas.CostFunction("nasbench201", "1080ti", batches=[1, 256])
    archs = cost.random(100, np.random.default_rng(6))
    here = cost(archs, threads=2)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=score_in_child, args=(cost, archs, queue))
    child.start()
    assert np.array_equal(queue.get(timeout=60), here)
    child.join()
    assert child.exitcode == 0
