"""Test beds: namespaces for nodes and switches, veth pairs, bridges, and token buckets in both directions.

The state file lists the parts of a bed before any of them is made, so that the next `up` or `down` can remove them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform as machine
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from collwise.common.errors import CollwiseError, UsageError, unknown_name
from collwise.common.files import write_text
from collwise.validation.testbed import slurm as batch
from collwise.validation.testbed.namespaces import command, end_processes, existing, require
from collwise.validation.testbed.shape import MTU_BYTES, Shape

STATE_DIRECTORY = Path("/run/collwise-testbed")
USUAL_NAME = "bed"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")
# The queue is so large that a node drops nothing; the node's TCP waits instead.
_NODE_QUEUE_BYTES = 10_000_000
_SYSCTL = Path("/proc/sys/net/ipv4")


@dataclass(frozen=True)
class Bed:
    """A test bed that is up. `facts` are the settings in effect on the bed, which are recorded with times."""

    name: str
    shape: Shape
    facts: Mapping[str, str] = field(default_factory=dict, compare=False)
    slurm: bool = False

    @property
    def directory(self) -> Path:
        """The directory of the bed's state and of the nodes' temporary files."""
        return STATE_DIRECTORY / self.name

    @property
    def namespaces(self) -> list[str]:
        """The network namespaces of the switches and of all nodes."""
        return [self.namespace("switch"), *(self.namespace(f"n{node}") for node in self.nodes)]

    @property
    def nodes(self) -> range:
        """The numbers of the nodes: 1, 2, ..."""
        return range(1, self.shape.nodes + 1)

    @property
    def mark(self) -> dict[str, str]:
        """The variable in the environment of all processes that collwise starts on the bed."""
        return {"COLLWISE_TESTBED": self.name}

    @contextlib.contextmanager
    def ended_after(self) -> Iterator[None]:
        """Ends the processes that collwise started on the bed when the context ends."""
        try:
            yield
        finally:
            self.end_processes()

    def end_processes(self) -> None:
        """Ends all processes that collwise started on the bed."""
        end_processes(self.namespaces, self.mark)

    def namespace(self, what: str) -> str:
        """The network namespace of 'n1', 'n2', ... or 'switch'."""
        return f"collwise-{self.name}-{what}"

    def address(self, node: int) -> str:
        """The IP address of node 1, 2, ..."""
        return f"10.77.{node // 250}.{node % 250}"


@contextlib.contextmanager
def busy(bed: Bed) -> Iterator[None]:
    """Locks a bed against other runs. The kernel unlocks the bed if this process is killed."""
    with contextlib.ExitStack() as until_done:
        try:
            until_done.enter_context(_locked(bed.directory, fcntl.LOCK_NB))
        except FileNotFoundError:
            raise _not_up(bed.name) from None
        except BlockingIOError:
            what = f"something already runs on the test bed '{bed.name}'"
            raise UsageError(f"{what}; wait until it ends, or make another test bed") from None
        yield


def up(shape: Shape, name: str = USUAL_NAME, *, temporary: bool = False, slurm: bool = False) -> Bed:
    """Makes a test bed, with or without Slurm.

    First, a bed of the same name and beds whose makers were killed are removed. A `temporary` bed counts as left over
    once this process has ended. Raises UsageError if namespaces may not be made, if Slurm is missing, or if something
    runs on the bed of that name, CollwiseError if a command fails; then no bed is left.
    """
    bed = Bed(_check_name(name), shape)
    require()
    if slurm and (reason := batch.obstacle()):
        raise UsageError(reason)
    with _changing():
        _remove_leftovers()
        if bed.directory.exists():
            with busy(bed):
                _remove(name)
        if foreign := existing(bed.namespaces):
            what = f"there is a network namespace {foreign[0]} that collwise did not make"
            raise UsageError(f"{what}; use another --name")
        state: dict[str, Any] = {"namespaces": bed.namespaces, "maker": _identity(os.getpid()), "complete": False}
        _write_state(name, state)
        try:
            _make(bed)
            bed = Bed(name, shape, _facts(bed), slurm)
            if slurm:
                batch.start(bed)
            state |= {"shape": asdict(shape), "facts": bed.facts, "slurm": slurm, "temporary": temporary}
            state["complete"] = True
            _write_state(name, state)
        except BaseException:
            _remove(name)
            raise
    return bed


def down(name: str = USUAL_NAME) -> int:
    """Ends the processes of a test bed and removes it; returns the number of its namespaces.

    Also removes test beds whose makers were killed. Raises CollwiseError when a command fails.
    """
    _check_name(name)
    if not STATE_DIRECTORY.exists():
        return 0
    require()
    with _changing():
        _remove_leftovers()
        return _remove(name)


@contextlib.contextmanager
def temporarily_up(shape: Shape, name: str) -> Iterator[Bed]:
    """A test bed that is taken down at the end or, after kill -9, by the next `up`. Raises the errors of `up`."""
    bed = up(shape, name, temporary=True)
    try:
        yield bed
    finally:
        down(name)


def switch_off(bed: Bed, node: int) -> int:
    """Ends a node's processes as a power failure would; returns their number. Raises CollwiseError when that fails."""
    command("ip", "-n", bed.namespace("switch"), "link", "set", f"p{node}", "down")
    return end_processes([bed.namespace(f"n{node}")])


def switch_on(bed: Bed, node: int) -> None:
    """Brings a node back, with nothing in its directory. Raises CollwiseError when a command fails."""
    end_processes([bed.namespace(f"n{node}")])
    temporary = bed.directory / f"n{node}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(exist_ok=True)
    command("ip", "-n", bed.namespace("switch"), "link", "set", f"p{node}", "up")
    if bed.slurm:
        batch.start_node(bed, node)


def running(name: str = USUAL_NAME) -> Bed:
    """The test bed of that name. Raises UsageError when it is not up."""
    state = _state(_check_name(name))
    if not state.get("complete"):
        raise _not_up(name)
    return Bed(name, Shape(**state["shape"]), state["facts"], state.get("slurm", False))


def all_running() -> list[Bed]:
    """All test beds that are up."""
    return [running(name) for name in names() if _state(name).get("complete")]


def names() -> list[str]:
    """The names of all test beds that are up, or half made."""
    if not STATE_DIRECTORY.exists():
        return []
    return sorted(entry.name for entry in STATE_DIRECTORY.iterdir() if entry.is_dir())


def _not_up(name: str) -> UsageError:
    made = "make one: collwise testbed up" + ("" if name == USUAL_NAME else f" --name {name}")
    if up_now := [bed.name for bed in all_running()]:
        return unknown_name("test bed", name, up_now, made)
    return UsageError(f"no test bed '{name}' is up; {made}")


def _check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"malformed name of a test bed '{name}': write up to 40 letters, digits and '-'")
    return name


def _changing() -> contextlib.AbstractContextManager[None]:
    """Locks all beds, so that one process at a time makes and removes beds."""
    STATE_DIRECTORY.mkdir(parents=True, exist_ok=True)
    return _locked(STATE_DIRECTORY)


@contextlib.contextmanager
def _locked(directory: Path, how: int = 0) -> Iterator[None]:
    lock = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(lock)


def _state(name: str) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((STATE_DIRECTORY / name / "state.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return state


def _write_state(name: str, state: Mapping[str, Any]) -> None:
    write_text(STATE_DIRECTORY / name / "state.json", json.dumps(state, indent=2) + "\n")


def _identity(process: int) -> str:
    """A process id with its start time, since ids are reused; empty when there is no such process."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    return f"{process} {status.rpartition(')')[2].split()[19]}"


def _remove_leftovers() -> None:
    """Removes half-made beds, and temporary ones whose process has ended. All beds must be locked."""
    for name in names():
        state = _state(name)
        maker = state.get("maker", "")
        gone = not maker or _identity(int(maker.split()[0])) != maker
        if not state.get("complete") or (state["temporary"] and gone):
            _remove(name)


def _remove(name: str) -> int:
    found = existing(_state(name).get("namespaces", []))
    end_processes(found)
    for namespace in found:
        command("ip", "netns", "del", namespace)
    shutil.rmtree(STATE_DIRECTORY / name, ignore_errors=True)
    return len(found)


def _make(bed: Bed) -> None:
    shape, switch = bed.shape, bed.namespace("switch")
    command("ip", "netns", "add", switch)
    bridges = [f"br{number}" for number in range(1, shape.switches + 1)]
    wires = ["link set lo up", *(f"link add {bridge} type bridge" for bridge in bridges)]
    wires += [f"link set {bridge} up" for bridge in bridges]
    buckets = []
    if shape.switches == 2:
        wires.append("link add up1 type veth peer name up2")
        for number in (1, 2):
            wires += [f"link set up{number} master br{number} gso_max_segs 1 up"]
            buckets.append(_bucket(f"up{number}", shape.uplink_bits_per_second, shape, shape.buffer_bytes))
    command("ip", "-n", switch, "-batch", "-", text="\n".join(wires))
    for node in bed.nodes:
        _make_node(bed, node)
        buckets.append(_bucket(f"p{node}", shape.bits_per_second, shape, shape.buffer_bytes))
    command("tc", "-n", switch, "-batch", "-", text="\n".join(buckets))
    hosts = ["127.0.0.1 localhost", *(f"{bed.address(node)} n{node}" for node in bed.nodes)]
    (bed.directory / "etc-hosts").write_text("\n".join(hosts) + "\n", encoding="utf-8")


def _make_node(bed: Bed, node: int) -> None:
    shape, switch, namespace = bed.shape, bed.namespace("switch"), bed.namespace(f"n{node}")
    (bed.directory / f"n{node}").mkdir()
    command("ip", "netns", "add", namespace)
    # The bucket drops packets that are larger than it is, so segmentation is not left to the device.
    inside = [
        "link set lo up",
        f"link add eth0 mtu {MTU_BYTES} gso_max_segs 1 type veth peer name p{node} netns {switch}",
        f"addr add {bed.address(node)}/16 dev eth0",
        "link set eth0 up",
    ]
    command("ip", "-n", namespace, "-batch", "-", text="\n".join(inside))
    port = f"link set p{node} mtu {MTU_BYTES} gso_max_segs 1 master br{shape.switch_of(node)} up"
    command("ip", "-n", switch, "-batch", "-", text=port)
    bucket = _bucket("eth0", shape.bits_per_second, shape, _NODE_QUEUE_BYTES)
    command("tc", "-n", namespace, "-batch", "-", text=bucket)
    _set_tcp(namespace, "tcp_limit_output_bytes", str(shape.host_queue_bytes))
    if _set_tcp(namespace, "tcp_congestion_control", shape.congestion_control):
        return
    known = (_SYSCTL / "tcp_available_congestion_control").read_text(encoding="utf-8").split()
    if shape.congestion_control not in {*known, "reno"}:
        raise unknown_name("congestion control", shape.congestion_control, known)


def _bucket(device: str, bits_per_second: float, shape: Shape, limit_bytes: int) -> str:
    bucket = f"rate {bits_per_second:.0f}bit burst {shape.burst_bytes} limit {limit_bytes}"
    return f"qdisc add dev {device} root tbf {bucket}"


def _set_tcp(namespace: str, name: str, value: str) -> bool:
    """Sets a parameter of TCP in a namespace; returns whether the kernel allowed it."""
    try:
        command("ip", "netns", "exec", namespace, "sh", "-c", f'echo "$0" 2>&1 >{_SYSCTL / name}', value)
    except CollwiseError:
        return False
    return True


def _get_tcp(namespace: str, name: str) -> str:
    try:
        return command("ip", "netns", "exec", namespace, "cat", str(_SYSCTL / name)).strip()
    except CollwiseError:
        return "unknown"


def _facts(bed: Bed) -> dict[str, str]:
    shape, first = bed.shape, bed.namespace("n1")
    facts = {
        "nodes": str(shape.nodes),
        "bits_per_second": f"{shape.bits_per_second:.0f}",
        "buffer_bytes": str(shape.buffer_bytes),
        "burst_bytes": str(shape.burst_bytes),
        "mtu_bytes": str(MTU_BYTES),
        "congestion_control": _get_tcp(first, "tcp_congestion_control"),
        "host_queue_bytes": _get_tcp(first, "tcp_limit_output_bytes"),
        "kernel": f"{machine.system()} {machine.release()}",
        "switches": str(shape.switches),
    }
    if shape.switches == 2:
        facts["uplink_bits_per_second"] = f"{shape.uplink_bits_per_second:.0f}"
    return facts
