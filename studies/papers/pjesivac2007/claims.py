"""The claims of Pješivac-Grbović et al. 2007 about barrier, reduce and alltoall (section 6.2) against simulation.

The models of the curves are in the order Hockney, LogGP, PLogP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from collwise.studies.papers.pjesivac2007.analysis import CLAIMS, CUT, KIB, MEASURED, PUBLISHED, Claim, Curves, Figure1

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
        return CLAIMS[self.claim]


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


def parameters(found: Figure1) -> list[Finding]:
    """The claims about figure 1, on one cluster."""
    sizes = np.array(found.hockney.time.message_bytes)
    beta = found.hockney.beta(sizes[sizes >= LARGE[0]])
    below = sizes[sizes < found.eager_limit_bytes]
    functions = (found.measured.send_overhead, found.measured.receive_overhead)
    bends = [float(np.ptp(of(below)) / np.max(of(below))) for of in functions]
    leaps = [float(abs(of(found.eager_limit_bytes) / of(below[-1]) - 1)) for of in functions]
    return [
        Finding(
            "hockney-beta",
            f"from {format_size(int(LARGE[0]))} on {np.min(beta) * 1e9:.2f} to {np.max(beta) * 1e9:.2f} ns per byte",
            if_true(bool(np.ptp(beta) <= _SAME * np.max(beta))),
        ),
        Finding(
            "plogp-overheads",
            f"o_s and o_r differ by {percent(bends[0])} and {percent(bends[1])} below the eager limit, and leap there "
            f"from {_both(functions, below[-1])} to {_both(functions, found.eager_limit_bytes)}",
            if_true(max(bends) > _SAME, max(leaps) > _SAME),
        ),
    ]


def _both(functions: Sequence[PiecewiseLinear], size: float) -> str:
    return " and ".join(format_seconds(float(of(size))) if of(size) > 0 else "0" for of in functions)


def barriers(curves: Curves, measured: PLogP) -> list[Finding]:
    """The claims about figure 2. T_min and T_max take PLogP as `measured`: what is fitted to T_min cannot test it."""
    procs = np.array(curves.plan.procs, dtype=float)
    hockney, *others = curves.predicted
    linear, *rounds = (curves.simulated[name][:, 0] for name in ("linear", "bruck", "recursive_doubling"))
    over = {name: 1 + float(curves.errors(name, "linear")[-1, 0]) for name in curves.predicted}
    slower = float(np.mean([linear > seconds for seconds in rounds]))
    few, many = (_slope(procs[part], linear[part]) for part in (procs <= 16, procs >= 16))
    ordered = {name: curves.same_order(name, list(curves.simulated)) for name in curves.predicted}
    points, steps = Points.of(procs, 0), steps_of(measured)
    best, worst = (np.abs(barrier.linear(points, steps, conservative=one) - linear) for one in (False, True))
    nearer = float(np.mean((best < worst)[procs > 2]))
    return [
        Finding(
            "barrier-hockney",
            f"predicted over simulated time on {procs[-1]:.0f} processes: "
            + ", ".join(f"{name} {value:.2f}" for name, value in over.items()),
            if_true(over[hockney] >= 1 + _ABOUT and over[hockney] > max(over[name] for name in others)),
        ),
        at_share("barrier-slower", slower, "so at {} of the points"),
        Finding(
            "barrier-slope",
            f"{format_seconds(few)} more with every process up to 16, {format_seconds(many)} from there",
            if_true(many < few * (1 - _SAME)),
        ),
        Finding("barrier-order", of_models("same order at {} of P", ordered), by_share(min(ordered.values()))),
        at_share("barrier-best-case", nearer, "with PLogP as measured, T_min is nearer than T_max at {} of P"),
    ]


def _slope(x: Array, seconds: Array) -> float:
    return float(np.polyfit(x, seconds, 1)[0])


def reductions(curves: Curves, conditions: Mapping[str, pd.DataFrame], eager_limit_bytes: int) -> list[Finding]:
    """The claims about figures 3 and 4; `conditions` are by model."""
    whole, cut = ("binomial", "pipeline"), ("binomial" + CUT, "pipeline" + CUT)
    sizes, ours = np.array(curves.plan.message_bytes), curves.simulated
    small, large = sizes <= SMALL[1], sizes >= LARGE[0]
    first = float(np.mean((ours[whole[0]] < ours[whole[1]])[:, small]))
    last = float(np.mean((ours[cut[1]] <= np.min(list(ours.values()), axis=0))[:, large]))
    end = ours[cut[1]][:, -1]
    gains = [(ours[of] / ours[name] - 1)[:, large] for of, name in zip(cut, whole, strict=True)]
    never = {name: float(np.mean(of[cut[0]] >= of[whole[0]] * (1 - 1e-9))) for name, of in curves.predicted.items()}
    ordered = {name: curves.same_order(name, whole) for name in curves.predicted}
    errors = {name: float(np.mean(np.abs(curves.errors(name, cut[1])))) for name in curves.predicted}
    plogp = list(curves.predicted)[-1]
    helps = {name: float(np.mean(one.whole > one.segmented)) for name, one in conditions.items()}
    until, above = (_steepening(sizes, ours[whole[0]], of, eager_limit_bytes) for of in ((KIB, 8 * KIB), LARGE))
    return [
        at_share("reduce-small", first, f"so at {{}} of the points up to {format_size(SMALL[1])}"),
        at_share("reduce-large", last, f"so at {{}} of the points from {format_size(LARGE[0])} on"),
        Finding(
            "reduce-constant",
            f"at {format_size(int(sizes[-1]))}: "
            + ", ".join(f"{format_seconds(t)} on {p}" for p, t in zip(curves.plan.procs, end, strict=True)),
            if_true(bool(np.ptp(end) <= _SAME * np.min(end))),
        ),
        Finding(
            "reduce-40-ms",
            f"{format_seconds(float(end[-1]))} at {format_size(int(sizes[-1]))}, if that is the size meant",
            if_true(about(float(end[-1]), PUBLISHED.number("reduce_seconds"))),
        ),
        *(
            Finding(
                f"reduce-cut-{name}",
                f"from {format_size(LARGE[0])} on they change the time by {100 * float(np.min(gain)):+.0f} to "
                f"{100 * float(np.max(gain)):+.0f} %",
                by_share(float(np.mean(gain < 0))),
            )
            for name, gain in zip(whole, gains, strict=True)
        ),
        Finding("reduce-never", of_models("never faster at {} of the points", never), by_share(min(never.values()))),
        Finding(
            "reduce-conditions",
            of_models("holds at {} of the sizes", helps),
            if_true(*((share > 0) == name.endswith(MEASURED) for name, share in helps.items())),
        ),
        Finding("reduce-order", of_models("same order at {}", ordered), by_share(min(ordered.values()))),
        Finding(
            "reduce-bend",
            f"a byte costs {100 * until:+.0f} % between 1 and 8 KiB, and {100 * above:+.0f} % from "
            f"{format_size(LARGE[0])} on, against the other sizes",
            if_true(until > _SAME, above > _SAME),
        ),
        Finding("reduce-plogp", of_models("mean error {}", errors), if_true(errors[plogp] <= min(errors.values()))),
    ]


def _steepening(sizes: Array, seconds: Array, part: tuple[int, int], eager_limit_bytes: int) -> float:
    """The extra cost of a byte in a part of the sizes against the rest below the eager limit: the largest over P."""
    inside = (sizes >= part[0]) & (sizes <= part[1])
    rest = ~inside & (sizes < eager_limit_bytes)
    slopes = [_slope(sizes[inside], row[inside]) / _slope(sizes[rest], row[rest]) for row in seconds]
    return float(np.max(slopes)) - 1


def exchanges(curves: Curves) -> list[Finding]:
    """The claims about figure 5."""
    hockney, *others = curves.predicted
    under = -float(np.mean(curves.errors(hockney, "pairwise")[-1]))
    errors = {name: float(np.mean(np.abs(curves.errors(name, "pairwise")))) for name in others}
    return [
        Finding(
            "alltoall-hockney",
            f"on {curves.plan.procs[-1]} processes {100 * under:z.1f} % below the simulated time on average",
            if_true(under > _SAME),
        ),
        Finding(
            "alltoall-others",
            of_models("mean error {}", errors),
            if_true(*(error <= _REASONABLE for error in errors.values())),
        ),
    ]


def findings_table(found: Sequence[Finding], derived: Sequence[Finding] = ()) -> pd.DataFrame:
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
