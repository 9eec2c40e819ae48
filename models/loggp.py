"""The LogP and LogGP models.

LogP: Culler et al. 1993; LogGP: Alexandrov et al. 1995; both as in Pješivac-Grbović et al. 2007, section 3.1, and
O'Flynn 2009, sections 2.2.2 and 2.2.3. A message takes L + 2 o + (m - 1) G; a sender may begin its next one after g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.hockney import mean_of_pairs, of_pair
from collwise.models.piecewise import Array


@dataclass(frozen=True)
class LogGP:
    """L, o, g in seconds and G in seconds per byte. LogP is the same with G = 0.

    Latency and gaps are floats, or arrays (n, n) over sender and receiver; the overheads of sending and receiving are
    floats, or arrays (n,) over processors. Where formulas know one overhead o, it is the mean of the two.
    """

    latency_seconds: float | Array
    send_overhead_seconds: float | Array
    receive_overhead_seconds: float | Array
    gap_seconds: float | Array
    gap_seconds_per_byte: float | Array = 0.0

    @property
    def heterogeneous(self) -> bool:
        """Whether pairs and processors have parameters of their own."""
        return np.ndim(self.latency_seconds) == 2

    @property
    def overhead_seconds(self) -> float:
        """o: the mean of sending's and receiving's. Homogeneous only."""
        return float(self.send_overhead_seconds + self.receive_overhead_seconds) / 2

    def homogeneous(self) -> LogGP:
        """The means over pairs and processors."""
        return LogGP(
            mean_of_pairs(self.latency_seconds),
            float(np.mean(self.send_overhead_seconds)),
            float(np.mean(self.receive_overhead_seconds)),
            mean_of_pairs(self.gap_seconds),
            mean_of_pairs(self.gap_seconds_per_byte),
        )

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size: L + o_s + o_r + (m - 1) G."""
        sizes = np.maximum(np.asarray(message_bytes, dtype=float) - 1, 0)
        overheads = of_processor(self.send_overhead_seconds, sender)
        overheads += of_processor(self.receive_overhead_seconds, receiver)
        gap = of_pair(self.gap_seconds_per_byte, sender, receiver)
        return np.asarray(of_pair(self.latency_seconds, sender, receiver) + overheads + sizes * gap)


def of_processor(value: float | Array, processor: int) -> float:
    """The value itself, or the processor's entry of an array."""
    return float(value) if np.ndim(value) == 0 else float(np.asarray(value)[processor])
