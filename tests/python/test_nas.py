import pickle

import ftax
import numpy as np
import pytest

CELL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|"


@pytest.mark.parametrize("host", ["", ftax.nas.measured_host])
@pytest.mark.parametrize("space", ftax.nas.space_names())
def test_the_cost_function_equals_the_predictor(space, host):
    cost = ftax.nas.CostFunction(space, "2080ti", batches=[1, 32], campaign=ftax.nas.Campaign(waits_after_blocks=False), host=host)
    archs = cost.random(10, np.random.default_rng(1))
    fast = cost(archs)
    for arch, latencies in zip(archs, fast):
        predictor = ftax.Predictor(cost.build_graph(arch), "2080ti", host=host)
        assert latencies == pytest.approx(predictor.latency_s([1, 32], **cost.dims), rel=1e-3)


@pytest.mark.parametrize("space", ["ofa", "ofa-resnet"])
def test_random_architectures_have_the_image_sides_that_are_searched(space):
    archs = ftax.nas.CostFunction(space, "t4").random(2000, np.random.default_rng(1))
    assert sorted(set(archs[:, -1] + 32)) == list(range(128, 225, 4))  # a choice is the side less the smallest, 32 pixels


def test_a_cost_function_says_what_it_assumes():
    with pytest.warns(UserWarning, match="pytorch-eager 2.11, the newest measured"):
        assumed = ftax.nas.CostFunction("nasbench201", "2080ti")
    named = ftax.nas.CostFunction("nasbench201", "2080ti", "pytorch-eager@2.11")
    assert len(assumed.warnings) == len(named.warnings) + 1
    assert np.array_equal(assumed([CELL]), named([CELL]))


def test_a_space_takes_the_dimensions_that_it_leaves_open():
    usual = ftax.nas.CostFunction("transformer", "t4", batches=[1, 64])
    long = ftax.nas.CostFunction("transformer", "t4", batches=[1, 64], dims={"seq": 512})
    archs = long.parse(["256-4-4-1024", "768-12-12-3072"])
    assert usual.dims == {"seq": 128} and long.dims == {"seq": 512}
    assert (long(archs)[:, 1] > 3 * usual(archs)[:, 1]).all()
    assert np.array_equal(pickle.loads(pickle.dumps(long))(archs), long(archs))
    for dims, what in (({"sequence": 64}, "no dimension 'sequence' open .those are: seq"), ({"seq": 64.0}, "seq must be a whole number"),
                       ({"seq": 0}, "at least 1")):
        with pytest.raises(ftax.UsageError, match=what):
            ftax.nas.CostFunction("transformer", "t4", dims=dims)


def test_texts_integers_and_layouts_give_the_same():
    cost = ftax.nas.CostFunction("nasbench201", "1080ti", batches=[1, 256])
    choices = cost.parse([CELL, CELL])
    expected = cost([CELL, CELL])
    assert expected.shape == (2, 2) and expected.dtype == np.float64
    for layout in (choices, choices.astype(np.int64), np.asfortranarray(choices), choices[::-1], choices.tolist(),
                   np.repeat(choices, 2, axis=0)[::2]):
        assert np.array_equal(cost(layout), expected)


def test_marginal_costs_are_costs_of_changed_architectures():
    cost = ftax.nas.CostFunction("fbnet", "1080ti", batches=[1, 64])
    arch = cost.random(1, np.random.default_rng(2))[0]
    table = cost.table(arch)
    assert [len(options) for options in table] == cost.options
    for site in (0, 7, 21):
        changed = np.repeat(arch[None], 9, axis=0)
        changed[:, site] = np.arange(9)
        assert np.array_equal(table[site], cost(changed))


def test_ten_measured_architectures_calibrate_a_campaign():
    truth = ftax.nas.CostFunction("fbnet", "1080ti", batches=[1], campaign=ftax.nas.Campaign(host_scale=1.6))
    archs = truth.random(10, np.random.default_rng(3))
    anchor = [(arch, 1, latency) for arch, latency in zip(archs, truth(archs)[:, 0])]
    assert ftax.nas.CostFunction("fbnet", "1080ti", anchor=anchor).campaign.host_scale == pytest.approx(1.6, rel=0.03)


def test_a_cost_function_can_be_pickled():
    cost = ftax.nas.CostFunction("nasbench201", "1080ti", batches=[1, 256], campaign=ftax.nas.Campaign(2.0, 0.9, True))
    again = pickle.loads(pickle.dumps(cost))
    archs = cost.random(50, np.random.default_rng(4))
    assert np.array_equal(again(archs), cost(archs))
    assert again.campaign.waits_after_blocks is True


def test_a_space_written_in_python_is_timed_like_its_graph(widths):
    cost = ftax.nas.CostFunction(widths, "t4", batches=[1, 128])
    for arch in ("0-0-0", "2-1-0", "2-2-2"):
        assert cost([arch])[0] == pytest.approx(
            ftax.Predictor(cost.build_graph(arch), "t4", host=ftax.nas.measured_host, cudnn=7).latency_s([1, 128]), rel=1e-3)
    assert cost(["2-2-2"])[0, 1] > cost(["0-0-0"])[0, 1]
