"""The true point-to-point parameters of a platform whose costs are linear in the message size, to check estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collwise.common.errors import UsageError
from collwise.platforms.description import Description, HeterogeneousPlatform, Platform
from collwise.platforms.hosts import HostPlatform, ReorderedPlatform
from collwise.platforms.smpi import ENVELOPE_BYTES
from collwise.platforms.xml_clusters import description_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PointToPoint:
    """Costs of an eager message of at least one byte between two of n nodes.

    Overheads and their parts per byte are arrays (n,). `latency_seconds` (which includes the time of SMPI's envelope)
    and `network_seconds_per_byte` are arrays (n, n) over sender and receiver, 0 on the diagonal.
    """

    send_seconds: Array
    send_seconds_per_byte: Array
    receive_seconds: Array
    receive_seconds_per_byte: Array
    latency_seconds: Array
    network_seconds_per_byte: Array
    eager_limit_bytes: int

    @property
    def processor_seconds(self) -> Array:
        """C of the LMO model, (n,): the mean of the send and the receive overhead."""
        return (self.send_seconds + self.receive_seconds) / 2

    @property
    def processor_seconds_per_byte(self) -> Array:
        """t of the LMO model, (n,): the mean of the send and the receive overhead per byte."""
        return (self.send_seconds_per_byte + self.receive_seconds_per_byte) / 2

    @property
    def alpha_seconds(self) -> Array:
        """alpha of the Hockney model, (n, n), which does not depend on the size. Its diagonal has no meaning."""
        return self.send_seconds[:, None] + self.latency_seconds + self.receive_seconds[None, :]

    @property
    def beta_seconds_per_byte(self) -> Array:
        """beta of the Hockney model, (n, n). Its diagonal has no meaning."""
        per_byte = self.send_seconds_per_byte[:, None] + self.receive_seconds_per_byte[None, :]
        return per_byte + self.network_seconds_per_byte

    def seconds(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """One-way time of messages from 1 byte to below the rendezvous threshold."""
        alpha, beta = self.alpha_seconds[sender, receiver], self.beta_seconds_per_byte[sender, receiver]
        return np.asarray(alpha + beta * np.asarray(message_bytes, dtype=float))


def point_to_point(platform: HostPlatform) -> PointToPoint:
    """The parameters of a described platform, for one process per node and one message at a time."""
    if isinstance(platform, ReorderedPlatform):
        truth, order = point_to_point(platform.base), np.asarray(platform.order)
        changed: dict[str, Any] = {}
        for name, value in vars(truth).items():
            if isinstance(value, np.ndarray):
                changed[name] = value[order] if value.ndim == 1 else value[np.ix_(order, order)]
        return replace(truth, **changed)
    found = description_of(platform)
    return _homogeneous(found) if isinstance(found, Platform) else _heterogeneous(found)


def _homogeneous(platform: Platform) -> PointToPoint:
    calibration, n = platform.calibration, platform.nodes
    if platform.topology is not None:
        raise UsageError(
            f"platform '{platform.name}' is a {platform.topology.kind}, where pairs of nodes differ by their switches; "
            "exact parameters need nodes at one switch"
        )
    _check_linear(platform, calibration.os, calibration.or_)
    (_, send, send_per_byte), (_, receive, receive_per_byte) = calibration.os[0], calibration.or_[0]
    latency, limit = platform.route[0], platform.backbone_bytes_per_second or np.inf
    between = ~np.eye(n, dtype=bool)
    of_overheads, of_rates = np.array(platform.factors_of_nodes).T
    rates = platform.node_bytes_per_second * of_rates
    overheads = [of_overheads * value for value in (send, send_per_byte, receive, receive_per_byte)]
    bandwidth = np.minimum(np.minimum.outer(rates, rates), limit)
    return _with_factors(platform, overheads, latency * between, between / bandwidth)


def _heterogeneous(platform: HeterogeneousPlatform) -> PointToPoint:
    kinds = platform.types_of_hosts
    latency, rate = np.zeros((2, len(kinds), len(kinds)))
    for i, j in permutations(range(len(kinds)), 2):
        latency[i, j], bandwidth = platform.route(kinds[i], kinds[j])
        rate[i, j] = 1 / bandwidth
    overheads = [
        np.array([getattr(kind, name) for kind in kinds])
        for name in ("send_base_seconds", "send_seconds_per_byte", "receive_base_seconds", "receive_seconds_per_byte")
    ]
    return _with_factors(platform, overheads, latency, rate)


def _with_factors(platform: Description, overheads: list[Array], latency: Array, rate: Array) -> PointToPoint:
    calibration = platform.calibration
    _check_linear(platform, calibration.latency_factor, calibration.bandwidth_factor)
    rate = rate / calibration.bandwidth_factor[0][1]
    latency = latency * calibration.latency_factor[0][1] + ENVELOPE_BYTES * rate
    send, send_per_byte, receive, receive_per_byte = overheads
    return PointToPoint(send, send_per_byte, receive, receive_per_byte, latency, rate, calibration.eager_limit_bytes)


def _check_linear(platform: HostPlatform, *lists: Sequence[object]) -> None:
    if any(len(rows) > 1 for rows in lists):
        raise UsageError(
            f"platform '{platform.name}': factors or overheads that change with the message size; "
            "exact parameters need one row each"
        )
