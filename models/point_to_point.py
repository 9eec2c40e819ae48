"""Point-to-point models as models of collectives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.models.interface import DEFAULT_EAGER_LIMIT_BYTES, Points
from collwise.models.parameters import FAMILIES, FittedParameters, Parameters
from collwise.models.piecewise import Array
from collwise.models.registry import RegisteredModel
from collwise.models.single_messages import LMO, Hockney, HockneyBySize, LogGP, PLogP


@dataclass(frozen=True)
class PointToPointModel(RegisteredModel):
    """A point-to-point model of the registry with parameters of its family; `reduce_seconds_per_byte` is gamma.

    LogP takes LogGP's parameters and has G = 0. Raises ValueError for parameters of another family or form.
    """

    name: str
    platform: str
    parameters: Parameters
    reduce_seconds_per_byte: float = 0.0

    def __post_init__(self) -> None:
        wanted, heterogeneous = FAMILIES[self.kind.family], self.kind.heterogeneous
        if not isinstance(self.parameters, wanted) or self.parameters.heterogeneous != heterogeneous:
            form = "heterogeneous" if heterogeneous else "homogeneous"
            raise ValueError(f"model {self.name} takes {form} parameters of class {wanted.__name__}")

    def reach(self, collective: str) -> tuple[int, float]:
        """Returns 0 for P, and the largest message size up to which the parameters depend on the size."""
        known = self.parameters
        if isinstance(known, HockneyBySize):
            return 0, known.time.message_bytes[-1]
        return 0, known.gap.message_bytes[-1] if isinstance(known, PLogP) else 0

    def document(self) -> dict[str, Any]:
        """The parameters as plain dictionaries and lists, as in a parameter file."""
        procs = 2 if np.isinf(self.max_procs) else int(self.max_procs)
        known = (procs, DEFAULT_EAGER_LIMIT_BYTES, self.reduce_seconds_per_byte, self.parameters)
        return FittedParameters(self.kind.family, "", self.platform, "", *known).as_document()

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        parameter: int = 0,
    ) -> Array:
        """Seconds at every (P, m); 0 for one process, nan for more processes than the parameters cover.

        Segments count only if the catalogue's algorithm has segments; a `parameter` of 0 stands for the catalogue's
        default.
        """
        formula = self.formula(collective, algorithm)
        entry = Catalogue.load().algorithm(collective, algorithm)
        points = Points.of(
            procs,
            message_bytes,
            segment_bytes if entry.pipelined else np.zeros(np.shape(segment_bytes)),
            parameter or entry.default_count,
            reduce_seconds_per_byte=self.reduce_seconds_per_byte,
        )
        known = (points.procs > 1) & (points.procs <= self.max_procs)
        # Formulas hold for two processes or more, and have parameters for up to `max_procs` processes.
        safe = replace(points, procs=np.where(known, points.procs, 2.0))
        seconds = formula(safe, self._formula_parameters)
        return np.where(known, seconds, np.where(points.procs > 1, np.nan, 0.0))

    @property
    def _formula_parameters(self) -> Parameters:
        if self.kind.family == "logp" and isinstance(self.parameters, LogGP):
            return replace(self.parameters, gap_seconds_per_byte=0.0)
        return self.parameters

    @property
    def max_procs(self) -> float:
        """The number of processors whose parameters are known; infinite if all processors are equal."""
        pairs = self.parameters.as_hockney() if isinstance(self.parameters, LMO) else self.parameters
        return len(np.asarray(pairs.alpha_seconds)) if isinstance(pairs, Hockney) and pairs.heterogeneous else np.inf
