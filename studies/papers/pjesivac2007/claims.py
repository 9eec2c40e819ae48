"""The claims of Pješivac-Grbović et al. 2007 about collectives and decision maps (sections 6.2, 6.3), in simulation.

The models of curves and maps are in the order Hockney, LogGP, PLogP.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from xarray import DataArray

from collwise.common.units import format_seconds, format_size
from collwise.models.collectives import barrier
from collwise.models.collectives.steps import steps_of
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.single_messages import PLogP
from collwise.studies.papers.figures import methods
from collwise.studies.papers.pjesivac2007 import analysis as paper
from collwise.studies.papers.pjesivac2007.analysis import CUT, KIB, PUBLISHED, SIZES, Claim, Figure1, Repeated
from collwise.validation.compare.scores import Scores
from collwise.validation.times.choice import Choice
from collwise.validation.times.slowdown import slowdown

YES, IN_PART, NO = "yes", "in part", "no"

SMALL, LARGE = SIZES["small"], SIZES["large"]

NEARLY_ALL, A_FEW = 0.9, 0.1
"""A claim about points holds if true at NEARLY_ALL of them, and fails if true at A_FEW or less."""

# The paper's words as shares. _ABOUT also stands for "largely", and _SAME for the least difference worth mentioning.
_ABOUT, _REASONABLE, _SAME = 0.5, 0.25, 0.1


@dataclass(frozen=True)
class CheckedClaim:
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
    """True if a value is about as large as the wanted value: between 0.5 and 1.5 times."""
    return bool(abs(value - wanted) <= _ABOUT * abs(wanted))


def percent(share: float) -> str:
    """'7 %'."""
    return f"{100 * share:.0f} %"


def at_share(claim: str, points: object, text: str) -> CheckedClaim:
    """The check of a claim by `points`, which are true where the claim holds.

    The share of true points replaces '{}' in the text.
    """
    share = float(np.mean(np.asarray(points)))
    return CheckedClaim(claim, text.format(percent(share)), by_share(share))


def of_models(text: str, shares: Mapping[str, float]) -> str:
    """'hockney: worst 7 %; ...' from the text 'worst {}'."""
    return "; ".join(f"{name}: {text.format(percent(share))}" for name, share in shares.items())


def parameters(found: Figure1) -> Iterator[CheckedClaim]:
    """The claims about figure 1, on one cluster."""
    sizes, limit = np.array(found.hockney.time.message_bytes), found.eager_limit_bytes
    beta, below = found.hockney.beta(sizes[sizes >= LARGE[0]]), sizes[sizes < limit]
    text = f"from {format_size(LARGE[0])} on {np.min(beta) * 1e9:.2f} to {np.max(beta) * 1e9:.2f} ns per byte"
    yield CheckedClaim("hockney-beta", text, if_true(bool(np.ptp(beta) <= _SAME * np.max(beta))))
    overheads = [found.measured.send_overhead, found.measured.receive_overhead]
    bends = [float(np.ptp(of(below)) / np.max(of(below))) for of in overheads]
    ends = [[float(of(size)) for of in overheads] for size in (below[-1], limit)]
    leaps = [abs(after / before - 1) for before, after in zip(*ends, strict=True)]
    before, after = (" and ".join(format_seconds(value) if value > 0 else "0" for value in end) for end in ends)
    text = f"o_s and o_r differ by {percent(bends[0])} and {percent(bends[1])} below the eager limit, and leap there "
    yield CheckedClaim(
        "plogp-overheads", text + f"from {before} to {after}", if_true(max(bends) > _SAME, max(leaps) > _SAME)
    )


def _methods(scores: Scores) -> tuple[dict[str, pd.DataFrame], dict[str, dict[str, pd.DataFrame]]]:
    """Simulated seconds by method, and predicted seconds by model and method."""
    return methods(scores.right), {name: methods(times) for name, times in scores.times.items()}


def same_order(claim: str, text: str, scores: Scores, labels: Iterable[str] | None = None) -> CheckedClaim:
    """Checks at which share of points each model ranks the methods as simulation does. A tie agrees with any rank."""
    ours, models = _methods(scores)
    shares = {}
    for name, theirs in models.items():
        agree = [(ours[a] - ours[b]) * (theirs[a] - theirs[b]) >= 0 for a, b in combinations(labels or ours, 2)]
        shares[name] = float(np.mean(np.all(agree, axis=0)))
    return CheckedClaim(claim, of_models(text, shares), by_share(min(shares.values())))


def mean_errors(scores: Scores, label: str) -> dict[str, float]:
    """The mean absolute relative error of each model for a method."""
    ours, models = _methods(scores)
    return {name: float(np.mean(np.abs(of[label] / ours[label] - 1))) for name, of in models.items()}


def barriers(scores: Scores, measured: PLogP) -> Iterator[CheckedClaim]:
    """The claims about figure 2.

    T_min and T_max use PLogP as `measured`, since a PLogP that is fitted to T_min cannot test T_min.
    """
    (ours, models), procs = _methods(scores), np.array(scores.right.procs, dtype=float)
    linear, *rounds = (ours[name][0].to_numpy() for name in ("linear", "bruck", "recursive_doubling"))
    over = {name: float(of["linear"][0].iloc[-1] / linear[-1]) for name, of in models.items()}
    text = ", ".join(f"{name} {value:.2f}" for name, value in over.items())
    hockney, *others = over.values()
    yield CheckedClaim(
        "barrier-hockney",
        f"predicted over simulated time on {procs[-1]:.0f} processes: {text}",
        if_true(hockney >= 1 + _ABOUT and hockney > max(others)),
    )
    yield at_share("barrier-slower", [linear > seconds for seconds in rounds], "so at {} of the points")
    few, many = (_slope(procs[part], linear[part]) for part in (procs <= 16, procs >= 16))
    text = f"{format_seconds(few)} more with every process up to 16, {format_seconds(many)} from there"
    yield CheckedClaim("barrier-slope", text, if_true(many < few * (1 - _SAME)))
    yield same_order("barrier-order", "same order at {} of P", scores)
    points, steps = Points.of(procs, 0), steps_of(measured)
    best, worst = (np.abs(barrier.linear(points, steps, conservative=item) - linear) for item in (False, True))
    text = "with PLogP as measured, T_min is nearer than T_max at {} of P"
    yield at_share("barrier-best-case", (best < worst)[procs > 2], text)


def _slope(x: Array, seconds: Array) -> float:
    return float(np.polyfit(x, seconds, 1)[0])


def reductions(
    scores: Scores, conditions: Mapping[str, pd.DataFrame], eager_limit_bytes: int
) -> Iterator[CheckedClaim]:
    """The claims about figures 3 and 4; `conditions` are by model."""
    ours, models = _methods(scores)
    whole, cut = ("binomial", "pipeline"), ("binomial" + CUT, "pipeline" + CUT)
    small, large = ({name: of.loc[:, low:high] for name, of in ours.items()} for low, high in (SMALL, LARGE))
    until, above = format_size(SMALL[1]), format_size(LARGE[0])
    yield at_share("reduce-small", small[whole[0]] < small[whole[1]], f"so at {{}} of the points up to {until}")
    first = large[cut[1]] <= np.min([*large.values()], axis=0)
    yield at_share("reduce-large", first, f"so at {{}} of the points from {above} on")
    end = ours[cut[1]].iloc[:, -1]
    largest, last = format_size(int(scores.right.message_bytes[-1])), float(end.iloc[-1])
    text = ", ".join(f"{format_seconds(seconds)} on {procs}" for procs, seconds in end.items())
    yield CheckedClaim("reduce-constant", f"at {largest}: {text}", if_true(bool(np.ptp(end) <= _SAME * end.min())))
    text = f"{format_seconds(last)} at {largest}, if that is the size meant"
    yield CheckedClaim("reduce-40-ms", text, if_true(about(last, float(PUBLISHED["reduce_seconds"]))))
    for name in whole:
        gain = large[name + CUT].to_numpy() / large[name].to_numpy() - 1
        text = f"from {above} on they change the time by {100 * np.min(gain):+.0f} to {100 * np.max(gain):+.0f} %"
        yield CheckedClaim(f"reduce-cut-{name}", text, by_share(float(np.mean(gain < 0))))
    never = {name: float(np.mean(of[cut[0]] >= of[whole[0]] * (1 - 1e-9))) for name, of in models.items()}
    yield CheckedClaim(
        "reduce-never", of_models("never faster at {} of the points", never), by_share(min(never.values()))
    )
    helps = {name: float(np.mean(condition.whole > condition.segmented)) for name, condition in conditions.items()}
    as_said = [(share > 0) == name.endswith(paper.MEASURED) for name, share in helps.items()]
    yield CheckedClaim("reduce-conditions", of_models("holds at {} of the sizes", helps), if_true(*as_said))
    yield same_order("reduce-order", "same order at {}", scores, whole)
    middle, beyond = (_steepening(ours[whole[0]], of, eager_limit_bytes) for of in ((KIB, 8 * KIB), LARGE))
    text = f"a byte costs {100 * middle:+.0f} % between 1 and 8 KiB, and {100 * beyond:+.0f} % from {above} on, "
    text += "against the other sizes"
    yield CheckedClaim("reduce-bend", text, if_true(middle > _SAME, beyond > _SAME))
    errors, plogp = mean_errors(scores, cut[1]), list(models)[-1]
    yield CheckedClaim(
        "reduce-plogp", of_models("mean error {}", errors), if_true(errors[plogp] <= min(errors.values()))
    )


def _steepening(seconds: pd.DataFrame, part: tuple[int, int], eager_limit_bytes: int) -> float:
    """The extra time per byte in a part of the sizes, relative to other sizes; the largest value over P."""
    sizes = seconds.columns.to_numpy()
    inside = (sizes >= part[0]) & (sizes <= part[1])
    rest = ~inside & (sizes < eager_limit_bytes)
    slopes = [_slope(sizes[inside], row[inside]) / _slope(sizes[rest], row[rest]) for row in seconds.to_numpy()]
    return float(np.max(slopes)) - 1


def exchanges(scores: Scores) -> Iterator[CheckedClaim]:
    """The claims about figure 5."""
    (ours, models), most = _methods(scores), scores.right.procs[-1]
    hockney, *_ = models.values()
    under = -float(np.mean(hockney["pairwise"].loc[most] / ours["pairwise"].loc[most] - 1))
    text = f"on {most} processes {100 * under:z.1f} % below the simulated time on average"
    yield CheckedClaim("alltoall-hockney", text, if_true(under > _SAME))
    _, *errors = mean_errors(scores, "pairwise").items()
    as_said = [error <= _REASONABLE for _, error in errors]
    yield CheckedClaim("alltoall-others", of_models("mean error {}", dict(errors)), if_true(*as_said))


# Decision maps and penalty maps.

BEST = "the best"
MODELS = ("Hockney", "LogGP", "PLogP")
"""The models in the order in which a map compares them. The map of the simulated best is called BEST."""


def inside(values: DataArray, claim: Claim) -> DataArray:
    """The values of a map at the points that a claim is about."""
    ends = iter(claim.procs)
    ranges = [*zip(ends, ends, strict=True)]
    procs = [count for count in values.procs.values if any(low <= count <= high for low, high in ranges)]
    return values.sel(procs=procs, message_bytes=slice(*claim.bytes))


@dataclass(frozen=True)
class Map:
    """The picks of a source, at all points of a map or of a region."""

    scores: Scores
    source: str

    @property
    def title(self) -> str:
        """The title of the source's times in the scores."""
        return [*self.scores.times][MODELS.index(self.source)]

    @property
    def picks(self) -> DataArray:
        """The indices of the picks; NOBODY where nothing is picked."""
        return self.scores.right.best if self.source == BEST else self.scores.picks[self.title]

    def labels(self, claim: Claim) -> list[str]:
        """The picks at the points of the claim; points at which nothing is picked are left out."""
        choices = map(self.scores.right.choice, inside(self.picks, claim).values.ravel().tolist())
        return [choice.label for choice in choices if choice is not None]

    def share(self, claim: Claim) -> float:
        """The share of the picks at the claim's points that are among the claim's `picks`; nan if nothing is picked."""
        picked = self.labels(claim)
        return float(np.mean([label in claim.picks for label in picked])) if picked else math.nan

    def penalties(self, claim: Claim) -> DataArray:
        """The slowdowns of the picks at the claim's points."""
        return inside(self.scores.slowdown[self.title], claim)

    def worst(self, claim: Claim) -> tuple[float, str]:
        """The worst penalty at the claim's points, and a text with its place: '7 % (P = 8, 1 KiB: linear)'."""
        lost = self.penalties(claim)
        at = lost.where(np.isfinite(lost), -np.inf).argmax(...)
        cost, pick = lost.isel(at), inside(self.picks, claim).isel(at)
        choice = self.scores.right.choice(int(pick))
        where = f"P = {int(cost.procs)}, {format_size(int(cost.message_bytes))}: {choice.label if choice else '-'}"
        return float(cost), f"{percent(float(cost))} ({where})"

    def settles_from(self, claim: Claim) -> Array:
        """The sizes, by P, from which on the claim names all picks; infinite if the last pick is not named."""
        sizes = self.picks.message_bytes.values
        wanted = [index for index, choice in enumerate(self.scores.right.grid.timed) if choice.label in claim.picks]
        settled = np.logical_and.accumulate(np.isin(self.picks.values, wanted)[:, ::-1], axis=1)[:, ::-1]
        return np.where(settled.any(axis=1), sizes[settled.argmax(axis=1)], np.inf)


def on_maps(scores: Scores, *figures: str) -> Iterator[CheckedClaim]:
    """The claims about figures of decision maps and penalties, such as '6a', in the order of the text."""
    for name, claim in paper.CLAIMS.items():
        if claim.where in [f"6.3, figure {figure}" for figure in figures]:
            maps = [Map(scores, source) for source in claim.of]
            yield CheckedClaim(name, *_SPECIAL.get(name, _usual)(claim, *maps))


def _usual(claim: Claim, *maps: Map) -> tuple[str, str]:
    """The simulated numbers for a claim, as text, and the verdict."""
    if claim.before:
        return _earlier(claim, *maps, Map(maps[0].scores, claim.before))
    return _picked(claim, *maps) if claim.picks else _bounded(claim, *maps)


def _picked(claim: Claim, map_: Map) -> tuple[str, str]:
    share, picked = map_.share(claim), Counter(map_.labels(claim))
    if not picked:
        return "no such point", NO
    most = ", ".join(f"{name} {percent(number / picked.total())}" for name, number in picked.most_common(3))
    missed = claim.every and not picked.keys() >= {*claim.picks}
    verdict = IN_PART if missed and by_share(share) == YES else by_share(share)
    return f"at {percent(share)} of the points; picks: {most}", verdict


def _earlier(claim: Claim, *both: Map) -> tuple[str, str]:
    ours, theirs = (item.settles_from(claim) for item in both)
    where = f"{both[0].source} from {_range(ours)} on, {both[1].source} from {_range(theirs)}"
    earlier, later = float(np.mean(ours < theirs)), float(np.mean(ours > theirs))
    return f"earlier at {percent(earlier)} of P and later at {percent(later)}; {where}", by_share(earlier)


def _bounded(claim: Claim, *maps: Map) -> tuple[str, str]:
    found = {item.source: item.worst(claim) for item in maps}
    text = "; ".join(f"{source}: worst {where}" for source, (_, where) in found.items())
    holds = (claim.min_percent < 100 * cost <= claim.max_percent for cost, _ in found.values())
    return text, if_true(*holds)


def _switches(claim: Claim, best: Map) -> tuple[str, str]:
    switches = best.settles_from(claim)
    text = f"by P the segmented chain is the best from {_range(switches)} on"
    return text, if_true(len(set(switches[np.isfinite(switches)])) > 1)


def _binary_by_plogp_alone(claim: Claim, *maps: Map) -> tuple[str, str]:
    binary = [item for item in maps if item.share(claim) > 0]
    verdict = if_true(maps[-1] in binary, binary == [maps[-1]]) if maps[-1] in binary else NO
    return f"picked by {', '.join(item.title for item in binary) or 'none'}", verdict


def _worst_on_average(claim: Claim, *maps: Map) -> tuple[str, str]:
    means = {item.title: float(item.penalties(claim).mean()) for item in maps}
    return of_models("mean {}", means), if_true(max(means, key=means.__getitem__) == maps[0].title)


def _split_binary_for_chain(claim: Claim, hockney: Map) -> tuple[str, str]:
    right, picks = hockney.scores.right, inside(hockney.picks, claim)
    split, chain = (
        inside(right.seconds[right.index_of(choice)], claim).values
        for choice in (Choice("split_binary", paper.LARGE_SEGMENT), Choice("chain", paper.SMALL_SEGMENT))
    )
    there = np.isin([getattr(right.choice(item), "label", "") for item in picks.values.ravel()], claim.picks)
    if not there.any():
        return "Hockney never picks it", NO
    cost = 100 * float(np.mean(slowdown(split, chain).ravel()[there]))
    text = f"{cost:+.0f} % against the chain with 1 KiB, on average of {there.sum()} points"
    return text, if_true(about(cost, claim.about_percent))


_SPECIAL: dict[str, Callable[..., tuple[str, str]]] = {
    "best-switch": _switches,
    "plogp-binary": _binary_by_plogp_alone,
    "penalty-hockney-worst": _worst_on_average,
    "penalty-hockney-large": _split_binary_for_chain,
}


def _range(sizes: Array) -> str:
    """'8 KiB' or '8 KiB to 1 MiB'; 'no size' if no size is finite."""
    known = sorted({int(size) for size in sizes if np.isfinite(size)})
    ends = [format_size(size) for size in (known[:1] + known[-1:])]
    return " to ".join(dict.fromkeys(ends)) or "no size"


def all_of(of: Repeated, models: str) -> dict[str, CheckedClaim]:
    """Every claim by name, checked by one engine. Claims about maps are checked with one of MODEL_SETS."""
    boba, made = of.parameters["boba"], of.maps[models]
    found = [
        *parameters(boba),
        *barriers(of.barriers, boba.measured),
        *reductions(of.reductions, of.conditions, boba.eager_limit_bytes),
        *exchanges(of.exchanges),
        *on_maps(made, "6a", "6b", "6c", "6d", "7"),
    ]
    return {claim.claim: claim for claim in found}


def tally(found: Iterable[CheckedClaim]) -> dict[str, int]:
    """The number of claims by verdict."""
    verdicts = Counter(claim.verdict for claim in found)
    return {verdict: verdicts[verdict] for verdict in (YES, IN_PART, NO)}


def findings_table(first: Mapping[str, CheckedClaim], *others: Mapping[str, CheckedClaim]) -> Iterator[tuple[str, ...]]:
    """The claims that some engine does not confirm in full, with the engines' verdicts, grouped by `reason`."""
    by_reason: dict[str, list[str]] = {}
    for name, claim in first.items():
        verdicts = list(dict.fromkeys(found[name].verdict for found in (first, *others)))
        if verdicts != [YES]:
            where = claim.published.where.removeprefix("6.2, ").removeprefix("6.3, ")
            text = f"{claim.published.published} ({where}): {' / '.join(verdicts)}"
            by_reason.setdefault(claim.published.reason, []).append(text)
    yield from ((reason, "; ".join(texts)) for reason, texts in by_reason.items())
