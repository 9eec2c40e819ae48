"""Names of SimGrid's SMPI options; writes, reads and checks their lists of values by message size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from collwise.common.errors import warn

if TYPE_CHECKING:
    from collwise.platforms.hosts import HostPlatform

ENVELOPE_BYTES = 16
"""The bytes that SMPI adds to every message before it looks up latency and bandwidth factors by size."""

CROSS_TRAFFIC = 0.05
"""The share of a flow's rate that acknowledgements take in the opposite direction in SimGrid."""

LARGEST_BYTES = 2**31 - 1 - ENVELOPE_BYTES
"""Largest message size in a list, since SimGrid reads sizes as C ints."""

MAX_ROWS = 15
"""Largest number of rows, since SimGrid's sort keeps the order of rows with equal sizes only in short lists."""

FACTOR_OPTIONS = ("smpi/lat-factor", "smpi/bw-factor", "network/latency-factor", "network/bandwidth-factor")
OVERHEAD_OPTIONS = ("smpi/os", "smpi/or", "smpi/ois")

# The options of SimGrid 3.32 and 4.1 together, since a file for either version is valid.
_NETWORK_NAMES = """
TCP-gamma bandwidth-factor crosstraffic latency-factor loopback-bw loopback-lat maxmin-selective-update model optim
solver weight-S
"""
_SMPI_NAMES = """
IB-penalty-factors allgather allgatherv allreduce alltoall alltoallv async-small-thresh auto-shared-malloc-thresh
barrier barrier-collectives barrier-finalization bcast buffering bw-factor coll-selector comp-adjustment-file
cpu-threshold display-allocs display-timing errors-are-fatal finalization-barrier gather grow-injected-times host-speed
hostfile init iprobe iprobe-cpu-usage keep-temps lat-factor list-leaks map np ois or os papi-events pedantic
privatization privatize-libs reduce reduce_scatter replay scatter send-is-detached-thresh shared-malloc
shared-malloc-blocksize shared-malloc-hugepage simulate-computation test tmpdir trace-call-location
trace-call-use-absolute-path wtime
"""
KNOWN_OPTIONS = frozenset(
    [f"network/{name}" for name in _NETWORK_NAMES.split()] + [f"smpi/{name}" for name in _SMPI_NAMES.split()]
)


def factor_list(rows: Sequence[tuple[int, float]]) -> str:
    """Rows (from_bytes, factor) as the value of a latency or bandwidth factor option."""
    # SMPI applies a row to sizes above the row's size, not to that size itself, and counts the envelope.
    return ";".join(f"{start and start - 1 + ENVELOPE_BYTES}:{factor!r}" for start, factor in rows)


def overhead_list(rows: Sequence[tuple[int, float, float]]) -> str:
    """Rows (from_bytes, base_seconds, seconds_per_byte) as the value of smpi/os, smpi/or or smpi/ois."""
    # The leading row removes the overhead of empty messages: SimGrid 3.32 would charge them the first row, while 4.x
    # never charges them.
    written = [f"{start and start - 1}:{base!r}:{per_byte!r}" for start, base, per_byte in rows]
    return ";".join(["0:0.0:0.0", *written])


def factor_rows(text: str) -> tuple[tuple[int, float], ...]:
    """The rows (from_bytes, factor) of a factor option; the inverse of `factor_list`."""
    return tuple({max(0, size + 1 - ENVELOPE_BYTES): values[0] for size, values in _rows(text)}.items())


def overhead_rows(text: str) -> tuple[tuple[int, float, float], ...]:
    """The rows (from_bytes, base_seconds, seconds_per_byte) of an overhead option; the inverse of `overhead_list`."""
    rows = {size and size + 1: (values[0], values[1]) for size, values in _rows(text)}
    return tuple((start, *values) for start, values in rows.items())


def _rows(text: str) -> list[tuple[int, Sequence[float]]]:
    """The rows of an option in ascending order: the size above which a row holds, and the row's values."""
    rows = [tuple(map(float, row.split(":"))) for row in text.strip(";").split(";")]
    # The sort is stable, so of two rows for the same size the second one holds.
    return sorted(((int(size), values) for size, *values in rows), key=lambda row: row[0])


def list_problems(option: str, value: str) -> list[str]:
    """Problems with the value of a list option (shape, numbers, order), one line each."""
    per_row = 1 if option in FACTOR_OPTIONS else 2
    example = "0:1.0;65536:0.94" if per_row == 1 else "0:0.0:0.0;1024:5e-06:1e-10"
    if ":" not in value:
        return [f"{option} '{value}' has no message size, which makes SimGrid 3.32 crash; write 0:{value}"]
    sizes: list[int] = []
    for row in value.strip(";").split(";"):
        size, *numbers = row.split(":")
        # Overheads may have more numbers than SimGrid uses: its own default has four.
        if not size.strip().isdigit() or (len(numbers) != 1 if per_row == 1 else len(numbers) < per_row):
            return [f"{option}: malformed row '{row}'; write for example {example}"]
        try:
            values = [float(number) for number in numbers]
        except ValueError:
            return [f"{option}: '{row}' contains something other than numbers; write for example {example}"]
        if per_row == 1 and not 0 < values[0] < float("inf"):
            return [f"{option}: factor {numbers[0]} in '{row}' (valid: above 0)"]
        sizes.append(int(size))
    if max(sizes) > LARGEST_BYTES:
        return [f"{option}: size {max(sizes)} is too large (valid: up to {LARGEST_BYTES})"]
    if sizes not in (sorted(sizes), sorted(sizes, reverse=True)):
        return [f"{option}: sizes {', '.join(map(str, sizes))} are not in order; write them in ascending order"]
    if len(set(filter(None, sizes))) < len(list(filter(None, sizes))):
        return [f"{option}: a size is given twice; give each size once"]
    return []


def warn_of_free_messages(platform: HostPlatform) -> None:
    """Warns once if the platform has no overheads, so that its times do not include processors' time."""
    if not charges_overheads(platform.smpi_options()):
        warn(
            f"platform '{platform.name}' has no overheads (os, or, ois): messages cost processors nothing, so that "
            "short messages and small segments seem too cheap, and are chosen too often (docs/platforms.md)"
        )


def charges_overheads(options: Mapping[str, str]) -> bool:
    """True if sends or receives have an overhead (os, or, ois); by default they have none."""
    rows = [row for name in ("smpi/os", "smpi/or", "smpi/ois") for row in options.get(name, "").split(";") if row]
    return any(float(number) > 0 for row in rows for number in row.split(":")[1:])
