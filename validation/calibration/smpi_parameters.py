"""Fits SMPI's parameters to point-to-point measurements, as docs/calibration.md explains."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import nnls

from collwise.common.errors import UsageError
from collwise.platforms import Calibration, Platform, Source
from collwise.platforms.description import LEAST_FLAG_SECONDS, FactorRow, OverheadRow
from collwise.platforms.smpi import ENVELOPE_BYTES
from collwise.validation.calibration.calibration_points import CalibrationPoint, Kind, of_kind
from collwise.validation.calibration.figures import six_digits
from collwise.validation.calibration.network_parameters import (
    MIN_SECONDS,
    MIN_SECONDS_PER_BYTE,
    MessageTime,
    between,
    fit_network,
    fit_ports,
    with_loopback,
)
from collwise.validation.calibration.segmented_regression import Segment, fit_segments, value_at

CROSSTRAFFIC = 0.05
"""The share of a flow's rate that SimGrid takes from the opposite direction."""

_OVERHEAD_SEGMENTS = 7
_MIN_POINTS = 4
# MPI_Send is MPI_Isend and the completion of its request.
_SEND_OVER_ISEND = 2.0
# The network's share of a roundtrip is at least this; the rest belongs to overheads.
_NETWORK_SHARE = 0.1
# Smaller reductions fit in the nearest caches, and the cost of the call dominates.
_REDUCE_BYTES = 4096

Segments = dict[Kind, list[Segment]]


@dataclass(frozen=True)
class _Overheads:
    os: list[Segment]
    or_: list[Segment]
    ois: list[Segment]
    eager_limit_bytes: int

    def blocking(self, message_bytes: float) -> float:
        """The seconds of a send and its receive outside the network."""
        return self._eager(self.os, message_bytes)

    def exchange(self, message_bytes: float) -> float:
        """The seconds of MPI_Sendrecv outside the network."""
        return self._eager(self.ois, message_bytes)

    def _eager(self, sends: list[Segment], message_bytes: float) -> float:
        if message_bytes >= self.eager_limit_bytes:
            return 0.0
        return value_at(sends, message_bytes) + value_at(self.or_, message_bytes)


def eager_limit(points: Sequence[CalibrationPoint]) -> int:
    """The eager limit that was found, in bytes; above all sizes if no send waits.

    Raises UsageError if no point is of the kind 'eager'.
    """
    found = [point for point in points if point.kind == Kind.EAGER]
    if not found:
        raise UsageError(f"no measurement of kind '{Kind.EAGER}'; give the points of a whole calibration")
    return found[-1].message_bytes or max(point.message_bytes for point in points) + 1


def clock_seconds(points: Sequence[CalibrationPoint]) -> float:
    """The time of reading the clock once, which every other time includes."""
    read = [point.median_seconds for point in points if point.kind == Kind.CLOCK]
    return statistics.median(read) if read else 0.0


def fit_platform(points: Sequence[CalibrationPoint], nominal: Platform) -> tuple[Platform, Segments]:
    """The nominal platform with fitted link, loopback, flag and calibration, and the fitted segments by kind."""
    limit, clock = eager_limit(points), clock_seconds(points)

    def times(kind: Kind, *, within_node: bool = False) -> list[MessageTime]:
        """One-way times of messages, minus the time of reading the clock; for a row, times per message."""
        return [
            MessageTime(
                point.message_bytes,
                max(point.median_seconds - clock, 1e-9) / {Kind.PING_PONG: 2, Kind.ROW: point.count}.get(kind, 1),
                point.relative_error,
            )
            for point in of_kind(points, kind, within_node=within_node)
        ]

    alone, rows = times(Kind.PING_PONG), times(Kind.ROW)
    overheads = _fit_overheads(alone, times(Kind.SEND), times(Kind.ISEND), times(Kind.RECEIVE), limit)
    # Larger messages would wait for each other's handshakes.
    exchanges = [point for point in of_kind(points, Kind.EXCHANGE) if limit / 4 <= point.message_bytes < limit]
    link_bytes_per_second = nominal.node_bytes_per_second
    network = fit_network(alone, rows, overheads.blocking, limit, link_bytes_per_second)
    ratios = _exchange_ratios(exchanges, alone, overheads)
    crosstraffic = bool(ratios) and statistics.median(ratios) > 1 + CROSSTRAFFIC / 2
    platform = _platform(nominal, network, overheads, crosstraffic, _reduce_seconds_per_byte(times(Kind.REDUCE)))
    ports = fit_ports(alone, times(Kind.SEND), ratios, overheads.blocking, limit, link_bytes_per_second)
    inside = times(Kind.PING_PONG, within_node=True)
    platform = replace(platform, ports=with_loopback(ports, inside))
    if flags := times(Kind.FLAG, within_node=True):
        flag = max(statistics.median(time.seconds for time in flags), LEAST_FLAG_SECONDS)
        platform = replace(platform, flag_latency_seconds=six_digits(flag))
    segments = {Kind.SEND: overheads.os, Kind.ISEND: overheads.ois, Kind.RECEIVE: overheads.or_}
    segments[Kind.PING_PONG] = network
    return _with_loopback(platform, inside, overheads), segments


def _fit_overheads(
    alone: list[MessageTime],
    sends: list[MessageTime],
    isends: list[MessageTime],
    receives: list[MessageTime],
    limit: int,
) -> _Overheads:
    """Fits the overheads smpi/os, smpi/or and smpi/ois.

    smpi/os and smpi/or are reduced in proportion if they would be nearly all of a ping-pong. A blocking send may also
    wait until the link has taken most of the message, which takes no processor time; so smpi/os is limited to twice the
    time of MPI_Isend, which never waits. If the send of a message waits, the message does not fit into the buffers on
    the way, and has not fully arrived when its receive begins, so receives of such messages are left out.
    """
    _enough(alone, Kind.PING_PONG)
    _enough(isends, Kind.ISEND)
    ois = _overhead_segments(_enough([isend for isend in isends if isend.message_bytes < limit], Kind.ISEND))
    longest = _scaled(ois, _SEND_OVER_ISEND)
    sends = _enough([send for send in sends if send.message_bytes < limit], Kind.SEND)
    quick = (send.message_bytes for send in sends if send.seconds <= value_at(longest, send.message_bytes))
    buffered = max(quick, default=limit)
    os = _overhead_segments(sends, most=longest)
    or_ = _overhead_segments(
        _enough([receive for receive in receives if receive.message_bytes <= buffered], Kind.RECEIVE)
    )
    room = [
        (1 - _NETWORK_SHARE) * time.seconds
        / (value_at(os, time.message_bytes) + value_at(or_, time.message_bytes) + 1e-12)
        for time in alone
        if time.message_bytes < limit
    ]  # fmt: skip
    share = min(1.0, *room) if room else 1.0
    above = [isend for isend in isends if isend.message_bytes >= limit]
    if len(above) >= _MIN_POINTS:
        ois = [*ois, *_overhead_segments(above, limit)]
    return _Overheads(_scaled(os, share), _scaled(or_, share), ois, limit)


def _overhead_segments(
    times: Sequence[MessageTime], from_bytes: int = 0, most: Sequence[Segment] | None = None
) -> list[Segment]:
    """The segments fitted to the times, after each time is limited to the value of `most` at its size."""
    return fit_segments(
        [time.message_bytes for time in times],
        [time.seconds if most is None else min(time.seconds, value_at(most, time.message_bytes)) for time in times],
        relative_errors=[time.relative_error for time in times],
        max_segments=_OVERHEAD_SEGMENTS,
        from_bytes=from_bytes,
    )


def _exchange_ratios(
    exchanges: Sequence[CalibrationPoint], alone: Sequence[MessageTime], overheads: _Overheads
) -> list[float]:
    """The time in the network of each exchange in both directions, divided by that of a message in one direction."""
    return [
        (point.median_seconds - overheads.exchange(point.message_bytes))
        / (between(alone, point.message_bytes) - overheads.blocking(point.message_bytes))
        for point in exchanges
    ]


def _platform(
    nominal: Platform,
    network: Sequence[Segment],
    overheads: _Overheads,
    crosstraffic: bool,
    reduce_seconds_per_byte: float,
) -> Platform:
    speed = 1 / network[-1].seconds_per_byte
    way = next((segment.base_seconds for segment in network if segment.base_seconds > 100 * MIN_SECONDS), MIN_SECONDS)
    calibration = Calibration(
        latency_factor=_rows([(segment.from_bytes, segment.base_seconds / way) for segment in network]),
        bandwidth_factor=_rows([(segment.from_bytes, 1 / (segment.seconds_per_byte * speed)) for segment in network]),
        os=_overhead_rows(overheads.os),
        or_=_overhead_rows(overheads.or_),
        ois=_overhead_rows(overheads.ois),
        eager_limit_bytes=overheads.eager_limit_bytes,
        crosstraffic=crosstraffic,
        reduce_seconds_per_byte=six_digits(reduce_seconds_per_byte),
        tcp_window=False,
        note="fitted to point-to-point measurements by: collwise platforms calibrate",
    )
    measured = Source("link, loopback and calibration", "point-to-point measurements, by: collwise platforms calibrate")
    return replace(
        nominal,
        links_per_node=1,
        link_bytes_per_second=six_digits(speed),
        link_latency_seconds=six_digits(way / 2),
        backbone_bytes_per_second=None,
        backbone_latency_seconds=0.0,
        calibration=calibration,
        sources=(*nominal.sources, measured),
    )


def _with_loopback(platform: Platform, inside: Sequence[MessageTime], overheads: _Overheads) -> Platform:
    """The platform with loopback latency and bandwidth, to which the link's factors also apply, from ping-pongs."""
    if len(inside) < _MIN_POINTS:
        return platform
    factors = platform.calibration
    sizes, seconds = [time.message_bytes for time in inside], np.array([time.seconds for time in inside])
    latencies = [_factor_at(factors.latency_factor, size) for size in sizes]
    loads = [(size + ENVELOPE_BYTES) / _factor_at(factors.bandwidth_factor, size) for size in sizes]
    columns = np.column_stack([latencies, loads])
    rest = seconds - np.array([overheads.blocking(size) for size in sizes])
    found, _ = nnls(columns / seconds[:, None], rest / seconds)
    return replace(
        platform,
        loopback_latency_seconds=six_digits(float(found[0])),
        loopback_bytes_per_second=six_digits(1 / max(float(found[1]), MIN_SECONDS_PER_BYTE)),
    )


def _factor_at(rows: Sequence[FactorRow], size: float) -> float:
    return [factor for start, factor in rows if start <= size][-1]


def _reduce_seconds_per_byte(times: Sequence[MessageTime]) -> float:
    each = [time.seconds / time.message_bytes for time in times if time.message_bytes >= _REDUCE_BYTES]
    return statistics.median(each) if each else 0.0


def _enough(times: list[MessageTime], kind: Kind) -> list[MessageTime]:
    if len(times) < _MIN_POINTS:
        raise UsageError(f"{len(times)} measurements of kind '{kind}'; at least {_MIN_POINTS} sizes are needed")
    return times


def _scaled(segments: Sequence[Segment], share: float) -> list[Segment]:
    return [
        Segment(segment.from_bytes, segment.base_seconds * share, segment.seconds_per_byte * share, segment.points)
        for segment in segments
    ]


def _overhead_rows(segments: Sequence[Segment]) -> tuple[OverheadRow, ...]:
    return _rows([(segment.from_bytes, segment.base_seconds, segment.seconds_per_byte) for segment in segments])


def _rows(rows: Sequence[tuple[float, ...]]) -> tuple[Any, ...]:
    """The rounded rows. A row that begins where the next one does applies to no size and is left out."""
    kept = [row for row, after in pairwise([*rows, (math.inf,)]) if row[0] < after[0]]
    return tuple((start, *map(six_digits, values)) for start, *values in kept)
