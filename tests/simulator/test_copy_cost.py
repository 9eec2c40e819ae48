"""The cost of copies in simulation: copy_seconds_per_byte for every byte that an algorithm copies, in both engines."""

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
