"""Plans of three-way comparisons: scenarios, each a test bed or processes on a cluster, with its message sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, check_name
from collwise.simulator.schedule.tasks import BY_SOCKET
from collwise.simulator.timing import Case
from collwise.validation.hierarchy.space import WITHIN
from collwise.validation.testbed.shape import TRANSPORTS, Shape
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.defaults import SEGMENT_BYTES
from collwise.validation.times.grid import Grid, candidates

if TYPE_CHECKING:
    from collwise.simulator.execution.targets import ExecutionTarget

COLLECTIVES = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather", "alltoall")

NODES = 8
BITS_PER_SECOND = 50e6
RATES = (100e6, 50e6, 25e6, 12.5e6)
"""Rates of the main test bed to be tried, in bits per second, the highest first."""
_OTHER_RATE = 0.5
_OTHER_NODES = (4, 16)

# In these collectives, m is the size of the whole message; in all others, it is that of a process's block.
_WHOLE = ("bcast", "reduce", "allreduce")
_SIZES = tuple(1024 * 2**k for k in (0, *range(2, 11))), tuple(1024 * 2**k for k in range(8))
_FEW_SIZES = (8192, 65536, 524288), (2048, 16384, 65536)
# With several processes on each node there are three times as many algorithms.
_SHARED_NODES_SIZES = (4096, 16384, 65536, 262144), (1024, 4096, 16384)
_FEW_SHARED_NODES_SIZES = (8192, 32768), (2048, 8192)


def hierarchical_choices(collective: str) -> tuple[Choice, ...]:
    """Every hierarchical algorithm, first with messages within nodes, then with other kinds for nodes of one socket."""
    names = [algorithm.name for algorithm in Catalogue.load().algorithms(collective) if algorithm.by_node]
    ways = [way for way in range(len(WITHIN)) if way != BY_SOCKET] if collective in _WHOLE else [0]
    found = [candidates(collective, [SEGMENT_BYTES], names, {"within": [way]}) for way in ways if names]
    return tuple(dict.fromkeys(choice for choices in found for choice in choices))


@dataclass(frozen=True)
class Scenario:
    """The number of processes, in all and per node, the message sizes by collective, and a test bed's shape."""

    procs: int
    processes_per_node: int
    sizes: Mapping[str, tuple[int, ...]]
    shape: Shape | None = None

    @classmethod
    def on_bed(cls, shape: Shape, sizes: Mapping[str, tuple[int, ...]]) -> Scenario:
        """The scenario on all nodes of a test bed."""
        return cls(shape.nodes * shape.ranks_per_node, shape.ranks_per_node, sizes, shape)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return -(-self.procs // self.processes_per_node)

    @property
    def by_node(self) -> bool:
        """True if hierarchical algorithms are also compared: on test beds with several processes on each node."""
        return self.shape is not None and self.processes_per_node > 1

    def grids(self) -> list[Grid]:
        """Every algorithm that runs on this number of processes, at every size, and MPI's own collective.

        Algorithms that cut messages have segments of SEGMENT_BYTES.
        """
        found = []
        for collective, sizes in self.sizes.items():
            more = hierarchical_choices(collective) if self.by_node else ()
            choices = candidates(collective, [SEGMENT_BYTES]) + more
            grid = Grid(collective, choices, (self.procs,), sizes, self.processes_per_node)
            found.append(grid.with_besides(lambda *_: LIBRARY_DECIDES))
        return found

    def cases(self) -> list[Case]:
        """The cases of the algorithms."""
        return [case for grid in self.grids() for case in replace(grid, besides=()).cases()]


@dataclass(frozen=True)
class ThreeWayPlan:
    """Scenarios, the main one first.

    Only for the main scenario, models are fitted, some cases are measured twice, and causes are sought.
    """

    scenarios: tuple[Scenario, ...]
    quick: bool = False
    models: bool = True

    @property
    def main(self) -> Scenario:
        """The first scenario."""
        return self.scenarios[0]

    @property
    def repeated(self) -> int:
        """The number of cases that are measured twice."""
        return 20 if self.quick or self.main.by_node else 40

    @property
    def diagnosed(self) -> int:
        """The number of disagreements whose cause is sought; 0 without a test bed, since conditions change a bed."""
        if self.main.shape is None:
            return 0
        return 4 if self.quick or self.main.by_node else 60


def usual_plan(
    *,
    nodes: int = NODES,
    bits_per_second: float | None = None,
    collectives: Sequence[str] = COLLECTIVES,
    sizes: Sequence[int] | None = None,
    quick: bool = False,
    one_bed: bool = False,
    models: bool = True,
    transport: str | None = None,
    ranks_per_node: int | None = None,
) -> ThreeWayPlan:
    """The main scenario; unless `quick` or `one_bed`, also 4 and 16 nodes, half the rate, and the other transport.

    The other scenarios have three sizes each. If `ranks_per_node` is above 1, there is only the main scenario, with
    hierarchical algorithms and without models, since models know only one process on each node.
    """
    if nodes < 2:
        raise UsageError(f"{nodes} nodes: at least 2 are needed")
    rate, per_node, transport = bits_per_second or BITS_PER_SECOND, ranks_per_node or 1, transport or TRANSPORTS[0]
    check_name("transport of a test bed", transport, TRANSPORTS)
    shared = per_node > 1
    usual = (_FEW_SHARED_NODES_SIZES, _SHARED_NODES_SIZES) if shared else (_FEW_SIZES, _SIZES)
    few, many = (_sizes(collectives, sizes, entry) for entry in usual)
    shape = Shape(nodes, rate, ranks_per_node=per_node, transport=transport)
    others = (
        *(replace(shape, nodes=count) for count in _OTHER_NODES if count != nodes),
        replace(shape, bits_per_second=rate * _OTHER_RATE),
        replace(shape, transport=next(name for name in TRANSPORTS[::-1] if name != transport)),
    )
    main, alone = Scenario.on_bed(shape, few if quick else many), shared or quick or one_bed
    more = () if alone else tuple(Scenario.on_bed(other, few) for other in others)
    return ThreeWayPlan((main, *more), quick, models and not shared)


def cluster_plan(
    target: ExecutionTarget,
    procs: Sequence[int] = (),
    *,
    collectives: Sequence[str] = COLLECTIVES,
    sizes: Sequence[int] | None = None,
    quick: bool = False,
    models: bool = True,
) -> ThreeWayPlan:
    """The largest process count as the main scenario, and the other process counts with three sizes each.

    By default there is only the target's usual process count. Models are fitted only with one process on each node.
    """
    counts = sorted({*(procs or (target.usual_procs,))}, reverse=True)
    if counts[-1] < 2:
        raise UsageError(f"P = {counts[-1]}: at least 2 are needed")
    few, many = (_sizes(collectives, sizes, usual) for usual in (_FEW_SIZES, _SIZES))
    main, per_node = few if quick else many, target.processes_per_node
    scenarios = tuple(Scenario(count, per_node(count), main if count == counts[0] else few) for count in counts)
    return ThreeWayPlan(scenarios, quick, models and scenarios[0].processes_per_node == 1)


def _sizes(
    collectives: Sequence[str], sizes: Sequence[int] | None, usual: tuple[tuple[int, ...], tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The sizes asked for, by collective, or the usual sizes of whole messages or of blocks."""
    if sizes and min(sizes) < 1:
        raise UsageError("empty messages are not compared; the smallest size is 1 B")
    if unfit := [name for name in collectives if name not in COLLECTIVES]:
        raise UsageError(f"no comparison of {', '.join(unfit)}; valid: {', '.join(COLLECTIVES)}")
    whole, blocks = usual
    return {name: tuple(sorted({*(sizes or ())})) or (whole if name in _WHOLE else blocks) for name in collectives}
