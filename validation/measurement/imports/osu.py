"""Output of the OSU micro-benchmarks: collectives, with and without -f, and osu_latency. Times in microseconds."""

from __future__ import annotations

import re

from collwise.simulator.timing import Configuration, Timing
from collwise.validation.measurement.imports.reading import (
    Lines,
    MissingFacts,
    configuration,
    imported_case,
    roundtrip_case,
)

_TITLE = re.compile(r"^\s*#\s*OSU MPI (?P<what>.+?) (?:Latency )?Test(?:\s+v?(?P<version>[\d.]+))?\s*$")
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
_LATENCY = "osu_latency"


def recognised(lines: Lines) -> bool:
    """Whether a file is such output."""
    return lines.any_matches(_TITLE)


def read(lines: Lines, missing: MissingFacts) -> list[tuple[Configuration, list[Timing]]]:
    """One configuration per table: the slowest process's mean where the table has it, else the mean over processes.

    Raises UsageError naming the line.
    """
    found: list[tuple[Configuration, list[Timing]]] = []
    columns: list[str] = []
    what, version = "", ""
    for number, line in enumerate(lines.lines, 1):
        if title := _TITLE.match(line):
            what, version, columns = _benchmark(lines, number, title["what"]), title["version"] or "-", []
        elif what and (heading := _COLUMNS.match(line)):
            names = [(match[1] or match[2] or "avg").lower() for match in _NAMES.finditer(heading["rest"])]
            columns = (["size"] if heading["size"] else []) + names
            found.append((_configuration(lines, missing, what, version, columns), []))
        elif what and line.strip() and not line.lstrip().startswith("#"):
            if not columns:
                raise lines.objection(number, "the line '# Size  Avg Latency(us)' before the numbers")
            found[-1][1].append(_timing(lines, number, columns, what, missing))
    if not any(timings for _, timings in found):
        raise lines.objection(len(lines.lines) + 1, "a row of numbers")
    return found


def _benchmark(lines: Lines, number: int, what: str) -> str:
    name = what.lower().strip()
    if name == "latency" or (name == "" and "Latency" in lines.lines[number - 1]):
        return _LATENCY
    if name not in _COLLECTIVES:
        raise lines.objection(number, f"a test that is known ({', '.join(_COLLECTIVES)}, latency)")
    return _COLLECTIVES[name]


def _configuration(lines: Lines, missing: MissingFacts, what: str, version: str, columns: list[str]) -> Configuration:
    timing = "root" if what == _LATENCY else "maximum" if "max" in columns else "mean over processes"
    return configuration(missing, lines.path, f"OSU micro-benchmarks {version}", {"timing": timing})


def _timing(lines: Lines, number: int, columns: list[str], what: str, missing: MissingFacts) -> Timing:
    row = lines.numbers(number, lines.lines[number - 1].split(), columns)
    size = lines.whole(number, row.get("size", 0.0), "a size")
    repetitions = lines.whole(number, row.get("iterations", 1.0), "a number of iterations", 1)
    seconds = row.get("max", row["avg"]) * 1e-6
    unknown = float("inf")
    if what == _LATENCY:
        case = roundtrip_case(lines.procs(2, missing), size, missing)
        return Timing(case, 2 * seconds, 2 * seconds, unknown, repetitions)
    case = imported_case(what, lines.procs(0, missing), size, missing)
    return Timing(case, seconds, half_width_seconds=unknown, repetitions=repetitions)
