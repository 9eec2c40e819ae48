"""The extra memory of mock-ups, by the expressions of the catalogue (table 1 of Hunold & Carpen-Amarie 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from collwise.algorithms.catalogue import Algorithm
from collwise.common.units import format_size

_INTEGER_BYTES = 4
_CHUNK_BYTES = 64
_DOUBLE_BYTES = 8
_REDUCTIONS = ("reduce", "allreduce", "reduce_scatter_block", "scan")
_OF_ALL = ("scatter", "reduce_scatter_block")


@dataclass(frozen=True)
class Budget:
    """The sizes in bytes of libcollwise's buffers: for messages, and for counts and displacements."""

    message_bytes: int = 128 << 20
    integer_bytes: int = 1 << 20

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which libcollwise gets these sizes."""
        return {"COLLWISE_MESSAGE_BUFFER": str(self.message_bytes), "COLLWISE_INTEGER_BUFFER": str(self.integer_bytes)}

    def objection(self, mockup: Algorithm, procs: int, message_bytes: int) -> str:
        """Why a mock-up is over the budget at a call; empty if it is not."""
        for which, room, needed in zip(
            ("message", "integer"),
            (self.message_bytes, self.integer_bytes),
            extra_memory(mockup, procs, message_bytes),
            strict=True,
        ):
            if needed > room:
                return f"needs {format_size(needed)} of the {which} buffer, which has {format_size(room)}"
        return ""


USUAL_BUDGET = Budget()
"""The sizes that libcollwise's buffers have by default."""


def extra_memory(mockup: Algorithm, procs: int, message_bytes: int) -> tuple[int, int]:
    """The bytes that a mock-up needs for messages and for integers, in a call of the benchmark program.

    That reduces doubles if the message is a whole number of them, else bytes.
    """
    reduces = mockup.collective in _REDUCTIONS
    element = _DOUBLE_BYTES if reduces and message_bytes % _DOUBLE_BYTES == 0 else 1
    n = message_bytes * (procs if mockup.collective in _OF_ALL else 1)
    terms = {"n": n, "P": procs, "I": _INTEGER_BYTES, "c": -n % (procs * element), "C": _CHUNK_BYTES}
    return mockup.message_memory_of(terms), mockup.integer_memory_of(terms)
