"""Output of ReproMPI, as in Hunold & Carpen-Amarie 2018, listing 2, and its summary. Times in seconds."""

from __future__ import annotations

import re
import statistics

from collwise.simulator.sweeps.method import half_width
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports.reading import Lines, collective_of

TITLE = re.compile(r"^\s*test(?=.*\smsize(\s|$)).*\s(mean_)?runtime_sec(\s|$)")
_FACT = re.compile(r"^#@(\w+)=(.*)$")
_RUN_TIME, _MEAN = "runtime_sec", "mean_runtime_sec"
_COUNTS = ("valid_nrep", "nrep", "total_nrep")
_DETAILS = ("clocktype", "clock", "sync", "datatype", "operation")


def read(lines: Lines) -> list[tuple[Configuration, list[Timing]]]:
    """The mean of the runs of every collective and size, or the mean that a summary gives.

    Raises UsageError naming the line, also for collectives that are not known here.
    """
    facts: dict[str, str] = {}
    samples: dict[Case, list[float]] = {}
    means: dict[Case, Timing] = {}
    columns: list[str] = []
    for number, line in enumerate(lines.lines, 1):
        if match := _FACT.match(line.strip()):
            facts[match[1]] = match[2].strip()
        elif TITLE.match(line):
            columns = line.split()
        elif line.strip() and not line.lstrip().startswith("#"):
            if not columns:
                raise lines.objection(number, "the line 'test nrep msize runtime_sec' before the numbers")
            case, row = _row(lines, number, columns, facts)
            if _RUN_TIME in row:
                samples.setdefault(case, []).append(row[_RUN_TIME])
            else:
                count = next((int(row[name]) for name in _COUNTS if name in row), 1)
                means[case] = lines.mean(case, row[_MEAN], count)
    timings = [
        *means.values(),
        *(
            Timing(case, statistics.fmean(all_), half_width_seconds=half_width(all_), repetitions=len(all_))
            for case, all_ in samples.items()
        ),
    ]
    if not timings:
        raise lines.objection(len(lines.lines) + 1, "a row of numbers")
    details = {name: facts[name] for name in _DETAILS if name in facts}
    return [(lines.configuration("ReproMPI", details), timings)]


def _row(lines: Lines, number: int, columns: list[str], facts: dict[str, str]) -> tuple[Case, dict[str, float]]:
    name, *words = lines.lines[number - 1].split()
    collective = collective_of(name)
    if collective is None:
        raise lines.objection(number, "an MPI collective that is known here, such as MPI_Bcast")
    row = lines.numbers(number, words, columns[1:])
    stated = facts.get("nprocs", "0")
    if not stated.isdecimal():
        raise lines.objection(number, f"a number after #@nprocs= further up, where '{stated}' stands,")
    procs = lines.procs(int(stated))
    return lines.case(collective, procs, lines.whole(number, row["msize"], "a size")), row
