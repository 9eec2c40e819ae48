"""Lists of what collwise has: `models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from collwise import arguments
from collwise.arguments import Names
from collwise.models.registry import MODELS, coverage

if TYPE_CHECKING:
    import pandas as pd


def models(collectives: Names | None = None) -> pd.DataFrame:
    """Lists the models of collectives with the procedures that estimate them; or those with formulas for collectives.

    If a model has no formula or schedule, predict leaves the algorithm out and
    says so. Models that end in _as_printed have formulas where those without it have.

    Returns a DataFrame: `name`, `what` it is, `procedures` and `paper`; or `collective`, `algorithm`, and whether it
    has `formulas`, by model.
    """
    import pandas as pd

    if collectives is not None:
        frame = pd.DataFrame([asdict(row) for row in coverage(arguments.collectives(collectives))])
        frame.attrs["title"] = "Models with formulas or schedules"
        return frame
    known = [(name, kind.title, kind.procedures, kind.paper) for name, kind in MODELS.items()]
    frame = pd.DataFrame(known, columns=["name", "what", "procedures", "paper"])
    frame.attrs["title"] = "Models of collectives"
    return frame
