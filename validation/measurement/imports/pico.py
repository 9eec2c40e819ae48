"""Runs of PICO (HLC-Lab): an archive or a folder, the metadata next to it, and the ranks' hosts.

A run has files RUN/TEST/COUNT_ALGORITHM_TYPE.csv, with one line for each iteration. The column `highest` is the longest
time over all ranks after a barrier, in nanoseconds. The whole buffer has COUNT elements. Gather, scatter, allgather and
alltoall have blocks of COUNT / P elements. Archives are never unpacked onto the disk.
"""

from __future__ import annotations

import csv
import io
import lzma
import math
import re
import statistics
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from collwise.common.errors import UsageError
from collwise.platforms.allocation import hosts_of_ranks
from collwise.simulator.execution.cluster import format_hosts
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports.algorithms import doubted, mpich_choice, openmpi_choice
from collwise.validation.measurement.imports.reading import LONGEST_SECONDS, NOT_READ, MissingFacts, collective_of
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of

SUFFIXES = (".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.bz2", ".zip")
_LARGEST_BYTES = 256 << 20
TIMING = "maximum over processes after a barrier, median of iterations"
SOURCE = "HLC-Lab/pico"
_RESULT = re.compile(
    r"(?:.*/)?(?P<run>[^/]+)/(?P<test>\d+)/(?P<count>\d+)_(?P<algorithm>[^/]+)_"
    r"(?P<type>int8|int16|int32|int64|float|double|char)\.csv"
)
_BYTES = {"int8": 1, "char": 1, "int16": 2, "int32": 4, "float": 4, "int64": 8, "double": 8}
_ALLOCATION = re.compile(r"(?:.*/)?(?P<run>[^/]+)/alloc(?:_\d+)?\.csv")
_METADATA = "_metadata.csv"
_NEEDED = ("timestamp", "test_id", "nnodes", "tasks_per_node", "collective_type", "mpi_lib", "mpi_lib_version")
_LIBRARIES = {"OMPI": "Open MPI", "CRAY_MPICH": "Cray MPICH", "MPICH": "MPICH", "FJMPI": "Fujitsu MPI"}
_FUJITSU = "FJMPI"
_BLOCKS = ("gather", "scatter", "allgather", "alltoall")
_WARM_UP_SHARE = 5
_REFUSED = "invalid-value"
_SUMMARY = "Average runtime"
"""The beginning of the last line of files from Fugaku. The line may be cut off anywhere."""
_NS = 1e-9
_Z = 1.96


_Metadata = Mapping[tuple[str, str], tuple[str, dict[str, str]]]
"""The machine and the row of each test, by run and test."""


@dataclass(frozen=True)
class _Test:
    """The metadata of a test: its library, its collective, and the host of each rank."""

    machine: str
    row: Mapping[str, str]
    collective: str
    hosts: tuple[str, ...]
    counted: bool

    @property
    def procs(self) -> int:
        return len(self.hosts)

    @property
    def per_node(self) -> int:
        return max(Counter(self.hosts).values())

    @property
    def library(self) -> str:
        name = self.row["mpi_lib"]
        return f"{_LIBRARIES.get(name, name)} {self.row['mpi_lib_version']}"


def read(path: Path, missing: MissingFacts, values: bool = True) -> list[tuple[Configuration, list[Timing]]]:
    """The times of all runs in a folder or an archive, by configuration. Impossible cells are marked.

    By default, the platform's name is the first part of the metadata file's name. If `values` is false, files with
    times are not read; each cell has the error NOT_READ.
    """
    files = files_in(path)
    tests: dict[tuple[str, str], list[tuple[re.Match[str], str]]] = {}
    for name in files:
        if match := _RESULT.fullmatch(name):
            tests.setdefault((match["run"], match["test"]), []).append((match, name))
    if not tests:
        raise UsageError(f"{path}: contains no results of PICO (RUN/TEST/COUNT_ALGORITHM_int32.csv); name other files")
    metadata, licence = _metadata(path, files), _licence(path)
    found: dict[Configuration, list[Timing]] = {}
    for (run, number), results in sorted(tests.items(), key=lambda each: (each[0][0], int(each[0][1]))):
        test = _test(path, files, metadata, run, number)
        configuration = _configuration(test, run, missing, licence, _operation(metadata, run))
        timings: dict[Case, Timing] = {}
        for match, name in sorted(results, key=lambda each: (int(each[0]["count"]), each[0]["algorithm"])):
            timing = _timing(path, files, name, match, test, values)
            timings[timing.case] = timing
        element_bytes = max(_BYTES[match["type"]] for match, _ in results)
        whole = doubted(list(timings.values()), test.library, to_last=True, element_bytes=element_bytes)
        found.setdefault(configuration, []).extend(whole)
    return list(found.items())


def _operation(metadata: _Metadata, run: str) -> str:
    """The operations of a run's reductions, which every test of the run records."""
    rows = [row for (name, _), (_, row) in metadata.items() if name == run]
    return ", ".join(dict.fromkeys(one for row in rows if (one := row.get("MPI_Op", "")) not in ("", "null")))


def _configuration(test: _Test, run: str, missing: MissingFacts, licence: str, operation: str) -> Configuration:
    facts = {
        "job": run,
        "timing": TIMING,
        "hosts": format_hosts(test.hosts) if test.counted else f"{test.row['nnodes']}, not counted",
        "source": SOURCE,
        "licence": licence,
        "notes": test.row.get("notes", ""),
        "operation": operation,
        **dict(missing.about),
    }
    kept = {name: value for name, value in facts.items() if value not in ("", "null")}
    return Configuration("measured", missing.platform or test.machine, test.library, tuple(sorted(kept.items())))


def _metadata(path: Path, files: Mapping[str, bytes]) -> _Metadata:
    """The rows of all metadata, in the run, next to it, and in the folder above."""
    texts = [(name, _text(path, name, data)) for name, data in files.items() if name.endswith(_METADATA)]
    outside = [file for folder in path.resolve().parents[:2] for file in sorted(folder.glob(f"*{_METADATA}"))]
    texts += [(str(file), _text(file, file.name, file.read_bytes())) for file in outside]
    found: dict[tuple[str, str], tuple[str, dict[str, str]]] = {}
    for name, text in reversed(texts):
        reader = csv.DictReader(io.StringIO(text))
        lacking = [column for column in _NEEDED if column not in (reader.fieldnames or ())]
        if lacking:
            raise UsageError(f"{name}:1: expected PICO's metadata; it has no column {', '.join(lacking)}")
        machine = PurePosixPath(name).name.removesuffix(_METADATA)
        for row in reader:
            found[row["timestamp"], row["test_id"]] = machine, {key: row[key] or "" for key in row if key}
    return found


def _test(path: Path, files: Mapping[str, bytes], metadata: _Metadata, run: str, number: str) -> _Test:
    if (run, number) not in metadata:
        places = f"in MACHINE{_METADATA}, in the run, next to it or in the folder above"
        raise UsageError(f"{path}: no metadata of test {number} of run {run}; expected a row {places}")
    machine, row = metadata[run, number]
    collective = collective_of(row["collective_type"])
    nodes = re.findall(r"\d+", row["nnodes"])
    if collective is None or not nodes or not row["tasks_per_node"].isdecimal():
        what = ", ".join(f"{name} '{row[name]}'" for name in ("collective_type", "nnodes", "tasks_per_node"))
        raise UsageError(f"{machine}{_METADATA}: test {number} of run {run}: {what}; expected a collective and numbers")
    said = math.prod(map(int, nodes)) * int(row["tasks_per_node"])
    matches = filter(None, map(_ALLOCATION.fullmatch, files))
    names = [match[0] for match in matches if match["run"] == run]
    allocations = {name: _hosts(path, name, _text(path, name, files[name])) for name in names}
    fitting = [hosts for hosts in allocations.values() if len(hosts) == said] or list(allocations.values())
    if len(fitting) > 1:
        raise UsageError(f"{path}: test {number} of run {run}: none of {', '.join(allocations)} has {said} ranks")
    per_node = int(row["tasks_per_node"])
    hosts = fitting[0] if fitting else tuple(f"n{rank // per_node}" for rank in range(said))
    return _Test(machine, row, collective, hosts, counted=bool(fitting))


def _hosts(path: Path, name: str, text: str) -> tuple[str, ...]:
    lines = [(f"{path}: {name}:{number}", line) for number, line in enumerate(text.splitlines(), start=1)]
    return tuple(host.partition(".")[0] for _, host in hosts_of_ranks(lines, f"{path}: {name}").values())


def _timing(
    path: Path, files: Mapping[str, bytes], name: str, match: re.Match[str], test: _Test, wanted: bool
) -> Timing:
    count, whole = int(match["count"]), test.collective not in _BLOCKS
    elements = count if whole else count // test.procs
    size = elements * _BYTES[match["type"]]
    choice = _choice(test, match["algorithm"])
    case = case_of(test.collective, choice, test.procs, size, test.per_node)
    if not wanted:
        return Timing(case, math.nan, error=NOT_READ)
    values = _values(path, name, _text(path, name, files[name]))
    if not values:
        return Timing(case, math.nan, error="no iteration was written")
    kept = values if test.row["mpi_lib"] == _FUJITSU else values[len(values) // _WARM_UP_SHARE :]
    median = statistics.median(kept) * _NS
    complaint = files.get(name.removesuffix(".csv") + ".err", b"")
    reason = ""
    if elements == 0:
        reason = f"{count} elements for {test.procs} processes: no whole block"
    elif _REFUSED.encode() in complaint:
        reason = "the library refused the name of the algorithm: its own decision ran"
    elif complaint.strip():
        reason = "an error was printed beside the times"
    return Timing(
        case, math.nan if reason else median, half_width_seconds=_half_width(kept) * _NS, repetitions=len(kept),
        error=reason, median_seconds=median, least_seconds=min(kept) * _NS, greatest_seconds=max(kept) * _NS,
    )  # fmt: skip


def _choice(test: _Test, algorithm: str) -> Choice:
    """The choice that a file's name stands for. Implementations that are not the library's keep their own names."""
    prefix, _, fujitsu = algorithm.partition("-")
    if test.row["mpi_lib"] == _FUJITSU and prefix == "default":
        name, library = fujitsu, "ompi"
    else:
        name, _, library = algorithm.rpartition("_")
    if name == "default":
        return LIBRARY_DECIDES
    found = None
    if library == "ompi":
        found = openmpi_choice(test.collective, name, test.procs, by_rules=prefix != "default")
    elif library == "mpich":
        found = mpich_choice(test.collective, name)
    return found or Choice(algorithm)


def _values(path: Path, name: str, text: str) -> list[float]:
    """The nanoseconds of all iterations; empty if the program ended before it wrote any."""
    lines = text.splitlines()
    if not lines:
        return []
    columns = lines[0].split(",")
    if "highest" not in columns:
        raise UsageError(f"{path}: {name}:1: expected a column 'highest', not '{','.join(columns)[:80]}'")
    place = columns.index("highest")
    if _SUMMARY.startswith(lines[-1][: len(_SUMMARY)]):
        lines.pop()
    found = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split(",")
        try:
            value = float(words[place]) if len(words) == len(columns) else math.nan
        except ValueError:
            value = math.nan
        if not 0 <= value <= LONGEST_SECONDS / _NS:
            raise UsageError(
                f"{path}: {name}:{number}: expected a time in nanoseconds, at most an hour, not '{line[:80]}'"
            )
        found.append(value)
    return found


def _half_width(values: Sequence[float]) -> float:
    """Half of the 95 % confidence interval of the median, by order statistics; infinite for a single value."""
    ordered, number = sorted(values), len(values)
    if number == 1:
        return math.inf
    reach = _Z * math.sqrt(number) / 2
    low = max(math.floor(number / 2 - reach), 0)
    high = min(math.ceil(number / 2 + reach), number - 1)
    return (ordered[high] - ordered[low]) / 2


def _licence(path: Path) -> str:
    """The first line and the copyright line of the licence next to the run or in the folder above."""
    for folder in path.resolve().parents[:2]:
        file = folder / "LICENSE"
        if file.is_file():
            lines = [line.strip() for line in _text(file, file.name, file.read_bytes()).splitlines() if line.strip()]
            return "; ".join([*lines[:1], *(line for line in lines[1:] if line.startswith("Copyright"))][:2])
    return ""


def _text(path: Path, name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: {name}: not text") from None


def is_archive(path: Path) -> bool:
    """True if the file's name ends like an archive's."""
    return path.name.endswith(SUFFIXES)


_Member = tuple[str, int, Callable[[], bytes]]
"""A file in a folder or an archive: its name there, its bytes, and a function that reads it."""


def files_in(path: Path) -> dict[str, bytes]:
    """The contents of all files of a folder or an archive, by their names in it.

    The names of a folder's files begin with the folder's name. Raises UsageError, in one line, for a truncated or
    damaged archive, for names and links that lead out of the archive or folder, and for files above 256 MiB.
    """
    members = _in_folder if path.is_dir() else _in_zip if path.suffix == ".zip" else _in_tar
    found = {}
    try:
        for name, size, read in members(path):
            if size > _LARGEST_BYTES:
                raise UsageError(f"{path}: {name} has {size} bytes; results have at most {_LARGEST_BYTES}")
            found[name] = read()
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror or problem}") from None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError) as problem:
        raise UsageError(f"{path}: truncated or damaged archive ({problem}); nothing was read") from None
    return found


def _in_folder(path: Path) -> Iterator[_Member]:
    root = path.resolve()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            name = file.relative_to(path).as_posix()
            if not file.resolve().is_relative_to(root):
                raise _outside(path, name)
            yield f"{root.name}/{name}", file.stat().st_size, file.read_bytes


def _in_tar(path: Path) -> Iterator[_Member]:
    def content(member: tarfile.TarInfo) -> bytes:
        file = archive.extractfile(member)
        read = file.read() if file is not None else b""
        if len(read) != member.size:
            raise EOFError(f"the end is missing in {member.name}")
        return read

    with tarfile.open(path) as archive:
        for member in archive:
            _check(path, member.name)
            if not (member.isfile() or member.isdir()):
                raise _outside(path, member.name)
            if member.isfile():
                yield member.name, member.size, partial(content, member)


def _in_zip(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            _check(path, member.filename)
            if not member.is_dir():
                yield member.filename, member.file_size, partial(archive.read, member)


def _check(path: Path, name: str) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in name.partition("/")[0]:
        raise _outside(path, name)


def _outside(path: Path, name: str) -> UsageError:
    return UsageError(f"{path}: '{name}' leads out of the archive; expected a whole archive of files and folders")
