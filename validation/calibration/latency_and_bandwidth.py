"""Latency and bandwidth by message size, from single messages and from messages in a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from collwise.common.errors import UsageError
from collwise.platforms.smpi import ENVELOPE_BYTES
from collwise.validation.calibration.calibration_points import Kind
from collwise.validation.calibration.segmented_regression import Segment, fit_segments

MIN_SECONDS, MIN_SECONDS_PER_BYTE = 1e-9, 1e-15
"""Latency and bandwidth factors must be positive."""

_EAGER_SEGMENTS, _RENDEZVOUS_SEGMENTS = 9, 4
_MIN_POINTS = 4
_DIGITS = 6
# Two times that differ by more than this factor differ in fact, not only by measurement errors.
_APART = 1.2


@dataclass(frozen=True)
class MessageTime:
    """The time of one message that simulation should reproduce, and its relative standard error."""

    message_bytes: int
    seconds: float
    relative_error: float


def rounded(value: float) -> float:
    """A fitted parameter, rounded to the number of digits that descriptions have."""
    return float(f"{value:.{_DIGITS}g}")


def between(curve: Sequence[MessageTime], message_bytes: float) -> float:
    """The seconds at a size, interpolated in logarithms; beyond the curve's ends, those of its nearest point."""
    sizes, seconds = zip(*((time.message_bytes, time.seconds) for time in curve), strict=True)
    return float(np.exp(np.interp(math.log(message_bytes), np.log(sizes), np.log(seconds))))


def fit_network(
    alone: Sequence[MessageTime],
    rows: Sequence[MessageTime],
    overhead_seconds: Callable[[float], float],
    eager_limit_bytes: int,
    link_bytes_per_second: float,
) -> list[Segment]:
    """The seconds in the network by bytes of message and envelope, with separate segments for eager and rendezvous.

    `alone` has one-way times of single messages. `rows` has times per message of eager messages that follow one another
    without a pause. `overhead_seconds` gives the part of a one-way time that is not spent in the network.

    No message is faster than the nominal rate of the link. A single message may seem faster if a token bucket or a
    buffer absorbs it, but messages in a row do not seem faster. Simulated messages share the bandwidth of a link, but
    not its latency. Therefore eager messages have no latency from the first size on at which a message in a row takes
    more than 1.2 times as long as a message alone. From this size on, the fitted time is the time in a row, except at
    sizes where the time in a row is more than 1.2 times the time alone. At these sizes no number is near both times, so
    the fitted time is wrong by the same factor for a message in a row and for a message alone.
    """
    eager = [time for time in alone if time.message_bytes < eager_limit_bytes]
    rendezvous = [time for time in alone if time.message_bytes >= eager_limit_bytes]
    apart = [time.message_bytes for time in eager if rows and between(rows, time.message_bytes) > _APART * time.seconds]
    held = [time for time in eager if apart and time.message_bytes >= min(apart)]
    free = eager[: len(eager) - len(held)]
    min_seconds_per_byte = max(MIN_SECONDS_PER_BYTE, 1 / link_bytes_per_second)
    made: list[Segment] = []
    for part, start, max_segments in (
        (free, 0, _EAGER_SEGMENTS),
        (held, min(apart, default=0), _EAGER_SEGMENTS),
        (rendezvous, eager_limit_bytes, _RENDEZVOUS_SEGMENTS),
    ):
        if len(part) < _MIN_POINTS:
            continue
        overheads = [overhead_seconds(time.message_bytes) for time in part]
        in_network = [time.seconds - overhead for time, overhead in zip(part, overheads, strict=True)]
        if part is held:
            in_network = [_in_network(time, rows, overhead) for time, overhead in zip(part, overheads, strict=True)]
        found = fit_segments(
            [time.message_bytes + ENVELOPE_BYTES for time in part],
            in_network,
            scale_seconds=[seconds + overhead for seconds, overhead in zip(in_network, overheads, strict=True)],
            relative_errors=[time.relative_error for time in part],
            least=(MIN_SECONDS, MIN_SECONDS_PER_BYTE if part is held else min_seconds_per_byte),
            through_origin=part is held,
            max_segments=max_segments,
            from_bytes=start,
        )
        made += [replace(segment, from_bytes=max(start, segment.from_bytes - ENVELOPE_BYTES)) for segment in found]
    if not made:
        raise UsageError(f"too few measurements of kind '{Kind.PING_PONG}'; at least {_MIN_POINTS} are needed")
    return [replace(made[0], from_bytes=0), *made[1:]]


def _in_network(time: MessageTime, rows: Sequence[MessageTime], overhead: float) -> float:
    """The time that a simulated message should take in the network, all of it due to bandwidth."""
    in_a_row = between(rows, time.message_bytes)
    if in_a_row > _APART * time.seconds:
        # A simulated message then takes x + overhead alone and x in a row: (x + overhead) / alone = row / x.
        return math.sqrt(time.seconds * in_a_row + overhead**2 / 4) - overhead / 2
    return max(time.seconds - overhead, in_a_row)
