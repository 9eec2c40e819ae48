"""What the launchers have in common: who is where is asked once, when the place is made; runs end without remains."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shlex
import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collwise.common.errors import CollwiseError, UsageError, unknown_name
from collwise.simulator.execution.host_lists import Slots
from collwise.simulator.execution.installations import MPI_LIBRARIES, Installation, engine
from collwise.simulator.execution.processes import ProgramRun, run_command
from collwise.simulator.execution.targets import EAGER_LIMITS, TCP_EAGER_LIMIT_BYTES, ExecutionTarget, LaunchRequest

TRANSPORTS = ("default", "tcp")
REACH_SECONDS = 30.0
# Time for a launcher that was told to end to end its processes on other hosts.
_GRACE_SECONDS = 5.0
_TELLING = re.compile(
    r"could not resolve|not known|connection (refused|timed out|closed|reset)|no route|unreachable|permission denied"
    r"|host key|not found|invalid (partition|account|job)|unable to (create|connect|contact)|do not have .*slots"
    r"|not enough slots|more processors requested",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Wishes:
    """What may be asked of any launcher.

    `ranks_per_node` 0: as many as the hosts have slots. `transport` 'tcp' makes Open MPI use TCP alone. `extra_args`
    are the launcher's own. `eager_limit_bytes` 0: the library's usual one. The hosts must answer in `reach_seconds`.
    """

    library: str = "openmpi"
    ranks_per_node: int = 0
    transport: str = "default"
    extra_args: tuple[str, ...] = ()
    eager_limit_bytes: int = 0
    reach_seconds: float = REACH_SECONDS
    name: str = ""

    def __post_init__(self) -> None:
        if self.library not in MPI_LIBRARIES:
            raise unknown_name("MPI library", self.library, MPI_LIBRARIES)
        if self.transport not in TRANSPORTS:
            raise unknown_name("transport", self.transport, TRANSPORTS)
        if self.transport == "tcp" and self.library != "openmpi":
            raise UsageError(
                "transport tcp is an option of Open MPI's; give MPICH's by --mpirun-args or the environment"
            )


@dataclass(frozen=True)
class Start:
    """How a run is started: the words before the program, and variables for the launcher itself."""

    words: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class ClusterTarget(ExecutionTarget):
    """An ExecutionTarget on the hosts of `slots`; the launchers differ in `start`.

    Every host takes equally many processes, by blocks. Making one runs a small program on all of them: `facts` hold the
    names of hosts that the processes themselves report, and the library's own version. Raises UsageError for wishes
    that do not fit and CollwiseError when hosts do not answer in time, or not as they should.
    """

    launcher = ""

    def __init__(self, slots: Slots, wishes: Wishes) -> None:
        self.wishes, self.slots = wishes, _even(slots, wishes.ranks_per_node)
        self.engine: Installation = engine(wishes.library)
        self._ranks_per_node = next(iter(self.slots.values()))
        self.usual_procs = len(self.slots) * self._ranks_per_node
        several = len(self.slots) > 1 or wishes.transport == "tcp"
        usual = TCP_EAGER_LIMIT_BYTES if several and wishes.library == "openmpi" else EAGER_LIMITS[wishes.library]
        self.eager_limit_bytes = wishes.eager_limit_bytes or usual
        hosts, version = self._whereabouts()
        self.name = wishes.name or common_name(hosts)
        self.facts: Mapping[str, str] = {
            "hosts": counted(hosts),
            "library": version,
            "transport": wishes.transport,
            "mapping": f"by blocks, {self._ranks_per_node} a node",
            "launcher": " ".join([self.launcher, *wishes.extra_args]),
        }

    @abstractmethod
    def start(self, procs: int, host_file: Path, environment: Mapping[str, str]) -> Start:
        """The command line up to the program. `host_file` may be written and is removed after the run."""

    def processes_per_node(self, procs: int) -> int:
        """As of any ExecutionTarget."""
        most = len(self.slots) * self._ranks_per_node
        if not 1 <= procs <= most:
            room = f"{len(self.slots)} hosts with {self._ranks_per_node} each" if len(self.slots) > 1 else "the host"
            raise UsageError(f"{procs} processes; {room} take 1 to {most} (more: --ppn)")
        return self._ranks_per_node

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """In the working directory, which the hosts share if any: temporary directories are each host's own."""
        here = Path.cwd()
        try:
            made = tempfile.TemporaryDirectory(prefix=".collwise-", dir=here, ignore_cleanup_errors=True)
        except OSError as problem:
            raise UsageError(
                f"{here}: {problem.strerror}; run in a directory that all hosts share and that can be written to"
            ) from None
        with made as directory:
            yield Path(directory)

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """As of any ExecutionTarget."""
        self.processes_per_node(request.procs)
        with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
            start = self.start(request.procs, Path(directory, "hosts"), request.environment)
            binary = str(self.engine.program(request.program))
            run = run_command(
                [*start.words, *self.wishes.extra_args, *request.launcher_args, binary, *request.args],
                timeout_seconds=request.timeout_seconds,
                on_line=request.on_line,
                environment=dict(start.environment),
                grace_seconds=_GRACE_SECONDS,
            )
        run.version = self.engine.version
        return run

    def _whereabouts(self) -> tuple[list[str], str]:
        procs = len(self.slots) * self._ranks_per_node
        run = self.run("whereabouts", procs, timeout_seconds=self.wishes.reach_seconds)
        # A launcher may put words of its own before each line, such as the process that wrote it.
        records = [line[line.index('{"rank"') :] for line in run.output_lines if '{"rank"' in line]
        found = [json.loads(record) for record in records]
        names = f"{self.launcher} on {', '.join(self.slots)}"
        if run.returncode is None:
            raise CollwiseError(f"{names}: no answer within {self.wishes.reach_seconds:g} s{_told(run)}")
        if run.returncode != 0 or len(found) != procs:
            raise CollwiseError(f"{names}: {_told(run, first=True) or run.problem}")
        hosts = [record["host"] for record in found]
        blocks = [hosts[first : first + self._ranks_per_node] for first in range(0, procs, self._ranks_per_node)]
        if any(len(set(block)) > 1 for block in blocks):
            raise CollwiseError(
                f"{names}: processes do not lie by blocks of {self._ranks_per_node} but on {', '.join(hosts)}; "
                "leave mapping to collwise"
            )
        return hosts, found[0]["library"]


def _even(slots: Slots, ranks_per_node: int) -> Slots:
    if not slots:
        raise UsageError("no hosts to run on")
    if ranks_per_node:
        return dict.fromkeys(slots, ranks_per_node)
    if len(set(slots.values())) > 1:
        least, most = min(slots.values()), max(slots.values())
        raise UsageError(f"hosts take from {least} to {most} processes; say how many each shall have: --ppn {least}")
    return slots


def _told(run: ProgramRun, first: bool = False) -> str:
    """What the launcher's own words say of the reason, as part of a sentence."""
    lines = [line.strip() for line in run.error_text.splitlines() if _TELLING.search(line)]
    if not lines:
        return ""
    return lines[0] if first else f": {lines[0]}"


def counted(hosts: Sequence[str]) -> str:
    """Names of hosts by commas, each with its number of processes: 'n1*2,n2*2'."""
    return ",".join(f"{host}*{count}" for host, count in Counter(hosts).items())


def common_name(hosts: Sequence[str]) -> str:
    """What a place of these hosts is called: what their names begin with in common, or the first one's name."""
    short = list(dict.fromkeys(host.split(".")[0] for host in hosts))
    if len(short) == 1:
        return short[0]
    same = [letters[0] for letters in itertools.takewhile(lambda some: len(set(some)) == 1, zip(*short, strict=False))]
    return "".join(same).rstrip("0123456789-_") or short[0]


def words_of(text: str, option: str) -> tuple[str, ...]:
    """A line of arguments as the shell would cut it. Raises UsageError, naming the option."""
    try:
        return tuple(shlex.split(text))
    except ValueError as problem:
        raise UsageError(f"{option}: {problem}: {text}") from None
