"""What a report is about: on one platform, the comparisons of several collectives, and the decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.interface import CollectiveModel
from collwise.models.parameters import ModelParameters, PathParameters
from collwise.models.registry import BY_PARTS, CRITICAL_PATH
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import without_free_barrier
from collwise.simulator.sweeps.context import SCHEDULE, ShowProgress, SimulationContext, without_progress
from collwise.studies.reports.comparison_table import compared_places, library_pick
from collwise.validation.compare.deciders import Rules, timed_besides
from collwise.validation.compare.scores import Picked, Scores, compare
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.fitting.models_by_name import models_on
from collwise.validation.libraries.baselines import DEFAULT, Baseline
from collwise.validation.libraries.sayable import Substitution, for_consumer
from collwise.validation.select.consumers import (
    RULES_VERSIONS,
    algorithms_for,
    consumers_of,
    needs_one_choice,
    openmpi_consumer,
    openmpi_version,
)
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.select.select import select
from collwise.validation.times.defaults import DECISION_SIZES, SEGMENTS, SIZES, TOLERANCE_PERCENT
from collwise.validation.times.grid import Grid
from collwise.validation.times.points import asked_points
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times, timed_at

MODELS = (BY_PARTS, CRITICAL_PATH)
"""The models with parameters of each algorithm."""
RULES = "rules"
"""The title of decisions among scores."""
_TOLERANCE = TOLERANCE_PERCENT / 100


class Gained(NamedTuple):
    """What an untuned library and the rules choose at a place (i, j) of P and m, by the same times."""

    i: int
    j: int
    default: Picked
    rules: Picked

    @property
    def ratio(self) -> float:
        """The library's time divided by that of the decisions; nan where one of the two is not known."""
        return self.default.seconds / self.rules.seconds if self.rules.seconds else np.nan


@dataclass(frozen=True)
class PlatformChoices:
    """Comparisons and decisions of collectives on a platform.

    `compared` are the scores of a model, if there is one, and of the untuned library by simulated times; `by_engine`
    those of SMPI's times by the schedule engine's, for the same collectives and for others, which the engine decides.
    The first of `segments` is common to all algorithms that cut messages; `decided_sizes` are the message sizes that
    the decisions are made for. `rules` are the decisions as rules for Open MPI say them, where it has rules, with what
    is `substituted` in them.
    """

    platform: HostPlatform
    baseline: Baseline
    processes_per_node: int
    segments: tuple[int, ...]
    model: CollectiveModel | None
    compared: Mapping[str, Scores]
    by_engine: Mapping[str, Scores] = field(default_factory=dict)
    decided_by_engine: Mapping[str, DecisionTable] = field(default_factory=dict)
    decisions: Mapping[str, DecisionTable] = field(default_factory=dict)
    decided_sizes: Mapping[str, Sequence[int]] = field(default_factory=lambda: DECISION_SIZES)
    rules: Mapping[str, DecisionTable] = field(default_factory=dict)
    substituted: Sequence[Substitution] = ()

    @property
    def parameters(self) -> ModelParameters | PathParameters | None:
        """The fitted parameters of the model."""
        found: Any = self.model
        parameters: ModelParameters | PathParameters | None = None if found is None else found.parameters
        return parameters

    @property
    def failures(self) -> int:
        """The number of simulated cases that failed."""
        every = [one.right for one in (*self.compared.values(), *self.by_engine.values())]
        every += [times for one in self.by_engine.values() for times in one.times.values()]
        return sum(len(times.failed) for times in every)

    def gains(self, collective: str) -> list[Gained]:
        """What the rules gain over the untuned library at every compared point that they decide.

        Times are those of the comparison, or else the schedule engine's.
        """
        table = self.rules[collective]
        scores = self.compared.get(collective) or self.by_engine[collective]
        if self.baseline.title not in scores.deciders:
            return []
        places = compared_places(scores) if collective in self.compared else scores.places()
        # Where the library decides, that decision runs.
        decided = compare(scores.right, Rules([table], RULES, DEFAULT))
        found = []
        for i, j in places:
            said = table.choice_at(scores.right.procs[i], scores.right.message_bytes[j])
            if said is not None:
                rules = decided.pick(RULES, i, j)._replace(choice=said)
                found.append(Gained(i, j, library_pick(scores, self.baseline, i, j), rules))
        return found

    def decided(self, times: Mapping[str, Times], sizes: Mapping[str, Sequence[int]]) -> PlatformChoices:
        """The same with decisions by times, and with those of the engine; `sizes` are those that were to be decided.

        Decisions have the usual tolerance, as by `select`.
        """
        most = self.platform.max_procs(self.processes_per_node)
        made = {name: select(one, needs_one_choice(name), _TOLERANCE) for name, one in times.items()}
        made = {name: _at_rows(one) if one.source == "predicted" else one for name, one in made.items()}
        tables = {name: replace(one, platform_procs=most) for name, one in {**made, **self.decided_by_engine}.items()}
        with_rules = [table for name, table in tables.items() if any(map(openmpi_version, consumers_of(name)))]
        said, substituted = for_consumer(with_rules, openmpi_consumer(RULES_VERSIONS[0]))
        rules = {**tables, **{table.collective: table for table in said}}
        return replace(self, decisions=tables, decided_sizes=sizes, rules=rules, substituted=substituted)

    def times_to_decide(self, sizes: Mapping[str, Sequence[int]]) -> dict[str, Times]:
        """The compared times, of what every consumer can be asked for, so that all kinds of rules can be written.

        Sizes are those from the least of `sizes` on; shorter messages are not decided, unless nothing else is compared.
        The barrier is not, where messages are free.
        """
        return {name: self._expressible(name, min(sizes[name])) for name in self._names()}

    def predictions_to_decide(
        self, sizes: Mapping[str, Sequence[int]], progress: ShowProgress = without_progress
    ) -> dict[str, Times]:
        """The model's times of what every consumer can be asked for.

        Formulas say those of every P of the platform at all `sizes`; a model that plays says them at the compared
        points only, and leaves out choices beyond the tolerance. Raises UsageError without a model.
        """
        model, found = self.model, {}
        if model is None:
            raise UsageError("predicted times decide nothing without a model")
        for name in self._names():
            compared = self.compared[name].right.grid
            if model.plays:
                grid = replace(self._expressible(name, min(sizes[name])).grid, besides=())
                margin = None if needs_one_choice(name) else _TOLERANCE
                # Between points it would have to be played again: the choices hold from the compared sizes on.
                found[name] = replace(predicted(model, grid, margin, progress), between=None)
            else:
                procs = range(2, self.platform.max_procs(compared.processes_per_node) + 1)
                names = algorithms_for(name, *consumers_of(name))
                asked = Grid.of(name, procs, sizes[name], compared.processes_per_node, self.segments, names)
                asked = replace(asked, memory_bytes_per_node=compared.memory_bytes_per_node)
                found[name] = predicted(model, asked, progress=progress)
        return found

    def _names(self) -> tuple[str, ...]:
        return without_free_barrier(self.compared, self.platform)

    def _expressible(self, name: str, least_bytes: int) -> Times:
        """The compared times of choices that every consumer can be asked for, and of what Open MPI runs untuned."""
        right = self.compared[name].right
        grid = right.grid.of_algorithms(algorithms_for(name, *consumers_of(name)))
        sizes = tuple(size for size in grid.message_bytes if size >= least_bytes)
        grid = replace(grid, message_bytes=sizes or grid.message_bytes, besides=())

        def runs_untuned(procs: int, size: int) -> Any:
            choice = DEFAULT.choice(name, procs, size)
            return None if choice is None or np.isnan(right.seconds_of(choice, procs, size)) else choice

        times = right.of_grid(grid.with_besides(runs_untuned))
        # Of what is timed for another library only what Open MPI runs, too.
        return times.where(timed_at(times.grid))

    def with_engine(
        self, collectives: Sequence[str], checked_procs: int, context: SimulationContext
    ) -> PlatformChoices:
        """The same with what the schedule engine says of the compared collectives, and decides for further ones.

        Of these, SMPI times every algorithm at the common segment size on `checked_procs` processes, at the least, a
        middle and the largest size, as a check. Decisions are for all P of the platform.
        """
        first = next(iter(self.compared.values())).right.grid
        checks = {name: one.right for name, one in self.compared.items()}
        compared = {name: replace(one.grid, besides=()) for name, one in checks.items()}
        for name in collectives:
            grid = Grid.of(name, first.procs, DECISION_SIZES[name], first.processes_per_node, self.segments)
            compared[name] = replace(grid, memory_bytes_per_node=first.memory_bytes_per_node)
        tables = [
            decided_grid(compared[name], self.platform.max_procs(first.processes_per_node)) for name in collectives
        ]
        checked = [
            replace(
                compared[name].only(lambda one: one.segment_bytes in (0, self.segments[0])),
                procs=(checked_procs,),
                message_bytes=tuple(DECISION_SIZES[name][at] for at in (0, len(DECISION_SIZES[name]) // 2, -1)),
            )
            for name in collectives
        ]
        label = f"{self.platform.name}: simulating {', '.join(collectives)}"
        checks |= {one.collective: one for one in simulate(self.platform, checked, context, label=label)}
        library = {name: [self.baseline] for name in collectives if name in self.baseline.collectives}
        wide = [timed_besides(grid, library.get(name, [])) for name, grid in compared.items()]
        label = f"{self.platform.name}: playing {len(compared)} collectives"
        played = simulate(self.platform, [*wide, *tables], replace(context, engine=SCHEDULE), label=label)
        scores, decided = played[: len(wide)], played[len(wide) :]
        return replace(
            self,
            by_engine={
                one.collective: compare(one, checks[one.collective], *library.get(one.collective, [])) for one in scores
            },
            decided_by_engine={
                one.collective: select(one, needs_one_choice(one.collective), _TOLERANCE) for one in decided
            },
        )


def _at_rows(table: DecisionTable) -> DecisionTable:
    """The table with its times at the process counts of rows: a model predicts all others, too."""
    times = table.times
    return table if times is None else replace(table, times=times.only(procs=table.rules.keys() & {*times.procs}))


def compared_on(
    platform: HostPlatform,
    collectives: Sequence[str],
    procs: Sequence[int],
    context: SimulationContext,
    baseline: Baseline,
    *,
    processes_per_node: int | None = None,
    segments: Sequence[int] = SEGMENTS,
    sizes: Mapping[str, tuple[int, ...]] = SIZES,
    model: str | None = BY_PARTS,
) -> PlatformChoices:
    """Fits the model on the platform and compares its picks and the baseline's with the simulated best.

    The model is one of MODELS, or None: nothing is fitted or predicted. A choice is an algorithm and one of the
    `segments` (bytes), the least of which is the common one. Raises UsageError when P does not fit on the platform.
    """
    ppn = processes_per_node or platform.default_processes_per_node
    segments = tuple(sorted(segments))
    for count in procs:
        platform.hosts_for(count, ppn)
    if model is not None and model not in MODELS:
        raise UsageError(f"model {model} has no parameters of each algorithm; valid: {', '.join(MODELS)}")
    names = [] if model is None else [model]
    fitted = models_on(platform, names, ppn, segments, context.with_experiments(), collectives) if names else []
    grids = asked_points(platform, [Grid.of(name, procs, sizes[name], ppn, segments) for name in collectives])
    compared = {}
    for grid in grids:
        predictions = [predicted(one, grid, progress=context.progress) for one in fitted]
        asked = predictions[0].grid if predictions else grid
        compared[grid.collective] = beside_simulation(platform, asked, predictions, context, baseline)
    return PlatformChoices(platform, baseline, ppn, segments, next(iter(fitted), None), compared)


def decided_grid(grid: Grid, largest: int) -> Grid:
    """The grid of a decision table up to the largest P, for the sizes of a compared grid.

    Its process counts are powers of two, where algorithms have one round less than just above, the counts just above
    and midway, and those compared: a row of the table holds up to the next one.
    """
    powers = [2**k for k in range(1, largest.bit_length())]
    counts = {count for power in powers for count in (power, power + 1, power * 3 // 2)} | {*grid.procs, largest}
    procs = tuple(sorted(count for count in counts if count <= largest))
    return replace(grid.of_algorithms(algorithms_for(grid.collective, *consumers_of(grid.collective))), procs=procs)
