"""When an adaptive search stops."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOSS = 0.005
"""A search stops when its choices are expected to be slower than the best ones by less than this share on average."""


@dataclass(frozen=True)
class Goal:
    """When to stop: `budget_seconds` of machine time, or a mean expected loss below `loss`."""

    budget_seconds: float = math.inf
    loss: float = LOSS


GOAL = Goal()
