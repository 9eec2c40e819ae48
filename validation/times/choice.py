"""A choice for a call of a collective: an algorithm with its parameters; and what a library decides."""

from __future__ import annotations

from dataclasses import dataclass

from collwise.common.units import format_size


@dataclass(frozen=True)
class Choice:
    """An algorithm, its segment size in bytes (0: unsegmented), its fan-out (0: the algorithm's default) and its limit.

    The limit is the size in bytes up to which messages are cut (0: none).
    """

    algorithm: str
    segment_bytes: int = 0
    fanout: int = 0
    limit_bytes: int = 0

    @property
    def label(self) -> str:
        """'chain, 8 KiB'; 'chain' without segments; 'k_chain (4), 8 KiB' with a fan-out of its own."""
        name = f"{self.algorithm} ({self.fanout})" if self.fanout else self.algorithm
        return f"{name}, {format_size(self.segment_bytes)}" if self.segment_bytes else name


LIBRARY_DECIDES = Choice("library decides")
"""The choice of a library's rules where its own decision is to hold; no algorithm of the catalogue."""


@dataclass(frozen=True)
class Decision:
    """A library's name of the algorithm that it runs, and the same choice; None if the catalogue has none."""

    algorithm: str
    choice: Choice | None
