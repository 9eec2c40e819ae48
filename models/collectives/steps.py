"""The few terms in which the papers' formulas for Hockney, LogP, LogGP and PLogP differ.

Each algorithm has one formula in these terms, in seconds for messages of m bytes (arrays). The models are homogeneous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.piecewise import Array
from collwise.models.single_messages import Hockney, HockneyBySize, LogGP, PLogP

# An empty message counts as a message of this size, since some networks charge nothing for a message of no bytes.
EMPTY_BYTES = 1.0


@dataclass(frozen=True)
class Steps:
    """The terms of one model; this class has Hockney's, in which a message waits until the previous one is complete."""

    model: Any

    def message(self, message_bytes: ArrayLike) -> Array:
        """The time until the receiver has the message: alpha + m beta, L + 2 o + (m - 1) G, or L + g(m)."""
        return np.asarray(self.model.predict(message_bytes))

    def gap(self, message_bytes: ArrayLike, receivers: ArrayLike = 1) -> Array:
        """The time between two messages that a process exchanges with `receivers` others in a row: alpha + m beta."""
        return self.message(message_bytes)

    def receiving(self, message_bytes: ArrayLike) -> Array:
        """The receiver's time for one more message when all have arrived: alpha + m beta."""
        return self.message(message_bytes)

    def round(self, message_bytes: ArrayLike) -> Array:
        """The time of a step in which every process sends one message and waits for one, on a full-duplex network."""
        return self.message(message_bytes)

    def fork(self, message_bytes: ArrayLike) -> Array:
        """The time between two segments at a process that receives each and sends it to two others."""
        return 2 * self.gap(message_bytes, 2)

    def inflow(self, message_bytes: ArrayLike, per_byte: float, sends: Array) -> Array:
        """The time between two messages at a process that combines each: alpha + m beta + m gamma; gamma is `per_byte`.

        `sends` is 1 if the process sends a message of that size after each one, otherwise 0. Under Hockney the process
        sends while it receives.
        """
        return np.asarray(self.message(message_bytes) + per_byte * np.asarray(message_bytes, dtype=float))


def _further_gap(model: LogGP | PLogP, receivers: ArrayLike) -> Array:
    """The change of the gap with the number of receivers; 0 in models without such a change."""
    return np.zeros(np.shape(receivers)) if model.further_gap is None else model.further_gap(receivers)


@dataclass(frozen=True)
class LogGPSteps(Steps):
    """The terms of LogGP, or of LogP if G = 0."""

    def _transmission(self, message_bytes: ArrayLike) -> Array:
        return np.asarray(
            np.maximum(np.asarray(message_bytes, dtype=float) - 1, 0) * self.model.gap_seconds_per_byte, dtype=float
        )

    def gap(self, message_bytes: ArrayLike, receivers: ArrayLike = 1) -> Array:
        """g + (m - 1) G, plus the change of g with the number of receivers."""
        gap = self.model.gap_seconds + _further_gap(self.model, receivers)
        return np.asarray(gap + self._transmission(message_bytes))

    def receiving(self, message_bytes: ArrayLike) -> Array:
        """o."""
        return np.full(np.shape(message_bytes), self.model.overhead_seconds)

    def round(self, message_bytes: ArrayLike) -> Array:
        """L + o + g + (m - 1) G. Tables 1 and 4 of the paper have the gap in place of the receiver's overhead."""
        return np.asarray(self.model.latency_seconds + self.model.overhead_seconds + self.gap(message_bytes))

    def inflow(self, message_bytes: ArrayLike, per_byte: float, sends: Array) -> Array:
        """(m - 1) G + max{g, (1 + s) o + m gamma}. As in table 3, work overlaps with the gap only."""
        busy = (1 + sends) * self.model.overhead_seconds + per_byte * np.asarray(message_bytes, dtype=float)
        return np.asarray(self._transmission(message_bytes) + np.maximum(self.model.gap_seconds, busy))


@dataclass(frozen=True)
class PLogPSteps(Steps):
    """The terms of PLogP."""

    def gap(self, message_bytes: ArrayLike, receivers: ArrayLike = 1) -> Array:
        """g(m), plus the change of g with the number of receivers."""
        return np.asarray(self.model.gap(message_bytes) + _further_gap(self.model, receivers))

    def receiving(self, message_bytes: ArrayLike) -> Array:
        """o_r(m)."""
        return np.asarray(self.model.receive_overhead(message_bytes))

    def fork(self, message_bytes: ArrayLike) -> Array:
        """max{2 g, o_r + g + o_s}."""
        busy = self.receiving(message_bytes) + self.model.send_overhead(message_bytes)
        gap = self.gap(message_bytes, 2)
        return np.asarray(gap + np.maximum(gap, busy))

    def inflow(self, message_bytes: ArrayLike, per_byte: float, sends: Array) -> Array:
        """max{g, o_r + m gamma + s o_s}."""
        busy = self.receiving(message_bytes) + per_byte * np.asarray(message_bytes, dtype=float)
        busy = busy + sends * self.model.send_overhead(message_bytes)
        return np.asarray(np.maximum(self.gap(message_bytes), busy))


def steps_of(model: Hockney | HockneyBySize | LogGP | PLogP) -> Steps:
    """The terms of a homogeneous model."""
    if isinstance(model, LogGP):
        return LogGPSteps(model)
    if isinstance(model, PLogP):
        return PLogPSteps(model)
    return Steps(model)
