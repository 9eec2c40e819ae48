"""Models from parameter files, for every command that takes --parameters."""

from __future__ import annotations

from pathlib import Path

from collwise.common.errors import UsageError, unknown_name
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import MODELS, ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.platforms import HostPlatform, load


def load_model(path: Path, name: str) -> CollectiveModel:
    """The model of that name from a file that 'collwise fit' wrote. Raises UsageError naming what is wrong."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    return ImplementationAware(ModelParameters.load(path), name)


def fitted_per_node(model: CollectiveModel) -> int | None:
    """The processes a node that the model's parameters hold for; None where they hold for any."""
    return model.parameters.processes_per_node if isinstance(model, ImplementationAware) else None


def check_fits_platform(model: CollectiveModel, file: Path, platform: HostPlatform, ppn: int) -> None:
    """Raises UsageError, naming the file, if the model is of another platform or of other processes a node."""
    per_node = fitted_per_node(model)
    if model.platform != platform.name or per_node not in (None, ppn):
        fitted_with = "" if per_node is None else f" with {per_node} per node"
        raise UsageError(
            f"{file}: parameters of platform '{model.platform}'{fitted_with}, not of '{platform.name}' with {ppn}"
        )


def platform_of(model: CollectiveModel, file: Path) -> HostPlatform:
    """The platform that the model is of. Raises UsageError, naming the file, if it is not among the known ones."""
    try:
        return load(model.platform)
    except UsageError:
        raise UsageError(
            f"{file}: parameters of platform '{model.platform}', which is in a file of its own: give its size by "
            "--platform FILE or --procs"
        ) from None
