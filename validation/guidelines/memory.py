"""The budget of mock-ups: the sizes of libcollwise's two buffers, in which their extra memory has to fit."""

from __future__ import annotations

from dataclasses import dataclass

from collwise.algorithms.catalogue import BUFFER_VARIABLES, Algorithm, buffers
from collwise.common.units import format_size


@dataclass(frozen=True)
class Budget:
    """The sizes in bytes of the buffers: for messages, and for counts and displacements."""

    message_bytes: int
    integer_bytes: int

    @staticmethod
    def usual() -> Budget:
        """The sizes that the environment or, without it, libcollwise gives them."""
        given = buffers()
        return Budget(given.message_bytes, given.integer_bytes)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which libcollwise and our programs get these sizes."""
        return dict(zip(BUFFER_VARIABLES, map(str, (self.message_bytes, self.integer_bytes)), strict=True))

    def objection(self, mockup: Algorithm, procs: int, message_bytes: int) -> str:
        """Why a mock-up is over the budget at a call of the benchmark program; empty if it is not."""
        needed = mockup.extra_memory(procs, message_bytes)
        for which, room, bytes_needed in (
            ("message", self.message_bytes, needed.message_bytes),
            ("integer", self.integer_bytes, needed.integer_bytes),
        ):
            if bytes_needed > room:
                return f"needs {format_size(bytes_needed)} of the {which} buffer, which has {format_size(room)}"
        return ""
