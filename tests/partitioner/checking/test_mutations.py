"""The checker refuses every plan, program and memory plan of the corpus, and says what is wrong.

Families of one module are refused by the part of the checker that reads what they change, on its own.
"""

from __future__ import annotations

import random
import re

import pytest

from tofu.errors import PlanError
from tofu.programs import check_memory, check_program

from . import memory_mutations as of_memory
from . import plan_mutations as of_plans
from . import program_mutations as of_programs
from .mutated import Nothing, Subject
from .subjects import NAMES, subjects

CHECKS = {
    of_plans.__name__: Subject.check_plan,
    of_programs.__name__: Subject.check_program,
    of_memory.__name__: Subject.check_memory,
}
FAMILIES = [*of_plans.FAMILIES, *of_programs.FAMILIES, *of_memory.FAMILIES]
LEAST = 60
"""The least number of mutations of each plan, on average."""

WRONG_TERMS = r"\d of \d terms of |is not linear in that|combined by Max|with what has it already"


def refusals(name, family):
    """List the refusals of a mutation of every plan of a graph; None stands for one that is accepted."""
    for number, subject in enumerate(subjects(name)):
        mutated = subject.fresh()
        try:
            family(mutated, random.Random(f"{family.__name__} {name} {number}"))
        except Nothing:
            continue
        try:
            CHECKS[family.__module__](mutated)
        except PlanError as error:
            yield str(error)
        except Exception as error:
            error.add_note(f"{family.__name__} of plan {number} of {name}")
            raise
        else:
            yield None


@pytest.mark.parametrize("name", NAMES)
def test_every_mutation_is_refused(name):
    found = {family: list(refusals(name, family)) for family in FAMILIES}
    assert [family.__qualname__ for family, said in found.items() if None in said] == []
    assert sum(map(len, found.values())) >= LEAST * len(subjects(name))


@pytest.mark.parametrize(
    ("family", "says"),
    [
        (of_plans.is_for_another_graph, "fingerprint"),
        (of_plans.has_another_shape, "other shapes"),
        (of_plans.is_of_another_version, "version"),
        (of_plans.states_other_bytes, "bytes"),
        (of_programs.reduces_a_term_less, WRONG_TERMS),
        (of_programs.reads_elsewhere, "reads .*, but its box needs .*"),
        (of_programs.writes_an_output_less, r"writes \d of \d outputs"),
        (of_programs.reduces_otherwise, "reduces by Prod, but the description by (Sum|Max)"),
        (of_programs.fetches_what_is_to_be_reduced, WRONG_TERMS),
        (of_programs.reduces_before_it_computes, r"reads .* of .* from buffer \d+"),
        (of_programs.goes_on_after_the_last_operation, r"belongs to operation \d+; the graph has"),
        (of_programs.has_a_program_less, r"the plan is for \d workers, but there are \d programs"),
        (of_programs.has_homes_of_a_tensor_less, r"homes of \d+ tensors; the graph has \d+"),
        (of_programs.has_a_buffer_of_another_size, r"has \d+ bytes, but .* of tensor .* needs \d+"),
        (
            of_programs.writes_an_update_into_another_tensor,
            "differs from that of .*, which it overwrites",
        ),
        (of_memory.has_a_memory_plan_for_fewer_workers, r"the program has \d workers, but there are \d "),
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
        (of_memory.lies_between_elements, "is not a multiple of its elements' . bytes"),
        (of_memory.has_too_small_an_arena, "outside its arena"),
        (of_memory.shares_what_lasts, "share memory from the start"),
        (
            of_memory.writes_over_what_lasts,
            "overwritten that memory|overwrites its part|which it still reads|may write",
        ),
        (of_memory.writes_over_what_it_reads, "which it still reads|share memory from the start"),
        (of_memory.does_not_wait, "a wait is missing"),
        (of_memory.waits_for_too_little, "a wait is missing"),
        (of_memory.waits_for_what_comes_later, "which is not earlier on the clock"),
        (of_plans.holds_a_part_less, r"tensor .*: only \d+ of the \d+ elements of .* are covered"),
        (of_plans.holds_a_part_twice, "tensor .* has the same part on one worker twice"),
        (of_plans.holds_terms_with_a_gap, r"tensor .* has no parts of some of its \d+ terms"),
        (of_plans.leaves_a_lasting_tensor_in_terms, "tensor .* is never reduced: its 2 terms are not summed"),
        (of_plans.leaves_out_a_task, r"its iterations.*: only \d+ of the \d+ elements of .* are covered"),
        (of_plans.leaves_out_all_tasks, "operation .* is computed by no worker"),
        (
            of_plans.reduces_on_the_way_without_a_part,
            r"on the way: only \d+ of the \d+ elements of ",
        ),
        (of_plans.has_a_task_twice, "operation .* has the same part on one worker twice"),
        (of_plans.has_tasks_that_overlap, "its iterations.*: .* overlap"),
        (of_plans.computes_terms_of_what_has_none, "reads terms of nothing, but is not linear in that"),
        (of_plans.reads_terms_where_it_is_not_linear, "reads terms of .*, but is not linear in that"),
        (of_plans.reads_terms_of_a_greatest_value, "reads terms of .*, which are combined by Max"),
        (of_plans.reads_fewer_terms_than_there_are, r"reads 1 terms of .*, which has \d"),
        (of_plans.reads_before_it_is_made, "the order runs .*, which reads .*, before .*, which makes it"),
        (
            of_plans.overwrites_before_it_is_read,
            "the order runs .*, which reads .*, (after .* overwrites|before .* makes) it",
        ),
        (of_plans.runs_an_operation_twice, "is 2 times in the order, but 1 times in the graph"),
        (of_plans.runs_an_operation_never, "is 0 times in the order, but 1 times in the graph"),
        (of_plans.makes_a_copy_for_nothing, r"copy \d of tensor .* is read by nothing|has no readers"),
        (of_plans.makes_a_copy_for_a_reader_less, r"states \d+ bytes.*; its choices move \d+"),
        (of_plans.makes_a_copy_for_a_reader_twice, r"copy \d of .* which reads another version as well"),
        (of_plans.makes_a_copy_for_a_reader_of_another, r"copy \d of .* reads another version as well"),
        (of_plans.makes_a_copy_for_a_stranger, r"copy \d of .* is for .*, which does not read the tensor"),
        (of_plans.copies_what_there_is_not, "copies tensor 'stranger', which is not in the graph"),
        (of_plans.copies_a_later_version, r"made from version \d, which does not exist before it"),
        (of_plans.copies_before_its_source_is_made, r"is made before version \d, from which it is made"),
        (of_plans.copies_less_than_is_read, "reads a copy of .*: worker .* needs .*, which no worker holds"),
        (of_plans.states_no_bytes_for_a_copy, r"states \d+ bytes.*; its choices move \d+"),
        (of_programs.computes_an_operation_nowhere, "no worker computes it"),
        (of_programs.computes_once_more_later, "a worker computes the same part twice"),
        (
            of_programs.computes_what_a_neighbour_computes,
            "its iterations: .* overlap|reads .*, but its box needs",
        ),
        (of_programs.computes_before_it_has_fetched, r"reads .* from buffer \d+, which holds .* of "),
        (of_programs.collects_before_the_last_computation, r"reads .* from buffer \d+ of worker \d"),
        (of_programs.collects_before_the_first_hop, r"reads .* from buffer \d+ of worker \d"),
        (of_programs.updates_before_a_reader, "reads .* of 'weight1' from buffer .* of 't12'"),
        (of_programs.reads_a_stale_copy, "reads .* from buffer .*, which holds .* of ('velocity'|'t9')"),
        (
            of_programs.keeps_a_copy_after_the_update,
            "(is not at home on|reads .* from) .* holds .*'(weight|velocity)",
        ),
        (
            of_programs.reads_one_term_where_it_is_not_linear,
            "is not linear in that|unlike the operation's other computations",
        ),
        (of_programs.reads_another_term, WRONG_TERMS),
        (of_programs.reduces_a_term_twice, "combines .* with what has it already"),
        (of_programs.reads_an_input_less, r"lists \d+ inputs, but the description \d+"),
        (of_programs.has_a_buffer_of_a_missing_tensor, r"buffer \d+ is for tensor -?\d+; the graph has \d+"),
        (
            of_programs.swaps_two_homes,
            "the home of .* (has a buffer for|differs from)|is not at home on worker",
        ),
        (of_memory.puts_two_inputs_into_one_place, "overwritten that memory|share memory|still reads|may "),
        (of_memory.does_not_wait_for_its_other_lane, "a wait is missing"),
        (of_memory.updates_without_waiting_for_readers, "a wait is missing"),
        (of_memory.uses_memory_again_too_early, "a wait is missing"),
        (
            of_memory.collects_in_the_tick_of_a_computation,
            "which is not earlier on the clock|a wait is missing",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_refusals_say_what_is_wrong(family, says):
    found = [said for name in ("mlp", "momentum", "odds_and_ends") for said in refusals(name, family)]
    assert found
    for said in found:
        assert re.search(says, said), said
        if family.__module__ != of_plans.__name__:
            assert said.endswith((check_program.ADVICE, check_memory.ADVICE))


@pytest.mark.parametrize("name", NAMES)
def test_unchanged_they_are_accepted(name):
    for subject in subjects(name):
        for check in CHECKS.values():
            check(subject)
