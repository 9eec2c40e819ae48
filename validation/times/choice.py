"""A choice for a call of a collective: an algorithm with its parameters; and what a library decides."""

from __future__ import annotations

from dataclasses import dataclass

from collwise.common.units import format_size


@dataclass(frozen=True)
class Choice:
    """An algorithm with its parameters.

    `segment_bytes` is 0 for whole messages. `parameter` is the radix, number of chains or of leaders, `within` or the
    like that the algorithm has; 0 is its default. Messages are cut up to `limit_bytes` (0: all are).
    """

    algorithm: str
    segment_bytes: int = 0
    parameter: int = 0
    limit_bytes: int = 0

    @property
    def label(self) -> str:
        """'chain, 8 KiB'; 'chain' without segments; 'k_chain (2), 8 KiB' where `parameter` is not the default."""
        name = f"{self.algorithm} ({self.parameter})" if self.parameter else self.algorithm
        return f"{name}, {format_size(self.segment_bytes)}" if self.segment_bytes else name


LIBRARY_DECIDES = Choice("library decides")
"""The choice of a library's rules where its own decision is to hold; no algorithm of the catalogue."""


@dataclass(frozen=True)
class Decision:
    """A library's name of the algorithm that it runs, and the same choice; None if the catalogue has none."""

    algorithm: str
    choice: Choice | None
