"""Where the fastest of several candidates changes with the message size: to the byte, by bisection.

The times of formulas are smooth between jumps and kinks. A range of sizes is settled when one candidate is the fastest
at every probe, ahead of each other one by more than their difference bends between the probes; else it is halved, down
to single bytes. The jumps at and behind multiples of segment sizes are known beforehand and bound the ranges: where all
segments are full, their size may reach the eager limit, which those of smaller and larger messages do not. Any other
leap that reverts within a 64th of a doubling may be missed. Candidates that are far behind all over a sixteenth of
a doubling are not evaluated there again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from collwise.models.piecewise import Array

Indices = NDArray[np.int64]
# Seconds of a candidate at arrays of P and of message bytes; nan where it has no time.
Times = Callable[[Array, Array], Array]

NOBODY = -1
"""Stands for a candidate where none has a time."""

# Times that differ by less than this share are equal: only rounding tells them apart.
TIE = 1e-12

_RANGES_A_DOUBLING = 16
# Where ranges are probed; uneven, so that no regular pattern of jumps stays between the probes.
_PROBES = np.array([0.0, 0.23, 0.49, 0.74, 1.0])
# How much further a difference may bend between the probes than at them: a kink or a jump shows at least half of it.
_BEND = 4.0
# A candidate that is slower than this many times the fastest all over a step is left out there.
_FAR = 1.5
# Times held in memory at once.
_MOST_TIMES = 2_000_000


def fastest(seconds: Array) -> Indices:
    """The first of the fastest candidates (first axis) at every point, NOBODY where all are nan or infinite."""
    known = np.where(np.isnan(seconds), np.inf, seconds)
    least = np.min(known, axis=0)
    first = np.argmax(known <= least + np.where(np.isfinite(least), np.abs(least), 0.0) * TIE, axis=0)
    return np.where(np.isfinite(least), first, NOBODY)


def switch_points(
    candidates: Sequence[Times],
    procs: Sequence[int],
    least_bytes: int,
    largest_bytes: int,
    segment_bytes: Sequence[int] = (),
) -> dict[int, tuple[tuple[int, int], ...]]:
    """For each P the message sizes, from the least to the largest, from which another candidate is the fastest.

    A pair is a size in bytes and the candidate's index as `fastest` has it; the first is at `least_bytes`. Times may
    jump at each multiple of `segment_bytes` and at the byte behind it.
    """
    counts = np.array(procs, dtype=np.int64)
    doublings = np.arange(0, np.log2(max(largest_bytes, 1)) + 1, 1 / _RANGES_A_DOUBLING)
    steps = _within(least_bytes, largest_bytes, np.exp2(doublings).astype(np.int64))
    behind = [np.arange(1, largest_bytes + 1, size, dtype=np.int64) for size in segment_bytes if size > 0]
    starts = _within(least_bytes, largest_bytes, steps, *behind)
    wide = _ranges(counts, steps, largest_bytes, np.arange(len(steps)))
    narrow = _ranges(counts, starts, largest_bytes, np.searchsorted(steps, starts, side="right") - 1)
    found = _settled(candidates, narrow, _near(candidates, wide, narrow))
    return _merged(*(np.concatenate(column) for column in zip(*found, strict=True)))


# Ranges of sizes are the columns of an array; its rows are P, the first and the last size, and the index of the wide
# range that they are part of.


def _ranges(counts: Indices, starts: Indices, largest: int, home: Indices) -> Indices:
    """The same ranges for each P, one after the other; `home` counts the wide ranges of one P."""
    ends = np.append(starts[1:] - 1, largest)
    each = np.repeat(counts, len(starts)), *(np.tile(row, len(counts)) for row in (starts, ends))
    homes = np.arange(len(counts))[:, None] * (home[-1] + 1) + home[None, :]
    return np.stack([*each, homes.ravel()])


def _batches(ranges: Indices, candidates: int) -> Iterator[Indices]:
    """Ranges at a time, as many as memory is to hold the times of."""
    at_once = max(1, _MOST_TIMES // (len(_PROBES) * candidates))
    for first in range(0, ranges.shape[1], at_once):
        yield ranges[:, first : first + at_once]


def _within(least: int, largest: int, *sizes: Indices) -> Indices:
    """The sizes between the bounds, and the least, ascending."""
    every = np.concatenate([[least], *sizes])
    return np.unique(every[(every >= least) & (every <= largest)])


def _near(candidates: Sequence[Times], wide: Indices, narrow: Indices) -> NDArray[np.bool_]:
    """Which candidates may be the fastest somewhere in a wide range, shape (candidates, ranges).

    Looked at are its probes, and both ends of the narrow ranges in it: where all segments are full, or one more has
    made them short, times may leap for a single byte.
    """
    found = np.zeros((len(candidates), wide.shape[1]), dtype=bool)
    for procs, starts, ends, home in _batches(wide, len(candidates)):
        seconds = _evaluated(candidates, procs, _probes(starts, ends))
        slowest_best = np.max(np.min(seconds, axis=0), axis=1)
        found[:, home] = np.min(seconds, axis=2) <= _FAR * slowest_best
    for procs, starts, ends, home in _batches(narrow, len(candidates)):
        seconds = _evaluated(candidates, procs, np.stack([starts, ends], axis=1))
        near = np.any(seconds <= _FAR * np.min(seconds, axis=0), axis=2)
        for mine, here in zip(found, near, strict=True):
            mine[home[here]] = True
    return found


def _evaluated(
    candidates: Sequence[Times], procs: Indices, probes: Indices, wanted: NDArray[np.bool_] | None = None
) -> Array:
    """Seconds at the probes, shape (candidates, ranges, probes); infinite for nan and where they are not wanted."""
    seconds = np.full((len(candidates), *probes.shape), np.inf)
    for index, times in enumerate(candidates):
        here = np.ones(len(probes), dtype=bool) if wanted is None else wanted[index]
        if here.any():
            points = probes[here]
            counts = np.broadcast_to(procs[here, None], points.shape)
            found = times(counts.ravel().astype(float), points.ravel().astype(float))
            seconds[index, here] = np.where(np.isnan(found), np.inf, found).reshape(points.shape)
    return seconds


def _settled(
    candidates: Sequence[Times], ranges: Indices, near: NDArray[np.bool_]
) -> Iterator[tuple[Indices, Indices, Indices]]:
    """P, first size and fastest candidate of ranges in which that does not change."""
    while ranges.size:
        halves: list[Indices] = []
        for part in _batches(ranges, len(candidates)):
            procs, starts, ends, home = part
            probes, wanted = _probes(starts, ends), near[:, home]
            seconds = _evaluated(candidates, procs, probes, wanted)
            winners = fastest(seconds)
            one = _one_winner(seconds, wanted, winners, probes)
            yield procs[one], starts[one], winners[one, 0]
            known = ~one & (ends - starts < len(_PROBES))
            yield np.repeat(procs[known], len(_PROBES)), probes[known].ravel(), winners[known].ravel()
            procs, starts, ends, home = part[:, ~one & ~known]
            middle = (starts + ends) // 2
            halves += [np.stack([procs, starts, middle, home]), np.stack([procs, middle + 1, ends, home])]
        ranges = np.concatenate(halves, axis=1)


def _probes(starts: Indices, ends: Indices) -> Indices:
    """Sizes within each range, shape (ranges, probes): all of a short one, the last one repeated."""
    width = (ends - starts)[:, None]
    spread = (starts[:, None] + width * _PROBES).astype(np.int64)
    spread[:, -1] = ends
    every = starts[:, None] + np.minimum(np.arange(len(_PROBES)), width)
    return np.where(width < len(_PROBES), every, spread)


def _one_winner(seconds: Array, wanted: NDArray[np.bool_], winners: Indices, probes: Indices) -> NDArray[np.bool_]:
    """Whether the winner of a range's probes surely wins in between, too; seconds (candidates, ranges, probes).

    Candidates that are not wanted in a range have no time there.
    """
    winner = winners[:, 0]
    one = np.all(winners == winner[:, None], axis=1)
    best = np.take_along_axis(seconds, winner[None, :, None], axis=0)[0]
    along = (probes - probes[:, :1]) / np.maximum(probes[:, -1:] - probes[:, :1], 1)
    for index, here in enumerate(wanted):
        which = np.flatnonzero(here & one & (winner != index))
        times, least = seconds[index, which], best[which]
        with np.errstate(invalid="ignore"):
            # How far the winner is ahead: an earlier one with the same time would have won.
            ahead = times - least + np.where(index > winner[which], TIE, -TIE)[:, None] * np.abs(least)
            straight = ahead[:, :1] + (ahead[:, -1:] - ahead[:, :1]) * along[which]
            bend = np.max(np.abs(ahead - straight), axis=1)
            clear = np.min(ahead, axis=1) >= _BEND * bend
        one[which] = clear | np.all(np.isinf(times), axis=1)
    return one


def _merged(procs: Indices, starts: Indices, winners: Indices) -> dict[int, tuple[tuple[int, int], ...]]:
    """By P, ascending in size; ranges that say what the one before says are dropped."""
    order = np.lexsort((starts, procs))
    procs, starts, winners = procs[order], starts[order], winners[order]
    changes = np.append(True, (procs[1:] != procs[:-1]) | (winners[1:] != winners[:-1]))
    rows: dict[int, list[tuple[int, int]]] = {}
    for p, start, winner in zip(procs[changes], starts[changes], winners[changes], strict=True):
        rows.setdefault(int(p), []).append((int(start), int(winner)))
    return {p: tuple(row) for p, row in rows.items()}
