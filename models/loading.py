"""Models with formulas from parameters that were fitted."""

from __future__ import annotations

from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.models.parameter_file import FittedParameters
from collwise.models.point_to_point import PointToPointModel
from collwise.models.registry import IMPLEMENTATION_AWARE, models_of_family


def models_of(fitted: FittedParameters | ModelParameters) -> dict[str, CollectiveModel]:
    """The models that fitted parameters serve, by name, the one that they were made for first.

    Heterogeneous ones also serve the models of their means; heterogeneous LogP, LogGP and PLogP have no formulas of
    collectives, so that only their means are models.
    """
    if isinstance(fitted, ModelParameters):
        kinds = models_of_family(IMPLEMENTATION_AWARE)
        return {str(kind): ImplementationAware(fitted, str(kind)) for kind in kinds}
    parameters, means = fitted.parameters, fitted.parameters.homogeneous()
    return {
        str(kind): PointToPointModel(
            str(kind),
            fitted.platform,
            parameters if kind.heterogeneous else means,
            fitted.reduce_seconds_per_byte,
        )
        for kind in models_of_family(fitted.family)
        if parameters.heterogeneous or not kind.heterogeneous
    }
