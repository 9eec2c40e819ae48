"""The implementation-aware models behind the interface that all models share."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.piecewise import Array


@dataclass(frozen=True)
class ImplementationAware:
    """One of the models that a parameter file holds: 'by_parts', 'as_printed' or 'traditional'."""

    parameters: ModelParameters
    name: str

    @property
    def platform(self) -> str:
        """The platform that the parameters were estimated on."""
        return self.parameters.platform

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """Those with a formula and parameters; none of a collective without any."""
        if collective not in self.parameters.fits.get(self.name, {"bcast": None}):
            return ()
        return self.parameters.algorithms(self.name, collective)

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        fanout: int = 0,
    ) -> Array:
        """Seconds at every (P, m); nan where a part was never fitted. Raises UsageError without a formula."""
        return self.parameters.predict(
            collective, algorithm, procs, message_bytes, segment_bytes, fanout, model=self.name
        )
