"""Answers of `whatif` (choices and times before and after a change) and `sweep` (where the best choice changes)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.studies.present.shown import Shown, Table, cut, problem_of
from collwise.studies.reports.markdown import percent
from collwise.whatif_results import Sweep, Sweeps, WhatIf, WhatIfs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_ROWS = 120


def shown(answers: WhatIfs) -> Shown:
    """A table and sentences for each collective; figures are its maps."""
    frame, first = answers.frame(), next(iter(answers.values()))
    parts = [part for name, answer in answers.items() for part in _parts(answer, frame[frame.collective == name])]
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
            pairs = zip(frame[f"limited_{when}"], frame[f"share_{when}"], strict=True)
            columns[f"limited {when}"] = [
                name if share != share else f"{name} {share * 100:.0f} %" for name, share in pairs
            ]
    title = f"{answer.times.collective} on {answer.before.title}, {answer.what}, {answer.times.maker}"
    yield from cut(Table(title, [*columns], [*zip(*columns.values(), strict=True)], left=0, keys=2), _MAX_ROWS)
    yield from answer.summary()


def sweeps(found: Sweeps) -> Shown:
    """The cross-over points of each collective; figures are a map for each message size, and times at one point."""
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
    parts = [part for sweep in found.values() for part in _crossovers(sweep)]
    return Shown(parts, found.frame().to_dict("records"), facts, figures, problem_of(found.failed))


def _crossovers(swept: Sweep) -> Iterator[Table | str]:
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
