"""A short CSV of times from anywhere, with facts above the table. docs/clusters.md describes the format."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, check_name, located, warn
from collwise.common.experiments import ROUNDTRIP, SATURATION
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports.algorithms import NEEDS_LIBRARY, choice_of, doubted
from collwise.validation.measurement.imports.reading import (
    COLLECTIVES,
    LONGEST_SECONDS,
    NOT_READ,
    STREAM_COUNT,
    STREAM_REPLY_BYTES,
    Lines,
)
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.grid import BUILTIN, case_of

UNITS = {"seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""The possible names of the column with the times, and their units in seconds."""
NEEDED = ("collective", "algorithm", "procs", "bytes")
OPTIONAL = ("ppn", "segment", "parameter", "half_width", "repetitions", "least", "greatest", "mark")
DEFAULT = "default"
"""The algorithm in rows where the library decided."""
OUTSIDE = "outside"
"""The fact that lists algorithms, separated by commas, that are known not to be in the catalogue."""
COLLECTIVE = "collective"
"""The name of the experiment that runs a collective by an algorithm."""
LATENCY, STREAM = "latency", "stream"
"""Entries of the column `collective` for two processes: half of a roundtrip, and 64 messages with a short reply."""
_TO_LAST = "maximum"
_FACT = re.compile(r"^#\s*([a-z_]+)\s*:\s*(.*?)\s*$")
_LIKE = 0.8
"""The least similarity of a misspelt name to one of the catalogue, by difflib."""
_SHORTEST_SECONDS = 1e-9
"""The shortest plausible time. A shorter time has a wrong unit, as has a time above LONGEST_SECONDS."""


def recognised(lines: Lines) -> bool:
    """True if the first line that is not a comment names the columns of such a table."""
    title = next((line for line in lines.lines if line.strip() and not line.startswith("#")), "")
    return "collective" in (names := [name.strip() for name in title.split(",")]) and "algorithm" in names


def read(lines: Lines, values: bool = True) -> list[tuple[Configuration, list[Timing]]]:
    """The times of a table. If `values` is false, times are not read, and each cell has the error NOT_READ."""
    facts = dict(lines.missing.about)
    columns: list[str] = []
    timings: dict[Case, Timing] = {}
    maker = lines.missing.library
    for number, line in enumerate(lines.lines, 1):
        if match := _FACT.match(line):
            facts.setdefault(match[1], match[2])
        elif line.strip() and not line.startswith("#"):
            words = [word.strip() for word in next(csv.reader([line]))]
            if not columns:
                columns = _columns(lines, number, words)
                maker = maker or facts.get("library", "")
                continue
            if len(words) != len(columns):
                raise lines.objection(number, f"{len(columns)} columns ({', '.join(columns)})")
            row = dict(zip(columns, words, strict=True))
            timing = _timing(lines, number, row if values else _without_times(row), maker)
            if timing.case in timings:
                raise lines.objection(number, "a case that no earlier row has")
            timings[timing.case] = timing
    if not timings:
        raise lines.objection(len(lines.lines) + 1, "a row of times")
    outside = facts.get(OUTSIDE, "").split(",")
    for collective, name in dict.fromkeys((item.case.collective, item.case.algorithm) for item in timings.values()):
        _warn_of(lines.path, collective, name, [text.strip() for text in outside])
    to_last = facts.get("timing", _TO_LAST).startswith(_TO_LAST)
    found = doubted(list(timings.values()), maker, to_last)
    platform = lines.missing.platform or facts.get("machine", "")
    facts = {name: value for name, value in facts.items() if name not in ("machine", "library") and value}
    known = replace(lines, missing=replace(lines.missing, platform=platform, library="", about=()))
    return [(known.configuration(maker or "times of a CSV", facts), found)]


def _warn_of(path: Path, collective: str, name: str, outside: Sequence[str]) -> None:
    """Warns of a name that resembles one of the catalogue, unless it is in `outside` or contains that name."""
    known = Catalogue.load().collectives.get(collective)
    if known is None or name in known.algorithms or name in outside:
        return
    if near := [match for match in get_close_matches(name, known.algorithms, cutoff=_LIKE) if match not in name]:
        warn(
            f"{path}: the catalogue has no {collective} '{name}', so its times belong to no choice; did you "
            f"mean {' or '.join(near)}? If it is another algorithm, write above the table: # {OUTSIDE}: {name}"
        )


def text_of(configuration: Configuration, timings: Sequence[Timing]) -> str:
    """A table of times that `read` can read. Raises ValueError for experiments that such a table cannot hold."""
    facts = {"machine": configuration.platform, "library": configuration.maker, **dict(configuration.details)}
    text = io.StringIO()
    text.writelines(f"# {name}: {value}\n" for name, value in facts.items())
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow((*NEEDED, "ppn", "segment", "parameter", "us", "half_width", "repetitions", "mark"))
    for timing in timings:
        case, factor = timing.case, 1.0
        collective, algorithm = case.collective, case.algorithm
        if case.experiment == BUILTIN:
            algorithm = DEFAULT
        elif case.experiment == ROUNDTRIP:
            collective, algorithm, factor = LATENCY, "", 0.5
        elif case.experiment == SATURATION and (case.count, case.reply_bytes) == (STREAM_COUNT, STREAM_REPLY_BYTES):
            collective, algorithm = STREAM, ""
        elif case.experiment != COLLECTIVE:
            raise ValueError(f"a table holds no experiment '{case.experiment}'")
        time = timing.seconds if timing.ok else timing.median_seconds
        parameters = (case.segment_bytes or "", case.parameter or "")
        place = (case.procs, case.message_bytes, case.processes_per_node, *parameters)
        numbers = (_microseconds(time * factor), _microseconds(timing.half_width_seconds * factor), timing.repetitions)
        rows.writerow((collective, algorithm, *place, *numbers, timing.error))
    return text.getvalue()


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.7g}" if math.isfinite(seconds) else ""


def _without_times(row: Mapping[str, str]) -> dict[str, str]:
    """The row without times, and with the mark that they were not read."""
    times = {name: "" for name in (*UNITS, "half_width", "repetitions", "least", "greatest") if name in row}
    return {**row, **times, "mark": NOT_READ}


def _columns(lines: Lines, number: int, names: list[str]) -> list[str]:
    valid = (*NEEDED, *UNITS, *OPTIONAL)
    with located(f"{lines.path}:{number}"):
        for name in names:
            check_name("column", name, valid)
    missing = [name for name in NEEDED if name not in names]
    if missing or len(set(names)) < len(names) or len([name for name in names if name in UNITS]) != 1:
        raise lines.objection(number, f"each of {', '.join(NEEDED)} and one of {', '.join(UNITS)}, each only once")
    return names


def _timing(lines: Lines, number: int, row: Mapping[str, str], library: str) -> Timing:
    unit = next(name for name in UNITS if name in row)

    def numbered(name: str, without: float) -> float:
        text = row.get(name, "")
        return lines.numbers(number, [text], [name])[name] if text else without

    def whole(name: str, without: int = 0, least: int = 0) -> int:
        return lines.whole(number, numbered(name, without), name, least)

    def seconds(name: str, without: float) -> float:
        return numbered(name, without) * (UNITS[unit] if math.isfinite(numbered(name, without)) else 1)

    procs = whole("procs", lines.missing.procs, 1)
    per_node = min(whole("ppn", lines.missing.processes_per_node or 1, 1), procs)
    size, time, mark = whole("bytes"), seconds(unit, math.nan), row.get("mark", "")
    if math.isnan(time) and not mark:
        raise lines.objection(number, f"a time in the column {unit}, or a reason in the column mark")
    if time > LONGEST_SECONDS or 0 < time < _SHORTEST_SECONDS:
        raise lines.objection(number, f"a time from 1 ns to 1 hour (is the unit {unit}?)")
    name, algorithm = row["collective"], row["algorithm"]
    if name in (LATENCY, STREAM):
        case = replace(lines.case("-", procs, size) if name == LATENCY else lines.stream(size), procs=procs)
        case = replace(case, processes_per_node=per_node)
        objection, times = "", 2 if name == LATENCY else 1
    elif name in COLLECTIVES.values():
        choice, objection = choice_of(name, algorithm, library, procs)
        if choice != LIBRARY_DECIDES:
            segment = whole("segment", choice.segment_bytes)
            choice = replace(choice, segment_bytes=segment, parameter=whole("parameter", choice.parameter))
        case, times = case_of(name, choice, procs, size, per_node), 1
    else:
        raise lines.objection(number, f"one of {', '.join((*COLLECTIVES.values(), LATENCY, STREAM))}")
    if objection.startswith(NEEDS_LIBRARY):
        raise UsageError(f"{lines.path}:{number}: {objection}; write above the table: # library: Open MPI 4.1.5")
    reason = mark or objection
    time *= times
    known = math.nan if reason else time
    return Timing(
        case, known, known if name == LATENCY else math.nan, seconds("half_width", math.inf) * times,
        repetitions=whole("repetitions", 1, 1), error=reason, median_seconds=time,
        least_seconds=seconds("least", math.nan), greatest_seconds=seconds("greatest", math.nan),
    )  # fmt: skip
