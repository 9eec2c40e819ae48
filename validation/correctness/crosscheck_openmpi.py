"""Compares results and messages of our algorithms with those of Open MPI's own code, which Open MPI's options select.

The program `agree` calls our algorithms and Open MPI's. Open MPI's own monitoring counts the messages, separately for
Open MPI's collectives and for the program, to which our algorithms belong. Only the selected algorithm of Open MPI
sends the same messages as ours between every two processes, so equal counts also show that this algorithm ran.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.simulator.execution.installations import find_installation
from collwise.validation.correctness.crosscheck import OPENMPI_NAMES, OPENMPI_PARTS
from collwise.validation.libraries.openmpi_check import Monitored, Traffic, forcing, monitored
from collwise.validation.select.consumers import series

# An odd count, an even one and a power of two, all of which divide the sizes; and a message of fewer elements than
# processes, for which libraries often use another algorithm.
PROCS = (5, 6, 8)
SIZES = (3840, 99840)
_TINY = (6, (8,))
# Segment sizes for algorithms that segment messages: 0 (unsegmented), and a size of whole elements, so that ours and
# Open MPI's segments begin at the same places.
_SEGMENTS = (0, 1024)

_VALUES = re.compile(r'parameter "coll_tuned_(\w+)_algorithm".*?Valid values: ([^\n]*)', re.DOTALL)

# Open MPI's option for an algorithm's own parameter.
_ALGORITHM_PARAMETERS = {
    "k_chain": "chain_fanout",
    "chain": "chain_fanout",
    "knomial": "knomial_radix",
    "linear_sync": "max_requests",
}


@dataclass(frozen=True)
class OpenmpiRow:
    """An algorithm on one process count.

    Messages and bytes are sums over several sizes, and over two roots if the collective has a root.
    """

    collective: str
    algorithm: str
    openmpi_id: int
    openmpi_name: str
    procs: int
    segment_bytes: int
    message_bytes: tuple[int, ...]
    calls: int = 0
    results_agree: bool = False
    our_messages: int = 0
    their_messages: int = 0
    our_bytes: int = 0
    their_bytes: int = 0
    same_traffic: bool = False
    problem: str = ""

    ratio: ClassVar[float] = 1.0
    """Times are not compared here."""

    @property
    def differs(self) -> bool:
        """True if Open MPI's messages differ from ours."""
        return not self.same_traffic


def forced_algorithms(version: str, collective: str | None = None) -> list[Algorithm]:
    """The algorithms that this version of Open MPI ('4.1') can be made to run."""
    return [algorithm for algorithm in Catalogue.load().algorithms(collective) if version in algorithm.openmpi]


def compare_with_openmpi(
    collective: str | None = None,
    procs: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    *,
    on_algorithm: Callable[[str], object] = lambda _: None,
) -> list[OpenmpiRow]:
    """Rows by algorithm, segment size and process count; none where an algorithm does not apply.

    If a run fails or hangs, its row says why. Raises UsageError when Open MPI is missing.
    """
    version = series(find_installation("openmpi").version)
    rows = []
    for algorithm in forced_algorithms(version, collective):
        on_algorithm(f"{algorithm.collective} {algorithm.name}")
        is_barrier = algorithm.collective == "barrier"
        calls = [(count, (0,) if is_barrier else tuple(sizes or SIZES)) for count in procs or PROCS]
        if not (procs or sizes or is_barrier):
            calls.append(_TINY)
        for segment_bytes in _SEGMENTS if algorithm.part_parameter else (0,):
            rows += [
                _compare(algorithm, version, count, segment_bytes, some)
                for count, some in calls
                if count > 1 and not algorithm.objection(count)
            ]
    return rows


@cache
def openmpi_names() -> dict[str, dict[int, str]]:
    """Names of coll/tuned's algorithms by collective and id. Raises UsageError if `ompi_info` is missing."""
    command = shutil.which("ompi_info.openmpi") or shutil.which("ompi_info")
    if command is None:
        raise UsageError("ompi_info not found on PATH; it comes with Open MPI (apt-get install openmpi-bin)")
    options = ["--param", "coll", "tuned", "--level", "9"]
    text = subprocess.run([command, *options], capture_output=True, text=True, timeout=60, check=False).stdout
    return {
        collective: {int(number): name for number, name in re.findall(r'(\d+):"([^"]+)"', values)}
        for collective, values in _VALUES.findall(text)
    }


def misnamed_algorithms(collective: str | None = None) -> list[str]:
    """A line for each algorithm whose id the installed Open MPI gives to another algorithm."""
    names = openmpi_names()
    version = series(find_installation("openmpi").version)
    lines = []
    for algorithm in forced_algorithms(version, collective):
        number = algorithm.openmpi[version]
        expected = OPENMPI_NAMES.get((algorithm.collective, algorithm.name), algorithm.name)
        found = names.get(algorithm.collective, {}).get(number, "nothing")
        if found != expected:
            lines.append(f"{algorithm.collective} {algorithm.name}: Open MPI {version} calls id {number} '{found}'")
    return lines


def _compare(algorithm: Algorithm, version: str, procs: int, segment_bytes: int, sizes: tuple[int, ...]) -> OpenmpiRow:
    number = algorithm.openmpi[version]
    name = openmpi_names().get(algorithm.collective, {}).get(number, "")
    found = (algorithm.collective, algorithm.name, number, name, procs, segment_bytes, sizes)
    settings = _settings(algorithm, version, segment_bytes)
    for part in OPENMPI_PARTS.get((algorithm.collective, algorithm.name), ()):
        settings |= _settings(Catalogue.load().algorithm(*part), version, 0)
    records, seen, problem = _run(algorithm, procs, segment_bytes, sizes, settings)
    if problem:
        return OpenmpiRow(*found, problem=problem)
    ours, theirs = seen.by_program, _without(seen.by_collectives, _preparation(procs))
    (our_messages, our_bytes), (their_messages, their_bytes) = (
        (sum(messages for messages, _ in sent.values()), sum(size for _, size in sent.values()))
        for sent in (ours, theirs)
    )
    counts = (our_messages, their_messages, our_bytes, their_bytes)
    agree = not any(record["wrong"] for record in records)
    return OpenmpiRow(*found, records[0]["cases"], agree, *counts, ours == theirs)


def _settings(algorithm: Algorithm, version: str, segment_bytes: int) -> dict[str, str]:
    parameters = {"segmentsize": segment_bytes} if algorithm.part_parameter else {}
    if algorithm.default_count:
        parameters[_ALGORITHM_PARAMETERS[algorithm.name]] = algorithm.default_count
    return forcing(algorithm.collective, algorithm.openmpi[version], **parameters)


@cache
def _preparation(procs: int) -> Traffic:
    """The messages of Open MPI's collectives in a run without calls, which only makes our private communicator."""
    algorithm = Catalogue.load().algorithm("bcast", "binomial")
    return _run(algorithm, procs, 0, (), {})[1].by_collectives


def _run(
    algorithm: Algorithm, procs: int, segment_bytes: int, sizes: Sequence[int], settings: dict[str, str]
) -> tuple[list[dict], Monitored, str]:
    """The processes' records, what was sent, and what went wrong."""
    args = [algorithm.collective, algorithm.name, *map(str, (segment_bytes, algorithm.default_count, *sizes))]
    seen = monitored("agree", procs, args, settings)
    records = [json.loads(line) for line in seen.run.output_lines if line.startswith('{"rank"')]
    problem = ""
    if seen.run.returncode != 0:
        problem = seen.run.problem
    elif seen.counted != procs or len(records) != procs:
        problem = f"{seen.counted} of {procs} processes counted messages, {len(records)} reported"
    return records, seen, problem


def _without(sent: Traffic, preparation: Traffic) -> Traffic:
    before = {edge: preparation.get(edge, (0, 0)) for edge in sent}
    left = {edge: (sent[edge][0] - before[edge][0], sent[edge][1] - before[edge][1]) for edge in sent}
    return {edge: counts for edge, counts in left.items() if counts != (0, 0)}
