"""Sizes that are refused before anything starts: the size that the message names as valid is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import parse_size
from collwise.simulator import limits
from collwise.simulator.limits import check_measured_sizes, check_simulated_sizes
from collwise.simulator.timing import Case

GIB = 2**30


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = {"max_map_count": 65530, "overcommit_memory": 0}
    monkeypatch.setattr(limits, "_kernel_number", lambda name, otherwise: kernel[name])
    monkeypatch.setattr(limits, "_memory_bytes", lambda: 16 * GIB)


def largest(case: Case, measured: bool) -> int:
    """The largest size that is not refused, found by following the messages."""
    try:
        if measured:
            check_measured_sizes([case], on_this_machine=True)
        else:
            check_simulated_sizes([case])
    except UsageError as problem:
        named = re.search(r"valid: sizes of up to (.*)$", str(problem))
        assert named is not None
        valid = parse_size(named[1])
        assert valid < case.message_bytes
        return largest(replace(case, message_bytes=valid), measured)
    return case.message_bytes


@pytest.mark.parametrize("collective", [name for name in Catalogue.load().collectives if name != "barrier"])
@pytest.mark.parametrize("procs", [2, 64, 1024])
@pytest.mark.parametrize("measured", [False, True])
def test_the_size_named_is_valid_and_fits_in_memory(collective: str, procs: int, measured: bool) -> None:
    case = Case(collective, "-", procs, 2**60)
    size = largest(case, measured)
    assert 2**13 <= size <= GIB
    if measured:
        assert procs * size <= 16 * GIB
    # Messages name whole MiB, KiB or bytes: one more is refused, with the same size.
    unit = next(unit for unit in (2**20, 2**10, 1) if size >= unit and size % unit == 0)
    if size < GIB:
        assert largest(replace(case, message_bytes=size + unit), measured) == size


@pytest.mark.parametrize(
    ("collective", "procs", "fits", "too_large"),
    [
        ("alltoall", 64, 7 * 2**20, 8 * 2**20),
        ("gather", 64, GIB // 4, GIB // 2),
        ("gatherv", 64, 2**25 - 1, 2**25),
        ("bcast", 60, GIB, GIB + 1),
        ("bcast", 64, GIB - 2**20, GIB),
    ],
)
def test_limits_of_the_simulator(collective: str, procs: int, fits: int, too_large: int) -> None:
    check_simulated_sizes([Case(collective, "-", procs, fits)])
    with pytest.raises(UsageError, match=f"{collective} of .* with P = {procs} is too large"):
        check_simulated_sizes([Case(collective, "-", procs, too_large)])
