"""Fits the network of a platform: latency and bandwidth by message size for SMPI, ports for the schedule engine."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from collwise.common.errors import UsageError
from collwise.platforms import Ports
from collwise.platforms.description import PACKET_BYTES
from collwise.platforms.smpi import ENVELOPE_BYTES
from collwise.simulator.schedule.networks import load_of
from collwise.simulator.schedule.tables import Doubles
from collwise.validation.calibration.calibration_points import Kind
from collwise.validation.calibration.figures import six_digits
from collwise.validation.calibration.segmented_regression import Segment, fit_segments

MIN_SECONDS, MIN_SECONDS_PER_BYTE = 1e-9, 1e-15
"""Latency and bandwidth factors must be positive."""

_EAGER_SEGMENTS, _RENDEZVOUS_SEGMENTS = 9, 4
_MIN_POINTS = 4
# Two times that differ by more than this factor differ in fact, not only by measurement errors.
_APART = 1.2


@dataclass(frozen=True)
class MessageTime:
    """The time of one message that simulation should reproduce, and its relative standard error."""

    message_bytes: int
    seconds: float
    relative_error: float


def between(curve: Sequence[MessageTime], message_bytes: float) -> float:
    """The seconds at a size, interpolated in logarithms; beyond the curve's ends, the seconds of its nearest point."""
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


_MAX_BURST_BYTES = 16384
_HEADER_BYTES = 66
"""The headers of a packet of TCP over Ethernet: Ethernet's (14 bytes), IP's (20), TCP's (20) and time stamps (12)."""
# The largest share of acknowledgements: one packet without data for each full packet. If exchanges take even longer,
# the processors limit them.
_MAX_ACKNOWLEDGEMENTS = _HEADER_BYTES / (PACKET_BYTES + _HEADER_BYTES)
_MIN_ERROR = 0.02
_MIN_POINTS = 4
_MIN_SENDS = 3


def fit_ports(
    alone: Sequence[MessageTime],
    sends: Sequence[MessageTime],
    exchange_ratios: Sequence[float],
    overhead_seconds: Callable[[float], float],
    eager_limit_bytes: int,
    link_bytes_per_second: float,
) -> Ports | None:
    """The ports fitted to one-way times of single messages (halves of roundtrips); None if these are too few.

    Without the processors' overheads, a message takes latency + max(0, m' - burst) / rate, where m' is its size with
    the headers of its packets (`load_of`); a message that waits for its receiver also takes a handshake. A roundtrip
    takes at least m' / rate, because a token bucket does not exceed its rate over so long a time. The one-way time is
    half of the roundtrip, and therefore at least half of m' / rate. The rate is that of the largest messages, at most
    the nominal rate of the link. Latency and burst are fitted to eager messages; the handshake is the additional time
    of rendezvous messages. The fits minimise Huber's loss of the relative errors, each divided by the standard error of
    its time.

    `sends` are the times of MPI_Send. The send of a rendezvous message ends when the rest of the message fits into the
    connection's send buffer. `exchange_ratios` are times of both directions at once divided by times of one direction.
    """
    eager = [time for time in alone if time.message_bytes < eager_limit_bytes]
    waiting = [time for time in alone if time.message_bytes >= eager_limit_bytes]
    if len(eager) < _MIN_POINTS:
        return None
    largest = waiting if len(waiting) >= _MIN_POINTS else eager
    base, per_byte = _base_and_slope(largest, overhead_seconds, _HEADER_BYTES)
    rate = min(1 / max(per_byte, 1e-15), link_bytes_per_second)
    latency, burst = _latency_and_burst(eager, overhead_seconds, rate)
    handshake = max(0.0, base + burst / rate - latency) if largest is waiting else 0.0
    share = statistics.median(exchange_ratios) - 1 if exchange_ratios else 0.0
    blocking = [send for send in sends if send.message_bytes >= eager_limit_bytes]
    loads, seconds = _without_overheads(blocking, overhead_seconds, _HEADER_BYTES)
    left = loads - burst - (seconds - handshake) * rate
    buffered = float(np.median(left)) if len(left) >= _MIN_SENDS else 0.0
    return Ports(
        bytes_per_second=six_digits(rate),
        latency_seconds=six_digits(latency),
        handshake_seconds=six_digits(handshake),
        burst_bytes=six_digits(burst),
        header_bytes=_HEADER_BYTES,
        acknowledgement_share=six_digits(min(max(share, 0.0), _MAX_ACKNOWLEDGEMENTS)),
        send_buffer_bytes=six_digits(max(buffered, 0.0)),
    )


def with_loopback(ports: Ports | None, inside: Sequence[MessageTime]) -> Ports | None:
    """The ports with the path within a node, fitted to one-way times of messages there; unchanged if these are too few.

    The times include the overheads within a node. Overheads between nodes differ, since messages there use TCP.
    """
    if ports is None or len(inside) < _MIN_POINTS:
        return ports
    base, per_byte = _base_and_slope(inside, lambda size: 0.0, 0.0)
    return replace(
        ports,
        loopback_latency_seconds=six_digits(max(base, 0.0)),
        loopback_bytes_per_second=six_digits(1 / max(per_byte, 1e-15)),
    )


def _base_and_slope(
    largest: Sequence[MessageTime], overhead_seconds: Callable[[float], float], header_bytes: float
) -> tuple[float, float]:
    """The base and slope of a line, in seconds and seconds per byte; a burst may make the base negative."""
    m, seconds = _without_overheads(largest, overhead_seconds, header_bytes)
    weights, longest = _weights(largest), float(np.max(m))
    scales = np.array([float(np.min(seconds)), float(np.max(seconds)) / longest])

    def errors(scaled: Doubles) -> Doubles:
        base, per_byte = scaled * scales
        return np.asarray(((base + m * per_byte) / seconds - 1) * weights)

    base, per_byte = least_squares(errors, (0.0, 1.0), loss="huber").x * scales
    return float(base), float(per_byte)


def _latency_and_burst(
    eager: Sequence[MessageTime], overhead_seconds: Callable[[float], float], rate: float
) -> tuple[float, float]:
    """The latency in seconds and the burst in bytes; neither of them is negative."""
    m, seconds = _without_overheads(eager, overhead_seconds, _HEADER_BYTES)
    least = m / rate / 2 - np.array([overhead_seconds(time.message_bytes) for time in eager])
    weights = _weights(eager)

    def errors(scaled: Doubles) -> Doubles:
        latency, burst = scaled * scales
        found = np.maximum(latency + np.maximum(m - burst, 0) / rate, least)
        return np.asarray((found / seconds - 1) * weights)

    shortest = float(np.min(seconds))
    scales = np.array([shortest, 1000.0])
    fits = [
        least_squares(errors, (0.5, start), bounds=((0, 0), (np.inf, _MAX_BURST_BYTES / 1000)), loss="huber")
        for start in (0.001, 1.0, 4.0)
    ]
    latency, burst = min(fits, key=lambda fit: float(fit.cost)).x * scales
    return float(latency), float(burst)


def _weights(times: Sequence[MessageTime]) -> Doubles:
    return 1 / np.array([max(time.relative_error, _MIN_ERROR) for time in times])


def _without_overheads(
    times: Sequence[MessageTime], overhead_seconds: Callable[[float], float], header_bytes: float
) -> tuple[Doubles, Doubles]:
    """The loads in bytes, and the seconds in the network, which are positive for every message."""
    m = load_of(np.array([time.message_bytes for time in times], dtype=np.float64), header_bytes)
    seconds = np.array([time.seconds - overhead_seconds(time.message_bytes) for time in times])
    return m, np.maximum(seconds, 1e-9)
