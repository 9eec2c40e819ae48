"""Fits the ports of a platform, for the schedule engine, to the same measurements that SMPI's parameters come from."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from collwise.platforms import Ports
from collwise.validation.calibration.latency_and_bandwidth import MessageTime, rounded

_MOST_BURST_BYTES = 16384
# TCP over Ethernet sends 66 bytes of acknowledgement for each packet of 1514. Exchanges that take still longer are
# limited by the processors.
_MOST_ACKNOWLEDGEMENTS = 66 / 1514
_LEAST_POINTS = 4


def fit_ports(
    alone: Sequence[MessageTime],
    exchange_ratios: Sequence[float],
    overhead_seconds: Callable[[float], float],
    eager_limit_bytes: int,
    link_bytes_per_second: float,
) -> Ports | None:
    """The ports fitted to one-way times of messages alone; None if there are too few.

    A message without the processors' overheads takes latency + max(0, m - burst) / rate, and a handshake more if it
    waits for its receiver. The rate is that of the largest messages, at most the nominal one of the link. Latency and
    burst minimise the squared relative errors over eager messages; the handshake is the additional time of rendezvous
    messages. `exchange_ratios` are times of both directions at once over those of one.
    """
    eager = [one for one in alone if one.message_bytes < eager_limit_bytes]
    waiting = [one for one in alone if one.message_bytes >= eager_limit_bytes]
    if len(eager) < _LEAST_POINTS:
        return None
    largest = waiting if len(waiting) >= _LEAST_POINTS else eager
    m, seconds = _without_overheads(largest, overhead_seconds)
    # The base is negative where the burst saves more than the latency takes.
    columns = np.stack([np.ones_like(m), m], axis=1) / seconds[:, None]
    base, per_byte = np.linalg.lstsq(columns, np.ones_like(m), rcond=None)[0]
    rate = min(1 / max(float(per_byte), 1e-15), link_bytes_per_second)
    m, seconds = _without_overheads(eager, overhead_seconds)

    def latency(burst: float) -> float:
        """The non-negative latency that minimises the squared relative errors."""
        rest = seconds - np.maximum(m - burst, 0) / rate
        return max(0.0, float(np.sum(rest / seconds**2) / np.sum(1 / seconds**2)))

    def error(burst: float) -> float:
        found = latency(burst) + np.maximum(m - burst, 0) / rate
        return float(np.sum((found / seconds - 1) ** 2))

    burst = min((0.0, float(minimize_scalar(error, bounds=(0, _MOST_BURST_BYTES), method="bounded").x)), key=error)
    handshake = max(0.0, float(base) + burst / rate - latency(burst)) if largest is waiting else 0.0
    share = statistics.median(exchange_ratios) - 1 if exchange_ratios else 0.0
    return Ports(
        bytes_per_second=rounded(rate),
        latency_seconds=rounded(latency(burst)),
        handshake_seconds=rounded(handshake),
        burst_bytes=rounded(burst),
        acknowledgement_share=rounded(min(max(share, 0.0), _MOST_ACKNOWLEDGEMENTS)),
    )


def _without_overheads(
    times: Sequence[MessageTime], overhead_seconds: Callable[[float], float]
) -> tuple[np.ndarray, np.ndarray]:
    """The sizes in bytes, and the seconds in the network, which are positive for every message."""
    m = np.array([one.message_bytes for one in times], dtype=np.float64)
    seconds = np.array([one.seconds - overhead_seconds(one.message_bytes) for one in times])
    return m, np.maximum(seconds, 1e-9)
