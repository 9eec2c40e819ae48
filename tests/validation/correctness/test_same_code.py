"""Ours against what Open MPI runs under the same name: every message, wait, reduction, copy and piece of memory.

Open MPI's collectives are traced below MPI's functions (simulator/programs/openmpi_trace.c), ours are recorded as the
schedule engine plays them. What differs is listed in crosscheck.toml: a difference that is not listed fails, and so
does a listed one that is not there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.execution.installations import mpi_installation
from collwise.simulator.timing import Case
from collwise.validation.correctness.crosscheck import OPENMPI_CODE, OPENMPI_PARTS, PARTS
from collwise.validation.measurement.imports.algorithms import _OPENMPI, openmpi_choice
from tests.needs import needs
from tests.validation.traces import BLOCK_BYTES, ELEMENT_BYTES, VERSION, Call, Process, sent_by, told, traced

COLLECTIVES = ("bcast", "reduce", "allreduce", "allgather", "reduce_scatter", "alltoall", "gather", "scatter")
PROCS = (8, 13)
EVEN_PROCS = 12
"""No power of two, and on which some of the differences of such numbers are not there."""
FEW = 5


def calls(procs: int) -> list[Call]:
    """All that is compared on so many processes."""
    found = []
    for collective in COLLECTIVES:
        for number, names in enumerate(_OPENMPI[collective], 1):
            choice = openmpi_choice(collective, names.split()[0], procs)
            entry = None if choice is None else Catalogue.load().algorithm(collective, choice.algorithm)
            if choice is None or entry is None or VERSION not in entry.openmpi or entry.objection(procs):
                continue
            for size in message_sizes(collective, procs):
                case = Case(collective, choice.algorithm, procs, size, choice.segment_bytes, choice.parameter)
                found.append(Call(number, case))
    return found


def message_sizes(collective: str, procs: int) -> list[int]:
    """Equal blocks, blocks that differ by an element, and fewer elements than processes."""
    if collective in ("gather", "scatter", "allgather", "alltoall"):
        return [BLOCK_BYTES]
    whole = procs * BLOCK_BYTES
    return [whole, whole + 3 * ELEMENT_BYTES, FEW * (1 if collective == "bcast" else ELEMENT_BYTES)]


def differences(ours: Sequence[Process], theirs: Sequence[Process]) -> set[str]:
    """In which respects processes do something else, in the words of crosscheck.toml.

    If messages are others, nothing else is compared; if only their order is another one, waits are not.
    """

    def differ(of: Callable[[Process], object]) -> bool:
        return any(of(one) != of(other) for one, other in zip(ours, theirs, strict=True))

    if differ(lambda one: Counter(sent_by(one))):
        return {"messages"}
    found = set()
    if differ(sent_by) or differ(lambda one: [each.peer for each in one.operations if each.kind == "r"]):
        found.add("order")
    else:
        found |= {"receives"} if differ(lambda one: _when_waiting(one, "r")) else set()
        if differ(lambda one: _when_waiting(one, "s")):
            found.add("sends")
        elif differ(lambda one: [each.blocks for each in one.operations if each.kind == "s"]):
            found.add("blocking")
    return found | {name for name, of in _LOCAL.items() if differ(of)}


_LOCAL: dict[str, Callable[[Process], object]] = {
    "reductions": lambda one: [each.bytes for each in one.operations if each.kind == "+"],
    "copies": lambda one: sum(each.bytes for each in one.operations if each.kind == "="),
    "packing": lambda one: one.packs,
    "scratch": lambda one: one.scratch_bytes,
}
ASPECTS = ("messages", "order", "receives", "sends", "blocking", *_LOCAL)


def _when_waiting(one: Process, awaited: str) -> list[object]:
    """When messages start and those of a kind are waited for, beside one another; receives also beside reductions.

    Waits with nothing between them are one.
    """
    events: list[object] = []
    for each in one.operations:
        waited = frozenset(name for name in each.waits_for if name[0] == awaited)
        if each.kind == "w" and events and isinstance(events[-1], frozenset):
            events[-1] |= waited
        elif waited:
            events.append(waited)
        elif each.kind in "sr" or (each.kind == "+" and awaited == "r"):
            events.append((each.kind, each.peer))
    return events


@cache
def release() -> tuple[int, ...]:
    """The installed Open MPI's version: (4, 1, 4)."""
    return tuple(map(int, re.findall(r"\d+", mpi_installation("openmpi").version)[:3]))


WHERE: dict[str, Callable[[Call], bool]] = {
    "": lambda call: True,
    "P is odd": lambda call: call.case.procs % 2 == 1,
    "P is no power of two": lambda call: call.case.procs & (call.case.procs - 1) != 0,
    "P does not divide the elements": lambda call: call.elements % call.case.procs != 0,
    "halves of the elements differ by one": lambda call: call.elements % 2 ** (call.case.procs.bit_length() - 1) != 0,
    "there are fewer elements than processes": lambda call: call.elements < call.case.procs,
    "Open MPI is 4.1.6 or newer": lambda call: release() >= (4, 1, 6),
}


def listed(call: Call) -> set[str]:
    """The differences that crosscheck.toml lists for a call."""
    found = [one.differs for one in OPENMPI_CODE.get(call.key, ()) if WHERE[one.where](call)]
    return {aspect for differs in found for aspect in differs} - {PARTS}


def seen(expected: set[str], call: Call) -> set[str]:
    """Those of the differences that `differences` sees beside one another."""
    if "messages" in expected:
        return {"messages"}
    hides = {"order": {"receives", "sends", "blocking"}, "sends": {"blocking"}}
    hidden = {other for name, others in hides.items() if name in expected for other in others}
    if call.elements < call.case.procs:
        # What is allocated for so little is not told from counts and requests.
        hidden.add("scratch")
    return expected - hidden


def test_the_list_has_known_words() -> None:
    for key, found in OPENMPI_CODE.items():
        assert VERSION in Catalogue.load().algorithm(*key).openmpi
        for one in found:
            assert set(one.differs) <= {*ASPECTS, PARTS}
            assert one.where in WHERE
            assert one.text.endswith(f": {one.why}")


def doing(*words: str) -> tuple[Process, ...]:
    """A process as openmpi_trace tells of it."""
    return (Process(told(" ".join(words)), any("*" in word for word in words), 0),)


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        ("r1:8 s2:8 w0,1 +8 s3:16 w2", set()),
        ("r1:8 s2:8 w1 w0 +8 s3:16 w2", set()),
        ("r1:8 S2:8 w0 +8 s3:16 w1", {"blocking"}),
        ("r1:8 s2:8 w0,1 +8 s3:24 w2", {"messages"}),
        ("r1:8 s2:8 w0,1 +8 s2:16 w2", {"messages"}),
        ("r1:8 s3:16 w0,1 +8 s2:8 w2", {"order"}),
        ("r4:8 s2:8 w0,1 +8 s3:16 w2", {"order"}),
        ("s2:8 r1:8 w0,1 +8 s3:16 w2", {"receives", "sends"}),
        ("S2:8 R1:8 +8 s3:16 w0", {"receives", "sends"}),
        ("r1:8 s2:8 w0,1 s3:16 +8 w2", {"receives"}),
        ("r1:8 s2:8 w0 +8 s3:16 w1,2", {"sends"}),
        ("r1:8 s2:8 w0,1 +4 +4 s3:16 w2", {"receives", "reductions"}),
        ("=8 r1:8 s2:8 w0,1 +8 s3:16 w2", {"copies"}),
        ("r1:8 s2:8 w0,1 +8 s3:16* w2", {"packing"}),
    ],
)
def test_what_counts_as_a_difference(theirs: str, found: set[str]) -> None:
    assert differences(doing("r1:8 s2:8 w0,1 +8 s3:16 w2"), doing(theirs)) == found


@needs("openmpi-4.1")
@pytest.mark.parametrize("procs", [*PROCS, EVEN_PROCS])
def test_what_differs_from_open_mpi_is_listed_and_what_is_listed_differs(procs: int, tmp_path: Path) -> None:
    wrong = []
    for one in traced(calls(procs), tmp_path):
        found, expected = differences(one.ours, one.theirs), listed(one.call)
        if not found <= expected or (procs in PROCS and found != seen(expected, one.call)):
            wrong.append(f"{one.call.case}: {sorted(found)}, and {sorted(expected)} are listed")
    assert wrong == []


@needs("openmpi-4.1")
def test_open_mpi_decides_about_the_parts_of_those_that_are_listed(tmp_path: Path) -> None:
    whole = [call for call in calls(8) if call.key in OPENMPI_PARTS]
    found = traced([*whole, *(replace(call, parts=False) for call in whole)], tmp_path)
    pairs = zip(found[: len(whole)], found[len(whole) :], strict=True)
    keys = {ours.call.key for ours, decided in pairs if ours.theirs != decided.theirs}
    assert keys == {key for key, all_of_it in OPENMPI_CODE.items() if any(PARTS in one.differs for one in all_of_it)}


@needs("openmpi-4.1")
def test_another_algorithm_differs(tmp_path: Path) -> None:
    (one,) = traced([Call(5, Case("bcast", "binomial", 8, 4096))], tmp_path)
    assert differences(one.ours, one.theirs) == {"messages"}
