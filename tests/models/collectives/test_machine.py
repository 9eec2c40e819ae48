"""Formulas against a machine that runs programs of sends, receives and work event by event.

The machine knows no collectives and no formulas: only when a process is busy, when its port is, and when a message
arrives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.models.collectives import barrier, bcast, blocks, reduce
from collwise.models.collectives.blocks import binomial_seconds
from collwise.models.collectives.steps import EMPTY_BYTES, steps_of
from collwise.models.interface import Points
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import LMO, Hockney, LogGP, PLogP, Thresholds

Program = list[tuple[str, float, float]]
# Of sender, receiver and bytes.
Seconds = Callable[[int, int, float], float]


@dataclass(frozen=True)
class Machine:
    """One-way time, gap of ports, and what sending and receiving take a process itself."""

    message: Seconds
    gap: Seconds
    sending: Seconds
    receiving: Seconds

    def run(self, programs: Sequence[Program]) -> float:
        """Until the last process is done. A step is ('send', to, bytes), ('receive', from, bytes) or ('work', 0, s)."""
        procs = len(programs)
        clock, out_port, in_port = [0.0] * procs, [0.0] * procs, [0.0] * procs
        under_way: dict[tuple[int, int], list[float]] = defaultdict(list)
        following = [iter(program) for program in programs]
        waiting = [next(program, None) for program in following]
        while any(waiting):
            moved = False
            for rank in range(procs):
                while (step := waiting[rank]) is not None:
                    kind, peer, size = step[0], int(step[1]), step[2]
                    if kind == "work":
                        clock[rank] += size
                    elif kind == "send":
                        start = max(clock[rank], out_port[rank])
                        clock[rank] = start + self.sending(rank, peer, size)
                        out_port[rank] = start + self.gap(rank, peer, size)
                        under_way[rank, peer].append(start + self.message(rank, peer, size))
                    else:
                        if not under_way[peer, rank]:
                            break
                        arrival = under_way[peer, rank].pop(0)
                        own = clock[rank] + self.receiving(peer, rank, size)
                        clock[rank] = max(own, arrival, in_port[rank] + self.gap(peer, rank, size))
                        in_port[rank] = clock[rank]
                    waiting[rank] = next(following[rank], None)
                    moved = True
            assert moved, "deadlock"
        return max(clock)


def hockney_machine(model: Hockney) -> Machine:
    """A process sends while it receives, but one message each at a time."""

    def seconds(sender: int, receiver: int, size: float) -> float:
        return float(model.predict(size, sender, receiver))

    return Machine(seconds, seconds, lambda *_: 0.0, seconds)


def loggp_machine(model: LogGP) -> Machine:
    """The receiver is busy while the bytes come in."""

    def transmission(size: float) -> float:
        return (size - 1) * float(model.gap_seconds_per_byte)

    return Machine(
        lambda sender, receiver, size: float(model.predict(size)),
        lambda sender, receiver, size: float(model.gap_seconds) + transmission(size),
        lambda *_: model.overhead_seconds,
        lambda sender, receiver, size: model.overhead_seconds + transmission(size),
    )


def plogp_machine(model: PLogP) -> Machine:
    return Machine(
        lambda sender, receiver, size: float(model.predict(size)),
        lambda sender, receiver, size: float(model.gap(size)),
        lambda sender, receiver, size: float(model.send_overhead(size)),
        lambda sender, receiver, size: float(model.receive_overhead(size)),
    )


def lmo_machine(model: LMO) -> Machine:
    """A processor is busy with one message after another; the network takes any number at a time."""

    def busy(processor: int, size: float) -> float:
        if not model.heterogeneous:
            return float(model.processor_seconds + size * model.processor_seconds_per_byte)
        return float(model.processor_seconds[processor] + size * model.processor_seconds_per_byte[processor])

    return Machine(
        lambda sender, receiver, size: float(model.predict(size, sender, receiver)),
        lambda *_: 0.0,
        lambda sender, receiver, size: busy(sender, size),
        lambda sender, receiver, size: busy(receiver, size),
    )


def down(parents: Sequence[int | None], segments: int, size: float) -> list[Program]:
    """Broadcast: each process passes a segment on to all children, in rank order, before it receives the next one."""
    programs: list[Program] = [[] for _ in parents]
    for _ in range(segments):
        for rank, parent in enumerate(parents):
            if parent is not None:
                programs[rank].append(("receive", parent, size))
            programs[rank] += [("send", child, size) for child, its in enumerate(parents) if its == rank]
    return programs


def up(parents: Sequence[int | None], segments: int, size: float, work: float) -> list[Program]:
    """Reduction: each process receives a segment from all children, in rank order, combines, and passes it on."""
    programs: list[Program] = [[] for _ in parents]
    for _ in range(segments):
        for rank, parent in enumerate(parents):
            for child, its in enumerate(parents):
                if its == rank:
                    programs[rank] += [("receive", child, size), ("work", 0, work)]
            if parent is not None:
                programs[rank].append(("send", parent, size))
    return programs


def flat(procs: int) -> list[int | None]:
    return [None] + [0] * (procs - 1)


def chain(procs: int) -> list[int | None]:
    return [None, *range(procs - 1)]


def binary(procs: int) -> list[int | None]:
    """As in the C code: on a level of w ranks, both halves hang below the w / 2 ranks of the level above."""
    levels = [(1 << (rank + 1).bit_length() - 1) - 1 for rank in range(procs)]
    return [
        None,
        *((first - 1) // 2 + (rank - first) % ((first + 1) // 2) for rank, first in enumerate(levels) if rank),
    ]


def binomial(procs: int) -> list[int | None]:
    """Children 2^i of a rank below 2^i: nearest first, the largest subtree first."""
    return [None, *(rank - (1 << (rank.bit_length() - 1)) for rank in range(1, procs))]


def in_order_binomial(procs: int) -> list[int | None]:
    return [None, *(rank & (rank - 1) for rank in range(1, procs))]


def k_chain(procs: int, chains: int) -> list[int | None]:
    """Chains of equal length: P - 1 is a multiple of their number."""
    length = (procs - 1) // chains
    return [None, *(0 if (rank - 1) % length == 0 else rank - 1 for rank in range(1, procs))]


def scatter_down(procs: int, block: float) -> list[Program]:
    """Binomial scatter as the C code does it: the blocks of the child farthest away first."""
    programs: list[Program] = [[] for _ in range(procs)]
    for rank, parent in enumerate(in_order_binomial(procs)):
        if parent is not None:
            programs[rank].insert(0, ("receive", parent, blocks_of(rank, procs) * block))
        for child in reversed(range(procs)):
            if child and child & (child - 1) == rank:
                programs[rank].append(("send", child, blocks_of(child, procs) * block))
    return programs


def gather_up(procs: int, block: float) -> list[Program]:
    """Binomial gather as the C code does it: the blocks of the nearest child first, then everything to the parent."""
    programs: list[Program] = [[] for _ in range(procs)]
    for rank, parent in enumerate(in_order_binomial(procs)):
        for child in range(1, procs):
            if child & (child - 1) == rank:
                programs[rank].append(("receive", child, blocks_of(child, procs) * block))
        if parent is not None:
            programs[rank].append(("send", parent, blocks_of(rank, procs) * block))
    return programs


def blocks_of(rank: int, procs: int) -> int:
    """The number of ranks in the in-order subtree of a rank: counted, not computed."""
    heads = {rank}
    for other in range(rank + 1, procs):
        if other & (other - 1) in heads:
            heads.add(other)
    return len(heads)


MICROSECONDS = st.floats(1, 100).map(lambda value: value * 1e-6)
SEGMENTS = st.sampled_from([1, 2, 3, 17])
BYTES = st.sampled_from([1, 1000, 8192])
Homogeneous = tuple[Hockney | LogGP | PLogP, Machine]


@st.composite
def homogeneous(draw: st.DrawFn) -> Homogeneous:
    """A model and its machine. Overheads fit into gaps and gaps into messages, as the formulas suppose."""
    family = draw(st.sampled_from(["hockney", "loggp", "plogp"]))
    if family == "hockney":
        hockney = Hockney(draw(MICROSECONDS), draw(MICROSECONDS) * 1e-2)
        return hockney, hockney_machine(hockney)
    gap, latency = draw(MICROSECONDS), draw(MICROSECONDS)
    overhead = gap * draw(st.floats(0.01, 0.33))
    if family == "loggp":
        loggp = LogGP(latency + gap, overhead, overhead, gap, draw(MICROSECONDS) * 1e-2)
        return loggp, loggp_machine(loggp)

    def line(at_none: float, per_byte: float) -> PiecewiseLinear:
        return PiecewiseLinear((0.0, 1.0), (at_none, at_none + per_byte))

    per_byte = draw(MICROSECONDS) * 1e-2
    plogp = PLogP(
        latency, line(overhead, 0.3 * per_byte), line(overhead * draw(st.floats(0, 1)), 0), line(gap, per_byte)
    )
    return plogp, plogp_machine(plogp)


@st.composite
def heterogeneous(draw: st.DrawFn, procs: int) -> tuple[Hockney, LMO]:
    """Every pair and processor its own; LMO's pairs symmetric."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    latency, rate = (np.triu(numbers.uniform(1, 100, (procs, procs)), 1) for _ in range(2))
    return (
        Hockney(numbers.uniform(1, 100, (procs, procs)) * 1e-6, numbers.uniform(1, 100, (procs, procs)) * 1e-9),
        LMO(
            numbers.uniform(1, 100, procs) * 1e-6,
            numbers.uniform(1, 100, procs) * 1e-9,
            (latency + latency.T) * 1e-6,
            (rate + rate.T) * 1e-9,
        ),
    )


@given(homogeneous(), SEGMENTS, BYTES)
def test_broadcasts(given_model: Homogeneous, segments: int, each: int) -> None:
    model, machine = given_model
    for formula, tree, all_procs in (
        (bcast.linear, flat, (2, 3, 8)),
        (bcast.chain, chain, (2, 3, 8)),
        (bcast.binomial, binomial, (2, 4, 8, 16)),
        (bcast.binary, binary, (2, 3, 7, 15)),
    ):
        if isinstance(model, LogGP) and formula is not bcast.linear:
            # Broadcasts under LogGP count no busy receivers.
            machine = replace(machine, receiving=lambda *_: model.overhead_seconds)
        for procs in all_procs:
            seconds = float(formula(Points.of(procs, segments * each, each), steps_of(model)))
            assert seconds == pytest.approx(machine.run(down(tree(procs), segments, each)))


@given(homogeneous(), SEGMENTS, BYTES, st.floats(0, 1e-7))
def test_reductions(given_model: Homogeneous, segments: int, each: int, gamma: float) -> None:
    model, machine = given_model
    for formula, tree, all_procs, chains in (
        (reduce.linear, flat, (2, 3, 8), 0),
        (reduce.pipeline, chain, (2, 3, 8), 0),
        (reduce.chain, lambda procs: k_chain(procs, 3), (4, 7, 13), 3),
        (reduce.binomial, in_order_binomial, (2, 4, 8, 16), 0),
        (reduce.binary, binary, (2, 3, 7, 15), 0),
    ):
        for procs in all_procs:
            points = Points.of(procs, segments * each, each, chains, reduce_seconds_per_byte=gamma)
            seconds = float(formula(points, steps_of(model)))
            assert seconds == pytest.approx(machine.run(up(tree(procs), segments, each, gamma * each)))


@given(homogeneous(), st.integers(2, 12))
def test_barriers_and_alltoall(given_model: Homogeneous, procs: int) -> None:
    model, machine = given_model
    if isinstance(model, LogGP):
        # Rounds count the gap for the receiver's overhead.
        model = replace(model, send_overhead_seconds=model.gap_seconds, receive_overhead_seconds=model.gap_seconds)
        machine = loggp_machine(model)
    m, points, steps, ranks = EMPTY_BYTES, Points.of(procs, 1000), steps_of(model), range(procs)
    release = [("receive", 1, m), *(("send", rank, m) for rank in ranks[1:])]
    flat_barrier = [release, [("send", 0, m), ("receive", 0, m)], *([("receive", 0, m)] for _ in ranks[2:])]
    assert float(barrier.linear(points, steps)) == pytest.approx(machine.run(flat_barrier))
    ring = [[("receive", (rank - 1) % procs, m), ("send", (rank + 1) % procs, m)] * 2 for rank in ranks]
    ring[0] = [("send", 1, m), ("receive", procs - 1, m)] * 2
    assert float(barrier.double_ring(points, steps)) == pytest.approx(machine.run(ring))
    bruck = [_exchanges(procs, [2**k for k in range((procs - 1).bit_length())], rank, m) for rank in ranks]
    assert float(barrier.bruck(points, steps)) == pytest.approx(machine.run(bruck))
    if procs & (procs - 1) == 0:
        assert float(barrier.recursive_doubling(points, steps)) == pytest.approx(machine.run(bruck))
    pairwise = [_exchanges(procs, ranks[1:], rank, 1000.0) for rank in ranks]
    assert float(blocks.pairwise(points, steps)) == pytest.approx(machine.run(pairwise))


def _exchanges(procs: int, distances: Sequence[int], rank: int, size: float) -> Program:
    sides = [(("send", (rank + d) % procs, size), ("receive", (rank - d) % procs, size)) for d in distances]
    return [step for both in sides for step in both]


@given(homogeneous(), st.integers(2, 10))
def test_alltoall_at_once(given_model: Homogeneous, procs: int) -> None:
    model, machine = given_model
    steps, ranks = steps_of(model), range(procs)
    # Receives are under way from the start: a process is a sender and a receiver, side by side.
    senders: list[Program] = [[("send", procs + (rank + d) % procs, 1000.0) for d in ranks[1:]] for rank in ranks]
    receivers: list[Program] = [[("receive", (rank - d) % procs, 1000.0) for d in ranks[1:]] for rank in ranks]
    together = machine.run(senders + receivers)
    assert float(blocks.linear(Points.of(procs, 1000), steps)) == pytest.approx(together)


@given(homogeneous(), st.integers(2, 33), BYTES)
def test_scatter_and_gather_between_equal_processors(given_model: Homogeneous, procs: int, m: int) -> None:
    model, machine = given_model
    points = Points.of(procs, m)
    linear = float(blocks.linear(points, steps_of(model)))
    assert linear == pytest.approx(machine.run(down(flat(procs), 1, m)))
    assert linear == pytest.approx(machine.run(up(flat(procs), 1, m, 0.0)))
    assert float(blocks.scatter_binomial(points, model)) == pytest.approx(machine.run(scatter_down(procs, m)))
    assert float(blocks.gather_binomial(points, model)) == pytest.approx(machine.run(gather_up(procs, m)))


@given(st.data(), st.integers(2, 20), BYTES)
def test_binomial_trees_between_unequal_processors(data: st.DataObject, procs: int, m: int) -> None:
    hockney, lmo = data.draw(heterogeneous(procs))
    for model, machine in ((hockney, hockney_machine(hockney)), (lmo, lmo_machine(lmo)), _equal(lmo)):
        scattering, gathering = machine.run(scatter_down(procs, m)), machine.run(gather_up(procs, m))
        assert float(blocks.scatter_binomial(Points.of(procs, m), model)) == pytest.approx(scattering)
        assert float(blocks.gather_binomial(Points.of(procs, m), model)) == pytest.approx(gathering)


def _equal(lmo: LMO) -> tuple[LMO, Machine]:
    return lmo.homogeneous(), lmo_machine(lmo.homogeneous())


@given(st.data(), st.integers(2, 20), BYTES)
def test_a_mapping_is_a_permutation_of_the_processors(data: st.DataObject, procs: int, m: int) -> None:
    hockney, lmo = data.draw(heterogeneous(procs))
    mapping = data.draw(st.permutations(range(procs)))
    pairs = np.ix_(mapping, mapping)
    assert isinstance(hockney.alpha_seconds, np.ndarray)
    moved = Hockney(hockney.alpha_seconds[pairs], np.asarray(hockney.beta_seconds_per_byte)[pairs])
    order = np.asarray(mapping)
    moved_lmo = LMO(
        np.asarray(lmo.processor_seconds)[order],
        np.asarray(lmo.processor_seconds_per_byte)[order],
        np.asarray(lmo.latency_seconds)[pairs],
        np.asarray(lmo.network_seconds_per_byte)[pairs],
    )
    for model, other in ((hockney, moved), (lmo, moved_lmo)):
        for gathering in (False, True):
            by_mapping = binomial_seconds(model, mapping, float(m), gathering)
            assert by_mapping == pytest.approx(binomial_seconds(other, range(procs), float(m), gathering))


@given(st.data(), st.integers(2, 20), BYTES)
def test_linear_lmo(data: st.DataObject, procs: int, m: int) -> None:
    """(4.1) waits for the slowest receiver as if it came last, which is exact where receivers are equal."""
    _, lmo = data.draw(heterogeneous(procs))
    points, program = Points.of(procs, m), down(flat(procs), 1, m)
    assert float(blocks.scatter_lmo(points, lmo)) >= lmo_machine(lmo).run(program) * (1 - 1e-12)
    same, machine = _equal(lmo)
    assert float(blocks.scatter_lmo(points, same)) == pytest.approx(machine.run(program))
    assert float(blocks.gather_lmo(points, same)) == pytest.approx(machine.run(up(flat(procs), 1, m, 0.0)))
    large = replace(same, thresholds=Thresholds(None, 0, 0))
    one_by_one = float(blocks.gather_lmo(points, large))
    assert one_by_one == pytest.approx((procs - 1) * float(same.predict(m)))
