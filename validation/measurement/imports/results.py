"""Results of our own scripts (validation/measurement/scripts.py): a header, then the records of the program."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import common_name, format_hosts, mapped_by_blocks
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measured_configuration, timing_from_record
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports.reading import Lines

MARK = "collwise_script"
_VERSION = re.compile(r"Open MPI v(?P<openmpi>[^\s,]+)|MPICH Version:\s*(?P<mpich>\S+)", re.IGNORECASE)


def recognised(lines: Lines) -> bool:
    """True if one of our scripts wrote this text."""
    return lines.lines[0].startswith(f'{{"{MARK}"')


def read(lines: Lines) -> tuple[list[tuple[Configuration, list[Timing]]], int]:
    """The times of all cases that have a record, and the number of cases of the script that wrote this."""
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
        raise UsageError(f"{lines.path}: no {'hosts' if not hosts else 'records'} in it, since that run failed at once")
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
    """The library's name and version, as on this machine, from the words by which it describes itself."""
    known = _VERSION.search(library)
    if known is None:
        return library.strip()
    return f"Open MPI {known['openmpi']}" if known["openmpi"] else f"MPICH {known['mpich']}"


def _timing(lines: Lines, number: int, record: dict[str, Any], cases: list[Case]) -> dict[int, Timing]:
    position = record.get("id")
    if not isinstance(position, int) or not 0 <= position < len(cases):
        raise lines.objection(number, f"a record with an id from 0 to {len(cases) - 1}, or a host,")
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
        raise lines.objection(number, "a JSON object") from None
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
