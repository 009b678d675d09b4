"""The checker refuses every plan, program and memory plan of the corpus, and says what is wrong."""

from __future__ import annotations

import random

import pytest

from tofu.errors import PlanError

from . import mutations

SEEDS = 4
LEAST = 140
"""So many mutations there are at least of the plans of each of the five graphs of this folder."""

WORKERS = (4, 6, 8)


def test_every_mutation_is_refused(graph):
    count, accepted = 0, []
    for family in mutations.FAMILIES:
        for seed in range(SEEDS):
            draw = random.Random(f"{family.__name__} {seed}")
            subject = mutations.Subject(graph, draw.choice(WORKERS))
            try:
                family(subject, draw)
            except mutations.Nothing:
                continue
            count += 1
            try:
                subject.check()
            except PlanError:
                continue
            except Exception as error:
                error.add_note(f"{family.__name__}, seed {seed}")
                raise
            accepted.append((family.__name__, seed))
    assert accepted == []
    assert count >= LEAST


@pytest.mark.parametrize(
    ("family", "says"),
    [
        (mutations.is_for_another_graph, "fingerprint"),
        (mutations.has_another_shape, "other shapes"),
        (mutations.is_of_another_version, "version"),
        (mutations.states_other_bytes, "bytes"),
        (mutations.reduces_a_term_less, "parts where there are"),
        (mutations.reads_elsewhere, "reads .* elsewhere than at"),
        (mutations.writes_an_output_less, r"writes \d of \d outputs"),
        (mutations.reduces_otherwise, "reduces by Prod, which the description does not"),
        (mutations.fetches_what_is_to_be_reduced, r"\d partial results are fetched, but not reduced"),
        (mutations.reduces_before_it_computes, "something other than a fetch comes before"),
        (mutations.goes_on_after_the_last_operation, "instructions that are in no operation's turn"),
        (mutations.has_a_program_less, "there are 3 programs for 4 workers"),
        (mutations.has_shards_of_a_tensor_less, r"shards of \d+ tensors; the graph has \d+"),
        (mutations.has_a_buffer_of_another_size, "is not a region of it with its number of bytes"),
        (mutations.writes_an_update_into_another_tensor, "not those of the tensor that it overwrites"),
        (mutations.has_a_memory_plan_for_fewer_workers, "is not for 4 workers"),
        (mutations.has_an_offset_less, r"\d+ offsets for \d+ buffers"),
        (mutations.has_the_waits_of_an_instruction_less, r"waits of \d+ instructions, not of all"),
        (mutations.puts_two_outputs_into_one_place, "two of its outputs share memory"),
        (mutations.waits_for_what_there_is_not, r"waits for instruction -?\d+ of worker \d; there is none"),
        (mutations.lies_outside_its_arena, "outside its arena"),
        (mutations.has_too_small_an_arena, "outside its arena"),
        (mutations.shares_what_lasts, "share memory from the start"),
        (
            mutations.writes_over_what_lasts,
            "something else|written over its shard|writes over|may write",
        ),
        (mutations.writes_over_what_it_reads, "which it still reads"),
        (mutations.does_not_wait, "nothing makes it wait"),
        (mutations.waits_for_too_little, "nothing makes it wait"),
        (mutations.waits_for_what_comes_later, "no further by then"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_refusals_say_what_is_wrong(graph, family, says):
    subject, draw = mutations.Subject(graph, 4), random.Random(0)
    try:
        family(subject, draw)
    except mutations.Nothing:
        pytest.skip("nothing of the kind in this plan")
    with pytest.raises(PlanError, match=says):
        subject.check()


@pytest.mark.parametrize("workers", WORKERS)
def test_unchanged_they_are_accepted(graph, workers):
    mutations.Subject(graph, workers).check()
