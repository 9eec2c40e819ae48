"""The point-to-point models: Hockney, LogP and LogGP, PLogP, and LMO, each with the parameters of single messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.interface import Homogeneous, PairParameters, entry
from collwise.models.piecewise import Array, PiecewiseLinear, check_knots


@dataclass(frozen=True)
class Hockney(PairParameters):
    """A message takes alpha + m beta (Hockney, Parallel Computing 20, 1994).

    alpha (seconds) and beta (seconds per byte) are floats, or arrays (n, n) over sender and receiver (O'Flynn 2009,
    section 5.1).
    """

    DIMENSIONS = MappingProxyType({"alpha_seconds": 2, "beta_seconds_per_byte": 2})

    alpha_seconds: float | Array
    beta_seconds_per_byte: float | Array

    def alpha(self, message_bytes: ArrayLike) -> Array:
        """Seconds, the same at every size. Homogeneous only."""
        return np.full(np.shape(message_bytes), self.alpha_seconds, dtype=float)

    def beta(self, message_bytes: ArrayLike) -> Array:
        """Seconds per byte, the same at every size. Homogeneous only."""
        return np.full(np.shape(message_bytes), self.beta_seconds_per_byte, dtype=float)

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size; the processors matter to the heterogeneous form only."""
        alpha = entry(self.alpha_seconds, sender, receiver)
        beta = entry(self.beta_seconds_per_byte, sender, receiver)
        return np.asarray(alpha + beta * np.asarray(message_bytes, dtype=float))


@dataclass(frozen=True)
class HockneyBySize(Homogeneous):
    """alpha and beta of the straight line on which the time of m lies (Pješivac-Grbović et al. 2007, section 3.1)."""

    time: PiecewiseLinear

    def alpha(self, message_bytes: ArrayLike) -> Array:
        """Seconds: alpha of the line."""
        return self.time.line(message_bytes)[0]

    def beta(self, message_bytes: ArrayLike) -> Array:
        """Seconds per byte: beta of the line."""
        return self.time.line(message_bytes)[1]

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size."""
        return self.time(message_bytes)


@dataclass(frozen=True)
class FurtherGap:
    """The seconds by which the gap changes if messages in a row go to several receivers.

    `seconds[i]` is the change for `receivers[i]` receivers; these numbers ascend from 1, where the change is 0. The
    change is linear between these numbers, and constant beyond the last. Pješivac-Grbović et al. 2007 ask for this
    change in section 7.
    """

    receivers: tuple[float, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        check_knots("change of the gap", self.receivers, self.seconds)

    def __call__(self, receivers: ArrayLike) -> Array:
        """Seconds for every number of receivers."""
        return np.asarray(np.interp(np.asarray(receivers, dtype=float), self.receivers, self.seconds))


@dataclass(frozen=True)
class LogGP(PairParameters):
    """A message takes L + o_s + o_r + (m - 1) G, and the next may begin after g. LogP is the same with G = 0.

    L, o_s, o_r and g are in seconds, G in seconds per byte. Overheads are floats, or arrays (n,) over processors; the
    others are floats, or arrays (n, n) over sender and receiver. In formulas with a single overhead, o is the mean of
    the two. LogP: Culler et al. 1993; LogGP: Alexandrov et al. 1995; both as in Pješivac-Grbović et al. 2007, section
    3.1, and O'Flynn 2009, sections 2.2.2 and 2.2.3. `further_gap` is not in these papers.
    """

    DIMENSIONS = MappingProxyType(
        {
            "latency_seconds": 2,
            "send_overhead_seconds": 1,
            "receive_overhead_seconds": 1,
            "gap_seconds": 2,
            "gap_seconds_per_byte": 2,
        }
    )

    latency_seconds: float | Array
    send_overhead_seconds: float | Array
    receive_overhead_seconds: float | Array
    gap_seconds: float | Array
    gap_seconds_per_byte: float | Array = 0.0
    further_gap: FurtherGap | None = field(default=None, kw_only=True)

    @property
    def overhead_seconds(self) -> float:
        """o, the mean of the overheads of sending and receiving. Homogeneous only."""
        return float(self.send_overhead_seconds + self.receive_overhead_seconds) / 2

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size."""
        sizes = np.maximum(np.asarray(message_bytes, dtype=float) - 1, 0)
        overheads = entry(self.send_overhead_seconds, sender)
        overheads += entry(self.receive_overhead_seconds, receiver)
        gap = entry(self.gap_seconds_per_byte, sender, receiver)
        return np.asarray(entry(self.latency_seconds, sender, receiver) + overheads + sizes * gap)


@dataclass(frozen=True)
class PLogP(Homogeneous):
    """A message takes L + g(m): latency L (seconds), and o_s, o_r and g as piecewise linear functions of the size.

    Kielmann et al. 2000, as in Pješivac-Grbović et al. 2007, section 3.1, and O'Flynn 2009, section 2.2.4.
    `further_gap` is not in these papers.
    """

    latency_seconds: float
    send_overhead: PiecewiseLinear
    receive_overhead: PiecewiseLinear
    gap: PiecewiseLinear
    further_gap: FurtherGap | None = field(default=None, kw_only=True)

    @classmethod
    def mean(cls, pairs: Sequence[PLogP]) -> PLogP:
        """The mean over pairs."""
        return cls(
            float(np.mean([pair.latency_seconds for pair in pairs])),
            PiecewiseLinear.mean([pair.send_overhead for pair in pairs]),
            PiecewiseLinear.mean([pair.receive_overhead for pair in pairs]),
            PiecewiseLinear.mean([pair.gap for pair in pairs]),
        )

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size."""
        return np.asarray(self.latency_seconds + self.gap(message_bytes))

    def as_loggp(self, min_bytes: int = 1) -> LogGP:
        """LogGP as Kielmann et al. derive it, except for G.

        o_s, o_r and g are those of the smallest message, and L' = L + g(1) - o_s(1) - o_r(1). Their G is g(m) / m for a
        large m, which still includes g(1) / m. Here G is (g(m) - g(1)) / (m - 1) at the last knot m of g, so the gap
        g + (m - 1) G is exactly g(m) there. The limit is the same.
        """
        smallest, large = float(min_bytes), self.gap.message_bytes[-1]
        send, receive = float(self.send_overhead(smallest)), float(self.receive_overhead(smallest))
        gap = float(self.gap(smallest))
        latency = self.latency_seconds + gap - send - receive
        per_byte = (float(self.gap(large)) - gap) / (large - smallest) if large > smallest else 0.0
        return LogGP(latency, send, receive, gap, per_byte, further_gap=self.further_gap)


@dataclass(frozen=True)
class HeterogeneousPLogP:
    """PLogP for every pair, `pairs[sender][receiver]` (None on the diagonal).

    Overheads belong to processors: each is the mean over the processor's pairs (O'Flynn 2009, section 5.2).
    """

    pairs: tuple[tuple[PLogP | None, ...], ...]

    heterogeneous = True

    def homogeneous(self) -> PLogP:
        """The mean over all pairs."""
        return PLogP.mean([pair for row in self.pairs for pair in row if pair is not None])

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size. Raises ValueError if sender and receiver are the same."""
        pair = self.pairs[sender][receiver]
        if pair is None:
            raise ValueError(f"no parameters between processor {sender} and itself")
        return pair.predict(message_bytes)


@dataclass(frozen=True)
class Thresholds:
    """The sizes at which collectives change their behaviour (O'Flynn 2009, chapter 4); None if not found.

    `scatter_leap_bytes` is S, at which the time of linear scatter leaps. Linear gather is not deterministic from
    `gather_irregular_from_bytes` (M1) to below `gather_regular_from_bytes` (M2). The thesis counts a message of M2
    bytes as medium, but the protocol that begins at M2 already applies to it.
    """

    scatter_leap_bytes: int | None = None
    gather_irregular_from_bytes: int | None = None
    gather_regular_from_bytes: int | None = None

    @property
    def last_irregular_bytes(self) -> int:
        """The largest size below M2, which LMO_Gather takes as its limit; 0 (no limit) if there is no M2."""
        return max((self.gather_regular_from_bytes or 0) - 1, 0)

    def irregular(self, message_bytes: ArrayLike) -> np.ndarray:
        """True where the time of linear gather is not deterministic."""
        return _from(self.gather_irregular_from_bytes, message_bytes) & ~self.large(message_bytes)

    def large(self, message_bytes: ArrayLike) -> np.ndarray:
        """True where linear gather follows formula (4.3): for sizes of at least M2."""
        return _from(self.gather_regular_from_bytes, message_bytes)


def _from(threshold: int | None, message_bytes: ArrayLike) -> np.ndarray:
    return np.asarray(message_bytes, dtype=float) >= (np.inf if threshold is None else threshold)


@dataclass(frozen=True)
class LMO(PairParameters):
    """The LMO model (O'Flynn 2009, chapter 4).

    A message from i to j takes C_i + L_ij + C_j + m (t_i + 1 / beta_ij + t_j). C and L are in seconds, t and 1 / beta
    in seconds per byte. If heterogeneous, C and t are arrays (n,) over processors, and L and 1 / beta are symmetric
    arrays (n, n) over pairs; otherwise all are floats.
    """

    DIMENSIONS = MappingProxyType(
        {"processor_seconds": 1, "processor_seconds_per_byte": 1, "latency_seconds": 2, "network_seconds_per_byte": 2}
    )

    processor_seconds: float | Array
    processor_seconds_per_byte: float | Array
    latency_seconds: float | Array
    network_seconds_per_byte: float | Array
    thresholds: Thresholds = Thresholds()

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size."""
        return self.as_hockney().predict(message_bytes, sender, receiver)

    def as_hockney(self) -> Hockney:
        """The Hockney model of the same messages (section 4.1.1); alpha and beta are the sums of LMO's parameters."""
        constant, per_byte = self.processor_seconds, self.processor_seconds_per_byte
        if not self.heterogeneous:
            return Hockney(
                2 * float(constant) + entry(self.latency_seconds, 0, 1),
                2 * float(per_byte) + entry(self.network_seconds_per_byte, 0, 1),
            )
        constants, rates = np.asarray(constant), np.asarray(per_byte)
        return Hockney(
            constants[:, None] + np.asarray(self.latency_seconds) + constants[None, :],
            rates[:, None] + np.asarray(self.network_seconds_per_byte) + rates[None, :],
        )
