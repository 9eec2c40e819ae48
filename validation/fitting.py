"""Fits the models of a platform by simulating the experiments of Nuriyev & Lastovetsky 2021, section IV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.models.implementation_aware.estimation import (
    AS_PRINTED,
    BY_PARTS,
    FORMULAS,
    AlgorithmFit,
    Observation,
    estimate_gamma,
    estimate_hockney,
    fit_algorithm,
)
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.platforms import HostPlatform
from collwise.simulator.store import Case, Store
from collwise.simulator.sweep import Progress, SweepResult, simulate
from collwise.validation.grid import BCAST_SIZES, GATHER_SIZES, MORE_SEGMENTS, SEGMENT_BYTES

# Sizes beside the paper's: one short segment, where latency dominates; eager gathers; sizes of the closing gather.
_SHORT_SIZES = (64, 1024, 4096)
_SHORT_BLOCKS = (16, 256)
_EAGER_GATHER_SIZES = (1024, 4096, 16384, 32768)
_CLOSING_SIZES = (512, 1024, 2048, 4096, 12288, 16384)
_GAMMA_SIZES = (64, 1024, 4096, 8192, 16384, 32768, 65535, 65536, 131072, 1048576)
_ROUNDTRIP_SIZES = BCAST_SIZES
_MOST_FIT_PROCS = 128
# More segments take time and say nothing more.
_MOST_SEGMENTS = 512
# A quarter of the chosen segment, in these numbers: it tells alpha from beta m_s.
_SHORT_SEGMENT_COUNTS = (2, 8, 32)


@dataclass(frozen=True)
class Plan:
    """What to simulate for a fit. `procs`: the process counts of the experiments; `broadcasts`: which are fitted.

    `more_segments` are segment sizes besides the common one, 0 for whole messages. Broadcast is always fitted.
    """

    procs: tuple[int, ...]
    processes_per_node: int
    segment_bytes: int = SEGMENT_BYTES
    fanout: int = 0
    more_segments: tuple[int, ...] = MORE_SEGMENTS
    broadcasts: tuple[str, ...] = tuple(FORMULAS[BY_PARTS]["bcast"])
    collectives: tuple[str, ...] = tuple(FORMULAS[BY_PARTS])


def default_procs(platform: HostPlatform, processes_per_node: int) -> tuple[int, ...]:
    """About half of what the platform holds, as in the paper, a quarter, and five nodes, where locality weighs most.

    Four would be a power of two of processes on most platforms: there trees have a single deepest process, reached
    through a neighbour on the root's own node, so that filling looks faster than it is for nearly every other P.
    More than 128 processes take time and change nothing: section IV-C of the paper found so, too.
    """
    most = min(platform.max_procs(processes_per_node), 2 * _MOST_FIT_PROCS)
    return tuple(sorted({max(2, most // 4), max(2, most // 2), max(2, min(most, 5 * processes_per_node))}))


def fit(
    platform: HostPlatform,
    plan: Plan,
    store: Store,
    *,
    engine_version: str | None = None,
    jobs: int | None = None,
    on_progress: Progress | None = None,
) -> ModelParameters:
    """gamma, Hockney, and alpha and beta of every algorithm, as printed and by parts.

    Raises UsageError when the plan does not fit on the platform and CollwiseError when an experiment fails.
    """
    if len(platform.hosts) < 2 or min(plan.procs) < 2:
        raise UsageError(
            f"platform '{platform.name}' with {len(platform.hosts)} nodes, P = {min(plan.procs)}: "
            "a fit needs two nodes and two processes at least"
        )
    experiments = _Experiments(platform, plan)
    sweep = simulate(
        platform, experiments.all_cases(), store, engine_version=engine_version, jobs=jobs, on_progress=on_progress
    )
    if sweep.failed:
        failed = sweep.failed[0]
        raise CollwiseError(f"an experiment of the fit failed: {failed.case}: {failed.error}")
    return experiments.evaluate(sweep)


class _Experiments:
    """The cases of a fit, and what their times say."""

    def __init__(self, platform: HostPlatform, plan: Plan) -> None:
        self.platform_name, self.plan = platform.name, plan
        self.eager_limit = platform.eager_limit_bytes
        most_children = max(4, (max(plan.procs) * 4).bit_length())
        gamma_procs = range(2, min(most_children + 1, len(platform.hosts)) + 1)
        self.gamma_cases = [
            Case("bcast", "linear_nonblocking", p, size)
            for size in sorted({*_GAMMA_SIZES, plan.segment_bytes})
            for p in gamma_procs
        ]
        self.roundtrip_cases = [Case("-", "-", 2, size, experiment="roundtrip") for size in _ROUNDTRIP_SIZES]
        self.by_algorithm: dict[tuple[str, str], list[Case]] = {}
        catalogue = Catalogue.load()
        for name in plan.broadcasts:
            if catalogue.algorithm("bcast", name).selectable:
                self.by_algorithm["bcast", name] = self._bcast_cases(name)
        for collective in ("gather", "scatter", "reduce"):
            for name in FORMULAS[BY_PARTS][collective] if collective in plan.collectives else ():
                make = self._reduce_cases if collective == "reduce" else self._block_cases
                self.by_algorithm[collective, name] = make(collective, name)
        self.closing_cases = [self._case("gather", "linear", p, size) for p in plan.procs for size in _CLOSING_SIZES]

    def _case(self, collective: str, algorithm: str, procs: int, message_bytes: int, segment_bytes: int = 0,
              experiment: str = "collective", gather_bytes: int = 0) -> Case:  # fmt: skip
        fanout = self.plan.fanout if algorithm == "k_chain" else 0
        return Case(
            collective, algorithm, procs, message_bytes, segment_bytes, fanout, self.plan.processes_per_node,
            experiment=experiment, gather_bytes=gather_bytes,
        )  # fmt: skip

    def _barrier(self, procs: int) -> Case:
        return self._case("-", "-", procs, 0, experiment="barrier")

    def _bcast_cases(self, name: str) -> list[Case]:
        segment = self.plan.segment_bytes if Catalogue.load().algorithm("bcast", name).pipelined else 0
        closing = [size for size in _CLOSING_SIZES if size != self.plan.segment_bytes]
        cases = []
        for procs in self.plan.procs:
            for number, size in enumerate(BCAST_SIZES):
                closing_bytes = closing[number % len(closing)]
                cases.append(self._case("bcast", name, procs, size, segment, "bcast_gather", closing_bytes))
            cases += [self._case("bcast", name, procs, size, segment) for size in _SHORT_SIZES]
            if segment:
                cases += self._other_segments(name, procs)
            if name == "split_binary":
                cases += [self._case("bcast", "split_binary", procs, size, 0, "exchange") for size in BCAST_SIZES]
        return cases

    def _other_segments(self, name: str, procs: int) -> list[Case]:
        short = max(1, self.plan.segment_bytes // 4)
        cases = [self._case("bcast", name, procs, short * count, short) for count in _SHORT_SEGMENT_COUNTS]
        others = [segment for segment in self.plan.more_segments if segment != self.plan.segment_bytes]
        return cases + [
            self._case("bcast", name, procs, size, segment)
            for segment in others
            for size in BCAST_SIZES
            if segment == 0 or segment < size <= _MOST_SEGMENTS * segment
        ]

    def _block_cases(self, collective: str, name: str) -> list[Case]:
        sizes = (*_EAGER_GATHER_SIZES, *GATHER_SIZES)
        if collective == "scatter":
            sizes = (*_SHORT_BLOCKS, *sizes)
        return [self._case(collective, name, procs, size) for procs in self.plan.procs for size in sizes]

    def _reduce_cases(self, collective: str, name: str) -> list[Case]:
        entry = Catalogue.load().algorithm(collective, name)
        segments = (self.plan.segment_bytes, *self.plan.more_segments) if entry.pipelined else (0,)
        sizes = (*_SHORT_SIZES, *BCAST_SIZES)
        return [
            self._case(collective, name, procs, size, segment)
            for procs in self.plan.procs
            for segment in dict.fromkeys(segments)
            for size in sizes
            if segment == 0 or size <= _MOST_SEGMENTS * segment
        ]

    def all_cases(self) -> list[Case]:
        own = [case for cases in self.by_algorithm.values() for case in cases]
        barriers = [self._barrier(procs) for procs in self.plan.procs]
        return [*self.gamma_cases, *self.roundtrip_cases, *barriers, *self.closing_cases, *own]

    def evaluate(self, sweep: SweepResult) -> ModelParameters:
        seconds: dict[int, dict[int, float]] = {}
        for case in self.gamma_cases:
            seconds.setdefault(case.message_bytes, {})[case.procs] = sweep.timings[case].seconds
        gamma = estimate_gamma(seconds)
        one_way = [sweep.timings[case].root_seconds / 2 for case in self.roundtrip_cases]
        hockney = estimate_hockney([case.message_bytes for case in self.roundtrip_cases], one_way)
        closing = [
            Observation("gather", case.procs, 0, 0, sweep.timings[case].root_seconds, 0, case.message_bytes)
            for case in self.closing_cases
        ]
        fits: dict[str, dict[str, dict[str, AlgorithmFit]]] = {}
        observations: dict[str, dict[str, Sequence[Observation]]] = {}
        for (collective, name), cases in self.by_algorithm.items():
            own = [self._observation(case, sweep) for case in cases]
            observations.setdefault(collective, {})[name] = own
            for model in (BY_PARTS, AS_PRINTED):
                if name not in FORMULAS[model].get(collective, {}):
                    continue
                used = _as_paper(collective, own) if model == AS_PRINTED else own
                if model == BY_PARTS and collective == "bcast":
                    used = [*own, *closing]
                fitted = fit_algorithm(model, collective, name, used, gamma, self.eager_limit)
                fits.setdefault(model, {}).setdefault(collective, {})[name] = fitted
        return ModelParameters(
            platform=self.platform_name,
            made_by=sweep.configuration.maker,
            processes_per_node=self.plan.processes_per_node,
            eager_limit_bytes=self.eager_limit,
            segment_bytes=self.plan.segment_bytes,
            gamma=gamma,
            hockney=hockney,
            fits=fits,
            observations=observations,
        )

    def _observation(self, case: Case, sweep: SweepResult) -> Observation:
        timing = sweep.timings[case]
        seconds = timing.seconds
        if case.experiment == "bcast_gather":
            seconds = timing.root_seconds - sweep.timings[self._barrier(case.procs)].seconds
        return Observation(
            case.experiment, case.procs, case.message_bytes, case.segment_bytes, seconds, case.fanout, case.gather_bytes
        )


def _as_paper(collective: str, observations: Sequence[Observation]) -> list[Observation]:
    """Only the experiments that the paper makes: formula (16) for broadcast, the collective itself for gather."""
    wanted = "collective" if collective == "gather" else "bcast_gather"
    return [one for one in observations if one.experiment == wanted]
