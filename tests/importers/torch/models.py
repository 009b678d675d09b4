"""Small modules of many families, written by hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

F = nn.functional


class Function(nn.Module):
    """A function of itself and inputs, with a weight of three elements and buffers."""

    def __init__(self, function: Any, **buffers: Any) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(3))
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


class Perceptron(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 5, padding=2)
        self.second = nn.Conv2d(4, 8, 5)
        self.classify = nn.Linear(8 * 3 * 3, 10)

    def forward(self, image: Any) -> Any:
        x = F.max_pool2d(torch.relu(self.first(image)), 2)
        x = F.avg_pool2d(torch.sigmoid(self.second(F.pad(x, (1, 1, 1, 1)))), 2, ceil_mode=True)
        return self.classify(torch.flatten(x, 1))


class Residual(nn.Module):
    """Two residual blocks with batch normalisation, one of which changes the shape."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.wide = nn.Conv2d(8, 16, 3, 2, 1, bias=False)
        self.wide_norm = nn.BatchNorm2d(16)
        self.short = nn.Sequential(nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(16, 5)

    def forward(self, image: Any) -> Any:
        x = self.stem(image)
        x = torch.relu(self.wide_norm(self.wide(x)) + self.short(x))
        return self.classify(self.pool(x).flatten(1))


class GptBlock(nn.Module):
    def __init__(self, features: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(features)
        self.qkv = nn.Linear(features, 3 * features)
        self.proj = nn.Linear(features, features)
        self.ln_2 = nn.LayerNorm(features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.heads = heads

    def forward(self, x: Any) -> Any:
        batch, steps, features = x.shape
        parts = self.qkv(self.ln_1(x)).chunk(3, -1)
        shape = (batch, steps, self.heads, features // self.heads)
        query, key, value = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, steps, features))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A language model with tied embeddings, and its loss."""

    def __init__(self, vocabulary: int = 24, features: int = 16, steps: int = 8) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, features)
        self.places = nn.Embedding(steps, features)
        self.blocks = nn.ModuleList(GptBlock(features) for _ in range(2))
        self.norm = nn.LayerNorm(features)
        self.head = nn.Linear(features, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, words: Any, following: Any) -> Any:
        x = self.tokens(words) + self.places(torch.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.norm(x))
        return F.cross_entropy(scores.flatten(0, 1), following.flatten())


class Llama(nn.Module):
    """A layer with RMSNorm, rotary positions, grouped queries and SwiGLU."""

    def __init__(self, features: int = 16, heads: int = 4, groups: int = 2, steps: int = 6) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, features // heads
        self.norm = nn.RMSNorm(features, eps=1e-6)
        self.query = nn.Linear(features, features, bias=False)
        self.key = nn.Linear(features, groups * self.size, bias=False)
        self.value = nn.Linear(features, groups * self.size, bias=False)
        self.out = nn.Linear(features, features, bias=False)
        self.gate = nn.Linear(features, 24, bias=False)
        self.up = nn.Linear(features, 24, bias=False)
        self.down = nn.Linear(24, features, bias=False)
        rates = 100.0 ** (-torch.arange(0, self.size, 2) / self.size)
        angles = torch.outer(torch.arange(steps).float(), rates)
        self.register_buffer("cosines", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sines", torch.cat([angles, angles], -1).sin(), persistent=False)

    def rotated(self, x: Any) -> Any:
        first, second = x.chunk(2, -1)
        return x * self.cosines + torch.cat([-second, first], -1) * self.sines

    def forward(self, x: Any) -> Any:
        batch, steps, _ = x.shape
        h = self.norm(x)
        query = self.query(h).view(batch, steps, self.heads, self.size).transpose(1, 2)
        key = self.key(h).view(batch, steps, self.groups, self.size).transpose(1, 2)
        value = self.value(h).view(batch, steps, self.groups, self.size).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(
            self.rotated(query), self.rotated(key), value, is_causal=True, enable_gqa=True
        )
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.gate(x)) * self.up(x))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 5, 16) * 0.1)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, "gelu", batch_first=True, norm_first=True)
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.classify = nn.Linear(16, 3)

    def forward(self, image: Any) -> Any:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.classify(self.layer(x)[:, 0]) * self.scale


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.inner = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, image: Any) -> Any:
        high = F.silu(self.norm(self.down(image)))
        low = F.leaky_relu(self.inner(F.max_pool2d(high, 2)))
        joined = torch.cat([high, self.up(low)], 1)
        return self.out(F.interpolate(joined, scale_factor=0.5, mode="nearest"))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(5, 6, num_layers=2, batch_first=True)
        self.classify = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        every, _ = self.cell(x)
        return self.classify(every[:, -1])


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(5, 6, bidirectional=True)

    def forward(self, x: Any) -> Any:
        return self.cell(x)[0]


class MobileNet(nn.Module):
    """Depthwise convolutions with squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(4, 12, 1, bias=False), nn.BatchNorm2d(12), nn.Hardswish())
        self.depth = nn.Sequential(
            nn.Conv2d(12, 12, 3, 2, 1, groups=12, bias=False), nn.BatchNorm2d(12), nn.ReLU6()
        )
        self.squeeze = nn.Conv2d(12, 4, 1)
        self.excite = nn.Conv2d(4, 12, 1)
        self.project = nn.Sequential(nn.Conv2d(12, 4, 1, bias=False), nn.BatchNorm2d(4))

    def forward(self, image: Any) -> Any:
        x = self.depth(self.expand(image))
        weight = F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        return self.project(x * weight)


class Recommender(nn.Module):
    """Embeddings of several fields, their products, and dense features."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(20, 8, padding_idx=0)
        self.items = nn.Embedding(30, 8)
        self.dense = nn.Linear(3, 8)
        self.top = nn.Sequential(nn.Linear(8 + 3, 8), nn.ELU(), nn.Linear(8, 1))

    def forward(self, user: Any, item: Any, features: Any) -> Any:
        parts = torch.stack([self.users(user), self.items(item), self.dense(features)], 1)
        products = torch.bmm(parts, parts.transpose(1, 2))
        rows, columns = torch.triu_indices(3, 3, 1)
        crossed = products[:, rows, columns]
        return torch.sigmoid(self.top(torch.cat([parts[:, 2], crossed], 1))).squeeze(1)


class Mixture(nn.Module):
    """Experts that all compute, weighted by a softmax of the largest scores."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.Parameter(torch.randn(4, 6, 6) * 0.3)

    def forward(self, x: Any) -> Any:
        scores = self.router(x)
        least = scores.topk(2, -1).values[..., -1:]
        weights = scores.masked_fill(scores < least, float("-inf")).softmax(-1)
        return torch.einsum("be,eij,bj->bi", weights, self.experts, x)


def normal(*shape: int) -> Any:
    return torch.randn(shape)


def whole(most: int, *shape: int) -> Any:
    return torch.randint(0, most, shape)


FAMILIES: dict[str, tuple[type[nn.Module], Any]] = {
    "perceptron": (Perceptron, lambda: (normal(8, 12),)),
    "lenet": (LeNet, lambda: (normal(4, 1, 14, 14),)),
    "residual": (Residual, lambda: (normal(4, 3, 8, 8),)),
    "gpt": (Gpt, lambda: (whole(24, 4, 8), whole(24, 4, 8))),
    "llama": (Llama, lambda: (normal(4, 6, 16),)),
    "vit": (VisionTransformer, lambda: (normal(4, 3, 8, 8),)),
    "unet": (UNet, lambda: (normal(4, 1, 8, 8),)),
    "lstm": (Recurrent, lambda: (normal(4, 3, 5),)),
    "gru": (Gated, lambda: (normal(3, 4, 5),)),
    "mobilenet": (MobileNet, lambda: (normal(4, 4, 6, 6),)),
    "recommender": (Recommender, lambda: (whole(20, 8), whole(30, 8), normal(8, 3))),
    "mixture": (Mixture, lambda: (normal(8, 6),)),
}
"""By name, a module and a function that makes inputs for it."""
