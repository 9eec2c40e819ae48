"""Fits the model by critical paths: alpha and beta of each algorithm by experiments with that algorithm.

As in Nuriyev & Lastovetsky 2021, section IV, the parameters that all algorithms share are estimated first, by other
experiments. In the paper, gamma(p) is shared. Here the shared parameters are the processor's time for a message, alpha
and beta of single messages (from which the regressions start), and whether an eager message waits for its receive.

The paper's experiment ends with a gather, since the root's clock does not see when the other processes are done. Here
the experiment is the collective alone, since simulated times, and measured times of the slowest process, include all
processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import ISEND, RECEIVE, REDUCE, ROUNDTRIP, SEND, Experiment, Laboratory
from collwise.models.fitting.loggp import DELAY_ROUNDTRIPS
from collwise.models.implementation_aware.fitting import fit_hockney
from collwise.models.parameters import EAGER, LOCAL, RENDEZVOUS, Observation, Overheads, PathFit, PathParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import Hockney
from collwise.simulator.bench import Bench
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.timing import Case, Timing
from collwise.validation.fitting.critical_path import fit_path, path_tables
from collwise.validation.fitting.implementation_aware import MAX_SEGMENTS, observed
from collwise.validation.times.defaults import SIZES

# alpha is at least this share of the shortest time of a message, and beta at least this share of the longest time per
# byte, since a message may take no time but overheads.
_MIN_SHARE = 0.01
_REDUCED_BYTES = 65536
# Times that differ by less than this share tell nothing.
_SAME = 0.02
# An eager message is sent in segments down a chain. If messages wait for their receives, each segment takes a latency.
_CHAIN_PROCS, _CHAIN_BYTES, _CHAIN_SEGMENT = 5, 16384, 512


@dataclass(frozen=True)
class PathPlan:
    """The extent of a fit, with the sizes of a simulated one: process counts and sizes of the experiments.

    Empty `collectives` stand for all. A collective uses the `message_bytes` up to its largest usual size.
    `segment_bytes` may contain 0, for whole messages. `single_bytes` are the sizes of single messages, to which sizes
    around the eager limit are added.
    """

    procs: tuple[int, ...]
    processes_per_node: int
    collectives: tuple[str, ...] = ()
    segment_bytes: tuple[int, ...] = (0, 1024, 8192, 65536)
    message_bytes: tuple[int, ...] = tuple(64 * 4**k for k in range(9))
    single_bytes: tuple[int, ...] = tuple(2**k for k in range(23))


def measured_plan(bench: Bench, procs: Sequence[int]) -> PathPlan:
    """A plan with few sizes, since a real network is slow. Raises UsageError for more processes than fit."""
    return PathPlan(
        tuple(procs),
        bench.processes_per_node(max(procs)),
        segment_bytes=(0, 8192),
        message_bytes=(64, 1024, 8192, 32768, 131072, 262144),
        single_bytes=(64, 512, 4096, 16384, 65536, 262144),
    )


def fit(bench: Bench, plan: PathPlan) -> PathParameters:
    """Fits the model to the times of a bench.

    Raises UsageError when the plan does not fit on the bench and CollwiseError when an experiment fails.
    """
    apart, per_node = bench.alike(max(plan.procs))
    if min(plan.procs) < 2 or (apart // per_node < 2 and plan.processes_per_node < 2):
        raise UsageError(f"{apart // per_node} nodes, P = {min(plan.procs)}: a fit needs at least two processes")
    timings = bench.time([*plan_cases(plan), chain_case(plan)], f"{bench.name}: fitting alpha and beta by algorithm")
    # Single messages need the processes of one node, and one process of another node.
    lab = bench.laboratory(min(plan.processes_per_node + 1, max(plan.procs)), plan.processes_per_node)
    reduction = bench.reduce_seconds_per_byte
    if reduction is None:
        (measured,) = lab.run([Experiment(REDUCE, (0, 1), _REDUCED_BYTES)])
        reduction = measured.seconds / _REDUCED_BYTES
    known = single_messages(lab, plan, reduction)
    return fit_algorithms(replace(known, platform=bench.name, made_by=bench.made_by), plan, timings)


def plan_cases(plan: PathPlan) -> list[Case]:
    """The experiments with the algorithms: each at sizes from short to long, whole and in segments."""
    catalogue = Catalogue.load()
    found = []
    for collective in plan.collectives or tuple(catalogue.collectives):
        usual = SIZES[collective]
        sizes = [size for size in plan.message_bytes if size <= usual[-1]] if usual[-1] else [0]
        # Models choose neither mock-ups nor algorithms by node; the latter are many, and some have no schedule.
        entries = catalogue.algorithms(collective)
        for entry in (item for item in entries if not item.by_node and not item.guideline):
            for procs in dict.fromkeys(_runnable(entry, count) for count in plan.procs):
                found += [
                    Case(collective, entry.name, procs, size, segment, 0, plan.processes_per_node)
                    for segment in (plan.segment_bytes if entry.pipelined else (0,))
                    for size in sizes
                    if segment == 0 or segment < size <= MAX_SEGMENTS * segment
                ]
    return found


def _runnable(entry: Algorithm, procs: int) -> int:
    """The largest number of processes up to P that an algorithm runs on; every algorithm runs on two."""
    return next(count for count in range(procs, 1, -1) if not entry.objection(count))


def chain_case(plan: PathPlan) -> Case:
    """The chain of short segments that tells whether eager messages wait for their receives."""
    procs = min(_CHAIN_PROCS * plan.processes_per_node, max(plan.procs))
    return Case("bcast", "chain", procs, _CHAIN_BYTES, _CHAIN_SEGMENT, 0, plan.processes_per_node)


def single_messages(lab: Laboratory, plan: PathPlan, reduce_seconds_per_byte: float) -> PathParameters:
    """The overheads, alpha and beta of messages from the first process to another node, and within its node.

    alpha and beta are those of half a roundtrip without the overheads, by protocol. If there is no process on another
    node, or no other process on the same node, the messages of the other pair stand for both.
    """
    limit = lab.eager_limit_bytes
    pairs = {
        "far": (0, plan.processes_per_node) if plan.processes_per_node < lab.procs else (0, 1),
        "near": (0, 1),
    }
    least = max(lab.min_bytes, 1)
    largest = max(plan.single_bytes)
    eager = sorted({size for size in (*plan.single_bytes, limit - 1) if least <= size < limit and size <= largest})
    long = sorted({size for size in (*plan.single_bytes, limit, 4 * limit) if limit <= size <= 4 * largest})

    def run(
        kind: str, sizes: Sequence[int], pair: str = "far", reply: bool = False, delays: Iterable[float] = repeat(0.0)
    ) -> list[float]:
        """Seconds of an experiment at each size, with a reply of the same or the smallest size."""
        asked = [
            Experiment(kind, pairs[pair], size, size if reply else least, delay_seconds=delay)
            for size, delay in zip(sizes, delays, strict=False)
        ]
        return [measurement.seconds for measurement in lab.run(asked)]

    roundtrips = {pair: run(ROUNDTRIP, [*eager, *long], pair, reply=True) for pair in pairs}
    # An empty message may have no overheads.
    short, every = [0, *eager], [0, *eager, *long]
    delays = [DELAY_ROUNDTRIPS * seconds for seconds in (roundtrips["far"][0], *roundtrips["far"])]
    takes = np.array(run(RECEIVE, short, delays=delays))
    one_way = {pair: np.array(seconds) / 2 for pair, seconds in roundtrips.items()}
    sends, starts = np.array(run(SEND, short)), np.array(run(ISEND, every))
    # Overheads that are measured alone may be longer than those in a roundtrip, which do not exceed a message's time.
    whole = np.minimum(one_way["far"], one_way["near"])[[0, *range(len(eager))]] if eager else takes[:1]
    share = np.minimum(1.0, (1 - _MIN_SHARE) * whole / np.maximum(sends + takes, 1e-12))
    overheads = Overheads(
        _function(short, (share * sends).tolist()),
        _function(every, [*np.minimum(starts[: len(short)], whole), *starts[len(short) :]]),
        _function(short, (share * takes).tolist()),
    )
    processor = overheads.send(eager) + overheads.receive(eager)
    cut = len(eager)
    for pair in one_way:
        one_way[pair][:cut] = np.maximum(one_way[pair][:cut] - processor, _MIN_SHARE * one_way[pair][:cut])
    both = {EAGER: (eager, one_way["far"][:cut]), RENDEZVOUS: (long, one_way["far"][cut:])}
    lines = {name: _line(sizes, seconds) for name, (sizes, seconds) in both.items() if len(sizes) > 1}
    # If all messages of a plan use one protocol, its line stands for both protocols.
    messages = dict.fromkeys(both, next(iter(lines.values()))) | lines
    messages[LOCAL] = _line([*eager, *long], one_way["near"])
    return PathParameters(
        platform="",
        made_by="",
        processes_per_node=plan.processes_per_node,
        eager_limit_bytes=limit,
        reduce_seconds_per_byte=reduce_seconds_per_byte,
        receives_first=False,
        overheads=overheads,
        messages=messages,
    )


def _function(sizes: Sequence[int], seconds: Sequence[float]) -> PiecewiseLinear:
    return PiecewiseLinear(tuple(map(float, sizes)), tuple(seconds))


def _line(sizes: Sequence[int], seconds: np.ndarray) -> Hockney:
    """alpha and beta of one-way times; neither of them is 0."""
    line = fit_hockney(sizes, seconds.tolist())
    least, slowest = float(np.min(seconds)), float(np.max(seconds)) / max(sizes)
    return Hockney(
        max(float(line.alpha_seconds), _MIN_SHARE * least),
        max(float(line.beta_seconds_per_byte), _MIN_SHARE * slowest),
    )


def fit_algorithms(known: PathParameters, plan: PathPlan, timings: Mapping[Case, Timing]) -> PathParameters:
    """Adds the parameters of every algorithm of the plan. Raises CollwiseError when an experiment failed."""
    chain = chain_case(plan)
    known = replace(known, receives_first=receives_first(known, chain, _seconds(chain, timings)))
    by_algorithm: dict[tuple[str, str], dict[Case, float]] = {}
    for case in plan_cases(plan):
        by_algorithm.setdefault((case.collective, case.algorithm), {})[case] = _seconds(case, timings)
    fits: dict[str, dict[str, PathFit]] = {}
    observations: dict[str, dict[str, list[Observation]]] = {}
    for (collective, name), timed in by_algorithm.items():
        fits.setdefault(collective, {})[name] = fit_path(known, timed)
        observations.setdefault(collective, {})[name] = [observed(*entry) for entry in timed.items()]
    return replace(known, fits=fits, observations=observations)


def receives_first(known: PathParameters, chain: Case, seconds: float) -> bool:
    """True if an eager message waits for its receive, according to the time of segments down a chain.

    If messages wait, each segment takes a latency; otherwise all segments together take the latencies of the chain only
    once. If latencies are too short to tell, messages are assumed to wait.
    """
    schedule = Schedule(chain)

    def away(first: bool) -> float:
        tables = path_tables(replace(known, receives_first=first), known.messages, schedule.procs, schedule.sizes)
        return abs(float(np.log(schedule.play(tables).seconds / seconds)))

    return away(True) <= away(False) + _SAME


def _seconds(case: Case, timings: Mapping[Case, Timing]) -> float:
    timing = timings[case]
    if not timing.ok or not 0 < timing.seconds < np.inf:
        why = timing.error or f"it took {timing.seconds:g} s"
        raise CollwiseError(f"an experiment of the fit failed: {case}: {why}")
    return timing.seconds
