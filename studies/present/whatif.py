"""Answers of `whatif` (choices and times before and after a change) and `sweep` (where the best choice changes)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.studies.present.shown import Shown, Table, problem_of, said
from collwise.studies.reports.markdown import percent
from collwise.validation.times.defaults import TOLERANCE_PERCENT
from collwise.whatif_results import Sweep, Sweeps, WhatIf, WhatIfs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_POINTS = 24
"""The largest number of points for which people see a table with a row for each point."""
_WORST = 7
_NEAREST = 12


def shown(answers: WhatIfs) -> Shown:
    """A table and sentences for each collective, or a summary if there are many points; figures are maps."""
    frame, first = answers.frame(), next(iter(answers.values()))
    parts = [part for name, answer in answers.items() for part in _parts(answer, frame[frame.collective == name])]
    if len(frame) > _MAX_POINTS:
        parts = [*_summary(answers, frame)]
    facts = {
        "collective": ",".join(answers),
        "platform": first.before.name,
        "changes": [vars(change) for change in first.changes],
        "made_by": first.times.maker,
        "kept_rules": "; ".join(dict.fromkeys(answer.kept_rules for answer in answers.values())),
        "summary": answers.summary(),
    }
    figures = {f"{answer.after.platform.name}-{name}": answer.figure for name, answer in answers.items()}
    return Shown(parts, frame.to_dict("records"), facts, figures, problem_of(answers.failed))


def _parts(answer: WhatIf, frame: pd.DataFrame) -> Iterator[Table | str]:
    # Without a table the kept rules are the best choices before the change, so they have no slowdown before it.
    of_table = bool((frame.kept_slowdown_before > 0).any())
    slower = partial(percent, sign=True)
    columns = {
        "P": frame.procs,
        "m": frame.message_bytes.map(format_size),
        "best before": frame.before,
        "best after": frame.after.where(frame.changes, "the same"),
        "time before": frame.before_seconds.map(format_seconds),
        "time after": frame.after_seconds.map(format_seconds),
        "ratio": frame.ratio.map("x{:.2f}".format),
        **({"rules before": frame.kept_slowdown_before.map(slower)} if of_table else {}),
        "rules after" if of_table else "rules kept": frame.kept_slowdown.map(slower),
    }
    if answer.limits:
        for when in ("before", "after"):
            limits = frame[[f"{name}_{when}" for name in ("limited", "share", "relief", "relieved")]]
            columns[f"largest part {when}"] = [*map(_limit, *limits.to_dict("list").values())]
    title = f"{answer.times.collective} on {answer.before.title}, {answer.what}, {answer.times.maker}"
    yield Table(title, [*columns], [*zip(*columns.values(), strict=True)], left=0, keys=2)
    yield from answer.summary()
    if answer.limits:
        yield from said("whatif_limits")


def _limit(name: str, share: float, relief: str, relieved: float) -> str:
    """'latency 66 %; latency x0.5: x0.81': a part's share of the critical path, and the time if the part changes."""
    part = name if math.isnan(share) else f"{name} {share * 100:.0f} %"
    return part if math.isnan(relieved) else f"{part}; {relief}: x{relieved:.2f}"


def _summary(answers: WhatIfs, frame: pd.DataFrame) -> Iterator[Table | str]:
    """A row for each collective, the points where the kept rules lose most, and sentences."""
    first, lost = next(iter(answers.values())), TOLERANCE_PERCENT / 100
    rows: list[tuple[object, ...]] = []
    for name, part in frame.groupby("collective", sort=False):
        least, median, most = part.ratio.quantile((0, 0.5, 1))
        kept = part.kept_slowdown.dropna()
        loss = map(percent, (kept.mean(), kept.max())) if len(kept) else ("-", "-")
        times = f"x{least:.2f} to x{most:.2f}, median x{median:.2f}"
        rows.append((name, len(part), int(part.changes.sum()), times, int((kept > lost).sum()), *loss))
    title = f"{first.what} on {first.before.title}, {first.times.maker}"
    heads = ("collective", "points", "best changes at", "best times", "rules lose at", "on average", "at worst")
    yield Table(title, heads, rows)
    worst = frame[frame.kept_slowdown > lost].sort_values("kept_slowdown", ascending=False, kind="stable")
    if len(worst):
        columns = {
            "collective": worst.collective,
            "P": worst.procs,
            "m": worst.message_bytes.map(format_size),
            "rules": worst.kept,
            "best after": worst.after,
            "rules lose": worst.kept_slowdown.map(percent),
            **({"largest part after": worst.limited_after} if first.limits else {}),
        }
        rows = [*zip(*columns.values(), strict=True)][:_WORST]
        yield Table("Where the choices should change most", [*columns], rows, keys=3)
    before = frame.kept_slowdown_before.dropna()
    yield from said(
        "whatif_many",
        rules=list(dict.fromkeys(answer.kept_rules for answer in answers.values())),
        lost=len(worst),
        decided=int(frame.kept_slowdown.notna().sum()),
        points=len(frame),
        before=before.mean() if len(before) else 0.0,
        tolerance=TOLERANCE_PERCENT,
    )


def sweeps(found: Sweeps) -> Shown:
    """The cross-over points of each collective. Its figures are maps, one a message size, and times at one point."""
    first = next(iter(found.values()))
    facts = {
        "collective": ",".join(found),
        "platform": first.platform.name,
        "changes": [vars(change) for change in first.factors.others],
        "sweep": first.factors.name,
        "unit": first.unit(),
        "made_by": first.times.maker,
        "crossovers": found.crossovers().to_dict("records"),
    }
    figures: dict[str, Callable[[], Figure]] = {}
    for name, sweep in found.items():
        stem = f"{sweep.platform.name}-{name}-{sweep.factors.name}"
        figures |= {f"{stem}-{m}": partial(sweep.map, m) for m in sweep.times.message_bytes} | {stem: sweep.figure}
    points = sum(len(sweep.times.grid.points) for sweep in found.values())
    parts = [part for sweep in found.values() for part in _crossovers(sweep)] if points <= _MAX_POINTS else []
    return Shown(
        parts or [*_nearest(found, points)], found.frame().to_dict("records"), facts, figures, problem_of(found.failed)
    )


def _nearest(found: Sweeps, points: int) -> Iterator[Table | str]:
    """A row for each collective, the cross-over points nearest to the platform as it is, and a sentence."""
    every, first = found.crossovers(), next(iter(found.values()))
    rows = [
        (name, len(sweep.times.grid.points), len({crossing.point for crossing in sweep.found}), len(sweep.found))
        for name, sweep in found.items()
    ]
    yield Table(_title(first, ",".join(found)), ("collective", "points", "choice changes at", "cross-overs"), rows)
    if len(every):
        away = np.abs(np.log(every.factor.astype(float)))
        nearest = every.loc[away.sort_values(kind="stable").index[:_NEAREST]]
        cells = [
            (row.collective, row.procs, format_size(row.message_bytes), f"x{row.factor:.3g}", row.below, row.above)
            for row in nearest.itertuples()
        ]
        heads = ("collective", "P", "m", "from", "best below", "best from there on")
        yield Table(f"The cross-overs nearest to {first.unit()}", heads, cells, keys=3)
    yield from said("sweep_many", points=points, crossings=len(every))


def _crossovers(swept: Sweep) -> Iterator[Table | str]:
    rows = [
        (row.procs, format_size(row.message_bytes), f"x{row.factor:.3g}", row.below, row.above)
        for row in swept.crossovers().itertuples()
    ]
    title, heads = _title(swept, swept.times.collective), ("P", "m", "from", "best below", "best from there on")
    yield Table(title, heads, rows, left=0, keys=2) if rows else f"{title}: no choice changes"
    yield from swept.summary()


def _title(swept: Sweep, collectives: str) -> str:
    factors = swept.factors
    span = f"x{factors.values[0]:g} to x{factors.values[-1]:g} of {swept.unit()}"
    what = "".join(f", {change.label}" for change in factors.others)
    name = factors.name.replace("_", " ")
    return f"{collectives} on {swept.platform.title}{what}, {name} {span}, {swept.times.maker}"
