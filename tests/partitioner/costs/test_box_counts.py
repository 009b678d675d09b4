"""Elements that move between boxes of workers, against sets of elements."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.costs.box_counts import collected_elements, fetched_by_worker, fetched_elements, overlap

INTERVALS = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted)
REGIONS = st.lists(st.tuples(INTERVALS, INTERVALS), min_size=3, max_size=3)


def element_sets(regions):
    return [set(itertools.product(*(range(*interval) for interval in region))) for region in regions]


def boxes(regions):
    return np.array(regions, np.int64)


@given(REGIONS, REGIONS)
def test_overlaps(a, b):
    expected = [len(x & y) for x, y in zip(element_sets(a), element_sets(b), strict=True)]
    assert overlap(boxes(a), boxes(b)).tolist() == expected


@given(st.lists(REGIONS, min_size=1, max_size=3), REGIONS)
def test_workers_fetch_every_region_that_they_lack_once(reads, owned):
    fetched = [0, 0, 0]
    for worker, mine in enumerate(element_sets(owned)):
        for region in {tuple(map(tuple, read[worker])) for read in reads}:
            fetched[worker] += len(element_sets([region])[0] - mine)
    needed = [boxes(read) for read in reads]
    assert fetched_by_worker(needed, boxes(owned)).tolist() == fetched
    assert fetched_elements(needed, boxes(owned)) == sum(fetched)


@given(REGIONS, REGIONS, st.integers(1, 3))
def test_owners_collect_every_term_except_what_they_computed(produced, owned, terms):
    pairs = zip(element_sets(produced), element_sets(owned), strict=True)
    expected = sum(terms * len(mine) - len(mine & own) for own, mine in pairs)
    assert collected_elements(boxes(produced), boxes(owned), terms) == expected
