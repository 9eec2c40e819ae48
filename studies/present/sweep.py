"""The best choices over many factors of a change: cross-over points, and why they are where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from collwise.answers import Sweep, Sweeps
from collwise.common.units import format_size
from collwise.studies.present.shown import Shown, Table, problem_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def shown(sweeps: Sweeps) -> Shown:
    """The cross-over points of each collective; figures are a map for each message size, and times at one point."""
    first = next(iter(sweeps.values()))
    facts = {
        "collective": ",".join(sweeps),
        "platform": first.platform.name,
        "changes": [vars(change) for change in first.factors.others],
        "sweep": first.factors.name,
        "unit": first.unit(),
        "made_by": first.times.maker,
        "crossovers": sweeps.crossovers().to_dict("records"),
    }
    figures: dict[str, Callable[[], Figure]] = {}
    for name, one in sweeps.items():
        stem = f"{one.platform.name}-{name}-{one.factors.name}"
        figures |= {f"{stem}-{m}": partial(one.map, m) for m in one.times.message_bytes} | {stem: one.figure}
    parts = [part for one in sweeps.values() for part in _parts(one)]
    return Shown(parts, sweeps.frame().to_dict("records"), facts, figures, problem_of(sweeps.failed))


def _parts(swept: Sweep) -> Iterator[Table | str]:
    rows = [
        (row.procs, format_size(row.message_bytes), f"x{row.factor:.3g}", row.below, row.above)
        for row in swept.crossovers().itertuples()
    ]
    factors, times = swept.factors, swept.times
    name = factors.name.replace("_", " ")
    span = f"x{factors.values[0]:g} to x{factors.values[-1]:g} of {swept.unit()}"
    title = f"{swept.what}, {name} {span}, {times.maker}"
    heads = ("P", "m", "from", "best below", "best from there on")
    yield Table(title, heads, rows, left=0, keys=2) if rows else f"{title}: no choice changes"
    yield from swept.summary()
