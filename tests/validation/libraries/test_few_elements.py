"""Algorithms that Open MPI replaces where a message has too few elements: rules name them only where it does not."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import gmean

from collwise.algorithms.catalogue import Catalogue
from collwise.models.piecewise import Array
from collwise.simulator.timing import Case
from collwise.validation.libraries.formats import exported
from collwise.validation.libraries.openmpi_check import observe
from collwise.validation.libraries.openmpi_rules import Rule, parse_rules
from collwise.validation.libraries.openmpi_untuned import ELEMENT_BYTES, NEEDS_ELEMENTS, min_bytes, min_elements
from collwise.validation.libraries.sayable import (
    for_consumer,
    gains_over_untuned,
    left_to_library,
    summary_over_untuned,
)
from collwise.validation.select.consumers import algorithms_for
from collwise.validation.select.decisions import DecisionTable, merged
from collwise.validation.select.select import select
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from tests.needs import needs
from tests.validation.times_of import times_of
from tests.validation.traces import Call, edges, traced

SECOND = {"bcast": "binomial", "reduce": "binomial", "allreduce": "recursive_doubling"}
WITH_CONDITION = sorted(NEEDS_ELEMENTS)


def table_of(collective: str, algorithm: str, procs: tuple[int, ...] = (4,), most: int | None = None) -> DecisionTable:
    """A table that chooses the algorithm from 8 B on, where the second best takes 1.5 times as long."""
    choices, sizes = (Choice(algorithm), Choice(SECOND[collective])), (8, 64, 2**20)
    seconds = tuple(tuple((time,) * len(sizes) for _ in procs) for time in (1.0, 1.5))
    rules = {procs[0]: ((8, choices[0]),)}
    return DecisionTable(
        collective,
        "bed",
        1,
        "simulated",
        "test",
        rules,
        times_of(collective, choices, procs, sizes, seconds),
        platform_procs=most,
    )


def rule_at(text: str, collective: str, procs: int, size: int) -> str:
    """The algorithm that a rules file names for a call; '' where Open MPI decides."""
    entry = Catalogue.load().collective(collective)
    found = parse_rules(text).lookup(entry.openmpi_collective, procs, size)
    return next((n for n, a in entry.algorithms.items() if found and a.openmpi.get("4.1") == found.algorithm), "")


COUNTS, SIZES = (4, 5, 48, 64, 96, 2048), (0, 8, 64, 256, 1024, 4096, 2**20)


@settings(max_examples=50)
@given(data=st.data(), collective=st.sampled_from(sorted(SECOND)))
def test_rules_name_an_algorithm_only_with_enough_complex_doubles(data: st.DataObject, collective: str) -> None:
    """On any P up to the platform's, and at the size from which a choice has enough for the next power of two."""
    names = algorithms_for(collective, "openmpi-4.1")
    choices = [
        Choice(name) for name in data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=4, unique=True))
    ]
    counts = sorted(data.draw(st.sets(st.sampled_from(COUNTS), min_size=1, max_size=3)))
    seconds = data.draw(st.lists(st.floats(1, 2), min_size=len(choices), max_size=len(choices)))
    times = times_of(collective, choices, counts, SIZES, np.reshape(seconds, (-1, 1, 1)))
    steps = st.dictionaries(st.sampled_from(SIZES), st.sampled_from(choices), min_size=1, max_size=3)
    rules = {counts[0]: merged(sorted(data.draw(steps).items()))}
    most = data.draw(st.sampled_from((None, 2048, 5000)))
    made = DecisionTable(collective, "bed", 1, "simulated", "test", rules, times, platform_procs=most)
    text = exported([made], "openmpi", version="4.1").text
    (said,), _ = for_consumer([made], "openmpi-4.1")
    last = most or max(counts)
    near = {min(max(count + by, counts[0]), last) for count in (*counts, 64, 128, 1024, last) for by in (-1, 0, 1)}
    for procs in near:
        enough = {min_bytes(collective, choice.algorithm, procs) + by for choice in choices for by in (-1, 0)}
        for size in {*SIZES, *filter(lambda size: size >= 0, enough)}:
            named = rule_at(text, collective, procs, size)
            assert not named or size >= min_bytes(collective, named, procs)
            wanted, untuned = made.choice_at(procs, size), said.times
            if wanted is None or untuned is None or not named or named == wanted.algorithm:
                continue
            # Another one is named only where the choice may have too few elements, the fastest of those with enough.
            by_name = dict(zip((choice.algorithm for choice in choices), seconds, strict=True))
            enough_for = {one: min_bytes(collective, one, min(last, 2 * procs)) for one in by_name}
            assert size < enough_for[wanted.algorithm]
            others = [by_name[one] for one in by_name if enough_for[one] <= size and procs in counts]
            assert by_name[named] <= min(others, default=math.inf)


@pytest.mark.parametrize(("collective", "algorithm"), WITH_CONDITION)
def test_the_second_best_is_named_with_its_cost(collective: str, algorithm: str) -> None:
    made = exported([table_of(collective, algorithm)], "openmpi", version="4.1")
    assert [str(one) for one in made.substitutions] == [
        f"{collective} from P = 4, 8 B: too few elements for {algorithm}; {SECOND[collective]} instead, "
        "at most 50.0 % slower"
    ]
    assert "elements of 16 bytes" in made.text


def test_open_mpi_decides_between_the_decided_process_counts_where_elements_are_too_few() -> None:
    """The second best of the next smaller count may be much slower there than untuned Open MPI."""
    made = exported([table_of("allreduce", "rabenseifner", (64, 2048))], "openmpi", version="4.1")
    found = [rule_at(made.text, "allreduce", procs, 512) for procs in (64, 127, 128, 1024, 2047, 2048)]
    assert found == ["recursive_doubling", "recursive_doubling", "", "", "", "recursive_doubling"]
    said = [str(one) for one in made.substitutions]
    assert "allreduce from P = 1024, 8 B: too few elements for rabenseifner; the library decides" in said
    assert len(said) == 6


def test_a_replacement_that_needs_elements_is_left_to_open_mpi_between_the_decided_counts() -> None:
    """Rules have no hierarchical algorithm; the ring takes its place where it has enough elements."""
    names = (Choice("hierarchical"), Choice("ring"), Choice("recursive_doubling"))
    times = times_of("allreduce", names, (4, 64), (256, 2**20), tuple(((time,) * 2,) * 2 for time in (1.0, 1.1, 2.0)))
    made = DecisionTable("allreduce", "bed", 1, "simulated", "test", {4: ((256, names[0]), (2**20, names[1]))}, times)
    text = exported([made], "openmpi", version="4.1").text
    assert [rule_at(text, "allreduce", procs, 256) for procs in (4, 16, 64)] == ["ring", "", "recursive_doubling"]


def test_without_times_the_choice_before_stays_or_open_mpi_decides() -> None:
    bare = DecisionTable(
        "bcast", "bed", 1, "simulated", "test", {4: ((0, Choice("binomial")), (8, Choice("split_binary")))}
    )
    assert for_consumer([bare], "openmpi-4.1")[0][0].rules == {
        4: ((0, Choice("binomial")), (32, Choice("split_binary")))
    }
    first = DecisionTable("bcast", "bed", 1, "simulated", "test", {4: ((8, Choice("split_binary")),)})
    text = exported([first], "openmpi", version="4.1").text
    assert [rule_at(text, "bcast", 4, size) for size in (8, 31, 32)] == ["", "", "split_binary"]


@needs("openmpi-4.1")
@pytest.mark.parametrize("procs", [6, 8])
def test_open_mpi_runs_the_algorithm_from_the_first_elements_on_and_another_one_below(
    procs: int, tmp_path: Path
) -> None:
    asked = []
    for (collective, algorithm), (least, other) in NEEDS_ELEMENTS.items():
        number = Catalogue.load().algorithm(collective, algorithm).openmpi["4.1"]
        element = 1 if collective == "bcast" else 8
        for elements, runs in ((least(procs), algorithm), (least(procs) - 1, other)):
            asked.append(Call(number, Case(collective, runs, procs, elements * element)))
    found = traced(asked, tmp_path)
    for enough, too_few in zip(found[::2], found[1::2], strict=True):
        assert edges(enough.theirs) == edges(enough.ours) != edges(too_few.theirs), enough.call.case
        # Open MPI pairs other processes in a recursive doubling where P is no power of two (crosscheck.toml).
        is_other = procs == 6 and too_few.call.case.algorithm == "recursive_doubling"
        assert is_other or edges(too_few.theirs) == edges(too_few.ours), too_few.call.case


@needs("openmpi")
def test_rules_allow_for_elements_of_complex_doubles(tmp_path: Path) -> None:
    procs, path = 6, tmp_path / "x.rules"
    path.write_text(exported([table_of("allreduce", "ring", (procs,), procs)], "openmpi", version="4.1").text)
    forced = Rule(0, Catalogue.load().algorithm("allreduce", "ring").openmpi["4.1"])
    first = min_elements("allreduce", "ring", procs) * ELEMENT_BYTES
    assert {*observe("allreduce", procs, first, path, None, 16)} == {
        *observe("allreduce", procs, 4096, None, forced, 8)
    }


@needs("openmpi-4.1")
def test_the_other_algorithms_do_not_change_with_few_elements(tmp_path: Path) -> None:
    """They send along the same edges as with many, as far as there is something to send."""
    asked = []
    for collective in ("bcast", "reduce", "allreduce", "reduce_scatter"):
        for name in algorithms_for(collective, "openmpi-4.1"):
            if (collective, name) not in NEEDS_ELEMENTS:
                number = Catalogue.load().algorithm(collective, name).openmpi["4.1"]
                asked += [Call(number, Case(collective, name, 6, size)) for size in (8, 4096)]
    found = traced(asked, tmp_path)
    for few, many in zip(found[::2], found[1::2], strict=True):
        assert {*edges(few.theirs)} <= {*edges(many.theirs)}, few.call.case


def test_decisions_for_open_mpi_choose_what_has_enough_elements() -> None:
    """Rules for 16 processes have split_binary from 2 complex doubles on, scatter_allgather from 16."""
    names = ("linear", "split_binary", "scatter_allgather")
    grid = Grid.of("bcast", (16,), (8, 32, 248, 256), 1, (0,), names, for_openmpi=True)
    found = {
        size: [case.algorithm for case in grid.cases() if case.message_bytes == size] for size in (8, 32, 248, 256)
    }
    assert found == {8: ["linear"], 32: [*names[:2]], 248: [*names[:2]], 256: [*names]}
    choices = (Choice("split_binary"), Choice("linear"))
    times = times_of("bcast", choices, (16,), (8, 64), [[[1.0, 1.0]], [[2.0, 2.0]]])
    made = select(times, consumer="openmpi-4.1")
    assert [made.choose(16, size) for size in (8, 64)] == [choices[1], choices[0]]
    assert select(times, consumer="collwise").rules == {16: ((8, choices[0]),)}


KIB = 1024


def table_with_untuned() -> DecisionTable:
    """Rabenseifner's algorithm on 2048 processes from 8 KiB on, where untuned Open MPI runs it from 16 KiB on."""
    rabenseifner, doubling, linear = Choice("rabenseifner"), Choice("recursive_doubling"), Choice("linear")
    sizes = (8 * KIB, 16 * KIB, 32 * KIB)
    seconds = (((0.7, 1.0, 1.5),), ((7.0, 10.0, 12.0),), ((9.0, 99.0, 999.0),))
    times = times_of("allreduce", (rabenseifner, doubling, linear), (2048,), sizes, seconds)
    rules = {2048: ((8 * KIB, rabenseifner),)}
    return DecisionTable("allreduce", "bed", 1, "simulated", "test", rules, times, platform_procs=2048)


@pytest.mark.parametrize("version", ["4.1", "5.0"])
def test_rules_leave_calls_of_few_elements_to_open_mpi_where_its_own_decision_is_faster(version: str) -> None:
    """It runs rabenseifner with enough doubles, and so from 16 KiB on."""
    made = exported([table_with_untuned()], "openmpi", version=version)
    found = [rule_at(made.text, "allreduce", 2048, size * KIB) for size in (8, 16, 31, 32)]
    assert found == ["recursive_doubling", "", "", "rabenseifner"]
    assert "16384 0 0 0 # from 16 KiB: Open MPI decides" in made.text
    (said,), _ = for_consumer([table_with_untuned()], f"openmpi-{version}")
    assert gains_over_untuned(said) == [1.0, 1.0, 1.0]
    assert [str(one) for one in made.substitutions] == [
        "allreduce from P = 2048, 8 KiB: too few elements for rabenseifner; recursive_doubling instead, at most "
        "900.0 % slower",
    ]


@given(st.lists(st.floats(0.1, 10.0), min_size=9, max_size=9))
def test_no_point_of_rules_is_over_a_percent_slower_than_untuned(times: list[float]) -> None:
    table, seconds = table_with_untuned(), [[times[i : i + 3]] for i in (0, 3, 6)]
    assert table.times is not None
    drawn = times_of("allreduce", table.times.choices, table.times.procs, table.times.message_bytes, seconds)
    (said,), _ = for_consumer([replace(table, times=drawn)], "openmpi-4.1")
    gains = gains_over_untuned(said)
    assert all(gain >= 1 / 1.01 for gain in gains)
    summary = f"x {geometric_mean(gains):.2f} on average, x {min(gains):.2f} at least, slower at 0 of 3 points"
    assert (
        summary_over_untuned(said, "openmpi-4.1") == f"allreduce, over untuned Open MPI 4.1 by these times: {summary}"
    )
    assert (
        summary_over_untuned(said, "openmpi-5.0") == f"allreduce, over untuned Open MPI 5.0 by these times: {summary}"
    )
    by_node = replace(said, processes_per_node=4)
    # Open MPI 5 runs han, which our baseline does not know, if nodes have several processes.
    for consumer, is_unknown in (("openmpi-4.1", False), ("openmpi-5.0", True)):
        line = summary_over_untuned(by_node, consumer)
        assert ("is not known, since" in line, line.endswith(summary)) == (is_unknown, True)
    assert not summary_over_untuned(said, "intel") + summary_over_untuned(replace(said, times=None), "openmpi-4.1")


def test_an_untuned_decision_that_was_not_timed_is_no_choice() -> None:
    table = table_of("bcast", "split_binary", (64,))
    (said,), _ = for_consumer([table], "openmpi-4.1")
    assert all(choice.algorithm != "library decides" for row in said.rules.values() for _, choice in row)


@needs("openmpi")
def test_open_mpi_decides_itself_at_a_rule_of_algorithm_0(tmp_path: Path) -> None:
    path = tmp_path / "x.rules"
    path.write_text("1 # collectives\n2 1 # allreduce\n4 3\n0 1 0 0\n1024 0 0 0\n4096 1 0 0\n")
    untuned, between = (observe("allreduce", 6, 2048, rules) for rules in (None, path))
    assert between == untuned != observe("allreduce", 6, 512, path)


@settings(max_examples=60)
@given(
    st.lists(st.floats(1, 1.05), min_size=18, max_size=18).map(lambda some: np.reshape(some, (3, 2, 3))),
    st.sampled_from((0.0, 0.01)),
    st.sampled_from(("simulated", "measured")),
    st.booleans(),
)
def test_a_call_is_left_to_the_library_where_its_own_decision_is_as_good(
    seconds: Array, width: float, source: str, by_size: bool
) -> None:
    """Exact times count from a percent on, measured ones by intervals; without sizes, on average or everywhere."""
    binomial, chain = Choice("binomial"), Choice("chain")
    sizes, counts = (8, 64, 512), (4, 8)
    times = times_of("bcast", (binomial, chain, LIBRARY_DECIDES), counts, sizes, seconds, source, width)
    row = ((8, binomial), (512, chain)) if by_size else ((64, chain),)
    made = DecisionTable("bcast", "bed", 1, source, "test", {4: row}, times)
    found = left_to_library(made, by_size)
    for place, procs in enumerate(counts):
        own = seconds[2, place]
        ours = seconds[[0, 0, 1] if by_size else [1, 1, 1], place, [0, 1, 2]]
        faster = ours + width < own - width if source == "measured" else ours <= 1.01 * own
        if not by_size:
            faster[:] = all(faster) if source == "measured" else gmean(own[1:] / ours[1:]) * 1.01 >= 1
        for size, stays in zip(sizes, faster.tolist(), strict=True):
            wanted = made.choice_at(procs, size)
            assert found.choice_at(procs, size) == (wanted if stays or wanted is None else LIBRARY_DECIDES)
