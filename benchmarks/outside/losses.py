"""Losses."""

from __future__ import annotations

from typing import Any

from .outsider import MASK, POSITIVE, SIGN, below, written
from .peer import F, torch


@written(
    """
def focal_loss(logit, target, *, alpha):
    entropy = lambda n, k: softplus(logit[n, k]) - logit[n, k] * target[n, k]
    miss = lambda n, k: sigmoid(logit[n, k]) * (1 - target[n, k]) + (1 - sigmoid(logit[n, k])) * target[n, k]
    weight = lambda n, k: alpha * target[n, k] + (1 - alpha) * (1 - target[n, k])
    return lambda: Sum(lambda n, k: weight[n, k] * square(miss[n, k]) * entropy[n, k])
""",
    small={"logit": (4, 5), "target": (4, 5), "alpha": 0.25},
    large={"logit": (8192, 80), "target": (8192, 80), "alpha": 0.25},
    kinds={"target": MASK},
)
def focal_loss(logit: Any, target: Any, alpha: float) -> Any:
    probability = logit.sigmoid()
    entropy = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
    miss = probability * (1 - target) + (1 - probability) * target
    return ((alpha * target + (1 - alpha) * (1 - target)) * miss**2 * entropy).sum()


@written(
    """
def masked_cross_entropy(logit, label):
    peak = lambda n: Max(lambda k: logit[n, k])
    total = lambda n: Sum(lambda k: exp(logit[n, k] - peak[n]))
    loss = lambda n: where(label[n] == 0, 0, log(total[n]) + peak[n] - logit[n, label[n]])
    count = lambda: Sum(lambda n: where(label[n] == 0, 0, 1))
    return lambda: Sum(lambda n: loss[n]) / count[()]
""",
    small={"logit": (6, 5), "label": (6,)},
    large={"logit": (2048, 1024), "label": (2048,)},
    kinds={"label": below("logit", 1)},
)
def masked_cross_entropy(logit: Any, label: Any) -> Any:
    return F.cross_entropy(logit, label, ignore_index=0)


@written(
    """
def smoothed_cross_entropy(logit, label, *, smoothing):
    peak = lambda n: Max(lambda k: logit[n, k])
    total = lambda n: Sum(lambda k: exp(logit[n, k] - peak[n]))
    log_p = lambda n, k: logit[n, k] - peak[n] - log(total[n])
    target = lambda n, k=logit.shape[1]: where(label[n] == k, 1 - smoothing, 0) + smoothing / logit.shape[1]
    return lambda: -Sum(lambda n, k: target[n, k] * log_p[n, k]) / logit.shape[0]
""",
    small={"logit": (4, 5), "label": (4,), "smoothing": 0.1},
    large={"logit": (2048, 1024), "label": (2048,), "smoothing": 0.1},
    kinds={"label": below("logit", 1)},
)
def smoothed_cross_entropy(logit: Any, label: Any, smoothing: float) -> Any:
    return F.cross_entropy(logit, label, label_smoothing=smoothing)


@written(
    """
def triplet_loss(anchor, positive, negative, *, margin):
    near = lambda n: sqrt(Sum(lambda d: square(anchor[n, d] - positive[n, d] + 0.000001)))
    far = lambda n: sqrt(Sum(lambda d: square(anchor[n, d] - negative[n, d] + 0.000001)))
    return lambda: Sum(lambda n: maximum(near[n] - far[n] + margin, 0)) / anchor.shape[0]
""",
    small={"anchor": (5, 4), "positive": (5, 4), "negative": (5, 4), "margin": 1.0},
    large={"anchor": (4096, 256), "positive": (4096, 256), "negative": (4096, 256), "margin": 1.0},
)
def triplet_loss(anchor: Any, positive: Any, negative: Any, margin: float) -> Any:
    return F.triplet_margin_loss(anchor, positive, negative, margin)


@written(
    """
def hinge_loss(score, sign):
    miss = lambda n, k: maximum(1 - sign[n, k] * score[n, k], 0)
    return lambda: Sum(lambda n, k: miss[n, k]) / (score.shape[0] * score.shape[1])
""",
    small={"score": (4, 5), "sign": (4, 5)},
    large={"score": (2048, 1024), "sign": (2048, 1024)},
    kinds={"sign": SIGN},
)
def hinge_loss(score: Any, sign: Any) -> Any:
    return F.relu(1 - sign * score).mean()


@written(
    """
def huber_loss(x, y, *, delta):
    error = lambda n, k: abs(x[n, k] - y[n, k])
    loss = lambda n, k: where(
        error[n, k] < delta, 0.5 * square(error[n, k]), delta * (error[n, k] - 0.5 * delta)
    )
    return lambda: Sum(lambda n, k: loss[n, k]) / (x.shape[0] * x.shape[1])
""",
    small={"x": (4, 5), "y": (4, 5), "delta": 0.75},
    large={"x": (2048, 1024), "y": (2048, 1024), "delta": 0.75},
)
def huber_loss(x: Any, y: Any, delta: float) -> Any:
    return F.huber_loss(x, y, delta=delta)


@written(
    """
def kl_divergence(log_q, p):
    return lambda: Sum(lambda n, k: p[n, k] * (log(p[n, k]) - log_q[n, k])) / p.shape[0]
""",
    small={"log_q": (4, 5), "p": (4, 5)},
    large={"log_q": (2048, 1024), "p": (2048, 1024)},
    kinds={"p": POSITIVE},
)
def kl_divergence(log_q: Any, p: Any) -> Any:
    return F.kl_div(log_q, p, reduction="batchmean")


@written(
    """
def dice_loss(logit, target):
    p = lambda n, i: sigmoid(logit[n, i])
    both = lambda n: Sum(lambda i: p[n, i] * target[n, i])
    either = lambda n: Sum(lambda i: p[n, i] + target[n, i])
    overlap = lambda: Sum(lambda n: (2 * both[n] + 1) / (either[n] + 1)) / logit.shape[0]
    return lambda: 1 - overlap[()]
""",
    small={"logit": (4, 5), "target": (4, 5)},
    large={"logit": (32, 65536), "target": (32, 65536)},
    kinds={"target": MASK},
)
def dice_loss(logit: Any, target: Any) -> Any:
    p = logit.sigmoid()
    return 1 - ((2 * (p * target).sum(1) + 1) / ((p + target).sum(1) + 1)).mean()


@written(
    """
def cosine_embedding_loss(a, b, sign):
    product = lambda n: Sum(lambda d: a[n, d] * b[n, d])
    a_square = lambda n: Sum(lambda d: a[n, d] * a[n, d])
    b_square = lambda n: Sum(lambda d: b[n, d] * b[n, d])
    cosine = lambda n: product[n] * rsqrt(a_square[n] * b_square[n])
    return lambda: Sum(lambda n: where(sign[n] > 0, 1 - cosine[n], maximum(cosine[n], 0))) / a.shape[0]
""",
    small={"a": (5, 4), "b": (5, 4), "sign": (5,)},
    large={"a": (4096, 256), "b": (4096, 256), "sign": (4096,)},
    kinds={"sign": SIGN},
)
def cosine_embedding_loss(a: Any, b: Any, sign: Any) -> Any:
    return F.cosine_embedding_loss(a, b, sign)


@written(
    """
def info_nce(a, b, *, temperature):
    a_norm = lambda i: sqrt(Sum(lambda d: a[i, d] * a[i, d]))
    b_norm = lambda i: sqrt(Sum(lambda d: b[i, d] * b[i, d]))
    product = lambda i, j: Sum(lambda d: a[i, d] * b[j, d])
    logit = lambda i, j: product[i, j] / (a_norm[i] * b_norm[j] * temperature)
    peak = lambda i: Max(lambda j: logit[i, j])
    total = lambda i: Sum(lambda j: exp(logit[i, j] - peak[i]))
    return lambda: Sum(lambda i: log(total[i]) + peak[i] - logit[i, i]) / a.shape[0]
""",
    small={"a": (5, 4), "b": (5, 4), "temperature": 0.5},
    large={"a": (512, 256), "b": (512, 256), "temperature": 0.1},
)
def info_nce(a: Any, b: Any, temperature: float) -> Any:
    logits = F.normalize(a) @ F.normalize(b).T / temperature
    return F.cross_entropy(logits, torch.arange(len(a)))


@written(
    """
def total_variation(x):
    down = lambda n, c, y=x.shape[2] - 1, u: square(x[n, c, y + 1, u] - x[n, c, y, u])
    right = lambda n, c, y, u=x.shape[3] - 1: square(x[n, c, y, u + 1] - x[n, c, y, u])
    down_sum = lambda n: Sum(lambda c, y, u: down[n, c, y, u])
    right_sum = lambda n: Sum(lambda c, y, u: right[n, c, y, u])
    return lambda n: down_sum[n] + right_sum[n]
""",
    small={"x": (3, 2, 4, 3)},
    large={"x": (8, 64, 56, 56)},
)
def total_variation(x: Any) -> Any:
    return x.diff(dim=2).square().sum((1, 2, 3)) + x.diff(dim=3).square().sum((1, 2, 3))
