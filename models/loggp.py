"""The LogP and LogGP models.

LogP: Culler et al. 1993; LogGP: Alexandrov et al. 1995; both as in Pješivac-Grbović et al. 2007, section 3.1, and
O'Flynn 2009, sections 2.2.2 and 2.2.3. A message takes L + 2 o + (m - 1) G; a sender may begin its next message after
g. As an option the gap depends on the number of receivers, as Pješivac-Grbović et al. ask for in their section 7.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.interface import PairParameters, entry
from collwise.models.piecewise import Array


@dataclass(frozen=True)
class FurtherGap:
    """The seconds by which the gap is longer, or shorter, if messages in a row go to several receivers.

    `seconds[i]` belongs to `receivers[i]`, ascending from 1, where it is 0. Lines lie between these numbers; beyond the
    last one the change stays the same.
    """

    receivers: tuple[float, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in zip(self.receivers, self.receivers[1:], strict=False))
        if not self.receivers or len(self.receivers) != len(self.seconds) or not ascending:
            raise ValueError("change of the gap: give at least one number of receivers, ascending, and as many seconds")

    def __call__(self, receivers: ArrayLike) -> Array:
        """Seconds for every number of receivers."""
        return np.asarray(np.interp(np.asarray(receivers, dtype=float), self.receivers, self.seconds))


@dataclass(frozen=True)
class LogGP(PairParameters):
    """L, o, g in seconds and G in seconds per byte. LogP is the same with G = 0.

    Latency and gaps are floats, or arrays (n, n) over sender and receiver; the overheads of sending and receiving are
    floats, or arrays (n,) over processors. In formulas with a single overhead, o is the mean of the two.
    `further_gap` is the change of g with the number of receivers, None if there is none, as in the papers.
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
        """Seconds of a message, at every size: L + o_s + o_r + (m - 1) G."""
        sizes = np.maximum(np.asarray(message_bytes, dtype=float) - 1, 0)
        overheads = entry(self.send_overhead_seconds, sender)
        overheads += entry(self.receive_overhead_seconds, receiver)
        gap = entry(self.gap_seconds_per_byte, sender, receiver)
        return np.asarray(entry(self.latency_seconds, sender, receiver) + overheads + sizes * gap)
