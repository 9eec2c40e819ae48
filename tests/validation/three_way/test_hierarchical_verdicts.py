from __future__ import annotations

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.validation.compare.scores import AllScores
from collwise.validation.three_way.plan import COLLECTIVES, hierarchical_choices, usual_plan
from collwise.validation.three_way.verdicts import (
    SCHEDULED,
    can_be_simulated,
    choices_of_kind,
    component_table,
    label,
    ways_within,
)
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import choice_of
from tests.validation.three_way.made_up import made_up


def scores(times: dict[tuple[str, int], tuple[float, float | None]]) -> AllScores:
    """Measured and predicted seconds of broadcasts of 1 KiB by algorithm and way within a node."""
    choices = {key: Choice(key[0], 8192, key[1]) for key in times}
    measured = {choices[key]: [seconds] for key, (seconds, _) in times.items()}
    predicted = {choices[key]: [seconds] for key, (_, seconds) in times.items() if seconds is not None}
    return AllScores([made_up(measured, {SCHEDULED: predicted}, procs=16, per_node=4)])


TIMES = {
    ("chain", 0): (4.0, 2.5),
    ("binomial", 0): (3.0, 3.5),
    ("hierarchical", 0): (2.5, 3.0),
    ("tasks_chain", 0): (2.0, 5.0),
    ("tasks_chain", 1): (1.0, None),
}


def test_a_choice_of_kind_costs_what_the_best_of_the_other_kind_would_have_saved() -> None:
    [choice] = choices_of_kind(scores(TIMES), SCHEDULED).itertuples()
    # The source's fastest is the flat chain; the best flat one takes 3 s, the best hierarchical one 1 s.
    assert (choice.chosen, choice.best) == ("flat", "hierarchical")
    assert choice.slowdown == pytest.approx(3.0 / 1.0 - 1)


def test_a_right_choice_of_kind_costs_nothing_whatever_algorithm_is_picked() -> None:
    times = {**TIMES, ("hierarchical", 0): (9.0, 1.0)}
    [choice] = choices_of_kind(scores(times), SCHEDULED).itertuples()
    assert (choice.chosen, choice.best, choice.slowdown, choice.certain) == ("hierarchical", "hierarchical", 0, False)


def test_a_source_that_predicts_one_kind_chooses_nothing() -> None:
    assert choices_of_kind(scores({key: TIMES[key] for key in TIMES if key[0] == "chain"}), SCHEDULED).empty


def test_components_stand_beside_the_best_of_each_kind_and_the_pick() -> None:
    components = {
        name: AllTimes.of([made_up({LIBRARY_DECIDES: [seconds]}, {}, procs=16, per_node=4).right])
        for name, seconds in (("tuned", 2.2), ("han", 8.0))
    }
    [row] = component_table(scores(TIMES), components, SCHEDULED).to_dict("records")
    assert (row["flat"], row["flat algorithm"]) == (3.0, "binomial")
    assert (row["hierarchical"], row["hierarchical algorithm"]) == (1.0, "tasks_chain, shared memory")
    assert (row["pick"], row["pick algorithm"], row["tuned"], row["han"]) == (4.0, "chain", 2.2, 8.0)


def test_ways_within_nodes_are_compared_with_messages() -> None:
    [row] = ways_within(scores(TIMES)).itertuples()
    assert (row.algorithm, row.way, row.ratio) == ("tasks_chain", "shared memory", 0.5)


def test_a_label_names_the_way_within_nodes() -> None:
    said = {label(Choice("tasks_chain", 8192, way)) for way in (0, 1)} | {label(LIBRARY_DECIDES)}
    assert said == {"tasks_chain", "tasks_chain, shared memory", ""}


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_hierarchical_algorithm_is_measured_in_each_way_within_nodes(collective: str) -> None:
    entries = {one.name: one for one in Catalogue.load().algorithms(collective) if one.by_node}
    plan = usual_plan(nodes=4, ranks_per_node=4, collectives=[collective])
    mine = [case for case in plan.main.cases() if case.algorithm in entries]
    assert {case.algorithm for case in mine} == set(entries)
    assert {(case.procs, case.processes_per_node) for case in plan.main.cases()} == {(16, 4)}
    for name, one in entries.items():
        ways = {case.parameter for case in mine if case.algorithm == name}
        in_memory = collective in ("bcast", "reduce", "allreduce") and one.count_parameter == "within"
        assert ways == ({0, 1, 2} if in_memory else {0})
    simulable = {case.algorithm for case in mine if can_be_simulated(collective, choice_of(case))}
    assert simulable == {name for name, one in entries.items() if not one.real_mpi_only}
    assert not any(case.parameter and can_be_simulated(collective, choice_of(case)) for case in mine)


def test_one_process_on_each_node_has_flat_algorithms_only() -> None:
    hierarchical = {choice.algorithm for choice in hierarchical_choices("bcast")}
    assert hierarchical.isdisjoint(case.algorithm for case in usual_plan(quick=True).main.cases())
    assert len(usual_plan(ranks_per_node=4).scenarios) == 1


def test_one_bed_is_the_main_one_with_all_its_sizes() -> None:
    alone = usual_plan(one_bed=True)
    assert alone.scenarios == (usual_plan().main,)
    assert not alone.quick
