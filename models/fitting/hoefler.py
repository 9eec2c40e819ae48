"""Estimation of LogGP without saturation: Hoefler, Lichei, Rehm, "Low-Overhead LogGP Parameter Assessment for Modern
Interconnection Networks", 2007.

PRTT(n, d, s) is the time of n messages of s bytes, d seconds of other work between two of them, and a reply of s bytes:
- PRTT(1, 0, s) = 2 (L + 2 o + (s - 1) G);
- without a delay each further message adds its gap, (PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1) = g + (s - 1) G, which
  over several s gives g and G by least squares;
- with a delay of a gap or longer it adds the delay and o: o = (PRTT(n, d, s) - PRTT(1, 0, s)) / (n - 1) - d.
All times are the sender's, so this o is the overhead of sending; o_r cannot be distinguished from L and is assumed
to be the same. L = PRTT(1, 0, 1) / 2 - 2 o, so that L + o_s + o_r is right even where the two overheads differ and L is
not.
"""

from __future__ import annotations

from collections.abc import Sequence

from collwise.common.errors import UsageError
from collwise.common.experiments import PRTT, Experiment, Laboratory
from collwise.models.fitting.loggp import PairTimes, directions, largest_eager, loggp
from collwise.models.fitting.regression import line
from collwise.models.fitting.rounds import Pair, Procedure, chosen_pairs, together
from collwise.models.loggp import LogGP


def hoefler_loggp(
    lab: Laboratory,
    larger_bytes: Sequence[int] | None = None,
    count: int = 16,
    pairs: Sequence[Pair] | None = None,
    heterogeneous: bool = False,
) -> LogGP:
    """LogGP from `count` messages in a row, of the least size and of the larger ones.

    Those are up to the largest eager ones, at most 64 KiB, unless given.
    `pairs` are the pairs of processes measured, (0, 1) unless given, and the result is their mean; a heterogeneous
    model takes every pair. The delay is PRTT(1, 0, 1), or the gap if that is longer; delayed times are mostly delay,
    so that a small error in them is a large one in o. Raises UsageError for what does not fit.
    """
    if count < 2:
        raise UsageError(f"{count} messages in a row: at least 2 are needed")
    most = largest_eager(lab)
    larger = [size for size in (most // 64, most // 16, most // 4, most // 2, most) if size > lab.least_bytes]
    if larger_bytes is not None:
        larger = list(larger_bytes)
    if not larger or min(larger) <= lab.least_bytes:
        raise UsageError(
            f"larger messages of {', '.join(map(str, larger)) or 'no'} bytes: "
            f"at least one size, each above {lab.least_bytes}, is valid"
        )
    measured = chosen_pairs(lab, pairs, heterogeneous)
    least, sizes = lab.least_bytes, sorted({lab.least_bytes, *larger})

    def procedure(pair: Pair) -> Procedure[PairTimes]:
        seconds = yield [Experiment(PRTT, pair, size, size, n) for size in sizes for n in (1, count)]
        singles, rows = seconds[::2], seconds[1::2]
        gaps = [(row - single) / (count - 1) for single, row in zip(singles, rows, strict=True)]
        gap, per_byte = line([max(size - 1, 0) for size in sizes], gaps)
        delay = max(singles[0], gaps[0])
        delayed = yield [
            Experiment(PRTT, way, least, least, count, delay) for way in directions(pair, both=heterogeneous)
        ]
        overheads = tuple((row - singles[0]) / (count - 1) - delay for row in delayed)
        return PairTimes(singles[0], overheads, overheads, gap, per_byte)

    return loggp(lab.procs, measured, together(lab, [procedure(pair) for pair in measured]), heterogeneous)
