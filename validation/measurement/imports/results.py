"""Results of our own scripts (validation/scripts.py): the run there is played back to `measure`.

So what a record means is said in one place, whether the program ran here or elsewhere.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import common_name, counted
from collwise.simulator.execution.installations import Installation
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.targets import ExecutionTarget, LaunchRequest
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure, timing_from_record
from collwise.simulator.timing import Case, Timing
from collwise.validation.measurement.imports.reading import Lines

_ANY_CASE = Case("-", "-", 1, 0)
MARK = "collwise_script"
_VERSION = re.compile(r"Open MPI v(?P<openmpi>[^\s,]+)|MPICH Version:\s*(?P<mpich>\S+)", re.IGNORECASE)


@dataclass(frozen=True)
class _Elsewhere(Installation):
    """An MPI library on another machine, named as it names itself."""

    said: str = ""

    @property
    def label(self) -> str:
        """What results carry."""
        known = _VERSION.search(self.said)
        if known is None:
            return self.said.strip()
        return f"Open MPI {known['openmpi']}" if known["openmpi"] else f"MPICH {known['mpich']}"


class _Playback(ExecutionTarget):
    """An ExecutionTarget that gives back the records of a run elsewhere, under the ids of the cases asked for now."""

    eager_limit_bytes = 0

    def __init__(self, name: str, engine: Installation, facts: Mapping[str, str], records: Mapping[str, dict[str, Any]],
                 hosts: Sequence[str]) -> None:  # fmt: skip
        self.name, self.engine, self.facts = name, engine, facts
        self.usual_procs, self._records, self._hosts = len(hosts), records, hosts

    def processes_per_node(self, procs: int) -> int:
        """As it was there."""
        return min(procs, self._hosts.count(self._hosts[0]))

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """As of any ExecutionTarget."""
        run = ProgramRun(0)
        for line in Path(request.args[0]).read_text(encoding="utf-8").splitlines():
            number, _, case = line.partition(" ")
            if case in self._records:
                run.output_lines.append(json.dumps({"id": int(number)} | self._records[case]))
                if request.on_line is not None:
                    request.on_line(run.output_lines[-1])
        return run


def recognised(lines: Lines) -> bool:
    """Whether a script of ours wrote this."""
    return lines.lines[0].startswith(f'{{"{MARK}"')


def read(lines: Lines, store: Store) -> list[Timing]:
    """Stores the times of all cases that have a record, and returns them.

    Raises UsageError naming the line, before anything is stored; also when there are no records at all.
    """
    header = _header(lines)
    hosts: list[str] = []
    library = ""
    records: dict[str, dict[str, Any]] = {}
    asked: list[str] = header["case_lines"]
    for number in range(2, len(lines.lines) + 1):
        record = _object(lines, number)
        if "host" in record:
            hosts.append(str(record["host"]))
            library = str(record.get("library", ""))
            continue
        place = record.pop("id", None)
        if not isinstance(place, int) or not 0 <= place < len(asked):
            raise lines.objection(number, f"a record with an id from 0 to {len(asked) - 1}, or a host,")
        if "error" not in record and not _is_time(record.get("seconds")):
            raise lines.objection(number, 'a record with "seconds" above 0')
        try:
            timing_from_record(_ANY_CASE, record)
        except (KeyError, TypeError) as problem:
            raise lines.objection(number, f"a whole record of the benchmark program (wrong: {problem})") from None
        records[asked[place].partition(" ")[2]] = record
    if not hosts or not records:
        raise UsageError(f"{lines.path}: no {'hosts' if not hosts else 'records'} in it: the run there failed at once")
    try:
        cases = [Case(**case) for case in header["cases"]]
        method = Method(**(header["method"] | {"precision": Precision(**header["method"]["precision"])}))
    except (KeyError, TypeError) as problem:
        raise lines.objection(1, f"cases and method as a script writes them (wrong: {problem})") from None
    return _play(header, cases, method, hosts, library, records, store)


def cases_asked(lines: Lines) -> int:
    """Of the run that wrote this."""
    return len(_header(lines)["case_lines"])


def _play(
    header: dict[str, Any],
    all_cases: Sequence[Case],
    method: Method,
    hosts: list[str],
    library: str,
    records: dict[str, dict[str, Any]],
    store: Store,
) -> list[Timing]:
    per_node = hosts.count(hosts[0])
    facts = {
        "hosts": counted(hosts),
        "library": library,
        "mapping": f"{'by blocks' if _by_blocks(hosts, per_node) else 'not by blocks'}, {per_node} a node",
        "launcher": "script",
    }
    cases = [
        replace(case, processes_per_node=min(case.procs, per_node))
        for case, line in zip(all_cases, header["case_lines"], strict=True)
        if line.partition(" ")[2] in records
    ]
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        Path(directory, "benchmark").write_text(header["sources_digest"], encoding="utf-8")
        engine = _Elsewhere("-", "-", Path("mpirun"), Path(directory), library)
        place = _Playback(header["platform"] or common_name(hosts), engine, facts, records, hosts)
        return measure(place, cases, store, method=method, run=header["run"])


def _by_blocks(hosts: Sequence[str], per_node: int) -> bool:
    return all(len(set(hosts[first : first + per_node])) == 1 for first in range(0, len(hosts), per_node))


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 < value < float("inf")


def _object(lines: Lines, number: int) -> dict[str, Any]:
    try:
        found = json.loads(lines.lines[number - 1])
    except ValueError:
        raise lines.objection(number, "a JSON object") from None
    if not isinstance(found, dict):
        raise lines.objection(number, "a JSON object")
    return found


def _header(lines: Lines) -> dict[str, Any]:
    header = _object(lines, 1)
    wanted = {"cases", "case_lines", "method", "platform", "run", "sources_digest"}
    if not wanted <= set(header) or len(header["cases"]) != len(header["case_lines"]):
        raise lines.objection(1, f"the first line of a script's results, with {', '.join(sorted(wanted))}")
    return header
