"""Decisions (`select`), rules that libraries read (`export`), and decisions of untuned libraries (`defaults`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.arguments import Names, Numbers, TimesLike
from collwise.common.errors import UsageError, check_name, note, warn
from collwise.common.files import read_text, write_text
from collwise.common.units import counted
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.timing import Timing
from collwise.validation.libraries import installed
from collwise.validation.libraries.baselines import Baseline, baseline as find_baseline
from collwise.validation.libraries.formats import FORMATS, HAN, Exported, exported
from collwise.validation.libraries.installed import CheckedDecision, Point
from collwise.validation.libraries.mpich_file import VERSIONS as MPICH_VERSIONS, check_selection, telling_calls
from collwise.validation.libraries.openmpi_check import check_all
from collwise.validation.libraries.pgmpi import parse_profile
from collwise.validation.libraries.sayable import told
from collwise.validation.select.consumers import ALL_CONSUMERS, COLLWISE, OPENMPI, needs_one_choice, openmpi_version
from collwise.validation.select.decisions import (
    DecisionTable,
    all_at_once_text,
    decisions_from,
    decisions_text,
    left_out_text,
    wide_steps_texts,
)
from collwise.validation.times.choice import Choice, Decision
from collwise.validation.times.defaults import AGREEMENT, TIE_LIMIT, TOLERANCE_PERCENT, sizes_of

if TYPE_CHECKING:
    import pandas as pd

    from collwise.validation.times.times import Times


@dataclass(frozen=True, repr=False)
class Decisions:
    """Decision tables, one per collective: the algorithm to run from each P and message size on."""

    tables: tuple[DecisionTable, ...]
    failed: tuple[Timing, ...] = field(default=(), compare=False)
    """Simulated cases that failed, and so cannot be chosen."""
    consumer: str | None = field(default=None, compare=False)
    """The consumer for which `select` decided, or None if the decisions are for any consumer."""
    tolerance: float = field(default=TOLERANCE_PERCENT, compare=False)
    robust: bool = field(default=False, compare=False)
    """True if the choices minimise the 95th percentile of the loss, not the times."""

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
        name = Catalogue.load().our_name(collective)
        check_name("collective", name, found, "those decided")
        return found[name].choose(procs, arguments.sizes(message_bytes)[0])

    def frame(self) -> pd.DataFrame:
        """A row per rule: `collective`, `from_procs`, `from_bytes`, `algorithm`, `segment_bytes`."""
        import pandas as pd

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
    *times: TimesLike,
    consumer: str | None = None,
    one_choice: bool | None = None,
    tolerance: float = TOLERANCE_PERCENT,
    exact: bool = False,
    tie_limit: float = TIE_LIMIT * 100,
    filled_by: TimesLike | None = None,
    agreement: float = AGREEMENT * 100,
    algorithms: Names | None = None,
    exclude: Names = (),
    doubtful: bool = False,
    robust: bool = False,
) -> Decisions:
    """Decides which algorithm to run for each P, and the message size from which to run it.

    Tables are as short as the tolerance allows: at each timed size, a choice is slower than the best one by at most the
    tolerance. With predicted times, each choice starts at the exact size from which it is faster than the choice before
    it. For models with formulas, the output also shows the loss at sizes between the timed ones; `exact` keeps this
    loss within the tolerance. Measured choices count as equally good if their confidence intervals overlap. An
    algorithm that needs a power of two or an even number of processes is used only at the P for which it was chosen;
    from P + 1 on, the best algorithm without such a restriction is used. With `robust`, choices based on simulated
    times are those that lose least in bad cases: at the 95th percentile of the loss, given the errors of predictions on
    measured machines.

    Returns Decisions. Raises UsageError for wrong arguments, and for times that cannot decide: rounded times of a
    decision file, and times simulated with a margin that lack cases which the tolerance, `consumer` or `one_choice`
    needs.

    >>> import collwise
    >>> times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="2:8:+1")
    >>> decisions = collwise.select(times)
    >>> decisions
    <Decisions for bcast on exact by model hockney: ... rules>
    >>> decisions.choose("bcast", 8, "1MiB").algorithm
    '...'
    """
    from collwise.studies.present.progress import sweep_progress
    from collwise.studies.reports import sureness
    from collwise.validation.measurement.confidence import robust_times
    from collwise.validation.select.select import select as table_of
    from collwise.validation.times.allocations import ALLOCATION, over_allocations, said_of_losses

    if consumer is not None:
        check_name("library", consumer, ALL_CONSUMERS)
    arguments.check_percent("tolerance", tolerance)
    arguments.check_percent("limit of ties", tie_limit)
    if not 0 <= agreement < 100:
        raise UsageError(f"agreement within {agreement:g} percent; valid: at least 0, below 100")
    found = _trusted(arguments.times(*times))
    if filled_by is not None:
        others = arguments.times(filled_by)
        found |= {name: item.filled(others[name], agreement / 100) for name, item in found.items() if name in others}
    found = _of_algorithms(found, None if algorithms is None else arguments.names(algorithms), arguments.names(exclude))
    drawn = {name: item for name, item in found.items() if ALLOCATION in item.seconds.dims}
    found = {name: over_allocations(item) for name, item in found.items()}

    def decided(name: str) -> DecisionTable:
        single = needs_one_choice(name, consumer) if one_choice is None else one_choice
        times = robust_times(found[name], sureness.DISCREPANCY, sweep_progress) if robust else found[name]
        table = table_of(times, single, tolerance / 100, exact, tie_limit / 100, consumer, doubtful)
        if not robust or table.times is None:
            return table
        return replace(table, times=found[name].only(table.times.choices.__contains__))

    tables = tuple(arguments.possible(found, decided).values())
    if nothing := next((item for item in tables if not item.rules and item.source == "measured"), None):
        raise UsageError(f"{nothing.collective} on {nothing.platform}: no time at any of the process counts and sizes")
    told = [line for table in tables for line in found[table.collective].notes]
    told += [f"{table.collective}: {line}" for table in tables for line in _told(found[table.collective])]
    over = {table.collective: table for table in tables if table.collective in drawn}
    told += [said_of_losses(drawn[name], drawn[name].picks_of(table.choice_at)) for name, table in over.items()]
    simulated = [table for table in tables if table.source == "simulated"]
    # Rules for Open MPI repeat these sentences, which `warn` prints only once.
    for text in wide_steps_texts(simulated, are_left=openmpi_version(consumer or "") is not None):
        warn(f"{text}.")
    told += [all_at_once_text(simulated) if doubtful else left_out_text(found.values())]
    for text in filter(None, told):
        note(text)
    failed = tuple(timing for item in found.values() for timing in item.failed)
    if failed:
        warn(f"{counted(len(failed), 'case')} failed and cannot be chosen; first: {failed[0].error}")
    return Decisions(tables, failed, consumer, tolerance, robust)


def _of_algorithms(found: dict[str, Times], kept: Sequence[str] | None, excluded: Sequence[str]) -> dict[str, Times]:
    """The times of `kept` algorithms (None: all) that are not excluded.

    Raises UsageError for an unknown name, and if none is left.
    """
    if kept is None and not excluded:
        return found
    known = dict.fromkeys(name for times in found.values() for name in times.grid.names)
    for name in (*(kept or ()), *excluded):
        check_name("algorithm with times", name, known)
    names = {name for name in (known if kept is None else kept) if name not in excluded}
    left = {name: times.only(lambda choice: choice.algorithm in names) for name, times in found.items()}
    some = {name: times for name, times in left.items() if times.choices}
    if not some:
        raise UsageError(f"--algorithms, --exclude: no algorithm is left of {', '.join(known)}")
    if missing := [name for name in found if name not in some]:
        note(f"{', '.join(missing)} left out: --algorithms, --exclude leave no algorithm")
    return some


def _trusted(found: dict[str, Times]) -> dict[str, Times]:
    """The times of messages that are long enough to be trusted; all times if there are no such messages."""
    kept = {name: times.trusted() for name, times in found.items()}
    nothing = [name for name, times in kept.items() if not times.message_bytes]
    if nothing and len(nothing) < len(kept):
        where = found[nothing[0]].platform
        note(
            f"{', '.join(nothing)} left out: on {where} short messages take no processor time, "
            "so that any number of them looks free"
        )
    return {name: times for name, times in kept.items() if times.message_bytes} or found


def _told(times: Times) -> list[str]:
    """Sentences on how times were measured, and on gaps in them."""
    from collwise.store_contents import KEY_CHARACTERS
    from collwise.studies.present.shown import said
    from collwise.validation.times.times import MEASURED_UNDER, State

    if times.is_exact:
        return []
    state = times.competing(times.state)
    filled = int((state == State.FILLED).sum())
    return said(
        "measured",
        times=times,
        under=MEASURED_UNDER,
        number=times.facts.get("measured"),
        keys=[key[:KEY_CHARACTERS] for key in times.facts.get("configurations", ())],
        others=times.facts.get("others"),
        filled=filled,
        gaps=filled + int(((state == State.NOT_ASKED) | (state == State.FAILED)).sum()),
        source=times.facts.get("filled_from", times.filled_by),
    )


@dataclass(frozen=True, repr=False)
class ExportedRules:
    """Rules that an MPI library reads, made of decisions by `export`.

    `version` is the library's version, if the format depends on the version. Each of `checks` is a line that compares
    the rules with what the installed library ran, and True if both agree; None if nothing was run.
    """

    text: str
    format_name: str
    tables: tuple[DecisionTable, ...]
    version: str = ""
    path: Path | None = None
    checks: tuple[tuple[str, bool | None], ...] = ()

    def __repr__(self) -> str:
        return f"<Rules in the format {self.format_name}: {len(self.text.splitlines())} lines>"


def export(
    *decisions: Decisions | str | Path,
    output: str | Path | None = None,
    format_name: str = OPENMPI,
    version: str | None = None,
    procs: int | None = None,
    check: bool = False,
) -> ExportedRules:
    """Writes decisions as rules that an MPI library reads. Give at most one table per collective.

    If a format cannot express a choice, the best choice that the format can express is written instead, and a note
    says how much slower that choice is. With --format collwise, profiles of PGMPITuneLib (.prf) are converted to a
    libcollwise table. `procs` is for formats that cover one process count: mpich-variables, mvapich2, smpi, prf.
    `check` is for openmpi and mpich.

    Returns ExportedRules, whose `text` are the rules.

    >>> import collwise
    >>> times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="2:8:+1")
    >>> rules = collwise.export(collwise.select(times, consumer="openmpi-4.1"), output="exact.rules")
    """
    check_name("format", format_name, FORMATS)
    if version is not None and format_name not in _VERSIONS:
        raise UsageError(f"--version applies only to the formats {', '.join(_VERSIONS)}, not to {format_name}")
    if version is not None and format_name == "mpich":
        check_name("version of MPICH's selection file", version, MPICH_VERSIONS)
    if check and (format_name not in _CHECKED or output is None):
        raise UsageError(f"--check needs -o FILE and one of the formats {', '.join(_CHECKED)}")
    if procs is not None and not FORMATS[format_name].one_procs:
        known = ", ".join(name for name, item in FORMATS.items() if item.one_procs)
        raise UsageError(f"--procs applies only to the formats {known}, not to {format_name}")
    version = version or _VERSIONS.get(format_name, "")
    path = None if output is None else Path(output)
    files = [Path(decision) for decision in decisions if not isinstance(decision, Decisions)]
    if any(file.suffix == ".prf" for file in files):
        found = ExportedRules(_table_of_profiles(files, format_name), format_name, (), path=path)
    else:
        each = (decision if isinstance(decision, Decisions) else Decisions.load(decision) for decision in decisions)
        tables = tuple(table for item in each for table in item.tables)
        made = exported(tables, format_name, version=version, procs=procs)
        _tell(made, tables, format_name, version)
        found = ExportedRules(made.text, format_name, tables, version, path)
    if path is None:
        return found
    write_text(path, found.text)
    return replace(found, checks=tuple(_checks(found, path))) if check else found


_VERSIONS = {OPENMPI: "4.1", "mpich": MPICH_VERSIONS[0], HAN: "4.1"}
"""The default version of each format that depends on the version."""
_CHECKED = (OPENMPI, "mpich")
"""The formats whose rules an installed library can check."""
_MAX_SUBSTITUTIONS = 20


def _tell(made: Exported, tables: Sequence[DecisionTable], format_name: str, version: str) -> None:
    """Warns of what users of the rules must know, and notes the choices that the format cannot express."""
    for warning in made.warnings:
        warn(warning)
    lines = told(made.substitutions, tables)
    for line in lines[:_MAX_SUBSTITUTIONS]:
        note(line)
    if len(lines) > _MAX_SUBSTITUTIONS:
        costs = [substitution.cost for substitution in made.substitutions if not math.isnan(substitution.cost)]
        worst = f"; the worst replacement is {max(costs) * 100:.1f} % slower" if costs else ""
        note(f"{len(lines)} choices cannot be expressed{worst}; {_MAX_SUBSTITUTIONS} are listed")
    consumer = FORMATS[format_name].consumer
    consumer = f"{OPENMPI}-{version}" if consumer == OPENMPI else consumer
    if consumer in ALL_CONSUMERS and any(not substitution.too_few for substitution in made.substitutions):
        note(
            "replacements are the best among the timed choices, which are often few; "
            f"'collwise simulate ... --for {consumer}' times all that these rules can express"
        )


def _table_of_profiles(files: Sequence[Path], format_name: str) -> str:
    """The table made of profiles of PGMPITuneLib. Raises UsageError for other files, and for another format."""
    from collwise.validation.guidelines.workflow import rules_of

    other = next((file for file in files if file.suffix != ".prf"), None)
    if other is not None:
        raise UsageError(f"{other}: not a profile of PGMPITuneLib (.prf), but the other files are such profiles")
    if format_name != COLLWISE:
        raise UsageError(f"--format {format_name}: profiles of PGMPITuneLib name mock-ups; use --format {COLLWISE}")
    return rules_of({str(file): parse_profile(read_text(file), str(file)) for file in files})


def _checks(found: ExportedRules, path: Path) -> Iterator[tuple[str, bool | None]]:
    """Lines on checked calls, and whether the library ran what the rules say; None if no call was made."""
    library = find_installation(found.format_name)
    if not f"{library.version}.".startswith(f"{found.version}."):
        title = library.label.removesuffix(f" {library.version}")
        yield f"rules for {title} {found.version}, checked by the installed {library.label}", None
    if found.format_name == OPENMPI:
        yield from check_all(path, found.tables)
        return
    calls = telling_calls(found.text, found.tables)
    if not calls:
        yield "no rule applies to 8 processes or fewer: nothing was checked", None
    yield from ((checked.summary, checked.matches) for checked in check_selection(path, calls))


@dataclass(frozen=True)
class UntunedDecisions:
    """Decisions of an untuned library for each collective, P and m, and checks by the installed library."""

    baseline: Baseline
    decisions: Mapping[Point, Decision]
    checks: tuple[CheckedDecision, ...] | None = None


def defaults(
    collective: Names,
    procs: Numbers,
    sizes: Numbers | None = None,
    baseline: Baseline | str | None = None,
    check: bool = False,
) -> UntunedDecisions:
    """Shows the algorithms that an untuned MPI library runs.

    Rows give the P and the message size from which an algorithm runs. The column 'in the catalogue' names our choice
    that sends the same messages; the times of this choice stand for the library's. Decisions are for one process on
    each node, a commutative operation, and blocks of one size. `check` asks Open MPI itself, for any number of
    processes, without running the algorithms. For MPICH, `check` reads the tables from which MPICH selects.

    >>> import collwise
    >>> found = collwise.defaults("bcast", procs=16, sizes="1KiB", baseline="mpich-4")
    >>> [one.algorithm for one in found.decisions.values()]
    ['binomial']
    """
    library = baseline if isinstance(baseline, Baseline) else find_baseline(baseline)
    asked = None if sizes is None else arguments.sizes(sizes)
    points = [
        (name, count, size)
        for name in arguments.collectives(collective)
        for count in arguments.counts(procs)
        for size in sizes_of(name, asked)
        if count > 1
    ]
    decisions = {point: library.decide(*point) for point in points}
    return UntunedDecisions(library, decisions, tuple(installed.check(library, points)) if check else None)
