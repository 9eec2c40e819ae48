"""Choices for calls of collectives, which are algorithms with their parameters, and decisions of libraries."""

from __future__ import annotations

from dataclasses import dataclass

from collwise.common.units import format_size


@dataclass(frozen=True)
class Choice:
    """An algorithm with its parameters.

    `segment_bytes` is 0 for unsegmented messages. `parameter` is the algorithm's radix, number of chains or leaders,
    `within` or the like; 0 is the algorithm's default. Messages up to `limit_bytes` are cut (0: all messages).
    """

    algorithm: str
    segment_bytes: int = 0
    parameter: int = 0
    limit_bytes: int = 0

    @property
    def label(self) -> str:
        """Text: 'chain, 8 KiB'; 'chain' without segments; 'k_chain (2), 8 KiB' if `parameter` is not the default."""
        name = f"{self.algorithm} ({self.parameter})" if self.parameter else self.algorithm
        return f"{name}, {format_size(self.segment_bytes)}" if self.segment_bytes else name


LIBRARY_DECIDES = Choice("library decides")
"""The choice that leaves a call to the library's own decision. It is no algorithm of the catalogue."""


@dataclass(frozen=True)
class Decision:
    """The algorithm that a library runs, as the library names it, and the catalogue's equal choice, if there is one."""

    algorithm: str
    choice: Choice | None
