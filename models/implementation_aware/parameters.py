"""The fitted parameters of a platform: a readable TOML file, and prediction from it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import ArrayLike

from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import write_text
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.estimation import (
    AS_PRINTED,
    BY_PARTS,
    FORMULAS,
    AlgorithmFit,
    Hockney,
    Observation,
    protocol_sums,
)
from collwise.models.implementation_aware.parts import Array, Gamma, Points

TRADITIONAL = "traditional"
MODELS = (BY_PARTS, AS_PRINTED, TRADITIONAL)
_FORMAT = 1


@dataclass(frozen=True)
class ModelParameters:
    """Everything that prediction needs. Times in seconds, sizes in bytes.

    `fits[model][collective][algorithm]`; `hockney` is from roundtrips and serves the traditional formulas;
    `observations` are what each fit came from, in the order of its residuals.
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

    def algorithms(self, model: str, collective: str) -> tuple[str, ...]:
        """Algorithms that the model has a formula and parameters for.

        Raises UsageError for a model or collective that is not there.
        """
        if model not in MODELS:
            raise unknown_name("model", model, MODELS)
        if model == TRADITIONAL:
            return tuple(bcast.TRADITIONAL) if collective == "bcast" else ()
        fitted = self.fits.get(model, {})
        if collective not in fitted:
            raise unknown_name("collective", collective, fitted, f"parameters of platform '{self.platform}'")
        return tuple(fitted[collective])

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike | None = None,
        fanout: int = 0,
        model: str = BY_PARTS,
    ) -> Array:
        """Seconds at every (P, m), arrays that broadcast against each other; nan where a part was never fitted.

        `segment_bytes` None means the segment size of the fit. Raises UsageError for an algorithm without parameters.
        """
        if algorithm not in self.algorithms(model, collective):
            raise unknown_name(f"{collective} algorithm", algorithm, self.algorithms(model, collective))
        if segment_bytes is None:
            segment_bytes = self.segment_bytes if collective == "bcast" else 0
        points = Points.of(procs, message_bytes, segment_bytes, fanout, self.eager_limit_bytes)
        seconds = np.zeros(points.procs.shape)
        if model == TRADITIONAL:
            for part in bcast.TRADITIONAL[algorithm](points, self.gamma):
                seconds = seconds + part.count * self.hockney(part.bytes_each)
            return seconds
        parts = FORMULAS[model][collective][algorithm](points, self.gamma)
        sums = protocol_sums(model, collective, parts, points)
        fitted = self.fits[model][collective][algorithm]
        for segment in np.unique(points.segment_bytes):
            here = _evaluated(sums, fitted.parameters_for(int(segment)), points.procs.shape)
            seconds = np.where(points.segment_bytes == segment, here, seconds)
        return seconds

    def save(self, path: str | Path) -> None:
        """Writes the TOML file. Raises UsageError when it cannot be written."""
        write_text(Path(path), tomli_w.dumps(self.as_document()))

    def as_document(self) -> dict[str, Any]:
        """What `save` writes, as plain dictionaries and lists."""
        document: dict[str, Any] = {
            "format": _FORMAT,
            "platform": self.platform,
            "made_by": self.made_by,
            "processes_per_node": self.processes_per_node,
            "eager_limit_bytes": self.eager_limit_bytes,
            "segment_bytes": self.segment_bytes,
            "gamma": {
                "message_bytes": list(self.gamma.message_bytes),
                "values": [list(row) for row in self.gamma.values],
            },
            "hockney": _pair(self.hockney),
        }
        for model, collectives in self.fits.items():
            for collective, algorithms in collectives.items():
                for algorithm, fit in algorithms.items():
                    entry = document.setdefault(model, {}).setdefault(collective, {}).setdefault(algorithm, {})
                    entry["mean_relative_residual"] = round(fit.mean_residual, 6)
                    entry["worst_relative_residual"] = round(fit.worst_residual, 6)
                    entry["parameters"] = {name: _pair(pair) for name, pair in fit.parameters.items()}
                    if fit.by_segment:
                        entry["by_segment_bytes"] = {
                            str(segment): {name: _pair(pair) for name, pair in pairs.items()}
                            for segment, pairs in fit.by_segment.items()
                        }
                    entry["relative_residuals"] = [round(value, 6) for value in fit.residuals]
        for collective, by_algorithm in self.observations.items():
            for algorithm, observations in by_algorithm.items():
                document.setdefault("observations", {}).setdefault(collective, {})[algorithm] = [
                    f"{one.experiment} P={one.procs} m={one.message_bytes} m_s={one.segment_bytes} "
                    f"K={one.fanout} m_g={one.gather_bytes} seconds={one.seconds!r}"
                    for one in observations
                ]
        return document

    @classmethod
    def load(cls, path: str | Path) -> ModelParameters:
        """Reads a file that `save` wrote. Raises UsageError, naming the file and what is wrong."""
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            if document.get("format") != _FORMAT:
                raise UsageError(f"{path}: not a parameter file; make one with: collwise fit")
            fits = {
                model: {
                    collective: {
                        algorithm: AlgorithmFit(
                            {name: Hockney(**pair) for name, pair in entry["parameters"].items()},
                            tuple(entry["relative_residuals"]),
                            {
                                int(segment): {name: Hockney(**pair) for name, pair in pairs.items()}
                                for segment, pairs in entry.get("by_segment_bytes", {}).items()
                            },
                        )
                        for algorithm, entry in algorithms.items()
                    }
                    for collective, algorithms in document.get(model, {}).items()
                }
                for model in (BY_PARTS, AS_PRINTED)
            }
            gamma = Gamma(
                tuple(document["gamma"]["message_bytes"]), tuple(tuple(row) for row in document["gamma"]["values"])
            )
            loaded = cls(
                platform=document["platform"],
                made_by=document["made_by"],
                processes_per_node=document["processes_per_node"],
                eager_limit_bytes=document["eager_limit_bytes"],
                segment_bytes=document["segment_bytes"],
                gamma=gamma,
                hockney=Hockney(**document["hockney"]),
                fits=fits,
                observations={
                    collective: {name: tuple(map(_observation, lines)) for name, lines in by_algorithm.items()}
                    for collective, by_algorithm in document.get("observations", {}).items()
                },
            )
            for name, value, least in _numbers(loaded):
                if type(value) not in (int, float) or not math.isfinite(value) or value < least:
                    raise TypeError(f"{name} = {value!r}")
            return loaded
        except OSError as problem:
            raise UsageError(f"cannot read {path}: {problem.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise UsageError(f"{path}: broken TOML: {problem}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise UsageError(f"{path}: not a parameter file: missing or wrong {problem}") from None


def _observation(line: str) -> Observation:
    """An observation as `as_document` writes it."""
    experiment, *entries = line.split()
    given = dict(entry.split("=") for entry in entries)
    procs, size, segment, fanout, gather = (int(given[name]) for name in ("P", "m", "m_s", "K", "m_g"))
    return Observation(experiment, procs, size, segment, float(given["seconds"]), fanout, gather)


def _numbers(loaded: ModelParameters) -> Iterator[tuple[str, Any, float]]:
    """Every number of a parameter file: its name, what stands there, and the least it may be."""
    yield "processes_per_node", loaded.processes_per_node, 1
    yield "eager_limit_bytes", loaded.eager_limit_bytes, 0
    yield "segment_bytes", loaded.segment_bytes, 0
    sizes, rows = loaded.gamma.message_bytes, loaded.gamma.values
    for before, size in zip((0, *sizes), sizes, strict=False):
        yield "gamma message_bytes", size, before
    if not sizes or len(sizes) != len(rows) or len(set(map(len, rows))) != 1 or not rows[0]:
        raise TypeError("gamma values: one row a size, all of one length")
    for row in rows:
        for value in row:
            yield "gamma values", value, 0
    fits = [fit for by_name in loaded.fits.values() for fitted in by_name.values() for fit in fitted.values()]
    by_segment = [pairs for fit in fits for pairs in (fit.parameters, *fit.by_segment.values())]
    for pair in (loaded.hockney, *(pair for pairs in by_segment for pair in pairs.values())):
        yield "alpha_seconds", pair.alpha_seconds, 0
        yield "beta_seconds_per_byte", pair.beta_seconds_per_byte, 0
    for fit in fits:
        for residual in fit.residuals:
            yield "relative_residuals", residual, -math.inf


def _evaluated(
    sums: Mapping[str, tuple[Array, Array]], parameters: Mapping[str, Hockney], shape: tuple[int, ...]
) -> Array:
    seconds = np.zeros(shape)
    for name, (count, total_bytes) in sums.items():
        if name in parameters:
            pair = parameters[name]
            seconds = seconds + count * pair.alpha_seconds + total_bytes * pair.beta_seconds_per_byte
        else:
            seconds = np.where(count > 0, np.nan, seconds)
    return seconds


def _pair(pair: Hockney) -> dict[str, float]:
    return {"alpha_seconds": pair.alpha_seconds, "beta_seconds_per_byte": pair.beta_seconds_per_byte}
