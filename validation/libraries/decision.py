"""A library's decision: the algorithm that it runs for a call, and the catalogue's choice that is the same."""

from __future__ import annotations

from dataclasses import dataclass

from collwise.validation.times.choice import Choice


@dataclass(frozen=True)
class Decision:
    """The library's name of an algorithm, and the choice that is the same; None if the catalogue has none."""

    algorithm: str
    choice: Choice | None


def elements(message_bytes: int) -> int:
    """The elements that our programs reduce: doubles, or bytes where the message is no whole number of doubles."""
    return message_bytes // 8 if message_bytes % 8 == 0 else message_bytes
