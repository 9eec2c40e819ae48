"""Figures of a calibration: points, fitted segments, and the error of simulation at each point."""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.style import PALETTE, head, seconds_axis
from collwise.validation.calibration.calibration import CalibrationResult
from collwise.validation.calibration.calibration_points import Kind, of_kind
from collwise.validation.calibration.segmented_regression import Segment

_TITLES = {
    Kind.SEND: "Time in MPI_Send (os)",
    Kind.ISEND: "Time in MPI_Isend (ois)",
    Kind.RECEIVE: "Time in MPI_Recv of a message that has arrived (or)",
    Kind.PING_PONG: "One way, half a ping-pong",
}
_MAX_PERCENT = 30.0
_POINTS, _LINES, _LIMIT = PALETTE[0], PALETTE[1], PALETTE[7]


def figure_of(result: CalibrationResult, kind: Kind) -> Figure:
    """Points and segments over message size, with the relative errors below."""
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
    _sizes(axes[1], sizes)
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
    """Errors of simulated times; for receives, which are not simulated alone, errors of the segments."""
    found = np.array(result.errors_of(kind))
    sizes, errors = found[:, 0], 100 * found[:, 1]
    axis.axhspan(-5, 5, color=PALETTE[5], alpha=0.25, lw=0)
    axis.axhline(0, color="black", lw=0.8)
    beyond = np.abs(errors) > _MAX_PERCENT
    axis.plot(sizes[~beyond], errors[~beyond], "o", ms=3.5, color=_POINTS)
    axis.plot(sizes[beyond], np.clip(errors[beyond], -_MAX_PERCENT, _MAX_PERCENT), "x", ms=5, color=_LINES)
    axis.set_ylim(-1.1 * _MAX_PERCENT, 1.1 * _MAX_PERCENT)
    axis.set_ylabel("error (%)\nx: beyond 30 %", fontsize=9)


def _sizes(axis: Axes, sizes: np.ndarray) -> None:
    axis.set_xscale("log", base=2)
    powers = range(0, int(np.log2(sizes.max())) + 2, 4)
    axis.set_xticks([2**power for power in powers], [format_size(2**power) for power in powers])
    axis.set_xlabel("message size")
