"""The claims of Pješivac-Grbović et al. 2007 about decision maps and penalty maps (section 6.3) against simulation.

The models of a map are in the order Hockney, LogGP, PLogP. A map is read as a table with a line for each point: P, m,
the pick (a Choice, or none) and its slowdown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.models.switch_points import Indices
from collwise.studies.papers.pjesivac2007 import claims
from collwise.studies.papers.pjesivac2007.analysis import BROADCASTS, KIB, LARGE_SEGMENT, MIB, PUBLISHED, SMALL_SEGMENT
from collwise.studies.papers.pjesivac2007.claims import IN_PART, LARGE, NO, SMALL, YES, Finding, if_true, percent
from collwise.validation.compare.scores import Scores
from collwise.validation.times.choice import Choice
from collwise.validation.times.slowdown import slowdown

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

Wanted = set[Choice]


def _is(algorithm: str, *segments: int) -> Wanted:
    return {Choice(algorithm, segment) for segment in segments}


LINEAR, BINOMIAL, BINARY, SPLIT_BINARY = (_is(name, 0) for name in ("linear", "binomial", "binary", "split_binary"))
SPLIT_BINARY_1, SPLIT_BINARY_8 = _is("split_binary", SMALL_SEGMENT), _is("split_binary", LARGE_SEGMENT)
CHAIN_1, CHAIN_8 = _is("chain", SMALL_SEGMENT), _is("chain", LARGE_SEGMENT)
BY_8_KIB = {Choice(name, LARGE_SEGMENT) for name in BROADCASTS.names}


def _reading(maps: Scores, picks: Indices, slowdowns: Array) -> pd.DataFrame:
    """The picks of a map and their slowdowns, both of shape (P, m), point by point."""
    found = [maps.right.choice(int(index)) for index in picks.ravel()]
    points = pd.DataFrame(maps.right.grid.points, columns=["procs", "size"])
    return points.assign(pick=pd.Series(found, dtype=object), slowdown=slowdowns.ravel())


def _best(maps: Scores) -> pd.DataFrame:
    """The reading of the simulated best."""
    return _reading(maps, maps.right.best.values, np.zeros(maps.right.best.shape))


def _models(maps: Scores) -> dict[str, pd.DataFrame]:
    """The readings of the models."""
    return {name: _reading(maps, maps.picks[name].values, maps.slowdown[name].values) for name in maps.times}


def inside(reading: pd.DataFrame, sizes: tuple[int, int], procs: tuple[int, int] = ANY_PROCS) -> pd.DataFrame:
    """The points of a region."""
    return reading[reading["size"].between(*sizes) & reading.procs.between(*procs)]


def share(region: pd.DataFrame, wanted: Wanted) -> float:
    """The share of the region's picks that are wanted; nan without any picks."""
    return float(region.pick.dropna().isin(wanted).mean())


def leading(region: pd.DataFrame) -> str:
    """'binomial 95 %, linear 5 %': the three most frequent picks of the region."""
    names = [choice.label for choice in region.pick.dropna()]
    return ", ".join(f"{name} {percent(number / len(names))}" for name, number in Counter(names).most_common(3))


def worst(region: pd.DataFrame) -> tuple[float, str]:
    """The worst slowdown of the region and where it is: '7 % (P = 8, 1 KiB: linear)'."""
    at = region.loc[region.slowdown[np.isfinite(region.slowdown)].idxmax()]
    return at.slowdown, f"{percent(at.slowdown)} (P = {at.procs}, {format_size(at['size'])}: {at.pick.label})"


def settles_from(reading: pd.DataFrame, wanted: Wanted) -> Array:
    """The size from which on all picks are wanted, for each P; infinite where the last one is not."""
    sizes = reading["size"].unique()
    good = reading.pick.isin(wanted).to_numpy().reshape(-1, len(sizes))
    settled = np.logical_and.accumulate(good[:, ::-1], axis=1)[:, ::-1]
    return np.where(settled.any(axis=1), sizes[settled.argmax(axis=1)], np.inf)


def best_broadcasts(maps: Scores) -> list[Finding]:
    """The claims about figure 6 (a), the measured decision function; here the simulated one."""
    best = _best(maps)
    switches = settles_from(best, CHAIN_1 | CHAIN_8)
    return [
        _at("best-many", inside(best, SMALL, MORE_THAN_16), LINEAR),
        _at("best-few", inside(best, SMALL, AT_MOST_16), BINOMIAL),
        _at("best-1-kb", inside(best, ABOUT_1_KB), BINOMIAL | BINARY | SPLIT_BINARY),
        _at("best-couple", inside(best, COUPLE_OF_KB), SPLIT_BINARY_1),
        _at("best-large", inside(best, LARGE), CHAIN_1 | CHAIN_8),
        Finding(
            "best-switch",
            f"by P the segmented chain is the best from {_range(switches)} on",
            if_true(len(set(switches[np.isfinite(switches)])) > 1),
        ),
    ]


def picked_broadcasts(maps: Scores) -> list[Finding]:
    """The claims about figure 6 (b) to (d), the models' decision functions."""
    best, models = _best(maps), _models(maps)
    hockney, loggp, plogp = models.values()
    of_loggp = inside(loggp, SMALL)
    all_used = all(share(of_loggp, one) > 0 for one in (LINEAR, BINOMIAL, BINARY))
    small = claims.by_share(share(of_loggp, LINEAR | BINOMIAL | BINARY))
    binary_1 = _is("binary", SMALL_SEGMENT)
    binary = [name for name, one in models.items() if share(inside(one, FROM_COUPLE_OF_KB), binary_1) > 0]
    last = list(models)[-1]
    return [
        _at("hockney-small", inside(hockney, SMALL), BINOMIAL),
        _at("hockney-10-kb", inside(hockney, AROUND_10_KB), SPLIT_BINARY_1),
        _at("hockney-large", inside(hockney, LARGE), SPLIT_BINARY_8 | CHAIN_8),
        Finding("loggp-small", f"picks: {leading(of_loggp)}", IN_PART if small == YES and not all_used else small),
        _at("loggp-intermediate", inside(loggp, INTERMEDIATE), SPLIT_BINARY_1 | CHAIN_1),
        _at("loggp-large", inside(loggp, REALLY_LARGE), CHAIN_8),
        _earlier("loggp-early", ("LogGP", loggp), ("the best", best), BY_8_KIB),
        _at("plogp-small", inside(plogp, SMALL), BINOMIAL),
        Finding(
            "plogp-binary",
            f"picked by {', '.join(binary) or 'none'}",
            if_true(last in binary, binary == [last]) if last in binary else NO,
        ),
        _at("plogp-large", inside(plogp, FROM_COUPLE_OF_KB), SPLIT_BINARY_1 | CHAIN_1 | CHAIN_8),
        _earlier("plogp-early-8", ("PLogP", plogp), ("LogGP", loggp), BY_8_KIB),
        _earlier("plogp-early-chain", ("PLogP", plogp), ("LogGP", loggp), CHAIN_1 | CHAIN_8),
    ]


def penalties(maps: Scores) -> list[Finding]:
    """The claims about figure 7."""
    models = _models(maps)
    hockney, loggp, plogp = models.values()
    first, _, last = models
    few = {name: inside(models[name][models[name].procs != 5], SMALL, BELOW_16) for name in (first, last)}
    intermediate = {name: inside(one, UP_TO_10_KB) for name, one in models.items()}
    means = {name: float(one.slowdown.mean()) for name, one in intermediate.items()}
    most = PUBLISHED.numbers("penalties_percent")
    small = {name: inside(one, SMALL, FROM_16) for name, one in models.items()}
    return [
        _bounded("penalty-linear", small, lambda cost: cost > most["small_linear"]),
        _bounded("penalty-few", few, lambda cost: cost <= most["small"]),
        _bounded("penalty-intermediate", intermediate, lambda cost: cost <= most["intermediate"]),
        Finding(
            "penalty-hockney-worst",
            claims.of_models("mean {}", means),
            if_true(max(means, key=means.__getitem__) == first),
        ),
        _bounded("penalty-loggp", {"LogGP": inside(loggp, LARGE)}, lambda cost: cost <= most["loggp"]),
        _bounded("penalty-plogp", {"PLogP": inside(plogp, LARGE)}, lambda cost: cost <= most["plogp"]),
        _split_binary_for_chain(maps, hockney, most["hockney_large"]),
    ]


def share_of_chain(maps: Scores, model: str) -> float:
    """The share of points with large messages at which the model picks a segmented chain."""
    return share(inside(_models(maps)[model], LARGE), CHAIN_1 | CHAIN_8)


def _bounded(claim: str, regions: Mapping[str, pd.DataFrame], wanted: Callable[[float], bool]) -> Finding:
    """A finding on the worst penalties in the models' regions, which `wanted` judges in percent."""
    found = {name: worst(region) for name, region in regions.items()}
    text = "; ".join(f"{name}: worst {where}" for name, (_, where) in found.items())
    return Finding(claim, text, if_true(*(wanted(100 * cost) for cost, _ in found.values())))


def _split_binary_for_chain(maps: Scores, hockney: pd.DataFrame, about_percent: float) -> Finding:
    there = inside(hockney[hockney.pick.isin(SPLIT_BINARY_8)], LARGE).index
    if there.empty:
        return Finding("penalty-hockney-large", "Hockney never picks it", NO)
    seconds = maps.right.seconds.values
    ours, better = (seconds[maps.right.index_of(one)].ravel()[there] for one in (*SPLIT_BINARY_8, *CHAIN_1))
    cost = float(np.mean(slowdown(ours, better)))
    text = f"{100 * cost:+.0f} % against the chain with 1 KiB, on average of {len(there)} points"
    return Finding("penalty-hockney-large", text, if_true(claims.about(100 * cost, about_percent)))


def _at(claim: str, region: pd.DataFrame, wanted: Wanted) -> Finding:
    picks = leading(region)
    text = f"at {{}} of the points; picks: {picks}" if picks else "no such point"
    return claims.at_share(claim, share(region, wanted), text)


def _earlier(claim: str, one: tuple[str, pd.DataFrame], other: tuple[str, pd.DataFrame], wanted: Wanted) -> Finding:
    ours, theirs = (settles_from(reading, wanted) for _, reading in (one, other))
    where = f"{one[0]} from {_range(ours)} on, {other[0]} from {_range(theirs)}"
    text = f"earlier at {{}} of P and later at {percent(float(np.mean(ours > theirs)))}; {where}"
    return claims.at_share(claim, float(np.mean(ours < theirs)), text)


def _range(sizes: Array) -> str:
    """'8 KiB' or '8 KiB to 1 MiB'; 'no size' for none that is finite."""
    known = sorted({int(size) for size in sizes if np.isfinite(size)})
    ends = [format_size(size) for size in (known[:1] + known[-1:])]
    return " to ".join(dict.fromkeys(ends)) or "no size"
