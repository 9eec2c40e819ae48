"""The decisions of Open MPI 4.1 and 5.0 without tuning, for every collective: their component tuned's, and basic's."""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from collwise.common.units import parse_size
from collwise.validation.libraries.decision import Decision, elements
from collwise.validation.libraries.least_elements import NEEDS_ELEMENTS
from collwise.validation.times.choice import Choice

TABLE_PATH = Path(__file__).with_name("openmpi.toml")

BASIC = {"gatherv": "linear", "scatterv": "linear"}
"""Collectives without an algorithm of tuned, and the one that the component basic has."""

Steps = Sequence[tuple[int, str]]
"""Algorithms, each from a message size on."""


@cache
def table() -> Mapping[str, Mapping[int, Steps]]:
    """The decisions of openmpi.toml: by collective, from each number of processes on."""
    document = tomllib.loads(TABLE_PATH.read_text(encoding="utf-8"))
    return {
        collective: {int(procs): _steps(line) for procs, line in rows.items()} for collective, rows in document.items()
    }


def _steps(line: str) -> Steps:
    words = [part.split() for part in line.split(", ")]
    return [(parse_size(size[0]) if size else 0, name) for *size, name in words]


def decide(collective: str, procs: int, message_bytes: int) -> Decision:
    """The decision for a commutative operation and equal blocks, without a segment size: Open MPI cuts no messages."""
    name = decided_name(collective, procs, message_bytes)
    return Decision(name, _as_it_runs(collective, name, procs, message_bytes))


def fixed_choice(collective: str, procs: int, message_bytes: int) -> Choice | None:
    """The catalogue's choice that is the same as what is decided, None without one."""
    return decide(collective, procs, message_bytes).choice


FIXED = {"4.1": fixed_choice, "5.0": fixed_choice}
"""The fixed decisions by version of Open MPI."""


def decided_name(collective: str, procs: int, message_bytes: int) -> str:
    """The catalogue's name of the algorithm that is decided for, which may fall back on another one."""
    if collective in BASIC:
        return BASIC[collective]
    rows = table()[collective]
    steps = rows[max((first for first in rows if first <= procs), default=min(rows))]
    return steps[bisect_right(steps, message_bytes, key=lambda step: step[0]) - 1][1]


def _as_it_runs(collective: str, name: str, procs: int, message_bytes: int) -> Choice:
    """The choice with the same messages, also where the algorithm falls back on another one."""
    if collective == "allgather" and name == "recursive_doubling" and procs & (procs - 1):
        return Choice("bruck")
    if name == "neighbor_exchange" and procs % 2:
        return Choice("ring")
    condition = NEEDS_ELEMENTS.get((collective, name))
    if condition and (message_bytes if collective == "bcast" else elements(message_bytes)) < condition.elements(procs):
        return Choice(condition.otherwise)
    if (collective, name) == ("gather", "linear_sync"):
        return Choice(name, message_bytes)  # the first part is the whole block
    if (collective, name) == ("alltoall", "linear_sync"):
        return Choice(name, fanout=max(1, procs - 1))  # without a limit of exchanges under way
    if (collective, name) in (("bcast", "k_chain"), ("reduce", "chain")):
        return Choice(name, fanout=1)
    return Choice(name)
