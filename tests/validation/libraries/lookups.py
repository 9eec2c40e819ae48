"""How MPI libraries look a call up in the files and variables that are exported for them, and tables to export."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from hypothesis import strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.validation.libraries.mpich_untuned import selected
from collwise.validation.select.consumers import algorithms_for, can_say, sees_sizes
from collwise.validation.select.decisions import DecisionTable, Row
from collwise.validation.times.choice import Choice

KIB = 1024

read_once = lru_cache(maxsize=2)(json.loads)


def value_of(text: str, variable: str) -> str:
    """The value that a shell script gives a variable; empty where it gives none."""
    found = re.search(rf"^export {variable}=[\"']?([^\"'\n]*)", text, re.MULTILINE)
    return found[1] if found else ""


def collwise_lookup(text: str, collective: str, procs: int, per_node: int, size: int) -> list[str]:
    """The words after the message size of the rule that libcollwise takes, by docs/interposing.md."""
    rules = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    left = [(int(p), int(n), int(m), rest) for name, p, n, m, *rest in rules if name == collective]
    for place, value in enumerate((procs, per_node, size)):
        largest = max((rule[place] for rule in left if rule[place] <= value), default=None)
        left = [rule for rule in left if rule[place] == largest]
    assert len(left) <= 1
    return left[0][3] if left else ["default"]


def mpich_lookup(text: str, collective: str, procs: int, size: int) -> str:
    """The function that a selection file gives a call whose elements are bytes."""
    return selected(read_once(text), collective, procs, size)


def intel_lookup(text: str, collective: str, procs: int, message_bytes: int) -> str:
    """The id that I_MPI_ADJUST_COLLECTIVE gives a call; empty where it says nothing."""
    compared = message_bytes * (procs if collective == "allgatherv" else 1)
    for preset in filter(None, value_of(text, f"I_MPI_ADJUST_{collective.upper()}").split(";")):
        identity, _, conditions = preset.partition(":")
        for condition in conditions.split(","):
            match = re.fullmatch(r"(\d+)-(\d+)@(\d+)-(\d+)", condition)
            assert match is not None, condition
            low, high, first, last = map(int, match.groups())
            if low <= compared <= high and first <= procs <= last:
                return identity
    return ""


def mvapich2_lookup(text: str, collective: str, message_bytes: int) -> str:
    """The id that MVAPICH2's tuning variable gives a message, as MVAPICH2 searches its ranges."""
    name = {"alltoall": "ALLTOALL", "reduce_scatter": "INTER_RED_SCAT"}.get(collective, f"INTER_{collective.upper()}")
    value = value_of(text, f"MV2_{name}_TUNING")
    if ":" not in value:
        return value
    ranges = [re.fullmatch(r"(\d+):(\d+)-(\d+|\+)", one) for one in value.split(",")]
    for match in ranges:
        assert match is not None, value
        if match[3] == "+" or message_bytes <= int(match[3]):
            return match[1]
    raise AssertionError(value)


_UCC_NAMES = {"reduce_scatter": "reduce_scatterv", "reduce_scatter_block": "reduce_scatter"}
UCC_TOTALS = ("gather", "allgather", "allgatherv", "alltoall")


def ucc_lookup(text: str, collective: str, team: int, message_bytes: int) -> str:
    """The algorithm that UCC_TL_UCP_TUNE gives a call; empty where UCC decides."""
    compared = message_bytes * (team if collective in UCC_TOTALS else 1)
    for token in filter(None, value_of(text, "UCC_TL_UCP_TUNE").split("#")):
        name, sizes, teams, _, algorithm = token.split(":")
        (low, high), (first, last) = sizes.split("-"), teams.strip("[]").split("-")
        fits = int(low) <= compared and (high == "inf" or compared <= int(high))
        in_team = int(first) <= team and (last == "inf" or team <= int(last))
        if name == _UCC_NAMES.get(collective, collective) and fits and in_team:
            return algorithm.removeprefix("@")
    return ""


def openmpi_json_lookup(text: str, collective: str, procs: int, message: int) -> dict[str, Any] | None:
    """The rule that Open MPI takes for a message size in its unit, by first match; None where it decides itself."""

    def fits(entry: Mapping[str, Any], kind: str, value: int) -> bool:
        least, most = entry.get(f"{kind}_min", 0), entry.get(f"{kind}_max", "inf")
        return least <= value and (most == "inf" or value <= most)

    entries: list[dict[str, Any]] = read_once(text)["collectives"].get(collective, [])
    for entry in entries:
        if fits(entry, "comm_size", procs):
            rules: list[dict[str, Any]] = entry["rules"]
            return next((rule for rule in rules if fits(rule, "msg_size", message)), None)
    return None


def row_of(decided: DecisionTable, procs: int) -> Row:
    """The row of the largest decided P up to a P, or nothing."""
    return decided.rules[max(below)] if (below := [count for count in decided.rules if count <= procs]) else ()


def chosen(row: Sequence[tuple[int, Choice | None]], size: int) -> Choice | None:
    """The last choice of a row that begins up to a size; None where there is none."""
    return next((choice for start, choice in reversed(row) if start <= size), None)


def in_force(row: Row, size: int, early: bool) -> list[Choice | None]:
    """The choice for a size; where choices may switch `early`, also those that begin up to 1/32 above it."""
    return [chosen(row, size), *(choice for start, choice in row if early and size < start <= size * 33 / 32)]


@st.composite
def choices_for(draw: st.DrawFn, consumer: str, collective: str, names: tuple[str, ...]) -> Choice:
    """Choices that a consumer's rules can express."""
    entry = Catalogue.load().algorithm(collective, draw(st.sampled_from(names)))
    segment = draw(st.sampled_from((0, KIB, 100_000))) if entry.part_parameter else 0
    count = draw(st.integers(0, 5)) if entry.count_parameter else 0
    choice = Choice(entry.name, segment, count)
    return choice if can_say(consumer, collective, choice) else Choice(entry.name)


@cache
def _expressible(consumer: str) -> Mapping[str, tuple[str, ...]]:
    """The algorithms that a consumer's rules can express, by collective."""
    known = {}
    for name in Catalogue.load().collectives:
        with contextlib.suppress(UsageError):
            known[name] = tuple(one for one in algorithms_for(name, consumer) if can_say(consumer, name, Choice(one)))
    return {name: found for name, found in known.items() if found}


@st.composite
def decided_for(draw: st.DrawFn, consumer: str, by_size: bool = True) -> DecisionTable:
    """Tables of choices that a consumer's rules can express, at any P and sizes."""
    known = _expressible(consumer)
    collective = draw(st.sampled_from([*known]))
    each = choices_for(consumer, collective, known[collective])
    starts = st.sets(st.integers(0, 3000) | st.integers(0, 2**20), min_size=1, max_size=4)
    row = starts.flatmap(lambda some: st.tuples(*(st.tuples(st.just(start), each) for start in sorted(some))))
    if not (by_size and sees_sizes(consumer, collective)):
        row = each.map(lambda choice: ((0, choice),))
    counts = st.sets(st.integers(1, 40) | st.sampled_from((64, 100, 1000)), min_size=1, max_size=3)
    rules = draw(counts.flatmap(lambda some: st.fixed_dictionaries({count: row for count in sorted(some)})))
    if by_size and len(rules) > 1 and (empty := draw(st.sampled_from([0, *rules]))):
        rules[empty] = ()
    return DecisionTable(collective, "bed", 1, "simulated", "test", rules)


def points_around(decided: DecisionTable, beyond: int) -> Iterator[tuple[int, int]]:
    """Each decided P and size, its neighbours, and points below and above all of them."""
    for procs in sorted(
        {max(1, count + by) for count in (*decided.rules, max(decided.rules) + beyond) for by in (-1, 0, 1)}
    ):
        starts = {0, 2**20, *(start for start, _ in row_of(decided, procs))}
        yield from ((procs, max(0, start + by)) for start in sorted(starts) for by in (-1, 0, 1))
