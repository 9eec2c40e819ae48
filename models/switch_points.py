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
    narrow = _from_to(starts, largest_bytes)
    near = _near(candidates, counts, _from_to(steps, largest_bytes), narrow)
    home = np.searchsorted(steps, starts, side="right") - 1
    ranges = np.stack([np.repeat(counts, len(starts)), *np.tile(narrow, len(counts))])
    found = _settled(candidates, ranges, near[:, :, home].reshape(len(candidates), -1))
    return _merged(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _within(least: int, largest: int, *sizes: Indices) -> Indices:
    """The sizes between the bounds, and the least, ascending."""
    every = np.concatenate([[least], *sizes])
    return np.unique(every[(every >= least) & (every <= largest)])


def _from_to(starts: Indices, largest: int) -> Indices:
    """The first and last size of ranges that follow each other, as two rows."""
    return np.stack([starts, np.append(starts[1:] - 1, largest)])


def _near(candidates: Sequence[Times], counts: Indices, wide: Indices, narrow: Indices) -> NDArray[np.bool_]:
    """Which candidates may be the fastest somewhere in a wide range, shape (candidates, P, ranges).

    Looked at are its probes, and both ends of the narrow ranges in it: where all segments are full, or one more has
    made them short, times may leap for a single byte.
    """
    probes, bounds = _probes(*wide), narrow.T
    first = np.searchsorted(narrow[0], wide[0])
    at_once = max(1, _MOST_TIMES // (len(candidates) * max(probes.size, bounds.size)))
    found = []
    for some in np.split(counts, range(at_once, len(counts), at_once)):
        seconds = _over_grid(candidates, some, probes)
        slowest_best = np.max(np.min(seconds, axis=0), axis=-1)
        near = np.min(seconds, axis=-1) <= _FAR * slowest_best
        seconds = _over_grid(candidates, some, bounds)
        here = np.any(seconds <= _FAR * np.min(seconds, axis=0), axis=-1)
        found.append(near | np.logical_or.reduceat(here, first, axis=-1))
    return np.concatenate(found, axis=1)


def _over_grid(candidates: Sequence[Times], counts: Indices, sizes: Indices) -> Array:
    """Seconds for each P at all sizes, shape (candidates, P, *shape of sizes); infinite for nan."""
    points = np.broadcast_arrays(counts[:, None].astype(float), sizes.ravel().astype(float))
    return np.stack([_known(times(*points)) for times in candidates]).reshape(len(candidates), -1, *sizes.shape)


def _at_probes(candidates: Sequence[Times], procs: Indices, probes: Indices, wanted: NDArray[np.bool_]) -> Array:
    """Seconds at the probes, shape (candidates, ranges, probes); infinite for nan and where they are not wanted."""
    seconds = np.full((len(candidates), *probes.shape), np.inf)
    for times, here, mine in zip(candidates, wanted, seconds, strict=True):
        if here.any():
            points = probes[here].astype(float)
            counts = np.repeat(procs[here].astype(float), points.shape[1])
            mine[here] = _known(times(counts, points.ravel())).reshape(points.shape)
    return seconds


def _known(seconds: Array) -> Array:
    return np.where(np.isnan(seconds), np.inf, seconds)


def _settled(
    candidates: Sequence[Times], ranges: Indices, wanted: NDArray[np.bool_]
) -> Iterator[tuple[Indices, Indices, Indices]]:
    """P, first size and fastest candidate of ranges in which that does not change.

    The rows of `ranges` are P, the first and the last size; `wanted` says which candidates may win in each of them.
    """
    at_once = max(1, _MOST_TIMES // (len(_PROBES) * len(candidates)))
    while ranges.size:
        halves: list[Indices] = []
        left: list[NDArray[np.bool_]] = []
        for first in range(0, ranges.shape[1], at_once):
            part, here = ranges[:, first : first + at_once], wanted[:, first : first + at_once]
            procs, starts, ends = part
            probes = _probes(starts, ends)
            seconds = _at_probes(candidates, procs, probes, here)
            winners = fastest(seconds)
            rivals = _rivals(seconds, here, winners[:, 0], probes)
            one = np.all(winners == winners[:, :1], axis=1) & ~np.any(rivals, axis=0)
            yield procs[one], starts[one], winners[one, 0]
            known = ~one & (ends - starts < len(_PROBES))
            yield np.repeat(procs[known], len(_PROBES)), probes[known].ravel(), winners[known].ravel()
            again = ~one & ~known
            procs, starts, ends = part[:, again]
            middle = (starts + ends) // 2
            halves += [np.stack([procs, starts, middle]), np.stack([procs, middle + 1, ends])]
            left += [(rivals | (np.arange(len(candidates))[:, None] == winners[:, 0]))[:, again]] * 2
        ranges, wanted = np.concatenate(halves, axis=1), np.concatenate(left, axis=1)


def _probes(starts: Indices, ends: Indices) -> Indices:
    """Sizes within each range, shape (ranges, probes): all of a short one, the last one repeated."""
    width = (ends - starts)[:, None]
    spread = (starts[:, None] + width * _PROBES).astype(np.int64)
    spread[:, -1] = ends
    every = starts[:, None] + np.minimum(np.arange(len(_PROBES)), width)
    return np.where(width < len(_PROBES), every, spread)


def _rivals(seconds: Array, wanted: NDArray[np.bool_], winner: Indices, probes: Indices) -> NDArray[np.bool_]:
    """Which candidates may be faster than a range's winner at its first probe somewhere, shape (candidates, ranges).

    Seconds have the shape (candidates, ranges, probes); candidates that are not wanted in a range have no time there.
    """
    rivals = wanted & (np.arange(len(wanted))[:, None] != winner)
    best = np.take_along_axis(seconds, winner[None, :, None], axis=0)[0]
    along = (probes - probes[:, :1]) / np.maximum(probes[:, -1:] - probes[:, :1], 1)
    for index, mine in enumerate(rivals):
        which = np.flatnonzero(mine)
        times, least = seconds[index, which], best[which]
        with np.errstate(invalid="ignore"):
            # How far the winner is ahead: an earlier one with the same time would have won.
            ahead = times - least + np.where(index > winner[which], TIE, -TIE)[:, None] * np.abs(least)
            straight = ahead[:, :1] + (ahead[:, -1:] - ahead[:, :1]) * along[which]
            bend = np.max(np.abs(ahead - straight), axis=1)
            clear = np.min(ahead, axis=1) >= _BEND * bend
        mine[which] = ~(clear | np.all(np.isinf(times), axis=1))
    return rivals


def _merged(procs: Indices, starts: Indices, winners: Indices) -> dict[int, tuple[tuple[int, int], ...]]:
    """By P, ascending in size; ranges that say what the one before says are dropped."""
    order = np.lexsort((starts, procs))
    procs, starts, winners = procs[order], starts[order], winners[order]
    changes = np.append(True, (procs[1:] != procs[:-1]) | (winners[1:] != winners[:-1]))
    rows: dict[int, list[tuple[int, int]]] = {}
    for p, start, winner in zip(procs[changes], starts[changes], winners[changes], strict=True):
        rows.setdefault(int(p), []).append((int(start), int(winner)))
    return {p: tuple(row) for p, row in rows.items()}
