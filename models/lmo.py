"""The LMO model, which separates constant and variable contributions of processors and of the network.

O'Flynn 2009, chapter 4: from i to j a message takes C_i + L_ij + C_j + m (t_i + 1 / beta_ij + t_j). Thresholds say
where the time of linear scatter leaps (S) and where linear gather is not deterministic (from M1 to M2).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.hockney import Hockney
from collwise.models.interface import PairParameters, entry
from collwise.models.piecewise import Array


@dataclass(frozen=True)
class Thresholds:
    """The thresholds in message bytes, each None if it was not found.

    `scatter_leap_bytes` is S, `gather_irregular_from_bytes` is M1, and `gather_regular_from_bytes` is M2. A message of
    M2 bytes counts as large here, since a protocol that changes at M2 already applies to it; the thesis counts it as
    medium.
    """

    scatter_leap_bytes: int | None = None
    gather_irregular_from_bytes: int | None = None
    gather_regular_from_bytes: int | None = None

    @property
    def last_irregular_bytes(self) -> int:
        """The largest size below M2, which LMO_Gather takes as its limit; 0 (no limit) if there is no M2."""
        return max((self.gather_regular_from_bytes or 0) - 1, 0)

    def irregular(self, message_bytes: ArrayLike) -> np.ndarray:
        """True where the time of linear gather is not deterministic: for sizes of at least M1 and below M2."""
        return _from(self.gather_irregular_from_bytes, message_bytes) & ~self.large(message_bytes)

    def large(self, message_bytes: ArrayLike) -> np.ndarray:
        """True where linear gather follows formula (4.3): for sizes of at least M2."""
        return _from(self.gather_regular_from_bytes, message_bytes)


def _from(threshold: int | None, message_bytes: ArrayLike) -> np.ndarray:
    return np.asarray(message_bytes, dtype=float) >= (np.inf if threshold is None else threshold)


@dataclass(frozen=True)
class LMO(PairParameters):
    """C (seconds), t (seconds per byte), L (seconds) and 1 / beta (seconds per byte).

    If heterogeneous, C and t are arrays (n,) over processors, and L and 1 / beta are symmetric arrays (n, n) over
    pairs; otherwise all are floats.
    """

    DIMENSIONS = MappingProxyType(
        {
            "processor_seconds": 1,
            "processor_seconds_per_byte": 1,
            "latency_seconds": 2,
            "network_seconds_per_byte": 2,
        }
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
        """The Hockney model of the same messages (section 4.1.1).

        alpha = C_i + L_ij + C_j and beta = t_i + 1 / beta_ij + t_j, with LMO's beta_ij.
        """
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
