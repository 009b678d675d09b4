"""The checker refuses every plan, program and memory plan of the corpus, and says what is wrong."""

from __future__ import annotations

import random

import pytest

from tofu.errors import PlanError
from tofu.programs import check_memory, check_program

from . import memory_mutations as of_memory
from . import plan_mutations as of_plans
from . import program_mutations as of_programs
from .mutated import Nothing, Subject

FAMILIES = [*of_plans.FAMILIES, *of_programs.FAMILIES, *of_memory.FAMILIES]
SEEDS = 4
LEAST = 140
"""The least number of mutations of the plans of each of the five graphs of this folder."""

WORKERS = (4, 6, 8)


def test_every_mutation_is_refused(graph):
    count, accepted = 0, []
    for family in FAMILIES:
        for seed in range(SEEDS):
            draw = random.Random(f"{family.__name__} {seed}")
            subject = Subject(graph, draw.choice(WORKERS))
            try:
                family(subject, draw)
            except Nothing:
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
        (of_plans.is_for_another_graph, "fingerprint"),
        (of_plans.has_another_shape, "other shapes"),
        (of_plans.is_of_another_version, "version"),
        (of_plans.states_other_bytes, "bytes"),
        (of_programs.reduces_a_term_less, r"\d of \d terms of "),
        (of_programs.reads_elsewhere, "reads .*, but its box needs .*"),
        (of_programs.writes_an_output_less, r"writes \d of \d outputs"),
        (of_programs.reduces_otherwise, "reduces by Prod, but the description by (Sum|Max)"),
        (of_programs.fetches_what_is_to_be_reduced, r"\d of \d terms of "),
        (of_programs.reduces_before_it_computes, "which holds .* of nothing"),
        (of_programs.goes_on_after_the_last_operation, r"belongs to operation \d+; the graph has"),
        (of_programs.has_a_program_less, "the plan is for 4 workers, but there are 3 programs"),
        (of_programs.has_homes_of_a_tensor_less, r"homes of \d+ tensors; the graph has \d+"),
        (of_programs.has_a_buffer_of_another_size, r"has \d+ bytes, but .* of tensor .* needs \d+"),
        (
            of_programs.writes_an_update_into_another_tensor,
            "differs from that of .*, which it overwrites",
        ),
        (of_memory.has_a_memory_plan_for_fewer_workers, "the program has 4 workers, but there are 3 "),
        (of_memory.has_an_offset_less, r"\d+ offsets for \d+ buffers"),
        (
            of_memory.has_the_waits_of_an_instruction_less,
            r"listed for \d+ instructions, but it has \d+",
        ),
        (of_memory.puts_two_outputs_into_one_place, "its outputs .* share memory"),
        (
            of_memory.waits_for_what_there_is_not,
            r"waits for instruction -?\d+ of worker \d, which does not exist",
        ),
        (of_memory.lies_outside_its_arena, "outside its arena"),
        (of_memory.has_too_small_an_arena, "outside its arena"),
        (of_memory.shares_what_lasts, "share memory from the start"),
        (
            of_memory.writes_over_what_lasts,
            "overwritten that memory|overwrites its part|which it still reads|may write",
        ),
        (of_memory.writes_over_what_it_reads, "which it still reads"),
        (of_memory.does_not_wait, "a wait is missing"),
        (of_memory.waits_for_too_little, "a wait is missing"),
        (of_memory.waits_for_what_comes_later, "which is not earlier on the clock"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_refusals_say_what_is_wrong(graph, family, says):
    subject, draw = Subject(graph, 4), random.Random(0)
    try:
        family(subject, draw)
    except Nothing:
        pytest.skip("nothing of the kind in this plan")
    with pytest.raises(PlanError, match=says) as caught:
        subject.check()
    if family.__module__ != of_plans.__name__:
        assert str(caught.value).endswith((check_program.ADVICE, check_memory.ADVICE))


@pytest.mark.parametrize("workers", WORKERS)
def test_unchanged_they_are_accepted(graph, workers):
    Subject(graph, workers).check()
