"""Applications under several choices of collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collwise.common.units import format_seconds
from collwise.programs import ApplicationTimes
from collwise.studies.present.shown import Shown, Table
from collwise.validation.measurement.applications import ApplicationRow, application_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADS = ("P", "collectives", "time", "in collectives", "share, mean", "share, most", "speed-up", "algorithms")


def shown(times: ApplicationTimes) -> Shown:
    """A row for each execution; the figure has the times, and the speed-ups if there are several P."""
    name = times.words[0]
    title = f"{name} on {times.platform.title}, simulated"
    failed = [row.error for row in times.rows if row.error]

    def figure() -> Figure:
        from collwise.studies.figures.applications import application_figure

        return application_figure(times.frame(), title)

    return Shown(
        [
            Table(title, _HEADS, [*map(cells, times.rows)], 0, keys=2),
            f"{' '.join(times.words)}; an operation is one of: {application_of(name).operation}",
        ],
        times.frame().to_dict("records"),
        figures={f"{times.platform.name}-{name}": figure},
        problem=f"{len(failed)} of {len(times.rows)} executions failed; first: {failed[0]}" if failed else "",
    )


def cells(one: ApplicationRow) -> tuple[object, ...]:
    """The cells of an execution."""
    if one.error:
        return (one.procs, one.collectives, "failed", *["-"] * 4, one.algorithms or "-")
    return (
        *(one.procs, one.collectives, format_seconds(one.seconds), format_seconds(one.mean_seconds)),
        *(f"{one.mean_share * 100:.2f} %", f"{one.max_share * 100:.2f} %", f"{one.speedup:.2f}"),
        one.algorithms or "-",
    )
