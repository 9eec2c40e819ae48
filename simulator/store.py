"""The timing table: every time in the project is a row here, whatever made it. Kept in SQLite, safe when killed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError

EXPERIMENTS = ("collective", "bcast_gather", "barrier", "exchange", "roundtrip")
SOURCES = ("predicted", "simulated", "measured")
_LAYOUT_VERSION = 1


@dataclass(frozen=True, order=True)
class Case:
    """One point to time. Sizes in bytes; `segment_bytes` 0 means unsegmented, `fanout` 0 the algorithm's default.

    `experiment` is 'collective', or one of the experiments of parameter estimation (see programs/benchmark.c), whose
    `gather_bytes` is the size m_g of the closing gather.
    """

    collective: str
    algorithm: str
    procs: int
    message_bytes: int
    segment_bytes: int = 0
    fanout: int = 0
    processes_per_node: int = 1
    root: int = 0
    experiment: str = "collective"
    gather_bytes: int = 0

    @property
    def nodes(self) -> int:
        """Nodes used under block mapping (rank r on node r // processes_per_node)."""
        return -(-self.procs // self.processes_per_node)


@dataclass(frozen=True)
class Configuration:
    """What made a time. Any change here is another key, so that no result is ever taken for another's.

    `source`: predicted, simulated or measured; `maker`: engine and version, MPI library, or model; `details`: digests
    of platform and program, options.
    """

    source: str
    platform: str
    maker: str
    details: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """SHA-256 over everything, hex."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Timing:
    """A row: `seconds` until the last process is done (nan when failed), `root_seconds` until the root is.

    `half_width_seconds` is that of the confidence interval of the mean, 0 where time is exact.
    """

    case: Case
    seconds: float
    root_seconds: float = float("nan")
    half_width_seconds: float = 0.0
    repetitions: int = 1
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the case ran."""
        return not self.error


_CASE_COLUMNS = tuple(field.name for field in fields(Case))
_VALUE_COLUMNS = ("nodes", "seconds", "root_seconds", "half_width_seconds", "repetitions", "error")
_TABLES = f"""
create table configurations (
  key text primary key, source text not null, platform text not null, maker text not null, details text not null);
create table timings (
  configuration text not null references configurations(key),
  {", ".join(f"{name} {'text' if name in ('collective', 'algorithm', 'experiment') else 'integer'} not null"
             for name in _CASE_COLUMNS)},
  nodes integer not null, seconds real, root_seconds real, half_width_seconds real, repetitions integer, error text,
  made_at text default current_timestamp,
  primary key (configuration, {", ".join(_CASE_COLUMNS)}));
pragma user_version = {_LAYOUT_VERSION};
"""


class Store:
    """The SQLite file of timings. Every `add` is committed at once. Usable from several threads.

    Raises UsageError when the file is not a store of this project, is damaged, or cannot be written; the file is then
    left as it is.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        if self.path.is_dir():
            raise UsageError(f"store {self.path} is a directory; name a file")
        existed = self.path.exists() and self.path.stat().st_size > 0
        try:
            if existed:
                self._check_existing()
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
            if not existed:
                with self._connection:
                    self._connection.executescript(_TABLES)
            self._connection.execute("pragma synchronous = normal")
            self._connection.execute("begin immediate").connection.rollback()
        except (sqlite3.DatabaseError, OSError) as problem:
            raise UsageError(self._complaint(problem)) from None

    def _complaint(self, problem: Exception) -> str:
        text = str(problem)
        if "not a database" in text or "malformed" in text:
            return f"store {self.path} is corrupted ({text}); it was left untouched; name another with --store"
        return f"store {self.path} cannot be used ({text}); name another with --store"

    def _check_existing(self) -> None:
        """Reads only, so that a damaged or foreign file stays as it is."""
        connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            healthy = connection.execute("pragma quick_check(1)").fetchone()[0] == "ok"
            layout = connection.execute("pragma user_version").fetchone()[0]
            tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
        finally:
            connection.close()
        if not healthy:
            raise UsageError(
                f"store {self.path} is corrupted (integrity check failed); it was left untouched; "
                "name another with --store"
            )
        if not {"configurations", "timings"} <= tables or layout != _LAYOUT_VERSION:
            raise UsageError(
                f"store {self.path} is not a timing table of this version (layout {layout}, expected "
                f"{_LAYOUT_VERSION}); it was left untouched; name another with --store"
            )

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, configuration: Configuration, timings: Iterable[Timing]) -> None:
        """Writes rows and commits; a row of the same configuration and case is replaced."""
        with self._lock, self._connection:
            self._connection.execute(
                "insert or ignore into configurations values (?, ?, ?, ?, ?)",
                (
                    configuration.key,
                    configuration.source,
                    configuration.platform,
                    configuration.maker,
                    json.dumps(dict(configuration.details), sort_keys=True),
                ),
            )
            columns = ("configuration", *_CASE_COLUMNS, *_VALUE_COLUMNS)
            self._connection.executemany(
                f"insert or replace into timings ({', '.join(columns)}) values ({', '.join('?' * len(columns))})",
                [
                    (
                        configuration.key,
                        *astuple(row.case),
                        row.case.nodes,
                        None if row.error else row.seconds,
                        None if row.error else row.root_seconds,
                        row.half_width_seconds,
                        row.repetitions,
                        row.error,
                    )
                    for row in timings
                ],
            )

    def timings(self, configuration: Configuration) -> dict[Case, Timing]:
        """Every row of a configuration, by case."""
        with self._lock:
            rows = self._connection.execute(
                f"select {', '.join(_CASE_COLUMNS)}, seconds, root_seconds, half_width_seconds, repetitions, error "
                "from timings where configuration = ?",
                (configuration.key,),
            ).fetchall()
        return {timing.case: timing for timing in map(_timing_from, rows)}

    def rows(self, **equal: Any) -> Iterator[dict[str, Any]]:
        """All rows as dictionaries, with source, platform and maker, that equal the given columns."""
        where = " and ".join(f"{name} = ?" for name in equal) or "1"
        with self._lock:
            cursor = self._connection.execute(
                "select source, platform, maker, details, timings.* from timings "
                f"join configurations on configurations.key = timings.configuration where {where} order by made_at",
                tuple(equal.values()),
            )
            names = [column[0] for column in cursor.description]
            found = cursor.fetchall()
        for row in found:
            yield dict(zip(names, row, strict=True))


def _timing_from(row: Sequence[Any]) -> Timing:
    count = len(_CASE_COLUMNS)
    seconds, root_seconds, half_width, repetitions, error = row[count:]
    nan = float("nan")
    return Timing(
        Case(**dict(zip(_CASE_COLUMNS, row[:count], strict=True))),
        nan if seconds is None else seconds,
        nan if root_seconds is None else root_seconds,
        half_width,
        repetitions,
        error,
    )
