"""Output of the Intel MPI Benchmarks, IMB-MPI1: collectives and PingPong. Times in microseconds."""

from __future__ import annotations

import re

from collwise.simulator.timing import Configuration, Timing
from collwise.validation.measurement.imports.reading import (
    Lines,
    MissingFacts,
    collective_of,
    configuration,
    imported_case,
    roundtrip_case,
)

_TITLE = re.compile(r"^\s*#\s*Benchmarking\s+(\S+)")
_PROCS = re.compile(r"^\s*#\s*#processes\s*=\s*(\d+)")
_COLUMNS = re.compile(r"^\s*(#bytes\s+)?#repetitions\s")
_VERSION = re.compile(r"^\s*#\s*Intel\(R\) MPI Benchmarks\s+(.+?)(?:,|\s*$)")
_PINGPONG = "PingPong"


def recognised(lines: Lines) -> bool:
    """Whether a file is such output."""
    return lines.any_matches(_TITLE)


def read(lines: Lines, missing: MissingFacts) -> list[tuple[Configuration, list[Timing]]]:
    """Times from the tables of known collectives (the slowest process's mean) and of PingPong (half of a roundtrip).

    Other tables are passed over. Raises UsageError naming the line.
    """
    maker = configuration(missing, lines.path, f"IMB-MPI1 {_version(lines)}", {"timing": "maximum"})
    timings: list[Timing] = []
    columns: list[str] = []
    what, procs = "", 0
    for number, line in enumerate(lines.lines, 1):
        if title := _TITLE.match(line):
            what, procs, columns = title[1], 0, []
        elif stated := _PROCS.match(line):
            procs = int(stated[1])
        elif _COLUMNS.match(line):
            columns = line.split()
        elif not line.strip() or line.lstrip().startswith("#"):
            columns = columns if line.strip() else []
        elif columns and (what == _PINGPONG or collective_of(what) is not None):
            if procs < 1:
                raise lines.objection(number, "the line '# #processes = P' before the numbers")
            timings.append(_timing(lines, number, columns, what, procs, missing))
    if not timings:
        raise lines.objection(len(lines.lines) + 1, "a table of a collective, or of PingPong")
    return [(maker, timings)]


def _version(lines: Lines) -> str:
    return next((match[1] for line in lines.lines if (match := _VERSION.match(line))), "-")


def _timing(lines: Lines, number: int, columns: list[str], what: str, procs: int, missing: MissingFacts) -> Timing:
    row = lines.numbers(number, lines.lines[number - 1].split(), columns)
    size = lines.whole(number, row.get("#bytes", 0.0), "a size")
    repetitions = lines.whole(number, row["#repetitions"], "a number of repetitions", 1)
    column = "t[usec]" if what == _PINGPONG else "t_max[usec]"
    if column not in row:
        raise lines.objection(number, f"a table with the column {column}")
    seconds, unknown = row[column] * 1e-6, float("inf")
    procs = lines.procs(procs, MissingFacts())
    if what == _PINGPONG:
        return Timing(roundtrip_case(procs, size, missing), 2 * seconds, 2 * seconds, unknown, repetitions)
    case = imported_case(str(collective_of(what)), procs, size, missing)
    return Timing(case, seconds, half_width_seconds=unknown, repetitions=repetitions)
