"""Judges the comparison of our algorithms with those of SMPI and Open MPI: what differs, and why.

Each difference needs an explanation here, and each explanation a difference: an explanation that is out of date is a
finding, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from collwise.validation.correctness.crosscheck_openmpi import OpenmpiRow
from collwise.validation.correctness.crosscheck_smpi import SmpiRow

CrosscheckRow = SmpiRow | OpenmpiRow
"""A row of the comparison with SMPI or with Open MPI."""


@dataclass(frozen=True)
class Explanation:
    """The reason why ours and theirs differ and, if times differ, the range of the ratio of ours to theirs.

    `by_default` says whether they differ for the default process counts and sizes.
    """

    text: str
    least_ratio: float = 0.0
    most_ratio: float = float("inf")
    by_default: bool = True


Explanations = Mapping[tuple[str, str], Explanation]

_FOLD = Explanation(
    "Where P is no power of two, the surplus processes first combine with others. SMPI's send their whole vector; ours "
    "exchange halves, combine one each and collect the result, as in Open MPI: one message more in sequence, but half "
    "the computation of the reduction, which SMPI does not charge.",
    1.0,
    1.5,
)
_LEFT_OVER = Explanation(
    "The elements left over when P does not divide their number are reduced by a second allreduce in SMPI; ours "
    "distributes them over the blocks.",
    0.5,
    1.02,
    by_default=False,
)
_ONE_RECEIVE = Explanation(
    "A process with one child in SMPI's has two of its segments under way at once, which share the link there and "
    "overlap their latencies; on a network one follows the other. Ours posts the next segment's receive when the first "
    "one has arrived, which was as fast on the test bed. With two posted in ours the times are equal.",
    0.85,
    2.0,
)
_TOKENS = Explanation(
    "In simulation our barriers' messages carry a byte, so that a platform's time in a send or receive is charged for "
    "them; SMPI's are empty, and free.",
    least_ratio=1.0,
    by_default=False,
)

SMPI: Explanations = {
    ("bcast", "scatter_allgather"): Explanation(
        "Where P is no power of two, blocks that a process has no partner for come from another one of its group: in "
        "SMPI from one that may itself have waited for such a block, in ours from the first, which never does. With "
        "SMPI's way in ours the times are equal.",
        0.75,
        1.0,
    ),
    ("gather", "linear_sync"): Explanation(
        "SMPI's root turns to the next process when it has the first part of a block, and waits for all second parts "
        "at the end, so that these overlap; ours receives both parts first, as formulas (13) and (14) describe. "
        "With one wait at the end in ours the times are equal.",
        1.0,
        1.6,
    ),
    ("scatter", "binomial"): Explanation(
        "SMPI sends to the child with the smallest subtree first, ours to the one with the largest, which has most to "
        "forward. With SMPI's order in ours the times are equal.",
        0.5,
        1.0,
    ),
    ("reduce", "pipeline"): _ONE_RECEIVE,
    ("reduce", "binary"): _ONE_RECEIVE,
    ("reduce", "rabenseifner"): _FOLD,
    ("allreduce", "rabenseifner"): _FOLD,
    ("allreduce", "ring"): _LEFT_OVER,
    ("allreduce", "segmented_ring"): _LEFT_OVER,
    **{("barrier", name): _TOKENS for name in ("linear", "double_ring", "recursive_doubling", "bruck", "tree")},
}

# Algorithms that SMPI seems to have as well, but that cannot be compared.
NOT_IN_SMPI: Mapping[tuple[str, str], str] = {
    ("bcast", "binomial"): "'binomial_tree' is another tree: the child of the largest subtree first, and one blocking "
    "send after another.",
    ("bcast", "split_binary"): "'ompi_split_bintree' makes a linear broadcast of messages below two segments. That one "
    "leaves messages unreceived, and SMPI's broadcast of four bytes whenever a communicator is made is enough to fail.",
    ("allgather", "linear"): "'GB' has other parts: a gather that starts all receives at once, and 'binomial_tree'.",
    ("allgatherv", "linear"): "'GB', as for allgather.",
    ("allreduce", "non_overlapping"): "'redbcast' has other parts, 'binomial_tree' among them.",
}

_PERSISTENT = Explanation(
    "Open MPI starts persistent requests, which its monitoring does not count: it sees no message at all, for this "
    "algorithm only."
)
_BLOCKS = (
    "Open MPI cuts the message into blocks of ceil(m / P) bytes, the last ones being shorter or empty, and sends no "
    "empty ones; the lengths of ours differ by a byte at most."
)
_NO_EMPTY_MESSAGES = Explanation("Open MPI leaves out empty messages; ours sends them.")
_FEW = "Of fewer elements than processes Open MPI makes"

OPENMPI: Explanations = {
    ("bcast", "split_binary"): Explanation(
        "A message of which a half is shorter than a segment goes down a chain in Open MPI; ours splits every message."
    ),
    ("bcast", "scatter_allgather"): Explanation(
        f"{_BLOCKS} Where P is no power of two, blocks that a process has no partner for come from another process."
    ),
    ("bcast", "scatter_ring_allgather"): Explanation(_BLOCKS),
    ("gather", "linear_sync"): Explanation(
        "Where the first part is the whole block, Open MPI sends an empty second part; ours sends none."
    ),
    ("alltoall", "linear"): _PERSISTENT,
    ("alltoallv", "linear"): _PERSISTENT,
    ("reduce", "rabenseifner"): Explanation(
        f"{_FEW} a linear reduction. Where P is no power of two and the root would be left out of the power of two, it "
        "takes its neighbour's place in ours, and process 0's in Open MPI."
    ),
    ("allreduce", "recursive_doubling"): Explanation(
        "Where P is no power of two, of two neighbours the first takes part for both in ours, the second in Open MPI."
    ),
    ("allreduce", "ring"): Explanation(f"{_FEW} a recursive doubling."),
    ("allreduce", "segmented_ring"): Explanation(
        f"{_FEW} a recursive doubling. It rounds the number of segments to the nearest, so that they may be half as "
        "long again as asked for; ours are never longer."
    ),
    ("allreduce", "rabenseifner"): Explanation(f"{_FEW} a linear reduction and broadcast."),
    ("reduce_scatter", "recursive_halving"): _NO_EMPTY_MESSAGES,
    ("reduce_scatter", "non_overlapping"): _NO_EMPTY_MESSAGES,
    ("reduce_scatter_block", "butterfly"): Explanation(
        "Where P is a power of two Open MPI halves in an order that leaves each process with its own block; ours makes "
        "one exchange more at the end, as both do for other P."
    ),
}


def findings(rows: Sequence[CrosscheckRow], explanations: Explanations, complete: bool) -> list[str]:
    """A line for each failed run, each wrong result, each unexplained difference and each unneeded explanation.

    `complete` says that the rows cover every algorithm; only then is an explanation without a difference out of date.
    """
    said = [(row, row.problem) for row in rows if row.problem]
    said += [(row, "results differ") for row in rows if not row.problem and not row.results_agree]
    said += [(row, "differs for no known reason") for row in rows if _unexplained(row, explanations)]
    lines = [f"{row.collective} {row.algorithm} on {row.procs} processes: {what}" for row, what in said]
    if complete:
        differing = {_key(row) for row in rows if row.differs}
        unneeded = [key for key, why in explanations.items() if why.by_default and key not in differing]
        lines += [f"{' '.join(key)}: explained, but nothing differs" for key in unneeded]
    return lines


def _unexplained(row: CrosscheckRow, explanations: Explanations) -> bool:
    """Whether a row differs for no known reason, or by more than the reason explains."""
    if row.problem or not row.differs:
        return False
    explanation = explanations.get(_key(row))
    return explanation is None or not explanation.least_ratio <= row.ratio <= explanation.most_ratio


def explained(rows: Iterable[CrosscheckRow], explanations: Explanations) -> list[tuple[str, str]]:
    """The explanations that these rows need: the text for each 'collective algorithm'."""
    keys = dict.fromkeys(_key(row) for row in rows if row.differs)
    return [(" ".join(key), explanations[key].text) for key in keys if key in explanations]


def _key(row: CrosscheckRow) -> tuple[str, str]:
    return row.collective, row.algorithm
