"""The PLogP model: a message takes L + g(m); overheads and gap are piecewise linear functions of the message size.

Kielmann et al. 2000, as in Pješivac-Grbović et al. 2007, section 3.1, and O'Flynn 2009, section 2.2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.interface import Homogeneous
from collwise.models.loggp import FurtherGap, LogGP
from collwise.models.piecewise import Array, PiecewiseLinear


@dataclass(frozen=True)
class PLogP(Homogeneous):
    """End-to-end latency L (seconds) and the functions o_s(m), o_r(m), g(m), all between two processors.

    `further_gap` is the change of g(m) with the number of receivers, None if there is none, as in the paper.
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
        """Seconds of a message, at every size: L + g(m)."""
        return np.asarray(self.latency_seconds + self.gap(message_bytes))

    def as_loggp(self, min_bytes: int = 1) -> LogGP:
        """LogGP as Kielmann et al. derive it, except for G.

        o_s, o_r and g are those of the smallest message, and L' = L + g(1) - o_s(1) - o_r(1). Their G is g(m) / m for a
        large m, which still includes g(1) / m. Here G is (g(m) - g(1)) / (m - 1), which has the same limit. With this
        G, the gap in a series of messages of m bytes is exact: g + (m - 1) G = g(m). Unlike the slope between two large
        sizes, this G does not magnify errors of measurement. m is the last knot of g.
        """
        smallest, large = float(min_bytes), self.gap.message_bytes[-1]
        send, receive = float(self.send_overhead(smallest)), float(self.receive_overhead(smallest))
        gap = float(self.gap(smallest))
        latency = self.latency_seconds + gap - send - receive
        per_byte = (float(self.gap(large)) - gap) / (large - smallest) if large > smallest else 0.0
        return LogGP(latency, send, receive, gap, per_byte, further_gap=self.further_gap)


@dataclass(frozen=True)
class HeterogeneousPLogP:
    """PLogP for every pair, `pairs[sender][receiver]` (None on the diagonal); overheads belong to processors.

    Overheads are averaged over the pairs that a processor is in, as in O'Flynn 2009, section 5.2.
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
