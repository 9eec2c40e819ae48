"""Times of a grid as curves: of each method, over the process count or over the message size."""

from __future__ import annotations

import pandas as pd

from collwise.validation.times.times import Times


def methods(times: Times) -> dict[str, pd.DataFrame]:
    """Seconds of each choice that competes, by its label: a row for each P, a column for each message size."""
    labels = (times.grid.labels[choice] for choice in times.choices)
    return {
        label: pd.DataFrame(seconds, times.procs, times.message_bytes)
        for label, seconds in zip(labels, times.array, strict=True)
    }


def over_sizes(times: Times, procs: int | None = None) -> pd.DataFrame:
    """Seconds on P processes, by default the largest P: a row for each message size, a column for each label."""
    return pd.DataFrame({label: of.loc[procs or times.procs[-1]] for label, of in methods(times).items()})
