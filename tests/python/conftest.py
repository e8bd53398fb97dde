"""Small models and spaces that the tests share."""

import ftax
import pytest


class Widths(ftax.nas.Space):
    """Layers of 16, 32 or 64 channels, written "0-2-1"."""

    name = "widths"
    options = (3, 3, 3)

    def blocks(self, choices):
        widths = [3] + [16 << choice for choice in choices]
        return list(zip(widths, widths[1:]))

    def inputs(self, net, choices):
        return [net.input("x", ["batch", "3", "32", "32"])]

    def build(self, net, block, live):
        return [net.relu(net.conv(live[0], block[1], kernel=3, pad=1))]


@pytest.fixture
def widths():
    return Widths()


@pytest.fixture
def tiny():
    net = ftax.GraphBuilder("tiny")
    x = net.input("x", ["batch", "3", "32", "32"])
    y = net.relu(net.batch_norm(net.conv(x, 16, kernel=3, pad=1)))
    return net.finish([net.linear(net.flatten(net.global_average_pool(y)), 10)])
