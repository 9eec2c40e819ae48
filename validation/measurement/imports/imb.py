"""Output of the Intel MPI Benchmarks, IMB-MPI1: collectives and PingPong. Times in microseconds."""

from __future__ import annotations

import re

from collwise.simulator.timing import Configuration, Timing
from collwise.validation.measurement.imports.reading import Lines, collective_of

TITLE = re.compile(r"^\s*#\s*Benchmarking\s+(\S+)")
_PROCS = re.compile(r"^\s*#\s*#processes\s*=\s*(\d+)")
_COLUMNS = re.compile(r"^\s*(#bytes\s+)?#repetitions\s")
_VERSION = re.compile(r"^\s*#\s*Intel\(R\) MPI Benchmarks\s+(.+?)(?:,|\s*$)")
_PINGPONG = "PingPong"


def read(lines: Lines) -> list[tuple[Configuration, list[Timing]]]:
    """Reads the tables of known collectives (the slowest process's mean) and of PingPong (half of a roundtrip).

    Other tables are skipped. Raises UsageError naming the line.
    """
    version = next((match[1] for line in lines.lines if (match := _VERSION.match(line))), "-")
    maker = lines.configuration(f"IMB-MPI1 {version}", {"timing": "maximum"})
    timings: list[Timing] = []
    columns: list[str] = []
    what, procs = "", 0
    for number, line in enumerate(lines.lines, 1):
        if title := TITLE.match(line):
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
            timings.append(_timing(lines, number, columns, what, procs))
    if not timings:
        raise lines.objection(len(lines.lines) + 1, "a table of a collective, or of PingPong")
    return [(maker, timings)]


def _timing(lines: Lines, number: int, columns: list[str], what: str, procs: int) -> Timing:
    row = lines.numbers(number, lines.lines[number - 1].split(), columns)
    size = lines.whole(number, row.get("#bytes", 0.0), "a size")
    repetitions = lines.whole(number, row["#repetitions"], "a number of repetitions", 1)
    column = "t[usec]" if what == _PINGPONG else "t_max[usec]"
    if column not in row:
        raise lines.objection(number, f"a table with the column {column}")
    return lines.mean(lines.case(collective_of(what) or "-", procs, size), row[column] * 1e-6, repetitions)
