"""A small transformer of PyTorch, fine-tuned over 8 workers; the module is not changed for it.

    python examples/finetune_torch.py

PyTorch trains the module on one task: which of four words stands most often in a sequence. Tofu goes on from
these weights with another one: which of the four stands least often. Then the module has the new weights.
"""

import numpy as np
import torch
from torch import nn

import tofu

BATCH, STEPS, WORDS = 32, 12, 4


class Classifier(nn.Module):
    def __init__(self, features=16):
        super().__init__()
        self.words = nn.Embedding(WORDS, features)
        self.layer = nn.TransformerEncoderLayer(features, 4, 32, dropout=0.0, batch_first=True)
        self.scores = nn.Linear(features, WORDS)

    def forward(self, words):
        return self.scores(self.layer(self.words(words)).mean(1))


def sequences(count, seed, chosen):
    """Sequences `[count, STEPS]`, and the word that `chosen` finds among their counts."""
    generator = np.random.default_rng(seed)
    words = generator.integers(0, WORDS, (4 * count, STEPS))
    counts = (words[:, :, None] == np.arange(WORDS)).sum(1)
    clear = (counts == chosen(counts, axis=1, keepdims=True)).sum(1) == 1
    labels = np.argmax(counts == chosen(counts, axis=1, keepdims=True), axis=1)
    return words[clear][:count], labels[clear][:count]


def pretrained():
    """A module that PyTorch has trained to find the most frequent word."""
    torch.manual_seed(0)
    module = Classifier()
    optimizer = torch.optim.Adam(module.parameters(), 3e-3)
    words, labels = (torch.from_numpy(each) for each in sequences(1024, 1, np.max))
    for _ in range(2):
        for start in range(0, len(words) // BATCH * BATCH, BATCH):
            optimizer.zero_grad()
            scores = module(words[start : start + BATCH])
            nn.functional.cross_entropy(scores, labels[start : start + BATCH]).backward()
            optimizer.step()
    return module


def main():
    module = pretrained()
    symbol, parameters = tofu.from_torch(module, (torch.zeros(BATCH, STEPS, dtype=torch.long),))
    network = tofu.sym.SoftmaxOutput(symbol, name="softmax")
    words, labels = sequences(1024, 2, np.min)
    train = tofu.ArrayIterator({"words": words}, {"softmax_label": labels}, BATCH, shuffle=True)
    with tofu.Module(network, context=[tofu.cpu()] * 8, parameters=parameters) as run:
        run.fit(train, num_epoch=6, optimizer="adam", learning_rate=3e-3)
        tofu.to_torch(module, network, run.parameters())
    module.eval()
    words, labels = sequences(512, 3, np.min)
    found = module(torch.from_numpy(words)).argmax(1).numpy()
    print(f"held-out accuracy {(found == labels).mean():.3f}, computed by PyTorch")


if __name__ == "__main__":
    main()
