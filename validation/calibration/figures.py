"""Platform parameters that can be fitted to measured times (figures), and platforms with multiplied figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from collwise.common.errors import UsageError
from collwise.platforms import Platform
from collwise.platforms.description import Calibration, FactorRow, OverheadRow

PUBLISHED = "figures_multiplied"
"""The name under which a description publishes the factors on the figures of its data sheets."""


@dataclass(frozen=True)
class Figure:
    """The title of a figure that is multiplied by a factor, and the factor's `spread` before any time is known.

    The spread is the standard deviation of the factor's logarithm.
    """

    title: str
    spread: float


FIGURES = {
    "latency": Figure("latency of the links", 1.0),
    "overhead": Figure("overhead of a blocking send and of a receive (os, or)", 0.5),
    "start": Figure("overhead of a non-blocking send (ois)", 0.5),
    "eager_bytes": Figure("seconds per byte of these overheads", 0.5),
    "handshake": Figure("further latency from the eager limit on", 0.7),
    "rate": Figure("bandwidth factor", 0.1),
    "reduction": Figure("reduce_seconds_per_byte", 0.7),
    "copy": Figure("copy_seconds_per_byte", 1.0),
    "memory": Figure("allocate_seconds_per_byte", 1.0),
}
"""The figures by name. The spreads are judgements, since data sheets state rates, but few latencies and no memory."""

Factors = Mapping[str, float]
Form = Callable[[float], float]


def multiplied(platform: Platform, factors: Factors, form: Form = float) -> Platform:
    """The platform with its figures multiplied by `factors` and passed through `form`, such as a rounding.

    The multiplied rate does not exceed the nominal one.

    Raises UsageError for a platform that describes its ports, or whose latency factors do not grow.
    """
    if platform.ports is not None:
        raise UsageError(f"platform '{platform.name}' models its ports, which these figures cannot adjust")
    by = dict.fromkeys(FIGURES, 1.0) | dict(factors)
    own = platform.calibration
    return replace(
        platform,
        link_latency_seconds=form(platform.link_latency_seconds * by["latency"]),
        backbone_latency_seconds=form(platform.backbone_latency_seconds * by["latency"]),
        calibration=replace(
            own,
            latency_factor=_latency_rows(own, by["handshake"] / by["latency"], form),
            bandwidth_factor=tuple(
                (start, form(min(value * by["rate"], 1.0))) for start, value in own.bandwidth_factor
            ),
            os=_overheads(own.os, by["overhead"], by["eager_bytes"], form),
            or_=_overheads(own.or_, by["overhead"], by["eager_bytes"], form),
            ois=_overheads(own.ois, by["start"], by["eager_bytes"], form),
            reduce_seconds_per_byte=form(own.reduce_seconds_per_byte * by["reduction"]),
            copy_seconds_per_byte=own.copy_seconds_per_byte and form(own.copy_seconds_per_byte * by["copy"]),
            allocate_seconds_per_byte=own.allocate_seconds_per_byte
            and form(own.allocate_seconds_per_byte * by["memory"]),
        ),
    )


def from_data_sheets(platform: Platform) -> Platform:
    """The platform without the factors that its description publishes."""
    factors = platform.published.get(PUBLISHED, {})
    others = {name: value for name, value in platform.published.items() if name != PUBLISHED}
    return replace(multiplied(platform, {name: 1 / factor for name, factor in factors.items()}), published=others)


def published(platform: Platform, factors: Factors) -> Platform:
    """The platform with these factors in place of those that its description publishes.

    The new platform's description lists the new factors.
    """
    rounded = {name: float(f"{factor:.3g}") for name, factor in factors.items()}
    made = multiplied(from_data_sheets(platform), rounded, six_digits)
    return replace(made, published={**platform.published, PUBLISHED: rounded})


def with_eager_limit(platform: Platform, limit: int) -> Platform:
    """The platform with another eager limit above 0; figures that changed at the old limit change at the new one.

    The platform is returned as it is if its old limit is 0, or if other figures change between the two limits.
    """
    own = platform.calibration
    low, high = sorted((own.eager_limit_bytes, limit))
    starts = {row[0] for rows in (own.latency_factor, own.os, own.or_, own.ois) for row in rows}
    if low < 1 or any(low <= start <= high for start in starts - {own.eager_limit_bytes}):
        return platform

    def moved(rows: Sequence[OverheadRow]) -> tuple[OverheadRow, ...]:
        return tuple((begin(start), seconds, slope) for start, seconds, slope in rows)

    def begin(start: int) -> int:
        return limit if start == own.eager_limit_bytes else start

    factors = tuple((begin(start), factor) for start, factor in own.latency_factor)
    made = replace(own, eager_limit_bytes=limit, latency_factor=factors)
    made = replace(made, os=moved(own.os), or_=moved(own.or_), ois=moved(own.ois))
    return replace(platform, calibration=made)


def _latency_rows(own: Calibration, by: float, form: Form) -> tuple[FactorRow, ...]:
    """The latency factors; from the eager limit on, `by` multiplies the excess over the last factor below the limit."""
    below = [value for start, value in own.latency_factor if start < max(own.eager_limit_bytes, 1)][-1]
    return tuple(
        (start, value if start < own.eager_limit_bytes else form(below + (value - below) * by))
        for start, value in own.latency_factor
    )


def _overheads(rows: tuple[OverheadRow, ...], base: float, per_byte: float, form: Form) -> tuple[OverheadRow, ...]:
    return tuple((start, form(seconds * base), form(slope * per_byte)) for start, seconds, slope in rows)


def six_digits(value: float) -> float:
    """A value rounded to six significant digits, as in descriptions."""
    return float(f"{value:.6g}")


def amounts(platform: Platform) -> dict[str, float]:
    """The figures' values in seconds, or seconds per byte; for the rate, the bandwidth factor.

    Latency and overheads are those of the shortest messages.
    """
    own = platform.calibration
    below = [value for start, value in own.latency_factor if start < max(own.eager_limit_bytes, 1)][-1]
    return {
        "latency": platform.route[0] * own.latency_factor[0][1],
        "overhead": (own.os[0][1] + own.or_[0][1]) / 2,
        "start": own.ois[0][1],
        "eager_bytes": own.os[0][2],
        "handshake": platform.route[0] * max(own.latency_factor[-1][1] - below, 0.0),
        "rate": own.bandwidth_factor[-1][1],
        "reduction": own.reduce_seconds_per_byte,
        "copy": own.copy_seconds_per_byte or 0.0,
        "memory": own.allocate_seconds_per_byte or 0.0,
    }


def present(platform: Platform) -> tuple[str, ...]:
    """The figures that are not 0 on a platform; a factor would not change the others."""
    return tuple(name for name, amount in amounts(platform).items() if amount > 0 and math.isfinite(amount))
