"""What the store of times holds: `stored`, `results`, `configurations`, `prune`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from collwise import arguments
from collwise.arguments import Names, Numbers
from collwise.common.errors import UsageError, check_name, unknown_name
from collwise.common.files import write_bytes
from collwise.simulator.store import Store, StoredConfiguration
from collwise.simulator.timing import Case, Timing

if TYPE_CHECKING:
    from collwise.validation.times.files import AllTimes

KEY_CHARACTERS = 12
"""The number of characters of a configuration's key that are shown."""
FORMATS = ("csv", "json", "parquet")

_CONFIGURATION = ("configuration", "source", "platform", "maker")
_CASE = tuple(field.name for field in fields(Case))
_VALUES = tuple(field.name for field in fields(Timing) if field.name not in ("case", "samples"))
COLUMNS = (*_CONFIGURATION, *_CASE, "nodes", *_VALUES, "made_at", "details")
"""The columns of stored times."""


def results(
    store: str | Path | None = None,
    *,
    configuration: Names | None = None,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    **equal: Any,
) -> pd.DataFrame:
    """Every time in the store, with what made it.

    Parameters: `store`, the SQLite file, by default that of `simulate`; `configuration`, the first characters of keys
    that `configurations` lists; `procs`, process counts, and `sizes`, message sizes in bytes; any other column by name,
    to get the rows that equal it or one of several values: source='simulated', collective=['bcast', 'gather'].

    Returns a DataFrame with one row per time, in the order in which they were made: `configuration` (the beginning of
    its key), `source` (simulated, measured), `platform`, `maker`, the case's columns, `seconds`, further columns as in
    `measure`, `error`, `made_at` (UTC) and `details`, which are the other facts that the times depend on.
    An empty one where the store does not exist. Raises UsageError for a file that is not a store, and for an unknown
    column or configuration.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.results(collective="gather", algorithm="linear").seconds.equals(times.frame().seconds)
    True
    """
    for name in equal:
        if name not in COLUMNS or name == "details":
            raise UsageError(f"results: no column '{name}'; valid: {', '.join(COLUMNS[:-1])}")
    wanted = {name: _one_or_several(value) for name, value in equal.items()}
    if procs is not None:
        wanted["procs"] = arguments.counts(procs)
    if sizes is not None:
        wanted["message_bytes"] = arguments.sizes(sizes)
    path = arguments.store_path(store)
    if not path.exists():
        return pd.DataFrame(columns=list(COLUMNS))
    with Store(path) as opened:
        if configuration is not None:
            wanted["configuration"] = tuple(one.key for one in chosen_configurations(opened, configuration))
        frame = pd.DataFrame(opened.rows(**wanted), columns=list(COLUMNS))
    frame["configuration"] = frame["configuration"].str[:KEY_CHARACTERS]
    frame["error"] = frame["error"].fillna("")
    frame["details"] = frame["details"].map(json.loads)
    return frame


def stored(query: str, store: str | Path | None = None) -> AllTimes:
    """The times that the store has, without making any.

    Parameters: `query`, words such as 'platform=gros,source=measured': `source` (measured or simulated), `platform`,
    `collective` (by default every one that the store has from there), `ppn`, processes per node, and `configuration`,
    beginnings of keys that `configurations` lists, several by '+', where there are several measurements; `store`, the
    SQLite file of timings, by default that of `simulate`.

    Returns Times by collective. Of several measurements they are those of the one with the most times, else the newest;
    `facts` name its configurations and how many others there are. A word that the query leaves out may be missing where
    the store has one source or one platform only. Raises UsageError for a query that is malformed or finds nothing.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.stored("platform=gros,source=simulated,collective=gather")["gather"].procs
    (4,)
    """
    from collwise.validation.times.files import AllTimes
    from collwise.validation.times.measured import stored_times

    asked = _words(query)
    path = arguments.store_path(store)
    if not path.exists():
        raise UsageError(f"there is no store {path}; make times first: collwise simulate, measure or import")
    with Store(path) as opened:
        beginnings = asked.get("configuration")
        keys = None if beginnings is None else beginnings.replace("+", ",")
        there = chosen_configurations(opened, keys, asked.get("source"), asked.get("platform"))
        source = _only("source", dict.fromkeys(one.configuration.source for one in there), opened.path)
        platform = _only("platform", dict.fromkeys(one.configuration.platform for one in there), opened.path)
        has = dict.fromkeys(name for one in there for name in one.collectives if name != "-")
        names = arguments.collectives(asked["collective"]) if "collective" in asked else tuple(has)
        ppn = int(asked["ppn"]) if "ppn" in asked else None
        wanted = [one.key for one in there] if keys is not None else []
        return AllTimes.of(stored_times(opened, source, platform, name, ppn, wanted) for name in names)


_WORDS = ("source", "platform", "collective", "ppn", "configuration")


def _words(query: str) -> dict[str, str]:
    """The words of a query by name. Raises UsageError."""
    found: dict[str, str] = {}
    for word in filter(None, (part.strip() for part in query.split(","))):
        name, equals, value = (part.strip() for part in word.partition("="))
        check_name("word of a query", name, _WORDS)
        if not equals or not value or (name == "ppn" and not (value.isdecimal() and int(value))):
            raise UsageError(f"malformed word '{word}' of a query (valid: platform=gros,source=measured)")
        found[name] = value
    return found


def _only(what: str, found: Collection[str], store: Path) -> str:
    if len(found) != 1:
        has = (
            f"times of several: {', '.join(found)}; say which: {what}={next(iter(found))}" if found else "no such times"
        )
        raise UsageError(f"store {store} has {has}")
    return next(iter(found))


def configurations(store: str | Path | None = None) -> pd.DataFrame:
    """What made the times in the store: a row for each configuration, whose times never mix with those of another.

    Parameters: `store`, as for `results`.

    Returns a DataFrame: `configuration`, the beginning of its key, which `results` and `prune` take; `source`,
    `platform`, `maker`, `collectives`, the number of `rows` and of those that `failed`, when the first and the last of
    them were made (`first_made`, `last_made`, UTC), and `details`. An empty one where the store does not exist.
    Raises UsageError for a file that is not a store.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.configurations().platform.tolist()
    ['gros'...]
    """
    columns = [*_CONFIGURATION, "collectives", "rows", "failed", "first_made", "last_made", "details"]
    path = arguments.store_path(store)
    if not path.exists():
        return pd.DataFrame(columns=columns)
    with Store(path) as opened:
        return pd.DataFrame([_record(one) for one in opened.configurations()], columns=columns)


def prune(
    store: str | Path | None = None,
    *,
    configuration: Names | None = None,
    source: Names | None = None,
    platform: Names | None = None,
    before: str | None = None,
) -> int:
    """Deletes times from the store: those that match everything that is given, of which there must be something.

    Parameters: `store`, as for `results`; `configuration`, the first characters of keys; `source`, 'simulated' or
    'measured'; `platform`, names; `before`, a date or a time (UTC), '2026-11-01' or '2026-11-01 12:30': only what was
    made before it.

    Returns the number of rows that were deleted, all of them at once. Raises UsageError where nothing is given, and for
    a file that is not a store or cannot be written.

    >>> import collwise
    >>> times = collwise.simulate("gros", "gather", procs=4, sizes="64KiB", algorithms="linear")
    >>> collwise.prune(platform="gros", before="2000-01-01")
    0
    """
    if configuration is source is platform is before is None:
        raise UsageError("nothing says what to delete; name a configuration, source, platform or time")
    time = None if before is None else time_of(before)
    path = arguments.store_path(store)
    if not path.exists():
        return 0
    with Store(path) as opened:
        keys = [one.key for one in chosen_configurations(opened, configuration, source, platform)]
        return opened.prune(keys, time)


def chosen_configurations(
    store: Store, keys: Names | None = None, source: Names | None = None, platform: Names | None = None
) -> list[StoredConfiguration]:
    """The store's configurations whose key begins with one of `keys`, of these sources and platforms.

    Raises UsageError for beginnings of keys and names that the store does not have.
    """
    found = stored = store.configurations()
    for begin in () if keys is None else arguments.names(keys):
        if not re.fullmatch("[0-9a-f]{4,}", begin) or not any(one.key.startswith(begin) for one in found):
            raise unknown_name(
                "configuration", begin, [one.key[:KEY_CHARACTERS] for one in found], "see 'collwise times list'"
            )
    if keys is not None:
        found = [one for one in found if one.key.startswith(arguments.names(keys))]
    for kind, given in (("source", source), ("platform", platform)):
        if given is not None:
            known = dict.fromkeys(getattr(one.configuration, kind) for one in stored)
            for name in arguments.names(given):
                check_name(kind, name, known, f"those in the store {store.path}")
            found = [one for one in found if getattr(one.configuration, kind) in arguments.names(given)]
    return found


def time_of(text: str) -> str:
    """A date or a time, UTC, as the store writes times. Raises UsageError."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        raise UsageError(f"malformed time '{text}': write 2026-11-01 or '2026-11-01 12:30', UTC") from None


def write_results(frame: pd.DataFrame, path: Path, format_name: str) -> None:
    """Writes stored times as 'csv', 'json' (a list of records) or 'parquet', which needs the package pyarrow.

    A confidence interval of unknown width is inf in CSV and Parquet, null in JSON; `details` are JSON text in CSV and
    Parquet. Raises UsageError for a file that cannot be written and where pyarrow is missing.
    """
    if format_name == "json":
        write_bytes(path, (frame.to_json(orient="records", indent=1, double_precision=15) + "\n").encode())
        return
    flat = frame.assign(details=[json.dumps(one, sort_keys=True) for one in frame["details"]])
    if format_name == "csv":
        write_bytes(path, flat.to_csv(index=False).encode())
        return
    try:
        data = flat.to_parquet(index=False, engine="pyarrow")
    except ImportError:
        raise UsageError(
            "Parquet needs the package pyarrow; install it (pip install pyarrow), or write csv or json"
        ) from None
    write_bytes(path, data)


def _one_or_several(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _record(one: StoredConfiguration) -> Sequence[Any]:
    made = one.configuration
    return (
        *(one.key[:KEY_CHARACTERS], made.source, made.platform, made.maker, ",".join(one.collectives)),
        *(one.rows, one.failed, one.first_made, one.last_made, dict(made.details)),
    )
