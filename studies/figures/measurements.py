"""Figures of measurements: calibrations, irregular regions, and what choices lose on measured machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from collwise.common.units import format_size
from collwise.studies.figures.style import (
    PALETTE,
    algorithm_style,
    grouped_bars,
    head,
    label_lines,
    seconds_axis,
    size_axis,
)
from collwise.validation.calibration.calibration import CalibrationResult
from collwise.validation.calibration.calibration_points import Kind, of_kind
from collwise.validation.calibration.segmented_regression import Segment
from collwise.validation.measurement.confidence import Kept
from collwise.validation.measurement.irregular_regions import HALF_BOUND, Regions, Series, min_times

_TITLES = {
    Kind.SEND: "Time in MPI_Send (os)",
    Kind.ISEND: "Time in MPI_Isend (ois)",
    Kind.RECEIVE: "Time in MPI_Recv of a message that has arrived (or)",
    Kind.PING_PONG: "One way, half a ping-pong",
}
_MAX_PERCENT = 30.0
_POINTS, _LINES, _LIMIT = PALETTE[0], PALETTE[1], PALETTE[7]
_LINEAR = 0.1
"""The axis is linear up to this regret, and logarithmic above it."""


def calibration_figure(result: CalibrationResult, kind: Kind) -> Figure:
    """Measured points and fitted segments over message size, and below them the relative errors."""
    points = of_kind(result.points, kind)
    limit = result.platform.calibration.eager_limit_bytes
    if kind in (Kind.SEND, Kind.RECEIVE):
        points = [point for point in points if point.message_bytes < limit]
    ascending = result.residuals.sort_values("message_bytes", kind="stable")
    simulated = ascending[(ascending.kind == kind) & ~ascending.within_node]
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, height_ratios=(3, 1.3))
    halved = 2 if kind == Kind.PING_PONG else 1
    sizes = np.array([point.message_bytes for point in points])
    spread = np.array([np.percentile(point.seconds, [10, 50, 90]) for point in points]) / halved
    errors = np.abs(spread[:, [0, 2]] - spread[:, [1]]).T
    axes[0].errorbar(sizes, spread[:, 1], errors, fmt="o", ms=3.5, lw=0.8, color=_POINTS, label="measured, 10 to 90 %")
    if kind == Kind.PING_PONG:
        axes[0].plot(simulated.message_bytes, simulated.simulated_seconds / 2, color=_LINES, lw=1.4, label="simulated")
        _starts(axes, result.segments[kind])
    else:
        _segments(axes[0], result.segments[kind], float(sizes.max()) if kind == Kind.ISEND else min(limit, sizes.max()))
    for axis in axes:
        axis.axvline(limit, color=_LIMIT, ls="--", lw=1)
    axes[0].axvline(limit, color=_LIMIT, ls="--", lw=1, label=f"eager limit {limit} B")
    _errors(axes[1], result, kind)
    seconds_axis(axes[0])
    error = np.median(np.abs([error for _, error in result.errors_of(kind)]))
    head(figure, f"{_TITLES[kind]}: median error {100 * error:.1f} %", result.platform.title)
    axes[0].legend(loc="upper left", framealpha=1)
    size_axis(axes[1], [2**power for power in range(int(np.log2(sizes.max())) + 2)])
    return figure


def _segments(axis: Axes, segments: list[Segment], largest: float) -> None:
    ends = [*(segment.from_bytes for segment in segments[1:]), largest]
    for number, (segment, end) in enumerate(zip(segments, ends, strict=True)):
        x = np.geomspace(max(segment.from_bytes, 1), max(end, segment.from_bytes + 1), 60)
        y = [segment.seconds(size) for size in x]
        axis.plot(x, y, color=_LINES, lw=1.6, label="segments" if number == 0 else None)


def _starts(axes: np.ndarray, segments: list[Segment]) -> None:
    for number, segment in enumerate(segments[1:]):
        for axis in axes:
            label = "segments begin" if number == 0 and axis is axes[0] else None
            axis.axvline(segment.from_bytes, color=_LINES, ls=":", lw=0.9, label=label)


def _errors(axis: Axes, result: CalibrationResult, kind: Kind) -> None:
    """Draws errors of simulated times; for receives, which are not simulated alone, those of the fitted segments."""
    found = np.array(result.errors_of(kind))
    sizes, errors = found[:, 0], 100 * found[:, 1]
    axis.axhspan(-5, 5, color=PALETTE[5], alpha=0.25, lw=0)
    axis.axhline(0, color="black", lw=0.8)
    beyond = np.abs(errors) > _MAX_PERCENT
    axis.plot(sizes[~beyond], errors[~beyond], "o", ms=3.5, color=_POINTS)
    axis.plot(sizes[beyond], np.clip(errors[beyond], -_MAX_PERCENT, _MAX_PERCENT), "x", ms=5, color=_LINES)
    axis.set_ylim(-1.1 * _MAX_PERCENT, 1.1 * _MAX_PERCENT)
    axis.set_ylabel("error (%)\nx: beyond 30 %", fontsize=9)


def regions_figure(found: Regions, title: str) -> Figure:
    """Three panels: linear gather with M1 and M2, linear scatter with S, and gather's algorithms."""
    figure, axes = plt.subplots(3, 1, figsize=(7.8, 11.0), sharex=True, sharey=True)
    thresholds = found.thresholds
    marks = {"M1": thresholds.gather_irregular_from_bytes, "M2": thresholds.gather_regular_from_bytes}
    _singles(axes[0], found.gather, "linear gather, every repetition", marks)
    _singles(axes[1], found.scatter, "linear scatter, every repetition", {"S": thresholds.scatter_leap_bytes})
    _algorithms(axes[2], found, marks)
    for axis in axes:
        seconds_axis(axis)
        axis.label_outer()
    head(figure, title)
    label_lines(*axes)
    return figure


def _singles(axis: Axes, series: Series, title: str, marks: dict[str, int | None]) -> None:
    sizes = np.array(series.message_bytes)
    late = series.escalated
    for mask, colour, marker, label in (
        (~late, PALETTE[0], ".", "a repetition"),
        (late, PALETTE[1], "x", "with a time-out"),
    ):
        rounds, columns = np.nonzero(mask)
        if len(rounds):
            axis.plot(sizes[columns], series.seconds[rounds, columns], marker, color=colour, markersize=5, label=label)
    axis.plot(sizes, min_times(series.seconds), "-", color="#999999", linewidth=1, label="minimum over m and above")
    _finish(axis, title, sizes, marks)


def _algorithms(axis: Axes, found: Regions, marks: dict[str, int | None]) -> None:
    sizes = np.array(found.gather.message_bytes)
    for series in found.compared:
        here = np.array(series.message_bytes)
        halved = series.algorithm == HALF_BOUND
        colour, marker = algorithm_style("lmo" if halved else series.algorithm)
        line = "--" if halved else "-"
        axis.plot(here, series.seconds.mean(axis=0), line, color=colour, marker=marker, label=series.algorithm)
        repeated = np.broadcast_to(here, series.seconds.shape)
        axis.plot(repeated.ravel(), series.seconds.ravel(), ".", color=colour, alpha=0.35, markersize=4)
    _finish(axis, "gather algorithms: mean and every repetition", sizes, marks)


def _finish(axis: Axes, title: str, sizes: np.ndarray, marks: dict[str, int | None]) -> None:
    known = {name: size for name, size in marks.items() if size is not None}
    for size in known.values():
        axis.axvline(size, color="#000000", linestyle="--", linewidth=1)
    if known:
        title += f"; dashed: {', '.join(f'{name} = {format_size(size)}' for name, size in known.items())}"
    size_axis(axis, [2**k for k in range(10, int(sizes[-1]).bit_length())])
    axis.set_title(title, fontsize=10)


def regrets_figure(means: Mapping[str, Mapping[str, float]], deciders: Sequence[str]) -> Figure:
    """Bars of mean regrets by machine, one for each decider that chooses anything there."""
    figure, axis = plt.subplots(figsize=(2.5 + 1.4 * len(means), 3.6), layout="constrained")
    values = {decider: [known.get(decider, np.nan) for known in means.values()] for decider in deciders}
    for bars, mine in zip(grouped_bars(axis, list(means), values), values.values(), strict=True):
        texts = [f"{100 * item:.0f}" if np.isfinite(item) else "" for item in mine]
        axis.bar_label(bars, texts, fontsize=8, padding=1)
    axis.set_yscale("symlog", linthresh=_LINEAR)
    axis.set_ylim(0, 1.6 * max((item for known in means.values() for item in known.values()), default=1.0) + _LINEAR)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axis.set_ylabel("mean regret")
    axis.legend(ncols=len(deciders), fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return figure


def sure_figure(
    reliability: Sequence[tuple[float, float, float, Kept]], coverage: tuple[Sequence[float], Sequence[float]]
) -> Figure:
    """Observed over predicted shares of choices that lose little, and the risk of the surest choices by their share."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    said = [100 * mean for *_, mean, _ in reliability]
    shares, low, high = (
        100 * np.array([getattr(found, name) for *_, found in reliability]) for name in ("share", "low", "high")
    )
    left.plot([0, 100], [0, 100], color="0.7", linewidth=1)
    left.errorbar(said, shares, yerr=[shares - low, high - shares], fmt="o", color=PALETTE[0], capsize=3)
    left.set(xlabel="said probability of losing less than 5 % (%)", ylabel="observed share, mean of jobs (%)")
    left.set(xlim=(0, 102), ylim=(0, 102))
    right.plot(100 * np.array(coverage[0]), 100 * np.array(coverage[1]), color=PALETTE[1], drawstyle="steps-post")
    right.set(xlabel="the surest choices (% of the cells that matter)", ylabel="share that loses 5 % or more (%)")
    right.set(xlim=(0, 100), ylim=(0, None))
    return figure
