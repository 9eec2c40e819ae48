"""Decisions, and the rules that libraries read: `select`, `export`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from collwise import arguments
from collwise.arguments import TimesLike
from collwise.common.errors import UsageError, check_name, note, warn
from collwise.common.files import write_text
from collwise.common.units import counted
from collwise.simulator.timing import Timing
from collwise.store_contents import KEY_CHARACTERS
from collwise.validation.libraries.formats import FORMATS, exported
from collwise.validation.libraries.mpich_file import VERSIONS as MPICH_VERSIONS
from collwise.validation.select.consumers import ALL_CONSUMERS, OPENMPI, needs_one_choice
from collwise.validation.select.decisions import (
    DecisionTable,
    all_at_once_text,
    decisions_from,
    decisions_text,
    wide_steps_texts,
)
from collwise.validation.select.select import select as table_of
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import TIE_LIMIT, TOLERANCE_PERCENT
from collwise.validation.times.times import MEASURED_UNDER, State, Times


@dataclass(frozen=True, repr=False)
class Decisions:
    """Decision tables, one per collective: the algorithm to run from a P and message size on; from `select`."""

    tables: tuple[DecisionTable, ...]
    failed: tuple[Timing, ...] = field(default=(), compare=False)
    """Simulated cases that failed and are no choice."""

    @classmethod
    def load(cls, *paths: str | Path) -> Decisions:
        """The tables of files that `save` or `collwise select -o` wrote. Raises UsageError naming the file."""
        return cls(tuple(table for path in paths for table in decisions_from(Path(path))))

    def save(self, path: str | Path) -> None:
        """Writes all tables into one JSON file. Raises UsageError when it cannot be written."""
        write_text(Path(path), decisions_text(self.tables))

    def choose(self, collective: str, procs: int, message_bytes: int | str) -> Choice:
        """The choice for one call. Raises UsageError where nothing is decided."""
        found = {table.collective: table for table in self.tables}
        check_name("collective", collective, found, "those decided")
        return found[collective].choose(procs, arguments.sizes(message_bytes)[0])

    def frame(self) -> pd.DataFrame:
        """A row per rule: `collective`, `from_procs`, `from_bytes`, `algorithm`, `segment_bytes`."""
        rows = [
            (table.collective, procs, start, choice.algorithm, choice.segment_bytes)
            for table in self.tables
            for procs, row in table.rules.items()
            for start, choice in row
        ]
        return pd.DataFrame(rows, columns=["collective", "from_procs", "from_bytes", "algorithm", "segment_bytes"])

    def __repr__(self) -> str:
        what = ", ".join(f"{table.collective} on {table.platform} by {table.made_by}" for table in self.tables[:3])
        more = f" and {len(self.tables) - 3} more" if len(self.tables) > 3 else ""
        return f"<Decisions for {what}{more}: {len(self.frame())} rules>"

    def _repr_html_(self) -> str:
        return self.frame().to_html(index=False, max_rows=30)


def select(
    times: TimesLike,
    /,
    consumer: str | None = None,
    one_choice: bool | None = None,
    tolerance: float = TOLERANCE_PERCENT,
    exact: bool = False,
    tie_limit: float = TIE_LIMIT * 100,
) -> Decisions:
    """Decides which algorithm to run for each process count and from which message size on.

    Parameters: `times`, those of one collective or of several, as `simulate`, `measure`, `predict` and `stored` return
    them, or a file that they were saved in; `consumer`, 'openmpi-4.1', 'mpich' or another one, or 'collwise', to use
    only what its rules can express; `one_choice`, one algorithm per process count, by default where the consumer needs
    that; `tolerance`, by how many percent a choice may be slower than the best one, so that fewer rules suffice, 0 for
    the fastest one everywhere; `exact`, decide by the formulas of a model at every size, to the byte, and not only at
    those of the times, which takes many more rules; `tie_limit`, by how many percent of its time a measured choice may
    be slower than the fastest one whose confidence interval it overlaps.

    Returns Decisions, with the fewest rules that keep to the tolerance at the times' sizes; with `exact` they keep to
    it, to the byte, at every size between the least and the largest of them, but by the model critical_path. Without,
    choices by predicted times change at the byte from which on the later one is faster, and each table by formulas has
    the loss between the sizes (`between`). Measured choices whose confidence interval overlaps that of the fastest one
    are as good as it is. Raises UsageError for wrong arguments, and for times that cannot decide: rounded ones, as a
    decision file has them, and those of which a contest left out what the tolerance, the consumer or one choice needs.

    >>> import collwise
    >>> times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="2:8:+1")
    >>> decisions = collwise.select(times)
    >>> decisions
    <Decisions for bcast on exact by model hockney: ... rules>
    >>> decisions.choose("bcast", 8, "1MiB").algorithm
    '...'
    """
    if consumer is not None:
        check_name("decision consumer", consumer, ALL_CONSUMERS)
    arguments.check_percent("tolerance", tolerance)
    arguments.check_percent("limit of ties", tie_limit)
    found = arguments.times(times)
    tables = tuple(
        table_of(
            one,
            needs_one_choice(name, consumer) if one_choice is None else one_choice,
            tolerance / 100,
            exact,
            tie_limit / 100,
            consumer,
        )
        for name, one in found.items()
    )
    if nothing := next((one for one in tables if not one.rules and one.source == "measured"), None):
        where = f"{nothing.collective} on {nothing.platform}"
        raise UsageError(f"{where}: no time for any of the process counts and sizes asked for")
    told = [f"{name}: {line}" for name, one in found.items() for line in _told(one)]
    simulated = [table for table in tables if table.source == "simulated"]
    for text in filter(None, (*told, *wide_steps_texts(simulated), all_at_once_text(simulated))):
        note(text)
    failed = tuple(timing for one in found.values() for timing in one.failed)
    if failed:
        warn(f"{counted(len(failed), 'case')} failed and are no choice; first: {failed[0].error}")
    return Decisions(tables, failed)


def _told(times: Times) -> Iterator[str]:
    """Sentences on what measured times are, and on the gaps in them."""
    if times.is_exact:
        return
    number, keys, others = (times.facts.get(name) for name in ("measured", "configurations", "others"))
    if keys:
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield f"{number} {MEASURED_UNDER} {times.maker}, configuration {keys[0][:KEY_CHARACTERS]}{more}"
    if others:
        yield f"{others} other measurements there are not used; choose one with its configuration"
    if not times.has_intervals:
        yield "some times have no confidence interval; they count as exact"
    state = times.competing(times.state)
    filled = int((state == State.FILLED).sum())
    gaps = filled + int(((state == State.NOT_ASKED) | (state == State.FAILED)).sum())
    if times.filled_by and gaps:
        source = times.facts.get("filled_from", times.filled_by)
        yield f"{filled} of {gaps} gaps filled by {source} times, the others have no agreement nearby"
    elif gaps:
        yield f"{gaps} points of choices are not measured, where they are not chosen"


def export(
    decisions: Decisions | str | Path | Sequence[str | Path],
    path: str | Path | None = None,
    format_name: str = "openmpi",
    *,
    openmpi_version: str = "4.1",
    mpich_version: str = "4.0",
    procs: int | None = None,
) -> str:
    """Decisions as rules that an MPI library reads; a file of that name is replaced.

    Parameters: `decisions`, what `select` returned, or files that it was saved in; `path`, the file to write, if any;
    `format_name`, 'openmpi' (classic dynamic rules), 'openmpi-json', 'collwise' (of 'program run'), 'mpich'
    (its selection file), 'mpich-variables', 'intel', 'mvapich2', 'ucc', 'smpi' or 'prf' (a profile of
    PGMPITuneLib); `openmpi_version`, whose algorithm ids classic rules have; `mpich_version`, '4.0' or '4.1' for 4.1
    and later; `procs`, for formats that hold for one process count, which one.

    Returns the text of the rules. A choice that the format cannot express is replaced by the best one that it can,
    and a note says what that costs; warnings say what to know before the rules are used. Raises UsageError for what
    cannot be written at all, and for a file that cannot be written.

    >>> import collwise
    >>> times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="2:8:+1")
    >>> rules = collwise.export(collwise.select(times, consumer="openmpi-4.1"), "exact.rules")
    """
    check_name("format", format_name, FORMATS)
    check_name("version of MPICH's selection file", mpich_version, MPICH_VERSIONS)
    if not isinstance(decisions, Decisions):
        decisions = Decisions.load(*([decisions] if isinstance(decisions, (str, Path)) else decisions))
    version = mpich_version if format_name == "mpich" else openmpi_version
    made = exported(decisions.tables, format_name, version=version, procs=procs)
    for line in made.substitutions[:_MOST_SUBSTITUTIONS]:
        note(str(line))
    if len(made.substitutions) > _MOST_SUBSTITUTIONS:
        costs = [one.cost for one in made.substitutions if not math.isnan(one.cost)]
        worst = f", the worst of which is {max(costs) * 100:.1f} % slower" if costs else ""
        note(f"{len(made.substitutions)} choices cannot be said{worst}; {_MOST_SUBSTITUTIONS} are listed")
    consumer = FORMATS[format_name].consumer
    consumer = f"{OPENMPI}-{openmpi_version}" if consumer == OPENMPI else consumer
    if consumer in ALL_CONSUMERS and any(not one.too_few for one in made.substitutions):
        note(
            "replacements are the best of the choices that the table has times of, often few; "
            f"'collwise select ... --for {consumer}' makes a table from all that these rules can express"
        )
    for warning in made.warnings:
        warn(warning)
    if path is not None:
        write_text(Path(path), made.text)
    return made.text


_MOST_SUBSTITUTIONS = 20
