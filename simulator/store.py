"""The timing table. Every time in the project is a row in this SQLite file, which survives a kill at any moment."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError
from collwise.simulator.timing import Case, Configuration, Timing

_LAYOUT_VERSION = 3
_LOCK_SECONDS = 60


_CASE_FIELDS = tuple(field.name for field in fields(Case))
_COLUMN_NAMES = {"parameter": "fanout"}
_CASE_COLUMNS = tuple(_COLUMN_NAMES.get(name, name) for name in _CASE_FIELDS)
_VALUE_COLUMNS = tuple(field.name for field in fields(Timing) if field.name != "case")
_FLOAT_COLUMNS = tuple(field.name for field in fields(Timing) if field.type == "float")
_COLUMN_TYPES = {"str": "text", "int": "integer", "float": "real", "bool": "integer"}


def _columns(row_type: type[Case] | type[Timing], names: Sequence[str], constraint: str = "") -> str:
    column_of = {field.name: _COLUMN_NAMES.get(field.name, field.name) for field in fields(row_type)}
    types = {column_of[field.name]: _COLUMN_TYPES.get(str(field.type), "text") for field in fields(row_type)}
    return ", ".join(f"{name} {types[name]}{constraint}" for name in names)


_TABLES = f"""
begin immediate;
create table if not exists configurations (
  key text primary key, source text not null, platform text not null, maker text not null, details text not null);
create table if not exists timings (
  configuration text not null references configurations(key),
  {_columns(Case, _CASE_COLUMNS, " not null")},
  nodes integer not null, {_columns(Timing, _VALUE_COLUMNS)},
  made_at text default current_timestamp,
  primary key (configuration, {", ".join(_CASE_COLUMNS)}));
pragma user_version = {_LAYOUT_VERSION};
commit;
"""


@dataclass(frozen=True)
class StoredConfiguration:
    """A configuration of the store, with the number of its rows and the number of failed rows.

    In commands, the first characters of the `key` (hexadecimal) are enough. `first_made` and `last_made` are UTC.
    """

    key: str
    configuration: Configuration
    rows: int
    failed: int
    collectives: tuple[str, ...]
    first_made: str
    last_made: str


class Store:
    """The SQLite file of timings. Every `add` is committed at once. Several threads may use it.

    Raises UsageError, and leaves the file as it is, if it is damaged, is no store of this project, or cannot be
    written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            if self.path.is_dir():
                raise UsageError(f"store {self.path} is a directory; name a file")
            if self.path.exists() and self.path.stat().st_size > 0:
                self._check_existing()
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_LOCK_SECONDS, check_same_thread=False)
            if self._connection.execute("pragma user_version").fetchone()[0] == 0:
                self._connection.executescript(_TABLES)
            self._connection.execute("pragma synchronous = normal")
            # `begin immediate` alone does not fail for a read-only file.
            self._connection.execute("begin immediate")
            self._connection.execute(f"pragma user_version = {_LAYOUT_VERSION}")
            self._connection.rollback()
        except (sqlite3.DatabaseError, OSError) as problem:
            raise UsageError(self._complaint(problem)) from None
        except UnicodeDecodeError as problem:
            raise UsageError(self._complaint(ValueError(f"malformed name: {problem}"))) from None

    def _complaint(self, problem: Exception) -> str:
        text = " ".join(str(problem).split())  # SQLite may quote table definitions, which have line breaks
        if "not a database" in text and not _is_begun(self.path):
            return f"{self.path} is not a store of times (SQLite); it was left untouched; name another with --store"
        if "not a database" in text or "malformed" in text:
            return f"store {self.path} is corrupted ({text}); it was left untouched; name another with --store"
        return f"store {self.path} cannot be used ({text}); name another with --store"

    def _check_existing(self) -> None:
        """Checks the file without writing to it, so that a damaged or foreign file stays as it is."""
        try:
            healthy, pages, layout, tables = _look_into(self.path, "ro")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
                raise
            # The last writer was killed during a commit. The next writer that opens the file undoes this commit.
            healthy, pages, layout, tables = self._look_into_copy()
            if healthy and pages == 0:
                return
        if not healthy:
            problem = "corrupted (integrity check failed)"
        elif not {"configurations", "timings"} <= tables or layout != _LAYOUT_VERSION:
            problem = f"not a timing table of this version (layout {layout}, expected {_LAYOUT_VERSION})"
        else:
            return
        raise UsageError(f"store {self.path} is {problem}; it was left untouched; name another with --store")

    def _look_into_copy(self) -> tuple[bool, int, int, set[str]]:
        with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
            for suffix in ("", "-journal"):
                shutil.copyfile(f"{self.path.resolve()}{suffix}", Path(directory, f"store{suffix}"))
            return _look_into(Path(directory, "store"), "rw")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Holds the lock. Raises UsageError for a damaged database, and for values that cannot be read."""
        try:
            with self._lock:
                yield
        except sqlite3.DatabaseError as problem:
            raise UsageError(self._complaint(problem)) from None
        except (ValueError, TypeError, AttributeError, OverflowError) as problem:
            raise UsageError(self._complaint(ValueError(f"malformed row: {problem}"))) from None

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, configuration: Configuration, timings: Iterable[Timing]) -> None:
        """Writes rows and commits; a row of the same configuration and case is replaced."""
        key, source, platform, maker = configuration.key, *astuple(configuration)[:3]
        details = json.dumps(dict(configuration.details), sort_keys=True)
        columns = ("configuration", *_CASE_COLUMNS, "nodes", *_VALUE_COLUMNS)
        rows = [(key, *astuple(row.case), row.case.nodes, *_values(row)) for row in timings]
        insert = f"insert or replace into timings ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
        try:
            with self._lock, self._connection as connection:
                connection.execute(
                    "insert or ignore into configurations values (?, ?, ?, ?, ?)",
                    (key, source, platform, maker, details),
                )
                connection.executemany(insert, rows)
        except sqlite3.DatabaseError as problem:
            raise UsageError(self._complaint(problem)) from None

    def timings(self, configuration: Configuration) -> dict[Case, Timing]:
        """All rows of a configuration, by case."""
        return self.timings_of(configuration.key)

    def timings_of(self, key: str) -> dict[Case, Timing]:
        """All rows of the configuration with this key, by case."""
        with self._reading():
            rows = self._connection.execute(
                f"select {', '.join((*_CASE_COLUMNS, *_VALUE_COLUMNS))} from timings where configuration = ?",
                (key,),
            ).fetchall()
            return {timing.case: timing for timing in map(_timing_from, rows)}

    def configurations(self) -> list[StoredConfiguration]:
        """Every configuration that has rows, in the order in which their first rows were made."""
        with self._reading():
            found = self._connection.execute(
                "select key, source, platform, maker, details, count(*), sum(error != ''), "
                "group_concat(distinct collective), min(made_at), max(made_at) from timings "
                "join configurations on configurations.key = timings.configuration "
                "group by key order by min(made_at), min(timings.rowid)"
            ).fetchall()
            stored = []
            for key, source, platform, maker, details, rows, failed, collectives, first, last in found:
                configuration = Configuration(source, platform, maker, tuple(sorted(json.loads(details).items())))
                collected = tuple(sorted(collectives.split(",")))
                stored.append(StoredConfiguration(key, configuration, rows, failed, collected, first, last))
            return stored

    def count(self, keys: Sequence[str], before: str | None = None) -> int:
        """The number of rows that `prune` would delete."""
        of, time = _made_before(before)
        count = f"select count(*) from timings where {of}"
        with self._lock:
            return sum(int(self._connection.execute(count, (key, *time)).fetchone()[0]) for key in keys)

    def prune(self, keys: Sequence[str], before: str | None = None) -> int:
        """Deletes rows of configurations and returns their number; `before` (UTC) limits this to older rows.

        A configuration without rows is deleted, too. Everything is one transaction, so a command that is killed has
        deleted everything or nothing.
        """
        of, time = _made_before(before)
        try:
            with self._lock, self._connection as connection:
                connection.execute("begin immediate")
                deleted = sum(
                    connection.execute(f"delete from timings where {of}", (key, *time)).rowcount for key in keys
                )
                connection.execute("delete from configurations where key not in (select configuration from timings)")
        except sqlite3.DatabaseError as problem:
            raise UsageError(self._complaint(problem)) from None
        with self._lock, contextlib.suppress(sqlite3.DatabaseError):  # another process may use the file
            self._connection.execute("vacuum")
        return deleted

    def rows(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """The rows that have the `wanted` values, as dictionaries that include source, platform, maker and details.

        `wanted` maps each column to a value, or to a tuple of values, one of which the row must have.
        """
        choices = {_COLUMN_NAMES.get(name, name): value for name, value in wanted.items()}
        choices = {name: value if isinstance(value, tuple) else (value,) for name, value in choices.items()}
        where = " and ".join(f"{name} in ({', '.join('?' * len(value))})" for name, value in choices.items()) or "1"
        with self._reading():
            cursor = self._connection.execute(
                "select source, platform, maker, details, timings.* from timings "
                "join configurations on configurations.key = timings.configuration "
                f"where {where} order by made_at, timings.rowid",
                tuple(item for value in choices.values() for item in value),
            )
            field_of = {column: name for name, column in _COLUMN_NAMES.items()}
            names = [field_of.get(column[0], column[0]) for column in cursor.description]
            found = cursor.fetchall()
        for row in found:
            yield dict(zip(names, row, strict=True))


def _look_into(path: Path, mode: str) -> tuple[bool, int, int, set[str]]:
    """Returns whether an SQLite file is sound, its number of pages, its layout version, and the names of its tables."""
    address = f"{path.resolve().as_uri()}?mode={mode}"
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=_LOCK_SECONDS)) as connection:
        healthy = connection.execute("pragma integrity_check(1)").fetchone()[0] == "ok"
        pages, page_bytes, layout = (
            connection.execute(f"pragma {what}").fetchone()[0] for what in ("page_count", "page_size", "user_version")
        )
        # SQLite reads the missing rest of a truncated page as zeros.
        healthy = healthy and path.stat().st_size >= pages * page_bytes
        tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    return healthy, pages, layout, tables


def _values(row: Timing) -> list[Any]:
    """The values for the columns of a timing; SQLite stores nan as null."""
    values = [getattr(row, name) for name in _VALUE_COLUMNS]
    if row.error:
        values[:2] = None, None
    values[-1] = None if row.samples is None else json.dumps(row.samples)
    return values


def _timing_from(row: Sequence[Any]) -> Timing:
    count = len(_CASE_COLUMNS)
    values = dict(zip(_VALUE_COLUMNS, row[count:], strict=True))
    values |= {name: math.nan for name in _FLOAT_COLUMNS if values[name] is None}
    values["precise"] = bool(values["precise"])
    if values["samples"] is not None:
        values["samples"] = tuple(json.loads(values["samples"]))
    return Timing(Case(**dict(zip(_CASE_FIELDS, row[:count], strict=True))), **values)


def _made_before(time: str | None) -> tuple[str, tuple[str, ...]]:
    """The SQL condition for the rows of one configuration, and its further parameters: `time`, if one is given."""
    return ("configuration = ?", ()) if time is None else ("configuration = ? and made_at < ?", (time,))


def _is_begun(path: Path) -> bool:
    """True if the first bytes of a file, perhaps fewer than a header, are those of an SQLite file."""
    with path.open("rb") as file:
        return b"SQLite format 3\0".startswith(file.read(16))
