"""Readers of other programs' output. Each raises UsageError, naming the line, for text that it cannot read."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

from collwise.common.experiments import PRTT
from collwise.simulator.sweeps.method import half_width
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports.reading import (
    COLLECTIVES,
    LONGEST_SECONDS,
    STREAM_COUNT,
    Lines,
    collective_of,
)

Found = list[tuple[Configuration, list[Timing]]]

_OSU_TITLE = re.compile(r"^\s*#\s*OSU MPI (?P<what>.+?) (?:Latency )?Test(?:\s+v?(?P<version>[\d.]+))?\s*$")
_OSU_COLUMNS = re.compile(
    r"^\s*#\s*(?P<size>Size\s+)?(?P<rest>(?:(?:Avg )?Latency ?\(us\)|Bandwidth ?\(MB/s\)).*)$", re.IGNORECASE
)
_OSU_NAMES = re.compile(
    r"(Avg|Min|Max|P50|P90|P99)?\s*(?:Tail )?(?:Lat|Latency) ?\(us\)|(Bandwidth|Iterations|Validation)", re.IGNORECASE
)
_TAG = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>: ?|\d+: )")
_LAUNCH = re.compile(r"(?:mpirun|mpiexec|srun|prterun|aprun|jsrun)\b.*?\s(?:-np?|--np|--ntasks|--n)[ =](\d+)\b.*\bosu_")
_LATENCY, _STREAM = "-", "bandwidth"
# Collectives by their names in titles, if these names differ from MPI's.
_OSU_COLLECTIVES = {
    "broadcast": "bcast",
    "all-to-all personalized exchange": "alltoall",
    "all-to-allv personalized exchange": "alltoallv",
}


def _read_osu(lines: Lines) -> Found:
    """The times in output of the OSU micro-benchmarks: collectives (with or without -f), osu_latency and osu_bw.

    Logs of jobs may also contain launchers' marks before lines, other text, and the commands that started a benchmark,
    from which P is read. Times are in microseconds, rates in MB/s; times are of the slowest process, or means.
    """
    found: Found = []
    columns: list[str] = []
    what, version = "", ""
    given = lines = replace(lines, lines=tuple(_TAG.sub("", line) for line in lines.lines))
    for number, line in enumerate(lines.lines, 1):
        if launch := _LAUNCH.search(line):
            lines = replace(given, missing=replace(given.missing, procs=given.procs(int(launch[1]))))
            what = ""
        elif title := _OSU_TITLE.match(line):
            what, version, columns = _osu_benchmark(lines, number, title["what"]), title["version"] or "-", []
        elif what and (heading := _OSU_COLUMNS.match(line)):
            names = [(match[1] or match[2] or "avg").lower() for match in _OSU_NAMES.finditer(heading["rest"])]
            columns = (["size"] if heading["size"] else []) + names
            timing = "root" if what in (_LATENCY, _STREAM) else "maximum" if "max" in columns else "mean over processes"
            found.append((lines.configuration(f"OSU micro-benchmarks {version}", {"timing": timing}), []))
        elif what and not line.strip() and found and found[-1][1]:
            what = ""
        elif what and line.strip()[:1].isdigit():
            if not columns:
                raise lines.objection(number, "the line '# Size  Avg Latency(us)' before the numbers")
            found[-1][1].append(_osu_timing(lines, number, columns, what))
    if not any(timings for _, timings in found):
        raise lines.objection(len(lines.lines) + 1, "a row of numbers")
    return found


def _osu_benchmark(lines: Lines, number: int, what: str) -> str:
    """The collective that a title names, or the mark that stands for osu_latency or osu_bw."""
    name = what.lower().strip()
    if name == "latency" or (name == "" and "Latency" in lines.lines[number - 1]):
        return _LATENCY
    if name == "bandwidth":
        return _STREAM
    if collective := _OSU_COLLECTIVES.get(name) or collective_of(name):
        return collective
    raise lines.objection(
        number, f"a known test ({', '.join((*COLLECTIVES.values(), *_OSU_COLLECTIVES))}, latency, bandwidth)"
    )


def _osu_timing(lines: Lines, number: int, columns: list[str], what: str) -> Timing:
    words = lines.lines[number - 1].split()
    passed = True
    if "validation" in columns and len(words) == len(columns):
        place = columns.index("validation")
        passed = words.pop(place) == "Pass"
        columns = [name for name in columns if name != "validation"]
    row = lines.numbers(number, words, columns)
    size = lines.whole(number, row.get("size", 0.0), "a size")
    repetitions = lines.whole(number, row.get("iterations", 1.0), "a number of iterations", 1)
    if what == _STREAM:
        if not (size and row["bandwidth"]):
            raise lines.objection(number, "a size and a rate above 0")
        seconds = STREAM_COUNT * size / (row["bandwidth"] * 1e6)
        timing = lines.mean(lines.stream(size), seconds, repetitions)
    else:
        case = lines.case(what, lines.procs(2 if what == _LATENCY else 0), size)
        timing = lines.mean(case, row["max" if "max" in row else "avg"] * 1e-6, repetitions)
    return timing if passed else replace(timing, seconds=math.nan, error="the benchmark found wrong data")


_IMB_TITLE = re.compile(r"^\s*#\s*Benchmarking\s+(\S+)")
_IMB_PROCS = re.compile(r"^\s*#\s*#processes\s*=\s*(\d+)")
_IMB_COLUMNS = re.compile(r"^\s*(#bytes\s+)?#repetitions\s")
_IMB_VERSION = re.compile(r"^\s*#\s*Intel ?\(R\) MPI Benchmarks?(?: Suite)?\s+V?(.+?)(?:,|\s*$)")
_IMB_PINGPONG = "PingPong"


def _read_imb(lines: Lines) -> Found:
    """The times in output of the Intel MPI Benchmarks, IMB-MPI1, which are in microseconds.

    Only tables of known collectives (the slowest process's mean) and of PingPong (half of a roundtrip) are read.
    """
    version = next((match[1] for line in lines.lines if (match := _IMB_VERSION.match(line))), "-")
    maker = lines.configuration(f"IMB-MPI1 {version}", {"timing": "maximum"})
    timings: list[Timing] = []
    columns: list[str] = []
    what, procs = "", 0
    for number, line in enumerate(lines.lines, 1):
        if title := _IMB_TITLE.match(line):
            what, procs, columns = title[1], 0, []
        elif stated := _IMB_PROCS.match(line):
            procs = int(stated[1])
        elif _IMB_COLUMNS.match(line):
            columns = line.split()
        elif not line.strip() or line.lstrip().startswith("#"):
            columns = columns if line.strip() else []
        elif columns and (what == _IMB_PINGPONG or collective_of(what) is not None):
            if procs < 1:
                raise lines.objection(number, "the line '# #processes = P' before the numbers")
            timings.append(_imb_timing(lines, number, columns, what, procs))
    if not timings:
        raise lines.objection(len(lines.lines) + 1, "a table of a collective, or of PingPong")
    return [(maker, timings)]


def _imb_timing(lines: Lines, number: int, columns: list[str], what: str, procs: int) -> Timing:
    row = lines.numbers(number, lines.lines[number - 1].split(), columns)
    size = lines.whole(number, row.get("#bytes", 0.0), "a size")
    repetitions = lines.whole(number, row["#repetitions"], "a number of repetitions", 1)
    column = "t[usec]" if what == _IMB_PINGPONG else "t_max[usec]"
    if column not in row:
        raise lines.objection(number, f"a table with the column {column}")
    return lines.mean(lines.case(collective_of(what) or "-", procs, size), row[column] * 1e-6, repetitions)


_REPRO_TITLE = re.compile(r"^\s*test(?=.*\smsize(\s|$)).*\s(mean_)?runtime_sec(\s|$)")
_REPRO_FACT = re.compile(r"^#@(\w+)=(.*)$")


def _read_repro(lines: Lines) -> Found:
    """The times in output of ReproMPI (Hunold & Carpen-Amarie 2018, listing 2) or in its summary, which are in seconds.

    Times are means. Runs with an error code do not count, since they did not begin in their window.
    """
    facts: dict[str, str] = {}
    samples: dict[Case, list[float]] = {}
    means: dict[Case, Timing] = {}
    columns: list[str] = []
    for number, line in enumerate(lines.lines, 1):
        if match := _REPRO_FACT.match(line.strip()):
            facts[match[1]] = match[2].strip()
        elif _REPRO_TITLE.match(line):
            columns = line.split()
        elif line.strip() and not line.lstrip().startswith("#"):
            if not columns:
                raise lines.objection(number, "the line 'test nrep msize runtime_sec' before the numbers")
            case, row = _repro_row(lines, number, columns, facts)
            if "runtime_sec" in row:
                valid = samples.setdefault(case, [])
                valid += [] if row.get("errorcode") else [row["runtime_sec"]]
            else:
                counts = [int(row[name]) for name in ("valid_nrep", "nrep", "total_nrep") if name in row]
                means[case] = lines.mean(case, row["mean_runtime_sec"], next(iter(counts), 1))
    timings = list(means.values())
    for case, valid in samples.items():
        if valid:
            mean, width = statistics.fmean(valid), half_width(valid)
            timings.append(Timing(case, mean, half_width_seconds=width, repetitions=len(valid)))
        else:
            timings.append(Timing(case, math.nan, error="no run began in its window"))
    if not timings:
        raise lines.objection(len(lines.lines) + 1, "a row of numbers")
    names = ("clocktype", "clock", "sync", "datatype", "operation")
    details = {name: facts[name] for name in names if name in facts}
    return [(lines.configuration("ReproMPI", details), timings)]


def _repro_row(lines: Lines, number: int, columns: list[str], facts: dict[str, str]) -> tuple[Case, dict[str, float]]:
    name, *words = lines.lines[number - 1].split()
    collective = collective_of(name)
    if collective is None:
        raise lines.objection(number, "a known MPI collective, such as MPI_Bcast")
    row = lines.numbers(number, words, columns[1:])
    stated = facts.get("nprocs", "0")
    if not stated.isdecimal():
        raise lines.objection(number, f"a number after #@nprocs= in an earlier line, where '{stated}' stands")
    procs = lines.procs(int(stated))
    return lines.case(collective, procs, lines.whole(number, row["msize"], "a size")), row


_NETGAUGE_TITLE = re.compile(r"^#\s*size n PRTT\(1,0,s\) PRTT\(n,0,s\) PRTT\(n,PRTT\(1,0,s\),s\) L o_s o_r g G lsqu")
_NETGAUGE_COLUMNS = ["size", "n", "prtt_1_0", "prtt_n_0", "prtt_n_d", "L", "o_s", "o_r", "g", "G", "lsqu"]


def _read_netgauge(lines: Lines) -> Found:
    """The times in a file of netgauge's pattern loggp (netgauge -x loggp -o FILE), which are in microseconds.

    The columns PRTT(n, d, s) are experiments: n messages of s bytes with a delay d between them, then one message back.
    The columns L, o, g and G, which netgauge computes from these, are not read. The last row of a size counts.
    """
    timings: dict[Case, Timing] = {}
    for number, line in enumerate(lines.lines, 1):
        if line.strip()[:1].isdigit() or line.strip().startswith("-"):
            words = line.split()
            row = lines.numbers(number, words[:5], _NETGAUGE_COLUMNS[:5])
            if len(words) != len(_NETGAUGE_COLUMNS):
                raise lines.objection(number, f"{len(_NETGAUGE_COLUMNS)} columns ({', '.join(_NETGAUGE_COLUMNS)})")
            size = lines.whole(number, row["size"], "a size")
            count = lines.whole(number, row["n"], "a number of messages", 1)
            delays = (("prtt_1_0", 1, 0.0), ("prtt_n_0", count, 0.0), ("prtt_n_d", count, row["prtt_1_0"] * 1e-6))
            for name, sent, delay in delays:
                seconds = row[name] * 1e-6
                if not 0 < seconds < LONGEST_SECONDS:
                    raise lines.objection(number, "microseconds above 0, up to an hour")
                case = Case("-", "-", 2, size, experiment=PRTT, reply_bytes=size, count=sent, delay_seconds=delay)
                timings[case] = Timing(case, seconds, seconds, math.inf)
    if not timings:
        raise lines.objection(len(lines.lines) + 1, "a row of numbers")
    return [(lines.configuration("netgauge loggp", {}), list(timings.values()))]


READERS: Mapping[re.Pattern[str], Callable[[Lines], Found]] = {
    _OSU_TITLE: _read_osu,
    _IMB_TITLE: _read_imb,
    _REPRO_TITLE: _read_repro,
    _NETGAUGE_TITLE: _read_netgauge,
}
"""The reader of each program, by a line that only this program's output has."""
