"""The conv1d of the paper, Figure 3, trained over 8 workers: no kernel, gradient or rule is written here.

    python examples/conv1d.py

The task: which of two frequencies does a noisy signal of 64 samples hold?
"""

import numpy as np

import tofu
from tofu import Sum


@tofu.op
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])


def signals(count, seed):
    """Signals `[count, 1, 64]` and which frequency each one holds."""
    generator = np.random.default_rng(seed)
    label = generator.integers(0, 2, count)
    phase = generator.uniform(0, 2 * np.pi, (count, 1))
    wave = np.sin(np.arange(64) * np.where(label, 0.9, 0.8)[:, None] + phase)
    noisy = wave + generator.standard_normal((count, 64))
    return noisy[:, None, :].astype("float32"), label.astype("float32")


def network():
    """A convolution with 16 filters of 24 samples, then the strongest response of each filter."""
    filters = tofu.sym.Variable("filters", shape=(1, 16, 24))
    response = tofu.sym.apply(conv1d, tofu.sym.Variable("data"), filters, name="conv")
    response = tofu.sym.Activation(response, act_type="relu")
    strongest = tofu.sym.max(response, axis=2)
    return tofu.sym.SoftmaxOutput(tofu.sym.FullyConnected(strongest, num_hidden=2, name="fc"), name="softmax")


def main():
    train = tofu.ArrayIterator(*signals(2048, seed=1), batch_size=64, shuffle=True)
    test = tofu.ArrayIterator(*signals(512, seed=2), batch_size=64)
    workers = [tofu.cpu(worker) for worker in range(8)]
    with tofu.Module(network(), context=workers) as module:
        for epoch in module.fit(train, test, num_epoch=8, optimizer="adam", learning_rate=0.01):
            print(f"epoch {epoch.number + 1}: held-out accuracy {epoch.evaluation['accuracy']:.3f}")
        (plan, *_) = module.plans.values()
    print(f"the convolution is split along {', '.join(map(str, plan.strategies['conv']))}")
    print(f"{plan.cost_bytes:,} bytes move in one iteration")


if __name__ == "__main__":
    main()
