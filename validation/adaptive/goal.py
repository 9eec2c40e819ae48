"""When an adaptive search stops."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOSS = 0.005
"""A point is left alone when its choice is expected to be slower than the best one by less than this share."""


@dataclass(frozen=True)
class Goal:
    """When to stop: `budget_seconds` of machine time, or an expected loss below `loss` at every point."""

    budget_seconds: float = math.inf
    loss: float = LOSS


GOAL = Goal()
