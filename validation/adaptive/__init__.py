"""Measuring adaptively: which cases are worth machine time, given what was measured and predicted so far."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOSS = 0.005
"""The loss at which a search stops, as a share: the mean expected slowdown of its choices against the best ones."""


@dataclass(frozen=True)
class Goal:
    """The goal at which a search stops: `budget_seconds` of machine time, or a mean expected loss below `loss`."""

    budget_seconds: float = math.inf
    loss: float = LOSS


GOAL = Goal()
