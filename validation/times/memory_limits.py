"""Leaves out requested points whose buffers a node cannot hold, and prints remarks on assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from collwise.algorithms.catalogue import ELEMENT_BYTES, REDUCTIONS
from collwise.common.errors import UsageError, note, warn
from collwise.common.units import counted, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.limits import buffers_of_node
from collwise.simulator.timing import Case
from collwise.validation.times.defaults import SEGMENTS
from collwise.validation.times.grid import Grid

DOUBTED_BYTES = 4 * 2**30
"""The size of one process's buffers, bytes, from which a warning says that the memory of a node is unknown."""
_MAX_NAMED = 4


def asked_points(platform: HostPlatform, grids: Iterable[Grid]) -> list[Grid]:
    """The grids of `within_memory`; remarks on their sizes go to stderr. Raises the errors of `within_memory`."""
    limited = within_memory(platform, grids)
    remark_on_sizes(limited)
    return limited


def remark_on_sizes(grids: Sequence[Grid]) -> None:
    """Prints notes on sizes for which reductions combine bytes, and on requested segments that cut no message."""
    bytewise = {
        grid.collective: ", ".join(odd)
        for grid in grids
        if grid.collective in REDUCTIONS and (odd := [format_size(m) for m in grid.message_bytes if m % ELEMENT_BYTES])
    }
    if bytewise:
        collectives, sizes = ", ".join(bytewise), "; ".join(dict.fromkeys(bytewise.values()))
        note(
            f"{collectives} of {sizes}: combined byte by byte, since these sizes are not whole numbers of doubles; "
            "other sizes are combined as doubles"
        )
    longest = max((size for grid in grids for size in grid.message_bytes), default=0)
    given = {segment for grid in grids if grid.segments != SEGMENTS for segment in grid.segments}
    if useless := [format_size(item) for item in sorted(given) if item > longest]:
        note(f"segments of {', '.join(useless)} cut nothing: no message is longer than {format_size(longest)}")


def within_memory(platform: HostPlatform, grids: Iterable[Grid]) -> list[Grid]:
    """The grids, from which points are left out if they do not fit in the memory of the platform's nodes.

    A note names the points that are left out. If the memory is unknown, no point is left out (`warn_of_doubtful`).
    """
    limited = [replace(grid, memory_bytes_per_node=platform.memory_bytes_per_node) for grid in grids]
    if platform.memory_bytes_per_node is None:
        return limited
    found = {grid: [point for point in grid.points if not grid.fits(*point)] for grid in limited}
    lines = [_left_out(grid, points) for grid, points in found.items() if points]
    if not lines:
        return limited
    per_node = counted(max(grid.processes_per_node for grid in found), "process")
    memory = f"{format_size(platform.memory_bytes_per_node)} that '{platform.name}' has"
    why = f"the buffers of a node's {per_node} take more than the {memory}"
    if empty := [grid.collective for grid, points in found.items() if points == grid.points]:
        raise UsageError(
            f"no point of {', '.join(empty)} fits in memory: {why} (memory_bytes_per_node of the description)"
        )
    more = f" and {len(lines) - _MAX_NAMED} more" if len(lines) > _MAX_NAMED else ""
    note(f"left out, as {why}: {'; '.join(lines[:_MAX_NAMED])}{more}")
    return limited


def cases_within_memory(platform: HostPlatform, cases: Sequence[Case], processes_per_node: int) -> list[Case]:
    """The cases whose buffers fit in the memory of a node with this many processes. A note names the others."""
    points: dict[str, tuple[dict[int, None], dict[int, None]]] = {}
    for case in cases:
        procs, sizes = points.setdefault(case.collective, ({}, {}))
        procs[case.procs] = sizes[case.message_bytes] = None
    grids = [Grid.of(name, tuple(procs), tuple(sizes), processes_per_node) for name, (procs, sizes) in points.items()]
    limits = {grid.collective: grid for grid in within_memory(platform, grids)}
    warn_of_doubtful(platform, grids)
    return [case for case in cases if limits[case.collective].fits(case.procs, case.message_bytes)]


def _left_out(grid: Grid, points: Sequence[tuple[int, int]]) -> str:
    """Text such as 'alltoall at 7 of 44 points (P = 2048: from 1 MiB)'."""
    procs = max(procs for procs, _ in points)
    least = format_size(min(size for count, size in points if count == procs))
    return f"{grid.collective} at {len(points)} of {len(grid.points)} points (P = {procs}: from {least})"


def warn_of_doubtful(platform: HostPlatform, grids: Sequence[Grid]) -> None:
    """Warns of buffers of more than DOUBTED_BYTES if the memory of a node is unknown."""
    if platform.memory_bytes_per_node is not None:
        return
    largest = max(
        ((buffers_of_node(grid.collective, p, 1) * m, grid.collective, p, m) for grid in grids for p, m in grid.points),
        default=None,
    )
    if largest is not None and largest[0] > DOUBTED_BYTES:
        size, collective, procs, message_bytes = largest
        warn(
            f"the buffers of one process take up to {size / 2**30:.3g} GiB ({collective} of "
            f"{format_size(message_bytes)} with P = {procs}), and the memory of nodes of '{platform.name}' is unknown; "
            "give memory_bytes_per_node in its description, and cases that do not fit are left out"
        )
