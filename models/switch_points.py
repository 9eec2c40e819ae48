"""Where the fastest of several candidates changes with the message size: to the byte, by bisection.

The times of formulas are smooth between jumps and kinks. A range of sizes is settled when one candidate is the fastest
at every probe, ahead of each other one by more than their difference bends between the probes; else it is halved, down
to single bytes. The jumps behind multiples of segment sizes are known beforehand and bound the ranges. What leaps back
within a 64th of a doubling, off these multiples, may be missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from collwise.models.piecewise import Array

Indices = NDArray[np.int64]
# Seconds of every candidate, shape (candidates, points), at arrays of P and of message bytes; nan where there is none.
Times = Callable[[Array, Array], Array]

NOBODY = -1
"""In place of a candidate where none has a time."""

# Times that differ by less than this share are equal: only rounding tells them apart.
TIE = 1e-12

_RANGES_A_DOUBLING = 16
# Where ranges are probed; uneven, so that no regular pattern of jumps stays between the probes.
_PROBES = np.array([0.0, 0.23, 0.49, 0.74, 1.0])
# How much further than at the probes a difference may bend between them: a kink or a jump shows half of it at least.
_BEND = 4.0
# Times held in memory at once.
_MOST_TIMES = 2_000_000


def fastest(seconds: Array) -> Indices:
    """The first of the fastest candidates (first axis) at every point, NOBODY where all are nan or infinite."""
    known = np.where(np.isnan(seconds), np.inf, seconds)
    least = np.min(known, axis=0)
    first = np.argmax(known <= least + np.where(np.isfinite(least), np.abs(least), 0.0) * TIE, axis=0)
    return np.where(np.isfinite(least), first, NOBODY)


def switch_points(
    times: Times, procs: Sequence[int], least_bytes: int, largest_bytes: int, segment_bytes: Sequence[int] = ()
) -> dict[int, tuple[tuple[int, int], ...]]:
    """For each P the message sizes, from the least to the largest, from which another candidate is the fastest.

    A pair is a size in bytes and the candidate's index as `fastest` has it; the first is at `least_bytes`. `times` may
    jump at the byte behind each multiple of `segment_bytes`.
    """
    counts = np.array(procs, dtype=np.int64)
    starts = _starts(least_bytes, largest_bytes, segment_bytes)
    ends = np.append(starts[1:] - 1, largest_bytes)
    ranges = (np.repeat(counts, len(starts)), np.tile(starts, len(counts)), np.tile(ends, len(counts)))
    return _merged(*(np.concatenate(column) for column in zip(*_settled(times, *ranges), strict=True)))


def _starts(least: int, largest: int, segments: Sequence[int]) -> Indices:
    """The first sizes of the ranges to look at: steps of a doubling, and the bytes behind multiples of segments."""
    steps = np.exp2(np.arange(0, np.log2(max(largest, 1)) + 1, 1 / _RANGES_A_DOUBLING)).astype(np.int64)
    behind = [np.arange(1, largest + 1, size, dtype=np.int64) for size in segments if size > 0]
    every = np.concatenate([[least], steps, *behind])
    return np.unique(every[(every >= least) & (every <= largest)])


def _settled(
    times: Times, procs: Indices, starts: Indices, ends: Indices
) -> Iterator[tuple[Indices, Indices, Indices]]:
    """P, first size and candidate of ranges in which one candidate is the fastest; ends are within the ranges."""
    candidates = len(times(procs[:1].astype(float), starts[:1].astype(float)))
    at_once = max(1, _MOST_TIMES // (len(_PROBES) * candidates))
    while len(starts):
        halved = []
        for first in range(0, len(starts), at_once):
            these = slice(first, first + at_once)
            p, start, end = procs[these], starts[these], ends[these]
            probes = _probes(start, end)
            flat = np.repeat(p, len(_PROBES)).astype(float)
            seconds = times(flat, probes.ravel().astype(float)).reshape(-1, *probes.shape)
            seconds = np.where(np.isnan(seconds), np.inf, seconds)
            winners = fastest(seconds)
            one = _one_winner(seconds, winners, probes)
            yield p[one], start[one], winners[one, 0]
            known = ~one & (end - start < len(_PROBES))
            yield np.repeat(p[known], len(_PROBES)), probes[known].ravel(), winners[known].ravel()
            left = ~one & ~known
            middle = (start[left] + end[left]) // 2
            halved += [(p[left], start[left], middle), (p[left], middle + 1, end[left])]
        procs, starts, ends = (np.concatenate(column) for column in zip(*halved, strict=True))


def _probes(starts: Indices, ends: Indices) -> Indices:
    """Sizes within each range, shape (ranges, probes): all of a short one, the last one repeated."""
    width = (ends - starts)[:, None]
    spread = (starts[:, None] + width * _PROBES).astype(np.int64)
    spread[:, -1] = ends
    every = starts[:, None] + np.minimum(np.arange(len(_PROBES)), width)
    return np.where(width < len(_PROBES), every, spread)


def _one_winner(seconds: Array, winners: Indices, probes: Indices) -> NDArray[np.bool_]:
    """Whether the winner of a range's probes surely wins in between, too; seconds (candidates, ranges, probes)."""
    winner = winners[:, 0]
    same = np.all(winners == winner[:, None], axis=1)
    best = np.take_along_axis(seconds, winner[None, :, None], axis=0)
    index = np.arange(len(seconds))[:, None]
    with np.errstate(invalid="ignore"):
        # How far the winner is ahead: an earlier one with the same time would have won.
        ahead = seconds - best + np.where(index > winner, TIE, -TIE)[:, :, None] * np.abs(best)
        along = (probes - probes[:, :1]) / np.maximum(probes[:, -1:] - probes[:, :1], 1)
        straight = ahead[:, :, :1] + (ahead[:, :, -1:] - ahead[:, :, :1]) * along
        bend = np.max(np.abs(ahead - straight), axis=2)
        clear = np.min(ahead, axis=2) >= _BEND * bend
    never = np.all(np.isinf(seconds), axis=2)
    return np.asarray(same & np.all(clear | never | (index == winner), axis=0))


def _merged(procs: Indices, starts: Indices, winners: Indices) -> dict[int, tuple[tuple[int, int], ...]]:
    """By P, ascending in size; ranges that say what the one before says are dropped."""
    order = np.lexsort((starts, procs))
    procs, starts, winners = procs[order], starts[order], winners[order]
    changes = np.append(True, (procs[1:] != procs[:-1]) | (winners[1:] != winners[:-1]))
    rows: dict[int, list[tuple[int, int]]] = {}
    for p, start, winner in zip(procs[changes], starts[changes], winners[changes], strict=True):
        rows.setdefault(int(p), []).append((int(start), int(winner)))
    return {p: tuple(row) for p, row in rows.items()}
