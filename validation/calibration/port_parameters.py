"""Fits the ports of a platform, for the schedule engine, to the same measurements that SMPI's parameters come from."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from collwise.platforms import Ports
from collwise.platforms.description import PACKET_BYTES
from collwise.simulator.schedule.networks import load_of
from collwise.simulator.schedule.tables import Doubles
from collwise.validation.calibration.latency_and_bandwidth import MessageTime, rounded

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
        bytes_per_second=rounded(rate),
        latency_seconds=rounded(latency),
        handshake_seconds=rounded(handshake),
        burst_bytes=rounded(burst),
        header_bytes=_HEADER_BYTES,
        acknowledgement_share=rounded(min(max(share, 0.0), _MAX_ACKNOWLEDGEMENTS)),
        send_buffer_bytes=rounded(max(buffered, 0.0)),
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
        loopback_latency_seconds=rounded(max(base, 0.0)),
        loopback_bytes_per_second=rounded(1 / max(per_byte, 1e-15)),
    )


def _base_and_slope(
    largest: Sequence[MessageTime], overhead_seconds: Callable[[float], float], header_bytes: float
) -> tuple[float, float]:
    """The base and slope of a line, in seconds and seconds per byte.

    The base is negative if a burst saves more time than the latency takes.
    """
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
