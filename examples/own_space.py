"""A search space of one's own: four stages, each with a depth and a width."""

import ftax


class Stages(ftax.nas.Space):
    name = "stages"
    options = [3, 3] * 4  # depth 1 to 3, width 1, 1.5 or 2 times the stage's base; written "0-2-1-0-1-1-2-2"

    def blocks(self, choices):
        # A block is timed once, so its numbers must say all that its launches depend on: the side of the image, too.
        chain, channels, side = [], 3, 64
        for stage in range(4):
            width = (32 << stage) * (2 + choices[2 * stage + 1]) // 2
            for i in range(1 + choices[2 * stage]):
                chain.append((side, channels, width, 2 if i == 0 else 1))
                channels, side = width, side // 2 if i == 0 else side
        return chain + [(0, channels)]  # the head

    def inputs(self, net, choices):
        return [net.input("x", ["batch", "3", "64", "64"])]

    def build(self, net, block, live):
        side, channels, width, stride = block[:4]
        if side == 0:
            return [net.linear(net.flatten(net.global_average_pool(live[0])), 100)]
        y = net.relu(net.batch_norm(net.conv(live[0], width, kernel=3, stride=stride, pad=1)))
        return [net.add(y, live[0]) if channels == width and stride == 1 else y]


if __name__ == "__main__":
    cost = ftax.nas.CostFunction(Stages(), "t4", precision="fp16", batches=[1, 64])
    for arch in ("0-0-0-0-0-0-0-0", "2-0-2-0-2-0-2-0", "0-2-0-2-0-2-0-2"):
        small, large = cost([arch])[0] * 1e3
        print(f"{arch}: {small:.2f} ms at batch 1, {large:.2f} ms at batch 64")
