"""collwise whatif: which choices and times change if a platform does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import collwise
from collwise.common.errors import note
from collwise.common.files import write_text
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HeterogeneousPlatform, HostPlatform, PlacedPlatform, Platform, write_description
from collwise.platforms.changes import CHANGES, Change, changed, parse_change
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, flag, option, refuse_options, refuse_others
from collwise.studies.cli.output import check_failed, print_json, print_table, write_figure
from collwise.studies.cli.types import COLLECTIVES, COUNTS, FOLDER, NEW_FILE, PATH, SIZES, Parsed
from collwise.studies.reports.markdown import percent
from collwise.validation.times.defaults import SEGMENTS_TEXT, TOLERANCE_PERCENT

if TYPE_CHECKING:
    import pandas as pd

    from collwise.questions import Application, Sweep, WhatIf
    from collwise.validation.whatif.sweep import Factors

_MOST_ROWS = 120
_CHANGES = "\n".join(f"  {name}={kind.example}: {kind.meaning}" for name, kind in CHANGES.items())
_HELP = f"""Shows which choices and times change if a platform does, and why.

Times both platforms: which choices change, by how much times change, what kept rules would now cost, and what
limits each choice: latency, overhead, gap (waiting for what other messages use: node ports, memory, the path between
sockets, or uplinks of switches), bandwidth or reduction, from its critical path in the schedule engine. With --sweep,
finds the factors from which on another choice is the best. docs/whatif.md says how each change is expressed.

\b
Changes, made in the order given:
{_CHANGES}
"""


def _factors(text: str) -> Factors:
    from collwise.validation.whatif.sweep import parse_factors

    return parse_factors(text)


@command(
    "whatif --platform gros --collective allreduce --procs 16,62 --sizes 1KiB,1MiB --change bandwidth=x0.25", help=_HELP
)
def whatif(
    platform: HostPlatform = options.placed_platform(),
    changes: Sequence[Change] = option(Parsed("change", parse_change), multiple=True),
    sweep: Factors | None = option(Parsed("sweep", _factors)),
    tolerance: float = option(float, TOLERANCE_PERCENT),
    collectives: tuple[str, ...] | None = option(COLLECTIVES),
    application: Path | None = option(PATH),
    baseline: str | None = options.DEFAULT_LIBRARY,
    procs: tuple[int, ...] | None = option(COUNTS),
    sizes: tuple[int, ...] | None = options.SIZES,
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    segments: tuple[int, ...] = option(SIZES, SEGMENTS_TEXT),
    rules: Path | None = option(PATH),
    no_limits: bool = flag(),
    figures: Path | None = option(FOLDER),
    save: Path | None = option(NEW_FILE),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.simulation(SCHEDULE.name),
    as_json: bool = options.JSON,
) -> None:
    """Shows which choices and times change if a platform does, and why."""
    if not changes and sweep is None:
        raise click.UsageError("name a change, for example --change bandwidth=x2, or --sweep bandwidth=x0.25:x8")
    if collectives and application is not None:
        raise click.UsageError("give either --collective NAME or --application REPORT")
    compares = collectives is not None or application is not None
    if save is None and not compares:
        raise click.UsageError("give --collective NAME, --application REPORT or --save FILE")
    if not compares:
        refuse_others(("platform", "placement", "changes", "save", "store"), "--collective or --application")
    if save is not None:
        _save(platform, changes, save)
    if not compares:
        return
    if application is not None:
        refuse_options(
            ("sweep", "tolerance", "procs", "sizes", "algorithms", "rules", "no_limits", "figures"),
            "--collective, not --application",
        )
    elif baseline is not None:
        refuse_options(("baseline",), "--application")
    elif sweep is not None:
        refuse_options(("rules", "no_limits"), "a change without --sweep")
    else:
        refuse_options(("tolerance",), "--sweep")
    with simulation.context() as context:
        how: dict[str, Any] = {"segments": segments, "ppn": ppn, "context": context}
        points: dict[str, Any] = {"procs": procs, "sizes": sizes, "algorithms": algorithms}
        names = collectives or ()
        if application is not None:
            found = collwise.whatif_application(platform, changes, application, baseline=baseline, **how)
            _show_application(found, platform, changes, as_json)
            failed = list(found.failed)
        elif sweep is not None:
            how |= {"changes": changes, "tolerance": tolerance}
            swept = [collwise.sweep(platform, sweep, name, **points, **how) for name in names]
            _show_sweeps(swept, figures, as_json)
            failed = [one for each in swept for one in each.times.failed]
        else:
            answers = [collwise.whatif(platform, changes, name, rules=rules, **points, **how) for name in names]
            _show_answers(answers, figures, as_json, not no_limits, rules is not None)
            failed = [one for each in answers for one in each.times.failed]
    warn_of_free_messages(platform)
    check_failed(failed)


def _save(platform: HostPlatform, changes: Sequence[Change], file: Path) -> None:

    found = changed(platform, changes).platform
    if isinstance(found, PlacedPlatform):
        note("a description has no placement; give --placement to the commands that read it")
        found = found.base
    assert isinstance(found, Platform | HeterogeneousPlatform)
    write_text(file, write_description(found))
    click.echo(f"written: {file}")


def _show_answers(
    answers: Sequence[WhatIf], figures: Path | None, as_json: bool, limits: bool, has_rules: bool
) -> None:
    """Prints the answers for several collectives, with what limits the choices if asked; figures are written first."""
    if figures is not None:
        for answer in answers:
            stem = f"{answer.after.platform.name}-{answer.times.collective}"
            note(f"written: {write_figure(answer.figure(), figures / f'{stem}.png')}")
    if not as_json:
        for answer in answers:
            _show(answer, limits, has_rules)
        return
    first = answers[0]
    facts = {
        "collective": ",".join(answer.times.collective for answer in answers),
        "platform": first.before.name,
        "changes": [vars(change) for change in first.changes],
        "made_by": first.times.maker,
        "kept_rules": "; ".join(dict.fromkeys(answer.kept_rules for answer in answers)),
        "summary": [
            f"{answer.times.collective}: {line}" if len(answers) > 1 else line
            for answer in answers
            for line in answer.summary()
        ],
    }
    print_json(_records(answers, lambda answer: answer.frame(limits)), facts)


_Found = TypeVar("_Found", "WhatIf", "Sweep")


def _records(found: Sequence[_Found], frame: Callable[[_Found], pd.DataFrame]) -> list[dict[str, Any]]:
    """The rows of the frames of several answers, with their collective first."""
    return [{"collective": one.times.collective, **row} for one in found for row in frame(one).to_dict("records")]


def _show(answer: WhatIf, limits: bool, has_rules: bool) -> None:
    frame = answer.frame(limits)
    rows = [
        (
            row.procs, format_size(row.message_bytes), row.before, row.after if row.changes else "the same",
            format_seconds(row.before_seconds), format_seconds(row.after_seconds), f"x{row.ratio:.2f}",
            *((percent(row.kept_slowdown_before, sign=True),) if has_rules else ()),
            percent(row.kept_slowdown, sign=True),
            *((_limited(row.limited_before, row.share_before), _limited(row.limited_after, row.share_after))
              if limits else ()),
        )
        for row in frame.itertuples()
    ]  # fmt: skip
    what = ", ".join(change.label for change in answer.changes)
    title = f"{answer.times.collective} on {answer.before.title}, {what}, {answer.times.maker}"
    heads = [
        "P", "m", "best before", "best after", "time before", "time after", "ratio",
        *(("rules before", "rules after") if has_rules else ("rules kept",)),
        *(("limited before", "limited after") if limits else ()),
    ]  # fmt: skip
    print_table(title, heads, rows[:_MOST_ROWS], left=0, keys=2)
    if len(rows) > _MOST_ROWS:
        click.echo(f"The table has the first {_MOST_ROWS} of {len(rows)} points; --json prints all.")
    for line in answer.summary():
        click.echo(line)


def _show_sweeps(sweeps: Sequence[Sweep], figures: Path | None, as_json: bool) -> None:
    """Prints the sweeps of several collectives, whose figures are written first."""
    if figures is not None:
        for swept in sweeps:
            stem = f"{swept.platform.name}-{swept.times.collective}-{swept.factors.name}"
            files = [write_figure(swept.map(m), figures / f"{stem}-{m}.png") for m in swept.times.message_bytes]
            files.append(write_figure(swept.figure(), figures / f"{stem}.png"))
            note(f"written: {', '.join(map(str, files))}")
    if not as_json:
        for swept in sweeps:
            _show_sweep(swept)
        return
    first = sweeps[0]
    facts = {
        "collective": ",".join(swept.times.collective for swept in sweeps),
        "platform": first.platform.name,
        "changes": [vars(change) for change in first.factors.others],
        "sweep": first.factors.name,
        "unit": first.unit(),
        "made_by": first.times.maker,
        "crossovers": _records(sweeps, lambda swept: swept.crossovers()),
    }
    print_json(_records(sweeps, lambda swept: swept.frame()), facts)


def _show_sweep(swept: Sweep) -> None:
    rows = [
        (row.procs, format_size(row.message_bytes), f"x{row.factor:.3g}", row.below, row.above)
        for row in swept.crossovers().itertuples()
    ]
    factors, times = swept.factors, swept.times
    others = "".join(f", {change.label}" for change in factors.others)
    name = factors.name.replace("_", " ")
    span = f"x{factors.values[0]:g} to x{factors.values[-1]:g} of {swept.unit()}"
    title = f"{times.collective} on {swept.platform.title}{others}, {name} {span}, {times.maker}"
    if rows:
        print_table(title, ("P", "m", "from", "best below", "best from there on"), rows, left=0, keys=2)
    else:
        click.echo(f"{title}: no choice changes")
    for line in swept.summary():
        click.echo(line)


def _show_application(found: Application, platform: HostPlatform, changes: Sequence[Change], as_json: bool) -> None:
    from collwise.validation.whatif.workload import Calls

    totals = ("default_before", "tuned_before", "default_after", "tuned_after")
    if as_json:
        print_json(
            [
                {
                    **vars(Calls.of(before.row)),
                    "default": vars(before.default),
                    "default_is": before.default_is,
                    "tuned": vars(after.tuned),
                    **found.seconds((before, after)),
                }
                for before, after in found.rows
            ],
            {
                "platform": platform.name,
                "changes": [vars(change) for change in changes],
                "made_by": found.made_by,
                "totals": {name: found.total(name) for name in totals},
                "left_out": list(found.left_out),
            },
        )
        return
    rows = [
        (
            before.row.collective, before.row.processes, format_size(Calls.of(before.row).message_bytes or 0),
            before.row.calls, f"{before.default.label} ({before.default_is})", after.tuned.label,
            *(format_seconds(found.seconds((before, after))[name]) for name in totals),
        )
        for before, after in found.rows
    ]  # fmt: skip
    what = ", ".join(change.label for change in changes)
    names = ("default choice", "tuned choice", "default before", "tuned before", "default after", "tuned after")
    heads = ("collective", "P", "m", "calls", *names)
    print_table(f"The run's collectives on {platform.title}, {what}, {found.made_by}", heads, rows)
    for line in found.left_out:
        click.echo(f"left out: {line}")
    before, tuned, after, both = (found.total(name) for name in totals)
    click.echo(
        f"All calls: {format_seconds(before)} by default and {format_seconds(tuned)} tuned before the change, "
        f"{format_seconds(after)} by default (x{after / before:.2f}) and {format_seconds(both)} tuned "
        f"(x{both / before:.2f}) after it."
    )


def _limited(name: str, share: float) -> str:
    return name if share != share else f"{name} {share * 100:.0f} %"
