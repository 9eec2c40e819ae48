"""Coefficients counted along critical paths beside those of the formulas that were derived by hand from the same code.

With messages that take a latency and no time for their bytes, the time is a number of latencies; with the opposite it
is a number of bytes. The formulas say both, by parts, with gamma(p) = 1 and p - 1: a further message of the same sender
costs nothing in the one case, and its whole time on the sender's port in the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from collwise.algorithms.catalogue import Catalogue
from collwise.models.implementation_aware.message_counts import Gamma, Messages
from collwise.models.interface import Points
from collwise.models.parameters import CLASSES, Overheads, PathParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.registry import BY_PARTS, MODELS
from collwise.models.single_messages import Hockney
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.timing import Case
from collwise.validation.fitting.critical_path import path_tables

MESSAGE_BYTES = 1 << 14
SEGMENTS = 16
"""The number of segments that stands for many."""
_BEYOND = MESSAGE_BYTES << 20
_NOTHING = PiecewiseLinear((1.0,), (0.0,))


@dataclass(frozen=True)
class Shape:
    """The way in which a message is sent: by eager or rendezvous messages, whole or in segments."""

    rendezvous: bool
    segmented: bool

    def __str__(self) -> str:
        return (
            f"{'rendezvous' if self.rendezvous else 'eager'}, {f'{SEGMENTS} segments' if self.segmented else 'whole'}"
        )

    @property
    def segment_bytes(self) -> int:
        """The size of a segment, 0 for whole messages."""
        return MESSAGE_BYTES // SEGMENTS if self.segmented else 0


_SCATTERED = (
    "Eager blocks leave the root side by side and share its port, so that the first one is complete no sooner than the "
    "last; the formula counts the blocks on the way to the deepest process only."
)
_TWO_CHILDREN = (
    "Receives from two children are posted at a time, so that the latencies of two messages overlap; the formula "
    "counts each, and its fit takes them for shorter ones."
)
REASONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("bcast", "split_binary"): (
            "Processes that have their half exchange it while they pass it on, and share their ports; the formula has "
            "the exchange last. With rendezvous it waits for the partner, too. Eager segments to two children leave "
            "side by side; formula (9) has one after the other."
        ),
        ("bcast", "scatter_allgather"): (
            f"{_SCATTERED} Which messages wait for one another where P is not a power of two, the formula only bounds. "
            "Blocks are whole bytes."
        ),
        ("bcast", "scatter_ring_allgather"): f"{_SCATTERED} Blocks are whole bytes.",
        ("bcast", "two_tree"): (
            "How many of the steps that fill both trees have a message to wait for varies with P; the formula counts "
            "all. Unsegmented halves share the ports of processes that are in both trees."
        ),
        ("gather", "linear_sync"): (
            "The root's request of each block is a message, which formulas (13) and (14) leave out. Eager parts of a "
            "block come at once, but one after the other through the root's port; the formula has the bytes of one."
        ),
        ("reduce", "chain"): (
            f"{_TWO_CHILDREN} Where the chains differ in length, the root has taken in the shorter ones when the "
            "longest is done."
        ),
        ("reduce", "binary"): (
            f"{_TWO_CHILDREN} Where the tree is not full, fewer messages are waited for. While a process waits for its "
            "own rendezvous message, no more than two segments come in."
        ),
        ("reduce", "binomial"): (
            f"{_TWO_CHILDREN} Where P is not a power of two, the last subtree is smaller. A segment more is waited for "
            "where the root has four children and more."
        ),
    }
)
"""The reasons for which the paths of algorithms differ from their formulas, for those that do."""
# Blocks of m / P are whole bytes.
_EQUAL = 2e-3

SHAPES = tuple(Shape(rendezvous, segmented) for segmented in (False, True) for rendezvous in (False, True))


@dataclass(frozen=True)
class Counted:
    """Latencies, and bytes in multiples of m, of an algorithm on P processes: by its formula and along its path."""

    procs: int
    formula_latencies: float
    formula_messages: float
    path_latencies: float
    path_messages: float

    @property
    def equal(self) -> bool:
        """Whether both count the same."""
        return all(abs(one) <= _EQUAL for one in self.differences)

    @property
    def differences(self) -> tuple[float, float]:
        """How many latencies, and multiples of m, the path has more than the formula."""
        return self.path_latencies - self.formula_latencies, self.path_messages - self.formula_messages


def algorithms_with_both() -> Iterator[tuple[str, str, Shape]]:
    """Every collective and algorithm with a formula by parts, in every shape that the algorithm has."""
    for collective, formulas in MODELS[BY_PARTS].formulas.items():
        for name in formulas:
            pipelined = Catalogue.load().algorithm(collective, name).pipelined
            yield from ((collective, name, shape) for shape in SHAPES if pipelined or not shape.segmented)


def counted(
    collective: str, algorithm: str, shape: Shape, procs: Sequence[int], receives_first: bool = True
) -> list[Counted]:
    """Both counts for each P; see `PathParameters` on `receives_first`, which the formulas assume."""
    limit = 1 if shape.rendezvous else _BEYOND
    formula = MODELS[BY_PARTS].formulas[collective][algorithm]
    count = Catalogue.load().algorithm(collective, algorithm).default_count
    known = PathParameters("", "", 1, limit, 0.0, receives_first, Overheads(_NOTHING, _NOTHING, _NOTHING), {})
    found = []
    for p in procs:
        points = Points.of(p, MESSAGE_BYTES, shape.segment_bytes, count, eager_limit_bytes=limit)
        side_by_side = Gamma((0.0,), ((1.0, 1.0),))
        in_turn = Gamma((0.0, 1.0), ((1.0,) * p, tuple(float(k) for k in range(1, p + 1))))
        latencies: Sequence[Messages] = formula(points, side_by_side)
        in_bytes: Sequence[Messages] = formula(points, in_turn)
        schedule = Schedule(Case(collective, algorithm, p, MESSAGE_BYTES, shape.segment_bytes))

        def played(alpha: float, beta: float, schedule: Schedule = schedule) -> float:
            pairs = dict.fromkeys(CLASSES, Hockney(alpha, beta))
            return schedule.play(path_tables(known, pairs, schedule.procs, schedule.sizes)).seconds

        found.append(
            Counted(
                p,
                sum(float(part.count) for part in latencies),
                sum(float(part.count * part.bytes_each) for part in in_bytes) / MESSAGE_BYTES,
                played(1.0, 0.0),
                played(0.0, 1.0) / MESSAGE_BYTES,
            )
        )
    return found
