"""The claims of Pješivac-Grbović et al. 2007 about collectives and decision maps (sections 6.2, 6.3), in simulation.

The models of curves and maps are in the order Hockney, LogGP, PLogP. A map is read as a table with a line for each
point: P, m, the pick (a Choice, or none) and its slowdown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.models.collectives import barrier
from collwise.models.collectives.steps import steps_of
from collwise.models.interface import Points
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.plogp import PLogP
from collwise.models.switch_points import Indices
from collwise.studies.papers.pjesivac2007 import analysis as paper
from collwise.studies.papers.pjesivac2007.analysis import CUT, KIB, MIB, Claim, Curves, Figure1
from collwise.validation.compare.scores import Scores
from collwise.validation.times.choice import Choice
from collwise.validation.times.slowdown import slowdown

YES, IN_PART, NO = "yes", "in part", "no"

SMALL = (1, 512)
LARGE = (128 * KIB, 1 << 62)
"""Message sizes in bytes, both ends included; the paper's regions have no borders."""

NEARLY_ALL, A_FEW = 0.9, 0.1
"""A claim about points holds if it does at this share of them at least, and not at all if at no more than that one."""

# The paper's words as shares: "about" and "largely", "reasonable", "the same" or a difference worth mentioning.
_ABOUT, _REASONABLE, _SAME = 0.5, 0.25, 0.1


@dataclass(frozen=True)
class Finding:
    """A claim of CLAIMS, what simulation shows, and whether the claim holds: YES, IN_PART or NO."""

    claim: str
    here: str
    verdict: str

    @property
    def published(self) -> Claim:
        """The claim itself."""
        return paper.CLAIMS[self.claim]


def by_share(share: float) -> str:
    """The verdict on a claim that holds at this share of the points; NO if there are none (nan)."""
    return YES if share >= NEARLY_ALL else IN_PART if share > A_FEW else NO


def if_true(*holds: bool) -> str:
    """The verdict on a claim of several parts."""
    return YES if all(holds) else IN_PART if any(holds) else NO


def about(value: float, wanted: float) -> bool:
    """Whether a value is about the wanted one: between half of it and one and a half times it."""
    return bool(abs(value - wanted) <= _ABOUT * abs(wanted))


def percent(share: float) -> str:
    """'7 %'."""
    return f"{100 * share:.0f} %"


def at_share(claim: str, share: float, text: str) -> Finding:
    """A finding on a claim that holds at this share of the points, which the text has as '{}'."""
    return Finding(claim, text.format(percent(share)), by_share(share))


def of_models(text: str, shares: Mapping[str, float]) -> str:
    """'hockney: worst 7 %; ...' from the text 'worst {}'."""
    return "; ".join(f"{name}: {text.format(percent(share))}" for name, share in shares.items())


def parameters(found: Figure1) -> Iterator[Finding]:
    """The claims about figure 1, on one cluster."""
    sizes, limit = np.array(found.hockney.time.message_bytes), found.eager_limit_bytes
    beta, below = found.hockney.beta(sizes[sizes >= LARGE[0]]), sizes[sizes < limit]
    text = f"from {format_size(LARGE[0])} on {np.min(beta) * 1e9:.2f} to {np.max(beta) * 1e9:.2f} ns per byte"
    yield Finding("hockney-beta", text, if_true(bool(np.ptp(beta) <= _SAME * np.max(beta))))
    functions = (found.measured.send_overhead, found.measured.receive_overhead)
    bends = [float(np.ptp(of(below)) / np.max(of(below))) for of in functions]
    leaps = [float(abs(of(limit) / of(below[-1]) - 1)) for of in functions]
    text = f"o_s and o_r differ by {percent(bends[0])} and {percent(bends[1])} below the eager limit, and leap there "
    text += f"from {_both(functions, below[-1])} to {_both(functions, limit)}"
    yield Finding("plogp-overheads", text, if_true(max(bends) > _SAME, max(leaps) > _SAME))


def _both(functions: Sequence[PiecewiseLinear], size: float) -> str:
    return " and ".join(format_seconds(float(of(size))) if of(size) > 0 else "0" for of in functions)


def barriers(curves: Curves, measured: PLogP) -> Iterator[Finding]:
    """The claims about figure 2. T_min and T_max take PLogP as `measured`: what is fitted to T_min cannot test it."""
    procs, models = np.array(curves.plan.procs, dtype=float), list(curves.predicted)
    linear, *rounds = (curves.simulated[name][:, 0] for name in ("linear", "bruck", "recursive_doubling"))
    over = {name: 1 + float(curves.errors(name, "linear")[-1, 0]) for name in models}
    text = ", ".join(f"{name} {value:.2f}" for name, value in over.items())
    hockney, *others = over.values()
    yield Finding(
        "barrier-hockney",
        f"predicted over simulated time on {procs[-1]:.0f} processes: {text}",
        if_true(hockney >= 1 + _ABOUT and hockney > max(others)),
    )
    slower = float(np.mean([linear > seconds for seconds in rounds]))
    yield at_share("barrier-slower", slower, "so at {} of the points")
    few, many = (_slope(procs[part], linear[part]) for part in (procs <= 16, procs >= 16))
    text = f"{format_seconds(few)} more with every process up to 16, {format_seconds(many)} from there"
    yield Finding("barrier-slope", text, if_true(many < few * (1 - _SAME)))
    ordered = {name: curves.same_order(name, list(curves.simulated)) for name in models}
    yield Finding("barrier-order", of_models("same order at {} of P", ordered), by_share(min(ordered.values())))
    points, steps = Points.of(procs, 0), steps_of(measured)
    best, worst = (np.abs(barrier.linear(points, steps, conservative=one) - linear) for one in (False, True))
    nearer = float(np.mean((best < worst)[procs > 2]))
    yield at_share("barrier-best-case", nearer, "with PLogP as measured, T_min is nearer than T_max at {} of P")


def _slope(x: Array, seconds: Array) -> float:
    return float(np.polyfit(x, seconds, 1)[0])


def reductions(curves: Curves, conditions: Mapping[str, pd.DataFrame], eager_limit_bytes: int) -> Iterator[Finding]:
    """The claims about figures 3 and 4; `conditions` are by model."""
    sizes, ours, models = np.array(curves.plan.message_bytes), curves.simulated, curves.predicted
    small, large, until, above = sizes <= SMALL[1], sizes >= LARGE[0], format_size(SMALL[1]), format_size(LARGE[0])
    whole, cut = ("binomial", "pipeline"), ("binomial" + CUT, "pipeline" + CUT)
    first = float(np.mean((ours[whole[0]] < ours[whole[1]])[:, small]))
    yield at_share("reduce-small", first, f"so at {{}} of the points up to {until}")
    last = float(np.mean((ours[cut[1]] <= np.min(list(ours.values()), axis=0))[:, large]))
    yield at_share("reduce-large", last, f"so at {{}} of the points from {above} on")
    end, largest = ours[cut[1]][:, -1], format_size(int(sizes[-1]))
    text = ", ".join(f"{format_seconds(t)} on {p}" for p, t in zip(curves.plan.procs, end, strict=True))
    yield Finding("reduce-constant", f"at {largest}: {text}", if_true(bool(np.ptp(end) <= _SAME * np.min(end))))
    text = f"{format_seconds(float(end[-1]))} at {largest}, if that is the size meant"
    yield Finding("reduce-40-ms", text, if_true(about(float(end[-1]), paper.PUBLISHED.number("reduce_seconds"))))
    for name in whole:
        gain = (ours[name + CUT] / ours[name] - 1)[:, large]
        text = f"from {above} on they change the time by {100 * np.min(gain):+.0f} to {100 * np.max(gain):+.0f} %"
        yield Finding(f"reduce-cut-{name}", text, by_share(float(np.mean(gain < 0))))
    never = {name: float(np.mean(of[cut[0]] >= of[whole[0]] * (1 - 1e-9))) for name, of in models.items()}
    yield Finding("reduce-never", of_models("never faster at {} of the points", never), by_share(min(never.values())))
    helps = {name: float(np.mean(one.whole > one.segmented)) for name, one in conditions.items()}
    as_said = [(share > 0) == name.endswith(paper.MEASURED) for name, share in helps.items()]
    yield Finding("reduce-conditions", of_models("holds at {} of the sizes", helps), if_true(*as_said))
    ordered = {name: curves.same_order(name, whole) for name in models}
    yield Finding("reduce-order", of_models("same order at {}", ordered), by_share(min(ordered.values())))
    middle, beyond = (_steepening(sizes, ours[whole[0]], of, eager_limit_bytes) for of in ((KIB, 8 * KIB), LARGE))
    text = f"a byte costs {100 * middle:+.0f} % between 1 and 8 KiB, and {100 * beyond:+.0f} % from {above} on, "
    text += "against the other sizes"
    yield Finding("reduce-bend", text, if_true(middle > _SAME, beyond > _SAME))
    errors, plogp = _mean_errors(curves, cut[1], models), list(models)[-1]
    yield Finding("reduce-plogp", of_models("mean error {}", errors), if_true(errors[plogp] <= min(errors.values())))


def _mean_errors(curves: Curves, label: str, models: Iterable[str]) -> dict[str, float]:
    return {name: float(np.mean(np.abs(curves.errors(name, label)))) for name in models}


def _steepening(sizes: Array, seconds: Array, part: tuple[int, int], eager_limit_bytes: int) -> float:
    """The extra cost of a byte in a part of the sizes against the rest below the eager limit: the largest over P."""
    inside = (sizes >= part[0]) & (sizes <= part[1])
    rest = ~inside & (sizes < eager_limit_bytes)
    slopes = [_slope(sizes[inside], row[inside]) / _slope(sizes[rest], row[rest]) for row in seconds]
    return float(np.max(slopes)) - 1


def exchanges(curves: Curves) -> Iterator[Finding]:
    """The claims about figure 5."""
    hockney, *others = curves.predicted
    under = -float(np.mean(curves.errors(hockney, "pairwise")[-1]))
    text = f"on {curves.plan.procs[-1]} processes {100 * under:z.1f} % below the simulated time on average"
    yield Finding("alltoall-hockney", text, if_true(under > _SAME))
    errors = _mean_errors(curves, "pairwise", others)
    as_said = [error <= _REASONABLE for error in errors.values()]
    yield Finding("alltoall-others", of_models("mean error {}", errors), if_true(*as_said))


# Decision maps and penalty maps.

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
SPLIT_BINARY_1, SPLIT_BINARY_8 = _is("split_binary", paper.SMALL_SEGMENT), _is("split_binary", paper.LARGE_SEGMENT)
CHAIN_1, CHAIN_8 = _is("chain", paper.SMALL_SEGMENT), _is("chain", paper.LARGE_SEGMENT)
BY_8_KIB = {Choice(name, paper.LARGE_SEGMENT) for name in paper.BROADCASTS.names}


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


def best_broadcasts(maps: Scores) -> Iterator[Finding]:
    """The claims about figure 6 (a), the measured decision function; here the simulated one."""
    best = _best(maps)
    yield _at("best-many", inside(best, SMALL, MORE_THAN_16), LINEAR)
    yield _at("best-few", inside(best, SMALL, AT_MOST_16), BINOMIAL)
    yield _at("best-1-kb", inside(best, ABOUT_1_KB), BINOMIAL | BINARY | SPLIT_BINARY)
    yield _at("best-couple", inside(best, COUPLE_OF_KB), SPLIT_BINARY_1)
    yield _at("best-large", inside(best, LARGE), CHAIN_1 | CHAIN_8)
    switches = settles_from(best, CHAIN_1 | CHAIN_8)
    text = f"by P the segmented chain is the best from {_range(switches)} on"
    yield Finding("best-switch", text, if_true(len(set(switches[np.isfinite(switches)])) > 1))


def picked_broadcasts(maps: Scores) -> Iterator[Finding]:
    """The claims about figure 6 (b) to (d), the models' decision functions."""
    best, models = _best(maps), _models(maps)
    hockney, loggp, plogp = models.values()
    yield _at("hockney-small", inside(hockney, SMALL), BINOMIAL)
    yield _at("hockney-10-kb", inside(hockney, AROUND_10_KB), SPLIT_BINARY_1)
    yield _at("hockney-large", inside(hockney, LARGE), SPLIT_BINARY_8 | CHAIN_8)
    of_loggp = inside(loggp, SMALL)
    all_used = all(share(of_loggp, one) > 0 for one in (LINEAR, BINOMIAL, BINARY))
    small = by_share(share(of_loggp, LINEAR | BINOMIAL | BINARY))
    small = IN_PART if small == YES and not all_used else small
    yield Finding("loggp-small", f"picks: {leading(of_loggp)}", small)
    yield _at("loggp-intermediate", inside(loggp, INTERMEDIATE), SPLIT_BINARY_1 | CHAIN_1)
    yield _at("loggp-large", inside(loggp, REALLY_LARGE), CHAIN_8)
    yield _earlier("loggp-early", ("LogGP", loggp), ("the best", best), BY_8_KIB)
    yield _at("plogp-small", inside(plogp, SMALL), BINOMIAL)
    binary_1, last = _is("binary", paper.SMALL_SEGMENT), list(models)[-1]
    binary = [name for name, one in models.items() if share(inside(one, FROM_COUPLE_OF_KB), binary_1) > 0]
    verdict = if_true(last in binary, binary == [last]) if last in binary else NO
    yield Finding("plogp-binary", f"picked by {', '.join(binary) or 'none'}", verdict)
    yield _at("plogp-large", inside(plogp, FROM_COUPLE_OF_KB), SPLIT_BINARY_1 | CHAIN_1 | CHAIN_8)
    yield _earlier("plogp-early-8", ("PLogP", plogp), ("LogGP", loggp), BY_8_KIB)
    yield _earlier("plogp-early-chain", ("PLogP", plogp), ("LogGP", loggp), CHAIN_1 | CHAIN_8)


def penalties(maps: Scores) -> Iterator[Finding]:
    """The claims about figure 7."""
    models, most = _models(maps), paper.PUBLISHED.numbers("penalties_percent")
    hockney, loggp, plogp = models.values()
    first, _, last = models
    small = {name: inside(one, SMALL, FROM_16) for name, one in models.items()}
    yield _bounded("penalty-linear", small, lambda cost: cost > most["small_linear"])
    few = {name: inside(models[name][models[name].procs != 5], SMALL, BELOW_16) for name in (first, last)}
    yield _bounded("penalty-few", few, lambda cost: cost <= most["small"])
    intermediate = {name: inside(one, UP_TO_10_KB) for name, one in models.items()}
    yield _bounded("penalty-intermediate", intermediate, lambda cost: cost <= most["intermediate"])
    means = {name: float(one.slowdown.mean()) for name, one in intermediate.items()}
    is_first = max(means, key=means.__getitem__) == first
    yield Finding("penalty-hockney-worst", of_models("mean {}", means), if_true(is_first))
    yield _bounded("penalty-loggp", {"LogGP": inside(loggp, LARGE)}, lambda cost: cost <= most["loggp"])
    yield _bounded("penalty-plogp", {"PLogP": inside(plogp, LARGE)}, lambda cost: cost <= most["plogp"])
    yield _split_binary_for_chain(maps, hockney, most["hockney_large"])


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
    return Finding("penalty-hockney-large", text, if_true(about(100 * cost, about_percent)))


def _at(claim: str, region: pd.DataFrame, wanted: Wanted) -> Finding:
    picks = leading(region)
    text = f"at {{}} of the points; picks: {picks}" if picks else "no such point"
    return at_share(claim, share(region, wanted), text)


def _earlier(claim: str, one: tuple[str, pd.DataFrame], other: tuple[str, pd.DataFrame], wanted: Wanted) -> Finding:
    ours, theirs = (settles_from(reading, wanted) for _, reading in (one, other))
    where = f"{one[0]} from {_range(ours)} on, {other[0]} from {_range(theirs)}"
    text = f"earlier at {{}} of P and later at {percent(float(np.mean(ours > theirs)))}; {where}"
    return at_share(claim, float(np.mean(ours < theirs)), text)


def _range(sizes: Array) -> str:
    """'8 KiB' or '8 KiB to 1 MiB'; 'no size' for none that is finite."""
    known = sorted({int(size) for size in sizes if np.isfinite(size)})
    ends = [format_size(size) for size in (known[:1] + known[-1:])]
    return " to ".join(dict.fromkeys(ends)) or "no size"


def findings_table(found: Iterable[Finding], derived: Iterable[Finding] = ()) -> pd.DataFrame:
    """The claims with what simulation shows, and the reason for those that do not hold.

    `derived` are findings on the same claims with derived formulas; they add a column.
    """
    rows = []
    for one, other in zip_longest(found, derived):
        verdicts = [each.verdict for each in (one, other) if each]
        claim = one.published
        reason = claim.reason if set(verdicts) != {YES} else ""
        rows.append((claim.where, claim.published, one.here, *verdicts, reason))
    columns = ["where", "the paper", "here", "same?", *(["derived: same?"] if derived else []), "why not"]
    return pd.DataFrame(rows, columns=columns)
