import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tofu.runtime.offsets import place

intervals = st.lists(
    st.tuples(st.integers(1, 50), st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=60
)


@settings(deadline=None)
@given(intervals)
def test_live_buffers_never_overlap(items: list[tuple[int, int, int]]) -> None:
    sizes = np.array([size for size, _, _ in items])
    births = np.array([birth for _, birth, _ in items])
    deaths = births + np.array([length for _, _, length in items])
    offsets, total = place(sizes, births, deaths)
    live = [sum(s for s, b, d in zip(sizes, births, deaths, strict=True) if b <= t <= d) for t in range(50)]
    assert max(live) <= total <= sizes.sum()
    assert offsets.min() >= 0
    assert (offsets + sizes).max() == total
    for a in range(len(items)):
        for b in range(a):
            if births[a] <= deaths[b] and births[b] <= deaths[a]:
                assert offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]


def test_memory_is_used_again() -> None:
    sizes = np.full(100, 64)
    births = np.arange(100)
    offsets, total = place(sizes, births, births + 1)
    assert total == 128
    assert set(offsets.tolist()) == {0, 64}


def test_nothing_to_place() -> None:
    none = np.zeros(0, np.int64)
    offsets, total = place(none, none, none)
    assert (len(offsets), total) == (0, 0)
