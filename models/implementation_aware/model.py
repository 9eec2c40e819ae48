"""The implementation-aware models behind the interface that all models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.implementation_aware.message_counts import EAGER, RENDEZVOUS, Messages
from collwise.models.interface import Points
from collwise.models.parameters import FittedToObservations, ModelParameters
from collwise.models.piecewise import Array
from collwise.models.registry import BY_PARTS, TRADITIONAL, RegisteredModel
from collwise.models.single_messages import Hockney


@dataclass(frozen=True)
class ImplementationAware(FittedToObservations, RegisteredModel):
    """One of the models that share a parameter file: 'by_parts', 'as_printed' or 'traditional'."""

    parameters: ModelParameters
    name: str

    @property
    def segment_bytes(self) -> int:  # type: ignore[override]
        """The common segment size of the experiments."""
        return self.parameters.segment_bytes

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """The algorithms that have a formula and parameters; empty if the collective has none."""
        if self.name == TRADITIONAL:
            return self.kind.algorithms(collective)
        return tuple(self.parameters.fits.get(self.name, {}).get(collective, {}))

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        parameter: int = 0,
    ) -> Array:
        """Seconds at every (P, m); nan where a part was never fitted. Raises UsageError if there is no formula."""
        formula = self.formula(collective, algorithm)
        known, limit = self.parameters, self.parameters.eager_limit_bytes
        points = Points.of(procs, message_bytes, segment_bytes, parameter, eager_limit_bytes=limit)
        parts: Sequence[Messages] = formula(points, known.gamma)
        seconds = np.zeros(points.procs.shape)
        if self.name == TRADITIONAL:
            for part in parts:
                seconds = seconds + part.count * known.hockney.predict(part.bytes_each)
            return seconds
        sums = protocol_sums(self.name, collective, parts, points)
        fitted = known.fits[self.name][collective][algorithm]
        for segment in np.unique(segment_bytes):
            here = _seconds(sums, fitted.parameters_for(int(segment)), points.procs.shape)
            seconds = np.where(points.segment_bytes == segment, here, seconds)
        return seconds


def protocol_sums(
    model: str, collective: str, parts: Sequence[Messages], points: Points
) -> dict[str, tuple[Array, Array]]:
    """The number of messages and their total bytes by part and protocol ('main/eager'), as arrays over the points.

    In the model by parts, each message's size decides its protocol. In the model as printed, m decides for a gather,
    and the segmented broadcasts are eager (section III-A).
    """
    sums: dict[str, tuple[Array, Array]] = {}
    for part in parts:
        if part.protocol:
            is_rendezvous = np.full(part.count.shape, part.protocol == RENDEZVOUS)
        elif model == BY_PARTS:
            longest = part.bytes_each if part.longest is None else part.longest
            is_rendezvous = longest >= points.eager_limit_bytes
        else:
            is_rendezvous = (points.message_bytes >= points.eager_limit_bytes) & (collective == "gather")
        for protocol, applies in ((EAGER, ~is_rendezvous), (RENDEZVOUS, is_rendezvous)):
            if np.any(applies) and np.any(count := np.where(applies, part.count, 0.0)):
                key, total = f"{part.name}/{protocol}", count * part.bytes_each
                sums[key] = (sums[key][0] + count, sums[key][1] + total) if key in sums else (count, total)
    return sums


def _seconds(
    sums: Mapping[str, tuple[Array, Array]], parameters: Mapping[str, Hockney], shape: tuple[int, ...]
) -> Array:
    seconds = np.zeros(shape)
    for name, (count, total_bytes) in sums.items():
        if pair := parameters.get(name):
            seconds = seconds + count * pair.alpha_seconds + total_bytes * pair.beta_seconds_per_byte
        else:
            seconds = np.where(count > 0, np.nan, seconds)
    return seconds
