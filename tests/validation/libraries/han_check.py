"""Checks that the installed Open MPI's component HAN follows a rules file and its parameters.

HAN does nothing on one node, so Open MPI is made to take this machine for several: each of its daemons runs under a
host name of its own. HAN says which rule it found, and Open MPI's monitoring counts the segments between leaders.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.launchers import RemoteHosts, agent_link, mpirun_command
from collwise.simulator.execution.processes import ProgramRun, run_command
from collwise.validation.hierarchy.space import segments_of
from collwise.validation.libraries.han_rules import GLOBAL

AGENT = Path(__file__).with_name("han_agent")
_TIME_LIMIT_SECONDS = 60.0
# What HAN prints with verbosity 80: "... level 2 (...) ... Found a rule ... : component 6 (han)".
_FOUND = re.compile(r"get_dynamic_rule.*Found a rule for collective (\d+) .*level (\d+) .*component \d+ \((\w+)\)")
# A process's messages to another one, and how many there were by the logarithm of their size.
_SENT = re.compile(r"^[EI]\s+(\d+)\s+(\d+)\s+\d+ bytes\s+\d+ msgs sent\s+([\d,]+)")
_ON_THIS_MACHINE = {
    "btl": "tcp,vader,self",
    "btl_tcp_if_include": "lo",
    "oob_tcp_if_include": "lo",
    "mpi_yield_when_idle": "1",
}


class Followed(NamedTuple):
    """The component that HAN runs, and the messages of a segment's size from the root to the second node's leader.

    None where another component runs, or where a segment goes between nodes in pieces.
    """

    component: str
    segments: int | None


def check_han(
    rules: Path, parameters: Mapping[str, str], collective: str, nodes: int, per_node: int, message_bytes: int
) -> tuple[Followed, Followed]:
    """What the rules and parameters demand of a call on several nodes in this machine, and what Open MPI did."""
    number = Catalogue.load().collective(collective).openmpi_collective
    expected = component_for(rules.read_text(), number, GLOBAL, nodes * per_node, message_bytes)
    settings = {**parameters, "coll_han_dynamic_rules_filename": str(rules.resolve())}
    run, profiles = _call(collective, nodes, per_node, message_bytes, settings)
    assert run.returncode == 0, run.problem
    lines = [*run.output_lines, *run.error_text.splitlines()]
    matches = [match for line in lines if (match := _FOUND.search(line))]
    found = {match[3] for match in matches if (int(match[1]), int(match[2])) == (number, GLOBAL)}
    segment = int(parameters.get(f"coll_han_{collective}_segsize", "0"))
    pieces = int(parameters.get("coll_adapt_bcast_segment_size", "0"))
    counted = expected == "han" and collective == "bcast" and not message_bytes % segment and not 0 < pieces < segment
    return (
        Followed(expected, segments_of(message_bytes, segment) if counted else None),
        Followed("/".join(sorted(found)), _messages(profiles, 0, per_node, segment) if counted else None),
    )


def _call(
    collective: str, nodes: int, per_node: int, message_bytes: int, settings: Mapping[str, str]
) -> tuple[ProgramRun, str]:
    """The run of a call on several nodes in this machine, and the counted messages."""
    installation = find_installation("openmpi")
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        hosts = RemoteHosts(
            {f"collwise-node-{number}": per_node for number in range(nodes)},
            Path(directory, "hosts"),
            str(agent_link(AGENT, Path(directory))),
        )
        observed = {
            "coll_base_verbose": "80",
            "pml_monitoring_enable": "2",
            "pml_monitoring_enable_output": "3",
            "pml_monitoring_filename": f"{directory}/sent",
        }
        command = mpirun_command(
            installation, nodes * per_node, hosts=hosts, parameters={**_ON_THIS_MACHINE, **settings, **observed}
        )
        program = [str(installation.program("call")), collective, str(message_bytes)]
        run = run_command(
            [*command.words, *program], timeout_seconds=_TIME_LIMIT_SECONDS, environment=command.environment
        )
        profiles = [path.read_text(encoding="utf-8") for path in Path(directory).glob("sent.*.prof")]
    return run, "\n".join(profiles)


def _messages(profiles: str, source: int, target: int, size: int) -> int:
    """How many messages of a size (to the next power of two) a process sent to another one."""
    for line in profiles.splitlines():
        match = _SENT.match(line)
        if match and (int(match[1]), int(match[2])) == (source, target):
            by_size = [int(word) for word in match[3].split(",")]
            return by_size[size.bit_length()]
    return 0


def component_for(text: str, collective: int, level: int, size: int, message_bytes: int) -> str:
    """The component that a rules file names for a call, as HAN looks it up; empty if it names none."""
    words = iter(word for line in text.splitlines() for word in line.split("#", 1)[0].split())
    found = ""

    def take() -> int:
        return int(next(words))

    for _ in range(take()):
        is_it = take() == collective
        for _ in range(take()):
            is_level = take() == level and is_it
            for _ in range(take()):
                fits = take() <= size and is_level
                for _ in range(take()):
                    start, component = take(), next(words)
                    found = component if fits and start <= message_bytes else found
    return found
