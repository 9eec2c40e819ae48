"""Output of the OSU micro-benchmarks: collectives, with and without -f, and osu_latency. Times in microseconds."""

from __future__ import annotations

import re

from collwise.simulator.timing import Configuration, Timing
from collwise.validation.measurement.imports.reading import Lines

TITLE = re.compile(r"^\s*#\s*OSU MPI (?P<what>.+?) (?:Latency )?Test(?:\s+v?(?P<version>[\d.]+))?\s*$")
_COLUMNS = re.compile(r"^\s*#\s*(?P<size>Size\s+)?(?P<rest>(?:Avg )?Latency ?\(us\).*)$", re.IGNORECASE)
_NAMES = re.compile(r"(Avg|Min|Max|P50|P90|P99)?\s*(?:Tail )?(?:Lat|Latency) ?\(us\)|(Iterations)", re.IGNORECASE)
# The collectives by their names in titles.
_COLLECTIVES = {
    "allgather": "allgather",
    "allgatherv": "allgatherv",
    "allreduce": "allreduce",
    "all-to-all personalized exchange": "alltoall",
    "all-to-allv personalized exchange": "alltoallv",
    "barrier": "barrier",
    "broadcast": "bcast",
    "gather": "gather",
    "gatherv": "gatherv",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "scatter": "scatter",
    "scatterv": "scatterv",
}


def read(lines: Lines) -> list[tuple[Configuration, list[Timing]]]:
    """Reads a configuration per table: the slowest process's mean if the table has it, else the mean over processes.

    Raises UsageError naming the line.
    """
    found: list[tuple[Configuration, list[Timing]]] = []
    columns: list[str] = []
    what, version = "", ""
    for number, line in enumerate(lines.lines, 1):
        if title := TITLE.match(line):
            what, version, columns = _benchmark(lines, number, title["what"]), title["version"] or "-", []
        elif what and (heading := _COLUMNS.match(line)):
            names = [(match[1] or match[2] or "avg").lower() for match in _NAMES.finditer(heading["rest"])]
            columns = (["size"] if heading["size"] else []) + names
            timing = "root" if what == "-" else "maximum" if "max" in columns else "mean over processes"
            found.append((lines.configuration(f"OSU micro-benchmarks {version}", {"timing": timing}), []))
        elif what and line.strip() and not line.lstrip().startswith("#"):
            if not columns:
                raise lines.objection(number, "the line '# Size  Avg Latency(us)' before the numbers")
            found[-1][1].append(_timing(lines, number, columns, what))
    if not any(timings for _, timings in found):
        raise lines.objection(len(lines.lines) + 1, "a row of numbers")
    return found


def _benchmark(lines: Lines, number: int, what: str) -> str:
    """The collective of a title; '-' for osu_latency."""
    name = what.lower().strip()
    if name == "latency" or (name == "" and "Latency" in lines.lines[number - 1]):
        return "-"
    if name not in _COLLECTIVES:
        raise lines.objection(number, f"a test that is known ({', '.join(_COLLECTIVES)}, latency)")
    return _COLLECTIVES[name]


def _timing(lines: Lines, number: int, columns: list[str], what: str) -> Timing:
    row = lines.numbers(number, lines.lines[number - 1].split(), columns)
    size = lines.whole(number, row.get("size", 0.0), "a size")
    repetitions = lines.whole(number, row.get("iterations", 1.0), "a number of iterations", 1)
    case = lines.case(what, lines.procs(2 if what == "-" else 0), size)
    return lines.mean(case, row.get("max", row["avg"]) * 1e-6, repetitions)
