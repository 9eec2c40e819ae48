"""A Gaussian process over the logarithms of times: what is believed of all of them after some were measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from collwise.models.piecewise import Array

Numbers = NDArray[np.intp]
"""Places of cases among all."""


class Process:
    """Means and variances of logarithms, which `learn` and `imagine` replace; a shallow copy learns independently.

    `alike` says the covariances of rows and columns (numbers of cases) before anything was measured, under a scale.
    `plausibility` is the log-likelihood of what was learned, with a prior that is widest at the scale 1.
    """

    def __init__(self, prior: Array, alike: Callable[[Numbers, Numbers], Array], scale: float) -> None:
        self._alike = alike
        self._every = np.arange(len(prior))
        self._learned = np.zeros((0, len(prior)))
        self.mean = prior
        self.scale, self.plausibility = scale, -(math.log(scale) ** 2) / 2

    @cached_property
    def variance(self) -> Array:
        """The variance of every case."""
        alone = np.concatenate([self._alike(one, one)[0] for one in self._every[:, None]])
        return np.maximum(alone - (self._learned**2).sum(axis=0), 0.0)

    def covariance(self, columns: Numbers | None = None) -> Array:
        """The covariance of every case with some, by default with all: shape (cases, columns)."""
        some = self._every if columns is None else columns
        found = self._alike(self._every, some)
        return found - self._learned.T @ self._learned[:, some] if len(self._learned) else found

    def imagine(self, number: int, noise: float) -> None:
        """Lowers variances as a measured time with this variance would, whatever its value."""
        self._add(self.covariance(np.array([number])).T / math.sqrt(self.variance[number] + noise))

    def learn(self, numbers: Numbers, logs: Array, noise: Array) -> None:
        """Takes the logarithms of measured times with these variances into account."""
        covariance = self.covariance(numbers)
        factor = linalg.cholesky(covariance[numbers] + np.diag(noise), lower=True)
        whitened = linalg.solve_triangular(factor, logs - self.mean[numbers], lower=True)
        rows = linalg.solve_triangular(factor, covariance.T, lower=True)
        self.mean = self.mean + rows.T @ whitened
        self.plausibility -= float(whitened @ whitened / 2 + np.log(np.diag(factor)).sum())
        self._add(rows)

    def _add(self, rows: Array) -> None:
        variance = np.maximum(self.variance - (rows**2).sum(axis=0), 0.0) if "variance" in self.__dict__ else None
        self._learned = np.vstack([self._learned, rows])
        if variance is not None:
            self.variance = variance
