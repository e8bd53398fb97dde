"""What is asked for in vain: exceptions with the codes of the program, and never a crash."""

import ftax
import numpy as np
import pytest


@pytest.mark.parametrize(
    "error, code", [(ftax.UsageError, 2), (ftax.ModelError, 3), (ftax.LimitError, 4), (ftax.RefusedError, 5), (ftax.ProfileError, 6)])
def test_each_class_has_the_exit_code_of_the_program(error, code):
    assert error.code == code and issubclass(error, ftax.Error)


def test_models_that_are_none(tmp_path):
    with pytest.raises(ftax.UsageError, match="resnet5"):
        ftax.load_graph("resnet5")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\x08\x07\xff\xff\xff\xff")
    with pytest.raises(ftax.ModelError):
        ftax.load_graph(str(broken))
    with pytest.raises(ftax.ModelError, match="line|:1:"):
        ftax.Graph.from_text("nonsense")


def test_dimensions_that_are_open_or_wrong(tiny):
    predictor = ftax.Predictor(tiny, "t4")
    with pytest.raises(ftax.UsageError, match="batch"):
        predictor.predict()
    with pytest.raises(ftax.UsageError, match="sequence"):
        predictor.predict(batch=1, sequence=3)
    with pytest.raises(ftax.UsageError):
        predictor.predict(batch=0)
    with pytest.raises(ftax.LimitError):
        predictor.predict(batch=2**62)
    with pytest.raises(ftax.UsageError, match="batch must be a whole number, not 'eight'"):
        predictor.predict(batch="eight")
    assert predictor.predict(batch=1).latency_s > 0  # still of use


def test_unknown_names():
    for arguments in [("rtx-9999",), ("t4", "no-framework"), ("t4", "pytorch-eager", "fp13")]:
        with pytest.raises(ftax.UsageError):
            ftax.Predictor("resnet18", *arguments)
    with pytest.raises(ftax.UsageError):
        ftax.Predictor("resnet18", "t4", host="no-such-host")
    with pytest.raises(ftax.UsageError):
        ftax.nas.CostFunction("no-space", "t4")


def test_files_that_are_no_measurements(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,2\n")
    with pytest.raises(ftax.ProfileError):
        ftax.validate(rows)
    with pytest.raises(ftax.Error):
        ftax.validate(tmp_path / "absent.csv")
    with pytest.raises(ftax.ProfileError):
        ftax.Predictor("resnet18", "t4", device_profile=str(rows))


def test_networks_that_cannot_be_built():
    net = ftax.GraphBuilder("bad")
    x = net.input("x", ["batch", "3", "8", "8"])
    for wrong in (lambda: net.relu(99), lambda: net.shape(99), lambda: net.conv(x, 4, stride=0), lambda: net.conv(x, -1),
                  lambda: net.conv(x, 4, groups=0), lambda: net.linear(x, 0), lambda: net.reshape(x, ["7"]),
                  lambda: net.concat([], 0), lambda: net.matmul(x, 77), lambda: net.transpose(x, [0, 0, 1, 2]),
                  lambda: net.input("y", ["batch*"]), lambda: net.finish([12345])):
        with pytest.raises(ftax.Error):
            wrong()
    with pytest.raises(ValueError, match="f33"):
        net.input("y", ["1"], dtype="f33")
    assert len(net.finish([x])) == 0


def test_architectures_that_do_not_fit():
    cost = ftax.nas.CostFunction("fbnet", "1080ti", batches=[1])
    good = cost.random(3, np.random.default_rng(0))
    for wrong in (good[:, :5], good[0], good * 100, good - 9, good.astype(float), "0-1-2", [["x"]], 7):
        with pytest.raises(ftax.UsageError):
            cost(wrong)
    with pytest.raises(ftax.UsageError, match="architecture 1: fbnet"):
        cost(["-".join("0" * 22), "0-1-2"])
    with pytest.raises(ftax.UsageError):
        cost.marginal_cost(good[0], 22)
    with pytest.raises(ftax.UsageError):
        ftax.nas.CostFunction("fbnet", "1080ti", batches=[0])
    assert cost([]).shape == (0, 1)
    assert cost(good).shape == (3, 1)
