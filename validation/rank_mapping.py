"""Compares the optimal mapping of processors to the binomial tree with the default one, by prediction and simulation.

O'Flynn 2009, sections 5.1 and 7.1: only a model with parameters for each pair of processors distinguishes mappings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collwise.common.errors import UsageError, check_name, unknown_name
from collwise.models.registry import MODELS as KNOWN_MODELS
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case

if TYPE_CHECKING:
    from collwise.models.interface import CollectiveModel
    from collwise.models.piecewise import Array
    from collwise.models.rank_mapping import Mapping
    from collwise.models.single_messages import LMO, Hockney
    from collwise.platforms import HostPlatform

COLLECTIVES = ("scatter", "gather")
"""The collectives whose binomial tree carries a block of each process, so that positions in the tree differ."""
MODELS = ("lmo_heterogeneous", "hockney_heterogeneous")
"""The models that have both parameters for each pair of processors and formulas for collectives."""


@dataclass(frozen=True)
class MappingGain:
    """The seconds of one message size under the default mapping and under another mapping.

    `hosts` are the platform's hosts in rank order under `mapping`.
    """

    message_bytes: int
    mapping: Mapping
    hosts: tuple[str, ...]
    predicted_default_seconds: float
    predicted_seconds: float
    simulated_default_seconds: float
    simulated_seconds: float

    @property
    def predicted_gain(self) -> float:
        """The share of the default mapping's predicted time that is saved."""
        return 1 - self.predicted_seconds / self.predicted_default_seconds

    @property
    def simulated_gain(self) -> float:
        """The share of the default mapping's simulated time that is saved; negative if the mapping is slower."""
        return 1 - self.simulated_seconds / self.simulated_default_seconds


def check_choice(collective: str, model: str) -> None:
    """Raises UsageError for a collective or a model without mappings to choose from."""
    check_name("collective with a mapping to choose", collective, COLLECTIVES)
    if model in MODELS:
        return
    if model not in KNOWN_MODELS:
        raise unknown_name("model with parameters per pair", model, MODELS)
    if KNOWN_MODELS[model].family in [KNOWN_MODELS[name].family for name in MODELS]:
        raise UsageError(
            f"model {model} has the same parameters for all processors, so all mappings are equal; "
            f"valid: {', '.join(MODELS)}"
        )
    raise UsageError(f"model {model} has no parameters per pair; valid: {', '.join(MODELS)}")


def best_mappings(
    model: CollectiveModel, collective: str, procs: int, sizes: Sequence[int], common: bool = False
) -> dict[int, Mapping]:
    """The mapping with the smallest predicted time at each size (bytes of a block), or one for all if `common`.

    The common mapping minimises the sum over all sizes of its time divided by the default mapping's time, so that all
    sizes count equally. Rank 0 stays on processor 0.
    """
    parameters = _parameters(model, procs)
    if not common:
        return {size: _best(parameters, collective, procs, [size]) for size in sizes}
    return dict.fromkeys(sizes, _best(parameters, collective, procs, sizes))


def mapping_gains(
    platform: HostPlatform,
    model: CollectiveModel,
    collective: str,
    procs: int,
    mappings: dict[int, Mapping],
    context: SimulationContext,
) -> list[MappingGain]:
    """The gain of each message size's mapping over the default mapping, for the binomial algorithm.

    There is one process per node. Raises UsageError if the platform has fewer than `procs` nodes, and CollwiseError if
    a case fails.
    """
    parameters = _parameters(model, procs)
    default = tuple(range(procs))

    def simulated(mapping: Mapping, sizes: Sequence[int]) -> dict[int, float]:
        others = [node for node in range(len(platform.hosts)) if node not in mapping]
        ordered = platform.reordered([*mapping, *others])
        cases = [Case(collective, "binomial", procs, size) for size in sizes]
        timings = context.simulate(ordered, cases).complete().timings
        return {case.message_bytes: timings[case].seconds for case in cases}

    platform.hosts_for(procs, 1)
    before = simulated(default, list(mappings))
    after: dict[int, float] = {}
    for mapping in dict.fromkeys(mappings.values()):
        after |= simulated(mapping, [size for size, chosen in mappings.items() if chosen == mapping])
    return [
        MappingGain(
            size,
            mapping,
            tuple(platform.hosts[node] for node in mapping),
            _seconds(parameters, collective, default, size),
            _seconds(parameters, collective, mapping, size),
            before[size],
            after[size],
        )
        for size, mapping in mappings.items()
    ]


def _parameters(model: CollectiveModel, procs: int) -> Hockney | LMO:
    import numpy as np

    from collwise.models.point_to_point import PointToPointModel
    from collwise.models.single_messages import LMO, Hockney

    parameters = model.parameters if isinstance(model, PointToPointModel) else None
    if not isinstance(parameters, Hockney | LMO) or not parameters.heterogeneous:
        raise UsageError(f"model {model.name} has no parameters per pair; valid: {', '.join(MODELS)}")
    pairs = parameters.as_hockney() if isinstance(parameters, LMO) else parameters
    known = len(np.asarray(pairs.alpha_seconds))
    if not 2 <= procs <= known:
        raise UsageError(
            f"a mapping of P = {procs} processes: the parameters are of {known} nodes; valid: 2 to {known}"
        )
    return parameters


def _seconds(parameters: Hockney | LMO, collective: str, mapping: Mapping, size: int) -> float:
    from collwise.models.collectives.blocks import binomial_seconds

    return float(binomial_seconds(parameters, mapping, size, gather=collective == "gather"))


def _best(parameters: Hockney | LMO, collective: str, procs: int, sizes: Sequence[int]) -> Mapping:
    import numpy as np

    from collwise.models.collectives.blocks import binomial_seconds
    from collwise.models.rank_mapping import heaviest_to_fastest, optimal_mapping

    blocks, gather = np.asarray(sizes, dtype=float), collective == "gather"
    default: Array = binomial_seconds(parameters, tuple(range(procs)), blocks, gather)

    def cost(mapping: Mapping) -> float:
        return float(np.sum(binomial_seconds(parameters, mapping, blocks, gather) / default))

    slowness = [0.0, *(float(np.sum(parameters.predict(blocks, 0, other))) for other in range(1, procs))]
    return optimal_mapping(cost, procs, starts=[heaviest_to_fastest(slowness)])
