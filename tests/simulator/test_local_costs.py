"""The cost of copies and of memory in simulation: both engines charge each byte of them to the process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.platforms import load_description
from collwise.platforms.description import Platform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.simulator.timing import Case
from tests.needs import needs

pytestmark = needs("smpi")

JUPITER = load_description("jupiter")
SECONDS_PER_BYTE = 1e-9
# The bytes that each process copies in turn. Bruck's alltoall of two processes copies its own block, and the other one
# into the order of distances, into the message, out of it, and to its place.
COPIED = {
    Case("alltoall", "bruck", 2, 65536): 5 * 65536,
    Case("alltoall", "pairwise", 4, 65536): 65536,
    Case("allgather", "recursive_doubling", 8, 65536): 65536,
    Case("bcast", "binomial", 8, 65536): 0,
}


def with_copies(seconds_per_byte: float) -> Platform:
    return replace(JUPITER, calibration=replace(JUPITER.calibration, copy_seconds_per_byte=seconds_per_byte))


@pytest.mark.parametrize("engine", ["smpi", "schedule"])
def test_copies_of_a_process_add_up(tmp_path: Path, engine: str) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES[engine])
        free = context.simulate(with_copies(0.0), list(COPIED)).complete().timings
        charged = context.simulate(with_copies(SECONDS_PER_BYTE), list(COPIED)).complete().timings
    for case, copied in COPIED.items():
        added = charged[case].seconds - free[case].seconds
        assert added == pytest.approx(copied * SECONDS_PER_BYTE, rel=0, abs=2e-8), case


MEMORY_BYTES = 2**20
# The memory that the processes on the critical path take for themselves, one after another.
ALLOCATED = {
    Case("gather", "binomial", 4, 2**20): 2**21,
    Case("allreduce", "recursive_doubling", 4, 2**20): 2**20,
    Case("allreduce", "recursive_doubling", 4, 2**19): 0,
    Case("allgather", "ring", 4, 2**20): 0,
}


def with_memory(seconds_per_byte: float | None) -> Platform:
    own = replace(JUPITER.calibration, allocate_seconds_per_byte=seconds_per_byte, kept_memory_bytes=MEMORY_BYTES)
    return replace(JUPITER, calibration=own)


@pytest.mark.parametrize("engine", ["smpi", "schedule"])
def test_memory_that_the_allocator_does_not_keep_adds_up(tmp_path: Path, engine: str) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES[engine])
        free = context.simulate(with_memory(None), list(ALLOCATED)).complete().timings
        charged = context.simulate(with_memory(SECONDS_PER_BYTE), list(ALLOCATED)).complete().timings
    for case, allocated in ALLOCATED.items():
        added = charged[case].seconds - free[case].seconds
        assert added == pytest.approx(allocated * SECONDS_PER_BYTE, rel=0, abs=2e-8), case
