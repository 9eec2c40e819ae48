"""The goals at which an adaptive search stops."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOSS = 0.005
"""The loss at which a search stops. Its choices are then expected to be slower than the best ones by less than this
share on average.
"""


@dataclass(frozen=True)
class Goal:
    """The goal at which a search stops: `budget_seconds` of machine time, or a mean expected loss below `loss`."""

    budget_seconds: float = math.inf
    loss: float = LOSS


GOAL = Goal()
