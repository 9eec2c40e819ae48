"""Fits implementation-aware models by the experiments of Nuriyev & Lastovetsky 2021, section IV.

The experiments are simulated on a platform, or measured on a target.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import ROUNDTRIP, Experiment
from collwise.models.implementation_aware.fitting import fit_algorithm, fit_gamma, fit_hockney
from collwise.models.parameters import AlgorithmFit, ModelParameters, Observation
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS
from collwise.platforms import HostPlatform
from collwise.simulator.bench import Bench
from collwise.simulator.timing import Case, Timing
from collwise.validation.times.defaults import BCAST_SIZES, GATHER_SIZES, SEGMENT_BYTES, SEGMENTS

# Experiments with more than 128 processes take time and change nothing, as section IV-C of the paper found, too.
_MAX_FIT_PROCS = 128
# More segments take time and say nothing more.
MAX_SEGMENTS = 512
_BESIDES_BCAST = ("gather", "scatter", "reduce")


@dataclass(frozen=True)
class ExperimentSizes:
    """The message sizes of a fit's experiments in bytes.

    `broadcasts` are the sizes of the paper's broadcasts; `short` messages have one segment, so that latency dominates.
    `blocks` are the sizes for gather and scatter; scatter also has `short_blocks`. `closing` are the sizes of the
    gathers after broadcasts. Messages of `segment_counts` segments, each a quarter of the chosen segment size,
    distinguish alpha from beta m_s.
    """

    broadcasts: tuple[int, ...] = BCAST_SIZES
    short: tuple[int, ...] = (64, 1024, 4096)
    blocks: tuple[int, ...] = (1024, 4096, 16384, 32768, *GATHER_SIZES)
    short_blocks: tuple[int, ...] = (16, 256)
    closing: tuple[int, ...] = (512, 1024, 2048, 4096, 12288, 16384)
    gamma: tuple[int, ...] = (64, 1024, 4096, 8192, 16384, 32768, 65535, 65536, 131072, 1048576)
    segment_counts: tuple[int, ...] = (2, 8, 32)


MEASURED_SIZES = ExperimentSizes(
    broadcasts=(8192, 32768, 131072, 262144),
    short=(64, 4096),
    blocks=(1024, 16384, 65536, 131072),
    short_blocks=(64,),
    closing=(1024, 4096, 16384),
    gamma=(64, 8192, 65536, 262144),
    segment_counts=(2, 8),
)
"""The sizes for measured fits. They are few, since a real network is slow."""


@dataclass(frozen=True)
class FitPlan:
    """The extent of a fit: the process counts and sizes of the experiments, and what is fitted.

    `broadcasts` are the broadcast algorithms that are fitted, whatever the `collectives`. `more_segments` are segment
    sizes in addition to the common one; 0 stands for whole messages.
    """

    procs: tuple[int, ...]
    processes_per_node: int
    segment_bytes: int = SEGMENT_BYTES
    chains: int = 0
    more_segments: tuple[int, ...] = SEGMENTS[1:]
    broadcasts: tuple[str, ...] = tuple(MODELS[BY_PARTS].formulas["bcast"])
    collectives: tuple[str, ...] = tuple(MODELS[BY_PARTS].formulas)
    sizes: ExperimentSizes = ExperimentSizes()


def default_procs(platform: HostPlatform, processes_per_node: int) -> tuple[int, ...]:
    """Three process counts for a fit: five full nodes, a quarter of the platform and, as in the paper, about half.

    Locality matters most on five nodes. Four nodes would hold a power of two of processes on most platforms. Trees then
    have a single deepest process, which is reached through a neighbour on the root's own node, so filling a pipeline
    looks faster than it is for nearly every other P.
    """
    most = min(platform.max_procs(processes_per_node), 2 * _MAX_FIT_PROCS)
    return tuple(sorted({max(2, most // 4), max(2, most // 2), max(2, min(most, 5 * processes_per_node))}))


def measured_procs(most: int) -> tuple[int, ...]:
    """The process counts of a measured fit's experiments: all, and five or about half, whichever is less."""
    return tuple(sorted({max(2, min(5, most // 2 + 1)), most}))


def measured_plan(bench: Bench, procs: Sequence[int]) -> FitPlan:
    """A small plan with one segment size and whole messages. Raises UsageError for more processes than fit."""
    return FitPlan(tuple(procs), bench.processes_per_node(max(procs)), more_segments=(0,), sizes=MEASURED_SIZES)


def fit(bench: Bench, plan: FitPlan) -> ModelParameters:
    """Fits gamma, Hockney, and alpha and beta of every algorithm, as printed and by parts.

    Experiments that the paper times by the root's clock end at the root, with a gather or a reply. If a bench does not
    measure the root's time, the time of the slowest process is used instead. For a collective, that time does not
    contain the closing barrier that a time by the root's clock needs. Raises UsageError when the plan does not fit on
    the bench and CollwiseError when an experiment fails.
    """
    apart, apart_per_node = bench.alike(max(plan.procs))
    if apart < 2 or min(plan.procs) < 2:
        raise UsageError(
            f"{bench.name} with {apart // apart_per_node} nodes, P = {min(plan.procs)}: "
            "a fit needs at least two nodes and two processes"
        )
    if 1 < apart_per_node < apart:
        raise UsageError(
            f"{bench.name} with {apart_per_node} processes per node: gamma(p) needs one process per node; give --ppn 1"
        )
    gamma = _gamma_cases(plan, apart, apart_per_node)
    usual = partial(Case, processes_per_node=plan.processes_per_node)
    barriers = [usual("-", "-", procs, 0, experiment="barrier") for procs in plan.procs]
    closing = [usual("gather", "linear", procs, size) for procs in plan.procs for size in plan.sizes.closing]
    own = {algorithm: list(_cases(plan, *algorithm)) for algorithm in _algorithms(plan)}
    asked = [*gamma, *barriers, *closing, *itertools.chain.from_iterable(own.values())]
    timings = bench.time(asked, f"{bench.name}: fitting models")
    for case, timing in timings.items():
        if not timing.ok:
            raise CollwiseError(f"an experiment of the fit failed: {case}: {timing.error}")
    # A launch of a real MPI has all processes of the fit, even if an experiment uses only two of them.
    lab = bench.laboratory(2 if bench.is_exact else apart)
    sizes = plan.sizes.broadcasts
    roundtrips = lab.run([Experiment(ROUNDTRIP, (0, 1), size, size) for size in sizes])
    seconds: dict[int, dict[int, float]] = {}
    for case in gamma:
        seconds.setdefault(case.message_bytes, {})[case.procs] = timings[case].seconds
    known = ModelParameters(
        platform=bench.name,
        made_by=bench.made_by,
        processes_per_node=plan.processes_per_node,
        eager_limit_bytes=bench.eager_limit_bytes,
        segment_bytes=plan.segment_bytes,
        gamma=fit_gamma(seconds),
        hockney=fit_hockney(sizes, [roundtrip.seconds / 2 for roundtrip in roundtrips]),
        fits={},
    )
    gathers = [
        Observation("gather", case.procs, 0, 0, _root_seconds(timings[case]), 0, case.message_bytes) for case in closing
    ]
    barrier_seconds = {case.procs: timings[case].seconds for case in barriers}
    observations: dict[str, dict[str, list[Observation]]] = {}
    for (collective, name), cases in own.items():
        found = [_observation(timings[case], barrier_seconds) for case in cases]
        observations.setdefault(collective, {})[name] = found
    return replace(known, fits=_fits(known, observations, gathers), observations=observations)


def _fits(
    known: ModelParameters, observations: Mapping[str, Mapping[str, list[Observation]]], gathers: list[Observation]
) -> dict[str, dict[str, dict[str, AlgorithmFit]]]:
    """The fits by model, collective and algorithm; `gathers` are the observed gathers that close broadcasts."""
    fits: dict[str, dict[str, dict[str, AlgorithmFit]]] = {}
    for collective, by_algorithm in observations.items():
        for name, own in by_algorithm.items():
            for model in (BY_PARTS, AS_PRINTED):
                if name in MODELS[model].formulas.get(collective, {}):
                    used = [*own, *gathers] if collective == "bcast" else own
                    used = as_paper(collective, own) if model == AS_PRINTED else used
                    fitted = fit_algorithm(model, collective, name, used, known.gamma, known.eager_limit_bytes)
                    fits.setdefault(model, {}).setdefault(collective, {})[name] = fitted
    return fits


def _gamma_cases(plan: FitPlan, apart: int, per_node: int) -> list[Case]:
    """The cases for gamma, among `apart` processes whose pairs are all equivalent."""
    max_children = max(4, (max(plan.procs) * 4).bit_length())
    return [
        Case("bcast", "linear_nonblocking", p, size, processes_per_node=per_node)
        for size in sorted({*plan.sizes.gamma, plan.segment_bytes})
        for p in range(2, min(max_children + 1, apart) + 1)
    ]


def _algorithms(plan: FitPlan) -> Iterator[tuple[str, str]]:
    broadcasts = Catalogue.load().collective("bcast").selectable
    yield from (("bcast", name) for name in plan.broadcasts if name in broadcasts)
    for collective in (name for name in _BESIDES_BCAST if name in plan.collectives):
        yield from ((collective, name) for name in MODELS[BY_PARTS].formulas[collective])


def _cases(plan: FitPlan, collective: str, name: str) -> Iterator[Case]:
    sizes, chains = plan.sizes, plan.chains if name == "k_chain" else 0
    segment = plan.segment_bytes if Catalogue.load().algorithm(collective, name).pipelined else 0
    for procs in plan.procs:
        case = partial(Case, collective, name, procs, parameter=chains, processes_per_node=plan.processes_per_node)
        if collective in ("gather", "scatter"):
            short_blocks = sizes.short_blocks if collective == "scatter" else ()
            yield from (case(size) for size in (*short_blocks, *sizes.blocks))
        elif collective == "reduce":
            for cut in dict.fromkeys((segment, *plan.more_segments) if segment else (0,)):
                fitting = (size for size in (*sizes.short, *sizes.broadcasts) if cut == 0 or size <= MAX_SEGMENTS * cut)
                yield from (case(size, cut) for size in fitting)
        else:
            closing = itertools.cycle([size for size in sizes.closing if size != plan.segment_bytes])
            for size in sizes.broadcasts:
                yield case(size, segment, experiment="bcast_gather", gather_bytes=next(closing))
            yield from (case(size, segment) for size in sizes.short)
            if segment:
                short = max(1, segment // 4)
                yield from (case(short * count, short) for count in sizes.segment_counts)
                for other in (item for item in plan.more_segments if item != segment):
                    fitting = (m for m in sizes.broadcasts if other == 0 or other < m <= MAX_SEGMENTS * other)
                    yield from (case(size, other) for size in fitting)
            if name == "split_binary":
                yield from (case(size, experiment="exchange") for size in sizes.broadcasts)


def _observation(timing: Timing, barrier_seconds: Mapping[int, float]) -> Observation:
    case, seconds = timing.case, timing.seconds
    if case.experiment == "bcast_gather":
        seconds = _root_seconds(timing) - barrier_seconds[case.procs]
    if not 0 < seconds < math.inf:
        raise CollwiseError(f"an experiment of the fit took {seconds:g} s, too little to tell from noise: {case}")
    return observed(case, seconds)


def observed(case: Case, seconds: float) -> Observation:
    """The time of an experiment as an observation for parameter files."""
    sizes = (case.message_bytes, case.segment_bytes)
    return Observation(case.experiment, case.procs, *sizes, seconds, case.parameter, case.gather_bytes)


def _root_seconds(timing: Timing) -> float:
    return timing.seconds if math.isnan(timing.root_seconds) else timing.root_seconds


def as_paper(collective: str, observations: Sequence[Observation]) -> list[Observation]:
    """The experiments that the paper makes: formula (16) for broadcast, the collective itself for gather."""
    wanted = "collective" if collective == "gather" else "bcast_gather"
    return [observation for observation in observations if observation.experiment == wanted]
