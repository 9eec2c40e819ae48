"""Which source of times to trust: models and simulations against simulated or measured times, `accuracy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from collwise import arguments
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError
from collwise.models.registry import DEFAULT_MODEL, check_formulas
from collwise.models.switch_points import fastest
from collwise.simulator.sweeps.context import SCHEDULE, SMPI
from collwise.validation.compare.maps import slowdown_of_picks
from collwise.validation.fitting.models_by_name import models_on
from collwise.validation.times.defaults import SEGMENTS, sizes_of
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.measured import measured_grid, measured_platform, measured_times, measurement_of
from collwise.validation.times.predictions import predicted_seconds, simulated_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collwise.models.piecewise import Array
    from collwise.platforms import HostPlatform
    from collwise.simulator.store import Store
    from collwise.simulator.sweeps.context import SimulationContext

MODELS = ("hockney", DEFAULT_MODEL)
_COLUMNS = (
    *("collective", "reference", "source", "message_bytes", "cases"),
    *("mean_error", "worst_error", "points", "mean_slowdown", "worst_slowdown"),
)


@dataclass(frozen=True)
class AccuracyResult:
    """Errors of sources, and the slowdowns of their choices, by collective and message size; from `accuracy`.

    `table` has the columns `collective`, `reference` (what is right here: who measured or simulated), `source`,
    `message_bytes`, `cases`, `mean_error` and `worst_error` (relative ones of all algorithms), and, over the `points`
    at which the source chooses, `mean_slowdown` and `worst_slowdown` of its choices, by the reference's times.
    """

    platform: str
    table: pd.DataFrame

    def trusted(self) -> pd.DataFrame:
        """For each collective and size the source whose choices cost least; of equal ones that with least error.

        Columns: those of `table` for this source, and `good_choices`, the sources whose choices cost at most
        1 % on the mean.
        """
        order = ["mean_slowdown", "mean_error"]
        groups = self.table.dropna(subset=order).groupby(["collective", "message_bytes"], sort=False)
        best = groups.apply(lambda rows: rows.sort_values(order, kind="stable").iloc[0], include_groups=False)
        good = groups.apply(
            lambda rows: ", ".join(rows.source[rows.mean_slowdown <= 0.01]) or "none", include_groups=False
        )
        return best.assign(good_choices=good).reset_index()

    def figure(self, what: str = "mean_error") -> Figure:
        """Maps of a column of shares, 'mean_error' or 'mean_slowdown', by collective and size, a panel a source."""
        from collwise.studies.figures.maps import collective_maps

        labels = {
            "mean_error": "mean error (%)", "worst_error": "worst error (%)",
            "mean_slowdown": "slowdown against the best (%)", "worst_slowdown": "worst slowdown (%)",
        }  # fmt: skip
        if what not in labels:
            raise UsageError(f"no figure of '{what}'; valid: {', '.join(labels)}")
        known = self.table.dropna(subset=[what])
        panels = {
            source: dict(zip(zip(rows.collective, rows.message_bytes, strict=True), rows[what], strict=True))
            for source, rows in known.groupby("source", sort=False)
        }
        title = f"{what.replace('_', ' ').capitalize()} on {self.platform}"
        return collective_maps(panels, title, labels[what])


def accuracy(
    platform: PlatformLike,
    collective: Names,
    models: Names = MODELS,
    *,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    segments: Numbers | None = None,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> AccuracyResult:
    """Compares models and simulations with the best times that there are: measured ones, or else those by SMPI.

    Parameters: `platform`, see `platform`; `collective`, one name, several, or 'all'; `models`, names of models, whose
    parameters are estimated by simulation on the platform; `procs`, process counts, needed where nothing is measured;
    `sizes`, message sizes, by default those measured, or 12 by doubling; `segments`, segment sizes, by default those
    measured, or 8 KiB to 128 KiB by doubling; `ppn`, processes per node; `context`, see `session`: measured times are
    looked for in its store.

    Returns an AccuracyResult. For a collective that was measured on the platform, SMPI and the schedule engine are
    among the sources; for others SMPI is the reference. Raises UsageError for wrong arguments.

    >>> import collwise
    >>> found = collwise.accuracy("exact", "bcast", "hockney", procs="4,8", sizes="8KiB,64KiB", segments="8KiB")
    >>> sorted(set(found.table.source))
    ['hockney', 'schedule engine']
    """
    where = arguments.platform(platform)
    names = arguments.collectives(collective)
    asked = arguments.names(models)
    for name in asked:
        check_formulas(name, names)
    per_node = ppn or where.default_processes_per_node
    counts = None if procs is None else arguments.counts(procs)
    cut = None if segments is None else arguments.sizes(segments)
    given = None if sizes is None else arguments.sizes(sizes)
    with arguments.opened(context) as simulations:
        compared: dict[str, tuple[CaseGrid, Array | None, str]] = {}
        for name in names:
            found = _measured(simulations.store, where, name, (counts, given, cut), ppn)
            if found is None and counts is None:
                raise UsageError(f"{name} is not measured on {where.name}, and without measured times procs is needed")
            grid = CaseGrid(name, counts or (), sizes_of(name, given), per_node, cut or SEGMENTS)
            compared[name] = (grid, None, "") if found is None else found
        pieces = cut or SEGMENTS
        fitted = models_on(where, asked, per_node, pieces, simulations.with_experiments(), names)
        rows: list[tuple[object, ...]] = []
        for grid, measured, made_by in compared.values():
            title = f"{where.name}: simulating {grid.collective}"
            smpi = replace(simulations, engine=SMPI).simulate(where, grid.cases(), title)
            played = replace(simulations, engine=SCHEDULE).simulate(where, grid.cases(), title)
            sources = {"schedule engine": simulated_seconds(grid, played)}
            sources |= {model.name: predicted_seconds(model, grid, simulations.progress) for model in fitted}
            by_smpi = simulated_seconds(grid, smpi)
            if measured is None:
                rows += _rows(grid, smpi.configuration.maker, by_smpi, sources)
            else:
                rows += _rows(grid, made_by, measured, {"SMPI": by_smpi, **sources})
    return AccuracyResult(where.title, pd.DataFrame(rows, columns=list(_COLUMNS)))


_Asked = tuple[tuple[int, ...] | None, tuple[int, ...] | None, tuple[int, ...] | None]


def _measured(
    store: Store, platform: HostPlatform, collective: str, asked: _Asked, ppn: int | None
) -> tuple[CaseGrid, Array, str] | None:
    """The grid of what is measured of a collective, its times and who measured; None where nothing is."""
    try:
        found = measurement_of(store, measured_platform(store, platform.name), collective, ppn)
        grid = measured_grid(found, arguments.algorithms(collective, None), *asked)
    except UsageError:
        return None
    return grid, measured_times(grid, found).seconds, found.maker


def _rows(grid: CaseGrid, made_by: str, right: Array, sources: Mapping[str, Array]) -> Iterator[tuple[object, ...]]:
    """A row for each source and size."""
    for name, times in sources.items():
        known = np.isfinite(right) & np.isfinite(times)
        errors = np.abs(np.divide(times, right, where=known & (right > 0), out=np.full(right.shape, np.nan)) - 1)
        slower = slowdown_of_picks(right, fastest(np.where(known, times, np.nan)), fastest(right))
        for j, size in enumerate(grid.message_bytes):
            here, lost = errors[:, :, j], slower[:, j]
            here, lost = here[np.isfinite(here)], lost[np.isfinite(lost)]
            yield (
                *(grid.collective, made_by, name, size, here.size),
                *((here.mean(), here.max()) if here.size else (np.nan, np.nan)),
                *(lost.size, *((lost.mean(), lost.max()) if lost.size else (np.nan, np.nan))),
            )
