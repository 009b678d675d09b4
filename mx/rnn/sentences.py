"""Sentences as batches of word numbers, each batch of one length."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import DataError
from ...runtime.initializer import generator
from ..io import DataBatch, DataDesc, DataIter
from ..ndarray.array import NDArray
from ..seed import current_seed


def encode_sentences(
    sentences: Iterable[Iterable[str]],
    vocab: dict[str, int] | None = None,
    invalid_label: int = -1,
    invalid_key: str = "\n",
    start_label: int = 0,
) -> tuple[list[list[int]], dict[str, int]]:
    """Return sentences as numbers of their words, and the numbers by word.

    A given vocabulary takes no new words.
    """
    grows = vocab is None
    known = {invalid_key: invalid_label} if vocab is None else vocab
    following = start_label
    encoded = []
    for sentence in sentences:
        numbers = []
        for word in sentence:
            if word not in known:
                if not grows:
                    raise DataError(
                        f"the word {word!r} is not in the vocabulary; add it, or give no vocabulary"
                    )
                following += following == invalid_label
                known[word] = following
                following += 1
            numbers.append(known[word])
        encoded.append(numbers)
    return encoded, known


class BucketSentenceIter(DataIter):
    """Batches of sentences, filled up to the length of their bucket with `invalid_label`.

    Labels are the sentences one word on. Longer sentences than the longest bucket are left out, and so are
    the last ones of a bucket that make no batch. `bucket_key` of a batch is its length.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: Sequence[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        layout: str = "NT",
    ) -> None:
        super().__init__(batch_size)
        if sorted(layout) != ["N", "T"]:
            raise DataError(f"layout is {layout!r}, expected 'NT' or 'TN'")
        if buckets is None:
            counts = np.bincount([len(sentence) for sentence in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        self.buckets = sorted(buckets)
        if not self.buckets:
            raise DataError(f"no length has {batch_size} sentences, the size of a batch; name the buckets")
        self.data_name, self.label_name = data_name, label_name
        self.layout = layout
        rows: list[list[Any]] = [[] for _ in self.buckets]
        for sentence in sentences:
            place = bisect.bisect_left(self.buckets, len(sentence))
            if place < len(self.buckets):
                row = np.full(self.buckets[place], invalid_label, dtype)
                row[: len(sentence)] = sentence
                rows[place].append(row)
        self._rows = [
            np.array(each, dtype).reshape(len(each), length)
            for each, length in zip(rows, self.buckets, strict=True)
        ]
        self._invalid = invalid_label
        self.default_bucket_key = self.buckets[-1]
        self.provide_data = [self._described(data_name, self.default_bucket_key)]
        self.provide_label = [self._described(label_name, self.default_bucket_key)]
        self._epoch = -1
        self.reset()

    def reset(self) -> None:
        """Begin again, in another order of batches, and of sentences in buckets."""
        self._epoch += 1
        drawn = generator(f"sentences {self._epoch}", current_seed())
        self._order = [drawn.permutation(len(rows)) for rows in self._rows]
        places = [
            (bucket, start)
            for bucket, rows in enumerate(self._rows)
            for start in range(0, len(rows) - self.batch_size + 1, self.batch_size)
        ]
        self._left = iter([places[index] for index in drawn.permutation(len(places))])

    def next(self) -> DataBatch:
        bucket, start = next(self._left)
        data = self._rows[bucket][self._order[bucket][start : start + self.batch_size]]
        label = np.full_like(data, self._invalid)
        label[:, :-1] = data[:, 1:]
        if self.layout == "TN":
            data, label = data.T.copy(), label.T.copy()
        length = self.buckets[bucket]
        return DataBatch(
            [NDArray(data)],
            [NDArray(label)],
            0,
            bucket_key=length,
            provide_data=[self._described(self.data_name, length)],
            provide_label=[self._described(self.label_name, length)],
        )

    def _described(self, name: str, length: int) -> DataDesc:
        shape = (self.batch_size, length) if self.layout == "NT" else (length, self.batch_size)
        return DataDesc(name, shape, layout=self.layout)
