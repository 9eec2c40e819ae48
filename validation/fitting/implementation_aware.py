"""Fits implementation-aware models by the experiments of Nuriyev & Lastovetsky 2021, section IV.

They are simulated on a platform, or measured at a target.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import ROUNDTRIP, Experiment, Laboratory
from collwise.models.implementation_aware.fitting import fit_algorithm, fit_gamma, fit_hockney
from collwise.models.parameters import AlgorithmFit, ModelParameters, Observation
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS
from collwise.platforms import HostPlatform
from collwise.simulator.bench import Bench
from collwise.simulator.timing import Case, Timing
from collwise.validation.times.defaults import BCAST_SIZES, GATHER_SIZES, SEGMENT_BYTES, SEGMENTS

# More than 128 processes take time and change nothing: section IV-C of the paper found so, too.
_MOST_FIT_PROCS = 128
# More segments take time and say nothing more.
MOST_SEGMENTS = 512
_BESIDES_BCAST = ("gather", "scatter", "reduce")


@dataclass(frozen=True)
class ExperimentSizes:
    """The message sizes of a fit's experiments in bytes.

    `broadcasts` are the paper's; `short` ones have one segment, where latency dominates; `blocks` are those of gather
    and scatter, the latter with `short_blocks`; `closing` are those of the gathers after broadcasts. `segment_counts`
    of a quarter of the chosen segment distinguish alpha from beta m_s.
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
"""The sizes for measured fits, few since a real network is slow."""


@dataclass(frozen=True)
class FitPlan:
    """The extent of a fit: `procs`, the process counts of the experiments, and `broadcasts`, those that are fitted.

    `more_segments` are segment sizes besides the common one, 0 for whole messages. Broadcast is always fitted.
    """

    procs: tuple[int, ...]
    processes_per_node: int
    segment_bytes: int = SEGMENT_BYTES
    fanout: int = 0
    more_segments: tuple[int, ...] = SEGMENTS[1:]
    broadcasts: tuple[str, ...] = tuple(MODELS[BY_PARTS].formulas["bcast"])
    collectives: tuple[str, ...] = tuple(MODELS[BY_PARTS].formulas)
    sizes: ExperimentSizes = ExperimentSizes()


def default_procs(platform: HostPlatform, processes_per_node: int) -> tuple[int, ...]:
    """About half of what the platform holds, as in the paper, a quarter, and five nodes, where locality weighs most.

    Four would be a power of two of processes on most platforms: there trees have a single deepest process, reached
    through a neighbour on the root's own node, so that filling looks faster than it is for nearly every other P.
    """
    most = min(platform.max_procs(processes_per_node), 2 * _MOST_FIT_PROCS)
    return tuple(sorted({max(2, most // 4), max(2, most // 2), max(2, min(most, 5 * processes_per_node))}))


def measured_procs(most: int) -> tuple[int, ...]:
    """The process counts of a measured fit's experiments: all, and five, or half if that is less."""
    return tuple(sorted({max(2, min(5, most // 2 + 1)), most}))


def measured_plan(bench: Bench, procs: Sequence[int], segment_bytes: int = SEGMENT_BYTES, fanout: int = 0) -> FitPlan:
    """A small plan with one segment size and whole messages. Raises UsageError for more processes than fit."""
    per_node = bench.processes_per_node(max(procs))
    return FitPlan(tuple(procs), per_node, segment_bytes, fanout, more_segments=(0,), sizes=MEASURED_SIZES)


def fit(bench: Bench, plan: FitPlan) -> ModelParameters:
    """Fits gamma, Hockney, and alpha and beta of every algorithm, as printed and by parts.

    Experiments that the paper reads on the root's clock end at the root, by a gather or a reply. Where a bench measures
    no root's time the slowest process's is the root's, too, and free of the closing barrier that a root-based time of a
    collective needs. Raises UsageError when the plan does not fit on the bench and CollwiseError when an experiment
    fails.
    """
    apart, apart_per_node = bench.alike(max(plan.procs))
    if apart < 2 or min(plan.procs) < 2:
        raise UsageError(
            f"{bench.name} with {apart // apart_per_node} nodes, P = {min(plan.procs)}: "
            "a fit needs two nodes and two processes at least"
        )
    if 1 < apart_per_node < apart:
        raise UsageError(
            f"{bench.name} with {apart_per_node} processes per node: gamma(p) needs one process per node; give --ppn 1"
        )
    experiments = _Experiments(plan, apart, bench.eager_limit_bytes, apart_per_node)
    timings = bench.time(experiments.all_cases(), f"{bench.name}: fitting models")
    # Launches of a real MPI keep all processes of the fit, whichever of them an experiment names.
    lab = bench.laboratory(2 if bench.is_exact else apart)
    one_way = one_way_seconds(lab, plan.sizes.broadcasts)
    return experiments.evaluate(timings, one_way, bench.name, bench.made_by)


def one_way_seconds(lab: Laboratory, sizes: Sequence[int]) -> list[float]:
    """Half of the times of roundtrips between the first two processes, with the same size both ways."""
    measured = lab.run([Experiment(ROUNDTRIP, (0, 1), size, size) for size in sizes])
    return [one.seconds / 2 for one in measured]


class _Experiments:
    """The cases of a fit, and the parameters from their times."""

    def __init__(self, plan: FitPlan, apart: int, eager_limit_bytes: int, apart_per_node: int = 1) -> None:
        """`apart` is the number of processes whose pairs are all alike, `apart_per_node` of them per node."""
        self.plan, self.sizes = plan, plan.sizes
        self.eager_limit = eager_limit_bytes
        most_children = max(4, (max(plan.procs) * 4).bit_length())
        gamma_procs = range(2, min(most_children + 1, apart) + 1)
        self.gamma_cases = [
            Case("bcast", "linear_nonblocking", p, size, processes_per_node=apart_per_node)
            for size in sorted({*self.sizes.gamma, plan.segment_bytes})
            for p in gamma_procs
        ]
        broadcasts = Catalogue.load().collective("bcast").selectable
        names: dict[str, tuple[str, ...]] = {"bcast": tuple(name for name in plan.broadcasts if name in broadcasts)}
        names |= {one: tuple(MODELS[BY_PARTS].formulas[one]) for one in _BESIDES_BCAST if one in plan.collectives}
        self.by_algorithm = {
            (collective, name): [
                self._case(collective, name, procs, *point)
                for procs in plan.procs
                for point in self._points(collective, name)
            ]
            for collective, of_collective in names.items()
            for name in of_collective
        }
        closing = plan.sizes.closing
        self.closing_cases = [self._case("gather", "linear", p, size) for p in plan.procs for size in closing]

    def _case(self, collective: str, algorithm: str, procs: int, message_bytes: int, segment_bytes: int = 0,
              experiment: str = "collective", gather_bytes: int = 0) -> Case:  # fmt: skip
        fanout = self.plan.fanout if algorithm == "k_chain" else 0
        return Case(
            collective, algorithm, procs, message_bytes, segment_bytes, fanout, self.plan.processes_per_node,
            experiment=experiment, gather_bytes=gather_bytes,
        )  # fmt: skip

    def _barrier(self, procs: int) -> Case:
        return self._case("-", "-", procs, 0, experiment="barrier")

    def _points(self, collective: str, name: str) -> list[tuple[int, int] | tuple[int, int, str, int]]:
        """Message and segment size of the cases with one P, and the experiment and m_g where it is another one."""
        sizes, plan = self.sizes, self.plan
        pipelined = Catalogue.load().algorithm(collective, name).pipelined
        if collective in ("gather", "scatter"):
            return [(size, 0) for size in (*(sizes.short_blocks if collective == "scatter" else ()), *sizes.blocks)]
        if collective == "reduce":
            segments = (plan.segment_bytes, *plan.more_segments) if pipelined else (0,)
            return [
                (size, segment)
                for segment in dict.fromkeys(segments)
                for size in (*sizes.short, *sizes.broadcasts)
                if segment == 0 or size <= MOST_SEGMENTS * segment
            ]
        segment = plan.segment_bytes if pipelined else 0
        closing = itertools.cycle([size for size in sizes.closing if size != plan.segment_bytes])
        points: list[tuple[int, int] | tuple[int, int, str, int]] = [
            (size, segment, "bcast_gather", next(closing)) for size in sizes.broadcasts
        ]
        points += [(size, segment) for size in sizes.short]
        if segment:
            short = max(1, segment // 4)
            points += [(short * count, short) for count in sizes.segment_counts]
            points += [
                (size, other)
                for other in plan.more_segments
                for size in sizes.broadcasts
                if other != segment and (other == 0 or other < size <= MOST_SEGMENTS * other)
            ]
        if name == "split_binary":
            points += [(size, 0, "exchange", 0) for size in sizes.broadcasts]
        return points

    def all_cases(self) -> list[Case]:
        own = [case for cases in self.by_algorithm.values() for case in cases]
        barriers = [self._barrier(procs) for procs in self.plan.procs]
        return [*self.gamma_cases, *barriers, *self.closing_cases, *own]

    def evaluate(
        self, timings: Mapping[Case, Timing], one_way_seconds: Sequence[float], platform: str, made_by: str
    ) -> ModelParameters:
        """The parameters. Raises CollwiseError when an experiment failed or took no time."""
        for case, timing in timings.items():
            if not timing.ok:
                raise CollwiseError(f"an experiment of the fit failed: {case}: {timing.error}")
        seconds: dict[int, dict[int, float]] = {}
        for case in self.gamma_cases:
            seconds.setdefault(case.message_bytes, {})[case.procs] = timings[case].seconds
        gamma = fit_gamma(seconds)
        hockney = fit_hockney(self.sizes.broadcasts, one_way_seconds)
        closing = [
            Observation("gather", case.procs, 0, 0, _root_seconds(timings[case]), 0, case.message_bytes)
            for case in self.closing_cases
        ]
        fits: dict[str, dict[str, dict[str, AlgorithmFit]]] = {}
        observations: dict[str, dict[str, Sequence[Observation]]] = {}
        for (collective, name), cases in self.by_algorithm.items():
            own = [self._observation(case, timings) for case in cases]
            observations.setdefault(collective, {})[name] = own
            for model in (BY_PARTS, AS_PRINTED):
                if name not in MODELS[model].formulas.get(collective, {}):
                    continue
                used = _as_paper(collective, own) if model == AS_PRINTED else own
                if model == BY_PARTS and collective == "bcast":
                    used = [*own, *closing]
                fitted = fit_algorithm(model, collective, name, used, gamma, self.eager_limit)
                fits.setdefault(model, {}).setdefault(collective, {})[name] = fitted
        return ModelParameters(
            platform=platform,
            made_by=made_by,
            processes_per_node=self.plan.processes_per_node,
            eager_limit_bytes=self.eager_limit,
            segment_bytes=self.plan.segment_bytes,
            gamma=gamma,
            hockney=hockney,
            fits=fits,
            observations=observations,
        )

    def _observation(self, case: Case, timings: Mapping[Case, Timing]) -> Observation:
        timing = timings[case]
        seconds = timing.seconds
        if case.experiment == "bcast_gather":
            seconds = _root_seconds(timing) - timings[self._barrier(case.procs)].seconds
        if not 0 < seconds < math.inf:
            raise CollwiseError(f"an experiment of the fit took {seconds:g} s, too little to tell from noise: {case}")
        return observed(case, seconds)


def observed(case: Case, seconds: float) -> Observation:
    """The time of an experiment as parameter files have it."""
    sizes = (case.message_bytes, case.segment_bytes)
    return Observation(case.experiment, case.procs, *sizes, seconds, case.fanout, case.gather_bytes)


def _root_seconds(timing: Timing) -> float:
    return timing.seconds if math.isnan(timing.root_seconds) else timing.root_seconds


def _as_paper(collective: str, observations: Sequence[Observation]) -> list[Observation]:
    """The experiments that the paper makes: formula (16) for broadcast, the collective itself for gather."""
    wanted = "collective" if collective == "gather" else "bcast_gather"
    return [one for one in observations if one.experiment == wanted]
