"""Execution targets on the hosts of a cluster: what mpirun, srun and OAR have in common, and lists of hosts."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shlex
import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import hostlist

from collwise.common.errors import CollwiseError, UsageError, check_name
from collwise.common.files import read_text
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.processes import LauncherCommand, ProgramRun
from collwise.simulator.execution.targets import EAGER_LIMITS, TCP_EAGER_LIMIT_BYTES, ExecutionTarget, LaunchRequest

_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
_ENTRY = re.compile(r"(?P<host>[A-Za-z0-9_.-]+)(?::(?P<count>\d+))?(?:\s+slots\s*=\s*(?P<slots>\d+))?(?:\s+max.*)?")
_MAX_SLOTS = 100_000
Item = TypeVar("Item")
Slots = Mapping[str, int]  # processes that each host takes, in the order of the hosts


def read_hosts(text: str) -> Slots:
    """The hosts of a host file, or of names separated by commas; the slots of a host named twice are added."""
    path = Path(text)
    if "," not in text and path.is_file():
        return read_host_file(path)
    if "/" in text:
        raise UsageError(f"--hosts: no file {text}; give a host file, or comma-separated names")
    return _parse_entries((entry.strip(), f"--hosts: '{entry.strip()}'") for entry in text.split(","))


def read_host_file(path: Path) -> Slots:
    """The hosts of a file: 'n1', 'n1 slots=4' (Open MPI) or 'n1:4' (MPICH) on each line, '#' before comments."""
    lines = read_text(path).splitlines()
    numbered = ((line.partition("#")[0].strip(), f"{path}:{number}") for number, line in enumerate(lines, 1))
    entries = [(entry, where) for entry, where in numbered if entry]
    if not entries:
        raise UsageError(f"{path}: contains no hosts; write one on each line")
    return _parse_entries(entries)


def _parse_entries(entries: Iterable[tuple[str, str]]) -> Slots:
    slots: dict[str, int] = {}
    for entry, where in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise UsageError(f"{where}: not a host; write NAME, NAME slots=N or NAME:N")
        count = int(match["slots"] or match["count"] or 1)
        if not 1 <= count <= _MAX_SLOTS:
            raise UsageError(f"{where}: {count} processes; valid: 1 to {_MAX_SLOTS}")
        slots[match["host"]] = slots.get(match["host"], 0) + count
    return slots


def expand_node_list(text: str) -> list[str]:
    """The names in SLURM's compressed list: 'n[01-03,7],login' is n01, n02, n03, n7, login."""
    return _expanded(hostlist.expand_hostlist, text, _HOST.fullmatch, "SLURM_JOB_NODELIST", "n[01-04,7]")


def expand_task_counts(text: str) -> list[int]:
    """The counts in SLURM's tasks per node: '2(x3),1' is 2, 2, 2, 1."""
    return _expanded(hostlist.parse_slurm_tasks_per_node, text, lambda n: n > 0, "SLURM_TASKS_PER_NODE", "2(x3),1")


def _expanded(
    expand: Callable[[str], list[Item]], text: str, fits: Callable[[Item], object], variable: str, example: str
) -> list[Item]:
    try:
        found = expand(text.strip())
    except hostlist.BadHostlist:
        found = []
    if not found or not all(map(fits, found)):
        raise UsageError(f"{variable}: '{text}' is not a list such as {example}")
    return found


TRANSPORTS = ("default", "tcp")
TCP_PARAMETERS: Mapping[str, str] = {"pml": "ob1", "btl": "tcp,self"}  # Open MPI's parameters for TCP alone
REACH_SECONDS = 30.0
# Time for a launcher to end its processes on other hosts, after it was asked to end.
_GRACE_SECONDS = 5.0
# Characters that end the names of numbered hosts.
_NUMBERING = "0123456789-_"
_COUNTED = re.compile(r"([\w.:-]+)\*(\d{1,4})")  # a host and its number of processes
_COMPLAINT = re.compile(
    r"could not resolve|not known|connection (refused|timed out|closed|reset)|no route|unreachable|permission denied"
    r"|host key|not found|invalid (partition|account|job)|unable to (create|connect|contact)|do not have .*slots"
    r"|not enough slots|more processors requested",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LaunchOptions:
    """Options of any launcher; the hosts must answer within `reach_seconds`.

    With `processes_per_node` 0, each host takes as many processes as it has slots. `transport` 'tcp' makes Open MPI use
    TCP alone. With `eager_limit_bytes` 0, the library's usual limit applies. With `any_nodes`, times measured on other
    hosts of the cluster count as times of these hosts.
    """

    library: str = "openmpi"
    processes_per_node: int = 0
    transport: str = "default"
    extra_args: tuple[str, ...] = ()
    eager_limit_bytes: int = 0
    reach_seconds: float = REACH_SECONDS
    any_nodes: bool = False

    def __post_init__(self) -> None:
        check_name("transport", self.transport, TRANSPORTS)
        if self.transport == "tcp" and self.library != "openmpi":
            how = "set MPICH's transport with --mpirun-args or in the environment"
            raise UsageError(f"transport tcp is for Open MPI; {how}")


class ClusterTarget(ExecutionTarget):
    """An ExecutionTarget on the hosts of `slots`, each with the same number of processes, mapped by blocks.

    The constructor runs a small program on all hosts, so that `facts` hold the host names and the library version that
    the processes report. It raises UsageError for options that do not fit the hosts, and CollwiseError if hosts do not
    answer in time or processes are not mapped by blocks.
    """

    launcher = ""

    def __init__(self, slots: Slots, options: LaunchOptions) -> None:
        self.options, self.slots = options, _equal_slots(slots, options.processes_per_node)
        self.installation = find_installation(options.library)
        self._per_node = next(iter(self.slots.values()))
        self.usual_procs = len(self.slots) * self._per_node
        over_tcp = len(self.slots) > 1 or options.transport == "tcp"
        usual = TCP_EAGER_LIMIT_BYTES if over_tcp and options.library == "openmpi" else EAGER_LIMITS[options.library]
        self.eager_limit_bytes = options.eager_limit_bytes or usual
        hosts, version = self._find_hosts()
        self.name = common_name(hosts)
        if options.any_nodes:
            self.name = self.name.rstrip(_NUMBERING) or self.name
        self.facts: Mapping[str, str] = {
            "hosts": f"any of {self.name}" if options.any_nodes else format_hosts(hosts),
            "library": version,
            "transport": options.transport,
            "mapping": f"by blocks, {self._per_node} per node",
            "launcher": " ".join([self.launcher, *options.extra_args]),
        }

    @abstractmethod
    def launcher_command(self, request: LaunchRequest, host_file: Path) -> LauncherCommand:
        """The command line up to the program. `host_file` may be written and is removed after the run."""

    def processes_per_node(self, procs: int) -> int:
        """The number of processes on every host. Raises UsageError if `procs` processes have no room."""
        if not 1 <= procs <= self.usual_procs:
            room = f"{len(self.slots)} hosts with {self._per_node} each" if len(self.slots) > 1 else "one host"
            raise UsageError(f"{procs} processes on {room}; valid: 1 to {self.usual_procs} (more: --ppn)")
        return self._per_node

    @contextlib.contextmanager
    def shared_directory(self) -> Iterator[Path]:
        """A directory in the working directory, which hosts usually share; temporary directories are local."""
        here = Path.cwd()
        try:
            made = tempfile.TemporaryDirectory(prefix=".collwise-", dir=here, ignore_cleanup_errors=True)
        except OSError as problem:
            wanted = "a directory that all hosts share and that can be written to"
            raise UsageError(f"{here}: {problem.strerror}; run in {wanted}") from None
        with made as directory:
            yield Path(directory)

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """Runs the program by the launcher."""
        self.processes_per_node(request.procs)
        with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
            command = self.launcher_command(request, Path(directory, "hosts"))
            return self.execute(request, command, grace_seconds=_GRACE_SECONDS)

    def _find_hosts(self) -> tuple[list[str], str]:
        """The host of each process, by rank, and the library's version, as the processes report them."""
        procs = self.usual_procs
        run = self.run("whereabouts", procs, timeout_seconds=self.options.reach_seconds)
        # A launcher may put a prefix before each line, such as the number of the process that wrote the line.
        records = [line[line.index('{"rank"') :] for line in run.output_lines if '{"rank"' in line]
        found = [json.loads(record) for record in records]
        names = f"{self.launcher} on {', '.join(self.slots)}"
        # The launcher's own words about hosts that it could not use.
        complaint = next((line for line in run.telling_lines if _COMPLAINT.search(line)), "")
        if run.returncode is None:
            reason = f": {complaint}" if complaint else ""
            raise CollwiseError(f"{names}: no answer within {self.options.reach_seconds:g} s{reason}")
        if run.returncode != 0 or len(found) != procs:
            raise CollwiseError(f"{names}: {complaint or run.problem}")
        hosts = [record["host"] for record in found]
        if not mapped_by_blocks(hosts, self._per_node):
            raise CollwiseError(
                f"{names}: expected {self._per_node} consecutive ranks on each host, but the ranks ran on "
                f"{', '.join(hosts)}; leave mapping to collwise"
            )
        return hosts, found[0]["library"]


def _equal_slots(slots: Slots, processes_per_node: int) -> Slots:
    if not slots:
        raise UsageError("no hosts to run on")
    if processes_per_node:
        return dict.fromkeys(slots, processes_per_node)
    if len(set(slots.values())) > 1:
        least, most = min(slots.values()), max(slots.values())
        raise UsageError(
            f"hosts take from {least} to {most} processes; give one number for all of them, for example --ppn {least}"
        )
    return slots


def mapped_by_blocks(hosts: Sequence[str], per_node: int) -> bool:
    """True if each block of `per_node` consecutive ranks is on one host; `hosts` is by rank."""
    return all(len(set(hosts[first : first + per_node])) == 1 for first in range(0, len(hosts), per_node))


def format_hosts(hosts: Sequence[str]) -> str:
    """Host names separated by commas, each with its number of processes: 'n1*2,n2*2'."""
    return ",".join(f"{host}*{count}" for host, count in Counter(hosts).items())


def hosts_in(text: str) -> tuple[str, ...]:
    """The host of each process, by blocks, from the text of `format_hosts`; empty for any other text."""
    found = [_COUNTED.fullmatch(entry) for entry in text.split(",")]
    return tuple(item[1] for item in found if item for _ in range(int(item[2]))) if all(found) else ()


def common_name(hosts: Sequence[str]) -> str:
    """A name for a set of hosts: the common prefix of their names, or the first host's name if there is none."""
    short = list(dict.fromkeys(host.split(".")[0] for host in hosts))
    if len(short) == 1:
        return short[0]
    same = itertools.takewhile(lambda some: len(set(some)) == 1, zip(*short, strict=False))
    return "".join(letters[0] for letters in same).rstrip(_NUMBERING) or short[0]


def split_arguments(text: str, option: str) -> tuple[str, ...]:
    """The words of a line of arguments, as a shell splits it; the UsageError names the option."""
    try:
        return tuple(shlex.split(text))
    except ValueError as problem:
        raise UsageError(f"{option}: {problem}: {text}") from None
