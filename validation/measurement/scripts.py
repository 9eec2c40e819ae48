"""Writes a shell script that measures where collwise is not installed, and reads the script's results.

The script carries the C sources and the cases, and needs bash, tar, base64 and an MPI compiler. Its results are a file
of JSON lines for `collwise times import`: a header, then the records of the program.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from string import Template
from typing import Any

from collwise.algorithms.catalogue import CATALOGUE_PATH
from collwise.algorithms.generate_registry import registry_source
from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.common.folders import SOURCES
from collwise.simulator.execution.cluster import common_name, format_hosts, mapped_by_blocks
from collwise.simulator.execution.launchers import FENCES, PMI, srun_words
from collwise.simulator.execution.processes import case_lines
from collwise.simulator.limits import check_measured_sizes
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import in_program_order, measured_configuration, timing_from_record
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports.reading import Lines

USUAL_NAME = "collwise-measure.sh"
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_PROGRAMS = Path("simulator") / "programs"
_PAYLOAD_MARKER = "COLLWISE_SOURCES"
MARK = "collwise_script"
_VERSION = re.compile(r"Open MPI v(?P<openmpi>[^\s,]+)|MPICH Version:\s*(?P<mpich>\S+)", re.IGNORECASE)
_SCRIPT = Path(__file__).with_name("measure.sh")
"""The template of the script, with placeholders such as $launcher; $$ is a dollar sign."""


def write_script(
    path: Path, cases: Sequence[Case], method: Method, *, launcher: str = "mpirun", batch: str = ""
) -> Path:
    """Writes the script and returns its path. If `path` is a folder, the script has its usual name there.

    `launcher` is a command that takes -n P, and `batch` the lines by which the script asks a batch system for nodes.
    """
    if method.launches > 1:
        raise UsageError(f"{method.launches} launches; a script makes one")
    ordered = in_program_order(set(cases))
    check_measured_sizes(ordered, on_this_machine=False)
    lines = case_lines(ordered)
    sources = dict(carried_sources())
    header = {
        MARK: 1,
        "method": asdict(method),
        "sources_digest": hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest(),
        "cases": [asdict(case) for case in ordered],
    }
    text = Template(_SCRIPT.read_text(encoding="utf-8")).substitute(
        procs=max(case.procs for case in ordered),
        cases=len(ordered),
        options=" ".join(method.options()),
        launcher=launcher,
        batch=batch,
        fences="\n".join(f'export {name}="${{{name}:-{value}}}"' for name, value in FENCES.items()),
        marker=_PAYLOAD_MARKER,
        payload=_packed(sources | {"header.json": json.dumps(header) + "\n", "cases.txt": lines}),
    )
    file = script_file(path)
    write_text(file, text)
    return file


def script_file(path: Path) -> Path:
    """The file that `write_script` writes for a path, under the usual name if the path is a folder."""
    return path / USUAL_NAME if path.is_dir() else path


def launcher_words(launcher: str, library: str, procs: int, per_node: int) -> list[str]:
    """The words that start a launcher with `per_node` processes on each node; 0 leaves the number to the launcher.

    With srun, processes are bound to cores, since by default srun binds them only if they fill a node.
    """
    if launcher == "srun":
        words = srun_words(procs, per_node, PMI[library]) if per_node else [launcher, f"--mpi={PMI[library]}"]
        return [*words, "--cpu-bind=cores"]
    if not per_node:
        return [launcher]
    return [launcher, *(("-ppn", str(per_node)) if library == "mpich" else ("--map-by", f"ppr:{per_node}:node"))]


def batch_lines(launcher: str, procs: int, per_node: int) -> str:
    """The lines by which a script for srun asks sbatch for nodes. The text is empty for other launchers."""
    if launcher != "srun" or not per_node:
        return ""
    return f"#SBATCH --exclusive --nodes={-(-procs // per_node)} --ntasks-per-node={per_node}\n"


def carried_sources() -> Iterator[tuple[str, str]]:
    """Yields path (in the repository) and text of each file from which `benchmark` and `whereabouts` are built."""
    for file in sorted((SOURCES / "algorithms").rglob("*.[ch]")):
        relative = file.relative_to(SOURCES)
        if not {"interpose", "simulated"} & set(relative.parts):
            yield str(relative), file.read_text(encoding="utf-8")
    yield "algorithms/registry.c", registry_source(tomllib.loads(CATALOGUE_PATH.read_text(encoding="utf-8")))
    programs = ("benchmark.c", "real/machine.c", "whereabouts.c")
    for file in sorted(_needed([SOURCES / _PROGRAMS / program for program in programs])):
        yield str(file.relative_to(SOURCES)), file.read_text(encoding="utf-8")


def _needed(first: Sequence[Path]) -> set[Path]:
    """These files, what they include from the programs' folders, and the sources of the included headers."""
    programs = SOURCES / _PROGRAMS
    needed: set[Path] = set()
    waiting = list(first)
    while waiting:
        file = waiting.pop()
        if file in needed:
            continue
        needed.add(file)
        for name in _INCLUDE.findall(file.read_text(encoding="utf-8")):
            places = (file.parent / name, programs / name)
            if header := next((place.resolve() for place in places if place.is_file()), None):
                # All sources of a folder form one library.
                beside = [header.with_suffix(".c")] if header.parent == programs else header.parent.glob("*.[ch]")
                waiting += [header, *(part for part in beside if part.is_file() and not _has_main(part))]
    return needed


def _has_main(file: Path) -> bool:
    return re.search(r"^int main\(", file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def _packed(files: Mapping[str, str]) -> str:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w:gz") as archive:
        for name, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return base64.encodebytes(memory.getvalue()).decode()


def is_result(lines: Lines) -> bool:
    """True if one of our scripts wrote this text."""
    return lines.lines[0].startswith(f'{{"{MARK}"')


def read_results(lines: Lines) -> tuple[list[tuple[Configuration, list[Timing]]], int]:
    """The times of all cases that have a record, and the number of all cases of the script."""
    header, cases, method = _header(lines)
    hosts: list[str] = []
    library = ""
    timings: dict[int, Timing] = {}
    for number in range(2, len(lines.lines) + 1):
        record = _object(lines, number)
        if "host" in record:
            hosts.append(str(record["host"]))
            library = str(record.get("library", ""))
        else:
            timings |= _timing(lines, number, record, cases)
    if not hosts or not timings:
        raise UsageError(f"{lines.path}: has no {'hosts' if not hosts else 'records'}; the run failed at its start")
    per_node = hosts.count(hosts[0])
    facts = {
        "program_digest": hashlib.sha256(header["sources_digest"].encode()).hexdigest(),
        "hosts": format_hosts(hosts),
        "library": library,
        "mapping": f"{'by blocks' if mapped_by_blocks(hosts, per_node) else 'not by blocks'}, {per_node} per node",
        "launcher": "script",
    }
    configuration = measured_configuration(common_name(hosts), _maker(library), method, facts)
    placed = [
        replace(timing, case=replace(timing.case, processes_per_node=min(timing.case.procs, per_node)))
        for _, timing in sorted(timings.items())
    ]
    return [(configuration, placed)], len(cases)


def _maker(library: str) -> str:
    """The library's name and version, as for runs on this machine, from the library's own description."""
    known = _VERSION.search(library)
    if known is None:
        return library.strip()
    return f"Open MPI {known['openmpi']}" if known["openmpi"] else f"MPICH {known['mpich']}"


def _timing(lines: Lines, number: int, record: dict[str, Any], cases: list[Case]) -> dict[int, Timing]:
    position = record.get("id")
    if not isinstance(position, int) or not 0 <= position < len(cases):
        raise lines.objection(number, f"a record with an id from 0 to {len(cases) - 1}, or a host")
    seconds = record.get("seconds")
    if "error" not in record and not (isinstance(seconds, (int, float)) and 0 < seconds < float("inf")):
        raise lines.objection(number, 'a record with "seconds" above 0')
    try:
        return {position: timing_from_record(cases[position], record)}
    except (KeyError, TypeError) as problem:
        raise lines.objection(number, f"a whole record of the benchmark program (wrong: {problem})") from None


def _object(lines: Lines, number: int) -> dict[str, Any]:
    try:
        found = json.loads(lines.lines[number - 1])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise lines.objection(number, "a JSON object")
    return found


def _header(lines: Lines) -> tuple[dict[str, Any], list[Case], Method]:
    header = _object(lines, 1)
    wanted = {"cases", "method", "sources_digest"}
    if not wanted <= set(header):
        raise lines.objection(1, f"the first line of a script's results, with {', '.join(sorted(wanted))}")
    try:
        cases = [Case(**case) for case in header["cases"]]
        method = Method(**(header["method"] | {"precision": Precision(**header["method"]["precision"])}))
    except (KeyError, TypeError) as problem:
        raise lines.objection(1, f"cases and method as a script writes them (wrong: {problem})") from None
    return header, cases, method
