"""The claims of Pješivac-Grbović et al. 2007 about decision maps and penalty maps (section 6.3) against simulation.

The models of a map are in the order Hockney, LogGP, PLogP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices
from collwise.studies.papers.pjesivac2007 import tables as published
from collwise.studies.papers.pjesivac2007.analysis import KIB, LARGE_SEGMENT, MIB, SMALL_SEGMENT
from collwise.studies.papers.pjesivac2007.claims import (
    IN_PART,
    LARGE,
    NO,
    SMALL,
    YES,
    Finding,
    about,
    by_share,
    if_true,
    of_models,
    percent,
)
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.maps import DecisionMaps
from collwise.validation.selection.slowdown import slowdown

ABOUT_1_KB = (KIB, KIB)
COUPLE_OF_KB = (2 * KIB, 8 * KIB)
AROUND_10_KB = (8 * KIB, 16 * KIB)
UP_TO_10_KB = (KIB, 8 * KIB)
INTERMEDIATE = (4 * KIB, 64 * KIB)
FROM_COUPLE_OF_KB = (COUPLE_OF_KB[0], LARGE[1])
REALLY_LARGE = (MIB, LARGE[1])
"""Message sizes in bytes, both ends included."""

MORE_THAN_16, AT_MOST_16, FROM_16, BELOW_16 = (17, 1 << 30), (1, 16), (16, 1 << 30), (1, 15)
ANY_PROCS = (1, 1 << 30)
"""Process counts, both ends included."""

Wanted = Callable[[Choice], bool]


@dataclass(frozen=True)
class _Reading:
    """The picks of a map and their penalties, by region."""

    maps: DecisionMaps
    winners: Indices
    slowdown: Array

    def inside(self, sizes: tuple[int, int], procs: tuple[int, int] = ANY_PROCS) -> NDArray[np.bool_]:
        """The region's points, shape (P, m)."""
        m, p = np.array(self.maps.grid.message_bytes), np.array(self.maps.grid.procs)
        return ((p >= procs[0]) & (p <= procs[1]))[:, None] & ((m >= sizes[0]) & (m <= sizes[1]))[None, :]

    def pick(self, index: int) -> Choice:
        """The method with this index."""
        return self.maps.methods[index]

    def picks(self, sizes: tuple[int, int], procs: tuple[int, int] = ANY_PROCS) -> list[Choice]:
        """The picks at the region's points, where there are any."""
        methods = self.maps.methods
        return [methods[index] for index in self.winners[self.inside(sizes, procs)] if index != NOBODY]

    def share(self, wanted: Wanted, sizes: tuple[int, int], procs: tuple[int, int] = ANY_PROCS) -> float:
        """The share of the region's picks that are wanted; nan without any picks."""
        picks = self.picks(sizes, procs)
        return sum(map(wanted, picks)) / len(picks) if picks else float("nan")

    def leading(self, sizes: tuple[int, int], procs: tuple[int, int] = ANY_PROCS) -> str:
        """'binomial 95 %, linear 5 %': the three most frequent picks of the region."""
        names = [choice.label for choice in self.picks(sizes, procs)]
        return ", ".join(f"{name} {percent(number / len(names))}" for name, number in Counter(names).most_common(3))

    def worst(
        self, sizes: tuple[int, int], procs: tuple[int, int] = ANY_PROCS, but: int | None = None
    ) -> tuple[float, str]:
        """The worst slowdown of the region, except at P = `but`, and where it is: '7 % (P = 8, 1 KiB: linear)'."""
        there = self.inside(sizes, procs) & (np.array(self.maps.grid.procs) != but)[:, None]
        known = np.where(there & np.isfinite(self.slowdown), self.slowdown, -np.inf)
        i, j = np.unravel_index(int(np.argmax(known)), known.shape)
        pick = self.pick(int(self.winners[i, j])).label
        size = format_size(self.maps.grid.message_bytes[int(j)])
        return float(known[i, j]), f"{percent(known[i, j])} (P = {self.maps.grid.procs[int(i)]}, {size}: {pick})"

    def mean(self, sizes: tuple[int, int]) -> float:
        """The mean slowdown in the region."""
        return float(np.nanmean(self.slowdown[self.inside(sizes)]))

    def settles_from(self, wanted: Wanted) -> Array:
        """The size from which on all picks are wanted, for each P; infinite where the last one is not."""
        return np.array([self._settles(row, wanted) for row in self.winners])

    def _settles(self, row: Indices, wanted: Wanted) -> float:
        start = np.inf
        for size, index in zip(reversed(self.maps.grid.message_bytes), reversed(row.tolist()), strict=True):
            if index == NOBODY or not wanted(self.pick(index)):
                break
            start = float(size)
        return start


def _readings(maps: DecisionMaps) -> tuple[_Reading, dict[str, _Reading]]:
    """The readings of the simulated best and of the models."""
    best = _Reading(maps, maps.best, np.zeros(maps.best.shape))
    return best, {name: _Reading(maps, found.winners, found.slowdown) for name, found in maps.models.items()}


def _is(algorithm: str, *segments: int) -> Wanted:
    return lambda choice: choice.algorithm == algorithm and choice.segment_bytes in segments


def _any_of(*wanted: Wanted) -> Wanted:
    return lambda choice: any(one(choice) for one in wanted)


def _by_8_kib(choice: Choice) -> bool:
    return choice.segment_bytes == LARGE_SEGMENT


_CHAIN_CUT = _is("chain", SMALL_SEGMENT, LARGE_SEGMENT)
_UNSEGMENTED = {name: _is(name, 0) for name in ("linear", "binomial", "binary", "split_binary")}


def best_broadcasts(maps: DecisionMaps) -> list[Finding]:
    """The claims about figure 6 (a), the measured decision function; here the simulated one."""
    best, _ = _readings(maps)
    trees = _any_of(*(_UNSEGMENTED[name] for name in ("binomial", "binary", "split_binary")))
    switches = best.settles_from(_CHAIN_CUT)
    return [
        _at(best, "best-many", _UNSEGMENTED["linear"], SMALL, MORE_THAN_16),
        _at(best, "best-few", _UNSEGMENTED["binomial"], SMALL, AT_MOST_16),
        _at(best, "best-1-kb", trees, ABOUT_1_KB),
        _at(best, "best-couple", _is("split_binary", SMALL_SEGMENT), COUPLE_OF_KB),
        _at(best, "best-large", _CHAIN_CUT, LARGE),
        Finding(
            "best-switch",
            f"by P the segmented chain is the best from {_range(switches)} on",
            if_true(len(set(switches[np.isfinite(switches)])) > 1),
        ),
    ]


def picked_broadcasts(maps: DecisionMaps) -> list[Finding]:
    """The claims about figure 6 (b) to (d), the models' decision functions."""
    best, models = _readings(maps)
    hockney, loggp, plogp = models.values()
    in_8_kib = _any_of(_is("split_binary", LARGE_SEGMENT), _is("chain", LARGE_SEGMENT))
    in_1_kib = _any_of(_is("split_binary", SMALL_SEGMENT), _is("chain", SMALL_SEGMENT))
    loggps = [_UNSEGMENTED[name] for name in ("linear", "binomial", "binary")]
    used = [loggp.share(one, SMALL) > 0 for one in loggps]
    small = by_share(loggp.share(_any_of(*loggps), SMALL))
    binary = [name for name, one in models.items() if one.share(_is("binary", SMALL_SEGMENT), FROM_COUPLE_OF_KB) > 0]
    last = list(models)[-1]
    return [
        _at(hockney, "hockney-small", _UNSEGMENTED["binomial"], SMALL),
        _at(hockney, "hockney-10-kb", _is("split_binary", SMALL_SEGMENT), AROUND_10_KB),
        _at(hockney, "hockney-large", in_8_kib, LARGE),
        Finding("loggp-small", f"picks: {loggp.leading(SMALL)}", IN_PART if small == YES and not all(used) else small),
        _at(loggp, "loggp-intermediate", in_1_kib, INTERMEDIATE),
        _at(loggp, "loggp-large", _is("chain", LARGE_SEGMENT), REALLY_LARGE),
        _earlier("loggp-early", ("LogGP", loggp), ("the best", best), _by_8_kib),
        _at(plogp, "plogp-small", _UNSEGMENTED["binomial"], SMALL),
        Finding(
            "plogp-binary",
            f"picked by {', '.join(binary) or 'none'}",
            if_true(last in binary, binary == [last]) if last in binary else NO,
        ),
        _at(plogp, "plogp-large", _any_of(_is("split_binary", SMALL_SEGMENT), _CHAIN_CUT), FROM_COUPLE_OF_KB),
        _earlier("plogp-early-8", ("PLogP", plogp), ("LogGP", loggp), _by_8_kib),
        _earlier("plogp-early-chain", ("PLogP", plogp), ("LogGP", loggp), _CHAIN_CUT),
    ]


def penalties(maps: DecisionMaps) -> list[Finding]:
    """The claims about figure 7."""
    _, models = _readings(maps)
    hockney, loggp, plogp = models.values()
    first, _, last = models
    many = {name: one.worst(SMALL, FROM_16) for name, one in models.items()}
    few = {name: models[name].worst(SMALL, BELOW_16, but=5) for name in (first, last)}
    intermediate = {name: one.worst(UP_TO_10_KB) for name, one in models.items()}
    means = {name: one.mean(UP_TO_10_KB) for name, one in models.items()}
    return [
        _bounded("penalty-linear", many, lambda worst: worst > published.SMALL_LINEAR_PERCENT),
        _bounded("penalty-few", few, lambda worst: worst <= published.MOST_SMALL_PERCENT),
        _bounded("penalty-intermediate", intermediate, lambda worst: worst <= published.MOST_INTERMEDIATE_PERCENT),
        Finding(
            "penalty-hockney-worst", of_models("mean {}", means), if_true(max(means, key=means.__getitem__) == first)
        ),
        _bounded("penalty-loggp", {"LogGP": loggp.worst(LARGE)}, lambda w: w <= published.MOST_LOGGP_PERCENT),
        _bounded("penalty-plogp", {"PLogP": plogp.worst(LARGE)}, lambda w: w <= published.MOST_PLOGP_PERCENT),
        _split_binary_for_chain(hockney),
    ]


def share_of_chain(maps: DecisionMaps, model: str) -> float:
    """The share of points with large messages at which the model picks a segmented chain."""
    return _readings(maps)[1][model].share(_CHAIN_CUT, LARGE)


def _bounded(claim: str, worst: Mapping[str, tuple[float, str]], wanted: Callable[[float], bool]) -> Finding:
    """A finding on the worst penalties, which `wanted` judges in percent."""
    text = "; ".join(f"{name}: worst {where}" for name, (_, where) in worst.items())
    return Finding(claim, text, if_true(*(wanted(100 * share) for share, _ in worst.values())))


def _split_binary_for_chain(hockney: _Reading) -> Finding:
    maps, claim = hockney.maps, "penalty-hockney-large"
    choices = maps.methods
    picked, better = (next(i for i, one in enumerate(choices) if of(one)) for of in (_SPLIT_BINARY_8, _CHAIN_1))
    there = (hockney.winners == picked) & hockney.inside(LARGE)
    if not there.any():
        return Finding(claim, "Hockney never picks it", NO)
    cost = float(np.mean(slowdown(maps.seconds[picked][there], maps.seconds[better][there])))
    text = f"{100 * cost:+.0f} % against the chain with 1 KiB, on average of {int(there.sum())} points"
    return Finding(claim, text, if_true(about(cost, published.HOCKNEY_LARGE_PERCENT / 100)))


_SPLIT_BINARY_8, _CHAIN_1 = _is("split_binary", LARGE_SEGMENT), _is("chain", SMALL_SEGMENT)


def _at(
    reading: _Reading, claim: str, wanted: Wanted, sizes: tuple[int, int], procs: tuple[int, int] = ANY_PROCS
) -> Finding:
    share, leading = reading.share(wanted, sizes, procs), reading.leading(sizes, procs)
    text = f"at {percent(share)} of the points; picks: {leading}" if leading else "no such point"
    return Finding(claim, text, by_share(share))


def _earlier(claim: str, one: tuple[str, _Reading], other: tuple[str, _Reading], wanted: Wanted) -> Finding:
    ours, theirs = one[1].settles_from(wanted), other[1].settles_from(wanted)
    earlier, later = float(np.mean(ours < theirs)), float(np.mean(ours > theirs))
    return Finding(
        claim,
        f"earlier at {percent(earlier)} of P and later at {percent(later)}; {one[0]} from {_range(ours)} on, "
        f"{other[0]} from {_range(theirs)}",
        by_share(earlier),
    )


def _range(sizes: Array) -> str:
    """'8 KiB' or '8 KiB to 1 MiB'; 'no size' for none that is finite."""
    known = sorted({int(size) for size in sizes if np.isfinite(size)})
    ends = [format_size(size) for size in (known[:1] + known[-1:])]
    return " to ".join(dict.fromkeys(ends)) or "no size"
