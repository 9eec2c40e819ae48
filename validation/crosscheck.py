"""What must hold between our algorithms and the same ones that others wrote, and why some differ.

Each difference needs an explanation here, and each explanation a difference: one that is out of date is a finding, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Row(Protocol):
    """What the comparisons with both engines have in common."""

    @property
    def collective(self) -> str:
        """Its name in the catalogue."""

    @property
    def algorithm(self) -> str:
        """Its name in the catalogue."""

    @property
    def differs(self) -> bool:
        """Whether there is something to explain."""

    @property
    def problem(self) -> str:
        """Why there is nothing to compare."""


@dataclass(frozen=True)
class Explanation:
    """Why an algorithm of ours and its counterpart differ, and for times how far: between these ratios of ours to theirs."""

    text: str
    least_ratio: float = 0.0
    most_ratio: float = float("inf")


Explanations = Mapping[tuple[str, str], Explanation]

SMPI: Explanations = {
    ("bcast", "chain"): Explanation(
        "With several segments, a process of SMPI's has the receive of the next one posted while it passes the last one "
        "on, so that a rendezvous starts a handshake earlier; ours receives, then sends, as the model's Algorithm 1 does.",
        1.0,
        1.05,
    ),
    ("gather", "linear_sync"): Explanation(
        "SMPI's root goes on to the next process when it has the first part of a block, and waits for all second parts "
        "at the end, so that these overlap; ours has both parts before it goes on, as formulas (13) and (14) describe.",
        1.0,
        1.55,
    ),
}

# What SMPI seems to have, too, but cannot be compared.
NOT_IN_SMPI: Mapping[tuple[str, str], str] = {
    ("bcast", "binomial"): "'binomial_tree' is another tree (the child of the largest subtree first, a blocking send "
    "to one child after another).",
    ("bcast", "split_binary"): "'ompi_split_bintree' makes a linear broadcast of messages below two segments; it leaves "
    "messages behind, and SMPI's own broadcast of four bytes whenever a communicator is made is enough to fail.",
    ("allgather", "linear"): "'GB' has other parts: a gather that starts all receives at once and the broadcast above.",
    ("allgatherv", "linear"): "'GB', as for allgather.",
}

OPENMPI: Explanations = {
    ("bcast", "split_binary"): Explanation(
        "A message of which a half is shorter than a segment goes down a chain in Open MPI; ours splits every message."
    ),
    ("gather", "linear_sync"): Explanation(
        "Where the first part is the whole block, Open MPI sends an empty second part, too; ours does not."
    ),
    ("alltoall", "linear"): Explanation(
        "Open MPI starts persistent requests, which its monitoring does not count: no message is seen at all."
    ),
    ("alltoallv", "linear"): Explanation(
        "Open MPI starts persistent requests, which its monitoring does not count: no message is seen at all."
    ),
}


def findings(rows: Sequence[Row], explanations: Explanations, complete: bool) -> list[str]:
    """A line for each run that failed, each difference that is not explained, and each explanation without one.

    `complete` says that the rows are all that there are: only then an explanation can be out of date.
    """
    lines = [f"{_call(row)}: {row.problem}" for row in rows if row.problem]
    lines += [f"{_call(row)}: not explained" for row in rows if unexplained(row, explanations)]
    lines += [f"{_call(row)}: results differ" for row in rows if not row.problem and not getattr(row, "results_agree", True)]
    if complete:
        differing = {_key(row) for row in rows if row.differs}
        lines += [f"{' '.join(key)}: the explanation is out of date" for key in explanations if key not in differing]
    return lines


def unexplained(row: Row, explanations: Explanations) -> bool:
    """Whether a row differs for no known reason, or further than that explains."""
    if row.problem or not row.differs:
        return False
    explanation = explanations.get(_key(row))
    ratio = getattr(row, "ratio", None)
    return explanation is None or not (
        ratio is None or explanation.least_ratio <= ratio <= explanation.most_ratio
    )


def explained(rows: Iterable[Row], explanations: Explanations) -> list[tuple[str, str, str]]:
    """Collective, algorithm and text of the explanations that these rows need."""
    keys = dict.fromkeys(_key(row) for row in rows if row.differs)
    return [(*key, explanations[key].text) for key in keys if key in explanations]


def _key(row: Row) -> tuple[str, str]:
    return row.collective, row.algorithm


def _call(row: Row) -> str:
    return f"{row.collective} {row.algorithm} on {getattr(row, 'procs', '?')} processes"
