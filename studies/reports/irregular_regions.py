"""Irregular regions of gather and scatter in tables: for the terminal, for reports and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from collwise.common.units import format_size
from collwise.validation.measurement.irregular_regions import Regions, region_times, verdict
from collwise.validation.testbed.tcp_counters import TcpCounts

SUMMARY_COLUMNS = ("target", "TCP", "P", "M1", "M2", "S", "time-outs in gather", "sent again", "time-outs", "drops")
ALGORITHM_COLUMNS = ("gather", "blocks", "mean", "worst", "with time-out", "sent again", "time-outs", "drops")


def summary_cells(found: Regions) -> tuple[str, ...]:
    """The thresholds on one execution target, and what TCP counted during the gather series, if anything."""
    limits = found.thresholds
    sizes = (limits.gather_irregular_from_bytes, limits.gather_regular_from_bytes, limits.scatter_leap_bytes)
    return (
        found.target,
        found.variant or "-",
        str(found.procs),
        *("-" if size is None else format_size(size) for size in sizes),
        f"{found.gather.escalated.mean():.0%}",
        *_count_cells(found.gather.counts.get("all")),
    )


def algorithm_cells(found: Regions) -> list[tuple[str, ...]]:
    """One row per algorithm and part of the sizes; times are relative to linear gather without escalation."""
    return [
        (
            row.algorithm,
            row.part,
            f"x {row.mean_slowdown:.2f}",
            f"x {row.worst_slowdown:.1f}",
            f"{row.escalated:.0%}",
            *_count_cells(row.counts),
        )
        for row in region_times(found).itertuples()
    ]


def _count_cells(counts: TcpCounts | None) -> tuple[str, ...]:
    return ("-", "-", "-") if counts is None else (str(counts.sent_again), str(counts.timeouts), str(counts.drops))


def title_of(found: Regions) -> str:
    """'testbed-8x100M, reno, P = 8'."""
    return ", ".join([found.target, *([found.variant] if found.variant else []), f"P = {found.procs}"])


def record_of(found: Regions) -> dict[str, Any]:
    """The regions as plain data: thresholds, every single time, counters and the verdict."""
    return {
        "target": found.target,
        "variant": found.variant,
        "procs": found.procs,
        "thresholds": asdict(found.thresholds),
        "verdict": verdict(found),
        "series": [
            {
                "collective": series.collective,
                "algorithm": series.algorithm,
                "message_bytes": list(series.message_bytes),
                "seconds": series.seconds.tolist(),
                "counts": {part: asdict(counts) for part, counts in series.counts.items()},
            }
            for series in (found.gather, found.scatter, *found.compared)
        ],
    }
