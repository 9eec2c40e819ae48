"""Contents of the store of times: `stored`, `results`, `configurations`, `prune`, and imports from elsewhere."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collwise import arguments
from collwise.arguments import Names, Numbers
from collwise.common.errors import UsageError, check_name, note, unknown_name
from collwise.common.folders import SOURCES
from collwise.common.units import counted
from collwise.simulator.store import Store, StoredConfiguration
from collwise.simulator.timing import Case, Timing

if TYPE_CHECKING:
    import pandas as pd

    from collwise.validation.measurement.runs import MeasuredRun
    from collwise.validation.times.files import AllTimes

KEY_CHARACTERS = 12
"""The number of characters of a configuration's key that are shown."""

_CONFIGURATION = ("configuration", "source", "platform", "maker")
_CASE = tuple(field.name for field in fields(Case))
_VALUES = tuple(field.name for field in fields(Timing) if field.name not in ("case", "samples"))
COLUMNS = (*_CONFIGURATION, *_CASE, "nodes", *_VALUES, "made_at", "details")
"""The columns of stored times."""
_SHOWN = (
    *("configuration", "platform", "collective", "experiment", "algorithm", "procs", "message_bytes", "segment_bytes"),
    *("seconds", "half_width_seconds", "repetitions"),
)


def results(
    store: str | Path | None = None,
    *,
    configuration: Names | None = None,
    source: Names | None = None,
    platform: Names | None = None,
    collective: Names | None = None,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    **equal: Any,
) -> pd.DataFrame:
    """Shows the times of cases with their provenance.

    It shows all times, or those of one configuration, collective and so on.

    Returns a DataFrame with one row per time, oldest first: `configuration` (the beginning of the configuration's key),
    `source` (simulated, measured), `platform`, `maker`, the case's columns, `seconds`, further columns as in `measure`,
    `error`, `made_at` (UTC) and `details`, which are the other facts that the times depend on.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.results(collective="gather", algorithm="linear").seconds.equals(times.frame().seconds)
    True
    """
    import pandas as pd

    for name in equal:
        if name not in COLUMNS or name == "details":
            raise UsageError(f"results: no column '{name}'; valid: {', '.join(COLUMNS[:-1])}")
    wanted = {name: _one_or_several(value) for name, value in equal.items() if value is not None}
    if collective is not None:
        wanted["collective"] = arguments.collectives(collective)
    if procs is not None:
        wanted["procs"] = arguments.counts(procs)
    if sizes is not None:
        wanted["message_bytes"] = arguments.sizes(sizes)
    with _opened(store) as opened:
        chosen = chosen_configurations(opened, configuration, source, platform)
        if configuration is not None or source is not None or platform is not None:
            wanted["configuration"] = tuple(item.key for item in chosen)
        frame = pd.DataFrame(opened.rows(**wanted), columns=list(COLUMNS))
    frame["configuration"] = frame["configuration"].str[:KEY_CHARACTERS]
    frame["error"] = frame["error"].fillna("")
    frame["details"] = frame["details"].map(json.loads)
    columns = [*_SHOWN, "error"] if any(frame["error"]) else [*_SHOWN]
    frame.attrs |= {"title": str(opened.path.absolute()), "columns": columns, "lines": [f"{len(frame)} times"]}
    return frame


def _opened(store: str | Path | None) -> Store:
    """The store that exists. Raises UsageError, instead of making a store, if there is none."""
    path = arguments.store_path(store)
    if not path.exists():
        raise UsageError(f"there is no store {path}; first make times with collwise simulate, measure or times import")
    return Store(path)


def stored(query: str, store: str | Path | None = None) -> AllTimes:
    """Times from the store; nothing is simulated or measured.

    Parameters: `query`, words such as 'platform=gros,source=measured': `source` (measured or simulated); `platform`;
    `collective`, by default each one that has such times in the store; `ppn`, processes per node; `procs` and
    `sizes`, to get only these; `configuration`, prefixes of keys that `configurations` lists, to choose among several
    measurements. Several values of a word are joined by '+'. `store`, or the word `file`, is the SQLite file of
    timings, by default the file that `simulate` uses.

    Returns Times by collective. Of several measurements, the one with the most times is used; if several have equally
    many, the newest of these. `facts` contain the keys of the configurations of the measurement that is used, and the
    number of other measurements. The query may leave out `source` or `platform` if the store has only one.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.stored("platform=gros,source=simulated,collective=gather")["gather"].procs
    (4,)
    """
    from collwise.validation.times.files import AllTimes
    from collwise.validation.times.measured import stored_times

    asked = _words(query)
    procs = arguments.counts(asked["procs"]) if "procs" in asked else None
    sizes = arguments.sizes(asked["sizes"]) if "sizes" in asked else None
    with _opened(asked.get("file", store)) as opened:
        keys = asked.get("configuration")
        there = chosen_configurations(opened, keys, asked.get("source"), asked.get("platform"))
        source, platform = (
            _only(kind, dict.fromkeys(getattr(item.configuration, kind) for item in there), opened.path)
            for kind in ("source", "platform")
        )
        has = dict.fromkeys(name for configuration in there for name in configuration.collectives if name != "-")
        names = arguments.collectives(asked["collective"]) if "collective" in asked else tuple(has)
        ppn = int(asked["ppn"]) if "ppn" in asked else None
        wanted = [configuration.key for configuration in there] if keys is not None else []
        found = arguments.possible(names, lambda name: stored_times(opened, source, platform, name, ppn, wanted))
        return AllTimes.of(times.only(procs=procs, message_bytes=sizes) for times in found.values())


def measured_runs(paths: Sequence[Path], values: bool = True, **options: Any) -> list[MeasuredRun]:
    """The runs in files and folders, as `runs_in` finds them, and those that words store:QUERY name."""
    from collwise.validation.measurement.imports.reading import NOT_READ
    from collwise.validation.measurement.runs import run_of, runs_in

    found: list[MeasuredRun] = []
    for path in paths:
        if not str(path).startswith(arguments.STORED):
            found += runs_in([path], values, **options)
            continue
        asked = _words(str(path).removeprefix(arguments.STORED))
        if other := next((name for name in asked if name not in ("configuration", "file", "platform")), ""):
            raise UsageError(f"{path}: '{other}' is not for runs; valid: configuration, file, platform")
        with _opened(asked.get("file")) as opened:
            for item in chosen_configurations(opened, asked.get("configuration"), "measured", asked.get("platform")):
                timings = [*opened.timings(item.configuration).values()]
                if not values:
                    timings = [replace(timing, seconds=math.nan, error=NOT_READ) for timing in timings]
                around = (Path.cwd(), *options.get("maps", ()))
                found.append(run_of(item.configuration, timings, item.key[:KEY_CHARACTERS], around))
    return found


_WORDS = ("source", "platform", "collective", "procs", "sizes", "ppn", "configuration", "file")


def _words(query: str) -> dict[str, str]:
    """The words of a query by name. Raises UsageError for a malformed query."""
    found: dict[str, str] = {}
    for word in filter(None, (part.strip() for part in query.split(","))):
        name, equals, value = (part.strip() for part in word.partition("="))
        check_name("word of a query", name, _WORDS)
        if not equals or not value or (name == "ppn" and not (value.isdecimal() and int(value))):
            raise UsageError(f"malformed word '{word}' of a query; write for example platform=gros,source=measured")
        found[name] = value if name == "file" else value.replace("+", ",")
    return found


def _only(what: str, found: Collection[str], store: Path) -> str:
    if len(found) != 1:
        has = (
            f"times of several {what}s: {', '.join(found)}; say which: {what}={next(iter(found))}"
            if found
            else "no such times"
        )
        raise UsageError(f"store {store} has {has}")
    return next(iter(found))


def configurations(store: str | Path | None = None) -> pd.DataFrame:
    """Lists the configurations of the times in the store.

    A configuration is all that a time depends on besides the case. Times of different configurations never mix.

    Returns a DataFrame: `configuration`, the beginning of the key, which `results` and `prune` take; `source`,
    `platform`, `maker` and `collectives`; `rows` and `failed`, the numbers of all rows and of failed ones; `first_made`
    and `last_made`, when the first and the last row were made (UTC); and `details`. The DataFrame is empty if the store
    does not exist.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.configurations().platform.tolist()
    ['gros'...]
    """
    import pandas as pd

    path = arguments.store_path(store)
    found = []
    if path.exists():
        with Store(path) as opened:
            found = [_record(configuration) for configuration in opened.configurations()]
    columns = [*_CONFIGURATION, "collectives", "rows", "failed", "first_made", "last_made", "details"]
    frame = pd.DataFrame(found, columns=columns)
    frame.attrs |= {"title": str(path.absolute()), "columns": columns[:-1]}
    return frame


class Deleted(int):
    """The number of times that were deleted."""


def prune(
    store: str | Path | None = None,
    *,
    configuration: Names | None = None,
    source: Names | None = None,
    platform: Names | None = None,
    before: str | None = None,
    confirm: Callable[[str], None] = lambda what: None,
) -> Deleted:
    """Deletes the times of some configurations, sources or platforms.

    With --before, only older times are deleted. The times go in one transaction, so a stopped command
    deletes nothing.

    Returns the number of rows that were deleted.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.prune(platform="gros", before="2000-01-01")
    0
    """
    if configuration is source is platform is before is None:
        raise UsageError("name what to delete: --configuration, --source, --platform or --before")
    time = None if before is None else time_of(before)
    with _opened(store) as opened:
        keys = [item.key for item in chosen_configurations(opened, configuration, source, platform)]
        if number := opened.count(keys, time):
            confirm(f"{number} times of {len(keys)} configurations in {opened.path}")
        return Deleted(opened.prune(keys, time) if number else 0)


def import_times(
    *files: str | Path,
    platform: str = "",
    procs: int | None = None,
    ppn: int | None = None,
    library: str = "",
    algorithm: str = "",
    about: str = "",
    store: str | Path | None = None,
) -> pd.DataFrame:
    """Imports times that were measured elsewhere into the store.

    The files are results of a collwise script, of the OSU micro-benchmarks, of the Intel MPI Benchmarks (IMB-MPI1), of
    ReproMPI or of netgauge (LogGP), a short CSV of your own (docs/clusters.md), or a run of PICO (an archive or a
    folder, next to the metadata of the run). Cases with impossible times are stored as failed, with the reason. Further
    arguments give what the files lack: `platform` (not needed for scripts and runs of PICO), `procs` (for OSU), `ppn`,
    and `library`, such as 'Open MPI 4.1.5' (not needed for files that collwise wrote). If one algorithm was forced in
    all files, `algorithm` is its name in the catalogue, the library's id, or another name. It may also be the name of
    an untuned library whose decisions are known, such as 'openmpi-4.1': the times are then those of what it decided.

    Returns a DataFrame with a row for each file, collective, experiment, P and number of processes on a node: `times`
    is the number of times, and `failed` how many of them failed. Raises UsageError naming file, line and what was
    expected, and then stores nothing of that file.

    >>> import collwise, pathlib
    >>> lines = "# machine: mine", "collective,algorithm,procs,bytes,us", "bcast,chain,4,8192,30", ""
    >>> _ = pathlib.Path("mine.csv").write_text("\\n".join(lines))
    >>> collwise.import_times("mine.csv").times.tolist()
    [1]
    """
    import pandas as pd

    from collwise.validation.measurement.imports import import_file
    from collwise.validation.measurement.imports.reading import MissingFacts

    missing = MissingFacts(platform, procs or 0, ppn or 0, library, algorithm, _facts(about))
    times, failed = Counter[tuple[str, str, str, int, int]](), Counter[tuple[str, str, str, int, int]]()
    wrong = 0
    with Store(arguments.store_path(store)) as opened:
        for file in files:
            imported = import_file(Path(file), opened, missing)
            for timing in imported.timings:
                case = timing.case
                kind = (str(file), case.collective, case.experiment, case.procs, case.processes_per_node)
                times[kind] += 1
                failed[kind] += not timing.ok
            reasons = Counter(timing.error for timing in imported.timings if not timing.ok)
            if imported.marked:
                for reason, number in reasons.most_common():
                    note(f"{file}: {counted(number, 'cell')} marked: {reason}")
            else:
                wrong += reasons.total()
            if lacking := imported.asked - len(imported.timings):
                note(f"{file}: {lacking} of {imported.asked} cases have no record: the run ended early")
    rows = [(*kind, number, failed[kind]) for kind, number in times.items()]
    frame = pd.DataFrame(
        rows, columns=["file", "collective", "experiment", "procs", "processes_per_node", "times", "failed"]
    )
    frame.attrs["title"] = str(opened.path)
    if wrong:
        frame.attrs["problem"] = f"{wrong} cases had failed when they were measured; they are stored as failed"
    return frame


def measured_file(name: str) -> Path:
    """The path of a file from a test bed of eight nodes, whose measurements docs/models-measured.md shows.

    Parameters: `name`, such as 'bed.toml' (the bed's description), 'first.csv.gz' and 'second.csv.gz' (times of two
    runs), or 'loggp.toml' (parameters of a model that was fitted there). Raises UsageError for an unknown name.

    >>> import collwise
    >>> collwise.platform(collwise.measured_file("bed.toml")).name
    'testbed-8x25m'
    """
    folder = SOURCES / "docs" / "measured"
    check_name("measured file", name, sorted(path.name for path in folder.iterdir()))
    return folder / name


def _facts(about: str) -> tuple[tuple[str, str], ...]:
    """The pairs in a text such as 'job=1; licence=MIT'. Raises UsageError if the text is malformed."""
    found = []
    for part in filter(None, (part.strip() for part in about.split(";"))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals and value):
            raise UsageError(f"malformed fact '{part}'; write for example 'job=1234; source=our cluster; licence=MIT'")
        found.append((name, value))
    return tuple(found)


def chosen_configurations(
    store: Store, keys: Names | None = None, source: Names | None = None, platform: Names | None = None
) -> list[StoredConfiguration]:
    """The store's configurations of these sources and platforms whose key begins with one of `keys`."""
    found = stored = store.configurations()
    if keys is not None:
        begins = arguments.names(keys)
        for begin in begins:
            if not re.fullmatch("[0-9a-f]{4,}", begin) or not any(item.key.startswith(begin) for item in stored):
                known = [item.key[:KEY_CHARACTERS] for item in stored]
                raise unknown_name("configuration", begin, known, "see 'collwise times list'")
        found = [item for item in stored if item.key.startswith(begins)]
    for kind, given in (("source", source), ("platform", platform)):
        if given is not None:
            wanted = arguments.names(given)
            for name in wanted:
                have = dict.fromkeys(getattr(item.configuration, kind) for item in stored)
                check_name(kind, name, have, f"those in the store {store.path}")
            found = [item for item in found if getattr(item.configuration, kind) in wanted]
    return found


def time_of(text: str) -> str:
    """A date or a time, UTC, as the store writes times. Raises UsageError for any other text."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        raise UsageError(f"malformed time '{text}': write 2026-11-01 or '2026-11-01 12:30', UTC") from None


def _one_or_several(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _record(configuration: StoredConfiguration) -> Sequence[Any]:
    made, item = configuration.configuration, configuration
    key = (item.key[:KEY_CHARACTERS], made.source, made.platform, made.maker)
    numbers = (item.rows, item.failed, item.first_made, item.last_made)
    return (*key, ",".join(item.collectives), *numbers, dict(made.details))
