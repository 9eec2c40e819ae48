"""Results of test beds in tables: the check of a bed, and irregular regions of gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from collwise.common.units import format_seconds, format_size
from collwise.studies.present.shown import Shown, Table, drawing
from collwise.validation.measurement.irregular_regions import Regions, region_times, verdict
from collwise.validation.testbed.check import BedCheck
from collwise.validation.testbed.target import TcpCounts

CHECK_COLUMNS = ("", "measured", "by the shape", "share")


def check_rows(found: BedCheck) -> list[tuple[str, ...]]:
    """Rates of streams and times of exchanges; a share is 100 % if only the network limits them."""
    rates = [("one stream", found.one_way, found.one_way_expected)]
    rates += [("each node to the next, all at once", found.together, found.together_expected)]
    if found.across is not None and found.across_expected is not None:
        rates.append(("from switch to switch", found.across, found.across_expected))
    rows: list[tuple[str, ...]] = [
        (what, f"{rate / 1e6:.4g} MB/s", f"{expected / 1e6:.4g} MB/s", f"{rate / expected:.0%}")
        for what, rate, expected in rates
    ]
    rows += [
        (
            f"alltoall of {format_size(exchange.message_bytes)} at half the rate, and twice its time at the full rate",
            format_seconds(exchange.slower_seconds),
            format_seconds(2 * exchange.seconds),
            f"{exchange.scaling:.0%}",
        )
        for exchange in found.exchanges
    ]
    return rows


def check_words(found: BedCheck) -> list[str]:
    """A line on the latency and the processors' load, then a line for each problem, or 'ok' without problems."""
    beside = f"latency {format_seconds(found.latency_seconds)}; processors {found.busy_share:.0%} busy with all streams"
    return [beside, *(["ok"] if found.ok else [f"not ok: {problem}" for problem in found.problems])]


_THRESHOLDS = ("target", "TCP", "P", "M1", "M2", "S", "time-outs in gather", "sent again", "time-outs", "drops")
_ALGORITHMS = ("gather", "blocks", "mean", "worst", "with time-out", "sent again", "time-outs", "drops")


def regions(found: Sequence[Regions]) -> Shown:
    """The thresholds of each target, and the slowdowns of gather's algorithms; the figures show every repetition."""
    parts: list[Table | str] = []
    drawn = {}
    for item in found:
        title = title_of(item)
        slowdowns = "Slowdown against linear gather without escalation"
        parts += [
            Table(title, _THRESHOLDS, [_thresholds(item)], left=2),
            Table(slowdowns, _ALGORITHMS, _costs(item), 2),
        ]
        parts.append(verdict(item))
        stem = "-".join(["regions", item.target, item.variant, str(item.procs)]).replace(" ", "").replace("--", "-")
        drawn[stem] = drawing("measurements.regions_figure", item, title)
    return Shown(parts, list(map(_record, found)), figures=drawn)


def _thresholds(found: Regions) -> tuple[str, ...]:
    """The thresholds on one execution target, and TCP's counters for the gather series, if there are any."""
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


def _costs(found: Regions) -> list[tuple[str, ...]]:
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
    """A title such as 'testbed-8x100M, reno, P = 8'."""
    return ", ".join([found.target, *([found.variant] if found.variant else []), f"P = {found.procs}"])


def _record(found: Regions) -> dict[str, Any]:
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
