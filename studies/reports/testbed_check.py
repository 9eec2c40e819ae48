"""The results of a check of a test bed, as rows of a table."""

from __future__ import annotations

from collwise.common.units import format_seconds, format_size
from collwise.validation.testbed.check import BedCheck

COLUMNS = ("", "measured", "by the shape", "share")


def check_rows(found: BedCheck) -> list[tuple[str, ...]]:
    """Rates of streams and times of exchanges; the network alone gives a share of 100 %."""
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
            f"alltoall of {format_size(one.message_bytes)}, at half the rate beside twice the time",
            format_seconds(one.slower_seconds),
            format_seconds(2 * one.seconds),
            f"{one.scaling:.0%}",
        )
        for one in found.exchanges
    ]
    return rows


def check_words(found: BedCheck) -> list[str]:
    """A line on the latency and the processors' load, and one for each problem, or 'ok'."""
    beside = f"latency {format_seconds(found.latency_seconds)}; processors {found.busy_share:.0%} busy with all streams"
    return [beside, *(["ok"] if found.ok else [f"not ok: {problem}" for problem in found.problems])]
