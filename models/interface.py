"""The interface of all models of collectives, and the points at which they are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.piecewise import Array

DEFAULT_PARAMETER = 4
DEFAULT_EAGER_LIMIT_BYTES = 65536


class Homogeneous:
    """Parameters that are the same for all pairs of processors."""

    heterogeneous = False

    def homogeneous(self) -> Self:
        """The parameters themselves."""
        return self


class PairParameters:
    """Parameters which are floats, or arrays if processors differ: in `DIMENSIONS`, 1 stands for (n,), 2 for (n, n)."""

    DIMENSIONS: ClassVar[Mapping[str, int]]

    @property
    def heterogeneous(self) -> bool:
        """True if each processor and pair has its own parameters."""
        return any(np.ndim(getattr(self, name)) > 0 for name in self.DIMENSIONS)

    def homogeneous(self) -> Self:
        """The means over processors and pairs."""
        means = {}
        for name in self.DIMENSIONS:
            values = np.asarray(getattr(self, name), dtype=float)
            # The diagonal stands for no pair.
            means[name] = float(np.mean(values[~np.eye(len(values), dtype=bool)] if values.ndim == 2 else values))
        return type(self)(**{**vars(self), **means})


def entry(value: float | Array, *index: int) -> float:
    """The value itself, or the entry of an array for a processor or a pair."""
    return float(value) if np.ndim(value) == 0 else float(np.asarray(value)[index])


class CollectiveModel(Protocol):
    """Predicts collectives on one platform. The root is rank 0; rank r runs on processor r if processors differ."""

    @property
    def name(self) -> str:
        """The name in the registry and on the command line: 'hockney', 'lmo_heterogeneous', 'by_parts'."""

    @property
    def platform(self) -> str:
        """The platform that the parameters were fitted on."""

    @property
    def processes_per_node(self) -> int | None:
        """The processes per node for which the parameters hold; None if they hold for any number."""

    @property
    def segment_bytes(self) -> int:
        """The segment size that the parameters were fitted with, bytes; 0 if they hold for any size."""

    def reach(self, collective: str) -> tuple[int, float]:
        """The largest P and m to which the model was fitted; 0 if the parameters do not say."""

    @property
    def plays(self) -> bool:
        """True if the model has no formulas but replays schedules, which takes long."""

    def document(self) -> dict[str, Any]:
        """The parameters as plain dictionaries and lists, as in a parameter file."""

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """The algorithms that have a formula and parameters; empty if the collective has none."""

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        parameter: int = 0,
    ) -> Array:
        """Seconds at every (P, m), which broadcast; nan where times are not deterministic, and outside the fit."""


def segment_count(message_bytes: Array, segment_bytes: Array) -> Array:
    """n_s = ceil(m / m_s); 1 where the message is unsegmented or empty."""
    whole = np.where(segment_bytes > 0, segment_bytes, np.inf)
    return np.asarray(np.maximum(1.0, np.ceil(message_bytes / whole)))


def longest_segment(message_bytes: Array, segment_bytes: Array) -> Array:
    """Bytes of the longest segment; all segments except the last are whole."""
    return np.asarray(np.where(segment_bytes > 0, np.minimum(segment_bytes, message_bytes), message_bytes))


@dataclass(frozen=True)
class Points:
    """The points at which formulas are evaluated: float arrays of one shape. Sizes in bytes.

    `procs` is P, `message_bytes` is m, `segment_bytes` is m_s (0: unsegmented), `parameter` is K, and
    `reduce_seconds_per_byte` is gamma.
    """

    procs: Array
    message_bytes: Array
    segment_bytes: Array
    parameter: int = DEFAULT_PARAMETER
    eager_limit_bytes: int = DEFAULT_EAGER_LIMIT_BYTES
    reduce_seconds_per_byte: float = 0.0

    @classmethod
    def of(
        cls,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        parameter: int = 0,
        *,
        eager_limit_bytes: int = DEFAULT_EAGER_LIMIT_BYTES,
        reduce_seconds_per_byte: float = 0.0,
    ) -> Points:
        """Points from anything array-like, broadcast to one shape; a `parameter` of 0 stands for the default."""
        arrays = [np.asarray(values, dtype=float) for values in (procs, message_bytes, segment_bytes)]
        p, m, s = np.broadcast_arrays(*arrays)
        return cls(p, m, s, parameter or DEFAULT_PARAMETER, eager_limit_bytes, reduce_seconds_per_byte)

    @property
    def segments(self) -> Array:
        """n_s, at least 1."""
        return segment_count(self.message_bytes, self.segment_bytes)

    @property
    def bytes_each(self) -> Array:
        """The size of a segment, m / n_s, which equals the papers' m_s if m_s divides m."""
        return np.asarray(self.message_bytes / self.segments)
