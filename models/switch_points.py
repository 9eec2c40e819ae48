"""Finds the candidates that are fastest, or nearly so, and the exact message sizes at which these candidates change.

The times of formulas are smooth between jumps and kinks. A range of sizes is settled if one candidate is the fastest at
every probe, its lead over each other candidate exceeds the bend of their difference between the probes, and each other
candidate is just as clearly within the tolerance or beyond it. Otherwise the range is halved, down to single bytes.
Times may jump at a multiple of a segment size and jump back at the next byte: at the multiple all segments are full, so
their size may reach the eager limit. These multiples are known beforehand and bound the ranges. Any other leap that
reverts within a 64th of a doubling may be missed. Candidates that are far behind throughout a range are not evaluated
there again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collwise.models.piecewise import Array

Indices = NDArray[np.int64]
Bits = NDArray[np.uint8]
# Seconds of a candidate at arrays of P and of message bytes; nan where it has no time.
Times = Callable[[Array, Array], Array]
# Pairs of a message size, ascending, and the candidates that are fast enough from this size on; no candidates if none
# has a time.
Standings = Sequence[tuple[int, frozenset[int]]]

NOBODY = -1
"""This index stands for no candidate, at points where no candidate has a time."""

# Times that differ by less than this share count as equal, since only rounding distinguishes them.
TIE = 1e-12

_RANGES_A_DOUBLING = 16
# The places at which ranges are probed; uneven, so that no regular pattern of jumps stays between the probes.
_PROBES = np.array([0.0, 0.23, 0.49, 0.74, 1.0])
# Between the probes a difference may bend up to this many times as far as at the probes, where a kink or a jump
# shows at least half of its size.
_BEND = 4.0
# If a candidate takes more than this many times the tolerated time throughout a range, it is left out there.
_FAR = 1.5
# Times held in memory at once.
_MAX_TIMES = 2_000_000


def fastest(seconds: Array) -> Indices:
    """The first of the fastest candidates (first axis) at every point; NOBODY where all times are nan or infinite."""
    known = _known(seconds)
    least = np.min(known, axis=0)
    first = np.argmax(known <= least + _allowed(least, 0.0), axis=0)
    return np.where(np.isfinite(least), first, NOBODY)


def picked_seconds(seconds: Array, picks: Indices) -> Array:
    """The seconds of the picked candidate (first axis) at every point, nan for NOBODY."""
    found = np.take_along_axis(seconds, np.maximum(picks, 0)[None], axis=0)[0]
    return np.where(picks == NOBODY, np.nan, found)


def good_enough(seconds: Array, tolerance: float) -> NDArray[np.bool_]:
    """True where a candidate (first axis) takes at most (1 + tolerance) times as long as the fastest.

    With a tolerance of 0 only the candidate that `fastest` names is marked, even if others are as fast.
    """
    good = _one_of(len(seconds), fastest(seconds))
    if tolerance:
        least = np.min(_known(seconds), axis=0)
        good |= np.isfinite(seconds) & (_known(seconds) <= least + _allowed(least, tolerance))
    return good


def switch_points(
    candidates: Sequence[Times],
    procs: Sequence[int],
    min_bytes: int,
    largest_bytes: int,
    segment_bytes: Sequence[int] = (),
    tolerance: float = 0.0,
) -> Mapping[int, Standings]:
    """The message sizes, ascending from `min_bytes`, at which the set of `good_enough` candidates changes, for each P.

    Times may jump at each multiple of `segment_bytes` and at the next byte.
    """
    counts = np.array(procs, dtype=np.int64)
    doublings = np.arange(0, np.log2(max(largest_bytes, 1)) + 1, 1 / _RANGES_A_DOUBLING)
    steps = _within(min_bytes, largest_bytes, np.exp2(doublings).astype(np.int64))
    behind = [np.arange(1, largest_bytes + 1, size, dtype=np.int64) for size in segment_bytes if size > 0]
    starts = _within(min_bytes, largest_bytes, steps, *behind)
    narrow = _from_to(starts, largest_bytes)
    near = _near(candidates, counts, _from_to(steps, largest_bytes), narrow, _FAR * (1 + tolerance))
    home = np.searchsorted(steps, starts, side="right") - 1
    ranges = np.stack([np.repeat(counts, len(starts)), *np.tile(narrow, len(counts))])
    found = _settled(candidates, ranges, near[:, :, home].reshape(len(candidates), -1), tolerance)
    return _by_procs(len(candidates), *(np.concatenate(column, axis=-1) for column in zip(*found, strict=True)))


def _one_of(number: int, index: Indices) -> NDArray[np.bool_]:
    """Marks the candidate (first axis) with the given index at every point; marks none where the index is NOBODY."""
    return np.asarray(np.arange(number).reshape(-1, *[1] * index.ndim) == index)


def _allowed(least: Array, tolerance: float) -> Array:
    """The seconds by which the tolerance allows a time to exceed the smallest time; 0 where no time is known."""
    return np.where(np.isfinite(least), np.abs(least), 0.0) * (tolerance + TIE)


def _within(least: int, largest: int, *sizes: Indices) -> Indices:
    """The sizes within the bounds, with the lower bound itself, ascending."""
    every = np.concatenate([[least], *sizes])
    return np.unique(every[(every >= least) & (every <= largest)])


def _from_to(starts: Indices, largest: int) -> Indices:
    """The first and last sizes of consecutive ranges, as two rows."""
    return np.stack([starts, np.append(starts[1:] - 1, largest)])


def _near(
    candidates: Sequence[Times], counts: Indices, wide: Indices, narrow: Indices, far: float
) -> NDArray[np.bool_]:
    """True for candidates that may be nearly the fastest somewhere in a wide range, shape (candidates, P, ranges).

    The times that decide are those at the probes of the wide range, and those at both ends of its narrow ranges, where
    times may leap.
    """
    probes, bounds = _probes(*wide), narrow.T
    first = np.searchsorted(narrow[0], wide[0])
    at_once = max(1, _MAX_TIMES // (len(candidates) * max(probes.size, bounds.size)))
    found = []
    for some in np.split(counts, range(at_once, len(counts), at_once)):
        seconds = _over_grid(candidates, some, probes)
        slowest_best = _along_probes(np.maximum, np.min(seconds, axis=0))
        near = _along_probes(np.minimum, seconds) <= far * slowest_best
        seconds = _over_grid(candidates, some, bounds)
        here = _along_probes(np.logical_or, seconds <= far * np.min(seconds, axis=0))
        found.append(near | np.logical_or.reduceat(here, first, axis=-1))
    return np.concatenate(found, axis=1)


def _over_grid(candidates: Sequence[Times], counts: Indices, sizes: Indices) -> Array:
    """Seconds for each P at all sizes, shape (candidates, P, *shape of sizes); infinite instead of nan."""
    points = np.broadcast_arrays(counts[:, None].astype(float), sizes.ravel().astype(float))
    return np.stack([_known(times(*points)) for times in candidates]).reshape(len(candidates), -1, *sizes.shape)


def _at_probes(candidates: Sequence[Times], procs: Indices, probes: Indices, wanted: NDArray[np.bool_]) -> Array:
    """Seconds at the probes, shape (candidates, ranges, probes); infinite instead of nan, and where not `wanted`."""
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
    candidates: Sequence[Times], ranges: Indices, wanted: NDArray[np.bool_], tolerance: float
) -> Iterator[tuple[Indices, Indices, Bits]]:
    """Yields ranges in which the good enough candidates do not change: P, first size and these candidates as bits.

    The rows of `ranges` are P, the first and the last size; `wanted` says which candidates may be good enough in each.
    """
    at_once = max(1, _MAX_TIMES // (len(_PROBES) * len(candidates)))
    # The candidates known to be good enough throughout a range; they are not evaluated there again.
    good = np.zeros_like(wanted)
    while ranges.size:
        halves: list[Indices] = []
        left: list[NDArray[np.bool_]] = []
        known: list[NDArray[np.bool_]] = []
        for first in range(0, ranges.shape[1], at_once):
            some = slice(first, first + at_once)
            part, here, sure = ranges[:, some], wanted[:, some], good[:, some]
            procs, starts, ends = part
            probes = _probes(starts, ends)
            seconds = _at_probes(candidates, procs, probes, here)
            winners = fastest(seconds)
            winner = _one_of(len(candidates), winners[:, 0])
            rivals, fast, unclear = _compared(seconds, here & ~winner, winners[:, 0], probes, tolerance)
            one = _along_probes(np.logical_and, winners == winners[:, :1]) & ~np.any(rivals, axis=0)
            sure = sure | (fast & one)
            done = one & ~np.any(unclear, axis=0)
            yield procs[done], starts[done], np.packbits((sure | winner)[:, done], axis=0)
            short = ~done & (ends - starts < len(_PROBES))
            each = good_enough(seconds[:, short], tolerance) | sure[:, short, None]
            bits = np.packbits(each.reshape(len(candidates), -1), axis=0)
            yield np.repeat(procs[short], len(_PROBES)), probes[short].ravel(), bits
            again = ~done & ~short
            procs, starts, ends = part[:, again]
            middle = (starts + ends) // 2
            halves += [np.stack([procs, starts, middle]), np.stack([procs, middle + 1, ends])]
            left += [(winner | rivals | unclear | (fast & ~one))[:, again]] * 2
            known += [sure[:, again]] * 2
        ranges = np.concatenate(halves, axis=1)
        wanted, good = np.concatenate(left, axis=1), np.concatenate(known, axis=1)


def _probes(starts: Indices, ends: Indices) -> Indices:
    """Sizes within each range, shape (ranges, probes). A short range gives all its sizes, the last one repeated."""
    width = (ends - starts)[:, None]
    spread = (starts[:, None] + width * _PROBES).astype(np.int64)
    spread[:, -1] = ends
    every = starts[:, None] + np.minimum(np.arange(len(_PROBES)), width)
    return np.where(width < len(_PROBES), every, spread)


def _compared(
    seconds: Array, others: NDArray[np.bool_], winner: Indices, probes: Indices, tolerance: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Compares other candidates with the winner at a range's first probe; marks rivals, good and unclear candidates.

    Rivals may be faster than the winner somewhere in the range, good ones are good enough throughout, unclear ones may
    be good enough in a part of it. `seconds` has the shape (candidates, ranges, probes), `others` and the results have
    (candidates, ranges).
    """
    rivals, good = others.copy(), np.zeros_like(others)
    unclear = others.copy() if tolerance else rivals
    best = np.take_along_axis(seconds, winner[None, :, None], axis=0)[0]
    along = (probes - probes[:, :1]) / np.maximum(probes[:, -1:] - probes[:, :1], 1)
    for index, mine in enumerate(others):
        which = np.flatnonzero(mine)
        times, least, place = seconds[index, which], best[which], along[which]
        never = _along_probes(np.logical_and, np.isinf(times))
        with np.errstate(invalid="ignore"):
            ahead = times - least
            # An earlier candidate with the same time would have won.
            tie = np.where(index > winner[which], TIE, -TIE)[:, None] * np.abs(least)
            rivals[index, which] = ~(_clear(ahead + tie, place) | never)
            if tolerance:
                beyond = ahead - _allowed(least, tolerance)
                good[index, which] = _clear(-beyond, place)
                unclear[index, which] = ~(good[index, which] | _clear(beyond, place) | never)
    return rivals, good, unclear


def _clear(difference: Array, along: Array) -> NDArray[np.bool_]:
    """True for ranges whose differences at the probes are so large that they stay above 0 between the probes, too."""
    straight = difference[:, :1] + (difference[:, -1:] - difference[:, :1]) * along
    bend = _along_probes(np.maximum, np.abs(difference - straight))
    return np.asarray(_along_probes(np.minimum, difference) >= _BEND * bend)


def _along_probes(function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Reduces the last axis, which is so short that NumPy's own reductions take several times as long."""
    return np.asarray(reduce(function, np.moveaxis(values, -1, 0)))


def _by_procs(number: int, procs: Indices, starts: Indices, bits: Bits) -> Mapping[int, Standings]:
    """Standings by P, from the bits of `number` candidates; sizes at which no candidate's bit changes are left out."""
    order = np.lexsort((starts, procs))
    procs, starts, bits = procs[order], starts[order], bits[:, order]
    changes = np.append(True, (procs[1:] != procs[:-1]) | np.any(bits[:, 1:] != bits[:, :-1], axis=0))
    kinds, which = np.unique(bits[:, changes], axis=1, return_inverse=True)
    members = [frozenset(np.flatnonzero(column).tolist()) for column in np.unpackbits(kinds, axis=0, count=number).T]
    found: dict[int, list[tuple[int, frozenset[int]]]] = {}
    for p, start, kind in zip(procs[changes].tolist(), starts[changes].tolist(), which.ravel().tolist(), strict=True):
        found.setdefault(p, []).append((start, members[kind]))
    return found
