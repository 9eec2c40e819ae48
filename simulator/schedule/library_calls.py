"""What an MPI library runs for its own collectives, which mock-ups call: the recorder asks for it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char, c_char_p, c_int, c_uint64
from dataclasses import dataclass

from collwise.common.errors import CollwiseError
from collwise.simulator.timing import Case


@dataclass(frozen=True)
class LibraryDecisions:
    """An MPI library's decisions: its name, a digest of them, and the case that does what it runs for a call.

    `decide` takes a collective, P and the message bytes. It raises UsageError where what the library runs is not known.
    """

    name: str
    digest: str
    decide: Callable[[str, int, int], Case]

    @property
    def details(self) -> dict[str, str]:
        """What the configuration of times of mock-ups has in addition."""
        return {"library_decisions": f"{self.name} {self.digest}"}


class _Choice(ctypes.Structure):
    _fields_ = (
        ("algorithm", c_char * 64),
        ("part_bytes", c_uint64),
        ("limit_bytes", c_uint64),
        ("count", c_int),
    )


FUNCTION = ctypes.CFUNCTYPE(c_int, c_char_p, c_int, c_uint64, ctypes.POINTER(_Choice))
"""The type schedule_library (simulator/schedule/recorder.h)."""


class Asked:
    """The decisions as a C function; `problem` is what they raised."""

    def __init__(self, decisions: LibraryDecisions | None) -> None:
        self.problem: CollwiseError | None = None
        self._decisions = decisions
        self.function = FUNCTION() if decisions is None else FUNCTION(self._decide)

    def _decide(self, collective: bytes, procs: int, message_bytes: int, chosen: ctypes._Pointer[_Choice]) -> int:
        assert self._decisions is not None
        try:
            case = self._decisions.decide(collective.decode(), procs, message_bytes)
        except CollwiseError as problem:
            self.problem = problem
            return 0
        chosen[0] = _Choice(case.algorithm.encode(), case.segment_bytes, case.limit_bytes, case.fanout)
        return 1
