"""Three small networks with the layers that exporters write differently; their files stand in tests/oracle/exported.

    exporters.py write tests/oracle/exported tests/oracle/small_models.py:image tests/oracle/small_models.py:encoder \
        tests/oracle/small_models.py:decoder
"""

import torch
from torch import nn


class Image(nn.Module):
    """Convolutions with folded batch norms, a gate, channels in two chunks, global pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU())
        self.branch = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(16, 10))

    def forward(self, x):
        kept, changed = self.stem(x).chunk(2, 1)
        return self.head(torch.cat([kept, self.branch(changed)], 1))


class Encoder(nn.Module):
    """Attention with a rolled input, a GELU of nn and one spelled out, layer norms, dropout."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def attend(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.out(y.transpose(1, 2).flatten(2).contiguous())

    def forward(self, x):
        x = x + self.dropout(self.attend(self.norm(torch.roll(x, 1, 1))))
        y = nn.functional.gelu(self.wide(x))
        y = 0.5 * y * (1 + torch.tanh(0.7978845608 * (y + 0.044715 * torch.pow(y, 3))))
        return self.last(x + self.dropout(self.narrow(y)))


def image():
    return Image(), {"x": torch.zeros(2, 3, 32, 32, device="meta")}, {"x": {0: "batch"}}


def encoder():
    return Encoder(), {"x": torch.zeros(2, 16, 32, device="meta")}, {"x": {0: "batch"}}


class Decoder(nn.Module):
    """Attention under a mask; an RMSNorm of nn and one spelled out, as transformers has them."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.first, self.gain = nn.RMSNorm(width), nn.Parameter(torch.ones(width))
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out, self.gate = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def norm(self, x):
        return self.gain * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def attend(self, x, mask):
        batch, length, width = x.shape
        query, key, value = (layer(x).view(batch, length, self.heads, -1).transpose(1, 2) for layer in (self.query, self.key, self.value))
        y = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        return self.out(y.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x, mask):
        x = x + self.attend(self.first(x), mask > 0)
        y = self.norm(x)
        return x + self.narrow(nn.functional.silu(self.gate(y)) * self.wide(y))


def decoder():
    inputs = {"x": torch.zeros(2, 16, 64, device="meta"), "mask": torch.zeros(2, 16, device="meta")}
    return Decoder(), inputs, {name: {0: "batch"} for name in inputs}
