"""Profiles of programs: JSON reports of libcollwise (docs/interposing.md), of one run or of several runs combined."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from collwise.common.errors import UsageError
from collwise.common.files import read_text
from collwise.common.keys import Keys

_VERSION = 1
_MAKE_ONE = "make one with 'collwise program run --report FILE.json'"
_PARAMETERS = re.compile(r"(?:[a-z_]+=\d{1,18}(?: (?=\S))?)*")
_OF_RUNS = ("fastest_run_seconds", "slowest_run_seconds")
Key = tuple[str, str, str, int, int | None]
OWN = "MPI's own"  # the outcome of calls for which none of our algorithms ran; a report says why


@dataclass(frozen=True)
class ProfileRow:
    """The calls of a collective on a communicator, with sizes between a power of two and the next one.

    `seconds` is the time within all these calls, as a mean over the processes. `algorithm` is empty if MPI's own ran,
    and `mpis_own` then says why. Sizes are None if not all processes know them. For several runs, `seconds` is the
    median, and `fastest_run_seconds` and `slowest_run_seconds` are the extremes.
    """

    collective: str
    communicator: str
    ranks: str
    processes: int
    processes_per_node: int
    algorithm: str
    mpis_own: str
    min_bytes: int | None
    max_bytes: int | None
    mean_bytes: float | None
    calls: int
    seconds: float
    shortest_seconds: float
    longest_seconds: float
    fastest_run_seconds: float
    slowest_run_seconds: float
    parameters: str = ""

    @property
    def key(self) -> Key:
        """The fields that are equal for the same calls in every run, whatever algorithm runs."""
        return self.collective, self.communicator, self.ranks, self.processes, self.min_bytes

    @property
    def ran(self) -> str:
        """The name of the algorithm that ran, or a name for MPI's own."""
        return self.algorithm or f"{OWN}: {self.mpis_own}"

    @property
    def where(self) -> str:
        """The communicator, by its name or its ranks in MPI_COMM_WORLD."""
        return self.communicator or f"ranks {self.ranks}"

    def holds(self, message_bytes: int) -> bool:
        """True if calls of this size are counted here."""
        return self.min_bytes is not None and self.min_bytes <= message_bytes <= (self.max_bytes or 0)

    @property
    def document(self) -> dict[str, Any]:
        """The row as libcollwise writes it."""
        absent = ("mpis_own",) if self.algorithm else ("algorithm", "parameters")
        return {name: value for name, value in asdict(self).items() if name not in absent}


@dataclass(frozen=True)
class Profile:
    """A program's collectives, and the seconds from MPI_Init to MPI_Finalize, as a mean over the processes.

    For several runs, all seconds are medians, and `run_seconds` has each run's seconds within collectives.
    """

    processes: int
    seconds: float
    rows: tuple[ProfileRow, ...]
    run_seconds: tuple[float, ...] = ()

    @property
    def collective_seconds(self) -> float:
        """The seconds within collectives, as a mean over the processes."""
        return sum(row.seconds * row.processes for row in self.rows) / self.processes

    @property
    def text(self) -> str:
        """The report in JSON, which `read_profile` reads."""
        head: dict[str, Any] = {"collwise_report": _VERSION, "processes": self.processes, "seconds": self.seconds}
        if self.run_seconds:
            head["run_seconds"] = list(self.run_seconds)
        rows = ",\n".join(json.dumps(row.document) for row in self.rows)
        return f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}\n'


def read_profile(path: Path) -> Profile:
    """Reads a report that libcollwise wrote as JSON."""
    try:
        document = json.loads(read_text(path))
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: not JSON; {_MAKE_ONE}") from None
    if not isinstance(document, dict) or document.get("collwise_report") != _VERSION:
        raise UsageError(f"{path}: not a libcollwise JSON report; {_MAKE_ONE}")
    keys = Keys(path, document)
    runs = keys.numbers("run_seconds", 0) if "run_seconds" in keys else ()
    rows = tuple(map(_row, keys.entries("rows")))
    return Profile(keys.whole("processes", 1), keys.number("seconds", 0), rows, runs)


def _row(keys: Keys) -> ProfileRow:
    unsized = keys.get("mean_bytes") is None
    found: dict[str, Any] = {
        **{name: keys.text(name) for name in ("collective", "communicator", "ranks")},
        **{name: keys.text(name) if name in keys else "" for name in ("algorithm", "mpis_own", "parameters")},
        **{name: keys.whole(name) for name in ("processes", "processes_per_node", "calls")},
        **{name: None if unsized else keys.whole(name) for name in ("min_bytes", "max_bytes")},
        "mean_bytes": None if unsized else keys.number("mean_bytes", 0),
        **{name: keys.number(name, 0) for name in ("seconds", "shortest_seconds", "longest_seconds")},
        # A single run is the fastest and the slowest one.
        **{name: keys.number(name if name in keys else "seconds", 0) for name in _OF_RUNS},
    }
    if _PARAMETERS.fullmatch(found["parameters"]) is None:
        raise keys.wrong("parameters", "names with numbers, as in 'segment_bytes=8192 radix=4'")
    return ProfileRow(**found)


def differing_calls(before: Profile, after: Profile) -> tuple[int, int]:
    """The number of kinds of calls that two runs made unequally often, and the number of all kinds."""
    first, second = rows_by_key(before.rows), rows_by_key(after.rows)
    kinds = first.keys() | second.keys()
    numbers = ([sum(row.calls for row in rows.get(kind, ())) for kind in kinds] for rows in (first, second))
    return sum(item != other for item, other in zip(*numbers, strict=True)), len(kinds)


def rows_by_key(rows: Iterable[ProfileRow]) -> dict[Key, list[ProfileRow]]:
    """The rows by their keys, in order."""
    found: dict[Key, list[ProfileRow]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


def profile_of_runs(profiles: Sequence[Profile]) -> Profile:
    """One profile of several runs: the rows of the run with the median time, with seconds summarized over all runs."""
    if len(profiles) == 1:
        return profiles[0]
    if len(sizes := sorted({profile.processes for profile in profiles})) > 1:
        raise UsageError(
            f"the reports are of runs of {' and '.join(map(str, sizes))} processes; give those of one process count"
        )
    if any(profile.run_seconds for profile in profiles):
        raise UsageError("a report already covers several runs; give reports of one run each")
    typical = sorted(profiles, key=lambda profile: profile.collective_seconds)[(len(profiles) - 1) // 2]
    found: dict[tuple[object, ...], list[ProfileRow]] = {}
    for profile in profiles:
        for place, row in _placed(profile):
            found.setdefault(place, []).append(row)
    rows = []
    for place, row in _placed(typical):
        seconds = [same.seconds for same in found[place]]
        fastest, slowest = min(seconds), max(seconds)
        rows.append(replace(row, seconds=median(seconds), fastest_run_seconds=fastest, slowest_run_seconds=slowest))
    total = median(profile.seconds for profile in profiles)
    return Profile(typical.processes, total, tuple(rows), tuple(profile.collective_seconds for profile in profiles))


def _placed(profile: Profile) -> Iterable[tuple[tuple[object, ...], ProfileRow]]:
    """Pairs every row with a key by which other runs have the same row; numbers tell equal rows apart."""
    times: Counter[tuple[object, ...]] = Counter()
    for row in profile.rows:
        alike = (row.key, row.ran, row.parameters, row.processes_per_node)
        times[alike] += 1
        yield (alike, times[alike]), row
