"""The fitted parameters of a platform's implementation-aware models, in a readable TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.hockney import Hockney
from collwise.models.implementation_aware.parts import Gamma
from collwise.models.parameter_reading import Keys, ParameterFile
from collwise.models.registry import AS_PRINTED, BY_PARTS

_FORMAT = 1
_NUMBERS_AND_TEXTS = ("platform", "made_by", "processes_per_node", "eager_limit_bytes", "segment_bytes")
_OBSERVATION = "text such as 'collective P=4 m=1024 m_s=0 K=0 m_g=0 seconds=1e-05'"


@dataclass(frozen=True)
class Observation:
    """The time of one experiment. Sizes in bytes.

    `experiment` is 'collective', 'bcast_gather' (formula (16), without the barrier), 'exchange' (split-binary's second
    phase), or 'gather' (the closing gather of bcast_gather alone).
    """

    experiment: str
    procs: int
    message_bytes: int
    segment_bytes: int
    seconds: float
    fanout: int = 0
    gather_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"{self.experiment} P={self.procs} m={self.message_bytes} m_s={self.segment_bytes} "
            f"K={self.fanout} m_g={self.gather_bytes} seconds={self.seconds!r}"
        )

    @classmethod
    def parse(cls, line: str) -> Observation:
        """The observation that `str` wrote. Raises ValueError or KeyError."""
        experiment, *entries = line.split()
        given = dict(entry.split("=") for entry in entries)
        procs, size, segment, fanout, gather = (int(given[name]) for name in ("P", "m", "m_s", "K", "m_g"))
        return cls(experiment, procs, size, segment, float(given["seconds"]), fanout, gather)


def reach_of(observations: Mapping[str, Sequence[Observation]]) -> tuple[int, float]:
    """The largest P and m of the observations of a collective's algorithms; 0 without any."""
    points = [(one.procs, one.message_bytes) for each in observations.values() for one in each]
    return max((p for p, _ in points), default=0), max((m for _, m in points), default=0)


class WithResiduals:
    """A fit with its relative residuals, (predicted - observed) / observed for the observations, in their order."""

    residuals: tuple[float, ...]

    @property
    def mean_residual(self) -> float:
        """Mean absolute relative residual."""
        return float(np.mean(np.abs(self.residuals))) if self.residuals else 0.0

    @property
    def worst_residual(self) -> float:
        """Largest absolute relative residual."""
        return float(np.max(np.abs(self.residuals))) if self.residuals else 0.0

    def document(self, **others: Any) -> dict[str, Any]:
        """The fit as plain dictionaries and lists, with `others` between the residuals in short and in full."""
        return {
            "mean_relative_residual": round(self.mean_residual, 6),
            "worst_relative_residual": round(self.worst_residual, 6),
            **others,
            "relative_residuals": [round(value, 6) for value in self.residuals],
        }


@dataclass(frozen=True)
class AlgorithmFit(WithResiduals):
    """An algorithm's parameters, one Hockney pair per part and protocol ('main/eager'), and its relative residuals.

    `parameters` serve all segment sizes; `by_segment` has those fitted for a segment size alone, which are more
    accurate there.
    """

    parameters: Mapping[str, Hockney]
    residuals: tuple[float, ...]
    by_segment: Mapping[int, Mapping[str, Hockney]] = field(default_factory=dict)

    def parameters_for(self, segment_bytes: int) -> Mapping[str, Hockney]:
        """The parameters for that segment size, or for all together."""
        return self.by_segment.get(segment_bytes, self.parameters)


@dataclass(frozen=True)
class ModelParameters(ParameterFile):
    """The parameters of all implementation-aware models on a platform. Times in seconds, sizes in bytes.

    `fits[model][collective][algorithm]`; `hockney` is from roundtrips and serves the traditional formulas;
    `observations` are what each fit was made from, in the order of its residuals.
    """

    platform: str
    made_by: str
    processes_per_node: int
    eager_limit_bytes: int
    segment_bytes: int
    gamma: Gamma
    hockney: Hockney
    fits: Mapping[str, Mapping[str, Mapping[str, AlgorithmFit]]]
    observations: Mapping[str, Mapping[str, Sequence[Observation]]] = field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """The file's content as plain dictionaries and lists."""
        document: dict[str, Any] = {
            "format": _FORMAT,
            **{name: getattr(self, name) for name in _NUMBERS_AND_TEXTS},
            "gamma": {
                "message_bytes": list(self.gamma.message_bytes),
                "values": [list(row) for row in self.gamma.values],
            },
            "hockney": vars(self.hockney),
        }
        for model, collectives in self.fits.items():
            document[model] = {
                collective: {algorithm: _fit_document(fit) for algorithm, fit in algorithms.items()}
                for collective, algorithms in collectives.items()
            }
        if self.observations:
            document["observations"] = observations_document(self.observations)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any], path: str | Path) -> ModelParameters:
        """The parameters in what `read_document` gave. Raises UsageError."""
        if document.get("format") != _FORMAT:
            raise UsageError(f"{path}: not a parameter file; make one with: collwise fit")
        keys = Keys(path, document)
        gamma = keys.table("gamma")
        sizes = gamma.sizes("message_bytes")
        return cls(
            platform=keys.text("platform"),
            made_by=keys.text("made_by"),
            processes_per_node=keys.whole("processes_per_node", 1),
            eager_limit_bytes=keys.whole("eager_limit_bytes", 0),
            segment_bytes=keys.whole("segment_bytes", 0),
            gamma=Gamma(sizes, gamma.rows("values", len(sizes), 0)),
            hockney=read_hockney(keys.table("hockney")),
            fits={
                model: {
                    collective: {name: _fit(algorithms.table(name)) for name in algorithms.values}
                    for collective, algorithms in keys.tables(model).items()
                }
                for model in (BY_PARTS, AS_PRINTED)
            },
            observations=read_observations(keys),
        )


def _fit_document(fit: AlgorithmFit) -> dict[str, Any]:
    by_segment = {str(segment): pairs_document(pairs) for segment, pairs in fit.by_segment.items()}
    more = {"by_segment_bytes": by_segment} if by_segment else {}
    return fit.document(parameters=pairs_document(fit.parameters), **more)


def _fit(keys: Keys) -> AlgorithmFit:
    segments = keys.tables("by_segment_bytes")
    if not all(map(str.isdecimal, segments)):
        raise keys.wrong("by_segment_bytes", "tables named by segment sizes in bytes")
    return AlgorithmFit(
        read_hockneys(keys.table("parameters")),
        keys.numbers("relative_residuals"),
        {int(segment): read_hockneys(parts) for segment, parts in segments.items()},
    )


def pairs_document(pairs: Mapping[str, Hockney]) -> dict[str, dict[str, Any]]:
    """Pairs of alpha and beta by name as plain dictionaries, which `read_hockneys` reads."""
    return {name: vars(pair) for name, pair in pairs.items()}


def read_hockneys(keys: Keys) -> dict[str, Hockney]:
    """alpha and beta in each table of a table. Raises UsageError."""
    return {name: read_hockney(keys.table(name)) for name in keys.values}


def read_hockney(keys: Keys) -> Hockney:
    """alpha and beta in a table. Raises UsageError."""
    return Hockney(keys.number("alpha_seconds", 0), keys.number("beta_seconds_per_byte", 0))


Observations = Mapping[str, Mapping[str, Sequence[Observation]]]
"""The observations that each fit was made from, by collective and algorithm, in the order of its residuals."""


def observations_document(observations: Observations) -> dict[str, dict[str, list[str]]]:
    """Observations as plain dictionaries and lists, which `read_observations` reads."""
    return {
        collective: {algorithm: list(map(str, found)) for algorithm, found in by_algorithm.items()}
        for collective, by_algorithm in observations.items()
    }


def read_observations(keys: Keys) -> Observations:
    """The observations in a file. Raises UsageError."""

    def read(by_algorithm: Keys, algorithm: str) -> tuple[Observation, ...]:
        lines = by_algorithm.get(algorithm)
        try:
            return tuple(map(Observation.parse, lines))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise by_algorithm.wrong(algorithm, f"a list of {_OBSERVATION}") from None

    return {
        collective: {name: read(by_algorithm, name) for name in by_algorithm.values}
        for collective, by_algorithm in keys.tables("observations").items()
    }
