"""Checks message sizes before anything is started, against the limits of the simulator, of MPI and of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.simulator.timing import Case

# The benchmark counts the bytes of a message in an int, as MPI does.
_LARGEST_MESSAGE = 2**30
_LARGEST_INT = 2**31 - 1
_DISPLACED = {"gatherv", "scatterv", "allgatherv", "alltoallv"}
# SMPI folds payloads: it maps one block of memory many times, and the kernel limits the number of mappings.
_FOLDED_BLOCK = 2**20
_USUAL_MAPPINGS = 65530

_SENDS_ONE_EACH = {"alltoall", "alltoallv", "reduce_scatter_block"}
_RECEIVES_ONE_EACH = {"allgather", "allgatherv", "alltoall", "alltoallv"}
_ROOT_HOLDS_ALL = {"gather", "gatherv", "scatter", "scatterv"}


def check_simulated_sizes(cases: Iterable[Case]) -> None:
    """Raises UsageError, with the limit and its reason, for a message size that the simulator cannot hold."""
    mappings = _kernel_number("max_map_count", _USUAL_MAPPINGS)
    memory = _memory_bytes() if _kernel_number("overcommit_memory", 1) == 0 else None
    cases = list(cases)
    check_message_sizes(cases)
    for case in cases:
        _check_displacements(case)
        largest, everything = _buffers(case.collective, case.procs, case.procs)
        if everything * case.message_bytes // _FOLDED_BLOCK > mappings:
            most = mappings * _FOLDED_BLOCK
            limit = f"each MiB needs a mapping and vm.max_map_count allows {mappings}"
            why = f"the simulator holds buffers of {format_size(most)} in all, since {limit}"
            raise _too_large(case, most // everything, why)
        if memory is not None and largest * case.message_bytes > memory:
            why = f"one buffer takes {largest} messages, and the kernel allocates at most {_gib(memory)} of memory"
            raise _too_large(case, memory // largest, f"{why} (vm.overcommit_memory is 0)")


def check_message_sizes(cases: Iterable[Case]) -> None:
    """Raises UsageError, with the limit and its reason, for a message size that MPI cannot count."""
    for case in cases:
        if case.message_bytes > _LARGEST_MESSAGE:
            raise _too_large(case, _LARGEST_MESSAGE, "MPI counts the bytes of a message in an int")


def check_measured_sizes(cases: Iterable[Case], on_this_machine: bool) -> None:
    """Raises UsageError, with the limit and its reason, for a message size that real processes cannot hold."""
    memory = _memory_bytes()
    cases = list(cases)
    check_message_sizes(cases)
    for case in cases:
        _check_displacements(case)
        everything = buffers_of_node(case.collective, case.procs, case.procs)
        if on_this_machine and everything * case.message_bytes > memory:
            why = f"the buffers of all processes take {everything} messages, and this machine has {_gib(memory)}"
            raise _too_large(case, memory // everything, why)


def _check_displacements(case: Case) -> None:
    if case.collective in _DISPLACED and case.procs * case.message_bytes > _LARGEST_INT:
        raise _too_large(case, _LARGEST_INT // case.procs, f"{case.collective}'s displacements are ints, in bytes")


def _too_large(case: Case, most: int, why: str) -> UsageError:
    name = case.collective if case.collective != "-" else case.experiment
    unit = next((unit for unit in (2**20, 2**10) if most >= unit), 1)
    return UsageError(
        f"{name} of {format_size(case.message_bytes)} with P = {case.procs} is too large: {why}; "
        f"valid: sizes of up to {format_size(most // unit * unit)}"
    )


def _buffers(collective: str, procs: int, here: int) -> tuple[int, int]:
    """The messages in a process's largest buffer, and in all buffers of `here` processes, the root's included."""
    if collective == "barrier":
        return 1, 0
    if collective in ("bcast", "-"):
        return 1, here
    if collective in _ROOT_HOLDS_ALL:
        return procs, here + procs
    sent = procs if collective in _SENDS_ONE_EACH else 1
    received = procs if collective in _RECEIVES_ONE_EACH else 1
    return max(sent, received), here * (sent + received)


def buffers_of_node(collective: str, procs: int, processes_per_node: int) -> int:
    """The number of messages in all buffers on one node (on the root's node if the root holds all messages)."""
    return _buffers(collective, procs, min(procs, processes_per_node))[1]


def _kernel_number(name: str, otherwise: int) -> int:
    try:
        return int(Path("/proc/sys/vm", name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return otherwise


def _memory_bytes() -> int:
    """The bytes of memory and swap of this machine."""
    import psutil

    return int(psutil.virtual_memory().total + psutil.swap_memory().total)


def _gib(size: int) -> str:
    return f"{size / 2**30:.0f} GiB"
