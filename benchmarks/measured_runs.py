"""Makes the compressed tables of studies/machines from measured runs of others, which are not in the project.

    python benchmarks/measured_runs.py FOLDER

FOLDER has `pico/MACHINE/RUN.tar.gz` with `pico/MACHINE_metadata.csv`, `aws_c5n/*.tables.txt` (tables of notebooks of
JiaweiZhuang/aws-mpi-benchmark), `cloud_osu.csv` (medians of converged-computing/performance-study) and
`fugaku_imb/*.csv` (giordano/julia-on-fugaku). What a folder lacks is left out. The tables have medians, half-widths and
repetitions, never the iterations, logs or names of accounts. The scaling tables and the cells of statistics of AWS's
latencies are read; those that print standard deviations or repeat others are not.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from collwise.simulator.timing import Configuration, Timing
from collwise.validation.measurement.imports import pico, table
from collwise.validation.measurement.imports.reading import Lines, MissingFacts

MACHINES = Path(__file__).resolve().parents[1] / "studies" / "machines"
PICO_COMMIT = "413bc5d"
MIT = "MIT License"
OSU_MEAN = "mean over processes"

AWS = {
    "source": "JiaweiZhuang/aws-mpi-benchmark",
    "notes": "c5n.18xlarge; OSU 5.6, one run; every fourth size of each table, as its notebooks print them",
}
AWS_PROCS, AWS_PER_NODE = 288, 36
AWS_TABLES = {
    ("allreduce_summary", 7): ("allreduce", "Open MPI 3.1.4", "tcp"),
    ("allreduce_summary", 12): ("allreduce", "Open MPI 4.0.1", "tcp"),
    ("allreduce_summary", 16): ("allreduce", "MPICH 3", "tcp"),
    ("allreduce_summary", 18): ("allreduce", "Intel MPI 2019.4", "tcp"),
    ("allreduce_summary", 22): ("allreduce", "Intel MPI 2019.4", "efa"),
    ("bcast_summary", 7): ("bcast", "Open MPI 3.1.4", "tcp"),
    ("bcast_summary", 12): ("bcast", "Open MPI 4.0.1", "tcp"),
    ("bcast_summary", 16): ("bcast", "MPICH 3", "tcp"),
    ("bcast_summary", 18): ("bcast", "Intel MPI 2019.4", "tcp"),
    ("bcast_summary", 22): ("bcast", "Intel MPI 2019.4", "efa"),
    ("collective_ompi_efa", 5): ("bcast", "Open MPI 3.1.4", "efa"),
    ("collective_ompi_efa", 7): ("bcast", "Open MPI 4.0.1", "efa"),
    ("pt2pt_summary", 7): ("latency", "Intel MPI 2019.4", "efa"),
    ("pt2pt_summary", 8): ("latency", "Intel MPI 2019.4", "tcp"),
    ("pt2pt_summary", 15): ("bandwidth", "Intel MPI 2019.4", "efa"),
    ("pt2pt_summary", 16): ("bandwidth", "Intel MPI 2019.4", "tcp"),
}
"""The collective, library and transport of tables by file and notebook cell."""
AWS_SCALING = {"allreduce_scaling": "allreduce", "bcast_scaling": "bcast"}
Row = tuple[str, str, int, int, int, float]
"""Collective, algorithm, P, processes per node, bytes, microseconds."""


def main(folder: Path) -> None:
    """Writes all tables that the folder has runs for, and says how large they are."""
    MACHINES.mkdir(exist_ok=True)
    for name, configuration, timings in (*of_pico(folder), *of_aws(folder), *of_cloud(folder), *of_imb(folder)):
        data = gzip.compress(table.text_of(configuration, timings).encode(), mtime=0)
        (MACHINES / f"{name}.csv.gz").write_bytes(data)
        print(f"{name}: {len(timings)} times, {sum(not one.ok for one in timings)} marked, {len(data)} bytes")


def of_pico(folder: Path) -> Iterator[tuple[str, Configuration, list[Timing]]]:
    """The runs of PICO's archives."""
    for archive in sorted(folder.glob("pico/*/*.tar.gz")):
        about = (("commit", PICO_COMMIT),)
        for number, (configuration, timings) in enumerate(pico.read(archive, MissingFacts(about=about))):
            job = dict(configuration.details)["job"]
            yield f"{configuration.platform}-{job}" + (f"-{number}" if number else ""), configuration, timings


def of_aws(folder: Path) -> Iterator[tuple[str, Configuration, list[Timing]]]:
    """The tables of AWS's notebooks by library and transport."""
    rows: dict[tuple[str, str], list[Row]] = {}
    for file in sorted(folder.glob("aws_c5n/*.tables.txt")):
        name = file.name.removesuffix(".tables.txt")
        for cell, titles, lines in notebook_tables(file):
            if (name, cell) in AWS_TABLES:
                what, library, transport = AWS_TABLES[name, cell]
                rows.setdefault((library, transport), []).extend(aws_rows(what, titles, lines))
            elif name in AWS_SCALING:
                found = [
                    (AWS_SCALING[name], table.DEFAULT, int(procs), AWS_PER_NODE, int(size), float(time))
                    for size, *times in lines
                    for procs, time in zip(titles, times, strict=True)
                ]
                rows.setdefault(("Intel MPI 2019.4", "efa"), []).extend(found)
    licence = licence_of(folder / "aws_c5n")
    for (library, transport), found in sorted(rows.items()):
        # Intel MPI's own decision on 288 processes is in its scaling and in its table of forced algorithms.
        once = {row[:5]: row for row in found}
        facts = {**AWS, "timing": OSU_MEAN, "licence": licence, "transport": transport}
        name = f"aws_c5n-{library.lower().replace(' ', '_')}-{transport}"
        yield name, *converted(name, "aws_c5n", library, facts, list(once.values()))


def aws_rows(what: str, titles: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[Row]:
    """The rows of a table of forced algorithms, whose columns are 'default' and 'N. name', or of statistics."""
    for size, *values in lines:
        if what in ("latency", "bandwidth"):
            yield point(what, int(size), float(values[titles.index("median")]))
            continue
        for title, value in zip(titles, values, strict=True):
            number = title.partition(".")[0]
            if number != "0":  # id 0 is the library's decision once more
                yield what, number, AWS_PROCS, AWS_PER_NODE, int(size), float(value)


def of_cloud(folder: Path) -> Iterator[tuple[str, Configuration, list[Timing]]]:
    """The medians over runs of Google Compute Engine, by the size of the cluster."""
    rows: dict[str, list[Row]] = {}
    for file in folder.glob("cloud_osu.csv"):
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            size, value = int(row["bytes"]), float(row["median"])
            procs, ppn = int(row["nodes"]) * int(row["ppn"]), int(row["ppn"])
            if row["test"] == "Allreduce":
                rows.setdefault(row["size"], []).append(("allreduce", table.DEFAULT, procs, ppn, size, value))
            else:
                rows.setdefault(row["size"], []).append(point(row["test"].lower(), size, value))
    for size, found in sorted(rows.items()):
        facts = {
            "source": "converged-computing/performance-study",
            "licence": MIT,
            "timing": OSU_MEAN,
            "job": f"cluster of {size} nodes",
            "notes": "OSU 5.8; medians over runs; the library is 4.1.2 to 4.1.4",
        }
        name = f"google_compute-{size}"
        yield name, *converted(name, "google_compute", "Open MPI 4.1", facts, found)


def of_imb(folder: Path) -> Iterator[tuple[str, Configuration, list[Timing]]]:
    """The runs of the Intel MPI Benchmarks on Fugaku, by who ran them; a size of 0 does nothing in an allreduce."""
    licence = licence_of(folder / "fugaku_imb")
    for who in ("riken", "julia"):
        rows: list[Row] = []
        for what, column in (("allreduce", {"riken": 1, "julia": 3}[who]), ("pingpong", {"riken": 1, "julia": 2}[who])):
            for file in folder.glob(f"fugaku_imb/{who}_imb_{what}.csv"):
                for line in file.read_text(encoding="utf-8").splitlines()[1:]:
                    values = line.split(",")
                    size, time = int(values[0]), float(values[column]) * 1e6
                    if what == "pingpong":
                        rows.append(point("latency", size, time))
                    elif size:
                        rows.append((what, table.DEFAULT, 1536, 4, size, time))
        if rows:
            facts = {
                "source": "giordano/julia-on-fugaku",
                "licence": licence,
                "timing": "back to back, slowest process" if who == "julia" else "back to back",
                "notes": "384 nodes of a 4 x 6 x 16 torus; IMB, run by " + {"riken": "RIKEN", "julia": "MPI.jl"}[who],
            }
            name = f"fugaku-imb_{who}"
            yield name, *converted(name, "fugaku", "Fujitsu MPI", facts, rows)


def point(what: str, size: int, value: float) -> Row:
    """The row of a latency in microseconds, or of a bandwidth in MB/s as the time of its 64 messages."""
    if what == "latency":
        return (table.LATENCY, "", 2, 1, size, value)
    return (table.STREAM, "", 2, 1, size, table.STREAM_COUNT * size / value)


def converted(
    name: str, machine: str, library: str, facts: Mapping[str, str], rows: Sequence[Row]
) -> tuple[Configuration, list[Timing]]:
    """Rows read as a table, so that cells that cannot be are marked as everywhere."""
    head = [f"# {key}: {value}" for key, value in {"machine": machine, "library": library, **facts}.items() if value]
    body = ["collective,algorithm,procs,ppn,bytes,us", *(",".join(map(str, row)) for row in rows)]
    lines = Lines(Path(name), (*head, *body), MissingFacts())
    ((configuration, timings),) = table.read(lines)
    return configuration, timings


def notebook_tables(file: Path) -> Iterator[tuple[int, list[str], list[list[str]]]]:
    """The tables of a file: the notebook's cell, the titles of columns, and rows that begin with a size."""
    cells = re.split(r"^# cell ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for text in cells[1:]:
        lines = text.splitlines()
        rows = [row for row in csv.reader(lines[2:]) if row and row[0].isdecimal()]
        yield int(lines[0].partition(";")[0]), next(csv.reader([lines[1]]))[1:], rows


def licence_of(folder: Path) -> str:
    """The name of a licence and its copyright line."""
    file = folder / "LICENSE"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return "; ".join([MIT, *(line.strip() for line in lines if line.strip().startswith("Copyright (c)"))])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
